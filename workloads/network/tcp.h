/* The Transmission Control Protocol (RFC 9293), with window scaling and timestamps (RFC 7323), NewReno (RFC 5681, 6582), and
 * retransmission timeouts by RFC 6298. Fields have BSD's names. */
#ifndef NETWORK_TCP_H
#define NETWORK_TCP_H

#include "ip.h"
#include "pcb.h"
#include "socket.h"

#define TH_FIN 0x01
#define TH_SYN 0x02
#define TH_RST 0x04
#define TH_PUSH 0x08
#define TH_ACK 0x10
#define TH_URG 0x20

#define TCP_HEADER 20
#define TCP_DEFAULT_MSS 536
#define TCP_MAXWIN 65535
#define TCP_MAX_WINSHIFT 14
#define TCP_MAXRXTSHIFT 12 /* Retransmissions before a connection is given up. */
#define TCP_REASSEMBLY 512 /* Segments out of order that a connection keeps. */

/* A header, in the network's byte order. */
struct tcphdr {
    uint16_t th_sport, th_dport;
    uint32_t th_seq, th_ack;
    uint8_t th_off, th_flags; /* Length of the header in words, in the upper half. */
    uint16_t th_win, th_sum, th_urp;
};

/* Comparison of sequence numbers, modulo 2^32. */
static inline bool SEQ_LT(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }
static inline bool SEQ_LEQ(uint32_t a, uint32_t b) { return (int32_t)(a - b) <= 0; }
static inline bool SEQ_GT(uint32_t a, uint32_t b) { return (int32_t)(a - b) > 0; }
static inline bool SEQ_GEQ(uint32_t a, uint32_t b) { return (int32_t)(a - b) >= 0; }

/* In the order of a connection's life; those from TCPS_ESTABLISHED on have received a SYN that was acknowledged. */
enum tcp_state {
    TCPS_CLOSED,
    TCPS_LISTEN,
    TCPS_SYN_SENT,
    TCPS_SYN_RECEIVED,
    TCPS_ESTABLISHED,
    TCPS_CLOSE_WAIT,
    TCPS_FIN_WAIT_1,
    TCPS_CLOSING,
    TCPS_LAST_ACK,
    TCPS_FIN_WAIT_2,
    TCPS_TIME_WAIT,
};

enum tcp_timer { TCPT_REXMT, TCPT_PERSIST, TCPT_KEEP, TCPT_2MSL, TCPT_COUNT };

/* t_flags */
#define TF_ACKNOW 0x0001     /* Acknowledge at once. */
#define TF_DELACK 0x0002     /* Acknowledge with the fast timer. */
#define TF_SENTFIN 0x0004    /* The FIN has been sent. */
#define TF_SCALING 0x0008    /* Both sides scale windows. */
#define TF_TIMESTAMPS 0x0010 /* Both sides send timestamps. */
#define TF_RECOVERY 0x0020   /* Fast recovery. */
#define TF_FORCE 0x0040      /* Send a byte into a closed window. */
#define TF_ADAPTER 0x0080    /* Adapter buffers are used. */
#define TF_RESERVED 0x0100   /* The interface has adjusted the socket's buffers. */

/* A segment that came too early. */
struct tcp_segment_queued {
    struct tcp_segment_queued *next;
    uint32_t seq;
    int length;
    bool has_fin;
    struct mbuf *data;
};

struct tcpcb {
    struct inpcb *t_inpcb;
    enum tcp_state t_state;
    unsigned t_flags;
    unsigned t_timer[TCPT_COUNT]; /* Periods of the slow timer that are left; 0: off. */
    unsigned t_maxseg;            /* Bytes of data in a full segment, with the options that each has. */
    unsigned t_peer_mss;          /* What the peer's MSS option said, bounded by our interface. */

    uint32_t iss, snd_una, snd_nxt, snd_max, snd_wl1, snd_wl2, snd_wnd, max_sndwnd;
    uint32_t irs, rcv_nxt, rcv_adv, rcv_wnd;
    uint8_t snd_scale, rcv_scale;

    uint32_t snd_cwnd, snd_ssthresh, snd_recover;
    unsigned t_dupacks;

    bool t_has_rtt; /* t_srtt and t_rttvar, in eighths and quarters of a millisecond, are valid. */
    int t_srtt, t_rttvar;
    unsigned t_rto_ms, t_rxtshift;
    bool t_is_timed; /* Without timestamps: t_rtseq was sent at t_rtt_start, once. */
    uint32_t t_rtseq;
    uint64_t t_rtt_start;

    uint32_t ts_recent, last_ack_sent;
    uint64_t ts_recent_age, t_last_received, t_last_sent;
    unsigned t_keep_probes, t_unacknowledged; /* Full segments since the last acknowledgement that we sent. */
    int t_softerror;                          /* Reported by ICMP; told if the connection is given up. */

    struct tcp_segment_queued *t_segq;
    int t_segq_length;
};

/* Options of a received segment. */
struct tcp_options {
    bool has_mss, has_scale, has_timestamp;
    uint16_t mss;
    uint8_t scale;
    uint32_t ts_val, ts_ecr;
};

/* A received segment, in the host's byte order. */
struct tcp_segment {
    uint32_t source, destination; /* Addresses and ports in the network's byte order. */
    uint16_t sport, dport;
    uint32_t seq, ack, window; /* The window is not scaled. */
    uint8_t flags;
    int length;     /* Bytes of data. */
    struct mbuf *m; /* The data; NULL once they are taken. */
    struct ifnet *rcvif;
    struct tcp_options options;
};

/* Functions that sockets call. */
extern const struct protosw tcp_protocol;

/* tcp_input.c: takes a received packet with an IP header of `header` bytes. */
void tcp_input(struct mbuf *m, int header);

/* tcp_states.c: a segment for a connection that is not listening; it frees the data. */
void tcp_process(struct tcpcb *tp, struct tcp_segment *segment);

/* tcp_ack.c: an acknowledgement of a synchronized connection. False if the segment must be dropped. */
bool tcp_acknowledge(struct tcpcb *tp, struct tcp_segment *segment);
/* Takes a new window. */
void tcp_update_window(struct tcpcb *tp, const struct tcp_segment *segment);
/* A new sample of the round-trip time, in milliseconds. */
void tcp_sample_rtt(struct tcpcb *tp, unsigned ms);
/* Sets the retransmission timeout by the estimates and the number of retransmissions. */
void tcp_set_rto(struct tcpcb *tp);

/* tcp_data.c: data and FIN in order or not; takes segment->m. */
void tcp_take_data(struct tcpcb *tp, struct tcp_segment *segment);
void tcp_free_queue(struct tcpcb *tp);
/* Frees the early segments of all connections, which their peers send again: memory has run out. */
void tcp_drain(void);

/* tcp_output.c: sends what may be sent now, at least what flags ask for. 0 or an errno value. */
int tcp_output(struct tcpcb *tp);
/* Answers a segment by a reset (RFC 9293, 3.10.7.1). */
void tcp_reset(const struct tcp_segment *segment);
/* Sends a segment without data: a reset of a connection, or a keepalive probe. */
void tcp_send_control(struct tcpcb *tp, uint32_t seq, uint8_t flags);

/* tcp_options.c */
void tcp_parse_options(const unsigned char *at, int length, struct tcp_options *options);
/* Writes the options of a segment with these flags, at most 40 bytes; returns their length, a multiple of 4. */
int tcp_write_options(const struct tcpcb *tp, uint8_t flags, unsigned char *at);
/* Options of a received SYN: agrees on scaling, timestamps and the size of segments. */
void tcp_agree(struct tcpcb *tp, const struct tcp_options *options);
/* The MSS that we announce. */
uint16_t tcp_own_mss(const struct tcpcb *tp);
/* Chooses t_maxseg. */
void tcp_set_maxseg(struct tcpcb *tp);

/* tcp_timer.c */
void tcp_slow_timer(void);
void tcp_fast_timer(void);
/* Periods of the slow timer for a time; at least 1. */
unsigned tcp_periods(uint64_t ms);
void tcp_start_rexmt(struct tcpcb *tp);
void tcp_start_persist(struct tcpcb *tp);
void tcp_start_2msl(struct tcpcb *tp);
void tcp_start_keep(struct tcpcb *tp);

/* tcp_subr.c */
extern struct inpcbs tcp_blocks;
/* A control block in state LISTEN's child or for connect, with initial values. */
void tcp_begin(struct tcpcb *tp);
/* Lets the interface of a new connection adjust its socket. */
void tcp_reserve(struct tcpcb *tp);
/* Ends a connection with an error (0: none): the socket hears of it, the control block is freed. */
void tcp_close(struct tcpcb *tp, int error);
/* As tcp_close(), with a reset to the peer. */
void tcp_drop(struct tcpcb *tp, int error);
/* The congestion window of a new connection. */
uint32_t tcp_initial_window(const struct tcpcb *tp);
/* The socket; NULL if the application's end is gone. */
struct socket *tcp_socket(const struct tcpcb *tp);
/* An ICMP error about a segment of ours. */
void tcp_unreachable(const struct ip *ip, const unsigned char *transport, int error, unsigned mtu);
void tcp_shutdown_all(void);

#endif
