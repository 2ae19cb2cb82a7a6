/* Received segments of TCP: checks, and the connection to which they belong. */
#include <arpa/inet.h>

#include "checksum.h"
#include "network.h"
#include "tcp.h"

/* Whether the checksum of a segment with its IP header is right. */
static bool is_right(const struct mbuf *m, const struct ip *ip, int header, const struct tcphdr *th) {
    int length = m->m_pkthdr.len - header;
    if (m->m_pkthdr.csum_flags & CSUM_VALID) return true;
    if (m->m_flags & M_PROTOCOL_SUM) {
        statistics.hardware_sums++;
        bool equal = th->th_sum == m->m_pkthdr.protocolSum;
        if (!equal) statistics.hardware_sums_bad++;
        return equal;
    }
    uint32_t sum = in_pseudo(ip->ip_src, ip->ip_dst, PROTOCOL_TCP, length);
    return in_fold(sum + m_sum(m, header, length)) == 0xffff;
}

/* Reads the headers, with IP's of `header` bytes. The packet without them; NULL if it was dropped. */
static struct mbuf *parse(struct mbuf *m, int header, struct tcp_segment *segment) {
    int length = m->m_pkthdr.len - header;
    if (length < TCP_HEADER || !(m = m_pullup(m, header + TCP_HEADER))) {
        if (length < TCP_HEADER) m_freem(m);
        statistics.tcp_bad++;
        return NULL;
    }
    int offset = ((const struct tcphdr *)(const void *)(m->m_data + header))->th_off >> 4;
    int options = offset * 4 - TCP_HEADER;
    if (options < 0 || offset * 4 > length || !(m = m_pullup(m, header + offset * 4))) {
        if (m && (options < 0 || offset * 4 > length)) m_freem(m);
        statistics.tcp_bad++;
        return NULL;
    }
    const struct ip *ip = mtod(m, const struct ip *);
    const struct tcphdr *th = (const void *)(m->m_data + header);
    if (!is_right(m, ip, header, th)) {
        statistics.tcp_checksum_errors++;
        m_freem(m);
        return NULL;
    }
    *segment = (struct tcp_segment){.source = ip->ip_src,
                                    .destination = ip->ip_dst,
                                    .sport = th->th_sport,
                                    .dport = th->th_dport,
                                    .seq = ntohl(th->th_seq),
                                    .ack = ntohl(th->th_ack),
                                    .window = ntohs(th->th_win),
                                    .flags = th->th_flags,
                                    .length = length - offset * 4,
                                    .rcvif = m->m_pkthdr.rcvif};
    tcp_parse_options((const unsigned char *)(th + 1), options, &segment->options);
    m_adj(m, header + offset * 4);
    segment->m = m;
    return m;
}

/* A segment for a listening socket: a SYN makes a connection. */
static void listening(struct inpcb *inp, const struct tcp_segment *segment) {
    if (segment->flags & TH_RST) return;
    if (segment->flags & TH_ACK) {
        tcp_reset(segment);
        return;
    }
    if (!(segment->flags & TH_SYN) || segment->flags & TH_FIN) return;
    struct socket *so = sonewconn(inp->inp_socket);
    if (!so) return;
    struct inpcb *own = so->so_pcb;
    struct tcpcb *tp = own->inp_ppcb;
    own->inp_laddr = segment->destination;
    own->inp_lport = segment->dport;
    if (in_pcbconnect(&tcp_blocks, own, segment->source, segment->sport)) {
        tcp_close(tp, 0);
        return;
    }
    tcp_reserve(tp);
    tcp_begin(tp);
    tcp_agree(tp, &segment->options);
    tp->irs = segment->seq;
    tp->rcv_nxt = tp->rcv_adv = tp->last_ack_sent = segment->seq + 1;
    tp->t_state = TCPS_SYN_RECEIVED;
    tp->t_flags |= TF_ACKNOW;
    tcp_output(tp);
}

/* Whether a new connection takes the place of one in TIME-WAIT (RFC 9293, 3.6.1). */
static bool is_reopened(const struct tcpcb *tp, const struct tcp_segment *segment) {
    return tp && tp->t_state == TCPS_TIME_WAIT && (segment->flags & (TH_SYN | TH_ACK | TH_RST)) == TH_SYN &&
           SEQ_GT(segment->seq, tp->rcv_nxt);
}

void tcp_input(struct mbuf *m, int header) {
    struct tcp_segment segment;
    bool is_broadcast = m->m_flags & M_BROADCAST;
    statistics.tcp_received++;
    if (!parse(m, header, &segment)) return;
    struct inpcb *inp = NULL;
    struct tcpcb *tp = NULL;
    if (!is_broadcast && !if_is_broadcast(segment.rcvif, segment.destination)) {
        do {
            if (inp) tcp_close(tp, 0);
            inp = in_pcblookup(&tcp_blocks, segment.source, segment.sport, segment.destination, segment.dport);
            tp = inp ? inp->inp_ppcb : NULL;
        } while (is_reopened(tp, &segment));
        if (!tp || tp->t_state == TCPS_CLOSED) tcp_reset(&segment);
        else if (tp->t_state == TCPS_LISTEN) listening(inp, &segment);
        else tcp_process(tp, &segment);
    }
    m_freem(segment.m);
}
