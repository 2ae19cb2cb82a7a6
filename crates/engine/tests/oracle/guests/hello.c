#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    char *copy = malloc(100);
    strcpy(copy, "hello");
    printf("%s from %s with %d argument%s, %5.3f\n", copy, strrchr(argv[0], '/'), argc - 1, argc == 2 ? "" : "s", 2.0 / 3);
    free(copy);
    return argc;
}
