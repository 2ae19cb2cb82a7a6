/* The Internet's checksum (RFC 1071): one's complement sums of 16-bit words, in the byte order of memory. */
#ifndef NETWORK_CHECKSUM_H
#define NETWORK_CHECKSUM_H

#include <stdint.h>

/* Sum of `length` bytes, folded to 16 bits and not inverted. */
uint16_t in_sum(const void *data, int length);

/* Folds a sum of 16-bit sums. */
static inline uint16_t in_fold(uint32_t sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)(sum + (sum >> 16));
}

/* Sum of the pseudo-header of TCP and UDP; addresses in the network's byte order, length in the host's. */
uint16_t in_pseudo(uint32_t source, uint32_t destination, uint8_t protocol, uint16_t length);

#endif
