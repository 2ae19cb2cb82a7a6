/* Segments for connections, in the order of RFC 9293, 3.10.7: sequence number, RST, SYN, ACK, data, FIN. */
#include <errno.h>

#include "network.h"
#include "tcp.h"

#define CHALLENGES 100          /* A second, at most (RFC 5961, 7). */
#define PAWS_IDLE 2073600000ull /* Milliseconds after which a timestamp is no longer compared: 24 days. */

/* Answers something suspicious by telling what we expect. */
static void challenge(struct tcpcb *tp) {
    static uint64_t second;
    static unsigned sent;
    uint64_t now = network_now() / 1000;
    if (now != second) sent = 0;
    second = now;
    if (sent++ >= CHALLENGES) return;
    statistics.tcp_challenges++;
    tp->t_flags |= TF_ACKNOW;
    tcp_output(tp);
}

/* The connection is established: by the acknowledgement of our SYN. */
static void establish(struct tcpcb *tp, const struct tcp_segment *segment, unsigned scale) {
    struct socket *so = tcp_socket(tp);
    tp->t_state = TCPS_ESTABLISHED;
    tp->snd_una = segment->ack;
    if (SEQ_LT(tp->snd_nxt, tp->snd_una)) tp->snd_nxt = tp->snd_una;
    tp->snd_wnd = tp->max_sndwnd = segment->window << scale;
    tp->snd_wl1 = segment->seq;
    tp->snd_wl2 = segment->ack;
    tp->snd_recover = tp->iss;
    if (tp->t_rxtshift > 0) tp->snd_cwnd = tp->t_maxseg;
    tp->t_timer[TCPT_REXMT] = 0;
    if (tp->t_rxtshift == 0 && !(tp->t_flags & TF_TIMESTAMPS)) tcp_sample_rtt(tp, (unsigned)(network_now() - tp->t_last_sent));
    else if (segment->options.has_timestamp && segment->options.ts_ecr)
        tcp_sample_rtt(tp, (uint32_t)network_now() - segment->options.ts_ecr);
    tp->t_rxtshift = 0;
    tcp_start_keep(tp);
    soisconnected(so);
    if (so->so_state & SS_CANT_SEND) tp->t_state = TCPS_FIN_WAIT_1;
}

/* A segment for a connection whose SYN we have sent. */
static void syn_sent(struct tcpcb *tp, struct tcp_segment *segment) {
    bool has_ack = segment->flags & TH_ACK;
    if (has_ack && (SEQ_LEQ(segment->ack, tp->iss) || SEQ_GT(segment->ack, tp->snd_max))) {
        tcp_reset(segment);
        return;
    }
    if (segment->flags & TH_RST) {
        if (has_ack) tcp_close(tp, ECONNREFUSED);
        return;
    }
    if (!(segment->flags & TH_SYN)) return;
    tp->irs = segment->seq;
    tp->rcv_nxt = tp->rcv_adv = tp->last_ack_sent = segment->seq + 1;
    tcp_agree(tp, &segment->options);
    tp->t_flags |= TF_ACKNOW;
    tp->t_last_received = network_now();
    if (!has_ack) {
        /* Both sides open at the same time. */
        tp->t_state = TCPS_SYN_RECEIVED;
        tp->snd_nxt = tp->iss;
        tcp_output(tp);
        return;
    }
    establish(tp, segment, 0);
    segment->seq++;
    if (segment->length > (int)sbspace(&tcp_socket(tp)->so_rcv)) segment->length = 0, segment->flags &= ~TH_FIN;
    else tcp_take_data(tp, segment);
    tcp_output(tp);
}

/* Whether a timestamp is older than the last one (RFC 7323, 5): protection against wrapped sequence numbers. */
static bool is_old(const struct tcpcb *tp, const struct tcp_segment *segment) {
    if (!(tp->t_flags & TF_TIMESTAMPS) || segment->flags & TH_RST) return false;
    if (!segment->options.has_timestamp) return true;
    return SEQ_LT(segment->options.ts_val, tp->ts_recent) && network_now() - tp->ts_recent_age < PAWS_IDLE;
}

/* A reset: believed at exactly the expected number, challenged elsewhere in the window (RFC 5961, 3.2). */
static void reset(struct tcpcb *tp, const struct tcp_segment *segment) {
    if (segment->seq - tp->rcv_nxt > tp->rcv_wnd) return;
    if (segment->seq != tp->rcv_nxt) {
        challenge(tp);
        return;
    }
    int error = tp->t_state == TCPS_SYN_RECEIVED                                                                ? ECONNREFUSED
                : tp->t_state == TCPS_CLOSING || tp->t_state == TCPS_LAST_ACK || tp->t_state == TCPS_TIME_WAIT ? 0
                                                                                                               : ECONNRESET;
    tcp_close(tp, error);
}

/* Cuts a segment to the window. False if nothing of it is acceptable. */
static bool fit_window(struct tcpcb *tp, struct tcp_segment *segment) {
    int before = (int)(tp->rcv_nxt - segment->seq);
    /* Unsigned: half of all numbers away is beyond the window, too. */
    if (before <= 0 && segment->seq - tp->rcv_nxt > tp->rcv_wnd) return false;
    if (before > 0) {
        bool is_repeated = segment->length > 0 || segment->flags & TH_FIN;
        /* Known data may still have a new acknowledgement; an old segment without data has nothing. */
        if (before > segment->length + !!(segment->flags & TH_FIN) && !is_repeated) return false;
        if (before > segment->length) segment->flags &= ~TH_FIN;
        int cut = MINIMUM(before, segment->length);
        if (cut < before && !is_repeated) return false;
        m_adj(segment->m, cut);
        segment->seq = tp->rcv_nxt;
        segment->length -= cut;
        tp->t_flags |= TF_ACKNOW;
    }
    int beyond = (int)(segment->seq + segment->length - (tp->rcv_nxt + tp->rcv_wnd));
    if (beyond > 0) {
        bool is_probe = segment->seq == tp->rcv_nxt;
        if (beyond >= segment->length && !is_probe) return false;
        m_adj(segment->m, -beyond);
        segment->length -= beyond;
        segment->flags &= ~(TH_FIN | TH_PUSH);
        tp->t_flags |= TF_ACKNOW;
    }
    return true;
}

/* The window that we have offered, or could offer now. */
static void set_receive_window(struct tcpcb *tp) {
    uint32_t space = sbspace(&tcp_socket(tp)->so_rcv), offered = tp->rcv_adv - tp->rcv_nxt;
    if ((int32_t)offered < 0) offered = 0;
    tp->rcv_wnd = MAXIMUM(space, offered);
}

/* An acknowledgement in SYN-RECEIVED; false if the segment is dropped. */
static bool complete_open(struct tcpcb *tp, struct tcp_segment *segment) {
    if (SEQ_LEQ(segment->ack, tp->snd_una) || SEQ_GT(segment->ack, tp->snd_max)) {
        tcp_reset(segment);
        return false;
    }
    establish(tp, segment, tp->snd_scale);
    return true;
}

/* The expected segment in steady state: an acknowledgement of what was sent, or data in order (header prediction). */
static bool is_predicted(const struct tcpcb *tp, const struct tcp_segment *segment) {
    return tp->t_state == TCPS_ESTABLISHED && (segment->flags & ~TH_PUSH) == TH_ACK && segment->seq == tp->rcv_nxt &&
           segment->window > 0 && tp->snd_wnd > 0 && tp->snd_nxt == tp->snd_max && !(tp->t_flags & TF_RECOVERY) &&
           tp->t_dupacks == 0;
}

/* The window of a predicted segment, which is newer than any other. */
static void take_window(struct tcpcb *tp, const struct tcp_segment *segment) {
    tp->snd_wnd = segment->window << tp->snd_scale;
    tp->snd_wl1 = segment->seq;
    tp->snd_wl2 = segment->ack;
    tp->max_sndwnd = MAXIMUM(tp->max_sndwnd, tp->snd_wnd);
}

/* Takes a predicted segment; false if it is not as simple. */
static bool take_predicted(struct tcpcb *tp, struct tcp_segment *segment) {
    struct socket *so = tcp_socket(tp);
    if (segment->length == 0) {
        if (SEQ_LEQ(segment->ack, tp->snd_una) || SEQ_GT(segment->ack, tp->snd_max)) return false;
        statistics.tcp_predicted_acks++;
        if (!tcp_acknowledge(tp, segment)) return true;
        take_window(tp, segment);
        if (sblength(&so->so_snd)) tcp_output(tp);
        return true;
    }
    if (segment->ack != tp->snd_una || tp->t_segq || segment->length > (int)sbspace(&so->so_rcv)) return false;
    statistics.tcp_predicted_data++;
    take_window(tp, segment);
    tcp_take_data(tp, segment);
    if (tp->t_flags & TF_ACKNOW) tcp_output(tp);
    return true;
}

/* A segment that is neither old nor a reset: acknowledgement, window, data. */
static void take(struct tcpcb *tp, struct tcp_segment *segment) {
    if (tp->t_state == TCPS_SYN_RECEIVED && !complete_open(tp, segment)) return;
    if (!tcp_acknowledge(tp, segment)) return;
    tcp_update_window(tp, segment);
    if (tcp_socket(tp)->so_state & SS_CLOSED && segment->length > 0 && tp->t_state > TCPS_CLOSE_WAIT) {
        /* Data for an application that has gone (RFC 9293, 3.6.1). */
        tcp_drop(tp, 0);
        return;
    }
    if (tp->t_state == TCPS_TIME_WAIT && tp->t_flags & TF_ACKNOW) tcp_start_2msl(tp);
    tcp_take_data(tp, segment);
    tcp_output(tp);
}

void tcp_process(struct tcpcb *tp, struct tcp_segment *segment) {
    if (tp->t_state == TCPS_SYN_SENT) {
        syn_sent(tp, segment);
        return;
    }
    set_receive_window(tp);
    if (is_old(tp, segment)) {
        statistics.tcp_paws_dropped++;
        if (segment->options.has_timestamp) challenge(tp);
        return;
    }
    if (segment->flags & TH_RST) {
        reset(tp, segment);
        return;
    }
    tp->t_last_received = network_now();
    tp->t_keep_probes = 0;
    if (segment->options.has_timestamp && SEQ_LEQ(segment->seq, tp->last_ack_sent) && tp->t_flags & TF_TIMESTAMPS) {
        tp->ts_recent = segment->options.ts_val;
        tp->ts_recent_age = network_now();
    }
    if (is_predicted(tp, segment) && take_predicted(tp, segment)) return;
    if (tp->t_state == TCPS_SYN_RECEIVED && segment->flags & TH_SYN && segment->seq == tp->irs && segment->flags & TH_ACK) {
        /* The other half of a simultaneous open. */
        segment->flags &= ~TH_SYN;
        segment->seq++;
    }
    if (tp->t_state == TCPS_SYN_RECEIVED && segment->flags & TH_SYN && segment->seq == tp->irs) {
        /* The peer has not seen our SYN. */
        tp->snd_nxt = tp->snd_una;
        tcp_output(tp);
        return;
    }
    if (segment->flags & TH_SYN || !fit_window(tp, segment)) {
        challenge(tp);
        return;
    }
    if (segment->flags & TH_ACK) take(tp, segment);
}
