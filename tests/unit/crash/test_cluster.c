/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clusters: which crash points are alike. */
#include "crash/cluster.h"
#include "tap.h"

static struct sg_crash_clusters clusters;

/* A crash point with these issuers, a digit each. */
static bool take(const char *issuers, uint64_t most)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    bool taken;

    for (; *issuers; issuers++) {
        uint32_t n = (uint32_t)(*issuers - '0');

        g_array_append_val(list, n);
    }
    taken = sg_crash_clusters_take(&clusters, list, most);
    g_array_unref(list);
    return taken;
}

static void sets(void)
{
    sg_crash_clusters_init(&clusters);
    T_TRUE(take("12", 2));
    T_TRUE(take("2211", 2));
    T_FALSE(take("21", 2));
    T_TRUE(take("1", 2));
    T_TRUE(take("3", 2));
    T_TRUE(take("", 2));
    T_TRUE(take("", 2));
    T_FALSE(take("", 2));
    T_FALSE(take("12", 2));
    T_TRUE(take("1", 2));
    T_EQ_U64(sg_crash_clusters_count(&clusters), 4);
    sg_crash_clusters_fini(&clusters);
    sg_crash_clusters_init(&clusters);
    T_TRUE(take("12", 1));
    T_FALSE(take("12", 1));
    sg_crash_clusters_fini(&clusters);
}

static const struct t_case cases[] = {
    { "the same set of issuers is one cluster", sets },
};

T_MAIN(cases)
