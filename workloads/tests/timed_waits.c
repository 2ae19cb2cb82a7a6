/* flags: -pthread */
/* Timers that go off while the program waits for somebody else, by every call that waits: the clocks agree with
 * the timers, also where the clock is one of the program's own. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND 1000000LL

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000 * MILLISECOND + t.tv_nsec;
}

static int64_t of_day(void) {
    struct timeval t;
    gettimeofday(&t, NULL);
    return t.tv_sec * 1000 * MILLISECOND + t.tv_usec * 1000;
}

/* At least so long, and not beyond all measure. */
static int plausible(int64_t passed, int64_t least) { return passed >= least && passed < least + 60000 * MILLISECOND; }

static int ends[2], semaphores, queue, polled;
static uint32_t *word;

static int by_semop(void) { return semop(semaphores, &(struct sembuf){.sem_op = -1}, 1); }
static int by_futex(void) { return syscall(SYS_futex, word, FUTEX_WAIT, 1, NULL, NULL, 0); }
static int by_poll(void) { return poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, -1); }
static int by_epoll(void) { return epoll_wait(polled, &(struct epoll_event){0}, 1, -1); }
static int by_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    return select(ends[0] + 1, &set, NULL, NULL, NULL);
}
static int by_read(void) { return read(ends[0], &(char){0}, 1); }
static int by_msgrcv(void) {
    struct { long type; char text[8]; } message;
    return msgrcv(queue, &message, 8, 0, 0);
}
static int by_pause(void) { return pause(); }
static int by_nanosleep(void) { return nanosleep(&(struct timespec){100, 0}, NULL); }
static int by_timed_poll(void) { return poll(NULL, 0, 100000); }
static int by_wait(void) { return wait(NULL); }

static const struct {
    const char *name;
    int (*wait)(void);
} ways[] = {{"semop", by_semop}, {"futex", by_futex}, {"poll", by_poll}, {"epoll_wait", by_epoll},
            {"select", by_select}, {"read", by_read}, {"msgrcv", by_msgrcv}, {"pause", by_pause},
            {"nanosleep", by_nanosleep}, {"poll with a timeout", by_timed_poll}, {"wait", by_wait}};

static volatile sig_atomic_t alarms;
static int64_t at_alarm;
static void on_alarm(int signal) {
    alarms++;
    at_alarm = now(CLOCK_MONOTONIC);
}

/* What a database server does: a timer, then a lock that somebody else keeps. It goes off again, should it have gone
 * off before the wait began. */
static void one(const char *name, int (*wait)(void), int microseconds) {
    struct itimerval timer = {{0, microseconds}, {0, microseconds}}, never = {{0, 0}, {0, 0}}, left;
    int64_t least = microseconds * 1000LL, monotonic = now(CLOCK_MONOTONIC), day = of_day();
    alarms = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
    getitimer(ITIMER_REAL, &left);
    int before = left.it_value.tv_sec == 0 && left.it_value.tv_usec > 0 && left.it_value.tv_usec <= microseconds;
    errno = 0;
    int result = wait(), error = errno;
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%s: %d %s, alarm %d, armed %d, clocks %d %d %d\n", name, result, strerror(error), alarms > 0, before,
           plausible(at_alarm - monotonic, least), plausible(now(CLOCK_MONOTONIC) - monotonic, least),
           plausible(of_day() - day, least - 1000));
}

static void again(void) {
    struct itimerval every = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    int64_t before = now(CLOCK_MONOTONIC);
    alarms = 0;
    setitimer(ITIMER_REAL, &every, NULL);
    while (alarms < 5) by_semop();
    setitimer(ITIMER_REAL, &never, NULL);
    printf("5 alarms: %d\n", plausible(now(CLOCK_MONOTONIC) - before, 25 * MILLISECOND));
    timer_t timer;
    struct itimerspec soon = {{0, 4 * MILLISECOND}, {0, 8 * MILLISECOND}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_create(CLOCK_REALTIME, &event, &timer);
    before = now(CLOCK_REALTIME);
    alarms = 0;
    timer_settime(timer, 0, &soon, NULL);
    while (alarms < 3) by_futex();
    timer_delete(timer);
    printf("3 of another timer: %d\n", plausible(now(CLOCK_REALTIME) - before, 16 * MILLISECOND));
}

static void descriptors(void) {
    struct itimerspec soon = {{0, 10 * MILLISECOND}, {0, 10 * MILLISECOND}};
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t times = 0;
    int64_t before = now(CLOCK_MONOTONIC);
    timerfd_settime(timer, 0, &soon, NULL);
    int ready = poll(&(struct pollfd){timer, POLLIN, 0}, 1, -1);
    printf("timer descriptor polled: %d %d\n", ready, plausible(now(CLOCK_MONOTONIC) - before, 10 * MILLISECOND));
    for (uint64_t more = 0; times < 3; times += more) read(timer, &more, sizeof more);
    printf("timer descriptor read: %d\n", plausible(now(CLOCK_MONOTONIC) - before, times * 10 * MILLISECOND));
    close(timer);
}

/* Nobody set a timer; but the answer took its time. */
static void answered(void) {
    int64_t before = now(CLOCK_MONOTONIC);
    if (fork() == 0) {
        usleep(300000);
        write(ends[1], "x", 1);
        semop(semaphores, &(struct sembuf){.sem_op = 1}, 1);
        _exit(0);
    }
    int result = by_poll();
    printf("answered: %d %d %d\n", result, by_semop(), plausible(now(CLOCK_MONOTONIC) - before, 30 * MILLISECOND));
    waitpid(-1, NULL, 0);
}

int main(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    pipe(ends);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
    word = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *word = 1;
    polled = epoll_create1(0);
    epoll_ctl(polled, EPOLL_CTL_ADD, ends[0], &(struct epoll_event){.events = EPOLLIN});
    fflush(stdout);
    pid_t holder = fork();
    if (holder == 0) {
        signal(SIGALRM, SIG_DFL);
        for (;;) pause();
    }
    for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++) one(ways[i].name, ways[i].wait, 12000 + i);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    again();
    descriptors();
    fflush(stdout);
    answered();
    semctl(semaphores, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    return 0;
}
