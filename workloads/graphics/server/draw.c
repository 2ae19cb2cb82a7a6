/* Two-dimensional drawing: requests of X's core protocol, and the device's commands, which need no graphics context. */
#include "server.h"
#include "../xlib/flat.h"

static struct pen *pen_of(struct client *c, uint32_t id)
{
    for (int i = 0; i < CLIENT_PENS; i++)
        if (c->pen[i].id == id && id) return &c->pen[i];
    return NULL;
}

/* The foreground among a request's values: one for each bit of the mask, in its order. */
static unsigned change_pen(struct pen *pen, uint32_t mask, const uint8_t *values, size_t bytes)
{
    if (bytes != 4 * (size_t)__builtin_popcount(mask)) return BAD_LENGTH;
    if (mask & 4) memcpy(&pen->pixel, values + 4 * __builtin_popcount(mask & 3), 4);
    return 0;
}

static unsigned create_pen(struct client *c, const uint8_t *p, size_t bytes)
{
    uint32_t w[3];
    if (bytes < 16) return BAD_LENGTH;
    memcpy(w, p + 4, sizeof w);
    if (!client_drawable(c, w[1])) return BAD_DRAWABLE;
    if (w[0] == 0 || pen_of(c, w[0])) return BAD_VALUE;
    for (int i = 0; i < CLIENT_PENS; i++) {
        if (c->pen[i].id) continue;
        struct pen pen = { w[0], 0 };
        unsigned error = change_pen(&pen, w[2], p + 16, bytes - 16);
        if (!error) c->pen[i] = pen;
        return error;
    }
    return BAD_ALLOC;
}

/* Items are aligned as the request is. */
static void draw(struct client *c, struct drawable *d, enum flat_kind kind, uint32_t pixel, const uint8_t *items, int count)
{
    if (server_rasterizer == &null_rasterizer) return;
    draw_flat(d->fb, kind, pixel, (const int16_t *)(const void *)items, count, &c->work_of_turn, MOST_WORK);
}

static int kind_of(unsigned code)
{
    switch (code) {
    case CORE_POLY_POINT: return FLAT_POINTS;
    case CORE_POLY_SEGMENT: return FLAT_SEGMENTS;
    case CORE_POLY_RECTANGLE: return FLAT_OUTLINES;
    case CORE_POLY_FILL_RECTANGLE: return FLAT_FILLS;
    default: return -1;
    }
}

unsigned draw_by_core_request(struct client *c, const struct request *head, const uint8_t *p, size_t bytes)
{
    uint32_t w[2];
    int kind = kind_of(head->major);
    if (head->major == CORE_CREATE_GC) return create_pen(c, p, bytes);
    if (kind < 0 && head->major != CORE_CHANGE_GC) return BAD_REQUEST;
    if (bytes < 12) return BAD_LENGTH;
    memcpy(w, p + 4, sizeof w);
    struct pen *pen = pen_of(c, head->major == CORE_CHANGE_GC ? w[0] : w[1]);
    if (!pen) return BAD_GC;
    if (head->major == CORE_CHANGE_GC) return change_pen(pen, w[1], p + 12, bytes - 12);
    struct drawable *d = client_drawable(c, w[0]);
    if (!d) return BAD_DRAWABLE;
    size_t item = 2 * (size_t)flat_coordinates((enum flat_kind)kind);
    if (head->code != 0 || (bytes - 12) % item) return head->code ? BAD_VALUE : BAD_LENGTH;
    draw(c, d, (enum flat_kind)kind, pen->pixel, p + 12, (int)((bytes - 12) / item));
    return 0;
}

unsigned draw_by_commands(struct client *c, struct drawable *d, const uint8_t *p, size_t bytes)
{
    struct flat_command command;
    for (size_t at = 0; at < bytes;) {
        if (bytes - at < sizeof command) return BAD_LENGTH;
        memcpy(&command, p + at, sizeof command);
        if (command.kind >= FLAT_KINDS) return BAD_VALUE;
        size_t length = 2 * (size_t)flat_coordinates((enum flat_kind)command.kind) * command.count;
        at += sizeof command;
        if (length > bytes - at) return BAD_LENGTH;
        draw(c, d, (enum flat_kind)command.kind, command.pixel, p + at, command.count);
        at += length;
    }
    return 0;
}
