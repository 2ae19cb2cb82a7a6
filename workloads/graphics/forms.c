/* Other forms of commands: they convert their arguments and call the canonical form through the dispatch table. */
#include "context.h"

#define CALL(name, ...) \
    do { \
        struct context *gl = current_fast(); \
        gl->dispatch->name(gl, __VA_ARGS__); \
    } while (0)

/* Conversions of components: colours and normals map an integer type's range to [-1, 1] or [0, 1]. */
#define AS_IS(v) (v)
#define FROM_b(v) ((2 * (v) + 1) * (1 / 255.0))
#define FROM_s(v) ((2 * (v) + 1) * (1 / 65535.0))
#define FROM_i(v) ((2.0 * (v) + 1) * (1 / 4294967295.0))
#define FROM_f(v) (v)
#define FROM_d(v) (v)
#define FROM_ub(v) ((v) / 255.0f)
#define FROM_us(v) ((v) / 65535.0f)
#define FROM_ui(v) ((v) / 4294967295.0)

/* Functions of 1 to 4 components of a type, with their forms that take an array. */
#define FORM1(name, suffix, T, call) \
    void APIENTRY gl##name##1##suffix(T x) { call(x, 0, 0, 1); } \
    void APIENTRY gl##name##1##suffix##v(const T *v) { call(v[0], 0, 0, 1); }
#define FORM2(name, suffix, T, call) \
    void APIENTRY gl##name##2##suffix(T x, T y) { call(x, y, 0, 1); } \
    void APIENTRY gl##name##2##suffix##v(const T *v) { call(v[0], v[1], 0, 1); }
#define FORM3_V(name, suffix, T, call) \
    void APIENTRY gl##name##3##suffix##v(const T *v) { call(v[0], v[1], v[2], 1); }
#define FORM3(name, suffix, T, call) \
    void APIENTRY gl##name##3##suffix(T x, T y, T z) { call(x, y, z, 1); } \
    FORM3_V(name, suffix, T, call)
#define FORM4_V(name, suffix, T, call) \
    void APIENTRY gl##name##4##suffix##v(const T *v) { call(v[0], v[1], v[2], v[3]); }
#define FORM4(name, suffix, T, call) \
    void APIENTRY gl##name##4##suffix(T x, T y, T z, T w) { call(x, y, z, w); } \
    FORM4_V(name, suffix, T, call)
#define FOR_COORDINATES(FORM, name, call) \
    FORM(name, s, GLshort, call) FORM(name, i, GLint, call) FORM(name, f, GLfloat, call) FORM(name, d, GLdouble, call)
#define FOR_COORDINATES_BUT_F(FORM, name, call) \
    FORM(name, s, GLshort, call) FORM(name, i, GLint, call) FORM(name, d, GLdouble, call)

#define VERTEX3(x, y, z, w) CALL(Vertex3f, x, y, z)
#define VERTEX4(x, y, z, w) CALL(Vertex4f, x, y, z, w)
FOR_COORDINATES(FORM2, Vertex, VERTEX3)
FOR_COORDINATES_BUT_F(FORM3, Vertex, VERTEX3)
FORM3_V(Vertex, f, GLfloat, VERTEX3)
FOR_COORDINATES_BUT_F(FORM4, Vertex, VERTEX4)
FORM4_V(Vertex, f, GLfloat, VERTEX4)

#define COORD(x, y, z, w) CALL(TexCoord4f, x, y, z, w)
FOR_COORDINATES(FORM1, TexCoord, COORD)
FOR_COORDINATES(FORM2, TexCoord, COORD)
FOR_COORDINATES(FORM3, TexCoord, COORD)
FOR_COORDINATES_BUT_F(FORM4, TexCoord, COORD)
FORM4_V(TexCoord, f, GLfloat, COORD)

#define RASTER(x, y, z, w) CALL(RasterPos4f, x, y, z, w)
FOR_COORDINATES(FORM2, RasterPos, RASTER)
FOR_COORDINATES(FORM3, RasterPos, RASTER)
FOR_COORDINATES_BUT_F(FORM4, RasterPos, RASTER)
FORM4_V(RasterPos, f, GLfloat, RASTER)

#define COLOR_FORMS(suffix, T) \
    void APIENTRY glColor3##suffix(T r, T g, T b) { CALL(Color4f, FROM_##suffix(r), FROM_##suffix(g), FROM_##suffix(b), 1); } \
    void APIENTRY glColor3##suffix##v(const T *v) { CALL(Color4f, FROM_##suffix(v[0]), FROM_##suffix(v[1]), FROM_##suffix(v[2]), 1); } \
    void APIENTRY glColor4##suffix##v(const T *v) \
    { \
        CALL(Color4f, FROM_##suffix(v[0]), FROM_##suffix(v[1]), FROM_##suffix(v[2]), FROM_##suffix(v[3])); \
    }
#define COLOR4_FORM(suffix, T) \
    void APIENTRY glColor4##suffix(T r, T g, T b, T a) \
    { \
        CALL(Color4f, FROM_##suffix(r), FROM_##suffix(g), FROM_##suffix(b), FROM_##suffix(a)); \
    }
COLOR_FORMS(b, GLbyte) COLOR4_FORM(b, GLbyte)
COLOR_FORMS(s, GLshort) COLOR4_FORM(s, GLshort)
COLOR_FORMS(i, GLint) COLOR4_FORM(i, GLint)
COLOR_FORMS(f, GLfloat)
COLOR_FORMS(d, GLdouble) COLOR4_FORM(d, GLdouble)
COLOR_FORMS(ub, GLubyte) COLOR4_FORM(ub, GLubyte)
COLOR_FORMS(us, GLushort) COLOR4_FORM(us, GLushort)
COLOR_FORMS(ui, GLuint) COLOR4_FORM(ui, GLuint)

#define NORMAL_V(suffix, T) \
    void APIENTRY glNormal3##suffix##v(const T *v) { CALL(Normal3f, FROM_##suffix(v[0]), FROM_##suffix(v[1]), FROM_##suffix(v[2])); }
#define NORMAL(suffix, T) \
    void APIENTRY glNormal3##suffix(T x, T y, T z) { CALL(Normal3f, FROM_##suffix(x), FROM_##suffix(y), FROM_##suffix(z)); } \
    NORMAL_V(suffix, T)
NORMAL(b, GLbyte)
NORMAL(s, GLshort)
NORMAL(i, GLint)
NORMAL(d, GLdouble)
NORMAL_V(f, GLfloat)

#define INDEX(suffix, T) \
    void APIENTRY glIndex##suffix(T c) { CALL(Indexf, c); } \
    void APIENTRY glIndex##suffix##v(const T *c) { CALL(Indexf, *c); }
INDEX(s, GLshort)
INDEX(i, GLint)
INDEX(d, GLdouble)
INDEX(ub, GLubyte)
void APIENTRY glIndexfv(const GLfloat *c) { CALL(Indexf, *c); }
void APIENTRY glEdgeFlagv(const GLboolean *flag) { CALL(EdgeFlag, *flag); }

#define RECT_V(suffix, T) \
    void APIENTRY glRect##suffix##v(const T *a, const T *b) { CALL(Rectf, a[0], a[1], b[0], b[1]); }
#define RECT(suffix, T) \
    void APIENTRY glRect##suffix(T a, T b, T c, T d) { CALL(Rectf, a, b, c, d); } \
    RECT_V(suffix, T)
RECT(s, GLshort)
RECT(i, GLint)
RECT(d, GLdouble)
RECT_V(f, GLfloat)

void APIENTRY glEvalCoord1d(GLdouble u) { CALL(EvalCoord1f, u); }
void APIENTRY glEvalCoord1dv(const GLdouble *u) { CALL(EvalCoord1f, u[0]); }
void APIENTRY glEvalCoord1fv(const GLfloat *u) { CALL(EvalCoord1f, u[0]); }
void APIENTRY glEvalCoord2d(GLdouble u, GLdouble v) { CALL(EvalCoord2f, u, v); }
void APIENTRY glEvalCoord2dv(const GLdouble *u) { CALL(EvalCoord2f, u[0], u[1]); }
void APIENTRY glEvalCoord2fv(const GLfloat *u) { CALL(EvalCoord2f, u[0], u[1]); }
void APIENTRY glMapGrid1d(GLint n, GLdouble a, GLdouble b) { CALL(MapGrid1f, n, a, b); }
void APIENTRY glMapGrid2d(GLint n, GLdouble a, GLdouble b, GLint m, GLdouble c, GLdouble d) { CALL(MapGrid2f, n, a, b, m, c, d); }

void APIENTRY glRotated(GLdouble a, GLdouble x, GLdouble y, GLdouble z) { CALL(Rotatef, a, x, y, z); }
void APIENTRY glScaled(GLdouble x, GLdouble y, GLdouble z) { CALL(Scalef, x, y, z); }
void APIENTRY glTranslated(GLdouble x, GLdouble y, GLdouble z) { CALL(Translatef, x, y, z); }

#define FROM_DOUBLES(name) \
    void APIENTRY gl##name##d(const GLdouble *m) \
    { \
        GLfloat f[16]; \
        for (int i = 0; i < 16; i++) f[i] = m[i]; \
        CALL(name##f, f); \
    }
FROM_DOUBLES(LoadMatrix)
FROM_DOUBLES(MultMatrix)

/* Parameters given as integers: colours are normalized. */
static void convert(GLfloat *out, const GLint *v, int count, int is_color)
{
    for (int i = 0; i < count; i++) out[i] = is_color ? FROM_i(v[i]) : v[i];
}

#define PARAMETER2(name, count, is_color) \
    void APIENTRY gl##name##iv(GLenum a, GLenum b, const GLint *v) \
    { \
        GLfloat f[4] = { 0 }; \
        convert(f, v, count, is_color); \
        CALL(name##fv, a, b, f); \
    } \
    void APIENTRY gl##name##f(GLenum a, GLenum b, GLfloat v) \
    { \
        if ((count) > 1) gl_error(current, GL_INVALID_ENUM); \
        else { \
            const GLfloat f[4] = { v }; \
            CALL(name##fv, a, b, f); \
        } \
    } \
    void APIENTRY gl##name##i(GLenum a, GLenum b, GLint v) { gl##name##f(a, b, v); }
#define PARAMETER1(name, count, is_color) \
    void APIENTRY gl##name##iv(GLenum b, const GLint *v) \
    { \
        GLfloat f[4] = { 0 }; \
        convert(f, v, count, is_color); \
        CALL(name##fv, b, f); \
    } \
    void APIENTRY gl##name##f(GLenum b, GLfloat v) \
    { \
        if ((count) > 1) gl_error(current, GL_INVALID_ENUM); \
        else { \
            const GLfloat f[4] = { v }; \
            CALL(name##fv, b, f); \
        } \
    } \
    void APIENTRY gl##name##i(GLenum b, GLint v) { gl##name##f(b, v); }
PARAMETER2(Light, light_values(b), b == GL_AMBIENT || b == GL_DIFFUSE || b == GL_SPECULAR)
PARAMETER2(Material, material_values(b), material_values(b) == 4)
PARAMETER2(TexEnv, b == GL_TEXTURE_ENV_COLOR ? 4 : 1, b == GL_TEXTURE_ENV_COLOR)
PARAMETER2(TexGen, b == GL_TEXTURE_GEN_MODE ? 1 : 4, 0)
PARAMETER2(TexParameter, b == GL_TEXTURE_BORDER_COLOR ? 4 : 1, b == GL_TEXTURE_BORDER_COLOR)
PARAMETER1(LightModel, light_model_values(b), b == GL_LIGHT_MODEL_AMBIENT)
PARAMETER1(Fog, b == GL_FOG_COLOR ? 4 : 1, b == GL_FOG_COLOR)

void APIENTRY glTexGendv(GLenum coordinate, GLenum name, const GLdouble *v)
{
    GLfloat f[4] = { 0 };
    for (int i = 0; i < (name == GL_TEXTURE_GEN_MODE ? 1 : 4); i++) f[i] = v[i];
    CALL(TexGenfv, coordinate, name, f);
}
void APIENTRY glTexGend(GLenum coordinate, GLenum name, GLdouble v) { glTexGenf(coordinate, name, v); }

void APIENTRY glPixelTransferi(GLenum name, GLint v) { CALL(PixelTransferf, name, v); }
#define PIXEL_MAP_FORM(suffix, T, maximum) \
    void APIENTRY glPixelMap##suffix(GLenum map, GLsizei size, const T *v) \
    { \
        GLfloat f[PIXEL_MAP]; \
        for (int i = 0; i < size && i < PIXEL_MAP; i++) f[i] = map <= GL_PIXEL_MAP_S_TO_S ? v[i] : v[i] / maximum; \
        CALL(PixelMapfv, map, size, f); \
    }
PIXEL_MAP_FORM(uiv, GLuint, 4294967295.0)
PIXEL_MAP_FORM(usv, GLushort, 65535.0)

/* Control points are packed, so that a display list copies no more than it needs. */
#define MAP_FORMS(suffix, T) \
    void APIENTRY glMap1##suffix(GLenum target, T u1, T u2, GLint stride, GLint order, const T *points) \
    { \
        int k = map_values(target); \
        if (!k || order < 1 || order > MAX_ORDER || stride < k) { \
            gl_error(current, k ? GL_INVALID_VALUE : GL_INVALID_ENUM); \
            return; \
        } \
        GLfloat packed[MAX_ORDER * 4]; \
        for (int i = 0; i < order; i++) \
            for (int c = 0; c < k; c++) packed[i * k + c] = points[i * stride + c]; \
        CALL(Map1, target, u1, u2, order, packed); \
    } \
    void APIENTRY glMap2##suffix(GLenum target, T u1, T u2, GLint u_stride, GLint u_order, T v1, T v2, GLint v_stride, GLint v_order, \
        const T *points) \
    { \
        int k = map_values(target); \
        if (!k || u_order < 1 || u_order > MAX_ORDER || v_order < 1 || v_order > MAX_ORDER || u_stride < k || v_stride < k) { \
            gl_error(current, k ? GL_INVALID_VALUE : GL_INVALID_ENUM); \
            return; \
        } \
        GLfloat packed[MAX_ORDER * MAX_ORDER * 4]; \
        for (int i = 0; i < u_order; i++) \
            for (int j = 0; j < v_order; j++) \
                for (int c = 0; c < k; c++) packed[(i * v_order + j) * k + c] = points[i * u_stride + j * v_stride + c]; \
        CALL(Map2, target, u1, u2, u_order, v1, v2, v_order, packed); \
    }
MAP_FORMS(f, GLfloat)
MAP_FORMS(d, GLdouble)

void APIENTRY glPrioritizeTextures(GLsizei n, const GLuint *names, const GLclampf *priorities)
{
    if (n < 0) gl_error(current, GL_INVALID_VALUE);
    for (int i = 0; i < n; i += MOST_PRIORITIES) {
        int count = n - i < MOST_PRIORITIES ? n - i : MOST_PRIORITIES;
        GLuint v[2 * MOST_PRIORITIES];
        memcpy(v, names + i, count * sizeof *v);
        memcpy(v + count, priorities + i, count * sizeof *v);
        CALL(PrioritizeTexturesv, count, v);
    }
}

void APIENTRY glPixelStorei(GLenum name, GLint v)
{
    struct context *gl = current;
    struct pixel_store *p = name >= GL_PACK_SWAP_BYTES && name <= GL_PACK_ALIGNMENT ? &gl->client.pack : &gl->client.unpack;
    GLenum field = name >= GL_PACK_SWAP_BYTES && name <= GL_PACK_ALIGNMENT ? name - GL_PACK_SWAP_BYTES : name - GL_UNPACK_SWAP_BYTES;
    int is_alignment = field == 5;
    if (field > 5) gl_error(gl, GL_INVALID_ENUM);
    else if (field >= 2 && (v < 0 || (is_alignment && v != 1 && v != 2 && v != 4 && v != 8))) gl_error(gl, GL_INVALID_VALUE);
    else if (field == 0) p->swap = v != 0;
    else if (field == 1) p->lsb_first = v != 0;
    else if (field == 2) p->row_length = v;
    else if (field == 3) p->skip_rows = v;
    else if (field == 4) p->skip_pixels = v;
    else p->alignment = v;
}
void APIENTRY glPixelStoref(GLenum name, GLfloat v) { glPixelStorei(name, (GLint)(v + 0.5f)); }
void APIENTRY glFlush(void)
{
    if (current->flush_window) current->flush_window(current);
}
void APIENTRY glFinish(void) { glFlush(); }
