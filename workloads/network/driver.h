/* Drivers, and the faults that are injected between them and the protocols. */
#ifndef NETWORK_DRIVER_H
#define NETWORK_DRIVER_H

#include "ifnet.h"

/* Injected faults of frames, in both directions: probabilities in millionths. Faults are a function of the seed and of the frames' number. */
struct impairment_parameters {
    unsigned loss, duplication, reordering, corruption;
    unsigned delay_ms, jitter_ms; /* Each frame is late by delay_ms, and by up to jitter_ms more. */
    unsigned seed;
};

/* Injects faults. Corruption leaves alone frames whose checksum the adapter computes, and all but IP's. */
void impair(struct ifnet *ifp, const struct impairment_parameters *wanted);

/* Gives up the faults, and the frames that are under way. */
void impair_end(struct ifnet *ifp);

/* Sends and receives the frames whose time has come; returns how many. */
int impair_poll(struct ifnet *ifp);

/* Milliseconds until a frame's time comes; -1: there is none. */
int impair_timeout(const struct ifnet *ifp);

/* Gives a frame to the driver, through the faults. */
int driver_output(struct ifnet *ifp, struct mbuf *m);

/* Gives a received frame to Ethernet, through the faults. */
void driver_input(struct ifnet *ifp, struct mbuf *m);

/* An interface to ourselves, 127.0.0.1: packets are received in the next turn of network_poll(). */
void loopback_attach(struct ifnet *ifp);

/* Properties of a TAP device. */
struct tap_options {
    const char *name;            /* At most 15 bytes. */
    bool has_checksum, has_tso;  /* The other side completes checksums, and cuts and joins segments (IFF_VNET_HDR). */
    uint32_t address, netmask;   /* Of the stack, in the network's byte order. */
    int mtu;                     /* 0: 1500. */
};

/* Opens a TAP device and attaches an interface to it. 0 or an errno value. */
int tap_attach(struct ifnet *ifp, const struct tap_options *options);

/* As tap_attach(), on a descriptor that is open and has a header of virtio's if `options` asks for offloading. */
int tap_attach_descriptor(struct ifnet *ifp, const struct tap_options *options, int descriptor);

/* Closes the device. */
void tap_detach(struct ifnet *ifp);

/* Moves this process to a network namespace of its own, which ends with its last process; with a user namespace if that needs one.
 * 0 or an errno value. */
int namespace_enter(void);

/* Gives the host's side of a TAP device an address and brings it up. 0 or an errno value. */
int namespace_configure(const char *name, uint32_t address, uint32_t netmask, int mtu);

#endif
