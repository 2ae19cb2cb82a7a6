/* Pictures in files: PPM. */
#ifndef PPM_H
#define PPM_H
#include <stdio.h>

/* Writes pixels, whose rows go from the bottom up. Returns 0 and errno if the file cannot be written. */
static int write_ppm(const char *path, int width, int height, unsigned char (*pixels)[4])
{
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    fprintf(file, "P6\n%d %d\n255\n", width, height);
    for (int y = height - 1; y >= 0; y--)
        for (int x = 0; x < width; x++) fwrite(pixels[y * width + x], 1, 3, file);
    return fclose(file) == 0;
}
#endif
