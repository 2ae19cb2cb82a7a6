/* Forks children that work much more than their parent, which waits for each. */
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

FUNCTION long work(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}

int main(void) {
    for (int i = 0; i < 10; i++) {
        int status;
        pid_t child = fork();
        if (!child) {
            work(100000);
            _exit(3);
        }
        work(100);
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3) return 1;
    }
    return 0;
}
