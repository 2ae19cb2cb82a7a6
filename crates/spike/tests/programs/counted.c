/* Functions whose executions are known, and ways to end. Prints "name times" for each function. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long work_times, even_times, deep_times;
static jmp_buf back;

__attribute__((noinline)) int even(int n) {
    __atomic_fetch_add(&even_times, 1, __ATOMIC_RELAXED);
    return n / 2;
}

#ifdef ADDED
__attribute__((noinline, used)) int added(int n) {
    return n > 3 ? even(n) : 7;
}
#endif

__attribute__((noinline)) int work(int n) {
#ifdef CHANGED
    if (n < 0)
        return even(n) * 3;
#endif
    __atomic_fetch_add(&work_times, 1, __ATOMIC_RELAXED);
    int sum = 0;
    for (int i = 0; i < n % 5; i++)
        switch ((n + i) % 8) {
        case 0: sum += 3; break;
        case 1: sum ^= n; break;
        case 2: sum *= 5; break;
        case 3: sum -= i; break;
        case 4: sum |= 9; break;
        case 5: sum <<= 1; break;
        default: sum += even(n);
        }
    return sum;
}

/* It returns to its caller only from depth 0. */
__attribute__((noinline)) int deep(int depth, int way) {
    deep_times++;
    if (depth == 0) {
        if (way == 'e') {
            printf("work %ld\neven %ld\ndeep %ld\n", work_times, even_times, deep_times);
            exit(7);
        }
        if (way == 'j')
            longjmp(back, 1);
        if (way == 'k') {
            printf("work %ld\neven %ld\ndeep %ld\n", work_times, even_times, deep_times);
            fflush(stdout);
            kill(getpid(), SIGKILL);
        }
        return 1;
    }
    return deep(depth - 1, way) + 1;
}

static void *thread(void *argument) {
    for (int i = 0; i < 20000; i++)
        work(i);
    return argument;
}

int main(int count, char **words) {
    int way = count > 1 ? words[1][0] : ' ';
    for (int i = 0; i < 1000; i++)
        work(i);
    if (way == 't') {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    if (way == 'f') {
        for (int i = 0; i < 3; i++)
            if (fork() == 0) {
                for (int k = 0; k < 500; k++)
                    work(k);
                _exit(0);
            }
        while (wait(NULL) > 0)
            ;
    }
    if (setjmp(back) == 0)
        deep(5, way);
    printf("work %ld\neven %ld\ndeep %ld\n", work_times, even_times, deep_times);
    return 0;
}
