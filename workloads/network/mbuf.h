/* Mbufs: the memory of packets and of sockets. An mbuf describes one contiguous range of bytes, inside itself or in an external
 * buffer that is shared by reference counts; mbufs linked by m_next form a packet or the contents of a socket's buffer. */
#ifndef NETWORK_MBUF_H
#define NETWORK_MBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "uio.h"

#define MLEN 256                /* Bytes inside an mbuf. */
#define MCLBYTES 2048           /* Bytes of a cluster. */
#define M_LEADING 40            /* Bytes kept free for link and network headers in front of a packet. */
#define ETHER_ALIGN 2           /* Bytes before an Ethernet header that align the header that follows it. */

/* m_flags */
#define M_EXT 0x01          /* The bytes are in an external buffer. */
#define M_PKTHDR 0x02       /* The first mbuf of a packet. */
#define M_UIOMOVE 0x04      /* The bytes are in an adapter's memory; m_ext.uiomove_f moves them. */
#define M_PROTOCOL_SUM 0x08 /* m_pkthdr.protocolSum is the sum of a received packet's transport layer. */
#define M_BROADCAST 0x10    /* Received as a broadcast. */
#define M_NAME 0x20         /* A datagram's sender, in front of its data. */

/* m_pkthdr.csum_flags */
#define CSUM_TRANSPORT 0x1 /* Sent: the checksum field, at csum_offset of the transport header, has the pseudo-header's sum. */
#define CSUM_TSO 0x2       /* Sent: cut into segments of tso_segsz bytes. */
#define CSUM_VALID 0x4     /* Received: the adapter has verified the transport layer's checksum. */

struct mbuf;
struct ifnet;

/* An external buffer: its bytes, its references, and how it is freed. */
struct m_ext {
    char *ext_buf;
    unsigned ext_size;
    unsigned *ext_references;
    void (*ext_free)(struct m_ext *buffer);
    void *ext_arg;         /* Of the driver. */
    /* Waits until the adapter has summed the first bytesSummed bytes, and returns their sum. */
    uint16_t (*protocolSum_f)(const struct mbuf *m);
    /* Copies `length` bytes from `offset` of an mbuf to or from the caller's memory. */
    int (*uiomove_f)(struct mbuf *m, int offset, int length, struct uio *uio);
};

/* The header of a packet, in its first mbuf. */
struct pkthdr {
    int len; /* Bytes of all mbufs. */
    struct ifnet *rcvif;
    uint16_t csum_flags, csum_offset, tso_segsz;
    uint16_t protocolSum; /* Of the transport layer as received, ready to be compared with the checksum field. */
};

struct mbuf {
    struct mbuf *m_next, *m_nextpkt;
    char *m_data;
    int m_len;
    unsigned m_flags;
    struct pkthdr m_pkthdr;
    struct m_ext m_ext;
    int bytesSummed; /* M_UIOMOVE: of how many bytes at m_data the adapter knows the sum; 0 once the range has changed. */
    char m_dat[MLEN] __attribute__((aligned(8)));
};

#define mtod(m, type) ((type)(void *)(m)->m_data)

/* An mbuf without data; NULL if there are too many. */
struct mbuf *m_get(void);

/* As m_get(), the first of a packet; its data begin after M_LEADING free bytes. */
struct mbuf *m_gethdr(void);

/* Gives an empty mbuf a cluster; false if there is no memory. */
bool m_clget(struct mbuf *m);

/* An mbuf with a cluster, of a packet if `flags` has M_PKTHDR; NULL if there is no memory. */
struct mbuf *m_getcl(unsigned flags);

/* Frees one mbuf and returns the next. */
struct mbuf *m_free(struct mbuf *m);

/* Frees a chain. */
void m_freem(struct mbuf *m);

/* Number of mbufs that are allocated. */
unsigned m_allocated(void);

/* A copy of `length` bytes from `offset`, a packet of its own; external buffers are shared. NULL without memory. */
struct mbuf *m_copym(const struct mbuf *m, int offset, int length);

/* Copies bytes out of a chain, wherever they are. */
void m_copydata(const struct mbuf *m, int offset, int length, void *to);

/* Removes bytes at the front (positive) or at the end (negative). */
void m_adj(struct mbuf *m, int length);

/* Makes the first `length` bytes contiguous and aligned; frees the chain and returns NULL if it is shorter. */
struct mbuf *m_pullup(struct mbuf *m, int length);

/* Makes room for `length` more bytes at the front; frees the chain and returns NULL without memory. */
struct mbuf *m_prepend(struct mbuf *m, int length);

/* Sum of the lengths of a chain. */
int m_length(const struct mbuf *m);

/* Last mbuf of a chain. */
struct mbuf *m_last(struct mbuf *m);

/* Appends a chain to another. */
void m_cat(struct mbuf *m, struct mbuf *rest);

/* The same bytes in the host's memory, for code that knows no adapter's: replaces M_UIOMOVE mbufs by clusters. Frees the chain
 * and returns NULL without memory. */
struct mbuf *m_relocate(struct mbuf *m);

/* One's complement sum of `length` bytes from `offset`, as if the range began at an even place; not inverted. Sums of ranges in
 * adapter's memory that are known are used. */
uint16_t m_sum(const struct mbuf *m, int offset, int length);

#endif
