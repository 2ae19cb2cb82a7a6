/* Windows of an X server, and the pictures that are put into them. */
#ifndef SHOWN_WINDOW_H
#define SHOWN_WINDOW_H
#include "../context.h"
#include <X11/Xlib.h>

/* image: the last picture, in the layout of the window's visual; null before the first one. */
struct shown_window { Display *display; Window window; Visual *visual; GC gc; XImage *image; };

/* Puts the first buffer into the window by XPutImage. Nothing is shown if memory is short, or pixels of the visual have not 32 bits. */
void show_picture(struct shown_window *w, const struct framebuffer *fb);
#endif
