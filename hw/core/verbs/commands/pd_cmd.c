/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains: a queue pair and a memory region must be in the same one.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/memory/tpt.h"
#include "verbs/state/adapter_state.h"

enum sg_status sg_cmd_create_pd(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    struct sg_pd *pd = sg_account_object(&a->account, sizeof(*pd));

    (void)cmd;
    if (!pd || !sg_idtab_alloc(&a->pds, pd, &pd->pdn)) {
        sg_account_object_free(&a->account, pd, sizeof(*pd));
        return SG_ENOMEM;
    }
    sg_put_le32(&rsp->id, pd->pdn);
    return SG_OK;
}

enum sg_status sg_cmd_destroy_pd(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_pd *pd = sg_idtab_get(&a->pds, sg_get_le32(&c->id));

    (void)rsp;
    if (!pd) {
        return SG_ENOENT;
    }
    if (pd->users) {
        return SG_EBUSY;
    }
    sg_idtab_free(&a->pds, pd->pdn);
    sg_account_object_free(&a->account, pd, sizeof(*pd));
    return SG_OK;
}

void sg_pd_destroy(struct sg_adapter *a, void *object)
{
    sg_account_object_free(&a->account, object, sizeof(struct sg_pd));
}
