/* flags: -pthread */
/* Memory faults in compiled loops: the information that a handler receives, handlers that repair the cause and
 * return, and handlers that leave by a jump. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A multiple of every machine's page size. */
enum { PAGE = 65536, ROUNDS = 100000 };

static volatile sig_atomic_t signals, last_signal, last_code;
static char *volatile last_address;
static sigjmp_buf back;

static const char *describe(void) {
    static const struct { int signal, code; const char *name; } names[] = {
        {SIGSEGV, SEGV_MAPERR, "SEGV_MAPERR"}, {SIGSEGV, SEGV_ACCERR, "SEGV_ACCERR"},
        {SIGBUS, BUS_ADRALN, "BUS_ADRALN"}, {SIGBUS, BUS_ADRERR, "BUS_ADRERR"},
        {SIGILL, ILL_ILLOPC, "ILL_ILLOPC"}, {SIGTRAP, TRAP_BRKPT, "TRAP_BRKPT"}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].signal == last_signal && names[i].code == last_code) return names[i].name;
    return "another signal or code";
}

static void note(int signal, siginfo_t *information) {
    signals++;
    last_signal = signal;
    last_code = information->si_code;
    last_address = information->si_addr;
}

static void leave(int signal, siginfo_t *information, void *context) {
    (void)context;
    note(signal, information);
    siglongjmp(back, 1);
}

static void handle(void (*handler)(int, siginfo_t *, void *), int flags) {
    const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) sigaction(faults[i], &action, NULL);
}

static char *map(size_t bytes, int protection) {
    char *start = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) abort();
    return start;
}

/* The loops: each goes through memory with its own kind of access until something stops it. */
#define LOOP(kind)                                                                                          \
    static __attribute__((noinline)) long load_##kind(char *start, long count) {                            \
        long sum = 0;                                                                                       \
        for (long i = 0; i < count; i++) sum += *(volatile kind *)(start + 8 * i);                          \
        return sum;                                                                                         \
    }                                                                                                       \
    static __attribute__((noinline)) long store_##kind(char *start, long count) {                           \
        for (long i = 0; i < count; i++) *(volatile kind *)(start + 8 * i) = (kind)i;                       \
        return count;                                                                                       \
    }
LOOP(int8_t) LOOP(int16_t) LOOP(int32_t) LOOP(int64_t) LOOP(float) LOOP(double)

typedef long loop(char *, long);
static const struct { const char *name; loop *load, *store; } loops[] = {
    {"byte", load_int8_t, store_int8_t}, {"word", load_int16_t, store_int16_t},
    {"long", load_int32_t, store_int32_t}, {"quad", load_int64_t, store_int64_t},
    {"float", load_float, store_float}, {"double", load_double, store_double}};
enum { LOOPS = sizeof loops / sizeof *loops };

/* Runs a loop that faults at its last access, behind `inside` bytes. */
static void run_into(const char *what, loop *run, char *start, long inside) {
    last_signal = last_code = 0;
    if (sigsetjmp(back, 1) == 0) printf("%s: not stopped %ld\n", what, run(start, inside / 8 + 1));
    else printf("%s: %s %+ld\n", what, describe(), (long)(last_address - start) - inside);
}

static void every_access(void) {
    enum { INSIDE = (8 * ROUNDS + PAGE - 1) / PAGE * PAGE };
    static const struct { const char *name; int protection; } behind[] = {
        {"not mapped", -1}, {"no access", PROT_NONE}, {"read only", PROT_READ}};
    char what[64], *area = map(INSIDE + PAGE, PROT_READ | PROT_WRITE);
    handle(leave, 0);
    for (int b = 2; b >= 0; b--) {
        if (b == 0) munmap(area + INSIDE, PAGE);
        else mprotect(area + INSIDE, PAGE, behind[b].protection);
        for (int i = 0; i < LOOPS; i++) {
            sprintf(what, "load %s, %s", loops[i].name, behind[b].name);
            if (b != 2) run_into(what, loops[i].load, area, INSIDE);
            sprintf(what, "store %s, %s", loops[i].name, behind[b].name);
            run_into(what, loops[i].store, area, INSIDE);
        }
    }
    munmap(area, INSIDE);
}

/* Behind the end of a mapped file: the last page reads as zeros, the next one does not exist. It does
 * not for qemu-alpha either, which makes it SIGSEGV. */
static void beyond_a_file(void) {
    char name[] = "faultsXXXXXX";
    int file = mkstemp(name);
    unlink(name);
    if (ftruncate(file, 2 * PAGE - 100) != 0) abort();
    char *area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    printf("last page of the file: %d\n", area[2 * PAGE - 1]);
    run_into("[not qemu] load behind the file", load_int64_t, area, 2 * PAGE);
    run_into("[not qemu] store behind the file", store_int32_t, area, 2 * PAGE);
    if (ftruncate(file, 3 * PAGE) != 0) abort();
    run_into("[not qemu] load behind the longer file", load_int64_t, area, 3 * PAGE);
    if (ftruncate(file, PAGE) != 0) abort();
    run_into("store behind the shorter file", store_int64_t, area, PAGE);
    munmap(area, 4 * PAGE);
    close(file);
}

/* Calls of places that hold no code. */
static void executing(void) {
    typedef void function(void);
    char *area = map(2 * PAGE, PROT_READ | PROT_WRITE);
    handle(leave, 0);
    const struct { const char *name; char *where; } places[] = {
        {"null", NULL}, {"low", (char *)64}, {"no access", area + 128}, {"not mapped", area + PAGE}};
    mprotect(area, PAGE, PROT_NONE);
    munmap(area + PAGE, PAGE);
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        if (sigsetjmp(back, 1) == 0) ((function *volatile)places[i].where)();
        printf("call of %s: %s %+ld\n", places[i].name, describe(), (long)(last_address - places[i].where));
    }
    mprotect(area, PAGE, PROT_READ | PROT_WRITE);
    if (sigsetjmp(back, 1) == 0) ((function *volatile)area)();
    /* qemu-alpha executes whatever can be read. */
    printf("[not qemu] call of data: %s %+ld\n", describe(), (long)(last_address - area));
}

/* Handlers that repair: pages come into being as they are touched, and lose what they may again. */
static char *lazy;
static void make_accessible(int signal, siginfo_t *information, void *context) {
    (void)context;
    note(signal, information);
    mprotect(lazy + (last_address - lazy) / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static void make_mapped(int signal, siginfo_t *information, void *context) {
    (void)context;
    note(signal, information);
    mmap(lazy + (last_address - lazy) / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void repairing(void) {
    enum { PAGES = 10 };
    lazy = map(PAGES * PAGE, PROT_NONE);
    handle(make_accessible, 0);
    for (int i = 0; i < LOOPS; i++) {
        signals = 0;
        long stored = loops[i].store(lazy, PAGES * PAGE / 8);
        int first = signals;
        mprotect(lazy, PAGES * PAGE, PROT_NONE);
        long sum = loops[i].load(lazy, PAGES * PAGE / 8);
        printf("repaired for %s: %d then %d, %ld %ld\n", loops[i].name, first, (int)signals - first, stored, sum);
        mprotect(lazy, PAGES * PAGE, PROT_NONE);
    }
    handle(make_mapped, 0);
    munmap(lazy, PAGES * PAGE);
    signals = 0;
    store_int64_t(lazy, PAGES * PAGE / 8);
    printf("mapped: %d, %ld\n", (int)signals, load_int64_t(lazy, PAGES * PAGE / 8));
    munmap(lazy, PAGES * PAGE);
}

/* A write barrier as a garbage collector has it: every page is protected again and again. */
static void barriers(void) {
    enum { PAGES = 4, TIMES = 50 };
    lazy = map(PAGES * PAGE, PROT_READ);
    handle(make_accessible, SA_NODEFER);
    signals = 0;
    uint64_t state = 1;
    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < 200; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            ((volatile uint64_t *)lazy)[(state >> 33) % (PAGES * PAGE / 8)] += state;
        }
        mprotect(lazy, PAGES * PAGE, PROT_READ);
    }
    uint64_t sum = 0;
    for (int i = 0; i < PAGES * PAGE / 8; i++) sum = sum * 31 + ((uint64_t *)lazy)[i];
    printf("barriers: %d, %016llx\n", (int)signals, (unsigned long long)sum);
    munmap(lazy, PAGES * PAGE);
}

/* Faults inside system calls are errors, not signals; a fault while the signal is blocked is the end,
 * which tests of processes show. */
static void in_calls(void) {
    char *area = map(2 * PAGE, PROT_READ | PROT_WRITE);
    int ends[2];
    munmap(area + PAGE, PAGE);
    if (pipe(ends) != 0) abort();
    signals = 0;
    errno = 0;
    long written = write(ends[1], area + PAGE, 10);
    printf("write from nowhere: %ld %s\n", written, strerror(errno));
    written = write(ends[1], "0123456789", 10);
    errno = 0;
    long got = read(ends[0], area + PAGE, 10);
    printf("read to nowhere: %ld %s\n", got, strerror(errno));
    mprotect(area, PAGE, PROT_READ);
    errno = 0;
    written = write(ends[1], "0123456789", 10);
    got = read(ends[0], area, 10);
    printf("read to read-only: %ld %s, signals %d\n", got, strerror(errno), (int)signals);
    munmap(area, PAGE);
}

/* The same faults by a thread while another one runs. */
static void *in_thread(void *stop) {
    volatile long count = 0;
    while (!*(volatile int *)stop) count++;
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    every_access();
    beyond_a_file();
    executing();
    repairing();
    barriers();
    in_calls();
    volatile int stop = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, (void *)&stop);
    repairing();
    stop = 1;
    pthread_join(thread, NULL);
    return 0;
}
