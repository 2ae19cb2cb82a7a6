/* Sends bytes from a program to another over TCP, of which each byte is checked: the ladder of copies on an unmodified kernel.
 *
 *     transfer receive PORT READY BYTES...              creates the file READY once it listens
 *     transfer send ADDRESS PORT HOW CHUNK BYTES...     HOW is write, sendfile or zerocopy; CHUNK the bytes of a call
 *
 * Both get the same list of BYTES: parts of the stream, after each of which the receiver says whether all was right. The last part is counted,
 * between counted_begin and counted_end, when the connection has warmed up. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, PARTS = 16, RIGHT = 'y', WRONG = 'n' };

/* What the sender's notifications of MSG_ZEROCOPY said. */
static uint64_t zerocopy_calls, zerocopy_completed, zerocopy_copied;

static void die(const char *what) {
    fprintf(stderr, "transfer: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t number(const char *text) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') {
        fprintf(stderr, "transfer: '%s' is not a number\n", text);
        exit(2);
    }
    return value;
}

/* The eight bytes of the stream at eight times this index; no two parts of a stream are equal. */
static inline uint64_t word_at(uint64_t index) {
    uint64_t word = (index + 1) * 0x9e3779b97f4a7c15;
    return word ^ word >> 29;
}

static void fill(unsigned char *bytes, uint64_t count) {
    for (uint64_t at = 0; at < count; at += 8) {
        uint64_t word = word_at(at / 8);
        memcpy(bytes + at, &word, count - at < 8 ? count - at : 8);
    }
}

/* Whether these bytes are those of the stream at a position. */
static int is_right(const unsigned char *bytes, uint64_t count, uint64_t position) {
    uint64_t at = 0, word, differing = 0;
    for (; at < count && (position + at) % 8; at++) differing |= bytes[at] ^ (word_at((position + at) / 8) >> 8 * ((position + at) % 8) & 0xff);
    for (; at + 8 <= count; at += 8) {
        memcpy(&word, bytes + at, 8);
        differing |= word ^ word_at((position + at) / 8);
    }
    for (; at < count; at++) differing |= bytes[at] ^ (word_at((position + at) / 8) >> 8 * ((position + at) % 8) & 0xff);
    return !differing;
}

static void receive(int port, const char *ready, int parts, const uint64_t *bytes) {
    static unsigned char buffer[BUFFER] __attribute__((aligned(8)));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int listening = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (listening < 0 || setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on)) die("socket");
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 1)) die("listen");
    if (close(open(ready, O_WRONLY | O_CREAT, 0666))) die(ready);
    int connection = accept(listening, NULL, NULL);
    if (connection < 0) die("accept");
    uint64_t position = 0, end = 0;
    char verdict = RIGHT;
    for (int part = 0; part < parts; part++) {
        end += bytes[part];
        while (position < end) {
            ssize_t n = read(connection, buffer, end - position < BUFFER ? end - position : BUFFER);
            if (n < 0) die("read");
            if (!n) exit(1);
            if (!is_right(buffer, n, position)) verdict = WRONG;
            position += n;
        }
        if (write(connection, &verdict, 1) != 1) die("write");
    }
    if (read(connection, buffer, 1)) die("more than was agreed");
}

/* Reads notifications; waits for them if there are none and `waits`. */
static void take_notifications(int connection, int waits) {
    for (;;) {
        char control[256];
        struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
        if (recvmsg(connection, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
            if (errno != EAGAIN) die("MSG_ERRQUEUE");
            if (!waits || zerocopy_completed == zerocopy_calls) return;
            if (poll(&(struct pollfd){.fd = connection}, 1, -1) < 0) die("poll");
            continue;
        }
        for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
            const struct sock_extended_err *error = (void *)CMSG_DATA(one);
            if (one->cmsg_level != SOL_IP || one->cmsg_type != IP_RECVERR || error->ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
            uint64_t count = error->ee_data - error->ee_info + 1;
            zerocopy_completed += count;
            if (error->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) zerocopy_copied += count;
        }
    }
}

/* Sends part of the data, of which `file` has the same. */
static void send_part(int connection, char how, const unsigned char *data, int file, uint64_t position, uint64_t end, uint64_t chunk) {
    while (position < end) {
        uint64_t wanted = end - position < chunk ? end - position : chunk;
        off_t offset = position;
        ssize_t n;
        if (how == 'w') n = write(connection, data + position, wanted);
        else if (how == 's') n = sendfile(connection, file, &offset, wanted);
        else n = send(connection, data + position, wanted, MSG_ZEROCOPY);
        if (n < 0 && how == 'z' && errno == ENOBUFS) {
            take_notifications(connection, 1);
            continue;
        }
        if (n <= 0) die("send");
        position += n;
        if (how == 'z') {
            zerocopy_calls++;
            take_notifications(connection, 0);
        }
    }
    if (how == 'z') take_notifications(connection, 1);
}

/* The places between which the last part is counted. */
__attribute__((noipa)) void counted_begin(void) { __asm__ volatile(""); }
__attribute__((noipa)) void counted_end(void) { __asm__ volatile(""); }

/* The columns of an interface in /proc/net/dev: received and sent packets and bytes. */
static void packets(const char *interface, uint64_t counts[4]) {
    char line[512];
    FILE *file = fopen("/proc/net/dev", "r");
    memset(counts, 0, 4 * sizeof *counts);
    if (!file) die("/proc/net/dev");
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':'), *name = line + strspn(line, " ");
        if (!colon || strncmp(name, interface, strlen(interface)) || name + strlen(interface) != colon) continue;
        sscanf(colon + 1, "%lu %lu %*u %*u %*u %*u %*u %*u %lu %lu", &counts[1], &counts[0], &counts[3], &counts[2]);
    }
    fclose(file);
}

static void transmit(const char *to, int port, char how, uint64_t chunk, int parts, const uint64_t *bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(to)};
    uint64_t total = 0, end = 0, before[4], after[4];
    for (int part = 0; part < parts; part++) total += bytes[part];
    int file = open("/tmp/transfer-data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, total)) die("/tmp/transfer-data");
    /* Only sendfile needs the file. Pages of the program's own are what programs send. */
    unsigned char *data = mmap(NULL, total, PROT_READ | PROT_WRITE, how == 's' ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, how == 's' ? file : -1, 0);
    if (data == MAP_FAILED) die("mmap");
    fill(data, total);
    int connection = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address)) die("connect");
    if (how == 'z' && setsockopt(connection, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on)) die("SO_ZEROCOPY");
    for (int part = 0; part < parts; part++) {
        char verdict = WRONG;
        packets("eth0", before);
        uint64_t calls = zerocopy_calls, copied = zerocopy_copied;
        if (part + 1 == parts) counted_begin();
        send_part(connection, how, data, file, end, end + bytes[part], chunk);
        if (read(connection, &verdict, 1) != 1) die("read");
        if (part + 1 == parts) counted_end();
        packets("eth0", after);
        end += bytes[part];
        printf("part %d: %lu bytes %s; sent %lu packets, %lu bytes; received %lu packets, %lu bytes", part, bytes[part],
               verdict == RIGHT ? "right" : "WRONG", after[2] - before[2], after[3] - before[3], after[0] - before[0], after[1] - before[1]);
        if (how == 'z') printf("; %lu of %lu calls copied", zerocopy_copied - copied, zerocopy_calls - calls);
        printf("\n");
        if (verdict != RIGHT) exit(1);
    }
}

int main(int count, char **words) {
    uint64_t bytes[PARTS];
    int sends = count > 6 && !strcmp(words[1], "send"), receives = count > 4 && !strcmp(words[1], "receive");
    int first = sends ? 6 : 4;
    if ((!sends && !receives) || count - first > PARTS || (sends && !strchr("wsz", *words[4]))) {
        fprintf(stderr, "usage: transfer receive PORT READY BYTES... | send ADDRESS PORT write|sendfile|zerocopy CHUNK BYTES...\n");
        return 2;
    }
    for (int i = first; i < count; i++) bytes[i - first] = number(words[i]);
    if (sends) transmit(words[2], number(words[3]), *words[4], number(words[5]), count - first, bytes);
    else receive(number(words[2]), words[3], count - first, bytes);
    return 0;
}
