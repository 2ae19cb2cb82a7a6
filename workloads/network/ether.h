/* Ethernet and ARP (RFC 826). */
#ifndef NETWORK_ETHER_H
#define NETWORK_ETHER_H

#include "ifnet.h"

#define ETHERTYPE_IP 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHER_HEADER 14
#define ARP_ENTRIES 64       /* Neighbours that are remembered. */
#define ARP_HOLD 4           /* Packets that wait for a neighbour's address. */
#define ARP_LIFETIME 1200000 /* Milliseconds for which an address is believed. */
#define ARP_ATTEMPTS 5       /* Requests, one a second, before a neighbour is unreachable. */

struct ether_header {
    unsigned char ether_dhost[6], ether_shost[6];
    uint16_t ether_type;
};

/* Takes a received frame, which begins with its Ethernet header. */
void ether_input(struct ifnet *ifp, struct mbuf *m);

/* Sends a packet of IP to a neighbour. 0 or an errno value. */
int ether_output(struct ifnet *ifp, struct mbuf *m, uint32_t next);

/* Prepends an Ethernet header and gives the frame to the driver. */
int ether_send(struct ifnet *ifp, struct mbuf *m, const unsigned char *to, uint16_t type);

/* Takes a received ARP packet. */
void arp_input(struct ifnet *ifp, struct mbuf *m);

/* Sends a packet to a neighbour, now or when its hardware address is known. */
int arp_resolve(struct ifnet *ifp, struct mbuf *m, uint32_t next);

/* Repeats requests and forgets old entries: once a second. */
void arp_timer(void);

/* Forgets all neighbours. */
void arp_flush(void);

#endif
