/* Windows of an X server: where they are and how large they are is the X server's, pictures are put into them by XPutImage. Windows
 * end when they like: errors that come of it are ignored. */
#include "server.h"
#include "../glx/shown_window.h"
#include <X11/Xutil.h>

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
    *w = (struct shown_window){ display, id, a.visual, XCreateGC(display, id, 0, NULL), NULL };
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

void present_picture(void *window, const struct framebuffer *fb) { show_picture(window, fb); }

void present_finish(void)
{
    if (display) XSync(display, False);
}

void present_close(void *window)
{
    struct shown_window *w = window;
    if (w->image) XDestroyImage(w->image);
    XFreeGC(display, w->gc);
    free(w);
}
