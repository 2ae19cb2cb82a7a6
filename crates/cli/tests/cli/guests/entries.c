/* Functions that are called both ways: through a pointer, and by callers that share their global pointer, which enter
   behind the instructions that compute it. */
#include <stdio.h>

#define FUNCTION __attribute__((noinline, noclone))

volatile long total;

FUNCTION long add(long n) {
    total += n;
    return total;
}
FUNCTION long count_down(long n) {
    total += 1;
    return n > 0 ? count_down(n - 1) + add(n) : 0;
}
FUNCTION long forward(long n) { return add(n + total); }

long (*volatile pointer)(long) = add;

int main(void) {
    for (long n = 1; n <= 3; n++) add(n);
    pointer(10);
    long sum = count_down(2);
    sum += forward(1);
    printf("%ld %ld\n", total, sum);
    return 0;
}
