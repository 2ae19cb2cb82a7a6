/* Calls whose numbers are known: recursion, recursion of two functions through each other, tail calls, calls through
   pointers, a signal's handler, and longjmp out of several calls. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTION __attribute__((noinline, noclone))

volatile long sum;

FUNCTION void leaf(long n) {
    for (long i = 0; i < n; i++) sum += i;
}

/* Called 2 F(n+1) - 1 times, where F are Fibonacci's numbers. */
FUNCTION long fibonacci(long n) {
    leaf(n);
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

FUNCTION long odd(long n);
FUNCTION long even(long n) { return n == 0 ? 1 : odd(n - 1) + (sum += 1, 0); }
FUNCTION long odd(long n) { return n == 0 ? 0 : even(n - 1) + (sum += 1, 0); }

FUNCTION void last(long n) { leaf(n); }
FUNCTION void first(long n) {
    sum += n;
    last(n + 1);
}

static jmp_buf back;

FUNCTION void deep(long n) {
    leaf(n);
    if (n == 0) longjmp(back, 1);
    deep(n - 1);
    sum++;
}

FUNCTION void jump(long n) {
    if (setjmp(back) == 0) deep(n);
    leaf(1);
}

FUNCTION void handler(int signal) { leaf(signal); }

FUNCTION void descend(long n) {
    if (n > 0) descend(n - 1);
    leaf(1);
}

int main(int argc, char **argv) {
    static void (*const pointers[])(long) = {first, leaf, jump};
    signal(SIGUSR1, handler);
    for (int i = 0; i < 30; i++) {
        sum += fibonacci(i % 8);
        sum += even(i);
        pointers[i % 3](i);
        if (i % 10 == 0) raise(SIGUSR1);
    }
    if (argc > 1) descend(atoi(argv[1]));
    printf("%ld\n", sum);
    return 0;
}
