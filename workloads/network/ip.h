/* The Internet Protocol, version 4 (RFC 791), and ICMP (RFC 792). */
#ifndef NETWORK_IP_H
#define NETWORK_IP_H

#include "ifnet.h"

#define IP_HEADER 20
#define IP_DEFAULT_TTL 64
#define IP_DF 0x4000
#define IP_MF 0x2000
#define IP_OFFSET 0x1fff
#define PROTOCOL_ICMP 1
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define REASSEMBLIES 16           /* Datagrams that are reassembled at a time. */
#define REASSEMBLY_LIFETIME 30000 /* Milliseconds for which fragments wait for the others. */

/* A header, in the network's byte order. */
struct ip {
    uint8_t ip_vhl, ip_tos; /* Version and length of the header in words; type of service. */
    uint16_t ip_len, ip_id, ip_off;
    uint8_t ip_ttl, ip_p;
    uint16_t ip_sum;
    uint32_t ip_src, ip_dst;
};

/* ICMP types and codes. */
#define ICMP_ECHOREPLY 0
#define ICMP_UNREACHABLE 3
#define ICMP_UNREACHABLE_PROTOCOL 2
#define ICMP_UNREACHABLE_PORT 3
#define ICMP_UNREACHABLE_NEEDFRAG 4
#define ICMP_ECHO 8
#define ICMP_TIME_EXCEEDED 11

/* Bytes of a packet's IP header. */
static inline int ip_header_length(const struct ip *ip) {
    return (ip->ip_vhl & 15) * 4;
}

/* Takes a received packet, which begins with its IP header. */
void ip_input(struct mbuf *m);

/* The route of a packet. */
struct ip_destination {
    uint32_t source, destination;
    uint8_t protocol, tos, ttl;
    bool is_unfragmented; /* Set the flag "don't fragment". */
};

/* Sends the data of a transport protocol, with an IP header in front, in fragments if they are too large. 0 or an errno value. */
int ip_output(struct mbuf *m, const struct ip_destination *to);

/* Computes the checksum of the transport layer that `m`, without an IP header, asks for (CSUM_TRANSPORT). */
void ip_complete_checksum(struct mbuf *m);

/* Takes a fragment. The whole packet, if it was the last missing; else NULL. */
struct mbuf *ip_reassemble(struct mbuf *m);

/* Forgets incomplete datagrams that are too old; all of them with `everything`. */
void ip_reassembly_timer(bool everything);

/* Takes a received ICMP packet with its IP header. */
void icmp_input(struct mbuf *m, int header);

/* Reports an error to the sender of a packet, which begins with its IP header, and frees it. */
void icmp_error(struct mbuf *m, uint8_t type, uint8_t code);

#endif
