/* Prints into its buffer and past it, has a child that dies, and dies: by the signal, or the exit, that is asked
 * for. What stands in a buffer then is lost. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    int how = count > 1 ? atoi(words[1]) : 0;
    printf("flushed before the child\n");
    fflush(stdout);
    if (fork() == 0) {
        printf("in the child's buffer\n");
        write(1, "the child's\n", 12);
        abort();
    }
    wait(NULL);
    for (int i = 0; i < 3000; i++) printf("line %d\n", i);
    write(1, "past the buffer\n", 16);
    if (how == 0) _exit(0);
    raise(how);
    return 0;
}
