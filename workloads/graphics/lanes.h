/* Vertices side by side: special paths take LANES vertices at once, in the lanes of vectors where the processor has them (SSE2), one
 * by one where it has none. Each lane does what generic.c does with its vertex, in the same order and with the same rounding.
 * Arrays of vertices have room for a multiple of LANES. */
#ifndef LANES_H
#define LANES_H
#include "paths.h"

#ifdef __SSE2__
#include <emmintrin.h>
enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(16)));
typedef int32_t lane_mask __attribute__((vector_size(16)));             /* all bits of a lane, or none */

static inline lanes all(float x) { return (lanes){ x, x, x, x }; }
static inline lane_mask above(lanes a, lanes b) { return a > b; }
static inline lane_mask all_bits(uint32_t x) { return (lane_mask){ (int)x, (int)x, (int)x, (int)x }; }
static inline lane_mask none(lane_mask m) { return m == 0; }
static inline int any(lane_mask m) { return _mm_movemask_ps((__m128)m); }
static inline lanes where(lane_mask m, lanes x) { return (lanes)((lane_mask)x & m); }
static inline lanes root(lanes x) { return (lanes)_mm_sqrt_ps((__m128)x); }
static inline lanes magnitude(lanes x) { return (lanes)((lane_mask)x & 0x7fffffff); }
/* The greater or lesser of two; a NaN becomes the second. */
static inline lanes most(lanes x, lanes y) { return (lanes)_mm_max_ps((__m128)x, (__m128)y); }
static inline lanes least(lanes x, lanes y) { return (lanes)_mm_min_ps((__m128)x, (__m128)y); }

static inline void transpose(lanes *v)
{
    __m128 a = (__m128)v[0], b = (__m128)v[1], c = (__m128)v[2], d = (__m128)v[3];
    _MM_TRANSPOSE4_PS(a, b, c, d);
    v[0] = (lanes)a, v[1] = (lanes)b, v[2] = (lanes)c, v[3] = (lanes)d;
}

/* Four floats of each vertex; step is the distance between vertices in floats. */
static inline void load4(const float *from, size_t step, lanes *to)
{
    for (int i = 0; i < LANES; i++) to[i] = (lanes)_mm_loadu_ps(from + i * step);
    transpose(to);
}

static inline void store4(float *to, size_t step, const lanes *from)
{
    lanes v[4] = { from[0], from[1], from[2], from[3] };
    transpose(v);
    for (int i = 0; i < LANES; i++) _mm_storeu_ps(to + i * step, (__m128)v[i]);
}

static inline float lane(lanes x, int i) { return x[i]; }
static inline uint32_t lane_bits(lane_mask m, int i) { return (uint32_t)m[i]; }
static inline void set_lane(lanes *x, int i, float value) { (*x)[i] = value; }
static inline lanes lanes_inverse_root(lanes x) { return 1.0f / root(x); }
#else
enum { LANES = 1 };
typedef float lanes;
typedef int32_t lane_mask;

static inline lanes all(float x) { return x; }
static inline lane_mask above(lanes a, lanes b) { return -(a > b); }
static inline lane_mask all_bits(uint32_t x) { return (lane_mask)x; }
static inline lane_mask none(lane_mask m) { return -(m == 0); }
static inline int any(lane_mask m) { return m != 0; }
static inline lanes where(lane_mask m, lanes x) { return m ? x : 0; }
static inline lanes magnitude(lanes x) { return fabsf(x); }
static inline lanes most(lanes x, lanes y) { return x > y ? x : y; }
static inline lanes least(lanes x, lanes y) { return x < y ? x : y; }
static inline void load4(const float *from, size_t step, lanes *to)
{
    (void)step;
    for (int k = 0; k < 4; k++) to[k] = from[k];
}
static inline void store4(float *to, size_t step, const lanes *from)
{
    (void)step;
    for (int k = 0; k < 4; k++) to[k] = from[k];
}
static inline float lane(lanes x, int i) { (void)i; return x; }
static inline uint32_t lane_bits(lane_mask m, int i) { (void)i; return (uint32_t)m; }
static inline void set_lane(lanes *x, int i, float value) { (void)i; *x = value; }
static inline lanes lanes_inverse_root(lanes x) { return inverse_root(x); }
#endif

static inline lanes lanes_clamp01(lanes x) { return least(most(x, all(0)), all(1)); }
static inline lanes lanes_dot3(const lanes *a, const lanes *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static inline lanes lanes_plane4(const float *p, const lanes *v) { return p[0] * v[0] + p[1] * v[1] + p[2] * v[2] + p[3] * v[3]; }

static inline void lanes_normalize3(lanes *v)
{
    lanes length = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    lane_mask is_long = above(length, all(0));
    lanes r = any(is_long) ? where(is_long, lanes_inverse_root(length)) : all(0);
    for (int k = 0; k < 3; k++) v[k] *= r;
}

static inline void lanes_transform4(const float *m, const lanes *v, lanes *out)
{
    for (int k = 0; k < 4; k++) out[k] = m[k] * v[0] + m[4 + k] * v[1] + m[8 + k] * v[2] + m[12 + k] * v[3];
}

static inline lane_mask lanes_outside(const lanes *c)
{
    return (above(c[0], c[3]) & RIGHT) | (above(-c[3], c[0]) & LEFT) | (above(c[1], c[3]) & TOP) | (above(-c[3], c[1]) & BOTTOM)
        | (above(c[2], c[3]) & FAR) | (above(-c[3], c[2]) & NEAR);
}

/* Powers of the lanes in a mask; the others do not matter. */
static inline lanes lanes_shininess(const float *table, lanes x, lane_mask m)
{
    for (int i = 0; i < LANES; i++)
        if (lane_bits(m, i)) set_lane(&x, i, shininess(table, lane(x, i)));
    return x;
}
#endif
