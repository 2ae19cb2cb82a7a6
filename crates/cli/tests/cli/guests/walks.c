/* Walks through arrays in ways that tools can tell apart. */
#include <stdio.h>

enum { ROWS = 64, COLUMNS = 512 };
static double matrix[ROWS][COLUMNS];
static int where[4096];
static long table[4096];
long total;

__attribute__((noinline)) static double by_rows(void) {
    double sum = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sum += matrix[i][j];
    return sum;
}

__attribute__((noinline)) static double by_columns(void) {
    double sum = 0;
    for (int j = 0; j < COLUMNS; j++)
        for (int i = 0; i < ROWS; i++)
            sum += matrix[i][j]; /* by columns */
    return sum;
}

__attribute__((noinline)) static long indirect(void) {
    long sum = 0;
    for (int i = 0; i < 4096; i++)
        sum += table[where[i]]; /* indirect */
    return sum;
}

__attribute__((noinline)) static void twice(void) {
    for (int i = 0; i < 4095; i++) {
        total += table[i];     /* the same element ... */
        total -= table[i + 1]; /* ... again */
    }
}

int main(void) {
    unsigned seed = 1;
    for (int i = 0; i < 4096; i++) {
        seed = seed * 1103515245u + 12345u;
        where[i] = seed >> 10 & 4095;
        table[i] = i;
        matrix[i % ROWS][i % COLUMNS] = i;
    }
    printf("%g %g ", by_rows(), by_columns());
    twice();
    printf("%ld %ld\n", indirect(), total);
    return 0;
}
