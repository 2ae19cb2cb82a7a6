// What unwinders go through: frames with a frame pointer, of variable size and with clean-ups; exceptions, cancelled threads,
// backtraces and jumps out of signal handlers; calls that never return. The output has no addresses.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline, noclone))

static FILE *out;
static volatile int zero;
static volatile long sum;

NOINLINE static int thrower(int x) {
    if (x > 10) throw x;
    return x + zero;
}
NOINLINE static int middle(const int &x) { return thrower(x) + 1; }

NOINLINE static int of_variable_size(int n) {
    volatile char *block = (volatile char *)alloca(n * 8 + 16);
    volatile int array[n + 1];
    array[n] = n;
    block[n] = 3;
    int result = middle(n);
    return result + array[n] + block[n];
}

struct Guard {
    long *place, value;
    ~Guard() { *place += value; }
};
NOINLINE static int guarded(int n, long *place) {
    Guard guard{place, n};
    return of_variable_size(n) + (int)guard.value;
}
static void clean(int *value) { sum += *value; }
NOINLINE static int cleaned(int n) {
    int value __attribute__((cleanup(clean))) = n;
    return middle(n) + value;
}

static void exceptions() {
    long total = 0, guards = 0;
    for (int i = 0; i < 20; i++) {
        try {
            total += middle(i) + of_variable_size(i) + guarded(i, &guards) + cleaned(i);
        } catch (int value) {
            total += 100 * value;
        }
        try {
            total += guarded(i, &guards) + cleaned(i);
        } catch (int) {
            total++;
        }
    }
    fprintf(out, "exceptions %ld, guards %ld, clean-ups %ld\n", total, guards, sum);
}

static _Unwind_Reason_Code count_frame(_Unwind_Context *, void *count) {
    ++*(int *)count;
    return _URC_NO_REASON;
}
NOINLINE static int depth() {
    int count = 0;
    _Unwind_Backtrace(count_frame, &count);
    return count;
}
NOINLINE static int deep(int n, int base) {
    volatile char *block = (volatile char *)alloca(n + 16);
    block[n] = 1;
    if (n == 0) return depth() - base;
    return deep(n - 1, base) + block[n] - 1;
}

NOINLINE static void *wait_for_ever(void *) {
    char *block = (char *)alloca(getpid() % 3 * 16 + 16);
    pthread_cleanup_push([](void *value) { fprintf(out, "cancelled %s\n", (char *)value); }, block);
    strcpy(block, "thread");
    for (;;) pause();
    pthread_cleanup_pop(0);
    return nullptr;
}

static sigjmp_buf back;
static void on_signal(int number) {
    if (number == SIGUSR2) siglongjmp(back, 7);
    sum += depth() > 2;
}
static void on_fault(int) { throw 42; }
NOINLINE static long load(long *place) { return *place; }
NOINLINE static long load_framed(long *place, int n) {
    volatile char *block = (volatile char *)alloca(n + 16);
    block[n] = 2;
    return load(place) + block[n];
}

NOINLINE __attribute__((noreturn)) static void leave(int value) {
    fprintf(out, "leaves with %d\n", value);
    fclose(out);
    exit(value);
}
NOINLINE static void leave_if(int value) {
    if (value > 3) leave(value);
    sum++;
}
NOINLINE static void nothing() { __asm__ volatile(""); }
NOINLINE static long by_labels(const char *code) {
    static void *const labels[] = {&&add, &&twice, &&done};
    long value = 1;
    goto *labels[*code++ - '0'];
add:
    value += 3;
    goto *labels[*code++ - '0'];
twice:
    value *= 2;
    goto *labels[*code++ - '0'];
done:
    return value;
}

int main(int, char **arguments) {
    out = fopen(arguments[1], "w");
    exceptions();
    int base = depth();
    fprintf(out, "frames %d %d\n", deep(0, base), deep(5, base));
    void *addresses[50];
    fprintf(out, "backtrace %d\n", backtrace(addresses, 50) > 2);
    pthread_t thread;
    pthread_create(&thread, nullptr, wait_for_ever, nullptr);
    usleep(10000);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    raise(SIGUSR1);
    fprintf(out, "jumped %d\n", sigsetjmp(back, 1) ? 7 : raise(SIGUSR2));
    struct sigaction action = {};
    action.sa_handler = on_fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    long caught = 0;
    for (int i = 0; i < 10; i++) {
        try {
            long value = 5;
            caught += load_framed(i % 3 ? &value : nullptr, i);
        } catch (int value) {
            caught += value;
        }
    }
    fprintf(out, "faults %ld\n", caught);
    nothing();
    fprintf(out, "labels %ld\n", by_labels("01012"));
    for (int i = 0; i < 10; i++) leave_if(i);
}
