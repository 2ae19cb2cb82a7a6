/* not under qemu-alpha 7.2: it takes such signals for its own faults */
/* Signals of faults that were sent: what descriptors of signals report, and calls that unblock them while they wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGUSR1};
enum { SIGNALS = sizeof signals / sizeof *signals };
static volatile sig_atomic_t hits;
static siginfo_t got;

struct information {
    int signal, error, code, pad;
    uint64_t first, second, rest[12];
};

static void handle(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    got = *information;
    hits++;
}

static int queue(int signal, int code, uint64_t first, uint64_t second) {
    struct information information = {signal, 0, code, 0, first, second, {0}};
    return syscall(SYS_rt_sigqueueinfo, getpid(), signal, &information);
}

/* Which of three ways finds the descriptor ready. */
static void ready(const char *when, int file, int epoll, int ms) {
    struct pollfd two[] = {{-1, POLLIN, 0}, {file, POLLIN | POLLOUT, 0}};
    fd_set set;
    struct epoll_event events[2];
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    int polled = poll(two, 2, ms);
    FD_ZERO(&set);
    FD_SET(file, &set);
    int selected = select(file + 1, &set, NULL, NULL, &time);
    int awaited = epoll_wait(epoll, events, 2, ms);
    printf("%s: %d %x, %d %d, %d", when, polled, two[1].revents, selected, FD_ISSET(file, &set), awaited);
    if (awaited > 0) printf(" %x %d", events[0].events, (int)events[0].data.u64);
    printf("\n");
}

static void read_one(int file, pid_t sender) {
    struct signalfd_siginfo one;
    if (read(file, &one, sizeof one) != sizeof one) {
        printf("read: %s\n", strerror(errno));
        return;
    }
    int is_sender = one.ssi_pid == (uint32_t)sender;
    int signal = 0;
    while (signal < SIGNALS && signals[signal] != (int)one.ssi_signo) signal++;
    printf("  %d code %d errno %d: sender %d", signal, one.ssi_code, one.ssi_errno, is_sender ? -1 : (int)one.ssi_pid);
    printf(" user %d int %d ptr %lx addr %lx lsb %d status %d", one.ssi_uid == getuid() ? -1 : (int)one.ssi_uid, one.ssi_int,
           (long)one.ssi_ptr, (long)one.ssi_addr, one.ssi_addr_lsb, one.ssi_status);
    printf(" band %x fd %d tid %u call %lx %d %x\n", one.ssi_band, one.ssi_fd, one.ssi_tid, (long)one.ssi_call_addr,
           one.ssi_syscall, one.ssi_arch);
}

static void descriptors(void) {
    sigset_t all, none;
    sigemptyset(&all), sigemptyset(&none);
    for (int i = 0; i < SIGNALS; i++) sigaddset(&all, signals[i]);
    sigprocmask(SIG_BLOCK, &all, NULL);
    int file = signalfd(-1, &all, SFD_NONBLOCK), epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, file, &(struct epoll_event){.events = EPOLLIN, .data.u64 = 77});
    ready("nothing", file, epoll, 0);
    for (int i = 0; i < SIGNALS; i++) {
        printf("%d\n", i);
        sigqueue(getpid(), signals[i], (union sigval){.sival_int = 1234 + i});
        ready("queued", file, epoll, 1000);
        read_one(file, getpid());
        ready("read", file, epoll, 0);
        for (int code = 0; code <= 6; code += 2) {
            printf("forged %d: %d\n", code, queue(signals[i], code, 0x100000002, 0x300000004));
            ready("forged", file, epoll, 1000);
            read_one(file, 2);
        }
        queue(signals[i], 0x80, 0x100000002, 0x300000004);
        read_one(file, 2);
        queue(signals[i], -2, 0x100000002, 0x300000004);
        read_one(file, 2);
    }
    /* Two at once, in one of which nobody is interested. */
    sigset_t one = none;
    sigaddset(&one, SIGBUS);
    signalfd(file, &one, 0);
    raise(SIGSEGV);
    ready("another", file, epoll, 0);
    kill(getpid(), SIGBUS);
    ready("this one", file, epoll, 1000);
    read_one(file, getpid());
    signalfd(file, &all, 0);
    read_one(file, getpid());
    /* From another process, while this one waits. */
    for (int i = 0; i < SIGNALS; i++) {
        pid_t child = fork();
        if (child == 0) {
            usleep(20000);
            _exit(kill(getppid(), signals[i]));
        }
        struct pollfd entry = {file, POLLIN, 0};
        int found = poll(&entry, 1, 10000);
        printf("waited: %d %x\n", found, entry.revents);
        read_one(file, child);
        waitpid(child, NULL, 0);
    }
    close(file), close(epoll);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
}

/* The calls unblock signals that are pending. */
static void unblocked(void) {
    sigset_t all, none, before;
    sigemptyset(&all), sigemptyset(&none);
    for (int i = 0; i < SIGNALS; i++) sigaddset(&all, signals[i]);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, NULL);
    for (int i = 0; i < SIGNALS; i++)
        for (int way = 0; way < 4; way++) {
            sigprocmask(SIG_BLOCK, &all, &before);
            hits = 0;
            queue(signals[i], 1, 0x100000002, 0x300000004);
            struct timespec limit = {2, 0};
            int epoll = epoll_create1(0), blocked = hits;
            struct epoll_event event;
            int result = way == 0   ? sigsuspend(&none)
                         : way == 1 ? ppoll(NULL, 0, &limit, &none)
                         : way == 2 ? pselect(0, NULL, NULL, NULL, &limit, &none)
                                    : epoll_pwait(epoll, &event, 1, 2000, &none);
            printf("%d way %d: %d %s, %d %d code %d value %x\n", i, way, result, strerror(errno), blocked, hits, got.si_code,
                   (int)(uintptr_t)got.si_addr);
            close(epoll);
            sigprocmask(SIG_SETMASK, &before, NULL);
        }
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    descriptors();
    unblocked();
    return 0;
}
