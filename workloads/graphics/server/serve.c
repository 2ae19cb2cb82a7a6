/* Clients and their requests; answers.c has those that return something of OpenGL. Contexts, drawables and what they hold belong to one
 * client, by numbers that mean nothing to others. */
#include "server.h"
#include <stdio.h>

const struct rasterizer *server_rasterizer = &software_rasterizer;

struct rendering *serving;

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
    if (!r || rendering_of_id(c, w[0])) return refuse_request(c, r ? BAD_VALUE : BAD_ALLOC);
    r->gl = make_context(w[1] == 1);
    if (!r->gl) return refuse_request(c, BAD_ALLOC);
    r->id = w[0], r->is_double = w[1] == 1, r->is_direct = w[4] & 1, r->drawable = NULL;
    r->gl->raster = server_rasterizer;
    r->gl->most_work = MOST_WORK;
    r->gl->follow_size = follow_size;
    return 1;
}

static int make_client_current(struct client *c, const uint32_t *w)
{
    struct message m = { 0 };
    if (w[1] == 0) return add_reply(c, m, 0) != NULL;
    struct rendering *r = rendering_of_id(c, w[1]);
    if (!r) return refuse_request(c, BAD_CONTEXT);
    int width, height;
    struct drawable *d = client_drawable(c, w[0]);
    void *window = d ? NULL : present_window(w[0], &width, &height);
    if (window) {
        d = make_drawable(c, w[0], width, height, r->is_double);
        if (!d) present_close(window);
        else d->is_window = 1, d->window = window;
    }
    if (!d) return refuse_request(c, BAD_DRAWABLE);
    follow(c, d);
    if (r->drawable != d) make_current(r->gl, d->fb);
    r->drawable = d;
    m.value = (uint32_t)(r - c->rendering) + 1;
    m.extra[0] = (uint32_t)d->fb->width, m.extra[1] = (uint32_t)d->fb->height;
    return add_reply(c, m, 0) != NULL;
}

static int create_pbuffer(struct client *c, const uint32_t *w, int count)
{
    uint32_t width = 0, height = 0;
    for (int i = 4; i + 1 < count && (i - 4) / 2 < (int)(w[3] & 0xffff); i += 2) {
        if (w[i] == 0x8041) width = w[i + 1];
        if (w[i] == 0x8040) height = w[i + 1];
    }
    if (client_drawable(c, w[2]) || width > MOST_WIDTH_OF_DRAWABLE || height > MOST_WIDTH_OF_DRAWABLE) return refuse_request(c, BAD_VALUE);
    return make_drawable(c, w[2], (int)width, (int)height, w[1] == 1) ? 1 : refuse_request(c, BAD_ALLOC);
}

void show_drawable(struct drawable *d)
{
    if (d->is_window) present_picture(d->window, d->fb);
}

static int swap_buffers(struct client *c, uint32_t id)
{
    struct drawable *d = client_drawable(c, id);
    if (!d) return refuse_request(c, BAD_DRAWABLE);
    if (d->fb->color[1]) memcpy(d->fb->color[0], d->fb->color[1], (size_t)d->fb->width * d->fb->height * 4);
    show_drawable(d);
    follow(c, d);
    return 1;
}

static int vendor_private(struct client *c, const uint32_t *w, int count)
{
    if (w[0] == VENDOR_OPEN_RING) {
        c->wants_ring = 1;                              /* the transport answers */
        return 1;
    }
    const struct drawable *d = w[0] == VENDOR_READ_DRAWABLE && count == 3 ? client_drawable(c, w[2]) : NULL;
    if (!d) return refuse_request(c, w[0] == VENDOR_READ_DRAWABLE ? BAD_DRAWABLE : BAD_VALUE);
    const struct framebuffer *fb = d->fb;
    size_t bytes = (size_t)fb->width * fb->height * 4;
    uint8_t *at = bytes <= MOST_REPLY ? add_reply(c, (struct message){ .extra = { (uint32_t)fb->width, (uint32_t)fb->height } }, bytes) : NULL;
    if (at) memcpy(at, fb->color[0], bytes);
    return at != NULL;
}

/* ---- rendering */

static int render(struct client *c, const uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct command_head head;
        if (n - at < sizeof head) return refuse_request(c, BAD_LENGTH);
        memcpy(&head, p + at, sizeof head);
        if (head.bytes < sizeof head || head.bytes % 4 || head.bytes > n - at) return refuse_request(c, BAD_LENGTH);
        c->commands++;
        if (!decode_command(serving, head.opcode, p + at + sizeof head, head.bytes - sizeof head))
            return refuse_request(c, BAD_RENDER_REQUEST);
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
    if (n < 8) return refuse_request(c, BAD_LENGTH);
    memcpy(number, p, sizeof number);
    memcpy(&length, p + 4, sizeof length);
    struct large_command_head head;
    int is_next = number[0] == c->large_number + 1 && (number[0] == 1 || (number[1] == c->large_total && tag == c->large_tag));
    if (!is_next || length > n - 8 || padded(length) != n - 8 || number[1] < number[0]) {
        forget_large(c);
        return refuse_request(c, BAD_LARGE_REQUEST);
    }
    if (number[0] == 1) {
        if (length >= sizeof head) memcpy(&head, p + 8, sizeof head);
        if (length < sizeof head || head.bytes > MOST_LARGE || head.bytes % 4) return refuse_request(c, BAD_LARGE_REQUEST);
    }
    c->large_number = number[0], c->large_total = number[1], c->large_tag = tag;
    uint8_t *at = c->large.used + length <= MOST_LARGE ? append_bytes(&c->large, length) : NULL;
    if (!at) {
        forget_large(c);
        return refuse_request(c, BAD_ALLOC);
    }
    memcpy(at, p + 8, length);
    if (number[0] < number[1]) return 1;
    memcpy(&head, c->large.data, sizeof head);
    int is_right = head.bytes == c->large.used
        && decode_command(serving, head.opcode, c->large.data + sizeof head, head.bytes - sizeof head);
    c->commands++;
    forget_large(c);
    return is_right ? 1 : refuse_request(c, BAD_RENDER_REQUEST);
}

/* ---- requests */

/* The memory that the other contexts of a client leave to one. */
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
    if (bytes < 8) return refuse_request(c, BAD_LENGTH);
    memcpy(&tag, p + 4, 4);
    struct rendering *r = rendering_of_tag(c, tag);
    if (!r) return refuse_request(c, BAD_CONTEXT_TAG);
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
        return c->work_of_turn > MOST_WORK ? 0 : error ? refuse_request(c, error) : 1;
    }
    if (head->code == REQUEST_RENDER || head->code == REQUEST_RENDER_LARGE || answerers[head->code])
        return execute_with_context(c, head->code, p, bytes);
    uint32_t w[32] = { 0 };
    memcpy(w, p + 4, (count < 32 ? (size_t)count : 32) * 4);
    if (head->code == REQUEST_VENDOR_PRIVATE && count >= 3 && w[0] == VENDOR_DRAW_FLAT) {
        struct drawable *d = client_drawable(c, w[2]);
        unsigned error = d ? draw_by_commands(c, d, p + 16, bytes - 16) : BAD_DRAWABLE;
        return c->work_of_turn > MOST_WORK ? 0 : error ? refuse_request(c, error) : 1;
    }
    if (head->code >= sizeof least || count < least[head->code] || count > 32)
        return refuse_request(c, head->code < sizeof least && least[head->code] ? BAD_LENGTH : BAD_REQUEST);
    struct rendering *r = rendering_of_id(c, w[0]);
    const struct drawable *d;
    int drawable;
    switch (head->code) {
    case REQUEST_CREATE_CONTEXT: return create_context(c, w);
    case REQUEST_DESTROY_CONTEXT:
        if (!r) return refuse_request(c, BAD_CONTEXT);
        free_rendering(r);
        return 1;
    case REQUEST_MAKE_CURRENT: return make_client_current(c, w);
    case REQUEST_IS_DIRECT:
        if (!r) return refuse_request(c, BAD_CONTEXT);
        return add_reply(c, (struct message){ .value = (uint32_t)r->is_direct }, 0) != NULL;
    case REQUEST_QUERY_VERSION: return add_reply(c, (struct message){ .value = 1, .count = 3 }, 0) != NULL;
    case REQUEST_WAIT_GL: case REQUEST_WAIT_X: return 1;
    case REQUEST_SWAP_BUFFERS: return swap_buffers(c, w[1]);
    case REQUEST_VENDOR_PRIVATE_WITH_REPLY: return vendor_private(c, w, count);
    case REQUEST_CREATE_PBUFFER: return create_pbuffer(c, w, count);
    case REQUEST_DESTROY_PBUFFER:
        drawable = drawable_index(c, w[0]);
        if (drawable < 0) return refuse_request(c, BAD_DRAWABLE);
        free_drawable(c, drawable);
        return 1;
    case REQUEST_GET_DRAWABLE_ATTRIBUTES:
        d = client_drawable(c, w[0]);
        if (!d) return refuse_request(c, BAD_DRAWABLE);
        return add_reply(c, (struct message){ .extra = { (uint32_t)d->fb->width, (uint32_t)d->fb->height } }, 0) != NULL;
    default: return refuse_request(c, BAD_REQUEST);
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
    uint8_t *answer = append_bytes(&c->out, 8);
    if (!answer || p[0] != BYTE_ORDER_NAME) return 0;
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
