/* The test of real traffic: the host's TCP on one side of a TAP device, this stack on the other. */
#ifndef NETWORK_TRANSFER_H
#define NETWORK_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HOST_ADDRESS 0x0a630001  /* 10.99.0.1 */
#define STACK_ADDRESS 0x0a630002 /* 10.99.0.2 */
#define NETMASK 0xffffff00
#define SINK_PORT 5001   /* The host takes bytes, and says whether they were right. */
#define ECHO_PORT 5002   /* The host gives back what it gets. */
#define UDP_PORT 5003    /* The same with datagrams. */
#define SOURCE_PORT 5004 /* Of this stack: the host connects and sends. */
#define CLOSED_PORT 5005 /* Nobody listens on either side. */

/* Opens the host's ports; in the process that starts the host's part. */
void host_listen(void);

/* The host's part, in a process of its own: serves until it is killed. `received` bytes are what it sends to the stack, of the
 * pattern `seed`. */
void host_peer(uint64_t received, uint64_t seed);

/* Asks the stack for an echo by ICMP, and a closed port of it for its error. 0 if both came; used in the peer's process. */
int host_probe(void);

/* A number that is written in decimal digits alone, up to 10^18. */
static inline bool parse_number(const char *text, uint64_t *value) {
    size_t length = strlen(text);
    if (length == 0 || length > 18 || strspn(text, "0123456789") != length) return false;
    *value = strtoull(text, NULL, 10);
    return true;
}

#endif
