/* Segments that are sent: whether, how much, and the headers. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "checksum.h"
#include "network.h"
#include "tcp.h"

#define LARGEST_SEND (65535 - 120) /* Bytes of data for an adapter that cuts segments: IP's length bounds them. */
#define COPIED 100                 /* Bytes that are copied behind the headers rather than shared. */

/* The flags that a state sends. */
static const uint8_t STATE_FLAGS[] = {
    [TCPS_CLOSED] = TH_RST | TH_ACK,    [TCPS_LISTEN] = 0,
    [TCPS_SYN_SENT] = TH_SYN,           [TCPS_SYN_RECEIVED] = TH_SYN | TH_ACK,
    [TCPS_ESTABLISHED] = TH_ACK,        [TCPS_CLOSE_WAIT] = TH_ACK,
    [TCPS_FIN_WAIT_1] = TH_FIN | TH_ACK, [TCPS_CLOSING] = TH_FIN | TH_ACK,
    [TCPS_LAST_ACK] = TH_FIN | TH_ACK,  [TCPS_FIN_WAIT_2] = TH_ACK,
    [TCPS_TIME_WAIT] = TH_ACK,
};

/* A segment to send. */
struct plan {
    uint32_t offset; /* Of its data in the send buffer. */
    int length;
    uint8_t flags;
    bool is_cut_by_adapter, has_more; /* Another one follows at once. */
};

/* The window to offer: not smaller than before, and nothing instead of little (RFC 9293, 3.8.6.2.2). */
static uint32_t offered_window(const struct tcpcb *tp) {
    const struct sockbuf *sb = &tcp_socket(tp)->so_rcv;
    uint32_t space = sbspace(sb), before = tp->rcv_adv - tp->rcv_nxt;
    uint32_t most = (uint32_t)TCP_MAXWIN << (tp->t_flags & TF_SCALING ? tp->rcv_scale : 0);
    if ((int32_t)before < 0) before = 0;
    if (space < (sb->sb_hiwat + sb->sb_adapter_hiwat) / 4 && space < tp->t_maxseg) space = 0;
    return MINIMUM(MAXIMUM(space, before), most);
}

/* Whether the peer should hear of a larger window. */
static bool has_window_update(const struct tcpcb *tp) {
    const struct sockbuf *sb = &tcp_socket(tp)->so_rcv;
    uint32_t before = tp->rcv_adv - tp->rcv_nxt;
    uint32_t grown = offered_window(tp) - ((int32_t)before < 0 ? 0 : before);
    if ((int32_t)grown <= 0 || tp->t_state >= TCPS_FIN_WAIT_2) return false;
    return grown >= 2 * tp->t_maxseg || 2 * grown >= sb->sb_hiwat + sb->sb_adapter_hiwat;
}

/* Before the connection is established: a SYN, or an acknowledgement that is asked for. */
static bool plan_syn(struct tcpcb *tp, struct plan *plan) {
    if (tp->snd_nxt == tp->iss) return true;
    plan->flags &= ~TH_SYN;
    return tp->t_state == TCPS_SYN_RECEIVED && tp->t_flags & TF_ACKNOW;
}

/* Bytes that both windows allow. */
static uint32_t usable_window(struct tcpcb *tp, struct plan *plan, uint32_t buffered) {
    /* Limited transmit: a segment for each of the first two duplicates (RFC 3042). */
    unsigned extra = !(tp->t_flags & TF_RECOVERY) && tp->t_dupacks < 3 ? tp->t_dupacks * tp->t_maxseg : 0;
    uint32_t window = MINIMUM(tp->snd_wnd, tp->snd_cwnd + extra);
    if (!(tp->t_flags & TF_FORCE)) return window;
    if (window > 0) {
        tp->t_timer[TCPT_PERSIST] = 0;
        tp->t_rxtshift = 0;
        return window;
    }
    if (plan->offset < buffered) plan->flags &= ~TH_FIN;
    return 1;
}

/* Bytes from an offset of the send buffer to the end of the adapter's buffer there; `length` if it is the host's. A segment of whole
 * adapter's buffers has sums that are known. */
static int64_t to_buffer_end(const struct tcpcb *tp, uint32_t offset, int64_t length) {
    const struct mbuf *m = sbfind(&tcp_socket(tp)->so_snd, &offset);
    return m && m->m_flags & M_UIOMOVE ? MINIMUM(length, (int64_t)m->m_len - offset) : length;
}

/* The number of bytes to send, and whether others follow. */
static void plan_length(struct tcpcb *tp, struct plan *plan, uint32_t buffered) {
    uint32_t next, window = usable_window(tp, plan, buffered);
    int64_t length = (int64_t)MINIMUM(buffered, window) - plan->offset;
    if (length < 0) {
        length = 0;
        if (window == 0) {
            /* The peer has closed its window: what it did not take is sent again when it opens. */
            tp->t_timer[TCPT_REXMT] = 0;
            tp->snd_nxt = tp->snd_una;
            plan->offset = 0;
            if (!tp->t_timer[TCPT_PERSIST]) tp->t_rxtshift = 0, tcp_start_persist(tp);
        }
    }
    if (length > tp->t_maxseg) {
        const struct ifnet *ifp = route_lookup(tp->t_inpcb->inp_faddr, &next);
        plan->is_cut_by_adapter = ifp && ifp->if_capabilities & IFCAP_TSO;
        int64_t most = plan->is_cut_by_adapter ? LARGEST_SEND / tp->t_maxseg * tp->t_maxseg : tp->t_maxseg;
        if (length > most) plan->has_more = true;
        length = MINIMUM(length, most);
        /* A part of a segment at the end would have to wait by Nagle's rule. */
        if (plan->is_cut_by_adapter && !plan->has_more && length % tp->t_maxseg) {
            plan->has_more = true;
            length -= length % tp->t_maxseg;
        }
        plan->is_cut_by_adapter &= length > tp->t_maxseg;
    }
    if (tp->t_flags & TF_ADAPTER && length > 0) {
        int64_t whole = to_buffer_end(tp, plan->offset, length);
        plan->has_more |= whole < length;
        length = whole;
    }
    plan->length = (int)length;
    if (plan->offset + length < buffered) plan->flags &= ~TH_FIN;
}

/* Whether data are worth a segment (RFC 9293, 3.8.6.2.1 and 3.7.4: silly windows, Nagle's rule). */
static bool is_worth_sending(const struct tcpcb *tp, const struct plan *plan, uint32_t buffered) {
    bool is_idle = tp->snd_max == tp->snd_una;
    if (plan->length >= (int)tp->t_maxseg || tp->t_flags & TF_FORCE) return true;
    if (tp->t_flags & TF_ADAPTER && plan->has_more) return true;
    if ((is_idle || tcp_socket(tp)->so_options & SOPT_NODELAY) && plan->offset + plan->length >= buffered) return true;
    return (uint32_t)plan->length >= MAXIMUM(tp->max_sndwnd / 2, 1u) || SEQ_LT(tp->snd_nxt, tp->snd_max);
}

/* Decides what to send; false: nothing. */
static bool make_plan(struct tcpcb *tp, struct plan *plan) {
    uint32_t buffered = sblength(&tcp_socket(tp)->so_snd);
    *plan = (struct plan){.flags = STATE_FLAGS[tp->t_state]};
    if (tp->t_state < TCPS_ESTABLISHED) return plan_syn(tp, plan);
    if (tp->snd_max == tp->snd_una && network_now() - tp->t_last_sent >= tp->t_rto_ms)
        tp->snd_cwnd = MINIMUM(tp->snd_cwnd, tcp_initial_window(tp)); /* RFC 5681, 4.1. */
    plan->offset = tp->snd_nxt - tp->snd_una;
    plan_length(tp, plan, buffered);
    if (plan->length > 0 && is_worth_sending(tp, plan, buffered)) return true;
    if (tp->t_flags & TF_ACKNOW || has_window_update(tp)) {
        /* Bytes too few for a segment of their own stay in the buffer. */
        plan->length = 0;
        plan->has_more = false;
        bool is_fin_under_way = tp->t_flags & TF_SENTFIN && tp->snd_nxt == tp->snd_max;
        if (plan->offset < buffered || is_fin_under_way) plan->flags &= ~TH_FIN;
        return true;
    }
    if (plan->flags & TH_FIN && (!(tp->t_flags & TF_SENTFIN) || tp->snd_nxt == tp->snd_una)) {
        plan->length = 0;
        return plan->offset >= buffered;
    }
    if (buffered && !tp->t_timer[TCPT_REXMT] && !tp->t_timer[TCPT_PERSIST]) {
        tp->t_rxtshift = 0;
        tcp_start_persist(tp);
    }
    return false;
}

/* A packet with TCP's header and options; NULL without memory. */
static struct mbuf *make_header(const struct tcphdr *header, const unsigned char *options, int length) {
    struct mbuf *m = m_gethdr();
    if (!m) return NULL;
    struct tcphdr *th = mtod(m, struct tcphdr *);
    *th = *header;
    th->th_off = (TCP_HEADER + length) / 4 << 4;
    if (length > 0) memcpy(th + 1, options, length);
    m->m_len = m->m_pkthdr.len = TCP_HEADER + length;
    return m;
}

/* Completes a segment's checksum, as far as the processor has to, and sends it. */
static int send_segment(struct mbuf *m, uint32_t source, uint32_t destination) {
    struct tcphdr *th = mtod(m, struct tcphdr *);
    th->th_sum = in_pseudo(source, destination, PROTOCOL_TCP, m->m_pkthdr.len);
    m->m_pkthdr.csum_flags |= CSUM_TRANSPORT;
    m->m_pkthdr.csum_offset = offsetof(struct tcphdr, th_sum);
    statistics.tcp_sent++;
    return ip_output(m, &(struct ip_destination){
                            .source = source, .destination = destination, .protocol = PROTOCOL_TCP, .is_unfragmented = true});
}

/* Adds the plan's data to a header. False without memory. */
static bool add_data(const struct tcpcb *tp, struct mbuf *m, const struct plan *plan) {
    uint32_t offset = plan->offset;
    const struct mbuf *buffered = sbfind(&tcp_socket(tp)->so_snd, &offset);
    if (plan->length <= COPIED && !(tp->t_flags & TF_ADAPTER)) {
        m_copydata(buffered, offset, plan->length, m->m_data + m->m_len);
        m->m_len += plan->length;
    } else {
        struct mbuf *data = m_copym(buffered, offset, plan->length);
        if (!data) return false;
        data->m_flags &= ~M_PKTHDR;
        m->m_next = data;
    }
    m->m_pkthdr.len += plan->length;
    if (plan->is_cut_by_adapter) {
        m->m_pkthdr.csum_flags |= CSUM_TSO;
        m->m_pkthdr.tso_segsz = tp->t_maxseg;
    }
    return true;
}

/* Counts what is sent, and starts the timers. */
static void note_sent(struct tcpcb *tp, const struct plan *plan, uint32_t seq) {
    uint32_t octets = plan->length + !!(plan->flags & TH_SYN) + !!(plan->flags & TH_FIN);
    if (plan->length > 0) {
        if (SEQ_LT(seq, tp->snd_max)) statistics.tcp_retransmitted++;
        else statistics.tcp_bytes_sent += plan->length;
    }
    if (tp->t_flags & TF_FORCE && tp->t_timer[TCPT_PERSIST]) {
        if (SEQ_GT(tp->snd_nxt + plan->length, tp->snd_max)) tp->snd_max = tp->snd_nxt + plan->length;
        return;
    }
    if (plan->flags & TH_FIN) tp->t_flags |= TF_SENTFIN;
    tp->snd_nxt += octets;
    if (SEQ_GT(tp->snd_nxt, tp->snd_max)) {
        tp->snd_max = tp->snd_nxt;
        if (!tp->t_is_timed && octets > 0) {
            tp->t_is_timed = true;
            tp->t_rtseq = seq;
            tp->t_rtt_start = network_now();
        }
    }
    if (!tp->t_timer[TCPT_REXMT] && octets > 0) {
        tcp_start_rexmt(tp);
        if (tp->t_timer[TCPT_PERSIST]) tp->t_timer[TCPT_PERSIST] = tp->t_rxtshift = 0;
    }
}

/* Sends a planned segment. */
static int send_planned(struct tcpcb *tp, struct plan *plan) {
    const struct inpcb *inp = tp->t_inpcb;
    unsigned char options[40];
    uint32_t window = offered_window(tp);
    bool is_syn = plan->flags & TH_SYN;
    bool has_place = plan->length > 0 || plan->flags & (TH_SYN | TH_FIN);
    uint32_t seq = has_place || tp->t_timer[TCPT_PERSIST] ? tp->snd_nxt : tp->snd_max;
    if (plan->length > 0 && plan->offset + plan->length == sblength(&tcp_socket(tp)->so_snd)) plan->flags |= TH_PUSH;
    uint16_t shown = is_syn ? MINIMUM(window, TCP_MAXWIN) : window >> (tp->t_flags & TF_SCALING ? tp->rcv_scale : 0);
    struct tcphdr header = {.th_sport = inp->inp_lport,
                            .th_dport = inp->inp_fport,
                            .th_seq = htonl(seq),
                            .th_ack = plan->flags & TH_ACK ? htonl(tp->rcv_nxt) : 0,
                            .th_flags = plan->flags,
                            .th_win = htons(shown)};
    struct mbuf *m = make_header(&header, options, tcp_write_options(tp, plan->flags, options));
    if (m && plan->length > 0 && !add_data(tp, m, plan)) {
        m_freem(m);
        m = NULL;
    }
    note_sent(tp, plan, seq);
    tp->t_last_sent = network_now();
    int error = m ? send_segment(m, inp->inp_laddr, inp->inp_faddr) : ENOBUFS;
    if (error == ENOBUFS) {
        /* As if the network had lost it. */
        tp->snd_cwnd = tp->t_maxseg;
        plan->has_more = false;
        return 0;
    }
    if (error) return error;
    if (plan->flags & TH_ACK) {
        if (SEQ_GT(tp->rcv_nxt + window, tp->rcv_adv)) tp->rcv_adv = tp->rcv_nxt + window;
        tp->last_ack_sent = tp->rcv_nxt;
        tp->t_flags &= ~(TF_ACKNOW | TF_DELACK);
        tp->t_unacknowledged = 0;
    }
    return 0;
}

int tcp_output(struct tcpcb *tp) {
    struct plan plan;
    int error;
    if (tp->t_state < TCPS_SYN_SENT) return 0;
    do {
        if (!make_plan(tp, &plan)) return 0;
        error = send_planned(tp, &plan);
    } while (!error && plan.has_more && !(tp->t_flags & TF_FORCE));
    return error;
}

/* Sends a segment of headers alone. */
static void send_bare(struct tcphdr *header, const unsigned char *options, int length, uint32_t source, uint32_t destination) {
    struct mbuf *m = make_header(header, options, length);
    if (m) send_segment(m, source, destination);
}

void tcp_send_control(struct tcpcb *tp, uint32_t seq, uint8_t flags) {
    const struct inpcb *inp = tp->t_inpcb;
    unsigned char options[40];
    uint32_t window = flags & TH_RST ? 0 : (tp->rcv_adv - tp->rcv_nxt) >> (tp->t_flags & TF_SCALING ? tp->rcv_scale : 0);
    struct tcphdr header = {.th_sport = inp->inp_lport,
                            .th_dport = inp->inp_fport,
                            .th_seq = htonl(seq),
                            .th_ack = htonl(tp->rcv_nxt),
                            .th_flags = flags,
                            .th_win = htons(window)};
    if (flags & TH_RST) statistics.tcp_resets_sent++;
    send_bare(&header, options, tcp_write_options(tp, TH_ACK, options), inp->inp_laddr, inp->inp_faddr);
}

void tcp_reset(const struct tcp_segment *segment) {
    if (segment->flags & TH_RST) return;
    uint32_t end = segment->seq + segment->length + !!(segment->flags & TH_SYN) + !!(segment->flags & TH_FIN);
    bool has_ack = segment->flags & TH_ACK;
    struct tcphdr header = {.th_sport = segment->dport,
                            .th_dport = segment->sport,
                            .th_seq = has_ack ? htonl(segment->ack) : 0,
                            .th_ack = has_ack ? 0 : htonl(end),
                            .th_flags = has_ack ? TH_RST : TH_RST | TH_ACK};
    statistics.tcp_resets_sent++;
    send_bare(&header, NULL, 0, segment->destination, segment->source);
}
