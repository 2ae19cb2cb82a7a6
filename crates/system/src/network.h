/* The guest's network, which the first process prepares: crates/system/src/network.rs has what users ask for. */
#ifndef NETWORK_H
#define NETWORK_H

/* Ends the guest with a message. */
void die(const char *what);

/* Prepares the loopback interface and two others: eth0 for the program, eth1 in another namespace for those in the background. `kind` is
 * "veth", or "card" if the machine has two cards; `offloads` is "none", "checksum" or "segmentation", or NULL for what the driver begins with. */
void prepare_network(const char *kind, const char *offloads);

/* Brings this process into the namespace of programs in the background, if there is a network. */
void enter_peer_namespace(void);

#endif
