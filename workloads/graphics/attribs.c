/* glEnable, and the stacks of attributes: a table says which group a bit saves. */
#include "context.h"

#define ENABLE(name, groups) { GL_##name, groups },
static const struct { GLenum name; GLbitfield groups; } enables[ENABLES] = {
#include "enables.def"
};
#undef ENABLE

#define GROUP(bit, field) { bit, offsetof(struct groups, field), sizeof(((struct groups *)0)->field) }
static const struct { GLbitfield bit; size_t offset, size; } groups[] = {
    GROUP(GL_CURRENT_BIT, current), GROUP(GL_POINT_BIT, point), GROUP(GL_LINE_BIT, line), GROUP(GL_POLYGON_BIT, polygon),
    GROUP(GL_POLYGON_STIPPLE_BIT, stipple), GROUP(GL_PIXEL_MODE_BIT, pixel), GROUP(GL_LIGHTING_BIT, lighting), GROUP(GL_FOG_BIT, fog),
    GROUP(GL_DEPTH_BUFFER_BIT, depth), GROUP(GL_ACCUM_BUFFER_BIT, accum), GROUP(GL_VIEWPORT_BIT, viewport),
    GROUP(GL_TRANSFORM_BIT, transform), GROUP(GL_COLOR_BUFFER_BIT, color), GROUP(GL_HINT_BIT, hint), GROUP(GL_EVAL_BIT, eval),
    GROUP(GL_LIST_BIT, list), GROUP(GL_TEXTURE_BIT, texture), GROUP(GL_SCISSOR_BIT, scissor), GROUP(GL_STENCIL_BUFFER_BIT, stencil),
};

static int enable_index(GLenum name)
{
    for (int i = 0; i < ENABLES; i++)
        if (enables[i].name == name) return i;
    return -1;
}

static void set_enabled(struct context *gl, GLenum name, int value)
{
    int i = enable_index(name);
    if (i < 0) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (i == EN_COLOR_MATERIAL) sync_color_material(gl);
    gl->s.enabled[i] = value;
    gl->dirty |= DIRTY_ALL;
}

void exec_Enable(struct context *gl, GLenum name) { set_enabled(gl, name, 1); }
void exec_Disable(struct context *gl, GLenum name) { set_enabled(gl, name, 0); }

GLboolean APIENTRY glIsEnabled(GLenum name)
{
    struct context *gl = current;
    int i = enable_index(name);
    if (i >= 0) return gl->s.enabled[i];
    static const GLenum arrays[ARRAYS] = { GL_VERTEX_ARRAY, GL_NORMAL_ARRAY, GL_COLOR_ARRAY, GL_INDEX_ARRAY, GL_TEXTURE_COORD_ARRAY,
        GL_EDGE_FLAG_ARRAY };
    for (int k = 0; k < ARRAYS; k++)
        if (arrays[k] == name) return gl->client.array[k].enabled;
    gl_error(gl, GL_INVALID_ENUM);
    return GL_FALSE;
}

void exec_PushAttrib(struct context *gl, GLbitfield mask)
{
    if (gl->attrib_depth == ATTRIB_DEPTH) {
        gl_error(gl, GL_STACK_OVERFLOW);
        return;
    }
    sync_color_material(gl);
    struct attrib_entry *e = malloc(sizeof *e);
    if (!e) {
        gl_error(gl, GL_OUT_OF_MEMORY);
        return;
    }
    e->mask = mask;
    e->saved = gl->s;
    for (int i = 0; i < 2; i++) e->parameters[i] = *gl->bound[i];
    gl->attribs[gl->attrib_depth++] = e;
}

void exec_PopAttrib(struct context *gl)
{
    if (gl->attrib_depth == 0) {
        gl_error(gl, GL_STACK_UNDERFLOW);
        return;
    }
    struct attrib_entry *e = gl->attribs[--gl->attrib_depth];
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (e->mask & groups[i].bit) memcpy((char *)&gl->s + groups[i].offset, (char *)&e->saved + groups[i].offset, groups[i].size);
    for (int i = 0; i < ENABLES; i++)
        if (e->mask & (enables[i].groups | GL_ENABLE_BIT)) gl->s.enabled[i] = e->saved.enabled[i];
    if (e->mask & GL_TEXTURE_BIT) bind_restored(gl, e->parameters);
    free(e);
    gl->dirty |= DIRTY_ALL;
}

void APIENTRY glPushClientAttrib(GLbitfield mask)
{
    struct context *gl = current;
    if (gl->client_depth == ATTRIB_DEPTH) {
        gl_error(gl, GL_STACK_OVERFLOW);
        return;
    }
    gl->clients[gl->client_depth].mask = mask;
    gl->clients[gl->client_depth++].saved = gl->client;
}

void APIENTRY glPopClientAttrib(void)
{
    struct context *gl = current;
    if (gl->client_depth == 0) {
        gl_error(gl, GL_STACK_UNDERFLOW);
        return;
    }
    const struct client_group *saved = &gl->clients[--gl->client_depth].saved;
    GLbitfield mask = gl->clients[gl->client_depth].mask;
    if (mask & GL_CLIENT_PIXEL_STORE_BIT) gl->client.pack = saved->pack, gl->client.unpack = saved->unpack;
    if (mask & GL_CLIENT_VERTEX_ARRAY_BIT) memcpy(gl->client.array, saved->array, sizeof saved->array);
}
