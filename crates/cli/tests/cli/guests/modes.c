/* A program that does what its first argument says: ends well or badly, and in between works in ways
   whose counts are known. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

unsigned long hits = 0, misses = 0;

/* Loads and stores of 2 bytes: byte and word instructions, where there are any. */
FUNCTION int work(int n) {
    volatile short sum = 0;
    for (int i = 0; i < n; i++) sum += i;
    hits += 1;
    return sum;
}
FUNCTION int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
FUNCTION int never(int n) { return n * 3 + getpid(); }
FUNCTION void null_pointer(int *pointer) { *pointer = 1; }
FUNCTION void no_instruction(void) { __asm__ volatile(".long 0x04000000"); }
FUNCTION long divide(long a, volatile long b) { return a / b; }
FUNCTION void stop(void) { abort(); }

static void close_from(int first) {
    for (int descriptor = first; descriptor < 1024; descriptor++) close(descriptor);
}

static void redirect(const char *path) {
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    dup2(file, 1);
    dup2(file, 2);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    const char *what = argc > 2 ? argv[2] : "";
    int sum = 0;
#define MODE(name) else if (!strcmp(mode, name))
    if (argc < 0) never(0);
    MODE("work") for (int i = 0; i < 200; i++) sum += work(20);
    MODE("long") for (int i = 0; i < 30000; i++) sum += work(20);
    MODE("calls") for (int i = 0; i < atoi(what); i++) sum += work(20) + (getppid() < 0);
    MODE("slow") for (int i = 0; i < 10; i++) sum += work(20) + usleep(100000);
    MODE("grow") for (int i = 0; i < 20; i++) sum += work(i);
    MODE("factorial") for (int i = 0; i < 200; i++) sum += factorial(5);
    MODE("endless") for (;;) work(10);
    MODE("lines") {
        while (puts("line") >= 0) {}
        return 9;
    }
    MODE("null") null_pointer((int *)(argc - 2L));
    MODE("illegal") no_instruction();
    MODE("divide") sum = divide(argc, argc - 2);
    MODE("abort") stop();
    MODE("raise") raise(atoi(what));
    MODE("exit") return atoi(what);
    MODE("arguments") for (int i = 1; i < argc; i++) printf("[%s]\n", argv[i]);
    MODE("copy") {
        char buffer[100];
        for (ssize_t n; (n = read(0, buffer, sizeof buffer)) > 0;) write(1, buffer, n);
        fputs("to standard error\n", stderr);
        return 3;
    }
    MODE("close") { work(1); close_from(0); return 0; }
    MODE("close-streams") { work(1); close(0); close(1); close(2); return 7; }
    MODE("redirect") { work(1); redirect(what); puts("redirected"); fflush(stdout); return 7; }
    MODE("elsewhere") { work(1); umask(0777); return chdir("/") < 0; }
    MODE("lost") { chdir("/"); null_pointer((int *)(argc - 2L)); }
    MODE("alarm") { work(1); alarm(1); fcntl(1, F_SETFL, O_NONBLOCK); return 0; }
    printf("%d\n", sum);
    return 0;
}
