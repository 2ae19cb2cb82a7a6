/* The guest's network: interfaces, addresses, namespaces and offloads, by the kernel's own interfaces, as the guest has no tools. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network.h"

static const char *const NAMES[2] = {"eth0", "eth1"}, *const ADDRESSES[2] = {"10.0.0.1", "10.0.0.2"};
/* How long a link may take to come up, in pauses of 50 ms. */
enum { PAUSES = 600 };
/* The namespaces of the program and of those in the background; -1 without a network. */
static int namespaces[2] = {-1, -1};

static int new_socket(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    return fd;
}

/* A request of rtnetlink, to which attributes are appended. */
struct request {
    struct nlmsghdr head;
    struct ifinfomsg link;
    char attributes[512];
};

static struct rtattr *append(struct request *request, int type, const void *value, size_t length) {
    struct rtattr *attribute = (void *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));
    attribute->rta_type = type, attribute->rta_len = RTA_LENGTH(length);
    if (length) memcpy(RTA_DATA(attribute), value, length);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
    return attribute;
}

/* Ends an attribute that contains what was appended since. */
static void enclose(struct request *request, struct rtattr *attribute) {
    attribute->rta_len = (char *)request + request->head.nlmsg_len - (char *)attribute;
}

static void change_link(struct request *request, const char *what) {
    struct { struct nlmsghdr head; struct nlmsgerr error; char rest[1024]; } reply;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    request->head.nlmsg_type = RTM_NEWLINK, request->head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (fd < 0 || send(fd, request, request->head.nlmsg_len, 0) < 0 || recv(fd, &reply, sizeof reply, 0) < 0) die(what);
    errno = -reply.error.error;
    if (reply.head.nlmsg_type != NLMSG_ERROR || errno) die(what);
    close(fd);
}

static void make_veth(void) {
    struct request request = {.head.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .head.nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL};
    struct ifinfomsg peer = {0};
    append(&request, IFLA_IFNAME, NAMES[0], strlen(NAMES[0]) + 1);
    struct rtattr *information = append(&request, IFLA_LINKINFO, NULL, 0);
    append(&request, IFLA_INFO_KIND, "veth", 4);
    struct rtattr *data = append(&request, IFLA_INFO_DATA, NULL, 0);
    struct rtattr *other = append(&request, VETH_INFO_PEER, &peer, sizeof peer);
    append(&request, IFLA_IFNAME, NAMES[1], strlen(NAMES[1]) + 1);
    enclose(&request, other), enclose(&request, data), enclose(&request, information);
    change_link(&request, "veth");
}

static void move(const char *name, int namespace) {
    struct request request = {.head.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .link.ifi_index = if_nametoindex(name)};
    if (!request.link.ifi_index) die(name);
    append(&request, IFLA_NET_NS_FD, &namespace, sizeof namespace);
    change_link(&request, name);
}

/* The offloads in the order of the levels that have them. Merging received segments (GRO) and dividing large ones (GSO) are the kernel's
 * own forms of segmentation. */
static void set_offloads(const char *name, const char *offloads) {
    static const struct { uint32_t command; int level; } settings[] = {
        {ETHTOOL_SRXCSUM, 1}, {ETHTOOL_STXCSUM, 1}, {ETHTOOL_SSG, 1}, {ETHTOOL_STSO, 2}, {ETHTOOL_SGSO, 2}, {ETHTOOL_SGRO, 2},
    };
    int level = !strcmp(offloads, "segmentation") ? 2 : !strcmp(offloads, "checksum");
    int fd = new_socket();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct ethtool_value value = {.cmd = settings[i].command, .data = level >= settings[i].level};
        struct ifreq request = {.ifr_data = (void *)&value};
        strcpy(request.ifr_name, name);
        /* What a card does not have need not be turned off. */
        if (ioctl(fd, SIOCETHTOOL, &request) && (value.data || errno != EOPNOTSUPP)) die("SIOCETHTOOL");
    }
    close(fd);
}

static void bring_up(const char *name, const char *address, int prefix) {
    struct ifreq request = {0};
    struct sockaddr_in *in = (void *)&request.ifr_addr;
    int fd = new_socket();
    strcpy(request.ifr_name, name);
    in->sin_family = AF_INET, in->sin_addr.s_addr = inet_addr(address);
    if (ioctl(fd, SIOCSIFADDR, &request)) die(name);
    in->sin_addr.s_addr = htonl(~0u << (32 - prefix));
    if (ioctl(fd, SIOCSIFNETMASK, &request)) die(name);
    request.ifr_flags = IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request)) die(name);
    close(fd);
}

static void await_link(const char *name) {
    struct ifreq request = {0};
    int fd = new_socket();
    strcpy(request.ifr_name, name);
    for (int pauses = 0;; pauses++) {
        if (ioctl(fd, SIOCGIFFLAGS, &request)) die(name);
        if (request.ifr_flags & IFF_RUNNING) break;
        errno = ETIMEDOUT;
        if (pauses == PAUSES) die(name);
        usleep(50000);
    }
    close(fd);
}

static void enter(int namespace) {
    if (setns(namespace, CLONE_NEWNET)) die("setns");
}

static int own_namespace(void) {
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (fd < 0) die("/proc/self/ns/net");
    return fd;
}

void prepare_network(const char *kind, const char *offloads) {
    namespaces[0] = own_namespace();
    if (unshare(CLONE_NEWNET)) die("unshare");
    namespaces[1] = own_namespace();
    enter(namespaces[0]);
    if (!strcmp(kind, "veth")) make_veth();
    move(NAMES[1], namespaces[1]);
    for (int side = 0; side < 2; side++) {
        enter(namespaces[side]);
        if (offloads) set_offloads(NAMES[side], offloads);
        bring_up("lo", "127.0.0.1", 8);
        bring_up(NAMES[side], ADDRESSES[side], 24);
    }
    for (int side = 1; side >= 0; side--) {
        enter(namespaces[side]);
        await_link(NAMES[side]);
    }
}

void enter_peer_namespace(void) {
    if (namespaces[1] >= 0) enter(namespaces[1]);
}
