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
    SG_LOG_CHECK,       /* a report of the driver checker (verbs/check) */
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
    /* Of the peer's message that does it (struct sg_observed); 0: none does. */
    uint64_t ordinal;
};

/* Which of the guest's processors makes the access that the core works on. */
enum { SG_WHERE_STACK = 4096 };
struct sg_where {
    uint32_t cpu;
    uint64_t pc; /* of the instruction */
    /* Its stack pointer and frame pointer, and the stack from there on; the last may be missing. */
    uint64_t sp, bp;
    unsigned stack_octets;
    uint8_t stack[SG_WHERE_STACK];
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

/*
 * What an adapter's connections do, for a trace of the machine.
 *
 * Ordinals.  Both ends count the RDMAP messages of a connection from 1, each direction by itself:
 * all of them, also responses, Terminates and those that the adapter sends for itself.  A message
 * gets its number with its first segment: when TCP has taken that, or when it arrives.  So
 * a connection, a direction and an ordinal name one message at both ends.
 *
 * A queue pair's number may be used again: CONNECTED begins another connection of it.  Completions
 * of the one before may come between GONE and the next CONNECTED.
 */
enum sg_observed_kind {
    /* qpn, passive, addresses.  Passive: accepted; it may still fail, without any message. */
    SG_OBSERVED_CONNECTED,
    SG_OBSERVED_GONE, /* qpn, status: nothing is placed or sent for it any more */
    /*
     * qpn, wr_id, opcode, ordinal, stag, to, length.  The first segment of the message is with TCP;
     * or a request without messages was executed, ordinal 0.  WRITE_IMM is two messages, and
     * observed twice: its Immediate Data has no range.
     */
    SG_OBSERVED_WORK,
    /*
     * qpn, wr_id, opcode, status, length, ordinal.  Called before the driver can see the
     * completion.  The ordinal is that of the request's last message, or of the message that was
     * received; 0: none was begun.
     */
    SG_OBSERVED_COMPLETED,
    /* qpn, msn, opcode, ordinal of a request of the peer; TCP has all of this response to it. */
    SG_OBSERVED_ANSWERED,
    /*
     * A Verify of a region with persistent memory has ended: qpn, msn, ordinal, to, length, status
     * (0: as asked), opcode, addr, hash.
     */
    SG_OBSERVED_VERIFIED,
    SG_OBSERVED_KINDS,
};

/* Two addresses of 16 octets (IPv4 as ::ffff:a.b.c.d), two ports, own first, big-endian. */
enum { SG_OBSERVED_ADDRESSES = 36 };

/* Members that a kind does not have are 0. */
struct sg_observed {
    uint8_t kind; /* enum sg_observed_kind */
    /* WORK, ANSWERED: enum sg_wr_opcode; COMPLETED: enum sg_wc_opcode; VERIFIED: enum sg_hash */
    uint8_t opcode;
    bool passive;    /* the peer began */
    uint16_t status; /* GONE: enum sg_cm_status; COMPLETED: enum sg_wc_status */
    uint32_t qpn;    /* own */
    uint32_t msn;    /* of the request, on queue 1 */
    uint32_t stag;   /* WORK: range at the peer; STag 0: the message names none */
    uint64_t to;
    uint64_t length; /* COMPLETED: octets, as the completion says */
    uint64_t wr_id;
    uint64_t ordinal;
    uint64_t response;        /* ANSWERED: the response's own ordinal, in our direction */
    uint64_t addr;            /* VERIFIED: of the range's first octet */
    const uint8_t *addresses; /* SG_OBSERVED_ADDRESSES octets, valid during the call */
    const uint8_t *hash;      /* VERIFIED: what the peer expected, likewise */
    uint8_t hash_len;         /* 0: it asked for the hash */
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

    /*
     * A fault rule asks for what only the machine can do: the link goes down or up, the PCI
     * function reports an error; enum sg_fault_effect.  May be NULL: the machine cannot.
     */
    void (*fault)(void *host, unsigned effect);

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

    /*
     * May be NULL, and then costs nothing.  Set while connections exist: it learns of these by
     * sg_adapter_observe_all(); ordinals of requests that began before are 0.
     */
    void (*observe)(void *host, const struct sg_observed *o);

    /* May be NULL.  False: no processor, or another one since: a turn of its own. */
    bool (*where)(void *host, struct sg_where *where);

    /*
     * One line, without newline, for each step of a work request: its entry is fetched, a segment
     * is sent or received, the completion is written.  NULL: nobody wants them, and they cost
     * nothing.  It may change between two calls of the core.
     */
    void (*flow)(void *host, const char *line);

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

/* Does anybody want the steps of work requests?  Asked before each sg_flow(). */
static inline bool sg_flows(const struct sg_host *host)
{
    return host->ops->flow;
}

/* printf-style front of ops->flow, which is there. */
void sg_flow(const struct sg_host *host, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

#endif
