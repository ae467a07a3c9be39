/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which crash points are explored: of each cluster the first few; and evenly, if not all fit.
 *
 * Whether all fit is known at the end of the trace.  If they do not, it is read once more, with as
 * many crash points of each platform as fitted the first time, spread over the run.  The j-th of
 * these n may use what is left of the first j parts of --max-images: so the last one has its part.
 */
#include <glib/gstdio.h>

#include "crash/spread.h"
#include "images_impl.h"

static uint32_t lose_all(void *opaque, const struct sg_persist_choice *choice)
{
    return 0;
}

static void note_issuer(void *opaque, const struct sg_persist_lost *lost)
{
    struct sg_explore_images *x = opaque;
    uint64_t event = sg_crash_explorer_event_of(x->explorer, x->platform, lost->seq);
    uint32_t issuer = sg_crash_issuers_of(x->issuers, event);

    g_array_append_val(x->losers, issuer);
}

/* Has the crash point's cluster had enough? */
static bool is_clustered(struct sg_explore_images *x)
{
    const struct sg_persist_policy policy = {
        .choose = lose_all,
        .lose = note_issuer,
        .opaque = x,
    };
    uint64_t most = x->want.strategies->cluster;

    if (!most) {
        return false;
    }
    g_array_set_size(x->losers, 0);
    sg_persist_free(images_cut(x, &policy));
    return !sg_crash_clusters_take(&x->clusters[x->platform], x->losers, most);
}

bool images_wants_point(struct sg_explore_images *x)
{
    struct sg_explore_images_counts *counts = &x->counts[x->platform];
    struct spread *s = &x->spread;
    uint64_t index, most = x->want.strategies->max_images;

    if (is_clustered(x)) {
        counts->clustered++;
        return false;
    }
    index = s->seen[x->platform]++;
    if (!s->again) {
        x->allowed = most;
        return true;
    }
    if (!sg_crash_spread(index, s->count[x->platform], s->chosen[x->platform])) {
        counts->left_out++;
        return false;
    }
    s->done++;
    x->allowed = s->all < 2 ? most : (most - 1) * (s->done - 1) / (s->all - 1) + 1;
    return true;
}

/* All images so far are forgotten. */
static void forget(struct sg_explore_images *x)
{
    GHashTableIter it;
    gpointer id;

    g_hash_table_iter_init(&it, x->known);
    while (g_hash_table_iter_next(&it, &id, NULL)) {
        char name[IMAGE_NAME], *leaf, *path;

        images_name(id, name);
        leaf = g_strconcat(name, ".image", NULL);
        path = g_build_filename(x->folder, "images", leaf, NULL);
        g_unlink(path);
        g_free(path);
        g_free(leaf);
    }
    g_hash_table_remove_all(x->known);
    g_hash_table_remove_all(x->where);
    g_ptr_array_set_size(x->all, 0);
    x->listed = x->unlisted = x->cuts = x->in_force = x->demanded = 0;
}

bool sg_explore_images_again(struct sg_explore_images *x, const struct sg_crash_explorer *explorer)
{
    struct spread *s = &x->spread;
    uint64_t left_out = 0;

    x->explorer = explorer ? explorer : x->explorer;
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        left_out += x->counts[i].left_out;
    }
    if (!left_out || s->again) {
        return false;
    }
    if (!explorer) { /* it would be made again */
        return true;
    }
    forget(x);
    s->again = true;
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        struct sg_explore_images_counts *c = &x->counts[i];

        s->count[i] = s->seen[i];
        s->chosen[i] = MIN(s->seen[i], MAX(2, c->points));
        s->all += s->chosen[i];
        s->seen[i] = 0;
        sg_crash_clusters_fini(&x->clusters[i]);
        sg_crash_clusters_init(&x->clusters[i]);
        c->points = c->left_out = c->clustered = c->cut_short = 0;
        memset(c->plans, 0, sizeof(c->plans));
        memset(c->found, 0, sizeof(c->found));
        images_unmap_copies(x, i);
    }
    return true;
}
