/* Locks that threads hold for a known number of iterations. One waits until the other one has been seen to wait. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

struct lock {
    const char *name;
    atomic_int held;
};

static struct lock table = {.name = "table"}, log_lock = {.name = "log"};
static atomic_int waiting;

__attribute__((noinline)) void wait_for(struct lock *lock) {
    atomic_fetch_add(&waiting, 1);
    while (atomic_exchange(&lock->held, 1)) sched_yield();
}

__attribute__((noinline)) void acquire(struct lock *lock) {
    if (atomic_exchange(&lock->held, 1)) wait_for(lock);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) int try_to_acquire(struct lock *lock) {
    int is_free = !atomic_exchange(&lock->held, 1);
    __asm__ volatile("" ::: "memory");
    return is_free;
}

__attribute__((noinline)) void release(struct lock *lock) {
    atomic_store(&lock->held, 0);
    __asm__ volatile("" ::: "memory");
}

/* Three instructions an iteration. */
__attribute__((noinline)) void work(int64_t times) {
    __asm__ volatile("1: subq %0, 1, %0\n\tunop\n\tbne %0, 1b" : "+r"(times));
}

__attribute__((noinline)) void reads(void) {
    acquire(&table);
    work(1000);
    release(&table);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void writes(void) {
    acquire(&table);
    acquire(&log_lock);
    /* It is held already: this acquires nothing. */
    if (try_to_acquire(&log_lock)) work(1000000);
    work(5000);
    release(&log_lock);
    work(200);
    release(&table);
    __asm__ volatile("" ::: "memory");
}

static void *waits(void *argument) {
    (void)argument;
    reads();
    return NULL;
}

__attribute__((noinline)) void contends(void) {
    acquire(&table);
    pthread_t thread;
    pthread_create(&thread, NULL, waits, NULL);
    while (!atomic_load(&waiting)) {}
    work(40000);
    release(&table);
    pthread_join(thread, NULL);
}

int main(void) {
    for (int i = 0; i < 3; i++) reads();
    writes();
    if (try_to_acquire(&log_lock)) release(&log_lock);
    contends();
    return 0;
}
