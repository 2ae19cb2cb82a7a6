/* Options of TCP, and what both sides agree on by them. */
#include <arpa/inet.h>
#include <string.h>

#include "network.h"
#include "tcp.h"

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_MSS 2
#define OPTION_SCALE 3
#define OPTION_TIMESTAMP 8

static uint32_t load32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static void store32(unsigned char *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
}

void tcp_parse_options(const unsigned char *at, int length, struct tcp_options *options) {
    memset(options, 0, sizeof *options);
    while (length > 0 && at[0] != OPTION_END) {
        if (at[0] == OPTION_NOP) {
            at++;
            length--;
            continue;
        }
        if (length < 2 || at[1] < 2 || at[1] > length) return;
        if (at[0] == OPTION_MSS && at[1] == 4) {
            options->has_mss = true;
            options->mss = at[2] << 8 | at[3];
        } else if (at[0] == OPTION_SCALE && at[1] == 3) {
            options->has_scale = true;
            options->scale = MINIMUM(at[2], TCP_MAX_WINSHIFT);
        } else if (at[0] == OPTION_TIMESTAMP && at[1] == 10) {
            options->has_timestamp = true;
            options->ts_val = load32(at + 2);
            options->ts_ecr = load32(at + 6);
        }
        length -= at[1];
        at += at[1];
    }
}

uint16_t tcp_own_mss(const struct tcpcb *tp) {
    uint32_t next;
    const struct ifnet *ifp = route_lookup(tp->t_inpcb->inp_faddr, &next);
    return ifp ? ifp->if_mtu - IP_HEADER - TCP_HEADER : TCP_DEFAULT_MSS;
}

void tcp_set_maxseg(struct tcpcb *tp) {
    tp->t_maxseg = tp->t_peer_mss - (tp->t_flags & TF_TIMESTAMPS ? 12 : 0);
}

int tcp_write_options(const struct tcpcb *tp, uint8_t flags, unsigned char *at) {
    int length = 0;
    bool is_answer = flags & TH_ACK;
    if (flags & TH_SYN) {
        uint16_t mss = tcp_own_mss(tp);
        memcpy(at, (unsigned char[]){OPTION_MSS, 4, mss >> 8, mss & 255}, 4);
        length = 4;
        if (is_answer ? tp->t_flags & TF_SCALING : !parameters.no_window_scaling) {
            memcpy(at + length, (unsigned char[]){OPTION_NOP, OPTION_SCALE, 3, tp->rcv_scale}, 4);
            length += 4;
        }
    }
    bool offers = flags & TH_SYN && !is_answer && !parameters.no_timestamps;
    if (offers || tp->t_flags & TF_TIMESTAMPS) {
        memcpy(at + length, (unsigned char[]){OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMP, 10}, 4);
        store32(at + length + 4, (uint32_t)network_now());
        store32(at + length + 8, is_answer ? tp->ts_recent : 0);
        length += 12;
    }
    return length;
}

void tcp_agree(struct tcpcb *tp, const struct tcp_options *options) {
    unsigned mss = options->has_mss ? options->mss : TCP_DEFAULT_MSS;
    if (options->has_scale && !parameters.no_window_scaling) {
        tp->t_flags |= TF_SCALING;
        tp->snd_scale = options->scale;
    } else {
        tp->snd_scale = tp->rcv_scale = 0;
    }
    if (options->has_timestamp && !parameters.no_timestamps) {
        tp->t_flags |= TF_TIMESTAMPS;
        tp->ts_recent = options->ts_val;
        tp->ts_recent_age = network_now();
    }
    /* A peer that announces next to nothing would make us send a header for each few bytes. */
    tp->t_peer_mss = MINIMUM(MAXIMUM(mss, 64u), tcp_own_mss(tp));
    tcp_set_maxseg(tp);
    tp->snd_cwnd = tcp_initial_window(tp);
}
