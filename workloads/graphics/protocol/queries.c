/* The program's side of requests: queries wait for a reply. */
#include "protocol.h"
#include <stdio.h>

enum { MOST_NAMES_AT_ONCE = 4096 };

static void read_values(unsigned code, const uint32_t *names, int count, void *to, size_t size, size_t most)
{
    uint8_t values[MAX_ORDER * MAX_ORDER * 4 * 8];
    uint32_t operands[4] = { current->remote->tag };
    memcpy(operands + 1, names, 4 * (size_t)count);
    struct message m = send_query(code, operands, 1 + count, values, sizeof values);
    size_t bytes = m.count * size;
    if (m.type != MESSAGE_REPLY || bytes > most * size) return;
    memcpy(to, m.count == 1 ? m.inline_value : values, bytes);
}

#define VALUES1(name, code, T, count) \
    static void remote_##name(GLenum a, T *v) \
    { \
        uint32_t names[1] = { a }; \
        if (is_client_variable(a)) gl##name(a, v); \
        else read_values(code, names, 1, v, sizeof *v, MOST_VALUES_OF(code)); \
    }
#define VALUES2(name, code, T, count) \
    static void remote_##name(GLenum a, GLenum b, T *v) \
    { \
        uint32_t names[2] = { a, b }; \
        read_values(code, names, 2, v, sizeof *v, MOST_VALUES_OF(code)); \
    }
#define VALUES3(name, code, T, count) \
    static void remote_##name(GLenum a, GLint b, GLenum c, T *v) \
    { \
        uint32_t names[3] = { a, (uint32_t)b, c }; \
        read_values(code, names, 3, v, sizeof *v, MOST_VALUES_OF(code)); \
    }
#define RESULT0(result, name, code) \
    static result remote_##name(void) \
    { \
        GLenum error = current->error; \
        current->error = GL_NO_ERROR; \
        result found = (result)send_query(code, &current->remote->tag, 1, NULL, 0).value; \
        return error ? error : found; \
    }
#define RESULT1(result, name, code, A) \
    static result remote_##name(A a) \
    { \
        uint32_t operands[2] = { current->remote->tag, (uint32_t)a }; \
        if (code == 140 && is_client_variable(operands[1])) return (result)glIsEnabled(operands[1]); \
        return (result)send_query(code, operands, 2, NULL, 0).value; \
    }
#define REQUEST0(name, code) \
    static void remote_##name(void) { send_request(code, &current->remote->tag, 1); }
#define REQUEST2(name, code, A, B) \
    static void remote_##name(A a, B b) \
    { \
        uint32_t operands[3] = { current->remote->tag, (uint32_t)a, (uint32_t)b }; \
        send_request(code, operands, 3); \
    }
#define OTHER(result, name, code, parameters, arguments)
#include "../queries.def"

static void remote_FeedbackBuffer(GLsizei size, GLenum type, GLfloat *buffer)
{
    uint32_t operands[3] = { current->remote->tag, (uint32_t)size, type };
    glFeedbackBuffer(size, type, buffer);
    send_request(105, operands, 3);
}

static void remote_SelectBuffer(GLsizei size, GLuint *buffer)
{
    uint32_t operands[2] = { current->remote->tag, (uint32_t)size };
    glSelectBuffer(size, buffer);
    send_request(106, operands, 2);
}

/* The buffer of the mode that ends comes with the reply. */
static GLint remote_RenderMode(GLenum mode)
{
    struct context *gl = current;
    uint32_t operands[2] = { gl->remote->tag, mode };
    int is_select = gl->render_mode == GL_SELECT;
    void *to = is_select ? (void *)gl->select_buffer : gl->render_mode == GL_FEEDBACK ? (void *)gl->feedback_buffer : NULL;
    GLsizei size = is_select ? gl->select_size : gl->feedback_size;
    struct message m = send_query(107, operands, 2, to, to ? (size_t)size * 4 : 0);
    if (m.type != MESSAGE_REPLY) return 0;
    if (m.extra[0]) gl->render_mode = m.extra[0];
    return (GLint)m.value;
}

static void remote_Finish(void)
{
    send_query(108, &current->remote->tag, 1, NULL, 0);
    if (current->flush_window) current->flush_window(current);
}

/* A reply is waited for, so that a program cannot run ahead of the server by more than a picture. */
static void remote_Flush(void) { remote_Finish(); }

/* Copies an image whose rows are padded to words to where the layout of glPixelStore puts it. */
static void place_image(int width, int height, GLenum format, GLenum type, const uint8_t *from, void *to)
{
    const struct pixel_store *p = &current->client.pack;
    int size = type_size(type);
    size_t bytes = (size_t)width * format_components(format) * size;
    for (int y = 0; y < height; y++, from += padded(bytes)) {
        uint8_t *row = (uint8_t *)image_row(p, to, width, format, type, y);
        memcpy(row, from, bytes);
        if (p->swap && size > 1) swap_bytes(row, bytes / size, size);
    }
}

static void remote_ReadPixels(GLint x, GLint y, GLsizei width, GLsizei height, GLenum format, GLenum type, GLvoid *v)
{
    int is_known = format_components(format) && type_size(type) && width > 0 && height > 0;
    size_t most = is_known ? padded((size_t)width * format_components(format) * type_size(type)) * height : 0;
    uint32_t operands[8] = { current->remote->tag, (uint32_t)x, (uint32_t)y, (uint32_t)width, (uint32_t)height, format, type };
    uint8_t *pixels = malloc(most + 1);
    if (!pixels) {
        gl_error(current, GL_OUT_OF_MEMORY);
        return;
    }
    struct message m = send_query(111, operands, 8, pixels, most);
    if (m.type == MESSAGE_REPLY && most && (size_t)m.words * 4 == most) place_image(width, height, format, type, pixels, v);
    free(pixels);
}

static void remote_GetTexImage(GLenum target, GLint level, GLenum format, GLenum type, GLvoid *v)
{
    enum { MOST = MAX_SIZE * MAX_SIZE };
    uint32_t operands[6] = { current->remote->tag, target, (uint32_t)level, format, type };
    size_t most = (size_t)MOST * format_components(format) * type_size(type);
    uint8_t *pixels = malloc(most + 1);
    if (!pixels) {
        gl_error(current, GL_OUT_OF_MEMORY);
        return;
    }
    struct message m = send_query(135, operands, 6, pixels, most);
    uint32_t width, height;
    memcpy(&width, m.inline_value, 4), memcpy(&height, m.inline_value + 4, 4);
    if (m.words && width <= MAX_SIZE && height <= MAX_SIZE
        && padded((size_t)width * format_components(format) * type_size(type)) * height == (size_t)m.words * 4)
        place_image((int)width, (int)height, format, type, pixels, v);
    free(pixels);
}

static void remote_GetPolygonStipple(GLubyte *v)
{
    uint32_t operands[2] = { current->remote->tag, 0 };
    uint8_t rows[128];
    if (send_query(128, operands, 2, rows, sizeof rows).words != sizeof rows / 4) return;
    for (int y = 0; y < 32; y++) memcpy((uint8_t *)bits_row(&current->client.pack, v, 32, y), rows + 4 * y, 4);
}

static const GLubyte *remote_GetString(GLenum name)
{
    static char strings[4][256];
    uint32_t operands[2] = { current->remote->tag, name };
    char *to = strings[(name - GL_VENDOR) & 3];
    struct message m = send_query(129, operands, 2, to, 255);
    return m.type == MESSAGE_REPLY && m.count ? (const GLubyte *)to : NULL;
}

/* Operands of a request with names. */
static void put_names(uint32_t *operands, GLsizei n, const GLuint *names)
{
    operands[0] = current->remote->tag, operands[1] = (uint32_t)n;
    if (names && n > 0) memcpy(operands + 2, names, 4 * (size_t)n);
}

static GLboolean remote_AreTexturesResident(GLsizei n, const GLuint *names, GLboolean *residences)
{
    uint32_t operands[2 + MOST_NAMES_AT_ONCE];
    GLboolean all = GL_TRUE;
    for (GLsizei i = 0; i < n; i += MOST_NAMES_AT_ONCE) {
        GLsizei count = n - i < MOST_NAMES_AT_ONCE ? n - i : MOST_NAMES_AT_ONCE;
        put_names(operands, count, names + i);
        all &= (GLboolean)send_query(143, operands, 2 + count, residences + i, (size_t)count).value;
    }
    return all;
}

static void remote_DeleteTextures(GLsizei n, const GLuint *names)
{
    uint32_t operands[2 + MOST_NAMES_AT_ONCE];
    for (GLsizei i = 0; i < n || i == 0; i += MOST_NAMES_AT_ONCE) {
        GLsizei count = n - i < MOST_NAMES_AT_ONCE ? n - i : MOST_NAMES_AT_ONCE;
        put_names(operands, count, names + i);
        send_request(144, operands, count < 0 ? 2 : 2 + count);
    }
}

static void remote_GenTextures(GLsizei n, GLuint *names)
{
    for (GLsizei i = 0; i < n || i == 0; i += MOST_NAMES_AT_ONCE) {
        GLsizei count = n - i < MOST_NAMES_AT_ONCE ? n - i : MOST_NAMES_AT_ONCE;
        uint32_t operands[2] = { current->remote->tag, (uint32_t)count };
        struct message m = send_query(145, operands, 2, names + i, count < 0 ? 0 : 4 * (size_t)count);
        if (m.count == 1 && count == 1) memcpy(names + i, m.inline_value, 4);
    }
}

#define QUERY(result, name, parameters, arguments) remote_##name,
const struct queries remote_queries = {
#include "../queries.def"
};

/* Direct rendering: what needs the frame buffer is asked from the server, all else is here. Both have the textures. */
static void device_DeleteTextures(GLsizei n, const GLuint *names)
{
    glDeleteTextures(n, names);
    if (n > 0) remote_DeleteTextures(n, names);
}

#define DEVICE_QUERIES \
    .GetError = remote_GetError, .Finish = remote_Finish, .Flush = remote_Flush, .ReadPixels = remote_ReadPixels, \
    .GetTexImage = remote_GetTexImage, .DeleteTextures = device_DeleteTextures
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define QUERY(result, name, parameters, arguments) .name = gl##name,
const struct queries device_queries = {
#include "../queries.def"
    DEVICE_QUERIES
};
#pragma GCC diagnostic pop
