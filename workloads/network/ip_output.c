/* Packets of IP that are sent: the header, the route, fragments. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "checksum.h"
#include "ether.h"
#include "ip.h"
#include "network.h"

static uint16_t next_identification;

void ip_complete_checksum(struct mbuf *m) {
    uint16_t sum;
    if (!(m->m_pkthdr.csum_flags & CSUM_TRANSPORT)) return;
    char *field = m->m_data + m->m_pkthdr.csum_offset;
    sum = ~m_sum(m, 0, m->m_pkthdr.len);
    /* UDP has no sum of 0: that says that there is none. */
    if (sum == 0) sum = 0xffff;
    memcpy(field, &sum, sizeof sum);
    m->m_pkthdr.csum_flags &= ~CSUM_TRANSPORT;
}

static int send_on(struct ifnet *ifp, struct mbuf *m, uint32_t next) {
    statistics.ip_sent++;
    if (ifp->if_is_ethernet) return ether_output(ifp, m, next);
    ifp->if_opackets++;
    ifp->if_obytes += m->m_pkthdr.len;
    return ifp->if_start(ifp, m);
}

/* Puts a header in front of data. */
static struct mbuf *add_header(struct mbuf *m, const struct ip_destination *to, uint16_t identification, uint16_t offset) {
    m = m_prepend(m, IP_HEADER);
    if (!m) return NULL;
    struct ip *ip = mtod(m, struct ip *);
    *ip = (struct ip){.ip_vhl = 0x45,
                      .ip_tos = to->tos,
                      .ip_len = htons(m->m_pkthdr.len),
                      .ip_id = htons(identification),
                      .ip_off = htons(offset),
                      .ip_ttl = to->ttl ? to->ttl : IP_DEFAULT_TTL,
                      .ip_p = to->protocol,
                      .ip_src = to->source,
                      .ip_dst = to->destination};
    ip->ip_sum = ~in_sum(ip, IP_HEADER);
    return m;
}

/* Whether a driver takes the packet where it lies; if not, its data are moved to the host's memory. */
static struct mbuf *acceptable(struct ifnet *ifp, struct mbuf *m) {
    bool is_adapters = false;
    for (const struct mbuf *one = m; one && !is_adapters; one = one->m_next) is_adapters = one->m_flags & M_UIOMOVE;
    if (!is_adapters || (ifp->if_pktok && ifp->if_pktok(ifp, m))) return m;
    return m_relocate(m);
}

/* Sends data in fragments. */
static int send_fragments(struct ifnet *ifp, struct mbuf *m, const struct ip_destination *to, uint32_t next) {
    int room = (ifp->if_mtu - IP_HEADER) & ~7, total = m->m_pkthdr.len, error = 0;
    uint16_t identification = ++next_identification;
    statistics.ip_fragmented++;
    for (int at = 0; at < total && !error; at += room) {
        int part = MINIMUM(room, total - at);
        struct mbuf *fragment = m_copym(m, at, part);
        uint16_t more = at + part < total ? IP_MF : 0;
        if (fragment) fragment = acceptable(ifp, fragment);
        /* The copy may share a cluster: its header is in an mbuf of its own. */
        if (fragment) fragment = add_header(fragment, to, identification, at / 8 | more);
        error = fragment ? send_on(ifp, fragment, next) : ENOBUFS;
    }
    m_freem(m);
    return error;
}

int ip_output(struct mbuf *m, const struct ip_destination *to) {
    uint32_t next;
    struct ifnet *ifp = route_lookup(to->destination, &next);
    if (!ifp) {
        statistics.ip_no_route++;
        m_freem(m);
        return EHOSTUNREACH;
    }
    bool is_large = m->m_pkthdr.len + IP_HEADER > ifp->if_mtu;
    bool is_cut_by_adapter = m->m_pkthdr.csum_flags & CSUM_TSO && ifp->if_capabilities & IFCAP_TSO;
    if (is_large && !is_cut_by_adapter && to->is_unfragmented) {
        m_freem(m);
        return EMSGSIZE;
    }
    if ((is_large && !is_cut_by_adapter) || !(ifp->if_capabilities & IFCAP_TXCSUM)) ip_complete_checksum(m);
    if (is_large && !is_cut_by_adapter) return send_fragments(ifp, m, to, next);
    m = acceptable(ifp, m);
    if (!m) return ENOBUFS;
    uint16_t identification = to->is_unfragmented ? 0 : ++next_identification;
    m = add_header(m, to, identification, to->is_unfragmented ? IP_DF : 0);
    return m ? send_on(ifp, m, next) : ENOBUFS;
}
