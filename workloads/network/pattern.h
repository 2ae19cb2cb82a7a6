/* Bytes that are a function of their position, so that a receiver knows what must come. */
#ifndef NETWORK_PATTERN_H
#define NETWORK_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes at position 8 * `index`. */
static inline uint64_t pattern_word(uint64_t index, uint64_t seed) {
    uint64_t mixed = (index + seed) * 0x9e3779b97f4a7c15ull;
    return mixed ^ mixed >> 29;
}

/* Writes `length` bytes that begin at `position`. */
static inline void pattern_fill(char *to, size_t length, uint64_t position, uint64_t seed) {
    while (length > 0) {
        uint64_t word = pattern_word(position / 8, seed);
        if (position % 8 == 0 && length >= 8) {
            memcpy(to, &word, 8);
            to += 8;
            position += 8;
            length -= 8;
            continue;
        }
        size_t skip = position % 8, part = 8 - skip < length ? 8 - skip : length;
        memcpy(to, (char *)&word + skip, part);
        to += part;
        position += part;
        length -= part;
    }
}

/* Whether `length` bytes are those that begin at `position`. */
static inline bool pattern_is(const char *at, size_t length, uint64_t position, uint64_t seed) {
    while (length > 0) {
        uint64_t word = pattern_word(position / 8, seed), found;
        if (position % 8 == 0 && length >= 8) {
            memcpy(&found, at, 8);
            if (found != word) return false;
            at += 8;
            position += 8;
            length -= 8;
            continue;
        }
        size_t skip = position % 8, part = 8 - skip < length ? 8 - skip : length;
        if (memcmp(at, (char *)&word + skip, part) != 0) return false;
        at += part;
        position += part;
        length -= part;
    }
    return true;
}

#endif
