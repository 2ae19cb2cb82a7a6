/* Commands that set one piece of state. */
#include "paths.h"

static int is_comparison(GLenum e) { return e >= GL_NEVER && e <= GL_ALWAYS; }

/* Reports a name that the command does not know; for use as a condition. */
static int refuse_unless(struct context *gl, int is_known)
{
    if (!is_known) gl_error(gl, GL_INVALID_ENUM);
    return !is_known;
}

static int refuse_value(struct context *gl, int is_wrong)
{
    if (is_wrong) gl_error(gl, GL_INVALID_VALUE);
    return is_wrong;
}

static int is_face(GLenum e) { return e == GL_FRONT || e == GL_BACK || e == GL_FRONT_AND_BACK; }

void clamp4(float *out, const float *in)
{
    for (int k = 0; k < 4; k++) out[k] = clamp01(in[k]);
}

void exec_ShadeModel(struct context *gl, GLenum mode)
{
    if (refuse_unless(gl, mode == GL_FLAT || mode == GL_SMOOTH)) return;
    gl->s.lighting.shade_model = mode;
}

void exec_FrontFace(struct context *gl, GLenum mode)
{
    if (refuse_unless(gl, mode == GL_CW || mode == GL_CCW)) return;
    gl->s.polygon.front_face = mode;
}

void exec_CullFace(struct context *gl, GLenum mode)
{
    if (refuse_unless(gl, is_face(mode))) return;
    gl->s.polygon.cull = mode;
}

void exec_PolygonMode(struct context *gl, GLenum face, GLenum mode)
{
    if (refuse_unless(gl, is_face(face) && mode >= GL_POINT && mode <= GL_FILL)) return;
    for (int f = 0; f < 2; f++)
        if (face == GL_FRONT_AND_BACK || face == (GLenum)(f ? GL_BACK : GL_FRONT)) gl->s.polygon.mode[f] = mode;
}

void exec_PolygonOffset(struct context *gl, GLfloat factor, GLfloat units)
{
    gl->s.polygon.factor = factor, gl->s.polygon.units = units;
}

void exec_PointSize(struct context *gl, GLfloat size)
{
    if (!refuse_value(gl, !(size > 0))) gl->s.point.size = size;
}

void exec_LineWidth(struct context *gl, GLfloat width)
{
    if (!refuse_value(gl, !(width > 0))) gl->s.line.width = width;
}

void exec_LineStipple(struct context *gl, GLint factor, GLushort pattern)
{
    gl->s.line.factor = factor < 1 ? 1 : factor > 256 ? 256 : factor;
    gl->s.line.pattern = pattern;
}

void exec_ColorMaterial(struct context *gl, GLenum face, GLenum mode)
{
    static const GLenum modes[] = { GL_EMISSION, GL_AMBIENT, GL_DIFFUSE, GL_SPECULAR, GL_AMBIENT_AND_DIFFUSE };
    int is_known = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) is_known |= modes[i] == mode;
    if (refuse_unless(gl, is_known && is_face(face))) return;
    sync_color_material(gl);
    gl->s.lighting.color_face = face, gl->s.lighting.color_mode = mode;
    sync_color_material(gl);
    gl->dirty |= DIRTY_VERTEX;
}

void exec_Lightfv(struct context *gl, GLenum name, GLenum what, const GLfloat *v)
{
    if (refuse_unless(gl, name >= GL_LIGHT0 && name < GL_LIGHT0 + LIGHTS && light_values(what))) return;
    struct light *l = &gl->s.lighting.light[name - GL_LIGHT0];
    gl->dirty |= DIRTY_VERTEX;
    switch (what) {
    case GL_AMBIENT: memcpy(l->ambient, v, sizeof l->ambient); return;
    case GL_DIFFUSE: memcpy(l->diffuse, v, sizeof l->diffuse); return;
    case GL_SPECULAR: memcpy(l->specular, v, sizeof l->specular); return;
    case GL_POSITION: transform(l->position, gl->modelview.top, v); return;
    case GL_SPOT_DIRECTION:
        for (int k = 0; k < 3; k++)
            l->spot_direction[k] = gl->modelview.top[k] * v[0] + gl->modelview.top[4 + k] * v[1] + gl->modelview.top[8 + k] * v[2];
        return;
    case GL_SPOT_EXPONENT:
        if (!refuse_value(gl, v[0] < 0 || v[0] > 128)) l->spot_exponent = v[0];
        return;
    case GL_SPOT_CUTOFF:
        if (!refuse_value(gl, (v[0] < 0 || v[0] > 90) && v[0] != 180)) l->spot_cutoff = v[0];
        return;
    default:
        if (!refuse_value(gl, v[0] < 0)) l->attenuation[what - GL_CONSTANT_ATTENUATION] = v[0];
    }
}

void exec_LightModelfv(struct context *gl, GLenum what, const GLfloat *v)
{
    if (refuse_unless(gl, light_model_values(what))) return;
    gl->dirty |= DIRTY_VERTEX;
    if (what == GL_LIGHT_MODEL_AMBIENT) memcpy(gl->s.lighting.ambient, v, sizeof gl->s.lighting.ambient);
    else if (what == GL_LIGHT_MODEL_LOCAL_VIEWER) gl->s.lighting.local_viewer = v[0] != 0;
    else gl->s.lighting.two_side = v[0] != 0;
}

void exec_Fogfv(struct context *gl, GLenum what, const GLfloat *v)
{
    struct fog_group *g = &gl->s.fog;
    GLenum mode = (GLenum)v[0];
    switch (what) {
    case GL_FOG_MODE:
        if (!refuse_unless(gl, mode == GL_LINEAR || mode == GL_EXP || mode == GL_EXP2)) g->mode = mode;
        return;
    case GL_FOG_DENSITY:
        if (!refuse_value(gl, v[0] < 0)) g->density = v[0];
        return;
    case GL_FOG_START: g->start = v[0]; return;
    case GL_FOG_END: g->end = v[0]; return;
    case GL_FOG_INDEX: g->index = v[0]; return;
    case GL_FOG_COLOR: clamp4(g->color, v); return;
    default: gl_error(gl, GL_INVALID_ENUM);
    }
}

void exec_TexEnvfv(struct context *gl, GLenum target, GLenum what, const GLfloat *v)
{
    if (refuse_unless(gl, target == GL_TEXTURE_ENV && (what == GL_TEXTURE_ENV_MODE || what == GL_TEXTURE_ENV_COLOR))) return;
    GLenum mode = (GLenum)v[0];
    if (what == GL_TEXTURE_ENV_COLOR) clamp4(gl->s.texture.env_color, v);
    else if (!refuse_unless(gl, mode == GL_MODULATE || mode == GL_DECAL || mode == GL_BLEND || mode == GL_REPLACE))
        gl->s.texture.env_mode = mode;
}

void exec_TexGenfv(struct context *gl, GLenum coordinate, GLenum what, const GLfloat *v)
{
    if (refuse_unless(gl, coordinate >= GL_S && coordinate <= GL_Q)) return;
    int i = coordinate - GL_S;
    GLenum mode = (GLenum)v[0];
    gl->dirty |= DIRTY_VERTEX;
    if (what == GL_TEXTURE_GEN_MODE) {
        int is_known = mode == GL_OBJECT_LINEAR || mode == GL_EYE_LINEAR || (mode == GL_SPHERE_MAP && i < 2);
        if (!refuse_unless(gl, is_known)) gl->s.texture.gen_mode[i] = mode;
    } else if (what == GL_OBJECT_PLANE) {
        memcpy(gl->s.texture.object[i], v, 4 * sizeof *v);
    } else if (!refuse_unless(gl, what == GL_EYE_PLANE)) {
        float inverse[16];
        invert(inverse, gl->modelview.top);
        for (int k = 0; k < 4; k++) {
            float sum = 0;
            for (int j = 0; j < 4; j++) sum += v[j] * inverse[4 * k + j];
            gl->s.texture.eye[i][k] = sum;
        }
    }
}

void exec_TexParameterfv(struct context *gl, GLenum target, GLenum what, const GLfloat *v)
{
    struct texture *t = texture_of(gl, target);
    if (refuse_unless(gl, t != NULL)) return;
    GLint mode = (GLint)v[0];
    int is_filter = mode == GL_NEAREST || mode == GL_LINEAR, is_wrap = mode == GL_CLAMP || mode == GL_REPEAT;
    gl->dirty |= DIRTY_ALL;
    switch (what) {
    case GL_TEXTURE_MIN_FILTER:
        if (!refuse_unless(gl, is_filter || (mode >= GL_NEAREST_MIPMAP_NEAREST && mode <= GL_LINEAR_MIPMAP_LINEAR))) t->min_filter = mode;
        return;
    case GL_TEXTURE_MAG_FILTER:
        if (!refuse_unless(gl, is_filter)) t->mag_filter = mode;
        return;
    case GL_TEXTURE_WRAP_S:
        if (!refuse_unless(gl, is_wrap)) t->wrap_s = mode;
        return;
    case GL_TEXTURE_WRAP_T:
        if (!refuse_unless(gl, is_wrap)) t->wrap_t = mode;
        return;
    case GL_TEXTURE_BORDER_COLOR: clamp4(t->border, v); return;
    case GL_TEXTURE_PRIORITY: t->priority = clamp01(v[0]); return;
    default: gl_error(gl, GL_INVALID_ENUM);
    }
}

void exec_Hint(struct context *gl, GLenum target, GLenum mode)
{
    struct hint_group *h = &gl->s.hint;
    if (refuse_unless(gl, mode == GL_FASTEST || mode == GL_NICEST || mode == GL_DONT_CARE)) return;
    switch (target) {
    case GL_PERSPECTIVE_CORRECTION_HINT: h->perspective = mode; return;
    case GL_POINT_SMOOTH_HINT: h->point = mode; return;
    case GL_LINE_SMOOTH_HINT: h->line = mode; return;
    case GL_POLYGON_SMOOTH_HINT: h->polygon = mode; return;
    case GL_FOG_HINT: h->fog = mode; return;
    default: gl_error(gl, GL_INVALID_ENUM);
    }
}

void exec_Scissor(struct context *gl, GLint x, GLint y, GLsizei width, GLsizei height)
{
    if (refuse_value(gl, width < 0 || height < 0)) return;
    GLint box[4] = { x, y, width, height };
    memcpy(gl->s.scissor.box, box, sizeof box);
    gl->dirty |= DIRTY_RASTER;
}

void exec_AlphaFunc(struct context *gl, GLenum function, GLfloat reference)
{
    if (refuse_unless(gl, is_comparison(function))) return;
    gl->s.color.alpha_function = function;
    gl->s.color.alpha_reference = clamp01(reference);
}

void exec_StencilFunc(struct context *gl, GLenum function, GLint reference, GLuint mask)
{
    if (refuse_unless(gl, is_comparison(function))) return;
    struct stencil_group *g = &gl->s.stencil;
    g->function = function, g->reference = reference < 0 ? 0 : reference > 255 ? 255 : reference, g->value_mask = mask;
}

static int is_stencil_operation(GLenum e)
{
    return e == GL_KEEP || e == GL_ZERO || e == GL_REPLACE || e == GL_INCR || e == GL_DECR || e == GL_INVERT;
}

void exec_StencilOp(struct context *gl, GLenum fail, GLenum depth_fail, GLenum depth_pass)
{
    if (refuse_unless(gl, is_stencil_operation(fail) && is_stencil_operation(depth_fail) && is_stencil_operation(depth_pass))) return;
    struct stencil_group *g = &gl->s.stencil;
    g->fail = fail, g->depth_fail = depth_fail, g->depth_pass = depth_pass;
}

void exec_StencilMask(struct context *gl, GLuint mask) { gl->s.stencil.write_mask = mask; }
void exec_ClearStencil(struct context *gl, GLint value) { gl->s.stencil.clear = value; }

void exec_DepthFunc(struct context *gl, GLenum function)
{
    if (refuse_unless(gl, is_comparison(function))) return;
    gl->s.depth.function = function;
    gl->dirty |= DIRTY_RASTER;
}

void exec_DepthMask(struct context *gl, GLboolean mask) { gl->s.depth.mask = mask != 0; }
void exec_ClearDepth(struct context *gl, GLdouble depth) { gl->s.depth.clear = depth < 0 ? 0 : depth > 1 ? 1 : depth; }

void exec_BlendFunc(struct context *gl, GLenum source, GLenum destination)
{
    int is_common[2], i = 0;
    for (GLenum e = source; i < 2; e = destination, i++)
        is_common[i] = e == GL_ZERO || e == GL_ONE || (e >= GL_SRC_ALPHA && e <= GL_ONE_MINUS_DST_ALPHA);
    int is_source = is_common[0] || source == GL_DST_COLOR || source == GL_ONE_MINUS_DST_COLOR || source == GL_SRC_ALPHA_SATURATE;
    int is_destination = is_common[1] || destination == GL_SRC_COLOR || destination == GL_ONE_MINUS_SRC_COLOR;
    if (refuse_unless(gl, is_source && is_destination)) return;
    gl->s.color.source = source, gl->s.color.destination = destination;
}

void exec_LogicOp(struct context *gl, GLenum operation)
{
    if (refuse_unless(gl, operation >= GL_CLEAR && operation <= GL_SET)) return;
    gl->s.color.logic_op = operation;
}

void exec_ColorMask(struct context *gl, GLboolean r, GLboolean g, GLboolean b, GLboolean a)
{
    const GLboolean mask[4] = { r != 0, g != 0, b != 0, a != 0 };
    memcpy(gl->s.color.mask, mask, sizeof mask);
    gl->dirty |= DIRTY_RASTER;
}

void exec_IndexMask(struct context *gl, GLuint mask) { gl->s.color.index_mask = mask; }
void exec_ClearIndex(struct context *gl, GLfloat index) { gl->s.color.clear_index = index; }

void exec_ClearColor(struct context *gl, GLfloat r, GLfloat g, GLfloat b, GLfloat a)
{
    const float c[4] = { r, g, b, a };
    clamp4(gl->s.color.clear, c);
}

void exec_ClearAccum(struct context *gl, GLfloat r, GLfloat g, GLfloat b, GLfloat a)
{
    const float c[4] = { r, g, b, a };
    for (int k = 0; k < 4; k++) gl->s.accum.clear[k] = c[k] < -1 ? -1 : c[k] > 1 ? 1 : c[k];
}

/* The buffers of a context without stereo and auxiliary buffers; others exist as names alone. */
static int has_buffer(struct context *gl, GLenum buffer, int may_be_several)
{
    int is_back = buffer == GL_BACK || buffer == GL_BACK_LEFT;
    int is_front = buffer == GL_FRONT || buffer == GL_FRONT_LEFT || buffer == GL_LEFT || (may_be_several && buffer == GL_FRONT_AND_BACK)
        || (may_be_several && buffer == GL_NONE);
    int is_name = (buffer >= GL_FRONT_LEFT && buffer <= GL_AUX3) || buffer == GL_NONE;
    if (!is_name || (!may_be_several && buffer == GL_NONE)) gl_error(gl, GL_INVALID_ENUM);
    else if (!is_front && !(is_back && gl->fb->color[1])) gl_error(gl, GL_INVALID_OPERATION);
    else return 1;
    return 0;
}

void exec_DrawBuffer(struct context *gl, GLenum buffer)
{
    if (!has_buffer(gl, buffer, 1)) return;
    gl->s.color.draw_buffer = buffer;
    gl->dirty |= DIRTY_RASTER;
}

void exec_ReadBuffer(struct context *gl, GLenum buffer)
{
    if (!has_buffer(gl, buffer, 0)) return;
    gl->s.pixel.read_buffer = buffer;
    gl->dirty |= DIRTY_RASTER;
}
