/* Checks that special vertex paths equal the generic one bit for bit: `paths SEQUENCES SEED`.
 * First every compiled path, on random vertices under a random state that its conditions describe; then random sequences of state
 * changes, also within primitives, drawn once by generic paths alone and once with special ones, then once by calls and once from
 * display lists and arrays: frame buffers, depths and feedback must be the same. Prints what was covered; exits with 1 at the first
 * difference. */
#include "../context.h"
#include "../offscreen.h"
#include <stdio.h>

enum { VERTICES = 200, ODD = 3, SIZE = 48, FEEDBACK = 1 << 16, STEPS = 12 };

static uint64_t state;
static uint32_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}
static int below(int n) { return (int)(next() % (unsigned)n); }
static float between(float a, float b) { return a + (b - a) * (float)(next() & 0xffffff) / 16777216; }
static void vector(float *v, int n, float a, float b)
{
    for (int i = 0; i < n; i++) v[i] = between(a, b);
}

static void set(GLenum name, int on) { (on ? glEnable : glDisable)(name); }

static void set_light(int i, int mask)
{
    float v[4];
    vector(v, 4, -1, 1);
    v[3] = mask & COND_POSITIONAL ? between(0.5f, 2) : 0;
    glLightfv(GL_LIGHT0 + i, GL_POSITION, v);
    vector(v, 4, 0, 1);
    glLightfv(GL_LIGHT0 + i, GL_DIFFUSE, v);
    vector(v, 4, 0, 0.3f);
    glLightfv(GL_LIGHT0 + i, GL_AMBIENT, v);
    vector(v, 4, mask & COND_SPECULAR ? 0.2f : 0, mask & COND_SPECULAR ? 1 : 0);
    glLightfv(GL_LIGHT0 + i, GL_SPECULAR, v);
}

/* A random state that has these conditions. */
static void set_conditions(int mask)
{
    float v[4];
    double plane[4];
    glMatrixMode(GL_PROJECTION);
    glLoadIdentity();
    glFrustum(-1, 1, -1, 1, 1, 10);
    glMatrixMode(GL_MODELVIEW);
    glLoadIdentity();
    glTranslatef(between(-0.5f, 0.5f), 0, between(-4, -2));
    glRotatef(between(0, 360), 1, between(0, 1), 0.3f);
    glScalef(between(0.5f, 2), 1, 1);
    set(GL_LIGHTING, mask & COND_LIGHTING);
    set(GL_NORMALIZE, mask & COND_NORMALIZE);
    set(GL_FOG, mask & COND_FOG);
    set(GL_TEXTURE_2D, mask & COND_TEXTURE);
    set(GL_TEXTURE_GEN_S, mask & COND_TEXGEN), set(GL_TEXTURE_GEN_T, mask & COND_TEXGEN);
    set(GL_CLIP_PLANE0, mask & COND_USER_CLIP), set(GL_CLIP_PLANE3, mask & COND_USER_CLIP && below(2));
    set(GL_COLOR_MATERIAL, mask & COND_COLOR_MATERIAL);
    set(GL_LIGHT0, 1), set(GL_LIGHT5, mask & COND_LIGHT1);
    set_light(0, mask);
    set_light(5, mask);
    vector(v, 4, 0, 1);
    glMaterialfv(GL_FRONT_AND_BACK, GL_AMBIENT_AND_DIFFUSE, v);
    vector(v, 4, 0.1f, 1);
    glMaterialfv(GL_FRONT_AND_BACK, GL_SPECULAR, v);
    glMaterialf(GL_FRONT_AND_BACK, GL_SHININESS, below(3) * 20);
    vector(v, 4, -1, 1);
    glTexGenfv(GL_S, GL_EYE_PLANE, v);
    glTexGenfv(GL_T, GL_EYE_PLANE, v);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 4; k++) plane[k] = between(-1, 1);
        glClipPlane(i ? GL_CLIP_PLANE3 : GL_CLIP_PLANE0, plane);
    }
}

static void texture(void)
{
    GLubyte texels[64];
    for (int i = 0; i < 64; i++) texels[i] = (GLubyte)next();
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 4, 4, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
}

static int check_path(int mask)
{
    struct vertex_in in[VERTICES];
    static struct vertex out[2][VERTICES];
    struct context *gl = current;
    set_conditions(mask);
    validate(gl);
    if (gl->mask != mask || gl->path != special_paths[mask]) {
        printf("conditions %d are validated as %d\n", mask, gl->mask);
        return 1;
    }
    for (int i = 0; i < VERTICES; i++) {
        vector(in[i].pos, 3, -2, 2);
        in[i].pos[3] = 1;
        vector(in[i].normal, 3, -1, 1);
        in[i].normal[3] = 1;
        vector(in[i].color, 4, -0.2f, 1.2f);
        vector(in[i].coord, 4, -2, 2);
    }
    memset(out, 0, sizeof out);
    /* Not a multiple of what paths take at once. */
    generic_path(&gl->d, in, VERTICES - ODD, out[0]);
    special_paths[mask](&gl->d, in, VERTICES - ODD, out[1]);
    if (memcmp(out[0], out[1], (VERTICES - ODD) * sizeof out[0][0]) == 0) return 0;
    printf("the path of conditions %d differs from the generic one\n", mask);
    return 1;
}

/* The coverage of the sequences. */
static long specials, generics, nets;
static int masks[1 << CONDITIONS];
static int usable[1 << CONDITIONS], usable_count;

/* How primitives are drawn: as a sequence comes, by calls alone, or from lists and arrays alone. */
static enum { MIXED, CALLS, STORED } route;

static void primitive(void)
{
    float v[4];
    struct context *gl = current;
    int first = below(2) ? 4 : 0;               /* half of them have vertices' values alone, and can be compiled to arrays */
    glBegin((GLenum)below(10));
    vertex_path *chosen = gl->path;
    if (gl->inside && chosen == generic_path) generics++;
    if (gl->inside && chosen != generic_path) specials++, masks[gl->mask]++;
    for (int i = below(60); i >= 0; i--) {
        switch (first + below(14 - first)) {
        case 0: vector(v, 4, 0, 1); glMaterialfv(GL_FRONT_AND_BACK, GL_DIFFUSE, v); break;
        case 1: vector(v, 4, 0, below(2)); glMaterialfv(GL_FRONT, GL_SPECULAR, v); break;
        case 2: glMaterialf(GL_FRONT_AND_BACK, GL_SHININESS, below(100)); break;
        case 3: glEnable(GL_FOG); break;                        /* an error */
        case 4: case 5: vector(v, 4, 0, 1); glColor4fv(v); break;
        case 6: vector(v, 2, -1, 2); glTexCoord2fv(v); break;
        default: vector(v, 3, -1, 1); glNormal3fv(v);
        }
        vector(v, 3, -1.5f, 1.5f);
        glVertex3fv(v);
    }
    nets += gl->inside && chosen != generic_path && gl->path == generic_path;
    glEnd();
}

/* Elements of arrays with many vertices in common. */
static void elements(void)
{
    enum { POINTS = 40, MOST = 120 };
    static float position[POINTS][4], normal[POINTS][3], color[POINTS][4], coord[POINTS][2];
    GLushort order[MOST];
    GLenum mode = below(2) ? GL_TRIANGLES : (GLenum)below(10);
    int count = below(MOST), size = 2 + below(3);
    vector(position[0], POINTS * 4, -1.5f, 1.5f);
    vector(normal[0], POINTS * 3, -1, 1);
    vector(color[0], POINTS * 4, 0, 1);
    vector(coord[0], POINTS * 2, -1, 2);
    for (int i = 0; i < POINTS; i++) position[i][3] = 1;
    for (int i = 0; i < count; i++) order[i] = (GLushort)below(POINTS);
    glVertexPointer(size, GL_FLOAT, sizeof *position, position);
    glNormalPointer(GL_FLOAT, 0, normal);
    glColorPointer(3 + below(2), GL_FLOAT, sizeof *color, color);
    glTexCoordPointer(2, GL_FLOAT, 0, coord);
    static const GLenum arrays[4] = { GL_VERTEX_ARRAY, GL_NORMAL_ARRAY, GL_COLOR_ARRAY, GL_TEXTURE_COORD_ARRAY };
    for (int i = 0; i < 4; i++) (i == 0 || below(2) ? glEnableClientState : glDisableClientState)(arrays[i]);
    if (route == CALLS) {
        glBegin(mode);
        for (int i = 0; i < count; i++) glArrayElement(order[i]);
        glEnd();
    } else
        glDrawElements(mode, count, GL_UNSIGNED_SHORT, order);
}

/* States that no special path covers. */
static void unusual(void)
{
    switch (below(6)) {
    case 0: glLightModeli(GL_LIGHT_MODEL_TWO_SIDE, below(2)); break;
    case 1: glLightModeli(GL_LIGHT_MODEL_LOCAL_VIEWER, below(2)); break;
    case 2: glLightf(GL_LIGHT0, GL_SPOT_CUTOFF, below(2) ? 180 : 40); break;
    case 3: glLightf(GL_LIGHT5, GL_LINEAR_ATTENUATION, below(2)); break;
    case 4: glColorMaterial(GL_FRONT_AND_BACK, below(2) ? GL_AMBIENT_AND_DIFFUSE : GL_SPECULAR); break;
    default: glTexGeni(GL_S, GL_TEXTURE_GEN_MODE, below(2) ? GL_EYE_LINEAR : GL_SPHERE_MAP);
    }
}

/* Draws a sequence; a hash of everything that it left. */
static uint64_t draw(uint64_t seed, int use_special, int by)
{
    route = by;
    static GLubyte pixels[SIZE * SIZE * 4];
    static GLfloat feedback[FEEDBACK], depth[SIZE * SIZE];
    memset(pixels, 0, sizeof pixels);
    memset(feedback, 0, sizeof feedback);
    struct offscreen *o = offscreen_create(pixels, SIZE, SIZE);
    offscreen_make_current(o);
    offscreen_use_special_paths(use_special);
    state = seed;
    texture();
    glEnable(GL_DEPTH_TEST);
    glFeedbackBuffer(FEEDBACK, GL_4D_COLOR_TEXTURE, feedback);
    GLuint list = 0;
    for (int i = 0; i < STEPS; i++) {
        if (below(3) == 0) glRenderMode(below(2) ? GL_FEEDBACK : GL_RENDER);
        set_conditions(usable[below(usable_count)]);
        if (below(4) == 0) unusual();
        if (below(4) == 0) elements();
        int is_listed = below(5) == 0;
        if (route == STORED || (route == MIXED && is_listed)) {
            if (!list) list = glGenLists(1);
            glNewList(list, route == STORED || below(2) ? GL_COMPILE : GL_COMPILE_AND_EXECUTE);
            primitive();
            glEndList();
            glCallList(list);
        } else {
            primitive();
        }
    }
    glRenderMode(GL_RENDER);
    glReadPixels(0, 0, SIZE, SIZE, GL_DEPTH_COMPONENT, GL_FLOAT, depth);
    uint64_t hash = glGetError();
    const GLubyte *parts[3] = { pixels, (GLubyte *)feedback, (GLubyte *)depth };
    const size_t sizes[3] = { sizeof pixels, sizeof feedback, sizeof depth };
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < sizes[k]; i++) hash = (hash ^ parts[k][i]) * 0x100000001b3;
    offscreen_destroy(o);
    return hash;
}

/* Numbers that programs get by mistake must neither crash the library nor hang it. */
static void draw_hostile(void)
{
    static const float numbers[] = { NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 1e-30f, 3e4f, 0, -0.0f };
    static const GLubyte pixel[16];
    for (int i = 0; i < 400; i++) {
        float v[4];
        set_conditions(usable[below(usable_count)]);
        if (below(3) == 0) glMatrixMode(GL_PROJECTION), glLoadIdentity(), glMatrixMode(GL_MODELVIEW), glLoadIdentity();
        glPolygonMode(GL_FRONT_AND_BACK, GL_POINT + (GLenum)below(3));
        set(GL_LINE_SMOOTH, below(2)), set(GL_POINT_SMOOTH, below(2));
        glViewport(-below(3) * 3000, 0, below(2) ? 8000 : SIZE, SIZE);
        glBegin((GLenum)below(10));
        for (int n = 0; n < 6; n++) {
            vector(v, 4, -2, 2);
            for (int k = 0; k < 4; k++)
                if (below(3) == 0) v[k] = numbers[below(9)];
            glColor4fv(v);
            glNormal3fv(v);
            glTexCoord4fv(v);
            glVertex4fv(v);
        }
        glEnd();
        glPixelZoom(v[0], v[1]);
        glRasterPos4fv(v);
        glDrawPixels(2, 2, GL_RGBA, GL_UNSIGNED_BYTE, pixel);
        glBitmap(8, 2, v[2], 0, v[3], v[1], pixel);
    }
}

int main(int argc, char **argv)
{
    int sequences = argc > 1 ? atoi(argv[1]) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    GLubyte pixels[SIZE * SIZE * 4];
    struct offscreen *o = offscreen_create(pixels, SIZE, SIZE);
    offscreen_make_current(o);
    texture();
    state = seed;
    for (int mask = 0; mask < 1 << CONDITIONS; mask++) {
        if (!special_paths[mask]) continue;
        usable[usable_count++] = mask;
        for (int i = 0; i < 4; i++)
            if (check_path(mask)) return 1;
    }
    draw_hostile();
    offscreen_destroy(o);
    for (int i = 0; i < sequences; i++) {
        uint64_t at = seed + 1000003u * (unsigned)i;
        long before[2] = { specials, generics };
        uint64_t generic = draw(at, 0, MIXED);
        specials = before[0], generics = before[1];
        if (draw(at, 1, MIXED) != generic) {
            printf("sequence %d of seed %llu differs between paths\n", i, (unsigned long long)seed);
            return 1;
        }
        if (draw(at, 1, CALLS) != draw(at, 1, STORED)) {
            printf("sequence %d of seed %llu differs between calls and lists or arrays\n", i, (unsigned long long)seed);
            return 1;
        }
    }
    int used = 0;
    for (int i = 0; i < 1 << CONDITIONS; i++) used += masks[i] > 0;
    printf("%d paths equal the generic one; %d sequences: %ld primitives began on special paths (%d of them), %ld on the generic one, "
           "%ld fell back to it\n", usable_count, sequences, specials, used, generics, nets);
    return usable_count == 0 || (sequences >= 100 && (specials < 100 || generics < 100 || nets < 10));
}
