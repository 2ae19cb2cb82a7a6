/* Sockets: what an application sees. Calls return 0 or an errno value. */
#ifndef NETWORK_SOCKET_H
#define NETWORK_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "mbuf.h"

struct ifnet;
struct inpcb;
struct socket;

/* Data that wait in a socket, towards the application or the network. */
struct sockbuf {
    unsigned sb_cc, sb_hiwat;                 /* Bytes, and how many may be there, in the host's memory. */
    unsigned sb_adapter_cc, sb_adapter_hiwat; /* The same in an adapter's memory; sb_cc does not include them. */
    struct mbuf *sb_mb, *sb_mbtail;           /* A stream's bytes; of datagrams the first one, and the last, by m_nextpkt. */
    struct mbuf *sb_found;                    /* The mbuf that sbfind() found last; NULL: none. */
    unsigned sb_found_at;                     /* Where it begins. */
};

/* The operations of a transport protocol on a socket. */
struct protosw {
    int pr_type;
    bool pr_is_stream;
    int (*pr_attach)(struct socket *so);
    int (*pr_bind)(struct socket *so, const struct sockaddr_in *address);
    int (*pr_listen)(struct socket *so);
    int (*pr_connect)(struct socket *so, const struct sockaddr_in *address);
    /* The application closes: the protocol frees the socket, now or later, by sofree(). */
    void (*pr_detach)(struct socket *so);
    void (*pr_abort)(struct socket *so);
    void (*pr_shutdown)(struct socket *so);
    /* Sends a chain: of a stream as much as it likes, now or later; a datagram to an address (NULL: the connected). */
    int (*pr_send)(struct socket *so, struct mbuf *m, const struct sockaddr_in *to);
    /* The application has taken data. */
    void (*pr_received)(struct socket *so);
    /* Bytes from `at` to the end of the packet that has this byte of a call's data; for buffers that fit packets. */
    int (*pr_segment)(struct socket *so, const struct ifnet *ifp, int at, int total);
};

/* so_state */
#define SS_CONNECTED 0x01
#define SS_CONNECTING 0x02
#define SS_CANT_SEND 0x04
#define SS_CANT_RECEIVE 0x08
#define SS_LISTENING 0x10
#define SS_CLOSED 0x20 /* The application has closed it. */
#define SS_QUEUED 0x40 /* Waits for accept. */

/* so_options */
#define SOPT_NODELAY 0x1
#define SOPT_KEEPALIVE 0x2
#define SOPT_BROADCAST 0x4
#define SOPT_NONBLOCKING 0x8

struct socket {
    const struct protosw *so_proto;
    unsigned so_state, so_options;
    int so_error; /* To be reported once. */
    struct sockbuf so_snd, so_rcv;
    struct inpcb *so_pcb;
    struct socket *so_head, *so_queue, *so_next; /* The listening socket; its connections that wait, in order. */
    int so_qlen, so_q0len, so_qlimit;            /* Connections that are established; not yet; the limit of both. */
};

int socreate(int type, struct socket **so);
int sobind(struct socket *so, const struct sockaddr_in *address);
int solisten(struct socket *so, int backlog);
int soaccept(struct socket *so, struct socket **connection, struct sockaddr_in *peer);
int soconnect(struct socket *so, const struct sockaddr_in *address);
int soshutdown(struct socket *so, int how);
int soclose(struct socket *so);

/* Resets a connection and closes the socket. */
void soabort(struct socket *so);

/* Sends what `uio` describes; it returns when the data are buffered. uio_resid tells what was not sent. */
int sosend(struct socket *so, const struct sockaddr_in *to, struct uio *uio);

/* Receives into `uio`: of a stream what is there (all of it with MSG_WAITALL in `flags`), or a datagram with its sender in `from`
 * (may be NULL). A resid that is unchanged means the end of a stream. */
int soreceive(struct socket *so, struct sockaddr_in *from, struct uio *uio, int flags);

/* Sets or clears options (SOPT_*). */
void sosetopt(struct socket *so, unsigned options, bool on);

/* Reserves the sizes of the buffers: in the host's memory, and in an adapter's. */
void soreserve(struct socket *so, unsigned send, unsigned receive);
void soreserve_adapter(struct socket *so, unsigned send, unsigned receive);

/* Whether soreceive() or soaccept(), or sosend(), would not wait. */
bool soreadable(const struct socket *so);
bool sowriteable(const struct socket *so);

/* Functions that protocols call. */
struct socket *sonewconn(struct socket *head);       /* A new connection of a listening socket; NULL if there are too many. */
void soisconnected(struct socket *so);               /* It is established. */
void soisdisconnected(struct socket *so, int error); /* It is gone. */
void socantreceive(struct socket *so);               /* The peer sends no more. */
void sofree(struct socket *so);                      /* Frees a socket that the protocol no longer needs. */

/* Socket buffers. */
unsigned sbspace(const struct sockbuf *sb);                /* Bytes for which there is room. */
unsigned sblength(const struct sockbuf *sb);               /* Bytes in it. */
void sbappend(struct sockbuf *sb, struct mbuf *m);         /* Appends to a stream. */
void sbappend_record(struct sockbuf *sb, struct mbuf *m);  /* Appends a datagram. */
void sbdrop(struct sockbuf *sb, unsigned length);          /* Removes bytes of a stream from the front. */
void sbdrop_record(struct sockbuf *sb);                    /* Removes the first datagram. */
void sbflush(struct sockbuf *sb);                          /* Removes all. */
struct mbuf *sbfind(struct sockbuf *sb, unsigned *offset); /* The mbuf with a stream's byte; *offset becomes one into it. */

/* Moves bytes between an mbuf and the application, by the processor or as the mbuf says. */
int sb_move(struct mbuf *m, int offset, int length, struct uio *uio);

#endif
