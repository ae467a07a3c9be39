/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QUERY_QP_STATS and QUERY_MR_STATS: the counters of one object.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

enum sg_status sg_cmd_query_qp_stats(struct sg_adapter *a, const void *cmd,
                                     struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_query *c = cmd;
    const struct sg_qp *qp = sg_idtab_get(&a->qps, sg_get_le32(&c->id));
    struct sg_qp_stats s;

    if (!qp) {
        return SG_ENOENT;
    }
#define X(name) sg_put_le64(&s.name, qp->counters.name);
    SG_QP_STATS(X)
#undef X
    sg_put_le32(&rsp->id, qp->qpn);
    return sg_admin_answer(a, c, &s, sizeof(s));
}

enum sg_status sg_cmd_query_mr_stats(struct sg_adapter *a, const void *cmd,
                                     struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_query *c = cmd;
    const struct sg_mr *mr = sg_tpt_find_owned(a, sg_get_le32(&c->id));
    struct sg_mr_stats s;

    if (!mr) {
        return SG_ENOENT;
    }
#define X(name) sg_put_le64(&s.name, mr->counters.name);
    SG_MR_STATS(X)
#undef X
    sg_put_le32(&rsp->id, mr->stag);
    return sg_admin_answer(a, c, &s, sizeof(s));
}
