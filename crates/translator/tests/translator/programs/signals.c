/* Signals: prints the same in every run. The first argument names the output. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t ticks, last, nested;
static volatile double value;

static void tick(int signal) { ticks++; value = value * 1.5 + signal; }

static void note(int signal) { last = signal; nested++; }

static void inner(int signal) {
    /* The other one is blocked by sa_mask until this one returns. */
    int before = nested;
    raise(SIGUSR2);
    printf("inner %d %d\n", signal, nested - before);
}

static void fault(int signal, siginfo_t *information, void *context) {
    ucontext_t *registers = context;
    unsigned long address = (unsigned long)information->si_addr;
    printf("fault %d code %d address %lx rbx %llx\n", signal, information->si_code, address < 4096 ? address : 0,
           registers->uc_mcontext.gregs[REG_RBX]);
    siglongjmp(back, 1);
}

/* Skips the instruction of two bytes that faulted, and sets its result. */
static void skip(int signal, siginfo_t *information, void *context) {
    ucontext_t *registers = context;
    registers->uc_mcontext.gregs[REG_RIP] += 2;
    registers->uc_mcontext.gregs[REG_RAX] = 77;
}

static void on_stack(int signal) {
    stack_t stack;
    sigaltstack(0, &stack);
    printf("on stack %d\n", (stack.ss_flags & SS_ONSTACK) != 0);
}

static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    sigaction(signal, &action, 0);
}

int main(int count, char **words) {
    freopen(words[1], "w", stdout);
    /* Timers while the program computes with vector registers, and flags live over jumps. */
    handle(SIGALRM, tick, SA_RESTART);
    struct itimerval timer = { { 0, 300 }, { 0, 300 } }, none = { { 0 } };
    setitimer(ITIMER_REAL, &timer, 0);
    double sum = 0;
    unsigned long hash = 1;
    while (ticks < 200)
        for (int i = 0; i < 1000; i++) value = i;
    for (int i = 0; i < 3000000; i++) {
        sum += i * 0.5;
        hash = hash * 6364136223846793005ul + i;
        if (hash & 64) hash ^= hash >> 7;
    }
    setitimer(ITIMER_REAL, &none, 0);
    printf("sum %.1f hash %lx %d\n", sum, hash, ticks >= 200);

    handle(SIGUSR1, note, 0);
    raise(SIGUSR1);
    printf("raised %d\n", last == SIGUSR1);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    nested = 0;
    raise(SIGUSR1);
    printf("blocked %d", nested);
    sigpending(&old);
    printf(" pending %d", sigismember(&old, SIGUSR1));
    sigprocmask(SIG_UNBLOCK, &set, 0);
    printf(" unblocked %d\n", nested);
    struct sigaction masked = { .sa_handler = inner };
    handle(SIGUSR2, note, 0);
    sigaddset(&masked.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &masked, 0);
    raise(SIGUSR1);

    /* An alternate stack. */
    stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
    sigaltstack(&stack, 0);
    handle(SIGUSR2, on_stack, SA_ONSTACK);
    raise(SIGUSR2);
    handle(SIGUSR2, on_stack, 0);
    raise(SIGUSR2);

    /* A call that is interrupted, and one that is made again. */
    int ends[2], status;
    char byte = 0;
    pipe(ends);
    for (int restarts = 0; restarts < 2; restarts++) {
        handle(SIGCHLD, note, restarts ? SA_RESTART : 0);
        pid_t parent = getpid(), child = fork();
        if (!child) {
            usleep(100000);
            kill(parent, SIGCHLD);
            usleep(100000);
            write(ends[1], "x", 1);
            _exit(0);
        }
        ssize_t got = read(ends[0], &byte, 1);
        printf("read %zd %d\n", got, got < 0 ? errno == EINTR : byte);
        if (got < 0) read(ends[0], &byte, 1);
        handle(SIGCHLD, SIG_DFL, 0);
        waitpid(child, &status, 0);
    }
    /* sigsuspend. */
    handle(SIGALRM, note, 0);
    sigemptyset(&set);
    last = 0;
    alarm(1);
    sigsuspend(&set);
    printf("suspended %d\n", last == SIGALRM);

    /* Faults: their addresses and the registers there. */
    struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
    for (int signal = SIGILL; signal <= SIGSEGV; signal++)
        if (signal == SIGILL || signal == SIGFPE || signal == SIGSEGV || signal == SIGBUS) sigaction(signal, &action, 0);
    sigaction(SIGTRAP, &action, 0);
    if (!sigsetjmp(back, 1)) asm volatile("mov $0x1234, %%rbx\n mov %%eax, 16" : : : "rbx", "memory");
    if (!sigsetjmp(back, 1)) asm volatile("mov $0x1235, %%rbx\n mov $24, %%eax\n call *(%%rax)" : : : "rbx", "rax", "memory");
    if (!sigsetjmp(back, 1)) asm volatile("mov $0x1236, %%rbx\n mov $32, %%eax\n jmp *%%rax" : : : "rbx", "rax");
    if (!sigsetjmp(back, 1)) asm volatile("mov $0x1237, %%rbx\n ud2" : : : "rbx");
    if (!sigsetjmp(back, 1)) asm volatile("mov $0x1238, %%rbx\n xor %%ecx, %%ecx\n div %%ecx" : : : "rbx", "rcx", "rax", "rdx");
    if (!sigsetjmp(back, 1)) asm volatile("mov $0x1239, %%rbx\n int3" : : : "rbx");
    if (!sigsetjmp(back, 1)) asm volatile("mov $0x123a, %%rbx\n hlt" : : : "rbx");
    action.sa_sigaction = skip;
    sigaction(SIGSEGV, &action, 0);
    long result = 0;
    asm volatile("xor %%eax, %%eax\n mov (%%rax), %%eax\n add $1, %%rax" : "=a"(result));
    printf("skipped %ld\n", result);
    printf("end\n");
    return 5;
}
