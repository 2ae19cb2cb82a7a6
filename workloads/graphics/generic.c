/* The generic vertex path: a routine a stage, every condition tested at each vertex. It covers all of OpenGL 1.1, and is the net
 * when a special path meets conditions it was not compiled for. The order of its operations is that of template.h. */
#include "paths.h"

static int is_tracked(const struct derived *d, int face, GLenum a, GLenum b)
{
    return d->color_mode && (d->color_mode == (int)a || d->color_mode == (int)b)
        && (d->color_face == GL_FRONT_AND_BACK || d->color_face == (face ? GL_BACK : GL_FRONT));
}

/* One light's contribution to a face, after the ambient part that all vertices share. */
static void light_face(const struct derived *d, int i, int face, const float *eye, const float *n, const float *color, float *c)
{
    const struct lit *l = &d->light[i];
    float v[3] = { l->position[0], l->position[1], l->position[2] }, strength = 1;
    if (l->is_positional) {
        for (int k = 0; k < 3; k++) v[k] -= eye[k];
        if (l->is_attenuated) {
            float distance = sqrtf(dot3(v, v));
            strength = 1 / (l->attenuation[0] + l->attenuation[1] * distance + l->attenuation[2] * distance * distance);
        }
        normalize3(v);
    }
    if (l->is_spot) {
        float angle = -dot3(v, l->spot);
        strength *= angle < l->spot_cos ? 0 : l->spot_exponent == 0 ? 1 : powf(angle, l->spot_exponent);
    }
    const int varies = l->is_spot || l->is_attenuated;
    if (varies)
        for (int k = 0; k < 3; k++)
            c[k] += strength * (is_tracked(d, face, GL_AMBIENT, GL_AMBIENT_AND_DIFFUSE) ? l->ambient[k] * color[k] : l->by[face].ambient[k]);
    float dot = dot3(n, v);
    if (!(dot > 0)) return;
    if (varies) dot *= strength;
    for (int k = 0; k < 3; k++)
        c[k] += dot * (is_tracked(d, face, GL_DIFFUSE, GL_AMBIENT_AND_DIFFUSE) ? l->diffuse[k] * color[k] : l->by[face].diffuse[k]);
    if (!l->has_specular && !is_tracked(d, face, GL_SPECULAR, GL_SPECULAR)) return;
    float h[3] = { l->half[0], l->half[1], l->half[2] };
    if (d->local_viewer) {
        float to_viewer[3] = { -eye[0], -eye[1], -eye[2] };
        normalize3(to_viewer);
        for (int k = 0; k < 3; k++) h[k] = v[k] + to_viewer[k];
        normalize3(h);
    } else if (l->is_positional) {
        h[0] = v[0], h[1] = v[1], h[2] = v[2] + 1;
        normalize3(h);
    }
    float e = dot3(n, h);
    if (!(e > 0)) return;
    e = shininess(d->by[face].shine, e);
    if (varies) e *= strength;
    for (int k = 0; k < 3; k++)
        c[k] += e * (is_tracked(d, face, GL_SPECULAR, GL_SPECULAR) ? l->by[face].specular[k] * color[k] : l->by[face].specular[k]);
}

static void light_stage(const struct derived *d, int face, const float *eye, const float *n, const float *color, float *out)
{
    float c[3];
    for (int k = 0; k < 3; k++)
        c[k] = is_tracked(d, face, GL_AMBIENT, GL_AMBIENT_AND_DIFFUSE) ? d->by[face].emission[k] + d->by[face].ambient_sum[k] * color[k]
            : is_tracked(d, face, GL_EMISSION, GL_EMISSION)           ? d->by[face].base[k] - d->by[face].emission[k] + color[k]
                                                                       : d->by[face].base[k];
    for (int i = 0; i < d->lights; i++) light_face(d, i, face, eye, n, color, c);
    for (int k = 0; k < 3; k++) out[k] = clamp01(c[k]);
    out[3] = clamp01(is_tracked(d, face, GL_DIFFUSE, GL_AMBIENT_AND_DIFFUSE) ? color[3] : d->by[face].diffuse[3]);
}

static void normal_stage(const struct derived *d, const float *in, float *n)
{
    const float *q = d->normal_matrix;
    for (int k = 0; k < 3; k++) n[k] = q[k] * in[0] + q[3 + k] * in[1] + q[6 + k] * in[2];
    if (d->normalize) normalize3(n);
}

static void color_stage(const struct derived *d, const struct vertex_in *in, const float *eye, const float *n, struct vertex *out)
{
    if (!d->lighting) {
        for (int k = 0; k < 4; k++) out->color[k] = clamp01(in->color[k]);
        return;
    }
    light_stage(d, 0, eye, n, in->color, out->color);
    if (d->two_side) {
        float back[3] = { -n[0], -n[1], -n[2] };
        light_stage(d, 1, eye, back, in->color, out->back);
    }
}

static float sphere_map(int coordinate, const float *eye, const float *n)
{
    float u[3] = { eye[0], eye[1], eye[2] };
    normalize3(u);
    float twice = 2 * dot3(n, u), r[3];
    for (int k = 0; k < 3; k++) r[k] = u[k] - n[k] * twice;
    float m = 2 * sqrtf(r[0] * r[0] + r[1] * r[1] + (r[2] + 1) * (r[2] + 1));
    return m > 0 ? r[coordinate] / m + 0.5f : 0.5f;
}

static void texture_stage(const struct derived *d, const struct vertex_in *in, const float *eye, const float *n, struct vertex *out)
{
    if (!d->texture) return;
    float t[4];
    for (int k = 0; k < 4; k++) {
        t[k] = in->coord[k];
        if (d->gen_any && d->gen_enabled[k])
            t[k] = d->gen_mode[k] == GL_OBJECT_LINEAR ? plane4(d->gen_object[k], in->pos)
                : d->gen_mode[k] == GL_EYE_LINEAR     ? plane4(d->gen_eye[k], eye)
                                                      : sphere_map(k, eye, n);
    }
    if (d->texture_identity)
        for (int k = 0; k < 4; k++) out->coord[k] = t[k];
    else
        transform4(d->texture_matrix, t, out->coord);
}

static void fog_stage(const struct derived *d, const float *eye, struct vertex *out)
{
    if (d->fog) out->fog = fabsf(eye[2]);
}

static void clip_stage(const struct derived *d, const float *eye, struct vertex *out)
{
    uint32_t outside = outside_frustum(out->clip);
    for (int i = 0; i < d->planes; i++)
        if (plane4(d->plane[i], eye) < 0) outside |= d->plane_bit[i];
    if (d->planes)
        for (int k = 0; k < 4; k++) out->eye[k] = eye[k];
    out->outside = outside;
}

void generic_path(const struct derived *d, const struct vertex_in *in, int count, struct vertex *out)
{
    for (; count > 0; count--, in++, out++) {
        float eye[4] = { 0 }, n[3] = { 0 };
        transform4(d->mvp, in->pos, out->clip);
        if (d->needs_eye) transform4(d->modelview, in->pos, eye);
        if (d->lighting || d->gen_any) normal_stage(d, in->normal, n);
        color_stage(d, in, eye, n, out);
        texture_stage(d, in, eye, n, out);
        fog_stage(d, eye, out);
        clip_stage(d, eye, out);
        if (!out->outside) to_window(d->viewport, out->clip, out->win);
        out->edge = in->normal[3];
    }
}
