/* The software device of two-dimensional drawing. */
#include "flat.h"

struct flat_target { struct framebuffer *fb; uint8_t color[4]; };

/* A rectangle of pixels, cut to the buffer: from x0, y0 up to before x1, y1. */
static uint64_t fill(const struct flat_target *t, int x0, int y0, int x1, int y1)
{
    struct framebuffer *fb = t->fb;
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 > fb->width) x1 = fb->width;
    if (y1 > fb->height) y1 = fb->height;
    for (int y = y0; y < y1 && x0 < x1; y++) {
        uint8_t(*row)[4] = fb->color[0] + (size_t)(fb->height - 1 - y) * fb->width;
        for (int x = x0; x < x1; x++) memcpy(row[x], t->color, 4);
    }
    return x0 < x1 && y0 < y1 ? (uint64_t)(x1 - x0) * (y1 - y0) : 1;
}

/* The pixels next to the line, one for each step in the longer direction; both ends are drawn. */
static uint64_t line(const struct flat_target *t, int x1, int y1, int x2, int y2)
{
    struct framebuffer *fb = t->fb;
    if (y1 == y2) return fill(t, x1 < x2 ? x1 : x2, y1, (x1 < x2 ? x2 : x1) + 1, y1 + 1);
    if (x1 == x2) return fill(t, x1, y1 < y2 ? y1 : y2, x1 + 1, (y1 < y2 ? y2 : y1) + 1);
    int dx = abs(x2 - x1), dy = abs(y2 - y1), x_step = x1 < x2 ? 1 : -1, y_step = y1 < y2 ? 1 : -1, error = dx - dy;
    for (;;) {
        if (x1 >= 0 && y1 >= 0 && x1 < fb->width && y1 < fb->height)
            memcpy(fb->color[0][(size_t)(fb->height - 1 - y1) * fb->width + x1], t->color, 4);
        if (x1 == x2 && y1 == y2) return (uint64_t)(dx > dy ? dx : dy) + 1;
        int twice = 2 * error;
        if (twice > -dy) error -= dy, x1 += x_step;
        if (twice < dx) error += dx, y1 += y_step;
    }
}

void draw_flat(struct framebuffer *fb, enum flat_kind kind, uint32_t pixel, const int16_t *v, int count, uint64_t *work, uint64_t most)
{
    struct flat_target t = { fb, { (uint8_t)(pixel >> 16), (uint8_t)(pixel >> 8), (uint8_t)pixel, 255 } };
    for (int i = 0; i < count && *work <= most; i++, v += flat_coordinates(kind)) {
        int x = v[0], y = v[1], width = (uint16_t)v[kind == FLAT_POINTS ? 0 : 2], height = (uint16_t)v[kind == FLAT_POINTS ? 0 : 3];
        switch (kind) {
        case FLAT_POINTS: *work += fill(&t, x, y, x + 1, y + 1); break;
        case FLAT_SEGMENTS: *work += line(&t, x, y, v[2], v[3]); break;
        case FLAT_FILLS: *work += fill(&t, x, y, x + width, y + height); break;
        default:
            *work += fill(&t, x, y, x + width + 1, y + 1) + fill(&t, x, y + height, x + width + 1, y + height + 1);
            *work += fill(&t, x, y, x + 1, y + height + 1) + fill(&t, x + width, y, x + width + 1, y + height + 1);
        }
    }
}
