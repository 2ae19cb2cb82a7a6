/* Images in client memory: their formats, types and layouts. */
#include "context.h"

const struct pixel_store tight_store = { .alignment = 1 };

/* The place of each component in R, G, B, A; luminance is spread over the first three when it is unpacked. */
static const struct { GLenum format; int components; int8_t place[4]; } formats[] = {
    { GL_COLOR_INDEX, 1, { 0 } }, { GL_STENCIL_INDEX, 1, { 0 } }, { GL_DEPTH_COMPONENT, 1, { 0 } }, { GL_RED, 1, { 0 } },
    { GL_GREEN, 1, { 1 } }, { GL_BLUE, 1, { 2 } }, { GL_ALPHA, 1, { 3 } }, { GL_RGB, 3, { 0, 1, 2 } }, { GL_RGBA, 4, { 0, 1, 2, 3 } },
    { GL_LUMINANCE, 1, { 0 } }, { GL_LUMINANCE_ALPHA, 2, { 0, 3 } }, { GL_BGR, 3, { 2, 1, 0 } }, { GL_BGRA, 4, { 2, 1, 0, 3 } },
};

static int format_index(GLenum format)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].format == format) return (int)i;
    return -1;
}

int format_components(GLenum format)
{
    int i = format_index(format);
    return i < 0 ? 0 : formats[i].components;
}

int type_size(GLenum type)
{
    switch (type) {
    case GL_BYTE: case GL_UNSIGNED_BYTE: return 1;
    case GL_SHORT: case GL_UNSIGNED_SHORT: return 2;
    case GL_INT: case GL_UNSIGNED_INT: case GL_FLOAT: return 4;
    case GL_DOUBLE: return 8;
    default: return 0;
    }
}

int check_format(struct context *gl, GLenum format, GLenum type)
{
    if (format_components(format) == 0 || (type_size(type) == 0 && type != GL_BITMAP) || type == GL_DOUBLE
        || (type == GL_BITMAP && format != GL_COLOR_INDEX && format != GL_STENCIL_INDEX)) {
        gl_error(gl, GL_INVALID_ENUM);
        return 0;
    }
    return 1;
}

static size_t row_bytes(const struct pixel_store *p, int width, GLenum format, GLenum type)
{
    int length = p->row_length > 0 ? p->row_length : width;
    size_t bytes = type == GL_BITMAP ? (size_t)(length + 7) / 8 : (size_t)length * format_components(format) * type_size(type);
    return (bytes + p->alignment - 1) / p->alignment * p->alignment;
}

const void *image_row(const struct pixel_store *p, const void *base, int width, GLenum format, GLenum type, int y)
{
    const uint8_t *row = (const uint8_t *)base + (size_t)(y + p->skip_rows) * row_bytes(p, width, format, type);
    return type == GL_BITMAP ? row : row + (size_t)p->skip_pixels * format_components(format) * type_size(type);
}

const void *bits_row(const struct pixel_store *p, const void *base, int width, int y)
{
    return image_row(p, base, width, GL_COLOR_INDEX, GL_BITMAP, y);
}

int bit_of(const struct pixel_store *p, const uint8_t *row, int x)
{
    x += p->skip_pixels;
    return row[x >> 3] >> (p->lsb_first ? x & 7 : 7 - (x & 7)) & 1;
}

size_t packed_size(int width, int height, GLenum format, GLenum type)
{
    return width > 0 && height > 0 ? row_bytes(&tight_store, width, format, type) * height : 0;
}

void swap_bytes(uint8_t *bytes, size_t count, int size)
{
    for (; count > 0; count--, bytes += size)
        for (int i = 0; i < size / 2; i++) {
            uint8_t t = bytes[i];
            bytes[i] = bytes[size - 1 - i], bytes[size - 1 - i] = t;
        }
}

/* Copies an image so that it has the tight layout. */
void pack_image(const struct pixel_store *p, int width, int height, GLenum format, GLenum type, const void *from, void *to)
{
    size_t bytes = row_bytes(&tight_store, width, format, type);
    for (int y = 0; y < height; y++) {
        const void *row = image_row(p, from, width, format, type, y);
        uint8_t *out = (uint8_t *)to + y * bytes;
        if (type != GL_BITMAP) {
            memcpy(out, row, bytes);
            if (p->swap && type_size(type) > 1) swap_bytes(out, bytes / type_size(type), type_size(type));
            continue;
        }
        memset(out, 0, bytes);
        for (int x = 0; x < width; x++) out[x >> 3] |= bit_of(p, row, x) << (7 - (x & 7));
    }
}

/* One component, normalized unless the format is one of indices. */
static float component(const uint8_t *at, GLenum type, int is_index)
{
    union { int16_t s; uint16_t us; int32_t i; uint32_t ui; float f; } v;
    switch (type) {
    case GL_UNSIGNED_BYTE: return is_index ? *at : *at / 255.0f;
    case GL_BYTE: return is_index ? (int8_t)*at : (2 * (int8_t)*at + 1) / 255.0f;
    case GL_UNSIGNED_SHORT: memcpy(&v, at, 2); return is_index ? v.us : v.us / 65535.0f;
    case GL_SHORT: memcpy(&v, at, 2); return is_index ? v.s : (2 * v.s + 1) / 65535.0f;
    case GL_UNSIGNED_INT: memcpy(&v, at, 4); return is_index ? v.ui : v.ui / 4294967295.0;
    case GL_INT: memcpy(&v, at, 4); return is_index ? v.i : (2 * (double)v.i + 1) / 4294967295.0;
    default: memcpy(&v, at, 4); return v.f;
    }
}

void unpack_rgba(struct context *gl, int width, GLenum format, GLenum type, const void *row, float (*out)[4])
{
    const struct pixel_store *p = &gl->client.unpack;
    int f = format_index(format), size = type_size(type), is_index = format == GL_COLOR_INDEX || format == GL_STENCIL_INDEX;
    const uint8_t *at = row;
    for (int x = 0; x < width; x++) {
        float *c = out[x];
        c[0] = c[1] = c[2] = 0, c[3] = 1;
        if (type == GL_BITMAP) {
            c[0] = bit_of(p, row, x);
            continue;
        }
        for (int k = 0; k < formats[f].components; k++, at += size) {
            uint8_t swapped[8];
            memcpy(swapped, at, size);
            if (p->swap) swap_bytes(swapped, 1, size);
            c[formats[f].place[k]] = component(swapped, type, is_index);
        }
        if (format == GL_LUMINANCE || format == GL_LUMINANCE_ALPHA) c[1] = c[2] = c[0];
    }
}

static void put_component(uint8_t *at, GLenum type, float v, int is_index)
{
    double c = is_index ? v : v < 0 ? 0 : v > 1 ? 1 : v;
    union { int16_t s; uint16_t us; int32_t i; uint32_t ui; float f; } u;
    switch (type) {
    case GL_UNSIGNED_BYTE: *at = (uint8_t)(is_index ? c : c * 255 + 0.5); return;
    case GL_BYTE: *at = (uint8_t)(int8_t)(is_index ? c : floor((c * 255 - 1) / 2 + 0.5)); return;
    case GL_UNSIGNED_SHORT: u.us = (uint16_t)(is_index ? c : c * 65535 + 0.5); memcpy(at, &u, 2); return;
    case GL_SHORT: u.s = (int16_t)(is_index ? c : floor((c * 65535 - 1) / 2 + 0.5)); memcpy(at, &u, 2); return;
    case GL_UNSIGNED_INT: u.ui = (uint32_t)(is_index ? c : c * 4294967295.0); memcpy(at, &u, 4); return;
    case GL_INT: u.i = (int32_t)(is_index ? c : floor((c * 4294967295.0 - 1) / 2)); memcpy(at, &u, 4); return;
    default: u.f = v; memcpy(at, &u, 4);
    }
}

void pack_rgba(struct context *gl, int width, GLenum format, GLenum type, float (*in)[4], void *out)
{
    int f = format_index(format), size = type_size(type), is_index = format == GL_COLOR_INDEX || format == GL_STENCIL_INDEX;
    uint8_t *at = out;
    for (int x = 0; x < width; x++) {
        float c[4] = { in[x][0], in[x][1], in[x][2], in[x][3] };
        if (format == GL_LUMINANCE || format == GL_LUMINANCE_ALPHA) {
            c[0] = c[0] + c[1] + c[2];
            if (c[0] > 1) c[0] = 1;
        }
        for (int k = 0; k < formats[f].components; k++, at += size) {
            put_component(at, type, c[formats[f].place[k]], is_index);
            if (gl->client.pack.swap) swap_bytes(at, 1, size);
        }
    }
}
