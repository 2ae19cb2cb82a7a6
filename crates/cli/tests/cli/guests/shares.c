/* A child that closes a descriptor for its parent too, if it may begin. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(65536)));

static int close_one(void *unused) { return close(40); }

int main(void) {
    dup2(1, 40);
    pid_t child = clone(close_one, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
    if (child < 0) {
        puts(strerror(errno));
        return 0;
    }
    int status;
    waitpid(child, &status, 0);
    puts(fcntl(40, F_GETFD) < 0 && status == 0 ? "shared" : "not shared");
    return 0;
}
