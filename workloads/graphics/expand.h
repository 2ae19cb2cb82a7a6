/* Expands commands.def: define COMMAND, ARRAY and IMAGE, and include this file.
 *   COMMAND(name, allowed, opcode, side, (parameters), (arguments), fields, assignments, (recorded arguments))
 *   ARRAY(... the same, element type, count)     the array is the last parameter, `v`
 *   IMAGE(... the same, width, height, format, type, gaps)    the image is the last parameter, `v`
 * Parameters lack the context: CTX_P and CTX_A put it in front where it is wanted. */
#ifndef EXPAND_H
#define EXPAND_H
#define P1(A) A a
#define P2(A, B) P1(A), B b
#define P3(A, B, C) P2(A, B), C c
#define P4(A, B, C, D) P3(A, B, C), D d
#define P5(A, B, C, D, E) P4(A, B, C, D), E e
#define P6(A, B, C, D, E, F) P5(A, B, C, D, E), F f
#define P7(A, B, C, D, E, F, G) P6(A, B, C, D, E, F), G g
#define P8(A, B, C, D, E, F, G, H) P7(A, B, C, D, E, F, G), H h
#define F1(A) A a;
#define F2(A, B) F1(A) B b;
#define F3(A, B, C) F2(A, B) C c;
#define F4(A, B, C, D) F3(A, B, C) D d;
#define F5(A, B, C, D, E) F4(A, B, C, D) E e;
#define F6(A, B, C, D, E, F) F5(A, B, C, D, E) F f;
#define F7(A, B, C, D, E, F, G) F6(A, B, C, D, E, F) G g;
#define F8(A, B, C, D, E, F, G, H) F7(A, B, C, D, E, F, G) H h;
#define S1 p->a = a;
#define S2 S1 p->b = b;
#define S3 S2 p->c = c;
#define S4 S3 p->d = d;
#define S5 S4 p->e = e;
#define S6 S5 p->f = f;
#define S7 S6 p->g = g;
#define S8 S7 p->h = h;
#define R1 p->a
#define R2 R1, p->b
#define R3 R2, p->c
#define R4 R3, p->d
#define R5 R4, p->e
#define R6 R5, p->f
#define R7 R6, p->g
#define R8 R7, p->h
#define EMPTY
#define CTX_P(...) (struct context *gl __VA_OPT__(,) __VA_ARGS__)
#define CTX_A(...) (gl __VA_OPT__(,) __VA_ARGS__)
#define NO_CTX_P(...) (__VA_ARGS__)
#endif
#define C0(n, w, o, z) COMMAND(n, w, o, z, (), (), EMPTY, EMPTY, ())
#define C1(n, w, o, z, A) COMMAND(n, w, o, z, (P1(A)), (a), F1(A), S1, (R1))
#define C2(n, w, o, z, A, B) COMMAND(n, w, o, z, (P2(A, B)), (a, b), F2(A, B), S2, (R2))
#define C3(n, w, o, z, A, B, C) COMMAND(n, w, o, z, (P3(A, B, C)), (a, b, c), F3(A, B, C), S3, (R3))
#define C4(n, w, o, z, A, B, C, D) COMMAND(n, w, o, z, (P4(A, B, C, D)), (a, b, c, d), F4(A, B, C, D), S4, (R4))
#define C5(n, w, o, z, A, B, C, D, E) COMMAND(n, w, o, z, (P5(A, B, C, D, E)), (a, b, c, d, e), F5(A, B, C, D, E), S5, (R5))
#define C6(n, w, o, z, A, B, C, D, E, F) COMMAND(n, w, o, z, (P6(A, B, C, D, E, F)), (a, b, c, d, e, f), F6(A, B, C, D, E, F), S6, (R6))
#define C7(n, w, o, z, A, B, C, D, E, F, G) \
    COMMAND(n, w, o, z, (P7(A, B, C, D, E, F, G)), (a, b, c, d, e, f, g), F7(A, B, C, D, E, F, G), S7, (R7))
#define C8(n, w, o, z, A, B, C, D, E, F, G, H) \
    COMMAND(n, w, o, z, (P8(A, B, C, D, E, F, G, H)), (a, b, c, d, e, f, g, h), F8(A, B, C, D, E, F, G, H), S8, (R8))
#define V0(n, w, o, z, T, N) ARRAY(n, w, o, z, (const T *v), (v), EMPTY, EMPTY, (data), T, N)
#define V1(n, w, o, z, A, T, N) ARRAY(n, w, o, z, (P1(A), const T *v), (a, v), F1(A), S1, (R1, data), T, N)
#define V2(n, w, o, z, A, B, T, N) ARRAY(n, w, o, z, (P2(A, B), const T *v), (a, b, v), F2(A, B), S2, (R2, data), T, N)
#define V4(n, w, o, z, A, B, C, D, T, N) ARRAY(n, w, o, z, (P4(A, B, C, D), const T *v), (a, b, c, d, v), F4(A, B, C, D), S4, (R4, data), T, N)
#define V7(n, w, o, z, A, B, C, D, E, F, G, T, N) \
    ARRAY(n, w, o, z, (P7(A, B, C, D, E, F, G), const T *v), (a, b, c, d, e, f, g, v), F7(A, B, C, D, E, F, G), S7, (R7, data), T, N)
#define I0(n, w, o, z, ...) IMAGE(n, w, o, z, (const void *v), (v), EMPTY, EMPTY, (data), __VA_ARGS__)
#define I4(n, w, o, z, A, B, C, D, ...) \
    IMAGE(n, w, o, z, (P4(A, B, C, D), const void *v), (a, b, c, d, v), F4(A, B, C, D), S4, (R4, data), __VA_ARGS__)
#define I6(n, w, o, z, A, B, C, D, E, F, ...) \
    IMAGE(n, w, o, z, (P6(A, B, C, D, E, F), const void *v), (a, b, c, d, e, f, v), F6(A, B, C, D, E, F), S6, (R6, data), __VA_ARGS__)
#define I7(n, w, o, z, A, B, C, D, E, F, G, ...) \
    IMAGE(n, w, o, z, (P7(A, B, C, D, E, F, G), const void *v), (a, b, c, d, e, f, g, v), F7(A, B, C, D, E, F, G), S7, (R7, data), \
        __VA_ARGS__)
#define I8(n, w, o, z, A, B, C, D, E, F, G, H, ...) \
    IMAGE(n, w, o, z, (P8(A, B, C, D, E, F, G, H), const void *v), (a, b, c, d, e, f, g, h, v), F8(A, B, C, D, E, F, G, H), S8, \
        (R8, data), __VA_ARGS__)
#include "commands.def"
#undef C0
#undef C1
#undef C2
#undef C3
#undef C4
#undef C5
#undef C6
#undef C7
#undef C8
#undef V0
#undef V1
#undef V2
#undef V4
#undef V7
#undef I0
#undef I4
#undef I6
#undef I7
#undef I8
#undef COMMAND
#undef ARRAY
#undef IMAGE
