/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A crash point: for each plan a clone of the domain, whose memories are private copies of the
 * platform's, is cut; what its media have then is compared with the start, line by line.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "crash/crash_image.h"
#include "crash/ways.h"
#include "images.h"
#include "persist/certain.h"
#include "json.h"
#include "output.h"

enum {
    PAGE_LINES = SG_PERSIST_PAGE / SG_PERSIST_LINE,
    WAYS_CUTS = 2000, /* to count the ways at a crash point; and at all of them: */
    WAYS_CUTS_ALL = 200000,
    CUTS_PER_IMAGE = 32, /* more than so many plans for each image that is allowed are left out */
    NAME = 33,           /* of an image: 32 digits */
};

/* Lines of 4 KiB of the machine's addresses that the trace touches. */
struct touched {
    uint64_t page, lines;
};

struct identity {
    uint64_t half[2];
};

/* An image with what is demanded of it. */
struct occurrence {
    struct identity id;
    uint64_t promises; /* how many are in force */
    uint64_t behind;
    unsigned platforms; /* a set */
    char *plan;
};

/* A clone's memories. */
struct copies {
    struct sg_explore_mapping visible[SG_TRACE_EXTENTS], media[SG_TRACE_EXTENTS];
    bool made;
};

struct sg_explore_images {
    char *folder;
    const struct sg_crash_strategies *strategies;
    GHashTable *touched; /* page to its index + 1 in pages */
    GArray *pages;       /* struct touched; ascending from the beginning on */
    struct sg_crash_image_head head;
    struct sg_explore_mapping base[SG_TRACE_EXTENTS];
    struct copies copies[SG_CRASH_PLATFORMS];
    const struct sg_crash_promise *promise;
    uint64_t promises;
    uint64_t in_force; /* of them at the crash point */
    GArray *lines;     /* uint64_t: addresses that differ in the image at hand */
    GHashTable *known; /* struct identity: files written */
    GHashTable *where; /* struct occurrence by image and demands */
    GPtrArray *all;    /* the same, in their order */
    uint64_t cuts, ways_cuts;
    /* At the crash point at hand: */
    const struct sg_persist *p;
    unsigned platform;
    struct sg_explore_images_counts counts[SG_CRASH_PLATFORMS];
};

static bool complain(const char *path)
{
    fprintf(stderr, "staghorn-explore: %s: %s\n", path, strerror(errno));
    return false;
}

static guint identity_hash(gconstpointer key)
{
    return (guint)((const struct identity *)key)->half[0];
}

static gboolean identity_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(struct identity)) == 0;
}

static guint occurrence_hash(gconstpointer key)
{
    const struct occurrence *x = key;

    return (guint)(x->id.half[0] + x->promises * 0x9e3779b9u);
}

static gboolean occurrence_equal(gconstpointer a, gconstpointer b)
{
    const struct occurrence *x = a, *y = b;

    return identity_equal(&x->id, &y->id) && x->promises == y->promises;
}

static void free_occurrence(gpointer opaque)
{
    struct occurrence *x = opaque;

    g_free(x->plan);
    g_free(x);
}

struct sg_explore_images *sg_explore_images_new(const char *folder,
                                                const struct sg_crash_strategies *strategies)
{
    struct sg_explore_images *x = g_new0(struct sg_explore_images, 1);

    x->folder = g_build_filename(folder, "images", NULL);
    x->strategies = strategies;
    x->touched = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    x->pages = g_array_new(FALSE, FALSE, sizeof(struct touched));
    x->lines = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    x->known = g_hash_table_new_full(identity_hash, identity_equal, g_free, NULL);
    x->where = g_hash_table_new(occurrence_hash, occurrence_equal);
    x->all = g_ptr_array_new_with_free_func(free_occurrence);
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        x->base[i].fd = -1;
    }
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        sg_crash_count_init(&x->counts[i].ways, 0);
    }
    return x;
}

void sg_explore_images_free(struct sg_explore_images *x)
{
    if (!x) {
        return;
    }
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        sg_explore_unmap(&x->base[i]);
        for (unsigned k = 0; k < SG_CRASH_PLATFORMS; k++) {
            if (x->copies[k].made) {
                sg_explore_unmap(&x->copies[k].visible[i]);
                sg_explore_unmap(&x->copies[k].media[i]);
            }
        }
    }
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        sg_crash_count_fini(&x->counts[i].ways);
    }
    g_free(x->folder);
    g_hash_table_destroy(x->touched);
    g_array_unref(x->pages);
    g_array_unref(x->lines);
    g_hash_table_destroy(x->known);
    g_hash_table_destroy(x->where);
    g_ptr_array_unref(x->all);
    g_free(x);
}

/* ---- Touched lines ---- */

static struct touched *touched_page(struct sg_explore_images *x, uint64_t page)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(x->touched, &page));
    struct touched new = { .page = page };

    if (!n) {
        g_array_append_val(x->pages, new);
        n = x->pages->len;
        g_hash_table_insert(x->touched, g_memdup2(&page, sizeof(page)), GUINT_TO_POINTER(n));
    }
    return &g_array_index(x->pages, struct touched, n - 1);
}

void sg_explore_images_touch(struct sg_explore_images *x, const struct sg_trace_event *e)
{
    uint64_t len = e->kind == SG_TRACE_ATOMIC ? SG_PERSIST_ATOM : e->len;
    bool stores = e->kind == SG_TRACE_STORE || e->kind == SG_TRACE_PLACE ||
                  e->kind == SG_TRACE_ATOMIC_WRITE || e->kind == SG_TRACE_ATOMIC ||
                  e->kind == SG_TRACE_OTHER_WRITE;

    for (uint64_t at = 0; stores && at < len;) { /* at most DATA_MAX octets */
        uint64_t line = (e->addr + at) / SG_PERSIST_LINE;

        touched_page(x, line / PAGE_LINES)->lines |= 1ull << line % PAGE_LINES;
        at = (line + 1) * SG_PERSIST_LINE - e->addr;
    }
}

static gint by_page(gconstpointer a, gconstpointer b)
{
    const struct touched *x = a, *y = b;

    return x->page < y->page ? -1 : x->page > y->page;
}

bool sg_explore_images_begin(struct sg_explore_images *x, const struct sg_crash_image_head *head,
                             const struct sg_explore_content *content,
                             const struct sg_crash_promises *promises, unsigned target)
{
    x->head = *head;
    x->promise = sg_crash_promises_of(promises, target, &x->promises);
    g_array_sort(x->pages, by_page);
    for (unsigned i = 0; i < head->extent_count; i++) {
        if (!sg_explore_map(&x->base[i], content, i, head->extent[i].size)) {
            return complain("the content at the start");
        }
    }
    return g_mkdir_with_parents(x->folder, 0777) == 0 || complain(x->folder);
}

/* ---- One image ---- */

static uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    return h ^ h >> 31;
}

/* The identity of an image is the sum over its lines, so their order does not matter. */
static void add_line(struct identity *id, uint64_t addr, const uint8_t *octets)
{
    for (unsigned half = 0; half < 2; half++) {
        uint64_t h = mix(addr + half * 0x9e3779b97f4a7c15ull), word;

        for (unsigned i = 0; i < SG_PERSIST_LINE; i += sizeof(word)) {
            memcpy(&word, octets + i, sizeof(word));
            h = mix(h * 31 + word);
        }
        id->half[half] += h;
    }
}

static void compare_page(struct sg_explore_images *x, const struct touched *t, unsigned extent,
                         const uint8_t *media, struct identity *id)
{
    uint64_t start = t->page * SG_PERSIST_PAGE, base = x->head.extent[extent].base;

    for (uint64_t m = t->lines; m; m &= m - 1) {
        uint64_t addr = start + (uint64_t)__builtin_ctzll(m) * SG_PERSIST_LINE;

        if (addr - base < x->head.extent[extent].size &&
            memcmp(media + addr - base, x->base[extent].octets + addr - base, SG_PERSIST_LINE)) {
            add_line(id, addr, media + addr - base);
            g_array_append_val(x->lines, addr);
        }
    }
}

/* Fills x->lines. */
static struct identity compare(struct sg_explore_images *x, const struct copies *c)
{
    struct identity id = { { 0, 0 } };

    g_array_set_size(x->lines, 0);
    for (guint i = 0; i < x->pages->len; i++) {
        const struct touched *t = &g_array_index(x->pages, struct touched, i);

        for (unsigned k = 0; k < x->head.extent_count; k++) {
            const struct sg_trace_extent *e = &x->head.extent[k];

            if (t->page * SG_PERSIST_PAGE < e->base + e->size &&
                e->base < (t->page + 1) * SG_PERSIST_PAGE) {
                compare_page(x, t, k, c->media[k].octets, &id);
            }
        }
    }
    return id;
}

static gint by_addr(gconstpointer a, gconstpointer b)
{
    const struct sg_persist_bad *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Lines that cannot be read are part of the image. */
static GArray *bad_lines(const struct sg_persist *p, struct identity *id)
{
    GArray *bad = g_array_new(FALSE, FALSE, sizeof(struct sg_persist_bad));
    struct sg_persist_bad b;
    uint64_t end = 0;

    for (unsigned i = 0; sg_persist_bad_range(p, i, &b); i++) {
        g_array_append_val(bad, b);
    }
    g_array_sort(bad, by_addr);
    for (guint i = 0; i < bad->len;) {
        struct sg_persist_bad *at = &g_array_index(bad, struct sg_persist_bad, i);

        if (at->addr < end) { /* of both kinds: once */
            g_array_remove_index(bad, i);
            continue;
        }
        end = at->addr + at->len;
        id->half[0] += mix(at->addr ^ at->kind);
        id->half[1] += mix(at->len ^ (uint64_t)at->kind << 32);
        i++;
    }
    return bad;
}

static void identity_text(const struct identity *id, char text[NAME])
{
    g_snprintf(text, NAME, "%016" G_GINT64_MODIFIER "x%016" G_GINT64_MODIFIER "x", id->half[0],
               id->half[1]);
}

static bool write_image(struct sg_explore_images *x, const struct copies *c, const GArray *bad,
                        const struct identity *id)
{
    struct sg_crash_image_writer w;
    GByteArray *file = g_byte_array_new();
    char name[NAME], *leaf;
    bool good;

    sg_crash_image_begin(&w, file, &x->head);
    for (guint i = 0; i < x->lines->len; i++) {
        uint64_t addr = g_array_index(x->lines, uint64_t, i);

        for (unsigned k = 0; k < x->head.extent_count; k++) {
            uint64_t at = addr - x->head.extent[k].base;

            if (at < x->head.extent[k].size) {
                sg_crash_image_add(&w, addr, c->media[k].octets + at, SG_PERSIST_LINE);
            }
        }
    }
    for (guint i = 0; i < bad->len; i++) {
        const struct sg_persist_bad *b = &g_array_index(bad, struct sg_persist_bad, i);

        sg_crash_image_add_bad(&w, b->addr, b->len, (enum sg_persist_bad_kind)b->kind);
    }
    sg_crash_image_end(&w);
    identity_text(id, name);
    leaf = g_strconcat(name, ".image", NULL);
    good = sg_explore_write(x->folder, leaf, file->data, file->len);
    g_free(leaf);
    g_byte_array_unref(file);
    return good;
}

/* ---- A crash point ---- */

static bool make_copies(struct sg_explore_images *x, struct copies *c,
                        const struct sg_explore_mapping *visible,
                        const struct sg_explore_mapping *media)
{
    for (unsigned i = 0; i < x->head.extent_count && !c->made; i++) {
        if (!sg_explore_map_copy(&c->visible[i], &visible[i]) ||
            !sg_explore_map_copy(&c->media[i], &media[i])) {
            return complain("copies of persistent memory");
        }
    }
    c->made = true;
    return true;
}

/* The clone at one outcome; the copies have its media. */
static struct sg_persist *cut_clone(struct sg_explore_images *x, const struct sg_persist *p,
                                    struct copies *c, const struct sg_persist_policy *policy)
{
    struct sg_persist_memory memory[SG_TRACE_EXTENTS];
    struct sg_persist *clone;

    for (unsigned i = 0; i < x->head.extent_count; i++) {
        sg_explore_map_reset(&c->visible[i]);
        sg_explore_map_reset(&c->media[i]);
        memory[i] = (struct sg_persist_memory){
            .visible = c->visible[i].octets,
            .media = c->media[i].octets,
        };
    }
    clone = sg_persist_clone(p, memory);
    sg_persist_report_free(sg_persist_cut(clone, policy));
    return clone;
}

/* Notes the image of a plan.  False: a file cannot be written. */
static bool note_image(struct sg_explore_images *x, const struct sg_crash_planner *plan,
                       unsigned platform, uint64_t behind, const struct copies *c,
                       const struct sg_persist *clone)
{
    struct occurrence key = {
        .id = compare(x, c),
        .promises = x->in_force,
        .behind = behind,
        .platforms = 1u << platform,
    };
    GArray *bad = bad_lines(clone, &key.id);
    struct occurrence *known = g_hash_table_lookup(x->where, &key);
    bool good = true;

    if (known) {
        known->platforms |= known->behind == behind ? key.platforms : 0;
    } else {
        GString *text = g_string_new(NULL);

        sg_crash_plan_text(plan, text);
        key.plan = g_string_free(text, FALSE);
        known = g_memdup2(&key, sizeof(key));
        g_ptr_array_add(x->all, known);
        g_hash_table_add(x->where, known);
        x->counts[platform].found[plan->now]++;
        if (!g_hash_table_contains(x->known, &key.id)) {
            g_hash_table_add(x->known, g_memdup2(&key.id, sizeof(key.id)));
            good = write_image(x, c, bad, &key.id);
        }
    }
    g_array_unref(bad);
    return good;
}

static void cut_only(void *opaque, const struct sg_persist_policy *policy)
{
    struct sg_explore_images *x = opaque;

    sg_persist_free(cut_clone(x, x->p, &x->copies[x->platform], policy));
}

/* Adds the number of ways at this crash point, as far as it can be counted. */
static void count_ways(struct sg_explore_images *x)
{
    struct sg_explore_images_counts *counts = &x->counts[x->platform];
    unsigned cuts = 0;

    if (x->ways_cuts >= WAYS_CUTS_ALL ||
        !sg_crash_ways(cut_only, x, WAYS_CUTS, &counts->ways, &cuts)) {
        counts->uncounted++;
    }
    x->ways_cuts += cuts;
}

/* Has everything been made that --max-images allows? */
static bool is_full(const struct sg_explore_images *x)
{
    return x->all->len >= x->strategies->max_images ||
           x->cuts / CUTS_PER_IMAGE >= x->strategies->max_images;
}

bool sg_explore_images_point(struct sg_explore_images *x, unsigned platform,
                             const struct sg_persist *p, uint64_t behind,
                             const struct sg_explore_mapping *visible,
                             const struct sg_explore_mapping *media)
{
    struct sg_explore_images_counts *counts = &x->counts[platform];
    struct copies *c = &x->copies[platform];
    const struct sg_persist_policy *policy;
    struct sg_crash_planner plan;
    bool good = make_copies(x, c, visible, media);

    x->p = p;
    x->platform = platform;
    if (good) {
        count_ways(x);
    }
    while (x->in_force < x->promises && x->promise[x->in_force].from <= behind) {
        x->in_force++;
    }
    sg_crash_planner_init(&plan, x->strategies, behind);
    while (good && !is_full(x) && (policy = sg_crash_planner_next(&plan))) {
        struct sg_persist *clone = cut_clone(x, p, c, policy);

        x->cuts++;
        counts->plans[plan.now]++;
        good = note_image(x, &plan, platform, behind, c, clone);
        sg_persist_free(clone);
    }
    if (is_full(x)) {
        counts->left_out++;
    } else {
        counts->points++;
    }
    sg_crash_planner_fini(&plan);
    return good;
}

/* ---- images.json ---- */

static void put_occurrence(struct json *j, const struct occurrence *o,
                           const struct sg_crash_platform *platform)
{
    char name[NAME], of[SG_CRASH_PLATFORM_NAME];

    identity_text(&o->id, name);
    json_open(j, NULL, '{');
    json_text(j, "image", name);
    json_number(j, "behind", o->behind);
    json_number(j, "promises", o->promises);
    json_text(j, "plan", o->plan);
    json_open(j, "platforms", '[');
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        if (o->platforms >> i & 1) {
            sg_crash_platform_name(&platform[i], of);
            json_text(j, NULL, of);
        }
    }
    json_close(j, ']');
    json_close(j, '}');
}

bool sg_explore_images_end(struct sg_explore_images *x, const struct sg_crash_platform *platform)
{
    struct json j = { .out = g_string_new(NULL) };
    char *folder = g_path_get_dirname(x->folder);
    bool good;

    json_open(&j, NULL, '{');
    json_number(&j, "version", 1);
    json_open(&j, "images", '[');
    for (guint i = 0; i < x->all->len; i++) {
        put_occurrence(&j, g_ptr_array_index(x->all, i), platform);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    g_string_append_c(j.out, '\n');
    good = sg_explore_write(folder, "images.json", j.out->str, j.out->len);
    g_string_free(j.out, TRUE);
    g_free(folder);
    return good;
}

uint64_t sg_explore_images_count(const struct sg_explore_images *x, uint64_t *occurrences)
{
    *occurrences = x->all->len;
    return g_hash_table_size(x->known);
}

const struct sg_explore_images_counts *sg_explore_images_counts(const struct sg_explore_images *x,
                                                                unsigned platform)
{
    return &x->counts[platform];
}
