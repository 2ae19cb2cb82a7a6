/* Scenarios of TCP: segments that come in, calls of an application, and the segments that must go out. The same scenario runs
 * against this stack, whose time is the runner's, and against the host's. */
#ifndef NETWORK_SCENARIO_H
#define NETWORK_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#define PEER_ADDRESS 0x0a620001    /* 10.98.0.1: the runner plays it. */
#define SUBJECT_ADDRESS 0x0a620002 /* 10.98.0.2: whose TCP is tested. */
#define PEER_PORT 4000
#define SUBJECT_PORT 5000
#define SUBJECT_SEED 5 /* Pattern of the bytes that the subject sends. */
#define PEER_SEED 9    /* Of those that the peer sends. */
#define LARGEST_PACKET 65536

/* The settings at the start of a scenario. */
struct scenario_settings {
    bool no_timestamps, no_scaling;
    unsigned buffer; /* Bytes of each socket buffer; 0: the subject's own. */
    unsigned mbufs;  /* Of the stack; 0: its own number. */
    int mtu;         /* 0: 1500. */
};

/* A TCP that is tested. Failures end the program, by scenario_fail(). */
struct subject {
    const char *name;
    void (*begin)(const struct scenario_settings *settings);
    void (*end)(void);
    void (*inject)(unsigned char *packet, int length);
    /* The next packet that it has sent; 0 if there is none. */
    int (*capture)(unsigned char *packet, int size);
    void (*advance)(unsigned ms);
    /* Calls of an application. */
    void (*listen)(void);
    void (*connect)(void);
    void (*accept)(void);
    long (*write)(char *bytes, unsigned length); /* How many were taken, or minus an errno value. */
    long (*read)(char *bytes, unsigned length);  /* How many came, or minus an errno value. */
    void (*shutdown)(void);
    void (*close)(void);
    void (*abort)(void);
    void (*option)(const char *name); /* nodelay or keepalive. */
    int (*error)(void);               /* The pending error. */
    const char *(*state)(void);       /* As RFC 9293 names it. */
};

extern const struct subject stack_subject, host_subject;

/* Says where the scenario failed, and ends the program. */
void scenario_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
