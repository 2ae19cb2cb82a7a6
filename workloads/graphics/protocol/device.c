/* Direct rendering: this process runs geometry and lighting, and writes commands of the device, primitives in window coordinates and
 * the state that rasterization needs, for the server to check and to hand on. */
#include "protocol.h"

static uint8_t *put(uint8_t *at, const float *values, size_t count)
{
    memcpy(at, values, count * sizeof *values);
    return at + count * sizeof *values;
}

static unsigned attributes_of(const struct context *gl)
{
    return (gl->active_texture ? DEVICE_COORD : 0) | (ON(FOG) ? DEVICE_FOG : 0);
}

static uint8_t *put_vertex(uint8_t *at, const struct vertex *v, unsigned attributes)
{
    at = put(at, v->win, 4);
    if (!(attributes & DEVICE_FLAT)) at = put(at, v->color, 4);
    if (attributes & DEVICE_COORD) at = put(at, v->coord, 4);
    if (attributes & DEVICE_FOG) at = put(at, &v->fog, 1);
    return at;
}

static void primitive(struct context *gl, unsigned opcode, const struct vertex *const *v, int count, const float *flat, float offset,
    unsigned reset)
{
    unsigned attributes = attributes_of(gl) | (flat ? DEVICE_FLAT : 0);
    uint8_t *at = begin_command(gl, opcode, sizeof(struct device_head) + 4 * (device_floats(attributes) * (size_t)count + (flat ? 4 : 0)));
    if (!at) return;
    struct device_head head = { attributes | reset, offset };
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    if (flat) at = put(at, flat, 4);
    for (int i = 0; i < count; i++) at = put_vertex(at, v[i], attributes);
    end_command(gl);
}

/* Vertices without clipping and without what only this side knows go to the device as they are. */
static int device_vertices(struct context *gl, int n)
{
    const struct polygon_group *p = &gl->s.polygon;
    if (gl->render_mode != GL_RENDER || p->mode[0] != GL_FILL || p->mode[1] != GL_FILL || (gl->d.lighting && gl->d.two_side)) return 0;
    uint32_t outside = 0;
    for (int i = 0; i < n; i++) outside |= gl->out[i].outside;
    if (outside) return 0;
    unsigned attributes = attributes_of(gl);
    struct device_vertices head = { (uint16_t)(attributes | (gl->stipple_counter ? 0 : DEVICE_RESET_STIPPLE)), (uint16_t)gl->primitive,
        (uint16_t)gl->parity, (uint16_t)n };
    uint8_t *at = begin_command(gl, DEVICE_VERTICES, sizeof head + 4 * device_floats(attributes) * (size_t)n);
    if (!at) return 1;
    gl->stipple_counter = 1;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (int i = 0; i < n; i++) at = put_vertex(at, &gl->out[i], attributes);
    end_command(gl);
    return 1;
}

static void device_triangle(struct context *gl, const struct vertex *a, const struct vertex *b, const struct vertex *c, const float *flat,
    float offset)
{
    const struct vertex *v[3] = { a, b, c };
    primitive(gl, DEVICE_TRIANGLE, v, 3, flat, offset, 0);
}

/* The pattern of stippled lines goes on from line to line: the device counts, and is told when it begins anew. */
static void device_line(struct context *gl, const struct vertex *a, const struct vertex *b, const float *flat, float offset)
{
    const struct vertex *v[2] = { a, b };
    unsigned reset = gl->stipple_counter ? 0 : DEVICE_RESET_STIPPLE;
    gl->stipple_counter = 1;
    primitive(gl, DEVICE_LINE, v, 2, flat, offset, reset);
}

static void device_point(struct context *gl, const struct vertex *v, const float *flat, float offset)
{
    primitive(gl, DEVICE_POINT, &v, 1, flat, offset, 0);
}

const struct rasterizer device_encoder = { device_triangle, device_line, device_point, device_vertices };

static void send_raster_position(struct context *gl)
{
    const struct current_group *c = &gl->s.current;
    uint8_t *at = begin_command(gl, DEVICE_RASTER_POSITION, 4 * 14);
    if (!at) return;
    float rest[2] = { c->raster_distance, c->raster_valid };
    at = put(at, c->raster_position, 4);
    at = put(at, c->raster_color, 4);
    at = put(at, c->raster_coord, 4);
    put(at, rest, 2);
    end_command(gl);
}

/* By its side (commands.def), a command is executed here, there, or at both ends. What draws pixels reports to feedback instead, if
 * that is wanted, which is here. */
#define EXECUTE_CLIENT(name, arguments) exec_##name CTX_A arguments;
#define EXECUTE_BOTH(name, arguments) \
    exec_##name CTX_A arguments; \
    encoders.name CTX_A arguments;
#define EXECUTE_DEVICE(name, arguments) \
    if (gl->render_mode != GL_RENDER) { \
        exec_##name CTX_A arguments; \
        return; \
    } \
    send_raster_position(gl); \
    encoders.name CTX_A arguments;
#define COMMAND(name, allowed, opcode, side, parameters, arguments, ...) \
    static void device_##name CTX_P parameters { EXECUTE_##side(name, arguments) }
#define ARRAY COMMAND
#define IMAGE COMMAND
#include "../expand.h"

/* A bitmap also moves the raster position, which is kept here. */
static void device_Bitmap_and_move(struct context *gl, GLsizei width, GLsizei height, GLfloat x, GLfloat y, GLfloat x_move, GLfloat y_move,
    const void *v)
{
    device_Bitmap(gl, width, height, x, y, x_move, y_move, v);
    if (gl->render_mode == GL_RENDER && width >= 0 && height >= 0) exec_Bitmap(gl, 0, 0, x, y, x_move, y_move, NULL);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define COMMAND(name, ...) .name = device_##name,
#define ARRAY COMMAND
#define IMAGE COMMAND
const struct dispatch device_commands = {
#include "../expand.h"
    .Bitmap = device_Bitmap_and_move
};
#pragma GCC diagnostic pop
