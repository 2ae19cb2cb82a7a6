/* The stack as a whole: its parameters, its statistics, its clock, and the function that makes it progress.
 *
 * A TCP/IP stack in the structure of BSD's, as a library of one process and one thread: sockets, mbufs, protocols, interfaces,
 * drivers. Nothing runs by itself: network_poll() reads the drivers and runs the timers, and blocking calls of sockets call it
 * until what they wait for is there. Functions return 0 or an errno value, unless they say otherwise. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parameters, to be set before network_initialize(), which gives those that are 0 their defaults. */
struct network_parameters {
    unsigned slow_ms;          /* Period of TCP's slow timer, in milliseconds (500 in 4.4BSD). */
    unsigned fast_ms;          /* Period of TCP's fast timer, which sends delayed acknowledgements (200). */
    unsigned minimum_rto_ms;   /* Least retransmission timeout; at least two slow periods (RFC 6298: 1000). */
    unsigned msl_ms;           /* Maximum lifetime of a segment (30000): TIME-WAIT lasts two of them. */
    unsigned keep_idle_ms;     /* Idle time before the first keepalive probe (7200000). */
    unsigned keep_interval_ms; /* Time between probes (75000). */
    unsigned keep_count;       /* Unanswered probes that end a connection (8). */
    unsigned connect_ms;       /* Time to establish a connection (75000). */
    unsigned socket_buffer;    /* Bytes of each buffer of a TCP socket (262144). */
    unsigned initial_segments; /* Initial congestion window, in segments (RFC 5681: 4; RFC 6928: 10). */
    unsigned maximum_mbufs;    /* Bound on mbufs, against exhaustion of memory (65536). */
    unsigned seed;             /* Seed of initial sequence numbers, ports and identifications. */
    bool no_timestamps;        /* Neither offer nor accept timestamps (RFC 7323). */
    bool no_window_scaling;    /* Neither offer nor accept window scaling. */
    bool no_dart;              /* Socket layer and protocols without the paths for adapter buffers. */
};

/* The parameters in use. */
extern struct network_parameters parameters;

/* Counts of events; each is explained where it is incremented. */
struct network_statistics {
    uint64_t ip_received, ip_sent, ip_bad_header, ip_bad_checksum, ip_not_ours, ip_fragments_received, ip_reassembled,
        ip_fragments_dropped, ip_fragmented, ip_no_route;
    uint64_t icmp_received, icmp_echoed, icmp_errors_sent, icmp_bad;
    uint64_t arp_requests, arp_replies, arp_bad;
    uint64_t udp_received, udp_sent, udp_bad, udp_no_port, udp_full;
    uint64_t tcp_received, tcp_sent, tcp_bad, tcp_checksum_errors, tcp_bytes_received, tcp_bytes_sent, tcp_retransmitted,
        tcp_fast_retransmits, tcp_timeouts, tcp_persist_probes, tcp_keep_probes, tcp_delayed_acks, tcp_duplicates,
        tcp_out_of_order, tcp_paws_dropped, tcp_challenges, tcp_resets_sent, tcp_predicted_acks, tcp_predicted_data;
    uint64_t copied_bytes, checksummed_bytes;
    uint64_t hardware_sums, hardware_sums_bad, adapter_bytes, adapter_refused, relocations, resummed_bytes;
    uint64_t no_memory;
};

/* The counts since network_initialize(). */
extern struct network_statistics statistics;

/* Initializes all of the stack, with `wanted` parameters (NULL: the defaults). */
void network_initialize(const struct network_parameters *wanted);

/* Frees all connections, sockets and packets without a word to their peers; interfaces are forgotten. */
void network_shutdown(void);

/* Reads all drivers, runs the timers that are due, and waits up to `timeout_ms` for something to do (-1: until the next timer). */
void network_poll(int timeout_ms);

/* Milliseconds until network_poll() has something to do without a packet, at most `timeout_ms` (-1: without a limit). */
int network_timeout(int timeout_ms);

/* Runs the timers that are due. */
void network_run_timers(void);

/* Milliseconds of the stack's clock. */
uint64_t network_now(void);

/* Takes the time from `clock` (NULL: the host's monotonic clock); tests make their own. */
void network_set_clock(uint64_t (*clock)(void));

/* A pseudo-random number, a function of the seed and of the numbers taken before. */
uint32_t network_random(void);

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))

#endif
