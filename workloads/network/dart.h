/* A DART-style adapter: 16 MB of memory that hold data until they are acknowledged or read, moved by the driver's commands. The
 * adapter is a process of its own, which owns the TAP device; the driver moves data between a caller's memory and the adapter's by
 * pwritev and preadv, so that no instruction of the caller's touches them. */
#ifndef NETWORK_DART_H
#define NETWORK_DART_H

#include <stdint.h>

#include "driver.h"

#define DART_MEMORY (16u << 20) /* Bytes of the data memory: one half sends, one receives. */
#define DART_RING 256           /* Entries of the rings of commands and of summaries. */
#define DART_RANGES 16          /* Pieces of a packet that is sent. */
#define DART_FIRST 128          /* Bytes of a received packet that its summary has. */
#define DART_BUFFERS 8192       /* Buffers of each half, at most. */

enum dart_kind { DART_SUM, DART_TRANSMIT, DART_RECYCLE };

/* Bytes of the data memory. */
struct dart_range {
    uint32_t offset, length;
};

/* A command, in the ring. */
struct dart_command {
    uint32_t kind, buffer; /* Of DART_SUM the buffer that is sent; of DART_RECYCLE the received one. */
    uint32_t count;        /* Ranges. */
    struct dart_range ranges[DART_RANGES];
};

/* A received packet. */
struct dart_summary {
    uint32_t is_hosts; /* The ownership bit: the driver's, until it clears it. */
    uint32_t buffer, length;
    uint16_t sum; /* Of all bytes behind the Ethernet header. */
    char first[DART_FIRST];
};

/* The memory that driver and adapter share, beside the data memory: registers, rings, and sums of sent buffers. Producers and consumers
 * count on and on. */
struct dart_control {
    uint32_t command_producer, command_consumer;
    uint32_t is_asleep;      /* The adapter waits for the doorbell. */
    uint32_t is_awaited;     /* The driver waits for commands to be executed. */
    uint64_t holdoff_until;  /* Nanoseconds of the monotonic clock before which there is no interrupt. */
    uint32_t buffer_bytes;   /* Of every buffer. */
    uint32_t receive_buffers;
    struct dart_command commands[DART_RING];
    struct dart_summary summaries[DART_RING];
    uint16_t sums[DART_BUFFERS];
};

/* Descriptors of events between the two. */
struct dart_signals {
    int doorbell;  /* There are commands. */
    int executed;  /* Commands have been executed that the driver waits for. */
    int interrupt; /* There are summaries. */
};

/* The start of the receiving half. */
#define DART_RECEIVE (DART_MEMORY / 2)

struct dart_options {
    struct tap_options tap;
    unsigned holdoff_us;     /* Between interrupts. */
    unsigned send_buffers;   /* For data; 0: what fits. */
    unsigned receive_buffers;
    const char *log;         /* A file for the log of what the driver does (docs/adapters.md); NULL: none. */
};

/* Starts an adapter and attaches an interface to it. 0 or an errno value. */
int dart_attach(struct ifnet *ifp, const struct dart_options *options);

/* Ends the adapter; no buffer of it may be in use. */
void dart_detach(struct ifnet *ifp);

/* The adapter, in its process: serves until it is killed. */
void dart_adapter(struct dart_control *control, int memory, int tap, const struct dart_signals *signals) __attribute__((noreturn));

#endif
