/* Hostile packets: sessions of random and of changed packets against a connection, a listening socket and a socket of datagrams.
 *
 *     fuzz SEED SESSIONS
 *
 * Nothing may crash (build it with sanitizers), nothing may be left allocated, and every byte that the application reads must be
 * the one that was sent for its place. It prints how much the stack took and refused. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "driver.h"
#include "ether.h"
#include "network.h"
#include "pattern.h"
#include "tcp.h"
#include "udp.h"

#define US 0x0a610002    /* 10.97.0.2 */
#define PEER 0x0a610001  /* 10.97.0.1 */
#define PORT 80
#define PEER_PORT 4000
#define PEER_ISS 0xfffffc00u
#define PEER_SEED 9
#define SESSION 300 /* Steps. */

static uint64_t random_state, now = 1000000;
static struct ifnet wire, ethernet;
static struct socket *listener, *so, *udp;
static uint64_t total_read, accepted;
static uint32_t place; /* Of the next byte that is read. */
static struct {
    uint64_t segments, fragments, frames;
} done;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((random_state >> 33) % below);
}

static uint64_t clock_of_session(void) {
    return now;
}

static int swallow(struct ifnet *ifp, struct mbuf *m) {
    (void)ifp;
    /* Reads every sent byte once, as a device would, so that sanitizers check them. */
    char *bytes = malloc(m->m_pkthdr.len + 1);
    m_copydata(m, 0, m->m_pkthdr.len, bytes);
    if (m_length(m) != m->m_pkthdr.len) abort();
    free(bytes);
    m_freem(m);
    return 0;
}

static int no_packets(struct ifnet *ifp) {
    (void)ifp;
    return 0;
}

/* A packet in mbufs of random sizes, at random places. */
static struct mbuf *in_mbufs(const unsigned char *bytes, int length, struct ifnet *ifp) {
    struct mbuf *first = m_getcl(M_PKTHDR), *last = first;
    first->m_data += draw(4);
    for (int at = 0; at < length;) {
        int most = draw(4) == 0 ? 1 + (int)draw(40) : MCLBYTES - 4;
        last->m_len = MINIMUM(most, length - at);
        memcpy(last->m_data, bytes + at, last->m_len);
        at += last->m_len;
        if (at < length) last = last->m_next = m_getcl(0);
    }
    first->m_pkthdr.len = length;
    first->m_pkthdr.rcvif = ifp;
    return first;
}

static struct tcpcb *block(void) {
    struct inpcb *inp = in_pcblookup(&tcp_blocks, htonl(PEER), htons(PEER_PORT), htonl(US), htons(PORT));
    return inp && inp->inp_faddr ? inp->inp_ppcb : NULL;
}

/* The peer's byte with a sequence number that is `place` behind its first one; numbers wrap. */
static char peer_byte(uint32_t place) {
    uint64_t word = pattern_word(place / 8, PEER_SEED);
    return ((char *)&word)[place % 8];
}

/* Completes IP's header. */
static void finish_ip(unsigned char *packet, int length, uint8_t protocol, uint16_t offset) {
    struct ip ip = {0x45, 0, htons(length), htons(draw(8)), htons(offset), 64, protocol, 0, htonl(PEER), htonl(US)};
    ip.ip_sum = ~in_sum(&ip, IP_HEADER);
    memcpy(packet, &ip, IP_HEADER);
}

/* A number near one that matters. */
static uint32_t near(uint32_t number) {
    switch (draw(6)) {
        case 0: return number + draw(20) - 10;
        case 1: return number + draw(140000) - 70000;
        case 2: return draw(2) ? number + 0x80000000u : draw(0xffffffff);
        default: return number;
    }
}

static int random_options(unsigned char *at) {
    int length = draw(3) ? 0 : (int)draw(11) * 4;
    for (int i = 0; i < length; i++) at[i] = draw(3) ? draw(12) : draw(256);
    return length;
}

/* Timestamps, if the connection has them. */
static int timestamp(const struct tcpcb *tp, unsigned char *at) {
    uint32_t value = htonl(tp->ts_recent + (draw(8) ? draw(3) : draw(100) - 50)), echo = htonl((uint32_t)now);
    memcpy(at, (unsigned char[]){1, 1, 8, 10}, 4);
    memcpy(at + 4, &value, 4);
    memcpy(at + 8, &echo, 4);
    return 12;
}

/* A segment near what the connection expects, with the bytes that belong to its numbers and right sums; then, sometimes, with one bit
 * inverted, which the sums find. */
static int segment(unsigned char *packet) {
    static const uint8_t FLAGS[] = {TH_ACK, TH_ACK, TH_ACK, TH_ACK | TH_PUSH, TH_ACK | TH_FIN, TH_SYN, TH_RST, TH_RST | TH_ACK, TH_SYN | TH_ACK, 0, 0x3f, TH_FIN};
    const struct tcpcb *tp = block();
    unsigned char *tcp = packet + IP_HEADER;
    uint32_t seq = near(tp ? tp->rcv_nxt : PEER_ISS), ack = near(tp ? (draw(2) ? tp->snd_una : tp->snd_max) : 1);
    uint8_t flags = draw(4) ? TH_ACK : FLAGS[draw(sizeof FLAGS)];
    /* Most sessions shall live for a while. */
    if (flags & TH_RST && draw(8)) flags = TH_ACK;
    int options = tp && tp->t_flags & TF_TIMESTAMPS && draw(10) ? timestamp(tp, tcp + TCP_HEADER) : random_options(tcp + TCP_HEADER);
    int data = draw(3) ? (int)draw(1400) : 0, length = IP_HEADER + TCP_HEADER + options + data;
    struct tcphdr th = {htons(draw(20) ? PEER_PORT : draw(65536)), htons(PORT), htonl(seq), htonl(ack), (TCP_HEADER + options) / 4 << 4, flags,
                        htons(draw(3) ? 65535 : draw(3000)), 0, htons(draw(2))};
    for (int i = 0; i < data; i++) tcp[TCP_HEADER + options + i] = peer_byte(seq + i - PEER_ISS - 1);
    memcpy(tcp, &th, TCP_HEADER);
    th.th_sum = ~in_fold(in_pseudo(htonl(PEER), htonl(US), PROTOCOL_TCP, length - IP_HEADER) + in_sum(tcp, length - IP_HEADER));
    memcpy(tcp, &th, TCP_HEADER);
    finish_ip(packet, length, PROTOCOL_TCP, 0);
    if (draw(8) == 0) tcp[draw(length - IP_HEADER)] ^= 1 << draw(8);
    return length;
}

/* A fragment of a datagram of one of a few identifications: half of them fit together. */
static int fragment(unsigned char *packet) {
    bool is_regular = draw(2);
    int quarter = (int)draw(4), length = IP_HEADER + (draw(3) ? 8 * (1 + (int)draw(180)) : 1 + (int)draw(1400));
    uint16_t offset = draw(draw(2) ? 30 : 8191) | (draw(4) ? IP_MF : 0);
    if (is_regular) {
        length = IP_HEADER + 128;
        offset = quarter * 16 | (quarter < 3 ? IP_MF : 0);
    }
    for (int i = IP_HEADER; i < length; i++) packet[i] = draw(256);
    finish_ip(packet, length, draw(2) ? PROTOCOL_UDP : PROTOCOL_ICMP, offset);
    return length;
}

/* Anything with a right IP header: ICMP, UDP, others. */
static int anything(unsigned char *packet) {
    static const uint8_t PROTOCOLS[] = {PROTOCOL_ICMP, PROTOCOL_UDP, PROTOCOL_TCP, 47};
    int length = IP_HEADER + (int)draw(200);
    uint8_t protocol = PROTOCOLS[draw(4)];
    for (int i = IP_HEADER; i < length; i++) packet[i] = draw(256);
    if (protocol == PROTOCOL_ICMP && length >= IP_HEADER + 8) {
        packet[IP_HEADER] = (unsigned char[]){3, 8, 11, 0}[draw(4)];
        packet[IP_HEADER + 1] = draw(6);
        /* The quoted packet: one of ours, perhaps. */
        if (length >= IP_HEADER + 36 && draw(2)) {
            struct ip quoted = {0x45, 0, htons(40), 0, 0, 64, PROTOCOL_TCP, 0, htonl(US), htonl(PEER)};
            uint16_t ports[2] = {htons(PORT), htons(PEER_PORT)};
            uint32_t seq = htonl(block() ? block()->snd_una : 0);
            memcpy(packet + IP_HEADER + 8, &quoted, IP_HEADER);
            memcpy(packet + IP_HEADER + 28, ports, 4);
            memcpy(packet + IP_HEADER + 32, &seq, 4);
        }
        memset(packet + IP_HEADER + 2, 0, 2);
        uint16_t sum = ~in_sum(packet + IP_HEADER, length - IP_HEADER);
        memcpy(packet + IP_HEADER + 2, &sum, 2);
    }
    if (protocol == PROTOCOL_UDP && length >= IP_HEADER + 8) {
        uint16_t words[4] = {htons(53), htons(draw(2) ? PORT : draw(65536)), htons(draw(3) ? (uint32_t)length - IP_HEADER : draw(300)), 0};
        memcpy(packet + IP_HEADER, words, 8);
    }
    finish_ip(packet, length, protocol, 0);
    if (draw(4) == 0) packet[draw(IP_HEADER)] = draw(256);
    return length;
}

/* An Ethernet frame: ARP, or nonsense. */
static void frame(unsigned char *bytes) {
    static const unsigned char ARP[] = {8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 96, 0, 1, 0, 0, 0, 0, 0, 0, 10, 96, 0, 2};
    int length = (int)draw(100);
    for (int i = 0; i < 100; i++) bytes[i] = draw(256);
    if (draw(3)) memset(bytes, 0xff, 6);
    if (draw(3)) {
        memcpy(bytes + 12, ARP, sizeof ARP);
        bytes[21] = draw(3);
        if (draw(2)) length = 60;
        if (draw(3) == 0) bytes[12 + draw(sizeof ARP)] = draw(256);
    }
    ether_input(&ethernet, in_mbufs(bytes, length, &ethernet));
    done.frames++;
}

/* Accepts a connection, whose first byte has the number after that of its SYN. */
static void accept_one(void) {
    if (soaccept(listener, &so, NULL) != 0) return;
    accepted++;
    sosetopt(so, SOPT_NONBLOCKING, true);
    if (so->so_pcb) {
        place = ((struct tcpcb *)so->so_pcb->inp_ppcb)->irs - PEER_ISS;
    } else {
        soclose(so);
        so = NULL;
    }
}

/* The application's operations. */
static void use_socket(void) {
    static char buffer[20000];
    struct iovec range;
    struct uio uio;
    if (!so) accept_one();
    if (!so) return;
    size_t length = 1 + draw(sizeof buffer);
    uio_of(&uio, &range, buffer, length, UIO_READ);
    if (soreceive(so, NULL, &uio, 0) == 0) {
        size_t got = length - uio.uio_resid;
        for (size_t i = 0; i < got; i++) {
            if (buffer[i] == peer_byte(place++)) continue;
            fprintf(stderr, "fuzz: a wrong byte was read at %u\n", place - 1);
            abort();
        }
        total_read += got;
    }
    uio_of(&uio, &range, buffer, draw(4000), UIO_WRITE);
    if (draw(3) == 0) sosend(so, NULL, &uio);
    if (draw(200) == 0) soshutdown(so, SHUT_WR);
    if (draw(400) == 0) soclose(so), so = NULL;
}

static void use_datagrams(void) {
    char buffer[2000];
    struct iovec range;
    struct uio uio;
    struct sockaddr_in from;
    uio_of(&uio, &range, buffer, draw(sizeof buffer), UIO_READ);
    soreceive(udp, &from, &uio, 0);
}

static void step(unsigned char *bytes) {
    switch (draw(16)) {
        case 0:
            for (int i = 0; i < 12; i++, done.fragments++) ip_input(in_mbufs(bytes, fragment(bytes), &wire));
            break;
        case 1:
        case 2: ip_input(in_mbufs(bytes, anything(bytes), &wire)); break;
        case 3: frame(bytes); break;
        case 4: use_datagrams(); break;
        case 5:
        case 6: use_socket(); break;
        case 7:
            now += draw(4) ? draw(50) : draw(3000);
            network_run_timers();
            break;
        default: ip_input(in_mbufs(bytes, segment(bytes), &wire)), done.segments++;
    }
}

/* A segment of the handshake. */
static void handshake(uint8_t flags, uint32_t seq, uint32_t ack, const unsigned char *options, int length) {
    unsigned char packet[80];
    struct tcphdr th = {htons(PEER_PORT), htons(PORT), htonl(seq), htonl(ack), (TCP_HEADER + length) / 4 << 4, flags, htons(65535), 0, 0};
    memcpy(packet + IP_HEADER, &th, TCP_HEADER);
    memcpy(packet + IP_HEADER + TCP_HEADER, options, length);
    th.th_sum = ~in_fold(in_pseudo(htonl(PEER), htonl(US), PROTOCOL_TCP, TCP_HEADER + length) + in_sum(packet + IP_HEADER, TCP_HEADER + length));
    memcpy(packet + IP_HEADER, &th, TCP_HEADER);
    finish_ip(packet, IP_HEADER + TCP_HEADER + length, PROTOCOL_TCP, 0);
    ip_input(in_mbufs(packet, IP_HEADER + TCP_HEADER + length, &wire));
}

static void check(int error) {
    if (error) abort();
}

static void begin(void) {
    static const unsigned char OPTIONS[] = {2, 4, 5, 180, 1, 3, 3, 7, 1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 0, 0};
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct network_parameters wanted = {.slow_ms = 100,
                                        .msl_ms = 1000,
                                        .seed = draw(1 << 30),
                                        .socket_buffer = draw(2) ? 0 : 4000 + draw(20000),
                                        .maximum_mbufs = draw(4) ? 0 : 150};
    network_set_clock(clock_of_session);
    network_initialize(&wanted);
    wire = (struct ifnet){
        .if_address = htonl(US), .if_netmask = htonl(0xffffff00), .if_mtu = 1500, .if_fd = -1, .if_start = swallow, .if_poll = no_packets};
    ethernet = wire;
    ethernet.if_address = htonl(0x0a600002);
    ethernet.if_is_ethernet = true;
    if_attach(&wire);
    if_attach(&ethernet);
    check(socreate(SOCK_STREAM, &listener));
    check(sobind(listener, &here));
    check(solisten(listener, 3));
    check(socreate(SOCK_DGRAM, &udp));
    check(sobind(udp, &here));
    sosetopt(listener, SOPT_NONBLOCKING | (draw(2) ? SOPT_KEEPALIVE : 0), true);
    sosetopt(udp, SOPT_NONBLOCKING, true);
    so = NULL;
    handshake(TH_SYN, PEER_ISS, 0, OPTIONS, draw(2) ? (int)sizeof OPTIONS : 4);
    if (block()) handshake(TH_ACK, PEER_ISS + 1, block()->iss + 1, OPTIONS + 8, block()->t_flags & TF_TIMESTAMPS ? 12 : 0);
}

static void end(void) {
    if (so) soclose(so);
    soclose(listener);
    soclose(udp);
    network_shutdown();
    if (m_allocated() != 0) {
        fprintf(stderr, "fuzz: %u mbufs are left\n", m_allocated());
        abort();
    }
}

int main(int count, char **arguments) {
    static unsigned char bytes[2048];
    uint64_t seed = count > 1 ? strtoull(arguments[1], NULL, 10) : 1, sessions = count > 2 ? strtoull(arguments[2], NULL, 10) : 100;
    uint64_t bad = 0, early = 0, reassembled = 0;
    for (uint64_t session = 0; session < sessions; session++) {
        /* A session is the same whatever came before it. */
        random_state = (seed + session) * 0x9e3779b97f4a7c15ull;
        begin();
        for (int i = 0; i < SESSION; i++) step(bytes);
        bad += statistics.tcp_checksum_errors + statistics.ip_bad_header + statistics.icmp_bad + statistics.udp_bad + statistics.arp_bad;
        early += statistics.tcp_out_of_order;
        reassembled += statistics.ip_reassembled;
        end();
    }
    printf("segments %llu fragments %llu frames %llu connections %llu bytes read %llu out of order %llu reassembled %llu refused %llu\n",
           (unsigned long long)done.segments, (unsigned long long)done.fragments, (unsigned long long)done.frames, (unsigned long long)accepted,
           (unsigned long long)total_read, (unsigned long long)early, (unsigned long long)reassembled, (unsigned long long)bad);
    return 0;
}
