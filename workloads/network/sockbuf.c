/* Socket buffers. Data in an adapter's memory count against a quota of their own. */
#include <string.h>

#include "network.h"
#include "socket.h"

unsigned sblength(const struct sockbuf *sb) {
    return sb->sb_cc + sb->sb_adapter_cc;
}

unsigned sbspace(const struct sockbuf *sb) {
    unsigned space = sb->sb_hiwat > sb->sb_cc ? sb->sb_hiwat - sb->sb_cc : 0;
    if (sb->sb_adapter_hiwat > sb->sb_adapter_cc) space += sb->sb_adapter_hiwat - sb->sb_adapter_cc;
    return space;
}

/* Counts bytes of an mbuf that come or go. */
static void count(struct sockbuf *sb, const struct mbuf *m, int bytes) {
    if (m->m_flags & M_UIOMOVE) sb->sb_adapter_cc += bytes;
    else sb->sb_cc += bytes;
}

/* Copies a small mbuf behind the last one, if it fits there: small writes do not take an mbuf each. Never into or out of an
 * adapter's memory, nor into a buffer that others share. */
static bool compress(struct sockbuf *sb, const struct mbuf *m) {
    struct mbuf *last = sb->sb_mbtail;
    if (!last || (last->m_flags | m->m_flags) & M_UIOMOVE || m->m_len > MLEN) return false;
    char *end = last->m_flags & M_EXT ? last->m_ext.ext_buf + last->m_ext.ext_size : last->m_dat + MLEN;
    if (last->m_flags & M_EXT && *last->m_ext.ext_references > 1) return false;
    if (end - (last->m_data + last->m_len) < m->m_len) return false;
    memcpy(last->m_data + last->m_len, m->m_data, m->m_len);
    last->m_len += m->m_len;
    return true;
}

void sbappend(struct sockbuf *sb, struct mbuf *m) {
    while (m) {
        struct mbuf *next = m->m_next;
        count(sb, m, m->m_len);
        m->m_flags &= ~(M_PKTHDR | M_PROTOCOL_SUM);
        m->m_next = NULL;
        if (m->m_len == 0 || compress(sb, m)) {
            m_free(m);
        } else {
            if (sb->sb_mbtail) sb->sb_mbtail->m_next = m;
            else sb->sb_mb = m;
            sb->sb_mbtail = m;
        }
        m = next;
    }
}

void sbappend_record(struct sockbuf *sb, struct mbuf *m) {
    for (const struct mbuf *one = m; one; one = one->m_next) count(sb, one, one->m_len);
    m->m_nextpkt = NULL;
    if (sb->sb_mbtail) sb->sb_mbtail->m_nextpkt = m;
    else sb->sb_mb = m;
    sb->sb_mbtail = m;
}

struct mbuf *sbfind(struct sockbuf *sb, unsigned *offset) {
    bool is_behind = sb->sb_found && sb->sb_found_at <= *offset;
    struct mbuf *m = is_behind ? sb->sb_found : sb->sb_mb;
    unsigned at = is_behind ? sb->sb_found_at : 0;
    for (; m && *offset - at >= (unsigned)m->m_len; m = m->m_next) at += m->m_len;
    if (m) {
        sb->sb_found = m;
        sb->sb_found_at = at;
    }
    *offset -= at;
    return m;
}

void sbdrop(struct sockbuf *sb, unsigned length) {
    if (sb->sb_found_at < length) sb->sb_found = NULL;
    else sb->sb_found_at -= length;
    while (length > 0) {
        struct mbuf *m = sb->sb_mb;
        unsigned part = MINIMUM(length, (unsigned)m->m_len);
        count(sb, m, -(int)part);
        length -= part;
        if ((int)part == m->m_len) {
            sb->sb_mb = m_free(m);
            if (!sb->sb_mb) sb->sb_mbtail = NULL;
        } else {
            m->m_data += part;
            m->m_len -= part;
            m->bytesSummed = 0;
        }
    }
}

void sbdrop_record(struct sockbuf *sb) {
    struct mbuf *m = sb->sb_mb;
    for (const struct mbuf *one = m; one; one = one->m_next) count(sb, one, -one->m_len);
    sb->sb_mb = m->m_nextpkt;
    if (!sb->sb_mb) sb->sb_mbtail = NULL;
    m_freem(m);
}

void sbflush(struct sockbuf *sb) {
    while (sb->sb_mb) {
        struct mbuf *next = sb->sb_mb->m_nextpkt;
        m_freem(sb->sb_mb);
        sb->sb_mb = next;
    }
    sb->sb_mbtail = sb->sb_found = NULL;
    sb->sb_cc = sb->sb_adapter_cc = 0;
}

int sb_move(struct mbuf *m, int offset, int length, struct uio *uio) {
    if (m->m_flags & M_UIOMOVE) return m->m_ext.uiomove_f(m, offset, length, uio);
    return uiomove(m->m_data + offset, length, uio);
}
