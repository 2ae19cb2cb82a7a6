#include "udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "checksum.h"
#include "network.h"

struct udp_header {
    uint16_t source, destination, length, checksum;
};

static struct inpcbs blocks;

static int udp_attach(struct socket *so) {
    so->so_pcb = in_pcballoc(&blocks, so);
    return so->so_pcb ? 0 : ENOBUFS;
}

static int udp_bind(struct socket *so, const struct sockaddr_in *address) {
    return in_pcbbind(&blocks, so->so_pcb, address);
}

static int udp_connect(struct socket *so, const struct sockaddr_in *address) {
    uint32_t next;
    int error = so->so_pcb->inp_faddr ? EISCONN : in_pcbconnect(&blocks, so->so_pcb, address->sin_addr.s_addr, address->sin_port);
    if (error) return error;
    struct ifnet *ifp = route_lookup(address->sin_addr.s_addr, &next);
    if (ifp->if_sockbuf && !parameters.no_dart) ifp->if_sockbuf(ifp, so);
    soisconnected(so);
    return 0;
}

static void udp_detach(struct socket *so) {
    in_pcbfree(&blocks, so->so_pcb);
    sofree(so);
}

static void udp_received(struct socket *so) {
    (void)so;
}

/* Fragments: the first has UDP's header, too. */
static int udp_segment(struct socket *so, const struct ifnet *ifp, int at, int total) {
    int room = (ifp->if_mtu - IP_HEADER) & ~7;
    (void)so;
    return total + UDP_HEADER <= ifp->if_mtu - IP_HEADER ? total : at == 0 ? room - UDP_HEADER : room;
}

static int udp_send(struct socket *so, struct mbuf *m, const struct sockaddr_in *to) {
    struct inpcb *inp = so->so_pcb;
    uint32_t address = to ? to->sin_addr.s_addr : inp->inp_faddr, next;
    uint16_t port = to ? to->sin_port : inp->inp_fport;
    struct ifnet *ifp = route_lookup(address, &next);
    int error = !ifp                                                                          ? EHOSTUNREACH
                : if_is_broadcast(ifp, address) && !(so->so_options & SOPT_BROADCAST)         ? EACCES
                : inp->inp_lport                                                              ? 0
                                                                                              : -1;
    if (error == -1) error = in_pcbbind(&blocks, inp, &(struct sockaddr_in){.sin_family = AF_INET});
    if (error || !(m = m_prepend(m, UDP_HEADER))) {
        if (error) m_freem(m);
        return error ? error : ENOBUFS;
    }
    uint32_t source = inp->inp_laddr ? inp->inp_laddr : ifp->if_address;
    struct udp_header header = {inp->inp_lport, port, htons(m->m_pkthdr.len), 0};
    header.checksum = in_pseudo(source, address, PROTOCOL_UDP, m->m_pkthdr.len);
    memcpy(m->m_data, &header, sizeof header);
    m->m_pkthdr.csum_flags = CSUM_TRANSPORT;
    m->m_pkthdr.csum_offset = offsetof(struct udp_header, checksum);
    statistics.udp_sent++;
    return ip_output(m, &(struct ip_destination){.source = source, .destination = address, .protocol = PROTOCOL_UDP});
}

const struct protosw udp_protocol = {
    .pr_type = SOCK_DGRAM,
    .pr_attach = udp_attach,
    .pr_bind = udp_bind,
    .pr_connect = udp_connect,
    .pr_detach = udp_detach,
    .pr_abort = udp_detach,
    .pr_send = udp_send,
    .pr_received = udp_received,
    .pr_segment = udp_segment,
};

/* Whether the checksum of a datagram, without its IP header, is right. */
static bool is_right(const struct mbuf *m, const struct ip *ip, const struct udp_header *header) {
    if (header->checksum == 0 || m->m_pkthdr.csum_flags & CSUM_VALID) return true;
    if (m->m_flags & M_PROTOCOL_SUM) {
        statistics.hardware_sums++;
        bool equal = header->checksum == m->m_pkthdr.protocolSum;
        if (!equal) statistics.hardware_sums_bad++;
        return equal;
    }
    uint32_t sum = in_pseudo(ip->ip_src, ip->ip_dst, PROTOCOL_UDP, m->m_pkthdr.len);
    return in_fold(sum + m_sum(m, 0, m->m_pkthdr.len)) == 0xffff;
}

/* Puts a datagram, without its headers, into a socket. */
static void append(struct socket *so, struct mbuf *m, uint32_t address, uint16_t port) {
    struct mbuf *name = m_get();
    if (!name || sbspace(&so->so_rcv) < (unsigned)m->m_pkthdr.len + sizeof(struct sockaddr_in)) {
        statistics.udp_full++;
        if (name) m_free(name);
        m_freem(m);
        return;
    }
    *mtod(name, struct sockaddr_in *) =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port, .sin_addr = {address}};
    name->m_len = sizeof(struct sockaddr_in);
    name->m_flags |= M_NAME;
    name->m_next = m;
    sbappend_record(&so->so_rcv, name);
}

void udp_input(struct mbuf *m, int header) {
    struct ip ip = *mtod(m, struct ip *);
    struct udp_header udp;
    int length = m->m_pkthdr.len - header;
    statistics.udp_received++;
    if (length >= UDP_HEADER) m_copydata(m, header, sizeof udp, &udp);
    if (length < UDP_HEADER || ntohs(udp.length) < UDP_HEADER || ntohs(udp.length) > length) {
        statistics.udp_bad++;
        m_freem(m);
        return;
    }
    struct inpcb *inp = in_pcblookup(&blocks, ip.ip_src, udp.source, ip.ip_dst, udp.destination);
    bool is_wide = m->m_flags & M_BROADCAST;
    if (!inp && !is_wide) {
        statistics.udp_no_port++;
        icmp_error(m, ICMP_UNREACHABLE, ICMP_UNREACHABLE_PORT);
        return;
    }
    m_adj(m, header);
    if (ntohs(udp.length) < length) m_adj(m, ntohs(udp.length) - length);
    if (!inp || !is_right(m, &ip, &udp)) {
        statistics.udp_bad += inp != NULL;
        m_freem(m);
        return;
    }
    m_adj(m, UDP_HEADER);
    append(inp->inp_socket, m, ip.ip_src, udp.source);
}

void udp_unreachable(const struct ip *ip, const unsigned char *transport, int error) {
    uint16_t ports[2];
    memcpy(ports, transport, sizeof ports);
    struct inpcb *inp = in_pcblookup(&blocks, ip->ip_dst, ports[1], ip->ip_src, ports[0]);
    if (inp && inp->inp_faddr) inp->inp_socket->so_error = error;
}

static void free_block(struct inpcb *inp) {
    udp_detach(inp->inp_socket);
}

void udp_shutdown(void) {
    in_pcbeach(&blocks, free_block);
    memset(&blocks, 0, sizeof blocks);
}
