/* A program for a debugger: what it does its first argument says. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

long total;
volatile long watched, counter;
volatile int go_on;
const char constant[] = "constant";

long add(long a, long b) {
    total += a;
    return a + b;
}

long sum(long n) {
    long result = 0;
    for (long i = 0; i < n; i++) result = add(i, result);
    return result;
}

void spin(void) {
    for (long i = 0; i < 100; i++) counter += i;
}

void *run(void *unused) {
    while (!go_on) spin();
    return NULL;
}

void handler(int signal) { counter = signal; }

void crash(int *pointer) { *pointer = 1; }

int main(int argc, char **argv) {
    const char *mode = argv[1];
#define MODE(name) if (!strcmp(mode, name))
    MODE("sum") printf("%ld %s\n", sum(10), constant);
    MODE("watch") {
        watched = 5;
        total = watched;
        watched = 6;
        printf("%ld\n", watched);
    }
    MODE("endless") run(NULL);
    MODE("crash") {
        crash((int *)16);
        puts("not crashed");
    }
    MODE("signal") {
        signal(SIGUSR1, handler);
        counter = 0;
        raise(SIGUSR1);
        printf("got %ld\n", counter);
    }
    MODE("read") {
        char byte = 0;
        long got = read(0, &byte, 1);
        printf("%ld %c\n", got, byte);
    }
    MODE("fork") {
        int status;
        if (fork() == 0) _exit(sum(4));
        wait(&status);
        printf("child %d\n", WEXITSTATUS(status));
    }
    MODE("execute") execl(argv[0], argv[0], "sum", NULL);
    MODE("threads") {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, NULL);
        run(NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        puts("joined");
    }
    return 3;
}
