/* IEEE arithmetic, conversions, the math library, decimal input and output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    double sum = 0;
    float single = 1;
    for (int i = 1; i < 60; i++) {
        double x = i * 0.37;
        sum += sin(x) * exp(-x / 10) + sqrt(x) / log(x + 1) - atan2(x, i) + pow(x, 0.3);
        single = single * 0.99f + (float)x / (single + 3);
        sum += (double)(long)(x * 1e6) + (double)(int)single + floor(x) + fmod(x, 0.7);
    }
    double parsed = strtod("3.14159265358979323846e-7", NULL) + strtod("1e300", NULL) * 1e-300;
    double zero = sum - sum;
    printf("%.17g %.9g %a %g\n", sum, single, parsed, 1 / (1 + zero));
    printf("%d %d %d\n", sum > parsed, isnan(zero), single == (float)sum);
    return 0;
}
