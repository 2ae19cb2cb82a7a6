/* ICMP: answers echoes, reports errors, and passes on those that others report. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "checksum.h"
#include "ip.h"
#include "network.h"
#include "tcp.h"
#include "udp.h"

struct icmp {
    uint8_t type, code;
    uint16_t checksum;
    uint16_t unused, mtu; /* For an error; an echo has its identification and number here. */
};

#define ICMP_HEADER 8
#define QUOTED (IP_HEADER + 8) /* What an error has of the packet in question, at least. */

static void reply(struct mbuf *m, uint32_t source, uint32_t destination) {
    struct icmp *icmp = mtod(m, struct icmp *);
    icmp->checksum = 0;
    icmp->checksum = ~m_sum(m, 0, m->m_pkthdr.len);
    ip_output(m, &(struct ip_destination){.source = source, .destination = destination, .protocol = PROTOCOL_ICMP});
}

/* The error that a transport protocol is told. */
static int meaning(uint8_t type, uint8_t code) {
    if (type == ICMP_TIME_EXCEEDED) return EHOSTUNREACH;
    switch (code) {
        case ICMP_UNREACHABLE_PROTOCOL:
        case ICMP_UNREACHABLE_PORT: return ECONNREFUSED;
        case ICMP_UNREACHABLE_NEEDFRAG: return EMSGSIZE;
        default: return EHOSTUNREACH;
    }
}

/* Passes on an error; `m` begins with the ICMP header. */
static void report(struct mbuf *m, const struct icmp *icmp) {
    if (m->m_pkthdr.len < ICMP_HEADER + QUOTED) {
        statistics.icmp_bad++;
        return;
    }
    struct ip ip;
    unsigned char transport[8];
    m_copydata(m, ICMP_HEADER, sizeof ip, &ip);
    int header = ip_header_length(&ip);
    if (ip.ip_vhl >> 4 != 4 || header < IP_HEADER || m->m_pkthdr.len < ICMP_HEADER + header + 8) {
        statistics.icmp_bad++;
        return;
    }
    m_copydata(m, ICMP_HEADER + header, sizeof transport, transport);
    int error = meaning(icmp->type, icmp->code);
    if (ip.ip_p == PROTOCOL_TCP) tcp_unreachable(&ip, transport, error, ntohs(icmp->mtu));
    if (ip.ip_p == PROTOCOL_UDP) udp_unreachable(&ip, transport, error);
}

void icmp_input(struct mbuf *m, int header) {
    const struct ip *ip = mtod(m, struct ip *);
    uint32_t source = ip->ip_src, destination = ip->ip_dst;
    bool is_broadcast = m->m_flags & M_BROADCAST || if_is_broadcast(m->m_pkthdr.rcvif, destination);
    statistics.icmp_received++;
    m_adj(m, header);
    if (m->m_pkthdr.len < ICMP_HEADER || m_sum(m, 0, m->m_pkthdr.len) != 0xffff) {
        statistics.icmp_bad++;
        m_freem(m);
        return;
    }
    m = m_pullup(m, ICMP_HEADER);
    if (!m) return;
    struct icmp *icmp = mtod(m, struct icmp *);
    if (icmp->type == ICMP_ECHO && !is_broadcast) {
        struct ifnet *ifp = m->m_pkthdr.rcvif;
        statistics.icmp_echoed++;
        icmp->type = ICMP_ECHOREPLY;
        /* The data go back as they came, behind a header of their own. */
        m->m_pkthdr = (struct pkthdr){.len = m->m_pkthdr.len};
        reply(m, ifp->if_address, source);
        return;
    }
    if (icmp->type == ICMP_UNREACHABLE || icmp->type == ICMP_TIME_EXCEEDED) report(m, icmp);
    m_freem(m);
}

/* Whether a packet may be answered by an error: none about errors, fragments, or broadcasts (RFC 1122, 3.2.2). */
static bool may_be_reported(const struct mbuf *m, const struct ip *ip) {
    if (m->m_flags & M_BROADCAST || if_is_broadcast(m->m_pkthdr.rcvif, ip->ip_dst)) return false;
    if (ntohs(ip->ip_off) & IP_OFFSET) return false;
    return ip->ip_p != PROTOCOL_ICMP;
}

void icmp_error(struct mbuf *m, uint8_t type, uint8_t code) {
    const struct ip *ip = mtod(m, struct ip *);
    int quoted = MINIMUM(m->m_pkthdr.len, ip_header_length(ip) + 8);
    struct mbuf *error = may_be_reported(m, ip) ? m_gethdr() : NULL;
    if (error) {
        statistics.icmp_errors_sent++;
        struct icmp *icmp = mtod(error, struct icmp *);
        *icmp = (struct icmp){type, code, 0, 0, 0};
        m_copydata(m, 0, quoted, error->m_data + ICMP_HEADER);
        error->m_len = error->m_pkthdr.len = ICMP_HEADER + quoted;
        reply(error, m->m_pkthdr.rcvif->if_address, ip->ip_src);
    }
    m_freem(m);
}
