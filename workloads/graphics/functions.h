/* Functions of the library's modules that others call. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H
/* Functions of queries.def as this process executes them: the entry points call through a context's table (entry.c). */
#define QUERY(result, name, parameters, arguments) GLAPI result APIENTRY gl##name parameters __asm__("local_" #name);
#include "queries.def"

void gl_error(struct context *gl, GLenum error);
void clamp4(float *out, const float *in);

/* Numbers of values that a query writes; 0 if it fails. */
int variable_values(struct context *gl, GLenum name);
int map_query_values(struct context *gl, GLenum target, GLenum query);
int pixel_map_values(const struct context *gl, GLenum map);
/* Whether a variable is kept where the program runs. */
int is_client_variable(GLenum name);

/* values.c: numbers of values that an array argument has; 0 for a name that the command refuses. */
int material_values(GLenum name);
int light_values(GLenum name);
int light_model_values(GLenum name);
int map_values(GLenum target);
int map_order(GLint order);
int list_name_size(GLenum type);

/* matrix.c */
void multiply(float *out, const float *a, const float *b);
int invert(float *out, const float *in);
void transform(float *out, const float *m, const float *v);
struct matrix_stack *current_stack(struct context *gl);

/* validate.c */
void validate(struct context *gl);
void validate_raster(struct context *gl);
void sync_color_material(struct context *gl);
extern int use_special_paths;

/* vertex.c */
void flush_vertices(struct context *gl);
void draw_assembled(struct context *gl, GLenum primitive, int parity, int n);
void transform_one(struct context *gl, const float *pos, struct vertex *out);

/* clip.c: primitives of vertices as the paths made them */
void draw_point(struct context *gl, struct vertex *v);
void draw_line(struct context *gl, struct vertex *a, struct vertex *b);
void draw_triangle(struct context *gl, struct vertex *a, struct vertex *b, struct vertex *c, struct vertex *flat, unsigned edges);

/* select.c: the same, clipped and in window coordinates, in the other render modes */
void report_select(struct context *gl, const struct vertex *v);
void report_feedback(struct context *gl, GLenum token, int count, const struct vertex *const *v);
void report_token(struct context *gl, GLenum token);

/* rasterizers: the software one, and a device that takes everything and draws nothing */
extern const struct rasterizer software_rasterizer, null_rasterizer;
void raster_triangle(struct context *gl, const struct vertex *a, const struct vertex *b, const struct vertex *c,
    const float *flat, float offset);
void raster_line(struct context *gl, const struct vertex *a, const struct vertex *b, const float *flat, float offset);
void raster_point(struct context *gl, const struct vertex *v, const float *flat, float offset);
float polygon_offset(struct context *gl, const struct vertex *a, const struct vertex *b, const struct vertex *c);
void draw_span(struct context *gl, struct span *span);
void texture_span(struct context *gl, struct span *span);
int level_of_detail_needed(const struct texture *t);

/* texture.c */
void init_textures(struct context *gl);
void free_textures(struct context *gl);
struct texture *texture_of(struct context *gl, GLenum target);
void complete_texture(struct texture *t);
void bind_restored(struct context *gl, const struct texture *parameters);
int base_format(GLint internal);

/* pixels.c, images.c */
void unpack_rgba(struct context *gl, int width, GLenum format, GLenum type, const void *row, float (*out)[4]);
const void *image_row(const struct pixel_store *p, const void *base, int width, GLenum format, GLenum type, int y);
int format_components(GLenum format);
int type_size(GLenum type);
int check_format(struct context *gl, GLenum format, GLenum type);
void swap_bytes(uint8_t *bytes, size_t count, int size);
size_t packed_size(int width, int height, GLenum format, GLenum type);
void pack_image(const struct pixel_store *p, int width, int height, GLenum format, GLenum type, const void *from, void *to);
void transfer_rgba(struct context *gl, int width, float (*rgba)[4]);
void read_rgba(struct context *gl, int x, int y, int width, float (*out)[4]);
void pack_rgba(struct context *gl, int width, GLenum format, GLenum type, float (*in)[4], void *out);
const void *bits_row(const struct pixel_store *p, const void *base, int width, int y);
int bit_of(const struct pixel_store *p, const uint8_t *row, int x);
extern const struct pixel_store tight_store;

/* context.c: memory that counts towards a context's limit; null beyond it. Bytes are as realloc leaves them. */
void *gl_allocate(struct context *gl, void *old, size_t bytes);
void gl_release(struct context *gl, void *old);

/* lists.c */
void free_lists(struct context *gl);

/* window and off-screen systems */
struct context *make_context(int is_double);
void free_context(struct context *gl);
struct framebuffer *make_framebuffer(int width, int height, void *pixels, int is_double);
void resize_framebuffer(struct framebuffer *fb, int width, int height, void *pixels);
void free_framebuffer(struct framebuffer *fb);
void make_current(struct context *gl, struct framebuffer *fb);
#endif
