/* The life of connections: what sockets ask for, and how control blocks come and go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "tcp.h"

struct inpcbs tcp_blocks;

struct socket *tcp_socket(const struct tcpcb *tp) {
    return tp->t_inpcb->inp_socket;
}

static struct tcpcb *block_of(const struct socket *so) {
    return so->so_pcb ? so->so_pcb->inp_ppcb : NULL;
}

static int tcp_attach(struct socket *so) {
    struct inpcb *inp = in_pcballoc(&tcp_blocks, so);
    struct tcpcb *tp = inp ? calloc(1, sizeof *tp) : NULL;
    if (!tp) {
        if (inp) in_pcbfree(&tcp_blocks, inp);
        return ENOBUFS;
    }
    so->so_pcb = inp;
    inp->inp_ppcb = tp;
    tp->t_inpcb = inp;
    tp->t_peer_mss = tp->t_maxseg = TCP_DEFAULT_MSS;
    tp->t_rto_ms = MAXIMUM(1000u, parameters.minimum_rto_ms); /* RFC 6298, 2.1. */
    return 0;
}

uint32_t tcp_initial_window(const struct tcpcb *tp) {
    return tp->t_maxseg * parameters.initial_segments;
}

void tcp_begin(struct tcpcb *tp) {
    struct socket *so = tcp_socket(tp);
    tp->iss = tp->snd_una = tp->snd_nxt = tp->snd_max = tp->snd_recover = network_random();
    tp->snd_ssthresh = TCP_MAXWIN << TCP_MAX_WINSHIFT;
    tp->snd_cwnd = tcp_initial_window(tp);
    tp->t_last_received = tp->t_last_sent = network_now();
    while (tp->rcv_scale < TCP_MAX_WINSHIFT && (unsigned)TCP_MAXWIN << tp->rcv_scale < sbspace(&so->so_rcv)) tp->rcv_scale++;
    tp->t_timer[TCPT_KEEP] = tcp_periods(parameters.connect_ms);
}

void tcp_reserve(struct tcpcb *tp) {
    uint32_t next;
    struct ifnet *ifp = route_lookup(tp->t_inpcb->inp_faddr, &next);
    if (!ifp || !ifp->if_sockbuf || parameters.no_dart || tp->t_flags & TF_RESERVED) return;
    tp->t_flags |= TF_RESERVED;
    ifp->if_sockbuf(ifp, tcp_socket(tp));
}

void tcp_close(struct tcpcb *tp, int error) {
    struct inpcb *inp = tp->t_inpcb;
    struct socket *so = inp->inp_socket;
    tcp_free_queue(tp);
    in_pcbfree(&tcp_blocks, inp);
    free(tp);
    so->so_pcb = NULL;
    soisdisconnected(so, error);
    /* Nobody else would free one that was closed, or never accepted. */
    if (so->so_state & SS_CLOSED || so->so_head) sofree(so);
}

void tcp_drop(struct tcpcb *tp, int error) {
    if (tp->t_state >= TCPS_SYN_RECEIVED && tp->t_state != TCPS_TIME_WAIT) tcp_send_control(tp, tp->snd_nxt, TH_RST | TH_ACK);
    tcp_close(tp, error);
}

static int tcp_bind(struct socket *so, const struct sockaddr_in *address) {
    return so->so_pcb ? in_pcbbind(&tcp_blocks, so->so_pcb, address) : EINVAL;
}

static int tcp_listen(struct socket *so) {
    struct tcpcb *tp = block_of(so);
    if (!tp || tp->t_state != TCPS_CLOSED) return EINVAL;
    if (!so->so_pcb->inp_lport) return EDESTADDRREQ;
    tp->t_state = TCPS_LISTEN;
    return 0;
}

static int tcp_connect(struct socket *so, const struct sockaddr_in *address) {
    struct tcpcb *tp = block_of(so);
    if (!tp || tp->t_state != TCPS_CLOSED) return EINVAL;
    int error = in_pcbconnect(&tcp_blocks, so->so_pcb, address->sin_addr.s_addr, address->sin_port);
    if (error) return error;
    tp->t_peer_mss = MINIMUM(tp->t_peer_mss, tcp_own_mss(tp));
    tcp_reserve(tp);
    tcp_begin(tp);
    tp->t_state = TCPS_SYN_SENT;
    so->so_state |= SS_CONNECTING;
    return tcp_output(tp);
}

/* Begins to close: the next state of one whose application sends no more. */
static void begin_close(struct tcpcb *tp) {
    switch (tp->t_state) {
        case TCPS_CLOSED:
        case TCPS_LISTEN:
        case TCPS_SYN_SENT: tcp_close(tp, 0); return;
        case TCPS_SYN_RECEIVED: return; /* The FIN follows once the connection is established. */
        case TCPS_ESTABLISHED: tp->t_state = TCPS_FIN_WAIT_1; break;
        case TCPS_CLOSE_WAIT: tp->t_state = TCPS_LAST_ACK; break;
        default: break;
    }
    tcp_output(tp);
}

static void tcp_shutdown(struct socket *so) {
    if (block_of(so)) begin_close(block_of(so));
}

static void tcp_detach(struct socket *so) {
    struct tcpcb *tp = block_of(so);
    if (!tp) {
        sofree(so);
        return;
    }
    /* Data that nobody will read, or that came after the close, are lost: the peer is told by a reset (RFC 9293, 3.6.1). */
    bool is_lost = sblength(&so->so_rcv) > 0;
    sbflush(&so->so_rcv);
    if (is_lost && tp->t_state >= TCPS_ESTABLISHED) tcp_drop(tp, 0);
    else if (tp->t_state == TCPS_FIN_WAIT_2) tcp_start_2msl(tp);
    else begin_close(tp);
}

static void tcp_abort(struct socket *so) {
    if (block_of(so)) tcp_drop(block_of(so), ECONNABORTED);
    else sofree(so);
}

static int tcp_send(struct socket *so, struct mbuf *m, const struct sockaddr_in *to) {
    struct tcpcb *tp = block_of(so);
    (void)to;
    if (!tp) {
        m_freem(m);
        return EPIPE;
    }
    for (const struct mbuf *one = m; one; one = one->m_next)
        if (one->m_flags & M_UIOMOVE) tp->t_flags |= TF_ADAPTER;
    sbappend(&so->so_snd, m);
    if (tp->t_state >= TCPS_ESTABLISHED) {
        int error = tcp_output(tp);
        /* A segment that could not be sent will be retransmitted. */
        if (error == EHOSTUNREACH) return error;
    }
    return 0;
}

static void tcp_received(struct socket *so) {
    struct tcpcb *tp = block_of(so);
    if (tp && tp->t_state >= TCPS_ESTABLISHED && tp->t_state != TCPS_TIME_WAIT) tcp_output(tp);
}

static int tcp_segment(struct socket *so, const struct ifnet *ifp, int at, int total) {
    const struct tcpcb *tp = block_of(so);
    (void)at, (void)total;
    int room = tp ? (int)tp->t_maxseg : TCP_DEFAULT_MSS;
    return ifp->if_bufrlen > 0 ? MINIMUM(room, ifp->if_bufrlen) : room;
}

const struct protosw tcp_protocol = {
    .pr_type = SOCK_STREAM,
    .pr_is_stream = true,
    .pr_attach = tcp_attach,
    .pr_bind = tcp_bind,
    .pr_listen = tcp_listen,
    .pr_connect = tcp_connect,
    .pr_detach = tcp_detach,
    .pr_abort = tcp_abort,
    .pr_shutdown = tcp_shutdown,
    .pr_send = tcp_send,
    .pr_received = tcp_received,
    .pr_segment = tcp_segment,
};

void tcp_unreachable(const struct ip *ip, const unsigned char *transport, int error, unsigned mtu) {
    uint16_t ports[2];
    uint32_t seq;
    memcpy(ports, transport, 4);
    memcpy(&seq, transport + 4, 4);
    seq = __builtin_bswap32(seq);
    struct inpcb *inp = in_pcblookup(&tcp_blocks, ip->ip_dst, ports[1], ip->ip_src, ports[0]);
    struct tcpcb *tp = inp && inp->inp_faddr ? inp->inp_ppcb : NULL;
    /* Only about a segment that is under way (RFC 5927). */
    if (!tp || SEQ_LT(seq, tp->snd_una) || SEQ_GEQ(seq, tp->snd_max)) return;
    if (error == EMSGSIZE) {
        if (mtu < 296 || mtu - IP_HEADER - TCP_HEADER >= tp->t_peer_mss) return;
        tp->t_peer_mss = mtu - IP_HEADER - TCP_HEADER;
        tcp_set_maxseg(tp);
        tp->snd_nxt = tp->snd_una;
        tcp_output(tp);
    } else if (tp->t_state == TCPS_SYN_SENT && error == ECONNREFUSED) {
        tcp_close(tp, error);
    } else {
        tp->t_softerror = error;
    }
}

/* Frees a block and its socket, unless another block's socket frees it. */
static void free_block(struct inpcb *inp) {
    struct socket *so = inp->inp_socket;
    struct tcpcb *tp = inp->inp_ppcb;
    tcp_free_queue(tp);
    free(tp);
    in_pcbfree(&tcp_blocks, inp);
    so->so_head = NULL;
    sofree(so);
}

void tcp_shutdown_all(void) {
    in_pcbeach(&tcp_blocks, free_block);
    memset(&tcp_blocks, 0, sizeof tcp_blocks);
}
