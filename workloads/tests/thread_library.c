/* flags: -pthread -ldl */
/* Thread-local variables of a shared library that is loaded while threads run. The same source is
 * the library, with -DLIBRARY -shared -fPIC, and the program, which loads ../library.so. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#ifdef LIBRARY

static _Thread_local long counter = 100;
_Thread_local char text[4000] = "fresh";

long count(int by) {
    text[0] = 'F';
    return counter += by;
}

#else

static _Thread_local long inside = 3;
static _Atomic int ready, loaded;
static long (*count)(int);
static void *library;

static void *use(void *number) {
    long id = (long)number, wrong = inside++ != 3;
    ready++;
    while (!loaded) sched_yield();
    for (int i = 1; i <= 1000; i++) wrong += count(id) != 100 + i * id;
    const char *text = dlsym(library, "text");
    return (void *)(wrong + (text == NULL || text[0] != 'F' || text[1] != 'r') + (inside != 4));
}

int main(void) {
    pthread_t threads[8];
    long wrong = 0;
    for (int round = 0; round < 2; round++) {
        ready = loaded = 0;
        for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, use, (void *)i);
        while (ready < 8) sched_yield();
        library = dlopen("../library.so", RTLD_NOW);
        if (!library) {
            printf("%s\n", dlerror());
            return 1;
        }
        count = (long (*)(int))dlsym(library, "count");
        loaded = 1;
        for (int i = 0; i < 8; i++) {
            void *result;
            pthread_join(threads[i], &result);
            wrong += (long)result;
        }
        printf("round %d: %ld wrong, mine %ld\n", round, wrong, count(1));
        dlclose(library);
    }
    return 0;
}

#endif
