/* Vertex arrays. A display list records what they hold; otherwise elements go to the batch at once. */
#include "elements.h"

static int size_of(GLenum type) { return type_size(type); }

static float element(const struct array *a, const uint8_t *at, int k, int is_normalized)
{
    switch (a->type) {
    case GL_FLOAT: { GLfloat v; memcpy(&v, at + k * 4, 4); return v; }
    case GL_DOUBLE: { GLdouble v; memcpy(&v, at + k * 8, 8); return v; }
    case GL_UNSIGNED_BYTE: return is_normalized ? at[k] / 255.0f : at[k];
    case GL_BYTE: { GLbyte v = (GLbyte)at[k]; return is_normalized ? (2 * v + 1) / 255.0f : v; }
    case GL_SHORT: { GLshort v; memcpy(&v, at + k * 2, 2); return is_normalized ? (2 * v + 1) / 65535.0f : v; }
    case GL_UNSIGNED_SHORT: { GLushort v; memcpy(&v, at + k * 2, 2); return is_normalized ? v / 65535.0f : v; }
    case GL_INT: { GLint v; memcpy(&v, at + k * 4, 4); return is_normalized ? (2.0 * v + 1) / 4294967295.0 : v; }
    case GL_UNSIGNED_INT: { GLuint v; memcpy(&v, at + k * 4, 4); return is_normalized ? v / 4294967295.0 : v; }
    default: return 0;
    }
}

/* Reads an element into out, whose other components keep their defaults. */
static void read_element(const struct array *a, int i, int is_normalized, float *out)
{
    const uint8_t *at = a->pointer + (ptrdiff_t)i * a->stride;
    for (int k = 0; k < a->size; k++) out[k] = element(a, at, k, is_normalized);
}

static int is_drawing_directly(const struct context *gl) { return gl->dispatch == gl->direct; }

void APIENTRY glArrayElement(GLint i)
{
    struct context *gl = current;
    const struct array *a = gl->client.array;
    const struct dispatch *to = gl->dispatch;
    float v[4];
    if (a[EDGE_ARRAY].enabled) to->EdgeFlag(gl, a[EDGE_ARRAY].pointer[(ptrdiff_t)i * a[EDGE_ARRAY].stride]);
    if (a[COORD_ARRAY].enabled) {
        v[0] = v[1] = v[2] = 0, v[3] = 1;
        read_element(&a[COORD_ARRAY], i, 0, v);
        to->TexCoord4f(gl, v[0], v[1], v[2], v[3]);
    }
    if (a[COLOR_ARRAY].enabled) {
        v[3] = 1;
        read_element(&a[COLOR_ARRAY], i, 1, v);
        to->Color4f(gl, v[0], v[1], v[2], v[3]);
    }
    if (a[INDEX_ARRAY].enabled) {
        read_element(&a[INDEX_ARRAY], i, 0, v);
        to->Indexf(gl, v[0]);
    }
    if (a[NORMAL_ARRAY].enabled) {
        read_element(&a[NORMAL_ARRAY], i, 1, v);
        to->Normal3f(gl, v[0], v[1], v[2]);
    }
    if (a[VERTEX_ARRAY].enabled) {
        v[2] = 0, v[3] = 1;
        read_element(&a[VERTEX_ARRAY], i, 0, v);
        if (a[VERTEX_ARRAY].size == 4) to->Vertex4f(gl, v[0], v[1], v[2], v[3]);
        else to->Vertex3f(gl, v[0], v[1], v[2]);
    }
}

/* Floating-point arrays, the common layout: the values of those that are disabled, and the defaults of components that are missing. */
struct float_arrays { const struct array *array; struct vertex_in values; };

static inline void copy_floats(const struct array *a, GLuint i, float *to)
{
    const uint8_t *from = a->pointer + (ptrdiff_t)(GLint)i * a->stride;
    memcpy(to, from, 4);
    if (a->size > 1) memcpy(to + 1, from + 4, 4);
    if (a->size > 2) memcpy(to + 2, from + 8, 4);
    if (a->size > 3) memcpy(to + 3, from + 12, 4);
}

static void fetch_floats(struct context *gl, const struct elements *e, GLuint i, struct vertex_in *to)
{
    (void)gl;
    const struct float_arrays *arrays = e->source;
    const struct array *a = arrays->array;
    *to = arrays->values;
    copy_floats(&a[VERTEX_ARRAY], i, to->pos);
    if (a[NORMAL_ARRAY].enabled) copy_floats(&a[NORMAL_ARRAY], i, to->normal);
    if (a[COLOR_ARRAY].enabled) copy_floats(&a[COLOR_ARRAY], i, to->color);
    if (a[COORD_ARRAY].enabled) copy_floats(&a[COORD_ARRAY], i, to->coord);
}

static int has_floats_alone(const struct context *gl)
{
    const struct array *a = gl->client.array;
    if (!a[VERTEX_ARRAY].enabled || a[INDEX_ARRAY].enabled || a[EDGE_ARRAY].enabled) return 0;
    for (int i = 0; i < ARRAYS; i++)
        if (a[i].enabled && a[i].type != GL_FLOAT) return 0;
    return 1;
}

/* Draws elements that are consecutive, or in the order of indices. */
static void draw(struct context *gl, GLenum mode, struct elements e)
{
    GLenum error = gl->inside ? GL_INVALID_OPERATION : mode > GL_POLYGON ? GL_INVALID_ENUM : e.count < 0 ? GL_INVALID_VALUE : GL_NO_ERROR;
    if (error) {
        gl_error(gl, error);
        return;
    }
    int is_fast = is_drawing_directly(gl) && has_floats_alone(gl);
    gl->dispatch->Begin(gl, mode);
    if (is_fast && e.count > 0) {
        struct float_arrays arrays = { gl->client.array, { { 0, 0, 0, 1 }, { 0 }, { 0 }, { 0 } } };
        struct vertex_in *values = &arrays.values, last;
        memcpy(values->normal, gl->s.current.normal, 12 * sizeof(float));
        if (gl->client.array[COLOR_ARRAY].enabled) values->color[3] = 1;
        if (gl->client.array[COORD_ARRAY].enabled) memcpy(values->coord, (const float[4]){ 0, 0, 0, 1 }, sizeof values->coord);
        e.fetch = fetch_floats, e.source = &arrays;
        draw_elements(gl, &e);
        /* The current values are those of the last element, as after glArrayElement. */
        fetch_floats(gl, &e, element_index(&e, e.count - 1), &last);
        memcpy(gl->s.current.normal, last.normal, 12 * sizeof(float));
    } else
        for (GLsizei i = 0; i < e.count; i++) glArrayElement((GLint)element_index(&e, i));
    gl->dispatch->End(gl);
}

void APIENTRY glDrawArrays(GLenum mode, GLint first, GLsizei count)
{
    draw(current, mode, (struct elements){ .first = first, .count = count });
}

void APIENTRY glDrawElements(GLenum mode, GLsizei count, GLenum type, const void *indices)
{
    struct context *gl = current;
    if (type != GL_UNSIGNED_BYTE && type != GL_UNSIGNED_SHORT && type != GL_UNSIGNED_INT) gl_error(gl, GL_INVALID_ENUM);
    else draw(gl, mode, (struct elements){ .order = indices, .type = type, .count = count });
}

static void set_array(int which, GLint size, int least, int most, GLenum type, GLsizei stride, const void *pointer)
{
    struct context *gl = current;
    if (size < least || size > most || stride < 0) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    if (!size_of(type)) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    struct array *a = &gl->client.array[which];
    a->size = size, a->type = type, a->pointer = pointer;
    a->stride = stride ? stride : size * size_of(type);
}

void APIENTRY glVertexPointer(GLint size, GLenum type, GLsizei stride, const void *p) { set_array(VERTEX_ARRAY, size, 2, 4, type, stride, p); }
void APIENTRY glColorPointer(GLint size, GLenum type, GLsizei stride, const void *p) { set_array(COLOR_ARRAY, size, 3, 4, type, stride, p); }
void APIENTRY glTexCoordPointer(GLint size, GLenum type, GLsizei stride, const void *p) { set_array(COORD_ARRAY, size, 1, 4, type, stride, p); }
void APIENTRY glNormalPointer(GLenum type, GLsizei stride, const void *p) { set_array(NORMAL_ARRAY, 3, 3, 3, type, stride, p); }
void APIENTRY glIndexPointer(GLenum type, GLsizei stride, const void *p) { set_array(INDEX_ARRAY, 1, 1, 1, type, stride, p); }
void APIENTRY glEdgeFlagPointer(GLsizei stride, const void *p) { set_array(EDGE_ARRAY, 1, 1, 1, GL_UNSIGNED_BYTE, stride, p); }

static void set_enabled(GLenum name, GLboolean value)
{
    static const GLenum names[ARRAYS] = { GL_VERTEX_ARRAY, GL_NORMAL_ARRAY, GL_COLOR_ARRAY, GL_INDEX_ARRAY, GL_TEXTURE_COORD_ARRAY,
        GL_EDGE_FLAG_ARRAY };
    for (int i = 0; i < ARRAYS; i++)
        if (names[i] == name) {
            current->client.array[i].enabled = value;
            return;
        }
    gl_error(current, GL_INVALID_ENUM);
}

void APIENTRY glEnableClientState(GLenum name) { set_enabled(name, GL_TRUE); }
void APIENTRY glDisableClientState(GLenum name) { set_enabled(name, GL_FALSE); }

void APIENTRY glInterleavedArrays(GLenum format, GLsizei stride, const void *pointer)
{
    /* sizes of texture coordinates, colour, normal and vertex; the colour's type */
    static const struct { uint8_t coord, color, is_bytes, normal, vertex; } layout[] = { { 0, 0, 0, 0, 2 }, { 0, 0, 0, 0, 3 },
        { 0, 4, 1, 0, 2 }, { 0, 4, 1, 0, 3 }, { 0, 3, 0, 0, 3 }, { 0, 0, 0, 3, 3 }, { 0, 4, 0, 3, 3 }, { 2, 0, 0, 0, 3 }, { 4, 0, 0, 0, 4 },
        { 2, 4, 1, 0, 3 }, { 2, 3, 0, 0, 3 }, { 2, 0, 0, 3, 3 }, { 2, 4, 0, 3, 3 }, { 4, 4, 0, 3, 4 } };
    if (format < GL_V2F || format > GL_T4F_C4F_N3F_V4F || stride < 0) {
        gl_error(current, stride < 0 ? GL_INVALID_VALUE : GL_INVALID_ENUM);
        return;
    }
    int l = format - GL_V2F, coord = layout[l].coord * 4, color = layout[l].is_bytes ? 4 : layout[l].color * 4, normal = layout[l].normal * 4;
    const uint8_t *p = pointer;
    if (!stride) stride = coord + color + normal + layout[l].vertex * 4;
    set_enabled(GL_EDGE_FLAG_ARRAY, GL_FALSE);
    set_enabled(GL_INDEX_ARRAY, GL_FALSE);
    set_enabled(GL_TEXTURE_COORD_ARRAY, coord > 0);
    set_enabled(GL_COLOR_ARRAY, color > 0);
    set_enabled(GL_NORMAL_ARRAY, normal > 0);
    set_enabled(GL_VERTEX_ARRAY, GL_TRUE);
    if (coord) glTexCoordPointer(layout[l].coord, GL_FLOAT, stride, p);
    if (color) glColorPointer(layout[l].color, layout[l].is_bytes ? GL_UNSIGNED_BYTE : GL_FLOAT, stride, p + coord);
    if (normal) glNormalPointer(GL_FLOAT, stride, p + coord + color);
    glVertexPointer(layout[l].vertex, GL_FLOAT, stride, p + coord + color + normal);
}
