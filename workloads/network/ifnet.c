#include "ifnet.h"

#include <arpa/inet.h>

#include "network.h"

struct ifnet *ifnet_list;
static uint32_t default_gateway;

void if_attach(struct ifnet *ifp) {
    struct ifnet **link = &ifnet_list;
    while (*link) link = &(*link)->if_next;
    ifp->if_next = NULL;
    *link = ifp;
}

void route_default(uint32_t gateway) {
    default_gateway = gateway;
}

/* The interface whose network has an address. */
static struct ifnet *on_network(uint32_t address) {
    for (struct ifnet *ifp = ifnet_list; ifp; ifp = ifp->if_next)
        if (((address ^ ifp->if_address) & ifp->if_netmask) == 0) return ifp;
    return NULL;
}

struct ifnet *route_lookup(uint32_t destination, uint32_t *next) {
    struct ifnet *ifp = on_network(destination);
    *next = destination;
    if (!ifp && destination == INADDR_BROADCAST) return ifnet_list;
    if (!ifp && default_gateway) ifp = on_network(*next = default_gateway);
    return ifp;
}

bool if_is_broadcast(const struct ifnet *ifp, uint32_t address) {
    return address == INADDR_BROADCAST ||
           (ifp->if_is_ethernet && address == (ifp->if_address | ~ifp->if_netmask));
}

bool if_is_ours(const struct ifnet *ifp, uint32_t address) {
    if (if_is_broadcast(ifp, address)) return true;
    for (const struct ifnet *one = ifnet_list; one; one = one->if_next)
        if (one->if_address == address) return true;
    return false;
}
