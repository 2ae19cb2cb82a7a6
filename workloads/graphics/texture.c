/* Texture objects and images. Texels are kept as four bytes; the base format says which of them the environment uses. */
#include "paths.h"

/* Null if memory is short. */
static struct texture *new_texture(struct context *gl, GLuint name, GLenum target)
{
    struct texture *t = gl_allocate(gl, NULL, sizeof *t);
    if (!t) return NULL;
    memset(t, 0, sizeof *t);
    t->name = name, t->target = target;
    t->min_filter = GL_NEAREST_MIPMAP_LINEAR, t->mag_filter = GL_LINEAR;
    t->wrap_s = t->wrap_t = GL_REPEAT;
    t->priority = 1;
    return t;
}

static void free_texture(struct context *gl, struct texture *t)
{
    if (!t) return;
    for (int i = 0; i < LEVELS; i++) gl_release(gl, t->level[i].texels);
    gl_release(gl, t);
}

void init_textures(struct context *gl)
{
    for (int i = 0; i < 2; i++) gl->bound[i] = gl->default_texture[i] = new_texture(gl, 0, i ? GL_TEXTURE_2D : GL_TEXTURE_1D);
}

void free_textures(struct context *gl)
{
    for (int i = 0; i < 2; i++) free_texture(gl, gl->default_texture[i]);
    for (int i = 0; i < gl->texture_capacity; i++) free_texture(gl, gl->textures[i]);
    gl_release(gl, gl->textures);
}

struct texture *texture_of(struct context *gl, GLenum target)
{
    return target == GL_TEXTURE_1D ? gl->bound[0] : target == GL_TEXTURE_2D ? gl->bound[1] : NULL;
}

/* The texture of a name, which is only reserved if it has no target yet; null if there is none. */
static struct texture *find(struct context *gl, GLuint name)
{
    return name && name < (GLuint)gl->texture_capacity ? gl->textures[name] : NULL;
}

enum { MOST_NAMES = 1 << 20 };

/* Null if memory is short. */
static struct texture *create(struct context *gl, GLuint name, GLenum target)
{
    if (name >= (GLuint)gl->texture_capacity) {
        int capacity = name + 64;
        struct texture **grown = gl_allocate(gl, gl->textures, capacity * sizeof *grown);
        if (!grown) return NULL;
        gl->textures = grown;
        memset(gl->textures + gl->texture_capacity, 0, (capacity - gl->texture_capacity) * sizeof *gl->textures);
        gl->texture_capacity = capacity;
    }
    return gl->textures[name] = new_texture(gl, name, target);
}

void exec_BindTexture(struct context *gl, GLenum target, GLuint name)
{
    int dimension = target == GL_TEXTURE_2D;
    if (!dimension && target != GL_TEXTURE_1D) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (name >= MOST_NAMES) {
        gl_error(gl, GL_OUT_OF_MEMORY);
        return;
    }
    struct texture *t = name ? find(gl, name) : gl->default_texture[dimension];
    if (!t) t = create(gl, name, target);
    if (!t) {
        gl_error(gl, GL_OUT_OF_MEMORY);
        return;
    }
    if (!t->target) t->target = target;
    if (t->target != target) {
        gl_error(gl, GL_INVALID_OPERATION);
        return;
    }
    gl->bound[dimension] = t;
    gl->s.texture.bound[dimension] = name;
    gl->dirty |= DIRTY_ALL;
}

/* Binds what glPopAttrib restored, with the parameters that it saved. */
void bind_restored(struct context *gl, const struct texture *parameters)
{
    for (int i = 0; i < 2; i++) {
        GLuint name = gl->s.texture.bound[i];
        struct texture *t = name ? find(gl, name) : gl->default_texture[i];
        if (!t) t = gl->default_texture[i], gl->s.texture.bound[i] = 0;
        gl->bound[i] = t;
        t->min_filter = parameters[i].min_filter, t->mag_filter = parameters[i].mag_filter;
        t->wrap_s = parameters[i].wrap_s, t->wrap_t = parameters[i].wrap_t;
        memcpy(t->border, parameters[i].border, sizeof t->border);
        t->priority = parameters[i].priority;
    }
}

void APIENTRY glGenTextures(GLsizei n, GLuint *names)
{
    struct context *gl = current;
    if (n < 0) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    GLuint name = 1;
    for (int i = 0; i < n; i++) {
        while (find(gl, name)) name++;
        if (name >= MOST_NAMES || !create(gl, name, 0)) {
            gl_error(gl, GL_OUT_OF_MEMORY);
            return;
        }
        names[i] = name++;
    }
}

void APIENTRY glDeleteTextures(GLsizei n, const GLuint *names)
{
    struct context *gl = current;
    if (n < 0) gl_error(gl, GL_INVALID_VALUE);
    for (int i = 0; i < n; i++) {
        struct texture *t = find(gl, names[i]);
        if (!t) continue;
        for (int k = 0; k < 2; k++)
            if (gl->bound[k] == t) exec_BindTexture(gl, k ? GL_TEXTURE_2D : GL_TEXTURE_1D, 0);
        gl->textures[names[i]] = NULL;
        free_texture(gl, t);
        gl->active_texture = NULL;
        gl->dirty |= DIRTY_ALL;
    }
}

GLboolean APIENTRY glIsTexture(GLuint name)
{
    struct texture *t = find(current, name);
    return t && t->target;
}

GLboolean APIENTRY glAreTexturesResident(GLsizei n, const GLuint *names, GLboolean *residences)
{
    (void)residences;
    for (int i = 0; i < n; i++)
        if (!glIsTexture(names[i])) {
            gl_error(current, GL_INVALID_VALUE);
            return GL_FALSE;
        }
    return GL_TRUE;
}

/* v: names, then priorities, whose bits are those of floating-point numbers. */
void exec_PrioritizeTexturesv(struct context *gl, GLsizei n, const GLuint *v)
{
    if (n < 0 || n > MOST_PRIORITIES) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    for (int i = 0; i < n; i++) {
        struct texture *t = find(gl, v[i]);
        float priority;
        memcpy(&priority, v + n + i, sizeof priority);
        if (t) t->priority = clamp01(priority);
    }
}

int base_format(GLint internal)
{
    static const struct { GLint first, last; int base; } range[] = { { GL_ALPHA4, GL_ALPHA16, GL_ALPHA },
        { GL_LUMINANCE4, GL_LUMINANCE16, GL_LUMINANCE }, { GL_LUMINANCE4_ALPHA4, GL_LUMINANCE16_ALPHA16, GL_LUMINANCE_ALPHA },
        { GL_INTENSITY, GL_INTENSITY16, GL_INTENSITY }, { GL_RGB4, GL_RGB16, GL_RGB }, { GL_RGBA2, GL_RGBA16, GL_RGBA } };
    switch (internal) {
    case 1: return GL_LUMINANCE;
    case 2: return GL_LUMINANCE_ALPHA;
    case 3: case GL_R3_G3_B2: return GL_RGB;
    case 4: return GL_RGBA;
    case GL_ALPHA: case GL_LUMINANCE: case GL_LUMINANCE_ALPHA: case GL_RGB: case GL_RGBA: return internal;
    }
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (internal >= range[i].first && internal <= range[i].last) return range[i].base;
    return 0;
}

/* Determines the last level that is used; a set that mipmapping asks for and that has gaps disables texturing. */
void complete_texture(struct texture *t)
{
    const struct texture_image *base = &t->level[0];
    t->last_level = base->texels ? 0 : -1;
    if (!base->texels || t->min_filter == GL_NEAREST || t->min_filter == GL_LINEAR) return;
    int width = base->width, height = base->height, level = 0;
    while (width > 1 || height > 1) {
        width = width > 1 ? width / 2 : 1, height = height > 1 ? height / 2 : 1;
        if (++level >= LEVELS) {
            t->last_level = -1;
            return;
        }
        const struct texture_image *next = &t->level[level];
        if (!next->texels || next->width != width || next->height != height || next->format != base->format) {
            t->last_level = -1;
            return;
        }
    }
    t->last_level = level;
}

static int is_power_of_2(int n) { return n > 0 && (n & (n - 1)) == 0; }

/* Checks the arguments that all functions which define an image share; 1 if they are right. */
static int check_image(struct context *gl, GLint level, GLint internal, GLsizei width, GLsizei height, GLint border)
{
    if (level < 0 || level >= LEVELS || !base_format(internal) || (border != 0 && border != 1) || width < 2 * border || height < 2 * border
        || width - 2 * border > MAX_SIZE || height - 2 * border > MAX_SIZE || (width > 2 * border && !is_power_of_2(width - 2 * border))
        || (height > 2 * border && !is_power_of_2(height - 2 * border))) {
        gl_error(gl, GL_INVALID_VALUE);
        return 0;
    }
    return 1;
}

static void store_texel(uint8_t *out, const float *rgba, int format)
{
    float v[4] = { rgba[0], rgba[1], rgba[2], rgba[3] };
    if (format == GL_LUMINANCE || format == GL_LUMINANCE_ALPHA || format == GL_INTENSITY) v[1] = v[2] = v[0];
    if (format == GL_INTENSITY) v[3] = v[0];
    if (format == GL_LUMINANCE || format == GL_RGB) v[3] = 1;
    if (format == GL_ALPHA) v[0] = v[1] = v[2] = 0;
    for (int k = 0; k < 4; k++) out[k] = (uint8_t)((v[k] < 0 ? 0 : v[k] > 1 ? 1 : v[k]) * 255 + 0.5f);
}

static struct texture_image *define(struct context *gl, GLenum target, GLint level, GLint internal, GLsizei width, GLsizei height,
    GLint border)
{
    struct texture_image *image = &texture_of(gl, target)->level[level];
    gl_release(gl, image->texels);
    memset(image, 0, sizeof *image);
    gl->dirty |= DIRTY_ALL;
    int down = target == GL_TEXTURE_1D ? 0 : border;
    image->width = width - 2 * border, image->height = height - 2 * down, image->border = border;
    image->format = base_format(internal), image->internal = internal;
    if (image->width <= 0 || image->height <= 0) return NULL;
    size_t bytes = (size_t)image->width * image->height * 4;
    image->texels = gl_allocate(gl, NULL, bytes);
    if (image->texels) memset(image->texels, 0, bytes);
    if (!image->texels) gl_error(gl, GL_OUT_OF_MEMORY);
    return image->texels ? image : NULL;
}

static void store_rows(struct context *gl, struct texture_image *image, int x, int y, int width, int height, GLenum format, GLenum type,
    const void *v, int full_width, int skip_x, int skip_y)
{
    float(*row)[4] = malloc((size_t)full_width * sizeof *row);
    for (int i = 0; i < height && row; i++) {
        unpack_rgba(gl, full_width, format, type, image_row(&gl->client.unpack, v, full_width, format, type, i + skip_y), row);
        transfer_rgba(gl, full_width, row);
        for (int k = 0; k < width; k++)
            store_texel(image->texels[(size_t)(y + i) * image->width + x + k], row[k + skip_x], image->format);
    }
    free(row);
}

static void tex_image(struct context *gl, GLenum target, GLint level, GLint internal, GLsizei width, GLsizei height, GLint border,
    GLenum format, GLenum type, const void *v)
{
    int down = target == GL_TEXTURE_1D ? 0 : border;
    if (target == GL_PROXY_TEXTURE_1D || target == GL_PROXY_TEXTURE_2D) return;
    if (!texture_of(gl, target)) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (!check_format(gl, format, type) || !check_image(gl, level, internal, width, down || target == GL_TEXTURE_2D ? height : 1,
            target == GL_TEXTURE_1D ? 0 : border))
        return;
    struct texture_image *image = define(gl, target, level, internal, width, height, border);
    if (image && v) store_rows(gl, image, 0, 0, image->width, image->height, format, type, v, width, border, down);
}

void exec_TexImage1D(struct context *gl, GLenum target, GLint level, GLint internal, GLsizei width, GLint border, GLenum format,
    GLenum type, const void *v)
{
    if (target != GL_TEXTURE_1D && target != GL_PROXY_TEXTURE_1D) gl_error(gl, GL_INVALID_ENUM);
    else tex_image(gl, target, level, internal, width, 1, border, format, type, v);
}

void exec_TexImage2D(struct context *gl, GLenum target, GLint level, GLint internal, GLsizei width, GLsizei height, GLint border,
    GLenum format, GLenum type, const void *v)
{
    if (target != GL_TEXTURE_2D && target != GL_PROXY_TEXTURE_2D) gl_error(gl, GL_INVALID_ENUM);
    else tex_image(gl, target, level, internal, width, height, border, format, type, v);
}

/* The image that a part of is replaced; null after an error. Borders are not kept, so offsets begin inside of them. */
static struct texture_image *part(struct context *gl, GLenum target, GLint level, GLint x, GLint y, GLsizei width, GLsizei height)
{
    struct texture *t = texture_of(gl, target);
    if (!t) {
        gl_error(gl, GL_INVALID_ENUM);
        return NULL;
    }
    struct texture_image *image = level >= 0 && level < LEVELS ? &t->level[level] : NULL;
    if (image && !image->texels) {
        gl_error(gl, GL_INVALID_OPERATION);
        return NULL;
    }
    if (!image || x < 0 || y < 0 || width < 0 || height < 0 || width > image->width - x || height > image->height - y) {
        gl_error(gl, GL_INVALID_VALUE);
        return NULL;
    }
    return image;
}

void exec_TexSubImage2D(struct context *gl, GLenum target, GLint level, GLint x, GLint y, GLsizei width, GLsizei height, GLenum format,
    GLenum type, const void *v)
{
    if (!check_format(gl, format, type)) return;
    struct texture_image *image = part(gl, target, level, x, y, width, height);
    if (image && v && width && height) store_rows(gl, image, x, y, width, height, format, type, v, width, 0, 0);
}

void exec_TexSubImage1D(struct context *gl, GLenum target, GLint level, GLint x, GLsizei width, GLenum format, GLenum type, const void *v)
{
    exec_TexSubImage2D(gl, target, level, x, 0, width, 1, format, type, v);
}

static void copy_rows(struct context *gl, struct texture_image *image, int to_x, int to_y, int x, int y, int width, int height)
{
    float(*row)[4] = malloc((size_t)width * sizeof *row);
    for (int i = 0; i < height && row; i++) {
        read_rgba(gl, x, y + i, width, row);
        transfer_rgba(gl, width, row);
        for (int k = 0; k < width; k++)
            store_texel(image->texels[(size_t)(to_y + i) * image->width + to_x + k], row[k], image->format);
    }
    free(row);
}

void exec_CopyTexImage2D(struct context *gl, GLenum target, GLint level, GLenum internal, GLint x, GLint y, GLsizei width, GLsizei height,
    GLint border)
{
    if (!texture_of(gl, target)) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if ((GLint)internal <= 4 || !check_image(gl, level, internal, width, height, target == GL_TEXTURE_1D ? 0 : border)) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    struct texture_image *image = define(gl, target, level, internal, width, height, border);
    int down = target == GL_TEXTURE_1D ? 0 : border;
    if (image) copy_rows(gl, image, 0, 0, x + border, y + down, image->width, image->height);
}

void exec_CopyTexImage1D(struct context *gl, GLenum target, GLint level, GLenum internal, GLint x, GLint y, GLsizei width, GLint border)
{
    if (target == GL_TEXTURE_1D) exec_CopyTexImage2D(gl, target, level, internal, x, y, width, 1, border);
    else gl_error(gl, GL_INVALID_ENUM);
}

void exec_CopyTexSubImage2D(struct context *gl, GLenum target, GLint level, GLint to_x, GLint to_y, GLint x, GLint y, GLsizei width,
    GLsizei height)
{
    struct texture_image *image = part(gl, target, level, to_x, to_y, width, height);
    if (image && width && height) copy_rows(gl, image, to_x, to_y, x, y, width, height);
}

void exec_CopyTexSubImage1D(struct context *gl, GLenum target, GLint level, GLint to_x, GLint x, GLint y, GLsizei width)
{
    exec_CopyTexSubImage2D(gl, target, level, to_x, 0, x, y, width, 1);
}
