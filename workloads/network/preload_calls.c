/* Calls of sockets by a program, for the preloaded stack. Each is the host's own if the descriptor is. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "network.h"
#include "pcb.h"
#include "preload.h"

#define CHUNK 65536 /* Bytes of a file that are sent at a time. */

/* Whether a call must try again; waits for that. */
static bool shall_retry(const struct open_socket *open, int error, int flags, struct deadline *deadline) {
    if (error != EWOULDBLOCK || open->is_nonblocking || flags & MSG_DONTWAIT) return false;
    int left = preload_left(deadline);
    if (left == 0) return false;
    preload_wait(NULL, 0, left);
    return true;
}

/* Ends a call that has used a socket, which another thread may have closed meanwhile. */
static long finish(struct open_socket *open, long result, int error) {
    preload_release(open);
    return preload_leave(result, error);
}

static struct open_socket *begin(int descriptor) {
    struct open_socket *open = preload_enter(descriptor);
    if (open) open->references++;
    return open;
}

/* Sends or receives by ranges; `address` is the peer's, to send to or to be filled in. */
static long transfer(struct open_socket *open, struct iovec *ranges, int count, enum uio_rw direction, struct sockaddr_in *address, int flags) {
    struct uio uio = {.uio_iov = ranges, .uio_iovcnt = count, .uio_rw = direction};
    size_t total = 0;
    int error;
    for (int i = 0; i < count; i++) total += ranges[i].iov_len;
    uio.uio_resid = total;
    bool is_sent = direction == UIO_WRITE, is_whole = is_sent || flags & MSG_WAITALL;
    struct deadline deadline = {.ms = is_sent ? open->send_ms : open->receive_ms};
    /* A program that never waits lets the stack work here. */
    if (open->is_nonblocking || flags & MSG_DONTWAIT) network_poll(0);
    do {
        size_t before = uio.uio_resid;
        error = is_sent ? sosend(open->so, address, &uio) : soreceive(open->so, address, &uio, 0);
        /* A part has been moved, and the call is for all; at the end of a stream nothing has been. */
        if (!error && is_whole && uio.uio_resid > 0 && uio.uio_resid < before && open->type == SOCK_STREAM) error = EWOULDBLOCK;
    } while (shall_retry(open, error, flags, &deadline));
    open->activity++;
    if (error == EWOULDBLOCK && uio.uio_resid < total) error = 0;
    long result = finish(open, (long)(total - uio.uio_resid), error);
    if (error != EPIPE || flags & MSG_NOSIGNAL) return result;
    raise(SIGPIPE);
    errno = EPIPE;
    return -1;
}

/* By a copy of the ranges, since the stack changes them. A negative number is too large, as a size. */
static long transfer_ranges(struct open_socket *open, const struct iovec *ranges, size_t count, enum uio_rw direction, struct sockaddr_in *address,
                            int flags) {
    if (count > IOV_MAX) return finish(open, -1, EINVAL);
    struct iovec copy[count + 1];
    if (count > 0) memcpy(copy, ranges, count * sizeof *copy);
    return transfer(open, copy, (int)count, direction, address, flags);
}

static long transfer_bytes(struct open_socket *open, void *bytes, size_t length, enum uio_rw direction, struct sockaddr_in *address, int flags) {
    return transfer_ranges(open, &(struct iovec){bytes, length}, 1, direction, address, flags);
}

/* Gives an address to a program. */
static void tell(const struct sockaddr_in *from, void *to, socklen_t *size) {
    if (!to || !size) return;
    memcpy(to, from, MINIMUM(*size, (socklen_t)sizeof *from));
    *size = sizeof *from;
}

/* Takes an address from a program. 0 or an errno value. */
static int take_address(const void *from, socklen_t size, struct sockaddr_in *to) {
    if (!from || size < sizeof *to) return EINVAL;
    memcpy(to, from, sizeof *to);
    return to->sin_family == AF_INET ? 0 : EAFNOSUPPORT;
}

/* Bytes that wait, of which MSG_PEEK copies some. */
static long peek(struct open_socket *open, void *to, size_t length, int flags) {
    struct deadline deadline = {.ms = open->receive_ms};
    while (!soreadable(open->so))
        if (!shall_retry(open, EWOULDBLOCK, flags, &deadline)) return finish(open, -1, EWOULDBLOCK);
    struct uio uio;
    struct iovec range;
    uio_of(&uio, &range, to, length, UIO_READ);
    const struct mbuf *first = open->so->so_rcv.sb_mb;
    int error = 0;
    for (const struct mbuf *m = first && open->type == SOCK_DGRAM ? first->m_next : first; m && uio.uio_resid > 0 && !error; m = m->m_next)
        error = sb_move((struct mbuf *)m, 0, (int)MINIMUM((size_t)m->m_len, uio.uio_resid), &uio);
    return finish(open, (long)(length - uio.uio_resid), error);
}

static long receive(struct open_socket *open, void *to, size_t length, int flags, void *address, socklen_t *size) {
    struct sockaddr_in from = {0};
    if (flags & MSG_PEEK) return peek(open, to, length, flags);
    bool has_sender = open->type == SOCK_DGRAM && address;
    long got = transfer_bytes(open, to, length, UIO_READ, has_sender ? &from : NULL, flags);
    if (got >= 0 && has_sender) tell(&from, address, size);
    else if (got >= 0 && size) *size = 0;
    return got;
}

ssize_t read(int descriptor, void *to, size_t length) {
    struct open_socket *open = begin(descriptor);
    return open ? receive(open, to, length, 0, NULL, NULL) : REAL(read)(descriptor, to, length);
}

ssize_t recv(int descriptor, void *to, size_t length, int flags) {
    struct open_socket *open = begin(descriptor);
    return open ? receive(open, to, length, flags, NULL, NULL) : REAL(recv)(descriptor, to, length, flags);
}

ssize_t recvfrom(int descriptor, void *restrict to, size_t length, int flags, struct sockaddr *restrict address, socklen_t *restrict size) {
    struct open_socket *open = begin(descriptor);
    return open ? receive(open, to, length, flags, address, size) : REAL(recvfrom)(descriptor, to, length, flags, address, size);
}

/* The names of programs that were compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int descriptor, void *to, size_t length, size_t size) {
    if (length > size) abort();
    return read(descriptor, to, length);
}

ssize_t __recv_chk(int descriptor, void *to, size_t length, size_t size, int flags) {
    if (length > size) abort();
    return recv(descriptor, to, length, flags);
}

ssize_t __recvfrom_chk(int descriptor, void *to, size_t length, size_t size, int flags, struct sockaddr *address, socklen_t *address_size) {
    if (length > size) abort();
    return recvfrom(descriptor, to, length, flags, address, address_size);
}

ssize_t readv(int descriptor, const struct iovec *ranges, int count) {
    struct open_socket *open = begin(descriptor);
    return open ? transfer_ranges(open, ranges, (size_t)count, UIO_READ, NULL, 0) : REAL(readv)(descriptor, ranges, count);
}

ssize_t recvmsg(int descriptor, struct msghdr *message, int flags) {
    struct open_socket *open = begin(descriptor);
    if (!open) return REAL(recvmsg)(descriptor, message, flags);
    struct sockaddr_in from = {0};
    bool has_sender = open->type == SOCK_DGRAM && message->msg_name;
    long got = transfer_ranges(open, message->msg_iov, message->msg_iovlen, UIO_READ, has_sender ? &from : NULL, flags);
    if (got >= 0 && has_sender) tell(&from, message->msg_name, &message->msg_namelen);
    else message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
    return got;
}

ssize_t write(int descriptor, const void *from, size_t length) {
    struct open_socket *open = begin(descriptor);
    return open ? transfer_bytes(open, (void *)from, length, UIO_WRITE, NULL, 0) : REAL(write)(descriptor, from, length);
}

ssize_t send(int descriptor, const void *from, size_t length, int flags) {
    struct open_socket *open = begin(descriptor);
    return open ? transfer_bytes(open, (void *)from, length, UIO_WRITE, NULL, flags) : REAL(send)(descriptor, from, length, flags);
}

ssize_t writev(int descriptor, const struct iovec *ranges, int count) {
    struct open_socket *open = begin(descriptor);
    return open ? transfer_ranges(open, ranges, (size_t)count, UIO_WRITE, NULL, 0) : REAL(writev)(descriptor, ranges, count);
}

ssize_t sendto(int descriptor, const void *from, size_t length, int flags, const struct sockaddr *address, socklen_t size) {
    struct open_socket *open = begin(descriptor);
    struct sockaddr_in to;
    if (!open) return REAL(sendto)(descriptor, from, length, flags, address, size);
    int error = address ? take_address(address, size, &to) : 0;
    if (error) return finish(open, -1, error);
    return transfer_bytes(open, (void *)from, length, UIO_WRITE, address && open->type == SOCK_DGRAM ? &to : NULL, flags);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    struct open_socket *open = begin(descriptor);
    struct sockaddr_in to;
    if (!open) return REAL(sendmsg)(descriptor, message, flags);
    int error = message->msg_name ? take_address(message->msg_name, message->msg_namelen, &to) : 0;
    if (error) return finish(open, -1, error);
    return transfer_ranges(open, message->msg_iov, message->msg_iovlen, UIO_WRITE, message->msg_name && open->type == SOCK_DGRAM ? &to : NULL, flags);
}

/* A file is read and sent, as the stack knows no pages. */
ssize_t sendfile(int to, int from, off_t *offset, size_t length) {
    struct open_socket *open = preload_enter(to);
    if (!open) return REAL(sendfile)(to, from, offset, length);
    preload_leave(0, 0);
    static __thread char bytes[CHUNK];
    size_t sent = 0;
    while (sent < length) {
        off_t at = offset ? *offset : lseek(from, 0, SEEK_CUR);
        ssize_t got = pread(from, bytes, MINIMUM(length - sent, (size_t)CHUNK), at);
        ssize_t put = got > 0 ? write(to, bytes, got) : got;
        if (put <= 0) return sent > 0 ? (ssize_t)sent : put;
        if (offset) *offset += put;
        else lseek(from, put, SEEK_CUR);
        sent += put;
        if (put < got) break;
    }
    return (ssize_t)sent;
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t length) {
    return sendfile(to, from, offset, length);
}

int bind(int descriptor, const struct sockaddr *address, socklen_t size) {
    struct open_socket *open = begin(descriptor);
    struct sockaddr_in here;
    if (!open) return REAL(bind)(descriptor, address, size);
    int error = take_address(address, size, &here);
    return (int)finish(open, 0, error ? error : sobind(open->so, &here));
}

int listen(int descriptor, int backlog) {
    struct open_socket *open = begin(descriptor);
    if (!open) return REAL(listen)(descriptor, backlog);
    open->is_listening = true;
    return (int)finish(open, 0, solisten(open->so, backlog));
}

int connect(int descriptor, const struct sockaddr *address, socklen_t size) {
    struct open_socket *open = begin(descriptor);
    struct sockaddr_in peer;
    if (!open) return REAL(connect)(descriptor, address, size);
    int error = take_address(address, size, &peer);
    if (!error) error = soconnect(open->so, &peer);
    if (error == EINPROGRESS && !open->is_nonblocking) {
        while (open->so->so_state & SS_CONNECTING && !open->so->so_error) preload_wait(NULL, 0, -1);
        error = open->so->so_error;
        open->so->so_error = 0;
    }
    return (int)finish(open, 0, error);
}

int accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags) {
    struct open_socket *open = begin(descriptor);
    struct sockaddr_in peer = {0};
    struct socket *so;
    int error;
    if (!open) return REAL(accept4)(descriptor, address, size, flags);
    struct deadline deadline = {.ms = open->receive_ms};
    if (open->is_nonblocking) network_poll(0);
    do error = soaccept(open->so, &so, &peer);
    while (shall_retry(open, error, 0, &deadline));
    open->activity++;
    int connection = error ? -1 : preload_open(so, SOCK_STREAM, flags);
    if (!error && connection < 0) {
        error = errno;
        soclose(so);
    }
    if (!error) tell(&peer, address, size);
    return (int)finish(open, connection, error);
}

int accept(int descriptor, struct sockaddr *address, socklen_t *size) {
    return accept4(descriptor, address, size, 0);
}

int shutdown(int descriptor, int how) {
    struct open_socket *open = begin(descriptor);
    return open ? (int)finish(open, 0, soshutdown(open->so, how)) : REAL(shutdown)(descriptor, how);
}

int getsockname(int descriptor, struct sockaddr *restrict address, socklen_t *restrict size) {
    struct open_socket *open = begin(descriptor);
    if (!open) return REAL(getsockname)(descriptor, address, size);
    const struct inpcb *inp = open->so->so_pcb;
    struct sockaddr_in here = {.sin_family = AF_INET};
    if (inp) here.sin_port = inp->inp_lport, here.sin_addr.s_addr = inp->inp_laddr;
    tell(&here, address, size);
    return (int)finish(open, 0, 0);
}

int getpeername(int descriptor, struct sockaddr *restrict address, socklen_t *restrict size) {
    struct open_socket *open = begin(descriptor);
    if (!open) return REAL(getpeername)(descriptor, address, size);
    struct sockaddr_in peer;
    if (!open->so->so_pcb || !open->so->so_pcb->inp_faddr || open->so->so_state & SS_CONNECTING) return (int)finish(open, -1, ENOTCONN);
    in_peer(open->so->so_pcb, &peer);
    tell(&peer, address, size);
    return (int)finish(open, 0, 0);
}

/* Options that are the stack's; others that it has no use for are taken, too. */
static int set_option(struct open_socket *open, int level, int name, const void *value, socklen_t size) {
    int number = 0;
    if (size < sizeof number) return level == SOL_SOCKET && name == SO_BINDTODEVICE ? 0 : EINVAL;
    memcpy(&number, value, sizeof number);
    if (level == IPPROTO_TCP && name == TCP_NODELAY) sosetopt(open->so, SOPT_NODELAY, number);
    if (level != SOL_SOCKET) return level == IPPROTO_TCP || level == IPPROTO_IP ? 0 : ENOPROTOOPT;
    struct timeval time = {0};
    if (name == SO_RCVTIMEO || name == SO_SNDTIMEO) {
        if (size < sizeof time) return EINVAL;
        memcpy(&time, value, sizeof time);
    }
    int ms = time.tv_sec || time.tv_usec ? (int)(time.tv_sec * 1000 + time.tv_usec / 1000) : -1;
    switch (name) {
        case SO_RCVTIMEO: open->receive_ms = ms; break;
        case SO_SNDTIMEO: open->send_ms = ms; break;
        case SO_KEEPALIVE: sosetopt(open->so, SOPT_KEEPALIVE, number); break;
        case SO_BROADCAST: sosetopt(open->so, SOPT_BROADCAST, number); break;
        case SO_SNDBUF: open->so->so_snd.sb_hiwat = MAXIMUM(number, 4096); break;
        case SO_RCVBUF: open->so->so_rcv.sb_hiwat = MAXIMUM(number, 4096); break;
        case SO_ATTACH_FILTER: return ENOPROTOOPT;
        default: break;
    }
    return 0;
}

int setsockopt(int descriptor, int level, int name, const void *value, socklen_t size) {
    struct open_socket *open = begin(descriptor);
    return open ? (int)finish(open, 0, set_option(open, level, name, value, size)) : REAL(setsockopt)(descriptor, level, name, value, size);
}

/* The number that an option has; -1 if the stack has no such option. */
static int option(struct open_socket *open, int level, int name) {
    struct socket *so = open->so;
    int error = so->so_error;
    if (level == IPPROTO_TCP) return name == TCP_NODELAY ? !!(so->so_options & SOPT_NODELAY) : name == TCP_MAXSEG ? 1448 : -1;
    if (level != SOL_SOCKET) return -1;
    switch (name) {
        case SO_ERROR: so->so_error = 0; return error;
        case SO_TYPE: return open->type;
        case SO_DOMAIN: return AF_INET;
        case SO_PROTOCOL: return open->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
        case SO_ACCEPTCONN: return open->is_listening;
        case SO_KEEPALIVE: return !!(so->so_options & SOPT_KEEPALIVE);
        case SO_BROADCAST: return !!(so->so_options & SOPT_BROADCAST);
        case SO_SNDBUF: return (int)so->so_snd.sb_hiwat;
        case SO_RCVBUF: return (int)so->so_rcv.sb_hiwat;
        case SO_REUSEADDR: return 1;
        default: return -1;
    }
}

int getsockopt(int descriptor, int level, int name, void *restrict value, socklen_t *restrict size) {
    struct open_socket *open = begin(descriptor);
    if (!open) return REAL(getsockopt)(descriptor, level, name, value, size);
    int number = option(open, level, name);
    if (number < 0) return (int)finish(open, -1, ENOPROTOOPT);
    if (*size > sizeof number) *size = sizeof number;
    memcpy(value, &number, *size);
    return (int)finish(open, 0, 0);
}

int ioctl(int descriptor, unsigned long request, ...) {
    __builtin_va_list rest;
    __builtin_va_start(rest, request);
    void *argument = __builtin_va_arg(rest, void *);
    __builtin_va_end(rest);
    struct open_socket *open = begin(descriptor);
    if (!open) return REAL(ioctl)(descriptor, request, argument);
    int error = 0;
    if (request == FIONREAD) *(int *)argument = (int)sblength(&open->so->so_rcv);
    else if (request == FIONBIO) open->is_nonblocking = *(int *)argument;
    else error = ENOTTY;
    return (int)finish(open, 0, error);
}
