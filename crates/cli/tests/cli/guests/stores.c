/* Stores into an array in ways that tools can tell apart. */
enum { ROWS = 64, COLUMNS = 512 };
static double matrix[ROWS][COLUMNS];
static long where[4096];
static long table[4096];

__attribute__((noinline)) static void by_rows(void) {
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            matrix[i][j] = i;
}

__attribute__((noinline)) static void by_columns(void) {
    for (int j = 0; j < COLUMNS; j++)
        for (int i = 0; i < ROWS; i++)
            matrix[i][j] = j;
}

/* In order, but by way of indices. */
__attribute__((noinline)) static long ordered(void) {
    long sum = 0;
    for (int i = 0; i < 4096; i++)
        sum += table[where[i]];
    return sum;
}

/* Each element once. */
__attribute__((noinline)) static long once(void) {
    long sum = 0;
    for (int i = 0; i < 4095; i++)
        sum += table[i] * where[i];
    return sum;
}

int main(void) {
    for (int i = 0; i < 4096; i++)
        where[i] = i;
    by_rows();
    by_columns();
    return ordered() + once() + matrix[1][2] == 1;
}
