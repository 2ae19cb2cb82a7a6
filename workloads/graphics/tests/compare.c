/* Compares pictures: `compare EXPECTED FOUND` prints the largest difference of pixels that count as the same, the pixels that
 * differ by more than 2/255, and how many of these are not at an edge of the expected picture. Exits with 1 if more than 0.1 % of
 * the pixels differ, or one that is not at an edge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct picture { int width, height; unsigned char *rgb; };

static struct picture load(const char *name)
{
    struct picture p = { 0 };
    FILE *f = fopen(name, "rb");
    if (!f || fscanf(f, "P6 %d %d 255", &p.width, &p.height) != 2 || p.width < 1 || p.height < 1 || p.width > 4096 || p.height > 4096) {
        fprintf(stderr, "compare: %s is no picture: it must be a PPM file of 8 bits\n", name);
        exit(2);
    }
    fgetc(f);
    p.rgb = malloc((size_t)p.width * p.height * 3);
    if (fread(p.rgb, 3, (size_t)p.width * p.height, f) != (size_t)p.width * p.height) exit(2);
    fclose(f);
    return p;
}

static int difference(const unsigned char *a, const unsigned char *b)
{
    int most = 0;
    for (int k = 0; k < 3; k++) most = abs(a[k] - b[k]) > most ? abs(a[k] - b[k]) : most;
    return most;
}

static int is_edge(const struct picture *p, int x, int y)
{
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            if (x + dx < 0 || y + dy < 0 || x + dx >= p->width || y + dy >= p->height) return 1;
            if (difference(p->rgb + 3 * (y * p->width + x), p->rgb + 3 * ((y + dy) * p->width + x + dx)) > 2) return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    struct picture a = load(argv[1]), b = load(argv[2]);
    if (a.width != b.width || a.height != b.height) return 1;
    int most = 0, count = 0, inner = 0;
    for (int y = 0; y < a.height; y++)
        for (int x = 0; x < a.width; x++) {
            size_t at = 3 * ((size_t)y * a.width + x);
            int d = difference(a.rgb + at, b.rgb + at);
            if (d <= 2) {
                most = d > most ? d : most;
                continue;
            }
            count++;
            inner += !is_edge(&a, x, y);
        }
    printf("%d %d %d %.3f%%\n", most, count, inner, 100.0 * count / (a.width * a.height));
    return inner > 0 || count > a.width * a.height / 1000;
}
