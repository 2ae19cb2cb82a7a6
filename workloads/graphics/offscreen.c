/* Contexts without a window. */
#include "offscreen.h"
#include "context.h"

struct offscreen { struct context *gl; struct framebuffer *fb; };

#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct offscreen *offscreen_create(void *pixels, int width, int height)
{
    struct offscreen *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->gl = make_context(0);
    o->fb = make_framebuffer(width, height, pixels, 0);
    if (o->gl && o->fb) return o;
    offscreen_destroy(o);
    return NULL;
}

EXPORTED void offscreen_make_current(struct offscreen *o) { make_current(o ? o->gl : NULL, o ? o->fb : NULL); }

EXPORTED void offscreen_destroy(struct offscreen *o)
{
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
