/* Triangles: window coordinates are rounded to 8 subpixel bits; a pixel is drawn if its centre is inside, or on a top or left
 * edge (in the order of memory, whose first row is the lowest), so that neighbours share no pixel and leave none out. Attributes
 * are interpolated linearly over 1/w. */
#include "context.h"

enum { ONE = 1 << SUBPIXEL_BITS, Z = 0, W = 1, COLOR = 2, COORD = 6, FOG = 9, ATTRIBUTES = 10 };

/* No drawable reaches as far, in subpixels, and products of such coordinates do not overflow. */
static const int64_t FARTHEST = 1 << 30;

/* An attribute's value at the first vertex, and its change by pixel. */
struct slope { float start, dx, dy; };

/* a*x + b*y + c >= 0 inside, in subpixels, at pixel centres. */
struct side { int64_t a, b, c; double inverse; };

static struct side side_of(int64_t x0, int64_t y0, int64_t x1, int64_t y1)
{
    struct side s = { y0 - y1, x1 - x0, 0, 0 };
    s.c = -(s.a * x0 + s.b * y0);
    /* A centre on the edge belongs to it on the left, where a > 0, and on the first row, where the inside is above. */
    if (!(s.a > 0 || (s.a == 0 && s.b > 0))) s.c--;
    s.c += (s.a + s.b) * (ONE / 2);
    s.a *= ONE, s.b *= ONE;
    if (s.a) s.inverse = 1.0 / (double)s.a;
    return s;
}

/* Narrows [*left, *right] to the pixels of row y that are inside the side; floating point finds the place, integers decide. */
static void narrow(const struct side *s, int y, int *left, int *right)
{
    int64_t at = s->b * y + s->c;
    if (s->a == 0) {
        if (at < 0) *right = *left - 1;
        return;
    }
    double exact = -(double)at * s->inverse;
    if (exact < *left - 2 || exact > *right + 2) {              /* far off: all pixels of the row are on one side */
        if ((exact > *right) == (s->a > 0)) *right = *left - 1;
        return;
    }
    int64_t x = (int64_t)floor(exact);
    if (s->a > 0) {
        while (s->a * x + at < 0) x++;
        while (s->a * (x - 1) + at >= 0) x--;
        if (x > *left) *left = (int)x;
    } else {
        while (s->a * x + at < 0) x--;
        while (s->a * (x + 1) + at >= 0) x++;
        if (x < *right) *right = (int)x;
    }
}

struct setup { struct slope slope[ATTRIBUTES]; float x, y; int is_perspective, has_color, has_coord, has_fog; const float *flat; };

static void set_slope(struct slope *s, const float *edge, float f0, float f1, float f2)
{
    s->start = f0;
    s->dx = (f1 - f0) * edge[0] + (f2 - f0) * edge[1];
    s->dy = (f1 - f0) * edge[2] + (f2 - f0) * edge[3];
}

/* Coefficients by which differences to the first vertex become slopes; 0 if the triangle has no area. */
static int slope_edges(const struct vertex *a, const struct vertex *b, const struct vertex *c, float *edge)
{
    float x1 = b->win[0] - a->win[0], y1 = b->win[1] - a->win[1], x2 = c->win[0] - a->win[0], y2 = c->win[1] - a->win[1];
    float area = x1 * y2 - x2 * y1;
    if (area == 0) {
        memset(edge, 0, 4 * sizeof *edge);
        return 0;
    }
    float inverse = 1 / area;
    edge[0] = y2 * inverse, edge[1] = -y1 * inverse, edge[2] = -x2 * inverse, edge[3] = x1 * inverse;
    return 1;
}

float polygon_offset(struct context *gl, const struct vertex *a, const struct vertex *b, const struct vertex *c)
{
    float edge[4];
    struct slope z;
    slope_edges(a, b, c, edge);
    set_slope(&z, edge, a->win[2], b->win[2], c->win[2]);
    float m = fmaxf(fabsf(z.dx), fabsf(z.dy));
    return m * gl->s.polygon.factor + gl->s.polygon.units * (1.0f / 16777216);
}

static void set_up(struct context *gl, struct setup *s, const struct vertex *a, const struct vertex *b, const struct vertex *c,
    const float *flat, float offset)
{
    float edge[4];
    slope_edges(a, b, c, edge);
    s->x = a->win[0], s->y = a->win[1];
    s->flat = flat;
    set_slope(&s->slope[Z], edge, a->win[2] + offset, b->win[2] + offset, c->win[2] + offset);
    float w0 = a->win[3], w1 = b->win[3], w2 = c->win[3];
    if (!flat && memcmp(a->color, b->color, sizeof a->color) == 0 && memcmp(a->color, c->color, sizeof a->color) == 0)
        s->flat = flat = a->color;
    s->has_color = !flat;
    s->has_coord = gl->active_texture != NULL;
    s->has_fog = ON(FOG);
    s->is_perspective = (w0 != w1 || w0 != w2) && (s->has_color || s->has_coord || s->has_fog);
    if (s->is_perspective) set_slope(&s->slope[W], edge, w0, w1, w2);
    else w0 = w1 = w2 = 1;
    if (s->has_color)
        for (int k = 0; k < 4; k++) set_slope(&s->slope[COLOR + k], edge, a->color[k] * w0, b->color[k] * w1, c->color[k] * w2);
    if (s->has_coord)
        for (int k = 0; k < 3; k++) {
            int j = k == 2 ? 3 : k;
            set_slope(&s->slope[COORD + k], edge, a->coord[j] * w0, b->coord[j] * w1, c->coord[j] * w2);
        }
    if (s->has_fog) set_slope(&s->slope[FOG], edge, a->fog * w0, b->fog * w1, c->fog * w2);
}

static inline float at(const struct slope *s, float dx, float dy) { return s->start + s->dx * dx + s->dy * dy; }

static inline uint32_t depth_of(float z)
{
    if (!(z > 0)) return 0;
    if (z >= 1) return 0xffffff;
    return (uint32_t)(z * 16777215.0 + 0.5);
}

/* log2 of texels by pixel, from differences within the block of 2x2 pixels, as hardware computes it. */
static float level_of_detail(const struct setup *s, const struct texture_image *image, int x, int y)
{
    float coord[3][2];
    for (int i = 0; i < 3; i++) {
        float dx = (x & ~1) + (i == 1) + 0.5f - s->x, dy = (y & ~1) + (i == 2) + 0.5f - s->y;
        float q = 1 / at(&s->slope[COORD + 2], dx, dy);
        for (int k = 0; k < 2; k++) coord[i][k] = at(&s->slope[COORD + k], dx, dy) * q;
    }
    float rho = 0;
    for (int i = 1; i < 3; i++) {
        rho = fmaxf(rho, fabsf(coord[i][0] - coord[0][0]) * image->width);
        rho = fmaxf(rho, fabsf(coord[i][1] - coord[0][1]) * image->height);
    }
    return rho > 0 ? log2f(rho) : -100;
}

static void fill_span(struct context *gl, const struct setup *s, struct span *span)
{
    float dy = span->y + 0.5f - s->y;
    int needs_level = s->has_coord && level_of_detail_needed(gl->active_texture);
    for (int i = 0; i < span->n; i++) {
        float dx = span->x + i + 0.5f - s->x, w = 1;
        span->z[i] = depth_of(at(&s->slope[Z], dx, dy));
        span->mask[i] = 1;
        if (s->is_perspective) w = 1 / at(&s->slope[W], dx, dy);
        for (int k = 0; k < 4; k++) {
            float c = s->has_color ? at(&s->slope[COLOR + k], dx, dy) * w : s->flat[k];
            span->rgba[i][k] = c < 0 ? 0 : c > 1 ? 1 : c;
        }
        if (s->has_coord) {
            float q = 1 / at(&s->slope[COORD + 2], dx, dy);
            span->coord[i][0] = at(&s->slope[COORD], dx, dy) * q;
            span->coord[i][1] = at(&s->slope[COORD + 1], dx, dy) * q;
            if (needs_level)
                span->lambda[i] = i && ((span->x + i) & 1) ? span->lambda[i - 1]
                                                           : level_of_detail(s, &gl->active_texture->level[0], span->x + i, span->y);
        }
        if (s->has_fog) span->fog[i] = at(&s->slope[FOG], dx, dy) * w;
    }
}

static void stipple_span(struct context *gl, struct span *span)
{
    uint32_t row = gl->s.stipple.rows[span->y & 31];
    for (int i = 0; i < span->n; i++)
        if (!(row >> (31 - ((span->x + i) & 31)) & 1)) span->mask[i] = 0;
}

/* Spans without any stage but the depth test: colour is written at once. */
static void fill_fast(struct context *gl, const struct setup *s, int y, int left, int right)
{
    long row = (long)y * gl->fb->width;
    uint8_t(*out)[4] = gl->target + row;
    uint32_t *depth = gl->fb->depth + row;
    float dy = y + 0.5f - s->y;
    int tests = ON(DEPTH_TEST), writes = tests && gl->s.depth.mask;
    uint8_t flat[4];
    if (!s->has_color)
        for (int k = 0; k < 4; k++) flat[k] = (uint8_t)(s->flat[k] * 255 + 0.5f);
    for (int x = left; x <= right; x++) {
        float dx = x + 0.5f - s->x;
        if (tests) {
            uint32_t z = depth_of(at(&s->slope[Z], dx, dy));
            if (gl->s.depth.function == GL_LESS ? z >= depth[x] : z > depth[x]) continue;
            if (writes) depth[x] = z;
        }
        if (!s->has_color) {
            memcpy(out[x], flat, 4);
            continue;
        }
        float w = s->is_perspective ? 255 / at(&s->slope[W], dx, dy) : 255;
        for (int k = 0; k < 4; k++) {
            float c = at(&s->slope[COLOR + k], dx, dy) * w + 0.5f;
            out[x][k] = c < 0 ? 0 : c > 255 ? 255 : (uint8_t)c;
        }
    }
}

static int64_t subpixels(float v) { return lrintf(v * ONE); }

void raster_triangle(struct context *gl, const struct vertex *a, const struct vertex *b, const struct vertex *c,
    const float *flat, float offset)
{
    int64_t x[3] = { subpixels(a->win[0]), subpixels(b->win[0]), subpixels(c->win[0]) };
    int64_t y[3] = { subpixels(a->win[1]), subpixels(b->win[1]), subpixels(c->win[1]) };
    int64_t low = y[0], high = y[0];
    int64_t west = x[0], east = x[0];
    for (int i = 1; i < 3; i++) {
        if (y[i] < low) low = y[i];
        if (y[i] > high) high = y[i];
        if (x[i] < west) west = x[i];
        if (x[i] > east) east = x[i];
    }
    if (low < -FARTHEST || high > FARTHEST || west < -FARTHEST || east > FARTHEST) return;
    int64_t area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]);
    if (area == 0) return;
    const int *box = gl->polygon_box;
    /* pixels whose centres are between the extremes */
    int64_t first = (low + ONE / 2 - 1) >> SUBPIXEL_BITS, last = (high - ONE / 2) >> SUBPIXEL_BITS;
    int64_t from = (west + ONE / 2 - 1) >> SUBPIXEL_BITS, to = (east - ONE / 2) >> SUBPIXEL_BITS;
    if (first < box[1]) first = box[1];
    if (last > box[3] - 1) last = box[3] - 1;
    if (from < box[0]) from = box[0];
    if (to > box[2] - 1) to = box[2] - 1;
    if (first > last || from > to) return;
    gl->work += (uint64_t)(last - first + 1) * (to - from + 1);
    if (gl->work > gl->most_work) return;
    int second = area > 0 ? 1 : 2, third = 3 - second;
    struct side side[3] = { side_of(x[0], y[0], x[second], y[second]), side_of(x[second], y[second], x[third], y[third]),
        side_of(x[third], y[third], x[0], y[0]) };
    struct setup setup;
    int is_set = 0;
    for (int row = (int)first; row <= last; row++) {
        int left = (int)from, right = (int)to;
        for (int i = 0; i < 3 && left <= right; i++) narrow(&side[i], row, &left, &right);
        if (left > right) continue;
        if (!is_set) set_up(gl, &setup, a, b, c, flat, offset), is_set = 1;
        if (gl->fast_span) {
            fill_fast(gl, &setup, row, left, right);
            continue;
        }
        struct span *span = &gl->span;
        for (; left <= right; left += span->n) {
            span->x = left, span->y = row, span->n = right - left + 1 < SPAN ? right - left + 1 : SPAN;
            span->has_coverage = span->no_texture = 0;
            fill_span(gl, &setup, span);
            if (ON(POLYGON_STIPPLE)) stipple_span(gl, span);
            draw_span(gl, span);
        }
    }
}
