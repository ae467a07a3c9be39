/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Crash points at which the same issuers (issuer.h) have stores that a cut may lose are a cluster:
 * the program is likely to be in the same phase of the same work.  Only the first few of each
 * cluster are explored.
 *
 * Memory: 4 octets for each issuer of each cluster.
 */
#ifndef SG_CRASH_CLUSTER_H
#define SG_CRASH_CLUSTER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct sg_crash_clusters {
    GHashTable *seen; /* set of issuers to the number of its crash points */
};

void sg_crash_clusters_init(struct sg_crash_clusters *c);
void sg_crash_clusters_fini(struct sg_crash_clusters *c);
/*
 * A crash point at which these issuers (uint32_t, in any order, some more than once) have such
 * stores.  False: its cluster has had `most` before.  Sorts the array.
 */
bool sg_crash_clusters_take(struct sg_crash_clusters *c, GArray *issuers, uint64_t most);
uint64_t sg_crash_clusters_count(const struct sg_crash_clusters *c);

#endif
