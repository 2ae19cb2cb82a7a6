/* Selection and feedback. */
#include "context.h"

static void finish_hit(struct context *gl)
{
    if (!gl->hit) return;
    gl->hit = GL_FALSE;
    GLuint record[3 + NAME_DEPTH];
    record[0] = gl->name_depth;
    record[1] = (GLuint)(gl->hit_min * 4294967295.0);
    record[2] = (GLuint)(gl->hit_max * 4294967295.0);
    memcpy(record + 3, gl->names, gl->name_depth * sizeof *gl->names);
    int words = 3 + gl->name_depth;
    for (int i = 0; i < words; i++) {
        if (gl->select_count < gl->select_size) gl->select_buffer[gl->select_count++] = record[i];
        else gl->select_overflow = GL_TRUE;
    }
    gl->hits++;
}

void report_select(struct context *gl, const struct vertex *v)
{
    float z = v->win[2] < 0 ? 0 : v->win[2] > 1 ? 1 : v->win[2];
    if (!gl->hit) gl->hit_min = gl->hit_max = z;
    if (z < gl->hit_min) gl->hit_min = z;
    if (z > gl->hit_max) gl->hit_max = z;
    gl->hit = GL_TRUE;
}

static void put(struct context *gl, GLfloat v)
{
    if (gl->feedback_count < gl->feedback_size) gl->feedback_buffer[gl->feedback_count++] = v;
    else gl->feedback_overflow = GL_TRUE;
}

static void put_vertex(struct context *gl, const float *win, float clip_w, const float *color, const float *coord)
{
    GLenum type = gl->feedback_type;
    put(gl, win[0]);
    put(gl, win[1]);
    if (type != GL_2D) put(gl, win[2]);
    if (type == GL_4D_COLOR_TEXTURE) put(gl, clip_w);
    for (int k = 0; k < 4 && type >= GL_3D_COLOR; k++) put(gl, color[k]);
    for (int k = 0; k < 4 && type >= GL_3D_COLOR_TEXTURE; k++) put(gl, coord[k]);
}

void report_feedback(struct context *gl, GLenum token, int count, const struct vertex *const *v)
{
    put(gl, token);
    if (token == GL_POLYGON_TOKEN) put(gl, count);
    for (int i = 0; i < count; i++) put_vertex(gl, v[i]->win, v[i]->clip[3], v[i]->color, v[i]->coord);
}

void report_token(struct context *gl, GLenum token)
{
    const struct current_group *c = &gl->s.current;
    put(gl, token);
    put_vertex(gl, c->raster_position, c->raster_position[3], c->raster_color, c->raster_coord);
}

void exec_PassThrough(struct context *gl, GLfloat v)
{
    if (gl->render_mode != GL_FEEDBACK) return;
    put(gl, GL_PASS_THROUGH_TOKEN);
    put(gl, v);
}

void exec_InitNames(struct context *gl)
{
    if (gl->render_mode != GL_SELECT) return;
    finish_hit(gl);
    gl->name_depth = 0;
}

void exec_LoadName(struct context *gl, GLuint name)
{
    if (gl->render_mode != GL_SELECT) return;
    if (gl->name_depth == 0) {
        gl_error(gl, GL_INVALID_OPERATION);
        return;
    }
    finish_hit(gl);
    gl->names[gl->name_depth - 1] = name;
}

void exec_PushName(struct context *gl, GLuint name)
{
    if (gl->render_mode != GL_SELECT) return;
    finish_hit(gl);
    if (gl->name_depth == NAME_DEPTH) gl_error(gl, GL_STACK_OVERFLOW);
    else gl->names[gl->name_depth++] = name;
}

void exec_PopName(struct context *gl)
{
    if (gl->render_mode != GL_SELECT) return;
    finish_hit(gl);
    if (gl->name_depth == 0) gl_error(gl, GL_STACK_UNDERFLOW);
    else gl->name_depth--;
}

GLint APIENTRY glRenderMode(GLenum mode)
{
    struct context *gl = current;
    GLint result = 0;
    int lacks_buffer = (mode == GL_SELECT && !gl->select_buffer) || (mode == GL_FEEDBACK && !gl->feedback_buffer);
    if (mode != GL_RENDER && mode != GL_SELECT && mode != GL_FEEDBACK) {
        gl_error(gl, GL_INVALID_ENUM);
        return 0;
    }
    if (gl->inside || lacks_buffer) {
        gl_error(gl, GL_INVALID_OPERATION);
        return 0;
    }
    if (gl->render_mode == GL_SELECT) {
        finish_hit(gl);
        result = gl->select_overflow ? -1 : gl->hits;
        gl->reported = gl->select_count;
    } else if (gl->render_mode == GL_FEEDBACK) {
        result = gl->feedback_overflow ? -1 : gl->feedback_count;
        gl->reported = gl->feedback_count;
    } else {
        gl->reported = 0;
    }
    gl->select_count = gl->hits = gl->feedback_count = gl->name_depth = 0;
    gl->select_overflow = gl->feedback_overflow = gl->hit = GL_FALSE;
    gl->render_mode = mode;
    gl->dirty |= DIRTY_ALL;
    return result;
}

void APIENTRY glSelectBuffer(GLsizei size, GLuint *buffer)
{
    struct context *gl = current;
    if (size < 0 || gl->render_mode == GL_SELECT) {
        gl_error(gl, size < 0 ? GL_INVALID_VALUE : GL_INVALID_OPERATION);
        return;
    }
    gl->select_buffer = buffer, gl->select_size = size, gl->select_count = 0;
}

void APIENTRY glFeedbackBuffer(GLsizei size, GLenum type, GLfloat *buffer)
{
    struct context *gl = current;
    if (type < GL_2D || type > GL_4D_COLOR_TEXTURE) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (size < 0 || gl->render_mode == GL_FEEDBACK) {
        gl_error(gl, size < 0 ? GL_INVALID_VALUE : GL_INVALID_OPERATION);
        return;
    }
    gl->feedback_buffer = buffer, gl->feedback_size = size, gl->feedback_type = type, gl->feedback_count = 0;
}
