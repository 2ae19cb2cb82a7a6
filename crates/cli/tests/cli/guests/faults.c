/* Alignment faults whose numbers are known. */
#include <stdlib.h>
#include <string.h>

struct packed { char tag; long value; } __attribute__((packed));

static char bytes[4096] __attribute__((aligned(8)));
static struct { char tag; struct packed inner; } pair __attribute__((aligned(8)));
static volatile long sum;

/* Loads that are 4 past a multiple of 8; the compiler does not know where the pointer leads. */
__attribute__((noinline)) void misplaced(char *at) {
    __asm__("" : "+r"(at));
    for (int i = 0; i < 100; i++) sum += *(volatile long *)(at + 8 * i);
}

static struct { char tag; char raw[16]; } holders[4] __attribute__((aligned(8)));

/* Loads of a member that begins at 1, 18, 35 and 52. */
__attribute__((noinline)) void members(void) {
    for (int i = 0; i < 4; i++) {
        char *raw = holders[i].raw;
        __asm__("" : "+r"(raw));
        sum += *(volatile long *)raw;
    }
}

/* Stores to each byte of 64: 7 of 8 fault. */
__attribute__((noinline)) void anywhere(char *block) {
    for (int i = 0; i < 64; i++) *(volatile long *)(block + i) = i;
}

/* The compiler knows that the type is packed. */
__attribute__((noinline)) long known(const struct packed *p) { return p->value; }

int main(void) {
    char *block = malloc(128);
    for (int i = 0; i < 10; i++) misplaced(bytes + 4);
    for (int i = 0; i < 5; i++) anywhere(block);
    for (int i = 0; i < 20; i++) sum += known(&pair.inner);
    for (int i = 0; i < 5; i++) members();
    free(block);
    return 0;
}
