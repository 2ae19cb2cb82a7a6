/* Operations on chains of mbufs. */
#include <string.h>

#include "checksum.h"
#include "mbuf.h"
#include "network.h"

int m_length(const struct mbuf *m) {
    int length = 0;
    for (; m; m = m->m_next) length += m->m_len;
    return length;
}

struct mbuf *m_last(struct mbuf *m) {
    while (m->m_next) m = m->m_next;
    return m;
}

void m_cat(struct mbuf *m, struct mbuf *rest) {
    m_last(m)->m_next = rest;
}

/* Copies bytes of one mbuf to the host's memory. */
static void copy_out(const struct mbuf *m, int offset, int length, char *to) {
    if (m->m_flags & M_UIOMOVE) {
        struct iovec range;
        struct uio uio;
        uio_of(&uio, &range, to, length, UIO_READ);
        m->m_ext.uiomove_f((struct mbuf *)m, offset, length, &uio);
    } else if (length > 0) {
        memcpy(to, m->m_data + offset, length);
    }
}

void m_copydata(const struct mbuf *m, int offset, int length, void *to) {
    char *at = to;
    for (; m && offset >= m->m_len; m = m->m_next) offset -= m->m_len;
    for (; m && length > 0; m = m->m_next, offset = 0) {
        int part = MINIMUM(length, m->m_len - offset);
        copy_out(m, offset, part, at);
        at += part;
        length -= part;
    }
}

/* A new mbuf for bytes of another: shared if they are external, else copied. */
static struct mbuf *share(const struct mbuf *m, int offset, int length) {
    struct mbuf *copy = m_get();
    if (!copy) return NULL;
    copy->m_len = length;
    if (m->m_flags & M_EXT) {
        copy->m_flags = m->m_flags & (M_EXT | M_UIOMOVE);
        copy->m_ext = m->m_ext;
        ++*m->m_ext.ext_references;
        copy->m_data = m->m_data + offset;
        copy->bytesSummed = offset == 0 && length == m->bytesSummed ? length : 0;
    } else {
        memcpy(copy->m_data, m->m_data + offset, length);
    }
    return copy;
}

struct mbuf *m_copym(const struct mbuf *m, int offset, int length) {
    struct mbuf *first = NULL, **last = &first;
    int total = length;
    for (; m && offset >= m->m_len; m = m->m_next) offset -= m->m_len;
    for (; m && length > 0; m = m->m_next, offset = 0) {
        int part = MINIMUM(length, m->m_len - offset);
        if (part == 0) continue;
        *last = share(m, offset, part);
        if (!*last) {
            m_freem(first);
            return NULL;
        }
        length -= part;
        last = &(*last)->m_next;
    }
    if (first) {
        first->m_flags |= M_PKTHDR;
        first->m_pkthdr = (struct pkthdr){.len = total - length};
    }
    return first;
}

void m_adj(struct mbuf *m, int length) {
    struct mbuf *first = m;
    int total = m_length(m);
    if (first->m_flags & M_PKTHDR) first->m_pkthdr.len = MAXIMUM(0, total - (length < 0 ? -length : length));
    if (length >= 0) {
        for (; m && length > 0; m = m->m_next) {
            int part = MINIMUM(length, m->m_len);
            m->m_data += part;
            m->m_len -= part;
            if (part > 0) m->bytesSummed = 0;
            length -= part;
        }
        return;
    }
    int left = MAXIMUM(0, total + length);
    for (; m; m = m->m_next) {
        if (m->m_len > left) m->m_len = left, m->bytesSummed = 0;
        left -= m->m_len;
    }
}

struct mbuf *m_pullup(struct mbuf *m, int length) {
    if (m->m_len >= length && ((uintptr_t)m->m_data & 3) == 0 && !(m->m_flags & M_UIOMOVE)) return m;
    struct mbuf *head = m_get();
    if (!head || length > MLEN - M_LEADING || m_length(m) < length) {
        if (head) m_free(head);
        m_freem(m);
        return NULL;
    }
    head->m_data += M_LEADING;
    head->m_len = length;
    head->m_flags = m->m_flags & ~(M_EXT | M_UIOMOVE);
    head->m_pkthdr = m->m_pkthdr;
    head->m_nextpkt = m->m_nextpkt;
    m_copydata(m, 0, length, head->m_data);
    m->m_flags &= ~M_PKTHDR;
    m_adj(m, length);
    while (m && m->m_len == 0) m = m_free(m);
    head->m_next = m;
    return head;
}

struct mbuf *m_prepend(struct mbuf *m, int length) {
    char *start = m->m_flags & M_EXT ? NULL : m->m_dat;
    if (start && m->m_data - start >= length) {
        m->m_data -= length;
        m->m_len += length;
        m->m_pkthdr.len += length;
        return m;
    }
    struct mbuf *head = m_gethdr();
    if (!head) {
        m_freem(m);
        return NULL;
    }
    head->m_flags = m->m_flags & ~(M_EXT | M_UIOMOVE);
    head->m_pkthdr = m->m_pkthdr;
    head->m_pkthdr.len += length;
    m->m_flags &= ~M_PKTHDR;
    head->m_len = length;
    head->m_next = m;
    return head;
}

/* The bytes of an mbuf in clusters. */
static struct mbuf *in_clusters(const struct mbuf *m) {
    struct mbuf *first = NULL, **last = &first;
    for (int at = 0; at < m->m_len; last = &(*last)->m_next) {
        *last = m_getcl(0);
        if (!*last) {
            m_freem(first);
            return NULL;
        }
        (*last)->m_len = MINIMUM(MCLBYTES, m->m_len - at);
        copy_out(m, at, (*last)->m_len, (*last)->m_data);
        at += (*last)->m_len;
    }
    return first;
}

struct mbuf *m_relocate(struct mbuf *m) {
    struct mbuf *first = m, **link = &first;
    while ((m = *link)) {
        if (!(m->m_flags & M_UIOMOVE)) {
            link = &m->m_next;
            continue;
        }
        statistics.relocations++;
        struct mbuf *moved = m->m_len > 0 ? in_clusters(m) : m_get();
        if (!moved) {
            m_freem(first);
            return NULL;
        }
        moved->m_flags |= m->m_flags & (M_PKTHDR | M_BROADCAST | M_PROTOCOL_SUM);
        moved->m_pkthdr = m->m_pkthdr;
        moved->m_nextpkt = m->m_nextpkt;
        *link = moved;
        link = &m_last(moved)->m_next;
        *link = m_free(m);
    }
    return first;
}

/* Sum of a range of one mbuf. */
static uint16_t sum_of(const struct mbuf *m, int offset, int length) {
    if (!(m->m_flags & M_UIOMOVE)) return in_sum(m->m_data + offset, length);
    if (offset == 0 && length == m->bytesSummed) return m->m_ext.protocolSum_f(m);
    /* The range is not the one that the adapter has summed: sum its bytes. */
    uint32_t sum = 0;
    char buffer[1024];
    statistics.resummed_bytes += length;
    for (int at = 0; at < length; at += sizeof buffer) {
        int part = MINIMUM((int)sizeof buffer, length - at);
        copy_out(m, offset + at, part, buffer);
        sum += in_sum(buffer, part);
    }
    return in_fold(sum);
}

uint16_t m_sum(const struct mbuf *m, int offset, int length) {
    uint32_t sum = 0;
    bool odd = false;
    for (; m && offset >= m->m_len; m = m->m_next) offset -= m->m_len;
    for (; m && length > 0; m = m->m_next, offset = 0) {
        int part = MINIMUM(length, m->m_len - offset);
        uint16_t own = sum_of(m, offset, part);
        sum += odd ? (uint16_t)(own << 8 | own >> 8) : own;
        odd ^= part & 1;
        length -= part;
    }
    return in_fold(sum);
}
