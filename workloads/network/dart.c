/* The driver of the DART-style adapter. */
#define _GNU_SOURCE
#include "dart.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "ether.h"
#include "ip.h"
#include "network.h"
#include "socket.h"

#define SHORTEST 256                    /* Bytes for which a buffer of the adapter is worth its commands. */
#define SOCKET_QUOTA (1u << 20)         /* Bytes of the adapter's memory in each buffer of a socket. */
#define LONGEST_HEADERS (ETHER_HEADER + 60 + 60)
#define RANGES 64                       /* Of a caller's memory, in one call of the host's. */

/* The driver's own. */
struct dart_softc {
    struct dart_control *control;
    char *bogus; /* Addresses that stand for the data memory and trap every access. */
    int memory;
    struct dart_signals signals;
    pid_t adapter;
    uint32_t buffer_bytes, send_buffers;
    uint32_t free_buffers[DART_BUFFERS], free_count; /* That may be sent. */
    unsigned send_references[DART_BUFFERS], receive_references[DART_BUFFERS];
    uint32_t sum_commands[DART_BUFFERS]; /* The command that sums a buffer: how many have then been executed. */
    struct mbuf *under_way[DART_RING];   /* Packets that the adapter may still read, by the index of their command. */
    uint32_t reclaimed;                  /* Commands up to this one hold no packets any more. */
    uint32_t summary_consumer, receive_held; /* Packets received; buffers that sockets hold. */
    unsigned holdoff_us;
    FILE *log;
    uint32_t logged;                 /* Commands in the log, which also has the moves that no ring's entry asks for. */
    uint32_t arrivals[DART_BUFFERS]; /* Of the packet in a received buffer: how many came before it. */
};

/* Writes a record of the log, if there is one. */
#define LOG(dart, ...) \
    do { \
        if ((dart)->log) fprintf((dart)->log, __VA_ARGS__); \
    } while (0)

/* Writes a command into the log, and tells the adapter of it. */
#define LOG_COMMAND(dart, format, ...) \
    do { \
        LOG(dart, "command %u " format "\nwrite command-producer %u\n", (dart)->logged % DART_RING, __VA_ARGS__, ((dart)->logged + 1) % DART_RING); \
        (dart)->logged++; \
    } while (0)

static void ring_doorbell(struct dart_softc *dart) {
    uint64_t one = 1;
    /* Orders the change that the doorbell announces before the load: the adapter sets is_asleep and then looks for changes. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&dart->control->is_asleep, __ATOMIC_SEQ_CST) && write(dart->signals.doorbell, &one, sizeof one) < 0 && errno != EAGAIN) abort();
}

/* Ends the program if the adapter is gone. */
static void check_alive(const struct dart_softc *dart) {
    if (waitpid(dart->adapter, NULL, WNOHANG) == 0) return;
    fprintf(stderr, "dart: the adapter's process has ended\n");
    exit(1);
}

static bool has_executed(const struct dart_softc *dart, uint32_t executed) {
    return (int32_t)(__atomic_load_n(&dart->control->command_consumer, __ATOMIC_SEQ_CST) - executed) >= 0;
}

/* Waits until so many commands have been executed, asleep: waiting shall not be counted as work. */
static void wait_for(struct dart_softc *dart, uint32_t executed) {
    struct pollfd entry = {dart->signals.executed, POLLIN, 0};
    uint64_t events;
    if (has_executed(dart, executed)) return;
    __atomic_store_n(&dart->control->is_awaited, 1, __ATOMIC_SEQ_CST);
    while (!has_executed(dart, executed)) {
        if (poll(&entry, 1, 100) == 0) check_alive(dart);
        if (entry.revents && read(entry.fd, &events, sizeof events) < 0 && errno != EAGAIN) abort();
    }
    __atomic_store_n(&dart->control->is_awaited, 0, __ATOMIC_SEQ_CST);
}

/* Frees the packets that the adapter has read. */
static void reclaim(struct dart_softc *dart) {
    uint32_t executed = __atomic_load_n(&dart->control->command_consumer, __ATOMIC_ACQUIRE);
    for (; dart->reclaimed != executed; dart->reclaimed++) {
        struct mbuf **m = &dart->under_way[dart->reclaimed % DART_RING];
        m_freem(*m);
        *m = NULL;
    }
}

/* The place of the next command; waits if the ring is full. */
static struct dart_command *next_command(struct dart_softc *dart) {
    uint32_t producer = dart->control->command_producer;
    wait_for(dart, producer - DART_RING + 1);
    reclaim(dart);
    return &dart->control->commands[producer % DART_RING];
}

/* Gives a command to the adapter; how many have been executed when it has been. */
static uint32_t post(struct dart_softc *dart) {
    uint32_t producer = dart->control->command_producer + 1;
    __atomic_store_n(&dart->control->command_producer, producer, __ATOMIC_SEQ_CST);
    ring_doorbell(dart);
    return producer;
}

static uint32_t place_of(const struct dart_softc *dart, const struct mbuf *m) {
    return (uint32_t)(m->m_data - dart->bogus);
}

static uint32_t send_buffer_of(const struct dart_softc *dart, const struct mbuf *m) {
    return (uint32_t)(m->m_ext.ext_references - dart->send_references);
}

/* Moves `length` bytes between the data memory and a caller: the host's kernel does, not we. */
static int move(const struct dart_softc *dart, uint32_t place, int length, struct uio *uio) {
    while (length > 0) {
        struct iovec ranges[RANGES];
        int count = 0, part = 0;
        for (; count < RANGES && count < uio->uio_iovcnt && part < length; count++) {
            ranges[count] = uio->uio_iov[count];
            ranges[count].iov_len = MINIMUM(ranges[count].iov_len, (size_t)(length - part));
            part += (int)ranges[count].iov_len;
        }
        if (uio->uio_rw == UIO_WRITE) device_moves(ranges, count, part, UIO_WRITE);
        ssize_t done = uio->uio_rw == UIO_READ ? preadv(dart->memory, ranges, count, place) : pwritev(dart->memory, ranges, count, place);
        if (done <= 0) return done < 0 ? errno : EFAULT;
        if (uio->uio_rw == UIO_READ) device_moves(ranges, count, done, UIO_READ);
        uio_advance(uio, done);
        place += (uint32_t)done;
        length -= (int)done;
    }
    return 0;
}

/* The start of a caller's memory. */
static unsigned long long host_address(const struct uio *uio) {
    return uio->uio_iovcnt > 0 ? (uintptr_t)uio->uio_iov->iov_base : 0;
}

/* m_ext.uiomove_f of received data. */
static int dart_receive_uiomove(struct mbuf *m, int offset, int length, struct uio *uio) {
    struct dart_softc *dart = m->m_ext.ext_arg;
    LOG_COMMAND(dart, "copy-to-host %u %d %llu %d", dart->arrivals[m->m_ext.ext_references - dart->receive_references],
                (int)(m->m_data - m->m_ext.ext_buf) + offset, host_address(uio), length);
    return move(dart, place_of(dart, m) + offset, length, uio);
}

/* if_uiomove, and m_ext.uiomove_f of data that are sent: what is written is summed. */
static int dart_send_uiomove(struct mbuf *m, int offset, int length, struct uio *uio) {
    struct dart_softc *dart = m->m_ext.ext_arg;
    uint32_t place = place_of(dart, m) + offset, buffer = send_buffer_of(dart, m);
    unsigned long long from = host_address(uio);
    int error = move(dart, place, length, uio);
    if (error || uio->uio_rw == UIO_READ) return error;
    struct dart_command *command = next_command(dart);
    LOG_COMMAND(dart, "copy-to-adapter %llu %u %d", from, place, length);
    *command = (struct dart_command){.kind = DART_SUM, .buffer = buffer, .count = 1, .ranges = {{place, (uint32_t)length}}};
    dart->sum_commands[buffer] = post(dart);
    m->bytesSummed = offset == 0 ? length : 0;
    return 0;
}

/* m_ext.protocolSum_f. */
static uint16_t dart_sum(const struct mbuf *m) {
    struct dart_softc *dart = m->m_ext.ext_arg;
    uint32_t buffer = send_buffer_of(dart, m);
    wait_for(dart, dart->sum_commands[buffer]);
    return dart->control->sums[buffer];
}

static void free_send_buffer(struct m_ext *buffer) {
    struct dart_softc *dart = buffer->ext_arg;
    dart->free_buffers[dart->free_count++] = (uint32_t)(buffer->ext_references - dart->send_references);
}

/* if_xmtbufalloc */
static int dart_xmtbufalloc(struct ifnet *ifp, struct mbuf *m, int wanted) {
    struct dart_softc *dart = ifp->if_softc;
    if (wanted < SHORTEST) return 0;
    if (dart->free_count == 0) reclaim(dart);
    if (dart->free_count == 0) return 0;
    uint32_t buffer = dart->free_buffers[--dart->free_count];
    /* The first buffers are those of the ring: for headers and the host's packets. */
    char *data = dart->bogus + (size_t)(DART_RING + buffer) * dart->buffer_bytes;
    dart->send_references[buffer] = 1;
    m->m_ext = (struct m_ext){.ext_buf = data, .ext_size = dart->buffer_bytes, .ext_references = &dart->send_references[buffer],
                              .ext_free = free_send_buffer, .ext_arg = dart, .protocolSum_f = dart_sum, .uiomove_f = dart_send_uiomove};
    m->m_flags |= M_EXT | M_UIOMOVE;
    m->m_data = data;
    return MINIMUM(wanted, (int)dart->buffer_bytes);
}

/* if_sockbuf */
static void dart_sockbuf(struct ifnet *ifp, struct socket *so) {
    (void)ifp;
    soreserve_adapter(so, SOCKET_QUOTA, SOCKET_QUOTA);
}

/* if_pktok: all of the adapter's buffers are ours and sent ones, and the host's bytes fit into the reserved buffer. */
static bool dart_pktok(struct ifnet *ifp, const struct mbuf *m) {
    const struct dart_softc *dart = ifp->if_softc;
    int bytes = LONGEST_HEADERS, ranges = 1;
    for (bool is_adapters = false; m; m = m->m_next) {
        if (m->m_flags & M_UIOMOVE && (m->m_ext.ext_arg != dart || m->m_ext.uiomove_f != dart_send_uiomove)) return false;
        bool is_next = m->m_flags & M_UIOMOVE;
        ranges += is_next || is_next != is_adapters;
        if (!is_next) bytes += m->m_len;
        is_adapters = is_next;
    }
    return ranges <= DART_RANGES && bytes <= (int)dart->buffer_bytes;
}

/* Adds a range to a command, or lengthens its last one. */
static bool add_range(struct dart_command *command, uint32_t offset, uint32_t length) {
    struct dart_range *last = command->count > 0 ? &command->ranges[command->count - 1] : NULL;
    if (last && last->offset + last->length == offset) {
        last->length += length;
        return true;
    }
    if (command->count == DART_RANGES) return false;
    command->ranges[command->count++] = (struct dart_range){offset, length};
    return true;
}

/* if_start: the host's parts go to the reserved buffer of the command; the rest is in the adapter already. */
static int dart_start(struct ifnet *ifp, struct mbuf *m) {
    struct dart_softc *dart = ifp->if_softc;
    struct dart_command *command = next_command(dart);
    uint32_t index = dart->control->command_producer % DART_RING, reserved = index * dart->buffer_bytes, used = 0;
    struct iovec ranges[RANGES];
    int count = 0;
    bool fits = true;
    *command = (struct dart_command){.kind = DART_TRANSMIT};
    for (const struct mbuf *one = m; one && fits; one = one->m_next) {
        if (one->m_len == 0) continue;
        if (one->m_flags & M_UIOMOVE) {
            fits = add_range(command, place_of(dart, one), one->m_len);
            continue;
        }
        fits = count < RANGES && used + one->m_len <= dart->buffer_bytes && add_range(command, reserved + used, one->m_len);
        if (fits) ranges[count++] = (struct iovec){one->m_data, one->m_len};
        used += one->m_len;
    }
    if (!fits || pwritev(dart->memory, ranges, count, reserved) != (ssize_t)used) {
        m_freem(m);
        return EMSGSIZE;
    }
    LOG(dart, "store %u %u\n", reserved, used);
    LOG_COMMAND(dart, "transmit 1 %u %d 0", reserved, m->m_pkthdr.len);
    dart->under_way[index] = m;
    post(dart);
    return 0;
}

static void recycle(struct dart_softc *dart, uint32_t buffer) {
    struct dart_command *command = next_command(dart);
    LOG_COMMAND(dart, "recycle %u", dart->arrivals[buffer]);
    *command = (struct dart_command){.kind = DART_RECYCLE, .buffer = buffer};
    post(dart);
}

static void free_received(struct m_ext *buffer) {
    struct dart_softc *dart = buffer->ext_arg;
    dart->receive_held--;
    recycle(dart, (uint32_t)(buffer->ext_references - dart->receive_references));
}

/* The checksum field that a received packet must have: the hardware's sum without IP's header and the field itself, and with the
 * pseudo-header. */
static uint16_t expected_sum(const struct dart_summary *summary, const struct ip *ip, const unsigned char *header, int transport, int length) {
    uint16_t field;
    memcpy(&field, header + transport + (ip->ip_p == PROTOCOL_TCP ? 16 : 6), 2);
    uint32_t sum = summary->sum + (uint16_t)~in_sum(header + ETHER_HEADER, transport - ETHER_HEADER);
    sum += (uint16_t)~field + in_pseudo(ip->ip_src, ip->ip_dst, ip->ip_p, length);
    return ~in_fold(sum);
}

/* Whether a packet may stay in the adapter: IP, not a fragment, TCP or UDP, longer than its headers, without anything behind it. */
static bool may_stay(const struct dart_summary *summary, struct ip *ip) {
    const unsigned char *bytes = (const unsigned char *)summary->first;
    if (summary->length <= DART_FIRST || bytes[12] != 8 || bytes[13] != 0) return false;
    memcpy(ip, bytes + ETHER_HEADER, IP_HEADER);
    bool is_known = ip->ip_p == PROTOCOL_TCP || ip->ip_p == PROTOCOL_UDP;
    return ip->ip_vhl >> 4 == 4 && ip_header_length(ip) >= IP_HEADER && is_known && !(ntohs(ip->ip_off) & (IP_MF | IP_OFFSET)) &&
           ntohs(ip->ip_len) == summary->length - ETHER_HEADER;
}

/* A packet of two mbufs: the beginning, and the rest in the adapter. */
static struct mbuf *keep(struct dart_softc *dart, const struct dart_summary *summary, const struct ip *ip) {
    struct mbuf *m = m_gethdr(), *rest = m_get();
    if (!m || !rest) {
        m_freem(m);
        m_freem(rest);
        return NULL;
    }
    int transport = ETHER_HEADER + ip_header_length(ip);
    m->m_data += ETHER_ALIGN;
    memcpy(m->m_data, summary->first, DART_FIRST);
    m->m_len = DART_FIRST;
    m->m_next = rest;
    m->m_pkthdr.len = (int)summary->length;
    m->m_flags |= M_PROTOCOL_SUM;
    m->m_pkthdr.protocolSum = expected_sum(summary, ip, (const unsigned char *)summary->first, transport, (int)summary->length - transport);
    dart->receive_references[summary->buffer] = 1;
    dart->receive_held++;
    char *data = dart->bogus + DART_RECEIVE + (size_t)summary->buffer * dart->buffer_bytes;
    rest->m_ext = (struct m_ext){.ext_buf = data, .ext_size = dart->buffer_bytes, .ext_references = &dart->receive_references[summary->buffer],
                                 .ext_free = free_received, .ext_arg = dart, .uiomove_f = dart_receive_uiomove};
    rest->m_flags |= M_EXT | M_UIOMOVE;
    rest->m_data = data + DART_FIRST;
    rest->m_len = (int)summary->length - DART_FIRST;
    return m;
}

/* A packet in the host's memory. */
static struct mbuf *copy(const struct dart_softc *dart, const struct dart_summary *summary) {
    struct mbuf *first = NULL, **link = &first;
    off_t place = DART_RECEIVE + (off_t)summary->buffer * dart->buffer_bytes;
    for (int left = (int)summary->length; left > 0; link = &(*link)->m_next) {
        struct mbuf *m = *link = m_getcl(first ? 0 : M_PKTHDR);
        if (!m) break;
        if (m == first) m->m_data += ETHER_ALIGN;
        m->m_len = MINIMUM(left, MCLBYTES - ETHER_ALIGN);
        if (left == (int)summary->length && left <= DART_FIRST) memcpy(m->m_data, summary->first, left);
        else if (pread(dart->memory, m->m_data, m->m_len, place) != m->m_len) abort();
        else device_moves(&(struct iovec){m->m_data, m->m_len}, 1, m->m_len, UIO_READ);
        place += m->m_len;
        left -= m->m_len;
    }
    if (first) first->m_pkthdr.len = (int)summary->length;
    if (first && m_length(first) == (int)summary->length) return first;
    m_freem(first);
    return NULL;
}

/* Takes one summary; false if the next one is the adapter's. */
static bool take_summary(struct ifnet *ifp) {
    struct dart_softc *dart = ifp->if_softc;
    struct dart_summary *shared = &dart->control->summaries[dart->summary_consumer % DART_RING], summary;
    struct ip ip;
    if (!__atomic_load_n(&shared->is_hosts, __ATOMIC_ACQUIRE)) return false;
    summary = *shared;
    dart->arrivals[summary.buffer] = dart->summary_consumer++;
    LOG(dart, "arrive 1 %u\nawait summaries %u\n", summary.length, dart->summary_consumer);
    __atomic_store_n(&shared->is_hosts, 0, __ATOMIC_RELEASE);
    /* Some buffers are for packets that fill gaps: what is held may wait for them. */
    bool is_scarce = dart->receive_held + DART_RING > dart->control->receive_buffers * 3 / 4;
    struct mbuf *m = !parameters.no_dart && !is_scarce && may_stay(&summary, &ip) ? keep(dart, &summary, &ip) : NULL;
    if (!m) {
        m = copy(dart, &summary);
        recycle(dart, summary.buffer);
    }
    if (m) driver_input(ifp, m);
    return true;
}

/* if_poll: the interrupt. */
static int dart_poll(struct ifnet *ifp) {
    struct dart_softc *dart = ifp->if_softc;
    uint64_t cause;
    int packets = 0;
    struct timespec now;
    if (read(dart->signals.interrupt, &cause, sizeof cause) == sizeof cause) LOG(dart, "read cause\n");
    while (packets < DART_RING && take_summary(ifp)) packets++;
    reclaim(dart);
    if (packets == 0) {
        check_alive(dart);
        return 0;
    }
    LOG(dart, "write summary-consumer %u\nwrite first-holdoff %u\n", dart->summary_consumer % DART_RING, dart->holdoff_us * 1000);
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t until = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec + dart->holdoff_us * 1000ull;
    __atomic_store_n(&dart->control->holdoff_until, until, __ATOMIC_RELEASE);
    /* The adapter may have waited for a summary. */
    ring_doorbell(dart);
    return packets;
}

/* Opens the adapter's device. */
static int open_tap(const struct tap_options *options) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    strncpy(request.ifr_name, options->name, IFNAMSIZ - 1);
    if (descriptor >= 0 && ioctl(descriptor, TUNSETIFF, &request) == 0) return descriptor;
    int error = errno;
    if (descriptor >= 0) close(descriptor);
    errno = error;
    return -1;
}

/* Makes the memories and the signals between driver and adapter. */
static bool make_memories(struct dart_softc *dart) {
    dart->memory = (int)syscall(SYS_memfd_create, "dart", 1u);
    dart->signals.doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    dart->signals.executed = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    dart->signals.interrupt = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    dart->control = mmap(NULL, sizeof *dart->control, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    dart->bogus = mmap(NULL, DART_MEMORY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool has_signals = dart->signals.doorbell >= 0 && dart->signals.executed >= 0 && dart->signals.interrupt >= 0;
    return has_signals && dart->memory >= 0 && dart->control != MAP_FAILED && dart->bogus != MAP_FAILED && ftruncate(dart->memory, DART_MEMORY) == 0;
}

int dart_attach(struct ifnet *ifp, const struct dart_options *options) {
    struct dart_softc *dart = calloc(1, sizeof *dart);
    int tap = open_tap(&options->tap), mtu = options->tap.mtu ? options->tap.mtu : 1500;
    if (!dart || tap < 0 || !make_memories(dart)) {
        free(dart);
        return errno ? errno : ENOMEM;
    }
    dart->buffer_bytes = (uint32_t)(mtu + ETHER_HEADER + 511) & ~511u;
    uint32_t fit = DART_RECEIVE / dart->buffer_bytes;
    dart->send_buffers = MINIMUM(options->send_buffers ? options->send_buffers : DART_BUFFERS, fit - DART_RING);
    dart->control->receive_buffers = MINIMUM(options->receive_buffers ? options->receive_buffers : DART_BUFFERS, fit);
    dart->control->buffer_bytes = dart->buffer_bytes;
    dart->holdoff_us = options->holdoff_us;
    for (uint32_t i = dart->send_buffers; i > 0; i--) dart->free_buffers[dart->free_count++] = i - 1;
    if (options->log && (dart->log = fopen(options->log, "w"))) fprintf(dart->log, "pathlength-adapter-log 1\n");
    pid_t parent = getpid();
    dart->adapter = fork();
    if (dart->adapter == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        dart_adapter(dart->control, dart->memory, tap, &dart->signals);
    }
    close(tap);
    *ifp = (struct ifnet){.if_address = options->tap.address, .if_netmask = options->tap.netmask, .if_hardware = {2, 0, 0, 0, 0, 2},
                          .if_mtu = mtu, .if_is_ethernet = true, .if_fd = dart->signals.interrupt, .if_softc = dart, .if_start = dart_start,
                          .if_poll = dart_poll, .if_uiomove = dart_send_uiomove, .if_xmtbufalloc = dart_xmtbufalloc,
                          .if_bufrlen = (int)dart->buffer_bytes, .if_sockbuf = dart_sockbuf, .if_pktok = dart_pktok};
    strncpy(ifp->if_name, options->tap.name, sizeof ifp->if_name - 1);
    if_attach(ifp);
    return dart->adapter < 0 ? errno : 0;
}

void dart_detach(struct ifnet *ifp) {
    struct dart_softc *dart = ifp->if_softc;
    wait_for(dart, dart->control->command_producer);
    reclaim(dart);
    kill(dart->adapter, SIGKILL);
    waitpid(dart->adapter, NULL, 0);
    if (dart->log) fclose(dart->log);
    munmap(dart->control, sizeof *dart->control);
    munmap(dart->bogus, DART_MEMORY);
    close(dart->memory);
    close(dart->signals.doorbell);
    close(dart->signals.executed);
    close(dart->signals.interrupt);
    free(dart);
}
