/* poll, select and epoll for the preloaded stack: of its sockets and the host's descriptors together. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "network.h"
#include "preload.h"

/* A socket of the stack in a set of epoll. */
struct watched {
    struct watched *next;
    int set, descriptor;
    struct epoll_event wanted;
    short told;        /* Edges: what has been told since the last activity. */
    uint64_t activity; /* Of the socket, then. */
};

static struct watched *watched;

short preload_events(const struct open_socket *open) {
    const struct socket *so = open->so;
    short events = 0;
    if (soreadable(so)) events |= POLLIN | POLLRDNORM;
    if (open->is_listening) return events;
    if (open->type == SOCK_STREAM && !(so->so_state & (SS_CONNECTED | SS_CONNECTING))) events |= POLLHUP;
    if (sowriteable(so)) events |= POLLOUT | POLLWRNORM;
    if (so->so_state & SS_CANT_RECEIVE) events |= POLLRDHUP;
    if (so->so_error) events |= POLLERR;
    return events;
}

/* Fills in the events of the stack's sockets; how many have some. Others' entries are the host's. */
static int look(struct pollfd *entries, struct pollfd *hosts, nfds_t count) {
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        const struct open_socket *open = preload_find(entries[i].fd);
        hosts[i] = (struct pollfd){open ? -1 : entries[i].fd, entries[i].events, 0};
        entries[i].revents = open ? preload_events(open) & (entries[i].events | POLLERR | POLLHUP) : 0;
        ready += entries[i].revents != 0;
    }
    return ready;
}

/* Adds the host's events; how many have some. */
static int join(struct pollfd *entries, const struct pollfd *hosts, nfds_t count) {
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        if (hosts[i].fd >= 0) entries[i].revents = hosts[i].revents;
        ready += entries[i].revents != 0;
    }
    return ready;
}

/* poll() with the stack locked; -1 if a signal came first. */
static int poll_both(struct pollfd *entries, nfds_t count, int ms) {
    struct deadline deadline = {.ms = ms};
    struct pollfd *hosts = calloc(count + 1, sizeof *hosts);
    int ready;
    network_poll(0);
    for (;;) {
        int own = look(entries, hosts, count), left = preload_left(&deadline);
        if (own > 0) left = 0;
        bool is_quiet = preload_wait(hosts, count, left);
        ready = join(entries, hosts, count);
        if (ready > 0 || left == 0) break;
        if (!is_quiet) {
            ready = -1;
            break;
        }
    }
    free(hosts);
    return ready;
}

int poll(struct pollfd *entries, nfds_t count, int ms) {
    if (count > PRELOAD_DESCRIPTORS || !preload_enter_any()) return REAL(poll)(entries, count, ms);
    int ready = poll_both(entries, count, ms);
    return (int)preload_leave(ready, ready < 0 ? EINTR : 0);
}

int __poll_chk(struct pollfd *entries, nfds_t count, int ms, size_t size) {
    if (size / sizeof *entries < count) abort();
    return poll(entries, count, ms);
}

static int ms_of(const struct timespec *time) {
    return time ? (int)MINIMUM(time->tv_sec * 1000ll + (time->tv_nsec + 999999) / 1000000, 0x7fffffffll) : -1;
}

int ppoll(struct pollfd *entries, nfds_t count, const struct timespec *time, const sigset_t *mask) {
    sigset_t before;
    if (count > PRELOAD_DESCRIPTORS || !preload_enter_any()) return REAL(ppoll)(entries, count, time, mask);
    if (mask) sigprocmask(SIG_SETMASK, mask, &before);
    int ready = poll_both(entries, count, ms_of(time));
    if (mask) sigprocmask(SIG_SETMASK, &before, NULL);
    return (int)preload_leave(ready, ready < 0 ? EINTR : 0);
}

int __ppoll_chk(struct pollfd *entries, nfds_t count, const struct timespec *time, const sigset_t *mask, size_t size) {
    if (size / sizeof *entries < count) abort();
    return ppoll(entries, count, time, mask);
}

/* Whether a set has a descriptor; none of NULL does. */
static bool has(int descriptor, const fd_set *set) {
    return set && FD_ISSET(descriptor, set);
}

/* select() by poll(). */
static int select_both(int limit, fd_set *readable, fd_set *writeable, fd_set *exceptional, int ms) {
    struct pollfd entries[FD_SETSIZE];
    int count = 0, ready = 0;
    for (int descriptor = 0; descriptor < limit && descriptor < FD_SETSIZE; descriptor++) {
        short events = (has(descriptor, readable) ? POLLIN : 0) | (has(descriptor, writeable) ? POLLOUT : 0) | (has(descriptor, exceptional) ? POLLPRI : 0);
        if (events) entries[count++] = (struct pollfd){descriptor, events, 0};
    }
    if (poll_both(entries, count, ms) < 0) return -1;
    fd_set *sets[] = {readable, writeable, exceptional};
    static const short TOLD[] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI}, ASKED[] = {POLLIN, POLLOUT, POLLPRI};
    for (int kind = 0; kind < 3; kind++) {
        if (sets[kind]) FD_ZERO(sets[kind]);
        for (int i = 0; i < count && sets[kind]; i++) {
            if (!(entries[i].events & ASKED[kind]) || !(entries[i].revents & TOLD[kind])) continue;
            FD_SET(entries[i].fd, sets[kind]);
            ready++;
        }
    }
    return ready;
}

int select(int limit, fd_set *restrict readable, fd_set *restrict writeable, fd_set *restrict exceptional, struct timeval *restrict time) {
    if (!preload_enter_any()) return REAL(select)(limit, readable, writeable, exceptional, time);
    struct timespec precise = {time ? time->tv_sec : 0, time ? time->tv_usec * 1000 : 0};
    int ready = select_both(limit, readable, writeable, exceptional, ms_of(time ? &precise : NULL));
    return (int)preload_leave(ready, ready < 0 ? EINTR : 0);
}

int pselect(int limit, fd_set *restrict readable, fd_set *restrict writeable, fd_set *restrict exceptional, const struct timespec *restrict time,
            const sigset_t *restrict mask) {
    sigset_t before;
    if (!preload_enter_any()) return REAL(pselect)(limit, readable, writeable, exceptional, time, mask);
    if (mask) sigprocmask(SIG_SETMASK, mask, &before);
    int ready = select_both(limit, readable, writeable, exceptional, ms_of(time));
    if (mask) sigprocmask(SIG_SETMASK, &before, NULL);
    return (int)preload_leave(ready, ready < 0 ? EINTR : 0);
}

/* The place of a socket in the list, or its end. */
static struct watched **find(int set, int descriptor) {
    struct watched **link = &watched;
    while (*link && ((*link)->set != set || (*link)->descriptor != descriptor)) link = &(*link)->next;
    return link;
}

static void drop(struct watched **link) {
    struct watched *one = *link;
    *link = one->next;
    free(one);
}

void preload_forget(int descriptor) {
    for (struct watched **link = &watched; *link;) {
        if ((*link)->descriptor == descriptor || (*link)->set == descriptor) drop(link);
        else link = &(*link)->next;
    }
}

/* Changes a set for one of the stack's sockets. 0 or an errno value. */
static int control(int set, int operation, int descriptor, const struct epoll_event *event) {
    struct watched **link = find(set, descriptor);
    if (operation == EPOLL_CTL_ADD && *link) return EEXIST;
    if (operation != EPOLL_CTL_ADD && !*link) return ENOENT;
    if (operation == EPOLL_CTL_DEL) {
        drop(link);
        return 0;
    }
    if (operation == EPOLL_CTL_ADD && !(*link = calloc(1, sizeof **link))) return ENOMEM;
    (*link)->set = set;
    (*link)->descriptor = descriptor;
    (*link)->wanted = *event;
    (*link)->told = 0;
    return 0;
}

int epoll_ctl(int set, int operation, int descriptor, struct epoll_event *event) {
    if (!preload_enter(descriptor)) return REAL(epoll_ctl)(set, operation, descriptor, event);
    return (int)preload_leave(0, control(set, operation, descriptor, event));
}

/* The events of a socket that a set tells now. */
static uint32_t news(struct watched *one) {
    const struct open_socket *open = preload_find(one->descriptor);
    short events = preload_events(open) & (short)(one->wanted.events | POLLERR | POLLHUP);
    if (!(one->wanted.events & EPOLLET)) return (uint32_t)events;
    /* An edge: what has not been told since a call moved data, or since it was not so. */
    if (one->activity != open->activity) one->told = 0;
    one->activity = open->activity;
    one->told &= events;
    if (!(events & ~one->told)) return 0;
    one->told = events;
    return (uint32_t)events;
}

/* Collects the events of the stack's sockets; how many. */
static int collect(int set, struct epoll_event *events, int room) {
    int count = 0;
    for (struct watched *one = watched; one && count < room; one = one->next) {
        uint32_t told = one->set == set ? news(one) : 0;
        if (!told) continue;
        events[count++] = (struct epoll_event){told, one->wanted.data};
        if (one->wanted.events & EPOLLONESHOT) one->wanted.events = 0;
    }
    return count;
}

/* epoll_wait() with the stack locked: the host's events, and then the stack's. */
static int wait_both(int set, struct epoll_event *events, int room, int ms) {
    struct deadline deadline = {.ms = ms};
    network_poll(0);
    for (;;) {
        int count = REAL(epoll_wait)(set, events, room, 0);
        if (count < 0) return count;
        count += collect(set, events + count, room - count);
        int left = preload_left(&deadline);
        if (count > 0 || left == 0) return count;
        struct pollfd host = {set, POLLIN, 0};
        if (preload_wait(&host, 1, left)) continue;
        errno = EINTR;
        return -1;
    }
}

int epoll_wait(int set, struct epoll_event *events, int room, int ms) {
    if (room <= 0 || !preload_enter_any()) return REAL(epoll_wait)(set, events, room, ms);
    int ready = wait_both(set, events, room, ms);
    return (int)preload_leave(ready, ready < 0 ? errno : 0);
}

int epoll_pwait(int set, struct epoll_event *events, int room, int ms, const sigset_t *mask) {
    sigset_t before;
    if (room <= 0 || !preload_enter_any()) return REAL(epoll_pwait)(set, events, room, ms, mask);
    if (mask) sigprocmask(SIG_SETMASK, mask, &before);
    int ready = wait_both(set, events, room, ms), error = errno;
    if (mask) sigprocmask(SIG_SETMASK, &before, NULL);
    return (int)preload_leave(ready, ready < 0 ? error : 0);
}
