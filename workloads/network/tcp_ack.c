/* Acknowledgements: round-trip times, the congestion window, fast retransmit and NewReno's fast recovery. */
#include "network.h"
#include "tcp.h"

#define DUPLICATES 3 /* Duplicate acknowledgements that mean a loss (RFC 5681). */

void tcp_set_rto(struct tcpcb *tp) {
    if (!tp->t_has_rtt) return;
    unsigned variance = MAXIMUM(parameters.slow_ms, (unsigned)tp->t_rttvar);
    unsigned rto = (tp->t_srtt >> 3) + variance;
    tp->t_rto_ms = MINIMUM(MAXIMUM(rto, parameters.minimum_rto_ms), 60000u);
}

void tcp_sample_rtt(struct tcpcb *tp, unsigned ms) {
    int sample = (int)MINIMUM(ms, 60000u);
    if (tp->t_has_rtt) {
        int difference = sample - (tp->t_srtt >> 3);
        tp->t_srtt += difference;
        tp->t_rttvar += (difference < 0 ? -difference : difference) - (tp->t_rttvar >> 2);
    } else {
        tp->t_srtt = sample << 3;
        tp->t_rttvar = sample << 1;
        tp->t_has_rtt = true;
    }
    tcp_set_rto(tp);
}

/* A sample by a segment that acknowledges new data (RFC 7323, 4.1; without timestamps Karn's rule). */
static void time_acknowledgement(struct tcpcb *tp, const struct tcp_segment *segment) {
    if (tp->t_flags & TF_TIMESTAMPS) {
        uint32_t elapsed = (uint32_t)network_now() - segment->options.ts_ecr;
        if (segment->options.has_timestamp && segment->options.ts_ecr && (int32_t)elapsed >= 0) tcp_sample_rtt(tp, elapsed);
    } else if (tp->t_is_timed && SEQ_GT(segment->ack, tp->t_rtseq)) {
        tp->t_is_timed = false;
        tcp_sample_rtt(tp, (unsigned)(network_now() - tp->t_rtt_start));
    }
}

/* Sends the first unacknowledged segment again, and nothing else. */
static void retransmit_first(struct tcpcb *tp) {
    uint32_t next = tp->snd_nxt, window = tp->snd_cwnd;
    tp->snd_nxt = tp->snd_una;
    tp->snd_cwnd = tp->t_maxseg;
    tp->t_is_timed = false;
    tp->t_flags |= TF_ACKNOW;
    tcp_output(tp);
    tp->snd_cwnd = window;
    if (SEQ_GT(next, tp->snd_nxt)) tp->snd_nxt = next;
}

/* The third duplicate: retransmits, and halves the window. */
static void enter_recovery(struct tcpcb *tp) {
    uint32_t flight = tp->snd_max - tp->snd_una;
    statistics.tcp_fast_retransmits++;
    tp->snd_ssthresh = MAXIMUM(flight / 2, 2 * tp->t_maxseg);
    tp->snd_recover = tp->snd_max;
    tp->t_flags |= TF_RECOVERY;
    tp->t_timer[TCPT_REXMT] = 0;
    retransmit_first(tp);
    tp->snd_cwnd = tp->snd_ssthresh + DUPLICATES * tp->t_maxseg;
    tcp_output(tp);
}

/* An acknowledgement of nothing new. */
static void duplicate(struct tcpcb *tp, const struct tcp_segment *segment) {
    uint32_t window = segment->window << tp->snd_scale;
    bool is_duplicate = segment->length == 0 && !(segment->flags & TH_FIN) && window == tp->snd_wnd &&
                        segment->ack == tp->snd_una && tp->snd_max != tp->snd_una;
    if (!is_duplicate) return;
    statistics.tcp_duplicates++;
    tp->t_dupacks++;
    if (tp->t_flags & TF_RECOVERY) {
        tp->snd_cwnd += tp->t_maxseg;
        tcp_output(tp);
    } else if (tp->t_dupacks == DUPLICATES && SEQ_GT(segment->ack, tp->snd_recover)) {
        enter_recovery(tp);
    } else if (tp->t_dupacks < DUPLICATES) {
        /* Limited transmit (RFC 3042): tcp_output() adds a segment for each. */
        tcp_output(tp);
    }
}

/* The congestion window after `acked` new bytes outside of recovery (RFC 5681, 3.1, with appropriate byte counting). */
static void open_window(struct tcpcb *tp, uint32_t acked) {
    uint32_t segment = tp->t_maxseg, most = (uint32_t)TCP_MAXWIN << tp->snd_scale;
    if (tp->snd_cwnd < tp->snd_ssthresh) tp->snd_cwnd += MINIMUM(acked, 2 * segment);
    else tp->snd_cwnd += MAXIMUM(segment * segment / tp->snd_cwnd, 1u);
    tp->snd_cwnd = MINIMUM(tp->snd_cwnd, MAXIMUM(most, segment));
}

/* The congestion window after `acked` new bytes in recovery (RFC 6582, 3.2). */
static void recover(struct tcpcb *tp, uint32_t ack, uint32_t acked) {
    if (SEQ_GEQ(ack, tp->snd_recover)) {
        uint32_t flight = tp->snd_max - ack;
        tp->snd_cwnd = MINIMUM(tp->snd_ssthresh, MAXIMUM(flight, tp->t_maxseg) + tp->t_maxseg);
        tp->t_flags &= ~TF_RECOVERY;
        tp->t_dupacks = 0;
        return;
    }
    tp->snd_cwnd = tp->snd_cwnd > acked ? tp->snd_cwnd - acked : 0;
    if (acked >= tp->t_maxseg || tp->snd_cwnd < tp->t_maxseg) tp->snd_cwnd += tp->t_maxseg;
}

/* Removes acknowledged data from the send buffer; true if the FIN is acknowledged, too. */
static bool drop_acknowledged(struct tcpcb *tp, uint32_t ack) {
    struct sockbuf *sb = &tcp_socket(tp)->so_snd;
    uint32_t acked = ack - tp->snd_una, buffered = sblength(sb);
    bool has_fin = tp->t_flags & TF_SENTFIN && acked > buffered;
    uint32_t bytes = MINIMUM(acked, buffered);
    tp->snd_wnd -= MINIMUM(tp->snd_wnd, bytes);
    sbdrop(sb, bytes);
    tp->snd_una = ack;
    if (SEQ_LT(tp->snd_nxt, ack)) tp->snd_nxt = ack;
    return has_fin;
}

/* Our FIN is acknowledged; false if the connection is gone. */
static bool fin_acknowledged(struct tcpcb *tp) {
    switch (tp->t_state) {
        case TCPS_FIN_WAIT_1:
            tp->t_state = TCPS_FIN_WAIT_2;
            if (tcp_socket(tp)->so_state & SS_CLOSED) tcp_start_2msl(tp);
            return true;
        case TCPS_CLOSING:
            tp->t_state = TCPS_TIME_WAIT;
            for (int timer = 0; timer < TCPT_COUNT; timer++) tp->t_timer[timer] = 0;
            tcp_start_2msl(tp);
            return true;
        case TCPS_LAST_ACK: tcp_close(tp, 0); return false;
        default: return true;
    }
}

bool tcp_acknowledge(struct tcpcb *tp, struct tcp_segment *segment) {
    uint32_t ack = segment->ack;
    if (SEQ_GT(ack, tp->snd_max) || SEQ_LT(ack, tp->snd_una - MAXIMUM(tp->max_sndwnd, 65535u))) {
        /* Of what was never sent, or of ages ago (RFC 5961, 5.2). */
        tp->t_flags |= TF_ACKNOW;
        tcp_output(tp);
        return false;
    }
    if (SEQ_LEQ(ack, tp->snd_una)) {
        duplicate(tp, segment);
        return true;
    }
    uint32_t acked = ack - tp->snd_una;
    time_acknowledgement(tp, segment);
    bool was_recovering = tp->t_flags & TF_RECOVERY;
    if (was_recovering) recover(tp, ack, acked);
    else open_window(tp, acked);
    if (!(tp->t_flags & TF_RECOVERY)) tp->t_dupacks = 0;
    bool has_fin = drop_acknowledged(tp, ack);
    tp->t_rxtshift = 0;
    tp->t_softerror = 0;
    tcp_set_rto(tp);
    if (ack == tp->snd_max) tp->t_timer[TCPT_REXMT] = 0;
    else if (!tp->t_timer[TCPT_PERSIST]) tcp_start_rexmt(tp);
    if (was_recovering && tp->t_flags & TF_RECOVERY) retransmit_first(tp);
    return has_fin ? fin_acknowledged(tp) : true;
}

void tcp_update_window(struct tcpcb *tp, const struct tcp_segment *segment) {
    uint32_t window = segment->window << tp->snd_scale;
    bool is_newer = SEQ_LT(tp->snd_wl1, segment->seq) ||
                    (tp->snd_wl1 == segment->seq &&
                     (SEQ_LT(tp->snd_wl2, segment->ack) || (tp->snd_wl2 == segment->ack && window > tp->snd_wnd)));
    if (!is_newer) return;
    tp->snd_wnd = window;
    tp->snd_wl1 = segment->seq;
    tp->snd_wl2 = segment->ack;
    tp->max_sndwnd = MAXIMUM(tp->max_sndwnd, window);
    if (window > 0 && tp->t_timer[TCPT_PERSIST]) {
        tp->t_timer[TCPT_PERSIST] = 0;
        tp->t_rxtshift = 0;
        /* A probe's byte that the peer did not take is sent again. */
        if (SEQ_GT(tp->snd_max, tp->snd_una)) tp->snd_nxt = tp->snd_una;
    }
}
