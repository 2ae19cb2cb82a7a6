/* The Address Resolution Protocol. The table has a fixed size, so that nobody can make it grow; entries are made for neighbours
 * that we talk to, and updated by what they say. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ether.h"
#include "network.h"

#define ARP_REQUEST 1
#define ARP_REPLY 2

/* An ARP packet for Ethernet and IP; fields of two bytes in the network's byte order. */
struct arp_packet {
    uint16_t hardware_type, protocol_type;
    uint8_t hardware_length, protocol_length;
    uint16_t operation;
    unsigned char sender_hardware[6], sender_address[4], target_hardware[6], target_address[4];
};

struct arp_entry {
    struct ifnet *interface; /* NULL: unused. */
    uint32_t address;
    bool is_known;
    unsigned char hardware[6];
    uint64_t since;        /* Of the address, or of the last request. */
    unsigned attempts;     /* Requests that have been sent. */
    struct mbuf *held;     /* Packets that wait, by m_nextpkt. */
    unsigned held_packets; /* Their number. */
};

static struct arp_entry entries[ARP_ENTRIES];

static void drop_held(struct arp_entry *entry) {
    while (entry->held) {
        struct mbuf *next = entry->held->m_nextpkt;
        m_freem(entry->held);
        entry->held = next;
    }
    entry->held_packets = 0;
}

void arp_flush(void) {
    for (int i = 0; i < ARP_ENTRIES; i++) drop_held(&entries[i]);
    memset(entries, 0, sizeof entries);
}

static struct arp_entry *find(const struct ifnet *ifp, uint32_t address) {
    for (int i = 0; i < ARP_ENTRIES; i++)
        if (entries[i].interface == ifp && entries[i].address == address) return &entries[i];
    return NULL;
}

/* An entry for a new neighbour, in place of the oldest if all are used. */
static struct arp_entry *create(struct ifnet *ifp, uint32_t address) {
    struct arp_entry *oldest = &entries[0];
    for (int i = 0; i < ARP_ENTRIES && oldest->interface; i++)
        if (!entries[i].interface || entries[i].since < oldest->since) oldest = &entries[i];
    drop_held(oldest);
    *oldest = (struct arp_entry){.interface = ifp, .address = address, .since = network_now()};
    return oldest;
}

static void send_packet(struct ifnet *ifp, uint16_t operation, const unsigned char *to, uint32_t address) {
    static const unsigned char everybody[6] = {255, 255, 255, 255, 255, 255};
    struct mbuf *m = m_gethdr();
    if (!m) return;
    struct arp_packet packet = {htons(1), htons(0x0800), 6, 4, htons(operation), {0}, {0}, {0}, {0}};
    memcpy(packet.sender_hardware, ifp->if_hardware, 6);
    memcpy(packet.sender_address, &ifp->if_address, 4);
    if (to) memcpy(packet.target_hardware, to, 6);
    memcpy(packet.target_address, &address, 4);
    m->m_len = m->m_pkthdr.len = sizeof packet;
    memcpy(m->m_data, &packet, sizeof packet);
    ether_send(ifp, m, to ? to : everybody, ETHERTYPE_ARP);
}

static void request(struct arp_entry *entry) {
    entry->attempts++;
    entry->since = network_now();
    statistics.arp_requests++;
    send_packet(entry->interface, ARP_REQUEST, NULL, entry->address);
}

int arp_resolve(struct ifnet *ifp, struct mbuf *m, uint32_t next) {
    struct arp_entry *entry = find(ifp, next);
    if (entry && entry->is_known) return ether_send(ifp, m, entry->hardware, ETHERTYPE_IP);
    bool is_new = !entry;
    if (is_new) entry = create(ifp, next);
    if (entry->held_packets == ARP_HOLD) {
        struct mbuf *oldest = entry->held;
        entry->held = oldest->m_nextpkt;
        entry->held_packets--;
        m_freem(oldest);
    }
    struct mbuf **link = &entry->held;
    while (*link) link = &(*link)->m_nextpkt;
    m->m_nextpkt = NULL;
    *link = m;
    entry->held_packets++;
    if (is_new) request(entry);
    return 0;
}

/* A neighbour has told its hardware address: remembers it and sends what waits. */
static void learn(struct arp_entry *entry, const unsigned char *hardware) {
    struct mbuf *held = entry->held;
    memcpy(entry->hardware, hardware, 6);
    entry->is_known = true;
    entry->attempts = 0;
    entry->since = network_now();
    entry->held = NULL;
    entry->held_packets = 0;
    while (held) {
        struct mbuf *next = held->m_nextpkt;
        held->m_nextpkt = NULL;
        ether_send(entry->interface, held, entry->hardware, ETHERTYPE_IP);
        held = next;
    }
}

void arp_input(struct ifnet *ifp, struct mbuf *m) {
    struct arp_packet packet;
    uint32_t sender, target;
    bool is_whole = m_length(m) >= (int)sizeof packet;
    if (is_whole) m_copydata(m, 0, sizeof packet, &packet);
    m_freem(m);
    if (!is_whole || packet.hardware_type != htons(1) || packet.protocol_type != htons(0x0800) ||
        packet.hardware_length != 6 || packet.protocol_length != 4 || packet.sender_hardware[0] & 1) {
        statistics.arp_bad++;
        return;
    }
    memcpy(&sender, packet.sender_address, 4);
    memcpy(&target, packet.target_address, 4);
    if (sender == ifp->if_address || ((sender ^ ifp->if_address) & ifp->if_netmask) != 0) return;
    bool is_for_us = target == ifp->if_address;
    struct arp_entry *entry = find(ifp, sender);
    if (!entry && is_for_us && packet.operation == htons(ARP_REQUEST)) entry = create(ifp, sender);
    if (entry) learn(entry, packet.sender_hardware);
    if (is_for_us && packet.operation == htons(ARP_REQUEST)) {
        statistics.arp_replies++;
        send_packet(ifp, ARP_REPLY, packet.sender_hardware, sender);
    }
}

void arp_timer(void) {
    uint64_t now = network_now();
    for (int i = 0; i < ARP_ENTRIES; i++) {
        struct arp_entry *entry = &entries[i];
        if (!entry->interface) continue;
        if (entry->is_known) {
            if (now - entry->since > ARP_LIFETIME) entry->interface = NULL;
        } else if (now - entry->since >= 1000) {
            if (entry->attempts < ARP_ATTEMPTS) {
                request(entry);
            } else {
                drop_held(entry);
                entry->interface = NULL;
            }
        }
    }
}
