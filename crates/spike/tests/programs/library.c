// A shared object with versions: callbacks, tables, thread-local and static variables, unwinding.
#include <stdlib.h>
#include <string.h>

int library_version = 7;
static __thread long local = 100;
static long counts[4];

__attribute__((noinline)) static long step(long value) {
    switch (value % 8) {
    case 0: return value + 1;
    case 1: return value * 3;
    case 2: return value - 5;
    case 3: counts[0]++; return value ^ 9;
    case 4: counts[1]++; return value / 3;
    case 5: counts[2]++; return value << 1;
    case 6: return value + local++;
    default: return labs(value) % 1000;
    }
}

static long (*steps[])(long) = {step, labs};

__attribute__((constructor)) static void begin(void) { counts[3] = strlen("constructed"); }

long library_entry(long rounds, long (*callback)(long)) {
    long value = counts[3];
    for (long i = 0; i < rounds; i++) value = steps[i % 2](value) + callback(i);
    return value + counts[0] * 100 + counts[1] * 1000 + counts[2] * 10000;
}
