/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations that the core needs from the machine around it.
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

/* The cause of an event in the persistence domain. */
struct sg_pm_who {
    uint32_t qpn;
    uint32_t msn; /* of the request (Flush, Verify, Atomic Write, Atomic); 0 for Writes */
    uint64_t to;  /* Tagged Offset of the first octet */
    uint8_t mode; /* enum sg_mem_mode of the region: the path of its Writes */
};

/* The machine's last power cut: the 64-octet lines that had not reached the media. */
struct sg_pm_cut {
    uint32_t cuts; /* so far */
    uint32_t kept, lost;
};

#define SG_PM_PERSISTENT 0x1u /* every octet is in persistent memory of a domain */
#define SG_PM_SOME 0x2u       /* at least one octet is */

enum sg_pm_result { SG_PM_DONE, SG_PM_LATER, SG_PM_FAILED };

enum sg_pm_phase {
    SG_PM_NEW,       /* the host has not seen it */
    SG_PM_UNDER_WAY, /* the range is visible, the Flush waits for due_ns */
};

/*
 * A Flush on its way through the host.  The caller owns it, and keeps it from the first call of
 * pm_flush, with phase NEW, to the one that answers something else than LATER.
 */
struct sg_pm_op {
    struct sg_pm_who who;
    uint64_t addr, len;     /* bus addresses */
    uint32_t flags;         /* SG_FLUSH_PERSISTENT, SG_FLUSH_GLOBAL */
    enum sg_pm_phase phase; /* the host's */
    uint64_t due_ns;        /* the host's, with LATER: call again then, or SG_NEVER: do not */
};

enum sg_pm_milestone {
    SG_PM_BEFORE_FLUSH_ANSWER, /* executed, but the response is not with TCP yet */
    SG_PM_AFTER_FLUSH_ANSWER,  /* the response is with TCP */
    SG_PM_WRITE_PLACED,        /* the last segment of a Write */
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
     * towards guest CPUs: if it equals *value (host order) it becomes 'desired'.  *value becomes
     * the value found.  False: the address is not writable memory.
     */
    bool (*dma_cmpxchg64)(void *host, uint64_t addr, uint64_t *value, uint64_t desired);

    /*
     * Direct pointer to guest memory.  *len is the wanted length on entry and the mapped length on
     * return (at least 1, at most the wanted one).  NULL: cannot be mapped, use dma_read or
     * dma_write.  Valid only during one core call; unmap takes the length used (written).
     */
    void *(*map)(void *host, uint64_t addr, size_t *len, bool for_write);
    void (*unmap)(void *host, void *p, size_t len, bool for_write);

    /* Monotonic time of the machine, ns. */
    uint64_t (*now)(void *host);

    /* Call sg_adapter_run() at or after this time (ns), replacing the last one; SG_NEVER: never. */
    void (*arm_timer)(void *host, uint64_t deadline_ns);

    /* Call sg_adapter_run() soon, from a fresh stack. */
    void (*kick)(void *host);

    /* Raise an MSI-X vector. */
    void (*raise)(void *host, unsigned vector);

    /* Unpredictable octets (STag keys, initial sequence numbers); seeded in the simulator. */
    void (*random)(void *host, void *buf, size_t len);

    /*
     * Persistent memory; all NULL on a machine without a persistence domain.  addr are bus
     * addresses.  A range passed to these operations lies within one run of pages of a region.
     * Except for pm_query, all of it is persistent memory: pm_query said so at registration,
     * or for exactly this range.
     */

    /* SG_PM_* of the whole range: a property holds if it holds for every octet (SOME: for one). */
    unsigned (*pm_query)(void *host, uint64_t addr, uint64_t len);

    /*
     * Places payload in persistent memory (Writes, Sends, Read Responses); who has the connection
     * and the origin.  The data may stay in the adapter (stage S0) and be placed later and in
     * another order, until pm_complete_writes of this connection.  False: the address does not
     * respond.
     */
    bool (*pm_place)(void *host, const struct sg_pm_who *who, uint64_t addr, const void *buf,
                     size_t len);

    /*
     * Makes everything visible that this connection placed.  Called before any operation that
     * promises this: delivery of a Send, execution of a Read, Atomic Write, Flush or Verify.
     */
    void (*pm_complete_writes)(void *host, uint32_t qpn);

    /*
     * Executes a Flush.  SG_PM_LATER: not done yet; call again at op->due_ns (SG_NEVER: do not, the
     * machine lost its power).  SG_PM_FAILED: the medium refuses: Terminate.
     */
    enum sg_pm_result (*pm_flush)(void *host, struct sg_pm_op *op);

    /* Reads the media side of the caches.  SG_PM_FAILED: uncorrectable. */
    enum sg_pm_result (*pm_media_read)(void *host, uint64_t addr, void *buf, size_t len);

    /* One aligned atom of 8 octets, value as in memory order; never torn, never delayed. */
    bool (*pm_store)(void *host, const struct sg_pm_who *who, uint64_t addr, const uint8_t atom[8]);

    /* As dma_cmpxchg64, after everything that this adapter placed; visible on return. */
    bool (*pm_cmpxchg64)(void *host, const struct sg_pm_who *who, uint64_t addr, uint64_t *value,
                         uint64_t desired);

    /* Marks a range whose Verify failed as poisoned, if the domain is set to do so. */
    void (*pm_poison)(void *host, uint64_t addr, uint64_t len);

    /* Milestones at which a power cut may be armed; the host decides. */
    void (*pm_milestone)(void *host, const struct sg_pm_who *who, enum sg_pm_milestone what);

    /* The last power cut.  False, or a NULL operation: there was none yet. */
    bool (*pm_last_cut)(void *host, struct sg_pm_cut *cut);

    /* Is this class wanted?  log writes one line without newline.  Both may be called often. */
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
