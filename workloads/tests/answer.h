/* A function whose code programs write over: it returns 1, and 2 with `two` in its place. */
#include <stdint.h>

__attribute__((noinline)) static int answer(void) {
    asm volatile("" ::: "memory");
    return 1;
}

#ifdef __alpha__
static const uint32_t two[] = {0x201f0002, 0x6bfa8001}; /* lda $0,2; ret */
#elif defined __riscv
static const uint16_t two[] = {0x4509, 0x8082}; /* c.li a0,2; c.jr ra */
#else
static const unsigned char two[] = {0xb8, 2, 0, 0, 0, 0xc3}; /* mov $2,%eax; ret */
#endif

/* So often that its code is compiled. */
static int often(void) {
    int (*volatile called)(void) = answer;
    int all = 0;
    for (int i = 0; i < 10000; i++) all += called();
    return all;
}
