/* Evaluators: Bernstein polynomials by the scheme of Horner, in one and two variables. */
#include "context.h"

enum { MAP_COLOR, MAP_INDEX, MAP_NORMAL, MAP_COORD_1, MAP_COORD_2, MAP_COORD_3, MAP_COORD_4, MAP_VERTEX_3, MAP_VERTEX_4, MAPS };

static int components(int map) { return map_values(GL_MAP1_COLOR_4 + map); }

static int wrong_domain(struct context *gl, int target, float a, float b)
{
    if (!target) gl_error(gl, GL_INVALID_ENUM);
    else if (a == b) gl_error(gl, GL_INVALID_VALUE);
    return !target || a == b;
}

static int wrong_order(struct context *gl, GLint order)
{
    if (!map_order(order)) gl_error(gl, GL_INVALID_VALUE);
    return !map_order(order);
}

static void set_map(struct context *gl, struct eval_map *m, int count, const GLfloat *v)
{
    float *points = malloc(count * sizeof *points);
    if (!points) {
        gl_error(gl, GL_OUT_OF_MEMORY);
        return;
    }
    memcpy(points, v, count * sizeof *points);
    free(m->points);
    m->points = points;
}

void exec_Map1(struct context *gl, GLenum target, GLfloat u1, GLfloat u2, GLint order, const GLfloat *v)
{
    int k = map_values(target);
    if (wrong_domain(gl, k && target <= GL_MAP1_VERTEX_4, u1, u2) || wrong_order(gl, order)) return;
    struct eval_map *m = &gl->map1[target - GL_MAP1_COLOR_4];
    set_map(gl, m, order * k, v);
    m->order[0] = order;
    m->domain[0] = u1, m->domain[1] = u2;
}

void exec_Map2(struct context *gl, GLenum target, GLfloat u1, GLfloat u2, GLint u_order, GLfloat v1, GLfloat v2, GLint v_order,
    const GLfloat *v)
{
    int k = map_values(target);
    if (wrong_domain(gl, k && target >= GL_MAP2_COLOR_4, u1, u2) || wrong_domain(gl, 1, v1, v2)
        || wrong_order(gl, u_order) || wrong_order(gl, v_order))
        return;
    struct eval_map *m = &gl->map2[target - GL_MAP2_COLOR_4];
    set_map(gl, m, u_order * v_order * k, v);
    m->order[0] = u_order, m->order[1] = v_order;
    m->domain[0] = u1, m->domain[1] = u2, m->domain[2] = v1, m->domain[3] = v2;
}

/* The curve of `order` points, `stride` floats apart, at t. */
static void curve(const float *points, int order, int stride, int k, float t, float *out)
{
    float s = 1 - t, power = t, binomial = order - 1;
    for (int c = 0; c < k; c++) out[c] = points[c] * (order > 1 ? s : 1);
    for (int i = 1; i < order; i++, power *= t) {
        for (int c = 0; c < k; c++) {
            out[c] += binomial * power * points[i * stride + c];
            if (i < order - 1) out[c] *= s;
        }
        binomial *= (float)(order - 1 - i) / (i + 1);
    }
}

static void derivative(const float *points, int order, int stride, int k, float t, float *out)
{
    float difference[MAX_ORDER * 4];
    for (int i = 0; i + 1 < order; i++)
        for (int c = 0; c < k; c++) difference[i * k + c] = (order - 1) * (points[(i + 1) * stride + c] - points[i * stride + c]);
    if (order > 1) curve(difference, order - 1, k, k, t, out);
    else memset(out, 0, k * sizeof *out);
}

static void value1(const struct eval_map *m, int k, float u, float *out)
{
    curve(m->points, m->order[0], k, k, (u - m->domain[0]) / (m->domain[1] - m->domain[0]), out);
}

/* A surface's value, and its derivatives if they are wanted. */
static void value2(const struct eval_map *m, int k, float u, float v, float *out, float *du, float *dv)
{
    float s = (u - m->domain[0]) / (m->domain[1] - m->domain[0]), t = (v - m->domain[2]) / (m->domain[3] - m->domain[2]);
    float row[MAX_ORDER * 4], slope[MAX_ORDER * 4];
    int stride = m->order[1] * k;
    for (int i = 0; i < m->order[0]; i++) {
        curve(m->points + i * stride, m->order[1], k, k, t, row + i * k);
        if (dv) derivative(m->points + i * stride, m->order[1], k, k, t, slope + i * k);
    }
    curve(row, m->order[0], k, k, s, out);
    if (du) derivative(row, m->order[0], k, k, s, du);
    if (dv) curve(slope, m->order[0], k, k, s, dv);
}

/* Evaluates all enabled maps at a point, draws the vertex, and leaves the current values as they were. */
static void evaluate(struct context *gl, int dimension, float u, float v)
{
    const uint8_t *enabled = gl->s.enabled + (dimension == 1 ? EN_MAP1_COLOR_4 : EN_MAP2_COLOR_4);
    const struct eval_map *maps = dimension == 1 ? gl->map1 : gl->map2;
    struct current_group saved = gl->s.current;
    float values[4], du[4], dv[4];
    int vertex = enabled[MAP_VERTEX_4] && maps[MAP_VERTEX_4].points ? MAP_VERTEX_4 : MAP_VERTEX_3;
    int has_vertex = enabled[vertex] && maps[vertex].points, is_normal_computed = dimension == 2 && ON(AUTO_NORMAL) && has_vertex;
    for (int map = 0; map < MAP_VERTEX_3; map++) {
        if (!enabled[map] || !maps[map].points || (map == MAP_NORMAL && is_normal_computed)) continue;
        int k = components(map);
        if (dimension == 1) value1(&maps[map], k, u, values);
        else value2(&maps[map], k, u, v, values, NULL, NULL);
        for (int c = k; c < 4; c++) values[c] = c == 3;
        if (map == MAP_COLOR) exec_Color4f(gl, values[0], values[1], values[2], values[3]);
        else if (map == MAP_INDEX) exec_Indexf(gl, values[0]);
        else if (map == MAP_NORMAL) exec_Normal3f(gl, values[0], values[1], values[2]);
        else exec_TexCoord4f(gl, values[0], values[1], values[2], values[3]);
    }
    if (has_vertex) {
        int k = components(vertex);
        values[3] = 1;
        if (dimension == 1) value1(&maps[vertex], k, u, values);
        else value2(&maps[vertex], k, u, v, values, is_normal_computed ? du : NULL, is_normal_computed ? dv : NULL);
        if (is_normal_computed) {
            if (k == 4) /* derivatives of the quotient by w, times w squared */
                for (int c = 0; c < 3; c++) du[c] = du[c] * values[3] - values[c] * du[3], dv[c] = dv[c] * values[3] - values[c] * dv[3];
            float n[3] = { du[1] * dv[2] - du[2] * dv[1], du[2] * dv[0] - du[0] * dv[2], du[0] * dv[1] - du[1] * dv[0] };
            float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
            if (length > 0) exec_Normal3f(gl, n[0] / length, n[1] / length, n[2] / length);
        }
        exec_Vertex4f(gl, values[0], values[1], values[2], values[3]);
    }
    gl->s.current = saved;
}

void exec_EvalCoord1f(struct context *gl, GLfloat u) { evaluate(gl, 1, u, 0); }
void exec_EvalCoord2f(struct context *gl, GLfloat u, GLfloat v) { evaluate(gl, 2, u, v); }

static float grid(const float *ends, int segments, int i) { return i == segments ? ends[1] : ends[0] + i * (ends[1] - ends[0]) / segments; }

void exec_EvalPoint1(struct context *gl, GLint i) { evaluate(gl, 1, grid(gl->s.eval.grid1, gl->s.eval.segments1, i), 0); }

void exec_EvalPoint2(struct context *gl, GLint i, GLint j)
{
    const struct eval_group *e = &gl->s.eval;
    evaluate(gl, 2, grid(e->grid2, e->segments2[0], i), grid(e->grid2 + 2, e->segments2[1], j));
}

void exec_MapGrid1f(struct context *gl, GLint n, GLfloat u1, GLfloat u2)
{
    if (n < 1) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    gl->s.eval.segments1 = n;
    gl->s.eval.grid1[0] = u1, gl->s.eval.grid1[1] = u2;
}

void exec_MapGrid2f(struct context *gl, GLint n, GLfloat u1, GLfloat u2, GLint m, GLfloat v1, GLfloat v2)
{
    struct eval_group *e = &gl->s.eval;
    if (n < 1 || m < 1) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    e->segments2[0] = n, e->segments2[1] = m;
    e->grid2[0] = u1, e->grid2[1] = u2, e->grid2[2] = v1, e->grid2[3] = v2;
}

/* Counts a point of a mesh, as the pixels that take as long; 0 if the limit of work is reached. */
static int has_time(struct context *gl) { return (gl->work += 32) <= gl->most_work; }

void exec_EvalMesh1(struct context *gl, GLenum mode, GLint i1, GLint i2)
{
    if (mode != GL_POINT && mode != GL_LINE) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    exec_Begin(gl, mode == GL_POINT ? GL_POINTS : GL_LINE_STRIP);
    for (int64_t i = i1; i <= i2 && has_time(gl); i++) exec_EvalPoint1(gl, i);
    exec_End(gl);
}

static void mesh_strips(struct context *gl, GLenum primitive, GLint i1, GLint i2, GLint j1, GLint j2)
{
    for (int64_t j = j1; j < j2 && has_time(gl); j++) {
        exec_Begin(gl, primitive);
        for (int64_t i = i1; i <= i2 && has_time(gl); i++) {
            exec_EvalPoint2(gl, i, j);
            exec_EvalPoint2(gl, i, j + 1);
        }
        exec_End(gl);
    }
}

void exec_EvalMesh2(struct context *gl, GLenum mode, GLint i1, GLint i2, GLint j1, GLint j2)
{
    if (mode == GL_FILL) {
        /* The same surface as quadrilaterals, cut along the other diagonal as Mesa does it, unless their edges show. */
        const struct polygon_group *p = &gl->s.polygon;
        int is_filled = p->mode[0] == GL_FILL && p->mode[1] == GL_FILL;
        mesh_strips(gl, is_filled ? GL_TRIANGLE_STRIP : GL_QUAD_STRIP, i1, i2, j1, j2);
        return;
    }
    if (mode != GL_POINT && mode != GL_LINE) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    for (int64_t j = j1; j <= j2 && has_time(gl); j++) {
        exec_Begin(gl, mode == GL_POINT ? GL_POINTS : GL_LINE_STRIP);
        for (int64_t i = i1; i <= i2 && has_time(gl); i++) exec_EvalPoint2(gl, i, j);
        exec_End(gl);
    }
    for (int64_t i = i1; i <= i2 && mode == GL_LINE && has_time(gl); i++) {
        exec_Begin(gl, GL_LINE_STRIP);
        for (int64_t j = j1; j <= j2 && has_time(gl); j++) exec_EvalPoint2(gl, i, j);
        exec_End(gl);
    }
}

/* An evaluator map's coefficients, order or domain; the number of values. */
static int map_answer(struct context *gl, GLenum target, GLenum query, float *out)
{
    if (!map_values(target)) {
        gl_error(gl, GL_INVALID_ENUM);
        return 0;
    }
    int is_surface = target >= GL_MAP2_COLOR_4;
    const struct eval_map *m = is_surface ? &gl->map2[target - GL_MAP2_COLOR_4] : &gl->map1[target - GL_MAP1_COLOR_4];
    int count = m->order[0] * (is_surface ? m->order[1] : 1) * map_values(target);
    switch (query) {
    case GL_COEFF:
        if (!m->points) return 0;
        memcpy(out, m->points, count * sizeof *out);
        return count;
    case GL_ORDER: out[0] = m->order[0], out[1] = m->order[1]; return is_surface ? 2 : 1;
    case GL_DOMAIN: memcpy(out, m->domain, sizeof m->domain); return is_surface ? 4 : 2;
    default: gl_error(gl, GL_INVALID_ENUM); return 0;
    }
}

int map_query_values(struct context *gl, GLenum target, GLenum query)
{
    float values[MAX_ORDER * MAX_ORDER * 4];
    return map_answer(gl, target, query, values);
}

#define GET_MAP(suffix, T, rounding) \
    void APIENTRY glGetMap##suffix(GLenum target, GLenum query, T *out) \
    { \
        float values[MAX_ORDER * MAX_ORDER * 4]; \
        int count = map_answer(current, target, query, values); \
        for (int i = 0; i < count; i++) out[i] = rounding(values[i]); \
    }
GET_MAP(fv, GLfloat, )
GET_MAP(dv, GLdouble, )
GET_MAP(iv, GLint, lrintf)
