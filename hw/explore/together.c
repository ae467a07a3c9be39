/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "together.h"
#include "base/bytes.h"

/* A pair of crash points, and the images there. */
struct pair_point {
    uint64_t cut[SG_EXPLORE_SIDES];
    unsigned platform;
    guint first[SG_EXPLORE_SIDES], count[SG_EXPLORE_SIDES]; /* of the side's places */
    guint whole[SG_EXPLORE_SIDES]; /* of these: the one that loses nothing; or the first */
};

/* An image of a side at a crash point of a platform. */
struct pair_place {
    uint64_t behind;
    unsigned platform;
    guint number; /* in images.json */
    bool everything;
};

/* ---- The two sessions ---- */

static struct sg_explore_half *new_half(void)
{
    struct sg_explore_half *h = g_new0(struct sg_explore_half, 1);

    for (unsigned i = 0; i < SG_CRASH_MACHINES; i++) {
        h->steps[i] = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_step));
    }
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        h->bounds[i] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        h->instants[i] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    }
    return h;
}

static int start_side(struct sg_explore_both *x, unsigned k, const struct sg_explore_options *o,
                      const char *folder)
{
    struct sg_explore_session *s = sg_explore_start();
    int status;

    x->side[k] = s;
    s->o = *o;
    s->o.out = folder;
    s->o.target = k ? o->together : o->target;
    s->o.together = k ? o->target : o->together;
    s->half = new_half();
    status = sg_explore_prepare(s);
    if (status == SG_EXPLORE_GOOD) {
        status = sg_explore_pass_1(s);
    }
    return status == SG_EXPLORE_GOOD ? sg_explore_pass_2(s) : status;
}

/* ---- Pairs of crash points ---- */

/* Does the platform keep what both guests were told? */
static bool is_claimed(const struct sg_explore_both *x, unsigned p)
{
    bool claimed = true;

    for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
        claimed = claimed && sg_crash_explorer_verdict(x->side[k]->explorer, p)->claimed;
    }
    return claimed;
}

static void choose_points(struct sg_explore_both *x, const struct sg_explore_options *o)
{
    uint64_t all = 0, before = 0, chosen;
    unsigned platform = 0;

    for (unsigned p = 0; p < o->platforms; p++) {
        struct sg_crash_pairs_side side[SG_EXPLORE_SIDES];

        for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
            const struct sg_explore_session *s = x->side[k];

            if (!o->not_claimed && !is_claimed(x, p)) {
                g_array_set_size(s->half->bounds[p], 0);
            }
            side[k] = (struct sg_crash_pairs_side){ s->half->steps[s->target], s->half->bounds[p] };
        }
        sg_crash_pairs_init(&x->pairs[p], side);
        all += x->pairs[p].count;
    }
    x->begun = true;
    chosen = SG_MIN(all, o->max_pairs);
    for (uint64_t i = 0; i < chosen; i++) {
        uint64_t number = sg_crash_pairs_draw(i, all, chosen, o->pair_seed);
        struct pair_point new = { 0 };

        while (number - before >= x->pairs[platform].count) {
            before += x->pairs[platform++].count;
        }
        new.platform = platform;
        if (sg_crash_pairs_get(&x->pairs[platform], number - before, new.cut)) {
            g_array_append_val(x->points, new);
            x->explored[platform]++;
        } else {
            x->contrary++;
        }
    }
}

static gint by_instant(gconstpointer a, gconstpointer b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The instants of a side at which images are made. */
static void set_instants(struct sg_explore_both *x, unsigned k)
{
    struct sg_explore_half *h = x->side[k]->half;

    for (guint i = 0; i < x->points->len; i++) {
        const struct pair_point *point = &g_array_index(x->points, struct pair_point, i);

        g_array_append_val(h->instants[point->platform], point->cut[k]);
    }
    for (unsigned p = 0; p < SG_CRASH_PLATFORMS; p++) {
        g_array_sort(h->instants[p], by_instant);
    }
    h->chosen = true;
}

/* ---- Pairs of images ---- */

static void add_place(void *opaque, guint number, uint64_t behind, unsigned platforms,
                      bool everything)
{
    for (unsigned p = 0; p < SG_CRASH_PLATFORMS; p++) {
        if (platforms >> p & 1) {
            struct pair_place new = { behind, p, number, everything };

            g_array_append_val((GArray *)opaque, new);
        }
    }
}

static gint by_place(gconstpointer a, gconstpointer b)
{
    const struct pair_place *x = a, *y = b;

    if (x->platform != y->platform) {
        return x->platform < y->platform ? -1 : 1;
    }
    if (x->behind != y->behind) {
        return x->behind < y->behind ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The side's images at a pair of crash points. */
static void find_places(struct pair_point *point, unsigned k, const GArray *places)
{
    struct pair_place key = { .behind = point->cut[k], .platform = point->platform };
    guint low = 0, high = places->len;

    while (low < high) {
        guint middle = low + (high - low) / 2;

        if (by_place(&g_array_index(places, struct pair_place, middle), &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    point->first[k] = low;
    for (guint i = low; i < places->len; i++) {
        const struct pair_place *at = &g_array_index(places, struct pair_place, i);

        if (at->platform != key.platform || at->behind != key.behind) {
            break;
        }
        if (at->everything) {
            point->whole[k] = i - low;
        }
        point->count[k]++;
    }
}

/* How many pairs of images there are: those in which a side loses nothing, or the others. */
static uint64_t pairs_at(const struct pair_point *point, bool one_sided)
{
    uint64_t a = point->count[0], b = point->count[1];

    if (!a || !b) {
        return 0;
    }
    return one_sided ? a + b - 1 : (a - 1) * (b - 1);
}

/* The n-th number that is not `without`. */
static guint skip(uint64_t n, guint without)
{
    return (guint)n + (n >= without);
}

/* Of these the one of this number. */
static void pair_at(const struct pair_point *point, bool one_sided, uint64_t number,
                    guint at[SG_EXPLORE_SIDES])
{
    if (!one_sided) {
        at[0] = skip(number / (point->count[1] - 1), point->whole[0]);
        at[1] = skip(number % (point->count[1] - 1), point->whole[1]);
    } else if (number < point->count[0]) {
        at[0] = (guint)number;
        at[1] = point->whole[1];
    } else {
        at[0] = point->whole[0];
        at[1] = skip(number - point->count[0], point->whole[1]);
    }
}

static void add_row(struct sg_explore_both *x, GHashTable *known, const struct sg_explore_pair *new)
{
    uint64_t key = (uint64_t)new->image[0] << 32 | new->image[1];
    guint row = GPOINTER_TO_UINT(g_hash_table_lookup(known, &key));

    if (row) {
        g_array_index(x->rows, struct sg_explore_pair, row - 1).platforms |= new->platforms;
    } else {
        g_array_append_vals(x->rows, new, 1);
        g_hash_table_insert(known, g_memdup2(&key, sizeof(key)), GUINT_TO_POINTER(x->rows->len));
    }
}

/* Takes at most so many of the pairs of one kind. */
static void take_pairs(struct sg_explore_both *x, GArray *const places[SG_EXPLORE_SIDES],
                       GHashTable *known, bool one_sided, uint64_t most)
{
    uint64_t all = one_sided ? x->one_sided : x->others, chosen = SG_MIN(all, most), before = 0;
    uint64_t seed = x->side[0]->o.pair_seed + (one_sided ? 1ull << 32 : 1ull << 33);
    guint i = 0;

    for (uint64_t n = 0; n < chosen; n++) {
        uint64_t number = sg_crash_pairs_draw(n, all, chosen, seed), here;
        struct sg_explore_pair new;
        const struct pair_point *point;
        guint at[SG_EXPLORE_SIDES];

        for (;; i++) {
            point = &g_array_index(x->points, struct pair_point, i);
            here = pairs_at(point, one_sided);
            if (number - before < here) {
                break;
            }
            before += here;
        }
        pair_at(point, one_sided, number - before, at);
        for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
            new.image[k] =
                g_array_index(places[k], struct pair_place, point->first[k] + at[k]).number;
        }
        new.platforms = 1u << point->platform;
        add_row(x, known, &new);
        x->taken++;
    }
}

static void choose_images(struct sg_explore_both *x, const struct sg_explore_options *o)
{
    GHashTable *known = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    GArray *places[SG_EXPLORE_SIDES];

    for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
        places[k] = g_array_new(FALSE, FALSE, sizeof(struct pair_place));
        sg_explore_images_each(x->side[k]->images, add_place, places[k]);
        g_array_sort(places[k], by_place);
    }
    for (guint i = 0; i < x->points->len; i++) {
        struct pair_point *point = &g_array_index(x->points, struct pair_point, i);

        for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
            find_places(point, k, places[k]);
        }
        x->bare += !point->count[0] || !point->count[1];
        x->one_sided += pairs_at(point, true);
        x->others += pairs_at(point, false);
    }
    take_pairs(x, places, known, true, o->max_pairs);
    take_pairs(x, places, known, false, o->max_pairs - x->taken);
    for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
        g_array_unref(places[k]);
    }
    g_hash_table_destroy(known);
}

/* ---- All of it ---- */

static int end_side(struct sg_explore_both *x, unsigned k)
{
    struct sg_explore_session *s = x->side[k];
    int status;

    set_instants(x, k);
    status = sg_explore_pass_images(s);
    if (status == SG_EXPLORE_GOOD) {
        status = sg_explore_pass_3(s);
    }
    return status == SG_EXPLORE_GOOD ? sg_explore_write_results(s) : status;
}

/* Of both sides: a failure; or bugs of one; or a verdict of one. */
static int join(int a, int b)
{
    static const uint8_t weight[] = {
        [SG_EXPLORE_NOTHING] = 0, [SG_EXPLORE_GOOD] = 1,  [SG_EXPLORE_BUGS] = 2,
        [SG_EXPLORE_USAGE] = 3,   [SG_EXPLORE_TRACE] = 4, [SG_EXPLORE_FAILED] = 5,
    };

    return weight[a] >= weight[b] ? a : b;
}

static bool failed(int status)
{
    return status != SG_EXPLORE_GOOD && status != SG_EXPLORE_BUGS && status != SG_EXPLORE_NOTHING;
}

static int explore(struct sg_explore_both *x, const struct sg_explore_options *o,
                   char *const folder[SG_EXPLORE_SIDES])
{
    int status = SG_EXPLORE_NOTHING;

    for (unsigned k = 0; k < SG_EXPLORE_SIDES && !failed(status); k++) {
        status = start_side(x, k, o, folder[k]);
    }
    if (failed(status)) {
        return status;
    }
    choose_points(x, o);
    status = SG_EXPLORE_NOTHING;
    for (unsigned k = 0; k < SG_EXPLORE_SIDES && !failed(status); k++) {
        status = join(status, end_side(x, k));
    }
    if (!failed(status)) {
        choose_images(x, o);
        status = sg_explore_write_pairs(x, o->out) ? status : SG_EXPLORE_FAILED;
    }
    return status;
}

int sg_explore_together(const struct sg_explore_options *o)
{
    struct sg_explore_both x = {
        .points = g_array_new(FALSE, FALSE, sizeof(struct pair_point)),
        .rows = g_array_new(FALSE, FALSE, sizeof(struct sg_explore_pair)),
    };
    char *folder[SG_EXPLORE_SIDES] = {
        g_build_filename(o->out, "first", NULL),
        g_build_filename(o->out, "second", NULL),
    };
    int status = explore(&x, o, folder);

    for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
        if (x.side[k]) {
            sg_explore_finish(x.side[k]);
        }
        g_free(folder[k]);
    }
    for (unsigned p = 0; x.begun && p < o->platforms; p++) {
        sg_crash_pairs_fini(&x.pairs[p]);
    }
    g_array_unref(x.points);
    g_array_unref(x.rows);
    return status;
}
