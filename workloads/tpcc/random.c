/* Random numbers and texts: a small generator, so that every build does the same transactions. */
#include <string.h>

#include "tpcc.h"

uint64_t random_state;

/* The constants C of NURand, clause 2.1.6. */
static int64_t last_name_constant, customer_constant, item_constant;

/* SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t random_bits(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

int64_t random_between(int64_t least, int64_t most) {
    /* Values of the last, incomplete run are drawn again. */
    uint64_t count = (uint64_t)(most - least) + 1, limit = UINT64_MAX - UINT64_MAX % count, bits;
    do bits = random_bits();
    while (bits >= limit);
    return least + (int64_t)(bits % count);
}

bool in_percent(int percent) {
    return random_between(1, 100) <= percent;
}

/* NURand(A, least, most), clause 2.1.6. */
static int64_t nonuniform(int64_t a, int64_t constant, int64_t least, int64_t most) {
    int64_t value = (random_between(0, a) | random_between(least, most)) + constant;
    return value % (most - least + 1) + least;
}

void draw_constants(bool is_load) {
    static const int64_t load_constant = 157;
    last_name_constant = load_constant;
    if (!is_load) {
        /* Clause 2.1.6.1: the difference is 65 to 119, but neither 96 nor 112. */
        int64_t difference;
        do difference = random_between(65, 119);
        while (difference == 96 || difference == 112);
        last_name_constant = load_constant - difference;
    }
    customer_constant = random_between(0, 1023);
    item_constant = random_between(0, 8191);
}

int64_t random_customer(const struct scale *scale) {
    return nonuniform(1023, customer_constant, 1, scale->customers);
}

int64_t random_item(const struct scale *scale) {
    return nonuniform(8191, item_constant, 1, scale->items);
}

void last_name(int64_t number, char *name) {
    static const char *const syllables[] = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                            "ESE", "ANTI",  "CALLY", "ATION", "EING"};
    strcpy(name, syllables[number / 100 % 10]);
    strcat(name, syllables[number / 10 % 10]);
    strcat(name, syllables[number % 10]);
}

void random_last_name(const struct scale *scale, char *name) {
    last_name(nonuniform(255, last_name_constant, 0, scale->customers / 3 - 1), name);
}

const char *random_text(int least, int most, char *text) {
    static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    int length = (int)random_between(least, most);
    for (int i = 0; i < length; i++) text[i] = characters[random_between(0, sizeof characters - 2)];
    text[length] = '\0';
    return text;
}

const char *random_digits(int count, char *text) {
    for (int i = 0; i < count; i++) text[i] = (char)('0' + random_between(0, 9));
    text[count] = '\0';
    return text;
}
