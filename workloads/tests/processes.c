/* Processes: fork, wait, pipes between them, execve of itself, exit statuses. qemu-alpha 7.2 hands
 * execve to the host, which cannot execute an Alpha program unless binfmt_misc is set up. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void show_status(const char *what, pid_t child) {
    int status = -1;
    int same = waitpid(child, &status, 0) == child;
    printf("%s: %d, %s %d\n", what, same, WIFEXITED(status) ? "exited" : "signalled",
           WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

static pid_t forked(void) {
    fflush(stdout);
    return fork();
}

static void statuses(void) {
    static const int codes[] = {0, 1, 42, 255, 256 + 7};
    for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++) {
        pid_t child = forked();
        if (child == 0) _exit(codes[i]);
        show_status("status", child);
    }
    errno = 0;
    pid_t none = wait(NULL);
    printf("no child: %d %s\n", (int)none, strerror(errno));
}

static void memory(void) {
    int private = 1, *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *shared = 1;
    pid_t parent = getpid(), child = forked();
    if (child == 0) {
        private = *shared = 2;
        _exit(getppid() == parent && getpid() != parent ? private : 99);
    }
    show_status("child's view", child);
    printf("private %d, shared %d\n", private, *shared);
}

static void pipes(void) {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0) puts("no pipe");
    pid_t child = forked();
    if (child == 0) {
        char byte;
        close(down[1]);
        close(up[0]);
        while (read(down[0], &byte, 1) == 1) {
            byte = (char)(byte - 32);
            if (write(up[1], &byte, 1) != 1) _exit(1);
        }
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    char answer[32] = "";
    if (write(down[1], "upper case", 10) != 10) puts("not written");
    close(down[1]);
    size_t size = 0;
    for (ssize_t got; (got = read(up[0], answer + size, sizeof answer - 1 - size)) > 0;) size += (size_t)got;
    close(up[0]);
    printf("%zu %.5s\n", size, answer);
    show_status("piped", child);
}

static void executing(const char *self) {
    char *arguments[] = {"processes", "again", "with spaces ", "", NULL}, *environment[] = {"COLOUR=blue", NULL};
    pid_t child = forked();
    if (child == 0) {
        execve(self, arguments, environment);
        _exit(99);
    }
    show_status("[not qemu] executed", child);
    child = forked();
    if (child == 0) {
        execve("/missing", arguments, environment);
        puts(strerror(errno));
        execve("/", arguments, environment);
        puts(strerror(errno));
        fflush(stdout);
        _exit(3);
    }
    show_status("not executed", child);
}

static void waiting(void) {
    int ends[2], status;
    char byte = 0;
    if (pipe(ends) != 0) puts("no pipe");
    pid_t child = forked();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 1 ? byte : 99);
    }
    printf("still running: %d\n", (int)waitpid(child, &status, WNOHANG));
    byte = 5;
    if (write(ends[1], &byte, 1) != 1) puts("not written");
    show_status("let go", child);
    close(ends[0]);
    close(ends[1]);
}

static void at_exit(void) { puts("at exit"); }

int main(int argc, char **argv) {
    if (argc > 1) {
        for (int i = 0; i < argc; i++) printf("%s[%s] ", i == 0 ? "[not qemu] " : "", argv[i]);
        int count = 0;
        while (environ[count] != NULL) count++;
        printf("%s %d\n", getenv("COLOUR"), count);
        return 17;
    }
    statuses();
    memory();
    pipes();
    executing(argv[0]);
    waiting();
    atexit(at_exit);
    exit(4);
}
