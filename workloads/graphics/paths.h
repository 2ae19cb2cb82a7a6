/* Arithmetic that the generic path and the special paths share, so that they agree bit for bit. */
#ifndef PATHS_H
#define PATHS_H
#include "context.h"

/* 1/sqrt(x). The 21164 has no square root: Newton's method from an initial approximation by the exponent. */
static inline float inverse_root(float x)
{
#if defined __alpha__ && !defined __alpha_fix__
    union { float f; uint32_t u; } bits = { x };
    bits.u = 0x5f375a86u - (bits.u >> 1);
    float y = bits.f, half = x * 0.5f;
    y = y * (1.5f - half * y * y);
    y = y * (1.5f - half * y * y);
    return y * (1.5f - half * y * y);
#else
    return 1.0f / sqrtf(x);
#endif
}

static inline void normalize3(float *v)
{
    float length = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    float r = length > 0 ? inverse_root(length) : 0;
    v[0] *= r, v[1] *= r, v[2] *= r;
}

/* x to the power of the shininess, interpolated in a table. */
static inline float shininess(const float *table, float x)
{
    float k = x * SHINE_STEPS;
    if (!(k < SHINE_STEPS)) return table[SHINE_STEPS];
    int i = (int)k;
    return table[i] + (k - i) * (table[i + 1] - table[i]);
}

/* A NaN becomes 0. */
static inline float clamp01(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
static inline float dot3(const float *a, const float *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static inline float plane4(const float *p, const float *v) { return p[0] * v[0] + p[1] * v[1] + p[2] * v[2] + p[3] * v[3]; }

static inline void transform4(const float *m, const float *v, float *out)
{
    for (int k = 0; k < 4; k++) out[k] = m[k] * v[0] + m[4 + k] * v[1] + m[8 + k] * v[2] + m[12 + k] * v[3];
}

static inline uint32_t outside_frustum(const float *c)
{
    return (c[0] > c[3]) * RIGHT | (c[0] < -c[3]) * LEFT | (c[1] > c[3]) * TOP | (c[1] < -c[3]) * BOTTOM | (c[2] > c[3]) * FAR
        | (c[2] < -c[3]) * NEAR;
}

static inline void to_window(const float *viewport, const float *clip, float *win)
{
    float w = 1 / clip[3];
    for (int k = 0; k < 3; k++) win[k] = clip[k] * w * viewport[k] + viewport[3 + k];
    win[3] = w;
}
#endif
