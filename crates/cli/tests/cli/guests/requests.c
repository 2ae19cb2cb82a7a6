/* A service whose requests differ: all search a table, a few make it larger first. The first argument is the number of
   threads, each of which makes 100 requests. */
#include <pthread.h>
#include <stdlib.h>

#define FUNCTION __attribute__((noinline, noclone))
#define REQUESTS 100

/* The memory of a table is its own, so that what a thread executes does not depend on the others. */
struct table {
    int *keys;
    int size, used;
    int memory[256];
};

FUNCTION void grow(struct table *table) {
    int *keys = table->keys + table->size;
    for (int i = 0; i < table->used; i++) keys[i] = table->keys[i];
    table->keys = keys;
    table->size *= 2;
}

FUNCTION int search(const struct table *table, int key) {
    for (int i = 0; i < table->used; i++)
        if (table->keys[i] == key) return i;
    return -1;
}

FUNCTION int request(struct table *table, int key) {
    if (search(table, key) >= 0) return 0;
    if (table->used == table->size) grow(table);
    table->keys[table->used++] = key;
    return 1;
}

static void *serve(void *seed) {
    struct table table = {table.memory, 4, 0};
    unsigned state = (unsigned)(long)seed + 1;
    long added = 0;
    for (int i = 0; i < REQUESTS; i++) {
        state = state * 1103515245 + 12345;
        added += request(&table, (state >> 16) % 64);
    }
    return (void *)added;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t ids[16];
    for (long i = 1; i < threads; i++) pthread_create(&ids[i], NULL, serve, (void *)i);
    serve(NULL);
    for (long i = 1; i < threads; i++) pthread_join(ids[i], NULL);
    return 0;
}
