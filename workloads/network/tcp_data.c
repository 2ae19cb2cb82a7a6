/* Data of segments: in order to the socket, early ones into a queue. */
#include <stdlib.h>

#include "network.h"
#include "tcp.h"

void tcp_free_queue(struct tcpcb *tp) {
    while (tp->t_segq) {
        struct tcp_segment_queued *next = tp->t_segq->next;
        m_freem(tp->t_segq->data);
        free(tp->t_segq);
        tp->t_segq = next;
    }
    tp->t_segq_length = 0;
}

static void drain(struct inpcb *inp) {
    tcp_free_queue(inp->inp_ppcb);
}

void tcp_drain(void) {
    in_pcbeach(&tcp_blocks, drain);
}

/* The peer's FIN has come in order. */
static void take_fin(struct tcpcb *tp) {
    tp->rcv_nxt++;
    tp->t_flags |= TF_ACKNOW;
    socantreceive(tcp_socket(tp));
    switch (tp->t_state) {
        case TCPS_SYN_RECEIVED:
        case TCPS_ESTABLISHED: tp->t_state = TCPS_CLOSE_WAIT; break;
        case TCPS_FIN_WAIT_1: tp->t_state = TCPS_CLOSING; break;
        case TCPS_FIN_WAIT_2:
            tp->t_state = TCPS_TIME_WAIT;
            for (int timer = 0; timer < TCPT_COUNT; timer++) tp->t_timer[timer] = 0;
            tcp_start_2msl(tp);
            break;
        default: break;
    }
}

/* Gives data in order to the socket, unless its application takes no more. */
static void deliver(struct tcpcb *tp, struct mbuf *m, int length) {
    struct socket *so = tcp_socket(tp);
    tp->rcv_nxt += length;
    statistics.tcp_bytes_received += length;
    if (so->so_state & SS_CANT_RECEIVE) m_freem(m);
    else sbappend(&so->so_rcv, m);
}

/* Puts an early segment among the others, without what they already have of it. */
static void enqueue(struct tcpcb *tp, struct tcp_segment *segment) {
    struct tcp_segment_queued **link = &tp->t_segq, *one;
    bool has_fin = segment->flags & TH_FIN;
    statistics.tcp_out_of_order++;
    for (; (one = *link) && SEQ_LEQ(one->seq, segment->seq); link = &one->next) {
        int known = (int)(one->seq + one->length - segment->seq);
        if (known <= 0) continue;
        known = MINIMUM(known, segment->length);
        m_adj(segment->m, known);
        segment->seq += known;
        segment->length -= known;
    }
    /* Later segments that the new one covers whole are freed; their bytes are the same. Others stay. */
    while ((one = *link) && segment->length > 0 && SEQ_LEQ(one->seq + one->length, segment->seq + segment->length) && !one->has_fin) {
        *link = one->next;
        m_freem(one->data);
        free(one);
        tp->t_segq_length--;
    }
    if (one && segment->length > 0 && SEQ_LT(one->seq, segment->seq + segment->length)) {
        int cut = (int)(segment->seq + segment->length - one->seq);
        m_adj(segment->m, -cut);
        segment->length -= cut;
        has_fin = false;
    }
    struct tcp_segment_queued *new = NULL;
    /* A full queue still takes what it waits for: it would never become shorter otherwise. */
    bool has_place = tp->t_segq_length < TCP_REASSEMBLY || segment->seq == tp->rcv_nxt;
    if ((segment->length > 0 || has_fin) && has_place) new = malloc(sizeof *new);
    if (!new) return;
    *new = (struct tcp_segment_queued){one, segment->seq, segment->length, has_fin, segment->m};
    segment->m = NULL;
    *link = new;
    tp->t_segq_length++;
}

/* Delivers what has become in order; true if a FIN was. */
static bool dequeue(struct tcpcb *tp) {
    struct tcp_segment_queued *one;
    bool has_fin = false;
    while (!has_fin && (one = tp->t_segq) && SEQ_LEQ(one->seq, tp->rcv_nxt)) {
        int known = (int)(tp->rcv_nxt - one->seq);
        if (known <= one->length) {
            m_adj(one->data, known);
            deliver(tp, one->data, one->length - known);
            has_fin |= one->has_fin;
        } else {
            m_freem(one->data);
        }
        tp->t_segq = one->next;
        tp->t_segq_length--;
        free(one);
    }
    if (has_fin) tcp_free_queue(tp);
    return has_fin;
}

void tcp_take_data(struct tcpcb *tp, struct tcp_segment *segment) {
    bool may_have_fin = tp->t_state < TCPS_CLOSING || tp->t_state == TCPS_FIN_WAIT_2;
    bool has_fin = segment->flags & TH_FIN && may_have_fin && tp->t_state != TCPS_CLOSE_WAIT;
    if (segment->length == 0 && !has_fin) return;
    if (!may_have_fin || tp->t_state == TCPS_CLOSE_WAIT) {
        /* After its FIN the peer sends nothing new: acknowledge what is repeated. */
        tp->t_flags |= TF_ACKNOW;
        return;
    }
    if (segment->seq == tp->rcv_nxt && !tp->t_segq) {
        if (segment->length > 0) {
            /* Every second full segment is acknowledged at once, others with the fast timer (RFC 9293, 3.8.6.3). */
            if ((unsigned)segment->length >= tp->t_maxseg / 2) tp->t_unacknowledged += MAXIMUM(segment->length / tp->t_maxseg, 1u);
            tp->t_flags |= tp->t_unacknowledged >= 2 ? TF_ACKNOW : TF_DELACK;
            deliver(tp, segment->m, segment->length);
            segment->m = NULL;
        }
    } else {
        /* A gap, or its end: the peer must know at once (RFC 5681, 4.2). */
        tp->t_flags |= TF_ACKNOW;
        if (!has_fin) segment->flags &= ~TH_FIN;
        enqueue(tp, segment);
        has_fin = dequeue(tp);
    }
    if (has_fin) take_fin(tp);
}
