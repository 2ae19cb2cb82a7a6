/* Reassembly of fragments, by the holes' converse: fragments of a datagram in order, none overlapping. Fragments that overlap in
 * part are dropped with their datagram (as RFC 5722 has it for IPv6), since they are an attack; equal ones are duplicates. */
#include <arpa/inet.h>
#include <string.h>

#include "checksum.h"
#include "ip.h"
#include "network.h"

#define FRAGMENTS 128 /* Of a datagram. */

struct fragment {
    int start, end;
    struct mbuf *data; /* Without a header. */
};

/* A datagram of which fragments are missing. */
struct reassembly {
    bool is_used;
    struct ip header; /* Of the first fragment, or of any until that has come. */
    uint64_t began;
    int end; /* Where the last fragment ends; 0 if it has not come. */
    int fragments;
    struct fragment parts[FRAGMENTS];
};

static struct reassembly table[REASSEMBLIES];

static void forget(struct reassembly *datagram) {
    for (int i = 0; i < datagram->fragments; i++) m_freem(datagram->parts[i].data);
    statistics.ip_fragments_dropped += datagram->fragments;
    datagram->is_used = false;
    datagram->fragments = 0;
}

void ip_reassembly_timer(bool everything) {
    for (int i = 0; i < REASSEMBLIES; i++)
        if (table[i].is_used && (everything || network_now() - table[i].began > REASSEMBLY_LIFETIME)) forget(&table[i]);
}

/* The datagram of a fragment; the oldest makes room for a new one. */
static struct reassembly *find(const struct ip *ip) {
    struct reassembly *oldest = &table[0];
    for (int i = 0; i < REASSEMBLIES; i++) {
        struct reassembly *one = &table[i];
        if (one->is_used && one->header.ip_id == ip->ip_id && one->header.ip_src == ip->ip_src &&
            one->header.ip_dst == ip->ip_dst && one->header.ip_p == ip->ip_p)
            return one;
        if (oldest->is_used && (!one->is_used || one->began < oldest->began)) oldest = one;
    }
    if (oldest->is_used) forget(oldest);
    oldest->is_used = true;
    oldest->header = *ip;
    oldest->began = network_now();
    oldest->end = 0;
    return oldest;
}

enum placed { PLACED, DUPLICATE, CONTRADICTORY };

/* Puts a fragment among the others. */
static enum placed place(struct reassembly *datagram, struct fragment fragment, bool is_last) {
    int at = 0;
    while (at < datagram->fragments && datagram->parts[at].start < fragment.start) at++;
    const struct fragment *next = &datagram->parts[at];
    if (at < datagram->fragments && next->start == fragment.start && next->end == fragment.end) return DUPLICATE;
    if (datagram->fragments == FRAGMENTS) return CONTRADICTORY;
    if (at > 0 && next[-1].end > fragment.start) return CONTRADICTORY;
    if (at < datagram->fragments && next->start < fragment.end) return CONTRADICTORY;
    if (is_last && (datagram->end || at < datagram->fragments)) return CONTRADICTORY;
    if (datagram->end && fragment.end > datagram->end) return CONTRADICTORY;
    if (is_last) datagram->end = fragment.end;
    memmove(&datagram->parts[at + 1], next, (datagram->fragments - at) * sizeof *next);
    datagram->parts[at] = fragment;
    datagram->fragments++;
    return PLACED;
}

static bool is_complete(const struct reassembly *datagram) {
    int reached = 0;
    for (int i = 0; i < datagram->fragments && datagram->parts[i].start == reached; i++) reached = datagram->parts[i].end;
    return datagram->end && reached == datagram->end;
}

/* Joins the fragments behind the first one's header. */
static struct mbuf *join(struct reassembly *datagram) {
    struct mbuf *m = m_gethdr();
    if (!m) {
        forget(datagram);
        return NULL;
    }
    struct ip *ip = mtod(m, struct ip *);
    *ip = datagram->header;
    ip->ip_vhl = 0x45;
    ip->ip_len = htons(datagram->end + IP_HEADER);
    ip->ip_off = ip->ip_sum = 0;
    ip->ip_sum = ~in_sum(ip, IP_HEADER);
    m->m_len = IP_HEADER;
    m->m_pkthdr.len = datagram->end + IP_HEADER;
    const struct pkthdr *first = &datagram->parts[0].data->m_pkthdr;
    m->m_pkthdr.rcvif = first->rcvif;
    struct mbuf *last = m;
    for (int i = 0; i < datagram->fragments; i++) {
        last->m_next = datagram->parts[i].data;
        last->m_next->m_flags &= ~(M_PKTHDR | M_PROTOCOL_SUM);
        last = m_last(last);
    }
    datagram->is_used = false;
    datagram->fragments = 0;
    statistics.ip_reassembled++;
    return m;
}

struct mbuf *ip_reassemble(struct mbuf *m) {
    const struct ip *ip = mtod(m, struct ip *);
    struct ip header = *ip;
    int length = m->m_pkthdr.len - ip_header_length(ip);
    int start = (ntohs(ip->ip_off) & IP_OFFSET) * 8;
    bool is_last = !(ntohs(ip->ip_off) & IP_MF);
    if (length <= 0 || start + length > 0xffff - IP_HEADER || (!is_last && length % 8 != 0)) {
        statistics.ip_fragments_dropped++;
        m_freem(m);
        return NULL;
    }
    m_adj(m, ip_header_length(ip));
    struct reassembly *datagram = find(&header);
    enum placed placed = place(datagram, (struct fragment){start, start + length, m}, is_last);
    if (placed != PLACED) {
        statistics.ip_fragments_dropped++;
        m_freem(m);
        if (placed == CONTRADICTORY) forget(datagram);
        return NULL;
    }
    if (start == 0) datagram->header = header;
    return is_complete(datagram) ? join(datagram) : NULL;
}
