/* The cost of a vertex by each way of rendering: `ways WAY SCENE COUNT [software]`.
 *   WAY    local     the library alone, in this process
 *          socket, ring    GLX's protocol, by a socket or by shared memory (indirect)
 *          buffers   commands of the device in shared memory (direct)
 *   SCENE  lit       lit, normalized vertices of triangle strips in immediate mode
 *          wire      vertices of line strips
 *          2d        a colour and a line; COUNT is of lines
 *          xlib      the same by Xlib's calls (xlib/vectored.h)
 *          list      lit, from a display list
 * The device takes everything and draws nothing, unless `software` asks for the rasterizer. The server is started as a child, from the
 * folder that GL_SERVER_PROGRAM or the first argument is in. The last line names all by `name=value`; times are in microseconds of
 * processor time. Instructions are counted by what the program is run by: `pathlength count --children`, callgrind's
 * `--trace-children=yes`; the difference of two lengths leaves the start out. */
#define _GNU_SOURCE
#include <GL/gl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../offscreen.h"
#include "../xlib/vectored.h"

enum { STRIP = 256, STRIPS = 16, SIDE = 256 };
static float position[STRIPS][STRIP][3], normal[STRIPS][STRIP][3], color[STRIP][3];
static unsigned char pixels[SIDE * SIDE * 4];
static pid_t server;
static char socket_name[64];

/* A torus, in strips around it. */
static void build(void)
{
    for (int i = 0; i < STRIPS; i++)
        for (int j = 0; j < STRIP; j++) {
            float u = 2 * (float)M_PI * (j / 2) / (STRIP / 2 - 1), v = 2 * (float)M_PI * (i + j % 2) / STRIPS;
            float n[3] = { cosf(u) * cosf(v), sinf(u) * cosf(v), sinf(v) };
            float p[3] = { cosf(u) * (1 + 0.4f * cosf(v)), sinf(u) * (1 + 0.4f * cosf(v)), 0.4f * sinf(v) };
            memcpy(normal[i][j], n, sizeof n);
            memcpy(position[i][j], p, sizeof p);
            for (int k = 0; k < 3; k++) color[j][k] = (float)(j * (k + 1) % STRIP) / STRIP;
        }
}

static void start_server(const char *program, int is_software)
{
    char name[512], *slash;
    const char *given = getenv("GL_SERVER_PROGRAM");
    snprintf(name, sizeof name - 20, "%s", given ? given : program);
    slash = strrchr(name, '/');
    if (!given) strcpy(slash ? slash + 1 : name, "graphics-server");
    snprintf(socket_name, sizeof socket_name, "/tmp/ways.%d", (int)getpid());
    server = fork();
    if (server == 0) {
        if (is_software) execl(name, name, socket_name, (char *)NULL);
        else execl(name, name, socket_name, "-device", "none", (char *)NULL);
        fprintf(stderr, "ways: there is no program %s\n", name);
        _exit(1);
    }
    struct timespec wait = { 0, 10000000 };
    while (access(socket_name, F_OK) && waitpid(server, NULL, WNOHANG) == 0) nanosleep(&wait, NULL);
    setenv("GL_SERVER", socket_name, 1);
}

static void prepare(const char *scene)
{
    glMatrixMode(GL_PROJECTION);
    if (!strcmp(scene, "2d")) {
        glOrtho(0, STRIP, 0, STRIP, -1, 1);
        return;
    }
    glFrustum(-1, 1, -1, 1, 2, 20);
    glMatrixMode(GL_MODELVIEW);
    glTranslatef(0, 0, -4);
    glEnable(GL_DEPTH_TEST);
    if (!strcmp(scene, "wire")) return;
    glEnable(GL_LIGHTING);
    glEnable(GL_LIGHT0);
    glEnable(GL_NORMALIZE);
}

static void draw_strips(GLenum mode, int is_lit)
{
    for (int i = 0; i < STRIPS; i++) {
        glBegin(mode);
        for (int j = 0; j < STRIP; j++) {
            if (is_lit) glNormal3fv(normal[i][j]);
            glVertex3fv(position[i][j]);
        }
        glEnd();
    }
}

static Display *display;
static Drawable pixmap;
static GC gc;

static void draw_by_xlib(void)
{
    for (int i = 0; i < STRIPS; i++)
        for (int j = 0; j < STRIP; j++) {
            XSetForeground(display, gc, (unsigned long)(i * 65536 + j));
            XDrawLine(display, pixmap, gc, j, i, i, (j * 7 + 3) % STRIP);
        }
}

static void draw_lines(void)
{
    for (int i = 0; i < STRIPS; i++)
        for (int j = 0; j < STRIP; j++) {
            glColor3fv(color[j]);
            glBegin(GL_LINES);
            glVertex2i(j, i);
            glVertex2i(i, (j * 7 + 3) % STRIP);
            glEnd();
        }
}

/* A frame: the unit of work, of STRIPS * STRIP vertices or lines. */
__attribute__((noinline)) void ways_frame(const char *scene)
{
    if (!strcmp(scene, "wire")) draw_strips(GL_LINE_STRIP, 0);
    else if (!strcmp(scene, "2d")) draw_lines();
    else if (!strcmp(scene, "xlib")) draw_by_xlib();
    else if (!strcmp(scene, "list")) glCallList(1);
    else draw_strips(GL_TRIANGLE_STRIP, 1);
    if (strcmp(scene, "2d") && strcmp(scene, "xlib")) glRotatef(1, 1, 2, 3);
}

static long microseconds(struct timeval t) { return t.tv_sec * 1000000L + t.tv_usec; }

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    const char *way = argv[1], *scene = argv[2];
    long count = atol(argv[3]), drawn = 0;
    int is_local = !strcmp(way, "local"), is_software = argc > 4;
    if (!is_local) start_server(argv[0], is_software);
    setenv("GL_RENDERING", is_local ? "direct" : way, 1);
    build();
    struct offscreen *o = offscreen_create(pixels, SIDE, SIDE);
    offscreen_make_current(o);
    if (is_local && !is_software) offscreen_draw_nothing();
    prepare(scene);
    if (!strcmp(scene, "list")) {
        glNewList(1, GL_COMPILE);
        draw_strips(GL_TRIANGLE_STRIP, 1);
        glEndList();
    }
    display = XOpenDisplay(NULL);
    pixmap = XCreatePixmap(display, 0, SIDE, SIDE, 24);
    gc = XCreateGC(display, pixmap, 0, NULL);
    if (!is_software) vectored_draw_nothing();
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (; drawn < count; drawn += STRIPS * STRIP) ways_frame(scene);
    glFinish();
    clock_gettime(CLOCK_MONOTONIC, &to);
    struct rusage client, other = { 0 };
    int status = 0;
    offscreen_destroy(o);
    if (!is_local) {
        kill(server, SIGTERM);
        wait4(server, &status, 0, &other);
    }
    getrusage(RUSAGE_SELF, &client);
    printf("way=%s scene=%s device=%s vertices=%ld elapsed=%ld client_user=%ld client_system=%ld server_user=%ld server_system=%ld\n", way,
        scene, is_software ? "software" : "none", drawn, (to.tv_sec - from.tv_sec) * 1000000L + (to.tv_nsec - from.tv_nsec) / 1000,
        microseconds(client.ru_utime), microseconds(client.ru_stime), microseconds(other.ru_utime), microseconds(other.ru_stime));
    return status != 0;
}
