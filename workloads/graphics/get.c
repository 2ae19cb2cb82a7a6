/* Queries. Variables of a context are described by variables.def, constants and what is computed by functions here. */
#include "context.h"

enum { MOST_VALUES = 16 };
/* Values on their way to the caller: numbers, and whether integers are to map to their full range. */
struct answer { int count, is_normalized; double v[MOST_VALUES]; };

#define VARIABLE(name, type, count, field) { name, #type[0], count, offsetof(struct context, field) },
static const struct { GLenum name; char type; int count; size_t offset; } variables[] = {
#include "variables.def"
};
#undef VARIABLE

static const struct { GLenum name; int count; double v[2]; } constants[] = {
    { GL_MAX_LIGHTS, 1, { LIGHTS } }, { GL_MAX_CLIP_PLANES, 1, { PLANES } }, { GL_MAX_MODELVIEW_STACK_DEPTH, 1, { MATRIX_DEPTH } },
    { GL_MAX_PROJECTION_STACK_DEPTH, 1, { 10 } }, { GL_MAX_TEXTURE_STACK_DEPTH, 1, { 10 } },
    { GL_MAX_ATTRIB_STACK_DEPTH, 1, { ATTRIB_DEPTH } }, { GL_MAX_CLIENT_ATTRIB_STACK_DEPTH, 1, { ATTRIB_DEPTH } },
    { GL_MAX_NAME_STACK_DEPTH, 1, { NAME_DEPTH } }, { GL_MAX_LIST_NESTING, 1, { LIST_NESTING } },
    { GL_MAX_EVAL_ORDER, 1, { MAX_ORDER } }, { GL_MAX_PIXEL_MAP_TABLE, 1, { PIXEL_MAP } }, { GL_MAX_TEXTURE_SIZE, 1, { MAX_SIZE } },
    { GL_MAX_VIEWPORT_DIMS, 2, { MAX_SIZE * 4, MAX_SIZE * 4 } }, { GL_SUBPIXEL_BITS, 1, { SUBPIXEL_BITS } },
    { GL_RED_BITS, 1, { 8 } }, { GL_GREEN_BITS, 1, { 8 } }, { GL_BLUE_BITS, 1, { 8 } }, { GL_ALPHA_BITS, 1, { 8 } },
    { GL_INDEX_BITS, 1, { 0 } }, { GL_DEPTH_BITS, 1, { 24 } }, { GL_STENCIL_BITS, 1, { 8 } }, { GL_ACCUM_RED_BITS, 1, { 16 } },
    { GL_ACCUM_GREEN_BITS, 1, { 16 } }, { GL_ACCUM_BLUE_BITS, 1, { 16 } }, { GL_ACCUM_ALPHA_BITS, 1, { 16 } },
    { GL_AUX_BUFFERS, 1, { 0 } }, { GL_RGBA_MODE, 1, { 1 } }, { GL_INDEX_MODE, 1, { 0 } }, { GL_STEREO, 1, { 0 } },
    { GL_POINT_SIZE_RANGE, 2, { 1, 64 } }, { GL_POINT_SIZE_GRANULARITY, 1, { 0.125 } }, { GL_LINE_WIDTH_RANGE, 2, { 1, 64 } },
    { GL_LINE_WIDTH_GRANULARITY, 1, { 0.125 } },
};

/* A state variable that is computed; 0 if the name is unknown. */
static int computed(struct context *gl, GLenum name, double *v)
{
    switch (name) {
    case GL_MODELVIEW_STACK_DEPTH: *v = gl->modelview.depth + 1; return 1;
    case GL_PROJECTION_STACK_DEPTH: *v = gl->projection.depth + 1; return 1;
    case GL_TEXTURE_STACK_DEPTH: *v = gl->texture_stack.depth + 1; return 1;
    case GL_DOUBLEBUFFER: *v = gl->fb->is_double; return 1;
    default: return 0;
    }
}

static double value_at(const void *at, char type, int i)
{
    switch (type) {
    case 'B': return ((const GLboolean *)at)[i];
    case 'I': return ((const GLint *)at)[i];
    case 'D': case 'd': return ((const double *)at)[i];
    default: return ((const float *)at)[i];
    }
}

static int answer(struct context *gl, GLenum name, struct answer *a)
{
    if (gl->inside) {
        gl_error(gl, GL_INVALID_OPERATION);
        return 0;
    }
    a->is_normalized = 0;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (variables[i].name == name) {
            a->count = variables[i].count;
            a->is_normalized = variables[i].type == 'C' || variables[i].type == 'd';
            for (int k = 0; k < a->count; k++) a->v[k] = value_at((char *)gl + variables[i].offset, variables[i].type, k);
            return 1;
        }
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (constants[i].name == name) {
            a->count = constants[i].count;
            memcpy(a->v, constants[i].v, sizeof constants[i].v);
            return 1;
        }
    a->count = computed(gl, name, a->v);
    if (a->count) return 1;
    GLenum before = gl->error;
    a->v[0] = glIsEnabled(name);
    a->count = 1;
    return gl->error == before;
}

int variable_values(struct context *gl, GLenum name)
{
    struct answer a;
    return answer(gl, name, &a) ? a.count : 0;
}

int is_client_variable(GLenum name)
{
    size_t from = offsetof(struct context, client), to = from + sizeof(struct client_group);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (variables[i].name == name) return variables[i].offset >= from && variables[i].offset < to;
    return name == GL_VERTEX_ARRAY || name == GL_NORMAL_ARRAY || name == GL_COLOR_ARRAY || name == GL_INDEX_ARRAY
        || name == GL_TEXTURE_COORD_ARRAY || name == GL_EDGE_FLAG_ARRAY;
}

static GLint to_int(double v, int is_normalized)
{
    if (is_normalized) v = v < -1 ? -2147483647.0 : v > 1 ? 2147483647.0 : v * 2147483647.0;
    v = floor(v + 0.5);
    return v >= 4294967295.0 ? -1 : v > 2147483647.0 ? (GLint)(GLuint)v : v < -2147483648.0 ? -2147483647 - 1 : (GLint)v;
}

void APIENTRY glGetIntegerv(GLenum name, GLint *out)
{
    struct answer a;
    if (answer(current, name, &a))
        for (int i = 0; i < a.count; i++) out[i] = to_int(a.v[i], a.is_normalized);
}

void APIENTRY glGetFloatv(GLenum name, GLfloat *out)
{
    struct answer a;
    if (answer(current, name, &a))
        for (int i = 0; i < a.count; i++) out[i] = a.v[i];
}

void APIENTRY glGetDoublev(GLenum name, GLdouble *out)
{
    struct answer a;
    if (answer(current, name, &a))
        for (int i = 0; i < a.count; i++) out[i] = a.v[i];
}

void APIENTRY glGetBooleanv(GLenum name, GLboolean *out)
{
    struct answer a;
    if (answer(current, name, &a))
        for (int i = 0; i < a.count; i++) out[i] = a.v[i] != 0;
}

/* Queries of objects: one function computes the values, and each form converts them. */
static int light_answer(struct context *gl, GLenum light, GLenum name, struct answer *a)
{
    a->count = light >= GL_LIGHT0 && light < GL_LIGHT0 + LIGHTS ? light_values(name) : 0;
    const struct light *l = &gl->s.lighting.light[(light - GL_LIGHT0) & 7];
    const float *from = name == GL_AMBIENT ? l->ambient : name == GL_DIFFUSE ? l->diffuse : name == GL_SPECULAR ? l->specular
        : name == GL_POSITION ? l->position : name == GL_SPOT_DIRECTION ? l->spot_direction : name == GL_SPOT_EXPONENT ? &l->spot_exponent
        : name == GL_SPOT_CUTOFF ? &l->spot_cutoff : l->attenuation + (name - GL_CONSTANT_ATTENUATION);
    for (int i = 0; i < a->count; i++) a->v[i] = from[i];
    a->is_normalized = name == GL_AMBIENT || name == GL_DIFFUSE || name == GL_SPECULAR;
    return a->count;
}

static int material_answer(struct context *gl, GLenum face, GLenum name, struct answer *a)
{
    sync_color_material(gl);
    a->count = (face == GL_FRONT || face == GL_BACK) && name != GL_AMBIENT_AND_DIFFUSE ? material_values(name) : 0;
    const struct material *m = &gl->s.lighting.material[face == GL_BACK];
    const float *from = name == GL_AMBIENT ? m->ambient : name == GL_DIFFUSE ? m->diffuse : name == GL_SPECULAR ? m->specular
        : name == GL_EMISSION ? m->emission : name == GL_SHININESS ? &m->shininess : m->indexes;
    for (int i = 0; i < a->count; i++) a->v[i] = from[i];
    a->is_normalized = a->count == 4;
    return a->count;
}

static int texture_environment_answer(struct context *gl, GLenum target, GLenum name, struct answer *a)
{
    const struct texture_group *g = &gl->s.texture;
    a->count = target != GL_TEXTURE_ENV ? 0 : name == GL_TEXTURE_ENV_MODE ? 1 : name == GL_TEXTURE_ENV_COLOR ? 4 : 0;
    a->is_normalized = a->count == 4;
    for (int i = 0; i < a->count; i++) a->v[i] = a->count == 1 ? g->env_mode : g->env_color[i];
    return a->count;
}

static int generation_answer(struct context *gl, GLenum coordinate, GLenum name, struct answer *a)
{
    const struct texture_group *g = &gl->s.texture;
    int i = (coordinate - GL_S) & 3, is_mode = name == GL_TEXTURE_GEN_MODE;
    a->count = coordinate < GL_S || coordinate > GL_Q ? 0 : is_mode ? 1 : name == GL_OBJECT_PLANE || name == GL_EYE_PLANE ? 4 : 0;
    a->is_normalized = 0;
    for (int k = 0; k < a->count; k++) a->v[k] = is_mode ? g->gen_mode[i] : name == GL_OBJECT_PLANE ? g->object[i][k] : g->eye[i][k];
    return a->count;
}

static int texture_answer(struct context *gl, GLenum target, GLenum name, struct answer *a)
{
    const struct texture *t = texture_of(gl, target);
    a->count = !t ? 0 : 1;
    a->is_normalized = 0;
    if (!t) return 0;
    switch (name) {
    case GL_TEXTURE_MIN_FILTER: a->v[0] = t->min_filter; break;
    case GL_TEXTURE_MAG_FILTER: a->v[0] = t->mag_filter; break;
    case GL_TEXTURE_WRAP_S: a->v[0] = t->wrap_s; break;
    case GL_TEXTURE_WRAP_T: a->v[0] = t->wrap_t; break;
    case GL_TEXTURE_PRIORITY: a->v[0] = t->priority; break;
    case GL_TEXTURE_RESIDENT: a->v[0] = 1; break;
    case GL_TEXTURE_BORDER_COLOR:
        for (int k = 0; k < 4; k++) a->v[k] = t->border[k];
        a->is_normalized = 1;
        a->count = 4;
        break;
    default: a->count = 0;
    }
    return a->count;
}

#define QUERY(function, answer_of, suffix, T, convert) \
    void APIENTRY glGet##function##suffix(GLenum object, GLenum name, T *out) \
    { \
        struct answer a; \
        if (!answer_of(current, object, name, &a)) gl_error(current, GL_INVALID_ENUM); \
        for (int i = 0; i < a.count; i++) out[i] = convert; \
    }
#define QUERIES(function, answer_of) \
    QUERY(function, answer_of, fv, GLfloat, a.v[i]) \
    QUERY(function, answer_of, iv, GLint, to_int(a.v[i], a.is_normalized))
QUERIES(Light, light_answer)
QUERIES(Material, material_answer)
QUERIES(TexEnv, texture_environment_answer)
QUERIES(TexGen, generation_answer)
QUERIES(TexParameter, texture_answer)
QUERY(TexGen, generation_answer, dv, GLdouble, a.v[i])

static int level_value(struct context *gl, GLenum target, GLint level, GLenum name, GLint *out)
{
    static const struct texture_image none;
    const struct texture *t = texture_of(gl, target);
    int is_proxy = target == GL_PROXY_TEXTURE_1D || target == GL_PROXY_TEXTURE_2D;
    if ((!t && !is_proxy) || level < 0 || level >= LEVELS) return 0;
    const struct texture_image *image = t ? &t->level[level] : &none;
    int f = image->format, has_color = f == GL_RGB || f == GL_RGBA;
    switch (name) {
    case GL_TEXTURE_WIDTH: *out = image->width + 2 * image->border; return 1;
    case GL_TEXTURE_HEIGHT: *out = image->height + (target == GL_TEXTURE_2D ? 2 * image->border : 0); return 1;
    case GL_TEXTURE_BORDER: *out = image->border; return 1;
    case GL_TEXTURE_INTERNAL_FORMAT: *out = image->internal ? image->internal : 1; return 1;
    case GL_TEXTURE_RED_SIZE: case GL_TEXTURE_GREEN_SIZE: case GL_TEXTURE_BLUE_SIZE: *out = has_color ? 8 : 0; return 1;
    case GL_TEXTURE_ALPHA_SIZE: *out = f == GL_RGBA || f == GL_ALPHA || f == GL_LUMINANCE_ALPHA ? 8 : 0; return 1;
    case GL_TEXTURE_LUMINANCE_SIZE: *out = f == GL_LUMINANCE || f == GL_LUMINANCE_ALPHA ? 8 : 0; return 1;
    case GL_TEXTURE_INTENSITY_SIZE: *out = f == GL_INTENSITY ? 8 : 0; return 1;
    default: return 0;
    }
}

void APIENTRY glGetTexLevelParameteriv(GLenum target, GLint level, GLenum name, GLint *out)
{
    if (!level_value(current, target, level, name, out)) gl_error(current, GL_INVALID_ENUM);
}

void APIENTRY glGetTexLevelParameterfv(GLenum target, GLint level, GLenum name, GLfloat *out)
{
    GLint v = 0;
    if (!level_value(current, target, level, name, &v)) gl_error(current, GL_INVALID_ENUM);
    else *out = v;
}

void APIENTRY glGetClipPlane(GLenum plane, GLdouble *out)
{
    if (plane < GL_CLIP_PLANE0 || plane >= GL_CLIP_PLANE0 + PLANES) gl_error(current, GL_INVALID_ENUM);
    else memcpy(out, current->s.transform.plane[plane - GL_CLIP_PLANE0], 4 * sizeof *out);
}

int pixel_map_values(const struct context *gl, GLenum map)
{
    return map < GL_PIXEL_MAP_I_TO_I || map > GL_PIXEL_MAP_A_TO_A ? 0 : gl->map_size[map - GL_PIXEL_MAP_I_TO_I];
}

#define GET_PIXEL_MAP(suffix, T, convert) \
    void APIENTRY glGetPixelMap##suffix(GLenum map, T *out) \
    { \
        struct context *gl = current; \
        if (map < GL_PIXEL_MAP_I_TO_I || map > GL_PIXEL_MAP_A_TO_A) { \
            gl_error(gl, GL_INVALID_ENUM); \
            return; \
        } \
        int m = map - GL_PIXEL_MAP_I_TO_I, is_index = map <= GL_PIXEL_MAP_S_TO_S; \
        (void)is_index; \
        for (int i = 0; i < gl->map_size[m]; i++) { \
            double v = gl->map_values[m][i]; \
            out[i] = convert; \
        } \
    }
GET_PIXEL_MAP(fv, GLfloat, v)
GET_PIXEL_MAP(uiv, GLuint, is_index ? v : v * 4294967295.0)
GET_PIXEL_MAP(usv, GLushort, is_index ? v : v * 65535 + 0.5)

void APIENTRY glGetPolygonStipple(GLubyte *out)
{
    struct context *gl = current;
    for (int y = 0; y < 32; y++) {
        uint8_t *row = (uint8_t *)bits_row(&gl->client.pack, out, 32, y);
        for (int x = 0; x < 4; x++) row[x] = gl->s.stipple.rows[y] >> (24 - 8 * x);
    }
}

void APIENTRY glGetPointerv(GLenum name, void **out)
{
    struct context *gl = current;
    if (name >= GL_VERTEX_ARRAY_POINTER && name <= GL_EDGE_FLAG_ARRAY_POINTER)
        *out = (void *)gl->client.array[name - GL_VERTEX_ARRAY_POINTER].pointer;
    else if (name == GL_FEEDBACK_BUFFER_POINTER) *out = gl->feedback_buffer;
    else if (name == GL_SELECTION_BUFFER_POINTER) *out = gl->select_buffer;
    else gl_error(gl, GL_INVALID_ENUM);
}

const GLubyte *APIENTRY glGetString(GLenum name)
{
    static const char *const strings[] = { "Pathlength", "Pathlength software", "1.1", "" };
    if (name >= GL_VENDOR && name <= GL_EXTENSIONS) return (const GLubyte *)strings[name - GL_VENDOR];
    gl_error(current, GL_INVALID_ENUM);
    return NULL;
}

GLenum APIENTRY glGetError(void)
{
    struct context *gl = current;
    GLenum error = gl->error;
    gl->error = GL_NO_ERROR;
    return error;
}

void gl_error(struct context *gl, GLenum error)
{
    if (gl->error == GL_NO_ERROR) gl->error = error;
}
