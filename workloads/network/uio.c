#include "uio.h"

#include <errno.h>
#include <string.h>

#include "network.h"

void uio_advance(struct uio *uio, size_t length) {
    uio->uio_resid -= length;
    while (length > 0) {
        struct iovec *range = uio->uio_iov;
        size_t part = MINIMUM(length, range->iov_len);
        range->iov_base = (char *)range->iov_base + part;
        range->iov_len -= part;
        length -= part;
        if (range->iov_len == 0) {
            uio->uio_iov++;
            uio->uio_iovcnt--;
        }
    }
}

int uiomove(void *data, size_t length, struct uio *uio) {
    char *at = data;
    if (length > uio->uio_resid) return EFAULT;
    statistics.copied_bytes += length;
    while (length > 0) {
        size_t part = MINIMUM(length, uio->uio_iov->iov_len);
        if (part > 0 && uio->uio_rw == UIO_READ) memcpy(uio->uio_iov->iov_base, at, part);
        else if (part > 0) memcpy(at, uio->uio_iov->iov_base, part);
        at += part;
        length -= part;
        if (part > 0) {
            uio_advance(uio, part);
        } else {
            uio->uio_iov++;
            uio->uio_iovcnt--;
        }
    }
    return 0;
}

bool device_transfers;

#define LINE 32

/* The arguments are in registers: all other accesses would be taken for the device's, too. */
__attribute__((noinline)) void device_reads(uintptr_t at, uintptr_t end) {
    for (at = (at + 7) & ~(uintptr_t)7; at + 8 <= end; at = (at | (LINE - 1)) + 1) (void)*(const volatile uint64_t *)at;
}

__attribute__((noinline)) void device_writes(uintptr_t at, uintptr_t end) {
    for (at = (at + 7) & ~(uintptr_t)7; at + 8 <= end; at = (at | (LINE - 1)) + 1) {
        volatile uint64_t *word = (volatile uint64_t *)at;
        *word = *word;
    }
}

void device_moves(const struct iovec *ranges, int count, size_t length, enum uio_rw direction) {
    for (int i = 0; device_transfers && i < count && length > 0; i++) {
        uintptr_t at = (uintptr_t)ranges[i].iov_base;
        size_t part = MINIMUM(length, ranges[i].iov_len);
        if (direction == UIO_READ) device_writes(at, at + part);
        else device_reads(at, at + part);
        length -= part;
    }
}

void uio_of(struct uio *uio, struct iovec *range, void *data, size_t length, enum uio_rw direction) {
    *range = (struct iovec){data, length};
    *uio = (struct uio){range, 1, length, direction};
}
