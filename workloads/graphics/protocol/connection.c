/* The program's end of the connection: requests are collected in a buffer, or in a slot of the shared ring, and sent when it is full
 * or an answer is needed. GL_RENDERING says which way a program renders: direct (the default), socket, ring, or buffers; GL_SERVER
 * is the name of the server's socket. */
#define _GNU_SOURCE
#include "protocol.h"
#include "../xlib/flat.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct connection connection = { .socket = -1 };
static uint32_t last_id = 1;

enum way { WAY_DIRECT, WAY_SOCKET, WAY_RING, WAY_BUFFERS };
static enum way way(void)
{
    static const char *const names[] = { "direct", "socket", "ring", "buffers" };
    const char *name = getenv("GL_RENDERING");
    if (!name) return WAY_DIRECT;
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) return (enum way)i;
    fprintf(stderr, "libGL: GL_RENDERING is \"%s\": it must be direct, socket, ring or buffers\n", name);
    exit(1);
}
int connection_is_wanted(void) { return way() != WAY_DIRECT; }
int connection_is_direct(void) { return way() == WAY_BUFFERS; }

static void lost(void)
{
    fprintf(stderr, "libGL: the connection to the graphics server ended\n");
    exit(1);
}

static void send_all(const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t sent = send(connection.socket, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) lost();
        at += sent, n -= sent;
    }
}

static void receive_all(void *bytes, size_t n)
{
    for (char *at = bytes; n > 0;) {
        ssize_t got = read(connection.socket, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) lost();
        at += got, n -= got;
    }
}

static void skip(size_t n)
{
    char bytes[4096];
    for (; n > sizeof bytes; n -= sizeof bytes) receive_all(bytes, sizeof bytes);
    receive_all(bytes, n);
}

static void report(const struct message *m)
{
    fprintf(stderr, "libGL: the graphics server refused request %u: error %u\n", m->sequence, m->code);
}

/* Waits until the ring has a free slot: the server sends a message when there is one. */
static void wait_for_slot(struct ring *r)
{
    uint32_t written = atomic_load(&r->written);
    while (written - atomic_load(&r->read) >= RING_SLOTS) {
        atomic_store(&r->program_waits, 1);
        if (written - atomic_load(&r->read) < RING_SLOTS) break;
        struct message m;
        receive_all(&m, sizeof m);
        if (m.type == MESSAGE_ERROR) report(&m);
    }
    connection.buffer = r->slot[written % RING_SLOTS];
}

static void close_render(void)
{
    struct connection *c = &connection;
    if (!c->context) return;
    struct request head = { GLX_MAJOR, REQUEST_RENDER, (uint16_t)((c->used - c->render) / 4) };
    memcpy(c->buffer + c->render, &head, sizeof head);
    c->context = NULL;
    c->sequence++;
}

static void flush(void)
{
    struct connection *c = &connection;
    close_render();
    if (c->used == 0) return;
    struct ring *r = c->ring;
    if (!r) {
        send_all(c->buffer, c->used);
    } else {
        uint32_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
        atomic_store_explicit(&r->bytes[written % RING_SLOTS], (uint32_t)c->used, memory_order_relaxed);
        atomic_store(&r->written, written + 1);
        if (atomic_load(&r->server_sleeps) && atomic_exchange(&r->server_sleeps, 0)) send_all("", 1);
        wait_for_slot(r);
    }
    c->used = c->open = 0;
}

/* Room for a request that is no rendering request. */
static uint8_t *room(size_t bytes)
{
    close_render();
    connection.open = 0;
    if (connection.used + bytes > BUFFER_BYTES) flush();
    uint8_t *at = connection.buffer + connection.used;
    connection.used += bytes;
    connection.sequence++;
    return at;
}

/* Writes a request, and returns where it begins. */
static uint8_t *put_request(struct request head, const uint32_t *operands, int count)
{
    head.words = (uint16_t)(1 + count);
    uint8_t *at = room(4 + 4 * (size_t)count);
    memcpy(at, &head, sizeof head);
    memcpy(at + 4, operands, 4 * (size_t)count);
    return at;
}

void send_request(unsigned code, const uint32_t *operands, int count)
{
    put_request((struct request){ GLX_MAJOR, (uint8_t)code, 0 }, operands, count);
}

/* Adds bytes to the last request; null if that is another one, or does not grow, or the buffer is full. */
static inline uint8_t *grow(struct request head, const uint32_t *operands, int count, size_t bytes)
{
    struct connection *c = &connection;
    if (!c->open || c->context || c->used + bytes > BUFFER_BYTES) return NULL;
    uint8_t *request = c->buffer + c->open - 1;
    uint32_t word;
    if (request[0] != head.major || request[1] != head.code) return NULL;
    for (int i = 0; i < count; i++) {
        memcpy(&word, request + 4 + 4 * i, 4);
        if (word != operands[i]) return NULL;
    }
    uint8_t *at = c->buffer + c->used;
    c->used += bytes;
    head.words = (uint16_t)((size_t)(c->buffer + c->used - request) / 4);
    memcpy(request, &head, sizeof head);
    return at;
}

/* Room for items of a request: in the last one, or in a new one, which may grow as long as it is the last. */
static inline uint8_t *room_for_items(struct request head, const uint32_t *operands, int count, size_t bytes)
{
    uint8_t *at = grow(head, operands, count, bytes);
    if (at) return at;
    if (connection.used + 4 + 4 * (size_t)count + bytes > BUFFER_BYTES) flush();
    uint8_t *request = put_request(head, operands, count);
    connection.open = (size_t)(request - connection.buffer) + 1;
    return grow(head, operands, count, bytes);
}

void send_core_request(unsigned major, const uint32_t *operands, int count, const int16_t *items, size_t bytes)
{
    struct request head = { (uint8_t)major, 0, 0 };
    if (items) memcpy(room_for_items(head, operands, count, bytes), items, bytes);
    else put_request(head, operands, count);
}

void send_flat_command(uint32_t drawable, struct flat_command command, const int16_t *items, size_t bytes)
{
    struct request head = { GLX_MAJOR, REQUEST_VENDOR_PRIVATE, 0 };
    uint32_t operands[3] = { VENDOR_DRAW_FLAT, 0, drawable };
    uint8_t *at = room_for_items(head, operands, 3, sizeof command + bytes);
    memcpy(at, &command, sizeof command);
    memcpy(at + sizeof command, items, bytes);
}

struct message send_query(unsigned code, const uint32_t *operands, int count, void *to, size_t most)
{
    send_request(code, operands, count);
    flush();
    struct message m;
    for (;;) {
        receive_all(&m, sizeof m);
        if (m.type == MESSAGE_SPACE) continue;
        if (m.type == MESSAGE_ERROR) report(&m);
        if (m.type != MESSAGE_ERROR || m.sequence == connection.sequence) break;
    }
    if (m.type == MESSAGE_ERROR) return (struct message){ 0 };
    size_t follow = (size_t)m.words * 4, kept = follow < most ? follow : most;
    receive_all(to, kept);
    skip(follow - kept);
    return m;
}

void *begin_command_slowly(struct context *gl, unsigned opcode, size_t bytes)
{
    struct connection *c = &connection;
    size_t total = sizeof(struct command_head) + padded(bytes), request = sizeof(struct request) + 4;
    if (!gl->remote) return NULL;
    if (c->context != gl) close_render();
    if (request + total > BUFFER_BYTES) {
        struct large_command_head head = { (uint32_t)(sizeof head + padded(bytes)), opcode };
        c->large_bytes = head.bytes;
        c->large = calloc(1, head.bytes);
        if (!c->large) {
            gl_error(gl, GL_OUT_OF_MEMORY);
            return NULL;
        }
        memcpy(c->large, &head, sizeof head);
        return c->large + sizeof head;
    }
    if (c->used + total + request > BUFFER_BYTES) flush();
    if (c->context != gl) {
        c->open = 0;
        c->render = c->used;
        memcpy(c->buffer + c->used + 4, &gl->remote->tag, 4);
        c->used += request;
        c->context = gl;
    }
    return begin_command(gl, opcode, bytes);
}

/* Sends a command by requests that the server puts together again. */
void send_large_command(struct context *gl)
{
    struct connection *c = &connection;
    uint8_t *command = c->large;
    c->large = NULL;
    size_t most = BUFFER_BYTES - 16;
    uint16_t requests = (uint16_t)((c->large_bytes + most - 1) / most);
    if (c->large_bytes > MOST_LARGE) gl_error(gl, GL_OUT_OF_MEMORY);
    for (uint16_t i = 0; i < requests && c->large_bytes <= MOST_LARGE; i++) {
        size_t from = i * most, bytes = c->large_bytes - from < most ? c->large_bytes - from : most;
        struct request head = { GLX_MAJOR, REQUEST_RENDER_LARGE, (uint16_t)((16 + bytes) / 4) };
        uint16_t number[2] = { (uint16_t)(i + 1), requests };
        uint32_t length = (uint32_t)bytes;
        uint8_t *at = room(16 + bytes);
        memcpy(at, &head, 4);
        memcpy(at + 4, &gl->remote->tag, 4);
        memcpy(at + 8, number, 4);
        memcpy(at + 12, &length, 4);
        memcpy(at + 16, command + from, bytes);
    }
    free(command);
}

static void open_ring(void)
{
    struct connection *c = &connection;
    uint32_t operands[2] = { VENDOR_OPEN_RING, 0 };
    send_request(REQUEST_VENDOR_PRIVATE_WITH_REPLY, operands, 2);
    flush();
    struct message m;
    union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec to = { &m, sizeof m };
    struct msghdr h = { .msg_iov = &to, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    if (recvmsg(c->socket, &h, MSG_WAITALL) != sizeof m || m.type != MESSAGE_REPLY || !CMSG_FIRSTHDR(&h)) lost();
    int memory;
    memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof memory);
    struct ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    close(memory);
    if (ring == MAP_FAILED) lost();
    free(c->buffer);
    c->ring = ring;
    wait_for_slot(ring);
}

static void connect_once(void)
{
    struct connection *c = &connection;
    if (c->socket >= 0) return;
    const char *name = getenv("GL_SERVER");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    c->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    c->buffer = malloc(BUFFER_BYTES);
    if (name) snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
    if (!name || !c->buffer || connect(c->socket, (void *)&address, sizeof address)) {
        fprintf(stderr, "libGL: there is no graphics server at \"%s\": GL_SERVER must be the name of its socket\n", name ? name : "");
        exit(1);
    }
    uint8_t setup[SETUP_BYTES] = { BYTE_ORDER_NAME }, answer[8];
    memcpy(setup + 2, &(uint16_t){ 11 } /* the protocol's version */, 2);
    send_all(setup, sizeof setup);
    receive_all(answer, sizeof answer);
    if (answer[0] != 1) lost();
    if (way() != WAY_SOCKET) open_ring();
}

int remote_open(struct context *gl, int is_double)
{
    connect_once();
    gl->remote = calloc(1, sizeof *gl->remote);
    if (!gl->remote) return 0;
    gl->remote->context = last_id++;
    gl->remote->shell.is_double = is_double;
    uint32_t operands[5] = { gl->remote->context, is_double ? 1 : 2, 0, 0, connection_is_direct() };
    send_request(REQUEST_CREATE_CONTEXT, operands, 5);
    gl->dispatch = gl->outside = gl->direct = connection_is_direct() ? &device_commands : &encoders;
    if (!connection_is_direct()) gl->direct = &outside_commands;
    gl->queries = connection_is_direct() ? &device_queries : &remote_queries;
    gl->raster = &device_encoder;
    return 1;
}

void remote_close(struct context *gl)
{
    send_request(REQUEST_DESTROY_CONTEXT, &gl->remote->context, 1);
    flush();
    free(gl->remote);
    gl->remote = NULL;
}

/* Returns 0 if the server does not know the drawable. */
int remote_make_current(struct context *gl, uint32_t drawable)
{
    uint32_t operands[3] = { drawable, gl->remote->context, 0 };
    struct message m = send_query(REQUEST_MAKE_CURRENT, operands, 3, NULL, 0);
    if (m.type != MESSAGE_REPLY) return 0;
    gl->remote->tag = m.value, gl->remote->drawable = drawable;
    gl->remote->shell.width = (int)m.extra[0], gl->remote->shell.height = (int)m.extra[1];
    return 1;
}

uint32_t remote_create_pbuffer(int width, int height, int is_double)
{
    connect_once();
    uint32_t id = last_id++, operands[8] = { 0, is_double ? 1 : 2, id, 2, 0x8041 /* width */, (uint32_t)width, 0x8040 /* height */,
        (uint32_t)height };
    send_request(REQUEST_CREATE_PBUFFER, operands, 8);
    return id;
}

void remote_destroy_pbuffer(uint32_t drawable) { send_request(REQUEST_DESTROY_PBUFFER, &drawable, 1); }

void remote_swap(struct context *gl, uint32_t drawable)
{
    uint32_t operands[2] = { gl ? gl->remote->tag : 0, drawable };
    send_request(REQUEST_SWAP_BUFFERS, operands, 2);
    flush();
}

void remote_read(uint32_t drawable, void *pixels, int width, int height)
{
    uint32_t operands[3] = { VENDOR_READ_DRAWABLE, 0, drawable };
    send_query(REQUEST_VENDOR_PRIVATE_WITH_REPLY, operands, 3, pixels, (size_t)width * height * 4);
}
