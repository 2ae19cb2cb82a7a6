/* alpha flags: -mieee */
/* not as on x86-64: division by zero raises no signal on RISC-V */
/* Signals: handlers, masks, alternate stacks, timers, and faults that a handler recovers from. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t seen, last_signal, last_code, on_alternate_stack, nesting;
static void *volatile last_address;
static sigjmp_buf back;
static char alternate_stack[65536];

static void note(int signal) { seen++; last_signal = signal; }

static void note_details(int signal, siginfo_t *info, void *context) {
    char here;
    (void)context;
    seen++;
    last_signal = signal;
    last_code = info->si_code;
    last_address = info->si_addr;
    on_alternate_stack = &here >= alternate_stack && &here < alternate_stack + sizeof alternate_stack;
}

static void note_and_jump(int signal, siginfo_t *info, void *context) {
    note_details(signal, info, context);
    siglongjmp(back, 1);
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    if (sigaction(signal, &action, NULL) != 0) puts("sigaction failed");
}

static void delivering(void) {
    signal(SIGUSR1, note);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    printf("raised and killed: %d %d\n", (int)seen, last_signal == SIGUSR1);
    sigset_t set, old, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    raise(SIGUSR1);
    raise(SIGUSR1);
    sigpending(&pending);
    printf("blocked: %d, pending %d\n", (int)seen, sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("unblocked: %d\n", (int)seen);
    handle(SIGUSR2, note_details, SA_RESETHAND);
    raise(SIGUSR2);
    struct sigaction now;
    sigaction(SIGUSR2, NULL, &now);
    printf("reset: %d %d\n", (int)seen, now.sa_handler == SIG_DFL);
    signal(SIGUSR2, SIG_IGN);
    raise(SIGUSR2);
    printf("ignored: %d\n", (int)seen);
    errno = 0;
    int result = kill(getpid(), 9999);
    printf("kill: %d %s\n", result, strerror(errno));
    errno = 0;
    result = sigaction(SIGKILL, &now, NULL);
    printf("sigaction: %d %s\n", result, strerror(errno));
}

static void nested(int signal) {
    nesting++;
    if (signal == SIGUSR1) raise(SIGUSR2);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("in handler of %s: depth %d, masked %d %d\n", signal == SIGUSR1 ? "USR1" : "USR2", (int)nesting,
           sigismember(&mask, SIGUSR1), sigismember(&mask, SIGUSR2));
    nesting--;
}

static void nesting_handlers(void) {
    signal(SIGUSR1, nested);
    signal(SIGUSR2, nested);
    raise(SIGUSR1);
}

static void timers(void) {
    signal(SIGALRM, note);
    seen = 0;
    struct itimerval every = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    volatile uint64_t work = 0;
    while (seen < 3) work++; /* interrupted in a loop without calls */
    setitimer(ITIMER_REAL, &off, NULL);
    printf("timer: %d\n", seen >= 3 && last_signal == SIGALRM);
    sigset_t none, set;
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct itimerval once = {{0, 0}, {0, 2000}};
    setitimer(ITIMER_REAL, &once, NULL);
    errno = 0;
    int suspended = sigsuspend(&none);
    printf("sigsuspend: %d %s\n", suspended, strerror(errno));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    int ends[2];
    char byte;
    if (pipe(ends) != 0) puts("no pipe");
    struct sigaction action = {.sa_handler = note}; /* without SA_RESTART */
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL); /* repeats, lest it expire before the read */
    errno = 0;
    long got = read(ends[0], &byte, 1);
    printf("read: %ld %s\n", got, strerror(errno));
    setitimer(ITIMER_REAL, &off, NULL);
}

static void memory_faults(void) {
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    sigaltstack(&stack, NULL);
    char *page = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, note_and_jump, SA_ONSTACK);
    if (sigsetjmp(back, 1) == 0) *(volatile int *)(page + 16388) = 1;
    printf("write to read-only: %d %d %d\n", (char *)last_address - page == 16388, last_code == SEGV_ACCERR,
           (int)on_alternate_stack);
    munmap(page, 65536);
    if (sigsetjmp(back, 1) == 0) printf("%d\n", *(volatile int *)(page + 4));
    printf("read of unmapped: %d %d\n", (char *)last_address - page == 4, last_code == SEGV_MAPERR);
    if (sigsetjmp(back, 1) == 0) ((void (*volatile)(void))NULL)();
    printf("call of null: %d %d\n", last_signal == SIGSEGV, last_address == NULL);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("mask restored: %d\n", !sigismember(&mask, SIGSEGV));
}

static void arithmetic_faults(void) {
    volatile long zero = 0, one = 1;
    handle(SIGFPE, note_and_jump, 0);
    if (sigsetjmp(back, 1) == 0) printf("%ld\n", one / zero);
    printf("division by zero: %d %d\n", last_signal == SIGFPE, last_code == FPE_INTDIV);
    if (sigsetjmp(back, 1) == 0) printf("%ld\n", one % zero);
    printf("remainder by zero: %d\n", last_signal == SIGFPE);
}

/* How a child that meets its end by a signal appears to its parent. */
static void report(const char *what, void (*end)(void)) {
    fflush(stdout);
    pid_t child = fork();
    int status;
    if (child == 0) {
        end();
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("%s: %s\n", what, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no signal");
}

static void end_by_abort(void) { abort(); }
static void end_by_kill(void) { kill(getpid(), SIGKILL); }
static void end_by_null(void) { signal(SIGSEGV, SIG_DFL); *(volatile int *)NULL = 0; }
static void end_by_term(void) { raise(SIGTERM); }
static void end_by_illegal_instruction(void) {
#ifdef __alpha__
    __asm__ volatile(".long 0x04000000"); /* opcode 1, reserved */
#elif defined __riscv
    __asm__ volatile(".4byte 0"); /* defined to be illegal */
#else
    __asm__ volatile("ud2");
#endif
}
static void end_by_breakpoint(void) {
#ifdef __alpha__
    __asm__ volatile("call_pal 0x80");
#elif defined __riscv
    __asm__ volatile("ebreak");
#else
    __asm__ volatile("int3");
#endif
}

int main(void) {
    delivering();
    nesting_handlers();
    timers();
    memory_faults();
    arithmetic_faults();
    report("abort", end_by_abort);
    report("kill", end_by_kill);
    report("null", end_by_null);
    report("terminate", end_by_term);
    report("illegal instruction", end_by_illegal_instruction);
    report("breakpoint", end_by_breakpoint);
    return 0;
}
