/* GLX's protocol between a program and the server that has the frame buffers, over a connection of its own: requests and replies
 * have the codes, lengths and layouts of GLX 1.3, in the byte order of the host, which both ends share. Rendering commands are those
 * of commands.def; requests by programs that only this server knows are GLX's vendor-private ones. */
#ifndef PROTOCOL_H
#define PROTOCOL_H
#include "../context.h"
#include <stdatomic.h>

enum { GLX_MAJOR = 150, BUFFER_BYTES = 32768, RING_SLOTS = 8, SETUP_BYTES = 12, MOST_REPLY = 1 << 26, MOST_LARGE = 1 << 26 };

enum { REQUEST_RENDER = 1, REQUEST_RENDER_LARGE = 2, REQUEST_CREATE_CONTEXT = 3, REQUEST_DESTROY_CONTEXT = 4, REQUEST_MAKE_CURRENT = 5,
    REQUEST_IS_DIRECT = 6, REQUEST_QUERY_VERSION = 7, REQUEST_WAIT_GL = 8, REQUEST_WAIT_X = 9, REQUEST_SWAP_BUFFERS = 11,
    REQUEST_VENDOR_PRIVATE = 16, REQUEST_VENDOR_PRIVATE_WITH_REPLY = 17, REQUEST_CREATE_PBUFFER = 27, REQUEST_DESTROY_PBUFFER = 28,
    REQUEST_GET_DRAWABLE_ATTRIBUTES = 29 };
/* Codes of vendor-private requests: a ring in shared memory is opened, the colours of a drawable are read without regard to any
 * state, and commands of the device for two-dimensional drawing (xlib/flat.h) follow. */
enum { VENDOR_OPEN_RING = 1, VENDOR_READ_DRAWABLE = 2, VENDOR_DRAW_FLAT = 3 };
/* Requests of X's core protocol that the server takes for its drawables. */
enum { CORE_CREATE_GC = 55, CORE_CHANGE_GC = 56, CORE_POLY_POINT = 64, CORE_POLY_SEGMENT = 66, CORE_POLY_RECTANGLE = 67,
    CORE_POLY_FILL_RECTANGLE = 70 };
/* GLX's errors come after the first one of the extension. */
enum { BAD_REQUEST = 1, BAD_VALUE = 2, BAD_GC = 13, BAD_ALLOC = 11, BAD_LENGTH = 16, BAD_CONTEXT = 160, BAD_DRAWABLE = 162, BAD_CONTEXT_TAG = 164,
    BAD_RENDER_REQUEST = 166, BAD_LARGE_REQUEST = 167 };
enum { MESSAGE_ERROR = 0, MESSAGE_REPLY = 1, MESSAGE_SPACE = 64 };      /* the last one: the ring has room again */

struct request { uint8_t major, code; uint16_t words; };
struct command_head { uint16_t bytes, opcode; };
struct large_command_head { uint32_t bytes, opcode; };
/* Images begin with the layout that glPixelStore describes. */
struct image_head { uint8_t swap, lsb_first; uint16_t unused; int32_t row_length, skip_rows, skip_pixels, alignment; };
/* A message to the program. Values follow if there are several; a single one is inline. */
struct message { uint8_t type, code; uint16_t sequence; uint32_t words, value, count; uint8_t inline_value[8]; uint32_t extra[2]; };

/* Requests in shared memory: the program fills slots and raises `written`, the server copies them and raises `read`. Both count
 * without end. The flags say who waits for a message by the connection. */
struct ring {
    _Atomic uint32_t written, read, server_sleeps, program_waits;
    _Atomic uint32_t bytes[RING_SLOTS];
    uint8_t slot[RING_SLOTS][BUFFER_BYTES] __attribute__((aligned(64)));
};

/* Commands of direct rendering, beside the rendering commands: primitives in window coordinates, and the raster position. */
enum { DEVICE_TRIANGLE = 5000, DEVICE_LINE, DEVICE_POINT, DEVICE_VERTICES, DEVICE_RASTER_POSITION, MOST_OPCODE };
/* Attributes of the vertices of a device's command; 1/w and the position are always there. */
enum { DEVICE_FLAT = 1, DEVICE_COORD = 2, DEVICE_FOG = 4, DEVICE_RESET_STIPPLE = 8 };

/* Floats of a vertex with these attributes. */
static inline size_t device_floats(unsigned attributes)
{
    return 4 + (attributes & DEVICE_FLAT ? 0 : 4) + (attributes & DEVICE_COORD ? 4 : 0) + (attributes & DEVICE_FOG ? 1 : 0);
}

struct device_head { uint32_t attributes; float offset; };
/* Vertices that the device assembles to primitives; none of them is outside of the view volume. */
struct device_vertices { uint16_t attributes, primitive, parity, count; };

/* The byte order of both ends, as X's connection setup names it. */
enum { BYTE_ORDER_NAME = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B' };

static inline size_t padded(size_t bytes) { return (bytes + 3) & ~(size_t)3; }

/* The arguments of each command as they are sent. */
struct image_shape { int64_t width, height; GLenum format, type; int gaps; };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#define COMMAND(name, allowed, opcode, side, parameters, arguments, fields, ...) struct __attribute__((packed)) sent_##name { fields };
#define ARRAY(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, type, count) \
    struct __attribute__((packed)) sent_##name { fields }; \
    static size_t count_##name NO_CTX_P parameters { return (count); }
#define IMAGE(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, width, height, format, type, gaps) \
    struct __attribute__((packed)) sent_##name { fields }; \
    static struct image_shape shape_##name NO_CTX_P parameters { return (struct image_shape){ width, height, format, type, gaps }; }
#include "../expand.h"
#pragma GCC diagnostic pop

/* The most values that a query with this code can have. */
#define MOST_VALUES_OF(code) ((code) >= 120 && (code) <= 122 ? MAX_ORDER * MAX_ORDER * 4 : (code) >= 125 && (code) <= 127 ? PIXEL_MAP : 16)

/* connection.c: the program's end. A lost connection ends the program, as in Xlib. */
/* shell: a frame buffer of the drawable's size without pixels. */
struct remote {
    uint32_t context, tag, drawable;
    struct framebuffer shell;
};
int connection_is_wanted(void);
int connection_is_direct(void);
int remote_open(struct context *gl, int is_double);
void remote_close(struct context *gl);
int remote_make_current(struct context *gl, uint32_t drawable);
uint32_t remote_create_pbuffer(int width, int height, int is_double);
void remote_destroy_pbuffer(uint32_t drawable);
void remote_swap(struct context *gl, uint32_t drawable);
void remote_read(uint32_t drawable, void *pixels, int width, int height);

/* Requests that were not sent yet. `render` says that the last one is a rendering request of this context, which still grows. */
extern struct connection {
    uint8_t *buffer;
    size_t used, render;
    const struct context *context;
    uint8_t *large;                     /* a command that needs several requests */
    size_t large_bytes;
    struct ring *ring;
    int socket;
    uint16_t sequence;
    size_t open;                        /* where a request for two-dimensional drawing begins, which still grows; 0 behind any other */
} connection;
void *begin_command_slowly(struct context *gl, unsigned opcode, size_t bytes);
void send_large_command(struct context *gl);

/* Room for a command's arguments, which end_command sends; null if memory is short. */
static inline void *begin_command(struct context *gl, unsigned opcode, size_t bytes)
{
    struct connection *c = &connection;
    size_t total = sizeof(struct command_head) + padded(bytes);
    if (c->context != gl || c->used + total > BUFFER_BYTES) return begin_command_slowly(gl, opcode, bytes);
    uint8_t *at = c->buffer + c->used;
    struct command_head head = { (uint16_t)total, (uint16_t)opcode };
    memcpy(at, &head, sizeof head);
    c->used += total;
    return at + sizeof head;
}

static inline void end_command(struct context *gl)
{
    if (connection.large) send_large_command(gl);
}
/* A request with operands; with a reply, its values are written to `to`, at most `most` bytes. Returns the reply's head. */
void send_request(unsigned code, const uint32_t *operands, int count);
/* A request of X's core protocol: operands, then items, which go into the request before if that is the same but for its items. */
void send_core_request(unsigned major, const uint32_t *operands, int count, const int16_t *items, size_t bytes);
/* A command of the device for two-dimensional drawing, into the request before if that is for the same drawable. */
struct flat_command;
void send_flat_command(uint32_t drawable, struct flat_command command, const int16_t *items, size_t bytes);
struct message send_query(unsigned code, const uint32_t *operands, int count, void *to, size_t most);

extern const struct dispatch encoders, device_commands;
extern const struct queries remote_queries, device_queries;
extern const struct rasterizer device_encoder;
#endif
