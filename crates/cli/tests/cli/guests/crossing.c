/* Threads that run units of work at the same time, each of which calls the system, so that those of several threads
   are told in turns; what a unit does depends on its number and nothing else. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

enum { UNITS = 60 };

static long tables[4][256];
static pthread_barrier_t ready;

FUNCTION long work(long *table, long n) {
    long sum = 0;
    for (int part = 0; part < 3; part++) {
        for (long i = 0; i < 50 * (n % 5 + 1); i++) sum += table[(i * 7 + n) & 255] += i;
        getppid();
    }
    return sum;
}

static void *body(void *table) {
    pthread_barrier_wait(&ready);
    for (long n = 0; n < UNITS; n++) work(table, n);
    return NULL;
}

int main(int argc, char **argv) {
    int count = atoi(argv[1]);
    pthread_t threads[4];
    /* Which thread makes the loader look for it would depend on which is faster. */
    getppid();
    pthread_barrier_init(&ready, NULL, count);
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, body, tables[i]);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    return 0;
}
