/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of host memory that a guest makes an adapter allocate.
 *
 * Whatever a guest or its peers can have allocated by their own wish is taken from one account of
 * the adapter and given back with the memory: a request that finds no room is refused, as one that
 * finds a table full is.  So is one for which the host itself has no memory; nobody aborts.
 *
 * A NULL account has no limit and counts nothing.
 */
#ifndef SG_BASE_ACCOUNT_H
#define SG_BASE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct sg_account {
    uint64_t limit;   /* octets */
    uint64_t used;
    uint64_t most;    /* that were ever used */
    uint64_t refused; /* requests */
};

/* So many octets, if there is room for them. */
bool sg_account_take(struct sg_account *acc, uint64_t octets);
/* Without asking, beyond the limit if need be: for what must be had, and is bounded otherwise. */
void sg_account_charge(struct sg_account *acc, uint64_t octets);
void sg_account_give(struct sg_account *acc, uint64_t octets);

/* Memory from the account, zeroed or not; NULL: no room, or the host has none. */
void *sg_account_new0(struct sg_account *acc, uint64_t octets);
void *sg_account_new(struct sg_account *acc, uint64_t octets);
/* More of it, or less, as realloc(): NULL leaves p as it is, with what was taken for it. */
void *sg_account_renew(struct sg_account *acc, void *p, uint64_t old, uint64_t octets);
/* Gives back what was taken with it.  p may be NULL: then there is nothing to give. */
void sg_account_free(struct sg_account *acc, void *p, uint64_t octets);

enum { SG_ACCOUNT_SLOT = 32 }; /* what an object costs besides itself: its place in a table */
/* An object with a place in a table: zeroed memory. */
void *sg_account_object(struct sg_account *acc, uint64_t octets);
void sg_account_object_free(struct sg_account *acc, void *p, uint64_t octets);

#endif
