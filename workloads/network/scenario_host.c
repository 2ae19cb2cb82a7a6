/* The host's TCP as a subject of scenarios: a TUN device in a network of the runner's own, and real time. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver.h"
#include "scenario.h"

static int device = -1, listener = -1, connection = -1;

static void check(const char *what, long result) {
    if (result < 0) scenario_fail("%s: %s", what, strerror(errno));
}

static void set(const char *name, const char *value) {
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/%s", name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    check(path, file);
    check(path, write(file, value, strlen(value)));
    close(file);
}

static void begin(const struct scenario_settings *settings) {
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "scenario0"};
    device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    check("/dev/net/tun", device);
    check("TUNSETIFF", ioctl(device, TUNSETIFF, &request));
    errno = namespace_configure(request.ifr_name, htonl(SUBJECT_ADDRESS), htonl(0xffffff00), settings->mtu);
    check("the device's address", errno ? -1 : 0);
    set("tcp_sack", "0");
    set("tcp_ecn", "0");
    set("tcp_timestamps", settings->no_timestamps ? "0" : "1");
    set("tcp_window_scaling", settings->no_scaling ? "0" : "1");
    set("tcp_congestion_control", "reno");
    set("tcp_early_retrans", "0");
    set("tcp_recovery", "0");
    set("tcp_syncookies", "0");
}

static void end(void) {
    if (connection >= 0) close(connection);
    if (listener >= 0) close(listener);
    close(device);
    device = listener = connection = -1;
}

static void inject(unsigned char *packet, int length) {
    check("a packet to the device", write(device, packet, length));
}

static int capture(unsigned char *packet, int size) {
    struct pollfd entry = {device, POLLIN, 0};
    for (;;) {
        if (poll(&entry, 1, 15) <= 0) return 0;
        int got = (int)read(device, packet, size);
        /* The host also talks to its neighbours by itself, in IPv6. */
        if (got > 0 && packet[0] >> 4 == 4 && packet[9] == IPPROTO_TCP) return got;
    }
}

static void advance(unsigned ms) {
    usleep(ms * 1000);
}

static int bound(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(SUBJECT_PORT), .sin_addr = {htonl(SUBJECT_ADDRESS)}};
    int result = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    check("socket", result);
    setsockopt(result, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    check("bind", bind(result, (void *)&here, sizeof here));
    return result;
}

static void make_listen(void) {
    listener = bound();
    check("listen", listen(listener, 4));
}

static void make_connect(void) {
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(PEER_PORT), .sin_addr = {htonl(PEER_ADDRESS)}};
    connection = bound();
    if (connect(connection, (void *)&peer, sizeof peer) < 0 && errno != EINPROGRESS) scenario_fail("connect: %s", strerror(errno));
}

static void make_accept(void) {
    connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    check("accept", connection);
}

static long make_write(char *bytes, unsigned length) {
    long done = send(connection, bytes, length, MSG_NOSIGNAL);
    return done < 0 ? -errno : done;
}

static long make_read(char *bytes, unsigned length) {
    long done = read(connection, bytes, length);
    return done < 0 ? -errno : done;
}

static void make_shutdown(void) {
    check("shutdown", shutdown(connection, SHUT_WR));
}

static void make_close(void) {
    close(connection);
    connection = -1;
}

static void make_abort(void) {
    struct linger now = {1, 0};
    setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    make_close();
}

static void option(const char *name) {
    int on = 1, interval = 1, count = 3, socket_of = connection >= 0 ? connection : listener;
    if (strcmp(name, "nodelay") == 0) {
        check(name, setsockopt(socket_of, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
        return;
    }
    check(name, setsockopt(socket_of, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    setsockopt(socket_of, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof interval);
    setsockopt(socket_of, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(socket_of, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int take_error(void) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

static const char *state(void) {
    static const char *const NAMES[] = {"?",          "ESTABLISHED", "SYN-SENT", "SYN-RECEIVED", "FIN-WAIT-1", "FIN-WAIT-2",
                                        "TIME-WAIT", "CLOSED",      "CLOSE-WAIT", "LAST-ACK",   "LISTEN",     "CLOSING"};
    struct tcp_info information = {0};
    socklen_t size = sizeof information;
    if (connection < 0) return "?";
    getsockopt(connection, IPPROTO_TCP, TCP_INFO, &information, &size);
    /* The host's sockets know nothing of a connection in TIME-WAIT. */
    if (information.tcpi_state >= 12 || information.tcpi_state == TCP_CLOSE) return "?";
    return NAMES[information.tcpi_state];
}

const struct subject host_subject = {
    .name = "host",      .begin = begin,         .end = end,              .inject = inject,      .capture = capture,
    .advance = advance,  .listen = make_listen,  .connect = make_connect, .accept = make_accept, .write = make_write,
    .read = make_read,   .shutdown = make_shutdown, .close = make_close,  .abort = make_abort,   .option = option,
    .error = take_error, .state = state,
};
