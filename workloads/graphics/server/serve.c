/* Clients and their requests. Contexts, drawables and what they hold belong to one client, by numbers that mean nothing to others. */
#include "server.h"
#include <stdio.h>

const struct rasterizer *server_rasterizer = &software_rasterizer;

/* Whose commands are executed: the hooks of contexts need it. */
static struct rendering *serving;

/* ---- replies */

/* Null if memory is short: the client goes then, as it cannot go on without its reply. */
static uint8_t *append(struct bytes *b, size_t n)
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
static uint8_t *reply(struct client *c, struct message m, size_t bytes)
{
    m.type = MESSAGE_REPLY, m.sequence = c->sequence, m.words = (uint32_t)(padded(bytes) / 4);
    uint8_t *at = append(&c->out, sizeof m + padded(bytes));
    if (!at) return NULL;
    memcpy(at, &m, sizeof m);
    return at + sizeof m;
}

static int refuse(struct client *c, unsigned error)
{
    struct message m = { .type = MESSAGE_ERROR, .code = (uint8_t)error, .sequence = c->sequence };
    uint8_t *at = append(&c->out, sizeof m);
    c->refused++;
    if (at) memcpy(at, &m, sizeof m);
    return at != NULL;
}

static int reply_values(struct client *c, const void *values, size_t count, size_t size)
{
    struct message m = { .count = (uint32_t)count };
    if (count == 1) memcpy(m.inline_value, values, size);
    uint8_t *at = reply(c, m, count == 1 ? 0 : count * size);
    if (at && count > 1) memcpy(at, values, count * size);
    return at != NULL;
}

/* ---- contexts and drawables */

static struct rendering *rendering_of_tag(struct client *c, uint32_t tag)
{
    return tag >= 1 && tag <= CLIENT_CONTEXTS && c->rendering[tag - 1].gl && c->rendering[tag - 1].drawable ? &c->rendering[tag - 1] : NULL;
}

static struct rendering *rendering_of_id(struct client *c, uint32_t id)
{
    for (int i = 0; i < CLIENT_CONTEXTS; i++)
        if (c->rendering[i].gl && c->rendering[i].id == id) return &c->rendering[i];
    return NULL;
}

static int drawable_index(const struct client *c, uint32_t id)
{
    for (int i = 0; i < CLIENT_DRAWABLES; i++)
        if (c->drawable[i] && c->drawable[i]->id == id) return i;
    return -1;
}

struct drawable *client_drawable(const struct client *c, uint32_t id)
{
    int i = drawable_index(c, id);
    return i < 0 ? NULL : c->drawable[i];
}

/* Bytes that pixels need, with an accumulation buffer. */
static size_t pixel_bytes(size_t width, size_t height) { return width * height * 21; }

static int has_room(const struct client *c, int width, int height)
{
    if (width < 0 || height < 0 || width > MOST_WIDTH_OF_DRAWABLE || height > MOST_WIDTH_OF_DRAWABLE) return 0;
    size_t used = pixel_bytes((size_t)width, (size_t)height);
    for (int i = 0; i < CLIENT_DRAWABLES; i++)
        if (c->drawable[i]) used += pixel_bytes((size_t)c->drawable[i]->fb->width, (size_t)c->drawable[i]->fb->height);
    return used <= MOST_MEMORY;
}

static struct drawable *make_drawable(struct client *c, uint32_t id, int width, int height, int is_double)
{
    int free_slot = 0;
    while (free_slot < CLIENT_DRAWABLES && c->drawable[free_slot]) free_slot++;
    if (free_slot == CLIENT_DRAWABLES || !has_room(c, width, height)) return NULL;
    struct drawable *d = calloc(1, sizeof *d);
    if (d) d->fb = make_framebuffer(width, height, NULL, is_double);
    if (!d || !d->fb) {
        free(d);
        return NULL;
    }
    d->id = id;
    return c->drawable[free_slot] = d;
}

static void free_drawable(struct client *c, int i)
{
    struct drawable *d = c->drawable[i];
    for (int k = 0; k < CLIENT_CONTEXTS; k++)
        if (c->rendering[k].gl && c->rendering[k].drawable == d) {
            make_current(c->rendering[k].gl, NULL);
            c->rendering[k].drawable = NULL;
        }
    if (d->is_window) present_close(d->window);
    free_framebuffer(d->fb);
    free(d);
    c->drawable[i] = NULL;
}

/* Follows the size of a window, which the X server has. */
static void follow(struct client *c, struct drawable *d)
{
    int width, height;
    if (!d->is_window || !present_size(d->window, &width, &height) || (width == d->fb->width && height == d->fb->height)) return;
    resize_framebuffer(d->fb, 0, 0, NULL);
    if (has_room(c, width, height)) resize_framebuffer(d->fb, width, height, NULL);
    for (int i = 0; i < CLIENT_CONTEXTS; i++)
        if (c->rendering[i].gl) c->rendering[i].gl->dirty |= DIRTY_ALL;
}

static struct client *serving_client;
static void follow_size(struct context *gl)
{
    if (serving && serving->gl == gl && serving->drawable) follow(serving_client, serving->drawable);
    gl->dirty |= DIRTY_ALL;
}

static void free_rendering(struct rendering *r)
{
    free(r->gl->select_buffer);
    free(r->gl->feedback_buffer);
    free_context(r->gl);
    memset(r, 0, sizeof *r);
}

static int create_context(struct client *c, const uint32_t *w)
{
    struct rendering *r = NULL;
    for (int i = CLIENT_CONTEXTS - 1; i >= 0; i--)
        if (!c->rendering[i].gl) r = &c->rendering[i];
    if (!r || rendering_of_id(c, w[0])) return refuse(c, r ? BAD_VALUE : BAD_ALLOC);
    r->gl = make_context(w[1] == 1);
    if (!r->gl) return refuse(c, BAD_ALLOC);
    r->id = w[0], r->is_double = w[1] == 1, r->is_direct = w[4] & 1, r->drawable = NULL;
    r->gl->raster = server_rasterizer;
    r->gl->most_work = MOST_WORK;
    r->gl->follow_size = follow_size;
    return 1;
}

static int make_client_current(struct client *c, const uint32_t *w)
{
    struct message m = { 0 };
    if (w[1] == 0) return reply(c, m, 0) != NULL;
    struct rendering *r = rendering_of_id(c, w[1]);
    if (!r) return refuse(c, BAD_CONTEXT);
    int i = drawable_index(c, w[0]), width, height;
    struct drawable *d = i >= 0 ? c->drawable[i] : NULL;
    void *window = d ? NULL : present_window(w[0], &width, &height);
    if (window) {
        d = make_drawable(c, w[0], width, height, r->is_double);
        if (!d) present_close(window);
        else d->is_window = 1, d->window = window;
    }
    if (!d) return refuse(c, BAD_DRAWABLE);
    follow(c, d);
    if (r->drawable != d) make_current(r->gl, d->fb);
    r->drawable = d;
    m.value = (uint32_t)(r - c->rendering) + 1;
    m.extra[0] = (uint32_t)d->fb->width, m.extra[1] = (uint32_t)d->fb->height;
    return reply(c, m, 0) != NULL;
}

static int create_pbuffer(struct client *c, const uint32_t *w, int count)
{
    uint32_t width = 0, height = 0;
    for (int i = 4; i + 1 < count && (i - 4) / 2 < (int)(w[3] & 0xffff); i += 2) {
        if (w[i] == 0x8041) width = w[i + 1];
        if (w[i] == 0x8040) height = w[i + 1];
    }
    if (drawable_index(c, w[2]) >= 0 || width > MOST_WIDTH_OF_DRAWABLE || height > MOST_WIDTH_OF_DRAWABLE) return refuse(c, BAD_VALUE);
    return make_drawable(c, w[2], (int)width, (int)height, w[1] == 1) ? 1 : refuse(c, BAD_ALLOC);
}

static void show(struct drawable *d)
{
    if (d->is_window) present_picture(d->window, d->fb);
}

static int swap_buffers(struct client *c, uint32_t id)
{
    int i = drawable_index(c, id);
    if (i < 0) return refuse(c, BAD_DRAWABLE);
    struct drawable *d = c->drawable[i];
    if (d->fb->color[1]) memcpy(d->fb->color[0], d->fb->color[1], (size_t)d->fb->width * d->fb->height * 4);
    show(d);
    follow(c, d);
    return 1;
}

static int vendor_private(struct client *c, const uint32_t *w, int count)
{
    if (w[0] == VENDOR_OPEN_RING) {
        c->wants_ring = 1;                              /* the transport answers */
        return 1;
    }
    int i = w[0] == VENDOR_READ_DRAWABLE && count == 3 ? drawable_index(c, w[2]) : -1;
    if (i < 0) return refuse(c, w[0] == VENDOR_READ_DRAWABLE ? BAD_DRAWABLE : BAD_VALUE);
    const struct framebuffer *fb = c->drawable[i]->fb;
    size_t bytes = (size_t)fb->width * fb->height * 4;
    uint8_t *at = bytes <= MOST_REPLY ? reply(c, (struct message){ .extra = { (uint32_t)fb->width, (uint32_t)fb->height } }, bytes) : NULL;
    if (at) memcpy(at, fb->color[0], bytes);
    return at != NULL;
}

/* ---- rendering */

static int render(struct client *c, const uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct command_head head;
        if (n - at < sizeof head) return refuse(c, BAD_LENGTH);
        memcpy(&head, p + at, sizeof head);
        if (head.bytes < sizeof head || head.bytes % 4 || head.bytes > n - at) return refuse(c, BAD_LENGTH);
        c->commands++;
        if (!decode_command(serving, head.opcode, p + at + sizeof head, head.bytes - sizeof head))
            return refuse(c, BAD_RENDER_REQUEST);
        at += head.bytes;
    }
    return 1;
}

static void forget_large(struct client *c)
{
    free(c->large.data);
    c->large = (struct bytes){ 0 };
    c->large_number = c->large_total = 0;
}

/* A part of a large command: parts come one after the other, and nothing of the same kind between them. */
static int render_large(struct client *c, uint32_t tag, const uint8_t *p, size_t n)
{
    uint16_t number[2];
    uint32_t length;
    if (n < 8) return refuse(c, BAD_LENGTH);
    memcpy(number, p, sizeof number);
    memcpy(&length, p + 4, sizeof length);
    struct large_command_head head;
    int is_next = number[0] == c->large_number + 1 && (number[0] == 1 || (number[1] == c->large_total && tag == c->large_tag));
    if (!is_next || length > n - 8 || padded(length) != n - 8 || number[1] < number[0]) {
        forget_large(c);
        return refuse(c, BAD_LARGE_REQUEST);
    }
    if (number[0] == 1) {
        if (length >= sizeof head) memcpy(&head, p + 8, sizeof head);
        if (length < sizeof head || head.bytes > MOST_LARGE || head.bytes % 4) return refuse(c, BAD_LARGE_REQUEST);
    }
    c->large_number = number[0], c->large_total = number[1], c->large_tag = tag;
    uint8_t *at = c->large.used + length <= MOST_LARGE ? append(&c->large, length) : NULL;
    if (!at) {
        forget_large(c);
        return refuse(c, BAD_ALLOC);
    }
    memcpy(at, p + 8, length);
    if (number[0] < number[1]) return 1;
    memcpy(&head, c->large.data, sizeof head);
    int is_right = head.bytes == c->large.used
        && decode_command(serving, head.opcode, c->large.data + sizeof head, head.bytes - sizeof head);
    c->commands++;
    forget_large(c);
    return is_right ? 1 : refuse(c, BAD_RENDER_REQUEST);
}

/* ---- queries: w has the operands after the context's tag */

typedef int answerer(struct client *c, struct context *gl, const uint32_t *w, int count);

/* What a query writes, unless it failed. */
#define ANSWER_VALUES(name, code, T, values, arguments, operands) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        T v[MOST_VALUES_OF(code)] = { 0 }; \
        GLenum a = w[0], b = w[1], d = w[2], before = gl->error; \
        (void)a, (void)b, (void)d; \
        if (count != operands) return refuse(c, BAD_LENGTH); \
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
        if (count != 0) return refuse(c, BAD_LENGTH); \
        return reply(c, (struct message){ .value = (uint32_t)gl##name() }, 0) != NULL; \
    }
#define RESULT1(result, name, code, A) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        (void)gl; \
        if (count != 1) return refuse(c, BAD_LENGTH); \
        return reply(c, (struct message){ .value = (uint32_t)gl##name((A)w[0]) }, 0) != NULL; \
    }
#define REQUEST0(name, code) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        (void)gl, (void)w; \
        if (count != 0) return refuse(c, BAD_LENGTH); \
        gl##name(); \
        return 1; \
    }
#define REQUEST2(name, code, A, B) \
    static int answer_##name(struct client *c, struct context *gl, const uint32_t *w, int count) \
    { \
        (void)gl; \
        if (count != 2) return refuse(c, BAD_LENGTH); \
        gl##name((A)w[0], (B)w[1]); \
        return 1; \
    }
#define OTHER(result, name, code, parameters, arguments) static answerer answer_##name;
#include "../queries.def"

/* Words that feedback and selection may report at a time. */
enum { MOST_REPORT = 1 << 20 };

static int answer_FeedbackBuffer(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 2) return refuse(c, BAD_LENGTH);
    GLsizei size = (GLsizei)w[0];
    GLfloat *old = gl->feedback_buffer, *fresh = size >= 0 && size <= MOST_REPORT ? calloc((size_t)size + 1, sizeof *fresh) : NULL;
    if (!fresh && size >= 0) gl_error(gl, GL_OUT_OF_MEMORY);
    else glFeedbackBuffer(size, w[1], fresh);
    free(gl->feedback_buffer == fresh && fresh ? old : fresh);
    return 1;
}

static int answer_SelectBuffer(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 1) return refuse(c, BAD_LENGTH);
    GLsizei size = (GLsizei)w[0];
    GLuint *old = gl->select_buffer, *fresh = size >= 0 && size <= MOST_REPORT ? calloc((size_t)size + 1, sizeof *fresh) : NULL;
    if (!fresh && size >= 0) gl_error(gl, GL_OUT_OF_MEMORY);
    else glSelectBuffer(size, fresh);
    free(gl->select_buffer == fresh && fresh ? old : fresh);
    return 1;
}

static int answer_RenderMode(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 1) return refuse(c, BAD_LENGTH);
    GLenum before = gl->render_mode;
    gl->reported = 0;
    GLint result = glRenderMode(w[0]);
    size_t words = (size_t)gl->reported;
    const void *report = before == GL_SELECT ? (const void *)gl->select_buffer : gl->feedback_buffer;
    uint8_t *at = reply(c, (struct message){ .value = (uint32_t)result, .count = (uint32_t)words, .extra = { gl->render_mode } }, 4 * words);
    if (at && words) memcpy(at, report, 4 * words);
    return at != NULL;
}

static void flush_drawable(void)
{
    const struct context *gl = serving->gl;
    if (!serving->drawable->fb->is_double || gl->s.color.draw_buffer == GL_FRONT) show(serving->drawable);
}

static int answer_Finish(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl, (void)w, (void)count;
    flush_drawable();
    return reply(c, (struct message){ 0 }, 0) != NULL;
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
    if (count != 7) return refuse(c, BAD_LENGTH);
    GLsizei width = (GLsizei)w[2], height = (GLsizei)w[3];
    GLenum format = w[4], type = w[5];
    size_t bytes = image_bytes(width, height, format, type);
    if (gl->inside || bytes == 0 || format == GL_COLOR_INDEX) {
        /* what is wrong, or nothing to read, needs no room */
        if (width < 0 || height < 0 || width == 0 || height == 0 || gl->inside || !format_components(format) || !type_size(type)
            || format == GL_COLOR_INDEX || type == GL_DOUBLE)
            glReadPixels((GLint)w[0], (GLint)w[1], width, height > 0 ? 0 : height, format, type, NULL);
        else gl_error(gl, GL_OUT_OF_MEMORY);
        return reply(c, (struct message){ 0 }, 0) != NULL;
    }
    uint8_t *at = reply(c, (struct message){ 0 }, bytes);
    if (at) WITH_REPLY_STORE(gl, glReadPixels((GLint)w[0], (GLint)w[1], width, height, format, type, at));
    return at != NULL;
}

static int answer_GetTexImage(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    if (count != 5) return refuse(c, BAD_LENGTH);
    const struct texture *t = texture_of(gl, w[0]);
    const struct texture_image *image = t && w[1] < LEVELS && t->level[w[1]].texels ? &t->level[w[1]] : NULL;
    size_t bytes = image ? image_bytes(image->width, image->height, w[2], w[3]) : 0;
    struct message m = { 0 };
    int is_color = w[2] != GL_COLOR_INDEX && w[2] != GL_STENCIL_INDEX && w[2] != GL_DEPTH_COMPONENT;
    if (bytes == 0 || !is_color) {
        if (!image || !is_color || !format_components(w[2]) || !type_size(w[3])) glGetTexImage(w[0], (GLint)w[1], w[2], w[3], NULL);
        else gl_error(gl, GL_OUT_OF_MEMORY);
        return reply(c, m, 0) != NULL;
    }
    memcpy(m.inline_value, &image->width, 4), memcpy(m.inline_value + 4, &image->height, 4);
    uint8_t *at = reply(c, m, bytes);
    if (at) WITH_REPLY_STORE(gl, glGetTexImage(w[0], (GLint)w[1], w[2], w[3], at));
    return at != NULL;
}

static int answer_GetPolygonStipple(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)w;
    if (count != 1) return refuse(c, BAD_LENGTH);
    uint8_t *at = reply(c, (struct message){ 0 }, 128);
    if (at) WITH_REPLY_STORE(gl, glGetPolygonStipple(at));
    return at != NULL;
}

static int answer_GetString(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl;
    if (count != 1) return refuse(c, BAD_LENGTH);
    const char *text = (const char *)glGetString(w[0]);
    size_t bytes = text ? strlen(text) + 1 : 0;
    uint8_t *at = reply(c, (struct message){ .count = (uint32_t)bytes }, bytes);
    if (at && bytes) memcpy(at, text, bytes);
    return at != NULL;
}

static int answer_AreTexturesResident(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl;
    if (count < 1 || (int64_t)w[0] != count - 1) return refuse(c, BAD_LENGTH);
    uint8_t *residences = calloc(1, (size_t)w[0] + 1);
    if (!residences) return 0;
    memset(residences, GL_TRUE, w[0]);
    GLboolean all = glAreTexturesResident((GLsizei)w[0], w + 1, residences);
    uint8_t *at = reply(c, (struct message){ .value = all, .count = w[0] }, w[0]);
    if (at) memcpy(at, residences, w[0]);
    free(residences);
    return at != NULL;
}

static int answer_DeleteTextures(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    (void)gl;
    if (count < 1 || ((GLsizei)w[0] >= 0 && (int64_t)w[0] != count - 1)) return refuse(c, BAD_LENGTH);
    glDeleteTextures((GLsizei)w[0], w + 1);
    return 1;
}

static int answer_GenTextures(struct client *c, struct context *gl, const uint32_t *w, int count)
{
    enum { MOST = 65536 };
    if (count != 1) return refuse(c, BAD_LENGTH);
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
static answerer *const answerers[256] = {
#include "../queries.def"
};

/* ---- requests */

/* What the other contexts of a client leave to one. */
static size_t memory_left(const struct client *c, const struct rendering *r)
{
    size_t used = 0;
    for (int i = 0; i < CLIENT_CONTEXTS; i++)
        if (c->rendering[i].gl && &c->rendering[i] != r) used += c->rendering[i].gl->memory;
    return used < MOST_MEMORY ? MOST_MEMORY - used : 0;
}

/* Requests that name a context by its tag. */
static int execute_with_context(struct client *c, unsigned code, const uint8_t *p, size_t bytes)
{
    uint32_t tag;
    if (bytes < 8) return refuse(c, BAD_LENGTH);
    memcpy(&tag, p + 4, 4);
    struct rendering *r = rendering_of_tag(c, tag);
    if (!r) return refuse(c, BAD_CONTEXT_TAG);
    serving = r, serving_client = c, current = r->gl;
    r->gl->work = 0;
    r->gl->most_memory = memory_left(c, r);
    int is_answered;
    if (code == REQUEST_RENDER) is_answered = render(c, p + 8, bytes - 8);
    else if (code == REQUEST_RENDER_LARGE) is_answered = render_large(c, tag, p + 8, bytes - 8);
    else {
        static uint32_t operands[1 << 16];
        memset(operands, 0, 4 * sizeof *operands);
        memcpy(operands, p + 8, bytes - 8);
        is_answered = answerers[code](c, r->gl, operands, (int)((bytes - 8) / 4));
    }
    is_answered &= r->gl->work <= r->gl->most_work;
    c->work_of_turn += r->gl->work;
    serving = NULL;
    make_current(NULL, NULL);
    return is_answered;
}

static int execute(struct client *c, const struct request *head, const uint8_t *p, size_t bytes)
{
    /* operands of other requests, and the least number of them */
    static const uint8_t least[] = { [REQUEST_CREATE_CONTEXT] = 5, [REQUEST_DESTROY_CONTEXT] = 1, [REQUEST_MAKE_CURRENT] = 3,
        [REQUEST_IS_DIRECT] = 1, [REQUEST_QUERY_VERSION] = 2, [REQUEST_SWAP_BUFFERS] = 2, [REQUEST_VENDOR_PRIVATE_WITH_REPLY] = 2,
        [REQUEST_CREATE_PBUFFER] = 4, [REQUEST_DESTROY_PBUFFER] = 1, [REQUEST_GET_DRAWABLE_ATTRIBUTES] = 1 };
    int count = (int)(bytes / 4) - 1;
    c->sequence++, c->requests++;
    if (head->major != GLX_MAJOR) {
        unsigned error = draw_by_core_request(c, head, p, bytes);
        return c->work_of_turn > MOST_WORK ? 0 : error ? refuse(c, error) : 1;
    }
    if (head->code == REQUEST_RENDER || head->code == REQUEST_RENDER_LARGE || answerers[head->code])
        return execute_with_context(c, head->code, p, bytes);
    uint32_t w[32] = { 0 };
    memcpy(w, p + 4, (count < 32 ? (size_t)count : 32) * 4);
    if (head->code == REQUEST_VENDOR_PRIVATE && count >= 3 && w[0] == VENDOR_DRAW_FLAT) {
        struct drawable *d = client_drawable(c, w[2]);
        unsigned error = d ? draw_by_commands(c, d, p + 16, bytes - 16) : BAD_DRAWABLE;
        return c->work_of_turn > MOST_WORK ? 0 : error ? refuse(c, error) : 1;
    }
    if (head->code >= sizeof least || count < least[head->code] || count > 32)
        return refuse(c, head->code < sizeof least && least[head->code] ? BAD_LENGTH : BAD_REQUEST);
    struct rendering *r = rendering_of_id(c, w[0]);
    int drawable;
    switch (head->code) {
    case REQUEST_CREATE_CONTEXT: return create_context(c, w);
    case REQUEST_DESTROY_CONTEXT:
        if (!r) return refuse(c, BAD_CONTEXT);
        free_rendering(r);
        return 1;
    case REQUEST_MAKE_CURRENT: return make_client_current(c, w);
    case REQUEST_IS_DIRECT:
        if (!r) return refuse(c, BAD_CONTEXT);
        return reply(c, (struct message){ .value = (uint32_t)r->is_direct }, 0) != NULL;
    case REQUEST_QUERY_VERSION: return reply(c, (struct message){ .value = 1, .count = 3 }, 0) != NULL;
    case REQUEST_WAIT_GL: case REQUEST_WAIT_X: return 1;
    case REQUEST_SWAP_BUFFERS: return swap_buffers(c, w[1]);
    case REQUEST_VENDOR_PRIVATE_WITH_REPLY: return vendor_private(c, w, count);
    case REQUEST_CREATE_PBUFFER: return create_pbuffer(c, w, count);
    case REQUEST_DESTROY_PBUFFER:
        drawable = drawable_index(c, w[0]);
        if (drawable < 0) return refuse(c, BAD_DRAWABLE);
        free_drawable(c, drawable);
        return 1;
    case REQUEST_GET_DRAWABLE_ATTRIBUTES:
        drawable = drawable_index(c, w[0]);
        if (drawable < 0) return refuse(c, BAD_DRAWABLE);
        return reply(c, (struct message){ .extra = { (uint32_t)c->drawable[drawable]->fb->width,
                                              (uint32_t)c->drawable[drawable]->fb->height } }, 0) != NULL;
    default: return refuse(c, BAD_REQUEST);
    }
}

struct client *open_client(void) { return calloc(1, sizeof(struct client)); }

void close_client(struct client *c)
{
    for (int i = 0; i < CLIENT_DRAWABLES; i++)
        if (c->drawable[i]) free_drawable(c, i);
    for (int i = 0; i < CLIENT_CONTEXTS; i++)
        if (c->rendering[i].gl) free_rendering(&c->rendering[i]);
    forget_large(c);
    free(c->out.data);
    free(c);
}

/* X's connection setup: the byte order, and the protocol's version. */
static int set_up(struct client *c, const uint8_t *p)
{
    static const union { uint16_t word; char first; } order = { 1 };
    uint8_t *answer = append(&c->out, 8);
    if (!answer || p[0] != (order.first ? 'l' : 'B')) return 0;
    answer[0] = 1;
    c->is_set_up = 1;
    return 1;
}

long client_execute(struct client *c, const uint8_t *p, size_t n)
{
    size_t at = 0;
    if (!c->is_set_up) {
        if (n < SETUP_BYTES) return 0;
        if (!set_up(c, p)) return -1;
        at = SETUP_BYTES;
    }
    c->work_of_turn = c->has_more = 0;
    while (n - at >= sizeof(struct request) && c->out.used <= MOST_PENDING && !c->wants_ring) {
        if (c->work_of_turn > MOST_WORK_OF_TURN) {
            c->has_more = 1;
            break;
        }
        struct request head;
        memcpy(&head, p + at, sizeof head);
        size_t bytes = (size_t)head.words * 4;
        if (bytes < sizeof head) return -1;
        if (n - at < bytes) break;
        if (!execute(c, &head, p + at, bytes)) return -1;
        at += bytes;
    }
    return (long)at;
}
