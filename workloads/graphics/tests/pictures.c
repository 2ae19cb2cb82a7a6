/* Draws every scene and writes its picture: `pictures FOLDER`. With -DOSMESA by Mesa's off-screen library, otherwise by ours. */
#include "ppm.h"
#include "scenes.h"
#include <stdlib.h>
#include <string.h>
#ifdef OSMESA
#include <GL/osmesa.h>
#else
#include "../offscreen.h"
#endif

static unsigned char pixels[SCENE_SIZE][SCENE_SIZE][4];

static void draw(const struct scene *s)
{
    memset(pixels, 0, sizeof pixels);
#ifdef OSMESA
    OSMesaContext c = OSMesaCreateContextExt(OSMESA_RGBA, 24, 8, 16, NULL);
    OSMesaMakeCurrent(c, pixels, GL_UNSIGNED_BYTE, SCENE_SIZE, SCENE_SIZE);
#else
    struct offscreen *c = offscreen_create(pixels, SCENE_SIZE, SCENE_SIZE);
    offscreen_make_current(c);
    if (getenv("GENERIC")) offscreen_use_special_paths(0);
#endif
    s->draw();
    glFinish();
    GLenum error = glGetError();
    if (error) fprintf(stderr, "pictures: scene %s ended with the error 0x%x\n", s->name, error);
#ifdef OSMESA
    OSMesaDestroyContext(c);
#else
    offscreen_destroy(c);
#endif
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    for (const struct scene *s = scenes; s->name; s++) {
        if (argc > 2 && strcmp(argv[2], s->name)) continue;
        draw(s);
        char name[512];
        snprintf(name, sizeof name, "%s/%s.ppm", argv[1], s->name);
        if (!write_ppm(name, SCENE_SIZE, SCENE_SIZE, pixels[0])) return 1;
    }
    return 0;
}
