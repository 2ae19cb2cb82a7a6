/* not under qemu-alpha 7.2: its programs can use other addresses */
/* Addresses that a program must not access, in compiled loops: the kernel's, those beyond the address space, and those
 * where the host has mappings of its own. Each is SIGSEGV with the address
 * that was accessed, for every size of load and store, for code, and EFAULT for system calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 65536, ROUNDS = 100000 };

static sigjmp_buf back;
static volatile int last_signal;
static volatile uint64_t last_address;

static void leave(int signal, siginfo_t *information, void *context) {
    (void)context;
    last_signal = signal;
    last_address = (uint64_t)information->si_addr;
    siglongjmp(back, 1);
}

/* Reads and writes of each size, at an address that alternates: a good one, until the last round. */
#define ACCESS(kind)                                                                                        \
    static __attribute__((noinline)) void load_##kind(uintptr_t good, uintptr_t bad, int rounds) {          \
        volatile kind sum = 0;                                                                              \
        for (int i = 0; i <= rounds; i++) sum += *(volatile kind *)(i == rounds ? bad : good);              \
    }                                                                                                       \
    static __attribute__((noinline)) void store_##kind(uintptr_t good, uintptr_t bad, int rounds) {         \
        for (int i = 0; i <= rounds; i++) *(volatile kind *)(i == rounds ? bad : good) = (kind)i;           \
    }
ACCESS(int8_t) ACCESS(int16_t) ACCESS(int32_t) ACCESS(int64_t) ACCESS(float) ACCESS(double)

typedef void access_loop(uintptr_t, uintptr_t, int);
static access_loop *const loops[] = {load_int8_t, load_int16_t, load_int32_t, load_int64_t, load_float, load_double,
                                     store_int8_t, store_int16_t, store_int32_t, store_int64_t, store_float, store_double};
enum { LOOPS = sizeof loops / sizeof *loops };

/* Whether a fault is told at the address. x86 does not tell every address beyond its own limit. */
static int is_told(uint64_t address) {
#ifdef __alpha__
    return (last_address & -8) == (address & -8);
#else
    return address >> 47 || (last_address & -8) == (address & -8);
#endif
}

static uint64_t good[2];

/* How many of the loops end by SIGSEGV at the address. */
static int stopped(uintptr_t bad, int rounds) {
    volatile int right = 0;
    for (volatile int i = 0; i < LOOPS; i++) {
        last_signal = 0;
        if (sigsetjmp(back, 1) == 0) loops[i]((uintptr_t)good, bad, rounds);
        else right += last_signal == SIGSEGV && is_told(bad);
    }
    return right;
}

static const struct { const char *name; uint64_t address; } places[] = {
    {"null", 0}, {"the first page", 4088}, {"low", 16}, {"behind 4 TiB", 1ul << 42}, {"8 TiB", 1ul << 43},
    {"a page behind 4 TiB", (1ul << 42) + 8192}, {"64 TiB", 1ul << 46}, {"the host's stack", 0x7ffffffde000},
    {"the host's libraries", 0x7ffff7dd0000}, {"the end of the host's", 0x7ffffffff000}, {"a hole", 1ul << 47},
    {"256 TiB", 1ul << 48}, {"the kernel", 0xfffffc0000000000}, {"the host's kernel", 0xffffffff81000000},
    {"the host's page", 0xffffffffff600000}, {"the last word", -8ul}, {"the sign", 1ul << 63},
    {"nearly the sign", (1ul << 63) - 8}};
enum { PLACES = sizeof places / sizeof *places };

/* On Alpha all of these are out of reach; here some could be mapped. */
static int is_reachable(uint64_t address) {
#ifdef __alpha__
    (void)address;
    return 0;
#else
    return address >= 65536 && address < 0x7ffffffff000;
#endif
}

static void accesses(void) {
    for (int i = 0; i < PLACES; i++) {
        int right = is_reachable(places[i].address) ? LOOPS : stopped(places[i].address, i % 4 ? 300 : ROUNDS);
        printf("%s: %d\n", places[i].name, right);
    }
    /* The whole of a wide range, sparsely. */
    int right = 0, tried = 0;
    for (uint64_t step = 1; step < 1000; step += 37, tried++) {
        uint64_t address = (1ul << 42) + step * 0x3fffff8fff8 & -8;
        right += is_reachable(address) || stopped(address, 3) == LOOPS;
    }
    printf("all over: %d of %d\n", right, tried);
}

/* Displacements and sums that leave the space at one end must not come in at the other. */
static void wrapped(void) {
    int right = 0;
    for (int i = 1; i <= 8; i++) {
        volatile uint64_t base = (uint64_t)good;
        uint64_t bad = base + ((uint64_t)i << 44) * (i % 2 ? 1 : -1ul);
        right += is_reachable(bad) || stopped(bad, 500) == LOOPS;
    }
    printf("wrapped: %d, untouched %d\n", right, good[1] == 0x5555);
}

static void calls_of_nowhere(void) {
    typedef void function(void);
    int right = 0;
    for (int i = 0; i < PLACES; i++) {
        uint64_t address = places[i].address & -4;
        if (is_reachable(address)) {
            right++;
            continue;
        }
        last_signal = 0;
        if (sigsetjmp(back, 1) == 0) ((function *volatile)address)();
        right += last_signal == SIGSEGV && is_told(address);
    }
    printf("calls: %d of %d\n", right, PLACES);
}

static void system_calls(void) {
    int ends[2], right = 0, wanted = 0;
    if (pipe(ends)) abort();
    for (int i = 0; i < PLACES; i++) {
        void *address = (void *)places[i].address;
        if (is_reachable((uint64_t)address)) continue;
        struct iovec vector = {address, 8};
        right += write(ends[1], address, 8) < 0 && errno == EFAULT;
        right += writev(ends[1], &vector, 1) < 0 && errno == EFAULT;
        if (write(ends[1], "12345678", 8) != 8) abort();
        right += read(ends[0], address, 8) < 0 && errno == EFAULT;
        char drain[8];
        if (read(ends[0], drain, 8) != 8) abort();
        wanted += 3;
    }
    printf("system calls: %d\n", wanted - right);
    const uint64_t beyond[] = {1ul << 42, 1ul << 43, 1ul << 46, 1ul << 48, 0xfffffc0000000000, -65536ul};
    int mapped = 0;
    for (int i = 0; i < 6; i++) {
        if (is_reachable(beyond[i])) continue;
        void *at = mmap((void *)beyond[i], PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        mapped += at != MAP_FAILED;
    }
    printf("mapped: %d\n", mapped);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    good[1] = 0x5555;
    accesses();
    wrapped();
    calls_of_nowhere();
    system_calls();
    return 0;
}
