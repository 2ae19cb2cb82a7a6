/* Elements of arrays and of compiled primitives. */
#ifndef ELEMENTS_H
#define ELEMENTS_H
#include "context.h"

/* Consecutive elements from the first, or in an order of indices of a type. */
struct elements {
    void (*fetch)(struct context *, const struct elements *, GLuint, struct vertex_in *);
    const void *source, *order;
    GLenum type;
    GLint first;
    GLsizei count;
};

/* The index of the element at a place in the order. */
GLuint element_index(const struct elements *e, GLsizei i);
/* Draws them; glBegin has been executed. */
void draw_elements(struct context *gl, const struct elements *e);

/* A primitive of a display list. Values that it does not set are those at its execution. */
struct primitive;
enum { SETS_NORMAL = 1, SETS_COLOR = 2, SETS_COORD = 4, SETS_ALL = 7 };
/* last: the values at its end, in the order of struct vertex_in. Null if memory is short. */
struct primitive *make_primitive(GLenum mode, unsigned set, const float *last, const struct vertex_in *vertex, uint32_t count);
size_t primitive_bytes(const struct primitive *p);
void play_primitive(struct context *gl, const void *at);
#endif
