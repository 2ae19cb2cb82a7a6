/* Matrices: column-major, as OpenGL has them. */
#include "context.h"

static const float identity[16] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };

void multiply(float *out, const float *a, const float *b)
{
    float m[16];
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++)
            m[4 * c + r] = a[r] * b[4 * c] + a[4 + r] * b[4 * c + 1] + a[8 + r] * b[4 * c + 2] + a[12 + r] * b[4 * c + 3];
    memcpy(out, m, sizeof m);
}

void transform(float *out, const float *m, const float *v)
{
    float t[4];
    for (int k = 0; k < 4; k++) t[k] = m[k] * v[0] + m[4 + k] * v[1] + m[8 + k] * v[2] + m[12 + k] * v[3];
    memcpy(out, t, sizeof t);
}

/* Inverts by Gauss-Jordan elimination with partial pivoting; returns 0, and the identity, if the matrix is singular. */
int invert(float *out, const float *in)
{
    double a[4][8];
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) a[r][c] = in[4 * c + r], a[r][4 + c] = r == c;
    for (int c = 0; c < 4; c++) {
        int pivot = c;
        for (int r = c + 1; r < 4; r++)
            if (fabs(a[r][c]) > fabs(a[pivot][c])) pivot = r;
        if (a[pivot][c] == 0) {
            memcpy(out, identity, sizeof identity);
            return 0;
        }
        for (int k = 0; k < 8; k++) {
            double t = a[c][k];
            a[c][k] = a[pivot][k], a[pivot][k] = t;
        }
        double scale = 1 / a[c][c];
        for (int k = 0; k < 8; k++) a[c][k] *= scale;
        for (int r = 0; r < 4; r++) {
            double by = a[r][c];
            if (r == c || by == 0) continue;
            for (int k = 0; k < 8; k++) a[r][k] -= by * a[c][k];
        }
    }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) out[4 * c + r] = a[r][4 + c];
    return 1;
}

struct matrix_stack *current_stack(struct context *gl)
{
    GLenum mode = gl->s.transform.matrix_mode;
    return mode == GL_MODELVIEW ? &gl->modelview : mode == GL_PROJECTION ? &gl->projection : &gl->texture_stack;
}

void exec_MatrixMode(struct context *gl, GLenum mode)
{
    if (mode != GL_MODELVIEW && mode != GL_PROJECTION && mode != GL_TEXTURE) gl_error(gl, GL_INVALID_ENUM);
    else gl->s.transform.matrix_mode = mode;
}

void exec_LoadMatrixf(struct context *gl, const GLfloat *m)
{
    memcpy(current_stack(gl)->top, m, 16 * sizeof *m);
    gl->dirty |= DIRTY_VERTEX;
}

void exec_LoadIdentity(struct context *gl) { exec_LoadMatrixf(gl, identity); }

void exec_MultMatrixf(struct context *gl, const GLfloat *m)
{
    float *top = current_stack(gl)->top;
    multiply(top, top, m);
    gl->dirty |= DIRTY_VERTEX;
}

void exec_PushMatrix(struct context *gl)
{
    struct matrix_stack *s = current_stack(gl);
    int limit = s == &gl->modelview ? MATRIX_DEPTH : 10;
    if (s->depth + 1 >= limit) {
        gl_error(gl, GL_STACK_OVERFLOW);
        return;
    }
    memcpy(s->saved[s->depth++], s->top, sizeof s->top);
}

void exec_PopMatrix(struct context *gl)
{
    struct matrix_stack *s = current_stack(gl);
    if (s->depth == 0) {
        gl_error(gl, GL_STACK_UNDERFLOW);
        return;
    }
    memcpy(s->top, s->saved[--s->depth], sizeof s->top);
    gl->dirty |= DIRTY_VERTEX;
}

void exec_Translatef(struct context *gl, GLfloat x, GLfloat y, GLfloat z)
{
    float *m = current_stack(gl)->top;
    for (int k = 0; k < 4; k++) m[12 + k] = m[k] * x + m[4 + k] * y + m[8 + k] * z + m[12 + k];
    gl->dirty |= DIRTY_VERTEX;
}

void exec_Scalef(struct context *gl, GLfloat x, GLfloat y, GLfloat z)
{
    float *m = current_stack(gl)->top;
    for (int k = 0; k < 4; k++) m[k] *= x, m[4 + k] *= y, m[8 + k] *= z;
    gl->dirty |= DIRTY_VERTEX;
}

void exec_Rotatef(struct context *gl, GLfloat angle, GLfloat x, GLfloat y, GLfloat z)
{
    float length = sqrtf(x * x + y * y + z * z);
    if (length == 0) return;
    x /= length, y /= length, z /= length;
    float c = cosf(angle * (float)(M_PI / 180)), s = sinf(angle * (float)(M_PI / 180)), t = 1 - c;
    float m[16] = { x * x * t + c, y * x * t + z * s, x * z * t - y * s, 0, x * y * t - z * s, y * y * t + c, y * z * t + x * s, 0,
        x * z * t + y * s, y * z * t - x * s, z * z * t + c, 0, 0, 0, 0, 1 };
    exec_MultMatrixf(gl, m);
}

void exec_Frustum(struct context *gl, GLdouble l, GLdouble r, GLdouble b, GLdouble t, GLdouble n, GLdouble f)
{
    if (n <= 0 || f <= 0 || l == r || b == t || n == f) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    float m[16] = { 2 * n / (r - l), 0, 0, 0, 0, 2 * n / (t - b), 0, 0, (r + l) / (r - l), (t + b) / (t - b), -(f + n) / (f - n), -1,
        0, 0, -2 * f * n / (f - n), 0 };
    exec_MultMatrixf(gl, m);
}

void exec_Ortho(struct context *gl, GLdouble l, GLdouble r, GLdouble b, GLdouble t, GLdouble n, GLdouble f)
{
    if (l == r || b == t || n == f) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    float m[16] = { 2 / (r - l), 0, 0, 0, 0, 2 / (t - b), 0, 0, 0, 0, -2 / (f - n), 0, -(r + l) / (r - l), -(t + b) / (t - b),
        -(f + n) / (f - n), 1 };
    exec_MultMatrixf(gl, m);
}

void exec_Viewport(struct context *gl, GLint x, GLint y, GLsizei width, GLsizei height)
{
    if (width < 0 || height < 0) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    if (gl->follow_size) gl->follow_size(gl);
    if (width > MAX_SIZE * 4) width = MAX_SIZE * 4;
    if (height > MAX_SIZE * 4) height = MAX_SIZE * 4;
    GLint box[4] = { x, y, width, height };
    memcpy(gl->s.viewport.box, box, sizeof box);
    gl->dirty |= DIRTY_ALL;
}

void exec_DepthRange(struct context *gl, GLdouble near, GLdouble far)
{
    gl->s.viewport.range[0] = near < 0 ? 0 : near > 1 ? 1 : near;
    gl->s.viewport.range[1] = far < 0 ? 0 : far > 1 ? 1 : far;
    gl->dirty |= DIRTY_ALL;
}

/* A plane is kept in eye coordinates: multiplied by the inverse of the modelview matrix. */
void exec_ClipPlane(struct context *gl, GLenum plane, const GLdouble *equation)
{
    if (plane < GL_CLIP_PLANE0 || plane >= GL_CLIP_PLANE0 + PLANES) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    float inverse[16];
    invert(inverse, gl->modelview.top);
    for (int k = 0; k < 4; k++) {
        double sum = 0;
        for (int j = 0; j < 4; j++) sum += equation[j] * inverse[4 * k + j];
        gl->s.transform.plane[plane - GL_CLIP_PLANE0][k] = sum;
    }
    gl->dirty |= DIRTY_VERTEX;
}
