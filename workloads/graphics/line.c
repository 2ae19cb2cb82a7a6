/* Lines and points. A line without antialiasing draws one pixel for each column (or row, if it is steeper) whose centre lies
 * between its ends, as the diamond rule asks; wider lines draw more pixels in the other direction. */
#include "paths.h"

enum { MOST_WIDTH = 64 };

/* Values that vary along a line. */
struct along { float z[2], w[2], color[2][4], coord[2][3], fog[2]; int is_flat, has_coord, has_fog; };

static void set_along(struct context *gl, struct along *s, const struct vertex *a, const struct vertex *b, const float *flat, float offset)
{
    const struct vertex *v[2] = { a, b };
    s->has_coord = gl->active_texture != NULL;
    s->has_fog = ON(FOG);
    s->is_flat = flat != NULL;
    for (int i = 0; i < 2; i++) {
        float w = v[i]->win[3];
        s->z[i] = v[i]->win[2] + offset;
        s->w[i] = w;
        for (int k = 0; k < 4; k++) s->color[i][k] = flat ? flat[k] : v[i]->color[k] * w;
        for (int k = 0; s->has_coord && k < 3; k++) s->coord[i][k] = v[i]->coord[k == 2 ? 3 : k] * w;
        if (s->has_fog) s->fog[i] = v[i]->fog * w;
    }
}

static inline float mix(const float *pair, float t) { return pair[0] + t * (pair[1] - pair[0]); }

static void fragment_at(struct context *gl, const struct along *s, struct span *span, int i, float t)
{
    float w = 1 / mix(s->w, t), z = mix(s->z, t);
    span->z[i] = !(z > 0) ? 0 : z >= 1 ? 0xffffff : (uint32_t)(z * 16777215.0 + 0.5);
    span->mask[i] = 1;
    for (int k = 0; k < 4; k++) {
        float c = s->is_flat ? s->color[0][k] : (s->color[0][k] + t * (s->color[1][k] - s->color[0][k])) * w;
        span->rgba[i][k] = clamp01(c);
    }
    if (s->has_coord) {
        float coord[3];
        for (int k = 0; k < 3; k++) coord[k] = s->coord[0][k] + t * (s->coord[1][k] - s->coord[0][k]);
        span->coord[i][0] = coord[0] / coord[2], span->coord[i][1] = coord[1] / coord[2];
        span->lambda[i] = -100;
    }
    if (s->has_fog) span->fog[i] = mix(s->fog, t) * w;
    (void)gl;
}

static int stippled_out(struct context *gl)
{
    if (!ON(LINE_STIPPLE)) return 0;
    unsigned bit = gl->stipple_counter++ / gl->s.line.factor & 15;
    return !(gl->s.line.pattern >> bit & 1);
}

static void reset_span(struct span *span, int x, int y, int n)
{
    span->x = x, span->y = y, span->n = n;
    span->has_coverage = span->no_texture = 0;
}

/* The pixels of one step along the line: `width` of them across. */
static void draw_step(struct context *gl, const struct along *s, int is_steep, int major, float minor, float t, int width)
{
    struct span *span = &gl->span;
    int first = (int)ceilf(minor - (width - 1) * 0.5f) - 1;             /* on a boundary, the lower of two pixels */
    if (is_steep) {
        reset_span(span, first, major, width);
        for (int i = 0; i < width; i++) fragment_at(gl, s, span, i, t);
        draw_span(gl, span);
        return;
    }
    for (int i = 0; i < width; i++) {
        reset_span(span, major, first + i, 1);
        fragment_at(gl, s, span, 0, t);
        draw_span(gl, span);
    }
}

/* Antialiased: the pixels of a rectangle around the line, weighted by their distance to it. */
static void draw_smooth_line(struct context *gl, const struct along *s, const struct vertex *a, const struct vertex *b)
{
    float ax = a->win[0], ay = a->win[1], dx = b->win[0] - ax, dy = b->win[1] - ay, length = sqrtf(dx * dx + dy * dy);
    if (length == 0) return;
    float half = fminf(gl->s.line.width, MOST_WIDTH) * 0.5f;
    dx /= length, dy /= length;
    float reach = half + 1;
    int y0 = (int)floorf(fminf(ay, b->win[1]) - reach), y1 = (int)floorf(fmaxf(ay, b->win[1]) + reach);
    int x0 = (int)floorf(fminf(ax, b->win[0]) - reach), x1 = (int)floorf(fmaxf(ax, b->win[0]) + reach);
    if (x0 < gl->box[0]) x0 = gl->box[0];
    if (x1 >= gl->box[2]) x1 = gl->box[2] - 1;
    if (y0 < gl->box[1]) y0 = gl->box[1];
    if (y1 >= gl->box[3]) y1 = gl->box[3] - 1;
    if (x1 < x0 || y1 < y0) return;
    gl->work += (uint64_t)(x1 - x0 + 1) * (y1 - y0 + 1);
    if (gl->work > gl->most_work) return;
    struct span *span = &gl->span;
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            float px = x + 0.5f - ax, py = y + 0.5f - ay;
            float along = px * dx + py * dy, across = fabsf(px * dy - py * dx);
            float cover = clamp01(half + 0.5f - across) * clamp01(along + 0.5f) * clamp01(length - along + 0.5f);
            if (cover <= 0) continue;
            if (ON(LINE_STIPPLE)) {
                unsigned bit = (gl->stipple_counter + (unsigned)fmaxf(along, 0)) / gl->s.line.factor & 15;
                if (!(gl->s.line.pattern >> bit & 1)) continue;
            }
            reset_span(span, x, y, 1);
            fragment_at(gl, s, span, 0, clamp01(along / length));
            span->has_coverage = 1;
            span->coverage[0] = cover;
            draw_span(gl, span);
        }
    gl->stipple_counter += (unsigned)(length + 0.5f);
}

/* Whether window coordinates are finite, and those of some drawable. */
static int is_drawable(const float *win) { return fabsf(win[0]) < 1e6f && fabsf(win[1]) < 1e6f; }

static float snapped(float v) { return rintf(v * (1 << SUBPIXEL_BITS)) * (1.0f / (1 << SUBPIXEL_BITS)); }

/* A pixel is drawn if the line leaves the diamond around its centre: one in which it ends is not, one in which it begins is. */
static int is_in_diamond(const float *win)
{
    return fabsf(win[0] - floorf(win[0]) - 0.5f) + fabsf(win[1] - floorf(win[1]) - 0.5f) < 0.5f;
}

/* The first pixel whose centre is at x or after it, in the direction of step. */
static int first_centre(float x, int step) { return step > 0 ? (int)ceilf(x - 0.5f) : (int)floorf(x - 0.5f); }

void raster_line(struct context *gl, const struct vertex *a, const struct vertex *b, const float *flat, float offset)
{
    struct along s;
    set_along(gl, &s, a, b, flat, offset);
    if (!is_drawable(a->win) || !is_drawable(b->win)) return;
    const float ends[2][2] = { { snapped(a->win[0]), snapped(a->win[1]) }, { snapped(b->win[0]), snapped(b->win[1]) } };
    if (ON(LINE_SMOOTH)) {
        draw_smooth_line(gl, &s, a, b);
        return;
    }
    int width = (int)(fminf(gl->s.line.width, MOST_WIDTH) + 0.5f);
    if (width < 1) width = 1;
    float dx = ends[1][0] - ends[0][0], dy = ends[1][1] - ends[0][1];
    int is_steep = fabsf(dy) > fabsf(dx), axis = is_steep;
    float from = ends[0][axis], to = ends[1][axis], start = ends[0][!axis], length = to - from;
    if (length == 0) return;
    int step = length > 0 ? 1 : -1;
    int first = first_centre(from, step), end = first_centre(to, step);
    if (is_in_diamond(ends[0])) first = (int)floorf(from);
    if (is_in_diamond(ends[1])) end = (int)floorf(to);
    float slope = (is_steep ? dx : dy) / length;
    gl->work += abs(end - first);
    if (gl->work > gl->most_work) return;
    for (int major = first; major != end; major += step) {
        if (stippled_out(gl)) continue;
        float t = (major + 0.5f - from) / length;
        draw_step(gl, &s, is_steep, major, start + slope * (major + 0.5f - from), t, width);
    }
}

void raster_point(struct context *gl, const struct vertex *v, const float *flat, float offset)
{
    struct along s;
    if (!is_drawable(v->win)) return;
    set_along(gl, &s, v, v, flat, offset);
    struct span *span = &gl->span;
    float x = v->win[0], y = v->win[1], size = fminf(gl->s.point.size, MOST_WIDTH);
    int is_smooth = ON(POINT_SMOOTH), width = (int)(size + 0.5f);
    if (width < 1) width = 1;
    float radius = size * 0.5f;
    int x0 = is_smooth ? (int)floorf(x - radius) : (int)floorf(x - (width - 1) * 0.5f), x1 = is_smooth ? (int)floorf(x + radius) : x0 + width - 1;
    int y0 = is_smooth ? (int)floorf(y - radius) : (int)floorf(y - (width - 1) * 0.5f), y1 = is_smooth ? (int)floorf(y + radius) : y0 + width - 1;
    for (int row = y0; row <= y1; row++) {
        reset_span(span, x0, row, x1 - x0 + 1);
        span->has_coverage = is_smooth;
        for (int i = 0; i < span->n; i++) {
            fragment_at(gl, &s, span, i, 0);
            if (!is_smooth) continue;
            float dx = x0 + i + 0.5f - x, dy = row + 0.5f - y;
            span->coverage[i] = clamp01(radius + 0.5f - sqrtf(dx * dx + dy * dy));
            span->mask[i] = span->coverage[i] > 0;
        }
        draw_span(gl, span);
    }
}
