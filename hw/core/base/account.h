/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of host memory that a guest makes an adapter allocate.
 *
 * All memory whose allocation a guest or its peers control is charged to one account of the
 * adapter, and credited when it is freed.  A request beyond the limit is refused, like one that
 * finds a table full.  So is a request for which the host itself has no memory; nothing aborts.
 *
 * A NULL account has no limit and counts nothing.
 */
#ifndef SG_BASE_ACCOUNT_H
#define SG_BASE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct sg_account {
    uint64_t limit; /* octets */
    uint64_t used;
    uint64_t most;    /* highest value of 'used' so far */
    uint64_t refused; /* requests */
};

/* Takes so many octets if the limit allows it. */
bool sg_account_take(struct sg_account *acc, uint64_t octets);
/* Takes them even beyond the limit: for memory that is needed, and bounded by other means. */
void sg_account_charge(struct sg_account *acc, uint64_t octets);
void sg_account_give(struct sg_account *acc, uint64_t octets);

/* Memory from the account, zeroed or not; NULL: the limit is reached, or the host has none. */
void *sg_account_new0(struct sg_account *acc, uint64_t octets);
void *sg_account_new(struct sg_account *acc, uint64_t octets);
/* Changes the size like realloc(); NULL leaves p and its charge unchanged. */
void *sg_account_renew(struct sg_account *acc, void *p, uint64_t old, uint64_t octets);
/* Frees memory and credits its octets.  p may be NULL: then nothing is credited. */
void sg_account_free(struct sg_account *acc, void *p, uint64_t octets);

enum { SG_ACCOUNT_SLOT = 32 }; /* extra cost of an object: its place in a table */
/* An object with a place in a table: zeroed memory. */
void *sg_account_object(struct sg_account *acc, uint64_t octets);
void sg_account_object_free(struct sg_account *acc, void *p, uint64_t octets);

#endif
