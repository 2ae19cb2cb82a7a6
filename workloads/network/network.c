/* The stack's start and end, its clock, its timers, and the loop over its drivers. */
#include "network.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "driver.h"
#include "ether.h"
#include "ip.h"
#include "tcp.h"
#include "udp.h"

#define LARGEST_POLL 16 /* Interfaces that are waited for. */

struct network_parameters parameters;
struct network_statistics statistics;
static uint64_t (*the_clock)(void);
static uint64_t next_slow, next_fast, next_second, random_state;

static uint64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t now_ms;

uint64_t network_now(void) {
    return now_ms;
}

void network_set_clock(uint64_t (*clock)(void)) {
    the_clock = clock;
    now_ms = clock ? clock() : monotonic();
}

/* Reads the clock: once for each turn of the loop. */
static void update_clock(void) {
    now_ms = the_clock ? the_clock() : monotonic();
}

uint32_t network_random(void) {
    random_state += 0x9e3779b97f4a7c15ull;
    uint64_t mixed = (random_state ^ random_state >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(mixed >> 32);
}

/* Fills in a parameter that is 0. */
static void by_default(unsigned *parameter, unsigned value) {
    if (*parameter == 0) *parameter = value;
}

void network_initialize(const struct network_parameters *wanted) {
    memset(&parameters, 0, sizeof parameters);
    if (wanted) parameters = *wanted;
    by_default(&parameters.slow_ms, 500);
    by_default(&parameters.fast_ms, 200);
    by_default(&parameters.minimum_rto_ms, 1000);
    parameters.minimum_rto_ms = MAXIMUM(parameters.minimum_rto_ms, 2 * parameters.slow_ms);
    by_default(&parameters.msl_ms, 30000);
    by_default(&parameters.keep_idle_ms, 7200000);
    by_default(&parameters.keep_interval_ms, 75000);
    by_default(&parameters.keep_count, 8);
    by_default(&parameters.connect_ms, 75000);
    by_default(&parameters.socket_buffer, 262144);
    by_default(&parameters.initial_segments, 4);
    by_default(&parameters.maximum_mbufs, 65536);
    memset(&statistics, 0, sizeof statistics);
    random_state = parameters.seed;
    ifnet_list = NULL;
    update_clock();
    next_slow = now_ms + parameters.slow_ms;
    next_fast = now_ms + parameters.fast_ms;
    next_second = now_ms + 1000;
}

void network_shutdown(void) {
    tcp_shutdown_all();
    udp_shutdown();
    ip_reassembly_timer(true);
    arp_flush();
    route_default(0);
    ifnet_list = NULL;
}

/* Whether a timer is due, which is then set for the next time. */
static bool is_due(uint64_t *timer, unsigned period) {
    if (now_ms < *timer) return false;
    *timer += period;
    if (*timer <= now_ms) *timer = now_ms + period;
    return true;
}

/* Gives up what waits for other packets, once memory has run out: those packets could not be received otherwise. */
static void drain_if_exhausted(void) {
    static uint64_t seen;
    if (statistics.no_memory == seen) return;
    seen = statistics.no_memory;
    tcp_drain();
    ip_reassembly_timer(true);
}

void network_run_timers(void) {
    update_clock();
    drain_if_exhausted();
    if (is_due(&next_fast, parameters.fast_ms)) tcp_fast_timer();
    if (is_due(&next_slow, parameters.slow_ms)) tcp_slow_timer();
    if (is_due(&next_second, 1000)) {
        arp_timer();
        ip_reassembly_timer(false);
    }
}

int network_timeout(int timeout) {
    uint64_t next = MINIMUM(MINIMUM(next_fast, next_slow), next_second);
    int wait = next > now_ms ? (int)(next - now_ms) : 0;
    for (const struct ifnet *ifp = ifnet_list; ifp; ifp = ifp->if_next) {
        int own = ifp->if_timeout ? ifp->if_timeout((struct ifnet *)ifp) : -1;
        if (own >= 0) wait = MINIMUM(wait, own);
        own = ifp->if_impairment ? impair_timeout(ifp) : -1;
        if (own >= 0) wait = MINIMUM(wait, own);
    }
    return timeout >= 0 ? MINIMUM(wait, timeout) : wait;
}

/* Reads all drivers; returns the number of packets. */
static int read_drivers(void) {
    int packets = 0;
    for (struct ifnet *ifp = ifnet_list; ifp; ifp = ifp->if_next) {
        packets += ifp->if_poll(ifp);
        if (ifp->if_impairment) packets += impair_poll(ifp);
    }
    return packets;
}

void network_poll(int timeout_ms) {
    network_run_timers();
    if (read_drivers() > 0) return;
    struct pollfd entries[LARGEST_POLL];
    nfds_t count = 0;
    for (const struct ifnet *ifp = ifnet_list; ifp && count < LARGEST_POLL; ifp = ifp->if_next)
        if (ifp->if_fd >= 0) entries[count++] = (struct pollfd){ifp->if_fd, POLLIN, 0};
    int wait = network_timeout(timeout_ms);
    if (wait > 0) poll(entries, count, wait);
    network_run_timers();
    read_drivers();
}
