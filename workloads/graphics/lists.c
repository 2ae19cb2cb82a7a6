/* Display lists: every command of commands.def is an opcode, with a recorder and a player that are expanded from its line. */
#include "elements.h"

#define COMMAND(name, ...) OP_##name,
#define ARRAY COMMAND
#define IMAGE COMMAND
enum opcode {
#include "expand.h"
    OP_PRIMITIVE,                       /* glBegin to glEnd, compiled to arrays */
    OPCODES
};

/* Commands in the order of their recording, each with its length, in words of 8 bytes. */
struct list { uint64_t *words; size_t used, capacity; };
struct head { uint32_t opcode, words; };
enum { MOST_LISTS = 1 << 22 };

/* Room for a command's arguments at the end of a list; null if memory is short. */
static void *append(struct context *gl, struct list *l, enum opcode opcode, size_t bytes)
{
    size_t words = 1 + (bytes + 7) / 8;
    if (l->used + words > l->capacity) {
        size_t capacity = 2 * l->capacity + words + 64;
        uint64_t *grown = gl_allocate(gl, l->words, capacity * sizeof *grown);
        if (!grown) return NULL;
        l->words = grown, l->capacity = capacity;
    }
    struct head head = { opcode, (uint32_t)words };
    memcpy(l->words + l->used, &head, sizeof head);
    void *at = l->words + l->used + 1;
    l->used += words;
    return at;
}

static void *record(struct context *gl, enum opcode opcode, size_t bytes)
{
    void *at = append(gl, gl->recording, opcode, bytes);
    if (!at) gl_error(gl, GL_OUT_OF_MEMORY);
    return at;
}

#define EXECUTE(name, arguments) \
    if (gl->list_mode == GL_COMPILE_AND_EXECUTE) gl->direct->name CTX_A arguments

/* Recorders. */
#define COMMAND(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded) \
    struct recorded_##name { fields }; \
    static void record_##name CTX_P parameters \
    { \
        struct recorded_##name *p = record(gl, OP_##name, sizeof *p); \
        if (p) { assign } \
        EXECUTE(name, arguments); \
    }
#define ARRAY(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, type, count) \
    struct recorded_##name { fields long length; }; \
    static void record_##name CTX_P parameters \
    { \
        size_t elements = (count); \
        struct recorded_##name *p = record(gl, OP_##name, sizeof *p + elements * sizeof(type)); \
        if (p) { \
            assign p->length = (long)elements; \
            memcpy(p + 1, v, elements * sizeof(type)); \
        } \
        EXECUTE(name, arguments); \
    }
#define IMAGE(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, width, height, format, type, gaps) \
    struct recorded_##name { fields long has_image; }; \
    static void record_##name CTX_P parameters \
    { \
        size_t bytes = v && format_components(format) && (type_size(type) || type == GL_BITMAP) ? packed_size(width, height, format, type) : 0; \
        struct recorded_##name *p = record(gl, OP_##name, sizeof *p + bytes); \
        if (p) { \
            assign p->has_image = bytes != 0; \
            if (bytes) pack_image(&gl->client.unpack, width, height, format, type, v, p + 1); \
        } \
        EXECUTE(name, arguments); \
    }
#include "expand.h"

/* Players. Images were unpacked when they were recorded, so that the present layout does not matter. */
#define COMMAND(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded) \
    static void play_##name(struct context *gl, const void *at) \
    { \
        const struct recorded_##name *p = at; \
        (void)p; \
        gl->direct->name CTX_A recorded; \
    }
#define ARRAY(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, ...) \
    static void play_##name(struct context *gl, const void *at) \
    { \
        const struct recorded_##name *p = at; \
        const void *data = p + 1; \
        gl->direct->name CTX_A recorded; \
    }
#define IMAGE(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, ...) \
    static void play_##name(struct context *gl, const void *at) \
    { \
        const struct recorded_##name *p = at; \
        const void *data = p->has_image ? p + 1 : NULL; \
        struct pixel_store saved = gl->client.unpack; \
        gl->client.unpack = tight_store; \
        gl->direct->name CTX_A recorded; \
        gl->client.unpack = saved; \
    }
#include "expand.h"

#define COMMAND(name, ...) play_##name,
#define ARRAY COMMAND
#define IMAGE COMMAND
static void (*const players[OPCODES])(struct context *, const void *) = {
#include "expand.h"
    play_primitive,
};

#define COMMAND(name, ...) record_##name,
#define ARRAY COMMAND
#define IMAGE COMMAND
const struct dispatch recorders = {
#include "expand.h"
};

/* Vertices of a primitive that is compiled. */
struct vertices { struct vertex_in *vertex; uint32_t count, capacity; };

static int add_vertex(struct context *gl, struct vertices *all, const float *position, int n, const float *values)
{
    if (all->count == all->capacity) {
        uint32_t capacity = 2 * all->capacity + 64;
        struct vertex_in *grown = capacity < 1u << 24 ? gl_allocate(gl, all->vertex, capacity * sizeof *grown) : NULL;
        if (!grown) return 0;
        all->vertex = grown, all->capacity = capacity;
    }
    struct vertex_in *v = &all->vertex[all->count++];
    v->pos[3] = 1;
    memcpy(v->pos, position, n * sizeof(float));
    memcpy(v->normal, values, 12 * sizeof(float));
    return 1;
}

/* Compiles what follows glBegin to one primitive, and returns where it ends. 0 if it cannot be one: it has other commands than vertices,
 * normals, colours and texture coordinates, or a value is set after a vertex without it. */
static size_t compile_primitive(struct context *gl, const struct list *l, size_t at, struct vertices *all, struct primitive **compiled)
{
    float values[12] = { 0 };
    unsigned set = 0;
    struct head head;
    memcpy(&head, l->words + at, sizeof head);
    const struct recorded_Begin *begin = (const void *)(l->words + at + 1);
    if (begin->a > GL_POLYGON) return 0;
    all->count = 0;
    for (at += head.words; at < l->used; at += head.words) {
        memcpy(&head, l->words + at, sizeof head);
        const float *argument = (const float *)(l->words + at + 1);
        unsigned sets = 0;
        switch (head.opcode) {
        case OP_Vertex3f: if (!add_vertex(gl, all, argument, 3, values)) return 0; break;
        case OP_Vertex4f: if (!add_vertex(gl, all, argument, 4, values)) return 0; break;
        case OP_Normal3f: sets = SETS_NORMAL; memcpy(values, argument, 3 * sizeof(float)); break;
        case OP_Color4f: sets = SETS_COLOR; memcpy(values + 4, argument, 4 * sizeof(float)); break;
        case OP_TexCoord4f: sets = SETS_COORD; memcpy(values + 8, argument, 4 * sizeof(float)); break;
        case OP_End:
            *compiled = make_primitive(begin->a, set, values, all->vertex, all->count);
            return *compiled ? at + head.words : 0;
        default: return 0;
        }
        if (all->count > 0 && (sets & ~set)) return 0;
        set |= sets;
    }
    return 0;
}

/* Replaces primitives by arrays; the list stays as it is if memory is short. */
static void compile(struct context *gl, struct list *l)
{
    struct list to = { 0 };
    struct vertices all = { 0 };
    int is_complete = 1;
    for (size_t at = 0; at < l->used && is_complete;) {
        struct head head;
        struct primitive *p = NULL;
        memcpy(&head, l->words + at, sizeof head);
        size_t end = head.opcode == OP_Begin ? compile_primitive(gl, l, at, &all, &p) : 0;
        size_t bytes = p ? primitive_bytes(p) : (head.words - 1) * sizeof *l->words;
        void *place = append(gl, &to, p ? OP_PRIMITIVE : (enum opcode)head.opcode, bytes);
        if (place && p) memcpy(place, p, bytes);
        else if (place) memcpy(place, l->words + at + 1, bytes);
        is_complete = place != NULL;
        at = p ? end : at + head.words;
        free(p);
    }
    gl_release(gl, all.vertex);
    gl_release(gl, is_complete ? l->words : to.words);
    if (is_complete) *l = to;
}

static struct list *find(struct context *gl, GLuint name)
{
    return name && name < gl->list_capacity ? gl->lists[name] : NULL;
}

static void free_list(struct context *gl, struct list *l)
{
    if (l) gl_release(gl, l->words);
    gl_release(gl, l);
}

void free_lists(struct context *gl)
{
    for (GLuint i = 0; i < gl->list_capacity; i++) free_list(gl, gl->lists[i]);
    gl_release(gl, gl->lists);
    free_list(gl, gl->recording);
}

static struct list *new_list(struct context *gl)
{
    struct list *l = gl_allocate(gl, NULL, sizeof *l);
    if (l) memset(l, 0, sizeof *l);
    else gl_error(gl, GL_OUT_OF_MEMORY);
    return l;
}

static int reserve(struct context *gl, GLuint name)
{
    if (name < gl->list_capacity) return 1;
    GLuint capacity = name + name / 2 + 64;
    struct list **grown = name < MOST_LISTS ? gl_allocate(gl, gl->lists, capacity * sizeof *grown) : NULL;
    if (!grown) {
        gl_error(gl, GL_OUT_OF_MEMORY);
        return 0;
    }
    memset(grown + gl->list_capacity, 0, (capacity - gl->list_capacity) * sizeof *grown);
    gl->lists = grown, gl->list_capacity = capacity;
    return 1;
}

void exec_CallList(struct context *gl, GLuint name)
{
    struct list *l = find(gl, name);
    if (!l || gl->list_depth == LIST_NESTING) return;
    gl->work += 4 * l->used + 16;                      /* in pixels that take as long */
    if (gl->work > gl->most_work) return;
    gl->list_depth++;
    for (size_t at = 0; at < l->used;) {
        struct head head;
        memcpy(&head, l->words + at, sizeof head);
        players[head.opcode](gl, l->words + at + 1);
        at += head.words;
    }
    gl->list_depth--;
}

void exec_CallLists(struct context *gl, GLsizei n, GLenum type, const GLubyte *v)
{
    int size = list_name_size(type);
    if (n < 0 || !size) {
        gl_error(gl, n < 0 ? GL_INVALID_VALUE : GL_INVALID_ENUM);
        return;
    }
    for (int i = 0; i < n; i++, v += size) {
        union { int16_t s; uint16_t us; int32_t i; float f; } u = { .i = 0 };
        GLint offset;
        memcpy(&u, v, size <= 4 ? size : 4);
        switch (type) {
        case GL_BYTE: offset = (GLbyte)*v; break;
        case GL_UNSIGNED_BYTE: offset = *v; break;
        case GL_SHORT: offset = u.s; break;
        case GL_UNSIGNED_SHORT: offset = u.us; break;
        case GL_FLOAT: offset = (GLint)u.f; break;
        case GL_2_BYTES: offset = v[0] << 8 | v[1]; break;
        case GL_3_BYTES: offset = v[0] << 16 | v[1] << 8 | v[2]; break;
        case GL_4_BYTES: offset = (GLint)((uint32_t)v[0] << 24 | v[1] << 16 | v[2] << 8 | v[3]); break;
        default: offset = u.i;
        }
        exec_CallList(gl, gl->s.list.base + offset);
    }
}

void exec_ListBase(struct context *gl, GLuint base) { gl->s.list.base = base; }

void APIENTRY glNewList(GLuint name, GLenum mode)
{
    struct context *gl = current;
    if (name == 0) gl_error(gl, GL_INVALID_VALUE);
    else if (mode != GL_COMPILE && mode != GL_COMPILE_AND_EXECUTE) gl_error(gl, GL_INVALID_ENUM);
    else if (gl->recording || gl->inside) gl_error(gl, GL_INVALID_OPERATION);
    else if (reserve(gl, name) && (gl->recording = new_list(gl))) {
        gl->recording_name = name;
        gl->list_mode = mode;
        gl->dispatch = &recorders;
    }
}

void APIENTRY glEndList(void)
{
    struct context *gl = current;
    if (!gl->recording) {
        gl_error(gl, GL_INVALID_OPERATION);
        return;
    }
    compile(gl, gl->recording);
    free_list(gl, gl->lists[gl->recording_name]);
    gl->lists[gl->recording_name] = gl->recording;
    gl->recording = NULL;
    gl->dispatch = gl->direct;
}

GLuint APIENTRY glGenLists(GLsizei range)
{
    struct context *gl = current;
    GLenum error = range < 0 ? GL_INVALID_VALUE : gl->inside ? GL_INVALID_OPERATION : range >= MOST_LISTS ? GL_OUT_OF_MEMORY : GL_NO_ERROR;
    if (error) gl_error(gl, error);
    if (error || range == 0) return 0;
    GLuint first = 1, free_names = 0;
    for (GLuint name = 1; free_names < (GLuint)range; name++) {
        if (find(gl, name)) free_names = 0, first = name + 1;
        else free_names++;
    }
    if (!reserve(gl, first + range - 1)) return 0;
    for (GLuint i = 0; i < (GLuint)range; i++) gl->lists[first + i] = new_list(gl);
    return first;
}

void APIENTRY glDeleteLists(GLuint list, GLsizei range)
{
    struct context *gl = current;
    if (range < 0) gl_error(gl, GL_INVALID_VALUE);
    for (GLsizei i = 0; i < range && list + i < gl->list_capacity; i++) {
        free_list(gl, gl->lists[list + i]);
        gl->lists[list + i] = NULL;
    }
}

GLboolean APIENTRY glIsList(GLuint list) { return find(current, list) != NULL; }
