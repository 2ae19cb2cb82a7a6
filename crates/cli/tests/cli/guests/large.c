/* Reads a word of each page of 8 MiB, ten times: memory in large pages, or not. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 8192, LARGE_PAGE = 512 * PAGE, BYTES = 2 * LARGE_PAGE };

static void *map(void *address, size_t bytes, int flags) {
    return mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
}

int main(int argc, char **argv) {
    int flags = argc > 1 && !strcmp(argv[1], "large") ? MAP_HUGETLB : 0;
    /* Whole large pages are mapped. */
    volatile char *memory = map(NULL, BYTES - PAGE, flags);
    if (memory == MAP_FAILED) return 1;
    long sum = 0;
    for (int round = 0; round < 10; round++)
        for (int at = 0; at < BYTES; at += PAGE)
            if (flags || at < BYTES - PAGE) sum += memory[at];
    if (flags) {
        char *moved = mremap((void *)memory, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED || (unsigned long)moved % LARGE_PAGE) return 2;
        if (map(moved + PAGE, LARGE_PAGE, flags | MAP_FIXED) != MAP_FAILED) return 3;
        if (map(moved, LARGE_PAGE, flags | MAP_FIXED) != moved) return 4;
        /* Pages of 2 MiB there are not. */
        if (map(NULL, BYTES, flags | 21 << 26) != MAP_FAILED) return 5;
        if (map(NULL, BYTES, flags | 22 << 26) == MAP_FAILED) return 6;
    }
    printf("%ld\n", sum);
    return 0;
}
