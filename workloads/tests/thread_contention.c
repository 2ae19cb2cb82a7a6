/* flags: -pthread */
/* Contention for few words by ldq_l/stq_c and ldl_l/stl_c: between threads, and between
 * processes on shared memory. No update may be lost or done twice. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, TIMES = 100000, NODES = 250 };

/* What the workers share; zeros to begin with. */
static struct arena {
    _Atomic uint64_t sum, mixed;
    _Atomic uint32_t turns;
    _Atomic uint16_t halves[4];
    _Atomic uint8_t bytes[8];
    uint64_t guarded;
    _Atomic uint32_t lock;
    /* A sorted list. A link is 2 * (node + 1), or 0 at the end, and 1 more in a node being removed. */
    _Atomic uint32_t head, removed;
    struct node { _Atomic uint32_t next; uint32_t key; } nodes[WORKERS * NODES];
} *arena;

static uint64_t mix(uint64_t x) {
    x ^= x >> 30, x *= 0xbf58476d1ce4e5b9, x ^= x >> 27, x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void count(long id) {
    for (long i = 0; i < TIMES; i++) {
        arena->sum += i;
        atomic_fetch_xor(&arena->mixed, mix(id * TIMES + i));
        if (i % 8) continue;
        arena->turns++;
        arena->halves[i / 8 % 4] += 3;
        arena->bytes[(i / 8 + id) % 8] += 5;
    }
}

/* A lock of one word; what it guards is no atomic. */
static void guard(void) {
    for (int i = 0; i < TIMES / 20; i++) {
        for (uint32_t open = 0; !atomic_compare_exchange_weak(&arena->lock, &open, 1); open = 0)
            if (open) sched_yield();
        arena->guarded++;
        arena->lock = 0;
    }
}

/* The link that leads to the first node whose key is not less, and what is in it; on the way nodes that
 * are being removed are unlinked (Harris 2001). No node is used twice, so that no link comes back. */
static _Atomic uint32_t *find(uint32_t key, uint32_t *found) {
    _Atomic uint32_t *link;
again:
    link = &arena->head;
    *found = *link;
    while (*found) {
        struct node *node = &arena->nodes[*found / 2 - 1];
        uint32_t next = node->next;
        if (next % 2) {
            if (!atomic_compare_exchange_strong(link, found, next - 1)) goto again;
            *found = next - 1;
        } else if (node->key < key) {
            link = &node->next;
            *found = next;
        } else break;
    }
    return link;
}

static void insert(uint32_t index, uint32_t key) {
    _Atomic uint32_t *link;
    uint32_t at;
    arena->nodes[index].key = key;
    do {
        link = find(key, &at);
        arena->nodes[index].next = at;
    } while (!atomic_compare_exchange_weak(link, &at, 2 * (index + 1)));
}

static int erase(uint32_t key) {
    for (;;) {
        uint32_t at, next;
        find(key, &at);
        if (!at || arena->nodes[at / 2 - 1].key != key) return 0;
        next = arena->nodes[at / 2 - 1].next;
        if (next % 2 == 0 && atomic_compare_exchange_strong(&arena->nodes[at / 2 - 1].next, &next, next + 1)) {
            find(key, &at);
            return 1;
        }
    }
}

/* Each inserts keys between everybody's, then removes half of its own and, where it can, its neighbour's. */
static void list(uint32_t id) {
    for (uint32_t i = 0; i < NODES; i++) insert(id * NODES + i, i * 97 % NODES * WORKERS + id);
    for (uint32_t i = 0; i < NODES; i += 2)
        for (uint32_t who = 0; who < 2; who++) arena->removed += erase(i * WORKERS + (id + who) % WORKERS);
}

static void *work(void *number) {
    count((long)number);
    guard();
    list((long)number);
    return number;
}

static void in_threads(long first, long number) {
    pthread_t threads[WORKERS];
    for (long i = 0; i < number; i++) pthread_create(&threads[i], NULL, work, (void *)(first + i));
    for (long i = 0; i < number; i++) pthread_join(threads[i], NULL);
}

static void in_processes(long processes) {
    for (long i = 0, each = WORKERS / processes; i < processes; i++)
        if (fork() == 0) {
            if (each == 1) work((void *)i);
            else in_threads(i * each, each);
            _exit(0);
        }
    while (wait(NULL) > 0) {}
}

static void report(const char *what) {
    uint64_t mixed = arena->mixed, halves = 0, bytes = 0, left = 0, unsorted = 0;
    for (long i = 0; i < WORKERS * TIMES; i++) mixed ^= mix(i);
    for (int i = 0; i < 4; i++) halves = halves << 16 | arena->halves[i];
    for (int i = 0; i < 8; i++) bytes = bytes << 8 | arena->bytes[i];
    for (uint32_t at = arena->head, last = 0; at; at = arena->nodes[at / 2 - 1].next, left++) {
        unsorted += arena->nodes[at / 2 - 1].key < last;
        last = arena->nodes[at / 2 - 1].key;
    }
    printf("%s: sum %lu mixed %lu turns %u halves %lx bytes %lx\n", what, arena->sum, mixed, arena->turns, halves, bytes);
    printf("  guarded %lu, list of %lu, removed %u, unsorted %lu\n", arena->guarded, left, arena->removed, unsorted);
    memset(arena, 0, sizeof *arena);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    arena = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    in_threads(0, WORKERS);
    report("threads");
    in_processes(WORKERS);
    report("processes");
    in_processes(WORKERS / 2);
    report("both");
    return 0;
}
