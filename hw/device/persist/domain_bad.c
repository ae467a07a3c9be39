/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: unreadable lines, and their announcement.
 *
 * The model has the list (faults set as a property, ranges that failed to verify) and a
 * generation that shows changes; after a change update() reads all of it again and
 *
 *   - marks the guest pages that have any: vCPUs check the marks when they fill their TLBs, and for
 *     each load from a marked page whether it fails (domain_mce.c raises the machine check);
 *   - writes them to the property bad-file, so that they survive this process as media do;
 *   - announces new ones to the guest: those that the adapter found, because the platform knows
 *     of them.  The property's are latent, but announced where loads cannot be watched.
 *
 * Announcements are machine checks, one page each, one at a time; if a processor is not ready for
 * one, it is tried again later.  Their number is limited: loads report the rest.
 *
 * The file has a line "KIND MEMDEV OFFSET LENGTH" for each range, and is replaced as a whole.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "domain_object.h"

enum {
    PAGE = SG_PERSIST_PAGE,
    BAD_RANGES_MAX = 2 * SG_PERSIST_BAD_RANGES + 2,
    NEWS_MAX = 64, /* waiting announcements */
    AGAIN_MS = 20,
    PATIENCE = 1500, /* tries for each: half a minute */
};

typedef struct StaghornBadRanges {
    StaghornDomain *domain;
    QEMUBH *bh;
    QEMUTimer *timer;
    struct sg_persist_bad *known; /* as of the last update() */
    unsigned count;
    uint64_t news[NEWS_MAX]; /* page, and the order of the range in its low bits */
    unsigned waiting, tries;
    bool busy;     /* the first one is being announced */
    bool watching; /* loads are watched */
} StaghornBadRanges;

static const char *const kind_names[] = {
    [SG_PERSIST_UNCORRECTABLE] = "uncorrectable",
    [SG_PERSIST_POISONED] = "poisoned",
};

/* ---- announcements ---- */

static void announce_next(void *opaque);

/* The result of the first announcement. */
static void announced(bool taken)
{
    StaghornBadRanges *b = staghorn_domain()->bad_ranges;

    b->busy = false;
    if (b->waiting && (taken || ++b->tries == PATIENCE)) {
        b->tries = 0;
        b->waiting--;
        memmove(b->news, b->news + 1, b->waiting * sizeof(b->news[0]));
    }
    if (b->waiting) {
        timer_mod(b->timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + AGAIN_MS);
    }
}

static void announce_next(void *opaque)
{
    StaghornBadRanges *b = opaque;
    uint64_t first = b->news[0];

    if (b->waiting && !b->busy && !qatomic_read(&b->domain->powered_off)) {
        b->busy = true;
        staghorn_mce_announce(first & ~(uint64_t)(SG_PERSIST_LINE - 1),
                              first & (SG_PERSIST_LINE - 1), announced);
    } else if (b->waiting) {
        timer_mod(b->timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + AGAIN_MS);
    }
}

/* One for each page of the range: a single line of it, or the whole page. */
static void queue_news(StaghornBadRanges *b, const struct sg_persist_bad *bad)
{
    uint64_t end = bad->addr + bad->len;

    for (uint64_t at = bad->addr; at < end && b->waiting < NEWS_MAX;
         at = QEMU_ALIGN_DOWN(at, PAGE) + PAGE) {
        bool line = end - at == SG_PERSIST_LINE;

        b->news[b->waiting++] =
            line ? at | ctz32(SG_PERSIST_LINE) : QEMU_ALIGN_DOWN(at, PAGE) | ctz32(PAGE);
    }
}

static bool was_known(const StaghornBadRanges *b, const struct sg_persist_bad *bad)
{
    for (unsigned i = 0; i < b->count; i++) {
        if (b->known[i].addr <= bad->addr &&
            bad->addr + bad->len <= b->known[i].addr + b->known[i].len) {
            return true;
        }
    }
    return false;
}

/* ---- the file ---- */

static void write_file(StaghornDomain *d)
{
    const char *path = staghorn_domain_prop(d, "bad-file");
    g_autoptr(GString) text = g_string_new("");
    GError *error = NULL;

    if (!*path || d->rewind) { /* the file belongs to the media, not to an image */
        return;
    }
    for (unsigned i = 0; i < d->bad_ranges->count; i++) {
        const struct sg_persist_bad *bad = &d->bad_ranges->known[i];
        const StaghornDimm *dimm = d->dimm;

        while (bad->addr - dimm->base >= dimm->size) {
            dimm++;
        }
        g_string_append_printf(text, "%s %s %" PRIu64 " %" PRIu64 "\n", kind_names[bad->kind],
                               dimm->name, bad->addr - dimm->base, bad->len);
    }
    if (!g_file_set_contents(path, text->str, text->len, &error)) {
        warn_report("bad-file: %s", error->message);
        g_error_free(error);
    }
}

static bool take_line(StaghornDomain *d, const char *line)
{
    g_auto(GStrv) word = g_strsplit(line, " ", 0);
    StaghornDimm *dimm;
    uint64_t offset, len;
    unsigned kind = ARRAY_SIZE(kind_names);

    if (g_strv_length(word) != 4 || qemu_strtou64(word[2], NULL, 10, &offset) < 0 ||
        qemu_strtou64(word[3], NULL, 10, &len) < 0) {
        return false;
    }
    while (--kind && strcmp(word[0], kind_names[kind])) {
    }
    dimm = staghorn_domain_dimm(d, word[1]);
    return kind && dimm && offset < dimm->size && len <= dimm->size - offset &&
           sg_persist_mark_bad(d->model, dimm->base + offset, len, kind);
}

/* A missing file has none. */
static bool read_file(StaghornDomain *d, Error **errp)
{
    const char *path = staghorn_domain_prop(d, "bad-file");
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    GError *error = NULL;

    if (!*path || !g_file_test(path, G_FILE_TEST_EXISTS)) {
        return true;
    }
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        error_setg(errp, "bad-file: %s", error->message);
        g_error_free(error);
        return false;
    }
    lines = g_strsplit(text, "\n", 0);
    staghorn_domain_enter(d);
    for (char **line = lines; *line; line++) {
        if (**line && !take_line(d, *line)) {
            error_setg(errp,
                       "bad-file: %s has a line that is not \"KIND MEMDEV OFFSET LENGTH\" "
                       "of an NVDIMM here: %s",
                       path, *line);
            break;
        }
    }
    staghorn_domain_leave(d);
    return !*errp;
}

/* ---- queries of vCPUs ---- */

static StaghornDimm *dimm_of(StaghornDomain *d, const void *host)
{
    for (StaghornDimm *dimm = d->dimm; dimm < d->dimm + d->dimms; dimm++) {
        if ((uintptr_t)host - (uintptr_t)dimm->visible < dimm->size) {
            return dimm;
        }
    }
    return NULL;
}

bool staghorn_bad_ranges_in_page(StaghornDomain *d, const void *host)
{
    const StaghornDimm *dimm = dimm_of(d, host);

    return dimm && test_bit(((uintptr_t)host - (uintptr_t)dimm->visible) / PAGE, dimm->bad_pages);
}

bool staghorn_bad_ranges_load(StaghornDomain *d, const void *host, unsigned size, uint64_t *line)
{
    const StaghornDimm *dimm = dimm_of(d, host);
    bool fails;

    if (!dimm) {
        return false;
    }
    staghorn_domain_lock(&d->lock);
    fails = sg_persist_load_fails(
        d->model, dimm->base + ((uintptr_t)host - (uintptr_t)dimm->visible), size, line);
    staghorn_domain_unlock(&d->lock);
    return fails;
}

/* ---- changes ---- */

/* A page without bad lines keeps its mark: its loads are slower, and succeed. */
static bool mark_pages(StaghornDomain *d, const struct sg_persist_bad *bad)
{
    bool fresh = false;

    for (StaghornDimm *dimm = d->dimm; dimm < d->dimm + d->dimms; dimm++) {
        if (bad->addr - dimm->base < dimm->size) {
            uint64_t end = DIV_ROUND_UP(bad->addr + bad->len - dimm->base, PAGE);

            for (uint64_t i = (bad->addr - dimm->base) / PAGE; i < end; i++) {
                if (!test_bit(i, dimm->bad_pages)) {
                    set_bit_atomic(i, dimm->bad_pages);
                    fresh = true;
                }
            }
        }
    }
    return fresh;
}

static void update(StaghornDomain *d, bool announce)
{
    StaghornBadRanges *b = d->bad_ranges;
    struct sg_persist_bad *now = g_new(struct sg_persist_bad, BAD_RANGES_MAX);
    bool fresh = false;
    unsigned count = 0;

    staghorn_domain_enter(d);
    while (count < BAD_RANGES_MAX && sg_persist_bad_range(d->model, count, &now[count])) {
        count++;
    }
    d->bad_generation = sg_persist_bad_generation(d->model);
    staghorn_domain_leave(d);
    for (unsigned i = 0; i < count; i++) {
        fresh = mark_pages(d, &now[i]) || fresh;
    }
    if (fresh) {
        b->watching = staghorn_mce_watch_loads(d);
    }
    for (unsigned i = 0; i < count && announce; i++) {
        if ((now[i].kind == SG_PERSIST_POISONED || !b->watching) && !was_known(b, &now[i])) {
            queue_news(b, &now[i]);
        }
    }
    g_free(b->known);
    b->known = now;
    b->count = count;
    write_file(d);
    staghorn_map_update(d);
    announce_next(b);
}

static void changes(void *opaque)
{
    update(opaque, true);
}

void staghorn_bad_ranges_changed(StaghornDomain *d)
{
    if (d->bad_ranges) {
        qemu_bh_schedule(d->bad_ranges->bh);
    }
}

void staghorn_bad_ranges_update(StaghornDomain *d)
{
    if (d->bad_ranges) {
        qemu_bh_cancel(d->bad_ranges->bh);
        update(d, true);
    }
}

void staghorn_bad_ranges_anew(StaghornDomain *d)
{
    StaghornBadRanges *b = d->bad_ranges;

    qemu_bh_cancel(b->bh);
    timer_del(b->timer);
    b->waiting = b->tries = 0;
    for (unsigned i = 0; b->count && i < d->dimms; i++) {
        bitmap_zero(d->dimm[i].bad_pages, d->dimm[i].size / PAGE);
    }
    update(d, false);
}

bool staghorn_bad_ranges_init(StaghornDomain *d, Error **errp)
{
    ERRP_GUARD();
    StaghornBadRanges *b = g_new0(StaghornBadRanges, 1);

    b->domain = d;
    b->bh = qemu_bh_new(changes, d);
    b->timer = timer_new_ms(QEMU_CLOCK_REALTIME, announce_next, b);
    for (unsigned i = 0; i < d->dimms; i++) {
        d->dimm[i].bad_pages = bitmap_new(d->dimm[i].size / PAGE);
    }
    d->bad_ranges = b;
    if (!read_file(d, errp)) {
        return false;
    }
    update(d, false); /* there is no guest yet */
    return true;
}
