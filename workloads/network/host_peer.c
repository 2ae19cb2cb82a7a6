/* The host's side of the test of real traffic, with the host's own sockets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "pattern.h"
#include "transfer.h"

#define BUFFER 65536

static char buffer[BUFFER];

static struct sockaddr_in address_of(uint32_t address, uint16_t port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(address)}};
}

static int bound(int type, uint16_t port) {
    struct sockaddr_in address = address_of(HOST_ADDRESS, port);
    int descriptor = socket(AF_INET, type, 0), on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(descriptor, (void *)&address, sizeof address) < 0 || (type == SOCK_STREAM && listen(descriptor, 8) < 0)) {
        perror("host: bind");
        exit(1);
    }
    return descriptor;
}

/* A process for a part, which dies with this one. */
static pid_t start_part(void) {
    pid_t parent = getpid(), child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (child == 0 && getppid() != parent) _exit(1);
    return child;
}

/* Takes a stream to its end, and answers 'y' if every byte was right. */
static void sink(int listener, uint64_t seed) {
    int connection = accept(listener, NULL, NULL);
    uint64_t position = 0;
    bool is_right = true;
    ssize_t got;
    while ((got = read(connection, buffer, BUFFER)) > 0) {
        is_right &= pattern_is(buffer, got, position, seed);
        position += got;
    }
    if (got < 0) is_right = false;
    if (write(connection, is_right ? "y" : "n", 1) != 1) perror("host: write");
    close(connection);
}

/* Gives back a stream, in a process of its own. */
static void echo(int listener) {
    int connection = accept(listener, NULL, NULL);
    if (start_part() > 0) {
        close(connection);
        return;
    }
    ssize_t got;
    while ((got = read(connection, buffer, BUFFER)) > 0)
        for (ssize_t done = 0, put; done < got; done += put)
            if ((put = write(connection, buffer + done, got - done)) < 0) _exit(1);
    _exit(0);
}

static void echo_datagram(int descriptor) {
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t got = recvfrom(descriptor, buffer, BUFFER, 0, (void *)&from, &size);
    if (got >= 0) sendto(descriptor, buffer, got, 0, (void *)&from, size);
}

/* Connects to the stack and sends. */
static void source(uint64_t bytes, uint64_t seed) {
    struct sockaddr_in address = address_of(STACK_ADDRESS, SOURCE_PORT);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (void *)&address, sizeof address) < 0) {
        perror("host: connect");
        _exit(1);
    }
    for (uint64_t position = 0; position < bytes;) {
        size_t part = bytes - position < BUFFER ? bytes - position : BUFFER;
        pattern_fill(buffer, part, position, seed);
        for (size_t done = 0; done < part;) {
            ssize_t put = write(connection, buffer + done, part - done);
            if (put < 0) _exit(1);
            done += put;
        }
        position += part;
    }
    shutdown(connection, SHUT_WR);
    /* Until the stack has closed, too. */
    while (read(connection, buffer, BUFFER) > 0) {}
    _exit(0);
}

static uint16_t sum_of(const unsigned char *at, int length) {
    uint32_t sum = 0;
    for (int i = 0; i < length; i += 2) sum += at[i] << 8 | at[i + 1];
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return ~sum;
}

/* An echo of 3000 bytes, in fragments both ways. */
static int ping(void) {
    unsigned char request[3008] = {8, 0, 0, 0, 18, 52, 0, 1};
    struct sockaddr_in address = address_of(STACK_ADDRESS, 0);
    struct timeval patience = {10, 0};
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    for (unsigned i = 8; i < sizeof request; i++) request[i] = i * 7;
    uint16_t sum = sum_of(request, sizeof request);
    request[2] = sum >> 8;
    request[3] = sum & 255;
    setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sendto(raw, request, sizeof request, 0, (void *)&address, sizeof address);
    for (;;) {
        ssize_t got = recv(raw, buffer, BUFFER, 0);
        if (got < 0) return 1;
        const unsigned char *answer = (unsigned char *)buffer + 20;
        if (got == 20 + (int)sizeof request && answer[0] == 0 && memcmp(answer + 4, request + 4, sizeof request - 4) == 0) break;
    }
    close(raw);
    return 0;
}

int host_probe(void) {
    struct sockaddr_in address = address_of(STACK_ADDRESS, CLOSED_PORT);
    struct timeval patience = {10, 0};
    int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (ping()) return 1;
    setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(udp, (void *)&address, sizeof address) < 0 || send(udp, "?", 1, 0) != 1) return 2;
    if (recv(udp, buffer, 1, 0) >= 0 || errno != ECONNREFUSED) return 3;
    if (connect(tcp, (void *)&address, sizeof address) >= 0 || errno != ECONNREFUSED) return 4;
    close(udp);
    close(tcp);
    return 0;
}

static struct pollfd entries[3];

void host_listen(void) {
    entries[0] = (struct pollfd){bound(SOCK_STREAM, SINK_PORT), POLLIN, 0};
    entries[1] = (struct pollfd){bound(SOCK_STREAM, ECHO_PORT), POLLIN, 0};
    entries[2] = (struct pollfd){bound(SOCK_DGRAM, UDP_PORT), POLLIN, 0};
}

void host_peer(uint64_t received, uint64_t seed) {
    if (received > 0 && start_part() == 0) source(received, seed);
    while (poll(entries, 3, -1) > 0) {
        if (entries[0].revents) sink(entries[0].fd, seed);
        if (entries[1].revents) echo(entries[1].fd);
        if (entries[2].revents) echo_datagram(entries[2].fd);
    }
}
