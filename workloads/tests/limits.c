/* not debugged: its limits hit the debugger's thread, too */
/* The edges of memory: allocations that fail, a deep stack, limits. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocations(void) {
    volatile size_t size = (size_t)1 << 62;
    errno = 0;
    void *huge = malloc(size);
    printf("malloc: %d %s\n", huge == NULL, strerror(errno));
    errno = 0;
    huge = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("mmap: %d %s\n", huge == MAP_FAILED, strerror(errno));
    unsigned char *large = malloc(64 << 20);
    for (int i = 0; i < 64; i++) large[(size_t)i << 20] = (unsigned char)i;
    unsigned sum = 0;
    for (int i = 0; i < 64; i++) sum += large[(size_t)i << 20];
    large = realloc(large, 96 << 20);
    for (int i = 0; i < 64; i++) sum += large[(size_t)i << 20];
    printf("large: %u %d\n", sum, large[(size_t)80 << 20]);
    free(large);
    char *brk = sbrk(0), *more = sbrk(100000);
    printf("sbrk: %d", more == brk);
    memset(more, 1, 100000);
    printf(" %d\n", sbrk(-100000) == brk + 100000);
}

static void mappings(void) {
    enum { SIZE = 1 << 20 };
    char *first = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    first[SIZE / 2] = 'x';
    char *fixed = mmap(first + SIZE / 2, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("fixed: %d %d\n", fixed == first + SIZE / 2, first[SIZE / 2]);
    fixed[0] = 'y';
    madvise(first, 8192, MADV_DONTNEED);
    printf("madvise: %d %d\n", first[0], first[SIZE / 2]);
    munmap(first, SIZE);
    char *small = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    small[8191] = 'z';
    char *grown = mremap(small, 8192, SIZE, MREMAP_MAYMOVE);
    printf("mremap: %d %d\n", grown[8191], grown[SIZE - 1]);
    munmap(grown, SIZE);
}

static __attribute__((noinline)) uint64_t deep(unsigned depth) {
    volatile char frame[1000];
    frame[depth % sizeof frame] = 1;
    return depth == 0 ? 0 : 1 + deep(depth - 1) + (uint64_t)frame[depth % sizeof frame] - 1;
}

static void resource_limits(void) {
    struct rlimit limit;
    printf("%d", getrlimit(RLIMIT_STACK, &limit));
    printf(" %d", limit.rlim_cur <= limit.rlim_max);
    printf(" %d", getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 16;
    printf(" %d", setrlimit(RLIMIT_NOFILE, &limit));
    getrlimit(RLIMIT_NOFILE, &limit);
    printf(" %d", limit.rlim_cur == 16);
    int last = 0, next;
    while ((next = dup(1)) != -1 && next < 1000) last = next;
    printf(" %d %s\n", last, strerror(errno));
    while (last > 2) close(last--);
    struct rusage usage;
    printf("%d %d\n", getrusage(RUSAGE_SELF, &usage), usage.ru_utime.tv_sec < 3600);
    printf("%d\n", sysconf(_SC_PAGESIZE) >= 4096);
}

static void run_out_of_stack(void) {
    fflush(stdout);
    pid_t child = fork();
    int status;
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        _exit(deep(1u << 30) == 1);
    }
    waitpid(child, &status, 0);
    printf("out of stack: %s\n", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no signal");
}

int main(void) {
    allocations();
    mappings();
    printf("deep: %lu\n", (unsigned long)deep(5000));
    resource_limits();
    run_out_of_stack();
    return 0;
}
