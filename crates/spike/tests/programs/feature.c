// What a rewriter of linked code must not break, with one line of output for each topic. The output has no addresses.
#define _GNU_SOURCE
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef LIBRARY
#include <dlfcn.h>
#endif

#define NOINLINE __attribute__((noinline, noclone))
#define COLD __attribute__((cold, noinline))

static volatile int zero;

// Thread-local variables and threads.
static __thread int local = 5;
__thread long shared_local[3];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void *work(void *number) {
    for (long i = 0; i < 100; i++) {
        local += (long)number;
        shared_local[i % 3] += local;
        pthread_mutex_lock(&mutex);
        total += shared_local[i % 3] % 7;
        pthread_mutex_unlock(&mutex);
    }
    return (void *)(long)local;
}

static void threads(void) {
    pthread_t all[4];
    long sum = 0;
    for (long i = 0; i < 4; i++) pthread_create(&all[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(all[i], &result);
        sum += (long)result;
    }
    printf("threads %ld %ld %d\n", sum, total, local);
}

// Jumps through tables of labels: by address, and by difference.
NOINLINE static long interpret(const char *program, long value) {
    static void *const labels[] = {&&add, &&twice, &&negate, &&halve, &&end};
    goto *labels[*program++ - 'a'];
add:
    value += 3;
    goto *labels[*program++ - 'a'];
twice:
    value *= 2;
    goto *labels[*program++ - 'a'];
negate:
    value = -value;
    goto *labels[*program++ - 'a'];
halve:
    value /= 2;
    goto *labels[*program++ - 'a'];
end:
    return value;
}

NOINLINE static long interpret_by_difference(const char *program, long value) {
    static const int labels[] = {&&add - &&add, &&twice - &&add, &&end - &&add};
    goto *(&&add + labels[*program++ - 'a']);
add:
    value += 7;
    goto *(&&add + labels[*program++ - 'a']);
twice:
    value *= 2;
    goto *(&&add + labels[*program++ - 'a']);
end:
    return value;
}

NOINLINE static const char *name(int number) {
    switch (number) {
    case 0: return "none";
    case 1: return "one";
    case 2: return "two";
    case 3: puts("three is special"); return "three";
    case 4: return "four";
    case 5: return "five";
    case 6: return getenv("NO_SUCH_VARIABLE") ? "six?" : "six";
    case 7: return "seven";
    case 9: return "nine";
    case 10: return "ten";
    case 11: exit(9);
    default: return "many";
    }
}

// Nested functions, whose addresses are those of code on the stack.
NOINLINE static long apply(long (*function)(long), long times) {
    long sum = 0;
    for (long i = 0; i < times; i++) sum += function(i);
    return sum;
}

NOINLINE static long nested(long factor) {
    __label__ out;
    long calls = 0;
    long scale(long value) {
        if (++calls > 20) goto out;
        return value * factor;
    }
    long sum = apply(scale, 10) + apply(scale, 5);
    printf("nested %ld %ld\n", sum, calls);
    apply(scale, 50);
    return -1;
out:
    return calls;
}

// setjmp, and its return from a signal handler.
static jmp_buf around;
static sigjmp_buf around_signal;

COLD static void leave(int number) {
    if (number > 3) longjmp(around, number);
}

static void on_signal(int number) {
    (void)number;
    siglongjmp(around_signal, 4);
}

NOINLINE static void jumps(void) {
    volatile int rounds = 0;
    int number = setjmp(around);
    if (number < 8) {
        rounds++;
        leave(number + 4);
    }
    signal(SIGUSR1, on_signal);
    int signalled = sigsetjmp(around_signal, 1);
    if (!signalled) raise(SIGUSR1);
    printf("jumps %d %d %d\n", number, rounds, signalled);
}

// Forced unwinding with clean-up, by cancellation and by the end of a thread.
static int cleaned;
static void clean(int *value) { cleaned += *value; }

NOINLINE static void deep(int depth) {
    int own __attribute__((cleanup(clean))) = depth;
    if (__builtin_expect(depth == zero, 0)) pthread_exit(NULL);
    deep(depth - 1);
    printf("not reached %d\n", own);
}

static void *unwound(void *unused) {
    (void)unused;
    deep(6);
    return NULL;
}

static void *cancelled(void *unused) {
    int own __attribute__((cleanup(clean))) = 1000;
    (void)unused;
    for (;;) usleep(1000);
    return own ? NULL : unused;
}

NOINLINE static void unwinding(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, unwound, NULL);
    pthread_join(thread, NULL);
    int first = cleaned;
    pthread_create(&thread, NULL, cancelled, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    printf("unwinding %d %d\n", first, cleaned);
}

// Back traces: how many frames there are, from a hot and from a cold part, and from a signal handler.
static volatile int frames_seen;
COLD static int frames(void) {
    void *all[64];
    return backtrace(all, 64);
}

NOINLINE static int descend(int depth) {
    if (depth == 0) return frames();
    if (__builtin_expect(depth == 100 + zero, 0)) {
        printf("cold part\n");
        int found = frames();
        return found + descend(depth - 98);
    }
    return descend(depth - 1) + zero;
}

static void count_frames(int number) {
    (void)number;
    frames_seen = frames();
}

NOINLINE static int traced(int depth) {
    char room[depth * 16 + 16];
    memset(room, depth, sizeof room);
    if (depth == 0) raise(SIGUSR2);
    else traced(depth - 1);
    return room[depth] + zero;
}

NOINLINE static void traces(void) {
    int base = frames();
    int found = descend(5) - base;
    int cold = descend(100) - 2 * base;
    signal(SIGUSR2, count_frames);
    traced(3);
    int first = frames_seen;
    traced(9);
    printf("traces %d %d, %d more for 6 calls\n", found, cold, frames_seen - first);
}

// Callbacks.
static int compare(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}
static int compare_down(const void *a, const void *b) { return compare(b, a); }
static int (*const compares[])(const void *, const void *) = {compare, compare_down};

NOINLINE static void callbacks(void) {
    long values[50];
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < 50; i++) values[i] = (i * 7919) % 101;
        qsort(values, 50, sizeof *values, compares[way]);
        printf("sorted %ld %ld %ld\n", values[0], values[25], values[49]);
    }
    long key = 42;
    qsort(values, 50, sizeof *values, compare);
    printf("found %d\n", bsearch(&key, values, 50, sizeof *values, compare) != NULL);
}

// Constructors and destructors.
static char order[16];
static void note(char letter) { order[strlen(order)] = letter; }
__attribute__((constructor(101))) static void first(void) { note('a'); }
__attribute__((constructor(102))) static void second(void) { note('b'); }
__attribute__((constructor)) static void third(void) { note('c'); }
__attribute__((destructor)) static void last(void) { printf("destructor %s\n", order); }
static void at_exit(void) { note('x'); }

// Variable arguments.
struct pair {
    long a;
    double b;
};
struct large {
    long values[9];
};

NOINLINE static double add_all(const char *kinds, ...) {
    va_list list, copy;
    double sum = 0;
    va_start(list, kinds);
    va_copy(copy, list);
    for (const char *kind = kinds; *kind; kind++) {
        switch (*kind) {
        case 'i': sum += va_arg(list, int); break;
        case 'l': sum += va_arg(list, long); break;
        case 'd': sum += va_arg(list, double); break;
        case 'p': {
            struct pair pair = va_arg(list, struct pair);
            sum += pair.a * pair.b;
        }
        }
    }
    sum += va_arg(copy, int);
    va_end(list);
    va_end(copy);
    return sum;
}

NOINLINE static struct large enlarge(struct large from, long by) {
    for (int i = 0; i < 9; i++) from.values[i] += by * i;
    return from;
}

// Division is a call by a convention of its own.
NOINLINE static void divide(long a, long b, unsigned c, int d) {
    printf("divided %ld %ld %lu %lu %u %u %d %d\n", a / b, a % b, (unsigned long)a / (unsigned long)b,
           (unsigned long)a % (unsigned long)b, c / (unsigned)d, c % (unsigned)d, (int)c / d, (int)c % d);
}

// Weak symbols.
__attribute__((weak)) int absent(int);
__attribute__((weak)) NOINLINE int present(int value) { return value + 1; }
static int hidden_one(int value) { return value * 3; }
int aliased(int) __attribute__((alias("hidden_one")));
static int (*const chosen)(int) = absent;

NOINLINE static void weak(void) {
    printf("weak %d %d %d %d\n", absent ? absent(1) : -1, present ? present(2) : -1, aliased(4), chosen != NULL);
}

// Frames of all sizes, and calls in the last place.
NOINLINE static long frame(long bytes) {
    char *room = alloca(bytes);
    char fixed[40000];
    memset(room, 1, bytes);
    memset(fixed, 2, sizeof fixed);
    long sum = 0;
    for (long i = 0; i < bytes; i += 16) sum += room[i];
    return sum + fixed[bytes % 40000];
}

NOINLINE static long odd(long);
NOINLINE static long even(long number) { return number == 0 ? 1 : odd(number - 1); }
NOINLINE static long odd(long number) { return number == 0 ? 0 : even(number - 1); }

NOINLINE static double floats(double a, float b) {
    double sum = 0;
    for (int i = 1; i < 20; i++) {
        if (a > i) sum += a / i;
        else if (b * i >= 30) sum -= b;
        else sum *= 1.5;
    }
    return sum + (long)(a * 100) + (int)b;
}

#ifdef LIBRARY
static void library(void) {
    void *handle = dlopen(LIBRARY, RTLD_NOW);
    if (!handle) {
        printf("%s\n", dlerror());
        return;
    }
    long (*entry)(long, long (*)(long)) = (long (*)(long, long (*)(long)))dlsym(handle, "library_entry");
    printf("library %ld\n", entry(12, even));
    printf("version %d\n", *(int *)dlsym(handle, "library_version"));
    dlclose(handle);
}
#endif

int main(int count, char **arguments) {
    if (count > 1 && !freopen(arguments[1], "w", stdout)) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(at_exit);
    threads();
    printf("interpreted %ld %ld\n", interpret("abcabde", 5), interpret_by_difference("aabac", 1));
    for (int i = 0; i < 11; i++) printf("%s%s", name(i), i < 10 ? " " : "\n");
    printf("left %ld\n", nested(3));
    jumps();
    unwinding();
    traces();
    callbacks();
    printf("added %g\n", add_all("ildpidddddi", 1, 2L, 0.5, (struct pair){3, 1.5}, 4, 1., 2., 3., 4., 5., 6));
    struct large large = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    printf("enlarged %ld\n", enlarge(large, 10).values[8]);
    divide(-1000000007L, 13, 4000000000u, 17);
    divide(99, -4, 7, -2);
    weak();
    printf("frames %ld %ld\n", frame(100), frame(100000));
    printf("even %ld %ld\n", even(1000), odd(77));
    printf("floats %.6f\n", floats(7.25, 3.5f));
#ifdef LIBRARY
    library();
#endif
    return 3;
}
