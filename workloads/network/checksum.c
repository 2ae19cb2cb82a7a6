#include "checksum.h"

#include <arpa/inet.h>
#include <string.h>

#include "network.h"

typedef uint32_t __attribute__((may_alias)) word;
typedef uint16_t __attribute__((may_alias)) half;

uint16_t in_sum(const void *data, int length) {
    const unsigned char *at = data;
    uint64_t sum = 0;
    bool odd = ((uintptr_t)at & 1) && length > 0;
    statistics.checksummed_bytes += length;
    if (odd) {
        /* The first byte ends a word that begins before it; all bytes are then on the other half. */
        half first = 0;
        memcpy((char *)&first + 1, at, 1);
        sum = first;
        at++;
        length--;
    }
    if (((uintptr_t)at & 2) && length >= 2) {
        sum += *(const half *)(const void *)at;
        at += 2;
        length -= 2;
    }
    for (; length >= 32; length -= 32, at += 32) {
        const word *words = (const void *)at;
        sum += (uint64_t)words[0] + words[1] + words[2] + words[3];
        sum += (uint64_t)words[4] + words[5] + words[6] + words[7];
    }
    for (; length >= 4; length -= 4, at += 4) sum += *(const word *)(const void *)at;
    if (length >= 2) {
        sum += *(const half *)(const void *)at;
        at += 2;
        length -= 2;
    }
    if (length > 0) {
        half last = 0;
        memcpy(&last, at, 1);
        sum += last;
    }
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    uint16_t folded = in_fold((uint32_t)sum);
    return odd ? (uint16_t)(folded << 8 | folded >> 8) : folded;
}

uint16_t in_pseudo(uint32_t source, uint32_t destination, uint8_t protocol, uint16_t length) {
    uint32_t sum = (source & 0xffff) + (source >> 16) + (destination & 0xffff) + (destination >> 16);
    return in_fold(sum + htons(protocol) + htons(length));
}
