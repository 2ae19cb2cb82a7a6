/* Contexts without a window: the caller's memory is the frame buffer. */
#ifndef OFFSCREEN_H
#define OFFSCREEN_H
struct offscreen;
/* A context that draws to pixels of 4 bytes (R, G, B, A), rows from the bottom up; null if memory is short. */
struct offscreen *offscreen_create(void *pixels, int width, int height);
void offscreen_make_current(struct offscreen *o);
void offscreen_destroy(struct offscreen *o);
/* 0: every vertex takes the generic path; 1, the default: special paths where there are any. */
void offscreen_use_special_paths(int use);
/* The mask of conditions that the last validation found; -1 if the generic path is the only one. */
int offscreen_conditions(void);
/* Primitives of the current context, which must be one of this process, are not rasterized: for measurements. */
void offscreen_draw_nothing(void);
#endif
