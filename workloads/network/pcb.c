#include "pcb.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "ifnet.h"
#include "network.h"

#define FIRST_PORT 49152 /* Of those that are chosen (RFC 6335). */

static unsigned bucket_of(uint32_t faddr, uint16_t fport, uint32_t laddr, uint16_t lport) {
    if (!faddr) return PCB_BUCKETS;
    uint32_t hash = faddr ^ laddr ^ ((uint32_t)fport << 16 | lport);
    hash *= 0x9e3779b1u;
    return hash >> 16 & (PCB_BUCKETS - 1);
}

static void insert(struct inpcbs *all, struct inpcb *inp) {
    unsigned bucket = bucket_of(inp->inp_faddr, inp->inp_fport, inp->inp_laddr, inp->inp_lport);
    inp->inp_next = all->buckets[bucket];
    all->buckets[bucket] = inp;
}

static void take_out(struct inpcbs *all, struct inpcb *inp) {
    unsigned bucket = bucket_of(inp->inp_faddr, inp->inp_fport, inp->inp_laddr, inp->inp_lport);
    struct inpcb **link = &all->buckets[bucket];
    while (*link != inp) link = &(*link)->inp_next;
    *link = inp->inp_next;
}

struct inpcb *in_pcballoc(struct inpcbs *all, struct socket *so) {
    struct inpcb *inp = calloc(1, sizeof *inp);
    if (!inp) return NULL;
    inp->inp_socket = so;
    insert(all, inp);
    return inp;
}

void in_pcbfree(struct inpcbs *all, struct inpcb *inp) {
    take_out(all, inp);
    free(inp);
}

/* Whether another block without a peer has the port. */
static bool is_taken(const struct inpcbs *all, uint32_t address, uint16_t port) {
    for (const struct inpcb *one = all->buckets[PCB_BUCKETS]; one; one = one->inp_next)
        if (one->inp_lport == port && (!one->inp_laddr || !address || one->inp_laddr == address)) return true;
    return false;
}

/* Whether any block has the port. */
static bool is_used(const struct inpcbs *all, uint16_t port) {
    for (unsigned bucket = 0; bucket <= PCB_BUCKETS; bucket++)
        for (const struct inpcb *one = all->buckets[bucket]; one; one = one->inp_next)
            if (one->inp_lport == port) return true;
    return false;
}

/* A port that nobody uses, in the network's byte order; 0 if there is none. */
static uint16_t choose_port(struct inpcbs *all) {
    if (!all->last_port) all->last_port = FIRST_PORT + network_random() % (65536 - FIRST_PORT);
    for (unsigned tried = 0; tried < 65536 - FIRST_PORT; tried++) {
        all->last_port = all->last_port == 65535 ? FIRST_PORT : all->last_port + 1;
        if (!is_used(all, htons(all->last_port))) return htons(all->last_port);
    }
    return 0;
}

int in_pcbbind(struct inpcbs *all, struct inpcb *inp, const struct sockaddr_in *address) {
    uint32_t local = address->sin_addr.s_addr;
    if (inp->inp_lport) return EINVAL;
    if (address->sin_family != AF_INET) return EAFNOSUPPORT;
    bool is_ours = local == INADDR_ANY;
    for (const struct ifnet *ifp = ifnet_list; ifp && !is_ours; ifp = ifp->if_next) is_ours = ifp->if_address == local;
    if (!is_ours) return EADDRNOTAVAIL;
    uint16_t port = address->sin_port ? address->sin_port : choose_port(all);
    if (!port || is_taken(all, local, port)) return EADDRINUSE;
    inp->inp_laddr = local;
    inp->inp_lport = port;
    return 0;
}

int in_pcbconnect(struct inpcbs *all, struct inpcb *inp, uint32_t address, uint16_t port) {
    uint32_t next, local = inp->inp_laddr;
    if (!address || !port) return EADDRNOTAVAIL;
    const struct ifnet *ifp = route_lookup(address, &next);
    if (!ifp) return EHOSTUNREACH;
    if (!local) local = ifp->if_address;
    uint16_t local_port = inp->inp_lport ? inp->inp_lport : choose_port(all);
    const struct inpcb *same = in_pcblookup(all, address, port, local, local_port);
    if (!local_port || (same && same->inp_faddr)) return EADDRINUSE;
    take_out(all, inp);
    inp->inp_laddr = local;
    inp->inp_lport = local_port;
    inp->inp_faddr = address;
    inp->inp_fport = port;
    insert(all, inp);
    return 0;
}

struct inpcb *in_pcblookup(struct inpcbs *all, uint32_t faddr, uint16_t fport, uint32_t laddr, uint16_t lport) {
    struct inpcb *inp = all->buckets[bucket_of(faddr, fport, laddr, lport)];
    for (; inp; inp = inp->inp_next)
        if (inp->inp_faddr == faddr && inp->inp_fport == fport && inp->inp_laddr == laddr && inp->inp_lport == lport) return inp;
    struct inpcb *any = NULL;
    for (inp = all->buckets[PCB_BUCKETS]; inp; inp = inp->inp_next) {
        if (inp->inp_lport != lport || !lport) continue;
        if (inp->inp_laddr == laddr) return inp;
        if (!inp->inp_laddr) any = inp;
    }
    return any;
}

void in_peer(const struct inpcb *inp, struct sockaddr_in *address) {
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = inp->inp_fport, .sin_addr = {inp->inp_faddr}};
}

void in_pcbeach(struct inpcbs *all, void (*visit)(struct inpcb *inp)) {
    for (unsigned bucket = 0; bucket <= PCB_BUCKETS; bucket++)
        for (struct inpcb *inp = all->buckets[bucket], *next; inp; inp = next) {
            next = inp->inp_next;
            visit(inp);
        }
}
