/* Threads that each make 100 calls of work(), or one that goes wrong. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

#define FUNCTION __attribute__((noinline, noclone))

FUNCTION long work(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}
FUNCTION void null_pointer(int *pointer) { *pointer = 1; }

static void *body(void *number) {
    for (int i = 0; i < 100; i++) work(20);
    if (number) {
        pthread_setname_np(pthread_self(), "worker");
        null_pointer((int *)((long)number & 1));
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, body, argc > 1 && i == 2 ? argv : NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
