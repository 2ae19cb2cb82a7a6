/* Scenes of our own: each uses one feature of OpenGL 1.1, on shapes whose pictures show mistakes in it. */
#include "scenes.h"
#include <math.h>
#include <string.h>

static void look(void)
{
    glMatrixMode(GL_PROJECTION);
    glFrustum(-1, 1, -1, 1, 2, 20);
    glMatrixMode(GL_MODELVIEW);
    glTranslatef(0, 0, -4);
    glRotatef(30, 1, 2, 0.5f);
    glEnable(GL_DEPTH_TEST);
    glClearColor(0.1f, 0.2f, 0.3f, 1);
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
}

/* Square coordinates, -1 to 1. */
static void flat_view(void)
{
    glClearColor(0, 0, 0.25f, 1);
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
}

static void torus_point(int i, int j, int rows, int columns)
{
    float u = 2 * (float)M_PI * i / rows, v = 2 * (float)M_PI * j / columns;
    glTexCoord2f(4.0f * i / rows, 2.0f * j / columns);
    glColor4f(0.5f + 0.5f * cosf(u), 0.5f + 0.5f * sinf(v), 0.7f, 0.5f + 0.4f * sinf(u));
    glNormal3f(cosf(u) * cosf(v), sinf(u) * cosf(v), sinf(v));
    glVertex3f(cosf(u) * (1 + 0.4f * cosf(v)), sinf(u) * (1 + 0.4f * cosf(v)), 0.4f * sinf(v));
}

static void torus(void)
{
    enum { ROWS = 24, COLUMNS = 16 };
    for (int i = 0; i < ROWS; i++) {
        glBegin(GL_QUAD_STRIP);
        for (int j = 0; j <= COLUMNS; j++) {
            torus_point(i, j, ROWS, COLUMNS);
            torus_point(i + 1, j, ROWS, COLUMNS);
        }
        glEnd();
    }
}

static void light(int n, float x, float y, float z, float w)
{
    float position[4] = { x, y, z, w }, diffuse[4] = { 0.7f, 0.6f, 0.5f, 1 }, specular[4] = { 0.8f, 0.8f, 0.9f, 1 };
    glLightfv(GL_LIGHT0 + n, GL_POSITION, position);
    glLightfv(GL_LIGHT0 + n, GL_DIFFUSE, diffuse);
    glLightfv(GL_LIGHT0 + n, GL_SPECULAR, specular);
    glEnable(GL_LIGHT0 + n);
    glEnable(GL_LIGHTING);
    glEnable(GL_NORMALIZE);
}

static void shiny(float exponent)
{
    float white[4] = { 0.9f, 0.9f, 0.9f, 1 };
    glMaterialfv(GL_FRONT_AND_BACK, GL_SPECULAR, white);
    glMaterialf(GL_FRONT_AND_BACK, GL_SHININESS, exponent);
}

/* A texture of coloured squares and a ramp; with its mipmaps, each level tinted in its own way. */
static void texture(GLenum format, GLint internal, int has_mipmaps, GLint min, GLint mag)
{
    enum { SIZE = 32 };
    static GLubyte texels[SIZE * SIZE * 4];
    for (int level = 0, size = SIZE; size > 0; level++, size /= 2) {
        for (int y = 0; y < size; y++)
            for (int x = 0; x < size; x++) {
                int on = (x * 8 / size + y * 8 / size) & 1;
                GLubyte *t = texels + (y * size + x) * 4;
                t[0] = on ? 255 : 30 * level, t[1] = (GLubyte)(x * 255 / size), t[2] = (GLubyte)(level * 40), t[3] = on ? 255 : 90;
            }
        if (format == GL_RGBA) glTexImage2D(GL_TEXTURE_2D, level, internal, size, size, 0, format, GL_UNSIGNED_BYTE, texels);
        else {
            int n = format == GL_RGB ? 3 : format == GL_LUMINANCE_ALPHA ? 2 : 1;
            for (int i = 0; i < size * size; i++) memmove(texels + i * n, texels + i * 4 + (n < 3), n);
            glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
            glTexImage2D(GL_TEXTURE_2D, level, internal, size, size, 0, format, GL_UNSIGNED_BYTE, texels);
        }
        if (!has_mipmaps) break;
    }
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, min);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, mag);
    glEnable(GL_TEXTURE_2D);
}

/* A floor that reaches from near to far. */
static void slope(void)
{
    glBegin(GL_QUADS);
    glTexCoord2f(0, 0), glVertex3f(-2, -1, 1.5f);
    glTexCoord2f(4, 0), glVertex3f(2, -1, 1.5f);
    glTexCoord2f(4, 12), glVertex3f(2, 1.2f, -8);
    glTexCoord2f(0, 12), glVertex3f(-2, 1.2f, -8);
    glEnd();
}

static void star(float size)
{
    glBegin(GL_TRIANGLES);
    for (int i = 0; i < 9; i++) {
        float a = i * 0.7f;
        glColor4f(0.3f + 0.07f * i, 1 - 0.1f * i, 0.5f, 0.6f);
        glVertex3f(0, 0, 0.1f * i - 0.4f);
        glVertex3f(size * cosf(a), size * sinf(a), 0.1f * i - 0.4f);
        glVertex3f(size * cosf(a + 0.5f), size * sinf(a + 0.5f), 0.1f * i - 0.3f);
    }
    glEnd();
}

static void smooth(void) { look(); torus(); }
static void flat(void) { look(); glShadeModel(GL_FLAT); torus(); }
static void lit(void) { look(); light(0, 1, 2, 3, 0); torus(); }
static void lit_specular(void) { look(); light(0, 1, 2, 3, 0); shiny(30); torus(); }
static void lit_sharp(void) { look(); light(0, 1, 2, 3, 0); shiny(120); torus(); }
static void lit_positional(void) { look(); light(0, 1, 2, 3, 1); shiny(10); torus(); }
static void lit_two(void) { look(); light(0, 1, 2, 3, 0); light(1, -2, 0, 1, 0); shiny(20); torus(); }
static void lit_attenuated(void)
{
    look();
    light(0, 1, 1, 2, 1);
    glLightf(GL_LIGHT0, GL_LINEAR_ATTENUATION, 0.4f);
    glLightf(GL_LIGHT0, GL_QUADRATIC_ATTENUATION, 0.2f);
    torus();
}
static void lit_spot(void)
{
    look();
    float direction[3] = { 0, 0, -1 };
    light(0, 0, 0.8f, 3, 1);
    glLightfv(GL_LIGHT0, GL_SPOT_DIRECTION, direction);
    glLightf(GL_LIGHT0, GL_SPOT_CUTOFF, 25);
    glLightf(GL_LIGHT0, GL_SPOT_EXPONENT, 8);
    torus();
}
static void lit_local_viewer(void) { look(); glLightModeli(GL_LIGHT_MODEL_LOCAL_VIEWER, 1); light(0, 1, 2, 3, 0); shiny(15); torus(); }
static void lit_two_side(void)
{
    look();
    float red[4] = { 0.9f, 0.1f, 0.1f, 1 };
    double plane[4] = { 0, 0, -1, 0 };
    light(0, 1, 2, 3, 0);
    glLightModeli(GL_LIGHT_MODEL_TWO_SIDE, 1);
    glMaterialfv(GL_BACK, GL_DIFFUSE, red);
    glClipPlane(GL_CLIP_PLANE0, plane);
    glEnable(GL_CLIP_PLANE0);
    torus();
}
static void color_material(void) { look(); glEnable(GL_COLOR_MATERIAL); light(0, 1, 2, 3, 0); torus(); }
static void color_material_specular(void)
{
    look();
    glColorMaterial(GL_FRONT, GL_SPECULAR);
    glEnable(GL_COLOR_MATERIAL);
    light(0, 1, 2, 3, 0);
    shiny(9);
    torus();
}
static void materials(void)
{
    look();
    light(0, 1, 2, 3, 0);
    glBegin(GL_TRIANGLE_STRIP);
    for (int i = 0; i < 40; i++) {
        float c[4] = { i / 40.0f, 1 - i / 40.0f, 0.3f, 1 };
        if (i % 5 == 0) glMaterialfv(GL_FRONT_AND_BACK, i % 2 ? GL_DIFFUSE : GL_EMISSION, c);
        glNormal3f(cosf(i * 0.3f), 0, sinf(i * 0.3f));
        glVertex3f(cosf(i * 0.3f) * 1.2f, i % 2 ? 1 : -1, sinf(i * 0.3f));
    }
    glEnd();
}
static void fog_of(GLenum mode)
{
    float color[4] = { 0.8f, 0.7f, 0.6f, 1 };
    look();
    glFogi(GL_FOG_MODE, mode);
    glFogfv(GL_FOG_COLOR, color);
    glFogf(GL_FOG_START, 2.5f), glFogf(GL_FOG_END, 6), glFogf(GL_FOG_DENSITY, 0.3f);
    glEnable(GL_FOG);
    torus();
    slope();
}
static void fog_linear(void) { fog_of(GL_LINEAR); }
static void fog_exp(void) { fog_of(GL_EXP); }
static void fog_exp2(void) { fog_of(GL_EXP2); }
static void clip_planes(void)
{
    double a[4] = { 1, 0.5, 0, 0.1 }, b[4] = { 0, -1, 0.3, 0.5 };
    look();
    glClipPlane(GL_CLIP_PLANE1, a), glClipPlane(GL_CLIP_PLANE4, b);
    glEnable(GL_CLIP_PLANE1), glEnable(GL_CLIP_PLANE4);
    torus();
}
static void clip_near(void) { look(); glTranslatef(0, 0, 1.6f); glScalef(2, 2, 2); torus(); }
static void texture_nearest(void) { look(); texture(GL_RGBA, GL_RGBA, 0, GL_NEAREST, GL_NEAREST); slope(); }
static void texture_linear(void) { look(); texture(GL_RGBA, GL_RGBA, 0, GL_LINEAR, GL_LINEAR); slope(); }
static void texture_mixed(void) { look(); texture(GL_RGBA, GL_RGBA, 0, GL_NEAREST, GL_LINEAR); torus(); }
static void mipmap_nearest(void) { look(); texture(GL_RGBA, GL_RGBA, 1, GL_NEAREST_MIPMAP_NEAREST, GL_NEAREST); slope(); }
static void mipmap_bilinear(void) { look(); texture(GL_RGBA, GL_RGBA, 1, GL_LINEAR_MIPMAP_NEAREST, GL_LINEAR); slope(); }
static void mipmap_trilinear(void) { look(); texture(GL_RGBA, GL_RGBA, 1, GL_LINEAR_MIPMAP_LINEAR, GL_LINEAR); slope(); }
static void environment(GLenum mode, GLenum format)
{
    float color[4] = { 0.2f, 0.9f, 0.4f, 0.5f };
    look();
    texture(format, format, 0, GL_LINEAR, GL_LINEAR);
    glTexEnvi(GL_TEXTURE_ENV, GL_TEXTURE_ENV_MODE, mode);
    glTexEnvfv(GL_TEXTURE_ENV, GL_TEXTURE_ENV_COLOR, color);
    glEnable(GL_BLEND);
    glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
    torus();
}
static void decal(void) { environment(GL_DECAL, GL_RGBA); }
static void decal_rgb(void) { environment(GL_DECAL, GL_RGB); }
static void replace_alpha(void) { environment(GL_REPLACE, GL_ALPHA); }
static void blend_luminance(void) { environment(GL_BLEND, GL_LUMINANCE); }
static void modulate_two(void) { environment(GL_MODULATE, GL_LUMINANCE_ALPHA); }
static void texture_clamp(void)
{
    float border[4] = { 1, 0, 1, 1 };
    flat_view();
    texture(GL_RGBA, GL_RGBA, 0, GL_LINEAR, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP), glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP);
    glTexParameterfv(GL_TEXTURE_2D, GL_TEXTURE_BORDER_COLOR, border);
    glBegin(GL_QUADS);
    glTexCoord2f(-0.5f, -0.5f), glVertex2f(-0.9f, -0.9f);
    glTexCoord2f(1.5f, -0.5f), glVertex2f(0.9f, -0.9f);
    glTexCoord2f(1.5f, 1.5f), glVertex2f(0.9f, 0.9f);
    glTexCoord2f(-0.5f, 1.5f), glVertex2f(-0.9f, 0.9f);
    glEnd();
}
static void texture_matrix(void)
{
    look();
    texture(GL_RGBA, GL_RGBA, 0, GL_LINEAR, GL_LINEAR);
    glMatrixMode(GL_TEXTURE);
    glRotatef(20, 0, 0, 1), glScalef(0.7f, 1.3f, 1);
    glMatrixMode(GL_MODELVIEW);
    torus();
}
static void generated(GLenum mode)
{
    float s[4] = { 1, 0.2f, 0, 0.3f }, t[4] = { 0, 0.4f, 1, 0 };
    look();
    light(0, 1, 2, 3, 0);
    texture(GL_RGBA, GL_RGBA, 0, GL_LINEAR, GL_LINEAR);
    glTexGeni(GL_S, GL_TEXTURE_GEN_MODE, mode), glTexGeni(GL_T, GL_TEXTURE_GEN_MODE, mode);
    glTexGenfv(GL_S, GL_OBJECT_PLANE, s), glTexGenfv(GL_T, GL_OBJECT_PLANE, t);
    glTexGenfv(GL_S, GL_EYE_PLANE, s), glTexGenfv(GL_T, GL_EYE_PLANE, t);
    glEnable(GL_TEXTURE_GEN_S), glEnable(GL_TEXTURE_GEN_T);
    torus();
}
static void generated_object(void) { generated(GL_OBJECT_LINEAR); }
static void generated_eye(void) { generated(GL_EYE_LINEAR); }
static void sphere_map(void) { generated(GL_SPHERE_MAP); }
static void texture_1d(void)
{
    GLubyte ramp[16][3];
    look();
    for (int i = 0; i < 16; i++) ramp[i][0] = i * 16, ramp[i][1] = 255 - i * 16, ramp[i][2] = i % 2 ? 200 : 0;
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    glTexImage1D(GL_TEXTURE_1D, 0, GL_RGB, 16, 0, GL_RGB, GL_UNSIGNED_BYTE, ramp);
    glTexParameteri(GL_TEXTURE_1D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    glEnable(GL_TEXTURE_1D);
    torus();
}
static void sub_image(void)
{
    static GLubyte patch[8 * 8 * 4];
    look();
    texture(GL_RGBA, GL_RGBA, 0, GL_NEAREST, GL_NEAREST);
    memset(patch, 200, sizeof patch);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 5, 9, 8, 8, GL_RGBA, GL_UNSIGNED_BYTE, patch);
    slope();
}
static void copied_texture(void)
{
    look();
    torus();
    texture(GL_RGBA, GL_RGBA, 0, GL_LINEAR, GL_LINEAR);
    glCopyTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 20, 30, 64, 64, 0);
    slope();
}
static void blend_of(GLenum source, GLenum destination)
{
    flat_view();
    glEnable(GL_BLEND);
    glBlendFunc(source, destination);
    star(0.9f);
}
static void blend_alpha(void) { blend_of(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA); }
static void blend_add(void) { blend_of(GL_ONE, GL_ONE); }
static void blend_multiply(void) { blend_of(GL_DST_COLOR, GL_ONE_MINUS_SRC_COLOR); }
static void blend_saturate(void) { blend_of(GL_SRC_ALPHA_SATURATE, GL_ONE_MINUS_DST_ALPHA); }
static void alpha_test(void) { look(); glEnable(GL_ALPHA_TEST); glAlphaFunc(GL_GREATER, 0.5f); torus(); }
static void depth_greater(void) { look(); glClearDepth(0); glClear(GL_DEPTH_BUFFER_BIT); glDepthFunc(GL_GREATER); torus(); }
static void depth_mask(void) { look(); glDepthMask(GL_FALSE); torus(); glDepthMask(GL_TRUE); slope(); }
static void depth_range(void) { look(); glDepthRange(0.8, 0.2); glClearDepth(0.5); glClear(GL_DEPTH_BUFFER_BIT); torus(); }
static void stencil(void)
{
    flat_view();
    glEnable(GL_STENCIL_TEST);
    glStencilFunc(GL_ALWAYS, 1, 255), glStencilOp(GL_KEEP, GL_INCR, GL_INCR);
    glColorMask(0, 0, 0, 0);
    star(0.8f);
    glColorMask(1, 1, 1, 1);
    glStencilOp(GL_KEEP, GL_KEEP, GL_KEEP);
    for (int i = 0; i < 4; i++) {
        glStencilFunc(GL_EQUAL, i, 255);
        glColor3f(0.2f * i, 1 - 0.2f * i, 0.5f);
        glRectf(-0.95f, -0.95f, 0.95f, 0.9f);
    }
}
static void scissor(void) { look(); glScissor(30, 20, 70, 55); glEnable(GL_SCISSOR_TEST); glClearColor(1, 1, 0, 1); glClear(GL_COLOR_BUFFER_BIT); torus(); }
static void viewport(void) { look(); glViewport(20, 40, 80, 60); torus(); slope(); }
static void color_mask(void) { look(); glColorMask(1, 0, 1, 1); torus(); }
static void logic_of(GLenum operation) { flat_view(); glEnable(GL_COLOR_LOGIC_OP); glLogicOp(operation); star(0.9f); }
static void logic_xor(void) { logic_of(GL_XOR); }
static void logic_invert(void) { logic_of(GL_OR_INVERTED); }
static void polygon_stipple(void)
{
    GLubyte rows[128];
    flat_view();
    for (int i = 0; i < 128; i++) rows[i] = (GLubyte)(i * 37 ^ i >> 2);
    glPolygonStipple(rows);
    glEnable(GL_POLYGON_STIPPLE);
    star(0.9f);
}
static void polygon_line(void) { look(); glPolygonMode(GL_FRONT_AND_BACK, GL_LINE); torus(); }
static void polygon_point(void) { look(); glPointSize(3); glPolygonMode(GL_FRONT_AND_BACK, GL_POINT); torus(); }
static void polygon_offset(void)
{
    look();
    glEnable(GL_POLYGON_OFFSET_FILL);
    glPolygonOffset(1, 1);
    torus();
    glDisable(GL_POLYGON_OFFSET_FILL);
    glPolygonMode(GL_FRONT_AND_BACK, GL_LINE);
    torus();
}
static void cull_front(void) { look(); glEnable(GL_CULL_FACE); glCullFace(GL_FRONT); torus(); }
static void cull_back(void) { look(); glEnable(GL_CULL_FACE); glFrontFace(GL_CW); glCullFace(GL_BACK); torus(); }
static void lines_of(GLenum mode, float width)
{
    flat_view();
    glLineWidth(width);
    glBegin(mode);
    for (int i = 0; i < 24; i++) {
        glColor3f(i / 24.0f, 1, 1 - i / 24.0f);
        glVertex2f(0.9f * cosf(i * 2.1f), 0.85f * sinf(i * 1.7f));
    }
    glEnd();
}
static void lines(void) { lines_of(GL_LINES, 1); }
static void line_strip(void) { lines_of(GL_LINE_STRIP, 1); }
static void line_loop(void) { lines_of(GL_LINE_LOOP, 1); }
static void wide_lines(void) { lines_of(GL_LINES, 5); }
static void stippled_lines(void) { glLineStipple(2, 0x3f07); glEnable(GL_LINE_STIPPLE); lines_of(GL_LINES, 1); }
static void points_of(float size)
{
    flat_view();
    glPointSize(size);
    glBegin(GL_POINTS);
    for (int i = 0; i < 60; i++) {
        glColor3f(i / 60.0f, 1 - i / 60.0f, 1);
        glVertex2f(0.95f * cosf(i * 1.3f) * i / 60, 0.95f * sinf(i * 1.3f) * i / 60);
    }
    glEnd();
}
static void points(void) { points_of(1); }
static void big_points(void) { points_of(6); }
static void primitives(void)
{
    static const GLenum modes[] = { GL_TRIANGLES, GL_TRIANGLE_STRIP, GL_TRIANGLE_FAN, GL_QUADS, GL_QUAD_STRIP, GL_POLYGON };
    flat_view();
    for (int m = 0; m < 6; m++) {
        glBegin(modes[m]);
        for (int i = 0; i < 8; i++) {
            float a = modes[m] == GL_TRIANGLE_STRIP || modes[m] == GL_QUAD_STRIP ? (i / 2) * 0.9f : i * 0.75f;
            float r = modes[m] == GL_TRIANGLE_STRIP || modes[m] == GL_QUAD_STRIP ? 0.15f + 0.13f * (i & 1) : 0.28f;
            glColor3f(i / 8.0f, 1 - i / 8.0f, m / 6.0f);
            glVertex2f(-0.65f + 0.65f * (m % 3) + r * cosf(a), -0.4f + 0.8f * (m / 3) + r * sinf(a));
        }
        glEnd();
    }
}
static void flat_primitives(void) { glShadeModel(GL_FLAT); primitives(); }
static void evaluator(void)
{
    float points[4][4][3];
    look();
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) points[i][j][0] = i - 1.5f, points[i][j][1] = j - 1.5f, points[i][j][2] = ((i * 7 + j * 5) % 6) * 0.4f - 1;
    light(0, 1, 2, 3, 0);
    glMap2f(GL_MAP2_VERTEX_3, 0, 1, 12, 4, 0, 1, 3, 4, &points[0][0][0]);
    glEnable(GL_MAP2_VERTEX_3);
    glEnable(GL_AUTO_NORMAL);
    glMapGrid2f(12, 0, 1, 12, 0, 1);
    glEvalMesh2(GL_FILL, 0, 12, 0, 12);
}
static void display_list(void)
{
    look();
    GLuint list = glGenLists(2);
    glNewList(list, GL_COMPILE);
    light(0, 1, 2, 3, 0);
    torus();
    glEndList();
    glNewList(list + 1, GL_COMPILE);
    glPushMatrix();
    glScalef(0.5f, 0.5f, 0.5f);
    glCallList(list);
    glPopMatrix();
    glTranslatef(0.4f, 0.4f, 0.2f);
    glCallList(list);
    glEndList();
    glCallList(list + 1);
}
static void arrays(void)
{
    static float v[30][8];
    GLushort order[84];
    look();
    for (int i = 0; i < 30; i++) {
        float a = i * 0.42f;
        float row[8] = { a, i & 1, cosf(a), 0, sinf(a), cosf(a) * 1.3f, i & 1 ? 1 : -1, sinf(a) };
        memcpy(v[i], row, sizeof row);
    }
    for (int i = 0; i < 84; i++) order[i] = i / 3 + i % 3;
    light(0, 1, 2, 3, 0);
    texture(GL_RGBA, GL_RGBA, 0, GL_LINEAR, GL_LINEAR);
    glInterleavedArrays(GL_T2F_N3F_V3F, 0, v);
    glDrawElements(GL_TRIANGLES, 84, GL_UNSIGNED_SHORT, order);
}
static void draw_pixels(void)
{
    static GLubyte image[20][24][4];
    flat_view();
    for (int y = 0; y < 20; y++)
        for (int x = 0; x < 24; x++) image[y][x][0] = x * 10, image[y][x][1] = y * 12, image[y][x][2] = (x ^ y) * 8, image[y][x][3] = 255;
    glRasterPos2f(-0.9f, -0.9f);
    glDrawPixels(24, 20, GL_RGBA, GL_UNSIGNED_BYTE, image);
    glRasterPos2f(-0.40625f, -0.5f);
    glPixelZoom(2.5f, 3);
    glPixelStorei(GL_UNPACK_ROW_LENGTH, 24), glPixelStorei(GL_UNPACK_SKIP_PIXELS, 4);
    glDrawPixels(16, 18, GL_RGBA, GL_UNSIGNED_BYTE, image);
    glPixelTransferf(GL_RED_SCALE, 0.5f), glPixelTransferf(GL_GREEN_BIAS, 0.3f);
    glPixelZoom(-1, -1);
    glRasterPos2f(0.9f, 0.9f);
    glDrawPixels(16, 20, GL_RGBA, GL_UNSIGNED_BYTE, image);
    glPixelStorei(GL_UNPACK_ROW_LENGTH, 0), glPixelStorei(GL_UNPACK_SKIP_PIXELS, 0);
}
static void copy_pixels(void) { flat_view(); star(0.6f); glRasterPos2f(-1, -1); glPixelZoom(1, 2); glCopyPixels(20, 40, 90, 60, GL_COLOR); }
static void bitmap(void)
{
    static const GLubyte letter[] = { 0xc3, 0xc3, 0xc3, 0xff, 0xc3, 0x66, 0x3c, 0x18 };
    flat_view();
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    glColor3f(1, 0.5f, 0.2f);
    glRasterPos2f(-0.8f, -0.3f);
    for (int i = 0; i < 12; i++) glBitmap(8, 8, 0, 0, 9.5f, i % 3, letter);
}
static void accumulation(void)
{
    look();
    for (int i = 0; i < 4; i++) {
        glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
        glRotatef(4, 0, 0, 1);
        torus();
        glAccum(i ? GL_ACCUM : GL_LOAD, 0.25f);
    }
    glAccum(GL_RETURN, 1);
}
static void attributes(void)
{
    look();
    glPushAttrib(GL_ALL_ATTRIB_BITS);
    light(0, 1, 2, 3, 0);
    glShadeModel(GL_FLAT);
    glPopAttrib();
    torus();
    glPushAttrib(GL_ENABLE_BIT);
    glDisable(GL_DEPTH_TEST);
    glPopAttrib();
    slope();
}

#define SCENE(name) { #name, name }
const struct scene scenes[] = {
    SCENE(smooth), SCENE(flat), SCENE(lit), SCENE(lit_specular), SCENE(lit_sharp), SCENE(lit_positional), SCENE(lit_two),
    SCENE(lit_attenuated), SCENE(lit_spot), SCENE(lit_local_viewer), SCENE(lit_two_side), SCENE(color_material),
    SCENE(color_material_specular), SCENE(materials), SCENE(fog_linear), SCENE(fog_exp), SCENE(fog_exp2), SCENE(clip_planes),
    SCENE(clip_near), SCENE(texture_nearest), SCENE(texture_linear), SCENE(texture_mixed), SCENE(mipmap_nearest), SCENE(mipmap_bilinear),
    SCENE(mipmap_trilinear), SCENE(decal), SCENE(decal_rgb), SCENE(replace_alpha), SCENE(blend_luminance), SCENE(modulate_two),
    SCENE(texture_clamp), SCENE(texture_matrix), SCENE(generated_object), SCENE(generated_eye), SCENE(sphere_map), SCENE(texture_1d),
    SCENE(sub_image), SCENE(copied_texture), SCENE(blend_alpha), SCENE(blend_add), SCENE(blend_multiply), SCENE(blend_saturate),
    SCENE(alpha_test), SCENE(depth_greater), SCENE(depth_mask), SCENE(depth_range), SCENE(stencil), SCENE(scissor), SCENE(viewport),
    SCENE(color_mask), SCENE(logic_xor), SCENE(logic_invert), SCENE(polygon_stipple), SCENE(polygon_line), SCENE(polygon_point),
    SCENE(polygon_offset), SCENE(cull_front), SCENE(cull_back), SCENE(lines), SCENE(line_strip), SCENE(line_loop), SCENE(wide_lines),
    SCENE(stippled_lines), SCENE(points), SCENE(big_points), SCENE(primitives), SCENE(flat_primitives), SCENE(evaluator),
    SCENE(display_list), SCENE(arrays), SCENE(draw_pixels), SCENE(copy_pixels), SCENE(bitmap), SCENE(accumulation), SCENE(attributes),
    { 0 },
};
