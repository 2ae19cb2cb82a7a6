#include "scenario_packet.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "pattern.h"
#include "scenario.h"

static const char LETTERS[] = "FSRPAU";

static uint8_t parse_flags(const char *text) {
    uint8_t flags = 0;
    for (; *text; text++) {
        const char *letter = strchr(LETTERS, *text);
        if (!letter) scenario_fail("%c is no flag", *text);
        flags |= 1 << (letter - LETTERS);
    }
    return flags;
}

/* The next word as a number. */
static uint32_t number(char **rest) {
    char *word = strtok_r(NULL, " ", rest), *end = NULL;
    long long value = word ? strtoll(word, &end, 10) : 0;
    if (!word || *end) scenario_fail("a number is missing at: %s", word ? word : "the end");
    return (uint32_t)value;
}

void packet_parse(const char *text, struct spoken_segment *segment) {
    char copy[256], *rest, *word;
    snprintf(copy, sizeof copy, "%s", text);
    memset(segment, 0, sizeof *segment);
    word = strtok_r(copy, " ", &rest);
    if (!word) scenario_fail("flags are missing");
    segment->flags = parse_flags(word);
    segment->seq = number(&rest);
    while ((word = strtok_r(NULL, " ", &rest))) {
        struct tcp_options *options = &segment->options;
        if (strcmp(word, "ack") == 0) segment->ack = number(&rest);
        else if (strcmp(word, "len") == 0) segment->length = (int)number(&rest);
        else if (strcmp(word, "win") == 0) segment->has_window = true, segment->window = number(&rest);
        else if (strcmp(word, "mss") == 0) options->has_mss = true, options->mss = number(&rest);
        else if (strcmp(word, "scale") == 0) options->has_scale = true, options->scale = number(&rest);
        else if (strcmp(word, "ts") == 0) options->has_timestamp = true, options->ts_val = number(&rest), options->ts_ecr = number(&rest);
        else if (strcmp(word, "damaged") == 0) segment->is_damaged = true;
        else scenario_fail("%s is nothing that a segment has", word);
    }
}

static unsigned char *store32(unsigned char *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
    return at + 4;
}

/* Options of a packet; returns where they end. */
static unsigned char *build_options(const struct tcp_options *options, unsigned char *at) {
    if (options->has_mss) {
        memcpy(at, (unsigned char[]){2, 4, options->mss >> 8, options->mss & 255}, 4);
        at += 4;
    }
    if (options->has_scale) {
        memcpy(at, (unsigned char[]){3, 3, options->scale, 1}, 4);
        at += 4;
    }
    if (options->has_timestamp) {
        memcpy(at, (unsigned char[]){1, 1, 8, 10}, 4);
        at = store32(store32(at + 4, options->ts_val), options->ts_ecr);
    }
    return at;
}

int packet_build(const struct spoken_segment *segment, uint32_t peer_iss, uint32_t subject_iss, unsigned char *packet) {
    unsigned char *tcp = packet + IP_HEADER, *data = build_options(&segment->options, tcp + TCP_HEADER);
    int header = (int)(data - tcp), length = IP_HEADER + header + segment->length;
    struct ip ip = {0x45, 0, htons(length), htons(1), 0, 64, PROTOCOL_TCP, 0, htonl(PEER_ADDRESS), htonl(SUBJECT_ADDRESS)};
    struct tcphdr th = {.th_sport = htons(PEER_PORT),
                        .th_dport = htons(SUBJECT_PORT),
                        .th_seq = htonl(peer_iss + segment->seq),
                        .th_ack = segment->flags & TH_ACK ? htonl(subject_iss + segment->ack) : 0,
                        .th_off = header / 4 << 4,
                        .th_flags = segment->flags,
                        .th_win = htons(segment->has_window ? segment->window : 65535)};
    /* The byte with the number iss + 1 is the first of the pattern. */
    pattern_fill((char *)data, segment->length, (uint32_t)(segment->seq - 1), PEER_SEED);
    ip.ip_sum = ~in_sum(&ip, IP_HEADER);
    memcpy(packet, &ip, IP_HEADER);
    memcpy(tcp, &th, TCP_HEADER);
    uint32_t sum = in_pseudo(ip.ip_src, ip.ip_dst, PROTOCOL_TCP, length - IP_HEADER);
    th.th_sum = ~in_fold(sum + in_sum(tcp, length - IP_HEADER));
    if (segment->is_damaged) th.th_sum ^= 1;
    memcpy(tcp, &th, TCP_HEADER);
    return length;
}

void packet_read(const unsigned char *packet, int length, uint32_t peer_iss, uint32_t *subject_iss, struct spoken_segment *segment) {
    struct ip ip;
    struct tcphdr th;
    memcpy(&ip, packet, IP_HEADER);
    memcpy(&th, packet + IP_HEADER, TCP_HEADER);
    int header = (th.th_off >> 4) * 4;
    if (in_sum(packet, IP_HEADER) != 0xffff || ntohs(ip.ip_len) != length || ip.ip_p != PROTOCOL_TCP) scenario_fail("a bad IP header was sent");
    uint32_t sum = in_pseudo(ip.ip_src, ip.ip_dst, PROTOCOL_TCP, length - IP_HEADER);
    if (in_fold(sum + in_sum(packet + IP_HEADER, length - IP_HEADER)) != 0xffff) scenario_fail("a bad checksum was sent");
    if (th.th_sport != htons(SUBJECT_PORT) || th.th_dport != htons(PEER_PORT)) scenario_fail("wrong ports were sent");
    if (th.th_flags & TH_SYN) *subject_iss = ntohl(th.th_seq);
    *segment = (struct spoken_segment){.flags = th.th_flags,
                                       .seq = ntohl(th.th_seq) - *subject_iss,
                                       .ack = th.th_flags & TH_ACK ? ntohl(th.th_ack) - peer_iss : 0,
                                       .length = length - IP_HEADER - header,
                                       .has_window = true,
                                       .window = ntohs(th.th_win)};
    tcp_parse_options(packet + IP_HEADER + TCP_HEADER, header - TCP_HEADER, &segment->options);
    const char *data = (const char *)packet + IP_HEADER + header;
    if (!pattern_is(data, segment->length, (uint32_t)(segment->seq - 1), SUBJECT_SEED)) scenario_fail("wrong bytes were sent");
}

void packet_print(const struct spoken_segment *segment, char *text, int size) {
    char flags[8] = "", options[80] = "";
    int count = 0;
    for (int i = 0; LETTERS[i]; i++)
        if (segment->flags & 1 << i) flags[count++] = LETTERS[i];
    const struct tcp_options *o = &segment->options;
    if (o->has_mss) snprintf(options + strlen(options), 20, " mss %u", o->mss);
    if (o->has_scale) snprintf(options + strlen(options), 20, " scale %u", o->scale);
    if (o->has_timestamp) snprintf(options + strlen(options), 40, " ts %u %u", o->ts_val, o->ts_ecr);
    snprintf(text, size, "%s %d ack %d len %d win %u%s", flags, (int)segment->seq, (int)segment->ack, segment->length, segment->window, options);
}
