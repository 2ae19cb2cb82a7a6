/* GLUT without a window: the window's size, its callbacks, and shapes. glutMainLoop shapes and draws the window once, writes the
 * picture to the file that PICTURE names, and exits. With -DOSMESA the context is Mesa's, otherwise ours. The shapes are not
 * GLUT's own (its teapot is a body of revolution here): both implementations of OpenGL draw the same ones. */
#include <GL/glut.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef OSMESA
#include <GL/osmesa.h>
#else
#include "../offscreen.h"
#endif
#include "ppm.h"

enum { MOST = 600 };
static int width = 300, height = 300, has_window;
static unsigned char pixels[MOST * MOST * 4];
static void (*draw)(void), (*reshape)(int, int), (*visible)(int), (*idle)(void);
static int drawn;

void glutInit(int *argc, char **argv) { (void)argc; (void)argv; }
void __glutInitWithExit(int *argc, char **argv, void (*f)(int)) { (void)argc; (void)argv; (void)f; }
void glutInitDisplayMode(unsigned mode) { (void)mode; }
void glutInitDisplayString(const char *s) { (void)s; }
void glutInitWindowSize(int w, int h)
{
    width = w < 1 ? 300 : w > MOST ? MOST : w;
    height = h < 1 ? 300 : h > MOST ? MOST : h;
}
void glutInitWindowPosition(int x, int y) { (void)x; (void)y; }

int glutCreateWindow(const char *title)
{
    (void)title;
    if (has_window) return 1;
    has_window = 1;
#ifdef OSMESA
    OSMesaContext c = OSMesaCreateContextExt(OSMESA_RGBA, 24, 8, 16, NULL);
    OSMesaMakeCurrent(c, pixels, GL_UNSIGNED_BYTE, width, height);
#else
    offscreen_make_current(offscreen_create(pixels, width, height));
    if (getenv("GENERIC")) offscreen_use_special_paths(0);
#endif
    return 1;
}
int __glutCreateWindowWithExit(const char *title, void (*f)(int)) { (void)f; return glutCreateWindow(title); }
void glutDestroyWindow(int window) { (void)window; }
void glutDisplayFunc(void (*f)(void)) { draw = f; }
void glutReshapeFunc(void (*f)(int, int)) { reshape = f; }
void glutVisibilityFunc(void (*f)(int)) { visible = f; }
void glutIdleFunc(void (*f)(void)) { idle = f; }
void glutKeyboardFunc(void (*f)(unsigned char, int, int)) { (void)f; }
void glutKeyboardUpFunc(void (*f)(unsigned char, int, int)) { (void)f; }
void glutSpecialFunc(void (*f)(int, int, int)) { (void)f; }
void glutSpecialUpFunc(void (*f)(int, int, int)) { (void)f; }
void glutMouseFunc(void (*f)(int, int, int, int)) { (void)f; }
void glutMotionFunc(void (*f)(int, int)) { (void)f; }
void glutPassiveMotionFunc(void (*f)(int, int)) { (void)f; }
void glutTimerFunc(unsigned ms, void (*f)(int), int v) { (void)ms; (void)f; (void)v; }
void glutPostRedisplay(void) { }
void glutPostWindowRedisplay(int w) { (void)w; }
void glutSwapBuffers(void) { glFinish(); drawn = 1; }
int glutCreateMenu(void (*f)(int)) { (void)f; return 1; }
int __glutCreateMenuWithExit(void (*f)(int), void (*g)(int)) { (void)f; (void)g; return 1; }
void glutAddMenuEntry(const char *s, int v) { (void)s; (void)v; }
void glutAddSubMenu(const char *s, int v) { (void)s; (void)v; }
void glutAttachMenu(int b) { (void)b; }
void glutChangeToMenuEntry(int i, const char *s, int v) { (void)i; (void)s; (void)v; }
void glutSetMenu(int m) { (void)m; }
void glutSetWindow(int w) { (void)w; }
int glutGetWindow(void) { return 1; }
void glutSetWindowTitle(const char *s) { (void)s; }
void glutReshapeWindow(int w, int h) { (void)w; (void)h; }
void glutPositionWindow(int x, int y) { (void)x; (void)y; }
void glutFullScreen(void) { }
void glutSetCursor(int c) { (void)c; }
void glutSetColor(int i, GLfloat r, GLfloat g, GLfloat b) { (void)i; (void)r; (void)g; (void)b; }
int glutGetModifiers(void) { return 0; }
int glutExtensionSupported(const char *name) { (void)name; return 0; }
int glutLayerGet(GLenum e) { (void)e; return 0; }
int glutGet(GLenum e)
{
    return e == GLUT_WINDOW_WIDTH ? width : e == GLUT_WINDOW_HEIGHT ? height : e == GLUT_WINDOW_DEPTH_SIZE ? 24 : 0;
}

void glutMainLoop(void)
{
    if (reshape) reshape(width, height);
    else glViewport(0, 0, width, height);
    if (visible) visible(GLUT_VISIBLE);
    if (draw) draw();
    glFinish();
    const char *name = getenv("PICTURE");
    exit(name && write_ppm(name, width, height, (void *)pixels) ? 0 : 1);
}

/* A body of revolution around the z axis: radius and height at each ring come from a profile. */
static void revolve(GLenum mode, const float (*profile)[2], int rings, int slices)
{
    for (int i = 0; i + 1 < rings; i++) {
        glBegin(mode);
        for (int j = 0; j <= slices; j++) {
            float a = 2 * (float)M_PI * (j % slices) / slices, c = cosf(a), s = sinf(a);
            for (int k = 0; k < 2; k++) {
                int at = i + 1 - k, before = at > 0 ? at - 1 : 0, after = at + 1 < rings ? at + 1 : at;
                float nz = profile[before][0] - profile[after][0], nr = profile[after][1] - profile[before][1];
                float length = sqrtf(nz * nz + nr * nr);
                glNormal3f(c * nr / length, s * nr / length, nz / length);
                glTexCoord2f((float)j / slices, (float)at / rings);
                glVertex3f(c * profile[at][0], s * profile[at][0], profile[at][1]);
            }
        }
        glEnd();
    }
}

static void sphere(GLenum mode, double radius, int slices, int stacks)
{
    float profile[64][2];
    if (stacks > 63) stacks = 63;
    for (int i = 0; i <= stacks; i++)
        profile[i][0] = radius * sin(M_PI * i / stacks), profile[i][1] = -radius * cos(M_PI * i / stacks);
    revolve(mode, profile, stacks + 1, slices);
}
void glutSolidSphere(double r, GLint slices, GLint stacks) { sphere(GL_QUAD_STRIP, r, slices, stacks); }
void glutWireSphere(double r, GLint slices, GLint stacks) { sphere(GL_LINE_STRIP, r, slices, stacks); }

static void cone(GLenum mode, double base, double height_, int slices, int stacks)
{
    float profile[64][2];
    if (stacks > 63) stacks = 63;
    for (int i = 0; i <= stacks; i++) profile[i][0] = base * (stacks - i) / stacks, profile[i][1] = height_ * i / stacks;
    revolve(mode, profile, stacks + 1, slices);
}
void glutSolidCone(double b, double h, GLint slices, GLint stacks) { cone(GL_QUAD_STRIP, b, h, slices, stacks); }
void glutWireCone(double b, double h, GLint slices, GLint stacks) { cone(GL_LINE_STRIP, b, h, slices, stacks); }

static void torus(GLenum mode, double inner, double outer, int sides, int rings)
{
    float profile[64][2];
    if (sides > 63) sides = 63;
    for (int i = 0; i <= sides; i++)
        profile[i][0] = outer + inner * cos(2 * M_PI * i / sides), profile[i][1] = inner * sin(2 * M_PI * i / sides);
    revolve(mode, profile, sides + 1, rings);
}
void glutSolidTorus(double i, double o, GLint sides, GLint rings) { torus(GL_QUAD_STRIP, i, o, sides, rings); }
void glutWireTorus(double i, double o, GLint sides, GLint rings) { torus(GL_LINE_STRIP, i, o, sides, rings); }

static void pot(GLenum mode, double size)
{
    static const float shape[][2] = { { 0.01f, -0.75f }, { 0.7f, -0.7f }, { 1, -0.3f }, { 0.95f, 0 }, { 0.7f, 0.5f }, { 0.6f, 0.55f },
        { 0.2f, 0.65f }, { 0.15f, 0.75f }, { 0.01f, 0.8f } };
    float profile[9][2];
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 2; k++) profile[i][k] = size * shape[i][k];
    glPushMatrix();
    glRotatef(-90, 1, 0, 0);
    revolve(mode, profile, 9, 20);
    glPopMatrix();
}
void glutSolidTeapot(double size) { pot(GL_QUAD_STRIP, size); }
void glutWireTeapot(double size) { pot(GL_LINE_STRIP, size); }

static void cube(GLenum mode, double size)
{
    float h = size / 2;
    for (int f = 0; f < 6; f++) {
        int axis = f / 2;
        float side = f % 2 ? 1 : -1, n[3] = { 0 };
        n[axis] = side;
        glNormal3fv(n);
        glBegin(mode);
        for (int k = 0; k < 4; k++) {
            float v[3];
            v[axis] = side * h;
            v[(axis + 1) % 3] = h * ((k == 1 || k == 2) ? 1 : -1);
            v[(axis + 2) % 3] = h * side * (k >= 2 ? 1 : -1);
            glVertex3fv(v);
        }
        glEnd();
    }
}
void glutSolidCube(double size) { cube(GL_QUADS, size); }
void glutWireCube(double size) { cube(GL_LINE_LOOP, size); }

/* Regular bodies are coarse spheres. */
void glutSolidIcosahedron(void) { sphere(GL_QUAD_STRIP, 1, 5, 4); }
void glutWireIcosahedron(void) { sphere(GL_LINE_STRIP, 1, 5, 4); }
void glutSolidOctahedron(void) { sphere(GL_QUAD_STRIP, 1, 4, 2); }
void glutWireOctahedron(void) { sphere(GL_LINE_STRIP, 1, 4, 2); }
void glutSolidDodecahedron(void) { sphere(GL_QUAD_STRIP, 1.7, 6, 5); }
void glutSolidTetrahedron(void) { sphere(GL_QUAD_STRIP, 1, 3, 2); }

void *glutBitmapHelvetica10, *glutBitmapHelvetica12, *glutBitmapHelvetica18, *glutBitmap8By13, *glutBitmap9By15, *glutStrokeRoman,
    *glutBitmapTimesRoman10, *glutBitmapTimesRoman24, *glutStrokeMonoRoman;
void glutBitmapCharacter(void *font, int c)
{
    GLubyte rows[8];
    (void)font;
    for (int i = 0; i < 8; i++) rows[i] = (GLubyte)(c * (2 * i + 1));
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    glBitmap(8, 8, 0, 0, 9, 0, rows);
}
int glutBitmapWidth(void *font, int c) { (void)font; (void)c; return 9; }
