/* One special ("speed of light") path: all stages in one loop, compiled for the conditions in MASK, without a test of state.
 * special.c includes this once for each canonical mask. The conditions, and what each of them promises, are those that
 * path_mask in validate.c establishes; the order of operations is that of generic.c. */
#define HAS(condition) (((MASK) & COND_##condition) != 0)
#define NAME_OF(mask) path_##mask
#define NAME(mask) NAME_OF(mask)

static void NAME(MASK)(const struct derived *restrict d, const struct vertex_in *restrict in, int count, struct vertex *restrict out)
{
    for (; count > 0; count--, in++, out++) {
        float eye[4] = { 0 }, n[3] = { 0 };
        transform4(d->mvp, in->pos, out->clip);
        if (HAS(FOG) || HAS(USER_CLIP) || HAS(TEXGEN) || HAS(POSITIONAL)) transform4(d->modelview, in->pos, eye);
        if (HAS(LIGHTING)) {
            const float *q = d->normal_matrix;
            for (int k = 0; k < 3; k++) n[k] = q[k] * in->normal[0] + q[3 + k] * in->normal[1] + q[6 + k] * in->normal[2];
            if (HAS(NORMALIZE)) normalize3(n);
            float c[3];
            for (int k = 0; k < 3; k++)
                c[k] = HAS(COLOR_MATERIAL) ? d->by[0].emission[k] + d->by[0].ambient_sum[k] * in->color[k] : d->by[0].base[k];
            for (int i = 0; i < (HAS(LIGHT1) ? 2 : 1); i++) {
                const struct lit *l = &d->light[i];
                float v[3] = { l->position[0], l->position[1], l->position[2] };
                if (HAS(POSITIONAL)) {
                    for (int k = 0; k < 3; k++) v[k] -= eye[k];
                    normalize3(v);
                }
                float dot = dot3(n, v);
                if (dot > 0) {
                    for (int k = 0; k < 3; k++)
                        c[k] += dot * (HAS(COLOR_MATERIAL) ? l->diffuse[k] * in->color[k] : l->by[0].diffuse[k]);
                    if (HAS(SPECULAR)) {
                        float h[3] = { l->half[0], l->half[1], l->half[2] };
                        if (HAS(POSITIONAL)) {
                            h[0] = v[0], h[1] = v[1], h[2] = v[2] + 1;
                            normalize3(h);
                        }
                        float e = dot3(n, h);
                        if (e > 0) {
                            e = shininess(d->by[0].shine, e);
                            for (int k = 0; k < 3; k++) c[k] += e * l->by[0].specular[k];
                        }
                    }
                }
            }
            for (int k = 0; k < 3; k++) out->color[k] = clamp01(c[k]);
            out->color[3] = clamp01(HAS(COLOR_MATERIAL) ? in->color[3] : d->by[0].diffuse[3]);
        } else
            for (int k = 0; k < 4; k++) out->color[k] = clamp01(in->color[k]);
        if (HAS(TEXTURE))
            for (int k = 0; k < 4; k++) out->coord[k] = HAS(TEXGEN) && k < 2 ? plane4(d->gen_eye[k], eye) : in->coord[k];
        if (HAS(FOG)) out->fog = fabsf(eye[2]);
        uint32_t outside = outside_frustum(out->clip);
        if (HAS(USER_CLIP)) {
            for (int i = 0; i < d->planes; i++)
                if (plane4(d->plane[i], eye) < 0) outside |= d->plane_bit[i];
            for (int k = 0; k < 4; k++) out->eye[k] = eye[k];
        }
        out->outside = outside;
        if (!outside) to_window(d->viewport, out->clip, out->win);
        out->edge = in->normal[3];
    }
}
#undef HAS
#undef NAME
#undef NAME_OF
#undef MASK
