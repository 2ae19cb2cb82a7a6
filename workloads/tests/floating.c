/* flags: -lm -frounding-math -ffp-contract=off */
/* alpha flags: -mieee-with-inexact -mfp-rounding-mode=d */
/* IEEE arithmetic in both precisions: results compared bit by bit, rounding modes, exception flags. */
#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits(double x) {
    uint64_t b;
    if (x != x) return 0x7ff8000000000000; /* which NaN is the implementation's choice */
    memcpy(&b, &x, sizeof b);
    return b;
}

static uint32_t bits_single(float x) {
    uint32_t b;
    if (x != x) return 0x7fc00000;
    memcpy(&b, &x, sizeof b);
    return b;
}

static uint64_t sum;
static void add(uint64_t value) { sum = (sum ^ value) * 0x100000001b3u; }
static void show(const char *name) { printf("%-20s %016" PRIx64 "\n", name, sum); sum = 0; }

static const double edges[] = {0.0, -0.0, 1.0, -1.0, 1.5, 0.1, 3.0, 1e10, -1e10, 1e300, -1e-300, 2.2250738585072014e-308,
    5e-324, -3e-310, 1.7976931348623157e308, 16777217.0, 3.5, 2.5, -2.5, 1e-45, 2147483648.0, -2147483649.0,
    9007199254740993.0, INFINITY, -INFINITY, NAN};
enum { EDGES = sizeof edges / sizeof *edges };

/* Underflow is left out: whether tininess is found before or after rounding is a choice. */
static unsigned flags(void) {
    return (fetestexcept(FE_INVALID) != 0) | (fetestexcept(FE_DIVBYZERO) != 0) << 1
        | (fetestexcept(FE_OVERFLOW) != 0) << 2 | (fetestexcept(FE_INEXACT) != 0) << 3;
}

static void arithmetic(void) {
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            volatile double a = edges[i], b = edges[j], r;
            volatile float c = (float)a, d = (float)b, s;
#define EACH(EXPRESSION) feclearexcept(FE_ALL_EXCEPT); r = EXPRESSION; add(bits(r)); add(flags());
#define EACH_SINGLE(EXPRESSION) feclearexcept(FE_ALL_EXCEPT); s = EXPRESSION; add(bits_single(s)); add(flags());
            EACH(a + b) EACH(a - b) EACH(a * b) EACH(a / b)
            EACH_SINGLE(c + d) EACH_SINGLE(c - d) EACH_SINGLE(c * d) EACH_SINGLE(c / d)
            add((uint64_t)((a == b) | (a != b) << 1 | isless(a, b) << 2 | islessequal(a, b) << 3
                           | isunordered(a, b) << 4));
            add(bits(copysign(a, b))); add(bits(fabs(b))); add(bits(-a));
        }
}

static void conversions(void) {
    static const int64_t integers[] = {0, 1, -1, 1 << 24 | 1, INT32_MAX, INT32_MIN, (1LL << 53) + 1, INT64_MAX, INT64_MIN, -((1LL << 54) + 3)};
    for (unsigned i = 0; i < sizeof integers / sizeof *integers; i++) {
        volatile int64_t n = integers[i];
        add(bits((double)n)); add(bits_single((float)n)); add(bits((double)(uint64_t)n)); add(bits((double)(int32_t)n));
    }
    for (int i = 0; i < EDGES; i++) {
        volatile double a = edges[i];
        volatile float s = (float)a;
        add(bits_single(s)); add(bits((double)s));
        if (fabs(a) < 9e18) { add((uint64_t)(int64_t)a); add(bits(rint(a))); }
        if (fabs(a) < 2e9) add((uint64_t)(int32_t)a);
        if (a >= 0 && a < 1.8e19) add((uint64_t)a);
    }
}

static void library(void) {
    static const double points[] = {0.5, 1.25, -0.75, 3.0, 10.0};
    for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
        volatile double x = points[i];
        printf("%.12g %.12g %.12g %.12g %.12g %.12g %.12g %.12g\n", sin(x), cos(x), exp(x), atan(x), tanh(x),
               pow(fabs(x), 2.5), log(fabs(x)), cbrt(x));
        add(bits(sqrt(fabs(x)))); add(bits_single(sqrtf((float)fabs(x)))); add(bits(floor(x))); add(bits(ceil(x)));
        add(bits(trunc(x))); add(bits(round(x))); add(bits(fmod(x, 0.3))); add(bits(ldexp(x, -1050)));
        int exponent;
        add(bits(frexp(x, &exponent))); add((uint64_t)exponent);
    }
    show("exact functions");
}

static double series(void) {
    double total = 0;
    for (int i = 1; i <= 20000; i++) total += (i & 1 ? 1.0 : -1.0) / i;
    return total;
}

int main(void) {
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    static const char *const names[] = {"to nearest", "downward", "upward", "toward zero"};
    for (int i = 0; i < 4; i++) {
        if (fesetround(modes[i]) != 0 || fegetround() != modes[i]) puts("rounding mode not set");
        arithmetic();
        show(names[i]);
        conversions();
        show("conversions");
        feclearexcept(FE_ALL_EXCEPT);
    }
    fesetround(FE_TONEAREST);
    printf("%.17g %a %.3f %e %g\n", series(), 0.1, 2.0005, 123456.789, 1e-7);
    printf("%.17g %.17g %g %g %g\n", strtod("0.1", NULL), strtod("1.7976931348623157e308", NULL), 5e-324, INFINITY, DBL_MIN);
    library();
    feraiseexcept(FE_OVERFLOW | FE_INVALID);
    printf("flags %u\n", flags());
    fenv_t environment;
    feholdexcept(&environment);
    printf("flags %u\n", flags());
    fesetenv(&environment);
    printf("flags %u\n", flags() & 7);
    return 0;
}
