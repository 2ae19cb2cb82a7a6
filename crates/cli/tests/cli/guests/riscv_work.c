/* Sixty units of work, in another thread, too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long numbers[1000];

__attribute__((noinline)) static long work(long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) {
        numbers[i % 1000] += i;
        sum += numbers[i * 7 % 1000];
    }
    char *block = malloc(count + 1);
    memset(block, 1, count);
    sum += block[count / 2] + *(int *)(block + 1);
    free(block);
    return sum;
}

static void *thread(void *unused) {
    work(100);
    return unused;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 60; i++) sum += work(200 + i % 3);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    printf("%ld\n", sum);
    return 0;
}
