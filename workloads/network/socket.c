/* The life of sockets. */
#include "socket.h"

#include <errno.h>
#include <stdlib.h>

#include "network.h"
#include "pcb.h"
#include "tcp.h"
#include "udp.h"

int socreate(int type, struct socket **result) {
    const struct protosw *protocol = type == SOCK_STREAM ? &tcp_protocol : &udp_protocol;
    struct socket *so = calloc(1, sizeof *so);
    if (!so) return ENOBUFS;
    so->so_proto = protocol;
    soreserve(so, parameters.socket_buffer, parameters.socket_buffer);
    int error = protocol->pr_attach(so);
    if (error) {
        free(so);
        return error;
    }
    *result = so;
    return 0;
}

int sobind(struct socket *so, const struct sockaddr_in *address) {
    return so->so_proto->pr_bind(so, address);
}

int solisten(struct socket *so, int backlog) {
    if (!so->so_proto->pr_listen) return EOPNOTSUPP;
    int error = so->so_proto->pr_listen(so);
    if (error) return error;
    so->so_state |= SS_LISTENING;
    so->so_qlimit = MAXIMUM(backlog, 1);
    return 0;
}

/* Takes a connection out of the listening socket's queue. */
static void unqueue(struct socket *so) {
    struct socket *head = so->so_head;
    struct socket **link = &head->so_queue;
    while (*link && *link != so) link = &(*link)->so_next;
    if (*link) *link = so->so_next;
    if (so->so_state & SS_QUEUED) head->so_qlen--;
    else head->so_q0len--;
    so->so_state &= ~SS_QUEUED;
    so->so_head = so->so_next = NULL;
}

/* The first connection that may be accepted. */
static struct socket *established(const struct socket *head) {
    struct socket *so = head->so_queue;
    while (so && !(so->so_state & SS_QUEUED)) so = so->so_next;
    return so;
}

int soaccept(struct socket *so, struct socket **connection, struct sockaddr_in *peer) {
    if (!(so->so_state & SS_LISTENING)) return EINVAL;
    while (!established(so)) {
        if (so->so_options & SOPT_NONBLOCKING) return EWOULDBLOCK;
        network_poll(-1);
    }
    *connection = established(so);
    unqueue(*connection);
    if (peer) in_peer((*connection)->so_pcb, peer);
    return 0;
}

static int take_error(struct socket *so) {
    int error = so->so_error;
    so->so_error = 0;
    return error;
}

int soconnect(struct socket *so, const struct sockaddr_in *address) {
    if (so->so_state & SS_LISTENING) return EOPNOTSUPP;
    if (so->so_state & SS_CONNECTING) return EALREADY;
    if (so->so_state & SS_CONNECTED && so->so_proto->pr_is_stream) return EISCONN;
    int error = so->so_proto->pr_connect(so, address);
    if (error) return error;
    if (so->so_state & SS_CONNECTING && so->so_options & SOPT_NONBLOCKING) return EINPROGRESS;
    while (so->so_state & SS_CONNECTING && !so->so_error) network_poll(-1);
    return take_error(so);
}

int soshutdown(struct socket *so, int how) {
    if (!(so->so_state & SS_CONNECTED)) return ENOTCONN;
    if (how != SHUT_WR) {
        so->so_state |= SS_CANT_RECEIVE;
        sbflush(&so->so_rcv);
    }
    if (how != SHUT_RD && !(so->so_state & SS_CANT_SEND)) {
        so->so_state |= SS_CANT_SEND;
        if (so->so_proto->pr_shutdown) so->so_proto->pr_shutdown(so);
    }
    return 0;
}

/* Resets all connections that nobody has accepted. */
static void abort_queue(struct socket *so) {
    while (so->so_queue) {
        struct socket *connection = so->so_queue;
        unqueue(connection);
        soabort(connection);
    }
}

int soclose(struct socket *so) {
    abort_queue(so);
    so->so_state |= SS_CLOSED | SS_CANT_SEND | SS_CANT_RECEIVE;
    so->so_proto->pr_detach(so);
    return 0;
}

void soabort(struct socket *so) {
    so->so_state |= SS_CLOSED;
    so->so_proto->pr_abort(so);
}

void sofree(struct socket *so) {
    if (so->so_head) unqueue(so);
    sbflush(&so->so_snd);
    sbflush(&so->so_rcv);
    free(so);
}

void sosetopt(struct socket *so, unsigned options, bool on) {
    so->so_options = on ? so->so_options | options : so->so_options & ~options;
}

void soreserve(struct socket *so, unsigned send, unsigned receive) {
    so->so_snd.sb_hiwat = send;
    so->so_rcv.sb_hiwat = receive;
}

void soreserve_adapter(struct socket *so, unsigned send, unsigned receive) {
    so->so_snd.sb_adapter_hiwat = send;
    so->so_rcv.sb_adapter_hiwat = receive;
}

bool soreadable(const struct socket *so) {
    if (so->so_state & SS_LISTENING) return established(so) != NULL;
    return so->so_error || so->so_rcv.sb_mb || so->so_state & SS_CANT_RECEIVE;
}

bool sowriteable(const struct socket *so) {
    if (so->so_error || so->so_state & SS_CANT_SEND) return true;
    return !(so->so_state & SS_CONNECTING) && sbspace(&so->so_snd) >= MINIMUM(2048, so->so_snd.sb_hiwat);
}

struct socket *sonewconn(struct socket *head) {
    if (head->so_qlen + head->so_q0len >= head->so_qlimit * 3 / 2 + 1) return NULL;
    struct socket *so = calloc(1, sizeof *so);
    if (!so) return NULL;
    so->so_proto = head->so_proto;
    so->so_options = head->so_options;
    so->so_state = SS_CONNECTING;
    soreserve(so, head->so_snd.sb_hiwat, head->so_rcv.sb_hiwat);
    if (so->so_proto->pr_attach(so)) {
        free(so);
        return NULL;
    }
    so->so_head = head;
    head->so_q0len++;
    struct socket **link = &head->so_queue;
    while (*link) link = &(*link)->so_next;
    *link = so;
    return so;
}

void soisconnected(struct socket *so) {
    so->so_state &= ~SS_CONNECTING;
    so->so_state |= SS_CONNECTED;
    if (so->so_head && !(so->so_state & SS_QUEUED)) {
        so->so_state |= SS_QUEUED;
        so->so_head->so_q0len--;
        so->so_head->so_qlen++;
    }
}

void soisdisconnected(struct socket *so, int error) {
    so->so_state &= ~(SS_CONNECTING | SS_CONNECTED);
    so->so_state |= SS_CANT_SEND | SS_CANT_RECEIVE;
    if (error) so->so_error = error;
    sbflush(&so->so_snd);
}

void socantreceive(struct socket *so) {
    so->so_state |= SS_CANT_RECEIVE;
}
