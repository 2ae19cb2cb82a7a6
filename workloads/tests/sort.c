/* Sorting, a hash table and the allocator: pointers, calls through pointers, and data-dependent branches. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 42;
static uint32_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static void sorting(void) {
    enum { N = 5000 };
    static uint32_t numbers[N];
    uint64_t before = 0, after = 0;
    for (int i = 0; i < N; i++) before += numbers[i] = next();
    qsort(numbers, N, sizeof *numbers, by_value);
    for (int i = 0; i < N; i++) after += numbers[i];
    for (int i = 1; i < N; i++)
        if (numbers[i - 1] > numbers[i]) puts("not in order");
    uint32_t *found = bsearch(&numbers[1234], numbers, N, sizeof *numbers, by_value);
    printf("%d %d %" PRIu32 "\n", before == after, found != NULL && *found == numbers[1234], numbers[N / 2]);
    static char words[800][11];
    for (int i = 0; i < 800; i++)
        for (int j = 0; j < 10; j++) words[i][j] = (char)('a' + next() % 26);
    qsort(words, 800, sizeof *words, by_text);
    printf("%s %s %s\n", words[0], words[400], words[799]);
}

struct entry { struct entry *next; uint64_t count; char key[]; };

static void counting(void) {
    enum { BUCKETS = 64 };
    struct entry *table[BUCKETS] = {0};
    for (int i = 0; i < 20000; i++) {
        char key[16];
        int length = snprintf(key, sizeof key, "k%" PRIu32, next() % 997);
        uint32_t hash = 2166136261u;
        for (int j = 0; j < length; j++) hash = (hash ^ (unsigned char)key[j]) * 16777619u;
        struct entry **at = &table[hash % BUCKETS];
        while (*at != NULL && strcmp((*at)->key, key) != 0) at = &(*at)->next;
        if (*at == NULL) {
            *at = calloc(1, sizeof **at + (size_t)length + 1);
            strcpy((*at)->key, key);
        }
        (*at)->count++;
    }
    uint64_t entries = 0, total = 0, most = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *e = table[i], *rest; e != NULL; e = rest) {
            rest = e->next;
            entries++;
            total += e->count;
            if (e->count > most) most = e->count;
            free(e);
        }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", entries, total, most);
}

static void allocating(void) {
    enum { SLOTS = 200 };
    unsigned char *slots[SLOTS] = {0};
    size_t sizes[SLOTS] = {0};
    for (int i = 0; i < 20000; i++) {
        unsigned j = next() % SLOTS;
        for (size_t k = 0; k < sizes[j]; k += 97)
            if (slots[j][k] != (unsigned char)j) puts("memory changed");
        size_t size = i % 500 == 0 ? 300000 : 1 + next() % 2000; /* large ones are mapped apart */
        if (next() % 3 == 0) {
            free(slots[j]);
            slots[j] = malloc(size);
        } else {
            slots[j] = realloc(slots[j], size);
        }
        sizes[j] = size;
        memset(slots[j], (int)j, size);
    }
    size_t total = 0;
    for (int j = 0; j < SLOTS; j++) total += sizes[j], free(slots[j]);
    printf("%zu\n", total);
}

int main(void) {
    sorting();
    counting();
    allocating();
    return 0;
}
