/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bring-up tests: what they give to a driver under test, and what it has to offer.
 *
 * The tests (tests/unit/verbs/test_bring_up.c) play two machines with an adapter each, joined by a
 * network.  Each machine runs the driver under test, a program's file that defines
 *
 *     const struct bu_driver bu_driver;
 *
 * This header and docs/manual are all that its author needs: it includes nothing of the tree.
 *
 * There is one thread.  Time passes, and the adapters work, only in msix_wait() and delay(), not
 * while the driver computes.  So a loop that polls memory or a register has to call delay(), and
 * to end when now() has passed its limit.
 *
 * The machine has the traps of real ones: memory of dma_alloc() is not zero, an interrupt that is
 * raised before msix_enable() is lost, several interrupts may arrive as one.  Whatever the adapter
 * counts as an error of the driver (a "guest error") fails the test, unless the adapter is lost.
 *
 * Adapters here have at least two vectors, IPv4 addresses only, and IRD and ORD of 16 or more.
 */
#ifndef SG_TESTS_BRING_UP_H
#define SG_TESTS_BRING_UP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what the machine offers; 'm' is the first argument of each ---- */

struct bu_machine {
    /* BAR0: 'octets' is 4 or 8.  Reads of a removed adapter return all ones. */
    uint64_t (*read)(struct bu_machine *m, uint32_t offset, unsigned octets);
    void (*write)(struct bu_machine *m, uint32_t offset, uint64_t value, unsigned octets);
    /* BAR2: a write of 64 bits. */
    void (*doorbell)(struct bu_machine *m, uint32_t offset, uint64_t value);

    /* Memory, contiguous in bus addresses; 'align' is a power of two.  Never NULL. */
    void *(*dma_alloc)(struct bu_machine *m, size_t octets, size_t align, uint64_t *bus);
    /* From now on the adapter must not access it. */
    void (*dma_free)(struct bu_machine *m, void *memory);

    void (*msix_enable)(struct bu_machine *m, unsigned vectors);
    void (*msix_disable)(struct bu_machine *m);
    /* True: the vector was raised since the last call for it.  False: not within 'ms'. */
    bool (*msix_wait)(struct bu_machine *m, unsigned vector, unsigned ms);

    void (*delay)(struct bu_machine *m, unsigned us);
    uint64_t (*now)(struct bu_machine *m); /* ns */
};

/* ---- what the driver answers ---- */

/* Functions that return int give one of these, or the status of a failed command (1 to 127). */
enum bu_result {
    BU_OK = 0,
    BU_LOST = -1,    /* the adapter is lost, or was never there */
    BU_TIMEOUT = -2, /* waiting: nothing came in time */
    BU_FULL = -3,    /* posting: the queue has no free entry */
};

/* The values of QUERY_CAPS and of registers that the tests check. */
struct bu_caps {
    uint32_t features, max_qp, max_qp_wr, max_cqe, max_sq_sge, max_inline, max_mr;
    uint64_t max_mr_size;
    uint8_t mac[6];
    uint64_t guid;
    unsigned vectors;
};

/* Queue pairs: flags 0, doorbell page 0. */
struct bu_qp_params {
    uint32_t pd, send_cq, recv_cq;
    uint32_t entries; /* of each queue, a power of two */
    unsigned max_sge; /* of each queue */
    unsigned max_inline;
    uint32_t access; /* rights, as bits of the manual */
};

struct bu_sge {
    uint64_t addr;
    uint32_t length, lkey;
};

/* A work request whose opcode has no structure of its own.  A receive: wr_id, num_sge, sge. */
struct bu_wr {
    uint64_t wr_id;
    uint8_t opcode, flags; /* numbers of the manual */
    unsigned num_sge;
    struct bu_sge sge[4];
    const void *payload; /* with the flag INLINE, instead of elements */
    unsigned payload_len;
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t inv_stag;
};

/*
 * A completion; opcode, status and flags are numbers of the manual (flags without the phase).
 * byte_len counts if the status is SUCCESS.
 */
struct bu_wc {
    uint64_t wr_id;
    uint32_t qp, byte_len, vendor_err;
    uint8_t status, opcode, flags;
};

/* An async event other than ADMIN. */
struct bu_event {
    uint8_t event, status;
    uint32_t id, conn, aux;
};

struct bu_addr {
    uint8_t ip[4];
    uint16_t port; /* in the order of the processor */
};

struct bu_pdata {
    uint8_t octets[512];
    unsigned len;
};

/* The driver; 'd' points to 'size' octets, zero before start(), one object for each machine. */
struct bu_driver {
    const char *name;
    size_t size;

    /*
     * From reset to an adapter that executes commands, with one completion event queue on vector 1.
     * It tests registers, DMA and the interrupt of vector 0 on the way.  If one of them does not
     * work, or the driver does not know the adapter, it frees everything and returns BU_LOST.
     */
    int (*start)(void *d, struct bu_machine *m);
    /*
     * Stops the adapter, also one that is lost or was removed.  The reset ends all objects that are
     * left; the driver frees all memory and disables MSI-X.  start() may follow, with the same d.
     */
    void (*stop)(void *d);
    /* Is the adapter lost?  Reads STATUS. */
    bool (*lost)(void *d);

    void (*caps)(void *d, struct bu_caps *caps);
    int (*guest_errors)(void *d, uint64_t *count); /* of QUERY_STATS */
    /* Adds an address to those of the port. */
    int (*set_addr)(void *d, const uint8_t ip[4], unsigned prefix_len);

    /*
     * Commands.  They end within 40 s of the machine's time, with BU_LOST if the adapter does not
     * answer.  Once the adapter is lost, all of them return BU_LOST at once.
     */
    int (*pd_create)(void *d, uint32_t *pd);
    int (*pd_destroy)(void *d, uint32_t pd);
    /* [bus, bus + octets) of any alignment; its Tagged Offset is the bus address. */
    int (*mr_create)(void *d, uint32_t pd, uint64_t bus, uint64_t octets, uint32_t access,
                     uint32_t *stag);
    int (*mr_destroy)(void *d, uint32_t stag);
    /* The queue has at least 'entries' entries. */
    int (*cq_create)(void *d, uint32_t entries, uint32_t *cq);
    int (*cq_destroy)(void *d, uint32_t cq);
    int (*qp_create)(void *d, const struct bu_qp_params *p, uint32_t *qp);
    int (*qp_modify)(void *d, uint32_t qp, uint32_t state);
    int (*qp_state)(void *d, uint32_t qp, uint32_t *state);
    int (*qp_destroy)(void *d, uint32_t qp);

    /*
     * Data; BU_OK or BU_FULL.  The driver counts which entries are free.  It need not check whether
     * the adapter is lost: BU_OK is right then, too.  'qp' is always a queue pair that exists.
     */
    int (*post_send)(void *d, uint32_t qp, const struct bu_wr *wr);
    int (*post_recv)(void *d, uint32_t qp, const struct bu_wr *wr);
    /* True: the next completion, also of a queue pair that was destroyed. */
    bool (*cq_poll)(void *d, uint32_t cq, struct bu_wc *wc);
    /*
     * Arms the queue for all completions and waits for its event, by the interrupt of vector 1.
     * BU_OK: there may be completions.  BU_TIMEOUT: none came.  BU_LOST.  It may return BU_OK at
     * once if completions are in the ring already.  If an event of another queue comes meanwhile,
     * the next cq_wait() of that queue must return BU_OK.
     */
    int (*cq_wait)(void *d, uint32_t cq, unsigned ms);

    /*
     * Connections: IRD and ORD 16, flags 0, private data up to 508 octets, NULL for none.  The
     * caller may change the private data as soon as the function has returned.
     */
    int (*listen)(void *d, const struct bu_addr *at, uint32_t backlog, uint32_t *listener);
    int (*unlisten)(void *d, uint32_t listener);
    int (*connect)(void *d, uint32_t qp, const struct bu_addr *from, const struct bu_addr *to,
                   const struct bu_pdata *pdata, uint32_t *conn);
    int (*accept)(void *d, uint32_t conn, uint32_t qp, const struct bu_pdata *pdata);
    int (*reject)(void *d, uint32_t conn, const struct bu_pdata *pdata);
    /* Private data of the peer. */
    int (*pdata)(void *d, uint32_t conn, struct bu_pdata *pdata);
    /*
     * Waits for the next async event by the interrupt of vector 0: BU_OK, BU_TIMEOUT, BU_LOST.
     * If the adapter failed, it may return the event DEVICE_FATAL once, before BU_LOST.  Events of
     * objects that were destroyed may be dropped.
     */
    int (*next_event)(void *d, struct bu_event *event, unsigned ms);
};

/* The driver that is linked to the tests. */
extern const struct bu_driver bu_driver;

#endif
