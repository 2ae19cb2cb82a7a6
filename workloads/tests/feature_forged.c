/* not under qemu-alpha 7.2: it takes such signals for its own faults */
/* Signals whose siginfo says that the kernel found a fault, which a thread may send to itself: the handler gets them, and nothing
 * else changes. To others the kernel does not let them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int hits, last_code, stop;
static volatile unsigned long rounds;
static volatile pid_t busy_thread;
static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
enum { SIGNALS = sizeof signals / sizeof *signals };

struct information {
    int signal, error, code, pad;
    uint64_t address, rest[13];
};

static void handle(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    last_code = information->si_code;
    hits++;
}

/* The same number after every round, unless an access was lost. */
static void *work(void *unused) {
    static unsigned long table[512];
    busy_thread = syscall(SYS_gettid);
    unsigned long bad = 0;
    for (; !stop; rounds++) {
        for (int i = 0; i < 512; i++) table[i] += i;
        for (int i = 0; i < 512; i++) bad += table[i] != (rounds + 1) * i;
    }
    return (void *)bad;
}

static void to_oneself(int pidfd) {
    for (int i = 0; i < SIGNALS; i++)
        for (int way = 0; way < 3; way++) {
            struct information information = {signals[i], 0, 1 + way, 0, 0x20000, {0}};
            hits = 0;
            int sent = way == 0   ? syscall(SYS_rt_sigqueueinfo, getpid(), signals[i], &information)
                       : way == 1 ? syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signals[i], &information)
                                  : syscall(SYS_pidfd_send_signal, pidfd, signals[i], &information, 0);
            printf("%d way %d: %d %d %d\n", i, way, sent, hits, last_code);
        }
}

/* The sender blocks the signal, so that another thread gets it in the middle of its work. */
static void to_another(int pidfd) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    while (rounds < 100) usleep(100);
    for (int i = 0; i < SIGNALS; i++) {
        struct information information = {signals[i], 0, 1, 0, 0x20000, {0}};
        long refused = syscall(SYS_rt_tgsigqueueinfo, getpid(), busy_thread, signals[i], &information);
        printf("to another thread: %ld %s\n", refused, strerror(errno));
        sigset_t one, before;
        sigemptyset(&one);
        sigaddset(&one, signals[i]);
        pthread_sigmask(SIG_BLOCK, &one, &before);
        for (int n = 1; n <= 50; n++) {
            hits = 0;
            if (syscall(SYS_pidfd_send_signal, pidfd, signals[i], &information, 0) != 0) printf("%s\n", strerror(errno));
            for (int wait = 0; hits == 0 && wait < 100000; wait++) usleep(10);
            if (hits != 1) printf("%d signals\n", hits);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    stop = 1;
    void *bad;
    pthread_join(thread, &bad);
    printf("work: %ld\n", (long)bad);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, NULL);
    int pidfd = syscall(SYS_pidfd_open, getpid(), 0);
    to_oneself(pidfd);
    to_another(pidfd);
    return 0;
}
