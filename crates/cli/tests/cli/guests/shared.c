/* Threads that share data in known ways: `shared false`, `padded`, `lock` or `alone`. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 2
#define TIMES 2000

struct slot { volatile long count; };
struct padded_slot { volatile long count; char padding[56]; };

static struct slot counters[THREADS] __attribute__((aligned(64)));
static struct padded_slot padded[THREADS] __attribute__((aligned(64)));
static struct { volatile long word; char padding[56]; } lock __attribute__((aligned(64)));
static volatile long total __attribute__((aligned(64)));
static const char *what;
static pthread_barrier_t barrier;

__attribute__((noinline, noclone)) static void count(volatile long *counter) {
    for (int i = 0; i < TIMES; i++) (*counter)++;
}

static void add_under_lock(void) {
    for (int i = 0; i < TIMES / 10; i++) {
        while (__sync_lock_test_and_set(&lock.word, 1)) {}
        total++;
        __sync_lock_release(&lock.word);
    }
}

static void *work(void *argument) {
    long number = (long)argument;
    pthread_barrier_wait(&barrier);
    if (!strcmp(what, "false")) count(&counters[number].count);
    if (!strcmp(what, "padded")) count(&padded[number].count);
    if (!strcmp(what, "lock")) add_under_lock();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    what = argc > 1 ? argv[1] : "alone";
    if (!strcmp(what, "alone")) {
        count(&counters[0].count);
        return 0;
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
