/* TCP's timers. They count periods of a slow timer, whose length is a parameter: 500 ms in BSD, some 20 ms where losses are to be
 * repaired soon. */
#include <errno.h>

#include "network.h"
#include "tcp.h"

unsigned tcp_periods(uint64_t ms) {
    uint64_t periods = (ms + parameters.slow_ms - 1) / parameters.slow_ms;
    return (unsigned)MAXIMUM(periods, 1u);
}

/* The timer ends early in a period: one more makes the time at least what was asked for. */
static unsigned at_least(uint64_t ms) {
    return tcp_periods(ms) + 1;
}

/* The retransmission timeout with exponential backoff. */
static uint64_t backed_off(const struct tcpcb *tp) {
    return MINIMUM((uint64_t)tp->t_rto_ms << MINIMUM(tp->t_rxtshift, 12u), 64000u);
}

void tcp_start_rexmt(struct tcpcb *tp) {
    tp->t_timer[TCPT_REXMT] = at_least(backed_off(tp));
}

void tcp_start_persist(struct tcpcb *tp) {
    tp->t_timer[TCPT_PERSIST] = at_least(MINIMUM(backed_off(tp), 60000u));
    if (tp->t_rxtshift < TCP_MAXRXTSHIFT) tp->t_rxtshift++;
}

void tcp_start_2msl(struct tcpcb *tp) {
    tp->t_timer[TCPT_2MSL] = at_least(2 * parameters.msl_ms);
}

void tcp_start_keep(struct tcpcb *tp) {
    bool is_wanted = tcp_socket(tp)->so_options & SOPT_KEEPALIVE;
    tp->t_keep_probes = 0;
    tp->t_timer[TCPT_KEEP] = is_wanted ? at_least(parameters.keep_idle_ms) : 0;
}

/* Nothing was acknowledged in time: begins again from the first byte, with a window of one segment (RFC 5681, 3.1). */
static void retransmit(struct tcpcb *tp) {
    if (++tp->t_rxtshift > TCP_MAXRXTSHIFT) {
        tcp_drop(tp, tp->t_softerror ? tp->t_softerror : ETIMEDOUT);
        return;
    }
    statistics.tcp_timeouts++;
    if (tp->t_rxtshift == 1) {
        uint32_t flight = tp->snd_max - tp->snd_una;
        tp->snd_ssthresh = MAXIMUM(flight / 2, 2 * tp->t_maxseg);
    }
    tp->snd_cwnd = tp->t_maxseg;
    tp->snd_recover = tp->snd_max;
    tp->t_dupacks = 0;
    tp->t_flags &= ~TF_RECOVERY;
    tp->t_is_timed = false;
    tp->snd_nxt = tp->snd_una;
    tp->t_flags |= TF_ACKNOW;
    tcp_start_rexmt(tp);
    tcp_output(tp);
}

/* The window stays closed: a probe of one byte. */
static void probe_window(struct tcpcb *tp) {
    statistics.tcp_persist_probes++;
    tcp_start_persist(tp);
    tp->t_flags |= TF_FORCE;
    tcp_output(tp);
    tp->t_flags &= ~TF_FORCE;
}

/* Is the peer still there? */
static void probe_idle(struct tcpcb *tp) {
    if (tp->t_state < TCPS_ESTABLISHED) {
        tcp_drop(tp, tp->t_softerror ? tp->t_softerror : ETIMEDOUT);
        return;
    }
    uint64_t idle = network_now() - tp->t_last_received;
    if (!(tcp_socket(tp)->so_options & SOPT_KEEPALIVE)) return;
    if (idle < parameters.keep_idle_ms) {
        tp->t_keep_probes = 0;
        tp->t_timer[TCPT_KEEP] = at_least(parameters.keep_idle_ms - idle);
    } else if (tp->t_keep_probes++ >= parameters.keep_count) {
        tcp_drop(tp, ETIMEDOUT);
    } else {
        statistics.tcp_keep_probes++;
        tcp_send_control(tp, tp->snd_una - 1, TH_ACK);
        tp->t_timer[TCPT_KEEP] = at_least(parameters.keep_interval_ms);
    }
}

static void end_2msl(struct tcpcb *tp) {
    tcp_close(tp, 0);
}

static void (*const EXPIRED[TCPT_COUNT])(struct tcpcb *) = {
    [TCPT_REXMT] = retransmit,
    [TCPT_PERSIST] = probe_window,
    [TCPT_KEEP] = probe_idle,
    [TCPT_2MSL] = end_2msl,
};

static void slow(struct inpcb *inp) {
    struct tcpcb *tp = inp->inp_ppcb;
    unsigned expired = 0;
    bool is_kept = tcp_socket(tp)->so_options & SOPT_KEEPALIVE;
    if (is_kept && tp->t_state >= TCPS_ESTABLISHED && tp->t_state != TCPS_TIME_WAIT && !tp->t_timer[TCPT_KEEP]) tcp_start_keep(tp);
    for (int timer = 0; timer < TCPT_COUNT; timer++)
        if (tp->t_timer[timer] && --tp->t_timer[timer] == 0) expired |= 1u << timer;
    /* One at a time: it may free the block, and sets the others anew. */
    for (int timer = 0; timer < TCPT_COUNT; timer++) {
        if (!(expired & 1u << timer)) continue;
        for (int other = timer + 1; other < TCPT_COUNT; other++)
            if (expired & 1u << other) tp->t_timer[other] = 1;
        EXPIRED[timer](tp);
        return;
    }
}

void tcp_slow_timer(void) {
    in_pcbeach(&tcp_blocks, slow);
}

static void fast(struct inpcb *inp) {
    struct tcpcb *tp = inp->inp_ppcb;
    if (!(tp->t_flags & TF_DELACK)) return;
    statistics.tcp_delayed_acks++;
    tp->t_flags &= ~TF_DELACK;
    tp->t_flags |= TF_ACKNOW;
    tcp_output(tp);
}

void tcp_fast_timer(void) {
    in_pcbeach(&tcp_blocks, fast);
}
