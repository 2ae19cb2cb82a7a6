/* Loss, duplication, reordering, corruption and delay, by a generator of each interface's own. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "ether.h"
#include "network.h"

#define HELD_MS 20 /* A frame that shall be overtaken waits so long for the one that overtakes it. */

/* A frame that is late. */
struct late {
    struct late *next;
    uint64_t due;
    bool is_received;
    bool is_overtaken; /* Goes as soon as another frame of its direction has gone. */
    struct mbuf *m;
};

struct impairment {
    struct impairment_parameters wanted;
    uint64_t state;
    struct late *late;
};

static uint32_t draw(struct impairment *faults) {
    faults->state = faults->state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(faults->state >> 33);
}

static bool happens(struct impairment *faults, unsigned millionths) {
    return millionths > 0 && draw(faults) % 1000000 < millionths;
}

void impair(struct ifnet *ifp, const struct impairment_parameters *wanted) {
    struct impairment *faults = calloc(1, sizeof *faults);
    if (!faults) abort();
    faults->wanted = *wanted;
    faults->state = wanted->seed;
    ifp->if_impairment = faults;
}

void impair_end(struct ifnet *ifp) {
    while (ifp->if_impairment && ifp->if_impairment->late) {
        struct late *one = ifp->if_impairment->late;
        ifp->if_impairment->late = one->next;
        m_freem(one->m);
        free(one);
    }
    free(ifp->if_impairment);
    ifp->if_impairment = NULL;
}

static int pass(struct ifnet *ifp, struct mbuf *m, bool is_received) {
    if (!is_received) return ifp->if_start(ifp, m);
    ether_input(ifp, m);
    return 0;
}

/* A copy of a frame in memory of its own, with a bit inverted. */
static struct mbuf *corrupted(struct impairment *faults, struct mbuf *m) {
    unsigned char type[2];
    int length = m->m_pkthdr.len;
    if (length <= ETHER_HEADER || length > MCLBYTES - ETHER_ALIGN) return m;
    m_copydata(m, 12, 2, type);
    if (m->m_pkthdr.csum_flags || type[0] != 8 || type[1] != 0) return m;
    struct mbuf *copy = m_getcl(M_PKTHDR);
    if (!copy) return m;
    copy->m_pkthdr = m->m_pkthdr;
    copy->m_data += ETHER_ALIGN;
    copy->m_len = length;
    m_copydata(m, 0, length, copy->m_data);
    m_freem(m);
    uint32_t bit = draw(faults) % (length * 8);
    copy->m_data[bit / 8] ^= 1 << bit % 8;
    return copy;
}

static void hold(struct impairment *faults, struct mbuf *m, bool is_received, unsigned ms, bool is_overtaken) {
    struct late *one = malloc(sizeof *one), **link = &faults->late;
    if (!one) {
        m_freem(m);
        return;
    }
    *one = (struct late){NULL, network_now() + ms, is_received, is_overtaken, m};
    while (*link && (*link)->due <= one->due) link = &(*link)->next;
    one->next = *link;
    *link = one;
}

/* Passes on the frames that are due, and those of a direction that have been overtaken. */
static int release(struct ifnet *ifp, bool has_passed, bool is_received) {
    int released = 0;
    struct late **link = &ifp->if_impairment->late;
    while (*link) {
        struct late *one = *link;
        bool is_free = has_passed && one->is_overtaken && one->is_received == is_received;
        if (one->due > network_now() && !is_free) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        pass(ifp, one->m, one->is_received);
        free(one);
        released++;
        /* Passing may have changed the list. */
        link = &ifp->if_impairment->late;
    }
    return released;
}

/* The faults of one frame. */
static int suffer(struct ifnet *ifp, struct mbuf *m, bool is_received) {
    struct impairment *faults = ifp->if_impairment;
    const struct impairment_parameters *wanted = &faults->wanted;
    if (happens(faults, wanted->loss)) {
        m_freem(m);
        return 0;
    }
    if (happens(faults, wanted->corruption)) m = corrupted(faults, m);
    struct mbuf *again = happens(faults, wanted->duplication) ? m_copym(m, 0, m->m_pkthdr.len) : NULL;
    if (again) {
        again->m_pkthdr = m->m_pkthdr;
        hold(faults, again, is_received, wanted->delay_ms, true);
    }
    if (happens(faults, wanted->reordering)) {
        hold(faults, m, is_received, wanted->delay_ms + HELD_MS, true);
        return 0;
    }
    if (wanted->delay_ms + wanted->jitter_ms > 0) {
        hold(faults, m, is_received, wanted->delay_ms + (wanted->jitter_ms ? draw(faults) % (wanted->jitter_ms + 1) : 0), false);
        return 0;
    }
    int error = pass(ifp, m, is_received);
    release(ifp, true, is_received);
    return error;
}

int driver_output(struct ifnet *ifp, struct mbuf *m) {
    return ifp->if_impairment ? suffer(ifp, m, false) : ifp->if_start(ifp, m);
}

void driver_input(struct ifnet *ifp, struct mbuf *m) {
    if (ifp->if_impairment) suffer(ifp, m, true);
    else ether_input(ifp, m);
}

int impair_poll(struct ifnet *ifp) {
    return release(ifp, false, false);
}

int impair_timeout(const struct ifnet *ifp) {
    const struct late *first = ifp->if_impairment->late;
    if (!first) return -1;
    return first->due > network_now() ? (int)(first->due - network_now()) : 0;
}
