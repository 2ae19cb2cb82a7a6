/* The server's clients, without their transport: requests come as bytes, of which nothing is believed, and replies are left as bytes. */
#ifndef SERVER_H
#define SERVER_H
#include "../protocol/protocol.h"

enum { CLIENT_CONTEXTS = 16, CLIENT_DRAWABLES = 16, CLIENT_PENS = 16, MOST_WIDTH_OF_DRAWABLE = 4096, MOST_MEMORY = 1 << 28, MOST_PENDING = 1 << 18 };
/* The most that one request may cost, and the requests of a client before it is another one's turn: in pixels, or what takes as long. */
static const uint64_t MOST_WORK = 1 << 27, MOST_WORK_OF_TURN = 1 << 22;

/* Pixels that contexts of a client draw to; a window's are shown by present.c. */
struct drawable { uint32_t id; int is_window; struct framebuffer *fb; void *window; };
struct rendering { uint32_t id; struct context *gl; int is_direct, is_double; struct drawable *drawable; };

/* A graphics context of X: of it, the server knows the foreground. */
struct pen { uint32_t id, pixel; };

struct bytes { uint8_t *data; size_t used, capacity; };

struct client {
    int is_set_up, wants_ring, has_more;      /* has_more: its turn ended before its requests did */
    uint64_t work_of_turn;
    uint16_t sequence;
    struct rendering rendering[CLIENT_CONTEXTS];
    struct drawable *drawable[CLIENT_DRAWABLES];
    struct pen pen[CLIENT_PENS];
    struct bytes out;
    /* A command that comes in several requests. */
    struct bytes large;
    int large_number, large_total;
    uint32_t large_tag;
    uint64_t requests, commands, refused;
};

struct client *open_client(void);
void close_client(struct client *c);
/* Executes the complete requests in p[0..n), as long as few enough bytes wait to be sent and it is the client's turn. Returns how many
 * bytes it took; -1 if the client has to go, because requests cannot be told apart any more, or one costs too much. */
long client_execute(struct client *c, const uint8_t *p, size_t n);

/* Primitives go to this rasterizer. */
extern const struct rasterizer *server_rasterizer;

/* decode.c: a rendering command with its arguments; 0 if there is none of this opcode and length. */
int decode_command(struct rendering *r, unsigned opcode, const uint8_t *at, size_t bytes);

/* draw.c: two-dimensional drawing, by core requests and by commands of the device. Returns X's error, or 0. */
unsigned draw_by_core_request(struct client *c, const struct request *head, const uint8_t *p, size_t bytes);
unsigned draw_by_commands(struct client *c, struct drawable *d, const uint8_t *p, size_t bytes);
struct drawable *client_drawable(const struct client *c, uint32_t id);

/* serve.c: whose commands are executed, for the hooks of contexts; and a drawable that is a window gets its picture. */
extern struct rendering *serving;
void show_drawable(struct drawable *d);

/* answers.c: bytes at the end, zero; null if memory is short. A reply that values follow, and where they go; an error. They return 0
 * or null if memory is short: the client goes then, as it cannot go on without its reply. */
uint8_t *append_bytes(struct bytes *b, size_t n);
uint8_t *add_reply(struct client *c, struct message m, size_t bytes);
int refuse_request(struct client *c, unsigned error);
/* By the code of a request of queries.def, what answers it; w has the operands after the context's tag. */
typedef int answerer(struct client *c, struct context *gl, const uint32_t *w, int count);
extern answerer *const answerers[256];

/* present.c: windows of an X server; no_windows.c: there are none. */
int present_open(const char *display);
int present_connection(void);
/* A window's size, and a handle; null if there is no such window. */
void *present_window(uint32_t id, int *width, int *height);
int present_size(void *window, int *width, int *height);
void present_picture(void *window, const struct framebuffer *fb);
/* Waits until the X server has all pictures: what reads a window by another connection sees them. */
void present_finish(void);
void present_close(void *window);
void present_events(void);
#endif
