/* Allocation of mbufs and clusters. Freed ones are kept for the next; under AddressSanitizer they are not, so that it sees uses of
 * what was freed. */
#include "mbuf.h"

#include <stdlib.h>

#include "network.h"

#if defined(__SANITIZE_ADDRESS__)
#define KEPT 0
#else
#define KEPT 4096
#endif

/* A cluster, and the number of mbufs that share it. */
struct cluster {
    struct cluster *next; /* While it is free. */
    unsigned references;
    char bytes[MCLBYTES] __attribute__((aligned(64)));
};

static struct mbuf *free_mbufs;
static struct cluster *free_clusters;
static unsigned kept_mbufs, kept_clusters, allocated;

unsigned m_allocated(void) {
    return allocated;
}

struct mbuf *m_get(void) {
    struct mbuf *m = free_mbufs;
    if (allocated >= parameters.maximum_mbufs) m = NULL;
    else if (m) free_mbufs = m->m_next, kept_mbufs--;
    else m = malloc(sizeof *m);
    if (!m) {
        statistics.no_memory++;
        return NULL;
    }
    allocated++;
    m->m_next = m->m_nextpkt = NULL;
    m->m_data = m->m_dat;
    m->m_len = 0;
    m->m_flags = 0;
    m->bytesSummed = 0;
    return m;
}

struct mbuf *m_gethdr(void) {
    struct mbuf *m = m_get();
    if (!m) return NULL;
    m->m_flags = M_PKTHDR;
    m->m_data += M_LEADING;
    m->m_pkthdr = (struct pkthdr){0};
    return m;
}

static void free_cluster(struct m_ext *buffer) {
    struct cluster *cluster = buffer->ext_arg;
    if (kept_clusters + 1 > KEPT) {
        free(cluster);
        return;
    }
    cluster->next = free_clusters;
    free_clusters = cluster;
    kept_clusters++;
}

bool m_clget(struct mbuf *m) {
    struct cluster *cluster = free_clusters;
    if (cluster) free_clusters = cluster->next, kept_clusters--;
    else cluster = aligned_alloc(64, sizeof *cluster);
    if (!cluster) {
        statistics.no_memory++;
        return false;
    }
    cluster->references = 1;
    m->m_ext = (struct m_ext){cluster->bytes, MCLBYTES, &cluster->references, free_cluster, cluster, NULL, NULL};
    m->m_flags |= M_EXT;
    m->m_data = cluster->bytes;
    return true;
}

struct mbuf *m_getcl(unsigned flags) {
    struct mbuf *m = flags & M_PKTHDR ? m_gethdr() : m_get();
    if (m && !m_clget(m)) {
        m_free(m);
        return NULL;
    }
    return m;
}

struct mbuf *m_free(struct mbuf *m) {
    struct mbuf *next = m->m_next;
    if (m->m_flags & M_EXT && --*m->m_ext.ext_references == 0) m->m_ext.ext_free(&m->m_ext);
    allocated--;
    if (kept_mbufs + 1 > KEPT) {
        free(m);
    } else {
        m->m_next = free_mbufs;
        free_mbufs = m;
        kept_mbufs++;
    }
    return next;
}

void m_freem(struct mbuf *m) {
    while (m) m = m_free(m);
}
