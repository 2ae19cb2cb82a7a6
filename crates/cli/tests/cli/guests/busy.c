/* Threads that load a library again and again, while others fork and execute the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    printf("%s\n", what);
    exit(1);
}

static void *load(void *times) {
    for (long i = 0; i < (long)times; i++) {
        void *library = dlopen(getenv("PLUGIN"), RTLD_NOW);
        if (!library) fail(dlerror());
        long (*function)(long) = (long (*)(long))dlsym(library, "plugin");
        if (function(100) != 3480) fail("wrong");
        dlclose(library);
        int fd = open("/dev/null", O_RDONLY);
        if (fd > 20) fail("descriptors that are not the program's");
        close(fd);
    }
    return NULL;
}

static void *start(void *times) {
    for (long i = 0; i < (long)times; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", "busy", "child", NULL);
            _exit(99);
        }
        int status;
        waitpid(child, &status, 0);
        if (status) fail("a child failed");
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1) {
        load((void *)1);
        return 0;
    }
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, i % 2 ? load : start, (void *)(i % 2 ? 30L : 10L));
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    printf("done\n");
    return 0;
}
