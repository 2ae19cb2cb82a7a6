/* The compiler, for lwIP: what it does not define itself. */
#ifndef NETWORK_LWIP_CC_H
#define NETWORK_LWIP_CC_H

#include <stdio.h>
#include <stdlib.h>

#define LWIP_PLATFORM_ASSERT(message) \
    do { \
        fprintf(stderr, "lwip: %s\n", message); \
        abort(); \
    } while (0)
/* Without calls; both machines have the little end first. */
#define lwip_htons(x) __builtin_bswap16(x)
#define lwip_htonl(x) __builtin_bswap32(x)
#define LWIP_RAND() ((unsigned)random())

#endif
