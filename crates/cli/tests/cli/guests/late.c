/* Works before a thread begins, in the thread, and after it has ended. */
#include <pthread.h>

__attribute__((noinline)) static long work(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}

static void *body(void *n) { return (void *)work((long)n); }

int main(void) {
    pthread_t thread;
    work(30000);
    pthread_create(&thread, 0, body, (void *)50000);
    pthread_join(thread, 0);
    return work(70000) == 1;
}
