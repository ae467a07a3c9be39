/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands: one function each, called by the dispatcher of admin.c with a private copy of the
 * command and a zeroed answer.  A handler fills in the fields of its command and returns the
 * status; the dispatcher adds cookie, status and phase.  A handler that fails has no effect.
 */
#ifndef SG_VERBS_COMMANDS_ADMIN_CMD_H
#define SG_VERBS_COMMANDS_ADMIN_CMD_H

#include <stdbool.h>

#include "faults/faults.h"
#include "staghorn/admin.h"
#include "verbs/events/ring.h"

struct sg_adapter;
struct sg_mr_reg;

struct sg_admin_queue {
    struct sg_ring sq, cq;
    _Alignas(8) uint8_t cmd[SG_ADMIN_CMD_SIZE]; /* private copy of the current one */
    bool unfinished;                            /* its handler must be called again, */
    bool waiting;                               /* in another turn: it waits for the host */
    bool unforeseen;                            /* EINVAL for a reason that no driver can know */
    struct sg_mr_reg *reg;                      /* progress of REG_MR */
    struct sg_check_sums *sums;                 /* the checker's; NULL: none */
    bool event_due;                             /* written while the event queue was not armed */
    bool held;                                  /* a fault rule delays the current command */
    struct sg_fault_act fate;                   /* what a fault rule does to it */
    uint64_t held_until;                        /* SG_NEVER: to the end */
};

typedef enum sg_status sg_admin_fn(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp);

sg_admin_fn sg_cmd_query_caps, sg_cmd_query_stats;                             /* caps.c */
sg_admin_fn sg_cmd_query_qp_stats, sg_cmd_query_mr_stats;                      /* counters.c */
sg_admin_fn sg_cmd_create_eq, sg_cmd_destroy_eq;                               /* eq_cmd.c */
sg_admin_fn sg_cmd_set_addr, sg_cmd_set_port;                                  /* port_cmd.c */
sg_admin_fn sg_cmd_create_pd, sg_cmd_destroy_pd;                               /* pd_cmd.c */
sg_admin_fn sg_cmd_reg_mr, sg_cmd_dereg_mr, sg_cmd_modify_mr, sg_cmd_alloc_mr; /* mr_cmd.c */
sg_admin_fn sg_cmd_alloc_mw, sg_cmd_dealloc_mw, sg_cmd_map_pages;              /* mr_cmd.c */
sg_admin_fn sg_cmd_create_cq, sg_cmd_resize_cq, sg_cmd_modify_cq, sg_cmd_destroy_cq; /* cq_cmd.c */
sg_admin_fn sg_cmd_create_qp, sg_cmd_modify_qp, sg_cmd_query_qp, sg_cmd_destroy_qp;  /* qp_cmd.c */
sg_admin_fn sg_cmd_create_srq, sg_cmd_modify_srq, sg_cmd_resize_srq;                 /* srq_cmd.c */
sg_admin_fn sg_cmd_query_srq, sg_cmd_destroy_srq;                                    /* srq_cmd.c */
sg_admin_fn sg_cmd_listen, sg_cmd_unlisten, sg_cmd_connect, sg_cmd_accept;           /* cm_cmd.c */
sg_admin_fn sg_cmd_reject, sg_cmd_cm_data;                                           /* cm_cmd.c */
sg_admin_fn sg_cmd_flash_info, sg_cmd_flash_read, sg_cmd_flash_write; /* flash_cmd.c */
sg_admin_fn sg_cmd_flash_commit;                                      /* flash_cmd.c */

/* Execute what was posted, a bounded number; true: there is more. */
bool sg_admin_run(struct sg_adapter *a);
/* When a command goes on that a fault rule delays; SG_NEVER: none does. */
uint64_t sg_admin_held_until(const struct sg_adapter *a);
/* SG_REG_ADMIN_DB and SG_REG_ADMIN_CI. */
void sg_admin_doorbell(struct sg_adapter *a, uint32_t prod);
void sg_admin_consumed(struct sg_adapter *a, uint32_t ci);
/* The async event queue was armed while empty: raises the event for earlier completions. */
void sg_admin_armed(struct sg_adapter *a);

/* check_admin.c: the doorbell moved the index from 'before'; a command was copied; it is done. */
void sg_check_admin_posted(struct sg_adapter *a, uint32_t before);
void sg_check_admin_consumed(struct sg_adapter *a, uint32_t before);
void sg_check_admin_fetched(struct sg_adapter *a);
void sg_check_admin_done(struct sg_adapter *a, const struct sg_admin_rsp *rsp);

/* mr_cmd.c: ends a REG_MR in progress without effect. */
void sg_reg_drop(struct sg_adapter *a);
/* Destroy an object from before a reset, whose number is no longer valid; no event reports it. */
void sg_qp_destroy(struct sg_adapter *a, void *object);
void sg_srq_destroy(struct sg_adapter *a, void *object);
void sg_cq_destroy(struct sg_adapter *a, void *object);
void sg_pd_destroy(struct sg_adapter *a, void *object);

/* Writes an answer to guest memory: at most room octets of it. */
enum sg_status sg_admin_answer(struct sg_adapter *a, const struct sg_cmd_query *c, const void *buf,
                               size_t len);

#endif
