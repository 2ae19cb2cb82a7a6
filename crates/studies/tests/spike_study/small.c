/* A program of a few procedures whose loops, calls and frames are known: the study's figures are compared with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long words, sum;

/* Without loops and calls. */
__attribute__((noinline)) long leaf(long value)
{
    return value ^ (value >> 7);
}

/* A loop of 100 iterations. */
__attribute__((noinline)) long hundred(long value)
{
    for (int i = 0; i < 100; i++)
        value = value * 31 + (value >> 3);
    return value;
}

/* A frequent path without calls, and a rare one whose calls need a frame and preserved registers. */
__attribute__((noinline)) long often(long value, long other)
{
    long result = value + other;
    if (__builtin_expect(value % 4096 == 4095, 0)) {
        long before = leaf(other);
        result += printf("rare: %ld\n", value) + leaf(before) + before * other;
    }
    sum += result;
    return result;
}

/* A call in a straight line between the frame and its end. */
__attribute__((noinline)) long framed(long value)
{
    long first = leaf(value);
    return leaf(first + 1) + first * value;
}

#ifdef DEPENDS_ON_ITS_ADDRESS
static void tell_address(void)
{
    /* No optimizer of images promises to keep these. */
    printf("%lx\n", (unsigned long)often - (unsigned long)leaf);
}
#else
static void tell_address(void) {}
#endif

int main(int count, char **arguments)
{
    char word[64];
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    if (!file) {
        puts("small: there is no input");
        return 3;
    }
    while (fscanf(file, "%63s", word) == 1) {
        long value = (long)strlen(word) + words++;
        sum += often(value, words) + framed(value) + hundred(value);
    }
    fclose(file);
    tell_address();
    printf("%ld words, %ld\n", words, sum);
    return 0;
}
