/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One pass over a trace, in which all platforms take each event in turn.
 *
 * The order for an event: crash points before it; the event itself, on each platform; breaches that
 * it ends; promises that bind behind it.
 */
#include "crash/explore.h"
#include "crash/numbers.h"
#include "crash/past.h"
#include "crash/points.h"
#include "crash/setting_text.h"

/* Octets that Verifies may read on all platforms together: a trace of anybody may ask for more. */
#define COMPARED_MAX (64ull << 30)

/* A breach whose end is not known, and what it asks for at each event that settles something. */
struct followed {
    unsigned breach;     /* its index */
    bool placed;         /* the numbers below are known: they never change */
    uint64_t after, seq; /* stores with numbers of the domain behind the first, up to the second */
};

/* A platform under way. */
struct run {
    struct sg_crash_verdict verdict;
    struct sg_crash_pasts pasts;
    struct sg_crash_past *past; /* at a crash point: the one that is looked at */
    struct sg_crash_points points;
    GHashTable *known; /* hash of (kind, issuer, stage) to index + 1 in verdict.breaches */
    struct followed follow[SG_CRASH_FOLLOWED];
    unsigned following;
};

struct sg_crash_explorer {
    struct sg_crash_exploration what;
    const struct sg_crash_promise *promise;
    uint64_t promises, next;
    uint64_t event; /* the last one */
    uint64_t compared, not_compared;
    struct run run[SG_CRASH_PLATFORMS];
};

/* ---- Breaches ---- */

/* Of different breaches one differs in at least one of these. */
static gpointer breach_key(const struct sg_crash_breach *b)
{
    return GSIZE_TO_POINTER((gsize)b->issuer << 16 | (gsize)b->kind << 8 | (gsize)b->doubt << 4 |
                            b->stage);
}

/* A placement is promised alone; a durable mark speaks of all that is there. */
uint64_t sg_crash_promised_after(const struct sg_crash_numbers *n, const struct sg_crash_breach *b)
{
    return b->kind == SG_CRASH_ACK_DURABLE ? 0 : sg_crash_numbers_seq(n, b->placed - 1);
}

/* Is a promise kept, or has a followed octet become certain? */
enum answer { KEPT, IN_DOUBT, BROKEN };

/* The first octet of a range that is lost for sure; else IN_DOUBT if one may be. */
static enum answer ask(const struct sg_persist *p, uint64_t addr, uint64_t len, uint64_t after,
                       uint64_t seq, uint64_t *at, struct sg_persist_uncertain *why)
{
    enum answer answer = KEPT;
    uint64_t done = 0;

    do {
        *at = sg_persist_uncertain(p, addr + done, len - done, after, seq, why);
        done = *at - addr;
        if (done < len && why->doubt != SG_PERSIST_DOUBT_MERGED) {
            return BROKEN;
        }
        answer = done < len ? IN_DOUBT : answer;
        done += why->len;
    } while (done < len && why->len);
    return answer;
}

/* Where the octet is that a breach is about; KEPT: in this past it is certain by now. */
static enum answer is_open(const struct sg_crash_past *past, struct sg_crash_breach *b,
                           uint64_t addr, uint64_t len)
{
    struct sg_persist_uncertain why;
    enum answer answer;

    b->stage = SG_CRASH_NOT_PLACED;
    b->doubt = SG_PERSIST_DOUBT_PENDING;
    b->lost = b->placed;
    b->addr = addr;
    if (b->placed > sg_crash_numbers_count(&past->numbers)) {
        return BROKEN;
    }
    answer = ask(past->p, addr, len, sg_crash_promised_after(&past->numbers, b),
                 sg_crash_numbers_seq(&past->numbers, b->placed), &b->addr, &why);
    b->stage = why.stage;
    b->doubt = why.doubt;
    b->lost = sg_crash_numbers_event(&past->numbers, why.lost);
    return answer;
}

static void follow(struct run *r, unsigned n)
{
    struct sg_crash_breach *b = &g_array_index(r->verdict.breaches, struct sg_crash_breach, n);

    if (r->following < SG_CRASH_FOLLOWED) {
        b->followed = true;
        r->follow[r->following++] = (struct followed){ .breach = n };
    }
}

static void add_breach(struct run *r, const struct sg_crash_breach *b)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(r->known, breach_key(b)));

    if (n) {
        g_array_index(r->verdict.breaches, struct sg_crash_breach, n - 1).count++;
    } else if (r->verdict.breaches->len == SG_CRASH_BREACHES) {
        r->verdict.unlisted++;
    } else {
        struct sg_crash_breach new = *b;

        new.early = g_array_copy(b->early);
        g_array_append_val(r->verdict.breaches, new);
        g_hash_table_insert(r->known, breach_key(b), GUINT_TO_POINTER(r->verdict.breaches->len));
        follow(r, r->verdict.breaches->len - 1);
    }
}

/* Is what a followed breach is about still open in one of several pasts? */
static enum answer is_open_in_any(const struct run *r, const struct sg_crash_breach *b)
{
    struct sg_crash_breach now = *b;
    enum answer worst = KEPT;

    for (guint i = 0; i < r->pasts.all->len && worst != BROKEN; i++) {
        worst = SG_MAX(worst, is_open(sg_crash_past_at(&r->pasts, i), &now, b->addr, 1));
    }
    return worst;
}

/* The same, where what is asked for is known as long as there is one past. */
static enum answer is_still_open(const struct run *r, struct followed *f,
                                 const struct sg_crash_breach *b)
{
    const struct sg_crash_past *past = sg_crash_past_at(&r->pasts, 0);
    struct sg_persist_uncertain why;
    uint64_t at;

    if (r->pasts.all->len > 1) {
        return is_open_in_any(r, b);
    }
    if (!f->placed && b->placed <= sg_crash_numbers_count(&past->numbers)) {
        f->after = sg_crash_promised_after(&past->numbers, b);
        f->seq = sg_crash_numbers_seq(&past->numbers, b->placed);
        f->placed = true;
    }
    return f->placed ? ask(past->p, b->addr, 1, f->after, f->seq, &at, &why) : BROKEN;
}

/* Breaches that the last event ended, or that nobody can follow any more. */
static void look_after(struct run *r, uint64_t event)
{
    for (unsigned i = 0; i < r->following;) {
        struct followed *f = &r->follow[i];
        struct sg_crash_breach *b =
            &g_array_index(r->verdict.breaches, struct sg_crash_breach, f->breach);

        enum answer answer = is_still_open(r, f, b);

        if (answer == BROKEN) {
            i++;
            continue;
        }
        b->followed = answer == KEPT;
        b->until = b->followed ? event : 0;
        *f = r->follow[--r->following];
    }
}

/* ---- Promises ---- */

/* The first octet of a promise that is not certain in a past; KEPT: all are. */
static enum answer is_broken_in(struct sg_crash_explorer *x, const struct sg_crash_past *past,
                                uint64_t number, struct sg_crash_breach *b)
{
    const struct sg_crash_promise *promise = &x->promise[number];
    const struct sg_crash_range *range = sg_crash_promise_ranges(x->what.promises, promise);
    enum answer worst = KEPT;

    for (unsigned i = 0; i < promise->range_count; i++) {
        *b = (struct sg_crash_breach){
            .kind = promise->kind,
            .count = 1,
            .promise = number,
            .placed = range[i].placed,
            .early = past->early,
        };
        worst = SG_MAX(worst, is_open(past, b, range[i].addr, range[i].len));
        if (worst == BROKEN) {
            b->issuer = sg_crash_issuers_of(x->what.issuers, b->lost);
            return BROKEN;
        }
    }
    return worst;
}

/* A promise has to be kept in each past. */
static enum answer is_broken(struct sg_crash_explorer *x, const struct run *r, uint64_t number,
                             struct sg_crash_breach *b)
{
    enum answer worst = KEPT;

    for (guint i = 0; i < r->pasts.all->len && worst != BROKEN; i++) {
        worst = SG_MAX(worst, is_broken_in(x, sg_crash_past_at(&r->pasts, i), number, b));
    }
    return worst;
}

static void judge(struct sg_crash_explorer *x, uint64_t number)
{
    const struct sg_crash_promise *promise = &x->promise[number];

    for (unsigned i = 0; i < x->what.platforms; i++) {
        struct run *r = &x->run[i];
        struct sg_crash_breach b;
        enum answer answer;

        if (r->verdict.end) {
            r->verdict.not_judged++;
            continue;
        }
        sg_crash_points_demand(&r->points);
        answer = is_broken(x, r, number, &b);
        r->verdict.promises[promise->kind] += answer != IN_DOUBT;
        r->verdict.in_doubt += answer == IN_DOUBT;
        if (answer == BROKEN) {
            r->verdict.broken[promise->kind]++;
            add_breach(r, &b);
        }
    }
}

static void judge_promises(struct sg_crash_explorer *x)
{
    while (x->next < x->promises && x->promise[x->next].from <= x->event) {
        judge(x, x->next++);
    }
}

/* ---- What would have gone otherwise ---- */

static void end_run(struct run *r, uint64_t event, const char *why)
{
    r->verdict.end = event;
    r->verdict.why = why;
}

/* What a Verify would have answered in this past of a platform: does the hash match? */
static bool verify_matches(struct sg_persist *p, const struct sg_trace_event *e)
{
    uint8_t out[SG_HASHER_OUT], *buf = g_malloc(SG_TRACE_DATA_MAX);
    struct sg_hasher hasher;
    bool readable = true;

    sg_hasher_init(&hasher, (enum sg_hash)e->arg, NULL, 0);
    for (uint64_t done = 0; done < e->value && readable;) {
        size_t n = SG_MIN(e->value - done, SG_TRACE_DATA_MAX);

        readable = sg_persist_media_read(p, e->addr + done, buf, n) == SG_PM_DONE;
        if (readable) {
            sg_hasher_add(&hasher, buf, n);
        }
        done += n;
    }
    g_free(buf);
    return readable && sg_hasher_end(&hasher, out) == e->len && memcmp(out, e->data, e->len) == 0;
}

/* A crash point in each past, or in one. */
static void look_at_point(struct sg_crash_explorer *x, unsigned platform, uint64_t behind)
{
    struct run *r = &x->run[platform];

    for (guint i = 0; x->what.point && i < r->pasts.all->len; i++) {
        r->past = sg_crash_past_at(&r->pasts, i);
        x->what.point(x->what.opaque, platform, r->past->p, behind);
    }
    r->past = sg_crash_past_at(&r->pasts, 0);
}

/* A Verify answered otherwise than in these pasts: they cannot have been.  False: none is left. */
static bool leave_contradicted(struct sg_crash_explorer *x, unsigned platform,
                               const struct sg_trace_event *e, bool matched)
{
    struct run *r = &x->run[platform];
    bool agrees[SG_CRASH_PASTS], any = false, all = true;

    for (guint i = 0; i < r->pasts.all->len; i++) {
        struct sg_persist *p = sg_crash_past_at(&r->pasts, i)->p;

        agrees[i] = !(sg_persist_query(p, e->addr, e->value) & SG_PM_PERSISTENT) ||
                    verify_matches(p, e) == matched;
        any |= agrees[i];
        all &= agrees[i];
        x->compared += e->value;
    }
    if (any && !all && !x->what.instant && sg_crash_points_now(&r->points)) {
        look_at_point(x, platform, e->number - 1);
    }
    for (guint i = r->pasts.all->len; any && i--;) {
        if (!agrees[i]) {
            sg_crash_pasts_drop(&r->pasts, i);
        }
    }
    r->past = sg_crash_past_at(&r->pasts, 0);
    return any;
}

static void compare_verify(struct sg_crash_explorer *x, const struct sg_trace_event *e)
{
    bool keyed = e->arg == SG_HASH_HMAC_SHA256, matched = e->status == 0;

    if (keyed || sg_hash_len((unsigned)e->arg) != e->len || e->value > COMPARED_MAX ||
        x->compared > COMPARED_MAX) {
        x->not_compared++;
        return;
    }
    for (unsigned i = 0; i < x->what.platforms; i++) {
        struct run *r = &x->run[i];

        if (!r->verdict.end && !leave_contradicted(x, i, e, matched)) {
            end_run(r, e->number,
                    matched ? "a Verify that matched would not have matched"
                            : "a Verify that did not match would have matched");
        }
    }
}

/* ---- Events ---- */

static bool is_power_cut(const struct sg_trace_event *e)
{
    return e->kind == SG_TRACE_FREEZE || e->kind == SG_TRACE_CUT || e->kind == SG_TRACE_RESTART;
}

/* The power may fail at a crash point, or where somebody wants it. */
static void offer_point(struct sg_crash_explorer *x, unsigned platform, uint64_t behind, bool point,
                        bool bounds)
{
    if (x->what.instant) {
        point = x->what.instant(x->what.opaque, platform, behind, bounds);
    }
    if (point) {
        look_at_point(x, platform, behind);
    }
}

static const char *run_event(struct sg_crash_explorer *x, unsigned platform,
                             const struct sg_trace_event *e, const char *name)
{
    struct run *r = &x->run[platform];
    bool acts = false, settles = sg_crash_points_settles(e), point;
    const char *wrong;

    for (guint i = 0; i < r->pasts.all->len && !acts; i++) {
        acts = sg_crash_points_acts(&r->points, sg_crash_past_at(&r->pasts, i)->p, e);
    }
    point = sg_crash_points_before(&r->points, acts, e);
    /* Behind these events the platform may not be judged any more. */
    offer_point(x, platform, e->number - 1, point,
                r->points.bounds || is_power_cut(e) || e->kind == SG_TRACE_VERIFY);
    if (is_power_cut(e)) {
        end_run(r, e->number, "the power failed in the run");
        return NULL;
    }
    wrong = sg_crash_pasts_event(&r->pasts, e, name);
    r->past = sg_crash_past_at(&r->pasts, 0);
    sg_crash_points_behind(&r->points, e);
    if (settles && !wrong && r->pasts.all->len > 1) {
        sg_crash_pasts_join(&r->pasts);
    }
    if (settles && r->following) {
        look_after(r, e->number);
    }
    return wrong;
}

const char *sg_crash_explorer_event(struct sg_crash_explorer *x, const struct sg_trace_event *e,
                                    const char *name)
{
    const char *wrong = NULL;

    x->event = e->number;
    for (unsigned i = 0; i < x->what.platforms && !wrong; i++) {
        if (!x->run[i].verdict.end) {
            wrong = run_event(x, i, e, name);
        }
    }
    if (!wrong && e->kind == SG_TRACE_VERIFY) {
        compare_verify(x, e);
    }
    if (!wrong) {
        judge_promises(x);
    }
    return wrong;
}

void sg_crash_explorer_end(struct sg_crash_explorer *x)
{
    for (unsigned i = 0; i < x->what.platforms; i++) {
        struct run *r = &x->run[i];

        if (!r->verdict.end) {
            offer_point(x, i, x->event, sg_crash_points_end(&r->points), true);
        }
        r->verdict.not_judged += x->promises - x->next; /* behind a trace that is cut short */
        r->verdict.points = r->points.count;
        r->verdict.pasts = r->pasts.most;
        r->verdict.joined = r->pasts.joined;
        r->verdict.limited = r->pasts.limited;
        r->verdict.beside = r->pasts.beside;
        r->verdict.mixed = r->pasts.mixed;
        r->verdict.merged = r->pasts.merged;
    }
}

/* ---- Interface ---- */

static void clear_breach(gpointer opaque)
{
    g_array_unref(((struct sg_crash_breach *)opaque)->early);
}

static const char *start_run(struct sg_crash_explorer *x, unsigned i)
{
    struct run *r = &x->run[i];
    const struct sg_trace_header *header = x->what.header;
    struct sg_persist_config config;
    struct sg_persist_limits limits;
    struct sg_crash_replay *replay;
    const char *wrong;

    r->verdict.platform = x->what.platform[i];
    r->verdict.claimed = sg_crash_platform_claims(
        &r->verdict.platform, sg_crash_told_parse(header->text[SG_TRACE_PLATFORM]));
    r->verdict.breaches = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_breach));
    g_array_set_clear_func(r->verdict.breaches, clear_breach);
    r->known = g_hash_table_new(g_direct_hash, g_direct_equal);
    sg_crash_points_init(&r->points, r->verdict.platform.domain);
    sg_crash_platform_settings(&r->verdict.platform, &config, &limits);
    replay = sg_crash_replay_new_for(header, &config, &limits, &wrong);
    if (replay) {
        sg_crash_pasts_init(&r->pasts, &r->verdict.platform, replay);
        r->pasts.fork = x->what.fork;
        r->pasts.drop = x->what.drop;
        r->pasts.unite = x->what.unite;
        r->pasts.opaque = x->what.opaque;
        r->pasts.platform = i;
        r->past = sg_crash_past_at(&r->pasts, 0);
    }
    return wrong;
}

struct sg_crash_explorer *sg_crash_explorer_new(const struct sg_crash_exploration *what,
                                                const char **wrong)
{
    struct sg_crash_explorer *x = g_new0(struct sg_crash_explorer, 1);

    sg_assert(what->platforms <= SG_CRASH_PLATFORMS);
    x->what = *what;
    x->promise = sg_crash_promises_of(what->promises, what->target, &x->promises);
    *wrong = NULL;
    for (unsigned i = 0; i < what->platforms && !*wrong; i++) {
        *wrong = start_run(x, i);
    }
    if (*wrong) {
        sg_crash_explorer_free(x);
        return NULL;
    }
    return x;
}

void sg_crash_explorer_free(struct sg_crash_explorer *x)
{
    if (!x) {
        return;
    }
    for (unsigned i = 0; i < x->what.platforms; i++) {
        struct run *r = &x->run[i];

        sg_crash_pasts_fini(&r->pasts);
        if (r->known) {
            g_hash_table_destroy(r->known);
            g_array_unref(r->verdict.breaches);
        }
    }
    g_free(x);
}

void sg_crash_explorer_add(struct sg_crash_explorer *x, unsigned platform, uint8_t *visible,
                           uint8_t *media)
{
    sg_crash_replay_add(x->run[platform].past->replay, visible, media);
}

const struct sg_crash_verdict *sg_crash_explorer_verdict(const struct sg_crash_explorer *x,
                                                         unsigned platform)
{
    return &x->run[platform].verdict;
}

uint64_t sg_crash_explorer_not_compared(const struct sg_crash_explorer *x)
{
    return x->not_compared;
}

uint64_t sg_crash_explorer_event_of(const struct sg_crash_explorer *x, unsigned platform,
                                    uint64_t seq)
{
    return sg_crash_numbers_event(&x->run[platform].past->numbers, seq);
}

const GArray *sg_crash_explorer_past(const struct sg_crash_explorer *x, unsigned platform,
                                     unsigned *memory)
{
    const struct sg_crash_past *past = x->run[platform].past;

    *memory = past->memory;
    return past->early;
}
