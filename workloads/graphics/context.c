/* Contexts: their initial state, and which one a thread draws with. */
#include "context.h"
#include <malloc.h>

/* Without a context, commands go to this one, which has no pixels. */
static struct framebuffer no_pixels;
static struct context no_context;
__thread struct context *current __attribute__((tls_model("initial-exec"))) = &no_context;
struct context *only_current;

/* The first thread's context is the only one until another thread has one. */
static void set_current(struct context *gl)
{
    static struct context **first;
    struct context **expected = NULL;
    int is_first = __atomic_compare_exchange_n(&first, &expected, &current, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || expected == &current;
    static int has_others;
    if (!is_first) __atomic_store_n(&has_others, 1, __ATOMIC_RELAXED);
    current = gl;
    __atomic_store_n(&only_current, __atomic_load_n(&has_others, __ATOMIC_RELAXED) ? NULL : gl, __ATOMIC_RELAXED);
}

static void set4(float *v, float a, float b, float c, float d) { v[0] = a, v[1] = b, v[2] = c, v[3] = d; }

static void init_lighting(struct lighting_group *g)
{
    for (int i = 0; i < LIGHTS; i++) {
        struct light *l = &g->light[i];
        float on = i == 0;
        set4(l->ambient, 0, 0, 0, 1);
        set4(l->diffuse, on, on, on, 1);
        set4(l->specular, on, on, on, 1);
        set4(l->position, 0, 0, 1, 0);
        set4(l->spot_direction, 0, 0, -1, 0);
        l->spot_cutoff = 180;
        l->attenuation[0] = 1;
    }
    for (int f = 0; f < 2; f++) {
        struct material *m = &g->material[f];
        set4(m->ambient, 0.2f, 0.2f, 0.2f, 1);
        set4(m->diffuse, 0.8f, 0.8f, 0.8f, 1);
        set4(m->specular, 0, 0, 0, 1);
        set4(m->emission, 0, 0, 0, 1);
        m->indexes[1] = m->indexes[2] = 1;
    }
    set4(g->ambient, 0.2f, 0.2f, 0.2f, 1);
    g->shade_model = GL_SMOOTH;
    g->color_face = GL_FRONT_AND_BACK, g->color_mode = GL_AMBIENT_AND_DIFFUSE;
}

static void init_groups(struct groups *s, int is_double)
{
    s->enabled[EN_DITHER] = 1;
    set4(s->current.normal, 0, 0, 1, 1);
    set4(s->current.color, 1, 1, 1, 1);
    set4(s->current.coord, 0, 0, 0, 1);
    s->current.index = s->current.raster_index = 1;
    set4(s->current.raster_position, 0, 0, 0, 1);
    set4(s->current.raster_color, 1, 1, 1, 1);
    set4(s->current.raster_coord, 0, 0, 0, 1);
    s->current.raster_valid = GL_TRUE;
    s->point.size = s->line.width = 1;
    s->line.factor = 1, s->line.pattern = 0xffff;
    s->polygon = (struct polygon_group){ GL_BACK, GL_CCW, { GL_FILL, GL_FILL }, 0, 0 };
    memset(s->stipple.rows, 0xff, sizeof s->stipple.rows);
    set4(s->pixel.scale, 1, 1, 1, 1);
    s->pixel.depth_scale = s->pixel.zoom[0] = s->pixel.zoom[1] = 1;
    s->pixel.read_buffer = s->color.draw_buffer = is_double ? GL_BACK : GL_FRONT;
    init_lighting(&s->lighting);
    s->fog.mode = GL_EXP, s->fog.density = s->fog.end = 1;
    s->depth.function = GL_LESS, s->depth.mask = GL_TRUE, s->depth.clear = 1;
    s->viewport.range[1] = 1;
    s->transform.matrix_mode = GL_MODELVIEW;
    s->color.alpha_function = GL_ALWAYS, s->color.source = GL_ONE, s->color.destination = GL_ZERO, s->color.logic_op = GL_COPY;
    memset(s->color.mask, GL_TRUE, sizeof s->color.mask);
    s->color.index_mask = -1;
    s->hint = (struct hint_group){ GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE };
    s->eval = (struct eval_group){ { 0, 1 }, { 0, 1, 0, 1 }, 1, { 1, 1 } };
    s->texture.env_mode = GL_MODULATE;
    for (int k = 0; k < 4; k++) s->texture.gen_mode[k] = GL_EYE_LINEAR;
    s->texture.object[0][0] = s->texture.object[1][1] = s->texture.eye[0][0] = s->texture.eye[1][1] = 1;
    s->stencil = (struct stencil_group){ GL_ALWAYS, GL_KEEP, GL_KEEP, GL_KEEP, 0, 0, -1, -1 };
}

/* The maps of an evaluator that was never set: one point, as the specification has it. */
static void init_maps(struct context *gl)
{
    static const float point[9][4] = { { 1, 1, 1, 1 }, { 1 }, { 0, 0, 1 }, { 0 }, { 0, 0 }, { 0, 0, 0 }, { 0, 0, 0, 1 }, { 0, 0, 0 },
        { 0, 0, 0, 1 } };
    for (int i = 0; i < 9; i++) {
        struct eval_map *m[2] = { &gl->map1[i], &gl->map2[i] };
        for (int k = 0; k < 2; k++) {
            m[k]->order[0] = m[k]->order[1] = 1;
            m[k]->domain[1] = m[k]->domain[3] = 1;
            m[k]->points = malloc(sizeof point[i]);
            if (m[k]->points) memcpy(m[k]->points, point[i], sizeof point[i]);
        }
    }
}

static void init_context(struct context *gl, int is_double)
{
    gl->dispatch = gl->direct = gl->outside = &outside_commands;
    gl->queries = &local_queries;
    gl->raster = &software_rasterizer;
    gl->most_work = UINT64_MAX, gl->most_memory = SIZE_MAX;
    init_groups(&gl->s, is_double);
    init_maps(gl);
    init_textures(gl);
    gl->client.pack.alignment = gl->client.unpack.alignment = 4;
    for (int i = 0; i < ARRAYS; i++) {
        gl->client.array[i].size = 4, gl->client.array[i].type = GL_FLOAT;
    }
    struct matrix_stack *stacks[3] = { &gl->modelview, &gl->projection, &gl->texture_stack };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) stacks[i]->top[5 * k] = 1;
    for (int i = 0; i < 10; i++) gl->map_size[i] = 1;
    gl->render_mode = GL_RENDER;
    gl->path = generic_path;
    gl->fb = &no_pixels;
    gl->dirty = DIRTY_ALL;
}

__attribute__((constructor)) static void init_library(void) { init_context(&no_context, 0); }

void *gl_allocate(struct context *gl, void *old, size_t bytes)
{
    size_t before = malloc_usable_size(old);
    if (bytes > gl->most_memory || gl->memory - before > gl->most_memory - bytes) return NULL;
    void *grown = realloc(old, bytes);
    if (grown) gl->memory += malloc_usable_size(grown) - before;
    return grown;
}

void gl_release(struct context *gl, void *old)
{
    gl->memory -= malloc_usable_size(old);
    free(old);
}

struct context *make_context(int is_double)
{
    struct context *gl = calloc(1, sizeof *gl);
    if (gl) init_context(gl, is_double);
    return gl;
}

void free_context(struct context *gl)
{
    if (!gl) return;
    if (current == gl) set_current(&no_context);
    free_textures(gl);
    free_lists(gl);
    for (int i = 0; i < 9; i++) free(gl->map1[i].points), free(gl->map2[i].points);
    for (int i = 0; i < gl->attrib_depth; i++) free(gl->attribs[i]);
    free(gl);
}

void make_current(struct context *gl, struct framebuffer *fb)
{
    set_current(gl ? gl : &no_context);
    if (!gl) return;
    int is_first = gl->fb == &no_pixels;
    gl->fb = fb ? fb : &no_pixels;
    gl->dirty = DIRTY_ALL;
    if (!is_first) return;
    GLint box[4] = { 0, 0, gl->fb->width, gl->fb->height };
    memcpy(gl->s.viewport.box, box, sizeof box);
    memcpy(gl->s.scissor.box, box, sizeof box);
}
