/* This stack as a subject of scenarios: an interface without a link layer, whose packets the runner takes and gives, and a clock that
 * the runner moves. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "network.h"
#include "scenario.h"
#include "tcp.h"

static struct ifnet interface;
static struct mbuf *first, **last = &first;
static uint64_t now = 1000000;
static struct socket *listener, *so;

static uint64_t clock_of_scenario(void) {
    return now;
}

static int start(struct ifnet *ifp, struct mbuf *m) {
    (void)ifp;
    m->m_nextpkt = NULL;
    *last = m;
    last = &m->m_nextpkt;
    return 0;
}

static int no_packets(struct ifnet *ifp) {
    (void)ifp;
    return 0;
}

static void begin(const struct scenario_settings *settings) {
    struct network_parameters wanted = {.slow_ms = 100,
                                        .fast_ms = 40,
                                        .minimum_rto_ms = 200,
                                        .msl_ms = 500,
                                        .keep_idle_ms = 1000,
                                        .keep_interval_ms = 1000,
                                        .keep_count = 3,
                                        .socket_buffer = settings->buffer,
                                        .maximum_mbufs = settings->mbufs,
                                        .initial_segments = 10,
                                        .seed = 7,
                                        .no_timestamps = settings->no_timestamps,
                                        .no_window_scaling = settings->no_scaling};
    network_set_clock(clock_of_scenario);
    network_initialize(&wanted);
    interface = (struct ifnet){.if_name = "wire",
                               .if_address = htonl(SUBJECT_ADDRESS),
                               .if_netmask = htonl(0xffffff00),
                               .if_mtu = settings->mtu ? settings->mtu : 1500,
                               .if_fd = -1,
                               .if_start = start,
                               .if_poll = no_packets};
    if_attach(&interface);
    listener = so = NULL;
}

static int capture(unsigned char *packet, int size) {
    struct mbuf *m = first;
    if (!m) return 0;
    first = m->m_nextpkt;
    if (!first) last = &first;
    int length = MINIMUM(m->m_pkthdr.len, size);
    m_copydata(m, 0, length, packet);
    m_freem(m);
    return length;
}

static void end(void) {
    unsigned char packet[64];
    if (so) soclose(so);
    if (listener) soclose(listener);
    network_shutdown();
    while (capture(packet, sizeof packet)) {}
    if (m_allocated() != 0) scenario_fail("%u mbufs are not freed", m_allocated());
}

static void inject(unsigned char *packet, int length) {
    struct mbuf *head = m_getcl(M_PKTHDR), *tail = head;
    if (!head) return; /* As a driver without memory. */
    for (int at = 0; at < length;) {
        if (at > 0) tail = tail->m_next = m_getcl(0);
        tail->m_len = MINIMUM(MCLBYTES, length - at);
        memcpy(tail->m_data, packet + at, tail->m_len);
        at += tail->m_len;
    }
    head->m_pkthdr.len = length;
    head->m_pkthdr.rcvif = &interface;
    ip_input(head);
}

static void advance(unsigned ms) {
    for (; ms > 0; ms--) {
        now++;
        network_run_timers();
    }
}

static void check(const char *what, int error) {
    if (error) scenario_fail("%s: %s", what, strerror(error));
}

static void create(struct socket **result) {
    check("socket", socreate(SOCK_STREAM, result));
    sosetopt(*result, SOPT_NONBLOCKING, true);
}

static void make_listen(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(SUBJECT_PORT)};
    create(&listener);
    check("bind", sobind(listener, &here));
    check("listen", solisten(listener, 4));
}

static void make_connect(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(SUBJECT_PORT)};
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(PEER_PORT), .sin_addr = {htonl(PEER_ADDRESS)}};
    create(&so);
    check("bind", sobind(so, &here));
    int error = soconnect(so, &peer);
    check("connect", error == EINPROGRESS ? 0 : error);
}

static void make_accept(void) {
    struct sockaddr_in peer;
    check("accept", soaccept(listener, &so, &peer));
    if (peer.sin_port != htons(PEER_PORT)) scenario_fail("the peer's port is wrong");
}

static long move(char *bytes, unsigned length, enum uio_rw direction) {
    struct iovec range;
    struct uio uio;
    uio_of(&uio, &range, bytes, length, direction);
    int error = direction == UIO_WRITE ? sosend(so, NULL, &uio) : soreceive(so, NULL, &uio, 0);
    return error ? -error : (long)(length - uio.uio_resid);
}

static long make_write(char *bytes, unsigned length) {
    return move(bytes, length, UIO_WRITE);
}

static long make_read(char *bytes, unsigned length) {
    return move(bytes, length, UIO_READ);
}

static void make_shutdown(void) {
    check("shutdown", soshutdown(so, SHUT_WR));
}

static void make_close(void) {
    soclose(so);
    so = NULL;
}

static void make_abort(void) {
    soabort(so);
    so = NULL;
}

static void option(const char *name) {
    sosetopt(so ? so : listener, strcmp(name, "nodelay") == 0 ? SOPT_NODELAY : SOPT_KEEPALIVE, true);
}

static int take_error(void) {
    int error = so->so_error;
    so->so_error = 0;
    return error;
}

static const char *state(void) {
    static const char *const NAMES[] = {"CLOSED",     "LISTEN",     "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "CLOSE-WAIT",
                                        "FIN-WAIT-1", "CLOSING",    "LAST-ACK", "FIN-WAIT-2",   "TIME-WAIT"};
    struct inpcb *inp = in_pcblookup(&tcp_blocks, htonl(PEER_ADDRESS), htons(PEER_PORT), htonl(SUBJECT_ADDRESS), htons(SUBJECT_PORT));
    if (!inp || !inp->inp_faddr) return "CLOSED";
    return NAMES[((struct tcpcb *)inp->inp_ppcb)->t_state];
}

const struct subject stack_subject = {
    .name = "stack",       .begin = begin,         .end = end,           .inject = inject,         .capture = capture,
    .advance = advance,    .listen = make_listen,  .connect = make_connect, .accept = make_accept, .write = make_write,
    .read = make_read,     .shutdown = make_shutdown, .close = make_close, .abort = make_abort,    .option = option,
    .error = take_error,   .state = state,
};
