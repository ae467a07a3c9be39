/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A past is divided by trying: a copy of it from before the event takes the event with each
 * combination of answers, of which the event itself says how many there are.
 */
#include "crash/past.h"

struct early_answer {
    uint32_t taken, n;
};

enum { WAIT_MOST = 256 };

static uint32_t all_of_it(void *opaque, const struct sg_persist_choice *q)
{
    return q->what == SG_PERSIST_CHOICE_STOP ? 0 : q->n - 1;
}

/* The answers that are tried, and 0 to whatever is asked behind them. */
static uint32_t tried(void *opaque, const struct sg_persist_choice *q)
{
    struct sg_crash_past *past = opaque;
    bool too_many = q->what == SG_PERSIST_CHOICE_STOP && q->n > SG_CRASH_STOPS + 1;
    struct early_answer new = { .n = too_many ? 1 : q->n };

    past->left_out |= too_many;
    if (past->at == past->now->len) {
        g_array_append_val(past->now, new);
    }
    return g_array_index(past->now, struct early_answer, past->at++).taken;
}

uint32_t sg_crash_arrives_as_given(void *opaque, const struct sg_persist_choice *q)
{
    struct sg_crash_given_arrivals *x = opaque;
    const struct sg_crash_answer *a;

    if (!x->early || x->next == x->early->len) {
        return 0;
    }
    a = &g_array_index(x->early, struct sg_crash_answer, x->next);
    if (x->asked++ != a->question) {
        return 0;
    }
    x->next++;
    return SG_MIN(a->answer, q->n - 1);
}

bool sg_crash_same_past(const GArray *a, const GArray *b)
{
    return a->len == b->len &&
           (!a->len || memcmp(a->data, b->data, a->len * sizeof(struct sg_crash_answer)) == 0);
}

/* ---- One past ---- */

static void ask(const struct sg_crash_pasts *x, struct sg_crash_past *past)
{
    static sg_persist_choose *const choose[] = {
        [SG_CRASH_EARLY] = all_of_it,
        [SG_CRASH_ANY] = tried,
    };

    sg_persist_arrivals(past->p, x->arrivals == SG_CRASH_LATE ? NULL : choose[x->arrivals], past);
}

static void past_free(struct sg_crash_past *past)
{
    sg_crash_replay_free(past->replay);
    sg_crash_numbers_fini(&past->numbers);
    g_array_unref(past->early);
    g_array_unref(past->now);
    g_free(past);
}

/* One of several. */
static void past_end(struct sg_crash_pasts *x, struct sg_crash_past *past)
{
    x->taken &= ~(1ull << past->memory);
    if (x->drop) {
        x->drop(x->opaque, x->platform, past->p, past->memory);
    }
    past_free(past);
}

/* NULL: no memory for it. */
static struct sg_crash_past *past_copy(struct sg_crash_pasts *x, const struct sg_crash_past *from)
{
    struct sg_persist_memory memory[SG_PERSIST_EXTENTS];
    struct sg_crash_past *past;
    unsigned to = (unsigned)__builtin_ctzll(~x->taken);

    if (!x->fork(x->opaque, x->platform, from->p, from->memory, to, memory)) {
        return NULL;
    }
    x->taken |= 1ull << to;
    past = g_new0(struct sg_crash_past, 1);
    past->replay = sg_crash_replay_clone(from->replay, memory);
    past->p = sg_crash_replay_domain(past->replay);
    past->memory = to;
    past->early = g_array_copy(from->early);
    past->asked = from->asked;
    past->now = g_array_new(FALSE, FALSE, sizeof(struct early_answer));
    sg_crash_numbers_copy(&past->numbers, &from->numbers);
    ask(x, past);
    return past;
}

static const char *past_event(struct sg_crash_pasts *x, struct sg_crash_past *past,
                              const struct sg_trace_event *e, const char *name)
{
    uint64_t merged = sg_persist_merged(past->p);
    const char *wrong;

    past->at = 0;
    wrong = sg_crash_replay_event(past->replay, e, name);
    x->merged += sg_persist_merged(past->p) - merged;
    sg_crash_numbers_add(&past->numbers, sg_persist_seq(past->p));
    return wrong;
}

/* What was answered is part of the past. */
static void keep_answers(struct sg_crash_past *past)
{
    for (guint i = 0; i < past->now->len; i++) {
        struct sg_crash_answer a = {
            .question = past->asked + i,
            .answer = g_array_index(past->now, struct early_answer, i).taken,
        };

        if (a.answer) {
            g_array_append_val(past->early, a);
        }
    }
    past->asked += past->now->len;
    g_array_set_size(past->now, 0);
}

/* ---- Dividing ---- */

static bool is_store(const struct sg_trace_event *e)
{
    return e->kind == SG_TRACE_STORE || e->kind == SG_TRACE_OTHER_WRITE ||
           e->kind == SG_TRACE_ATOMIC;
}

/* How many memories there may be if the event divides the past; 0: it does not. */
static unsigned divides(const struct sg_crash_pasts *x, const struct sg_crash_past *past,
                        const struct sg_trace_event *e)
{
    uint64_t len = e->kind == SG_TRACE_ATOMIC ? SG_PERSIST_ATOM : e->len;
    uint32_t lines;

    if (!x->fork) {
        return 0;
    }
    if (is_store(e) && sg_persist_posted_waits(past->p, e->addr, len)) {
        return SG_CRASH_PASTS;
    }
    lines = sg_crash_replay_stops(past->replay, e);
    return lines && lines <= SG_CRASH_STOPS ? SG_CRASH_PASTS_MIXED : 0;
}

static bool has_room(const struct sg_crash_pasts *x, unsigned most)
{
    return (unsigned)__builtin_popcountll(x->taken) < most;
}

/* Without several pasts: does somebody store beside data under way? */
static bool stores_beside(const struct sg_crash_pasts *x, const struct sg_trace_event *e)
{
    uint64_t len = e->kind == SG_TRACE_ATOMIC ? SG_PERSIST_ATOM : e->len;
    uint64_t line = sg_align_down(e->addr, SG_PERSIST_LINE);

    return is_store(e) && len &&
           sg_persist_posted_waits(sg_crash_past_at(x, 0)->p, line,
                                   ((e->addr + (len - 1)) | (SG_PERSIST_LINE - 1)) - line + 1);
}

/* Not all orders: of data and a store, or of data that something proves. */
static void count_left_out(struct sg_crash_pasts *x, const struct sg_trace_event *e)
{
    *(is_store(e) ? &x->limited : &x->mixed) += 1;
}

/* The next combination of answers; false: that was the last one. */
static bool next_answers(GArray *now)
{
    while (now->len) {
        struct early_answer *last = &g_array_index(now, struct early_answer, now->len - 1);

        if (last->taken + 1 < last->n) {
            last->taken++;
            return true;
        }
        g_array_set_size(now, now->len - 1);
    }
    return false;
}

/* Is there another combination of answers? */
static bool has_others(const GArray *now)
{
    for (guint i = 0; i < now->len; i++) {
        if (g_array_index(now, struct early_answer, i).n > 1) {
            return true;
        }
    }
    return false;
}

/* There may be several from now on. */
static void leave_trunk(struct sg_crash_pasts *x)
{
    if (!x->trunk.step) {
        struct sg_crash_past *only = sg_crash_past_at(x, 0);

        x->trunk = only->numbers;
        sg_crash_numbers_fork(&only->numbers, &x->trunk);
    }
    if (!x->touches) {
        sg_persist_note_touched(sg_crash_past_at(x, 0)->p, true);
        x->touches = true;
    }
}

static void back_to_trunk(struct sg_crash_pasts *x)
{
    struct sg_crash_past *only = sg_crash_past_at(x, 0);

    if (x->all->len == 1 && x->trunk.step) {
        sg_crash_numbers_join(&x->trunk, &only->numbers);
        sg_crash_numbers_fini(&only->numbers);
        only->numbers = x->trunk;
        x->trunk = (struct sg_crash_numbers){ .step = NULL };
    }
    if (x->all->len == 1 && x->touches &&
        (!x->unite || x->unite(x->opaque, x->platform, only->p, only->memory))) {
        sg_persist_note_touched(only->p, false);
        x->touches = false;
    }
}

/* @before, which is not needed any more, with the next answers; NULL: they are at an end. */
static const char *others(struct sg_crash_pasts *x, const struct sg_crash_past *first,
                          struct sg_crash_past *before, unsigned most,
                          const struct sg_trace_event *e, const char *name)
{
    GArray *now = g_array_copy(first->now);
    const char *wrong = NULL;

    while (!wrong && next_answers(now)) {
        struct sg_crash_past *past = has_room(x, most) ? past_copy(x, before) : NULL;

        if (!past) {
            count_left_out(x, e);
            break;
        }
        g_array_append_vals(past->now, now->data, now->len);
        g_ptr_array_add(x->all, past);
        wrong = past_event(x, past, e, name);
        g_array_set_size(now, 0);
        g_array_append_vals(now, past->now->data, past->now->len);
        keep_answers(past);
    }
    g_array_unref(now);
    return wrong;
}

static const char *divide(struct sg_crash_pasts *x, guint i, unsigned most,
                          const struct sg_trace_event *e, const char *name)
{
    struct sg_crash_past *past = sg_crash_past_at(x, i), *before = NULL;
    guint n = x->all->len;
    const char *wrong;

    leave_trunk(x);
    if (has_room(x, most - 1)) { /* for a second one as well */
        before = past_copy(x, past);
    }
    wrong = past_event(x, past, e, name);
    if (!before && has_others(past->now)) {
        count_left_out(x, e);
    } else if (before && !wrong) {
        wrong = others(x, past, before, most, e, name);
    }
    if (before) {
        past_end(x, before);
    }
    keep_answers(past);
    x->most = SG_MAX(x->most, x->all->len);
    if (x->all->len > n) {
        x->failed = x->wait = 0;
    }
    return wrong;
}

/*
 * Somebody has read what the recorded memory had.  Pasts that had something else there did not
 * happen.  If limits have left out the order that it saw, they all stay, and that is counted.
 */
static void drop_contradicted(struct sg_crash_pasts *x, const struct sg_trace_event *e)
{
    guint contradicted = 0;

    for (guint i = 0; i < x->all->len; i++) {
        contradicted += sg_crash_replay_contradicted(sg_crash_past_at(x, i)->replay, e);
    }
    x->mixed += contradicted == x->all->len;
    for (guint i = x->all->len; contradicted < x->all->len && i-- && contradicted;) {
        if (sg_crash_replay_contradicted(sg_crash_past_at(x, i)->replay, e)) {
            sg_crash_pasts_drop(x, i);
            contradicted--;
        }
    }
}

const char *sg_crash_pasts_event(struct sg_crash_pasts *x, const struct sg_trace_event *e,
                                 const char *name)
{
    const char *wrong = NULL;
    guint n = x->all->len;

    x->beside += x->arrivals != SG_CRASH_ANY && stores_beside(x, e);
    for (guint i = 0; i < n && !wrong; i++) {
        struct sg_crash_past *past = sg_crash_past_at(x, i);

        unsigned most = x->arrivals == SG_CRASH_ANY ? divides(x, past, e) : 0;

        past->left_out = false;
        if (most) {
            wrong = divide(x, i, most, e, name);
        } else {
            wrong = past_event(x, past, e, name);
            past->left_out |= past->now->len != 0;
            keep_answers(past); /* nobody divides: all late */
        }
        x->mixed += past->left_out;
    }
    if (!wrong) {
        drop_contradicted(x, e);
    }
    back_to_trunk(x);
    return wrong;
}

/* ---- Joining ---- */

static uint64_t number(void *opaque, uint64_t seq)
{
    return sg_crash_numbers_event(opaque, seq);
}

static bool same(struct sg_crash_past *a, struct sg_crash_past *b)
{
    const struct sg_persist_side of_a = { a->p, number, &a->numbers };
    const struct sg_persist_side of_b = { b->p, number, &b->numbers };

    return sg_crash_replay_same_flushes(a->replay, b->replay, number, &a->numbers, &b->numbers) &&
           sg_persist_same(&of_a, &of_b);
}

void sg_crash_pasts_drop(struct sg_crash_pasts *x, guint i)
{
    struct sg_crash_past *past = sg_crash_past_at(x, i);

    sg_assert(x->all->len > 1);
    g_ptr_array_remove_index(x->all, i);
    past_end(x, past);
    back_to_trunk(x);
}

void sg_crash_pasts_join(struct sg_crash_pasts *x)
{
    guint before = x->all->len;

    if (before == 1 || x->wait) {
        x->wait -= x->wait != 0;
        return;
    }
    for (guint i = 0; i < x->all->len; i++) {
        for (guint k = i + 1; k < x->all->len;) {
            if (same(sg_crash_past_at(x, i), sg_crash_past_at(x, k))) {
                sg_crash_pasts_drop(x, k);
                x->joined++;
            } else {
                k++;
            }
        }
    }
    x->failed = x->all->len < before ? 0 : x->failed + 1;
    x->wait = SG_MIN(x->failed, WAIT_MOST);
}

/* ---- Interface ---- */

void sg_crash_pasts_init(struct sg_crash_pasts *x, const struct sg_crash_platform *platform,
                         struct sg_crash_replay *replay)
{
    struct sg_crash_past *only = g_new0(struct sg_crash_past, 1);

    *x = (struct sg_crash_pasts){
        .arrivals = platform->arrivals,
        .all = g_ptr_array_new(),
        .taken = 1,
        .most = 1,
    };
    only->replay = replay;
    only->p = sg_crash_replay_domain(replay);
    only->early = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_answer));
    only->now = g_array_new(FALSE, FALSE, sizeof(struct early_answer));
    sg_crash_numbers_init(&only->numbers, sg_persist_seq(only->p));
    ask(x, only);
    g_ptr_array_add(x->all, only);
}

void sg_crash_pasts_fini(struct sg_crash_pasts *x)
{
    for (guint i = 0; x->all && i < x->all->len; i++) {
        past_free(sg_crash_past_at(x, i));
    }
    if (x->all) {
        g_ptr_array_unref(x->all);
    }
    sg_crash_numbers_fini(&x->trunk);
    *x = (struct sg_crash_pasts){ .all = NULL };
}
