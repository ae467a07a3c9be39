/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queues, as shared by sq.c, mpe_wr.c and atomic_wr.c.
 */
#ifndef SG_VERBS_QUEUES_SQ_IMPL_H
#define SG_VERBS_QUEUES_SQ_IMPL_H

#include "verbs/queues/qp.h"

/* Checks the entry in 'cur', whose form is valid, and makes a message of it or executes it. */
typedef enum sg_wc_status sg_sq_start(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                      struct sg_msg *msg);

static inline const struct sg_wqe_hdr *cur_hdr(const struct sg_sq *sq)
{
    return (const void *)sq->cur;
}

static inline const struct sg_sge *cur_sge(const struct sg_sq *sq)
{
    return (const void *)(sq->cur + sq->cur_body);
}

/*
 * Looks up the rows of all elements of the current entry (cur_mr; skips empty ones);
 * *len becomes their total length.
 */
enum sg_wc_status sg_sq_check_elements(struct sg_qp *qp, uint32_t rights, uint32_t *len);

/* The oldest request that waits for an answer, which has arrived; NULL: all are being flushed. */
struct sg_sq_rec *sg_sq_answered(struct sg_qp *qp);
/* Completes it with rec->status; fault: the reason why we end the stream, or NULL. */
void sg_sq_complete_answered(struct sg_qp *qp, struct sg_sq_rec *rec, const char *fault);

/* atomic_wr.c */
sg_sq_start sg_atomic_start, sg_atomic_start_imm;
/* Immediate Data of this entry. */
void sg_atomic_set_imm(const struct sg_wqe_hdr *h, struct sg_msg *msg);

/* mem_wr.c */
sg_sq_start sg_mr_start_local_inv, sg_mr_start_reg, sg_mw_start_bind;

/* mpe_wr.c */
sg_sq_start sg_mpe_start_flush, sg_mpe_start_verify, sg_mpe_start_atomic_write;

#endif
