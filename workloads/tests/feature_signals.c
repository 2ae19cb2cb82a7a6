/* flags: -pthread -lrt */
/* Asynchronous signals in loops without system calls: from timers, other processes and the program itself; their
 * siginfo, the order and the stack of their handlers, and the results of system calls that they interrupt. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t hits, last, depth, deepest, on_alternate, value;
static sigjmp_buf back;
static char *alternate;
enum { ALTERNATE = 131072 };

static void count(int signal) { hits++; last = signal; }
static void leave(int signal) { count(signal); siglongjmp(back, 1); }

static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}

static void tick(int which, int microseconds) {
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(which, &every, NULL);
}

/* Each kind of loop is interrupted where it is, and goes on with every value it had. */
static __attribute__((noinline)) uint64_t integers(int wanted) {
    uint64_t a = 1, b = 2, c = 3, rounds = 0;
    do {
        for (int i = 0; i < 1000; i++) a = a * 3 + b, b = b ^ c >> 1, c = c + a;
        rounds++;
    } while (hits < wanted);
    uint64_t x = 1, y = 2, z = 3;
    for (uint64_t r = 0; r < rounds; r++)
        for (int i = 0; i < 1000; i++) x = x * 3 + y, y = y ^ z >> 1, z = z + x;
    return a == x && b == y && c == z;
}
static __attribute__((noinline)) uint64_t floats(int wanted) {
    double a = 1, b = 0.5, x = 1, y = 0.5;
    uint64_t rounds = 0;
    do {
        for (int i = 0; i < 1000; i++) a = a * 0.999 + b, b = b * 0.5 + 0.125 * a;
        rounds++;
    } while (hits < wanted);
    for (uint64_t r = 0; r < rounds; r++)
        for (int i = 0; i < 1000; i++) x = x * 0.999 + y, y = y * 0.5 + 0.125 * x;
    return a == x && b == y;
}
static __attribute__((noinline)) uint64_t memory(int wanted) {
    static uint32_t cells[2][512];
    uint64_t rounds = 0;
    memset(cells, 0, sizeof cells);
    do {
        for (int i = 0; i < 512; i++) cells[0][i] += cells[0][(i * 7 + 1) % 512] + 1;
        rounds++;
    } while (hits < wanted);
    for (uint64_t r = 0; r < rounds; r++)
        for (int i = 0; i < 512; i++) cells[1][i] += cells[1][(i * 7 + 1) % 512] + 1;
    return memcmp(cells[0], cells[1], sizeof cells[0]) == 0;
}
static __attribute__((noinline)) uint64_t empty(int wanted) {
    while (hits < wanted) {}
    return 1;
}

static void interrupted_loops(void) {
    static uint64_t (*const loops[])(int) = {integers, floats, memory, empty};
    static const struct { const char *name; int timer, signal; } timers[] = {
        {"real", ITIMER_REAL, SIGALRM}, {"virtual", ITIMER_VIRTUAL, SIGVTALRM}, {"profiling", ITIMER_PROF, SIGPROF}};
    for (int t = 0; t < 3; t++) {
        handle(timers[t].signal, count, SA_RESTART);
        printf("%s timer:", timers[t].name);
        for (int i = 0; i < 4; i++) {
            hits = 0;
            tick(timers[t].timer, 1000);
            uint64_t right = loops[i](t == 0 ? 20 : 5);
            tick(timers[t].timer, 0);
            printf(" %d", (int)right);
        }
        printf(", %d\n", last == timers[t].signal);
    }
}

/* A loop that knows nothing of signals is left by siglongjmp only. */
static void left_loops(void) {
    volatile long rounds = 0;
    handle(SIGALRM, leave, 0);
    hits = 0;
    for (volatile int i = 0; i < 10; i++)
        if (sigsetjmp(back, 1) == 0) {
            tick(ITIMER_REAL, 1000);
            for (;;) rounds++;
        }
    tick(ITIMER_REAL, 0);
    printf("left loops: %d %d\n", hits >= 10, rounds > 0);
    alarm(1);
    alarm(0);
    printf("alarm: %d", (int)alarm(100));
    printf(" %d\n", (int)alarm(0) >= 99);
}

/* Signals of another process, with values. Each is queued, in order; lower numbers come first. */
static char order[64];
static void with_value(int signal, siginfo_t *information, void *context) {
    (void)context;
    size_t used = strlen(order);
    snprintf(order + used, sizeof order - used, " %d:%d", signal - SIGRTMIN, information->si_value.sival_int);
    value = information->si_code == SI_QUEUE && information->si_pid == getppid();
    hits++;
}

static void queued(void) {
    struct sigaction action = {.sa_sigaction = with_value, .sa_flags = SA_SIGINFO};
    sigset_t set, old;
    sigemptyset(&set);
    sigfillset(&action.sa_mask);
    for (int i = 0; i < 3; i++) sigaction(SIGRTMIN + i, &action, NULL), sigaddset(&set, SIGRTMIN + i);
    sigprocmask(SIG_BLOCK, &set, &old);
    int ends[2];
    if (pipe(ends)) abort();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        while (read(ends[0], &byte, 1) != 1) {}
        hits = 0;
        sigprocmask(SIG_SETMASK, &old, NULL);
        while (hits < 5) {}
        printf("queued:%s, from the parent %d\n", order, (int)value);
        fflush(stdout);
        _exit(0);
    }
    const int sent[][2] = {{2, 20}, {0, 1}, {1, 10}, {0, 2}, {2, 21}};
    for (int i = 0; i < 5; i++) sigqueue(child, SIGRTMIN + sent[i][0], (union sigval){.sival_int = sent[i][1]});
    if (write(ends[1], "x", 1) != 1) abort();
    waitpid(child, NULL, 0);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Handlers that raise their own signal: handled at once with SA_NODEFER, one after another without. */
static void nest(int signal) {
    char here;
    if (++depth > deepest) deepest = depth;
    on_alternate += &here >= alternate && &here < alternate + ALTERNATE;
    hits++;
    if (hits < 20) raise(signal);
    depth--;
}

static void nested(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = ALTERNATE}, off = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    const int flags[] = {0, SA_ONSTACK, SA_NODEFER, SA_NODEFER | SA_ONSTACK};
    for (int i = 0; i < 4; i++) {
        depth = deepest = hits = on_alternate = 0;
        handle(SIGUSR1, nest, flags[i]);
        raise(SIGUSR1);
        printf("handled %d, %d deep, %d on the alternate stack\n", (int)hits, (int)deepest, (int)on_alternate);
    }
    handle(SIGUSR2, count, SA_RESETHAND);
    hits = 0;
    raise(SIGUSR2);
    pid_t child = fork();
    int status;
    if (child == 0) {
        raise(SIGUSR2);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("reset: %d, then %s\n", (int)hits, WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2 ? "the end" : "nothing");
    sigaltstack(&off, NULL);
}

/* Calls that are interrupted: those that begin anew and those that do not, in turn. */
static void calls(void) {
    int ends[2], status;
    char byte;
    if (pipe(ends)) abort();
    for (int restart = 0; restart < 2; restart++) {
        handle(SIGALRM, count, restart ? SA_RESTART : 0);
        hits = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            if (!restart) for (;;) pause();
            usleep(60000);
            if (write(ends[1], "abcdefgh", 8) != 8) _exit(1);
            usleep(20000);
            _exit(3);
        }
        tick(ITIMER_REAL, 5000);
        errno = 0;
        long got = read(ends[0], &byte, 1);
        printf("read: %ld %s", got, strerror(errno));
        errno = 0;
        got = waitpid(child, &status, 0) == child;
        printf(", wait: %ld %s", got, strerror(errno));
        struct timespec time = {100, 0};
        errno = 0;
        got = nanosleep(&time, NULL);
        printf(", sleep: %ld %s", got, strerror(errno));
        errno = 0;
        got = pause();
        printf(", pause: %ld %s\n", got, strerror(errno));
        tick(ITIMER_REAL, 0);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

/* Waiting for signals by name, while others are handled. */
static void awaited(void) {
    sigset_t set, old, none;
    siginfo_t information;
    struct timespec soon = {0, 2000000};
    sigemptyset(&set), sigemptyset(&none);
    sigaddset(&set, SIGCHLD), sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    handle(SIGCHLD, count, 0), handle(SIGUSR1, count, 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        kill(getppid(), SIGUSR1);
        _exit(9);
    }
    int first = sigwaitinfo(&set, &information);
    int second = sigwaitinfo(&set, &information);
    printf("awaited: %d %d\n", (first == SIGUSR1) + (second == SIGUSR1), (first == SIGCHLD) + (second == SIGCHLD));
    if (second == SIGCHLD)
        printf("child: %d %d\n", information.si_code == CLD_EXITED && information.si_pid == child, information.si_status);
    waitpid(child, NULL, 0);
    errno = 0;
    printf("in vain: %d", sigtimedwait(&set, &information, &soon));
    printf(" %s\n", strerror(errno));
    hits = 0;
    for (int i = 0; i < 50; i++) {
        child = fork();
        if (child == 0) _exit(0);
        while (waitpid(child, NULL, WNOHANG) == 0) sigsuspend(&none);
    }
    printf("suspended for children: %d\n", hits > 0 && hits <= 50);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGCHLD, SIG_DFL);
}

/* A loop of one process stopped by another, which waits until it sees the answer, many times. */
static volatile _Atomic int *shared;
static void answer(int signal) { (void)signal; shared[0]++; }
static void back_and_forth(void) {
    shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    handle(SIGUSR1, answer, 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        shared[1] = 1;
        for (volatile uint64_t i = 0; !shared[2]; i++) {}
        _exit(0);
    }
    while (!shared[1]) usleep(100);
    for (int i = 1; i <= 300; i++) {
        kill(child, SIGUSR1);
        while (shared[0] < i) {}
    }
    shared[2] = 1;
    waitpid(child, NULL, 0);
    printf("back and forth: %d\n", shared[0]);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    alternate = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    interrupted_loops();
    left_loops();
    queued();
    nested();
    calls();
    awaited();
    back_and_forth();
    return 0;
}
