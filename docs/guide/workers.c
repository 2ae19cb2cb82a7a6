/* Workers that each take orders and count them: workers [PADDED] */
#include <pthread.h>
#include <stdio.h>

#define WORKERS 4
#define ORDERS 5000

struct statistics { long orders; long pieces; };
struct padded_statistics { long orders; long pieces; char padding[48]; };

static struct statistics of_worker[WORKERS] __attribute__((aligned(64)));
static struct padded_statistics padded[WORKERS] __attribute__((aligned(64)));
static int is_padded;

static void take_orders(volatile long *orders, volatile long *pieces) {
    for (int i = 0; i < ORDERS; i++) {
        (*orders)++;
        *pieces += i % 7;
    }
}

static void *work(void *argument) {
    long number = (long)argument;
    if (is_padded) take_orders(&padded[number].orders, &padded[number].pieces);
    else take_orders(&of_worker[number].orders, &of_worker[number].pieces);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[WORKERS];
    is_padded = argc > 1;
    for (long i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    long orders = 0;
    for (int i = 0; i < WORKERS; i++) orders += is_padded ? padded[i].orders : of_worker[i].orders;
    printf("%ld orders\n", orders);
    return 0;
}
