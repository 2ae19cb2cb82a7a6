/* A panel drawn by calls of Xlib: rulings, frames, bars, curves, points, at the borders and beyond. Writes the picture: `panel FILE`. */
#include <math.h>
#include "../xlib/vectored.h"
#include "ppm.h"

enum { WIDTH = 160, HEIGHT = 120 };
static unsigned char pixels[HEIGHT][WIDTH][4];

static void draw(Display *d, Drawable p, GC gc)
{
    XSetForeground(d, gc, 0x203040);
    XFillRectangle(d, p, gc, 0, 0, WIDTH, HEIGHT);
    for (int i = 0; i < 12; i++) {
        XSetForeground(d, gc, 0x304060 + 0x0a0805 * (unsigned long)i);
        XDrawLine(d, p, gc, -20, 10 * i, WIDTH + 20, 10 * i + 7);
        XDrawRectangle(d, p, gc, 5 * i, 4 * i, 30, 20);
        XFillRectangle(d, p, gc, 100 + 6 * i, 110 - 7 * i, 4, (unsigned)(7 * i));
    }
    XPoint curve[60];
    XSegment fan[40];
    XRectangle squares[20];
    for (int i = 0; i < 60; i++) curve[i] = (XPoint){ (int16_t)(i * 3 - 10), (int16_t)(60 + 50 * sin(i * 0.2)) };
    for (int i = 0; i < 40; i++) fan[i] = (XSegment){ 80, 60, (int16_t)(80 + 100 * cos(i * 0.157)), (int16_t)(60 + 100 * sin(i * 0.157)) };
    for (int i = 0; i < 20; i++) squares[i] = (XRectangle){ (int16_t)(i * 9 - 5), (int16_t)(i * 7 - 5), 6, 5 };
    XSetForeground(d, gc, 0xffd040);
    XDrawSegments(d, p, gc, fan, 40);
    XDrawLines(d, p, gc, curve, 60, 0);
    XSetForeground(d, gc, 0x40ff90);
    XFillRectangles(d, p, gc, squares, 20);
    for (int i = 0; i < 100; i++) XDrawPoint(d, p, gc, i * 37 % WIDTH, i * 23 % HEIGHT);
    XPoint steps[4] = { { 20, 100 }, { 10, -20 }, { 10, 20 }, { 30, -5 } };
    XSetForeground(d, gc, 0xff0000);
    XDrawLines(d, p, gc, steps, 4, 1);
    XFillRectangle(d, p, gc, 32000, 32000, 65535, 65535);
    XDrawRectangle(d, p, gc, -32768, -32768, 65535, 65535);
}

int main(int argc, char **argv)
{
    Display *d = XOpenDisplay(NULL);
    Drawable p = d ? XCreatePixmap(d, 0, WIDTH, HEIGHT, 24) : 0;
    GC gc = p ? XCreateGC(d, p, 0, NULL) : NULL;
    if (argc != 2 || !gc) return 2;
    draw(d, p, gc);
    XSync(d, 0);
    vectored_read(d, p, pixels, WIDTH, HEIGHT);
    return !write_ppm(argv[1], WIDTH, HEIGHT, pixels[0]);
}
