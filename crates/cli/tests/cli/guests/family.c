// Processes of each kind, which do known work: forked, executing another program, with threads, killed.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

volatile long sum;

__attribute__((noinline)) void work(long n) {
    for (long i = 0; i < n; i++) sum += i;
}

__attribute__((noinline)) void request(const char *what, long n) {
    work(n);
}

__attribute__((noinline)) void begin_transaction(void) { work(10); }
__attribute__((noinline)) void statement(const char *text) { work(strlen(text)); }
__attribute__((noinline)) void mark_payment(void) { __asm__ volatile(""); }
__attribute__((noinline)) void commit_transaction(void) { work(1000); }

static void *thread(void *n) {
    work((long)n);
    return NULL;
}

// The same again and again, until the parent ends.
static void *requests(void *unused) {
    for (;;) {
        request("again", 20000);
        usleep(500);
    }
    return unused;
}

static int ended(int process) {
    int status;
    waitpid(process, &status, 0);
    return status;
}

// Children with requests, ended in their order.
static void serve(void) {
    for (int child = 1; child <= 3; child++) {
        int process = fork();
        if (process == 0) {
            work(10000 * child);
            for (int i = 0; i < child; i++) request(child & 1 ? "odd one" : "even one", 500 * child);
            _exit(child);
        }
        ended(process);
    }
}

// Transactions of several calls; the last one is left.
static void transactions(void) {
    for (int i = 0; i < 5; i++) {
        begin_transaction();
        if (i == 3) mark_payment();
        statement("select");
        statement(i & 1 ? "update branches" : "insert");
        if (i < 4) commit_transaction();
    }
    begin_transaction();
    commit_transaction();
}

// The child waits in a system call when it is killed.
static void kill_waiting(int sign) {
    int pipes[2], ready[2];
    if (pipe(pipes) || pipe(ready)) exit(1);
    int process = fork();
    if (process < 0) exit(1);
    char byte = 0;
    if (process == 0) {
        work(50000);
        close(pipes[1]);
        write(ready[1], &byte, 1);
        read(pipes[0], &byte, 1);
        read(pipes[0], &byte, 1);
        _exit(1);
    }
    close(pipes[0]);
    read(ready[0], &byte, 1);
    // In a system call since it was seen to sleep again and again: what observes it may make it wait before.
    char path[40], state = 0;
    for (int tries = 0, sleeps = 0; tries < 1000 && sleeps < 5; tries++, sleeps = state == 'S' ? sleeps + 1 : 0) {
        usleep(10000);
        snprintf(path, sizeof path, "/proc/%d/stat", process);
        FILE *file = fopen(path, "r");
        if (file) {
            char line[512];
            if (fgets(line, sizeof line, file)) state = strrchr(line, ')')[2];
            fclose(file);
        }
    }
    kill(process, sign);
    ended(process);
    close(pipes[1]);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "serve";
    if (!strcmp(what, "serve")) serve();
    if (!strcmp(what, "transactions")) transactions();
    if (!strcmp(what, "killed")) kill_waiting(SIGKILL);
    if (!strcmp(what, "ended")) kill_waiting(SIGTERM);
    if (!strcmp(what, "work")) work(70000);
    if (!strcmp(what, "alike")) {
        for (int child = 0; child < 3; child++) {
            int process = fork();
            if (process == 0) {
                request("the same", 20000);
                _exit(0);
            }
            ended(process);
        }
    }
    if (!strcmp(what, "executes")) {
        int process = fork();
        if (process == 0) {
            execl(words[0], words[0], "work", (char *)NULL);
            _exit(99);
        }
        ended(process);
    }
    if (!strcmp(what, "requests")) {
        if (fork() == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_t other;
        pthread_create(&other, NULL, requests, NULL);
        requests(NULL);
    }
    if (!strcmp(what, "threads")) {
        pthread_t threads[3];
        for (long i = 0; i < 3; i++) pthread_create(threads + i, NULL, thread, (void *)(20000 * (i + 1)));
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    }
    if (!strcmp(what, "waits")) {
        int process = fork();
        work(30000);
        if (process == 0) for (;;) pause();
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    }
    return 0;
}
