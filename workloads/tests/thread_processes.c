/* flags: -pthread */
/* not under qemu-alpha 7.2: it loses threads when a program with threads forks. */
/* Threads and processes: fork by a thread, locks in memory that processes share, robust ones too,
 * another program in the place of a threaded one, and every way in which a threaded process ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *program;
static _Atomic int ready;
static volatile int *volatile nowhere = (volatile int *)8;

static void show(const char *what, pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) printf("%s: lost\n", what);
    else if (WIFSIGNALED(status)) printf("%s: %s\n", what, strsignal(WTERMSIG(status)));
    else printf("%s: exited %d\n", what, WEXITSTATUS(status));
}

static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument)) _exit(98);
    return thread;
}

/* The child of a fork has one thread, and everything works there: memory, locks, new threads. */
static void *idle(void *unused) { for (;;) pause(); return unused; }
static void *use_memory(void *stop) {
    while (!*(_Atomic int *)stop) free(malloc(1 + rand() % 100000));
    return NULL;
}
static void *add(void *sum) {
    for (int i = 0; i < 1000; i++) __atomic_fetch_add((long *)sum, i, __ATOMIC_RELAXED);
    return sum;
}

static void *fork_here(void *number) {
    long failures = 0;
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        if (child == 0) {
            long sum = 0;
            int same = syscall(SYS_gettid) == getpid();
            pthread_t threads[3];
            for (int t = 0; t < 3; t++) threads[t] = start(add, &sum);
            for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
            char *block = malloc(300000);
            memset(block, 1, 300000);
            free(block);
            (void)number;
            _exit(same && sum == 3 * 499500 ? 10 + i : 99);
        }
        int status;
        waitpid(child, &status, 0);
        failures += !WIFEXITED(status) || WEXITSTATUS(status) != 10 + i;
    }
    return (void *)failures;
}

static void forks(void) {
    _Atomic int stop = 0;
    pthread_t busy[2] = {start(use_memory, (void *)&stop), start(use_memory, (void *)&stop)};
    start(idle, NULL);
    pthread_t forking[2] = {start(fork_here, NULL), start(fork_here, NULL)};
    long failures = 0;
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(forking[i], &result);
        failures += (long)result;
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(busy[i], NULL);
    printf("forks: %ld failures\n", failures);
}

/* Locks in shared memory. */
static struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_barrier_t barrier;
    sem_t ping, pong;
    long count, turn;
    _Atomic uint16_t half;
} *shared;

static void *count_shared(void *unused) {
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&shared->mutex);
        shared->count++;
        pthread_mutex_unlock(&shared->mutex);
        shared->half += 3;
    }
    return unused;
}

static void between_processes(void) {
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_barrierattr_t barrier;
    pthread_mutexattr_init(&mutex), pthread_condattr_init(&condition), pthread_barrierattr_init(&barrier);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &mutex);
    pthread_cond_init(&shared->condition, &condition);
    pthread_barrier_init(&shared->barrier, &barrier, 3);
    sem_init(&shared->ping, 1, 0), sem_init(&shared->pong, 1, 0);
    pid_t children[2];
    for (int id = 0; id < 2; id++) {
        children[id] = fork();
        if (children[id]) continue;
        pthread_barrier_wait(&shared->barrier);
        pthread_t threads[2] = {start(count_shared, NULL), start(count_shared, NULL)};
        for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
        for (int i = 0; i < 200; i++) {
            pthread_mutex_lock(&shared->mutex);
            while (shared->turn % 2 != id) pthread_cond_wait(&shared->condition, &shared->mutex);
            shared->turn++;
            pthread_cond_broadcast(&shared->condition);
            pthread_mutex_unlock(&shared->mutex);
        }
        for (int i = 0; id == 0 && i < 200; i++) sem_wait(&shared->ping), sem_post(&shared->pong);
        _exit(id);
    }
    pthread_barrier_wait(&shared->barrier);
    for (int i = 0; i < 200; i++) sem_post(&shared->ping), sem_wait(&shared->pong);
    for (int id = 0; id < 2; id++) show("child", children[id]);
    printf("shared: %ld %ld %d\n", shared->count, shared->turn, shared->half);
}

/* Robust mutexes: who dies with one leaves word, a thread as well as a process. qemu-alpha has none. */
static void *die_holding(void *mutex) {
    pthread_mutex_lock(mutex);
    return NULL;
}

static void robust(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    int result = pthread_mutex_init(&shared->mutex, &attributes);
    if (result) {
        printf("robust: %s\n", strerror(result));
        return;
    }
    pthread_join(start(die_holding, &shared->mutex), NULL);
    result = pthread_mutex_lock(&shared->mutex);
    printf("robust, thread: %s, consistent %d\n", strerror(result), pthread_mutex_consistent(&shared->mutex));
    pthread_mutex_unlock(&shared->mutex);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(&shared->mutex);
        sem_post(&shared->ping);
        usleep(20000);
        _exit(0);
    }
    sem_wait(&shared->ping);
    result = pthread_mutex_lock(&shared->mutex);
    show("holder", child);
    pthread_mutex_unlock(&shared->mutex);
    printf("robust, process: %s, then %s\n", strerror(result), strerror(pthread_mutex_lock(&shared->mutex)));
}

/* Ways to end. */
static void *spin(void *unused) { for (volatile long i = 0;; i++) ready = 1; return unused; }
static void *block(void *unused) {
    int ends[2];
    char byte;
    if (pipe(ends) == 0) while (read(ends[0], &byte, 1) != 0) {}
    return unused;
}
static void *end_process(void *how) {
    switch ((long)how) {
    case 0: exit(3);
    case 1: _exit(4);
    case 2: *nowhere = 0; break;
    case 3: abort();
    case 4: kill(getpid(), SIGTERM); break;
    case 5: raise(SIGKILL); break;
    case 6: execve(program, (char *[]){(char *)program, "executed", NULL}, environ); _exit(97);
    case 7: usleep(10000); return NULL;
    }
    for (;;) pause();
}

static void endings(void) {
    static const char *names[] = {"exit", "_exit", "fault", "abort", "SIGTERM", "SIGKILL", "execve", "last thread", "main's end"};
    for (long how = 0; how < 9; how++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            pthread_t main_thread = pthread_self();
            (void)main_thread;
            if (how == 7) {
                start(end_process, (void *)how);
                pthread_exit(NULL);
            }
            start(block, NULL);
            ready = 0;
            start(spin, NULL);
            while (!ready) sched_yield();
            if (how == 8) exit(5);
            start(end_process, (void *)how);
            if (how % 2) block(NULL);
            for (;;) pause();
        }
        show(names[how], child);
    }
}

int main(int count, char **arguments) {
    program = arguments[0];
    if (count > 1) {
        printf("%s: %d\n", arguments[1], syscall(SYS_gettid) == getpid());
        return 6;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    forks();
    between_processes();
    robust();
    endings();
    return 0;
}
