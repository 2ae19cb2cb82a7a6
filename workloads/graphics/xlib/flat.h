/* Two-dimensional drawing, whichever way it comes: kinds of items of 16-bit coordinates, in one colour. */
#ifndef FLAT_H
#define FLAT_H
#include "../context.h"

enum flat_kind { FLAT_POINTS, FLAT_SEGMENTS, FLAT_OUTLINES, FLAT_FILLS, FLAT_KINDS };
/* Coordinates of an item: x, y; x1, y1, x2, y2; x, y, width, height. */
static inline int flat_coordinates(enum flat_kind kind) { return kind == FLAT_POINTS ? 2 : 4; }
/* A command of the device: items follow. */
struct flat_command { uint16_t kind, count; uint32_t pixel; };

/* Draws items into the first buffer; the origin is above on the left, as X has it. Counts pixels as work, and stops beyond a limit. */
void draw_flat(struct framebuffer *fb, enum flat_kind kind, uint32_t pixel, const int16_t *items, int count, uint64_t *work, uint64_t most);
#endif
