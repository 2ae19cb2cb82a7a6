/* Texture sampling and the texture environment. */
#include "paths.h"

int level_of_detail_needed(const struct texture *t)
{
    return t->min_filter != t->mag_filter;
}

/* The index of a texel under a wrap mode; -1 is the border. */
static int wrap_index(GLint wrap, int i, int size)
{
    if (wrap == GL_REPEAT) return i & (size - 1);
    return i < 0 || i >= size ? -1 : i;
}

static void fetch(const struct texture *t, const struct texture_image *image, int x, int y, float *out)
{
    x = wrap_index(t->wrap_s, x, image->width);
    y = t->target == GL_TEXTURE_1D ? 0 : wrap_index(t->wrap_t, y, image->height);
    if (x < 0 || y < 0) {
        memcpy(out, t->border, sizeof t->border);
        return;
    }
    const uint8_t *texel = image->texels[(size_t)y * image->width + x];
    for (int k = 0; k < 4; k++) out[k] = texel[k] * (1 / 255.0f);
}

static float wrapped(GLint wrap, float c) { return wrap == GL_CLAMP ? clamp01(c) : c - floorf(c); }

static void nearest(const struct texture *t, const struct texture_image *image, const float *coord, float *out)
{
    int x = (int)(wrapped(t->wrap_s, coord[0]) * image->width), y = (int)(wrapped(t->wrap_t, coord[1]) * image->height);
    if (x >= image->width) x = image->width - 1;
    if (y >= image->height) y = image->height - 1;
    fetch(t, image, x, y, out);
}

static void linear(const struct texture *t, const struct texture_image *image, const float *coord, float *out)
{
    float u = wrapped(t->wrap_s, coord[0]) * image->width - 0.5f, v = wrapped(t->wrap_t, coord[1]) * image->height - 0.5f;
    if (t->target == GL_TEXTURE_1D) v = 0;
    float x0 = floorf(u), y0 = floorf(v), a = u - x0, b = v - y0, texel[4][4];
    for (int i = 0; i < 4; i++) fetch(t, image, (int)x0 + (i & 1), (int)y0 + (i >> 1), texel[i]);
    for (int k = 0; k < 4; k++) {
        float lower = texel[0][k] + a * (texel[1][k] - texel[0][k]), upper = texel[2][k] + a * (texel[3][k] - texel[2][k]);
        out[k] = lower + b * (upper - lower);
    }
}

static void sample_level(const struct texture *t, int level, int is_linear, const float *coord, float *out)
{
    (is_linear ? linear : nearest)(t, &t->level[level], coord, out);
}

static void sample(const struct texture *t, const float *coord, float lambda, float *out)
{
    float threshold = t->mag_filter == GL_LINEAR && (t->min_filter == GL_NEAREST_MIPMAP_NEAREST || t->min_filter == GL_NEAREST_MIPMAP_LINEAR)
        ? 0.5f : 0;
    if (t->min_filter == t->mag_filter || !(lambda > threshold)) {
        sample_level(t, 0, t->mag_filter == GL_LINEAR, coord, out);
        return;
    }
    int is_linear = t->min_filter == GL_LINEAR || t->min_filter == GL_LINEAR_MIPMAP_NEAREST || t->min_filter == GL_LINEAR_MIPMAP_LINEAR;
    int last = t->last_level;
    if (lambda > LEVELS) lambda = LEVELS;
    if (t->min_filter == GL_NEAREST || t->min_filter == GL_LINEAR) {
        sample_level(t, 0, is_linear, coord, out);
    } else if (t->min_filter == GL_NEAREST_MIPMAP_NEAREST || t->min_filter == GL_LINEAR_MIPMAP_NEAREST) {
        int level = (int)(lambda + 0.5f);
        sample_level(t, level > last ? last : level, is_linear, coord, out);
    } else {
        int level = (int)lambda;
        if (level >= last) {
            sample_level(t, last, is_linear, coord, out);
            return;
        }
        float next[4], f = lambda - level;
        sample_level(t, level, is_linear, coord, out);
        sample_level(t, level + 1, is_linear, coord, next);
        for (int k = 0; k < 4; k++) out[k] += f * (next[k] - out[k]);
    }
}

/* Combines a fragment's colour with a texel, by the table of the specification's section on texture environments. */
static void environment(const struct texture_group *g, int format, const float *t, float *c)
{
    int has_color = format != GL_ALPHA, has_alpha = format != GL_LUMINANCE && format != GL_RGB;
    for (int k = 0; k < 3 && has_color; k++)
        switch (g->env_mode) {
        case GL_MODULATE: c[k] *= t[k]; break;
        case GL_REPLACE: c[k] = t[k]; break;
        case GL_DECAL: c[k] = format == GL_RGBA ? c[k] + t[3] * (t[k] - c[k]) : format == GL_RGB ? t[k] : c[k]; break;
        default: c[k] += t[k] * (g->env_color[k] - c[k]);
        }
    if (!has_alpha || g->env_mode == GL_DECAL) return;
    if (g->env_mode == GL_REPLACE) c[3] = t[3];
    else if (g->env_mode == GL_BLEND && format == GL_INTENSITY) c[3] += t[3] * (g->env_color[3] - c[3]);
    else c[3] *= t[3];
}

void texture_span(struct context *gl, struct span *span)
{
    const struct texture *t = gl->active_texture;
    for (int i = 0; i < span->n; i++) {
        if (!span->mask[i]) continue;
        float texel[4];
        sample(t, span->coord[i], span->lambda[i], texel);
        environment(&gl->s.texture, t->level[0].format, texel, span->rgba[i]);
    }
}
