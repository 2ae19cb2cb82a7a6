/* The driver of TAP devices. With IFF_VNET_HDR the host is an adapter with offloading: it completes checksums, cuts segments, and
 * gives joined ones. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "driver.h"
#include "ether.h"
#include "ip.h"
#include "network.h"

#define RANGES 512   /* Of a frame that is sent. */
#define CLUSTERS 33  /* Of a frame that is received, with joined segments. */
#define AT_A_TIME 32 /* Frames that one poll reads. */

#define NEEDS_CSUM 1
#define DATA_VALID 2
#define GSO_TCPV4 1

/* struct virtio_net_hdr of linux/virtio_net.h. */
struct virtio_header {
    uint8_t flags, gso_type;
    uint16_t hdr_len, gso_size, csum_start, csum_offset;
};

struct tap_softc {
    int descriptor;
    bool has_header;
    int clusters;                 /* That a frame may need. */
    struct mbuf *spare[CLUSTERS]; /* For the next frame. */
};

/* The work that a frame leaves to the host. */
static struct virtio_header header_of(const struct mbuf *m) {
    struct virtio_header header = {0};
    if (!(m->m_pkthdr.csum_flags & CSUM_TRANSPORT)) return header;
    header.flags = NEEDS_CSUM;
    header.csum_start = ETHER_HEADER + IP_HEADER;
    header.csum_offset = m->m_pkthdr.csum_offset;
    if (m->m_pkthdr.csum_flags & CSUM_TSO) {
        unsigned char words;
        m_copydata(m, ETHER_HEADER + IP_HEADER + 12, 1, &words);
        header.gso_type = GSO_TCPV4;
        header.gso_size = m->m_pkthdr.tso_segsz;
        header.hdr_len = header.csum_start + (words >> 4) * 4;
    }
    return header;
}

static int tap_start(struct ifnet *ifp, struct mbuf *m) {
    const struct tap_softc *tap = ifp->if_softc;
    struct virtio_header header = header_of(m);
    struct iovec ranges[RANGES];
    int count = 0, error = 0;
    if (tap->has_header) ranges[count++] = (struct iovec){&header, sizeof header};
    for (struct mbuf *one = m; one && !error; one = one->m_next) {
        if (one->m_len == 0) continue;
        if (count == RANGES) error = EMSGSIZE;
        else ranges[count++] = (struct iovec){one->m_data, one->m_len};
    }
    if (!error) device_moves(ranges, count, SIZE_MAX, UIO_WRITE);
    if (!error && writev(tap->descriptor, ranges, count) < 0) error = errno == EAGAIN ? ENOBUFS : errno;
    m_freem(m);
    return error == EIO ? ENOBUFS : error;
}

/* Makes sure that there are mbufs for the largest frame; false without memory. */
static bool refill(struct tap_softc *tap) {
    for (int i = 0; i < tap->clusters; i++) {
        if (tap->spare[i]) continue;
        tap->spare[i] = m_getcl(i == 0 ? M_PKTHDR : 0);
        if (!tap->spare[i]) return false;
        if (i == 0) tap->spare[0]->m_data += ETHER_ALIGN;
    }
    return true;
}

/* Takes as many of the spare mbufs as a frame has filled. */
static struct mbuf *take(struct tap_softc *tap, int length) {
    struct mbuf *m = tap->spare[0], *last = m;
    m->m_pkthdr.len = length;
    for (int i = 0; i < tap->clusters; i++) {
        struct mbuf *one = tap->spare[i];
        int room = MCLBYTES - (i == 0 ? ETHER_ALIGN : 0);
        one->m_len = MINIMUM(length, room);
        length -= one->m_len;
        tap->spare[i] = NULL;
        if (i > 0) last->m_next = one;
        last = one;
        if (length == 0) break;
    }
    return m;
}

/* Reads one frame; false if there is none. */
static bool read_frame(struct ifnet *ifp) {
    struct tap_softc *tap = ifp->if_softc;
    struct virtio_header header = {0};
    struct iovec ranges[CLUSTERS + 1];
    int count = 0;
    if (!refill(tap)) return false;
    if (tap->has_header) ranges[count++] = (struct iovec){&header, sizeof header};
    for (int i = 0; i < tap->clusters; i++)
        ranges[count++] = (struct iovec){tap->spare[i]->m_data, MCLBYTES - (i == 0 ? ETHER_ALIGN : 0)};
    ssize_t got = readv(tap->descriptor, ranges, count);
    int length = (int)got - (tap->has_header ? (int)sizeof header : 0);
    if (length <= 0) return false;
    device_moves(ranges, count, (size_t)got, UIO_READ);
    struct mbuf *m = take(tap, length);
    if (header.flags & (NEEDS_CSUM | DATA_VALID)) m->m_pkthdr.csum_flags = CSUM_VALID;
    driver_input(ifp, m);
    return true;
}

static int tap_poll(struct ifnet *ifp) {
    int frames = 0;
    while (frames < AT_A_TIME && read_frame(ifp)) frames++;
    return frames;
}

int tap_attach_descriptor(struct ifnet *ifp, const struct tap_options *options, int descriptor) {
    struct tap_softc *tap = calloc(1, sizeof *tap);
    if (!tap) return ENOMEM;
    tap->descriptor = descriptor;
    tap->has_header = options->has_checksum || options->has_tso;
    tap->clusters = tap->has_header ? CLUSTERS : 1 + (options->mtu > 1500 ? options->mtu / MCLBYTES + 1 : 0);
    *ifp = (struct ifnet){.if_address = options->address,
                          .if_netmask = options->netmask,
                          .if_hardware = {2, 0, 0, 0, 0, 2},
                          .if_mtu = options->mtu ? options->mtu : 1500,
                          .if_is_ethernet = true,
                          .if_fd = descriptor,
                          .if_softc = tap,
                          .if_start = tap_start,
                          .if_poll = tap_poll};
    if (options->has_checksum) ifp->if_capabilities |= IFCAP_TXCSUM;
    if (options->has_tso) ifp->if_capabilities |= IFCAP_TXCSUM | IFCAP_TSO;
    strncpy(ifp->if_name, options->name, sizeof ifp->if_name - 1);
    if_attach(ifp);
    return 0;
}

int tap_attach(struct ifnet *ifp, const struct tap_options *options) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    bool has_header = options->has_checksum || options->has_tso;
    int descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return errno;
    if (has_header) request.ifr_flags |= IFF_VNET_HDR;
    strncpy(request.ifr_name, options->name, IFNAMSIZ - 1);
    unsigned offload = (has_header ? TUN_F_CSUM : 0) | (options->has_tso ? TUN_F_TSO4 : 0);
    int error = ioctl(descriptor, TUNSETIFF, &request) < 0 || (offload && ioctl(descriptor, TUNSETOFFLOAD, offload) < 0) ? errno : 0;
    if (!error) error = tap_attach_descriptor(ifp, options, descriptor);
    if (error) close(descriptor);
    return error;
}

void tap_detach(struct ifnet *ifp) {
    struct tap_softc *tap = ifp->if_softc;
    for (int i = 0; i < CLUSTERS; i++)
        if (tap->spare[i]) m_freem(tap->spare[i]);
    close(tap->descriptor);
    free(tap);
}
