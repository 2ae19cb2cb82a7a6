/* A caller's memory as a list of ranges, and the copy from and to it. */
#ifndef NETWORK_UIO_H
#define NETWORK_UIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum uio_rw { UIO_READ, UIO_WRITE }; /* Into the caller's memory; out of it. */

/* The rest of a caller's request. */
struct uio {
    struct iovec *uio_iov; /* The ranges, which are consumed. */
    int uio_iovcnt;
    size_t uio_resid; /* Bytes left. */
    enum uio_rw uio_rw;
};

/* Copies `length` bytes between `data` and the caller's memory by the processor, and advances `uio`. 0, or EFAULT if `uio` has
 * fewer bytes. */
int uiomove(void *data, size_t length, struct uio *uio);

/* Advances `uio` by `length` bytes, which something else has moved. */
void uio_advance(struct uio *uio, size_t length);

/* Whether transfers of devices are shown to simulations of caches. */
extern bool device_transfers;

/* A device moves `length` bytes of ranges by DMA: out of memory (UIO_WRITE), or into it, which has happened (UIO_READ). The host's
 * kernel does, so that no access of ours shows it. If they are shown, device_reads and device_writes access each line once: a
 * simulation takes their loads, or stores, for the device's. */
void device_moves(const struct iovec *ranges, int count, size_t length, enum uio_rw direction);
void device_reads(uintptr_t at, uintptr_t end);
void device_writes(uintptr_t at, uintptr_t end);

/* Makes `uio` describe one range, by way of `range`. */
void uio_of(struct uio *uio, struct iovec *range, void *data, size_t length, enum uio_rw direction);

#endif
