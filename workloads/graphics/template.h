/* One special ("speed of light") path: all stages in one loop, compiled for the conditions in MASK, without a test of state.
 * special.c includes this once for each canonical mask. The conditions, and what each of them promises, are those that
 * path_mask in validate.c establishes; the order of operations is that of generic.c. */
#define HAS(condition) (((MASK) & COND_##condition) != 0)
#define NAME_OF(mask) path_##mask
#define NAME(mask) NAME_OF(mask)
#define STEP_IN (sizeof(struct vertex_in) / sizeof(float))
#define STEP_OUT (sizeof(struct vertex) / sizeof(float))

static void NAME(MASK)(const struct derived *restrict d, const struct vertex_in *restrict in, int count, struct vertex *restrict out)
{
    for (; count > 0; count -= LANES, in += LANES, out += LANES) {
        lanes position[4], clip[4], eye[4] = { all(0) }, n[4], color[4], c[4];
        load4(in->pos, STEP_IN, position);
        lanes_transform4(d->mvp, position, clip);
        if (HAS(FOG) || HAS(USER_CLIP) || HAS(TEXGEN) || HAS(POSITIONAL)) lanes_transform4(d->modelview, position, eye);
        if (HAS(COLOR_MATERIAL) || !HAS(LIGHTING)) load4(in->color, STEP_IN, color);
        if (HAS(LIGHTING)) {
            lanes normal[4];
            const float *q = d->normal_matrix;
            load4(in->normal, STEP_IN, normal);
            for (int k = 0; k < 3; k++) n[k] = q[k] * normal[0] + q[3 + k] * normal[1] + q[6 + k] * normal[2];
            if (HAS(NORMALIZE)) lanes_normalize3(n);
            for (int k = 0; k < 3; k++)
                c[k] = HAS(COLOR_MATERIAL) ? d->by[0].emission[k] + d->by[0].ambient_sum[k] * color[k] : all(d->by[0].base[k]);
            for (int i = 0; i < (HAS(LIGHT1) ? 2 : 1); i++) {
                const struct lit *l = &d->light[i];
                lanes v[3] = { all(l->position[0]), all(l->position[1]), all(l->position[2]) };
                if (HAS(POSITIONAL)) {
                    for (int k = 0; k < 3; k++) v[k] -= eye[k];
                    lanes_normalize3(v);
                }
                lanes dot = lanes_dot3(n, v);
                lane_mask is_lit = above(dot, all(0));
                if (!any(is_lit)) continue;
                for (int k = 0; k < 3; k++)
                    c[k] += where(is_lit, dot * (HAS(COLOR_MATERIAL) ? l->diffuse[k] * color[k] : all(l->by[0].diffuse[k])));
                if (HAS(SPECULAR)) {
                    lanes h[3] = { all(l->half[0]), all(l->half[1]), all(l->half[2]) };
                    if (HAS(POSITIONAL)) {
                        h[0] = v[0], h[1] = v[1], h[2] = v[2] + 1;
                        lanes_normalize3(h);
                    }
                    lanes e = lanes_dot3(n, h);
                    lane_mask shines = is_lit & above(e, all(0));
                    if (!any(shines)) continue;
                    e = lanes_shininess(d->by[0].shine, e, shines);
                    for (int k = 0; k < 3; k++) c[k] += where(shines, e * l->by[0].specular[k]);
                }
            }
            c[3] = HAS(COLOR_MATERIAL) ? color[3] : all(d->by[0].diffuse[3]);
        } else
            for (int k = 0; k < 4; k++) c[k] = color[k];
        for (int k = 0; k < 4; k++) c[k] = lanes_clamp01(c[k]);
        store4(out->clip, STEP_OUT, clip);
        store4(out->color, STEP_OUT, c);
        if (HAS(TEXTURE)) {
            lanes coord[4];
            load4(in->coord, STEP_IN, coord);
            for (int k = 0; HAS(TEXGEN) && k < 2; k++) coord[k] = lanes_plane4(d->gen_eye[k], eye);
            store4(out->coord, STEP_OUT, coord);
        }
        lane_mask outside = lanes_outside(clip);
        if (HAS(USER_CLIP)) {
            for (int i = 0; i < d->planes; i++) outside |= above(all(0), lanes_plane4(d->plane[i], eye)) & all_bits(d->plane_bit[i]);
            store4(out->eye, STEP_OUT, eye);
        }
        lane_mask inside = none(outside);
        if (any(inside)) {
            lanes window[4] = { all(0), all(0), all(0), 1 / clip[3] };
            for (int k = 0; k < 3; k++) window[k] = clip[k] * window[3] * d->viewport[k] + d->viewport[3 + k];
            for (int k = 0; LANES > 1 && k < 4; k++) window[k] = where(inside, window[k]);
            store4(out->win, STEP_OUT, window);
        }
        for (int i = 0; i < LANES; i++) {
            if (HAS(FOG)) out[i].fog = lane(magnitude(eye[2]), i);
            out[i].outside = lane_bits(outside, i);
            out[i].edge = in[i].normal[3];
        }
    }
}
#undef HAS
#undef NAME
#undef NAME_OF
#undef STEP_IN
#undef STEP_OUT
#undef MASK
