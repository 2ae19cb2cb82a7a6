/* The transfer of transfer.c by lwIP: it sends and receives through a TAP device, and checks every byte. The peer is the same, the host's TCP.
 *
 *     lwip_transfer [NAME=VALUE ...]
 *
 * send, receive: bytes; checksum: 1 if the host completes and verifies checksums; seed. Its status is 0 if all was right.
 *
 * Data are copied once in each direction, as a socket copies them: into pbufs by tcp_write(), and out of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/netif.h"
#include "lwip/prot/ip4.h"
#include "lwip/prot/tcp.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "pattern.h"
#include "transfer.h"

#define BUFFER 65536
#define RANGES 64
#define AT_A_TIME 32 /* Frames that one poll reads. */
#define NEEDS_CSUM 1
#define ETHERNET 14

/* By namespace.c, whose header has names of ours that are lwIP's, too. */
int namespace_enter(void);
int namespace_configure(const char *name, uint32_t address, uint32_t netmask, int mtu);

/* struct virtio_net_hdr of linux/virtio_net.h. */
struct virtio_header {
    uint8_t flags, gso_type;
    uint16_t hdr_len, gso_size, csum_start, csum_offset;
};

static struct {
    const char *name;
    uint64_t value;
} arguments[] = {{"send", 0}, {"receive", 0}, {"checksum", 0}, {"seed", 1}};

/* A direction's connection. */
struct stream {
    struct tcp_pcb *pcb;
    uint64_t position; /* Bytes so far. */
    bool is_established, has_ended;
    char verdict; /* The answer of the host to the bytes sent. */
};

static int tap;
static bool has_header;
static struct netif interface;
static struct stream sent, received;
static char buffer[BUFFER];

static void fail(const char *what) {
    fprintf(stderr, "lwip_transfer: %s\n", what);
    exit(1);
}

static uint64_t argument(const char *name) {
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (strcmp(arguments[i].name, name) == 0) return arguments[i].value;
    abort();
}

static bool set_argument(const char *text) {
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        size_t length = strlen(arguments[i].name);
        if (strncmp(arguments[i].name, text, length) != 0 || text[length] != '=') continue;
        return parse_number(text + length + 1, &arguments[i].value);
    }
    return false;
}

u32_t sys_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u32_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

/* The work that a segment leaves to the host: it adds the sum to that of the pseudo-header. */
static struct virtio_header leave_checksum(struct pbuf *p) {
    struct virtio_header header = {0};
    char *frame = (char *)p->payload + ETH_PAD_SIZE;
    struct ip_hdr *ip = (void *)(frame + ETHERNET);
    if (frame[12] != 8 || frame[13] != 0 || IPH_PROTO(ip) != IP_PROTO_TCP) return header;
    struct tcp_hdr *tcp = (void *)(frame + ETHERNET + IP_HLEN);
    uint32_t sum = htons(IP_PROTO_TCP) + htons(ntohs(IPH_LEN(ip)) - IP_HLEN);
    sum += (ip->src.addr & 0xffff) + (ip->src.addr >> 16) + (ip->dest.addr & 0xffff) + (ip->dest.addr >> 16);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    tcp->chksum = (u16_t)sum;
    return (struct virtio_header){.flags = NEEDS_CSUM, .csum_start = ETHERNET + IP_HLEN, .csum_offset = 16};
}

static err_t put_frame(struct netif *netif, struct pbuf *p) {
    struct iovec ranges[RANGES];
    struct virtio_header header;
    int count = 0;
    (void)netif;
    if (has_header) {
        header = leave_checksum(p);
        ranges[count++] = (struct iovec){&header, sizeof header};
    }
    size_t skip = ETH_PAD_SIZE;
    for (struct pbuf *one = p; one; one = one->next, skip = 0) {
        if (count == RANGES) return ERR_BUF;
        ranges[count++] = (struct iovec){(char *)one->payload + skip, one->len - skip};
    }
    return writev(tap, ranges, count) < 0 ? ERR_BUF : ERR_OK;
}

/* Reads one frame; false if there is none. */
static bool get_frame(void) {
    struct virtio_header header = {0};
    struct pbuf *p = pbuf_alloc(PBUF_RAW, ETH_PAD_SIZE + ETHERNET + 1500, PBUF_POOL);
    if (!p) return false;
    if (p->next) fail("a packet must be in one pbuf");
    struct iovec ranges[] = {{&header, has_header ? sizeof header : 0}, {(char *)p->payload + ETH_PAD_SIZE, p->len - ETH_PAD_SIZE}};
    ssize_t got = readv(tap, ranges, 2) - (ssize_t)ranges[0].iov_len;
    if (got <= 0) {
        pbuf_free(p);
        return false;
    }
    pbuf_realloc(p, (u16_t)(got + ETH_PAD_SIZE));
    if (interface.input(p, &interface) != ERR_OK) pbuf_free(p);
    return true;
}

static void poll_stack(void) {
    struct pollfd entry = {tap, POLLIN, 0};
    int frames = 0;
    sys_check_timeouts();
    while (frames < AT_A_TIME && get_frame()) frames++;
    if (frames > 0) return;
    u32_t wait = sys_timeouts_sleeptime();
    poll(&entry, 1, wait > 1000 ? 1000 : (int)wait);
}

static err_t set_interface(struct netif *netif) {
    netif->name[0] = 'p', netif->name[1] = 'l';
    netif->output = etharp_output;
    netif->linkoutput = put_frame;
    netif->mtu = 1500;
    netif->hwaddr_len = 6;
    memcpy(netif->hwaddr, (char[]){2, 0, 0, 0, 0, 2}, 6);
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_LINK_UP;
    if (has_header) NETIF_SET_CHECKSUM_CTRL(netif, NETIF_CHECKSUM_ENABLE_ALL & ~(NETIF_CHECKSUM_GEN_TCP | NETIF_CHECKSUM_CHECK_TCP));
    return ERR_OK;
}

static void set_up(void) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    ip4_addr_t address = {htonl(STACK_ADDRESS)}, netmask = {htonl(NETMASK)}, gateway = {0};
    has_header = argument("checksum");
    if (has_header) request.ifr_flags |= IFF_VNET_HDR;
    strcpy(request.ifr_name, "pathlength0");
    if (namespace_enter()) fail("no network of its own");
    tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &request) < 0 || (has_header && ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM) < 0)) fail("no TAP device");
    lwip_init();
    netif_add(&interface, &address, &netmask, &gateway, NULL, set_interface, netif_input);
    netif_set_default(&interface);
    netif_set_up(&interface);
    if (namespace_configure("pathlength0", htonl(HOST_ADDRESS), htonl(NETMASK), 1500)) fail("the host has no address");
}

static void ended(void *stream, err_t error) {
    (void)error;
    ((struct stream *)stream)->pcb = NULL;
    fail("the connection was reset");
}

static err_t take(void *argument_, struct tcp_pcb *pcb, struct pbuf *p, err_t error) {
    struct stream *stream = argument_;
    if (!p || error != ERR_OK) {
        stream->has_ended = true;
        return ERR_OK;
    }
    u16_t length = pbuf_copy_partial(p, buffer, p->tot_len, 0);
    if (stream == &sent) stream->verdict = buffer[0];
    else if (!pattern_is(buffer, length, stream->position, argument("seed"))) fail("received: wrong bytes");
    if (stream == &received) stream->position += length;
    tcp_recved(pcb, length);
    pbuf_free(p);
    return ERR_OK;
}

static void adopt(struct stream *stream, struct tcp_pcb *pcb) {
    stream->pcb = pcb;
    tcp_arg(pcb, stream);
    tcp_recv(pcb, take);
    tcp_err(pcb, ended);
}

static err_t accepted(void *stream, struct tcp_pcb *pcb, err_t error) {
    if (error != ERR_OK) return error;
    adopt(stream, pcb);
    return ERR_OK;
}

static err_t established(void *stream, struct tcp_pcb *pcb, err_t error) {
    (void)pcb;
    if (error == ERR_OK) ((struct stream *)stream)->is_established = true;
    return error;
}

/* Gives lwIP `length` bytes, as it takes them. */
static void put(const char *data, size_t length) {
    while (length > 0) {
        size_t part = tcp_sndbuf(sent.pcb) < length ? tcp_sndbuf(sent.pcb) : length;
        if (part > 0xffff) part = 0xffff;
        err_t error = part > 0 ? tcp_write(sent.pcb, data, (u16_t)part, TCP_WRITE_FLAG_COPY) : ERR_MEM;
        if (error != ERR_OK && error != ERR_MEM) fail("tcp_write");
        tcp_output(sent.pcb);
        if (error == ERR_OK) data += part, length -= part;
        else poll_stack();
    }
}

static void send_all(void) {
    ip_addr_t host = IPADDR4_INIT(htonl(HOST_ADDRESS));
    uint64_t total = argument("send"), seed = argument("seed");
    adopt(&sent, tcp_new());
    if (tcp_connect(sent.pcb, &host, SINK_PORT, established) != ERR_OK) fail("connect");
    while (!sent.is_established) poll_stack();
    while (sent.position < total) {
        /* Sizes of all kinds. */
        size_t part = 1 + (size_t)random() % BUFFER;
        if (part > total - sent.position) part = total - sent.position;
        pattern_fill(buffer, part, sent.position, seed);
        put(buffer, part);
        sent.position += part;
    }
    if (tcp_shutdown(sent.pcb, 0, 1) != ERR_OK) fail("shutdown");
    while (!sent.has_ended) poll_stack();
    if (sent.verdict != 'y') fail("the host's verdict on what was sent");
}

static void receive_all(struct tcp_pcb *listener) {
    tcp_arg(listener, &received);
    tcp_accept(listener, accepted);
    while (!received.has_ended) poll_stack();
    if (received.position != argument("receive")) fail("the number of bytes received");
    tcp_close(received.pcb);
}

int main(int count, char **texts) {
    for (int i = 1; i < count; i++)
        if (!set_argument(texts[i])) fail("usage: lwip_transfer [send=BYTES] [receive=BYTES] [checksum=1] [seed=NUMBER]");
    srandom((unsigned)argument("seed"));
    set_up();
    struct tcp_pcb *listener = tcp_new();
    if (!listener || tcp_bind(listener, IP_ADDR_ANY, SOURCE_PORT) != ERR_OK || !(listener = tcp_listen(listener))) fail("listen");
    host_listen();
    pid_t parent = getpid(), peer = fork();
    if (peer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) host_peer(argument("receive"), argument("seed"));
        _exit(1);
    }
    if (argument("receive")) receive_all(listener);
    if (argument("send")) send_all();
    kill(peer, SIGKILL);
    return 0;
}
