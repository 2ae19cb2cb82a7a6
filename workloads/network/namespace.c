/* A network of the program's own, which vanishes with it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver.h"

/* Writes a file of /proc. */
static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file) return;
    fputs(text, file);
    fclose(file);
}

int namespace_enter(void) {
    char map[64];
    unsigned user = getuid(), group = getgid();
    if (unshare(CLONE_NEWNET) == 0) return 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) return errno;
    write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", user);
    write_file("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", group);
    write_file("/proc/self/gid_map", map);
    return 0;
}

/* Makes a request with an address. */
static int set_address(int control, struct ifreq *request, unsigned long number, uint32_t address) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {address}};
    memcpy(&request->ifr_addr, &in, sizeof in);
    return ioctl(control, number, request);
}

int namespace_configure(const char *name, uint32_t address, uint32_t netmask, int mtu) {
    struct ifreq request = {0};
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;
    if (control < 0) return errno;
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (set_address(control, &request, SIOCSIFADDR, address) < 0 || set_address(control, &request, SIOCSIFNETMASK, netmask) < 0)
        error = errno;
    request.ifr_mtu = mtu;
    if (!error && mtu && ioctl(control, SIOCSIFMTU, &request) < 0) error = errno;
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (!error && ioctl(control, SIOCSIFFLAGS, &request) < 0) error = errno;
    close(control);
    return error;
}
