/* A viewer of models of our own, for a composite of weighted frame rates: `viewer TEST FRAMES [WORK [PICTURE]]`.
 * TEST is wire, facets, texture, transparent or panel. WORK is draw; geometry, with a scissor box that leaves no pixel, so that all is
 * done but the rasterizer's work; or fragments, which also counts the fragments of a frame. PICTURE is where the last frame is written
 * as PPM. A call of viewer_frame is a frame. Prints vertices, triangles, vectors, state changes and fragments of the counted frame, zeros
 * without one, and a line for each mask of conditions under which vertices were drawn; TIMED=1 also prints the processor time of the
 * frames in microseconds. GENERIC=1 takes the generic path alone. */
#include <GL/gl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../offscreen.h"
#include "../tests/ppm.h"

enum { WIDTH = 400, HEIGHT = 300, RINGS = 48, SECTORS = 64, TEXELS = 64 };
struct point { float coord[2], normal[3], position[3]; };
static struct point body[RINGS + 1][SECTORS + 1];
static long vertices, triangles, vectors, changes, by_mask[1024];
static float angle;
static void (*test)(void);

/* The half section of a turned part with flutes: radius by height, 0 at its ends. */
static float radius(float t, float around)
{
    float profile = 0.25f + 0.75f * sinf((float)M_PI * t) * (0.72f + 0.28f * cosf(5 * (float)M_PI * t));
    return profile * (1 + 0.06f * cosf(12 * around)) * fminf(1, fminf(t, 1 - t) * 12);
}

static void position_of(float i, float j, float *p)
{
    float t = i / RINGS, around = 2 * (float)M_PI * j / SECTORS, r = radius(t, around);
    p[0] = r * cosf(around), p[1] = 1.6f * (t - 0.5f), p[2] = r * sinf(around);
}

/* Points and normals, by differences of neighbours. */
static void build(void)
{
    for (int i = 0; i <= RINGS; i++)
        for (int j = 0; j <= SECTORS; j++) {
            float a[3], b[3], c[3], d[3], u[3], v[3], at = i == 0 ? 0.5f : i == RINGS ? RINGS - 0.5f : i;
            position_of(at - 0.3f, j, a), position_of(at + 0.3f, j, b), position_of(at, j - 0.3f, c), position_of(at, j + 0.3f, d);
            for (int k = 0; k < 3; k++) u[k] = b[k] - a[k], v[k] = d[k] - c[k];
            float n[3] = { u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0] };
            float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
            for (int k = 0; k < 3; k++) body[i][j].normal[k] = length > 0 ? n[k] / length : 0;
            position_of(i, j, body[i][j].position);
            body[i][j].coord[0] = 4.0f * j / SECTORS, body[i][j].coord[1] = 2.0f * i / RINGS;
        }
}

/* Ends a primitive, and counts its vertices for the conditions that were validated for it. */
static void end(int count)
{
    glEnd();
    vertices += count;
    int mask = offscreen_conditions();
    if (mask >= 0) by_mask[mask] += count;
}

static void put(const struct point *p, int has_normal, int has_coord)
{
    if (has_coord) glTexCoord2fv(p->coord);
    if (has_normal) glNormal3fv(p->normal);
    glVertex3fv(p->position);
}

static void strips(int has_coord)
{
    for (int i = 0; i < RINGS; i++) {
        glBegin(GL_TRIANGLE_STRIP);
        for (int j = 0; j <= SECTORS; j++) put(&body[i][j], 1, has_coord), put(&body[i + 1][j], 1, has_coord);
        end(2 * (SECTORS + 1));
        triangles += 2 * SECTORS;
    }
}

static void camera(float size)
{
    glMatrixMode(GL_PROJECTION);
    glLoadIdentity();
    glFrustum(-0.5, 0.5, -0.375, 0.375, 1.5, 20);
    glMatrixMode(GL_MODELVIEW);
    glLoadIdentity();
    glTranslatef(0, 0, -3.2f);
    glRotatef(25, 1, 0, 0);
    glRotatef(angle, 0.2f, 1, 0.1f);
    glScalef(size, size, size);
}

static void light(int number, float x, float y, float z, float strength, float specular)
{
    const float position[4] = { x, y, z, 0 }, diffuse[4] = { strength, strength, strength, 1 };
    const float shine[4] = { specular, specular, specular, 1 };
    glLightfv(GL_LIGHT0 + number, GL_POSITION, position);
    glLightfv(GL_LIGHT0 + number, GL_DIFFUSE, diffuse);
    glLightfv(GL_LIGHT0 + number, GL_SPECULAR, shine);
    glEnable(GL_LIGHT0 + number);
}

static void material(float r, float g, float b, float a)
{
    const float color[4] = { r, g, b, a }, shine[4] = { 0.6f, 0.6f, 0.6f, 1 };
    glMaterialfv(GL_FRONT_AND_BACK, GL_AMBIENT_AND_DIFFUSE, color);
    glMaterialfv(GL_FRONT_AND_BACK, GL_SPECULAR, shine);
    glMaterialf(GL_FRONT_AND_BACK, GL_SHININESS, 30);
    changes++;
}

static void wire(void)
{
    camera(0.88f);
    glColor3f(0.55f, 0.85f, 1);
    changes++;
    for (int i = 0; i <= RINGS; i++) {
        glBegin(GL_LINE_STRIP);
        for (int j = 0; j <= SECTORS; j++) put(&body[i][j], 0, 0);
        end(SECTORS + 1);
        vectors += SECTORS;
    }
    for (int j = 0; j < SECTORS; j++) {
        glBegin(GL_LINE_STRIP);
        for (int i = 0; i <= RINGS; i++) put(&body[i][j], 0, 0);
        end(RINGS + 1);
        vectors += RINGS;
    }
}

static void facets(void)
{
    camera(0.88f);
    glEnable(GL_LIGHTING);
    light(0, 0.4f, 0.8f, 1, 0.9f, 0);
    material(0.75f, 0.55f, 0.25f, 1);
    strips(0);
    glDisable(GL_LIGHTING);
}

static void texture(void)
{
    camera(0.88f);
    glEnable(GL_LIGHTING);
    glEnable(GL_TEXTURE_2D);
    light(0, 0.4f, 0.8f, 1, 0.9f, 0);
    material(0.9f, 0.9f, 0.9f, 1);
    strips(1);
    glDisable(GL_TEXTURE_2D);
    glDisable(GL_LIGHTING);
}

/* A body within a transparent one. */
static void transparent(void)
{
    camera(0.53f);
    glEnable(GL_LIGHTING);
    light(0, 0.4f, 0.8f, 1, 0.7f, 0.8f);
    light(1, -0.8f, 0.1f, 0.5f, 0.4f, 0.8f);
    glEnable(GL_NORMALIZE);
    material(0.8f, 0.3f, 0.2f, 1);
    strips(0);
    glScalef(1.6f, 1.6f, 1.6f);
    glEnable(GL_BLEND);
    glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
    glDepthMask(GL_FALSE);
    material(0.3f, 0.6f, 0.8f, 0.35f);
    strips(0);
    glDepthMask(GL_TRUE);
    glDisable(GL_BLEND);
    glDisable(GL_NORMALIZE);
    glDisable(GL_LIGHT1);
    glDisable(GL_LIGHTING);
}

static void line(int x0, int y0, int x1, int y1)
{
    glBegin(GL_LINES);
    glVertex2i(x0, y0), glVertex2i(x1, y1);
    end(2);
    vectors++;
}

static void color(float r, float g, float b)
{
    glColor3f(r, g, b);
    changes++;
}

/* Buttons with edges and labels, each part in a colour of its own: little geometry, much state. */
static void panel(void)
{
    static const GLubyte letter[6][8] = { { 0x00, 0x44, 0x44, 0x7c, 0x44, 0x44, 0x28, 0x10 }, { 0x00, 0x78, 0x44, 0x44, 0x78, 0x44, 0x44, 0x78 },
        { 0x00, 0x38, 0x44, 0x40, 0x40, 0x40, 0x44, 0x38 }, { 0x00, 0x7c, 0x40, 0x40, 0x78, 0x40, 0x40, 0x7c },
        { 0x00, 0x44, 0x44, 0x44, 0x7c, 0x44, 0x44, 0x44 }, { 0x00, 0x7c, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40 } };
    glMatrixMode(GL_PROJECTION);
    glLoadIdentity();
    glOrtho(0, WIDTH, 0, HEIGHT, -1, 1);
    glMatrixMode(GL_MODELVIEW);
    glLoadIdentity();
    glDisable(GL_DEPTH_TEST);
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    for (int i = 0; i < 84; i++) {
        int x = 10 + i % 7 * 55, y = 12 + i / 7 * 23, is_pressed = (i + (int)angle) % 11 == 0;
        color(is_pressed ? 0.45f : 0.72f, 0.72f, 0.74f);
        glRecti(x, y, x + 49, y + 18);
        vertices += 4, triangles += 2;
        color(0.95f, 0.95f, 0.95f);
        line(x, y + 18, x + 49, y + 18), line(x, y, x, y + 18);
        color(0.3f, 0.3f, 0.3f);
        line(x, y, x + 49, y), line(x + 49, y, x + 49, y + 18);
        color(0.1f, 0.1f, 0.2f);
        glRasterPos2i(x + 6, y + 5);
        for (int k = 0; k < 4; k++) glBitmap(8, 8, 0, 0, 9, 0, letter[(i * 7 + k * k + k) % 6]);
        vertices += 5;
    }
    glEnable(GL_DEPTH_TEST);
}

static const struct { const char *name; void (*draw)(void); } tests[] = { { "wire", wire }, { "facets", facets }, { "texture", texture },
    { "transparent", transparent }, { "panel", panel } };

/* A frame: the unit of work. */
__attribute__((noinline)) void viewer_frame(void)
{
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
    test();
    angle += 3;
}

static void load_texture(void)
{
    static GLubyte texel[TEXELS][TEXELS][3];
    for (int level = 0, size = TEXELS; size; level++, size /= 2) {
        for (int y = 0; y < size; y++)
            for (int x = 0; x < size; x++) {
                int is_dark = (x * 8 / size + y * 8 / size) % 2;
                memset(texel[0][y * size + x], size < 8 ? 150 : is_dark ? 80 : 220, 3);
                texel[0][y * size + x][2] = 120;
            }
        glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
        glTexImage2D(GL_TEXTURE_2D, level, GL_RGB, size, size, 0, GL_RGB, GL_UNSIGNED_BYTE, texel);
    }
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR_MIPMAP_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
}

/* Every fragment, visible or not, adds one to the stencil of its pixel. */
static long count_fragments(void)
{
    static GLubyte stencil[WIDTH * HEIGHT];
    glEnable(GL_STENCIL_TEST);
    glStencilOp(GL_INCR, GL_INCR, GL_INCR);
    glClear(GL_STENCIL_BUFFER_BIT);
    viewer_frame();
    glReadPixels(0, 0, WIDTH, HEIGHT, GL_STENCIL_INDEX, GL_UNSIGNED_BYTE, stencil);
    long sum = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++) sum += stencil[i];
    return sum;
}

int main(int argc, char **argv)
{
    static unsigned char pixels[WIDTH * HEIGHT][4];
    const char *work = argc > 3 ? argv[3] : "draw";
    for (size_t i = 0; argc > 2 && i < sizeof tests / sizeof *tests; i++)
        if (!strcmp(argv[1], tests[i].name)) test = tests[i].draw;
    if (!test) {
        fprintf(stderr, "usage: viewer wire|facets|texture|transparent|panel FRAMES [draw|geometry|fragments [PICTURE]]\n");
        return 2;
    }
    int frames = atoi(argv[2]);
    offscreen_make_current(offscreen_create(pixels, WIDTH, HEIGHT));
    offscreen_use_special_paths(getenv("GENERIC") == NULL);
    build();
    load_texture();
    glClearColor(0.12f, 0.13f, 0.16f, 1);
    glEnable(GL_DEPTH_TEST);
    if (!strcmp(work, "geometry")) glScissor(0, 0, 0, 0), glEnable(GL_SCISSOR_TEST);
    angle = 20;
    clock_t begin = clock();
    for (int i = 0; i < frames; i++) viewer_frame();
    clock_t finish = clock();
    if (argc > 4 && !write_ppm(argv[4], WIDTH, HEIGHT, pixels)) return perror(argv[4]), 1;
    vertices = triangles = vectors = changes = 0;
    memset(by_mask, 0, sizeof by_mask);
    long fragments = 0;
    if (!strcmp(work, "fragments")) fragments = count_fragments();
    printf("%ld %ld %ld %ld %ld\n", vertices, triangles, vectors, changes, fragments);
    for (int i = 0; i < 1024; i++)
        if (by_mask[i]) printf("%d %ld\n", i, by_mask[i]);
    if (getenv("TIMED")) printf("%ld\n", (long)((finish - begin) * 1000000 / CLOCKS_PER_SEC));
    return 0;
}
