/* Vertices under given conditions, for measurements: `vertices MASK[,MASK...] MODE FRAMES [generic]`.
 * A torus of 1,280 triangles is drawn FRAMES times under the conditions of MASK, by MODE: immediate, array or list. All triangles
 * are culled, so that the cost is that of vertices. EVERY=N changes state after N vertices (immediate mode alone): the material, or
 * to the conditions of the next MASK. TIMED=1 also prints the processor time of the frames in microseconds. Prints the number of
 * vertices; a call of vertices_frame is a frame. */
#include <GL/gl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef OSMESA                                   /* Mesa's off-screen library, for comparison */
#include <GL/osmesa.h>
#else
#include "../offscreen.h"
#endif

enum { ROWS = 20, COLUMNS = 32, MOST_MASKS = 512, LIGHTING = 1, NORMALIZE = 2, TEXTURE = 4, FOG = 8, LIGHT1 = 16, SPECULAR = 32,
    COLOR_MATERIAL = 64, POSITIONAL = 128, TEXGEN = 256, USER_CLIP = 512 };
static struct { float coord[2], normal[3], position[3]; } vertex[ROWS + 1][COLUMNS + 1];
static GLushort order[ROWS * COLUMNS * 6];
static int count, masks[MOST_MASKS], mask_count, every;
static const char *mode;
static const float white[4] = { 0.9f, 0.9f, 0.9f, 1 }, grey[4] = { 0.7f, 0.7f, 0.7f, 1 }, black[4] = { 0, 0, 0, 1 };

static void build(void)
{
    for (int i = 0; i <= ROWS; i++)
        for (int j = 0; j <= COLUMNS; j++) {
            float u = 2 * (float)M_PI * i / ROWS, v = 2 * (float)M_PI * j / COLUMNS;
            float n[3] = { cosf(u) * cosf(v), sinf(u) * cosf(v), sinf(v) };
            float p[3] = { cosf(u) * (1 + 0.4f * cosf(v)), sinf(u) * (1 + 0.4f * cosf(v)), 0.4f * sinf(v) };
            memcpy(vertex[i][j].normal, n, sizeof n);
            memcpy(vertex[i][j].position, p, sizeof p);
            vertex[i][j].coord[0] = (float)i / ROWS, vertex[i][j].coord[1] = (float)j / COLUMNS;
        }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            GLushort a = i * (COLUMNS + 1) + j, b = a + COLUMNS + 1, quad[6] = { a, b, a + 1, a + 1, b, b + 1 };
            memcpy(order + count, quad, sizeof quad);
            count += 6;
        }
}

static void set(GLenum name, int on) { (on ? glEnable : glDisable)(name); }

/* The state that every mask has. */
static void prepare(void)
{
    static const float plane[4] = { 1, 0.5f, 0, 0 };
    static const double clip[4] = { 0, 0, 0, 1 };
    static const GLubyte texel[4] = { 255, 255, 255, 255 };
    glMatrixMode(GL_PROJECTION);
    glFrustum(-1, 1, -1, 1, 2, 20);
    glMatrixMode(GL_MODELVIEW);
    glTranslatef(0, 0, -4);
    for (int i = 0; i < 2; i++) glLightfv(GL_LIGHT0 + i, GL_DIFFUSE, white);
    glMaterialfv(GL_FRONT_AND_BACK, GL_SPECULAR, white);
    glMaterialf(GL_FRONT_AND_BACK, GL_SHININESS, 20);
    glTexGenfv(GL_S, GL_EYE_PLANE, plane);
    glClipPlane(GL_CLIP_PLANE0, clip);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 1, 1, 0, GL_RGBA, GL_UNSIGNED_BYTE, texel);
    glEnable(GL_CULL_FACE);
    glCullFace(GL_FRONT_AND_BACK);
    glEnable(GL_LIGHT0);
}

static void conditions(int mask)
{
    set(GL_LIGHTING, mask & LIGHTING), set(GL_NORMALIZE, mask & NORMALIZE), set(GL_FOG, mask & FOG);
    set(GL_TEXTURE_2D, mask & TEXTURE), set(GL_COLOR_MATERIAL, mask & COLOR_MATERIAL);
    set(GL_TEXTURE_GEN_S, mask & TEXGEN), set(GL_TEXTURE_GEN_T, mask & TEXGEN);
    set(GL_CLIP_PLANE0, mask & USER_CLIP), set(GL_LIGHT1, mask & LIGHT1);
    for (int i = 0; i < 2; i++) {
        const float position[4] = { i - 0.5f, 2, 3, mask & POSITIONAL ? 1 : 0 };
        glLightfv(GL_LIGHT0 + i, GL_POSITION, position);
        glLightfv(GL_LIGHT0 + i, GL_SPECULAR, mask & SPECULAR ? white : black);
    }
}

static int has_coord(int mask) { return (mask & (TEXTURE | TEXGEN)) == TEXTURE; }

static void draw_range(int from, int to, int with_coord)
{
    glBegin(GL_TRIANGLES);
    for (int i = from; i < to; i++) {
        if (with_coord) glTexCoord2fv(vertex[0][order[i]].coord);
        glNormal3fv(vertex[0][order[i]].normal);
        glVertex3fv(vertex[0][order[i]].position);
    }
    glEnd();
}

/* A change of state after each EVERY vertices. */
static void draw_with_changes(void)
{
    static int change;
    for (int i = 0; i < count; i += every, change++) {
        if (mask_count > 1) conditions(masks[change % mask_count]);
        else glMaterialfv(GL_FRONT, GL_DIFFUSE, change % 2 ? white : grey);
        draw_range(i, i + every < count ? i + every : count, has_coord(masks[change % mask_count]));
    }
}

/* A frame: the unit of work. */
__attribute__((noinline)) void vertices_frame(void)
{
    glRotatef(1, 1, 2, 3);
    if (!strcmp(mode, "list")) glCallList(1);
    else if (!strcmp(mode, "array")) glDrawElements(GL_TRIANGLES, count, GL_UNSIGNED_SHORT, order);
    else if (every) draw_with_changes();
    else draw_range(0, count, has_coord(masks[0]));
}

/* Makes a context, whose vertices take special paths or not. */
static void make_context(int use_special_paths)
{
    static unsigned char pixels[64 * 64 * 4];
#ifdef OSMESA
    (void)use_special_paths;
    OSMesaMakeCurrent(OSMesaCreateContextExt(OSMESA_RGBA, 24, 0, 0, NULL), pixels, GL_UNSIGNED_BYTE, 64, 64);
#else
    offscreen_make_current(offscreen_create(pixels, 64, 64));
    offscreen_use_special_paths(use_special_paths);
#endif
}

/* Whether the first mask's conditions were validated. */
static int has_conditions(void)
{
#ifndef OSMESA
    if (mask_count == 1 && offscreen_conditions() != masks[0]) {
        fprintf(stderr, "vertices: conditions %d were validated as %d\n", masks[0], offscreen_conditions());
        return 0;
    }
#endif
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    for (char *word = strtok(argv[1], ","); word && mask_count < MOST_MASKS; word = strtok(NULL, ",")) masks[mask_count++] = atoi(word);
    mode = argv[2];
    int frames = atoi(argv[3]);
    every = getenv("EVERY") ? atoi(getenv("EVERY")) / 3 * 3 : 0;
    make_context(argc <= 4);
    build();
    prepare();
    conditions(masks[0]);
    glInterleavedArrays(GL_T2F_N3F_V3F, 0, vertex);
    if (!has_coord(masks[0])) glDisableClientState(GL_TEXTURE_COORD_ARRAY);
    if (!strcmp(mode, "list")) {
        glNewList(1, GL_COMPILE);
        draw_range(0, count, has_coord(masks[0]));
        glEndList();
    }
    clock_t begin = clock();
    for (int i = 0; i < frames; i++) vertices_frame();
    glFinish();
    clock_t end = clock();
    if (frames && !has_conditions()) return 1;
    printf("%ld\n", (long)count * frames);
    if (getenv("TIMED")) printf("%ld\n", (long)((end - begin) * 1000000 / CLOCKS_PER_SEC));
    return 0;
}
