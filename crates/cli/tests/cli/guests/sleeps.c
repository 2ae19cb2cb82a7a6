/* Spends nearly all of its time in the system call that its first argument names, and works in between. Standard input
   brings a byte now and then. Nothing else ends a call: it fails if one is interrupted. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

FUNCTION long work(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}

int main(int argc, char **argv) {
    struct timespec pause = {0, 20000000};
    struct epoll_event event = {.events = EPOLLIN};
    int word = 0, epoll = epoll_create1(0);
    char byte;
    epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
    for (;;) {
        if (!strcmp(argv[1], "nanosleep") && nanosleep(&pause, NULL)) return 1;
        if (!strcmp(argv[1], "read") && read(0, &byte, 1) != 1) return 1;
        if (!strcmp(argv[1], "futex") && (!syscall(SYS_futex, &word, FUTEX_WAIT, 0, &pause) || errno != ETIMEDOUT))
            return 1;
        if (!strcmp(argv[1], "epoll") && (epoll_wait(epoll, &event, 1, -1) != 1 || read(0, &byte, 1) != 1)) return 1;
        work(20);
    }
}
