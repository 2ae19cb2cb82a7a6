/* A call that just reaches its target by a branch, and does not if code is inserted between. Prints "name times". */
#include <stdio.h>

#define PADDING(name, size) \
    __asm__(".text\n\t.align 4\n\t.type " #name ",@function\n" #name ":\n\t.skip " #size "\n\t.size " #name ",.-" #name)
PADDING(first, 1 << 20);
PADDING(second, 1 << 20);
PADDING(third, 1 << 20);
PADDING(fourth, (1 << 20) - 0x280);

int __attribute__((noipa)) leaf(const long *place) {
    return *place == 3;
}

int main(void) {
    int found = 0;
    for (long i = 0; i < 25; i++)
        found += leaf(&i);
    printf("leaf %d\n", 25 * found);
    return 0;
}
