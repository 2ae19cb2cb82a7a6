/* What databases do with statements, relations and rows: names that are learned late, lists with equal names, and locks of one name. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum kind { RELATION, QUERY };
struct relation { long number; const char *name; };
struct entry { enum kind kind; const char *alias; };
struct scan { int number; };
struct query { const char *text; struct entry **entries; };
struct lock { long transaction; long relation; atomic_int held; };

#define FUNCTION __attribute__((noipa))
#define KEEP __asm__ volatile("" ::: "memory")

static struct relation accounts = { 17, "accounts" };
static struct lock first = { .transaction = 100, .relation = 17 }, second = { .transaction = 101, .relation = 17 };
static atomic_int waiting, holding;

/* Three instructions an iteration. */
FUNCTION void work(long times) {
    __asm__ volatile("1: subq %0, 1, %0\n\tunop\n\tbne %0, 1b" : "+r"(times));
}

FUNCTION void open_relation(struct relation *relation) { KEEP; (void)relation; }
FUNCTION void parse(const char *text) { (void)text; work(100); KEEP; }
FUNCTION void scan(struct scan *node, struct query *query) { (void)node; (void)query; work(10); KEEP; }

FUNCTION void execute(struct query *query) {
    for (int number = 1; number <= 4; number++) scan(&(struct scan){ number }, query);
    KEEP;
}

FUNCTION void choose(struct query *query) { (void)query; work(5); KEEP; }

FUNCTION void message(struct query *query) {
    choose(query);
    work(1000);
    KEEP;
}

FUNCTION void wait_for(struct lock *lock) {
    atomic_fetch_add(&waiting, 1);
    while (atomic_exchange(&lock->held, 1)) sched_yield();
}

FUNCTION void acquire(struct lock *lock) {
    if (atomic_exchange(&lock->held, 1)) wait_for(lock);
    KEEP;
}

FUNCTION void release(struct lock *lock) {
    atomic_store(&lock->held, 0);
    KEEP;
}

FUNCTION void wait_for_row(struct lock *lock, struct relation *relation, int row) {
    (void)relation, (void)row;
    acquire(lock);
    release(lock);
    KEEP;
}

FUNCTION void updates(struct lock *lock) {
    acquire(lock);
    atomic_fetch_add(&holding, 1);
    while (!atomic_load(&waiting)) sched_yield();
    work(40000);
    release(lock);
    KEEP;
}

static void *holds(void *lock) {
    updates(lock);
    return NULL;
}

FUNCTION void waits(void) {
    while (atomic_load(&holding) < 2) sched_yield();
    wait_for_row(&first, &accounts, 3);
    KEEP;
}

int main(void) {
    open_relation(&accounts);
    struct entry lineitem = { RELATION, "lineitem" }, view = { QUERY, "lineitem" }, orders = { RELATION, "orders" };
    struct query select = {
        "select l_orderkey, l_comment from lineitem where l_orderkey in (select l_orderkey from lineitem where l_tax > 12)",
        (struct entry *[]){ &lineitem, &view, &orders, &lineitem },
    };
    parse(select.text);
    execute(&select);
    message(&(struct query){ "update accounts set b = b + 10 where a = 1", NULL });
    message(&(struct query){ "update accounts set b = b + -7  where a = 23;", NULL });
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, holds, &first);
    pthread_create(&threads[1], NULL, holds, &second);
    waits();
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
