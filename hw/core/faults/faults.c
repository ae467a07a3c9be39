/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of an adapter at work: counting of occurrences, times, interrupts that wait.
 */
#include "faults/faults.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "faults/fault_rules.h"

struct active {
    struct sg_fault_rule rule;
    uint64_t seen;    /* occurrences since 'begins' */
    uint64_t applied; /* of them, or of times */
    uint64_t begins;  /* time */
    uint64_t ends;    /* SG_NEVER: it has none, or its first occurrence is still to come */
    uint64_t due;     /* of a timed one */
};

struct sg_faults {
    struct sg_fault_words words;
    unsigned count;
    uint64_t up_due; /* the link is down until then; SG_NEVER: it is not */
    struct active active[SG_FAULT_RULES];
    unsigned late_count;
    struct {
        uint64_t due;
        uint32_t vector;
    } late[SG_FAULT_LATE];
};

struct sg_faults *sg_faults_new(const struct sg_fault_words *words)
{
    struct sg_faults *f = g_new0(struct sg_faults, 1);

    f->words = *words;
    f->up_due = SG_NEVER;
    return f;
}

void sg_faults_free(struct sg_faults *f)
{
    g_free(f);
}

bool sg_faults_any(const struct sg_faults *f)
{
    return f->count || f->late_count || f->up_due != SG_NEVER;
}

bool sg_faults_has(const struct sg_faults *f, enum sg_fault_point point)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (f->active[i].rule.point == point) {
            return true;
        }
    }
    return false;
}

/* ---- setting ---- */

/* Rules that are being read. */
struct reader {
    const struct sg_fault_words *words;
    struct sg_fault_rule rules[SG_FAULT_RULES];
    unsigned count, number; /* rules so far; of the text, with requests to draw */
    char *err;
    size_t err_len;
};

/* The message names the rule. */
static bool complain(struct reader *r, const char *text, size_t len, const char *why)
{
    enum { SHOWN = 60 };
    size_t n = SG_MIN(len, (size_t)SHOWN);
    char shown[SHOWN + 1];

    for (size_t i = 0; i < n; i++) {
        shown[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    }
    shown[n] = 0;
    snprintf(r->err, r->err_len, "fault rule %u, '%s%s': %s", r->number, shown,
             n < len ? "..." : "", why);
    return false;
}

/* Room for 'n' more. */
static bool has_room(struct reader *r, unsigned n, const char *text, size_t len)
{
    return n <= SG_FAULT_RULES - r->count || complain(r, text, len, "there are more than 64 rules");
}

static bool read_one(struct reader *r, const char *text, size_t len)
{
    struct sg_fault_rule rule;
    struct sg_fault_lot lot;
    char why[160], drawn[SG_FAULT_TEXT];
    int kind;

    r->number++;
    kind = sg_fault_parse(text, len, r->words, &rule, &lot, why, sizeof(why));
    if (kind < 0) {
        return complain(r, text, len, why);
    }
    if (kind > 0) {
        if (!has_room(r, 1, text, len)) {
            return false;
        }
        r->rules[r->count++] = rule;
        return true;
    }
    if (!has_room(r, (unsigned)lot.rules, text, len)) {
        return false;
    }
    for (unsigned i = 0; i < lot.rules; i++) {
        sg_fault_draw(&lot, i, drawn);
        kind = sg_fault_parse(drawn, strlen(drawn), r->words, &r->rules[r->count++], &lot, why,
                              sizeof(why));
        sg_assert(kind == 1);
    }
    return true;
}

/* Rules end with ";" or the line, which may end with a comment. */
static bool read_all(struct reader *r, const char *text)
{
    size_t len;

    while (*text) {
        text += strspn(text, " \t\r\n;");
        if (*text == '#') {
            text += strcspn(text, "\n");
            continue;
        }
        len = strcspn(text, ";\n#");
        if (len && !read_one(r, text, len)) {
            return false;
        }
        text += len;
    }
    return true;
}

bool sg_faults_set(struct sg_faults *f, const char *text, uint64_t now, char *err, size_t len)
{
    struct reader *r = g_new0(struct reader, 1);
    bool done;

    r->words = &f->words;
    r->err = err;
    r->err_len = len;
    done = read_all(r, text);
    for (unsigned i = 0; done && i < r->count; i++) {
        f->active[i] = (struct active){
            .rule = r->rules[i],
            .begins = now + r->rules[i].after,
            .ends = SG_NEVER,
            .due = now + r->rules[i].after,
        };
        if (!r->rules[i].nth && r->rules[i].lasts != SG_NEVER) {
            f->active[i].ends = f->active[i].begins + r->rules[i].lasts;
        }
    }
    if (done) {
        f->count = r->count;
        f->up_due = f->up_due == SG_NEVER ? SG_NEVER : now;
    }
    g_free(r);
    return done;
}

/* ---- occurrences ---- */

/* Counts one occurrence; is it one that the rule concerns? */
static bool concerns(struct active *a, uint64_t now)
{
    const struct sg_fault_rule *r = &a->rule;
    uint64_t first = r->nth ? r->nth : 1;

    if (now < a->begins || now >= a->ends) {
        return false;
    }
    a->seen++;
    return a->applied < r->times && a->seen >= first && (a->seen - first) % r->every == 0;
}

static void apply(struct active *a, uint64_t now)
{
    if (!a->applied && a->rule.nth && a->rule.lasts != SG_NEVER) {
        a->ends = now + a->rule.lasts;
    }
    a->applied++;
}

struct sg_fault_act sg_faults_at(struct sg_faults *f, enum sg_fault_point point, uint32_t which,
                                 uint64_t now)
{
    struct sg_fault_act act = { .effect = SG_EFFECT_NONE };

    for (unsigned i = 0; i < f->count; i++) {
        struct active *a = &f->active[i];

        if (a->rule.point != point || a->rule.timed || (a->rule.only && a->rule.which != which)) {
            continue;
        }
        if (concerns(a, now) && act.effect == SG_EFFECT_NONE) {
            apply(a, now);
            act = (struct sg_fault_act){ .effect = a->rule.effect, .value = a->rule.value };
        }
    }
    return act;
}

bool sg_faults_unreachable(const struct sg_faults *f, uint64_t now)
{
    for (unsigned i = 0; i < f->count; i++) {
        const struct active *a = &f->active[i];
        const struct sg_fault_rule *r = &a->rule;

        if (r->effect == SG_EFFECT_ONES && r->times == SG_FAULT_ALWAYS && r->every == 1 &&
            !r->only && (r->nth <= 1 || a->applied) && now >= a->begins && now < a->ends) {
            return true;
        }
    }
    return false;
}

/* ---- times ---- */

bool sg_faults_delay(struct sg_faults *f, uint32_t vector, uint64_t until)
{
    if (f->late_count == SG_FAULT_LATE) {
        return false;
    }
    f->late[f->late_count].due = until;
    f->late[f->late_count++].vector = vector;
    return true;
}

static bool is_waiting(const struct active *a)
{
    return a->rule.timed && a->applied < a->rule.times;
}

uint64_t sg_faults_next(const struct sg_faults *f)
{
    uint64_t next = f->up_due;

    for (unsigned i = 0; i < f->late_count; i++) {
        next = SG_MIN(next, f->late[i].due);
    }
    for (unsigned i = 0; i < f->count; i++) {
        if (is_waiting(&f->active[i])) {
            next = SG_MIN(next, f->active[i].due);
        }
    }
    return next;
}

/* The first of those that are due, which keeps their order. */
static bool take_late(struct sg_faults *f, uint64_t now, struct sg_fault_act *act)
{
    unsigned first = f->late_count;

    for (unsigned i = 0; i < f->late_count; i++) {
        if (f->late[i].due <= now &&
            (first == f->late_count || f->late[i].due < f->late[first].due)) {
            first = i;
        }
    }
    if (first == f->late_count) {
        return false;
    }
    *act = (struct sg_fault_act){ SG_EFFECT_SPURIOUS, f->late[first].vector };
    f->late_count--;
    memmove(&f->late[first], &f->late[first + 1], (f->late_count - first) * sizeof(f->late[0]));
    return true;
}

/* Times that were missed (the clock made a leap) count as one. */
static bool take_timed(struct active *a, uint64_t now, struct sg_fault_act *act)
{
    if (!is_waiting(a) || a->due > now) {
        return false;
    }
    a->applied++;
    a->due += a->rule.period;
    if (a->due <= now) {
        a->due = now + a->rule.period;
    }
    *act = (struct sg_fault_act){ .effect = a->rule.effect, .value = a->rule.value };
    return true;
}

/* A link that goes down again meanwhile comes up at the later time. */
static void remember_link(struct sg_faults *f, uint64_t now, const struct sg_fault_act *act)
{
    if (act->effect == SG_EFFECT_DOWN) {
        f->up_due = f->up_due == SG_NEVER ? now + act->value : SG_MAX(f->up_due, now + act->value);
    }
}

bool sg_faults_take(struct sg_faults *f, uint64_t now, struct sg_fault_act *act)
{
    if (take_late(f, now, act)) {
        return true;
    }
    if (f->up_due <= now) {
        f->up_due = SG_NEVER;
        *act = (struct sg_fault_act){ .effect = SG_EFFECT_UP };
        return true;
    }
    for (unsigned i = 0; i < f->count; i++) {
        if (take_timed(&f->active[i], now, act)) {
            remember_link(f, now, act);
            return true;
        }
    }
    return false;
}

void sg_faults_reset(struct sg_faults *f)
{
    f->late_count = 0;
}

/* ---- text ---- */

/* Rules are text without quotes (fault_rules.c). */
char *sg_faults_json(const struct sg_faults *f)
{
    GString *all = g_string_new("{\"rules\": [");

    for (unsigned i = 0; i < f->count; i++) {
        const struct active *a = &f->active[i];

        g_string_append_printf(all,
                               "%s{\"rule\": \"%s\", \"point\": \"%s\", \"seen\": %" PRIu64
                               ", \"applied\": %" PRIu64 ", \"spent\": %s}",
                               i ? ", " : "", a->rule.text, sg_fault_point_name(a->rule.point),
                               a->seen, a->applied, a->applied >= a->rule.times ? "true" : "false");
    }
    g_string_append_printf(all, "], \"late\": %u}", f->late_count);
    return g_string_free(all, false);
}
