/* Flags of clone: each either has its effect or is refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(65536)));
static volatile int seen;
static int identifier;

static long begin(unsigned long flags, int (*body)(void *)) {
    return clone(body, stack + sizeof stack, (int)flags, NULL, &identifier, NULL, NULL);
}

static int nothing(void *unused) { return 7; }

/* What is refused, and why. */
static void refused(const char *what, unsigned long flags) {
    long child = begin(flags, nothing);
    printf("%s: %s\n", what, child < 0 ? strerror(errno) : "begins");
    if (child > 0) waitpid(child, NULL, __WALL);
}

static int close_one(void *unused) {
    close(40);
    return 0;
}
static int change_directory(void *unused) { return chdir("/"); }
static int change_handler(void *unused) { return signal(SIGUSR1, SIG_IGN) == SIG_ERR; }
static int store(void *unused) {
    seen = 1;
    return 0;
}

/* 1 if the child that begins shares what `is_changed` sees, or does not begin. */
static int shares(unsigned long flags, int (*body)(void *), int (*is_changed)(void)) {
    long child = begin(flags, body);
    if (child < 0) return errno == EINVAL;
    if (waitpid(child, NULL, __WALL) != child) return -1;
    return is_changed();
}

static int is_closed(void) { return fcntl(40, F_GETFD) < 0; }
static int is_elsewhere(void) {
    char path[4096];
    return getcwd(path, sizeof path) && strcmp(path, "/") == 0;
}
static int is_ignored(void) {
    struct sigaction action;
    sigaction(SIGUSR1, NULL, &action);
    return action.sa_handler == SIG_IGN;
}
static int is_stored(void) { return seen; }

static void sharing(void) {
    dup2(1, 40);
    printf("files: %d\n", shares(CLONE_FILES | SIGCHLD, close_one, is_closed));
    dup2(1, 40);
    printf("files, waited for: %d\n", shares(CLONE_FILES | CLONE_VM | CLONE_VFORK | SIGCHLD, close_one, is_closed));
    dup2(1, 40);
    printf("not files: %d\n", shares(SIGCHLD, close_one, is_closed));
    close(40);
    printf("directory: %d\n", shares(CLONE_FS | SIGCHLD, change_directory, is_elsewhere));
    printf("handlers: %d\n", shares(CLONE_VM | CLONE_SIGHAND | CLONE_VFORK | SIGCHLD, change_handler, is_ignored));
    printf("memory: %d\n", shares(CLONE_VM | SIGCHLD, store, is_stored));
    seen = 0;
    printf("no memory: %d\n", shares(CLONE_VFORK | SIGCHLD, store, is_stored));
}

/* The signal that says that a child has ended, and a descriptor that stands for it. */
static void ends(void) {
    long child = begin(SIGUSR2, nothing);
    printf("another signal: %d\n", child < 0 ? errno == EINVAL : waitpid(child, NULL, 0) < 0 && errno == ECHILD);
    if (child > 0) waitpid(child, NULL, __WALL);
    child = begin(CLONE_PIDFD | SIGCHLD, nothing);
    struct pollfd entry = {identifier, POLLIN};
    int ready = poll(&entry, 1, 10000), status = 0;
    printf("descriptor: %d %d %d [not qemu]\n", child > 0, fcntl(identifier, F_GETFD), ready == 1 && entry.revents & POLLIN);
    close(identifier);
    printf("ended: %d", waitpid(child, &status, 0) == child);
    printf(" %d [not qemu]\n", WEXITSTATUS(status));
    child = begin(CLONE_PARENT_SETTID | SIGCHLD, nothing);
    printf("identifier: %d [not qemu]\n", identifier == child);
    waitpid(child, NULL, 0);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGUSR2, SIG_IGN);
    refused("handlers without memory", CLONE_SIGHAND | SIGCHLD);
    refused("a thread without handlers", CLONE_THREAD | CLONE_VM);
    refused("a thread without memory", CLONE_THREAD | CLONE_SIGHAND);
    refused("file systems and a new one", CLONE_FS | CLONE_NEWNS | SIGCHLD);
    refused("file systems and new users", CLONE_FS | CLONE_NEWUSER | SIGCHLD);
    refused("a thread among new processes", CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_NEWPID);
    refused("two places for one number", CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD);
    refused("semaphores and new ones", CLONE_SYSVSEM | CLONE_NEWIPC | SIGCHLD);
    refused("a plain one", SIGCHLD);
    sharing();
    ends();
    return 0;
}
