/* Primitives after the vertex path: clipping, facing, polygon modes, and what goes to the rasterizers, selection or feedback. */
#include "paths.h"

enum { MOST = 3 + 6 + PLANES };

/* Polygons that reach over the sides of the view volume are cut there only beyond this factor: the rasterizer's box cuts the rest. */
static const float GUARD_BAND = 8;

/* No drawable is as large: areas and coordinates beyond come from vertices without finite positions. */
static const float BEYOND = 1e12f;

static float distance(const struct context *gl, const struct vertex *v, int plane)
{
    const float *c = v->clip;
    switch (plane) {
    case 0: return c[3] - c[0];
    case 1: return c[3] + c[0];
    case 2: return c[3] - c[1];
    case 3: return c[3] + c[1];
    case 4: return c[3] - c[2];
    case 5: return c[3] + c[2];
    }
    for (int i = 0; i < gl->d.planes; i++)
        if (gl->d.plane_bit[i] == 1u << plane) return plane4(gl->d.plane[i], v->eye);
    return 0;
}

static void interpolate(struct vertex *out, const struct vertex *a, const struct vertex *b, float t)
{
    const float *from = a->clip, *to = b->clip;
    float *p = out->clip;
    for (size_t k = 0; k < offsetof(struct vertex, outside) / sizeof(float); k++) p[k] = from[k] + t * (to[k] - from[k]);
    out->edge = 1;
}

static void report_or_raster_line(struct context *gl, struct vertex *a, struct vertex *b, const struct vertex *flat, float offset)
{
    if (gl->render_mode == GL_RENDER) {
        gl->raster->line(gl, a, b, flat ? flat->color : NULL, offset);
    } else if (gl->render_mode == GL_SELECT) {
        report_select(gl, a);
        report_select(gl, b);
    } else {
        const struct vertex *v[2] = { a, b };
        report_feedback(gl, gl->stipple_counter ? GL_LINE_TOKEN : GL_LINE_RESET_TOKEN, 2, v);
        gl->stipple_counter = 1;
    }
}

/* Cuts a line by one plane after the other, in terms of its parameter. */
static void clip_line(struct context *gl, struct vertex *a, struct vertex *b, const struct vertex *flat, float offset)
{
    uint32_t outside = a->outside | b->outside;
    float t0 = 0, t1 = 1;
    for (int plane = 0; outside >> plane; plane++) {
        if (!(outside >> plane & 1)) continue;
        float da = distance(gl, a, plane), db = distance(gl, b, plane);
        if (da < 0 && db < 0) return;
        if (da < 0 && da / (da - db) > t0) t0 = da / (da - db);
        if (db < 0 && da / (da - db) < t1) t1 = da / (da - db);
    }
    if (t0 > t1) return;
    struct vertex from = *a, to = *b;
    if (t0 > 0) interpolate(&from, a, b, t0), to_window(gl->d.viewport, from.clip, from.win);
    if (t1 < 1) interpolate(&to, a, b, t1), to_window(gl->d.viewport, to.clip, to.win);
    report_or_raster_line(gl, &from, &to, flat, offset);
}

void draw_line(struct context *gl, struct vertex *a, struct vertex *b)
{
    const struct vertex *flat = gl->s.lighting.shade_model == GL_FLAT ? b : NULL;
    if (a->outside & b->outside) return;
    if (a->outside | b->outside) clip_line(gl, a, b, flat, 0);
    else report_or_raster_line(gl, a, b, flat, 0);
}

static void point(struct context *gl, const struct vertex *v, const struct vertex *flat, float offset)
{
    if (gl->render_mode == GL_RENDER) gl->raster->point(gl, v, flat ? flat->color : NULL, offset);
    else if (gl->render_mode == GL_SELECT) report_select(gl, v);
    else report_feedback(gl, GL_POINT_TOKEN, 1, &v);
}

void draw_point(struct context *gl, struct vertex *v)
{
    if (!v->outside) point(gl, v, NULL, 0);
}

static struct vertex with_back_color(const struct vertex *v)
{
    struct vertex out = *v;
    memcpy(out.color, v->back, sizeof out.color);
    return out;
}

/* The sides ab, bc, ca that are boundaries, by edge flags unless bit 8 says that these do not count. */
static unsigned boundary(unsigned edges, const struct vertex *a, const struct vertex *b, const struct vertex *c)
{
    return edges & 8 ? edges : edges & ((a->edge != 0) | (b->edge != 0) << 1 | (c->edge != 0) << 2);
}

/* A triangle within the volume (or the guard band), with window coordinates. edges: the sides ab, bc, ca that are boundaries. */
static void face(struct context *gl, struct vertex *a, struct vertex *b, struct vertex *c, struct vertex *flat, unsigned edges)
{
    float area = (b->win[0] - a->win[0]) * (c->win[1] - a->win[1]) - (c->win[0] - a->win[0]) * (b->win[1] - a->win[1]);
    if (!(fabsf(area) < BEYOND)) return;                                /* or not a number */
    int is_back = (area < 0) != (gl->s.polygon.front_face == GL_CW);
    if (ON(CULL_FACE)
        && (gl->s.polygon.cull == GL_FRONT_AND_BACK || gl->s.polygon.cull == (GLenum)(is_back ? GL_BACK : GL_FRONT)))
        return;
    struct vertex backs[4];
    if (is_back && gl->d.lighting && gl->d.two_side) {
        backs[0] = with_back_color(a), backs[1] = with_back_color(b), backs[2] = with_back_color(c), backs[3] = with_back_color(flat);
        a = &backs[0], b = &backs[1], c = &backs[2], flat = &backs[3];
    }
    const struct vertex *provoking = gl->s.lighting.shade_model == GL_FLAT ? flat : NULL;
    GLenum mode = gl->s.polygon.mode[is_back];
    static const int offset_flag[3] = { EN_POLYGON_OFFSET_POINT, EN_POLYGON_OFFSET_LINE, EN_POLYGON_OFFSET_FILL };
    float offset = gl->s.enabled[offset_flag[mode - GL_POINT]] ? polygon_offset(gl, a, b, c) : 0;
    struct vertex *v[3] = { a, b, c };
    if (mode == GL_FILL) {
        const struct vertex *all[3] = { a, b, c };
        if (gl->render_mode == GL_RENDER) gl->raster->triangle(gl, a, b, c, provoking ? provoking->color : NULL, offset);
        else if (gl->render_mode == GL_FEEDBACK) report_feedback(gl, GL_POLYGON_TOKEN, 3, all);
        else
            for (int i = 0; i < 3; i++) report_select(gl, v[i]);
        return;
    }
    edges = boundary(edges, a, b, c);
    for (int i = 0; i < 3; i++) {
        if (!(edges >> i & 1)) continue;
        if (mode == GL_LINE) report_or_raster_line(gl, v[i], v[(i + 1) % 3], provoking, offset);
        else point(gl, v[i], provoking, offset);
    }
}

/* Cuts a convex polygon by a plane (Sutherland and Hodgman); returns its new number of corners. */
static int cut(struct context *gl, int plane, struct vertex **in, uint8_t *in_edge, int n, struct vertex **out, uint8_t *out_edge,
    struct vertex **fresh)
{
    int m = 0;
    float d = distance(gl, in[0], plane);
    for (int i = 0; i < n; i++) {
        struct vertex *a = in[i], *b = in[(i + 1) % n];
        float next = distance(gl, b, plane);
        if (d >= 0) out[m] = a, out_edge[m++] = in_edge[i];
        if ((d >= 0) != (next >= 0)) {
            struct vertex *v = (*fresh)++;
            /* From the inner to the outer vertex, so that neighbours get the same corner. */
            if (d >= 0) interpolate(v, a, b, d / (d - next));
            else interpolate(v, b, a, next / (next - d));
            out[m] = v;
            out_edge[m++] = d >= 0 ? plane >= 6 : in_edge[i];
        }
        d = next;
    }
    return m;
}

static void clip_triangle(struct context *gl, struct vertex *a, struct vertex *b, struct vertex *c, struct vertex *flat, unsigned edges)
{
    struct vertex fresh[2 * MOST], *unused = fresh, *list[2][MOST + 1] = { { a, b, c } };
    edges = boundary(edges, a, b, c);
    uint8_t edge[2][MOST + 1] = { { edges & 1, edges >> 1 & 1, edges >> 2 & 1 } };
    uint32_t outside = a->outside | b->outside | c->outside;
    int n = 3, at = 0, in_guard_band = gl->render_mode == GL_RENDER && gl->s.polygon.mode[0] == GL_FILL && gl->s.polygon.mode[1] == GL_FILL;
    for (int i = 0; i < 3; i++) {
        const float *p = list[0][i]->clip;
        in_guard_band &= p[3] > 0 && fabsf(p[0]) < GUARD_BAND * p[3] && fabsf(p[1]) < GUARD_BAND * p[3];
    }
    if (in_guard_band) outside &= ~(uint32_t)(RIGHT | LEFT | TOP | BOTTOM);
    /* near and far first: behind the eye the sides mean nothing */
    static const uint8_t order[6 + PLANES] = { 5, 4, 0, 1, 2, 3, 6, 7, 8, 9, 10, 11 };
    for (int k = 0; k < 6 + PLANES && n >= 3; k++) {
        if (!(outside >> order[k] & 1)) continue;
        n = cut(gl, order[k], list[at], edge[at], n, list[!at], edge[!at], &unused);
        at = !at;
    }
    if (n < 3) return;
    struct vertex copies[MOST + 1], **v = list[at];
    for (int i = 0; i < n; i++) {
        copies[i] = *v[i];
        to_window(gl->d.viewport, copies[i].clip, copies[i].win);
    }
    for (int i = 1; i + 1 < n; i++) {
        unsigned sides = (i == 1 && edge[at][0]) | (unsigned)edge[at][i] << 1 | (i + 2 == n && edge[at][n - 1] ? 4u : 0);
        face(gl, &copies[0], &copies[i], &copies[i + 1], flat, sides | 8);
    }
}

void draw_triangle(struct context *gl, struct vertex *a, struct vertex *b, struct vertex *c, struct vertex *flat, unsigned edges)
{
    if (a->outside & b->outside & c->outside) return;
    if (a->outside | b->outside | c->outside) clip_triangle(gl, a, b, c, flat, edges);
    else face(gl, a, b, c, flat, edges);
}
