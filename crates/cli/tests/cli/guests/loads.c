/* Loads a library while it runs. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    int (*half)(short *) = (int (*)(short *))dlsym(library, "half");
    short number = 10;
    int sum = 0;
    for (int n = 0; n < 200; n++) sum += half(&number);
    printf("%d\n", sum);
    return 0;
}
