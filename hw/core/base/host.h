/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the core asks of the machine around it.
 *
 * Implemented once by the QEMU device (hw/device) and once by the test host (tests/lib).  The core
 * holds no clock, thread or I/O of its own: everything it does is a function of the calls made to
 * it and of what these operations return.  All calls of one adapter are serialised by the host.
 * None of these operations calls back into the core.
 */
#ifndef SG_BASE_HOST_H
#define SG_BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sg_log_class {
    SG_LOG_GUEST_ERROR, /* the guest broke the contract of include/staghorn */
    SG_LOG_PEER_ERROR,  /* the peer broke a protocol rule */
    SG_LOG_STATE,       /* a state machine moved: "qp 5: RTS -> TERMINATE" */
    SG_LOG_TRACE,       /* everything else, off by default */
};

#define SG_NEVER UINT64_MAX

struct sg_host_ops {
    /* Copy from or to guest memory (bus addresses).  False: the address does not respond. */
    bool (*dma_read)(void *host, uint64_t addr, void *buf, size_t len);
    bool (*dma_write)(void *host, uint64_t addr, const void *buf, size_t len);

    /*
     * One aligned 64-bit store (value in host order, stored little-endian), single-copy atomic
     * towards guest CPUs and ordered after all earlier dma_write and map writes.
     */
    bool (*dma_store64)(void *host, uint64_t addr, uint64_t value);

    /*
     * Direct pointer to guest memory.  *len is the wish on entry and what could be mapped on return
     * (at least 1, at most the wish).  NULL: cannot be mapped, use dma_read or dma_write.  Held
     * only for the duration of one core call; unmap takes the length used (written).
     */
    void *(*map)(void *host, uint64_t addr, size_t *len, bool for_write);
    void (*unmap)(void *host, void *p, size_t len, bool for_write);

    /* Monotonic time of the machine, ns. */
    uint64_t (*now)(void *host);

    /* Call sg_adapter_run() at or after this time (ns), replacing the former; SG_NEVER: not. */
    void (*arm_timer)(void *host, uint64_t deadline_ns);

    /* Call sg_adapter_run() soon, from a fresh stack. */
    void (*kick)(void *host);

    /* Raise an MSI-X vector. */
    void (*raise)(void *host, unsigned vector);

    /* Unpredictable octets (STag keys, initial sequence numbers); seeded in the simulator. */
    void (*random)(void *host, void *buf, size_t len);

    /* Is this class wanted?  Then log one line without newline.  Both may be called often. */
    bool (*log_enabled)(void *host, enum sg_log_class cls);
    void (*log)(void *host, enum sg_log_class cls, const char *line);
};

struct sg_host {
    const struct sg_host_ops *ops;
    void *opaque;
};

/* printf-style front of ops->log; formats only when the class is wanted. */
void sg_log(const struct sg_host *host, enum sg_log_class cls, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
