/* flags: -pthread */
/* not under qemu-alpha 7.2: its futexes fail for threads that end ("unexpected error code") */
/* Nested functions whose address is taken: the compiler builds the code that finds their frame on the stack,
 * and asks for executable stacks. In the first thread, in others, in a child, under signals, on the
 * alternate stack. The heap is executable then, too: on Alpha, that is; the host's processor has to be asked. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"

typedef int (*compare)(const void *, const void *);

static __attribute__((noinline)) long apply(long (*function)(long), long argument) { return function(argument); }

static long sum(int count) {
    long total = 0;
    long add(long value) {
        total += value;
        return total;
    }
    for (int i = 0; i < count; i++) apply(add, i);
    return total;
}

static int sorted(int direction) {
    int numbers[100], swaps = 0;
    int by_direction(const void *a, const void *b) {
        swaps++;
        return direction * (*(const int *)a - *(const int *)b);
    }
    for (int i = 0; i < 100; i++) numbers[i] = i * 37 % 101;
    qsort(numbers, 100, sizeof numbers[0], (compare)by_direction);
    int good = swaps > 0;
    for (int i = 1; i < 100; i++) good &= direction * (numbers[i] - numbers[i - 1]) >= 0;
    return good;
}

/* Two at once, and each finds its own frame. */
static long pairs(long depth, long (*outer)(long)) {
    long here = depth * 3;
    long inner(long value) { return value + here + (outer ? outer(value) : 0); }
    return depth == 0 ? apply(inner, 1) : pairs(depth - 1, inner) + apply(inner, 2);
}

static void *in_thread(void *argument) {
    long base = (long)argument;
    long add(long value) { return value + base; }
    return (void *)(apply(add, 10) + sum(1000) + sorted(1) + pairs(5, NULL));
}

static void with_signal(int alternate) {
    volatile int got = 0;
    void handler(int number) { got = number; }
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handler, .sa_flags = alternate ? SA_ONSTACK : 0};
    if (alternate) sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    printf("handler on the stack: %d\n", got == SIGUSR1);
}

static void on_the_heap(void) {
    enum { SIZE = 65536 };
    char *start = sbrk(2 * SIZE), *code = (char *)(((uintptr_t)start + SIZE - 1) & -(uintptr_t)SIZE);
#ifndef __alpha__
    mprotect(code, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
#endif
    memcpy(code, two, sizeof two);
#ifdef __alpha__
    asm volatile("call_pal 0x86" : : : "memory");
#elif defined __riscv
    asm volatile("fence.i" : : : "memory");
#endif
    printf("on the heap: %d, not %d\n", ((int (*)(void))(void *)code)(), often() / 10000);
}

int main(void) {
    printf("%ld %d %d %ld\n", sum(1000), sorted(1), sorted(-1), pairs(9, NULL));
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, in_thread, (void *)i);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("thread %d: %ld\n", i, (long)result);
    }
    on_the_heap();
    with_signal(0);
    with_signal(1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(sum(10));
    int status;
    waitpid(child, &status, 0);
    printf("child: %d\n", WEXITSTATUS(status));
    return 0;
}
