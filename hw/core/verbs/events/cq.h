/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues.
 */
#ifndef SG_VERBS_EVENTS_CQ_H
#define SG_VERBS_EVENTS_CQ_H

#include "base/list.h"
#include "base/timerq.h"
#include "staghorn/io.h"
#include "verbs/check/check.h"
#include "verbs/events/ring.h"

struct sg_adapter;

enum sg_cq_arm {
    SG_CQ_IDLE,
    SG_CQ_ARM_SOLICITED_ONLY,
    SG_CQ_ARM_ANY,
};

struct sg_cq {
    struct sg_ring ring; /* cons: the last one seen, the true one may be ahead */
    uint64_t record;     /* bus address of struct sg_cq_record */
    uint32_t cqn, eqn, uar;
    uint32_t solicited; /* behind the last solicited or failed entry */
    uint32_t notified;  /* behind the last entry when the last event was raised */
    enum sg_cq_arm arm;
    uint16_t count, period_us;         /* moderation; none with count 0 or 1, or period 0 */
    uint32_t unreported;               /* completions for which the armed event is delayed */
    struct sg_timer timer;             /* the period */
    bool error;                        /* overrun: nothing is written any more */
    uint32_t record_seen;              /* the checker's: index in the record */
    struct sg_list senders, receivers; /* queue pairs (qp.c) */
    struct sg_list failed;             /* those that an overrun has put into error */
    struct sg_link eq_link;            /* waits for room in the event queue */
    struct sg_link error_link;         /* in sg_adapter.cq_errors */
};

/* The content of a completion. */
struct sg_wc {
    uint64_t wr_id;
    uint32_t qpn;
    uint32_t byte_len;
    uint32_t inv_stag;
    uint32_t vendor_err;
    uint32_t wr_index;
    uint64_t ordinal; /* for the host (base/host.h) */
    uint8_t status;   /* enum sg_wc_status */
    uint8_t opcode;   /* enum sg_wc_opcode */
    uint8_t flags;    /* SG_CQE_* without phase */
    uint8_t imm[8];   /* with SG_CQE_WITH_IMM, else 0 */
};

static inline struct sg_object sg_cq_object(const struct sg_cq *cq)
{
    return sg_object_of(cq->uar, SG_OBJECT_CQ, cq->cqn);
}

/* As in io.h, without its prefix: "LOC_PROT_ERR". */
const char *sg_wc_status_name(unsigned status);

/* The queue accepts nothing more; its queue pairs go to ERROR in the next turn. */
void sg_cq_fail(struct sg_adapter *a, struct sg_cq *cq, enum sg_rule rule, const char *why);
void sg_cq_post(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc);
/* The same, whatever fault rules say. */
void sg_cq_post_now(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc);
/* Reads the consumer's record; true: there is room. */
bool sg_cq_refresh(struct sg_adapter *a, struct sg_cq *cq);
void sg_cq_init_timer(struct sg_adapter *a, struct sg_cq *cq);
/* Takes effect at once, even on an event that is being delayed. */
void sg_cq_moderate(struct sg_adapter *a, struct sg_cq *cq, uint16_t count, uint16_t period_us);
/* late_cqe.c: does a fault rule delay it?  If so, it was taken over. */
bool sg_cq_delay(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc);
/* Those of a queue (NULL: of all) that wait are written now, or never. */
void sg_cq_release_late(struct sg_adapter *a, const struct sg_cq *cq);
void sg_cq_drop_late(struct sg_adapter *a, const struct sg_cq *cq);
/* Writes those that are due; returns when the next one is. */
uint64_t sg_cq_run_late(struct sg_adapter *a);
/* SG_DB_CQ_ARM */
void sg_cq_doorbell(struct sg_adapter *a, uint32_t page, uint64_t value);

#endif
