/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains: what a queue pair and a memory region must have in common.
 */
#include <glib.h>

#include "verbs/adapter_impl.h"
#include "verbs/admin_cmd.h"

enum sg_status sg_cmd_create_pd(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    struct sg_pd *pd = g_new0(struct sg_pd, 1);

    (void)cmd;
    if (!sg_idtab_alloc(&a->pds, pd, &pd->pdn)) {
        g_free(pd);
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
    g_free(pd);
    return SG_OK;
}

void sg_pd_destroy_all(struct sg_adapter *a)
{
    uint32_t cursor = 0, id;
    struct sg_pd *pd;

    while ((pd = sg_idtab_next(&a->pds, &cursor, &id))) {
        sg_idtab_free(&a->pds, id);
        g_free(pd);
    }
}
