/* Data that a processor writes, a device reads, a device writes, and a processor reads: 64 lines. */
#include <stdint.h>

#define WORDS 512

static _Alignas(64) volatile uint64_t data[WORDS];

__attribute__((noinline)) static void device_reads(const volatile uint64_t *at, const volatile uint64_t *end) {
    for (; at < end; at += 8) (void)*at;
}

__attribute__((noinline)) static void device_writes(volatile uint64_t *at, volatile uint64_t *end) {
    for (; at < end; at += 8) *at = 7;
}

int main(void) {
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) data[i] = 1;
    device_reads(data, data + WORDS);
    device_writes(data, data + WORDS);
    for (int i = 0; i < WORDS; i++) sum += data[i];
    return sum != WORDS / 8 * (7 + 7);
}
