/* The library of units.c. */
#include <string.h>
#include <unistd.h>

void helper(int depth);

static char buffer[300];
static volatile int zero;
static int exiting;

#define HIDDEN(function) __attribute__((alias(function), visibility("hidden")))
int inner_near_unit(int) HIDDEN("near_unit");
int inner_tail_unit(int) HIDDEN("tail_unit");

__attribute__((noinline)) int unit(int depth) {
    memset(buffer, depth, sizeof buffer);
    helper(depth);
    if (exiting && depth == 0) _exit(7);
    int below = depth > 0 ? unit(depth - 1) : 0;
    return below + depth + buffer[17] + zero;
}

/* Called by its hidden name, it is entered behind the computation of gp. */
__attribute__((noinline)) int near_unit(int depth) {
    int below = depth > 0 ? inner_near_unit(depth - 1) + zero : 0;
    return (int)strlen("abc") + below;
}

/* Jumps to itself. */
__attribute__((noinline)) int tail_unit(int depth) {
    buffer[depth] = (char)zero;
    return depth == 0 ? buffer[0] : inner_tail_unit(depth - 1);
}

int call_near(int depth) {
    return inner_near_unit(depth) + near_unit(depth);
}

/* Jumps into a unit. */
int jump_tail(int depth) {
    zero = 0;
    return inner_tail_unit(depth);
}

int call_unit(int depth) {
    return unit(depth) + unit(depth) + 1;
}

int escape(int depth) {
    int sum = zero;
    sum += unit(depth);
    return sum + 1;
}

int finish(int depth) {
    exiting = 1;
    return unit(depth) + 1;
}
