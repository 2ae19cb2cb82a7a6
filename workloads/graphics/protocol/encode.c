/* The program's side of rendering commands: encoders expanded from commands.def. */
#include "protocol.h"

/* Copies words to their places among those that the protocol does not use. */
static void spread(uint8_t *to, const void *from, size_t words, int gaps)
{
    const uint8_t *next = from;
    for (size_t at = 0; words > 0; at++, to += 4) {
        if (gaps >> at & 1) continue;
        memcpy(to, next, 4);
        next += 4, words--;
    }
}

static void encode_image(struct context *gl, unsigned opcode, const void *arguments, size_t bytes, struct image_shape s, const void *v)
{
    size_t length = padded(bytes) + 4 * __builtin_popcount(s.gaps);
    int is_known = format_components(s.format) && (type_size(s.type) || s.type == GL_BITMAP);
    size_t image = v && is_known ? packed_size((int)s.width, (int)s.height, s.format, s.type) : 0;
    uint8_t *at = begin_command(gl, opcode, sizeof(struct image_head) + length + image);
    if (!at) return;
    struct image_head head = { .alignment = 1 };
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    memset(at, 0, length);
    spread(at, arguments, bytes / 4, s.gaps);
    if (image) pack_image(&gl->client.unpack, (int)s.width, (int)s.height, s.format, s.type, v, at + length);
    end_command(gl);
}

#define OPCODE_BEGIN 4
#define OPCODE_END 23

#define COMMAND(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded) \
    static void encode_##name CTX_P parameters \
    { \
        struct sent_##name *p = begin_command(gl, opcode, sizeof *p); \
        if (!p) return; \
        assign \
        end_command(gl); \
        if (opcode == OPCODE_BEGIN || opcode == OPCODE_END) gl->inside = opcode == OPCODE_BEGIN; \
    }
#define ARRAY(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, type, count) \
    static void encode_##name CTX_P parameters \
    { \
        size_t bytes = (count) * sizeof(type), is_first = sizeof(type) == 8; \
        uint8_t *at = begin_command(gl, opcode, sizeof(struct sent_##name) + bytes); \
        if (!at) return; \
        struct sent_##name *p = (void *)(at + (is_first ? bytes : 0)); \
        (void)p; \
        assign \
        if (bytes) memcpy(is_first ? at : at + sizeof *p, v, bytes); \
        end_command(gl); \
    }
#define IMAGE(name, allowed, opcode, side, parameters, arguments, fields, assign, recorded, ...) \
    static void encode_##name CTX_P parameters \
    { \
        struct sent_##name sent, *p = &sent; \
        (void)p; \
        assign \
        encode_image(gl, opcode, p, sizeof sent, shape_##name arguments, v); \
    }
#include "../expand.h"

#define COMMAND(name, ...) encode_##name,
#define ARRAY COMMAND
#define IMAGE COMMAND
const struct dispatch encoders = {
#include "../expand.h"
};
