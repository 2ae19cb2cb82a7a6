/* not under qemu-alpha 7.2: its madvise loses the contents of private file mappings, and it executes stale code */
/* Pages discarded by madvise: the program's code and constants and private file mappings have the file's contents again,
 * and code that was modified and executed is the original code again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "answer.h"

enum { PAGE = 65536 };
extern char __executable_start[], etext[];

/* Few enough that the program's code does not fill a page of Alpha's. */
static const char constants[100] = {1, 2, 3, [99] = 4};
static char variables[3 * PAGE] __attribute__((aligned(65536))) = {[0] = 5, [PAGE] = 6, [2 * PAGE] = 7};

static char *down(const void *at) {
    return (char *)((uintptr_t)at & -(uintptr_t)getpagesize());
}

static unsigned long sum(const char *from, const char *to) {
    unsigned long sum = 0;
    while (from < to) sum = sum * 31 + *(volatile const char *)from++;
    return sum;
}

static void tell(const char *what, int result) {
    printf("%s: %s\n", what, result ? strerror(errno) : "good");
}

static void text(void) {
    char *start = down(__executable_start), *end = etext;
    size_t bytes = end - start;
    unsigned long before = sum(start, end);
    tell("code", madvise(start, bytes, MADV_DONTNEED));
    printf("the same: %d\n", sum(start, end) == before);
    printf("called: %d\n", often());
    char *place = (char *)answer, *page = down(place);
    size_t span = place + sizeof two - page;
    tell("writable", mprotect(page, span, PROT_READ | PROT_WRITE | PROT_EXEC));
    memcpy(place, two, sizeof two);
#ifdef __alpha__
    asm volatile("call_pal 0x86" ::: "memory");
#elif defined __riscv
    asm volatile("fence.i" ::: "memory");
#endif
    printf("changed: %d\n", often());
    tell("discarded", madvise(page, span, MADV_DONTNEED));
    printf("again: %d, %d\n", often(), sum(start, end) == before);
    tell("executable", mprotect(page, span, PROT_READ | PROT_EXEC));
    tell("free", madvise(page, span, MADV_FREE));
    tell("wipe", madvise(page, span, MADV_WIPEONFORK));
    printf("unharmed: %d\n", sum(start, end) == before);
}

static void data(void) {
    tell("constants", madvise(down(constants), constants + sizeof constants - down(constants), MADV_DONTNEED));
    printf("%d %d %d\n", ((volatile const char *)constants)[0], ((volatile const char *)constants)[2],
           ((volatile const char *)constants)[99]);
    memset(variables, 9, sizeof variables);
    tell("variables", madvise(variables + PAGE, PAGE, MADV_DONTNEED));
    volatile char *seen = variables;
    printf("%d %d %d %d\n", seen[0], seen[PAGE], seen[PAGE + 1], seen[2 * PAGE]);
}

static void files(void) {
    char name[] = "discardXXXXXX", bytes[100];
    int file = mkstemp(name);
    unlink(name);
    memset(bytes, 7, sizeof bytes);
    /* It ends in the first 4 KiB of a page. */
    if (pwrite(file, bytes, sizeof bytes, PAGE) != sizeof bytes) abort();
    volatile char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    at[0] = at[PAGE] = at[PAGE + 100] = 1;
    tell("file", madvise((char *)at, PAGE + 100, MADV_DONTNEED));
    printf("%d %d %d %d\n", at[0], at[PAGE], at[PAGE + 99], at[PAGE + 100]);
    at[0] = 1;
    tell("free", madvise((char *)at, PAGE, MADV_FREE));
    tell("wipe", madvise((char *)at, PAGE, MADV_WIPEONFORK));
    printf("%d\n", at[0]);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    text();
    data();
    files();
    return 0;
}
