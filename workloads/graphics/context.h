/* A rendering context: its state in the attribute groups that glPushAttrib saves, what is derived from it, and its buffers. */
#ifndef CONTEXT_H
#define CONTEXT_H
#define GL_GLEXT_PROTOTYPES 0
#include <GL/gl.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LIGHTS = 8, PLANES = 6, SHINE_STEPS = 1024, SHINE_TABLES = 8, LEVELS = 12, MAX_SIZE = 2048, MAX_ORDER = 30, BATCH = 96,
    MATRIX_DEPTH = 32, ATTRIB_DEPTH = 16, NAME_DEPTH = 64, LIST_NESTING = 64, PIXEL_MAP = 256, MOST_PRIORITIES = 64, SPAN = 256, SUBPIXEL_BITS = 8,
    MOST_LANES = 4, RECENT = 256 };

#define ENABLE(name, groups) EN_##name,
enum enable {
#include "enables.def"
    ENABLES
};
#undef ENABLE

/* The input of a vertex path: the current values when glVertex was called. normal[3] is the edge flag. */
struct vertex_in { _Alignas(8) float pos[4]; float normal[4], color[4], coord[4]; };

/* The output of a vertex path. win is valid if no plane is in outside: x, y, z, and 1/w. Bits of outside: FRUSTUM's six, then
 * user planes. Only what later stages need under the present state is written. */
struct vertex { float clip[4], win[4], color[4], coord[4], back[4], eye[4], fog; uint32_t outside; float edge, spare; };
enum { FRUSTUM = 63, RIGHT = 1, LEFT = 2, TOP = 4, BOTTOM = 8, FAR = 16, NEAR = 32 };

struct light {
    float ambient[4], diffuse[4], specular[4], position[4], spot_direction[4], spot_exponent, spot_cutoff, attenuation[3];
};
struct material { float ambient[4], diffuse[4], specular[4], emission[4], shininess, indexes[3]; };

/* A light as the paths use it: products with the material, and unit vectors. */
struct lit {
    int is_positional, is_spot, is_attenuated, has_specular;
    float position[4], half[4], diffuse[4], ambient[4];
    struct { float ambient[4], diffuse[4], specular[4]; } by[2];        /* products with the front and back material */
    float spot[4], spot_cos, spot_exponent, attenuation[3];
};

struct texture_image { int width, height, border, format, internal; uint8_t (*texels)[4]; };
struct texture {
    GLuint name;
    GLenum target;
    struct texture_image level[LEVELS];
    GLint min_filter, mag_filter, wrap_s, wrap_t;
    float border[4], priority;
    int last_level;             /* the last of a complete set of mipmaps; -1 if incomplete */
};

/* Attribute groups: glPushAttrib copies one struct a bit. */
struct current_group {
    _Alignas(8) float normal[4];
    float color[4], coord[4], index;                    /* in this order, as struct vertex_in has them */
    float raster_position[4], raster_color[4], raster_coord[4], raster_distance, raster_index;
    GLboolean raster_valid;
};
struct point_group { float size; };
struct line_group { float width; GLint factor; GLint pattern; };
struct polygon_group { GLenum cull, front_face, mode[2]; float factor, units; };
struct stipple_group { uint32_t rows[32]; };
struct pixel_group { float scale[4], bias[4], depth_scale, depth_bias, zoom[2]; GLint index_shift, index_offset;
    GLboolean map_color, map_stencil; GLenum read_buffer; };
struct lighting_group {
    struct light light[LIGHTS];
    struct material material[2];
    float ambient[4];
    GLboolean local_viewer, two_side;
    GLenum shade_model, color_face, color_mode;
};
struct fog_group { float color[4], density, start, end, index; GLenum mode; };
struct depth_group { GLenum function; GLboolean mask; double clear; };
struct accum_group { float clear[4]; };
struct viewport_group { GLint box[4]; double range[2]; };
struct transform_group { GLenum matrix_mode; double plane[PLANES][4]; };
struct color_group { float clear[4], alpha_reference, clear_index; GLenum alpha_function, source, destination, logic_op, draw_buffer;
    GLboolean mask[4]; GLint index_mask; };
struct hint_group { GLenum perspective, point, line, polygon, fog; };
struct eval_group { float grid1[2], grid2[4]; GLint segments1, segments2[2]; };
struct list_group { GLuint base; };
struct texture_group { GLuint bound[2]; float env_color[4]; GLenum env_mode; GLenum gen_mode[4]; float object[4][4], eye[4][4]; };
struct scissor_group { GLint box[4]; };
struct stencil_group { GLenum function, fail, depth_fail, depth_pass; GLint reference, clear; GLint value_mask, write_mask; };

struct pixel_store { GLboolean swap, lsb_first; GLint row_length, skip_rows, skip_pixels, alignment; };
struct array { GLboolean enabled; GLint size, stride; GLenum type; const uint8_t *pointer; };
enum { VERTEX_ARRAY, NORMAL_ARRAY, COLOR_ARRAY, INDEX_ARRAY, COORD_ARRAY, EDGE_ARRAY, ARRAYS };
struct client_group { struct pixel_store pack, unpack; struct array array[ARRAYS]; };

struct groups {
    uint8_t enabled[ENABLES];
    struct current_group current;
    struct point_group point;
    struct line_group line;
    struct polygon_group polygon;
    struct stipple_group stipple;
    struct pixel_group pixel;
    struct lighting_group lighting;
    struct fog_group fog;
    struct depth_group depth;
    struct accum_group accum;
    struct viewport_group viewport;
    struct transform_group transform;
    struct color_group color;
    struct hint_group hint;
    struct eval_group eval;
    struct list_group list;
    struct texture_group texture;
    struct scissor_group scissor;
    struct stencil_group stencil;
};

/* Pixels that a context draws to: rows from the bottom up, colours in memory order R, G, B, A. */
struct framebuffer {
    int width, height;
    uint8_t (*color[2])[4];             /* front, back; one is null if there is one buffer alone */
    uint32_t *depth;                    /* 24 bits */
    uint8_t *stencil;
    int16_t (*accum)[4];
    int is_foreign;                     /* color[0] belongs to the caller */
    int is_double;
};

struct matrix_stack { float top[16]; int depth; float saved[MATRIX_DEPTH][16]; };
struct attrib_entry { GLbitfield mask; struct groups saved; struct texture parameters[2]; };
struct eval_map { int order[2]; float domain[4]; float *points; };

struct context;
/* A function for each command. Tables of them execute, report errors between glBegin and glEnd, or record display lists. */
struct dispatch {
#define COMMAND(name, allowed, opcode, side, parameters, ...) void (*name) CTX_P parameters;
#define ARRAY COMMAND
#define IMAGE COMMAND
#include "expand.h"
};

/* The same for functions that return something, or change what is not part of the server's state (queries.def). */
struct queries {
#define QUERY(result, name, parameters, arguments) result (*name) parameters;
#include "queries.def"
};

/* A device that draws primitives in window coordinates. vertices is null, or takes the first n of out as they are, if it can: it returns 0 if
 * they have to come as primitives. */
struct rasterizer {
    void (*triangle)(struct context *, const struct vertex *, const struct vertex *, const struct vertex *, const float *flat, float offset);
    void (*line)(struct context *, const struct vertex *, const struct vertex *, const float *flat, float offset);
    void (*point)(struct context *, const struct vertex *, const float *flat, float offset);
    int (*vertices)(struct context *, int n);
};

struct derived;
/* Both arrays have room for a multiple of MOST_LANES, since a path may take that many vertices at once. */
typedef void vertex_path(const struct derived *, const struct vertex_in *, int count, struct vertex *);

/* All that the vertex paths read; validate.c derives it from state. */
struct derived {
    float mvp[16], modelview[16], normal_matrix[9], texture_matrix[16], viewport[6];
    int lighting, normalize, texture, texture_identity, gen_any, fog, two_side, local_viewer, needs_eye, color_face, color_mode;
    int gen_enabled[4];
    GLenum gen_mode[4];
    float gen_object[4][4], gen_eye[4][4];
    int lights, planes;
    struct lit light[LIGHTS];
    float plane[PLANES][4];
    uint32_t plane_bit[PLANES];
    struct { float base[4], emission[4], ambient_sum[4], ambient[4], diffuse[4], specular[4]; const float *shine; } by[2];
    float model_ambient[4];
};

enum { DIRTY_VERTEX = 1, DIRTY_RASTER = 2, DIRTY_ALL = 3 };
enum { COND_LIGHTING = 1, COND_NORMALIZE = 2, COND_TEXTURE = 4, COND_FOG = 8, COND_LIGHT1 = 16, COND_SPECULAR = 32,
    COND_COLOR_MATERIAL = 64, COND_POSITIONAL = 128, COND_TEXGEN = 256, COND_USER_CLIP = 512, CONDITIONS = 10 };

struct span {
    int x, y, n, is_rgba_set;
    float rgba[SPAN][4], coord[SPAN][2], lambda[SPAN], fog[SPAN];
    uint32_t z[SPAN];
    uint8_t mask[SPAN];
    float coverage[SPAN];
    int has_coverage, no_texture;
};

struct context {
    const struct dispatch *dispatch;    /* what entry points call: direct, or the recorder of a display list */
    const struct dispatch *direct;      /* executes: outside of glBegin and glEnd, or between them */
    const struct dispatch *outside;     /* executes outside of them */
    const struct queries *queries;
    const struct rasterizer *raster;
    struct remote *remote;              /* the server that has the frame buffer; null if it is here */
    uint64_t work, most_work;           /* in pixels, or what takes as long; beyond the limit nothing is drawn */
    size_t memory, most_memory;         /* bytes of lists and textures */
    struct groups s;
    struct client_group client;
    struct derived d;
    unsigned dirty;
    GLenum error;
    GLenum render_mode;
    int inside;                         /* between glBegin and glEnd */

    GLenum primitive;
    vertex_path *path;
    int mask;                           /* the conditions of the path; -1 if the generic path is the only one */
    int batch_count, kept, parity, has_first;
    struct vertex_in batch[BATCH];
    struct vertex out[BATCH + MOST_LANES], first;
    /* Of indexed triangles, where in the batch vertices are that were used in it. */
    struct recent { GLuint index, batch; uint32_t slot; } recent[RECENT];
    GLuint batch_number;

    struct matrix_stack modelview, projection, texture_stack;
    struct attrib_entry *attribs[ATTRIB_DEPTH];
    int attrib_depth;
    struct { GLbitfield mask; struct client_group saved; } clients[ATTRIB_DEPTH];
    int client_depth;
    float shine[SHINE_TABLES][SHINE_STEPS + 1], shine_exponent[SHINE_TABLES];
    int shine_used, shine_next;

    struct texture **textures, *default_texture[2], *bound[2], *active_texture;
    int texture_capacity;
    struct list **lists;
    GLuint list_capacity;
    struct list *recording;
    GLuint recording_name;
    GLenum list_mode;
    int list_depth;
    struct eval_map map1[9], map2[9];

    float map_values[10][PIXEL_MAP];
    GLint map_size[10];

    GLuint *select_buffer;
    GLint select_size, select_count, hits;
    GLboolean select_overflow, hit;
    float hit_min, hit_max;
    GLuint names[NAME_DEPTH];
    GLint name_depth;
    GLfloat *feedback_buffer;
    GLint feedback_size, feedback_count;
    GLenum feedback_type;
    GLboolean feedback_overflow;
    GLint reported;                     /* words that the last glRenderMode left in the buffer of the mode that it ended */

    unsigned stipple_counter;
    struct framebuffer *fb;
    int box[4];                         /* where pixels may change: x0, y0, x1, y1 */
    int polygon_box[4];                 /* the same within the viewport */
    int two_targets;                    /* draws to both buffers */
    uint8_t (*target)[4], (*second)[4], (*source)[4];
    int fast_span;                      /* no stage but depth and colour */
    struct span span;

    /* The window system's, if there is one: shows a single buffer, and follows the window's size. */
    void (*flush_window)(struct context *);
    void (*follow_size)(struct context *);
};

#include "functions.h"

extern const struct dispatch outside_commands, inside_commands, recorders;
extern const struct queries local_queries;
extern __thread struct context *current __attribute__((tls_model("initial-exec")));
/* The current context of the program's only thread that has had one; null if several have. */
extern struct context *only_current;

/* For commands that programs call often: on Alpha, to find a thread's variables takes a call of PALcode. */
static inline struct context *current_fast(void)
{
#ifdef __alpha__
    struct context *gl = __atomic_load_n(&only_current, __ATOMIC_RELAXED);
    if (__builtin_expect(gl != NULL, 1)) return gl;
#endif
    return current;
}
extern vertex_path generic_path;
extern vertex_path *const special_paths[1 << CONDITIONS];

#define ON(flag) (gl->s.enabled[EN_##flag])

/* Executing functions of all commands. */
#define COMMAND(name, allowed, opcode, side, parameters, ...) void exec_##name CTX_P parameters;
#define ARRAY COMMAND
#define IMAGE COMMAND
#include "expand.h"

#endif
