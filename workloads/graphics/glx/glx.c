/* GLX on an X server: contexts draw in the client's memory, and the picture is put into the window when buffers are swapped, or a
 * single buffer is flushed. The X server needs no GLX. If GL_RENDERING asks for a graphics server (protocol/), that has the pixels and
 * shows them in the windows. There is one kind of drawable: windows of the default visual, which must be a TrueColor one of 24 bits. */
#define GLX_GLXEXT_LEGACY
#include "shown_window.h"
#include "../protocol/protocol.h"
#include <GL/glx.h>
#include <X11/Xutil.h>

#define EXPORTED __attribute__((visibility("default")))

struct __GLXFBConfigRec { int is_double, id; };
static struct __GLXFBConfigRec configs[2] = { { 1, 1 }, { 0, 2 } };

/* A window's pixels: they outlive the contexts that draw to them. */
struct surface { struct shown_window shown; struct framebuffer *fb; struct surface *next; };
static struct surface *surfaces;

struct __GLXcontextRec { struct context *gl; struct surface *surface; Display *display; int is_double; };
static __thread GLXContext current_glx;

/* Follows the window's size. */
static void resize(struct surface *s)
{
    XWindowAttributes a;
    if (!XGetWindowAttributes(s->shown.display, s->shown.window, &a) || (a.width == s->fb->width && a.height == s->fb->height)) return;
    resize_framebuffer(s->fb, a.width, a.height, NULL);
    s->shown.visual = a.visual;
}

static struct surface *surface_of(Display *display, Window window, int is_double)
{
    for (struct surface *s = surfaces; s; s = s->next)
        if (s->shown.display == display && s->shown.window == window) return s;
    struct surface *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->shown = (struct shown_window){ display, window, NULL, XCreateGC(display, window, 0, NULL), NULL };
    s->fb = make_framebuffer(0, 0, NULL, is_double);
    s->next = surfaces;
    resize(s);
    return surfaces = s;
}

static void flush_window(struct context *gl)
{
    GLXContext c = current_glx;
    if (c && c->gl == gl && c->surface && (!c->is_double || gl->s.color.draw_buffer == GL_FRONT)) show_picture(&c->surface->shown, gl->fb);
}

static void follow_size(struct context *gl)
{
    GLXContext c = current_glx;
    if (!c || c->gl != gl || !c->surface) return;
    resize(c->surface);
    gl->dirty |= DIRTY_ALL;
}

static GLXContext create(Display *display, int is_double)
{
    GLXContext c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->gl = make_context(is_double);
    c->display = display, c->is_double = is_double;
    if (!c->gl || (connection_is_wanted() && !remote_open(c->gl, is_double))) {
        free_context(c->gl);
        free(c);
        return NULL;
    }
    if (!c->gl->remote) c->gl->flush_window = flush_window, c->gl->follow_size = follow_size;
    return c;
}

/* The value of a configuration's attribute; -1 if that is unknown. */
static int attribute(int is_double, int name)
{
    switch (name) {
    case GLX_USE_GL: case GLX_RGBA: case GLX_X_RENDERABLE: return True;
    case GLX_BUFFER_SIZE: return 32;
    case GLX_DOUBLEBUFFER: return is_double;
    case GLX_LEVEL: case GLX_STEREO: case GLX_AUX_BUFFERS: case GLX_SAMPLE_BUFFERS: case GLX_SAMPLES: return 0;
    case GLX_RED_SIZE: case GLX_GREEN_SIZE: case GLX_BLUE_SIZE: case GLX_ALPHA_SIZE: case GLX_STENCIL_SIZE: return 8;
    case GLX_DEPTH_SIZE: return 24;
    case GLX_ACCUM_RED_SIZE: case GLX_ACCUM_GREEN_SIZE: case GLX_ACCUM_BLUE_SIZE: case GLX_ACCUM_ALPHA_SIZE: return 16;
    case GLX_RENDER_TYPE: return GLX_RGBA_BIT;
    case GLX_DRAWABLE_TYPE: return GLX_WINDOW_BIT;
    case GLX_X_VISUAL_TYPE: return GLX_TRUE_COLOR;
    case GLX_CONFIG_CAVEAT: case GLX_TRANSPARENT_TYPE: return GLX_NONE;
    case GLX_FBCONFIG_ID: return is_double ? 1 : 2;
    default: return -1;
    }
}

/* Visuals cannot tell single from double buffers: which of them glXChooseVisual was asked for last is kept by visual. */
static int visual_is_double = 1;

EXPORTED XVisualInfo *glXGetVisualFromFBConfig(Display *display, GLXFBConfig config)
{
    XVisualInfo wanted = { .visualid = XVisualIDFromVisual(DefaultVisual(display, DefaultScreen(display))) };
    int count;
    if (config) visual_is_double = config->is_double;
    return XGetVisualInfo(display, VisualIDMask, &wanted, &count);
}

EXPORTED XVisualInfo *glXChooseVisual(Display *display, int screen, int *list)
{
    (void)screen;
    int is_double = 0, is_rgba = 0;
    for (; *list != None; list++) {
        if (*list == GLX_USE_GL) continue;
        if (*list == GLX_RGBA) is_rgba = 1;
        else if (*list == GLX_DOUBLEBUFFER) is_double = 1;
        else if (*list == GLX_STEREO) return NULL;
        else if (attribute(0, list[0]) < list[1] && list[0] != GLX_FBCONFIG_ID) return NULL;
        else list++;
    }
    return is_rgba ? glXGetVisualFromFBConfig(display, &configs[!is_double]) : NULL;
}

EXPORTED GLXContext glXCreateContext(Display *display, XVisualInfo *visual, GLXContext share, Bool direct)
{
    (void)visual, (void)share, (void)direct;
    return create(display, visual_is_double);
}

EXPORTED GLXContext glXCreateNewContext(Display *display, GLXFBConfig config, int type, GLXContext share, Bool direct)
{
    (void)type, (void)share, (void)direct;
    return create(display, config->is_double);
}

EXPORTED void glXDestroyContext(Display *display, GLXContext c)
{
    (void)display;
    if (c == current_glx) current_glx = NULL;
    if (c->gl->remote) remote_close(c->gl);
    free_context(c->gl);
    free(c);
}

EXPORTED Bool glXMakeCurrent(Display *display, GLXDrawable drawable, GLXContext c)
{
    if (!c || !drawable) {
        make_current(NULL, NULL);
        current_glx = NULL;
        return !c && !drawable;
    }
    if (c->gl->remote) {
        XSync(display, False);          /* the server sees the window by a connection of its own */
        if (!remote_make_current(c->gl, (uint32_t)drawable)) return False;
        current_glx = c;
        make_current(c->gl, &c->gl->remote->shell);
        return True;
    }
    c->surface = surface_of(display, drawable, c->is_double);
    if (!c->surface) return False;
    current_glx = c;
    resize(c->surface);
    make_current(c->gl, c->surface->fb);
    return True;
}

EXPORTED Bool glXMakeContextCurrent(Display *display, GLXDrawable draw, GLXDrawable read, GLXContext c)
{
    (void)read;
    return glXMakeCurrent(display, draw, c);
}

EXPORTED void glXSwapBuffers(Display *display, GLXDrawable drawable)
{
    if (connection_is_wanted()) remote_swap(current_glx ? current_glx->gl : NULL, (uint32_t)drawable);
    for (struct surface *s = surfaces; s; s = s->next) {
        if (s->shown.display != display || s->shown.window != drawable) continue;
        if (s->fb->color[1]) memcpy(s->fb->color[0], s->fb->color[1], (size_t)s->fb->width * s->fb->height * 4);
        show_picture(&s->shown, s->fb);
    }
}

EXPORTED GLXFBConfig *glXChooseFBConfig(Display *display, int screen, const int *list, int *count)
{
    (void)display, (void)screen;
    int is_double = -1;
    for (; list && *list != None; list += 2) {
        if (list[0] == GLX_DOUBLEBUFFER) is_double = list[1];
        if (list[0] == GLX_STEREO && list[1] == True) return NULL;
        if (list[0] == GLX_RENDER_TYPE && !(list[1] & GLX_RGBA_BIT)) return NULL;
        if (list[0] == GLX_SAMPLES && list[1] > 0) return NULL;
    }
    GLXFBConfig *found = malloc(2 * sizeof *found);
    *count = 0;
    for (int i = 0; i < 2 && found; i++)
        if (is_double < 0 || configs[i].is_double == is_double) found[(*count)++] = &configs[i];
    return found;
}

EXPORTED GLXFBConfig *glXGetFBConfigs(Display *display, int screen, int *count) { return glXChooseFBConfig(display, screen, NULL, count); }

EXPORTED int glXGetFBConfigAttrib(Display *display, GLXFBConfig config, int name, int *value)
{
    *value = name == GLX_VISUAL_ID ? (int)XVisualIDFromVisual(DefaultVisual(display, DefaultScreen(display)))
                                   : attribute(config->is_double, name);
    return *value < 0 ? GLX_BAD_ATTRIBUTE : Success;
}

EXPORTED int glXGetConfig(Display *display, XVisualInfo *visual, int name, int *value)
{
    (void)display, (void)visual;
    *value = attribute(visual_is_double, name);
    return *value < 0 ? GLX_BAD_ATTRIBUTE : Success;
}

EXPORTED Bool glXQueryExtension(Display *display, int *error, int *event)
{
    (void)display;
    if (error) *error = 0;
    if (event) *event = 0;
    return True;
}

EXPORTED Bool glXQueryVersion(Display *display, int *major, int *minor)
{
    (void)display;
    *major = 1, *minor = 3;
    return True;
}

EXPORTED Bool glXIsDirect(Display *display, GLXContext c)
{
    (void)display, (void)c;
    return !connection_is_wanted() || connection_is_direct();
}

EXPORTED const char *glXQueryExtensionsString(Display *display, int screen)
{
    (void)display, (void)screen;
    return "";
}
EXPORTED const char *glXGetClientString(Display *display, int name)
{
    (void)display;
    return name == GLX_VENDOR ? "Pathlength" : name == GLX_VERSION ? "1.3" : "";
}
EXPORTED const char *glXQueryServerString(Display *display, int screen, int name)
{
    (void)screen;
    return glXGetClientString(display, name);
}

EXPORTED GLXContext glXGetCurrentContext(void) { return current_glx; }
EXPORTED GLXDrawable glXGetCurrentDrawable(void)
{
    if (current_glx && current_glx->gl->remote) return current_glx->gl->remote->drawable;
    return current_glx && current_glx->surface ? current_glx->surface->shown.window : None;
}
EXPORTED Display *glXGetCurrentDisplay(void) { return current_glx ? current_glx->display : NULL; }
EXPORTED void glXWaitGL(void) { glFinish(); }
EXPORTED void glXWaitX(void)
{
    if (current_glx && current_glx->gl->remote) XSync(current_glx->display, False);
}
EXPORTED void glXSelectEvent(Display *display, GLXDrawable drawable, unsigned long mask) { (void)display, (void)drawable, (void)mask; }

EXPORTED GLXWindow glXCreateWindow(Display *display, GLXFBConfig config, Window window, const int *list)
{
    (void)display, (void)config, (void)list;
    return window;
}
EXPORTED void glXDestroyWindow(Display *display, GLXWindow window) { (void)display, (void)window; }

EXPORTED void glXQueryDrawable(Display *display, GLXDrawable drawable, int name, unsigned *value)
{
    XWindowAttributes a;
    *value = 0;
    if ((name == GLX_WIDTH || name == GLX_HEIGHT) && XGetWindowAttributes(display, drawable, &a)) *value = name == GLX_WIDTH ? a.width : a.height;
}

/* Functions by name are found by the dynamic linker; there are no extensions. */
EXPORTED __GLXextFuncPtr glXGetProcAddress(const GLubyte *name)
{
    extern void *dlsym(void *, const char *);
    return (__GLXextFuncPtr)dlsym(NULL, (const char *)name);
}
EXPORTED __GLXextFuncPtr glXGetProcAddressARB(const GLubyte *name) { return glXGetProcAddress(name); }
