/* Fragments, a span of a row at a time: the stages between rasterization and the frame buffer, in OpenGL's order. */
#include "paths.h"

static int compare(GLenum function, uint32_t a, uint32_t b)
{
    switch (function) {
    case GL_NEVER: return 0;
    case GL_LESS: return a < b;
    case GL_EQUAL: return a == b;
    case GL_LEQUAL: return a <= b;
    case GL_GREATER: return a > b;
    case GL_NOTEQUAL: return a != b;
    case GL_GEQUAL: return a >= b;
    default: return 1;
    }
}

static void fog_stage(struct context *gl, struct span *span)
{
    const struct fog_group *g = &gl->s.fog;
    float scale = g->end == g->start ? 0 : 1 / (g->end - g->start);
    for (int i = 0; i < span->n; i++) {
        float z = span->fog[i], dz = g->density * z;
        float f = g->mode == GL_LINEAR ? (g->end - z) * scale : g->mode == GL_EXP ? expf(-dz) : expf(-dz * dz);
        f = clamp01(f);
        for (int k = 0; k < 3; k++) span->rgba[i][k] = f * span->rgba[i][k] + (1 - f) * g->color[k];
    }
}

static void alpha_stage(struct context *gl, struct span *span)
{
    uint32_t reference = (uint32_t)(gl->s.color.alpha_reference * 255 + 0.5f);
    for (int i = 0; i < span->n; i++)
        if (span->mask[i] && !compare(gl->s.color.alpha_function, (uint32_t)(span->rgba[i][3] * 255 + 0.5f), reference)) span->mask[i] = 0;
}

static uint8_t stencil_result(GLenum operation, uint8_t old, uint8_t reference)
{
    switch (operation) {
    case GL_ZERO: return 0;
    case GL_REPLACE: return reference;
    case GL_INCR: return old == 255 ? 255 : old + 1;
    case GL_DECR: return old == 0 ? 0 : old - 1;
    case GL_INVERT: return ~old;
    default: return old;
    }
}

static void stencil_depth_stage(struct context *gl, struct span *span)
{
    const struct stencil_group *g = &gl->s.stencil;
    long at = (long)span->y * gl->fb->width + span->x;
    uint32_t *depth = gl->fb->depth + at;
    uint8_t *stencil = gl->fb->stencil + at;
    int has_stencil = ON(STENCIL_TEST), has_depth = ON(DEPTH_TEST), writes = has_depth && gl->s.depth.mask;
    uint8_t reference = g->reference < 0 ? 0 : g->reference > 255 ? 255 : g->reference, write = g->write_mask;
    for (int i = 0; i < span->n; i++) {
        if (!span->mask[i]) continue;
        GLenum operation;
        if (has_stencil && !compare(g->function, reference & g->value_mask & 255, stencil[i] & g->value_mask & 255)) {
            operation = g->fail;
            span->mask[i] = 0;
        } else if (has_depth && !compare(gl->s.depth.function, span->z[i], depth[i])) {
            operation = g->depth_fail;
            span->mask[i] = 0;
        } else {
            operation = g->depth_pass;
            if (writes) depth[i] = span->z[i];
        }
        if (has_stencil) stencil[i] = (stencil[i] & ~write) | (stencil_result(operation, stencil[i], reference) & write);
    }
}

static void blend_factor(GLenum factor, const float *src, const float *dst, float *out)
{
    for (int k = 0; k < 4; k++)
        switch (factor) {
        case GL_ZERO: out[k] = 0; break;
        case GL_DST_COLOR: out[k] = dst[k]; break;
        case GL_ONE_MINUS_DST_COLOR: out[k] = 1 - dst[k]; break;
        case GL_SRC_COLOR: out[k] = src[k]; break;
        case GL_ONE_MINUS_SRC_COLOR: out[k] = 1 - src[k]; break;
        case GL_SRC_ALPHA: out[k] = src[3]; break;
        case GL_ONE_MINUS_SRC_ALPHA: out[k] = 1 - src[3]; break;
        case GL_DST_ALPHA: out[k] = dst[3]; break;
        case GL_ONE_MINUS_DST_ALPHA: out[k] = 1 - dst[3]; break;
        case GL_SRC_ALPHA_SATURATE: out[k] = k == 3 ? 1 : fminf(src[3], 1 - dst[3]); break;
        default: out[k] = 1;
        }
}

static uint8_t logic(GLenum operation, uint8_t s, uint8_t d)
{
    switch (operation) {
    case GL_CLEAR: return 0;
    case GL_AND: return s & d;
    case GL_AND_REVERSE: return s & ~d;
    case GL_COPY: return s;
    case GL_AND_INVERTED: return ~s & d;
    case GL_NOOP: return d;
    case GL_XOR: return s ^ d;
    case GL_OR: return s | d;
    case GL_NOR: return ~(s | d);
    case GL_EQUIV: return ~(s ^ d);
    case GL_INVERT: return ~d;
    case GL_OR_REVERSE: return s | ~d;
    case GL_COPY_INVERTED: return ~s;
    case GL_OR_INVERTED: return ~s | d;
    case GL_NAND: return ~(s & d);
    default: return 255;
    }
}

static void blend(struct context *gl, const float *src, const uint8_t *old, float *out)
{
    float dst[4], by_src[4], by_dst[4];
    for (int k = 0; k < 4; k++) dst[k] = old[k] * (1 / 255.0f);
    blend_factor(gl->s.color.source, src, dst, by_src);
    blend_factor(gl->s.color.destination, src, dst, by_dst);
    for (int k = 0; k < 4; k++) out[k] = clamp01(src[k] * by_src[k] + dst[k] * by_dst[k]);
}

static void color_stage(struct context *gl, struct span *span, uint8_t (*target)[4])
{
    uint8_t(*out)[4] = target + (long)span->y * gl->fb->width + span->x;
    int has_logic = ON(COLOR_LOGIC_OP), has_blend = ON(BLEND) && !has_logic;
    const GLboolean *mask = gl->s.color.mask;
    for (int i = 0; i < span->n; i++) {
        if (!span->mask[i]) continue;
        float blended[4];
        const float *c = span->rgba[i];
        if (has_blend) blend(gl, c, out[i], blended), c = blended;
        for (int k = 0; k < 4; k++) {
            uint8_t v = (uint8_t)(c[k] * 255 + 0.5f);
            if (has_logic) v = logic(gl->s.color.logic_op, v, out[i][k]);
            if (mask[k]) out[i][k] = v;
        }
    }
}

/* Cuts the span to the pixels that may change; 0 if there is none. */
static int clip_span(const struct context *gl, struct span *span)
{
    const int *box = gl->box;
    if (span->y < box[1] || span->y >= box[3]) return 0;
    if (span->x + span->n > box[2]) span->n = box[2] - span->x;
    if (span->n <= 0) return 0;
    if (span->x >= box[0]) return 1;
    int skip = box[0] - span->x;
    if (skip >= span->n) return 0;
    span->n -= skip, span->x = box[0];
    memmove(span->rgba, span->rgba + skip, span->n * sizeof *span->rgba);
    memmove(span->coord, span->coord + skip, span->n * sizeof *span->coord);
    memmove(span->lambda, span->lambda + skip, span->n * sizeof *span->lambda);
    memmove(span->fog, span->fog + skip, span->n * sizeof *span->fog);
    memmove(span->z, span->z + skip, span->n * sizeof *span->z);
    memmove(span->mask, span->mask + skip, span->n);
    memmove(span->coverage, span->coverage + skip, span->n * sizeof *span->coverage);
    return 1;
}

void draw_span(struct context *gl, struct span *span)
{
    if (!clip_span(gl, span)) return;
    gl->work += span->n;
    int early = !ON(ALPHA_TEST), tests = ON(STENCIL_TEST) || ON(DEPTH_TEST);
    if (early && tests) stencil_depth_stage(gl, span);
    if (gl->active_texture && !span->no_texture) texture_span(gl, span);
    if (ON(FOG)) fog_stage(gl, span);
    if (span->has_coverage)
        for (int i = 0; i < span->n; i++) span->rgba[i][3] *= span->coverage[i];
    if (!early) {
        alpha_stage(gl, span);
        if (tests) stencil_depth_stage(gl, span);
    }
    if (gl->target) color_stage(gl, span, gl->target);
    if (gl->second) color_stage(gl, span, gl->second);
}

const struct rasterizer software_rasterizer = { raster_triangle, raster_line, raster_point, NULL };

static void no_triangle(struct context *gl, const struct vertex *a, const struct vertex *b, const struct vertex *c, const float *flat,
    float offset)
{
    (void)gl, (void)a, (void)b, (void)c, (void)flat, (void)offset;
}
static void no_line(struct context *gl, const struct vertex *a, const struct vertex *b, const float *flat, float offset)
{
    (void)gl, (void)a, (void)b, (void)flat, (void)offset;
}
static void no_point(struct context *gl, const struct vertex *v, const float *flat, float offset)
{
    (void)gl, (void)v, (void)flat, (void)offset;
}
const struct rasterizer null_rasterizer = { no_triangle, no_line, no_point, NULL };

/* The rectangle of pixels that may change, the buffers that are drawn to, and whether spans have no stage but depth and colour. */
void validate_raster(struct context *gl)
{
    struct framebuffer *fb = gl->fb;
    const GLint *scissor = gl->s.scissor.box, *viewport = gl->s.viewport.box;
    int *box = gl->box, *polygon = gl->polygon_box;
    box[0] = box[1] = 0, box[2] = fb->width, box[3] = fb->height;
    for (int k = 0; k < 2; k++) {
        if (ON(SCISSOR_TEST)) {
            int64_t end = (int64_t)scissor[k] + scissor[2 + k];
            if (scissor[k] > box[k]) box[k] = scissor[k];
            if (end < box[2 + k]) box[2 + k] = (int)end;
        }
        int64_t end = (int64_t)viewport[k] + viewport[2 + k];
        polygon[k] = viewport[k] > box[k] ? viewport[k] : box[k];
        polygon[2 + k] = end < box[2 + k] ? (int)end : box[2 + k];
    }
    GLenum buffer = gl->s.color.draw_buffer;
    int front = buffer == GL_FRONT || buffer == GL_FRONT_LEFT || buffer == GL_LEFT || buffer == GL_FRONT_AND_BACK;
    int back = buffer == GL_BACK || buffer == GL_BACK_LEFT || buffer == GL_LEFT || buffer == GL_FRONT_AND_BACK;
    gl->target = back && fb->color[1] ? fb->color[1] : NULL;
    gl->second = front && fb->color[0] ? fb->color[0] : NULL;
    if (!gl->target) gl->target = gl->second, gl->second = NULL;
    int reads_front = gl->s.pixel.read_buffer != GL_BACK && gl->s.pixel.read_buffer != GL_BACK_LEFT;
    gl->source = reads_front && fb->color[0] ? fb->color[0] : fb->color[1] ? fb->color[1] : fb->color[0];
    const GLboolean *mask = gl->s.color.mask;
    int textured = ON(TEXTURE_1D) || ON(TEXTURE_2D);
    gl->fast_span = gl->target && !gl->second && !textured && !ON(FOG) && !ON(ALPHA_TEST) && !ON(STENCIL_TEST) && !ON(BLEND)
        && !ON(COLOR_LOGIC_OP) && !ON(POLYGON_STIPPLE) && mask[0] && mask[1] && mask[2] && mask[3]
        && (!ON(DEPTH_TEST) || gl->s.depth.function == GL_LESS || gl->s.depth.function == GL_LEQUAL);
}
