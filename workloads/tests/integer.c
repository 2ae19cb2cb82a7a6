/* Integer operations of every width compared with their definitions; prints checksums. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t state = 1;

/* Mixes edge values with pseudo-random ones. */
static uint64_t next(void) {
    static const uint64_t edges[] = {0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
                                     0xffffffff, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX};
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t bits = state >> 33;
    if (bits % 3 == 0) return edges[bits / 3 % (sizeof edges / sizeof *edges)];
    return state ^ state >> 29;
}

static uint64_t sum;
static void add(uint64_t value) { sum = (sum ^ value) * 0x100000001b3u; }
static void show(const char *name) { printf("%-12s %016" PRIx64 "\n", name, sum); sum = 0xcbf29ce484222325u; }

/* Every operator on one pair of types; division leaves out what C leaves undefined. */
#define OPERATORS(NAME, S, U, BITS)                                                                  \
    static void NAME(void) {                                                                         \
        for (int i = 0; i < 2000; i++) {                                                             \
            volatile U x = (U)next(), y = (U)next();                                                 \
            U a = x, b = y;                                                                          \
            S c = (S)a, d = (S)b;                                                                    \
            unsigned shift = (unsigned)next() % (BITS);                                              \
            add((U)(a + b)); add((U)(a - b)); add((U)((uint64_t)a * b)); add((U)(a & b));            \
            add((U)(a | b)); add((U)(a ^ b)); add((U)~a); add((U)-a);                                \
            add((U)((uint64_t)a << shift)); add((U)(a >> shift)); add((uint64_t)(int64_t)(c >> shift)); \
            if (b != 0) { add((U)(a / b)); add((U)(a % b)); }                                        \
            if (d != 0 && d != -1) { add((uint64_t)(int64_t)(c / d)); add((uint64_t)(int64_t)(c % d)); } \
            add((uint64_t)(int64_t)(c / 10)); add(a / 1000u % 7u); add((uint64_t)(int64_t)(c % 8));  \
            add((a < b) | (a <= b) << 1 | (a == b) << 2 | (c < d) << 3 | (c <= d) << 4 | (c != 0) << 5); \
            add(c < d ? a : b); add((uint64_t)(int64_t)c); add(a);                                   \
            S t; U u;                                                                                \
            add(__builtin_add_overflow(c, d, &t)); add((U)t); add(__builtin_sub_overflow(a, b, &u)); add(u); \
            add(__builtin_mul_overflow(c, d, &t)); add((U)t); add(__builtin_mul_overflow(a, b, &u)); add(u); \
        }                                                                                            \
        show(#NAME);                                                                                 \
    }

OPERATORS(bits8, int8_t, uint8_t, 8)
OPERATORS(bits16, int16_t, uint16_t, 16)
OPERATORS(bits32, int32_t, uint32_t, 32)
OPERATORS(bits64, int64_t, uint64_t, 64)

static void counting(void) {
    for (int i = 0; i < 2000; i++) {
        volatile uint64_t x = next();
        uint64_t a = x;
        add(__builtin_popcountll(a)); add(__builtin_parityll(a)); add(__builtin_bswap64(a));
        add(__builtin_bswap32((uint32_t)a)); add(__builtin_ffsll((long long)a));
        if (a != 0) { add(__builtin_clzll(a)); add(__builtin_ctzll(a)); }
        if ((uint32_t)a != 0) { add(__builtin_clz((uint32_t)a)); add(__builtin_ctz((uint32_t)a)); }
    }
    show("counting");
}

static void wide(void) {
    for (int i = 0; i < 1000; i++) {
        unsigned __int128 a = (unsigned __int128)next() << 64 | next(), b = (unsigned __int128)next() << 64 | next();
        unsigned shift = (unsigned)next() % 128;
        unsigned __int128 results[] = {a * b, a + b, a - b, a >> shift, a << shift, b ? a / b : 0, b ? a % b : 0};
        for (unsigned j = 0; j < sizeof results / sizeof *results; j++) {
            add((uint64_t)results[j]);
            add((uint64_t)(results[j] >> 64));
        }
        __int128 c = (__int128)a, d = (int64_t)next();
        if (d != 0 && d != -1) { add((uint64_t)(c / d)); add((uint64_t)(c % d)); }
    }
    show("bits128");
}

static void indexing(void) {
    static int32_t words[64];
    static int64_t quads[64];
    static int16_t halves[64];
    for (int i = 0; i < 4000; i++) {
        unsigned j = (unsigned)next() % 64, k = (unsigned)next() % 64;
        words[j] += (int32_t)(4 * words[k] + i);
        quads[k] -= 8 * quads[j] - words[k];
        halves[j] = (int16_t)(halves[k] + words[j]);
    }
    for (int i = 0; i < 64; i++) { add((uint64_t)words[i]); add((uint64_t)quads[i]); add((uint64_t)halves[i]); }
    show("indexing");
}

static void switches(void) {
    for (int i = 0; i < 1000; i++) {
        switch (next() % 12) {
        case 0: add(3); break;
        case 1: add(1); /* fall through */
        case 2: add(4); break;
        case 3: add(15); break;
        case 5: add(9); break;
        case 6: add(26); break;
        case 7: add(5); break;
        case 9: add(35); break;
        case 10: add(8); break;
        default: add(97);
        }
    }
    show("switches");
}

int main(void) {
    show("nothing");
    bits8(); bits16(); bits32(); bits64(); counting(); wide(); indexing(); switches();
    return 0;
}
