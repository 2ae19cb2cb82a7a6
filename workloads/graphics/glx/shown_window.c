/* Windows of an X server, and the pictures that are put into them. */
#include "shown_window.h"
#include <X11/Xutil.h>

static void make_image(struct shown_window *w, int width, int height)
{
    if (w->image) XDestroyImage(w->image);
    char *data = malloc((size_t)width * height * 4 + 4);
    w->image = data ? XCreateImage(w->display, w->visual, 24, ZPixmap, 0, data, width, height, 32, 0) : NULL;
    if (!w->image) free(data);
    else if (w->image->bits_per_pixel != 32) XDestroyImage(w->image), w->image = NULL;
    else w->image->byte_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? LSBFirst : MSBFirst;
}

void show_picture(struct shown_window *w, const struct framebuffer *fb)
{
    if (fb->width == 0 || fb->height == 0) return;
    if (!w->image || w->image->width != fb->width || w->image->height != fb->height) make_image(w, fb->width, fb->height);
    if (!w->image) return;
    int r = __builtin_ctzl(w->image->red_mask), g = __builtin_ctzl(w->image->green_mask), b = __builtin_ctzl(w->image->blue_mask);
    for (int y = 0; y < fb->height; y++) {
        uint32_t *out = (uint32_t *)(w->image->data + (size_t)(fb->height - 1 - y) * w->image->bytes_per_line);
        uint8_t(*row)[4] = fb->color[0] + (size_t)y * fb->width;
        for (int x = 0; x < fb->width; x++) out[x] = (uint32_t)row[x][0] << r | (uint32_t)row[x][1] << g | (uint32_t)row[x][2] << b;
    }
    XPutImage(w->display, w->window, w->gc, w->image, 0, 0, 0, 0, (unsigned)fb->width, (unsigned)fb->height);
    XFlush(w->display);
}
