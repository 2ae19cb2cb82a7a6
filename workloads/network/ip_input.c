/* Received packets of IP: checks, reassembly, and the transport protocols. */
#include <arpa/inet.h>

#include "checksum.h"
#include "ip.h"
#include "network.h"
#include "tcp.h"
#include "udp.h"

/* Checks the header, of which the first 20 bytes are contiguous, and cuts what follows the packet. The packet, with the whole header
 * contiguous; NULL if it was dropped. */
static struct mbuf *check_header(struct mbuf *m) {
    const struct ip *ip = mtod(m, struct ip *);
    int header = ip_header_length(ip);
    int length = ntohs(ip->ip_len);
    if (ip->ip_vhl >> 4 != 4 || header < IP_HEADER || length < header || length > m->m_pkthdr.len) {
        statistics.ip_bad_header++;
        m_freem(m);
        return NULL;
    }
    m = m_pullup(m, header);
    if (!m) return NULL;
    if (in_sum(m->m_data, header) != 0xffff) {
        statistics.ip_bad_checksum++;
        m_freem(m);
        return NULL;
    }
    if (m->m_pkthdr.len > length) m_adj(m, length - m->m_pkthdr.len);
    return m;
}

static void deliver(struct mbuf *m) {
    const struct ip *ip = mtod(m, struct ip *);
    int header = ip_header_length(ip);
    switch (ip->ip_p) {
        case PROTOCOL_TCP: tcp_input(m, header); break;
        case PROTOCOL_UDP: udp_input(m, header); break;
        case PROTOCOL_ICMP: icmp_input(m, header); break;
        default: icmp_error(m, ICMP_UNREACHABLE, ICMP_UNREACHABLE_PROTOCOL);
    }
}

void ip_input(struct mbuf *m) {
    statistics.ip_received++;
    if (m->m_pkthdr.len < IP_HEADER) {
        statistics.ip_bad_header++;
        m_freem(m);
        return;
    }
    m = m_pullup(m, IP_HEADER);
    if (m) m = check_header(m);
    if (!m) return;
    const struct ip *ip = mtod(m, struct ip *);
    uint32_t source = ntohl(ip->ip_src);
    if (!if_is_ours(m->m_pkthdr.rcvif, ip->ip_dst) || source >> 28 == 14 || source == INADDR_BROADCAST) {
        statistics.ip_not_ours++;
        m_freem(m);
        return;
    }
    if (ntohs(ip->ip_off) & (IP_MF | IP_OFFSET)) {
        statistics.ip_fragments_received++;
        m = ip_reassemble(m);
        if (!m) return;
    }
    deliver(m);
}
