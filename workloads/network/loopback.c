#include <arpa/inet.h>
#include <string.h>

#include "driver.h"
#include "ip.h"
#include "network.h"

#define LOOPBACK_MTU 16384

/* Packets that will be received, by m_nextpkt. */
static struct mbuf *first, *last;

static int loopback_start(struct ifnet *ifp, struct mbuf *m) {
    m->m_pkthdr.rcvif = ifp;
    /* Nothing happens to the data on the way. */
    if (m->m_pkthdr.csum_flags & CSUM_TRANSPORT) m->m_pkthdr.csum_flags = CSUM_VALID;
    m->m_nextpkt = NULL;
    if (first) last->m_nextpkt = m;
    else first = m;
    last = m;
    return 0;
}

static int loopback_poll(struct ifnet *ifp) {
    int packets = 0;
    /* Packets that the answers add are for the next turn. */
    struct mbuf *m = first;
    first = last = NULL;
    while (m) {
        struct mbuf *next = m->m_nextpkt;
        m->m_nextpkt = NULL;
        ifp->if_ipackets++;
        ifp->if_ibytes += m->m_pkthdr.len;
        ip_input(m);
        m = next;
        packets++;
    }
    return packets;
}

static int loopback_timeout(struct ifnet *ifp) {
    (void)ifp;
    return first ? 0 : -1;
}

void loopback_attach(struct ifnet *ifp) {
    while (first) {
        struct mbuf *next = first->m_nextpkt;
        m_freem(first);
        first = next;
    }
    *ifp = (struct ifnet){.if_name = "lo",
                          .if_address = htonl(INADDR_LOOPBACK),
                          .if_netmask = htonl(0xff000000),
                          .if_mtu = LOOPBACK_MTU,
                          .if_fd = -1,
                          .if_start = loopback_start,
                          .if_poll = loopback_poll,
                          .if_timeout = loopback_timeout};
    if_attach(ifp);
}
