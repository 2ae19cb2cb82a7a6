/* A program for whole systems: works, uses files and processes, or faults, and exits with status 7. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Some million instructions of the program and the C library. */
static long work(void) {
    static int numbers[100000];
    unsigned seed = 1;
    for (int i = 0; i < 100000; i++) numbers[i] = (seed = seed * 1664525u + 1013904223u) >> 8;
    qsort(numbers, 100000, sizeof *numbers, compare);
    return numbers[500];
}

static int copy(const char *from, const char *to) {
    char part[100];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0644);
    if (in < 0 || out < 0) return 1;
    for (ssize_t n; (n = read(in, part, sizeof part)) > 0;)
        if (write(out, part, n) != n) return 1;
    return 0;
}

/* A unit of work, with a system call. */
__attribute__((noinline)) long step(long number) {
    volatile long sum = 0;
    for (long i = 0; i < 100 * number; i++) sum += i;
    return sum + getppid();
}

/* Makes a file and waits for ever. */
static void wait_for_ever(const char *path) {
    close(open(path, O_WRONLY | O_CREAT, 0644));
    for (;;) pause();
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "work")) printf("%ld\n", work());
    if (!strcmp(what, "copy") && copy(arguments[2], arguments[3])) return 1;
    if (!strcmp(what, "calls")) for (int i = 0; i < 1000; i++) getppid();
    if (!strcmp(what, "unaligned")) {
        volatile int one = 1;
        volatile long *number = (volatile long *)((char *)malloc(100) + one);
        for (int i = 0; i < 50; i++) *number = i;
    }
    if (!strcmp(what, "fork")) {
        for (int i = 0; i < 3; i++)
            if (fork() == 0) _exit(work() != 0);
        while (wait(NULL) > 0) {}
    }
    if (!strcmp(what, "steps")) for (long i = 1; i <= 4; i++) step(i);
    if (!strcmp(what, "echo")) for (int c; (c = getchar()) != EOF;) putchar(c);
    if (!strcmp(what, "wait")) wait_for_ever(arguments[2]);
    if (!strcmp(what, "is-there")) printf("%d %d\n", access(arguments[2], F_OK), (int)getuid());
    if (!strcmp(what, "signal")) raise(SIGTERM);
    fprintf(stderr, "done\n");
    return 7;
}
