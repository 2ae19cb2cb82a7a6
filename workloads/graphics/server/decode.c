/* The server's side of rendering commands: decoders expanded from commands.def. Lengths are compared with what the arguments ask
 * for; values are checked by the commands themselves, as those of a program that links the library. */
#include "server.h"

typedef int decoder(struct context *gl, const uint8_t *at, size_t bytes);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"

/* Images larger than this in one direction, or beyond, do not exist. */
enum { MOST_SIDE = 1 << 16 };

/* Reads the layout, and where the image begins. Returns 0 if `bytes` are not its length; *data is null if there is no image. */
static int read_image(struct pixel_store *store, struct image_shape s, const uint8_t *at, size_t bytes, const struct image_head *head,
    const void **data)
{
    *data = NULL;
    if (head->row_length < 0 || head->skip_rows < 0 || head->skip_pixels < 0 || head->row_length > MOST_SIDE || head->skip_rows > MOST_SIDE
        || head->skip_pixels > MOST_SIDE)
        return 0;
    if (head->alignment != 1 && head->alignment != 2 && head->alignment != 4 && head->alignment != 8) return 0;
    *store = (struct pixel_store){ head->swap != 0, head->lsb_first != 0, head->row_length, head->skip_rows, head->skip_pixels,
        head->alignment };
    if (bytes == 0) return 1;
    int is_bits = s.type == GL_BITMAP, pixel = format_components(s.format) * type_size(s.type);
    if (s.width <= 0 || s.height <= 0 || s.width > MOST_SIDE || s.height > MOST_SIDE || (!is_bits && pixel == 0)) return 0;
    int64_t length = store->row_length ? store->row_length : s.width, a = store->alignment, last = store->skip_pixels + s.width;
    int64_t row = ((is_bits ? (length + 7) / 8 : length * pixel) + a - 1) / a * a;
    int64_t needed = (store->skip_rows + s.height - 1) * row + (is_bits ? (last + 7) / 8 : last * pixel);
    if (needed > (int64_t)bytes || padded((size_t)((store->skip_rows + s.height) * row)) < bytes) return 0;
    *data = at;
    return 1;
}

/* Collects the arguments from among words that the protocol does not use. */
static void gather(void *to, const uint8_t *from, size_t words, int gaps)
{
    uint8_t *next = to;
    for (size_t at = 0; words > 0; at++, from += 4) {
        if (gaps >> at & 1) continue;
        memcpy(next, from, 4);
        next += 4, words--;
    }
}

#define COMMAND(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded) \
    static int decode_##name(struct context *gl, const uint8_t *at, size_t bytes) \
    { \
        const struct sent_##name *p = (const void *)at; \
        (void)p; \
        if (bytes != padded(sizeof *p)) return 0; \
        gl->dispatch->name CTX_A recorded; \
        return 1; \
    }
#define ARRAY(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, type, count) \
    static int decode_##name(struct context *gl, const uint8_t *at, size_t bytes) \
    { \
        struct sent_##name sent, *p = &sent; \
        type aligned[sizeof(type) == 8 ? 4 : 1]; \
        const type *data = aligned; \
        size_t is_first = sizeof(type) == 8, first = is_first ? sizeof aligned : 0; \
        (void)p; \
        if (bytes < first + sizeof sent) return 0; \
        memcpy(&sent, at + first, sizeof sent); \
        size_t elements = count_##name recorded; \
        if (elements > bytes || bytes != padded(sizeof sent + elements * sizeof(type))) return 0; \
        if (is_first) memcpy(aligned, at, first); \
        else data = (const void *)(at + sizeof sent); \
        gl->dispatch->name CTX_A recorded; \
        return 1; \
    }
#define IMAGE(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, w, h, f, t, gaps) \
    static int decode_##name(struct context *gl, const uint8_t *at, size_t bytes) \
    { \
        struct sent_##name sent, *p = &sent; \
        struct image_head head; \
        const void *data = NULL; \
        size_t length = sizeof sent + 4 * __builtin_popcount(gaps); \
        (void)p; \
        if (bytes < sizeof head + length) return 0; \
        memcpy(&head, at, sizeof head); \
        gather(&sent, at + sizeof head, sizeof sent / 4, gaps); \
        struct pixel_store store, saved = gl->client.unpack; \
        if (!read_image(&store, shape_##name recorded, at + sizeof head + length, bytes - sizeof head - length, &head, &data)) return 0; \
        gl->client.unpack = store; \
        gl->dispatch->name CTX_A recorded; \
        gl->client.unpack = saved; \
        return 1; \
    }
#include "../expand.h"
#pragma GCC diagnostic pop

#define COMMAND(name, allowed, opcode, ...) [opcode] = decode_##name,
#define ARRAY COMMAND
#define IMAGE COMMAND
static decoder *const decoders[MOST_OPCODE] = {
#include "../expand.h"
};

/* Commands of the device. */

static const uint8_t *take(float *to, const uint8_t *at, size_t count)
{
    memcpy(to, at, count * sizeof *to);
    return at + count * sizeof *to;
}

static const uint8_t *take_vertex(struct vertex *v, const uint8_t *at, unsigned attributes)
{
    memset(v, 0, sizeof *v);
    at = take(v->win, at, 4);
    if (!(attributes & DEVICE_FLAT)) at = take(v->color, at, 4);
    if (attributes & DEVICE_COORD) at = take(v->coord, at, 4);
    if (attributes & DEVICE_FOG) at = take(&v->fog, at, 1);
    return at;
}

/* The software device's part of a primitive: what was checked becomes vertices, and pixels. */
static void draw_primitive(struct context *gl, int count, const struct device_head *head, const uint8_t *at)
{
    struct vertex v[3];
    float flat[4];
    const float *color = head->attributes & DEVICE_FLAT ? flat : NULL;
    if (color) at = take(flat, at, 4);
    for (int i = 0; i < count; i++) at = take_vertex(&v[i], at, head->attributes);
    if (gl->dirty) validate(gl);
    if (head->attributes & DEVICE_RESET_STIPPLE) gl->stipple_counter = 0;
    if (count == 3) gl->raster->triangle(gl, &v[0], &v[1], &v[2], color, head->offset);
    else if (count == 2) gl->raster->line(gl, &v[0], &v[1], color, head->offset);
    else gl->raster->point(gl, &v[0], color, head->offset);
}

static int decode_primitive(struct context *gl, int count, const uint8_t *at, size_t bytes)
{
    struct device_head head;
    if (bytes < sizeof head) return 0;
    memcpy(&head, at, sizeof head);
    if (head.attributes > 15 || bytes != sizeof head + 4 * (device_floats(head.attributes) * count + (head.attributes & DEVICE_FLAT ? 4 : 0)))
        return 0;
    if (gl->raster != &null_rasterizer) draw_primitive(gl, count, &head, at + sizeof head);
    return 1;
}

static int decode_vertices(struct context *gl, const uint8_t *at, size_t bytes)
{
    struct device_vertices head;
    if (bytes < sizeof head) return 0;
    memcpy(&head, at, sizeof head);
    if (head.attributes > 15 || head.attributes & DEVICE_FLAT || head.primitive > GL_POLYGON || head.parity > 1
        || head.count > sizeof gl->out / sizeof *gl->out || bytes != sizeof head + 4 * device_floats(head.attributes) * head.count)
        return 0;
    if (gl->raster == &null_rasterizer) return 1;
    at += sizeof head;
    for (int i = 0; i < head.count; i++) at = take_vertex(&gl->out[i], at, head.attributes);
    if (gl->dirty) validate(gl);
    if (head.attributes & DEVICE_RESET_STIPPLE) gl->stipple_counter = 0;
    draw_assembled(gl, head.primitive, head.parity, head.count);
    return 1;
}

static int decode_raster_position(struct context *gl, const uint8_t *at, size_t bytes)
{
    struct current_group *c = &gl->s.current;
    float rest[2];
    if (bytes != 4 * 14) return 0;
    at = take(c->raster_position, at, 4);
    at = take(c->raster_color, at, 4);
    at = take(c->raster_coord, at, 4);
    take(rest, at, 2);
    c->raster_distance = rest[0];
    c->raster_valid = rest[1] != 0;
    return 1;
}

int decode_command(struct rendering *r, unsigned opcode, const uint8_t *at, size_t bytes)
{
    if (r->is_direct && opcode >= DEVICE_TRIANGLE && opcode <= DEVICE_POINT)
        return decode_primitive(r->gl, DEVICE_POINT - (int)opcode + 1, at, bytes);
    if (r->is_direct && opcode == DEVICE_VERTICES) return decode_vertices(r->gl, at, bytes);
    if (r->is_direct && opcode == DEVICE_RASTER_POSITION) return decode_raster_position(r->gl, at, bytes);
    return opcode < MOST_OPCODE && decoders[opcode] ? decoders[opcode](r->gl, at, bytes) : 0;
}
