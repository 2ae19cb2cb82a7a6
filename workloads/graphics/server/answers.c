/* Replies, and the requests of queries.def: the server calls the library's functions and sends what they write. */
#include "server.h"

/* ---- replies */

/* Null if memory is short: the client goes then, as it cannot go on without its reply. */
uint8_t *append_bytes(struct bytes *b, size_t n)
{
    if (b->used + n > b->capacity) {
        size_t capacity = b->used + n + 4096;
        uint8_t *grown = realloc(b->data, capacity);
        if (!grown) return NULL;
        b->data = grown, b->capacity = capacity;
    }
    uint8_t *at = b->data + b->used;
    memset(at, 0, n);
    b->used += n;
    return at;
}

/* A reply that values follow; where they go. */
uint8_t *add_reply(struct client *c, struct message m, size_t bytes)
{
    m.type = MESSAGE_REPLY, m.sequence = c->sequence, m.words = (uint32_t)(padded(bytes) / 4);
    uint8_t *at = append_bytes(&c->out, sizeof m + padded(bytes));
    if (!at) return NULL;
    memcpy(at, &m, sizeof m);
    return at + sizeof m;
}

int refuse_request(struct client *c, unsigned error)
{
    struct message m = { .type = MESSAGE_ERROR, .code = (uint8_t)error, .sequence = c->sequence };
    uint8_t *at = append_bytes(&c->out, sizeof m);
    c->refused++;
    if (at) memcpy(at, &m, sizeof m);
    return at != NULL;
}

static int reply_values(struct client *c, const void *values, size_t count, size_t size)
{
    struct message m = { .count = (uint32_t)count };
    if (count == 1) memcpy(m.inline_value, values, size);
    uint8_t *at = add_reply(c, m, count == 1 ? 0 : count * size);
    if (at && count > 1) memcpy(at, values, count * size);
    return at != NULL;
}

/* ---- queries: w has the operands after the context's tag */

/* The values that a query writes, none if it failed. */
#define ANSWER_VALUES(name, code, T, values, arguments, operands) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        T v[MOST_VALUES_OF(code)] = { 0 }; \
        GLenum a = w[0], b = w[1], d = w[2], before = gl->error; \
        (void)a, (void)b, (void)d; \
        if (count != operands) return refuse_request(c, BAD_LENGTH); \
        gl->error = GL_NO_ERROR; \
        gl##name arguments; \
        int n = gl->error ? 0 : (values); \
        if (before) gl->error = before; \
        return reply_values(c, v, n < 0 || n > MOST_VALUES_OF(code) ? 0 : (size_t)n, sizeof *v); \
    }
#define VALUES1(name, code, T, values) ANSWER_VALUES(name, code, T, values, (a, v), 1)
#define VALUES2(name, code, T, values) ANSWER_VALUES(name, code, T, values, (a, b, v), 2)
#define VALUES3(name, code, T, values) ANSWER_VALUES(name, code, T, values, (a, (GLint)b, d, v), 3)
#define RESULT0(result, name, code) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        (void)gl, (void)w; \
        if (count != 0) return refuse_request(c, BAD_LENGTH); \
        return add_reply(c, (struct message){ .value = (uint32_t)gl##name() }, 0) != NULL; \
    }
#define RESULT1(result, name, code, A) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        (void)gl; \
        if (count != 1) return refuse_request(c, BAD_LENGTH); \
        return add_reply(c, (struct message){ .value = (uint32_t)gl##name((A)w[0]) }, 0) != NULL; \
    }
#define REQUEST0(name, code) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        (void)gl, (void)w; \
        if (count != 0) return refuse_request(c, BAD_LENGTH); \
        gl##name(); \
        return 1; \
    }
#define REQUEST2(name, code, A, B) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        (void)gl; \
        if (count != 2) return refuse_request(c, BAD_LENGTH); \
        gl##name((A)w[0], (B)w[1]); \
        return 1; \
    }
#define OTHER(result, name, code, parameters, arguments) static answerer answer_##name;
#include "../queries.def"

/* Words that feedback and selection may report at a time. */
enum { MOST_REPORT = 1 << 20 };

static int answer_FeedbackBuffer(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 2) return refuse_request(c, BAD_LENGTH);
    GLsizei size = (GLsizei)w[0];
    GLfloat *old = gl->feedback_buffer, *fresh = size >= 0 && size <= MOST_REPORT ? calloc((size_t)size + 1, sizeof *fresh) : NULL;
    if (!fresh && size >= 0) gl_error(gl, GL_OUT_OF_MEMORY);
    else glFeedbackBuffer(size, w[1], fresh);
    free(gl->feedback_buffer == fresh && fresh ? old : fresh);
    return 1;
}

static int answer_SelectBuffer(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 1) return refuse_request(c, BAD_LENGTH);
    GLsizei size = (GLsizei)w[0];
    GLuint *old = gl->select_buffer, *fresh = size >= 0 && size <= MOST_REPORT ? calloc((size_t)size + 1, sizeof *fresh) : NULL;
    if (!fresh && size >= 0) gl_error(gl, GL_OUT_OF_MEMORY);
    else glSelectBuffer(size, fresh);
    free(gl->select_buffer == fresh && fresh ? old : fresh);
    return 1;
}

static int answer_RenderMode(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 1) return refuse_request(c, BAD_LENGTH);
    GLenum before = gl->render_mode;
    gl->reported = 0;
    GLint result = glRenderMode(w[0]);
    size_t words = (size_t)gl->reported;
    const void *report = before == GL_SELECT ? (const void *)gl->select_buffer : gl->feedback_buffer;
    uint8_t *at = add_reply(c, (struct message){ .value = (uint32_t)result, .count = (uint32_t)words, .extra = { gl->render_mode } }, 4 * words);
    if (at && words) memcpy(at, report, 4 * words);
    return at != NULL;
}

static void flush_drawable(void)
{
    const struct context *gl = serving->gl;
    if (!serving->drawable->fb->is_double || gl->s.color.draw_buffer == GL_FRONT) show_drawable(serving->drawable);
}

static int answer_Finish(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl, (void)w, (void)count;
    flush_drawable();
    if (serving->drawable->is_window) present_finish();
    return add_reply(c, (struct message){ 0 }, 0) != NULL;
}

static int answer_Flush(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)c, (void)gl, (void)w, (void)count;
    flush_drawable();
    return 1;
}

static const struct pixel_store reply_store = { .alignment = 4 };

/* Writes an image into a reply: rows are padded to words. */
#define WITH_REPLY_STORE(gl, call) \
    do { \
        struct pixel_store saved = gl->client.pack; \
        gl->client.pack = reply_store; \
        call; \
        gl->client.pack = saved; \
    } while (0)

static size_t image_bytes(int64_t width, int64_t height, GLenum format, GLenum type)
{
    int pixel = format_components(format) * type_size(type);
    if (width <= 0 || height <= 0 || width > MOST_WIDTH_OF_DRAWABLE * 4 || height > MOST_WIDTH_OF_DRAWABLE * 4 || type == GL_DOUBLE) return 0;
    size_t bytes = padded((size_t)width * pixel) * height;
    return bytes <= MOST_REPLY ? bytes : 0;
}

static int answer_ReadPixels(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 7) return refuse_request(c, BAD_LENGTH);
    GLsizei width = (GLsizei)w[2], height = (GLsizei)w[3];
    GLenum format = w[4], type = w[5];
    size_t bytes = image_bytes(width, height, format, type);
    if (gl->inside || bytes == 0 || format == GL_COLOR_INDEX) {
        /* what is wrong, or nothing to read, needs no room */
        if (width < 0 || height < 0 || width == 0 || height == 0 || gl->inside || !format_components(format) || !type_size(type)
            || format == GL_COLOR_INDEX || type == GL_DOUBLE)
            glReadPixels((GLint)w[0], (GLint)w[1], width, height > 0 ? 0 : height, format, type, NULL);
        else gl_error(gl, GL_OUT_OF_MEMORY);
        return add_reply(c, (struct message){ 0 }, 0) != NULL;
    }
    uint8_t *at = add_reply(c, (struct message){ 0 }, bytes);
    if (at) WITH_REPLY_STORE(gl, glReadPixels((GLint)w[0], (GLint)w[1], width, height, format, type, at));
    return at != NULL;
}

static int answer_GetTexImage(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 5) return refuse_request(c, BAD_LENGTH);
    const struct texture *t = texture_of(gl, w[0]);
    const struct texture_image *image = t && w[1] < LEVELS && t->level[w[1]].texels ? &t->level[w[1]] : NULL;
    size_t bytes = image ? image_bytes(image->width, image->height, w[2], w[3]) : 0;
    struct message m = { 0 };
    int is_color = w[2] != GL_COLOR_INDEX && w[2] != GL_STENCIL_INDEX && w[2] != GL_DEPTH_COMPONENT;
    if (bytes == 0 || !is_color) {
        if (!image || !is_color || !format_components(w[2]) || !type_size(w[3])) glGetTexImage(w[0], (GLint)w[1], w[2], w[3], NULL);
        else gl_error(gl, GL_OUT_OF_MEMORY);
        return add_reply(c, m, 0) != NULL;
    }
    memcpy(m.inline_value, &image->width, 4), memcpy(m.inline_value + 4, &image->height, 4);
    uint8_t *at = add_reply(c, m, bytes);
    if (at) WITH_REPLY_STORE(gl, glGetTexImage(w[0], (GLint)w[1], w[2], w[3], at));
    return at != NULL;
}

static int answer_GetPolygonStipple(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)w;
    if (count != 1) return refuse_request(c, BAD_LENGTH);
    uint8_t *at = add_reply(c, (struct message){ 0 }, 128);
    if (at) WITH_REPLY_STORE(gl, glGetPolygonStipple(at));
    return at != NULL;
}

static int answer_GetString(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl;
    if (count != 1) return refuse_request(c, BAD_LENGTH);
    const char *text = (const char *)glGetString(w[0]);
    size_t bytes = text ? strlen(text) + 1 : 0;
    uint8_t *at = add_reply(c, (struct message){ .count = (uint32_t)bytes }, bytes);
    if (at && bytes) memcpy(at, text, bytes);
    return at != NULL;
}

static int answer_AreTexturesResident(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl;
    if (count < 1 || (int64_t)w[0] != count - 1) return refuse_request(c, BAD_LENGTH);
    uint8_t *residences = calloc(1, (size_t)w[0] + 1);
    if (!residences) return 0;
    memset(residences, GL_TRUE, w[0]);
    GLboolean all = glAreTexturesResident((GLsizei)w[0], w + 1, residences);
    uint8_t *at = add_reply(c, (struct message){ .value = all, .count = w[0] }, w[0]);
    if (at) memcpy(at, residences, w[0]);
    free(residences);
    return at != NULL;
}

static int answer_DeleteTextures(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl;
    if (count < 1 || ((GLsizei)w[0] >= 0 && (int64_t)w[0] != count - 1)) return refuse_request(c, BAD_LENGTH);
    glDeleteTextures((GLsizei)w[0], w + 1);
    return 1;
}

static int answer_GenTextures(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    enum { MOST = 65536 };
    if (count != 1) return refuse_request(c, BAD_LENGTH);
    GLsizei n = (GLsizei)w[0];
    GLuint *names = n <= MOST ? calloc(n > 0 ? (size_t)n : 1, sizeof *names) : NULL;
    if (names) glGenTextures(n, names);
    else gl_error(gl, GL_OUT_OF_MEMORY);
    int is_sent = reply_values(c, names, names && n > 0 ? (size_t)n : 0, sizeof *names);
    free(names);
    return is_sent;
}

#define VALUES1(name, code, ...) [code] = answer_##name,
#define VALUES2 VALUES1
#define VALUES3 VALUES1
#define RESULT0(result, name, code) [code] = answer_##name,
#define RESULT1(result, name, code, A) [code] = answer_##name,
#define REQUEST0(name, code) [code] = answer_##name,
#define REQUEST2(name, code, A, B) [code] = answer_##name,
#define OTHER(result, name, code, ...) [code] = answer_##name,
answerer *const answerers[256] = {
#include "../queries.def"
};
