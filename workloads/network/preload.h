/* The stack as a preloaded library (LD_PRELOAD): calls of sockets by an unmodified program come here. Descriptors of the stack's sockets are
 * real ones, of events, so that numbers are the host's. */
#ifndef NETWORK_PRELOAD_H
#define NETWORK_PRELOAD_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "socket.h"

#define PRELOAD_DESCRIPTORS 65536 /* Higher ones are never sockets of the stack. */

/* A socket that a program has opened. */
struct open_socket {
    struct socket *so;
    unsigned references; /* Descriptors; and calls that are in it. */
    int type;
    bool is_nonblocking, is_listening;
    int receive_ms, send_ms; /* SO_RCVTIMEO and SO_SNDTIMEO; -1: no limit. */
    uint64_t activity;       /* Counts calls that move data: edges of epoll. */
};

/* The host's function behind one of ours, which is looked up once. */
#define REAL(function) \
    (*({ \
        static __typeof__(&function) found; \
        if (!found) found = (__typeof__(&function))preload_real(#function); \
        found; \
    }))
void *preload_real(const char *name);

/* The socket of a descriptor, with the stack locked; NULL, without a lock, if it is not the stack's. */
struct open_socket *preload_enter(int descriptor);

/* Locks the stack for the host's descriptors, too, if it has begun; false if it has not, or the caller is the stack itself. */
bool preload_enter_any(void);

/* Ends what an enter has begun. The result is `result`, or -1 and errno if `error` is not 0. */
long preload_leave(long result, int error);

/* A limit of waiting, from the first time that preload_left() is asked. */
struct deadline {
    int ms; /* -1: none. */
    struct timespec began;
};

/* Milliseconds that are left; -1 without a limit. network_now() is as old as the last turn of the stack. */
int preload_left(struct deadline *deadline);

/* Lets the stack work, and waits for events of the network or of `entries`, up to `ms` (-1: without a limit), with the stack unlocked; it may
 * return earlier. False if a signal came. */
bool preload_wait(struct pollfd *entries, nfds_t count, int ms);

/* The socket of a descriptor, with the stack locked already; NULL if there is none. */
struct open_socket *preload_find(int descriptor);

/* Makes a descriptor for a socket. -1 and errno if there is none. */
int preload_open(struct socket *so, int type, int flags);

/* Gives up one reference of a socket; the last one closes it. */
void preload_release(struct open_socket *open);

/* The events that poll() would report of a socket. */
short preload_events(const struct open_socket *open);

/* Forgets what epoll knows of a descriptor, a socket or a set. */
void preload_forget(int descriptor);

/* Ends the program: what cannot be served. */
void preload_refuse(const char *what) __attribute__((noreturn));

#endif
