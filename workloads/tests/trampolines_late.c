/* flags: -pthread */
/* not under qemu-alpha 7.2: its futexes fail for threads that end ("unexpected error code"), at times */
/* A library that wants executable stacks is loaded by a program that did not: the stacks of all its threads,
 * those to come and those that are there, become executable. Without it they are not. */
#define _GNU_SOURCE
#ifdef LIBRARY

static __attribute__((noinline)) long apply(long (*function)(long), long argument) { return function(argument); }

long nested(long base) {
    long calls = 0;
    long add(long value) {
        calls++;
        return value + base;
    }
    return apply(add, 1) + apply(add, 2) + calls;
}

#else

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static long (*nested)(long);
static pthread_barrier_t loaded;
static sigjmp_buf back;

static void fault(int signal) { siglongjmp(back, signal); }

/* Whether what stands in the calling thread's stack can be executed: a return, in both machines' code. */
static const char *executable(void) {
#ifdef __alpha__
    unsigned code[4] = {0x6bfa8001, 0x2ffe0000, 0x2ffe0000, 0x2ffe0000};
    __asm__ volatile("call_pal 0x86" ::: "memory");
#elif defined __riscv
    unsigned code[4] = {0x8067, 0x13, 0x13, 0x13};
    __asm__ volatile("fence.i" ::: "memory");
#else
    unsigned code[4] = {0x90909090, 0x909090c3, 0x90909090, 0x90909090};
#endif
    void (*volatile function)(void) = (void (*)(void))code;
    __asm__ volatile("" ::"r"(code) : "memory");
    if (sigsetjmp(back, 1) != 0) return "not executable";
    function();
    return "executable";
}

/* The same, far down the stack. */
static __attribute__((noinline)) const char *executable_below(size_t bytes) {
    char *room = alloca(bytes);
    memset(room, 1, bytes);
    const char *result = executable();
    __asm__ volatile("" ::"r"(room) : "memory");
    return result;
}

static void *early(void *unused) {
    (void)unused;
    pthread_barrier_wait(&loaded);
    pthread_barrier_wait(&loaded);
    return (void *)nested(100);
}

static void *late(void *unused) {
    (void)unused;
    return (void *)nested(200);
}

int main(void) {
    struct sigaction action = {.sa_handler = fault};
    sigaction(SIGSEGV, &action, NULL);
    printf("before: %s\n", executable());
    printf("before, below: %s\n", executable_below(100000));
    pthread_t threads[2];
    pthread_barrier_init(&loaded, NULL, 2);
    pthread_create(&threads[0], NULL, early, NULL);
    pthread_barrier_wait(&loaded);
    void *library = dlopen("../library.so", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    nested = (long (*)(long))dlsym(library, "nested");
    printf("after: %s\n", executable());
    printf("after, below: %s\n", executable_below(300000));
    printf("first thread: %ld\n", nested(1));
    pthread_create(&threads[1], NULL, late, NULL);
    pthread_barrier_wait(&loaded);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("thread %d: %ld\n", i, (long)result);
    }
    return 0;
}

#endif
