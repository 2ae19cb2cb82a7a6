/* Elements of arrays, and primitives of display lists, which are compiled to arrays: vertices go to the batch without a call for each
 * attribute. Of indexed triangles each vertex of a batch goes through the path once, however many triangles have it. */
#include "elements.h"

GLuint element_index(const struct elements *e, GLsizei i)
{
    if (!e->order) return (GLuint)(e->first + i);
    switch (e->type) {
    case GL_UNSIGNED_BYTE: return ((const GLubyte *)e->order)[i];
    case GL_UNSIGNED_SHORT: return ((const GLushort *)e->order)[i];
    default: return ((const GLuint *)e->order)[i];
    }
}

/* Transforms the batch, and draws triangles of its vertices. */
static void flush_corners(struct context *gl, const uint8_t *corner, int corners)
{
    gl->path(&gl->d, gl->batch, gl->batch_count, gl->out);
    gl->batch_count = 0;
    for (int i = 0; i < corners; i += 3) {
        struct vertex *c = &gl->out[corner[i + 2]];
        draw_triangle(gl, &gl->out[corner[i]], &gl->out[corner[i + 1]], c, c, 7);
    }
    /* Vertices found in this batch are forgotten. */
    if (++gl->batch_number == 0) memset(gl->recent, 0, sizeof gl->recent), gl->batch_number = 1;
}

static void draw_indexed_triangles(struct context *gl, const struct elements *e)
{
    enum { CORNERS = 6 * BATCH };
    uint8_t corner[CORNERS];
    int corners = 0;
    if (gl->batch_number == 0) gl->batch_number = 1;
    for (GLsizei i = 0; i + 2 < e->count; i += 3) {
        if (gl->batch_count > BATCH - 3 || corners == CORNERS) flush_corners(gl, corner, corners), corners = 0;
        for (int k = 0; k < 3; k++) {
            GLuint index = element_index(e, i + k);
            struct recent *r = &gl->recent[index % RECENT];
            if (r->index != index || r->batch != gl->batch_number) {
                e->fetch(gl, e, index, &gl->batch[gl->batch_count]);
                *r = (struct recent){ index, gl->batch_number, (uint32_t)gl->batch_count++ };
            }
            corner[corners++] = (uint8_t)r->slot;
        }
    }
    flush_corners(gl, corner, corners);
}

void draw_elements(struct context *gl, const struct elements *e)
{
    if (gl->primitive == GL_TRIANGLES && e->order && e->count > 3) {
        draw_indexed_triangles(gl, e);
        return;
    }
    for (GLsizei i = 0; i < e->count; i++) {
        e->fetch(gl, e, element_index(e, i), &gl->batch[gl->batch_count]);
        if (++gl->batch_count == BATCH) flush_vertices(gl);
    }
}

/* A primitive of a list, without its indices if each vertex is another one. */
struct primitive {
    GLenum mode;
    uint32_t set, vertices, count;
    float last[12];                     /* the values at its end, in the order of struct vertex_in */
    struct vertex_in vertex[];
};

static const GLuint *order_of(const struct primitive *p) { return p->count > p->vertices ? (const GLuint *)(p->vertex + p->vertices) : NULL; }

size_t primitive_bytes(const struct primitive *p)
{
    return sizeof *p + p->vertices * sizeof *p->vertex + (order_of(p) ? p->count * sizeof(GLuint) : 0);
}

/* Replaces equal vertices by their first one, and gives the number of those left. */
static uint32_t unite(struct vertex_in *v, uint32_t count, GLuint *order)
{
    uint32_t size = 16, left = 0;
    while (size < 2 * count) size *= 2;
    uint32_t *slots = calloc(size, sizeof *slots);                      /* numbers of vertices, from 1 */
    if (!slots) return count;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *bytes = (const unsigned char *)&v[i];
        uint32_t hash = 2166136261u;
        for (size_t k = 0; k < sizeof *v; k++) hash = (hash ^ bytes[k]) * 16777619u;
        uint32_t at = hash % size;
        while (slots[at] && memcmp(&v[slots[at] - 1], &v[i], sizeof *v) != 0) at = (at + 1) % size;
        if (!slots[at]) {
            v[left] = v[i];
            slots[at] = ++left;
        }
        order[i] = slots[at] - 1;
    }
    free(slots);
    return left;
}

struct primitive *make_primitive(GLenum mode, unsigned set, const float *last, const struct vertex_in *vertex, uint32_t count)
{
    struct primitive *p = malloc(sizeof *p + count * (sizeof *vertex + sizeof(GLuint)));
    GLuint *order = malloc((count + 1) * sizeof *order);
    if (p && order) {
        p->mode = mode, p->set = set, p->vertices = p->count = count;
        memcpy(p->last, last, sizeof p->last);
        memcpy(p->vertex, vertex, count * sizeof *vertex);
        if (mode == GL_TRIANGLES) p->vertices = unite(p->vertex, count, order);
        if (p->vertices < count) memcpy(p->vertex + p->vertices, order, count * sizeof *order);
    } else {
        free(p);
        p = NULL;
    }
    free(order);
    return p;
}

/* Values that the primitive sets go from one place to another one; both begin with a normal. */
static void copy_values(unsigned set, const float *from, float *to)
{
    if (set & SETS_NORMAL) memcpy(to, from, 3 * sizeof *to);
    if (set & SETS_COLOR) memcpy(to + 4, from + 4, 4 * sizeof *to);
    if (set & SETS_COORD) memcpy(to + 8, from + 8, 4 * sizeof *to);
}

static void fetch_vertex(struct context *gl, const struct elements *e, GLuint i, struct vertex_in *to)
{
    const struct primitive *p = e->source;
    const float *current = gl->s.current.normal;
    *to = p->vertex[i];
    if (p->set != SETS_ALL) copy_values(SETS_ALL & ~p->set, current, to->normal);
    to->normal[3] = current[3];
}

void play_primitive(struct context *gl, const void *at)
{
    const struct primitive *p = at;
    int was_inside = gl->inside;
    struct elements e = { fetch_vertex, p, order_of(p), GL_UNSIGNED_INT, 0, (GLsizei)p->count };
    gl->direct->Begin(gl, p->mode);
    if (was_inside) {                                                   /* an error; the vertices belong to what was begun before */
        for (uint32_t i = 0; i < p->count; i++) {
            const struct vertex_in *v = &p->vertex[element_index(&e, (GLsizei)i)];
            copy_values(p->set, v->normal, gl->s.current.normal);
            gl->direct->Vertex4f(gl, v->pos[0], v->pos[1], v->pos[2], v->pos[3]);
        }
    } else
        draw_elements(gl, &e);
    copy_values(p->set, p->last, gl->s.current.normal);
    gl->direct->End(gl);
}
