#include "ether.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "driver.h"
#include "ip.h"
#include "network.h"

void ether_input(struct ifnet *ifp, struct mbuf *m) {
    struct ether_header header;
    ifp->if_ipackets++;
    ifp->if_ibytes += m->m_pkthdr.len;
    if (m->m_len < ETHER_HEADER) {
        m_freem(m);
        return;
    }
    memcpy(&header, m->m_data, sizeof header);
    bool is_broadcast = header.ether_dhost[0] & 1;
    if (!is_broadcast && memcmp(header.ether_dhost, ifp->if_hardware, 6) != 0) {
        m_freem(m);
        return;
    }
    if (is_broadcast) m->m_flags |= M_BROADCAST;
    m->m_pkthdr.rcvif = ifp;
    m->m_data += ETHER_HEADER;
    m->m_len -= ETHER_HEADER;
    m->m_pkthdr.len -= ETHER_HEADER;
    if (header.ether_type == htons(ETHERTYPE_IP)) ip_input(m);
    else if (header.ether_type == htons(ETHERTYPE_ARP)) arp_input(ifp, m);
    else m_freem(m);
}

int ether_send(struct ifnet *ifp, struct mbuf *m, const unsigned char *to, uint16_t type) {
    struct ether_header header = {.ether_type = htons(type)};
    memcpy(header.ether_dhost, to, 6);
    memcpy(header.ether_shost, ifp->if_hardware, 6);
    m = m_prepend(m, ETHER_HEADER);
    if (!m) return ENOBUFS;
    memcpy(m->m_data, &header, sizeof header);
    ifp->if_opackets++;
    ifp->if_obytes += m->m_pkthdr.len;
    int error = driver_output(ifp, m);
    if (error) ifp->if_oerrors++;
    return error;
}

int ether_output(struct ifnet *ifp, struct mbuf *m, uint32_t next) {
    static const unsigned char everybody[6] = {255, 255, 255, 255, 255, 255};
    if (if_is_broadcast(ifp, next)) return ether_send(ifp, m, everybody, ETHERTYPE_IP);
    return arp_resolve(ifp, m, next);
}
