/* Segments as scenarios write them, and as packets. */
#ifndef NETWORK_SCENARIO_PACKET_H
#define NETWORK_SCENARIO_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp.h"

/* The fields of a segment, in a scenario or in a packet. Numbers are relative to the initial sequence numbers. */
struct spoken_segment {
    uint8_t flags;
    uint32_t seq, ack;
    int length;
    bool has_window, has_ecr;
    unsigned window;
    struct tcp_options options;
    bool is_damaged; /* Its checksum is wrong. */
};

/* Reads "FLAGS SEQ [ack N] [len N] [win N] [mss N] [scale N] [ts VALUE ECHO] [damaged]"; fails the scenario if it is none. */
void packet_parse(const char *text, struct spoken_segment *segment);

/* Makes a packet from the peer; returns its length. */
int packet_build(const struct spoken_segment *segment, uint32_t peer_iss, uint32_t subject_iss, unsigned char *packet);

/* Reads a packet of the subject and checks its form, sums and data; fails the scenario if something is wrong with it. */
void packet_read(const unsigned char *packet, int length, uint32_t peer_iss, uint32_t *subject_iss, struct spoken_segment *segment);

/* Writes a segment as a scenario would. */
void packet_print(const struct spoken_segment *segment, char *text, int size);

#endif
