/* Bytes, words, strings, bit-fields, unaligned structures: what BWX is about. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct __attribute__((packed)) record {
    uint8_t kind;
    uint16_t length;
    int16_t delta;
    uint32_t key;
    uint64_t value;
    int8_t sign;
};

static struct record records[64];
static uint8_t table[256];
static int16_t samples[128];

int main(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 64; i++)
        records[i] = (struct record){(uint8_t)(i * 7), (uint16_t)(i * 1001), (int16_t)(-i * 513), (uint32_t)i * 2654435761u,
                                     (uint64_t)i * 0x9e3779b97f4a7c15, (int8_t)(100 - 3 * i)};
    for (int i = 0; i < 256; i++) table[i] = (uint8_t)(i * 167 + 13);
    for (int i = 0; i < 128; i++) samples[i] = (int16_t)(records[i % 64].delta + table[i]);
    const volatile struct record *r = records;
    for (int i = 0; i < 64; i++, r++)
        sum = sum * 33 + r->kind + r->length + (uint64_t)r->delta + r->key + r->value + (uint64_t)r->sign + (uint64_t)samples[i];
    char text[200] = "";
    for (int i = 0; i < 20; i++) {
        char word[12];
        snprintf(word, sizeof word, "%c%d ", 'a' + i, i * i);
        strcat(text, word);
    }
    memmove(text + 3, text + 1, 100);
    memset(text + 50, '-', 5);
    for (const char *p = text; *p; p++) sum = sum * 131 + table[(uint8_t)*p];
    printf("%s %lx %d %p\n", text, sum, memcmp(text, text + 7, 50) > 0, (void *)(strchr(text, 'k') - text));
    return (int)(sum & 63);
}
