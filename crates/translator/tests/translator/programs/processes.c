/* Threads and processes: prints the same in every run. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static __thread long own;

static void *work(void *argument) {
    for (int i = 0; i < 20000; i++) {
        own += i % 7;
        pthread_mutex_lock(&lock);
        total += i;
        pthread_mutex_unlock(&lock);
    }
    return (void *)own;
}

int main(int count, char **words) {
    freopen(words[1], "w", stdout);
    char path[4096] = "";
    readlink("/proc/self/exe", path, sizeof path - 1);
    printf("exe %d\n", strcmp(path, words[0]) == 0);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[6];
        long sum = 0;
        void *result;
        for (int i = 0; i < 6; i++) pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 6; i++) pthread_join(threads[i], &result), sum += (long)result;
        if (round % 10 == 0) printf("threads %ld %ld\n", sum, total);
    }
    fflush(stdout);
    int status;
    pid_t child = fork();
    if (!child) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, &result);
        _exit((long)result & 63);
    }
    waitpid(child, &status, 0);
    printf("fork %x\n", status);
    child = vfork();
    if (!child) {
        execl("/bin/sh", "sh", "-c", "exit 9", (char *)0);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("vfork %x\n", status);
    char *arguments[] = { "sh", "-c", "exit 4", 0 }, *environment[] = { 0 };
    printf("spawn %d", posix_spawn(&child, "/bin/sh", 0, 0, arguments, environment));
    waitpid(child, &status, 0);
    printf(" %x\n", status);
    printf("no such program %d\n", posix_spawn(&child, "/nonexistent", 0, 0, arguments, environment) == ENOENT);
    fflush(stdout);
    printf("system %x\n", system("kill -9 $$"));
    char line[64] = "";
    FILE *pipe = popen("echo from a pipe", "r");
    fgets(line, sizeof line, pipe);
    pclose(pipe);
    printf("%send\n", line);
    return 0;
}
