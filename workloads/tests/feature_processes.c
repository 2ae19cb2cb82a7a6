/* Processes: forks out of hot loops and of handlers, programs started in every way (this one, the
 * host's, scripts), what they inherit, and every way to wait for them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char self[4096];

static pid_t forked(void) { fflush(stdout); return fork(); }

static void show(const char *what, pid_t child) {
    int status = 0;
    pid_t found;
    while ((found = waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
    if (found != child || child < 0) printf("%s: lost, %s\n", what, strerror(errno));
    else if (WIFSIGNALED(status)) printf("%s: %s\n", what, strsignal(WTERMSIG(status)));
    else printf("%s: exited %d\n", what, WEXITSTATUS(status));
}

/* Forks in the midst of a loop that is hot; both sides go on with what they had. */
static __attribute__((noinline)) uint64_t churn(uint64_t state, int rounds, int fork_at, pid_t *child) {
    uint64_t history[16] = {0};
    for (int i = 0; i < rounds; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        history[i % 16] ^= state >> 7;
        if (i == fork_at) *child = fork();
    }
    for (int i = 0; i < 16; i++) state ^= history[i];
    return state;
}

static void forks_out_of_loops(void) {
    pid_t child = -1;
    int same = 0;
    uint64_t expected = churn(1, 60000, -1, &child);
    uint64_t *results = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    for (int i = 0; i < 20; i++) {
        uint64_t found = churn(1, 60000, 3000 * i, &child);
        if (child == 0) {
            results[i] = found;
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        same += found == expected && results[i] == expected && status == 0;
    }
    printf("forks out of loops: %d\n", same);
    /* Generations: each child forks the next. */
    uint64_t state = 7;
    int generation = 0;
    for (pid_t next; generation < 12; generation++) {
        state = churn(state, 5000, 2500, &next);
        if (next > 0) {
            int status;
            waitpid(next, &status, 0);
            if (generation > 0) _exit(WEXITSTATUS(status));
            printf("generations: %d\n", WEXITSTATUS(status));
            return;
        }
    }
    _exit(state % 251);
}

/* A handler forks while the loop it interrupts runs; the child returns into the loop too. */
static volatile sig_atomic_t forks, in_child;
static void fork_here(int signal) {
    (void)signal;
    if (forks++ < 5 && fork() == 0) in_child = 1;
}

static void forks_out_of_handlers(void) {
    struct sigaction action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    fflush(stdout);
    setitimer(ITIMER_REAL, &every, NULL);
    uint64_t count = 0;
    while (forks < 5 && !in_child) count++;
    if (in_child) _exit(count > 0 || forks > 0 ? 21 : 22);
    setitimer(ITIMER_REAL, &off, NULL);
    int right = 0, status;
    while (wait(&status) > 0) right += WIFEXITED(status) && WEXITSTATUS(status) == 21;
    printf("forks out of handlers: %d\n", right);
    signal(SIGALRM, SIG_DFL);
}

/* The parent waits in vfork until its child is gone; they share memory until then. */
static void vforks(void) {
    volatile int shared = 0;
    int right = 0;
    fflush(stdout);
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            if (i % 2) execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
            _exit(i % 2 ? 99 : 5);
        }
        int status;
        waitpid(child, &status, 0);
        right += WIFEXITED(status) && WEXITSTATUS(status) == (i % 2 ? 4 : 5);
    }
    printf("vforks: %d %d\n", right, shared);
}

static void script(const char *name, const char *text, int mode) {
    FILE *file = fopen(name, "w");
    fputs(text, file);
    fclose(file);
    chmod(name, mode);
}

static void run(const char *what, const char *path, char *const *arguments) {
    pid_t child = forked();
    if (child == 0) {
        execve(path, arguments, (char *[]){"COLOUR=green", "PATH=/usr/bin:/bin", NULL});
        printf("%s\n", strerror(errno));
        fflush(stdout);
        _exit(98);
    }
    show(what, child);
}

static void programs(void) {
    char text[5000];
    run("a host's program", "/bin/echo", (char *[]){"echo", "two words", "", "x", NULL});
    run("a shell", "/bin/sh", (char *[]){"sh", "-c", "echo $0 $COLOUR $#; exit 7", "zero", "one", NULL});
    run("without a name", "/bin/sh", (char *[]){"", "-c", "exit 2", NULL});
    script("good", "#!/bin/sh\necho script $# \"$@\" $COLOUR\nexit 3\n", 0755);
    run("a script", "./good", (char *[]){"good", "a b", "c", NULL});
    script("option", "#!/bin/sh -e\nfalse\necho not reached\n", 0755);
    run("an option", "./option", (char *[]){"option", NULL});
    script("nested", "#!./good\n", 0755);
    run("a script's script", "./nested", (char *[]){"nested", "d", NULL});
    script("itself", "#!./itself\n", 0755);
    run("its own interpreter", "./itself", (char *[]){"itself", NULL});
    script("missing", "#!/nonexistent/interpreter\n", 0755);
    run("a missing interpreter", "./missing", (char *[]){"missing", NULL});
    script("plain", "exit 5\n", 0755);
    run("no #!", "./plain", (char *[]){"plain", NULL});
    script("forbidden", "#!/bin/sh\n", 0644);
    run("not executable", "./forbidden", (char *[]){"forbidden", NULL});
    script("empty", "", 0755);
    run("empty", "./empty", (char *[]){"empty", NULL});
    script("damaged", "\177ELF and no more", 0755);
    run("damaged", "./damaged", (char *[]){"damaged", NULL});
    run("a directory", "/", (char *[]){"/", NULL});
    run("no such file", "/nonexistent", (char *[]){"nonexistent", NULL});
    sprintf(text, "%4500d", 0);
    for (char *c = text; *c; c++) *c = 'x';
    run("too long a name", text, (char *[]){"x", NULL});
}

/* What a program inherits and what not. */
static int inspect(void) {
    sigset_t mask, pending;
    struct sigaction ignored, handled;
    struct rlimit limit;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigpending(&pending);
    sigaction(SIGUSR1, NULL, &ignored);
    sigaction(SIGUSR2, NULL, &handled);
    getrlimit(RLIMIT_NOFILE, &limit);
    stack_t stack;
    sigaltstack(NULL, &stack);
    printf("[not qemu] masked %d %d, pending %d, ignored %d, handled %d, files %d, open %d %d, alternate stack %d, %s\n",
           sigismember(&mask, SIGTERM), sigismember(&mask, SIGHUP), sigismember(&pending, SIGTERM),
           ignored.sa_handler == SIG_IGN, handled.sa_handler != SIG_DFL, (int)limit.rlim_cur, fcntl(50, F_GETFD),
           fcntl(51, F_GETFD), !(stack.ss_flags & SS_DISABLE), getenv("COLOUR"));
    return 31;
}

static void nothing(int signal) { (void)signal; }

static void inherited(void) {
    sigset_t set;
    struct rlimit limit;
    pid_t child = forked();
    if (child == 0) {
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGTERM);
        signal(SIGUSR1, SIG_IGN);
        signal(SIGUSR2, nothing);
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 77;
        setrlimit(RLIMIT_NOFILE, &limit);
        dup2(1, 50);
        dup3(1, 51, O_CLOEXEC);
        stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
        sigaltstack(&stack, NULL);
        execve(self, (char *[]){"program", "inspect", NULL}, (char *[]){"COLOUR=red", NULL});
        _exit(97);
    }
    show("[not qemu] inherits", child);
}

static void spawned(void) {
    pid_t child;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t set;
    char line[200] = "";
    int ends[2];
    if (pipe(ends)) abort();
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &set);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    fflush(stdout);
    int error = posix_spawnp(&child, "sh", &actions, &attributes, (char *[]){"sh", "-c", "echo spawned; cat", NULL},
                             environ);
    close(ends[1]);
    long got = read(ends[0], line, sizeof line - 1);
    printf("spawn: %d %ld %s", error, got, line);
    show("spawned", child);
    /* What vfork's child writes its parent sees: there the error is. qemu-alpha gives it a copy. */
    error = posix_spawn(&child, "/nonexistent", NULL, NULL, (char *[]){"x", NULL}, environ);
    printf("[not qemu] no such program: %s\n", strerror(error));
    fflush(stdout);
    FILE *output = popen("echo one; echo two; exit 9", "r");
    while (fgets(line, sizeof line, output)) printf("popen: %s", line);
    printf("closed: %d\n", WEXITSTATUS(pclose(output)));
    fflush(stdout);
    FILE *input = popen("tr a-z A-Z", "w");
    fputs("to upper case\n", input);
    printf("closed: %d\n", WEXITSTATUS(pclose(input)));
    fflush(stdout);
    printf("system: %d", WEXITSTATUS(system("exit 11")));
    int status = system("kill -TERM $$");
    printf(" %d %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, system(NULL) != 0);
}

/* Ways of waiting: for any, for a group, without waiting, without reaping, for stops. */
static void waiting(void) {
    siginfo_t information;
    struct rusage usage;
    int status;
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = forked();
        if (children[i] == 0) {
            for (;;) pause();
        }
        setpgid(children[i], i == 0 ? 0 : children[0]);
    }
    printf("none yet: %d\n", waitpid(-children[0], &status, WNOHANG));
    kill(children[1], SIGKILL);
    printf("group: %d", waitpid(-children[0], &status, 0) == children[1]);
    printf(" %d\n", WTERMSIG(status) == SIGKILL);
    kill(children[2], SIGSTOP);
    printf("stopped: %d", waitid(P_PGID, children[0], &information, WSTOPPED));
    printf(" %d %d %d\n", information.si_pid == children[2], information.si_code == CLD_STOPPED,
           information.si_status == SIGSTOP);
    kill(children[2], SIGCONT);
    printf("continued: %d", waitpid(children[2], &status, WCONTINUED) == children[2]);
    printf(" %d\n", WIFCONTINUED(status));
    kill(-children[0], SIGTERM);
    printf("not reaped: %d", waitid(P_PID, children[0], &information, WEXITED | WNOWAIT));
    printf(" %d %d\n", information.si_code == CLD_KILLED, information.si_status == SIGTERM);
    printf("usage: %d\n", wait4(children[0], &status, 0, &usage) == children[0]);
    show("last", children[2]);
    errno = 0;
    printf("[not qemu] nobody: %d", wait(&status));
    printf(" %s\n", strerror(errno));
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT}, before;
    sigaction(SIGCHLD, &action, &before);
    if (forked() == 0) _exit(0);
    errno = 0;
    int found = wait(&status); /* qemu-alpha knows no SA_NOCLDWAIT */
    printf("[not qemu] no zombies: %d %s\n", found, strerror(errno));
    sigaction(SIGCHLD, &before, NULL);
    /* An orphan's parent is another. */
    int ends[2];
    char byte = 0;
    if (pipe(ends)) abort();
    if (forked() == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            while (getppid() == parent) usleep(500);
            byte = 'o';
            if (write(ends[1], &byte, 1) != 1) _exit(1);
        }
        _exit(0);
    }
    wait(NULL);
    long got = read(ends[0], &byte, 1);
    printf("orphan: %ld %c\n", got, byte);
    pid_t session = forked();
    if (session == 0) _exit(setsid() == getpid() && getpgrp() == getpid() && getsid(0) == getpid() ? 6 : 7);
    show("session", session);
}

/* A process that has a handler for a signal ends by itself, whenever the signal comes. */
static void ends_amid_signals(void) {
    int others = 0;
    signal(SIGTERM, nothing);
    for (int i = 0; i < 100; i++) {
        int status = 0;
        pid_t child = forked();
        if (child == 0) _exit(7);
        while (waitpid(child, &status, WNOHANG) == 0) kill(child, SIGTERM);
        others += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
    }
    signal(SIGTERM, SIG_DFL);
    printf("amid signals %d of 100 ended otherwise\n", others);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "inspect") == 0) return inspect();
    if (realpath(argv[0], self) == NULL) return 96;
    forks_out_of_loops();
    forks_out_of_handlers();
    vforks();
    programs();
    inherited();
    spawned();
    waiting();
    ends_amid_signals();
    return 0;
}
