/* flags: -lm -frounding-math -ffp-contract=off -fno-builtin */
/* alpha flags: -mieee-with-inexact -mfp-rounding-mode=d */
/* not as on x86-64: RISC-V has no floating-point traps */
/* Arithmetic exceptions in loops that have run long: the flags they leave and, where they are enabled,
 * the signals; numbers that hardware leaves to software; rounding that changes within a loop. */
#define _GNU_SOURCE
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 100000 };

static sigjmp_buf back;
static volatile sig_atomic_t code;

static void leave(int signal, siginfo_t *information, void *context) {
    (void)context;
    code = signal == SIGFPE ? information->si_code : -1;
    siglongjmp(back, 1);
}

static const char *describe(void) {
    switch (code) {
        case FPE_INTDIV: return "FPE_INTDIV";
        case FPE_FLTDIV: return "FPE_FLTDIV";
        case FPE_FLTOVF: return "FPE_FLTOVF";
        case FPE_FLTUND: return "FPE_FLTUND";
        case FPE_FLTRES: return "FPE_FLTRES";
        case FPE_FLTINV: return "FPE_FLTINV";
        default: return "nothing";
    }
}

static const char *flags(void) {
    static const struct { int bit; char letter; } kinds[] = {
        {FE_INVALID, 'i'}, {FE_DIVBYZERO, 'z'}, {FE_OVERFLOW, 'o'}, {FE_UNDERFLOW, 'u'}, {FE_INEXACT, 'x'}};
    static char text[8];
    int set = fetestexcept(FE_ALL_EXCEPT), length = 0;
    for (int i = 0; i < 5; i++) if (set & kinds[i].bit) text[length++] = kinds[i].letter;
    text[length] = 0;
    return text;
}

static uint64_t bits(double value) { uint64_t bits; memcpy(&bits, &value, 8); return bits; }
static uint32_t short_bits(float value) { uint32_t bits; memcpy(&bits, &value, 4); return bits; }
/* The sign of a NaN that an operation makes is the processor's choice. */
static uint64_t known(double value) { return isnan(value) ? 0 : bits(value); }

/* Each operation with a pair that is exact and raises nothing; the last pair raises. */
#define OPERATION(name, type, expression)                                                                   \
    static __attribute__((noinline)) double name(double good_a, double good_b, double bad_a, double bad_b,  \
                                                 long rounds) {                                             \
        type a = good_a, b = good_b, result = 0;                                                            \
        for (volatile long i = 0; i <= rounds; i++) {                                                       \
            if (i == rounds) a = bad_a, b = bad_b;                                                          \
            result = expression;                                                                            \
            __asm__ volatile("" : "+m"(a), "+m"(b), "+m"(result));                                          \
        }                                                                                                   \
        return result;                                                                                      \
    }
OPERATION(add_double, double, a + b) OPERATION(subtract_double, double, a - b)
OPERATION(multiply_double, double, a * b) OPERATION(divide_double, double, a / b)
OPERATION(add_float, float, a + b) OPERATION(subtract_float, float, a - b)
OPERATION(multiply_float, float, a * b) OPERATION(divide_float, float, a / b)

static const struct {
    const char *name;
    double (*run)(double, double, double, double, long);
    double a, b;
    int raised;
} cases[] = {
    {"inf - inf", subtract_double, INFINITY, INFINITY, FE_INVALID},
    {"0 * inf", multiply_double, 0, INFINITY, FE_INVALID},
    {"0 / 0", divide_double, 0, 0, FE_INVALID},
    {"inf / inf", divide_float, INFINITY, INFINITY, FE_INVALID},
    {"inf + -inf", add_float, INFINITY, -INFINITY, FE_INVALID},
    {"1 / 0", divide_double, 1, 0, FE_DIVBYZERO},
    {"-1 / 0", divide_float, -1, 0, FE_DIVBYZERO},
    {"large * large", multiply_double, DBL_MAX, 2, FE_OVERFLOW},
    {"large + large", add_double, DBL_MAX, DBL_MAX, FE_OVERFLOW},
    {"large * large, float", multiply_float, FLT_MAX, FLT_MAX, FE_OVERFLOW},
    {"small * small", multiply_double, DBL_MIN, 0.3, FE_UNDERFLOW},
    {"small / large, float", divide_float, FLT_MIN, 3, FE_UNDERFLOW},
    {"1 / 3", divide_double, 1, 3, FE_INEXACT},
    {"1 + small", add_double, 1, 1e-30, FE_INEXACT},
    {"1 / 3, float", divide_float, 1, 3, FE_INEXACT},
};
enum { CASES = sizeof cases / sizeof *cases };

static void exceptions(void) {
    struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
    sigaction(SIGFPE, &action, NULL);
    for (volatile int i = 0; i < CASES; i++) {
        feclearexcept(FE_ALL_EXCEPT);
        double result = cases[i].run(4, 2, cases[i].a, cases[i].b, ROUNDS);
        printf("%s: %s %016llx,", cases[i].name, flags(), (unsigned long long)known(result));
        feclearexcept(FE_ALL_EXCEPT);
        code = 0;
        if (sigsetjmp(back, 1) == 0) {
            feenableexcept(cases[i].raised);
            cases[i].run(4, 2, cases[i].a, cases[i].b, ROUNDS);
        }
        fedisableexcept(FE_ALL_EXCEPT);
        printf(" signal %d,", code != 0);
        const char *told = describe();
        /* The others are enabled, this one is not. */
        feclearexcept(FE_ALL_EXCEPT);
        code = 0;
        if (sigsetjmp(back, 1) == 0) {
            feenableexcept((FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW) & ~cases[i].raised);
            cases[i].run(4, 2, cases[i].a, cases[i].b, 1000);
        }
        fedisableexcept(FE_ALL_EXCEPT);
        printf(" %s\n", describe());
        printf("[not qemu] %s\n", told); /* qemu-alpha says FPE_FLTINV of all */
    }
    printf("enabled: %d", fegetexcept() == 0);
    feenableexcept(FE_DIVBYZERO | FE_OVERFLOW);
    printf(" %d\n", fegetexcept() == (FE_DIVBYZERO | FE_OVERFLOW));
    fedisableexcept(FE_ALL_EXCEPT);
}

/* Exceptions again and again, in one loop. */
static void often(void) {
    volatile long seen = 0;
    volatile double zero = 0, one = 1, sum = 0;
    for (volatile int i = 0; i < 300; i++) {
        feclearexcept(FE_ALL_EXCEPT);
        if (sigsetjmp(back, 1) == 0) {
            feenableexcept(FE_DIVBYZERO);
            sum += one / (i % 3 ? one : zero);
        } else {
            seen++;
        }
        fedisableexcept(FE_ALL_EXCEPT);
    }
    printf("often: %ld %.0f\n", seen, sum);
    volatile long divisor = 0, quotients = 0;
    seen = 0;
    for (volatile long i = -200; i <= 200; i++) {
        divisor = i % 40;
        if (sigsetjmp(back, 1) == 0) quotients += 1000000 / divisor + 77777 % divisor;
        else seen += code == FPE_INTDIV;
    }
    printf("integers: %ld %ld\n", seen, quotients);
}

/* Numbers below the normal ones, through every operation. */
static void denormal(void) {
    double a = DBL_MIN, b = DBL_TRUE_MIN * 12345;
    float c = FLT_MIN, d = FLT_TRUE_MIN * 321;
    uint64_t sum = 0;
    for (int i = 0; i < 3000; i++) {
        a = a * 0.75 + b / 3;
        b = b + a * 1e-3 - DBL_TRUE_MIN;
        c = c * 0.75f + d / 3;
        d = d + c * 1e-2f - FLT_TRUE_MIN;
        if (a < DBL_TRUE_MIN * 1000) a = DBL_MIN * 1.5;
        if (c < FLT_TRUE_MIN * 100) c = FLT_MIN * 1.5f;
        sum = sum * 31 + bits(a) * 3 + bits(b) + short_bits(c) + short_bits(d) + (a < b) + 2 * (a == b);
        sum += bits((double)d) ^ short_bits((float)a) ^ bits(sqrt(fabs(b)));
    }
    printf("denormal: %016llx %s\n", (unsigned long long)sum, flags());
}

static __attribute__((noinline)) uint64_t rounded(long rounds, double step) {
    double x = 1, y = 3;
    float f = 1;
    uint64_t sum = 0;
    for (long i = 0; i < rounds; i++) {
        x = x / y + step;
        y = y * 1.000001 - x * 1e-7;
        f = (float)(f * 0.7f + x);
        sum = sum * 31 + bits(x) + bits(y) + short_bits(f) + (uint64_t)(long long)(x * 1000);
    }
    return sum;
}

static void rounding(void) {
    static const struct { int mode; const char *name; } modes[] = {
        {FE_TONEAREST, "nearest"}, {FE_UPWARD, "up"}, {FE_DOWNWARD, "down"}, {FE_TOWARDZERO, "zero"}};
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        int set = fesetround(modes[i].mode);
        uint64_t found = rounded(30000, 0.1);
        printf("%s: %d %d %016llx\n", modes[i].name, set, fegetround() == modes[i].mode, (unsigned long long)found);
    }
    for (int i = 0; i < 2000; i++) {
        fesetround(modes[i % 4].mode);
        sum = sum * 31 + rounded(20, i);
    }
    fesetround(FE_TONEAREST);
    printf("in turn: %016llx\n", (unsigned long long)sum);
}

/* What a program keeps of the environment, and brings back. */
static void environments(void) {
    volatile double zero = 0, one = 1, large = DBL_MAX, result;
    fenv_t kept;
    fexcept_t some;
    feclearexcept(FE_ALL_EXCEPT);
    result = one / zero;
    fegetexceptflag(&some, FE_ALL_EXCEPT);
    feholdexcept(&kept);
    printf("held: [%s]", flags());
    result = large * large;
    printf(" [%s]", flags());
    feupdateenv(&kept);
    printf(" [%s]", flags());
    feclearexcept(FE_ALL_EXCEPT);
    fesetexceptflag(&some, FE_DIVBYZERO);
    printf(" [%s]", flags());
    fesetenv(FE_DFL_ENV);
    fesetround(FE_UPWARD);
    fegetenv(&kept);
    fesetround(FE_DOWNWARD);
    fesetenv(&kept);
    printf(" %d\n", fegetround() == FE_UPWARD);
    fesetenv(FE_DFL_ENV);
    (void)result;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    exceptions();
    often();
    denormal();
    rounding();
    environments();
    return 0;
}
