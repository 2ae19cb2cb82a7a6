/* Sockets: pairs, control messages, TCP over the loopback interface, options, errors. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The result of a call and, if it failed, why. */
static void tell(const char *what, long result) {
    int error = errno;
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(error) : "");
}

static void control_messages(void) {
    int pair[2], ends[2], passed;
    tell("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
    printf("flags: %d %d\n", fcntl(pair[0], F_GETFD), !!(fcntl(pair[0], F_GETFL) & O_NONBLOCK));
    tell("pipe", pipe(ends));
    struct iovec out = {"abcd", 4};
    char control[CMSG_SPACE(sizeof passed)] = {0}, received[64], data[16] = {0};
    struct msghdr message = {.msg_iov = &out, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof passed);
    memcpy(CMSG_DATA(header), &ends[1], sizeof passed);
    tell("sendmsg", sendmsg(pair[0], &message, 0));
    struct iovec in = {data, sizeof data};
    struct msghdr answer = {.msg_iov = &in, .msg_iovlen = 1, .msg_control = received,
                            .msg_controllen = sizeof received};
    tell("recvmsg", recvmsg(pair[1], &answer, 0));
    header = CMSG_FIRSTHDR(&answer);
    printf("control: %d %d %d\n", header->cmsg_level == SOL_SOCKET, header->cmsg_type == SCM_RIGHTS,
           (int)answer.msg_controllen);
    memcpy(&passed, CMSG_DATA(header), sizeof passed);
    tell("write to what was passed", write(passed, "xyz", 3));
    tell("read", read(ends[0], data, sizeof data));
    printf("%s\n", data);
    tell("nothing to receive", recv(pair[1], data, 1, 0));
    struct ucred peer;
    socklen_t size = sizeof peer;
    tell("SO_PEERCRED", getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &peer, &size));
    printf("peer: %d %d\n", peer.pid == getpid(), peer.uid == getuid());
    int on = 1;
    tell("SO_PASSCRED", setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    tell("write", write(pair[0], "q", 1));
    answer.msg_controllen = sizeof received;
    tell("recvmsg", recvmsg(pair[1], &answer, 0));
    header = CMSG_FIRSTHDR(&answer);
    printf("credentials: %d\n", header && header->cmsg_type == SCM_CREDENTIALS);
}

static void many_messages(void) {
    int pair[2];
    struct mmsghdr messages[3] = {0};
    struct iovec vectors[3];
    char buffers[3][8];
    tell("datagrams", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    for (int i = 0; i < 3; i++) {
        vectors[i] = (struct iovec){"hello", 5 - i};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    tell("sendmmsg", sendmmsg(pair[0], messages, 3, 0));
    for (int i = 0; i < 3; i++) vectors[i] = (struct iovec){buffers[i], 8};
    tell("recvmmsg", recvmmsg(pair[1], messages, 3, MSG_WAITFORONE, NULL));
    printf("lengths: %u %u %u\n", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
}

static int client(int port) {
    char service[16], answer[16];
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list;
    sprintf(service, "%d", port);
    if (getaddrinfo("localhost", service, &hints, &list) != 0) return 1;
    int to = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    if (connect(to, list->ai_addr, list->ai_addrlen) != 0) return 2;
    if (write(to, "ping", 4) != 4) return 3;
    return read(to, answer, sizeof answer) == 4 && memcmp(answer, "pong", 4) == 0 ? 42 : 4;
}

static void over_tcp(void) {
    int on = 1, kind, status;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tell("SO_REUSEADDR", setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    tell("bind", bind(listener, (void *)&address, sizeof address));
    tell("listen", listen(listener, 5));
    tell("getsockname", getsockname(listener, (void *)&address, &size));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(client(ntohs(address.sin_port)));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(listener, &set);
    struct timeval timeout = {20, 0};
    tell("select", select(listener + 1, &set, NULL, NULL, &timeout));
    size = sizeof address;
    int from = accept4(listener, (void *)&address, &size, SOCK_NONBLOCK);
    printf("[not qemu] accepted: %d %d %d\n", from >= 0, address.sin_family == AF_INET,
           !!(fcntl(from, F_GETFL) & O_NONBLOCK));
    struct pollfd entry = {from, POLLIN, 0};
    tell("poll", poll(&entry, 1, 20000));
    char data[8] = {0};
    tell("recv", recv(from, data, sizeof data, 0));
    tell("TCP_NODELAY", setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    size = sizeof kind;
    tell("SO_TYPE", getsockopt(from, SOL_SOCKET, SO_TYPE, &kind, &size));
    printf("%s %d\n", data, kind == SOCK_STREAM);
    struct iovec answer[2] = {{"po", 2}, {"ng", 2}};
    tell("writev", writev(from, answer, 2));
    waitpid(child, &status, 0);
    printf("client: %d\n", WEXITSTATUS(status));
}

static void failures(void) {
    struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(1),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int error, pair[2];
    socklen_t size = sizeof error;
    tell("connect", connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&nobody, sizeof nobody));
    int waiting = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    tell("connect without waiting", connect(waiting, (void *)&nobody, sizeof nobody));
    struct pollfd entry = {waiting, POLLOUT, 0};
    tell("poll", poll(&entry, 1, 20000));
    tell("SO_ERROR", getsockopt(waiting, SOL_SOCKET, SO_ERROR, &error, &size));
    printf("[not qemu] %s\n", strerror(error));
    tell("send unconnected", send(socket(AF_INET, SOCK_STREAM, 0), "a", 1, MSG_NOSIGNAL));
    tell("not a socket", listen(0, 1));
    tell("no such protocol", socket(AF_INET, SOCK_SEQPACKET, 0));
    signal(SIGPIPE, SIG_IGN);
    tell("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    close(pair[1]);
    tell("peer closed", write(pair[0], "a", 1));
}

int main(void) {
    control_messages();
    many_messages();
    over_tcp();
    failures();
    return 0;
}
