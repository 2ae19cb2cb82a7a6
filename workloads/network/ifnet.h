/* Interfaces: what protocols and drivers know of each other. */
#ifndef NETWORK_IFNET_H
#define NETWORK_IFNET_H

#include <stdbool.h>
#include <stdint.h>

#include "mbuf.h"

struct impairment;
struct socket;

/* if_capabilities */
#define IFCAP_TXCSUM 0x1 /* Completes checksums of TCP and UDP. */
#define IFCAP_TSO 0x2    /* Cuts segments. */

/* An interface. A driver fills it in and gives it to if_attach(). Addresses are in the network's byte order. */
struct ifnet {
    struct ifnet *if_next;
    char if_name[16];
    uint32_t if_address, if_netmask;
    unsigned char if_hardware[6];
    int if_mtu;
    unsigned if_capabilities;
    bool if_is_ethernet; /* Frames have Ethernet headers, and neighbours are found by ARP. */
    int if_fd;           /* What network_poll() waits for; -1 if there is none. */
    void *if_softc;      /* The driver's own. */
    struct impairment *if_impairment; /* Faults that are injected; NULL: none. */
    uint64_t if_ipackets, if_opackets, if_ibytes, if_obytes, if_oerrors;

    /* Sends a complete frame, which it frees. 0 or an errno value. */
    int (*if_start)(struct ifnet *ifp, struct mbuf *m);
    /* Receives what is there, by ether_input() or ip_input(); returns the number of packets. */
    int (*if_poll)(struct ifnet *ifp);
    /* Milliseconds until if_poll() has something to do without its descriptor; -1 if never. Optional. */
    int (*if_timeout)(struct ifnet *ifp);

    /* DART's entries, optional. */
    /* Moves data of a caller into an adapter's buffer, as m_ext.uiomove_f. */
    int (*if_uiomove)(struct mbuf *m, int offset, int length, struct uio *uio);
    /* Gives an empty mbuf an adapter's buffer of at most `wanted` bytes, and returns its size; 0 if the driver declines. */
    int (*if_xmtbufalloc)(struct ifnet *ifp, struct mbuf *m, int wanted);
    /* Bytes of data for which one buffer is best; 0: no preference. */
    int if_bufrlen;
    /* Adjusts the buffers of a socket that is bound to the interface. */
    void (*if_sockbuf)(struct ifnet *ifp, struct socket *so);
    /* Whether the driver can send the packet as it is; if not, it must be relocated. */
    bool (*if_pktok)(struct ifnet *ifp, const struct mbuf *m);
};

/* All interfaces. */
extern struct ifnet *ifnet_list;

/* Adds an interface. */
void if_attach(struct ifnet *ifp);

/* Sets the gateway for other networks; 0: none. */
void route_default(uint32_t gateway);

/* The interface for a destination, and in `*next` the neighbour to send to; NULL if there is none. */
struct ifnet *route_lookup(uint32_t destination, uint32_t *next);

/* Whether an address is one of ours, or a broadcast to us. */
bool if_is_ours(const struct ifnet *ifp, uint32_t address);

/* Whether an address is a broadcast on an interface. */
bool if_is_broadcast(const struct ifnet *ifp, uint32_t address);

#endif
