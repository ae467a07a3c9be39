/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands of event queues.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/events/eq.h"
#include "verbs/state/adapter_state.h"

enum sg_status sg_cmd_create_eq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_create_eq *c = cmd;
    uint64_t base = sg_get_le64(&c->base);
    uint32_t entries = sg_get_le32(&c->entries);
    uint32_t eqn = sg_get_le32(&c->eqn);
    uint32_t vector = sg_get_le32(&c->vector);

    if (eqn == 0 || eqn >= SG_EQ_COUNT || vector >= a->config.vectors || !sg_is_pow2(entries) ||
        entries < SG_AEQ_SIZE_MIN || entries > SG_EQ_SIZE_MAX ||
        !sg_is_aligned(base, SG_PAGE_SIZE) || base == 0) {
        return SG_EINVAL;
    }
    if (a->eqs[eqn]) {
        return SG_EBUSY;
    }
    sg_eq_make(a, eqn, base, entries, vector);
    if (sg_checking(a) && !sg_ring_fresh(&a->eqs[eqn]->ring, &a->host)) {
        sg_check_found(a, SG_RULE_RING_STALE, sg_object(SG_OBJECT_EQ, eqn),
                       "event queue %u: its new ring is not zero", eqn);
    }
    sg_put_le32(&rsp->id, eqn);
    return SG_OK;
}

enum sg_status sg_cmd_destroy_eq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    uint32_t eqn = sg_get_le32(&c->id);

    (void)rsp;
    if (eqn == 0 || eqn >= SG_EQ_COUNT || !a->eqs[eqn]) {
        return SG_ENOENT;
    }
    if (a->eqs[eqn]->users) {
        return SG_EBUSY;
    }
    sg_eq_free(a, a->eqs[eqn]);
    return SG_OK;
}
