/* What the tests of the Python package run: each greeting is a unit of work. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void greet(int number) {
    printf("hello %d\n", number);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    for (int i = 0; i < 40; i++) greet(i);
    if (strcmp(how, "status") == 0) return 3;
    if (strcmp(how, "crash") == 0) *(volatile int *)8 = 1;
    if (strcmp(how, "terminate") == 0) raise(SIGTERM);
    if (strcmp(how, "forever") == 0)
        for (int i = 40;; i++) greet(i);
    /* A child that goes on when we have ended, and closes nothing. */
    if (strcmp(how, "orphan") == 0 && fork() == 0) sleep(60);
    if (strcmp(how, "environment") == 0) return getenv("PATHLENGTH_MESSAGES") != NULL;
    return 0;
}
