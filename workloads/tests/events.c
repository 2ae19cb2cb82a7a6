/* Waiting: epoll, eventfd, signalfd, timers, and signals that interrupt or restart calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen, last, value, code;

static void note(int signal) {
    seen++;
    last = signal;
}

static void note_details(int signal, siginfo_t *info, void *context) {
    (void)context;
    note(signal);
    value = info->si_value.sival_int;
    code = info->si_code;
}

/* The result of a call and, if it failed, why. */
static void tell(const char *what, long result) {
    int error = errno;
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(error) : "");
}

static int poller;

static void events(void) {
    poller = epoll_create1(EPOLL_CLOEXEC);
    int counter = eventfd(2, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef0}, ready[4];
    tell("epoll_ctl", epoll_ctl(poller, EPOLL_CTL_ADD, counter, &event));
    tell("epoll_wait", epoll_wait(poller, ready, 4, -1));
    printf("%x %llx\n", ready[0].events, (unsigned long long)ready[0].data.u64);
    uint64_t count;
    for (int i = 0; i < 3; i++) tell("eventfd", read(counter, &count, sizeof count));
}

static sigset_t blocked, open_mask;

static void descriptors_for_signals(void) {
    struct signalfd_siginfo info[4];
    union sigval payload = {.sival_int = 77};
    int status, from = signalfd(-1, &blocked, SFD_NONBLOCK | SFD_CLOEXEC);
    kill(getpid(), SIGUSR1);
    sigqueue(getpid(), SIGRTMIN + 3, payload);
    tell("signalfd", read(from, info, sizeof info));
    printf("%d %d | %d %d %d\n", info[0].ssi_signo == SIGUSR1, info[0].ssi_pid == (uint32_t)getpid(),
           info[1].ssi_signo == (uint32_t)SIGRTMIN + 3, info[1].ssi_int, info[1].ssi_code);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(0);
    }
    struct pollfd entry = {from, POLLIN, 0};
    tell("poll", poll(&entry, 1, 20000));
    tell("signalfd", read(from, info, sizeof info));
    printf("%d %d %d\n", info[0].ssi_signo == SIGCHLD, info[0].ssi_code, info[0].ssi_status == SIGTERM);
    waitpid(child, &status, 0);
    printf("killed: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void stopping(void) {
    siginfo_t info;
    int status, ends[2];
    char byte = 0;
    tell("pipe", pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(read(ends[0], &byte, 1) == 1 ? 7 : 8);
    }
    tell("waitid", waitid(P_PID, child, &info, WSTOPPED));
    printf("stopped: %d %d\n", info.si_code, info.si_status == SIGSTOP);
    kill(child, SIGCONT);
    waitpid(child, &status, WCONTINUED);
    printf("continued: %d\n", WIFCONTINUED(status));
    tell("write", write(ends[1], "e", 1));
    waitpid(child, &status, 0);
    printf("exited: %d\n", WEXITSTATUS(status));
}

static void waiting_for_signals(void) {
    siginfo_t info;
    struct timespec short_time = {0, 1000000}, long_time = {20, 0};
    struct epoll_event ready[1];
    union sigval payload = {.sival_int = 78};
    struct sigaction action = {.sa_sigaction = note_details, .sa_flags = SA_SIGINFO};
    while (sigtimedwait(&blocked, &info, &short_time) > 0) {}
    tell("sigtimedwait", sigtimedwait(&blocked, &info, &short_time));
    sigqueue(getpid(), SIGRTMIN + 3, payload);
    printf("%d\n", sigtimedwait(&blocked, &info, &short_time) == SIGRTMIN + 3);
    printf("%d %d %d\n", info.si_signo == SIGRTMIN + 3, info.si_value.sival_int, info.si_code);
    sigaction(SIGRTMIN + 3, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    kill(getpid(), SIGUSR1);
    tell("ppoll", ppoll(NULL, 0, &long_time, &open_mask));
    kill(getpid(), SIGUSR1);
    tell("pselect", pselect(0, NULL, NULL, NULL, &long_time, &open_mask));
    kill(getpid(), SIGUSR1);
    tell("epoll_pwait", epoll_pwait(poller, ready, 1, 20000, &open_mask));
    printf("handled: %d %d\n", (int)seen, last == SIGUSR1);
    for (int i = 0; i < 2; i++) sigqueue(getpid(), SIGRTMIN + 3, payload);
    seen = 0;
    sigprocmask(SIG_SETMASK, &open_mask, NULL);
    printf("queued: %d %d %d\n", (int)seen, (int)value, code == SI_QUEUE);
}

static void timers(void) {
    uint64_t count;
    struct itimerspec soon = {{0, 0}, {0, 3000000}};
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    tell("timerfd_settime", timerfd_settime(timer, 0, &soon, NULL));
    tell("timerfd", read(timer, &count, sizeof count));
    struct itimerspec then = {0};
    clock_gettime(CLOCK_REALTIME, &then.it_value);
    then.it_value.tv_sec++;
    then.it_value.tv_nsec = 0;
    timer = timerfd_create(CLOCK_REALTIME, 0);
    tell("absolute", timerfd_settime(timer, TFD_TIMER_ABSTIME, &then, NULL));
    tell("timerfd", read(timer, &count, sizeof count));
    timer_t id;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1,
                             .sigev_value.sival_int = 55};
    tell("timer_create", timer_create(CLOCK_MONOTONIC, &event, &id));
    sigset_t usr1, before;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, &before);
    seen = 0;
    timer_settime(id, 0, &soon, NULL);
    while (!seen) sigsuspend(&before);
    printf("timer: %d %d\n", (int)value, code == SI_TIMER);
    sigprocmask(SIG_SETMASK, &before, NULL);
    timer_delete(id);
}

/* How often the parent's timer ticked; processes share it. */
static volatile int *ticks;

static void tick(int signal) {
    (void)signal;
    ++*ticks;
}

/* In the child: until the parent, which waits for it, was interrupted often. */
static void wait_for_ticks(void) {
    struct timespec moment = {0, 1000000};
    for (int from = *ticks; *ticks - from < 10;) nanosleep(&moment, NULL);
}

static void interrupted_calls(void) {
    struct itimerval every = {{0, 2000}, {0, 2000}}, off = {0};
    struct sigaction action = {.sa_handler = tick};
    struct timespec ten = {10, 0}, left;
    int ends[2], status;
    char byte = 0;
    ticks = mmap(NULL, sizeof *ticks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    tell("nanosleep", nanosleep(&ten, &left));
    printf("left: %d\n", left.tv_sec < 10);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    tell("pipe", pipe(ends));
    pid_t child = fork(); /* without the timer */
    if (child == 0) {
        wait_for_ticks();
        int written = write(ends[1], "R", 1);
        wait_for_ticks();
        _exit(written == 1 ? 5 : 6);
    }
    tell("read", read(ends[0], &byte, 1));
    tell("waitpid", waitpid(child, &status, 0) == child);
    setitimer(ITIMER_REAL, &off, NULL);
    printf("restarted: %c %d\n", byte, WEXITSTATUS(status));
}

/* Signals whose numbers are those of faults, but that somebody sent. */
static void sent_faults(void) {
    int status;
    for (int i = 0; i < 2; i++) {
        int signal = i ? SIGBUS : SIGSEGV;
        pid_t child = fork();
        if (child == 0)
            for (;;) pause();
        kill(child, signal);
        waitpid(child, &status, 0);
        printf("sent: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == signal);
    }
    sigset_t fault, pending;
    sigemptyset(&fault);
    sigaddset(&fault, SIGSEGV);
    signal(SIGSEGV, note);
    sigprocmask(SIG_BLOCK, &fault, NULL);
    seen = 0;
    raise(SIGSEGV);
    sigpending(&pending);
    printf("[not qemu] held: %d %d\n", (int)seen, sigismember(&pending, SIGSEGV));
    sigprocmask(SIG_UNBLOCK, &fault, NULL);
    printf("delivered: %d %d\n", (int)seen, last == SIGSEGV);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGCHLD);
    sigaddset(&blocked, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &blocked, &open_mask);
    events();
    descriptors_for_signals();
    stopping();
    waiting_for_signals();
    timers();
    interrupted_calls();
    sent_faults();
    return 0;
}
