/* Scenes that are drawn by several implementations of OpenGL and compared. */
#ifndef SCENES_H
#define SCENES_H
#include <GL/gl.h>
enum { SCENE_SIZE = 128 };
struct scene { const char *name; void (*draw)(void); };
/* Ends with a null name. */
extern const struct scene scenes[];
#endif
