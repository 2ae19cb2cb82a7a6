/* Windows of an X server: where they are and how large they are is the X server's, pictures are put into them by XPutImage. Windows
 * end when they like: errors that come of it are ignored. */
#include "server.h"
#include <X11/Xlib.h>
#include <X11/Xutil.h>

struct shown_window { Window window; GC gc; XImage *image; Visual *visual; };
static Display *display;

static int ignore(Display *d, XErrorEvent *e)
{
    (void)d, (void)e;
    return 0;
}

int present_open(const char *name)
{
    XSetErrorHandler(ignore);
    display = XOpenDisplay(name);
    return display != NULL;
}

int present_connection(void) { return display ? ConnectionNumber(display) : -1; }

void present_events(void)
{
    XEvent e;
    while (display && XPending(display)) XNextEvent(display, &e);
}

void *present_window(uint32_t id, int *width, int *height)
{
    XWindowAttributes a;
    if (!display || !XGetWindowAttributes(display, id, &a) || a.depth != 24 || a.width > MOST_WIDTH_OF_DRAWABLE
        || a.height > MOST_WIDTH_OF_DRAWABLE)
        return NULL;
    struct shown_window *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->window = id, w->visual = a.visual, w->gc = XCreateGC(display, id, 0, NULL);
    *width = a.width, *height = a.height;
    return w;
}

int present_size(void *window, int *width, int *height)
{
    const struct shown_window *w = window;
    XWindowAttributes a;
    if (!XGetWindowAttributes(display, w->window, &a)) return 0;
    *width = a.width, *height = a.height;
    return 1;
}

static void make_image(struct shown_window *w, int width, int height)
{
    static const union { uint16_t word; char first; } order = { 1 };
    if (w->image) XDestroyImage(w->image);
    char *data = malloc((size_t)width * height * 4 + 4);
    w->image = data ? XCreateImage(display, w->visual, 24, ZPixmap, 0, data, width, height, 32, 0) : NULL;
    if (!w->image) free(data);
    else if (w->image->bits_per_pixel != 32) XDestroyImage(w->image), w->image = NULL;
    else w->image->byte_order = order.first ? LSBFirst : MSBFirst;
}

void present_picture(void *window, const struct framebuffer *fb)
{
    struct shown_window *w = window;
    if (fb->width == 0 || fb->height == 0) return;
    if (!w->image || w->image->width != fb->width || w->image->height != fb->height) make_image(w, fb->width, fb->height);
    if (!w->image) return;
    int r = __builtin_ctzl(w->image->red_mask), g = __builtin_ctzl(w->image->green_mask), b = __builtin_ctzl(w->image->blue_mask);
    for (int y = 0; y < fb->height; y++) {
        uint32_t *out = (uint32_t *)(w->image->data + (size_t)(fb->height - 1 - y) * w->image->bytes_per_line);
        uint8_t(*row)[4] = fb->color[0] + (size_t)y * fb->width;
        for (int x = 0; x < fb->width; x++) out[x] = (uint32_t)row[x][0] << r | (uint32_t)row[x][1] << g | (uint32_t)row[x][2] << b;
    }
    XPutImage(display, w->window, w->gc, w->image, 0, 0, 0, 0, (unsigned)fb->width, (unsigned)fb->height);
    XFlush(display);
}

void present_close(void *window)
{
    struct shown_window *w = window;
    if (w->image) XDestroyImage(w->image);
    XFreeGC(display, w->gc);
    free(w);
}
