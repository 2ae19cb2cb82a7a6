/* Threads that share data in known ways: `shared false`, `padded`, `lock`, `mutex` or `alone`. With `processes`, forked processes
   that count in memory which they share (anonymous, a file, a System V segment), and in variables that each has for itself. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 2
#define TIMES 2000

struct slot { volatile long count; };
struct padded_slot { volatile long count; char padding[56]; };

static struct slot counters[THREADS] __attribute__((aligned(64)));
static struct padded_slot padded[THREADS] __attribute__((aligned(64)));
static struct { volatile long word; char padding[56]; } lock __attribute__((aligned(64)));
static volatile long total __attribute__((aligned(64)));
static struct { pthread_mutex_t mutex; volatile long total; } guarded __attribute__((aligned(64))) = { PTHREAD_MUTEX_INITIALIZER, 0 };
static const char *what;
static pthread_barrier_t barrier;

__attribute__((noinline, noclone)) static void count(volatile long *counter) {
    for (int i = 0; i < TIMES; i++) (*counter)++;
}

static void add_under_lock(void) {
    for (int i = 0; i < TIMES / 10; i++) {
        while (__sync_lock_test_and_set(&lock.word, 1)) {}
        total++;
        __sync_lock_release(&lock.word);
    }
}

static void add_under_mutex(void) {
    for (int i = 0; i < TIMES / 10; i++) {
        pthread_mutex_lock(&guarded.mutex);
        guarded.total++;
        pthread_mutex_unlock(&guarded.mutex);
    }
}

static void *work(void *argument) {
    long number = (long)argument;
    pthread_barrier_wait(&barrier);
    if (!strcmp(what, "false")) count(&counters[number].count);
    if (!strcmp(what, "padded")) count(&padded[number].count);
    if (!strcmp(what, "lock")) add_under_lock();
    if (!strcmp(what, "mutex")) add_under_mutex();
    return NULL;
}

/* Memory that forked processes share, by its kind. */
static struct slot *mapped(const char *kind) {
    if (!strcmp(kind, "segment")) {
        int id = shmget(IPC_PRIVATE, 8192, 0600);
        void *at = shmat(id, NULL, 0);
        shmctl(id, IPC_RMID, NULL);
        return at;
    }
    if (!strcmp(kind, "private")) return counters;
    int is_file = !strcmp(kind, "file");
    char name[] = "/tmp/sharedXXXXXX";
    int file = is_file ? mkstemp(name) : -1;
    if (is_file && (unlink(name) || ftruncate(file, 8192))) return NULL;
    return mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | (is_file ? 0 : MAP_ANONYMOUS), file, 0);
}

/* Processes that count beside each other, as soon as all are there. */
static int processes(const char *kind) {
    struct slot *slots = mapped(kind);
    pthread_barrierattr_t shared;
    pthread_barrier_t *all = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(all, &shared, THREADS);
    for (long i = 0; i < THREADS; i++) {
        if (fork()) continue;
        pthread_barrier_wait(all);
        count(&slots[i].count);
        _exit(slots[i].count == TIMES ? 0 : 1);
    }
    int failed = 0, status;
    for (int i = 0; i < THREADS; i++) failed |= wait(&status) < 0 || status;
    int is_private = !strcmp(kind, "private");
    for (int i = 0; i < THREADS; i++) failed |= slots[i].count != (is_private ? 0 : TIMES);
    return failed;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    what = argc > 1 ? argv[1] : "alone";
    if (!strcmp(what, "processes")) return processes(argc > 2 ? argv[2] : "anonymous");
    if (!strcmp(what, "alone")) {
        count(&counters[0].count);
        return 0;
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
