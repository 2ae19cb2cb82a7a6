/* not as on x86-64: a store that faults may have stored its first part */
/* Unaligned accesses: of every size, at every offset, in hot loops, within pages and across
 * them. On Alpha the loads and stores are its own instructions, which trap when the address is not
 * aligned and are completed by the operating system's kernel; a compiler would avoid them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 65536, AREA = 2 * PAGE };

#ifdef __alpha__
#define LOAD(name, type, load, result)                                                                      \
    static inline type name(const void *p) {                                                                \
        type v;                                                                                             \
        asm volatile(".arch ev6\n\t" load " %0,%1" : "=" result(v) : "m"(*(const char (*)[sizeof(type)])p)); \
        return v;                                                                                           \
    }
#define STORE(name, type, store, operand)                                                                   \
    static inline void name(void *p, type v) {                                                              \
        asm volatile(".arch ev6\n\t" store " %1,%0" : "=m"(*(char (*)[sizeof(type)])p) : operand(v));       \
    }
#else
#define LOAD(name, type, load, result)                                                                      \
    static inline type name(const void *p) {                                                                \
        type v;                                                                                             \
        memcpy(&v, p, sizeof v);                                                                            \
        asm volatile("" : : "m"(v));                                                                        \
        return v;                                                                                           \
    }
#define STORE(name, type, store, operand)                                                                   \
    static inline void name(void *p, type v) { memcpy(p, &v, sizeof v); }
#endif
LOAD(load_word, uint16_t, "ldwu", "r")
LOAD(load_long, int32_t, "ldl", "r")
LOAD(load_quad, int64_t, "ldq", "r")
LOAD(load_float, float, "lds", "f")
LOAD(load_double, double, "ldt", "f")
STORE(store_word, uint16_t, "stw", "r")
STORE(store_long, int32_t, "stl", "r")
STORE(store_quad, int64_t, "stq", "r")
STORE(store_float, float, "sts", "f")
STORE(store_double, double, "stt", "f")

static char *area;

static uint64_t checksum(void) {
    uint64_t sum = 0;
    for (int i = 0; i < AREA / 8; i++) sum = (sum ^ ((uint64_t *)area)[i]) * 0x100000001b3;
    return sum;
}

static void fill(void) {
    uint64_t state = 88172645463325252;
    for (int i = 0; i < AREA / 8; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((uint64_t *)area)[i] = state & 0x3fefffff3fefffff; /* every float and double is a number */
    }
}

/* All alignments, and about the edges of all pages. */
#define WALK(kind, type)                                                                                    \
    static void walk_##kind(void) {                                                                         \
        uint64_t sum = 0;                                                                                   \
        fill();                                                                                             \
        for (int at = 0; at <= AREA - (int)sizeof(type); at += at % 8192 == 64 ? 8000 : 1) {                \
            type value = load_##kind(area + at);                                                            \
            uint64_t bits = 0;                                                                              \
            memcpy(&bits, &value, sizeof value);                                                            \
            sum = sum * 31 + bits;                                                                          \
        }                                                                                                   \
        printf("load " #kind ": %016llx\n", (unsigned long long)sum);                                       \
        for (int at = 0; at <= AREA - (int)sizeof(type); at += 1 + at % 7)                 \
            store_##kind(area + at, (type)(at * 5 - 1000));                                                 \
        printf("store " #kind ": %016llx\n", (unsigned long long)checksum());                               \
    }
WALK(word, uint16_t) WALK(long, int32_t) WALK(quad, int64_t) WALK(float, float) WALK(double, double)

/* The same address again and again: hot, and sometimes aligned after all. */
#define REPEAT(kind, type)                                                                                  \
    static void repeat_##kind(int offset, int step) {                                                       \
        type sum = 0;                                                                                       \
        store_##kind(area + PAGE + offset, 1);                                                              \
        for (int i = 0; i < 2000; i++) {                                                                   \
            char *at = area + PAGE + offset + (i % 8 == 7 ? step : 0);                                      \
            store_##kind(at, (type)(load_##kind(at) * 2 + (type)(i & 3)) > 1000 ? 1 : (type)(i & 255));     \
            sum += load_##kind(at);                                                                         \
        }                                                                                                   \
        printf("repeat " #kind " %d %d: %lld\n", offset, step, (long long)sum);                             \
    }
REPEAT(word, uint16_t) REPEAT(long, int32_t) REPEAT(quad, int64_t) REPEAT(float, float) REPEAT(double, double)

/* An access of which one part is out of reach: the fault's address lies in that part, nothing is stored. */
static sigjmp_buf back;
static char *volatile fault;

static void leave(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    fault = information->si_addr;
    siglongjmp(back, 1);
}

static void half_out_of_reach(void) {
    struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    char *edge = area + PAGE;
    int places = 0;
    fill();
    uint64_t before = checksum();
    for (int side = 0; side < 2; side++) {
        mprotect(area + side * PAGE, PAGE, side ? PROT_NONE : PROT_READ);
        for (int at = -7; at < 0; at++)
            for (int kind = 0; kind < 6; kind++) {
                int size = kind / 2 == 0 ? 8 : kind / 2 == 1 ? 4 : 2;
                if (at + size <= 0) continue;
                if (side == 0 && kind % 2 == 0) continue; /* a load can read both */
                fault = NULL;
                if (sigsetjmp(back, 1) == 0) switch (kind) {
                    case 0: load_quad(edge + at); break;
                    case 1: store_quad(edge + at, -1); break;
                    case 2: load_long(edge + at); break;
                    case 3: store_long(edge + at, -1); break;
                    case 4: load_word(edge + at); break;
                    default: store_word(edge + at, 0xffff);
                }
                places += fault >= edge + at && fault < edge + at + size;
            }
        mprotect(area + side * PAGE, PAGE, PROT_READ | PROT_WRITE);
    }
    printf("half out of reach: %d\n", places);
    /* qemu-alpha stores what it can reach. */
    printf("[not qemu] nothing stored: %d\n", checksum() == before);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    area = mmap(NULL, AREA + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    area = (char *)(((uintptr_t)area + PAGE - 1) & -PAGE);
    walk_word(), walk_long(), walk_quad(), walk_float(), walk_double();
    const int offsets[] = {0, 1, 2, 3, 5, 7, -1, -2, -3, -5, -7};
    for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int step = 0; step < 3; step++) {
            repeat_word(offsets[i], step), repeat_long(offsets[i], step), repeat_quad(offsets[i], step);
            repeat_float(offsets[i], step), repeat_double(offsets[i], step);
        }
    half_out_of_reach();
    return 0;
}
