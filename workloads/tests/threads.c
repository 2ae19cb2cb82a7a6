/* flags: -pthread */
/* Threads in one process: mutexes, condition variables, barriers, locks, once, keys, thread-local
 * variables, atomics of every size, cancellation, detached threads, stacks, many threads; at the end
 * an exit while other threads spin and sleep. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20000 };

static void check(const char *what, int result) {
    if (result != 0) {
        printf("%s: %s\n", what, strerror(result));
        exit(1);
    }
}

/* Runs `body` in several threads, each with its number, and adds up what they return. */
static long together(int count, void *(*body)(void *)) {
    pthread_t threads[128];
    long sum = 0;
    for (long i = 0; i < count; i++) check("create", pthread_create(&threads[i], NULL, body, (void *)i));
    for (int i = 0; i < count; i++) {
        void *result;
        check("join", pthread_join(threads[i], &result));
        sum += (long)result;
    }
    return sum;
}

/* Mutexes: plain, recursive, error-checking. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long guarded;

static void *lock_and_add(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        guarded = guarded * 3 % 1000003 + 1;
        pthread_mutex_unlock(&mutex);
    }
    return number;
}

static void mutexes(void) {
    long sum = together(THREADS, lock_and_add), expected = 0;
    for (int i = 0; i < THREADS * ROUNDS; i++) expected = expected * 3 % 1000003 + 1;
    printf("mutex: %ld %d\n", sum, guarded == expected);
    pthread_mutexattr_t attributes;
    pthread_mutex_t special;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&special, &attributes);
    int first = pthread_mutex_lock(&special), second = pthread_mutex_lock(&special);
    printf("recursive: %d %d %d %d\n", first, second, pthread_mutex_unlock(&special), pthread_mutex_unlock(&special));
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&special, &attributes);
    first = pthread_mutex_lock(&special), second = pthread_mutex_lock(&special);
    printf("checked: %d %s, then %s\n", first, strerror(second), strerror((pthread_mutex_unlock(&special), pthread_mutex_unlock(&special))));
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = (soon.tv_nsec + 20000000) % 1000000000;
    soon.tv_sec += soon.tv_nsec < 20000000;
    pthread_mutex_lock(&special);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    pthread_mutex_t plain;
    pthread_mutex_init(&plain, &attributes);
    pthread_mutex_lock(&plain);
    printf("timed: %s, try: %s\n", strerror(pthread_mutex_timedlock(&plain, &soon)), strerror(pthread_mutex_trylock(&plain)));
}

/* A bounded queue between producers and consumers. */
enum { QUEUE = 8, ITEMS = 4000 };
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t not_full, not_empty;
    unsigned items[QUEUE], count, head;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};

static void put(unsigned item) {
    pthread_mutex_lock(&queue.mutex);
    while (queue.count == QUEUE) pthread_cond_wait(&queue.not_full, &queue.mutex);
    queue.items[(queue.head + queue.count++) % QUEUE] = item;
    pthread_cond_signal(&queue.not_empty);
    pthread_mutex_unlock(&queue.mutex);
}

static unsigned take(void) {
    pthread_mutex_lock(&queue.mutex);
    while (queue.count == 0) pthread_cond_wait(&queue.not_empty, &queue.mutex);
    unsigned item = queue.items[queue.head];
    queue.head = (queue.head + 1) % QUEUE;
    queue.count--;
    pthread_cond_signal(&queue.not_full);
    pthread_mutex_unlock(&queue.mutex);
    return item;
}

static unsigned hash(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b;
    return x ^ x >> 16;
}

static void *produce_or_consume(void *number) {
    long id = (long)number;
    unsigned long sum = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        if (id % 2) sum += hash(take());
        else put(id * ITEMS + i + 1);
    }
    return (void *)sum;
}

static void queues(void) {
    unsigned long expected = 0, found = together(6, produce_or_consume);
    for (unsigned id = 0; id < 6; id += 2)
        for (unsigned i = 0; i < ITEMS; i++) expected += hash(id * ITEMS + i + 1);
    printf("queue: %d, left %u\n", found == expected, queue.count);
    struct timespec past;
    clock_gettime(CLOCK_REALTIME, &past);
    pthread_mutex_lock(&queue.mutex);
    printf("timed wait: %s\n", strerror(pthread_cond_timedwait(&queue.not_empty, &queue.mutex, &past)));
    pthread_mutex_unlock(&queue.mutex);
}

/* Barriers: each round every thread must see what all others wrote before it. */
static pthread_barrier_t barrier;
static long columns[THREADS][8];
static int serial;

static void *in_rounds(void *number) {
    long id = (long)number, wrong = 0;
    for (int round = 1; round <= 300; round++) {
        columns[id][0] = round;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < THREADS; i++) wrong += columns[i][0] != round;
        pthread_barrier_wait(&barrier);
    }
    return (void *)wrong;
}

/* Readers and a writer: two numbers that must always be alike. */
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long pair[2];

static void *read_or_write(void *number) {
    long wrong = 0;
    for (int i = 0; i < 3000; i++) {
        if (number == NULL || i % 50 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            pair[0]++, pair[1]++;
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_rdlock(&rwlock);
            wrong += pair[0] != pair[1];
            pthread_rwlock_unlock(&rwlock);
        }
    }
    return (void *)wrong;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int times_done;
static void do_once(void) { usleep(1000), times_done++; }
static void *try_once(void *unused) { pthread_once(&once, do_once); return unused; }

static pthread_spinlock_t spinlock;
static long spun;
static void *spin(void *unused) {
    for (int i = 0; i < 2000; i++) {
        pthread_spin_lock(&spinlock);
        spun++;
        pthread_spin_unlock(&spinlock);
    }
    return unused;
}

static void other_locks(void) {
    pthread_barrier_init(&barrier, NULL, THREADS);
    long wrong = together(THREADS, in_rounds);
    printf("barrier: %ld wrong, %d serial\n", wrong, serial);
    wrong = together(THREADS, read_or_write);
    printf("rwlock: %ld wrong, %ld %ld\n", wrong, pair[0], pair[1]);
    together(THREADS, try_once);
    printf("once: %d\n", times_done);
    pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
    together(2, spin);
    printf("spinlock: %ld\n", spun);
}

/* What each thread has for itself. */
static _Thread_local long own = 5;
static _Thread_local char own_text[32];
static _Thread_local struct { int a; double b; } own_struct = {7, 0.5};
static pthread_key_t key;
static long destroyed;

static void destroy(void *value) { __atomic_fetch_add(&destroyed, (long)value, __ATOMIC_RELAXED); }

static void *use_own(void *number) {
    long id = (long)number, wrong = own != 5 || own_text[0] != 0 || own_struct.a != 7 || own_struct.b != 0.5;
    sprintf(own_text, "thread %ld", id);
    own = id, own_struct.b *= id;
    pthread_setspecific(key, (void *)(id + 1));
    for (int i = 0; i < 50; i++) {
        sched_yield();
        char expected[32];
        sprintf(expected, "thread %ld", id);
        wrong += own != id || strcmp(own_text, expected) || own_struct.b != 0.5 * id || pthread_getspecific(key) != (void *)(id + 1);
    }
    errno = id;
    sched_yield();
    return (void *)(wrong + (errno != id));
}

static void own_things(void) {
    pthread_key_create(&key, destroy);
    own = -1;
    long wrong = together(10, use_own);
    printf("own: %ld wrong, mine %ld '%s', destroyed %ld\n", wrong, own, own_text, destroyed);
}

/* Atomics. Neighbours share a quadword, so that a store to one must not undo another's. */
static _Atomic uint8_t bytes[8];
static _Atomic uint16_t words[4];
static _Atomic uint32_t longs[2];
static _Atomic uint64_t quads[1];

static void *add_atomically(void *number) {
    long id = (long)number;
    for (int i = 0; i < 5000; i++) {
        bytes[id]++;
        words[id % 4] += 3;
        atomic_fetch_sub(&longs[id % 2], 1);
        atomic_fetch_xor(&quads[0], hash(id * 5000 + i));
        uint8_t seen = bytes[(id + 1) % 8];
        while (!atomic_compare_exchange_weak(&bytes[id], &seen, (uint8_t)(seen + 2))) {}
        uint16_t word = atomic_load(&words[(id + 1) % 4]);
        while (!atomic_compare_exchange_strong(&words[(id + 1) % 4], &word, (uint16_t)(word ^ 0x8000))) {}
    }
    return number;
}

/* A stack whose elements are taken and given back, linked by indices with a version. */
enum { NODES = 32 };
static struct { uint32_t next; long owner; } nodes[NODES];
static _Atomic uint64_t top;

static uint32_t pop(void) {
    uint64_t seen = top;
    while ((uint32_t)seen != NODES) {
        uint64_t next = ((seen >> 32) + 1) << 32 | __atomic_load_n(&nodes[(uint32_t)seen].next, __ATOMIC_RELAXED);
        if (atomic_compare_exchange_weak(&top, &seen, next)) break;
    }
    return seen;
}

static void push(uint32_t node) {
    uint64_t seen = top;
    do __atomic_store_n(&nodes[node].next, (uint32_t)seen, __ATOMIC_RELAXED);
    while (!atomic_compare_exchange_weak(&top, &seen, ((seen >> 32) + 1) << 32 | node));
}

static void *pop_and_push(void *number) {
    long id = (long)number + 1, wrong = 0;
    for (int i = 0; i < 5000; i++) {
        uint32_t node = pop();
        if (node == NODES) continue;
        wrong += nodes[node].owner != 0;
        nodes[node].owner = id;
        if (i % 64 == 0) sched_yield();
        wrong += nodes[node].owner != id;
        nodes[node].owner = 0;
        push(node);
    }
    return (void *)wrong;
}

/* Dekker's: with sequential consistency at least one of two sees the other's store. */
static _Atomic int sides[2], saw[2];

static void *store_then_load(void *number) {
    long id = (long)number, both = 0;
    for (int i = 0; i < 2000; i++) {
        pthread_barrier_wait(&barrier);
        sides[id] = 1;
        saw[id] = sides[1 - id];
        pthread_barrier_wait(&barrier);
        both += !saw[0] && !saw[1];
        pthread_barrier_wait(&barrier);
        sides[id] = 0;
    }
    return (void *)both;
}

static void atomics(void) {
    together(8, add_atomically);
    unsigned sum = 0;
    for (int i = 0; i < 4; i++) sum = sum * 65537 + (words[i] & 0x7fff);
    printf("atomics: %u %u %u\n", sum, longs[0], longs[1]);
    uint64_t expected = 0;
    for (int i = 0; i < 8 * 5000; i++) expected ^= hash(i);
    printf("exclusive or: %d\n", quads[0] == expected);
    for (int i = 0; i < NODES; i++) nodes[i].next = i + 1;
    long wrong = together(THREADS, pop_and_push);
    int left = 0;
    while (pop() != NODES) left++;
    printf("stack: %ld wrong, %d left\n", wrong, left);
    pthread_barrier_init(&barrier, NULL, 2);
    printf("store then load: %ld\n", together(2, store_then_load));
}

/* Cancellation: asleep, at a test, in a wait whose cleanup gives the mutex back, asynchronous. */
static int cleaned;
static void clean(void *mutex) { cleaned++, pthread_mutex_unlock(mutex); }
static _Atomic int ready;

static void *cancelled(void *how) {
    int old;
    switch ((long)how) {
    case 0: ready = 1; for (;;) pause();
    case 1: ready = 1; for (;;) pthread_testcancel();
    case 2:
        pthread_mutex_lock(&mutex);
        pthread_cleanup_push(clean, &mutex);
        ready = 1;
        for (;;) pthread_cond_wait(&queue.not_empty, &mutex);
        pthread_cleanup_pop(0);
        break;
    case 3:
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
        ready = 1;
        for (volatile long i = 0;; i++) {}
    case 4:
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
        ready = 1;
        usleep(20000);
        return (void *)77;
    }
    return NULL;
}

static void cancellation(void) {
    for (long how = 0; how < 5; how++) {
        pthread_t thread;
        void *result;
        ready = 0;
        check("create", pthread_create(&thread, NULL, cancelled, (void *)how));
        while (!ready) sched_yield();
        usleep(2000);
        check("cancel", pthread_cancel(thread));
        check("join", pthread_join(thread, &result));
        printf("cancel %ld: %s\n", how, result == PTHREAD_CANCELED ? "cancelled" : result == (void *)77 ? "returned" : "?");
    }
    printf("cleaned %d, mutex %d\n", cleaned, pthread_mutex_trylock(&mutex));
    pthread_mutex_unlock(&mutex);
}

/* Stacks: of a wanted size, given, too small; deep recursion. */
static long deep(int depth) {
    volatile char here[512];
    here[depth % 512] = 1;
    return depth == 0 ? 0 : deep(depth - 1) + here[depth % 512];
}

static void *use_stack(void *depth) { return (void *)deep((long)depth); }

static void stacks(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;
    size_t size;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &size);
    printf("default stack: %d\n", size == 8 << 20);
    for (long megabytes = 1; megabytes <= 16; megabytes *= 4) {
        check("size", pthread_attr_setstacksize(&attributes, megabytes << 20));
        check("create", pthread_create(&thread, &attributes, use_stack, (void *)(megabytes * 1000)));
        pthread_join(thread, &result);
        printf("stack of %ld MB: %ld\n", megabytes, (long)result);
    }
    void *own_stack = aligned_alloc(65536, 262144);
    check("stack", pthread_attr_setstack(&attributes, own_stack, 262144));
    check("create", pthread_create(&thread, &attributes, use_stack, (void *)100));
    pthread_join(thread, &result);
    printf("own stack: %ld; too small: %s\n", (long)result, strerror(pthread_attr_setstacksize(&attributes, 100)));
    free(own_stack);
}

/* Many threads, one after the other and at once; detached ones; what a thread knows of itself. */
static sem_t finished;
static void *finish(void *unused) { sem_post(&finished); return unused; }
static void *return_own(void *number) { return number; }

static void *identify(void *unused) {
    (void)unused;
    long wrong = syscall(SYS_gettid) == getpid();
    wrong += pthread_equal(pthread_self(), pthread_self()) == 0;
    pthread_setname_np(pthread_self(), "a name");
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return (void *)(wrong + (strcmp(name, "a name") != 0));
}

static void many(void) {
    long sum = 0;
    for (int i = 0; i < 5; i++) sum += together(20, return_own);
    printf("churn: %ld, at once: %ld\n", sum, together(100, return_own));
    sem_init(&finished, 0, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 30; i++) {
        pthread_t thread;
        check("create", pthread_create(&thread, &attributes, finish, NULL));
    }
    for (int i = 0; i < 30; i++) sem_wait(&finished);
    int value;
    sem_getvalue(&finished, &value);
    printf("detached: %d left; identity: %ld wrong\n", value, together(3, identify));
}

/* Memory that one thread maps and another uses. */
static void *allocate(void *number) {
    long wrong = 0;
    for (int i = 1; i < 40; i++) {
        size_t size = (size_t)i * 10007 * ((long)number + 1);
        char *block = malloc(size);
        memset(block, i, size);
        block = realloc(block, size * 2);
        for (size_t at = 0; at < size; at += 997) wrong += block[at] != i;
        free(block);
    }
    return (void *)wrong;
}

static void *forever(void *how) {
    ready = 1;
    for (volatile long i = 0;; i++)
        if (how) pause();
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    mutexes();
    queues();
    other_locks();
    own_things();
    atomics();
    cancellation();
    stacks();
    many();
    printf("memory: %ld wrong\n", together(THREADS, allocate));
    for (long how = 0; how < 2; how++) {
        pthread_t thread;
        ready = 0;
        check("create", pthread_create(&thread, NULL, forever, (void *)how));
        while (!ready) sched_yield();
    }
    printf("end\n");
    return 42;
}
