/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/account.h"

#include <glib.h>

#include "base/bytes.h"

bool sg_account_take(struct sg_account *acc, uint64_t octets)
{
    if (!acc) {
        return true;
    }
    if (octets > acc->limit - SG_MIN(acc->used, acc->limit)) {
        acc->refused++;
        return false;
    }
    acc->used += octets;
    acc->most = SG_MAX(acc->most, acc->used);
    return true;
}

void sg_account_charge(struct sg_account *acc, uint64_t octets)
{
    if (acc) {
        acc->used += octets;
        acc->most = SG_MAX(acc->most, acc->used);
    }
}

void sg_account_give(struct sg_account *acc, uint64_t octets)
{
    if (acc) {
        sg_assert(acc->used >= octets);
        acc->used -= octets;
    }
}

/* Completes an allocation: on failure the octets go back to the account. */
static void *settle(struct sg_account *acc, void *p, uint64_t octets)
{
    if (!p) {
        sg_account_give(acc, octets);
    }
    return p;
}

void *sg_account_new0(struct sg_account *acc, uint64_t octets)
{
    return sg_account_take(acc, octets) ? settle(acc, g_try_malloc0(octets), octets) : NULL;
}

void *sg_account_new(struct sg_account *acc, uint64_t octets)
{
    return sg_account_take(acc, octets) ? settle(acc, g_try_malloc(octets), octets) : NULL;
}

void *sg_account_renew(struct sg_account *acc, void *p, uint64_t old, uint64_t octets)
{
    if (!sg_account_take(acc, octets)) {
        return NULL;
    }
    p = g_try_realloc(p, octets);
    sg_account_give(acc, p ? old : octets);
    return p;
}

void sg_account_free(struct sg_account *acc, void *p, uint64_t octets)
{
    if (p) {
        sg_account_give(acc, octets);
        g_free(p);
    }
}

void *sg_account_object(struct sg_account *acc, uint64_t octets)
{
    void *p;

    if (!sg_account_take(acc, SG_ACCOUNT_SLOT)) {
        return NULL;
    }
    p = sg_account_new0(acc, octets);
    if (!p) {
        sg_account_give(acc, SG_ACCOUNT_SLOT);
    }
    return p;
}

void sg_account_object_free(struct sg_account *acc, void *p, uint64_t octets)
{
    if (p) {
        sg_account_free(acc, p, octets);
        sg_account_give(acc, SG_ACCOUNT_SLOT);
    }
}
