/* Draws a scene into a window of an X server, reads the window's picture back, and writes it: `window SCENE FILE`. A double buffer is
 * drawn to and swapped; a single one is flushed if SINGLE=1. */
#define GLX_GLXEXT_LEGACY
#include <GL/gl.h>
#include <GL/glx.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scenes.h"

int main(int argc, char **argv)
{
    Display *display = XOpenDisplay(NULL);
    if (argc != 3 || !display) return 2;
    int is_single = getenv("SINGLE") != NULL, wanted[] = { GLX_RGBA, GLX_DEPTH_SIZE, 16, is_single ? None : GLX_DOUBLEBUFFER, None };
    XVisualInfo *visual = glXChooseVisual(display, DefaultScreen(display), wanted);
    Window root = DefaultRootWindow(display), window = XCreateSimpleWindow(display, root, 5, 7, SCENE_SIZE, SCENE_SIZE, 0, 0, 0);
    GLXContext c = visual ? glXCreateContext(display, visual, NULL, True) : NULL;
    XMapWindow(display, window);
    if (!c || !glXMakeCurrent(display, window, c)) return 1;
    const struct scene *s = scenes;
    while (s->name && strcmp(s->name, argv[1])) s++;
    if (!s->name) return 2;
    s->draw();
    if (!is_single) glXSwapBuffers(display, window);
    glFinish();
    XImage *image = XGetImage(display, window, 0, 0, SCENE_SIZE, SCENE_SIZE, AllPlanes, ZPixmap);
    FILE *f = image ? fopen(argv[2], "wb") : NULL;
    if (!f) return 1;
    fprintf(f, "P6\n%d %d\n255\n", SCENE_SIZE, SCENE_SIZE);
    for (int y = 0; y < SCENE_SIZE; y++)
        for (int x = 0; x < SCENE_SIZE; x++) {
            unsigned long p = XGetPixel(image, x, y);
            unsigned char rgb[3] = { (unsigned char)(p >> 16), (unsigned char)(p >> 8), (unsigned char)p };
            fwrite(rgb, 1, 3, f);
        }
    fclose(f);
    glXMakeCurrent(display, None, NULL);
    glXDestroyContext(display, c);
    return 0;
}
