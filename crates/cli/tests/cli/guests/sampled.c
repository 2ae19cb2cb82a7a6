/* Functions whose shares of the instructions are known: one, two and four times the same loop. With a number of children, each
 * does the same; the first of them kills itself afterwards, by a signal that nobody can catch. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void one(long n)
{
    for (long i = 0; i < n; i++)
        sink += i;
}

__attribute__((noinline)) void two(long n)
{
    for (long i = 0; i < 2 * n; i++)
        sink += i;
}

__attribute__((noinline)) void four(long n)
{
    for (long i = 0; i < 4 * n; i++)
        sink += i;
}

__attribute__((noinline)) void all(long n)
{
    one(n);
    two(n);
    four(n);
    sink++;
}

static void work(long rounds)
{
    for (long i = 0; i < rounds; i++)
        all(1000);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    int children = argc > 2 ? atoi(argv[2]) : 0;
    for (int i = 0; i < children; i++) {
        if (fork() == 0) {
            work(rounds);
            if (i == 0)
                kill(getpid(), SIGKILL);
            return 0;
        }
    }
    work(rounds);
    while (wait(NULL) > 0) {
    }
    return 0;
}
