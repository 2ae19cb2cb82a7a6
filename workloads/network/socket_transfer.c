/* sosend and soreceive: data between the application and socket buffers. */
#include <errno.h>

#include "ifnet.h"
#include "network.h"
#include "pcb.h"
#include "socket.h"

#define LARGEST_CHUNK 65536 /* Bytes that are given to a protocol at a time. */

/* How data of one call get into mbufs. */
struct send_path {
    struct ifnet *ifp; /* With DART's entries, if its buffers may be used. */
    int total, at;     /* Bytes of the call's present chunk, and how many are in mbufs. */
    int boundary;      /* Where the present packet ends. */
    bool is_refused;   /* The driver has refused a buffer for the present packet. */
};

/* Whether the protocols and the interface of a socket know adapter buffers. */
static struct ifnet *adapter_of(const struct socket *so, const struct sockaddr_in *to) {
    uint32_t next, destination = to ? to->sin_addr.s_addr : so->so_pcb->inp_faddr;
    if (parameters.no_dart || so->so_snd.sb_adapter_hiwat == 0) return NULL;
    struct ifnet *ifp = route_lookup(destination, &next);
    return ifp && ifp->if_xmtbufalloc && ifp->if_uiomove ? ifp : NULL;
}

/* An mbuf with the next bytes in adapter's memory; NULL if the driver declines. */
static struct mbuf *adapter_mbuf(struct socket *so, struct send_path *path, struct uio *uio, int *error) {
    const struct sockbuf *sb = &so->so_snd;
    int wanted = MINIMUM(path->boundary, path->total) - path->at;
    if (sb->sb_adapter_cc + path->at + wanted > sb->sb_adapter_hiwat) return NULL;
    struct mbuf *m = m_get();
    if (!m) return NULL;
    int got = path->ifp->if_xmtbufalloc(path->ifp, m, wanted);
    if (got > 0) {
        m->m_len = got;
        *error = path->ifp->if_uiomove(m, 0, got, uio);
        if (!*error) {
            statistics.adapter_bytes += got;
            return m;
        }
    } else {
        statistics.adapter_refused++;
    }
    m_free(m);
    return NULL;
}

/* An mbuf with the next bytes in the host's memory, copied by the processor. */
static struct mbuf *host_mbuf(const struct send_path *path, struct uio *uio, int *error) {
    int left = path->total - path->at;
    struct mbuf *m = left <= MLEN ? m_get() : m_getcl(0);
    if (!m) {
        *error = ENOBUFS;
        return NULL;
    }
    m->m_len = MINIMUM(left, left <= MLEN ? MLEN : MCLBYTES);
    *error = uiomove(m->m_data, m->m_len, uio);
    if (!*error) return m;
    m_free(m);
    return NULL;
}

/* The next `total` bytes of a call as a chain. Once the driver has refused a buffer, the rest of the packet is in the host's memory:
 * a driver sees headers, then adapter's buffers, then the host's, in this order. */
static int fill(struct socket *so, const struct sockaddr_in *to, struct uio *uio, int total, struct mbuf **result) {
    struct send_path path = {.ifp = adapter_of(so, to), .total = total};
    struct mbuf *first = NULL, **link = &first;
    int error = 0;
    while (path.at < total && !error) {
        if (path.ifp && path.at >= path.boundary) {
            path.boundary = path.at + so->so_proto->pr_segment(so, path.ifp, path.at, total);
            path.is_refused = false;
        }
        struct mbuf *m = NULL;
        if (path.ifp && !path.is_refused) {
            m = adapter_mbuf(so, &path, uio, &error);
            path.is_refused = !m;
        }
        if (!m && !error) m = host_mbuf(&path, uio, &error);
        if (!m) break;
        path.at += m->m_len;
        *link = m;
        link = &m->m_next;
    }
    if (error) {
        m_freem(first);
        return error;
    }
    if (!first) first = m_get();
    if (!first) return ENOBUFS;
    first->m_flags |= M_PKTHDR;
    first->m_pkthdr = (struct pkthdr){.len = total};
    *result = first;
    return 0;
}

/* The error that keeps a socket from sending, if there is one. */
static int check_send(struct socket *so, const struct sockaddr_in *to) {
    int error = so->so_error;
    so->so_error = 0;
    if (error) return error;
    if (so->so_state & SS_CANT_SEND) return EPIPE;
    if (so->so_state & SS_CONNECTING) return 0;
    if (!(so->so_state & SS_CONNECTED)) return so->so_proto->pr_is_stream ? ENOTCONN : to ? 0 : EDESTADDRREQ;
    return 0;
}

static int send_datagram(struct socket *so, const struct sockaddr_in *to, struct uio *uio) {
    struct mbuf *m = NULL;
    int error = check_send(so, to);
    if (!error && uio->uio_resid > 65507) error = EMSGSIZE;
    if (!error) error = fill(so, to, uio, (int)uio->uio_resid, &m);
    return error ? error : so->so_proto->pr_send(so, m, to);
}

int sosend(struct socket *so, const struct sockaddr_in *to, struct uio *uio) {
    if (!so->so_proto->pr_is_stream) return send_datagram(so, to, uio);
    size_t before = uio->uio_resid;
    while (uio->uio_resid > 0) {
        int error = check_send(so, to);
        if (error) return error;
        if (!sowriteable(so) && sbspace(&so->so_snd) < uio->uio_resid) {
            if (so->so_options & SOPT_NONBLOCKING) return uio->uio_resid < before ? 0 : EWOULDBLOCK;
            network_poll(-1);
            continue;
        }
        struct mbuf *m;
        size_t space = MINIMUM(sbspace(&so->so_snd), LARGEST_CHUNK);
        error = fill(so, to, uio, (int)MINIMUM(space, uio->uio_resid), &m);
        if (!error) error = so->so_proto->pr_send(so, m, to);
        if (error) return error;
    }
    return 0;
}

static int receive_datagram(struct socket *so, struct sockaddr_in *from, struct uio *uio) {
    struct mbuf *m = so->so_rcv.sb_mb;
    int error = 0;
    if (from) m_copydata(m, 0, sizeof *from, from);
    for (m = m->m_next; m && uio->uio_resid > 0 && !error; m = m->m_next)
        error = sb_move(m, 0, (int)MINIMUM((size_t)m->m_len, uio->uio_resid), uio);
    sbdrop_record(&so->so_rcv);
    return error;
}

/* Moves what a stream has, up to the caller's bytes. */
static int receive_stream(struct socket *so, struct uio *uio) {
    struct sockbuf *sb = &so->so_rcv;
    while (uio->uio_resid > 0 && sb->sb_mb) {
        int part = (int)MINIMUM((size_t)sb->sb_mb->m_len, uio->uio_resid);
        int error = sb_move(sb->sb_mb, 0, part, uio);
        if (error) return error;
        sbdrop(sb, part);
    }
    so->so_proto->pr_received(so);
    return 0;
}

int soreceive(struct socket *so, struct sockaddr_in *from, struct uio *uio, int flags) {
    size_t before = uio->uio_resid;
    if (so->so_state & SS_LISTENING) return ENOTCONN;
    while (uio->uio_resid > 0) {
        if (so->so_rcv.sb_mb) {
            if (!so->so_proto->pr_is_stream) return receive_datagram(so, from, uio);
            int error = receive_stream(so, uio);
            if (error || !(flags & MSG_WAITALL)) return error;
            continue;
        }
        if (so->so_error && uio->uio_resid == before) {
            int error = so->so_error;
            so->so_error = 0;
            return error;
        }
        if (so->so_state & SS_CANT_RECEIVE || so->so_error) return 0;
        if (so->so_proto->pr_is_stream && !(so->so_state & (SS_CONNECTED | SS_CONNECTING))) return ENOTCONN;
        if (so->so_options & SOPT_NONBLOCKING) return uio->uio_resid < before ? 0 : EWOULDBLOCK;
        network_poll(-1);
    }
    return 0;
}
