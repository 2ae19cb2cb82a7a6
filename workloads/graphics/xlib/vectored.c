/* Calls of Xlib by vectors: the program's side. */
#include "vectored.h"
#include "flat.h"
#include "../protocol/protocol.h"

#define EXPORTED __attribute__((visibility("default")))

struct vectored_gc { uint32_t id, pixel; int is_changed; };
enum { PIXMAPS = 64 };

/* The vector: how items get to where they are drawn. */
struct drawing_vector {
    void (*draw)(Drawable, GC, enum flat_kind, const int16_t *items, int count);
    void (*change)(GC);
    void (*flush)(void);
};
struct vectored_display { const struct drawing_vector *vector; struct framebuffer *pixmap[PIXMAPS]; uint32_t pixmaps, gcs; };
static struct vectored_display display;
static int draws_nothing;

/* ---- this process */

static void draw_here(Drawable drawable, GC gc, enum flat_kind kind, const int16_t *items, int count)
{
    uint64_t work = 0;
    if (!draws_nothing && drawable < PIXMAPS && display.pixmap[drawable])
        draw_flat(display.pixmap[drawable], kind, gc->pixel, items, count, &work, UINT64_MAX);
}
static void change_nothing(GC gc) { (void)gc; }
static void flush_nothing(void) { }
static const struct drawing_vector here = { draw_here, change_nothing, flush_nothing };

/* ---- X's protocol: a changed colour is sent before the next request that draws. Items that follow one another with the same
 * operands go into one request, as in Xlib. */
static const uint8_t core_code[FLAT_KINDS] = { CORE_POLY_POINT, CORE_POLY_SEGMENT, CORE_POLY_RECTANGLE, CORE_POLY_FILL_RECTANGLE };

static void draw_by_protocol(Drawable drawable, GC gc, enum flat_kind kind, const int16_t *items, int count)
{
    if (gc->is_changed) {
        uint32_t operands[3] = { gc->id, 4 /* the foreground */, gc->pixel };
        send_core_request(CORE_CHANGE_GC, operands, 3, NULL, 0);
        gc->is_changed = 0;
    }
    uint32_t operands[2] = { drawable, gc->id };
    send_core_request(core_code[kind], operands, 2, items, (size_t)count * flat_coordinates(kind) * 2);
}
static void change_later(GC gc) { gc->is_changed = 1; }
static void flush_connection(void) { send_query(REQUEST_QUERY_VERSION, (uint32_t[]){ 1, 3 }, 2, NULL, 0); }
static const struct drawing_vector protocol = { draw_by_protocol, change_later, flush_connection };

/* ---- the device's commands: each has its colour */

static void draw_by_device(Drawable drawable, GC gc, enum flat_kind kind, const int16_t *items, int count)
{
    send_flat_command(drawable, (struct flat_command){ (uint16_t)kind, (uint16_t)count, gc->pixel }, items,
        (size_t)count * flat_coordinates(kind) * 2);
}
static const struct drawing_vector device = { draw_by_device, change_nothing, flush_connection };

/* ---- Xlib's functions */

enum { MOST_ITEMS = 2048 };
static void draw(Drawable drawable, GC gc, enum flat_kind kind, const void *items, int count)
{
    const int16_t *v = items;
    for (; count > 0; count -= MOST_ITEMS, v += MOST_ITEMS * flat_coordinates(kind))
        display.vector->draw(drawable, gc, kind, v, count < MOST_ITEMS ? count : MOST_ITEMS);
}

EXPORTED Display *vectored_XOpenDisplay(const char *name)
{
    (void)name;
    display.vector = !connection_is_wanted() ? &here : connection_is_direct() ? &device : &protocol;
    return &display;
}

EXPORTED Drawable vectored_XCreatePixmap(Display *d, Drawable root, unsigned width, unsigned height, unsigned depth)
{
    (void)root, (void)depth;
    if (d->vector != &here) return remote_create_pbuffer((int)width, (int)height, 0);
    if (d->pixmaps + 1 >= PIXMAPS) return 0;
    d->pixmap[++d->pixmaps] = make_framebuffer((int)width, (int)height, NULL, 0);
    return d->pixmaps;
}

EXPORTED GC vectored_XCreateGC(Display *d, Drawable drawable, unsigned long mask, void *values)
{
    (void)mask, (void)values;
    GC gc = calloc(1, sizeof *gc);
    if (!gc) return NULL;
    gc->id = ++d->gcs;
    if (d->vector == &protocol) send_core_request(CORE_CREATE_GC, (uint32_t[]){ gc->id, drawable, 0 }, 3, NULL, 0);
    return gc;
}

EXPORTED int vectored_XSetForeground(Display *d, GC gc, unsigned long pixel)
{
    if (gc->pixel == pixel) return 1;
    gc->pixel = (uint32_t)pixel;
    d->vector->change(gc);
    return 1;
}

EXPORTED int vectored_XDrawSegments(Display *d, Drawable drawable, GC gc, XSegment *segments, int count)
{
    (void)d;
    draw(drawable, gc, FLAT_SEGMENTS, segments, count);
    return 1;
}

EXPORTED int vectored_XDrawLine(Display *d, Drawable drawable, GC gc, int x1, int y1, int x2, int y2)
{
    int16_t v[4] = { (int16_t)x1, (int16_t)y1, (int16_t)x2, (int16_t)y2 };
    d->vector->draw(drawable, gc, FLAT_SEGMENTS, v, 1);
    return 1;
}

/* Points are relative to the one before if mode is 1. */
EXPORTED int vectored_XDrawLines(Display *d, Drawable drawable, GC gc, XPoint *points, int count, int mode)
{
    int x = count > 0 ? points[0].x : 0, y = count > 0 ? points[0].y : 0;
    for (int i = 1; i < count; i++) {
        int to_x = points[i].x + (mode ? x : 0), to_y = points[i].y + (mode ? y : 0);
        vectored_XDrawLine(d, drawable, gc, x, y, to_x, to_y);
        x = to_x, y = to_y;
    }
    return 1;
}

EXPORTED int vectored_XDrawPoint(Display *d, Drawable drawable, GC gc, int x, int y)
{
    int16_t v[2] = { (int16_t)x, (int16_t)y };
    d->vector->draw(drawable, gc, FLAT_POINTS, v, 1);
    return 1;
}

EXPORTED int vectored_XDrawRectangle(Display *d, Drawable drawable, GC gc, int x, int y, unsigned width, unsigned height)
{
    int16_t v[4] = { (int16_t)x, (int16_t)y, (int16_t)width, (int16_t)height };
    d->vector->draw(drawable, gc, FLAT_OUTLINES, v, 1);
    return 1;
}

EXPORTED int vectored_XFillRectangle(Display *d, Drawable drawable, GC gc, int x, int y, unsigned width, unsigned height)
{
    int16_t v[4] = { (int16_t)x, (int16_t)y, (int16_t)width, (int16_t)height };
    d->vector->draw(drawable, gc, FLAT_FILLS, v, 1);
    return 1;
}

EXPORTED int vectored_XFillRectangles(Display *d, Drawable drawable, GC gc, XRectangle *rectangles, int count)
{
    (void)d;
    draw(drawable, gc, FLAT_FILLS, rectangles, count);
    return 1;
}

EXPORTED int vectored_XSync(Display *d, int discard)
{
    (void)discard;
    d->vector->flush();
    return 1;
}

EXPORTED void vectored_read(Display *d, Drawable drawable, void *pixels, int width, int height)
{
    if (d->vector != &here) remote_read(drawable, pixels, width, height);
    else if (drawable < PIXMAPS && d->pixmap[drawable]) memcpy(pixels, d->pixmap[drawable]->color[0], (size_t)width * height * 4);
}

EXPORTED void vectored_draw_nothing(void) { draws_nothing = 1; }
