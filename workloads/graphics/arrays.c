/* Vertex arrays. A display list records what they hold; otherwise elements go to the batch at once. */
#include "context.h"

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

/* Copies an element of floating-point arrays to the batch: the common layout, without a call by attribute. */
static void push_floats(struct context *gl, GLint i)
{
    const struct array *a = gl->client.array;
    struct current_group *c = &gl->s.current;
    if (a[NORMAL_ARRAY].enabled) memcpy(c->normal, a[NORMAL_ARRAY].pointer + (ptrdiff_t)i * a[NORMAL_ARRAY].stride, 12);
    if (a[COLOR_ARRAY].enabled) {
        c->color[3] = 1;
        memcpy(c->color, a[COLOR_ARRAY].pointer + (ptrdiff_t)i * a[COLOR_ARRAY].stride, a[COLOR_ARRAY].size * sizeof(float));
    }
    if (a[COORD_ARRAY].enabled) {
        c->coord[0] = c->coord[1] = c->coord[2] = 0, c->coord[3] = 1;
        memcpy(c->coord, a[COORD_ARRAY].pointer + (ptrdiff_t)i * a[COORD_ARRAY].stride, a[COORD_ARRAY].size * sizeof(float));
    }
    float v[4] = { 0, 0, 0, 1 };
    memcpy(v, a[VERTEX_ARRAY].pointer + (ptrdiff_t)i * a[VERTEX_ARRAY].stride, a[VERTEX_ARRAY].size * sizeof(float));
    exec_Vertex4f(gl, v[0], v[1], v[2], v[3]);
}

static int has_floats_alone(const struct context *gl)
{
    const struct array *a = gl->client.array;
    if (!a[VERTEX_ARRAY].enabled || a[INDEX_ARRAY].enabled || a[EDGE_ARRAY].enabled) return 0;
    for (int i = 0; i < ARRAYS; i++)
        if (a[i].enabled && a[i].type != GL_FLOAT) return 0;
    return 1;
}

typedef void push_element(struct context *, GLint);
static void push_any(struct context *gl, GLint i)
{
    (void)gl;
    glArrayElement(i);
}

/* Begins what glDrawArrays and glDrawElements share; null after an error. */
static push_element *begin(struct context *gl, GLenum mode, GLsizei count)
{
    GLenum error = gl->inside ? GL_INVALID_OPERATION : mode > GL_POLYGON ? GL_INVALID_ENUM : count < 0 ? GL_INVALID_VALUE : GL_NO_ERROR;
    if (error) {
        gl_error(gl, error);
        return NULL;
    }
    push_element *push = is_drawing_directly(gl) && has_floats_alone(gl) ? push_floats : push_any;
    gl->dispatch->Begin(gl, mode);
    return push;
}

void APIENTRY glDrawArrays(GLenum mode, GLint first, GLsizei count)
{
    struct context *gl = current;
    push_element *push = begin(gl, mode, count);
    if (!push) return;
    for (GLsizei i = 0; i < count; i++) push(gl, first + i);
    gl->dispatch->End(gl);
}

void APIENTRY glDrawElements(GLenum mode, GLsizei count, GLenum type, const void *indices)
{
    struct context *gl = current;
    if (type != GL_UNSIGNED_BYTE && type != GL_UNSIGNED_SHORT && type != GL_UNSIGNED_INT) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    push_element *push = begin(gl, mode, count);
    if (!push) return;
    for (GLsizei i = 0; i < count; i++)
        push(gl, type == GL_UNSIGNED_BYTE ? ((const GLubyte *)indices)[i] : type == GL_UNSIGNED_SHORT ? ((const GLushort *)indices)[i]
                : (GLint)((const GLuint *)indices)[i]);
    gl->dispatch->End(gl);
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
