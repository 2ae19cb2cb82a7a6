/* flags: -pthread */
/* The futex call in all its forms, and the related calls of a C library. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, uintptr_t fourth, void *other, uint32_t third) {
    return syscall(SYS_futex, word, operation, value, fourth, other, third);
}

static const char *name(long result) {
    static char number[24];
    if (result < 0) return strerror(errno);
    snprintf(number, sizeof number, "%ld", result);
    return number;
}

enum { SLEEPERS = 4, ALL = 100 };

static _Atomic uint32_t first, second, aside;

struct wait { int operation; uint32_t bits; };

static void *sleeper(void *argument) {
    struct wait *wait = argument;
    return (void *)futex(&first, wait->operation, 0, 0, NULL, wait->bits);
}

/* How many sleep at the first word: a requeue tells, and another one undoes it. */
static long asleep(void) {
    futex(&first, FUTEX_REQUEUE, 0, ALL, &aside, 0);
    return futex(&aside, FUTEX_REQUEUE, 0, ALL, &first, 0);
}

/* Lets threads sleep at the first word and acts on them; tells how many then sleep at which word. */
static void wake(const char *what, int operation, const uint32_t *bits, long (*act)(void)) {
    pthread_t threads[SLEEPERS];
    struct wait waits[SLEEPERS];
    long failures = 0;
    for (int i = 0; i < SLEEPERS; i++) {
        waits[i] = (struct wait){operation, bits[i]};
        pthread_create(&threads[i], NULL, sleeper, &waits[i]);
    }
    while (asleep() < SLEEPERS) sched_yield();
    const char *result = name(act());
    long at_first = futex(&first, FUTEX_WAKE, ALL, 0, NULL, 0);
    long at_second = futex(&second, FUTEX_WAKE, ALL, 0, NULL, 0);
    for (int i = 0; i < SLEEPERS; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        failures -= (long)failure;
    }
    printf("%s: %s, then asleep: %ld and %ld; %ld failures\n", what, result, at_first, at_second, failures);
}

static long wake_two(void) { return futex(&first, FUTEX_WAKE, 2, 0, NULL, 0); }
static long wake_bits(void) { return futex(&first, FUTEX_WAKE_BITSET, ALL, 0, NULL, 6); }
static long requeue(void) { return futex(&first, FUTEX_REQUEUE, 1, 2, &second, 0); }
static long compare(void) { return futex(&first, FUTEX_CMP_REQUEUE, 1, 3, &second, 0); }
static long differ(void) { return futex(&first, FUTEX_CMP_REQUEUE, 1, 3, &second, 7); }
static long operate(void) {
    second = 5;
    return futex(&second, FUTEX_WAKE_OP, 1, 3, &first, FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0));
}

static void forms(void) {
    static const uint32_t any[] = {~0u, ~0u, ~0u, ~0u}, some[] = {1, 2, 4, 8};
    wake("wake", FUTEX_WAIT, any, wake_two);
    wake("wake bitset", FUTEX_WAIT_BITSET, some, wake_bits);
    wake("requeue", FUTEX_WAIT, any, requeue);
    wake("compare and requeue", FUTEX_WAIT, any, compare);
    wake("compare, different", FUTEX_WAIT, any, differ);
    wake("wake and operate", FUTEX_WAIT, any, operate);
}

static void refusals(void) {
    struct timespec time = {0, 1000000}, past = {1, 0}, bad = {0, 2000000000};
    first = 1;
    printf("other value: %s\n", name(futex(&first, FUTEX_WAIT, 0, 0, NULL, 0)));
    printf("time: %s\n", name(futex(&first, FUTEX_WAIT, 1, (uintptr_t)&time, NULL, 0)));
    printf("past: %s\n", name(futex(&first, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, (uintptr_t)&past, NULL, 1)));
    printf("bad time: %s\n", name(futex(&first, FUTEX_WAIT, 1, (uintptr_t)&bad, NULL, 0)));
    printf("no bits: %s\n", name(futex(&first, FUTEX_WAIT_BITSET, 1, 0, NULL, 0)));
    printf("unaligned: %s\n", name(futex((void *)((char *)&first + 1), FUTEX_WAKE, 1, 0, NULL, 0)));
    printf("nowhere: %s\n", name(futex((void *)8, FUTEX_WAIT, 1, 0, NULL, 0)));
    printf("unknown: %s\n", name(futex(&first, 99, 1, 0, NULL, 0)));
    printf("garbage: %s\n", name(futex(&first, FUTEX_WAKE_PRIVATE, 1, -1, (void *)-1L, -1)));
}

/* Priority inheritance: the kernel keeps the owner's id in the word. */
static pthread_mutex_t inheriting;
static long guarded;

static void *guard(void *unused) {
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&inheriting);
        guarded++;
        if (i % 100 == 0) sched_yield();
        pthread_mutex_unlock(&inheriting);
    }
    return unused;
}

static void inheritance(void) {
    pthread_mutexattr_t attributes;
    pthread_t threads[SLEEPERS];
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    int result = pthread_mutex_init(&inheriting, &attributes);
    for (int i = 0; i < SLEEPERS; i++) pthread_create(&threads[i], NULL, guard, NULL);
    for (int i = 0; i < SLEEPERS; i++) pthread_join(threads[i], NULL);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    printf("inheriting: %s, %ld", strerror(result), guarded);
    printf(", timed %s\n", strerror(pthread_mutex_timedlock(&inheriting, &soon)));
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    forms();
    refusals();
    inheritance();
#if defined __alpha__ && defined SYS_rseq
    printf("rseq: %s\n", name(syscall(SYS_rseq, 0, 0, 0, 0)));
#else
    printf("rseq: %s\n", strerror(ENOSYS));
#endif
    return 0;
}
