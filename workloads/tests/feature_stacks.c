/* flags: -pthread */
/* Stacks: a million frames, the end of a stack met on the alternate one, longjmp out of many frames, stacks
 * that the program allocates itself, unwinding, and jump tables. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

/* Recursion that the compiler cannot turn into a loop. */
static volatile long zero;
static __attribute__((noinline)) long deep(long depth) {
    volatile long here = depth;
    return depth == 0 ? 0 : deep(depth - 1) + here - depth + 1 + zero;
}

static __attribute__((noinline)) long odd(long depth);
static __attribute__((noinline)) long even(long depth) { return depth == 0 ? 1 : odd(depth - 1) * 3 + zero; }
static __attribute__((noinline)) long odd(long depth) { return depth == 0 ? 2 : even(depth - 1) * 5 + zero; }

static void *on_own_stack(void *unused) {
    (void)unused;
    long sum = deep(1000000);
    return (void *)(sum + even(999999) % 1000);
}

static void million(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 << 20);
    if (pthread_create(&thread, &attributes, on_own_stack, NULL)) abort();
    pthread_join(thread, &result);
    printf("a million frames: %ld\n", (long)result);
    /* Again and again, less deep, so that returns are hot. */
    long sum = 0;
    for (int i = 0; i < 300; i++) sum += deep(1000);
    printf("often: %ld\n", sum);
}

/* The end of the stack, met on the alternate stack: the program goes on, and meets it again. */
static sigjmp_buf back;
static volatile sig_atomic_t on_alternate, near;
static char *alternate;
enum { ALTERNATE = 131072 };

static void overflow(int signal, siginfo_t *information, void *context) {
    char here;
    (void)signal, (void)context;
    on_alternate += &here >= alternate && &here < alternate + ALTERNATE;
    near += information->si_addr != NULL;
    siglongjmp(back, 1);
}

static __attribute__((noinline)) long endless(long depth) {
    volatile char frame[300];
    frame[depth % 300] = 1;
    return endless(depth + 1) + frame[depth % 299] + zero;
}

static void *to_the_end(void *times) {
    stack_t stack = {.ss_sp = alternate, .ss_size = ALTERNATE}, off = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    on_alternate = near = 0;
    for (volatile int i = 0; i < (int)(long)times; i++)
        if (sigsetjmp(back, 1) == 0) endless(0);
    sigaltstack(&off, NULL);
    return NULL;
}

static void the_end_of_stacks(void) {
    struct sigaction action = {.sa_sigaction = overflow, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    pthread_t thread;
    alternate = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
    to_the_end((void *)5L);
    printf("end of the stack: %d %d\n", (int)on_alternate, (int)near);
    pthread_create(&thread, NULL, to_the_end, (void *)5L);
    pthread_join(thread, NULL);
    printf("end of a thread's stack: %d %d\n", (int)on_alternate, (int)near);
    signal(SIGSEGV, SIG_DFL);
}

/* Jumps over many frames, often. */
static jmp_buf landing;
static __attribute__((noinline)) void jump_at(long depth, int value) {
    if (depth == 0) longjmp(landing, value);
    jump_at(depth - 1, value + (int)zero);
    zero++;
}

static void jumps(void) {
    volatile long sum = 0;
    for (volatile int i = 1; i <= 20000; i++) {
        int value = setjmp(landing);
        if (value == 0) jump_at(i % 50, i);
        sum = sum * 3 + value;
    }
    printf("jumps: %016lx %ld\n", (unsigned long)sum, zero);
}

/* Contexts with stacks of their own, which pass control around. */
static ucontext_t self, contexts[3];
static long trail;
static void turn(int number, int rounds) {
    for (int i = 0; i < rounds; i++) {
        trail = trail * 31 + number * 100 + i;
        swapcontext(&contexts[number], &contexts[(number + 1) % 3]);
    }
    trail = trail * 7 + number;
}

static void switching(void) {
    enum { SIZE = 262144, ROUNDS = 5000 };
    for (int i = 0; i < 3; i++) {
        if (getcontext(&contexts[i])) {
            puts("no contexts");
            return;
        }
        contexts[i].uc_stack.ss_sp = malloc(SIZE);
        contexts[i].uc_stack.ss_size = SIZE;
        contexts[i].uc_link = i == 2 ? &self : &contexts[i + 1];
        makecontext(&contexts[i], (void (*)(void))turn, 2, i, ROUNDS);
    }
    swapcontext(&self, &contexts[0]);
    printf("contexts: %016lx\n", (unsigned long)trail);
}

/* Stacks by hand: a signal's handler runs on the alternate stack and leaves it for good. */
static void hop(int signal) { (void)signal; siglongjmp(back, 1); }
static void hopping(void) {
    struct sigaction action = {.sa_handler = hop, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = alternate, .ss_size = ALTERNATE}, now;
    volatile int left = 0;
    sigaction(SIGUSR1, &action, NULL);
    sigaltstack(&stack, NULL);
    for (volatile int i = 0; i < 2000; i++) {
        if (sigsetjmp(back, 1) == 0) raise(SIGUSR1);
        sigaltstack(NULL, &now);
        left += now.ss_flags == 0;
    }
    printf("left the alternate stack: %d\n", left);
}

/* Calls through tables, jumps through tables, computed gotos. */
typedef long operation(long, long);
static long add(long a, long b) { return a + b; }
static long subtract(long a, long b) { return a - b; }
static long multiply(long a, long b) { return (a & 0xffff) * b; }
static long exclusive(long a, long b) { return a ^ b; }

static void tables(void) {
    static operation *const operations[] = {add, subtract, multiply, exclusive};
    static const void *const places[] = {&&first, &&second, &&third, &&done};
    static const unsigned char program[] = {0, 1, 2, 1, 0, 0, 2, 2, 1, 0, 2, 3};
    long value = 1;
    for (long i = 0; i < 40000; i++) value = ((operation *volatile)operations[(value ^ i) & 3])(value, i);
    printf("through pointers: %016lx\n", (unsigned long)value);
    for (long i = 0; i < 40000; i++) switch ((value + i) % 11) {
        case 0: value += 3; break;
        case 1: value ^= i; break;
        case 2: value = value * 5 & 0xffffff; break;
        case 3: value -= i; /* falls through */
        case 4: value += 17; break;
        case 5: value = -value; break;
        case 6: continue;
        case 7: value <<= 1; value &= 0xfffffff; break;
        case 8: value |= 64; break;
        case 9: value ^= value >> 3; break;
        default: value++;
    }
    printf("through a switch: %016lx\n", (unsigned long)value);
    for (long i = 0, at = 0; i < 4000; i++, at = 0) {
        goto *places[program[at++]];
first:
        value += i;
        goto *places[program[at++]];
second:
        value ^= value >> 5;
        goto *places[program[at++]];
third:
        value = value * 9 & 0xffffff;
        goto *places[program[at++]];
done:;
    }
    printf("through labels: %016lx\n", (unsigned long)value);
}

/* Tail calls, arguments in and beyond the registers, and stack taken as it is needed. */
static __attribute__((noinline)) long tail(long n, long a, long b) { return n == 0 ? a : tail(n - 1, b + zero, a + n); }
static __attribute__((noinline)) double variadic(const char *kinds, ...) {
    va_list list, copy;
    double sum = 0;
    va_start(list, kinds);
    va_copy(copy, list);
#define NEXT(list) (*k == 'd' ? va_arg(list, double) : *k == 'l' ? va_arg(list, long) : va_arg(list, int))
    for (const char *k = kinds; *k; k++) sum = sum * 1.5 + NEXT(list);
    for (const char *k = kinds; *k; k++) sum = sum - NEXT(copy);
    va_end(copy);
    va_end(list);
    return sum;
}
struct large { long words[9]; };
static __attribute__((noinline)) struct large by_value(struct large given, int i) {
    given.words[i % 9] += i;
    return given;
}
static __attribute__((noinline)) long taken(int size) {
    unsigned char *bytes = alloca(size), array[size + 1];
    memset(bytes, size, size);
    memset(array, 1, size + 1);
    long sum = 0;
    for (int i = 0; i < size; i++) sum += bytes[i] + array[i];
    return sum;
}

static void calls(void) {
    double sum = 0;
    long bytes = 0;
    struct large value = {{1, 2, 3}};
    for (int i = 0; i < 3000; i++) {
        sum += variadic("idldiddlldii", i, 0.5, 7L, 2.25, 3, 1.0, 4.0, 5L, 6L, 8.5, 9, i);
        value = by_value(value, i);
        bytes += taken(i % 500);
    }
    for (int i = 0; i < 9; i++) bytes = bytes * 7 + value.words[i];
    printf("calls: %ld %.3f %016lx\n", tail(20000, 1, 2), sum, (unsigned long)bytes);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    million();
    the_end_of_stacks();
    jumps();
    switching();
    hopping();
    tables();
    calls();
    return 0;
}
