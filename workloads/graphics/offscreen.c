/* Contexts without a window: in this process, or in a server (protocol/). */
#include "offscreen.h"
#include "protocol/protocol.h"

struct offscreen { struct context *gl; struct framebuffer *fb; void *pixels; uint32_t drawable; int width, height; };

#define EXPORTED __attribute__((visibility("default")))

static __thread struct offscreen *current_offscreen;

/* The caller's memory is the frame buffer: it gets the server's pixels when drawing has to be complete. */
static void read_pixels(struct context *gl)
{
    struct offscreen *o = current_offscreen;
    if (o && o->gl == gl) remote_read(o->drawable, o->pixels, o->width, o->height);
}

EXPORTED struct offscreen *offscreen_create(void *pixels, int width, int height)
{
    struct offscreen *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    int is_remote = connection_is_wanted();
    o->pixels = pixels, o->width = width, o->height = height;
    o->gl = make_context(0);
    if (!is_remote) o->fb = make_framebuffer(width, height, pixels, 0);
    if (o->gl && !is_remote && o->fb) return o;
    if (o->gl && is_remote && remote_open(o->gl, 0)) {
        o->drawable = remote_create_pbuffer(width, height, 0);
        o->gl->flush_window = read_pixels;
        return o;
    }
    offscreen_destroy(o);
    return NULL;
}

EXPORTED void offscreen_make_current(struct offscreen *o)
{
    current_offscreen = o;
    if (o && o->gl->remote) remote_make_current(o->gl, o->drawable);
    make_current(o ? o->gl : NULL, !o ? NULL : o->gl->remote ? &o->gl->remote->shell : o->fb);
}

EXPORTED void offscreen_destroy(struct offscreen *o)
{
    if (current_offscreen == o) current_offscreen = NULL;
    if (o->gl && o->gl->remote) {
        remote_destroy_pbuffer(o->drawable);
        remote_close(o->gl);
    }
    free_context(o->gl);
    free_framebuffer(o->fb);
    free(o);
}

EXPORTED void offscreen_use_special_paths(int use)
{
    use_special_paths = use;
    current->dirty |= DIRTY_ALL;
}

EXPORTED int offscreen_conditions(void) { return current->mask; }

EXPORTED void offscreen_draw_nothing(void) { current->raster = &null_rasterizer; }
