/* A server without an X library: there are no windows. */
#include "server.h"

int present_open(const char *display)
{
    (void)display;
    return 0;
}
int present_connection(void) { return -1; }
void *present_window(uint32_t id, int *width, int *height)
{
    (void)id, (void)width, (void)height;
    return NULL;
}
int present_size(void *window, int *width, int *height)
{
    (void)window, (void)width, (void)height;
    return 0;
}
void present_picture(void *window, const struct framebuffer *fb) { (void)window, (void)fb; }
void present_finish(void) { }
void present_close(void *window) { (void)window; }
void present_events(void) { }
