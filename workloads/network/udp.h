/* The User Datagram Protocol (RFC 768). */
#ifndef NETWORK_UDP_H
#define NETWORK_UDP_H

#include "ip.h"
#include "pcb.h"
#include "socket.h"

#define UDP_HEADER 8

/* Functions that sockets call. */
extern const struct protosw udp_protocol;

/* Takes a received packet with an IP header of `header` bytes. */
void udp_input(struct mbuf *m, int header);

/* An ICMP error about a datagram of ours: its IP header, and the first 8 bytes behind it. */
void udp_unreachable(const struct ip *ip, const unsigned char *transport, int error);

/* Frees all control blocks and their sockets. */
void udp_shutdown(void);

#endif
