/* Walks through blocks of the heap that several places allocate, in processes and threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
enum { ELEMENTS = 1000, ROW = 64 };
static long *volatile table;
static long *volatile rows;
static volatile long total;

FUNCTION void load_table(void) {
    table = malloc(ELEMENTS * sizeof(long)); /* table */
}
FUNCTION void load_rows(void) {
    rows = calloc(ELEMENTS, sizeof(long)); /* rows */
}
FUNCTION void grow(void) {
    rows = realloc(rows, ROW * ELEMENTS * sizeof(long)); /* grown */
}

/* Goes through an array in steps. */
FUNCTION long walk(const long *array, long count, long step) {
    long sum = 0;
    for (long i = 0; i < count; i += step) sum += array[i];
    return sum;
}

static void *body(void *unused) {
    long *own = malloc(ELEMENTS * sizeof(long)); /* own */
    for (int i = 0; i < 4; i++) total += walk(own, ELEMENTS, 2);
    free(own);
    return unused;
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    if (!strcmp(how, "end")) {
        load_rows();
        total += walk(rows, ELEMENTS, 4);
        return 0;
    }
    load_table();
    load_rows();
    total += walk(table, ELEMENTS, 1);
    total += walk(rows, ELEMENTS, 3);
    grow();
    total += walk(rows, ROW * ELEMENTS, ROW);
    /* The next block is where the table was. */
    free(table);
    load_table();
    total += walk(table, ELEMENTS, 1);
    if (!strcmp(how, "threads")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, body, NULL);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    }
    if (!strcmp(how, "fork")) {
        if (fork() == 0) {
            total += walk(table, ELEMENTS, 1);
            execl(arguments[0], arguments[0], "end", (char *)0);
        }
        wait(NULL);
    }
    return 0;
}
