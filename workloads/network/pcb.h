/* Protocol control blocks: who talks to whom. Addresses and ports are in the network's byte order. */
#ifndef NETWORK_PCB_H
#define NETWORK_PCB_H

#include <netinet/in.h>
#include <stdint.h>

struct socket;

#define PCB_BUCKETS 512

struct inpcb {
    struct inpcb *inp_next; /* In its bucket. */
    uint32_t inp_laddr, inp_faddr;
    uint16_t inp_lport, inp_fport;
    struct socket *inp_socket; /* NULL once the application's socket is gone. */
    void *inp_ppcb;            /* TCP's control block. */
};

/* The control blocks of a protocol: those with a peer by a hash of addresses and ports, the others in bucket PCB_BUCKETS. */
struct inpcbs {
    struct inpcb *buckets[PCB_BUCKETS + 1];
    uint16_t last_port;
};

/* A new control block; NULL without memory. */
struct inpcb *in_pcballoc(struct inpcbs *all, struct socket *so);

/* Gives it a local address and port; port 0: any. 0 or an errno value. */
int in_pcbbind(struct inpcbs *all, struct inpcb *inp, const struct sockaddr_in *address);

/* Gives it a peer, and a local address and port if it has none. 0 or an errno value. */
int in_pcbconnect(struct inpcbs *all, struct inpcb *inp, uint32_t address, uint16_t port);

/* Frees it. */
void in_pcbfree(struct inpcbs *all, struct inpcb *inp);

/* The control block for a packet from a peer to a local address: the connected one, or else one that is bound to the port. */
struct inpcb *in_pcblookup(struct inpcbs *all, uint32_t faddr, uint16_t fport, uint32_t laddr, uint16_t lport);

/* The peer's address. */
void in_peer(const struct inpcb *inp, struct sockaddr_in *address);

/* Calls a function for each control block, which it may free. */
void in_pcbeach(struct inpcbs *all, void (*visit)(struct inpcb *inp));

#endif
