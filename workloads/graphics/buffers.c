/* Frame buffers: clearing, accumulation, and their memory. */
#include "paths.h"

static void clear_color(struct context *gl, uint8_t (*target)[4])
{
    uint8_t c[4];
    const GLboolean *mask = gl->s.color.mask;
    for (int k = 0; k < 4; k++) c[k] = (uint8_t)(gl->s.color.clear[k] * 255 + 0.5f);
    int all = mask[0] && mask[1] && mask[2] && mask[3];
    for (int y = gl->box[1]; y < gl->box[3]; y++) {
        uint8_t(*row)[4] = target + (long)y * gl->fb->width;
        for (int x = gl->box[0]; x < gl->box[2]; x++) {
            if (all) memcpy(row[x], c, 4);
            else
                for (int k = 0; k < 4; k++)
                    if (mask[k]) row[x][k] = c[k];
        }
    }
}

/* Counts the pixels that may change; 0 if that is beyond the limit of work. */
static int has_time_for_box(struct context *gl)
{
    const int *box = gl->box;
    if (box[2] > box[0] && box[3] > box[1]) gl->work += (uint64_t)(box[2] - box[0]) * (box[3] - box[1]);
    return gl->work <= gl->most_work;
}

void exec_Clear(struct context *gl, GLbitfield mask)
{
    if (mask & ~(GLbitfield)(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT | GL_ACCUM_BUFFER_BIT)) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    if (gl->render_mode != GL_RENDER) return;
    if (gl->dirty) validate(gl);
    if (!has_time_for_box(gl)) return;
    struct framebuffer *fb = gl->fb;
    if (mask & GL_COLOR_BUFFER_BIT && gl->target) clear_color(gl, gl->target);
    if (mask & GL_COLOR_BUFFER_BIT && gl->second) clear_color(gl, gl->second);
    uint32_t depth = (uint32_t)(gl->s.depth.clear * 16777215.0 + 0.5);
    uint8_t write = gl->s.stencil.write_mask, stencil = gl->s.stencil.clear & write;
    for (int y = gl->box[1]; y < gl->box[3]; y++)
        for (int x = gl->box[0]; x < gl->box[2]; x++) {
            long at = (long)y * fb->width + x;
            if (mask & GL_DEPTH_BUFFER_BIT && gl->s.depth.mask) fb->depth[at] = depth;
            if (mask & GL_STENCIL_BUFFER_BIT) fb->stencil[at] = (fb->stencil[at] & ~write) | stencil;
            if (mask & GL_ACCUM_BUFFER_BIT && fb->accum)
                for (int k = 0; k < 4; k++) fb->accum[at][k] = (int16_t)lrintf(gl->s.accum.clear[k] * 32767);
        }
}

static int16_t to_accum(float v) { return (int16_t)lrintf(v < -32767 ? -32767 : v > 32767 ? 32767 : v); }

static void return_accum(struct context *gl, long at, float value, uint8_t (*target)[4])
{
    for (int k = 0; k < 4; k++)
        if (gl->s.color.mask[k]) target[at][k] = (uint8_t)(clamp01(gl->fb->accum[at][k] * value * (1 / 32767.0f)) * 255 + 0.5f);
}

void exec_Accum(struct context *gl, GLenum operation, GLfloat value)
{
    if (operation < GL_ACCUM || operation > GL_ADD) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (gl->render_mode != GL_RENDER) return;
    if (gl->dirty) validate(gl);
    if (!has_time_for_box(gl)) return;
    struct framebuffer *fb = gl->fb;
    if (!fb->accum) fb->accum = calloc((size_t)fb->width * fb->height + 1, sizeof *fb->accum);
    if (!fb->accum) {
        gl_error(gl, GL_OUT_OF_MEMORY);
        return;
    }
    for (int y = gl->box[1]; y < gl->box[3]; y++)
        for (int x = gl->box[0]; x < gl->box[2]; x++) {
            long at = (long)y * fb->width + x;
            int16_t *a = fb->accum[at];
            if (operation == GL_RETURN) {
                if (gl->target) return_accum(gl, at, value, gl->target);
                if (gl->second) return_accum(gl, at, value, gl->second);
                continue;
            }
            for (int k = 0; k < 4; k++) {
                float color = gl->source ? gl->source[at][k] * (32767 / 255.0f) : 0;
                a[k] = to_accum(operation == GL_ACCUM ? a[k] + color * value : operation == GL_LOAD ? color * value
                        : operation == GL_MULT ? a[k] * value : a[k] + value * 32767);
            }
        }
}

/* Allocates pixels of a size; memory that is lacking leaves a buffer of no pixels. */
void resize_framebuffer(struct framebuffer *fb, int width, int height, void *pixels)
{
    if (!fb->is_foreign) free(fb->color[0]);
    free(fb->color[1]);
    free(fb->depth);
    free(fb->stencil);
    free(fb->accum);
    size_t count = (size_t)width * height + 1;
    fb->color[0] = pixels ? pixels : calloc(count, 4);
    fb->is_foreign = pixels != NULL;
    fb->color[1] = fb->is_double ? calloc(count, 4) : NULL;
    fb->depth = calloc(count, sizeof *fb->depth);
    fb->stencil = calloc(count, 1);
    fb->accum = NULL;
    int has_all = fb->color[0] && (fb->color[1] || !fb->is_double) && fb->depth && fb->stencil;
    fb->width = has_all ? width : 0, fb->height = has_all ? height : 0;
}

struct framebuffer *make_framebuffer(int width, int height, void *pixels, int is_double)
{
    struct framebuffer *fb = calloc(1, sizeof *fb);
    if (!fb) return NULL;
    fb->is_double = is_double;
    resize_framebuffer(fb, width, height, pixels);
    return fb;
}

void free_framebuffer(struct framebuffer *fb)
{
    if (!fb) return;
    if (!fb->is_foreign) free(fb->color[0]);
    free(fb->color[1]);
    free(fb->depth);
    free(fb->stencil);
    free(fb->accum);
    free(fb);
}
