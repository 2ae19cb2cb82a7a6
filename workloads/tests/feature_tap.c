/* not under qemu-alpha 7.2: it ends with a failed assertion of its own. */
/* Packets: a TAP device and packet sockets, in a network of this process's own (as root). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAME 60
#define MARK 0x88b5

static void tell(const char *what, long result) {
    int error = errno;
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(error) : "");
}

static int tap(short flags) {
    struct ifreq request = {.ifr_flags = flags};
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    strcpy(request.ifr_name, "guest%d");
    tell("TUNSETIFF", ioctl(device, TUNSETIFF, &request));
    return device;
}

static void requests(int device) {
    unsigned value = 0;
    struct ifreq request = {0};
    tell("TUNGETFEATURES", ioctl(device, TUNGETFEATURES, &value));
    printf("features: %d\n", (value & (IFF_TAP | IFF_VNET_HDR)) == (IFF_TAP | IFF_VNET_HDR));
    tell("TUNGETIFF", ioctl(device, TUNGETIFF, &request));
    printf("%s %x\n", request.ifr_name, request.ifr_flags);
    tell("TUNGETVNETHDRSZ", ioctl(device, TUNGETVNETHDRSZ, &value));
    printf("%u\n", value);
    value = 12;
    tell("TUNSETVNETHDRSZ", ioctl(device, TUNSETVNETHDRSZ, &value));
    tell("TUNGETVNETHDRSZ", ioctl(device, TUNGETVNETHDRSZ, &value));
    printf("%u\n", value);
    value = 3;
    tell("TUNSETVNETHDRSZ of 3", ioctl(device, TUNSETVNETHDRSZ, &value));
    tell("TUNSETOFFLOAD", ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4));
    tell("TUNSETOFFLOAD of unknown", ioctl(device, TUNSETOFFLOAD, 0x4000));
    tell("TUNSETSNDBUF of 0", ioctl(device, TUNSETSNDBUF, &(int){0}));
    tell("TUNGETSNDBUF", ioctl(device, TUNGETSNDBUF, &value));
    tell("TUNSETPERSIST", ioctl(device, TUNSETPERSIST, 0));
    tell("TUNSETIFF again", ioctl(device, TUNSETIFF, &request));
    tell("TUNGETIFF without memory", ioctl(device, TUNGETIFF, (void *)8));
    close(ioctl(device, TUNGETDEVNETNS));
}

/* A filter that accepts packets of one type alone; the kernel reads it where it lies. */
static struct sock_filter accepted[4] = {
    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, 0x10000),
    BPF_STMT(BPF_RET | BPF_K, 0),
};

static void filters(int device, int listener) {
    struct sock_fprog program = {4, accepted}, nowhere = {4, (void *)8}, reaching = {0xffff, accepted};
    struct {
        unsigned short flags, count;
        unsigned char addresses[2][6];
    } addresses = {0, 2, {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}};
    struct sock_filter found[8];
    socklen_t size = 8;
    tell("TUNATTACHFILTER", ioctl(device, TUNATTACHFILTER, &program));
    tell("TUNATTACHFILTER of nothing", ioctl(device, TUNATTACHFILTER, &nowhere));
    tell("TUNDETACHFILTER", ioctl(device, TUNDETACHFILTER, &program));
    tell("TUNSETTXFILTER", ioctl(device, TUNSETTXFILTER, &addresses));
    addresses.count = 0;
    tell("TUNSETTXFILTER of none", ioctl(device, TUNSETTXFILTER, &addresses));
    tell("SO_ATTACH_FILTER", setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    tell("of nothing", setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &nowhere, sizeof nowhere));
    tell("too long", setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &reaching, sizeof reaching) < 0);
    tell("too short", setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, 8));
    tell("SO_GET_FILTER", getsockopt(listener, SOL_SOCKET, SO_GET_FILTER, found, &size));
    printf("%d %d\n", size, memcmp(found, accepted, sizeof accepted));
    size = 2;
    tell("SO_GET_FILTER of 2", getsockopt(listener, SOL_SOCKET, SO_GET_FILTER, found, &size));
}

static int bring_up(int device) {
    struct ifreq request = {0};
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    ioctl(device, TUNGETIFF, &request);
    tell("SIOCGIFINDEX", ioctl(control, SIOCGIFINDEX, &request));
    int index = request.ifr_ifindex;
    printf("the index is positive: %d\n", index > 0);
    request.ifr_mtu = 1400;
    tell("SIOCSIFMTU", ioctl(control, SIOCSIFMTU, &request));
    memcpy(request.ifr_hwaddr.sa_data, "\2\0\0\0\0\11", 6);
    request.ifr_hwaddr.sa_family = 1;
    tell("SIOCSIFHWADDR", ioctl(control, SIOCSIFHWADDR, &request));
    struct sockaddr_in *address = (void *)&request.ifr_addr;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(0x0a630001)}};
    tell("SIOCSIFADDR", ioctl(control, SIOCSIFADDR, &request));
    request.ifr_flags = IFF_UP | IFF_NOARP;
    tell("SIOCSIFFLAGS", ioctl(control, SIOCSIFFLAGS, &request));
    tell("SIOCGIFFLAGS", ioctl(control, SIOCGIFFLAGS, &request));
    printf("up: %d\n", request.ifr_flags & IFF_UP);
    close(control);
    return index;
}

/* A frame with the offloading header of 12 bytes in front. */
static void frame(unsigned char *at, unsigned char last) {
    memset(at, 0, 12 + FRAME);
    memcpy(at + 12, "\2\0\0\0\0\11\2\0\0\0\0\1\x88\xb5", 14);
    at[12 + FRAME - 1] = last;
}

static void packets(int device, int index, int listener) {
    unsigned char buffer[2048], sent[12 + FRAME];
    struct sockaddr_ll from, to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
    socklen_t size = sizeof from;
    tell("bind", bind(listener, (void *)&to, sizeof to));
    for (unsigned char last = 1; last <= 2; last++) {
        frame(sent, last);
        if (last == 1) sent[12 + 12] = 8;
        tell("write", write(device, sent, sizeof sent));
    }
    struct pollfd entry = {listener, POLLIN, 0};
    tell("poll", poll(&entry, 1, 20000));
    long got = recvfrom(listener, buffer, sizeof buffer, 0, (void *)&from, &size);
    printf("received %ld: %d, family %d, type %x, last %d\n", got, from.sll_ifindex == index, from.sll_family,
           ntohs(from.sll_protocol), buffer[FRAME - 1]);
    frame(sent, 7);
    tell("send", sendto(listener, sent + 12, FRAME, 0, (void *)&to, sizeof to));
    entry.fd = device;
    do poll(&entry, 1, 20000);
    while ((got = read(device, buffer, sizeof buffer)) > 0 && (buffer[24] << 8 | buffer[25]) != MARK);
    printf("read %ld, last %d\n", got, buffer[12 + FRAME - 1]);
}

static void rings(int index) {
    int socket_of_ring = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V2, off = 1;
    struct tpacket_req ring = {.tp_block_size = 16384, .tp_block_nr = 2, .tp_frame_size = 2048, .tp_frame_nr = 16};
    tell("PACKET_VERSION", setsockopt(socket_of_ring, SOL_PACKET, PACKET_VERSION, &version, sizeof version));
    tell("PACKET_RX_RING", setsockopt(socket_of_ring, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring));
    char *frames = mmap(NULL, 32768, PROT_READ | PROT_WRITE, MAP_SHARED, socket_of_ring, 0);
    struct tpacket2_hdr *header = (void *)frames;
    printf("mapped: %d %u\n", frames != MAP_FAILED, header->tp_status);
    struct packet_mreq all = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
    tell("PACKET_ADD_MEMBERSHIP", setsockopt(socket_of_ring, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all));
    tell("PACKET_AUXDATA", setsockopt(socket_of_ring, SOL_PACKET, PACKET_AUXDATA, &off, sizeof off));
    tell("PACKET_FANOUT_DATA", setsockopt(socket_of_ring, SOL_PACKET, 22, &(struct sock_fprog){4, accepted}, 16));
    struct tpacket_stats statistics;
    socklen_t size = sizeof statistics;
    tell("PACKET_STATISTICS", getsockopt(socket_of_ring, SOL_PACKET, PACKET_STATISTICS, &statistics, &size));
    close(socket_of_ring);
}

int main(void) {
    tell("a network of its own", unshare(CLONE_NEWNET));
    int device = tap(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR), listener = socket(AF_PACKET, SOCK_RAW, 0);
    printf("packet socket: %d\n", listener >= 0);
    requests(device);
    filters(device, listener);
    int index = bring_up(device);
    packets(device, index, listener);
    rings(index);
    return 0;
}
