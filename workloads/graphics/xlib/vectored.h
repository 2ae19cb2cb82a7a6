/* A subset of Xlib in which each call goes by a vector, as the way of rendering asks (protocol/connection.c): to memory of this process,
 * as requests of X's core protocol by a socket or a ring, or as commands of the device in shared memory. For programs it stands in the
 * place of <X11/Xlib.h>; the functions are in libGL.so.1. */
#ifndef VECTORED_H
#define VECTORED_H
#include <stdint.h>

typedef struct vectored_display Display;
typedef struct vectored_gc *GC;
typedef uint32_t Drawable;
typedef struct { int16_t x, y; } XPoint;
typedef struct { int16_t x1, y1, x2, y2; } XSegment;
typedef struct { int16_t x, y; uint16_t width, height; } XRectangle;

#define XOpenDisplay vectored_XOpenDisplay
#define XCreatePixmap vectored_XCreatePixmap
#define XCreateGC vectored_XCreateGC
#define XSetForeground vectored_XSetForeground
#define XDrawPoint vectored_XDrawPoint
#define XDrawLine vectored_XDrawLine
#define XDrawLines vectored_XDrawLines
#define XDrawSegments vectored_XDrawSegments
#define XDrawRectangle vectored_XDrawRectangle
#define XFillRectangle vectored_XFillRectangle
#define XFillRectangles vectored_XFillRectangles
#define XSync vectored_XSync

Display *XOpenDisplay(const char *name);
Drawable XCreatePixmap(Display *d, Drawable root, unsigned width, unsigned height, unsigned depth);
GC XCreateGC(Display *d, Drawable drawable, unsigned long mask, void *values);
int XSetForeground(Display *d, GC gc, unsigned long pixel);
int XDrawPoint(Display *d, Drawable drawable, GC gc, int x, int y);
int XDrawLine(Display *d, Drawable drawable, GC gc, int x1, int y1, int x2, int y2);
int XDrawLines(Display *d, Drawable drawable, GC gc, XPoint *points, int count, int mode);
int XDrawSegments(Display *d, Drawable drawable, GC gc, XSegment *segments, int count);
int XDrawRectangle(Display *d, Drawable drawable, GC gc, int x, int y, unsigned width, unsigned height);
int XFillRectangle(Display *d, Drawable drawable, GC gc, int x, int y, unsigned width, unsigned height);
int XFillRectangles(Display *d, Drawable drawable, GC gc, XRectangle *rectangles, int count);
int XSync(Display *d, int discard);
/* The pixels of a drawable (R, G, B, A; rows from the bottom up). */
void vectored_read(Display *d, Drawable drawable, void *pixels, int width, int height);
/* Commands are taken, and nothing is drawn in this process: for measurements. */
void vectored_draw_nothing(void);
#endif
