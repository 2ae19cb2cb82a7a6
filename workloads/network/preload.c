/* The life of the preloaded stack: how it begins and ends, its lock, and its descriptors. */
#define _GNU_SOURCE
#include "preload.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dart.h"
#include "driver.h"
#include "network.h"
#include "tcp.h"
#include "transfer.h"

#define DEVICE "pathlength0"
#define PATIENCE_MS 2000
#define LINGER_MS 10000 /* What was sent is delivered after the program's end, up to this time. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned inside; /* The stack's own calls are the host's. */
static bool has_begun, is_child;
static struct ifnet interface, loopback;
static struct open_socket *sockets[PRELOAD_DESCRIPTORS];

void *preload_real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) preload_refuse(name);
    return found;
}

void preload_refuse(const char *what) {
    fprintf(stderr, "libnetwork: this program cannot use the stack: %s\n", what);
    _exit(126);
}

/* The forms of the stack, as NETWORK_FORM names them. */
static const struct form {
    const char *name;
    bool has_checksum, has_tso, is_dart;
} FORMS[] = {{"traditional", false, false, false}, {"checksum", true, false, false}, {"segmentation", false, true, false}, {"dart", false, false, true}};

static const struct form *wanted_form(void) {
    const char *wanted = getenv("NETWORK_FORM");
    if (!wanted) return &FORMS[0];
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (strcmp(FORMS[i].name, wanted) == 0) return &FORMS[i];
    preload_refuse("NETWORK_FORM must be traditional, checksum, segmentation or dart");
}

/* Whether the network has an interface by which data could leave it. */
static bool has_interface(void) {
    struct ifaddrs *all;
    bool has_one = false;
    if (getifaddrs(&all) < 0) preload_refuse("the interfaces of its network are not known");
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) has_one |= one->ifa_flags & IFF_UP && !(one->ifa_flags & IFF_LOOPBACK);
    freeifaddrs(all);
    return has_one;
}

/* Nothing leaves the machine. The device of a program before this one may need a moment to vanish. */
static void check_namespace(void) {
    for (int ms = 0; has_interface(); ms += 10) {
        if (ms >= PATIENCE_MS) preload_refuse("its network has other interfaces; start it alone in a new one: unshare --map-root-user --net PROGRAM");
        usleep(10000);
    }
}

static void leave_child(void) {
    is_child = true;
}

static void begin(void) {
    const struct form *form = wanted_form();
    struct network_parameters wanted = {.slow_ms = 20, .fast_ms = 40, .minimum_rto_ms = 40, .msl_ms = 100, .seed = (unsigned)getpid()};
    struct tap_options options = {.name = DEVICE, .has_checksum = form->has_checksum, .has_tso = form->has_tso,
                                  .address = htonl(STACK_ADDRESS), .netmask = htonl(NETMASK)};
    struct dart_options adapter = {.tap = options, .holdoff_us = 50, .log = getenv("DART_LOG")};
    check_namespace();
    network_initialize(&wanted);
    int error = form->is_dart ? dart_attach(&interface, &adapter) : tap_attach(&interface, &options);
    if (!error) error = namespace_configure(DEVICE, htonl(HOST_ADDRESS), htonl(NETMASK), 0);
    if (!error) error = namespace_configure("lo", htonl(INADDR_LOOPBACK), htonl(0xff000000), 0);
    if (error) preload_refuse(error == EPERM || error == EACCES ? "it may not make a TAP device; start it so: unshare --map-root-user --net PROGRAM"
                                                                : strerror(error));
    loopback_attach(&loopback);
    pthread_atfork(NULL, NULL, leave_child);
    has_begun = true;
}

struct open_socket *preload_find(int descriptor) {
    return descriptor >= 0 && descriptor < PRELOAD_DESCRIPTORS ? sockets[descriptor] : NULL;
}

static void enter(void) {
    pthread_mutex_lock(&lock);
    inside++;
}

struct open_socket *preload_enter(int descriptor) {
    if (inside || !has_begun || !preload_find(descriptor)) return NULL;
    if (is_child) preload_refuse("a process that it has forked uses a socket of the parent's; servers must serve in one process");
    enter();
    struct open_socket *open = preload_find(descriptor);
    if (open) return open;
    preload_leave(0, 0);
    return NULL;
}

bool preload_enter_any(void) {
    if (inside || !has_begun || is_child) return false;
    enter();
    return true;
}

long preload_leave(long result, int error) {
    inside--;
    pthread_mutex_unlock(&lock);
    if (!error) return result;
    errno = error;
    return -1;
}

int preload_left(struct deadline *deadline) {
    struct timespec now;
    if (deadline->ms <= 0) return deadline->ms < 0 ? -1 : 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!deadline->began.tv_sec && !deadline->began.tv_nsec) deadline->began = now;
    long passed = (now.tv_sec - deadline->began.tv_sec) * 1000 + (now.tv_nsec - deadline->began.tv_nsec) / 1000000;
    return passed < deadline->ms ? deadline->ms - (int)passed : 0;
}

bool preload_wait(struct pollfd *entries, nfds_t count, int ms) {
    struct pollfd all[count + 2];
    nfds_t own = 0;
    int wait = network_timeout(ms);
    if (count) memcpy(all, entries, count * sizeof *entries);
    for (const struct ifnet *ifp = ifnet_list; ifp; ifp = ifp->if_next)
        if (ifp->if_fd >= 0) all[count + own++] = (struct pollfd){ifp->if_fd, POLLIN, 0};
    pthread_mutex_unlock(&lock);
    bool is_interrupted = poll(all, count + own, wait) < 0;
    pthread_mutex_lock(&lock);
    for (nfds_t i = 0; i < count; i++) entries[i].revents = is_interrupted ? 0 : all[i].revents;
    network_poll(0);
    return !is_interrupted;
}

int preload_open(struct socket *so, int type, int flags) {
    struct open_socket *open = calloc(1, sizeof *open);
    int descriptor = open ? eventfd(0, flags & SOCK_CLOEXEC ? EFD_CLOEXEC : 0) : -1;
    if (descriptor < 0 || descriptor >= PRELOAD_DESCRIPTORS) {
        if (descriptor >= 0) close(descriptor);
        free(open);
        errno = EMFILE;
        return -1;
    }
    *open = (struct open_socket){.so = so, .references = 1, .type = type, .is_nonblocking = flags & SOCK_NONBLOCK, .receive_ms = -1, .send_ms = -1};
    /* Waiting is done here, with the stack unlocked. */
    sosetopt(so, SOPT_NONBLOCKING, true);
    sockets[descriptor] = open;
    return descriptor;
}

int socket(int domain, int type, int protocol) {
    int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct socket *so;
    if (inside || is_child || domain != AF_INET || (kind != SOCK_STREAM && kind != SOCK_DGRAM)) return REAL(socket)(domain, type, protocol);
    enter();
    if (!has_begun) begin();
    int error = socreate(kind, &so);
    int descriptor = error ? -1 : preload_open(so, kind, type);
    if (!error && descriptor < 0) {
        error = errno;
        soclose(so);
    }
    return (int)preload_leave(descriptor, error);
}

void preload_release(struct open_socket *open) {
    if (--open->references > 0) return;
    soclose(open->so);
    free(open);
}

/* Takes a descriptor from its socket, and from epoll's sets, of which it may be one. */
static void detach(int descriptor) {
    struct open_socket *open = preload_find(descriptor);
    preload_forget(descriptor);
    if (!open) return;
    sockets[descriptor] = NULL;
    preload_release(open);
}

int close(int descriptor) {
    if (!preload_enter_any()) return REAL(close)(descriptor);
    bool is_socket = preload_find(descriptor);
    detach(descriptor);
    if (is_socket) network_poll(0);
    int result = close(descriptor);
    return (int)preload_leave(result, result < 0 ? errno : 0);
}

/* Gives a new descriptor the socket of another one. */
static int share(struct open_socket *open, int descriptor) {
    if (descriptor < 0) return (int)preload_leave(-1, errno);
    if (descriptor >= PRELOAD_DESCRIPTORS) {
        close(descriptor);
        return (int)preload_leave(-1, EMFILE);
    }
    detach(descriptor);
    sockets[descriptor] = open;
    open->references++;
    return (int)preload_leave(descriptor, 0);
}

int dup(int descriptor) {
    struct open_socket *open = preload_enter(descriptor);
    return open ? share(open, REAL(dup)(descriptor)) : REAL(dup)(descriptor);
}

int dup3(int from, int to, int flags) {
    struct open_socket *open = from == to ? NULL : preload_enter(from);
    if (open) return share(open, REAL(dup3)(from, to, flags));
    if (from != to && preload_enter_any()) {
        detach(to);
        preload_leave(0, 0);
    }
    return REAL(dup3)(from, to, flags);
}

int dup2(int from, int to) {
    return from == to ? REAL(dup2)(from, to) : dup3(from, to, 0);
}

/* F_DUPFD and F_DUPFD_CLOEXEC; the flags of a socket; the rest is the placeholder's. */
int fcntl(int descriptor, int command, ...) {
    __builtin_va_list rest;
    __builtin_va_start(rest, command);
    long argument = __builtin_va_arg(rest, long);
    __builtin_va_end(rest);
    struct open_socket *open = preload_enter(descriptor);
    if (!open) return REAL(fcntl)(descriptor, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return share(open, REAL(fcntl)(descriptor, command, argument));
    if (command == F_GETFL) return (int)preload_leave(O_RDWR | (open->is_nonblocking ? O_NONBLOCK : 0), 0);
    if (command == F_SETFL) {
        open->is_nonblocking = argument & O_NONBLOCK;
        return (int)preload_leave(0, 0);
    }
    int result = REAL(fcntl)(descriptor, command, argument);
    return (int)preload_leave(result, result < 0 ? errno : 0);
}

int fcntl64(int descriptor, int command, ...) __attribute__((alias("fcntl")));

FILE *fdopen(int descriptor, const char *mode) {
    if (preload_enter(descriptor)) preload_refuse("it reads or writes a socket by stdio (fdopen), which calls the C library's own functions");
    return REAL(fdopen)(descriptor, mode);
}

static bool is_closing(void) {
    for (unsigned bucket = 0; bucket < PCB_BUCKETS; bucket++)
        for (const struct inpcb *inp = tcp_blocks.buckets[bucket]; inp; inp = inp->inp_next)
            if (((const struct tcpcb *)inp->inp_ppcb)->t_state != TCPS_TIME_WAIT) return true;
    return false;
}

/* The program ends: closes its sockets, and delivers what they have sent. */
__attribute__((destructor)) static void finish(void) {
    if (!has_begun || is_child || inside) return;
    enter();
    for (int descriptor = 0; descriptor < PRELOAD_DESCRIPTORS; descriptor++) detach(descriptor);
    uint64_t end = network_now() + LINGER_MS;
    while (is_closing() && network_now() < end) network_poll(10);
}

void _exit(int status) {
    finish();
    ((__typeof__(&_exit))preload_real("_exit"))(status);
    __builtin_unreachable();
}
