/* A small program to damage. */
#include <stdio.h>
int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < argc + 100; i++) sum += i * i;
    printf("%ld %s\n", sum, argv[0]);
    return sum == 0;
}
