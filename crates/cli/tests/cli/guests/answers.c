/* A server of one client, over a socket with the name of its argument: it looks for requests without blocking, waits if there are none,
   has a timer, and works for longer if more time has passed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;

static void tick(int signal) {
    (void)signal;
    ticks++;
}

__attribute__((noinline)) void work(long times) {
    for (volatile long i = 0; i < times; i++) {}
}

__attribute__((noinline)) void answer(int client) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    work(100 + now.tv_nsec / 10000000 + ticks);
    send(client, "+", 1, 0);
}

int main(int count, char **arguments) {
    (void)count;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, arguments[1], sizeof address.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0) {
        perror("socket");
        return 1;
    }
    signal(SIGALRM, tick);
    struct itimerval timer = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    int client;
    while ((client = accept(listener, NULL, NULL)) < 0 && errno == EINTR) {}
    fcntl(client, F_SETFL, O_NONBLOCK);
    for (;;) {
        char request;
        ssize_t got = recv(client, &request, 1, 0);
        if (got == 0) return 0;
        if (got > 0) {
            answer(client);
            continue;
        }
        struct pollfd readable = {.fd = client, .events = POLLIN};
        poll(&readable, 1, 10);
    }
}
