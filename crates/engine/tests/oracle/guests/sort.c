/* Function pointers, recursion, memory that grows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(void) {
    enum { COUNT = 300 };
    char **names = NULL;
    unsigned state = 12345;
    for (int i = 0; i < COUNT; i++) {
        names = realloc(names, sizeof *names * (size_t)(i + 1));
        state = state * 1103515245 + 12345;
        names[i] = malloc(64);
        snprintf(names[i], 64, "name-%u", state >> 8);
    }
    char *large = calloc(1, 3 << 20);
    large = realloc(large, 5 << 20);
    qsort(names, COUNT, sizeof *names, compare);
    printf("%s %s %s %d\n", names[0], names[COUNT / 2], names[COUNT - 1], large[(3 << 20) - 1]);
    for (int i = 0; i < COUNT; i++) free(names[i]);
    free(names);
    free(large);
    return 0;
}
