/* Hostile clients: sessions of changed, cut and random requests, made from trails of real ones, beside a client that must not notice.
 *
 *     fuzz SEED SESSIONS TRAIL...
 *
 * Nothing may crash (build it with sanitizers), nothing may be left allocated, no reply may have what the other client keeps, and
 * that must have its picture at the end. It prints how much the server took and refused. */
#include <stdio.h>
#include "server.h"

enum { STEPS = 60, SIDE = 64, MOST_CORPUS = 1 << 16, MOST_REQUEST = 1 << 18 };
/* Every word of the other client's picture. */
static const uint32_t SECRET = 0xd15ea5ed;

static uint64_t random_state;
static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((random_state >> 33) % below);
}

/* Requests of trails. */
static struct { const uint8_t *bytes; size_t length; } corpus[MOST_CORPUS];
static int corpus_size;

static struct { uint64_t requests, commands, refused, dropped, most_work; } done;

static void fail(const char *what)
{
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

/* Pieces of a trail are whole requests, but for the setup at the beginning. */
static void load(const char *name)
{
    FILE *f = fopen(name, "rb");
    if (!f) fail("a trail cannot be read");
    uint32_t head[2];
    while (fread(head, sizeof head, 1, f) == 1 && head[1] <= 2 * MOST_REQUEST) {
        uint8_t *piece = malloc(head[1] + 1);
        if (fread(piece, 1, head[1], f) != head[1]) fail("a trail ends within a piece");
        int before = corpus_size;
        size_t at = piece[0] == GLX_MAJOR ? 0 : SETUP_BYTES;
        for (struct request r; at + sizeof r <= head[1] && corpus_size < MOST_CORPUS; at += (size_t)r.words * 4) {
            memcpy(&r, piece + at, sizeof r);
            if (r.words == 0 || at + (size_t)r.words * 4 > head[1]) break;
            int is_used = r.code == REQUEST_RENDER || r.code == REQUEST_RENDER_LARGE || r.code > 100;
            if (!is_used) continue;
            corpus[corpus_size].bytes = piece + at, corpus[corpus_size++].length = (size_t)r.words * 4;
        }
        if (corpus_size == before) free(piece);
    }
    fclose(f);
}

static uint32_t interesting(void)
{
    static const uint32_t numbers[] = { 0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 255, 256, 1024, 2048, 4096, 65535, 65536, 0x7fffffff,
        0x80000000, 0xffffffff, 0xfffffffe, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000, 0x7f7fffff, 1 };
    static const uint32_t bases[] = { 0x0, 0x100, 0x200, 0x300, 0x400, 0x500, 0x700, 0x900, 0xb00, 0xba0, 0xc60, 0xd00, 0xd90, 0xde0, 0x1000,
        0x1100, 0x1200, 0x1400, 0x1500, 0x1600, 0x1700, 0x1800, 0x1900, 0x1a00, 0x1b00, 0x1d00, 0x1e00, 0x1f00, 0x2000, 0x2100, 0x2200, 0x2300,
        0x2400, 0x2500, 0x2600, 0x2700, 0x2800, 0x2a00, 0x3000, 0x4000, 0x8030, 0x8060, 0x80e0 };
    switch (draw(4)) {
    case 0: return numbers[draw(sizeof numbers / sizeof *numbers)];
    case 1: return bases[draw(sizeof bases / sizeof *bases)] + draw(16);
    case 2: return draw(0x7fffffff) * 2 + draw(2);
    default: {
        float v = ((int)draw(2001) - 1000) / (draw(3) ? 500.0f : 1.0f);
        uint32_t bits;
        memcpy(&bits, &v, 4);
        return bits;
    }
    }
}

/* Changes words of the arguments, or the lengths and opcodes of commands. */
static void change(uint8_t *p, size_t length)
{
    int changes = (int)draw(6);
    for (int i = 0; i < changes && length >= 8; i++) {
        size_t word = 4 * draw((uint32_t)(length / 4));
        uint32_t v = interesting();
        switch (draw(4)) {
        case 0: p[word + draw(4)] = (uint8_t)draw(256); break;
        case 1: p[word] += draw(3) - 1; break;
        default: memcpy(p + word, &v, 4);
        }
    }
}

/* A command with a random opcode and arguments. */
static size_t random_command(uint8_t *at, int is_direct)
{
    static const uint16_t ranges[] = { 0, 200, 4096, 40 };
    int range = (int)draw(2);
    struct command_head head = { (uint16_t)(4 + 4 * draw(24)), (uint16_t)(ranges[2 * range] + draw(ranges[2 * range + 1])) };
    if (is_direct && draw(2)) head.opcode = (uint16_t)(DEVICE_TRIANGLE + draw(5));
    memcpy(at, &head, sizeof head);
    for (size_t i = 4; i < head.bytes; i += 4) {
        uint32_t v = interesting();
        memcpy(at + i, &v, 4);
    }
    if (head.opcode >= DEVICE_TRIANGLE && head.opcode <= DEVICE_VERTICES && draw(3)) {
        /* the right length for its attributes */
        uint32_t attributes = draw(16);
        memcpy(at + 4, &attributes, 4);
        int count = DEVICE_POINT - head.opcode + 1, flat = attributes & DEVICE_FLAT ? 4 : 0, floats = (int)device_floats(attributes);
        if (head.opcode == DEVICE_VERTICES) {
            struct device_vertices v = { (uint16_t)(attributes & ~DEVICE_FLAT), (uint16_t)draw(10), (uint16_t)draw(2), (uint16_t)draw(12) };
            memcpy(at + 4, &v, sizeof v);
            floats += flat, count = v.count, flat = 0;
        }
        if (head.opcode <= DEVICE_VERTICES) head.bytes = (uint16_t)(12 + 4 * (floats * count + flat));
        for (size_t i = 12; i < head.bytes; i += 4) {
            float v = (int)draw(2000) / (draw(2) ? 20.0f : 2000.0f);
            uint32_t bits = draw(30) ? 0 : interesting();
            memcpy(at + i, bits ? (void *)&bits : (void *)&v, 4);
        }
        memcpy(at, &head, sizeof head);
    }
    return head.bytes;
}

/* Two-dimensional drawing, by core requests or by the device's commands. The drawable is 2, the pen 5. */
static size_t flat_request(uint8_t *at)
{
    static const uint8_t majors[] = { CORE_CREATE_GC, CORE_CHANGE_GC, CORE_POLY_POINT, CORE_POLY_SEGMENT, CORE_POLY_RECTANGLE,
        CORE_POLY_FILL_RECTANGLE };
    int is_core = draw(2) == 0;
    uint8_t major = is_core ? majors[draw(sizeof majors)] : GLX_MAJOR;
    uint32_t w[4] = { 0, draw(10) ? 2 : draw(9), draw(10) ? 5 : draw(9), 4 }, n = draw(30);
    size_t length = 12;
    if (major == CORE_CREATE_GC || major == CORE_CHANGE_GC) w[1] = 5, w[2] = major == CORE_CREATE_GC ? 2 : draw(4) ? 4 : draw(256);
    if (!is_core) w[1] = VENDOR_DRAW_FLAT, w[2] = 0, w[3] = draw(20) ? 2 : draw(9);
    if (!is_core || major == CORE_CREATE_GC) length = 16;
    for (uint32_t i = 0; i < n; i++, length += 4) {
        uint32_t v = draw(3) ? draw(80) | draw(80) << 16 : interesting();
        if (!is_core && i == 0) v = draw(5) | draw(n) << 16;
        memcpy(at + length, &v, 4);
    }
    memcpy(at, w, length < 16 ? length : 16);
    memcpy(at, &(struct request){ major, is_core ? 0 : REQUEST_VENDOR_PRIVATE, (uint16_t)(length / 4) }, 4);
    return length;
}

static size_t make_request(uint8_t *at, int is_direct)
{
    if (draw(8) == 0) return flat_request(at);
    struct request head = { GLX_MAJOR, 0, 0 };
    uint32_t tag = draw(20) ? 1 : draw(20);
    size_t length;
    switch (draw(4)) {
    case 0: {                                           /* random commands */
        length = 8;
        for (int i = (int)draw(20); i >= 0; i--) length += random_command(at + length, is_direct);
        head.code = REQUEST_RENDER;
        break;
    }
    case 1: {                                           /* a random request */
        length = 8 + 4 * draw(12);
        head.code = (uint8_t)(draw(2) ? 101 + draw(46) : draw(32));
        for (size_t i = 8; i < length; i += 4) {
            uint32_t v = interesting();
            memcpy(at + i, &v, 4);
        }
        break;
    }
    default: {                                          /* a real one, changed */
        int i = (int)draw((uint32_t)corpus_size);
        length = corpus[i].length;
        memcpy(at, corpus[i].bytes, length);
        memcpy(&head, at, sizeof head);
        if (length > 8) change(at + 8, length - 8);
        if (draw(30) == 0) length = 4 + 4 * draw((uint32_t)(length / 4));
    }
    }
    head.words = (uint16_t)(length / 4);
    if (draw(200) == 0) head.words = (uint16_t)draw(65536);
    memcpy(at, &head, sizeof head);
    if (length >= 8) memcpy(at + 4, &tag, 4);
    return length;
}

static size_t put_request(uint8_t *at, unsigned code, const uint32_t *operands, int count)
{
    struct request head = { GLX_MAJOR, (uint8_t)code, (uint16_t)(1 + count) };
    memcpy(at, &head, sizeof head);
    memcpy(at + 4, operands, 4 * (size_t)count);
    return 4 + 4 * (size_t)count;
}

/* A client with a context whose tag is 1, and a drawable. */
static struct client *begin(int is_direct, int side)
{
    uint8_t p[256] = { BYTE_ORDER_NAME };
    size_t n = SETUP_BYTES;
    struct client *c = open_client();
    n += put_request(p + n, REQUEST_CREATE_CONTEXT, (uint32_t[]){ 1, 1 + draw(2), 0, 0, (uint32_t)is_direct }, 5);
    n += put_request(p + n, REQUEST_CREATE_PBUFFER, (uint32_t[]){ 0, 1 + draw(2), 2, 2, 0x8041, (uint32_t)side, 0x8040, (uint32_t)side }, 8);
    n += put_request(p + n, REQUEST_MAKE_CURRENT, (uint32_t[]){ 2, 1, 0 }, 3);
    if (!c || client_execute(c, p, n) != (long)n || c->refused) fail("a client was refused");
    c->out.used = 0;
    return c;
}

/* The other client clears its picture to the secret. */
static struct client *begin_other(void)
{
    struct client *c = begin(0, SIDE);
    float color[4];
    for (int k = 0; k < 4; k++) color[k] = (float)(SECRET >> 8 * k & 255) / 255;
    uint8_t p[64];
    struct command_head head[2] = { { 20, 130 }, { 8, 127 } };
    uint32_t mask = GL_COLOR_BUFFER_BIT, tag = 1, buffer = GL_FRONT;
    memcpy(p + 4, &tag, 4);
    memcpy(p + 8, &(struct command_head){ 8, 126 }, 4);
    memcpy(p + 12, &buffer, 4);
    memcpy(p + 16, &head[0], 4), memcpy(p + 20, color, 16);
    memcpy(p + 36, &head[1], 4), memcpy(p + 40, &mask, 4);
    memcpy(p, &(struct request){ GLX_MAJOR, REQUEST_RENDER, 11 }, 4);
    if (client_execute(c, p, 44) != 44 || c->refused) fail("the other client was refused");
    return c;
}

static int count_secrets(const struct bytes *b)
{
    int count = 0;
    for (size_t i = 0; i + 4 <= b->used; i += 4) count += !memcmp(b->data + i, &SECRET, 4);
    return count;
}

static void check_other(struct client *c)
{
    uint8_t p[16];
    size_t n = put_request(p, REQUEST_VENDOR_PRIVATE_WITH_REPLY, (uint32_t[]){ VENDOR_READ_DRAWABLE, 0, 2 }, 3);
    c->out.used = 0;
    if (client_execute(c, p, n) != (long)n || count_secrets(&c->out) != SIDE * SIDE) fail("the other client's picture changed");
    c->out.used = 0;
}

/* Feeds the requests in random pieces. */
static void session(void)
{
    static uint8_t in[2 * MOST_REQUEST];
    int is_direct = (int)draw(2);
    size_t used = 0;
    struct client *c = begin(is_direct, SIDE);
    for (int i = 0; i < STEPS; i++) {
        uint8_t *request = malloc(MOST_REQUEST);
        size_t length = make_request(request, is_direct), from = draw(4) ? length : draw((uint32_t)length + 1);
        if (used + length > sizeof in) break;
        memcpy(in + used, request, from);
        used += from;
        uint8_t *exact = malloc(used ? used : 1);              /* a sanitizer sees what is read behind it */
        memcpy(exact, in, used);
        long taken = client_execute(c, exact, used);
        free(exact);
        if (taken < 0) {
            done.dropped++;
            free(request);
            break;
        }
        memmove(in, in + taken, used - (size_t)taken);
        used -= (size_t)taken;
        memcpy(in + used, request + from, length - from);
        used += length - from;
        free(request);
        if (count_secrets(&c->out) > 0) fail("a reply has what another client keeps");
        c->out.used = 0;
        c->wants_ring = 0;
        if (c->work_of_turn > done.most_work) done.most_work = c->work_of_turn;
    }
    done.requests += c->requests, done.commands += c->commands, done.refused += c->refused;
    close_client(c);
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    random_state = strtoull(argv[1], NULL, 10);
    for (int i = 3; i < argc; i++) load(argv[i]);
    if (corpus_size == 0) fail("the trails have no requests");
    struct client *other = begin_other();
    long sessions = atol(argv[2]);
    for (long i = 0; i < sessions; i++) {
        session();
        check_other(other);
    }
    close_client(other);
    printf("%ld sessions: %llu requests, %llu commands, %llu refused, %llu clients dropped\n", sessions, (unsigned long long)done.requests,
        (unsigned long long)done.commands, (unsigned long long)done.refused, (unsigned long long)done.dropped);
    return 0;
}
