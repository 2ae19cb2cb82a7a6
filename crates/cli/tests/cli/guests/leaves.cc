// Calls that are left by other means than their return: by exceptions, longjmp, and siglongjmp out of a handler on a stack of its
// own. Each of the functions is called 20 times; every other call is left, the last one among them. Between calls there is much
// other work, which belongs to none of them.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

static volatile long sink;
static sigjmp_buf place;

__attribute__((noinline)) static void work(long n) {
    for (long i = 0; i < n; i++) sink += i;
}

__attribute__((noinline)) static void inner(int n) {
    work(10);
    if (n % 2) throw n;
}

__attribute__((noinline)) void thrown(int n) {
    work(100);
    inner(n);
    work(n);
}

__attribute__((noinline)) void thrown_at_once(int n) {
    if (n % 2) throw n;
    work(100);
}

__attribute__((noinline)) void jumped(int n) {
    work(100);
    if (n % 2) siglongjmp(place, 1);
}

static void handler(int) {
    siglongjmp(place, 1);
}

__attribute__((noinline)) void interrupted(int n) {
    work(100);
    if (n % 2) raise(SIGUSR1);
}

// Jumps within the call, which is not left by them.
__attribute__((noinline)) void stays(int n) {
    jmp_buf here;
    volatile char *room = static_cast<char *>(__builtin_alloca(64 + n));
    room[n] = 1;
    if (!setjmp(here)) {
        work(10);
        longjmp(here, 1);
    }
    work(100);
}

int main() {
    static char memory[1 << 16];
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = sizeof memory;
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(SIGUSR1, &action, nullptr);
    int caught = 0;
    for (int i = 0; i < 20; i++) {
        try { thrown(i); } catch (int) { caught++; }
        work(300000);
        try { thrown_at_once(i); } catch (int) { caught++; }
        work(300000);
        if (!sigsetjmp(place, 1)) jumped(i); else caught++;
        work(300000);
        if (!sigsetjmp(place, 1)) interrupted(i); else caught++;
        work(300000);
        stays(i);
        work(300000);
    }
    printf("%d\n", caught);
}
