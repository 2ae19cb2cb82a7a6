/* Pixel rectangles: drawing, reading and copying, bitmaps, and the transfer between memory and fragments. */
#include "paths.h"

/* Raster positions that are whole by intention miss it a little by rounding. */
static float whole_if_near(float v)
{
    float whole = rintf(v);
    return fabsf(v - whole) < 1.0f / 4096 ? whole : v;
}

static float mapped(const struct context *gl, GLenum map, float v)
{
    int i = map - GL_PIXEL_MAP_I_TO_I, size = gl->map_size[i];
    int at = map >= GL_PIXEL_MAP_R_TO_R ? (int)(clamp01(v) * (size - 1) + 0.5f) : (int)v & (size - 1);
    return gl->map_values[i][at];
}

void transfer_rgba(struct context *gl, int width, float (*rgba)[4])
{
    const struct pixel_group *p = &gl->s.pixel;
    for (int x = 0; x < width; x++)
        for (int k = 0; k < 4; k++) {
            float c = rgba[x][k] * p->scale[k] + p->bias[k];
            rgba[x][k] = p->map_color ? mapped(gl, GL_PIXEL_MAP_R_TO_R + k, c) : c;
        }
}

static void shift_index(const struct pixel_group *p, float *index)
{
    *index = ldexpf(*index, p->index_shift) + p->index_offset;
}

/* Colour indices become colours by the maps from I to R, G, B, A. */
static void index_to_rgba(struct context *gl, int width, float (*rgba)[4])
{
    for (int x = 0; x < width; x++) {
        float index = rgba[x][0];
        shift_index(&gl->s.pixel, &index);
        for (int k = 0; k < 4; k++) rgba[x][k] = mapped(gl, GL_PIXEL_MAP_I_TO_R + k, index);
    }
}

void read_rgba(struct context *gl, int x, int y, int width, float (*out)[4])
{
    if (gl->dirty) validate(gl);
    const struct framebuffer *fb = gl->fb;
    for (int i = 0; i < width; i++) {
        int is_inside = gl->source && y >= 0 && y < fb->height && x + i >= 0 && x + i < fb->width;
        for (int k = 0; k < 4; k++) out[i][k] = is_inside ? gl->source[(long)y * fb->width + x + i][k] * (1 / 255.0f) : 0;
    }
}

static float read_other(const struct context *gl, GLenum format, int x, int y)
{
    const struct framebuffer *fb = gl->fb;
    if (x < 0 || y < 0 || x >= fb->width || y >= fb->height) return 0;
    long at = (long)y * fb->width + x;
    return format == GL_STENCIL_INDEX ? fb->stencil[at] : fb->depth[at] * (1 / 16777215.0);
}

/* Stencil indices and depths after the transfer. */
static void transfer_other(struct context *gl, GLenum format, int width, float (*values)[4])
{
    const struct pixel_group *p = &gl->s.pixel;
    for (int x = 0; x < width; x++) {
        float *v = &values[x][0];
        if (format == GL_DEPTH_COMPONENT) {
            *v = clamp01(*v * p->depth_scale + p->depth_bias);
        } else {
            shift_index(p, v);
            if (p->map_stencil) *v = mapped(gl, GL_PIXEL_MAP_S_TO_S, *v);
        }
    }
}

static void write_stencil(struct context *gl, int x0, int x1, int y0, int y1, float value)
{
    const int *box = gl->box;
    uint8_t mask = gl->s.stencil.write_mask;
    for (int y = y0 < box[1] ? box[1] : y0; y < y1 && y < box[3]; y++)
        for (int x = x0 < box[0] ? box[0] : x0; x < x1 && x < box[2]; x++) {
            uint8_t *at = &gl->fb->stencil[(long)y * gl->fb->width + x];
            *at = (*at & ~mask) | ((uint8_t)(int)value & mask);
        }
}

/* The pixels that column (or row) i covers under a zoom: those whose centres it contains. */
static void zoomed(float origin, float zoom, int i, int *from, int *to)
{
    origin = whole_if_near(origin);
    float a = origin + i * zoom, b = origin + (i + 1) * zoom;
    if (a > b) {
        float t = a;
        a = b, b = t;
    }
    /* fmaxf and fminf let no number through that is none */
    *from = (int)ceilf(fminf(fmaxf(a, -1), 4 * MAX_SIZE) - 0.5f), *to = (int)ceilf(fmaxf(fminf(b, 4 * MAX_SIZE), -1) - 0.5f);
}

/* Draws a row of colours or depths, zoomed, at the raster position. */
static void draw_row(struct context *gl, GLenum format, int width, int row, float (*values)[4])
{
    const struct current_group *c = &gl->s.current;
    const float *zoom = gl->s.pixel.zoom;
    int y0, y1, x0, x1;
    zoomed(c->raster_position[1], zoom[1], row, &y0, &y1);
    struct span *span = &gl->span;
    if (y0 < gl->box[1]) y0 = gl->box[1];
    if (y1 > gl->box[3]) y1 = gl->box[3];
    for (int y = y0; y < y1; y++) {
        gl->work += width;
        if (gl->work > gl->most_work) return;
        span->n = 0, span->y = y, span->has_coverage = 0, span->no_texture = 0;
        int start = 0, step = zoom[0] < 0 ? -1 : 1, first = step < 0 ? width - 1 : 0;
        for (int i = 0, column = first; i < width; i++, column += step) {
            zoomed(c->raster_position[0], zoom[0], column, &x0, &x1);
            if (format == GL_STENCIL_INDEX) {
                write_stencil(gl, x0, x1, y, y + 1, values[column][0]);
                continue;
            }
            if (x0 < gl->box[0]) x0 = gl->box[0];
            if (x1 > gl->box[2]) x1 = gl->box[2];
            for (int x = x0; x < x1; x++) {
                if (span->n == 0) start = x;
                int at = span->n++;
                int is_depth = format == GL_DEPTH_COMPONENT;
                float z = is_depth ? values[column][0] : c->raster_position[2];
                span->z[at] = (uint32_t)(z * 16777215.0 + 0.5);
                for (int k = 0; k < 4; k++) span->rgba[at][k] = is_depth ? c->raster_color[k] : clamp01(values[column][k]);
                span->coord[at][0] = c->raster_coord[0], span->coord[at][1] = c->raster_coord[1];
                span->fog[at] = c->raster_distance, span->lambda[at] = -100, span->mask[at] = 1;
                if (span->n < SPAN) continue;
                span->x = start;
                draw_span(gl, span);
                span->n = 0;
            }
        }
        span->x = start;
        if (span->n) draw_span(gl, span);
    }
}

static int can_draw(struct context *gl)
{
    if (gl->dirty) validate(gl);
    if (gl->render_mode == GL_FEEDBACK && gl->s.current.raster_valid) report_token(gl, GL_DRAW_PIXEL_TOKEN);
    return gl->s.current.raster_valid && gl->render_mode == GL_RENDER;
}

void exec_DrawPixels(struct context *gl, GLsizei width, GLsizei height, GLenum format, GLenum type, const void *v)
{
    if (width < 0 || height < 0) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    if (!check_format(gl, format, type) || !can_draw(gl) || !v) return;
    float(*row)[4] = malloc((size_t)(width + 1) * sizeof *row);
    for (int y = 0; y < height && row; y++) {
        unpack_rgba(gl, width, format, type, image_row(&gl->client.unpack, v, width, format, type, y), row);
        if (format == GL_COLOR_INDEX) index_to_rgba(gl, width, row);
        else if (format == GL_STENCIL_INDEX || format == GL_DEPTH_COMPONENT) transfer_other(gl, format, width, row);
        else transfer_rgba(gl, width, row);
        draw_row(gl, format, width, y, row);
    }
    free(row);
}

void exec_CopyPixels(struct context *gl, GLint x, GLint y, GLsizei width, GLsizei height, GLenum type)
{
    if (type != GL_COLOR && type != GL_DEPTH && type != GL_STENCIL) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (width < 0 || height < 0) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    if (!can_draw(gl)) return;
    GLenum format = type == GL_COLOR ? GL_RGBA : type == GL_DEPTH ? GL_DEPTH_COMPONENT : GL_STENCIL_INDEX;
    /* all is read before anything is drawn: source and destination may overlap */
    int has_room = width <= 4 * MAX_SIZE && height <= 4 * MAX_SIZE;
    float(*rows)[4] = has_room ? gl_allocate(gl, NULL, (size_t)(width + 1) * (height + 1) * sizeof *rows) : NULL;
    if (!rows) gl_error(gl, GL_OUT_OF_MEMORY);
    gl->work += rows ? (uint64_t)width * height : 0;
    for (int j = 0; j < height && rows && gl->work <= gl->most_work; j++) {
        float(*row)[4] = rows + (size_t)j * width;
        if (type == GL_COLOR) {
            read_rgba(gl, x, y + j, width, row);
            transfer_rgba(gl, width, row);
            continue;
        }
        for (int i = 0; i < width; i++) row[i][0] = read_other(gl, format, x + i, y + j);
        transfer_other(gl, format, width, row);
    }
    for (int j = 0; j < height && rows; j++) draw_row(gl, format, width, j, rows + (size_t)j * width);
    gl_release(gl, rows);
}

void exec_Bitmap(struct context *gl, GLsizei width, GLsizei height, GLfloat x_origin, GLfloat y_origin, GLfloat x_move, GLfloat y_move,
    const void *v)
{
    struct current_group *c = &gl->s.current;
    if (width < 0 || height < 0) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    if (gl->dirty) validate(gl);
    if (!c->raster_valid) return;
    if (gl->render_mode == GL_FEEDBACK) report_token(gl, GL_BITMAP_TOKEN);
    float left = whole_if_near(c->raster_position[0] - x_origin), low = whole_if_near(c->raster_position[1] - y_origin);
    int is_drawn = v && gl->render_mode == GL_RENDER && fabsf(left) < 1e6f && fabsf(low) < 1e6f;
    int x0 = is_drawn ? (int)floorf(left) : 0, y0 = is_drawn ? (int)floorf(low) : 0;
    struct span *span = &gl->span;
    for (int y = 0; y < height && is_drawn; y++) {
        const uint8_t *row = bits_row(&gl->client.unpack, v, width, y);
        for (int x = 0; x < width; x += SPAN) {
            span->x = x0 + x, span->y = y0 + y, span->n = width - x < SPAN ? width - x : SPAN, span->has_coverage = span->no_texture = 0;
            for (int i = 0; i < span->n; i++) {
                span->mask[i] = bit_of(&gl->client.unpack, row, x + i);
                span->z[i] = (uint32_t)(c->raster_position[2] * 16777215.0 + 0.5);
                memcpy(span->rgba[i], c->raster_color, sizeof c->raster_color);
                span->coord[i][0] = c->raster_coord[0], span->coord[i][1] = c->raster_coord[1];
                span->fog[i] = c->raster_distance, span->lambda[i] = -100;
            }
            draw_span(gl, span);
        }
    }
    c->raster_position[0] += x_move, c->raster_position[1] += y_move;
}

void APIENTRY glReadPixels(GLint x, GLint y, GLsizei width, GLsizei height, GLenum format, GLenum type, void *v)
{
    struct context *gl = current;
    if (gl->inside || width < 0 || height < 0) {
        gl_error(gl, gl->inside ? GL_INVALID_OPERATION : GL_INVALID_VALUE);
        return;
    }
    if (!check_format(gl, format, type)) return;
    if (format == GL_COLOR_INDEX || type == GL_BITMAP) {
        gl_error(gl, GL_INVALID_OPERATION);
        return;
    }
    float(*row)[4] = malloc((size_t)(width + 1) * sizeof *row);
    for (int j = 0; j < height && row; j++) {
        if (format == GL_STENCIL_INDEX || format == GL_DEPTH_COMPONENT) {
            for (int i = 0; i < width; i++) row[i][0] = read_other(gl, format, x + i, y + j);
            transfer_other(gl, format, width, row);
        } else {
            read_rgba(gl, x, y + j, width, row);
            transfer_rgba(gl, width, row);
        }
        pack_rgba(gl, width, format, type, row, (void *)image_row(&gl->client.pack, v, width, format, type, j));
    }
    free(row);
}

void APIENTRY glGetTexImage(GLenum target, GLint level, GLenum format, GLenum type, void *v)
{
    struct context *gl = current;
    struct texture *t = texture_of(gl, target);
    if (!t || level < 0 || level >= LEVELS) {
        gl_error(gl, t ? GL_INVALID_VALUE : GL_INVALID_ENUM);
        return;
    }
    if (!check_format(gl, format, type)) return;
    if (format == GL_COLOR_INDEX || format == GL_STENCIL_INDEX || format == GL_DEPTH_COMPONENT) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    const struct texture_image *image = &t->level[level];
    float(*row)[4] = malloc((size_t)(image->width + 1) * sizeof *row);
    for (int y = 0; y < image->height && row && image->texels; y++) {
        for (int x = 0; x < image->width; x++)
            for (int k = 0; k < 4; k++) row[x][k] = image->texels[(size_t)y * image->width + x][k] * (1 / 255.0f);
        transfer_rgba(gl, image->width, row);
        pack_rgba(gl, image->width, format, type, row, (void *)image_row(&gl->client.pack, v, image->width, format, type, y));
    }
    free(row);
}

void exec_PolygonStipple(struct context *gl, const void *v)
{
    if (!v) return;
    for (int y = 0; y < 32; y++) {
        const uint8_t *row = bits_row(&gl->client.unpack, v, 32, y);
        uint32_t bits = 0;
        for (int x = 0; x < 32; x++) bits = bits << 1 | bit_of(&gl->client.unpack, row, x);
        gl->s.stipple.rows[y] = bits;
    }
    gl->dirty |= DIRTY_RASTER;
}

void exec_PixelZoom(struct context *gl, GLfloat x, GLfloat y) { gl->s.pixel.zoom[0] = x, gl->s.pixel.zoom[1] = y; }

void exec_PixelTransferf(struct context *gl, GLenum name, GLfloat v)
{
    struct pixel_group *p = &gl->s.pixel;
    switch (name) {
    case GL_MAP_COLOR: p->map_color = v != 0; return;
    case GL_MAP_STENCIL: p->map_stencil = v != 0; return;
    case GL_INDEX_SHIFT: p->index_shift = (GLint)v; return;
    case GL_INDEX_OFFSET: p->index_offset = (GLint)v; return;
    case GL_RED_SCALE: p->scale[0] = v; return;
    case GL_GREEN_SCALE: p->scale[1] = v; return;
    case GL_BLUE_SCALE: p->scale[2] = v; return;
    case GL_ALPHA_SCALE: p->scale[3] = v; return;
    case GL_RED_BIAS: p->bias[0] = v; return;
    case GL_GREEN_BIAS: p->bias[1] = v; return;
    case GL_BLUE_BIAS: p->bias[2] = v; return;
    case GL_ALPHA_BIAS: p->bias[3] = v; return;
    case GL_DEPTH_SCALE: p->depth_scale = v; return;
    case GL_DEPTH_BIAS: p->depth_bias = v; return;
    default: gl_error(gl, GL_INVALID_ENUM);
    }
}

void exec_PixelMapfv(struct context *gl, GLenum map, GLsizei size, const GLfloat *v)
{
    if (map < GL_PIXEL_MAP_I_TO_I || map > GL_PIXEL_MAP_A_TO_A) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (size < 1 || size > PIXEL_MAP || (map <= GL_PIXEL_MAP_I_TO_A && (size & (size - 1)))) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    int i = map - GL_PIXEL_MAP_I_TO_I;
    gl->map_size[i] = size;
    for (int k = 0; k < size; k++) gl->map_values[i][k] = map <= GL_PIXEL_MAP_S_TO_S ? v[k] : clamp01(v[k]);
}
