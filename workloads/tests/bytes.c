/* Bytes, words and strings at every alignment, compared with loops over single bytes. */
#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
static void expect(int condition, const char *what) {
    if (!condition && failures++ < 10) printf("failed: %s\n", what);
}

static unsigned char text[256], copy[256], model[256];

static void fill(void) {
    for (int i = 0; i < 256; i++) text[i] = (unsigned char)(i * 167 + 13);
}

static void memory_functions(void) {
    for (int from = 0; from < 10; from++)
        for (int to = 0; to < 10; to++)
            for (int size = 0; size < 70; size++) {
                memset(copy, 0xee, sizeof copy);
                memset(model, 0xee, sizeof model);
                memcpy(copy + to, text + from, (size_t)size);
                for (int i = 0; i < size; i++) ((volatile unsigned char *)model)[to + i] = text[from + i];
                expect(memcmp(copy, model, sizeof copy) == 0, "memcpy");
                memmove(copy + from, copy + to, (size_t)size);
                unsigned char moved[80];
                for (int i = 0; i < size; i++) moved[i] = ((volatile unsigned char *)model)[to + i];
                for (int i = 0; i < size; i++) ((volatile unsigned char *)model)[from + i] = moved[i];
                expect(memcmp(copy, model, sizeof copy) == 0, "memmove");
                memset(copy + to, from, (size_t)size);
                for (int i = 0; i < size; i++) ((volatile unsigned char *)model)[to + i] = (unsigned char)from;
                expect(memcmp(copy, model, sizeof copy) == 0, "memset");
            }
}

static void string_functions(void) {
    char buffer[128], other[128];
    for (int at = 0; at < 9; at++)
        for (int size = 0; size < 60; size++) {
            for (int i = 0; i < size; i++) buffer[at + i] = (char)(128 + i * 7 % 120);
            buffer[at + size] = 0;
            expect((int)strlen(buffer + at) == size, "strlen");
            strcpy(other + (at * 3) % 8, buffer + at);
            expect(strcmp(other + (at * 3) % 8, buffer + at) == 0, "strcpy");
            if (size > 0) {
                expect(strchr(buffer + at, buffer[at + size - 1]) != NULL, "strchr");
                expect(memchr(buffer + at, buffer[at], (size_t)size) == buffer + at, "memchr");
                other[(at * 3) % 8 + size - 1]++;
                expect(strcmp(other + (at * 3) % 8, buffer + at) > 0, "strcmp");
                expect(strncmp(other + (at * 3) % 8, buffer + at, (size_t)size - 1) == 0, "strncmp");
            }
        }
    strcpy(buffer, "one,two;;three");
    for (char *rest = buffer, *word; (word = strtok(rest, ",;")) != NULL; rest = NULL) printf("%s ", word);
    printf("%s %ld %lu\n", strstr("path length", "len"), strtol("-0x7f", NULL, 0), strtoul("777", NULL, 8));
    snprintf(buffer, sizeof buffer, "%5d|%-5x|%05o|%c|%8.3s|%+" PRId64, -42, 0xbeef, 8, 'z', "abcdef", INT64_MIN);
    puts(buffer);
    int number, taken;
    char name[16];
    taken = sscanf("alpha 21164", "%15s %d", name, &number);
    printf("%d %s %d %d\n", taken, name, number, isalpha('q') && !isalpha('7') && toupper('q') == 'Q');
}

/* Loads and stores of every width at every offset, by memcpy: unaligned code sequences. */
#define UNALIGNED(TYPE)                                                                        \
    for (int at = 0; at < 16; at++) {                                                          \
        TYPE value, back, built = 0;                                                           \
        memcpy(&value, text + at, sizeof value);                                               \
        for (unsigned i = 0; i < sizeof value; i++) built |= (TYPE)((TYPE)text[at + (int)i] << 8 * i); \
        expect(value == built, "unaligned load of " #TYPE);                                    \
        memcpy(copy, text, sizeof copy);                                                       \
        value = (TYPE)(value * 31 + 7);                                                        \
        memcpy(copy + at, &value, sizeof value);                                               \
        memcpy(&back, copy + at, sizeof back);                                                 \
        expect(back == value && memcmp(copy, text, (size_t)at) == 0 &&                         \
                   memcmp(copy + at + sizeof value, text + at + sizeof value, 32) == 0,        \
               "unaligned store of " #TYPE);                                                   \
    }

struct __attribute__((packed)) packed { uint8_t a; uint16_t b; uint32_t c; int64_t d; uint16_t e; };
struct fields { unsigned a : 3; signed b : 5; unsigned c : 13; signed d : 11; uint64_t e : 40; int64_t f : 24; };

static void layouts(void) {
    volatile struct packed p = {1, 0xfedc, 0x89abcdef, -2, 0x1234};
    p.b++; p.c ^= 0xff00ff00; p.d *= 1000003; p.e--; p.a = (uint8_t)(p.a - 2);
    printf("%u %u %" PRIx32 " %" PRId64 " %x\n", p.a, p.b, p.c, p.d, p.e);
    volatile struct fields f = {5, -16, 8191, -1024, 0xabcdef0123, -8388608};
    f.a++; f.b--; f.c += 2; f.d++; f.e <<= 4; f.f--;
    printf("%u %d %u %d %" PRIx64 " %" PRId64 "\n", f.a, f.b, f.c, f.d, (uint64_t)f.e, (int64_t)f.f);
}

static void histogram(void) {
    static signed char bytes[1024];
    static short counts[256];
    unsigned state = 7;
    for (int i = 0; i < 1024; i++) bytes[i] = (signed char)((state = state * 1103515245 + 12345) >> 16);
    for (int i = 0; i < 1024; i++) counts[bytes[i] + 128]++;
    long sum = 0, negative = 0;
    for (int i = 0; i < 256; i++) sum = sum * 31 + counts[i];
    for (int i = 0; i < 1024; i++) negative += bytes[i] < 0;
    printf("%ld %ld\n", sum, negative);
}

int main(void) {
    fill();
    memory_functions();
    string_functions();
    UNALIGNED(uint16_t) UNALIGNED(uint32_t) UNALIGNED(uint64_t)
    layouts();
    histogram();
    printf("%d failures\n", failures);
    return failures != 0;
}
