/* Times of timers that go off while the program waits, to the nanosecond: the same in each counted run. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long at_alarm;
static void on_alarm(int signal) { at_alarm = now(); }

int main(void) {
    sigset_t alarm, none;
    struct itimerval soon = {{0, 0}, {0, 15000}};
    struct itimerspec later = {{0, 0}, {0, 25000000}};
    struct timespec limit = {100, 0};
    sigemptyset(&none);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    signal(SIGALRM, on_alarm);
    for (int way = 0; way < 4; way++) {
        long before = now();
        if (way == 3) {
            int timer = timerfd_create(CLOCK_MONOTONIC, 0);
            uint64_t times;
            timerfd_settime(timer, 0, &later, NULL);
            poll(&(struct pollfd){timer, POLLIN, 0}, 1, -1);
            at_alarm = now();
            read(timer, &times, sizeof times);
        } else {
            setitimer(ITIMER_REAL, &soon, NULL);
            if (way == 0) sigsuspend(&none);
            if (way == 1) ppoll(NULL, 0, &limit, &none);
            if (way == 2) on_alarm(sigwaitinfo(&alarm, NULL));
        }
        printf("%ld %ld\n", at_alarm - before, now() - before);
    }
    return 0;
}
