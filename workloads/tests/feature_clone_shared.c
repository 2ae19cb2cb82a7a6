/* Processes made by clone with flags that fork does not use: what they share, and how they end. */
/* flags: -pthread */
/* not under qemu-alpha 7.2: its clone does fork and threads only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(65536)));
static char *program;
static int ends[2], answers[2];

static pid_t begin(int flags, int (*body)(void *)) {
    pid_t child = clone(body, stack + sizeof stack, flags, NULL);
    if (child < 0) printf("clone %x: %s\n", flags, strerror(errno)), exit(1);
    return child;
}

/* The exit status of a child, whatever tells of it. */
static int status_of(pid_t child) {
    int status;
    if (waitpid(child, &status, __WALL) != child) return -errno;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int is_open(int number) { return fcntl(number, F_GETFD) >= 0; }
static void wait_for_byte(int *pipe) {
    char byte;
    while (read(pipe[0], &byte, 1) < 0 && errno == EINTR) {}
}
static void send_byte(int *pipe) { write(pipe[1], "x", 1); }

/* Descriptors. */
static int close_and_open(void *unused) {
    close(40);
    return dup2(1, 41) != 41;
}

static const long secret = 0x5ec2e7;
static long told;

/* Opens what is not a file of the host's, and stays until the parent has used it. */
static int open_special(void *unused) {
    told = 1997;
    sigset_t usr1;
    sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1);
    int signals = signalfd(-1, &usr1, 0), memory = open("/proc/self/mem", O_RDONLY);
    dup2(signals, 44), dup2(memory, 45);
    send_byte(answers);
    wait_for_byte(ends);
    return 0;
}

static int execute(void *unused) {
    char *arguments[] = {program, "executed", NULL};
    execv("/proc/self/exe", arguments);
    return 99;
}

static void descriptors(void) {
    dup2(1, 40);
    int status = status_of(begin(CLONE_FILES | SIGCHLD, close_and_open));
    printf("shared: %d, %d %d\n", status, is_open(40), is_open(41));
    close(41), dup2(1, 40);
    status = status_of(begin(CLONE_FS | SIGCHLD, close_and_open));
    printf("not shared: %d, %d %d\n", status, is_open(40), is_open(41));

    sigset_t usr1, before;
    sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, &before);
    pid_t child = begin(CLONE_FILES | SIGCHLD, open_special);
    wait_for_byte(answers);
    raise(SIGUSR1);
    struct signalfd_siginfo information = {0};
    long bytes = read(44, &information, sizeof information), here = 0;
    printf("signals of the child's: %ld %d\n", bytes, information.ssi_signo == SIGUSR1);
    bytes = pread(45, &here, sizeof here, (long)&told);
    printf("memory of the child's: %ld %ld, here %ld\n", bytes, here, told);
    send_byte(ends);
    printf("ended: %d\n", status_of(child));
    close(44), close(45);
    sigprocmask(SIG_SETMASK, &before, NULL);

    /* Another program has descriptors of its own. */
    dup2(1, 40), dup3(1, 42, O_CLOEXEC);
    status = status_of(begin(CLONE_FILES | SIGCHLD, execute));
    printf("executed: %d, %d %d %d\n", status, is_open(40), is_open(42), is_open(43));
    close(40), close(42);
}

static int executed(void) {
    int status = is_open(42) << 1 | is_open(40);
    close(40), dup2(1, 43);
    return status;
}

/* The directory and the mask of new files. */
static int change_both(void *unused) {
    umask(027);
    return chdir("/");
}

static void directory(const char *what, int flags) {
    char path[4096];
    int start = open(".", O_DIRECTORY);
    umask(022);
    int status = status_of(begin(flags, change_both));
    int is_root = getcwd(path, sizeof path) && strcmp(path, "/") == 0;
    printf("directory, %s: %d, %d %03o\n", what, status, is_root, umask(022));
    fchdir(start), close(start);
}

/* Undone semaphores. */
static int semaphore;
static int take(void *unused) {
    struct sembuf one = {0, 1, SEM_UNDO};
    return semop(semaphore, &one, 1) != 0;
}

static void semaphores(void) {
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    int status = status_of(begin(SIGCHLD, take));
    printf("undone: %d, %d\n", status, semctl(semaphore, 0, GETVAL));
    status = status_of(begin(CLONE_SYSVSEM | SIGCHLD, take));
    printf("not undone: %d, %d\n", status, semctl(semaphore, 0, GETVAL));
    semctl(semaphore, 0, IPC_RMID);
}

/* Signals of ends. */
static volatile int count;
static volatile siginfo_t last;
static void handler(int signal, siginfo_t *information, void *context) {
    count++;
    last = *information;
}

static int end_by_status(void *unused) { return 7; }
static int end_by_signal(void *unused) {
    raise(SIGUSR2);
    return 0;
}

static void end(const char *what, int signal, int (*body)(void *)) {
    count = 0;
    pid_t child = begin(signal, body);
    siginfo_t information = {0};
    /* It has ended, but is not gone. */
    waitid(P_PID, child, &information, WEXITED | WNOWAIT | __WALL);
    int plain = waitpid(child, NULL, WNOHANG);
    printf("%s: plain %d %d, clone %d %d,", what, plain == child, plain < 0 && errno == ECHILD, information.si_code,
           information.si_status == (body == end_by_status ? 7 : SIGUSR2));
    if (plain != child) printf(" %d", waitpid(child, NULL, __WCLONE) == child);
    printf(" signals %d", count);
    if (count) printf(": %d %d %d %d", last.si_signo == signal, last.si_code, last.si_pid == child, last.si_status == information.si_status);
    printf("\n");
}

static void ends_told(void) {
    int signals[] = {SIGCHLD, SIGUSR1, SIGURG, 40};
    for (int i = 0; i < 4; i++) {
        struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
        sigaction(signals[i], &action, NULL);
    }
    end("none", 0, end_by_status);
    end("SIGCHLD", SIGCHLD, end_by_status);
    end("SIGUSR1", SIGUSR1, end_by_status);
    end("SIGUSR1, killed", SIGUSR1, end_by_signal);
    end("SIGURG, killed", SIGURG, end_by_signal);
    end("real-time", 40, end_by_status);
    end("real-time, killed", 40, end_by_signal);
    end("no signal's number", 200, end_by_status);
}

/* A sibling. */
static pid_t oldest;
static int is_child_of_oldest(void *unused) { return getppid() == oldest; }

static void siblings(void) {
    oldest = getpid();
    pid_t middle = fork(), child;
    if (middle == 0) {
        child = begin(CLONE_PARENT | SIGCHLD, is_child_of_oldest);
        write(ends[1], &child, sizeof child);
        _exit(waitpid(child, NULL, 0) < 0 && errno == ECHILD ? 5 : 6);
    }
    read(ends[0], &child, sizeof child);
    printf("sibling: %d", status_of(middle));
    printf(" %d\n", status_of(child));
}

/* Signals that are sent while processes begin, to a process whose other threads are busy. */
static volatile int is_over, answered;
static void answer(int signal) {
    answered++;
    send_byte(answers);
}

static void *be_busy(void *unused) {
    while (!is_over) close(open("/proc/self/mem", O_RDONLY));
    return NULL;
}

static int be_as_busy(void *unused) {
    for (int i = 0; i < 3; i++) close(open("/proc/self/mem", O_RDONLY));
    return 3;
}

static void busy(void) {
    pthread_t threads[2];
    sigset_t all, before;
    sigfillset(&all);
    signal(SIGSYS, answer);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, be_busy, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    int clones = 0, right = 0;
    pid_t parent = getpid(), sender = fork();
    if (sender == 0) {
        for (int i = 0; i < 50; i++) {
            kill(parent, SIGSYS);
            wait_for_byte(answers);
        }
        _exit(0);
    }
    while (waitpid(sender, NULL, WNOHANG) == 0 || clones < 50) {
        right += status_of(begin(CLONE_FS | 0, be_as_busy)) == 3;
        clones++;
    }
    is_over = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("busy: %d, signals %d\n", right == clones, answered);
}

int main(int argc, char **argv) {
    if (argc > 1) return executed();
    program = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    pipe(ends), pipe(answers);
    descriptors();
    directory("shared", CLONE_FS | SIGCHLD);
    directory("not shared", CLONE_SYSVSEM | SIGCHLD);
    directory("shared, waited for", CLONE_FS | CLONE_VM | CLONE_VFORK | SIGCHLD);
    semaphores();
    ends_told();
    siblings();
    busy();
    return 0;
}
