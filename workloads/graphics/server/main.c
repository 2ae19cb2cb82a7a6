/* The graphics server: it owns the frame buffers, executes what clients send by sockets and rings in shared memory, and shows windows
 * by an X server.
 *
 *     graphics-server SOCKET [-display NAME] [-device none] [-record TRAIL]
 *
 * SOCKET is the name of the socket that it makes. Without -display there are no windows. -device none takes all primitives and draws
 * nothing, as a device of infinite speed does. -record writes what clients send into a file: for each piece the number of the client
 * and the number of bytes, in words, and then the bytes. It is one process that never waits for one client. */
#define _GNU_SOURCE
#include "server.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_CLIENTS = 64, MOST_INPUT = (1 << 18) + 2 * BUFFER_BYTES };

struct peer { uint32_t number; int socket; struct client *client; uint8_t *in; size_t used, sent; struct ring *ring; uint32_t read; };
static struct peer peers[MOST_CLIENTS];
static int peer_count;
static uint32_t last_number;
static FILE *trail;
static volatile sig_atomic_t must_end;

static void end(int signal)
{
    (void)signal;
    must_end = 1;
}

/* Arithmetic that traps, as on an Alpha with infinite numbers, ends the client that sent them. Nothing that allocates computes. */
static sigjmp_buf after_trap;
static volatile sig_atomic_t is_executing;
static void trap(int signal)
{
    (void)signal;
    if (!is_executing) _exit(1);
    siglongjmp(after_trap, 1);
}

static long execute_guarded(struct peer *p)
{
    if (sigsetjmp(after_trap, 1)) {
        is_executing = 0;
        return -1;
    }
    is_executing = 1;
    long taken = client_execute(p->client, p->in, p->used);
    is_executing = 0;
    if (trail && taken > 0) {
        uint32_t head[2] = { p->number, (uint32_t)taken };
        fwrite(head, sizeof head, 1, trail);
        fwrite(p->in, (size_t)taken, 1, trail);
    }
    return taken;
}

static void drop(int i)
{
    struct peer *p = &peers[i];
    close_client(p->client);
    close(p->socket);
    free(p->in);
    if (p->ring) munmap(p->ring, sizeof *p->ring);
    *p = peers[--peer_count];
}

static void take_client(int listening)
{
    int s = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (s < 0) return;
    struct peer p = { .number = ++last_number, .socket = s };
    if (peer_count < MOST_CLIENTS) p.client = open_client(), p.in = malloc(MOST_INPUT);
    if (p.client && p.in) {
        peers[peer_count++] = p;
        return;
    }
    if (p.client) close_client(p.client);
    free(p.in);
    close(s);
}

/* Memory that the client cannot shrink, as the server makes and seals it. Returns 0 if there is none. */
static int open_ring(struct peer *p)
{
    int memory = memfd_create("graphics-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int is_ready = memory >= 0 && ftruncate(memory, sizeof(struct ring)) == 0
        && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    void *ring = is_ready ? mmap(NULL, sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) : MAP_FAILED;
    if (ring != MAP_FAILED) {
        p->ring = ring;
        struct message m = { .type = MESSAGE_REPLY, .sequence = p->client->sequence };
        union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = { 0 };
        struct iovec from = { &m, sizeof m };
        struct msghdr h = { .msg_iov = &from, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
        struct cmsghdr *head = CMSG_FIRSTHDR(&h);
        head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof memory);
        memcpy(CMSG_DATA(head), &memory, sizeof memory);
        is_ready = sendmsg(p->socket, &h, MSG_NOSIGNAL) == sizeof m;
    }
    if (memory >= 0) close(memory);
    return ring != MAP_FAILED && is_ready;
}

/* Sends what waits, as much as goes without waiting. Returns 0 if the client is gone. */
static int send_waiting(struct peer *p)
{
    struct bytes *out = &p->client->out;
    while (p->sent < out->used) {
        ssize_t n = send(p->socket, out->data + p->sent, out->used - p->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN;
        p->sent += n;
    }
    p->sent = out->used = 0;
    if (out->capacity > 2 * MOST_PENDING) {
        free(out->data);
        *out = (struct bytes){ 0 };
    }
    return 1;
}

static void tell_of_space(struct peer *p)
{
    struct message m = { .type = MESSAGE_SPACE };
    uint8_t *at = append_bytes(&p->client->out, sizeof m);
    if (at) memcpy(at, &m, sizeof m);
}

/* Copies a slot, which the client may still change: only the copy is looked at. Returns 0 if the counters are wrong. */
static int take_slot(struct peer *p)
{
    struct ring *r = p->ring;
    uint32_t filled = atomic_load(&r->written) - p->read;
    if (filled == 0 || p->used + BUFFER_BYTES > MOST_INPUT) return 1;
    uint32_t bytes = atomic_load_explicit(&r->bytes[p->read % RING_SLOTS], memory_order_relaxed);
    if (filled > RING_SLOTS || bytes > BUFFER_BYTES || bytes % 4) return 0;
    memcpy(p->in + p->used, r->slot[p->read % RING_SLOTS], bytes);
    p->used += bytes;
    atomic_store(&r->read, ++p->read);
    if (atomic_load(&r->program_waits) && atomic_exchange(&r->program_waits, 0)) tell_of_space(p);
    return 1;
}

static int has_slot(const struct peer *p)
{
    return p->ring && p->client->out.used <= MOST_PENDING && atomic_load(&p->ring->written) != p->read;
}

/* Reads from the socket: requests, or what woke the server if they come by the ring. Returns 0 if the client is gone. */
static int read_socket(struct peer *p)
{
    char ignored[256];
    if (!p->ring && p->used == MOST_INPUT) return 1;
    size_t most = MOST_INPUT - p->used < 2 * BUFFER_BYTES ? MOST_INPUT - p->used : 2 * BUFFER_BYTES;
    ssize_t n = p->ring ? recv(p->socket, ignored, sizeof ignored, MSG_DONTWAIT) : recv(p->socket, p->in + p->used, most, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n > 0 && !p->ring) p->used += n;
    return n > 0;
}

/* One turn of a client. Returns 0 if it has to go. */
static int serve(struct peer *p, short events)
{
    if (events & POLLIN && (p->ring || p->client->out.used <= MOST_PENDING) && !read_socket(p)) return 0;
    if (events & (POLLERR | POLLNVAL)) return 0;
    if (has_slot(p) && !take_slot(p)) return 0;
    long taken = p->used ? execute_guarded(p) : 0;
    if (taken < 0) return 0;
    if (taken) memmove(p->in, p->in + taken, p->used - taken);
    p->used -= taken;
    if (!send_waiting(p)) return 0;
    if (p->client->wants_ring && p->client->out.used == 0) {
        if (p->ring || !open_ring(p)) return 0;
        p->client->wants_ring = 0;
    }
    return 1;
}

/* Whether a client must not wait for an event. Those with rings are told that the server sleeps. */
static int is_ready(struct peer *p)
{
    if (p->client->has_more && p->client->out.used <= MOST_PENDING) return 1;
    if (!p->ring) return 0;
    if (has_slot(p)) return 1;
    atomic_store(&p->ring->server_sleeps, 1);
    return has_slot(p);
}

static void run(int listening, const sigset_t *waiting_mask)
{
    while (!must_end) {
        struct pollfd polled[MOST_CLIENTS + 2] = { { listening, POLLIN, 0 }, { present_connection(), POLLIN, 0 } };
        int is_busy = 0, count = peer_count;
        for (int i = 0; i < count; i++) {
            int is_full = peers[i].client->out.used > MOST_PENDING;
            polled[2 + i] = (struct pollfd){ peers[i].socket, (is_full && !peers[i].ring ? 0 : POLLIN)
                    | (peers[i].client->out.used ? POLLOUT : 0), 0 };
            if (is_ready(&peers[i])) is_busy = 1;
        }
        /* Signals that end the server come here alone: one that came before would not interrupt the wait. */
        const struct timespec now = { 0, 0 };
        if (ppoll(polled, (nfds_t)count + 2, is_busy ? &now : NULL, waiting_mask) < 0 && errno != EINTR) return;
        present_events();
        for (int i = count - 1; i >= 0; i--) {
            /* A client that does not read is not watched for its end: it is seen when it is sent to. */
            short events = polled[2 + i].revents;
            int has_work = events || peers[i].client->has_more || has_slot(&peers[i]);
            int is_gone = events & POLLHUP && peers[i].ring;
            if (is_gone || (has_work && !serve(&peers[i], events))) drop(i);
        }
        if (polled[0].revents) take_client(listening);
    }
}

int main(int argc, char **argv)
{
    const char *name = NULL, *display = NULL, *record = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-display") && i + 1 < argc) display = argv[++i];
        else if (!strcmp(argv[i], "-device") && i + 1 < argc && !strcmp(argv[i + 1], "none")) server_rasterizer = &null_rasterizer, i++;
        else if (!strcmp(argv[i], "-record") && i + 1 < argc) record = argv[++i];
        else if (argv[i][0] != '-' && !name) name = argv[i];
        else name = NULL, argc = 0;
    }
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (!name || strlen(name) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: graphics-server SOCKET [-display NAME] [-device none] [-record TRAIL]\n");
        return 2;
    }
    strcpy(address.sun_path, name);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(listening, (void *)&address, sizeof address) || listen(listening, 16)) {
        fprintf(stderr, "graphics-server: cannot make the socket %s: %s\n", name, strerror(errno));
        return 1;
    }
    if (display && !present_open(display)) {
        fprintf(stderr, "graphics-server: there is no X server at %s\n", display);
        unlink(name);
        return 1;
    }
    trail = record ? fopen(record, "wb") : NULL;
    if (record && !trail) {
        fprintf(stderr, "graphics-server: cannot write the trail %s: %s\n", record, strerror(errno));
        unlink(name);
        return 1;
    }
    struct sigaction action = { .sa_handler = end };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = trap;
    sigaction(SIGFPE, &action, NULL);
    sigset_t ending, before;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigprocmask(SIG_BLOCK, &ending, &before);
    run(listening, &before);
    while (peer_count) drop(0);
    if (trail) fclose(trail);
    unlink(name);
    return 0;
}
