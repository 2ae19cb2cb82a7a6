/* Immediate mode: vertices are collected in batches, which a path transforms, and assembled to primitives. */
#include "context.h"

void exec_Begin(struct context *gl, GLenum mode)
{
    if (mode > GL_POLYGON) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (gl->work > gl->most_work) return;
    if (gl->dirty) validate(gl);
    gl->primitive = mode;
    gl->inside = 1;
    gl->batch_count = gl->kept = gl->parity = gl->has_first = 0;
    gl->stipple_counter = 0;
    if (gl->dispatch == gl->direct) gl->dispatch = &inside_commands;
    gl->direct = &inside_commands;
}

/* Draws a quadrilateral as two triangles; the edge between them is none of its boundary. */
static void quad(struct context *gl, struct vertex *a, struct vertex *b, struct vertex *c, struct vertex *d, unsigned no_flags)
{
    draw_triangle(gl, a, b, d, d, 5 | no_flags);
    draw_triangle(gl, b, c, d, d, 3 | no_flags);
}

/* Assembles out[0..n); returns from which vertex on they are needed again. */
static int assemble(struct context *gl, struct vertex *v, int n)
{
    int i = 0;
    switch (gl->primitive) {
    case GL_POINTS:
        for (; i < n; i++) draw_point(gl, &v[i]);
        return n;
    case GL_LINES:
        for (; i + 1 < n; i += 2) {
            gl->stipple_counter = 0;
            draw_line(gl, &v[i], &v[i + 1]);
        }
        return i;
    case GL_LINE_LOOP:
        if (!gl->has_first && n > 0) gl->first = v[0], gl->has_first = 1;
        /* fall through */
    case GL_LINE_STRIP:
        for (; i + 1 < n; i++) draw_line(gl, &v[i], &v[i + 1]);
        return i;
    case GL_TRIANGLES:
        for (; i + 2 < n; i += 3) draw_triangle(gl, &v[i], &v[i + 1], &v[i + 2], &v[i + 2], 7);
        return i;
    case GL_TRIANGLE_STRIP:
        for (; i + 2 < n; i++, gl->parity ^= 1)
            if (gl->parity) draw_triangle(gl, &v[i + 1], &v[i], &v[i + 2], &v[i + 2], 15);
            else draw_triangle(gl, &v[i], &v[i + 1], &v[i + 2], &v[i + 2], 15);
        return i;
    case GL_QUADS:
        for (; i + 3 < n; i += 4) quad(gl, &v[i], &v[i + 1], &v[i + 2], &v[i + 3], 0);
        return i;
    case GL_QUAD_STRIP:
        for (; i + 3 < n; i += 2) quad(gl, &v[i + 2], &v[i], &v[i + 1], &v[i + 3], 8);
        return i;
    default: return n;
    }
}

/* Fans and polygons keep their first vertex apart; a polygon's last edge is known at its end alone. */
static int assemble_fan(struct context *gl, struct vertex *v, int n, int is_end)
{
    int i = 0;
    if (!gl->has_first && n > 0) gl->first = v[i++], gl->has_first = 1;
    for (; i + 1 < n; i++) {
        if (gl->primitive == GL_TRIANGLE_FAN) {
            draw_triangle(gl, &gl->first, &v[i], &v[i + 1], &v[i + 1], 15);
        } else {
            if (i + 2 >= n && !is_end) return i;
            unsigned edges = 1 | (gl->parity ? 0 : 4) | (is_end && i + 2 >= n ? 2 : 0);
            gl->parity = 1;
            draw_triangle(gl, &v[i], &v[i + 1], &gl->first, &gl->first, edges);
        }
    }
    return i;
}

/* How far assemble goes, for vertices that were drawn all at once; not for primitives that keep their first vertex. */
static int assembled(struct context *gl, int n)
{
    int i = 0;
    switch (gl->primitive) {
    case GL_POINTS: return n;
    case GL_LINES: return n & ~1;
    case GL_LINE_STRIP: return n > 1 ? n - 1 : 0;
    case GL_TRIANGLES: return n - n % 3;
    case GL_TRIANGLE_STRIP:
        i = n > 2 ? n - 2 : 0;
        gl->parity ^= i & 1;
        return i;
    case GL_QUADS: return n & ~3;
    case GL_QUAD_STRIP: return n > 3 ? (n - 2) & ~1 : 0;
    default: return n;
    }
}

/* Draws primitives of vertices that need no clipping: the device's end of a rasterizer's `vertices`. */
void draw_assembled(struct context *gl, GLenum primitive, int parity, int n)
{
    gl->primitive = primitive, gl->parity = parity;
    assemble(gl, gl->out, n);
}

static void flush(struct context *gl, int is_end)
{
    gl->path(&gl->d, gl->batch, gl->batch_count, gl->out + gl->kept);
    int n = gl->kept + gl->batch_count;
    int is_fan = gl->primitive == GL_TRIANGLE_FAN || gl->primitive == GL_POLYGON;
    if (gl->raster->vertices && gl->primitive != GL_LINE_LOOP && !is_fan && gl->raster->vertices(gl, n)) {
        int from = assembled(gl, n);
        gl->kept = n - from, gl->batch_count = 0;
        if (from) memmove(gl->out, gl->out + from, gl->kept * sizeof *gl->out);
        return;
    }
    int from = is_fan ? assemble_fan(gl, gl->out, n, is_end) : assemble(gl, gl->out, n);
    gl->kept = n - from;
    gl->batch_count = 0;
    if (from) memmove(gl->out, gl->out + from, gl->kept * sizeof *gl->out);
}

void flush_vertices(struct context *gl) { flush(gl, 0); }

void exec_End(struct context *gl)
{
    if (!gl->inside) {
        gl_error(gl, GL_INVALID_OPERATION);
        return;
    }
    flush(gl, 1);
    if (gl->primitive == GL_LINE_LOOP && gl->has_first && gl->kept) draw_line(gl, &gl->out[0], &gl->first);
    gl->inside = 0;
    if (gl->dispatch == gl->direct) gl->dispatch = gl->outside;
    gl->direct = gl->outside;
    if (ON(COLOR_MATERIAL)) gl->dirty |= DIRTY_VERTEX;
}

/* Copies the current values to a vertex; both are aligned for copies of 8 bytes. */
static inline void copy_current(struct context *gl, struct vertex_in *in)
{
    memcpy(__builtin_assume_aligned(in->normal, 8), __builtin_assume_aligned(gl->s.current.normal, 8), 12 * sizeof(float));
}

void exec_Vertex4f(struct context *gl, GLfloat x, GLfloat y, GLfloat z, GLfloat w)
{
    if (!gl->inside) return;
    struct vertex_in *in = &gl->batch[gl->batch_count];
    in->pos[0] = x, in->pos[1] = y, in->pos[2] = z, in->pos[3] = w;
    copy_current(gl, in);
    if (++gl->batch_count == BATCH) flush(gl, 0);
}

void exec_Vertex3f(struct context *gl, GLfloat x, GLfloat y, GLfloat z) { exec_Vertex4f(gl, x, y, z, 1); }

void exec_Normal3f(struct context *gl, GLfloat x, GLfloat y, GLfloat z)
{
    float *n = gl->s.current.normal;
    n[0] = x, n[1] = y, n[2] = z;
}

void exec_Color4f(struct context *gl, GLfloat r, GLfloat g, GLfloat b, GLfloat a)
{
    float *c = gl->s.current.color;
    c[0] = r, c[1] = g, c[2] = b, c[3] = a;
    if (ON(COLOR_MATERIAL) && !gl->inside) gl->dirty |= DIRTY_VERTEX;
}

void exec_TexCoord4f(struct context *gl, GLfloat s, GLfloat t, GLfloat r, GLfloat q)
{
    float *c = gl->s.current.coord;
    c[0] = s, c[1] = t, c[2] = r, c[3] = q;
}

void exec_Indexf(struct context *gl, GLfloat index) { gl->s.current.index = index; }
void exec_EdgeFlag(struct context *gl, GLboolean flag) { gl->s.current.normal[3] = flag ? 1 : 0; }

/* Transforms a position with the current values, for the raster position. */
void transform_one(struct context *gl, const float *pos, struct vertex *out)
{
    if (gl->dirty) validate(gl);
    struct vertex_in in[MOST_LANES] = { 0 };
    struct vertex room[MOST_LANES] = { 0 };
    memcpy(in->pos, pos, sizeof in->pos);
    copy_current(gl, in);
    gl->path(&gl->d, in, 1, room);
    *out = room[0];
    transform(out->eye, gl->d.modelview, pos);
}

void exec_RasterPos4f(struct context *gl, GLfloat x, GLfloat y, GLfloat z, GLfloat w)
{
    struct current_group *c = &gl->s.current;
    float pos[4] = { x, y, z, w };
    struct vertex v;
    transform_one(gl, pos, &v);
    c->raster_valid = v.outside == 0;
    if (!c->raster_valid) return;
    memcpy(c->raster_position, v.win, 3 * sizeof(float));
    c->raster_position[3] = v.clip[3];
    c->raster_distance = fabsf(v.eye[2]);
    memcpy(c->raster_color, v.color, sizeof v.color);
    memcpy(c->raster_coord, gl->d.texture ? v.coord : c->coord, sizeof v.coord);
    c->raster_index = c->index;
    if (gl->render_mode == GL_SELECT) report_select(gl, &v);
}

void exec_Rectf(struct context *gl, GLfloat x1, GLfloat y1, GLfloat x2, GLfloat y2)
{
    exec_Begin(gl, GL_QUADS);
    exec_Vertex3f(gl, x1, y1, 0);
    exec_Vertex3f(gl, x2, y1, 0);
    exec_Vertex3f(gl, x2, y2, 0);
    exec_Vertex3f(gl, x1, y2, 0);
    exec_End(gl);
}

/* A material changed: between glBegin and glEnd what was collected is drawn first. If the new conditions ask for another path,
 * the generic one draws the rest of the primitive: validation chooses anew at the next glBegin. */
void exec_Materialfv(struct context *gl, GLenum face, GLenum name, const GLfloat *v)
{
    int count = material_values(name);
    if ((face != GL_FRONT && face != GL_BACK && face != GL_FRONT_AND_BACK) || !count) {
        gl_error(gl, GL_INVALID_ENUM);
        return;
    }
    if (name == GL_SHININESS && (v[0] < 0 || v[0] > 128)) {
        gl_error(gl, GL_INVALID_VALUE);
        return;
    }
    if (gl->inside) flush_vertices(gl);
    for (int f = 0; f < 2; f++) {
        if (face != GL_FRONT_AND_BACK && face != (f ? GL_BACK : GL_FRONT)) continue;
        struct material *m = &gl->s.lighting.material[f];
        if (name == GL_AMBIENT || name == GL_AMBIENT_AND_DIFFUSE) memcpy(m->ambient, v, sizeof m->ambient);
        if (name == GL_DIFFUSE || name == GL_AMBIENT_AND_DIFFUSE) memcpy(m->diffuse, v, sizeof m->diffuse);
        if (name == GL_SPECULAR) memcpy(m->specular, v, sizeof m->specular);
        if (name == GL_EMISSION) memcpy(m->emission, v, sizeof m->emission);
        if (name == GL_SHININESS) m->shininess = v[0];
        if (name == GL_COLOR_INDEXES) memcpy(m->indexes, v, sizeof m->indexes);
    }
    gl->dirty |= DIRTY_VERTEX;
    if (gl->inside && ON(LIGHTING)) {
        vertex_path *before = gl->path;
        validate(gl);
        if (gl->path != before) {
            gl->path = generic_path;
            gl->dirty |= DIRTY_VERTEX;
        }
    }
}
