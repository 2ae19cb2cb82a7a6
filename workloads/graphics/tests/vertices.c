/* Vertices under given conditions, for counts of instructions: `vertices MASK MODE FRAMES [generic]`.
 * A torus of 3,840 triangles is drawn FRAMES times under the conditions of MASK, by MODE: immediate, array or list. All triangles
 * are culled, so that the cost is that of vertices. Prints the number of vertices: the difference of two lengths, divided by the
 * difference of their vertices, is the cost of one. */
#include <GL/gl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../offscreen.h"

enum { ROWS = 60, COLUMNS = 32, LIGHTING = 1, NORMALIZE = 2, TEXTURE = 4, FOG = 8, LIGHT1 = 16, SPECULAR = 32, COLOR_MATERIAL = 64,
    POSITIONAL = 128, TEXGEN = 256, USER_CLIP = 512 };
static struct { float coord[2], normal[3], position[3]; } vertex[ROWS + 1][COLUMNS + 1];
static GLushort order[ROWS * COLUMNS * 6];
static int count;

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

static void conditions(int mask)
{
    static const float white[4] = { 0.9f, 0.9f, 0.9f, 1 }, black[4] = { 0, 0, 0, 1 }, plane[4] = { 1, 0.5f, 0, 0 };
    static const double clip[4] = { 0, 0, 0, 1 };
    glMatrixMode(GL_PROJECTION);
    glFrustum(-1, 1, -1, 1, 2, 20);
    glMatrixMode(GL_MODELVIEW);
    glTranslatef(0, 0, -4);
    set(GL_LIGHTING, mask & LIGHTING), set(GL_NORMALIZE, mask & NORMALIZE), set(GL_FOG, mask & FOG);
    set(GL_TEXTURE_2D, mask & TEXTURE), set(GL_COLOR_MATERIAL, mask & COLOR_MATERIAL);
    set(GL_TEXTURE_GEN_S, mask & TEXGEN), set(GL_TEXTURE_GEN_T, mask & TEXGEN);
    set(GL_CLIP_PLANE0, mask & USER_CLIP), set(GL_LIGHT0, 1), set(GL_LIGHT1, mask & LIGHT1);
    for (int i = 0; i < 2; i++) {
        const float position[4] = { i - 0.5f, 2, 3, mask & POSITIONAL ? 1 : 0 };
        glLightfv(GL_LIGHT0 + i, GL_POSITION, position);
        glLightfv(GL_LIGHT0 + i, GL_DIFFUSE, white);
        glLightfv(GL_LIGHT0 + i, GL_SPECULAR, mask & SPECULAR ? white : black);
    }
    glMaterialfv(GL_FRONT_AND_BACK, GL_SPECULAR, white);
    glMaterialf(GL_FRONT_AND_BACK, GL_SHININESS, 20);
    glTexGenfv(GL_S, GL_EYE_PLANE, plane);
    glClipPlane(GL_CLIP_PLANE0, clip);
    GLubyte texel[4] = { 255, 255, 255, 255 };
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 1, 1, 0, GL_RGBA, GL_UNSIGNED_BYTE, texel);
    glEnable(GL_CULL_FACE);
    glCullFace(GL_FRONT_AND_BACK);
}

static void draw(const char *mode, int has_coord)
{
    if (!strcmp(mode, "array")) {
        glDrawElements(GL_TRIANGLES, count, GL_UNSIGNED_SHORT, order);
        return;
    }
    glBegin(GL_TRIANGLES);
    for (int i = 0; i < count; i++) {
        if (has_coord) glTexCoord2fv(vertex[0][order[i]].coord);
        glNormal3fv(vertex[0][order[i]].normal);
        glVertex3fv(vertex[0][order[i]].position);
    }
    glEnd();
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    int mask = atoi(argv[1]), frames = atoi(argv[3]), has_coord = (mask & (TEXTURE | TEXGEN)) == TEXTURE;
    const char *mode = argv[2];
    static unsigned char pixels[64 * 64 * 4];
    offscreen_make_current(offscreen_create(pixels, 64, 64));
    offscreen_use_special_paths(argc <= 4);
    build();
    conditions(mask);
    glInterleavedArrays(GL_T2F_N3F_V3F, 0, vertex);
    if (!has_coord) glDisableClientState(GL_TEXTURE_COORD_ARRAY);
    if (!strcmp(mode, "list")) {
        glNewList(1, GL_COMPILE);
        draw("immediate", has_coord);
        glEndList();
    }
    for (int i = 0; i < frames; i++) {
        glRotatef(1, 1, 2, 3);
        if (!strcmp(mode, "list")) glCallList(1);
        else draw(mode, has_coord);
    }
    if (offscreen_conditions() != mask) {
        fprintf(stderr, "vertices: conditions %d were validated as %d\n", mask, offscreen_conditions());
        return 1;
    }
    printf("%ld\n", (long)count * frames);
    return 0;
}
