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
    SG_LOG_FAILURE,     /* a queue pair or the adapter ends, and why: "qp 5: RTS -> ERROR: ..." */
    SG_LOG_STATE,       /* a state machine moved in any other way */
    SG_LOG_TRACE,       /* everything else, off by default */
    SG_LOG_CLASSES,
};

#define SG_NEVER UINT64_MAX

/* Who causes an event in the persistence domain. */
struct sg_pm_who {
    uint32_t qpn;
    uint32_t msn;     /* of the request (Flush, Verify, Atomic Write, Atomic); 0 for Writes */
    uint64_t to;      /* Tagged Offset of the first octet */
    uint8_t mode;     /* enum sg_mem_mode of the region: how its Writes travel */
};

/* The machine's last power cut: 64-octet lines that were not on the media yet. */
struct sg_pm_cut {
    uint32_t cuts;       /* so far */
    uint32_t kept, lost;
};

#define SG_PM_PERSISTENT 0x1u /* every octet is in persistent memory of a domain */
#define SG_PM_SOME 0x2u       /* at least one octet is */

enum sg_pm_result { SG_PM_DONE, SG_PM_LATER, SG_PM_FAILED };

enum sg_pm_milestone {
    SG_PM_BEFORE_FLUSH_ANSWER, /* executed, the response not yet given to the wire */
    SG_PM_AFTER_FLUSH_ANSWER,  /* given to TCP */
    SG_PM_WRITE_PLACED,        /* a Write's last segment */
    SG_PM_BEFORE_ATOMIC_WRITE,
    SG_PM_AFTER_ATOMIC_WRITE,
    SG_PM_MILESTONES,
};

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
     * Compare and exchange of one aligned 64-bit word, which is little-endian in memory, atomic
     * towards guest CPUs: if it is *value (host order) it becomes 'desired'.  *value becomes what
     * was found.  False: the address is not that of memory that can be written.
     */
    bool (*dma_cmpxchg64)(void *host, uint64_t addr, uint64_t *value, uint64_t desired);

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

    /*
     * Persistent memory; all NULL on a machine without a persistence domain.  addr are bus
     * addresses; a range given to these operations lies within one registered region's page run,
     * and but for pm_query it is persistent memory as a whole: pm_query said so at registration,
     * or was asked for just this range.
     */

    /* SG_PM_* of the whole range: a property holds if it holds for every octet. */
    unsigned (*pm_query)(void *host, uint64_t addr, uint64_t len);

    /*
     * Payload for persistent memory (Writes, Sends, Read Responses); who tells the connection and
     * place.  The data may stay in the adapter (stage S0) and be placed later and in another order,
     * until pm_settle of this connection.  False: the address does not respond.
     */
    bool (*pm_place)(void *host, const struct sg_pm_who *who, uint64_t addr, const void *buf,
                     size_t len);

    /*
     * Everything placed by this connection becomes visible.  Called before anything that
     * promises so: delivery of a Send, a Read or Atomic Write or Flush or Verify executed.
     */
    void (*pm_settle)(void *host, uint32_t qpn);

    /*
     * Execute a Flush of a range (flags SG_FLUSH_PERSISTENT, SG_FLUSH_GLOBAL).  SG_PM_LATER:
     * not done yet, call again at *again_ns with the same arguments and *token as it was left
     * (0 at the first call; SG_NEVER: do not, the machine lost its power); SG_PM_FAILED: the medium
     * refuses: Terminate.
     */
    enum sg_pm_result (*pm_flush)(void *host, const struct sg_pm_who *who, uint64_t addr,
                                  uint64_t len, unsigned flags, uint64_t *token,
                                  uint64_t *again_ns);

    /* What the medium's side of the caches holds.  SG_PM_FAILED: uncorrectable. */
    enum sg_pm_result (*pm_media_read)(void *host, uint64_t addr, void *buf, size_t len);

    /* One aligned atom of 8 octets, value as in memory order; never torn, never delayed. */
    bool (*pm_store)(void *host, const struct sg_pm_who *who, uint64_t addr,
                     const uint8_t atom[8]);

    /* As dma_cmpxchg64, behind everything that this adapter placed; visible on return. */
    bool (*pm_cmpxchg64)(void *host, const struct sg_pm_who *who, uint64_t addr, uint64_t *value,
                         uint64_t desired);

    /* Marks a range whose Verify failed as poisoned, if the domain is set to do so. */
    void (*pm_poison)(void *host, uint64_t addr, uint64_t len);

    /* Milestones at which a power cut may be armed; the host decides. */
    void (*pm_milestone)(void *host, const struct sg_pm_who *who, enum sg_pm_milestone what);

    /* False, or NULL: there was no power cut yet. */
    bool (*pm_last_cut)(void *host, struct sg_pm_cut *cut);

    /* Is this class wanted?  Then log one line without newline.  Both may be called often. */
    bool (*log_enabled)(void *host, enum sg_log_class cls);
    void (*log)(void *host, enum sg_log_class cls, const char *line);
};

struct sg_account;

struct sg_host {
    const struct sg_host_ops *ops;
    void *opaque;
    struct sg_account *account; /* of memory allocated for the guest (base/account.h), or NULL */
};

/* printf-style front of ops->log; formats only when the class is wanted. */
void sg_log(const struct sg_host *host, enum sg_log_class cls, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
