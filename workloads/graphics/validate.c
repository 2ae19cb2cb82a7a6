/* Validation: what vertex paths and rasterizers read is derived from state when drawing begins after a change, and the path is
 * chosen. No path tests what is settled here. */
#include "paths.h"
#include <float.h>

/* 0 selects the generic path always: for tests and measurements. */
int use_special_paths = 1;

static void copy4(float *out, const float *in) { memcpy(out, in, 4 * sizeof *out); }

/* The material properties that follow the current colour; they are brought up to date when somebody looks. */
void sync_color_material(struct context *gl)
{
    if (!ON(COLOR_MATERIAL)) return;
    GLenum mode = gl->s.lighting.color_mode, face = gl->s.lighting.color_face;
    for (int f = 0; f < 2; f++) {
        if (face != GL_FRONT_AND_BACK && face != (f ? GL_BACK : GL_FRONT)) continue;
        struct material *m = &gl->s.lighting.material[f];
        const float *c = gl->s.current.color;
        if (mode == GL_AMBIENT || mode == GL_AMBIENT_AND_DIFFUSE) copy4(m->ambient, c);
        if (mode == GL_DIFFUSE || mode == GL_AMBIENT_AND_DIFFUSE) copy4(m->diffuse, c);
        if (mode == GL_SPECULAR) copy4(m->specular, c);
        if (mode == GL_EMISSION) copy4(m->emission, c);
    }
}

/* The table of powers for an exponent: computed once, and kept for the exponents used last. */
static const float *shine_table(struct context *gl, float exponent)
{
    for (int i = 0; i < gl->shine_used; i++)
        if (gl->shine_exponent[i] == exponent) return gl->shine[i];
    int slot = gl->shine_used < SHINE_TABLES ? gl->shine_used++ : gl->shine_next++ % SHINE_TABLES;
    gl->work += SHINE_STEPS;
    gl->shine_exponent[slot] = exponent;
    for (int i = 0; i <= SHINE_STEPS; i++) {
        double power = exponent == 0 ? 1 : pow(i / (double)SHINE_STEPS, exponent);
        gl->shine[slot][i] = power < FLT_MIN ? 0 : (float)power;         /* Alpha traps on denormal operands */
    }
    return gl->shine[slot];
}

static void derive_light(struct context *gl, struct lit *l, const struct light *from)
{
    memset(l, 0, sizeof *l);
    copy4(l->diffuse, from->diffuse);
    copy4(l->ambient, from->ambient);
    l->is_positional = from->position[3] != 0;
    l->is_spot = from->spot_cutoff != 180;
    l->is_attenuated = l->is_positional && (from->attenuation[0] != 1 || from->attenuation[1] != 0 || from->attenuation[2] != 0);
    for (int k = 0; k < 3; k++) l->position[k] = l->is_positional ? from->position[k] / from->position[3] : from->position[k];
    if (!l->is_positional) {
        normalize3(l->position);
        for (int k = 0; k < 3; k++) l->half[k] = l->position[k] + (k == 2);
        normalize3(l->half);
    }
    memcpy(l->spot, from->spot_direction, sizeof l->spot);
    normalize3(l->spot);
    l->spot_cos = cosf(from->spot_cutoff * (float)(M_PI / 180));
    l->spot_exponent = from->spot_exponent;
    memcpy(l->attenuation, from->attenuation, sizeof l->attenuation);
    for (int f = 0; f < 2; f++)
        for (int k = 0; k < 3; k++) {
            const struct material *m = &gl->s.lighting.material[f];
            l->by[f].ambient[k] = from->ambient[k] * m->ambient[k];
            l->by[f].diffuse[k] = from->diffuse[k] * m->diffuse[k];
            l->by[f].specular[k] = from->specular[k] * m->specular[k];
            if (gl->d.color_mode == GL_SPECULAR) l->by[f].specular[k] = from->specular[k];
            if (f == 0 || gl->d.two_side) l->has_specular |= l->by[f].specular[k] != 0;
        }
}

static void derive_lighting(struct context *gl)
{
    struct derived *d = &gl->d;
    const struct lighting_group *s = &gl->s.lighting;
    d->lighting = ON(LIGHTING);
    d->lights = 0;
    if (!d->lighting) return;
    sync_color_material(gl);
    d->color_mode = ON(COLOR_MATERIAL) ? s->color_mode : 0;
    d->color_face = s->color_face;
    d->two_side = s->two_side;
    d->local_viewer = s->local_viewer;
    for (int i = 0; i < LIGHTS; i++)
        if (gl->s.enabled[EN_LIGHT0 + i]) derive_light(gl, &d->light[d->lights++], &s->light[i]);
    for (int f = 0; f < 2; f++) {
        const struct material *m = &s->material[f];
        for (int k = 0; k < 3; k++) {
            float sum = s->ambient[k];
            for (int i = 0; i < d->lights; i++)
                if (!d->light[i].is_spot && !d->light[i].is_attenuated) sum += d->light[i].ambient[k];
            d->by[f].ambient_sum[k] = sum;
            d->by[f].emission[k] = m->emission[k];
            d->by[f].base[k] = m->emission[k] + sum * m->ambient[k];
        }
        copy4(d->by[f].diffuse, m->diffuse);
        d->by[f].shine = shine_table(gl, m->shininess);
    }
}

static void derive_matrices(struct context *gl)
{
    struct derived *d = &gl->d;
    static const float identity[16] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
    multiply(d->mvp, gl->projection.top, gl->modelview.top);
    memcpy(d->modelview, gl->modelview.top, sizeof d->modelview);
    memcpy(d->texture_matrix, gl->texture_stack.top, sizeof d->texture_matrix);
    d->texture_identity = memcmp(d->texture_matrix, identity, sizeof identity) == 0;
    float linear[16], inverse[16];
    memcpy(linear, gl->modelview.top, sizeof linear);
    linear[3] = linear[7] = linear[11] = linear[12] = linear[13] = linear[14] = 0, linear[15] = 1;
    invert(inverse, linear);
    for (int c = 0; c < 3; c++)
        for (int r = 0; r < 3; r++) d->normal_matrix[3 * c + r] = inverse[4 * r + c];
    const GLint *box = gl->s.viewport.box;
    const double *range = gl->s.viewport.range;
    const float viewport[6] = { box[2] * 0.5f, box[3] * 0.5f, (range[1] - range[0]) / 2, box[0] + box[2] * 0.5f, box[1] + box[3] * 0.5f,
        (range[0] + range[1]) / 2 };
    memcpy(d->viewport, viewport, sizeof viewport);
}

static void derive_texture(struct context *gl)
{
    struct derived *d = &gl->d;
    struct texture *t = ON(TEXTURE_2D) ? gl->bound[1] : ON(TEXTURE_1D) ? gl->bound[0] : NULL;
    if (t) complete_texture(t);
    gl->active_texture = t && t->last_level >= 0 ? t : NULL;
    d->texture = gl->active_texture != NULL || gl->render_mode == GL_FEEDBACK;
    d->gen_any = 0;
    for (int k = 0; k < 4; k++) {
        static const int flag[4] = { EN_TEXTURE_GEN_S, EN_TEXTURE_GEN_T, EN_TEXTURE_GEN_R, EN_TEXTURE_GEN_Q };
        d->gen_enabled[k] = gl->s.enabled[flag[k]];
        d->gen_any |= d->texture && d->gen_enabled[k];
        d->gen_mode[k] = gl->s.texture.gen_mode[k];
        copy4(d->gen_object[k], gl->s.texture.object[k]);
        copy4(d->gen_eye[k], gl->s.texture.eye[k]);
    }
}

/* The conditions that hold, canonical; -1 if more is asked for than special paths promise. */
static int path_mask(const struct context *gl)
{
    const struct derived *d = &gl->d;
    int mask = 0;
    if (d->lighting) {
        mask |= COND_LIGHTING;
        if (d->lights < 1 || d->lights > 2 || d->two_side || d->local_viewer) return -1;
        for (int i = 0; i < d->lights; i++) {
            if (d->light[i].is_spot || d->light[i].is_attenuated || d->light[i].is_positional != d->light[0].is_positional) return -1;
            if (d->light[i].has_specular != d->light[0].has_specular) return -1;
        }
        if (d->color_mode) {
            if (d->color_mode != GL_AMBIENT_AND_DIFFUSE || d->color_face == GL_BACK) return -1;
            mask |= COND_COLOR_MATERIAL;
        }
        if (d->lights == 2) mask |= COND_LIGHT1;
        if (d->light[0].has_specular) mask |= COND_SPECULAR;
        if (d->light[0].is_positional) mask |= COND_POSITIONAL;
        if (d->normalize) mask |= COND_NORMALIZE;
    }
    if (d->texture) {
        if (!d->texture_identity) return -1;
        mask |= COND_TEXTURE;
        if (d->gen_any) {
            const int *on = d->gen_enabled;
            if (!on[0] || !on[1] || on[2] || on[3] || d->gen_mode[0] != GL_EYE_LINEAR || d->gen_mode[1] != GL_EYE_LINEAR) return -1;
            mask |= COND_TEXGEN;
        }
    }
    if (d->fog) mask |= COND_FOG;
    if (d->planes) mask |= COND_USER_CLIP;
    return mask;
}

void validate(struct context *gl)
{
    struct derived *d = &gl->d;
    if (gl->dirty & DIRTY_RASTER) validate_raster(gl);
    if (gl->dirty & DIRTY_VERTEX) {
        derive_matrices(gl);
        derive_lighting(gl);
        derive_texture(gl);
        d->normalize = ON(NORMALIZE);
        d->fog = ON(FOG);
        d->planes = 0;
        for (int i = 0; i < PLANES; i++) {
            if (!gl->s.enabled[EN_CLIP_PLANE0 + i]) continue;
            for (int k = 0; k < 4; k++) d->plane[d->planes][k] = gl->s.transform.plane[i][k];
            d->plane_bit[d->planes++] = 64u << i;
        }
        d->needs_eye = d->lighting || d->fog || d->planes || d->gen_any;
        gl->mask = path_mask(gl);
        vertex_path *special = use_special_paths && gl->mask >= 0 ? special_paths[gl->mask] : NULL;
        gl->path = special ? special : generic_path;
    }
    gl->dirty = 0;
}
