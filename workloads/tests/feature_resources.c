/* flags: -pthread */
/* not under qemu-alpha 7.2: the limits hit qemu-alpha itself */
/* Limits of resources: what happens when the program reaches them, and what a program that it starts inherits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char self[4096];
static volatile sig_atomic_t seen;
static sigjmp_buf back;
static void note(int signal) { seen = signal; }
static void leave(int signal) { seen = signal; siglongjmp(back, 1); }

static void set(int resource, rlim_t soft) {
    struct rlimit limit;
    getrlimit(resource, &limit);
    limit.rlim_cur = soft;
    if (setrlimit(resource, &limit)) printf("not set: %s\n", strerror(errno));
}

static void tell(const char *what, int failed) {
    int error = errno;
    printf("%s: %s\n", what, failed ? strerror(error) : "good");
}

static void show(const char *what, pid_t child) {
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("%s: %s\n", what, strsignal(WTERMSIG(status)));
    else printf("%s: exited %d\n", what, WEXITSTATUS(status));
}

/* Each part runs in a process of its own, whose limits end with it. */
static void apart(const char *what, void (*part)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        part();
        fflush(stdout);
        _exit(0);
    }
    show(what, child);
}

static void *map(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void address_space(void) {
    enum { CHUNK = 64 << 20 };
    set(RLIMIT_AS, 1l << 30);
    int count = 0;
    void *chunks[64];
    while (count < 64 && (chunks[count] = map(CHUNK))) count++;
    tell("address space", count < 64);
    printf("chunks: %d\n", count >= 12 && count <= 15);
    tell("malloc", malloc(CHUNK) == NULL);
    tell("grow", mremap(chunks[0], CHUNK, 3l * CHUNK, MREMAP_MAYMOVE) == MAP_FAILED);
    munmap(chunks[1], CHUNK);
    munmap(chunks[2], CHUNK);
    void *again = malloc(CHUNK);
    tell("malloc", again == NULL);
    set(RLIMIT_AS, RLIM_INFINITY);
    tell("unlimited", map(4l << 30) == NULL);
    pid_t child = fork();
    if (child == 0) _exit(9);
    show("fork", child);
}

static void data(void) {
    set(RLIMIT_DATA, 64 << 20);
    char *start = sbrk(0);
    tell("heap", sbrk(256 << 20) == (void *)-1);
    tell("small heap", sbrk(1 << 20) == (void *)-1);
    printf("grown: %d\n", (char *)sbrk(0) == start + (1 << 20));
}

static __attribute__((noinline)) long deep(long depth) {
    volatile char frame[1000];
    frame[depth % 1000] = 1;
    return depth == 0 ? 0 : deep(depth - 1) + frame[depth % 1000];
}

/* Another program finds the stack as large as its parent allowed. */
static void start_with_stack(rlim_t bytes, const char *depth) {
    char what[64];
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        set(RLIMIT_STACK, bytes);
        execl(self, "program", "deep", depth, (char *)NULL);
        _exit(97);
    }
    sprintf(what, "stack of %d MiB, %s frames", (int)(bytes >> 20), depth);
    show(what, child);
}

static void run_out(void) { deep(1l << 40); }

/* A stack grows as far as the limit of the moment allows. */
static void grow(void) {
    set(RLIMIT_STACK, 512l << 20);
    printf("grown: %ld\n", deep(400000));
}

static void files(void) {
    struct sigaction action = {.sa_handler = note};
    char block[4096] = "";
    int file = open("limited", O_CREAT | O_RDWR | O_TRUNC, 0600);
    sigaction(SIGXFSZ, &action, NULL);
    set(RLIMIT_FSIZE, 10000);
    for (int i = 0; i < 4; i++) {
        errno = 0;
        seen = 0;
        long written = write(file, block, sizeof block);
        printf("write: %ld %s, signal %d\n", written, strerror(errno), seen == SIGXFSZ);
    }
    seen = 0;
    tell("truncate", ftruncate(file, 20000));
    printf("signal: %d\n", seen == SIGXFSZ);
    signal(SIGXFSZ, SIG_IGN);
    tell("ignored", write(file, block, sizeof block) < 0);
    signal(SIGXFSZ, SIG_DFL);
    if (write(file, block, sizeof block) < 0) puts("not reached");
}

static void descriptors(void) {
    set(RLIMIT_NOFILE, 20);
    int last = 0, next, ends[2];
    while ((next = dup(1)) >= 0) last = next;
    tell("dup", next < 0);
    printf("last: %d\n", last);
    tell("open", open("/dev/null", O_RDONLY) < 0);
    tell("pipe", pipe(ends));
    tell("dup2", dup2(1, 30) < 0);
    close(last);
    tell("pipe", pipe(ends));
    tell("open", open("/dev/null", O_RDONLY) < 0);
    tell("a library's file", fopen("/etc/passwd", "r") == NULL);
}

/* A user's processes: forks and threads fail when there are enough. */
static void *wait_for_ever(void *unused) { for (;;) pause(); return unused; }

static void processes(void) {
    pid_t children[8];
    int count = 0;
    pthread_t thread;
    if (setgroups(0, NULL) || setgid(54321) || setuid(54321)) {
        puts("fork: Resource temporarily unavailable\nlimited: 1\nthread: Resource temporarily unavailable");
        return; /* only the superuser can become a user without other processes */
    }
    set(RLIMIT_NPROC, 5);
    while (count < 8 && (children[count] = fork()) >= 0) {
        if (children[count] == 0) for (;;) pause();
        count++;
    }
    tell("fork", count < 8);
    printf("limited: %d\n", count <= 4);
    int error = pthread_create(&thread, NULL, wait_for_ever, NULL);
    printf("thread: %s\n", strerror(error));
    for (int i = 0; i < count; i++) kill(children[i], SIGKILL), waitpid(children[i], NULL, 0);
}

static void time_of_processor(void) {
    struct sigaction action = {.sa_handler = leave};
    sigaction(SIGXCPU, &action, NULL);
    struct rlimit limit = {1, 3};
    setrlimit(RLIMIT_CPU, &limit);
    volatile long count = 0;
    if (sigsetjmp(back, 1) == 0) for (;;) count++;
    printf("processor time: %d %d\n", seen == SIGXCPU, count > 0);
}

static void setting(void) {
    struct rlimit limit = {10, 5}, old;
    tell("soft above hard", setrlimit(RLIMIT_NOFILE, &limit));
    tell("no such resource", getrlimit(99, &limit));
    tell("bad address", getrlimit(RLIMIT_CPU, (void *)8));
    limit = (struct rlimit){30, 40};
    tell("prlimit", prlimit(0, RLIMIT_NOFILE, &limit, &old));
    tell("prlimit", prlimit(getpid(), RLIMIT_NOFILE, NULL, &limit));
    printf("%d %d\n", (int)limit.rlim_cur, (int)limit.rlim_max);
    const int resources[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_SIGPENDING};
    for (int i = 0; i < 6; i++) {
        getrlimit(resources[i], &limit);
        limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > 123456 ? 123456 : limit.rlim_max;
        int set = setrlimit(resources[i], &limit), found = getrlimit(resources[i], &old);
        printf("resource %d: %d %d %d\n", i, set, found, old.rlim_cur == limit.rlim_cur && old.rlim_max == limit.rlim_max);
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3) {
        struct rlimit limit;
        getrlimit(RLIMIT_STACK, &limit);
        return deep(atol(argv[2])) == atol(argv[2]) ? limit.rlim_cur >> 20 : 95;
    }
    if (realpath(argv[0], self) == NULL) return 96;
    apart("setting", setting);
    apart("address space", address_space);
    apart("data", data);
    start_with_stack(64 << 20, "40000");
    start_with_stack(2 << 20, "500");
    start_with_stack(2 << 20, "40000");
    apart("stack", run_out);
    apart("growing stack", grow);
    apart("files", files);
    apart("descriptors", descriptors);
    apart("processes", processes);
    apart("processor time", time_of_processor);
    return 0;
}
