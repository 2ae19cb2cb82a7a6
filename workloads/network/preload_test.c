/* An unmodified program of sockets, for the test of the preloaded stack: it echoes, and it checks what is echoed to it, in each of the ways in
 * which programs wait and move data. It knows nothing of the stack.
 *
 *     preload_test serve ADDRESS      echoes on TCP and UDP until it is killed
 *     preload_test use ADDRESS        0 if all was right
 *     preload_test fork ADDRESS       what the stack refuses: a child uses a socket
 *     preload_test stdio ADDRESS      and a socket has a FILE */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"

#define PORT 6000
#define BYTES 300000
#define SEED 3
#define PART 5000
#define MANY 1000000

static struct sockaddr_in address = {.sin_family = AF_INET};
static char buffer[65536];

static void expect(bool is_so, const char *what) {
    if (is_so) return;
    fprintf(stderr, "preload_test: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int opened(int type) {
    int descriptor = socket(AF_INET, type, 0);
    expect(descriptor >= 0, "socket");
    return descriptor;
}

static int connected(int type) {
    int descriptor = opened(type);
    expect(connect(descriptor, (void *)&address, sizeof address) == 0, "connect");
    return descriptor;
}

/* Ways to wait for an event: POLLIN or POLLOUT. Each returns what has come of both. */
typedef short wait_function(int descriptor, short events);

static short by_poll(int descriptor, short events) {
    struct pollfd entries[] = {{0, 0, 0}, {descriptor, events, 0}};
    expect(poll(entries, 2, 10000) == 1, "poll");
    return entries[1].revents;
}

static short by_select(int descriptor, short events) {
    fd_set readable, writeable;
    FD_ZERO(&readable);
    FD_ZERO(&writeable);
    if (events & POLLIN) FD_SET(descriptor, &readable);
    if (events & POLLOUT) FD_SET(descriptor, &writeable);
    expect(select(descriptor + 1, &readable, &writeable, NULL, &(struct timeval){10, 0}) > 0, "select");
    return (FD_ISSET(descriptor, &readable) ? POLLIN : 0) | (FD_ISSET(descriptor, &writeable) ? POLLOUT : 0);
}

static short by_epoll(int descriptor, short events) {
    struct epoll_event event = {(uint32_t)events, {.fd = descriptor}};
    int set = epoll_create1(0);
    expect(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
    expect(epoll_wait(set, &event, 1, 10000) == 1 && event.data.fd == descriptor, "epoll_wait");
    close(set);
    return (short)event.events;
}

/* Edges: one set for the life of a connection, whose events are told once. */
static short by_edges(int descriptor, short events) {
    static int set = -1, watched = -1;
    struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLET, {.fd = descriptor}};
    static uint32_t ready;
    if (watched != descriptor) {
        if (set >= 0) close(set);
        set = epoll_create1(0);
        watched = descriptor;
        ready = 0;
        expect(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
    }
    while (!(ready & (uint32_t)events)) {
        expect(epoll_wait(set, &event, 1, 10000) == 1, "an edge");
        ready |= event.events;
    }
    short told = (short)ready & events;
    ready &= ~(uint32_t)events;
    return told;
}

/* Ways to move data. */
static ssize_t put_plainly(int descriptor, char *bytes, size_t length) {
    return write(descriptor, bytes, length);
}

static ssize_t put_ranges(int descriptor, char *bytes, size_t length) {
    struct iovec ranges[] = {{bytes, length / 3}, {bytes + length / 3, length - length / 3}};
    struct msghdr message = {.msg_iov = ranges, .msg_iovlen = 2};
    return sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

static ssize_t get_plainly(int descriptor, char *bytes, size_t length) {
    return read(descriptor, bytes, length);
}

static ssize_t get_ranges(int descriptor, char *bytes, size_t length) {
    struct iovec ranges[] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
    char first;
    ssize_t peeked = recv(descriptor, &first, 1, MSG_PEEK), got = readv(descriptor, ranges, 2);
    expect(peeked < 1 || (got > 0 && first == *bytes), "MSG_PEEK");
    return got;
}

/* Sends and checks what is echoed, never waiting but in `wait`. */
static void exchange(int descriptor, wait_function *wait, bool has_ranges) {
    uint64_t sent = 0, received = 0;
    char bytes[PART];
    int on = 1;
    expect(ioctl(descriptor, FIONBIO, &on) == 0 && fcntl(descriptor, F_GETFL) & O_NONBLOCK, "FIONBIO");
    while (received < BYTES) {
        short events = wait(descriptor, POLLIN | (sent < BYTES ? POLLOUT : 0));
        ssize_t moved = 0;
        while (events & POLLOUT && sent < BYTES && moved >= 0) {
            size_t part = BYTES - sent < PART ? BYTES - sent : PART;
            pattern_fill(bytes, part, sent, SEED);
            moved = has_ranges ? put_ranges(descriptor, bytes, part) : put_plainly(descriptor, bytes, part);
            expect(moved > 0 || errno == EAGAIN, "send");
            if (moved > 0) sent += (uint64_t)moved;
        }
        if (sent == BYTES) shutdown(descriptor, SHUT_WR);
        if (!(events & POLLIN)) continue;
        while ((moved = has_ranges ? get_ranges(descriptor, bytes, PART) : get_plainly(descriptor, bytes, PART)) > 0) {
            expect(pattern_is(bytes, (size_t)moved, received, SEED), "wrong bytes");
            received += (uint64_t)moved;
        }
        expect(moved == 0 ? received == BYTES : errno == EAGAIN, "receive");
    }
}

/* Calls that wait themselves. */
static void exchange_waiting(void) {
    char bytes[PART];
    int first = connected(SOCK_STREAM), descriptor = dup(first), on = 1;
    struct sockaddr_in name;
    socklen_t size = sizeof name;
    expect(close(first) == 0, "close");
    expect(getpeername(descriptor, (void *)&name, &size) == 0 && name.sin_port == htons(PORT), "getpeername");
    expect(getsockname(descriptor, (void *)&name, &size) == 0 && name.sin_port != 0, "getsockname");
    expect(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
    for (uint64_t position = 0; position < BYTES; position += PART) {
        pattern_fill(bytes, PART, position, SEED);
        expect(send(descriptor, bytes, PART, 0) == PART, "send");
        memset(bytes, 0, PART);
        expect(recv(descriptor, bytes, PART, MSG_WAITALL) == PART && pattern_is(bytes, PART, position, SEED), "the echo");
    }
    close(descriptor);
}

static void exchange_datagrams(void) {
    int descriptor = opened(SOCK_DGRAM);
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    for (int i = 0; i < 10; i++) {
        expect(sendto(descriptor, "datagram", 9, 0, (void *)&address, sizeof address) == 9, "sendto");
        expect(recvfrom(descriptor, buffer, sizeof buffer, 0, (void *)&from, &size) == 9 && strcmp(buffer, "datagram") == 0, "recvfrom");
        expect(from.sin_port == htons(PORT) && from.sin_addr.s_addr == address.sin_addr.s_addr, "the sender");
    }
    close(descriptor);
}

/* A limit of waiting counts from the call, however long the program has done something else. */
static void wait_in_vain(void) {
    int descriptor = connected(SOCK_STREAM);
    struct timeval limit = {0, 200000};
    struct timespec began, ended;
    expect(setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0, "SO_RCVTIMEO");
    usleep(400000);
    clock_gettime(CLOCK_MONOTONIC, &began);
    expect(recv(descriptor, buffer, 1, 0) < 0 && errno == EAGAIN, "nothing to receive");
    clock_gettime(CLOCK_MONOTONIC, &ended);
    expect((ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1000000 >= 190, "a limit of 200 ms");
    close(descriptor);
}

/* More ranges than a call takes, and than a stack of a thread has room for. */
static void read_too_many_ranges(void) {
    static struct iovec ranges[MANY];
    volatile int negative = -1; /* The compiler would see a constant. */
    int descriptor = connected(SOCK_STREAM);
    expect(readv(descriptor, ranges, MANY) < 0 && errno == EINVAL, "too many ranges");
    expect(readv(descriptor, ranges, negative) < 0 && errno == EINVAL, "a negative number of ranges");
    close(descriptor);
}

static void use(void) {
    wait_function *const WAYS[] = {by_poll, by_select, by_epoll, by_edges};
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        int descriptor = connected(SOCK_STREAM);
        exchange(descriptor, WAYS[i], i % 2);
        close(descriptor);
    }
    exchange_waiting();
    exchange_datagrams();
    wait_in_vain();
    read_too_many_ranges();
    struct sockaddr_in nobody = address;
    nobody.sin_port = htons(1);
    expect(connect(opened(SOCK_STREAM), (void *)&nobody, sizeof nobody) < 0 && errno == ECONNREFUSED, "a refused connection");
}

/* Bytes that a connection has received and not sent yet, by its descriptor. */
static struct echo {
    char bytes[16384];
    size_t length;
    bool has_ended;
} *echoes[1024];

/* Echoes what is there; false at the end. */
static bool echo(int descriptor) {
    struct echo *own = echoes[descriptor];
    if (own->length < sizeof own->bytes && !own->has_ended) {
        ssize_t got = read(descriptor, own->bytes + own->length, sizeof own->bytes - own->length);
        if (got == 0) own->has_ended = true;
        else if (got < 0 && errno != EAGAIN) return false;
        else if (got > 0) own->length += (size_t)got;
    }
    ssize_t put = own->length > 0 ? write(descriptor, own->bytes, own->length) : 0;
    if (put < 0 && errno != EAGAIN) return false;
    if (put > 0) memmove(own->bytes, own->bytes + put, own->length -= (size_t)put);
    return own->length > 0 || !own->has_ended;
}

static void watch(int set, int operation, int descriptor, uint32_t events) {
    expect(epoll_ctl(set, operation, descriptor, &(struct epoll_event){events, {.fd = descriptor}}) == 0, "epoll_ctl");
}

static void serve_connection(int set, int descriptor) {
    if (!echo(descriptor)) {
        free(echoes[descriptor]);
        close(descriptor);
        return;
    }
    const struct echo *own = echoes[descriptor];
    bool may_read = own->length < sizeof own->bytes && !own->has_ended;
    watch(set, EPOLL_CTL_MOD, descriptor, (may_read ? EPOLLIN : 0) | (own->length > 0 ? EPOLLOUT : 0));
}

static void serve(void) {
    int listener = opened(SOCK_STREAM | SOCK_NONBLOCK), udp = opened(SOCK_DGRAM), set = epoll_create1(0);
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    expect(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 8) == 0, "listen");
    expect(bind(udp, (void *)&address, sizeof address) == 0, "bind");
    watch(set, EPOLL_CTL_ADD, listener, EPOLLIN);
    watch(set, EPOLL_CTL_ADD, udp, EPOLLIN);
    puts("ready");
    fflush(stdout);
    for (struct epoll_event event; epoll_wait(set, &event, 1, -1) == 1;) {
        if (event.data.fd == udp) {
            ssize_t got = recvfrom(udp, buffer, sizeof buffer, 0, (void *)&from, &size);
            if (got >= 0) sendto(udp, buffer, (size_t)got, 0, (void *)&from, size);
        } else if (event.data.fd == listener) {
            int connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (connection < 0) continue;
            echoes[connection] = calloc(1, sizeof *echoes[connection]);
            watch(set, EPOLL_CTL_ADD, connection, EPOLLIN);
        } else {
            serve_connection(set, event.data.fd);
        }
    }
}

int main(int count, char **texts) {
    const char *what = count == 3 ? texts[1] : "";
    address.sin_port = htons(PORT);
    if (count != 3 || inet_pton(AF_INET, texts[2], &address.sin_addr) != 1) return 2;
    if (strcmp(what, "serve") == 0) serve();
    else if (strcmp(what, "use") == 0) use();
    int descriptor = opened(SOCK_STREAM);
    if (strcmp(what, "stdio") == 0) fdopen(descriptor, "r+");
    if (strcmp(what, "fork") != 0) return 0;
    pid_t child = fork();
    if (child == 0) _exit(write(descriptor, "x", 1) == 1);
    int status;
    expect(waitpid(child, &status, 0) == child, "waitpid");
    return WEXITSTATUS(status);
}
