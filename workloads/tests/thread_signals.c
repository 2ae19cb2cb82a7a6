/* flags: -pthread -lrt */
/* Signals and threads: to one thread, to the process, awaited, faults that a thread handles itself,
 * timers that notify by a thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Thread_local volatile int hits;
static _Atomic int total, ready, stop;
static _Thread_local sigjmp_buf back;
static _Thread_local void *volatile fault;
static _Atomic pid_t handler_thread;

static pid_t id(void) { return syscall(SYS_gettid); }

static void hit(int signal) {
    (void)signal;
    hits++;
    handler_thread = id();
    total++; /* last: whoever waits for it looks at the others */
}

static void until(_Atomic int *flag, int value) {
    while (*flag < value) usleep(200);
}

static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}

/* Each thread gets the signals sent to it, and no others. */
static void *count_hits(void *number) {
    ready++;
    while (hits < 3 + (long)number) usleep(100);
    return (void *)(long)hits;
}

static void to_threads(void) {
    pthread_t threads[3];
    handle(SIGUSR1, hit, SA_RESTART);
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, count_hits, (void *)i);
    until(&ready, 3);
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 3; i++)
            if (round < 3 + i) {
                int before = total;
                pthread_kill(threads[i], SIGUSR1);
                until(&total, before + 1);
            }
    long found[3];
    for (int i = 0; i < 3; i++) pthread_join(threads[i], (void **)&found[i]);
    printf("to threads: %ld %ld %ld, mine %d\n", found[0], found[1], found[2], hits);
}

/* A busy thread is interrupted; a sleeping one too, by one of the signals if not the first. */
static void *busy(void *unused) {
    ready = 1;
    for (volatile long i = 0; hits == 0; i++) {}
    stop = 1;
    return unused;
}

static void *asleep(void *unused) {
    (void)unused;
    ready = 1;
    struct timespec time = {100, 0};
    int result = nanosleep(&time, &time), error = errno;
    stop = 1;
    return (void *)(long)(result == -1 ? error : 0);
}

static void interrupted(void) {
    void *(*bodies[])(void *) = {busy, asleep};
    handle(SIGUSR1, hit, 0);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *result;
        ready = stop = 0;
        pthread_create(&thread, NULL, bodies[i], NULL);
        until(&ready, 1);
        while (!stop) {
            usleep(5000);
            pthread_kill(thread, SIGUSR1);
        }
        pthread_join(thread, &result);
        printf("interrupted: %s\n", result ? strerror((long)result) : "returned");
    }
}

/* A signal to the process goes to the one thread that does not block it. */
static void *open_to(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    ready = id();
    while (!stop) usleep(100);
    return unused;
}

static void to_process(void) {
    pthread_t thread;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    handle(SIGUSR2, hit, SA_RESTART);
    ready = stop = 0;
    pthread_create(&thread, NULL, open_to, NULL);
    until(&ready, 1);
    int right = 0;
    for (int i = 0; i < 20; i++) {
        int before = total;
        kill(getpid(), SIGUSR2);
        until(&total, before + 1);
        right += handler_thread == ready;
    }
    stop = 1;
    pthread_join(thread, NULL);
    sigset_t pending;
    kill(getpid(), SIGUSR2);
    sigpending(&pending);
    printf("to process: %d, pending %d\n", right, sigismember(&pending, SIGUSR2));
    int signal;
    sigwait(&set, &signal);
    sigpending(&pending);
    printf("awaited %d, pending %d\n", signal == SIGUSR2, sigismember(&pending, SIGUSR2));
}

/* A thread that waits for signals, all others block them. */
static void *await(void *unused) {
    (void)unused;
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++) sigaddset(&set, SIGRTMIN + i);
    sigaddset(&set, SIGTERM);
    long sum = 0;
    for (int i = 0; i < 7; i++) {
        siginfo_t information;
        int signal = sigwaitinfo(&set, &information);
        sum += signal == SIGTERM ? 1000 : (signal - SIGRTMIN + 1) * information.si_value.sival_int;
    }
    return (void *)sum;
}

static void awaited(void) {
    pthread_t thread;
    sigset_t set;
    void *sum;
    sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    pthread_create(&thread, NULL, await, NULL);
    for (int i = 0; i < 3; i++) {
        sigqueue(getpid(), SIGRTMIN + i, (union sigval){.sival_int = 10 + i});
        pthread_sigqueue(thread, SIGRTMIN + i, (union sigval){.sival_int = 100 + i});
    }
    kill(getpid(), SIGTERM);
    pthread_join(thread, &sum);
    sigemptyset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    printf("sigwaitinfo: %ld\n", (long)sum);
}

/* Faults: each thread handles its own, on its own alternate stack. Without byte instructions a byte is
 * stored by way of its quadword, whose address the fault has: it is the byte's here. */
static void catch (int signal, siginfo_t *information, void *context) {
    (void)context;
    stack_t stack;
    sigaltstack(NULL, &stack);
    fault = (stack.ss_flags & SS_ONSTACK) && signal == SIGSEGV ? information->si_addr : NULL;
    siglongjmp(back, 1);
}

static void *faulting(void *number) {
    volatile long wrong = 0;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    char *page = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 200; i++) {
        char *volatile where = page + (long)number * 8 + i * 32;
        if (sigsetjmp(back, 1) == 0) *where = 1, wrong++;
        wrong += fault != where;
        fault = NULL;
    }
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    free(stack.ss_sp);
    return (void *)wrong;
}

static void faults(void) {
    pthread_t threads[4];
    long wrong = 0;
    struct sigaction action = {.sa_sigaction = catch, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, faulting, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    handle(SIGSEGV, SIG_DFL, 0);
    printf("faults: %ld wrong\n", wrong);
}

/* Signals pour in while threads lock, allocate and make calls. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long guarded;

static void *work(void *unused) {
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&mutex);
        guarded++;
        pthread_mutex_unlock(&mutex);
        free(malloc(1 + i % 1000));
        if (i % 16 == 0) getppid();
    }
    return unused;
}

static void storm(void) {
    pthread_t threads[3];
    handle(SIGALRM, hit, SA_RESTART);
    struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 300; i++) pthread_kill(threads[i % 3], SIGUSR2), sched_yield();
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("storm: %ld\n", guarded);
}

/* Timers: a signal to one thread, and a function called in a thread. */
static _Atomic int notified;
static void notify(union sigval value) { notified += value.sival_int; }

static void *timed(void *unused) {
    (void)unused;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 4};
    event._sigev_un._tid = id();
    handle(SIGRTMIN + 4, hit, SA_RESTART);
    struct itimerspec time = {{0, 1000000}, {0, 1000000}};
    int before = hits;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return (void *)-1L;
    timer_settime(timer, 0, &time, NULL);
    while (hits < before + 5) usleep(100);
    timer_delete(timer);
    return (void *)(long)(handler_thread == id());
}

static void timers(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, timed, NULL);
    pthread_join(thread, &result);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 7};
    event.sigev_notify_function = notify;
    struct itimerspec time = {{0, 0}, {0, 2000000}};
    int made = timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &time, NULL);
    until(&notified, 7);
    printf("timers: %ld %d %d\n", (long)result, made, notified);
    timer_delete(timer);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    to_threads();
    interrupted();
    to_process();
    awaited();
    faults();
    storm();
    timers();
    return 0;
}
