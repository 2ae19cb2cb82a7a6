/* Sends and receives real traffic through a TAP device, and checks every byte. The device, and the host's side of it, are in a
 * network of the program's own, which vanishes with it.
 *
 *     transfer [NAME=VALUE ...]
 *
 * send, receive, echo: bytes; datagrams: their number; loss, duplicate, reorder, corrupt: millionths; delay, jitter, slow: ms;
 * checksum, tso: 1 for offloading; dart: 1 for an adapter with its own memory, of `buffers` in each direction (0: 8 MB), of which
 * the stack makes no use with nodart=1, and which refuses one of `refuse` packets; seed; probe: 1 for ICMP; mtu; quiet: 1 to print
 * nothing. Otherwise it prints what it counted. Its status is 0 if all was right. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dart.h"
#include "driver.h"
#include "network.h"
#include "pattern.h"
#include "socket.h"
#include "transfer.h"

#define BUFFER 65536
#define SMALLEST_MTU 576
#define LARGEST_MTU 9216

/* The arguments, by their names. */
static struct {
    const char *name;
    uint64_t value;
} arguments[] = {{"send", 0},   {"receive", 0}, {"echo", 0},  {"datagrams", 0}, {"loss", 0}, {"duplicate", 0}, {"reorder", 0}, {"corrupt", 0},
                 {"delay", 0},  {"jitter", 0},  {"slow", 20}, {"checksum", 0},  {"tso", 0},  {"seed", 1},      {"probe", 0},   {"mtu", 1500},
                 {"quiet", 0},  {"dart", 0},    {"buffers", 0}, {"refuse", 0}, {"nodart", 0}};

static uint64_t argument(const char *name) {
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (strcmp(arguments[i].name, name) == 0) return arguments[i].value;
    abort();
}

static bool set_argument(const char *text) {
    const char *value = strchr(text, '=');
    for (size_t i = 0; value && i < sizeof arguments / sizeof *arguments; i++) {
        size_t length = strlen(arguments[i].name);
        if (length != (size_t)(value - text) || strncmp(arguments[i].name, text, length) != 0) continue;
        return parse_number(value + 1, &arguments[i].value);
    }
    return false;
}

static bool has_work(void) {
    return argument("send") || argument("receive") || argument("echo") || argument("datagrams") || argument("probe");
}

static void print_usage(const char *wrong) {
    if (wrong) fprintf(stderr, "transfer: %s is no argument with a number\n", wrong);
    fprintf(stderr, "usage: transfer NAME=NUMBER ..., with these names:");
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) fprintf(stderr, " %s", arguments[i].name);
    fprintf(stderr, "\nexample: transfer send=1000000 receive=1000000 loss=1000\n");
    exit(2);
}

/* Ends the program with what went wrong. */
static void fail(const char *what, int error) {
    fprintf(stderr, "transfer: %s: %s\n", what, error ? strerror(error) : "wrong bytes");
    exit(1);
}

static void expect(const char *what, int error) {
    if (error) fail(what, error);
}

static char buffer[BUFFER], answer[BUFFER];

static struct sockaddr_in address_of(uint32_t address, uint16_t port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(address)}};
}

static struct socket *connected(int type, uint16_t port) {
    struct sockaddr_in address = address_of(HOST_ADDRESS, port);
    struct socket *so;
    expect("socket", socreate(type, &so));
    expect("connect", soconnect(so, &address));
    return so;
}

/* Sends `length` bytes of `data`; how many were sent. */
static size_t put(struct socket *so, char *data, size_t length) {
    struct iovec range;
    struct uio uio;
    uio_of(&uio, &range, data, length, UIO_WRITE);
    int error = sosend(so, NULL, &uio);
    if (error && error != EWOULDBLOCK) fail("send", error);
    return length - uio.uio_resid;
}

/* Receives up to `length` bytes; how many came, or -1 if there are none now. */
static ssize_t get(struct socket *so, char *data, size_t length) {
    struct iovec range;
    struct uio uio;
    uio_of(&uio, &range, data, length, UIO_READ);
    int error = soreceive(so, NULL, &uio, 0);
    if (error == EWOULDBLOCK) return -1;
    expect("receive", error);
    return length - uio.uio_resid;
}

/* To the host, which tells whether all came. */
static void send_all(uint64_t bytes, uint64_t seed) {
    struct socket *so = connected(SOCK_STREAM, SINK_PORT);
    for (uint64_t position = 0; position < bytes;) {
        /* Sizes of all kinds. */
        size_t wanted = 1 + network_random() % BUFFER, part = MINIMUM(bytes - position, wanted);
        pattern_fill(buffer, part, position, seed);
        position += put(so, buffer, part);
    }
    expect("shutdown", soshutdown(so, SHUT_WR));
    if (get(so, answer, 1) != 1 || answer[0] != 'y') fail("the host's verdict on what was sent", 0);
    if (get(so, answer, 1) != 0) fail("the end", 0);
    soclose(so);
}

/* From the host, which connects to us. */
static void receive_all(struct socket *listener, uint64_t bytes, uint64_t seed) {
    struct socket *so;
    uint64_t position = 0;
    ssize_t got;
    expect("accept", soaccept(listener, &so, NULL));
    while ((got = get(so, buffer, 1 + network_random() % BUFFER)) > 0) {
        if (!pattern_is(buffer, got, position, seed)) fail("received", 0);
        position += got;
    }
    if (position != bytes) fail("the number of bytes received", 0);
    soclose(so);
}

/* Both directions at a time. */
static void echo_all(uint64_t bytes, uint64_t seed) {
    struct socket *so = connected(SOCK_STREAM, ECHO_PORT);
    uint64_t sent = 0, received = 0;
    sosetopt(so, SOPT_NONBLOCKING, true);
    while (received < bytes) {
        bool is_idle = true;
        if (sent < bytes && sowriteable(so)) {
            size_t part = MINIMUM(bytes - sent, BUFFER);
            pattern_fill(buffer, part, sent, seed);
            sent += put(so, buffer, part);
            is_idle = false;
            if (sent == bytes) expect("shutdown", soshutdown(so, SHUT_WR));
        }
        if (soreadable(so)) {
            ssize_t got = get(so, answer, BUFFER);
            if (got == 0) fail("early end of the echo", 0);
            if (got > 0 && !pattern_is(answer, got, received, seed)) fail("echo", 0);
            if (got > 0) received += got;
            is_idle = false;
        }
        network_poll(is_idle ? -1 : 0);
    }
    sosetopt(so, SOPT_NONBLOCKING, false);
    if (get(so, answer, 1) != 0) fail("the echo's end", 0);
    soclose(so);
}

/* Datagrams of all sizes, one after the other; lost ones are sent again. */
static void datagrams(uint64_t number, uint64_t seed) {
    struct socket *so = connected(SOCK_DGRAM, UDP_PORT);
    for (uint64_t i = 0; i < number; i++) {
        size_t length = i % 3 == 0 ? network_random() % 1472 : network_random() % 60000;
        pattern_fill(buffer, length, 8 * i, seed);
        for (int attempt = 0;; attempt++) {
            if (attempt == 50) fail("datagrams", ETIMEDOUT);
            put(so, buffer, length);
            uint64_t until = network_now() + 200;
            while (!soreadable(so) && network_now() < until) network_poll(20);
            if (!soreadable(so)) continue;
            /* An answer to an earlier attempt has other bytes or another length. */
            if (get(so, answer, BUFFER) == (ssize_t)length && pattern_is(answer, length, 8 * i, seed)) break;
        }
    }
    soclose(so);
}

static void report(void) {
    const struct network_statistics *s = &statistics;
    printf("tcp: sent %llu received %llu bytes sent %llu received %llu\n", (unsigned long long)s->tcp_sent,
           (unsigned long long)s->tcp_received, (unsigned long long)s->tcp_bytes_sent, (unsigned long long)s->tcp_bytes_received);
    printf("tcp: retransmitted %llu fast %llu timeouts %llu out of order %llu bad checksums %llu delayed %llu predicted %llu %llu\n",
           (unsigned long long)s->tcp_retransmitted, (unsigned long long)s->tcp_fast_retransmits, (unsigned long long)s->tcp_timeouts,
           (unsigned long long)s->tcp_out_of_order, (unsigned long long)s->tcp_checksum_errors, (unsigned long long)s->tcp_delayed_acks,
           (unsigned long long)s->tcp_predicted_acks, (unsigned long long)s->tcp_predicted_data);
    printf("ip: fragmented %llu reassembled %llu; udp: %llu %llu; icmp: echoed %llu errors %llu; copied %llu checksummed %llu\n",
           (unsigned long long)s->ip_fragmented, (unsigned long long)s->ip_reassembled, (unsigned long long)s->udp_sent,
           (unsigned long long)s->udp_received, (unsigned long long)s->icmp_echoed, (unsigned long long)s->icmp_errors_sent,
           (unsigned long long)s->copied_bytes, (unsigned long long)s->checksummed_bytes);
    printf("dart: bytes %llu refused %llu hardware sums %llu bad sums %llu summed again %llu relocated %llu\n", (unsigned long long)s->adapter_bytes,
           (unsigned long long)s->adapter_refused, (unsigned long long)s->hardware_sums, (unsigned long long)s->hardware_sums_bad,
           (unsigned long long)s->resummed_bytes, (unsigned long long)s->relocations);
}

/* Polls while a child of the host's runs; its status. */
static int serve(pid_t child) {
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) network_poll(10);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Starts a part of the host's in a process that dies with us. */
static pid_t start(void) {
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
    }
    return child;
}

static bool (*pktok_of_driver)(struct ifnet *ifp, const struct mbuf *m);

/* if_pktok of a driver that cannot send some packets as they are, as after a change of routes. */
static bool pktok_that_refuses(struct ifnet *ifp, const struct mbuf *m) {
    static uint64_t packets;
    return ++packets % argument("refuse") != 0 && pktok_of_driver(ifp, m);
}

static void set_up(struct ifnet *ifp) {
    struct tap_options options = {.name = "pathlength0",
                                  .has_checksum = argument("checksum"),
                                  .has_tso = argument("tso"),
                                  .address = htonl(STACK_ADDRESS),
                                  .netmask = htonl(NETMASK),
                                  .mtu = (int)argument("mtu")};
    struct impairment_parameters faults = {.loss = argument("loss"),
                                           .duplication = argument("duplicate"),
                                           .reordering = argument("reorder"),
                                           .corruption = argument("corrupt"),
                                           .delay_ms = argument("delay"),
                                           .jitter_ms = argument("jitter"),
                                           .seed = argument("seed")};
    struct network_parameters wanted = {.slow_ms = argument("slow"), .minimum_rto_ms = 2 * argument("slow"), .seed = argument("seed"), .msl_ms = 100};
    wanted.no_dart = argument("nodart");
    wanted.fast_ms = argument("slow") < 40 ? 40 : 200;
    device_transfers = getenv("DEVICE_TRANSFERS") != NULL;
    expect("a network of its own", namespace_enter());
    network_initialize(&wanted);
    struct dart_options adapter = {
        .tap = options, .holdoff_us = 50, .send_buffers = argument("buffers"), .receive_buffers = argument("buffers"), .log = getenv("DART_LOG")};
    expect("TAP device", argument("dart") ? dart_attach(ifp, &adapter) : tap_attach(ifp, &options));
    if (argument("refuse")) {
        pktok_of_driver = ifp->if_pktok;
        ifp->if_pktok = pktok_that_refuses;
    }
    expect("the host's address", namespace_configure(options.name, htonl(HOST_ADDRESS), htonl(NETMASK), options.mtu));
    if (faults.loss + faults.duplication + faults.reordering + faults.corruption + faults.delay_ms + faults.jitter_ms > 0) impair(ifp, &faults);
}

int main(int count, char **texts) {
    struct ifnet interface;
    for (int i = 1; i < count; i++)
        if (!set_argument(texts[i])) print_usage(texts[i]);
    if (!has_work()) print_usage(NULL);
    if (argument("mtu") < SMALLEST_MTU || argument("mtu") > LARGEST_MTU || !argument("slow")) fail("mtu is 576 to 9216, slow at least 1", EINVAL);
    set_up(&interface);
    uint64_t seed = argument("seed");
    struct socket *listener;
    struct sockaddr_in here = address_of(STACK_ADDRESS, SOURCE_PORT);
    expect("socket", socreate(SOCK_STREAM, &listener));
    expect("bind", sobind(listener, &here));
    expect("listen", solisten(listener, 4));
    host_listen();
    pid_t peer = start();
    if (peer == 0) {
        host_peer(argument("receive"), seed);
        _exit(1);
    }
    pid_t probe = argument("probe") ? start() : -1;
    if (probe == 0) _exit(host_probe());
    if (probe > 0 && serve(probe) != 0) fail("ICMP", EPROTO);
    if (argument("receive")) receive_all(listener, argument("receive"), seed);
    if (argument("send")) send_all(argument("send"), seed);
    if (argument("echo")) echo_all(argument("echo"), seed);
    if (argument("datagrams")) datagrams(argument("datagrams"), seed);
    if (!argument("quiet")) report();
    kill(peer, SIGKILL);
    soclose(listener);
    network_shutdown();
    impair_end(&interface);
    if (argument("dart")) dart_detach(&interface);
    else tap_detach(&interface);
    if (m_allocated() != 0) fail("mbufs that nobody freed", EBUSY);
    return 0;
}
