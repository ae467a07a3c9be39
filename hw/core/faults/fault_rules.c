/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The grammar of fault rules: words separated by blanks, first the point, then NAME or NAME=VALUE.
 * Tables say which effects a point has and which value each name takes.
 */
#include "faults/fault_rules.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bytes.h"
#include "faults/fault_values.h"
#include "staghorn/admin.h"

struct effect_row {
    const char *name;
    uint8_t effect, takes;
    bool optional;  /* the value may be left out: */
    uint64_t value; /* then it is this */
    bool timed;
    bool lasting; /* without times= it goes on for ever */
};

static const struct effect_row command_effects[] = {
    { "fail", SG_EFFECT_FAIL, VALUE_STATUS, true, SG_ENOMEM },
    { "slow", SG_EFFECT_SLOW, VALUE_TIME },
    { "stuck", SG_EFFECT_STUCK, VALUE_NONE },
    { "silent", SG_EFFECT_SILENT, VALUE_NONE },
    { NULL },
};

static const struct effect_row interrupt_effects[] = {
    { "late", SG_EFFECT_LATE, VALUE_TIME },
    { "lost", SG_EFFECT_LOST, VALUE_NONE },
    { "wrong", SG_EFFECT_WRONG, VALUE_VECTOR },
    { "spurious", SG_EFFECT_SPURIOUS, VALUE_VECTOR, .timed = true },
    { NULL },
};

static const struct effect_row registers_effects[] = {
    { "ones", SG_EFFECT_ONES, VALUE_NONE, .lasting = true },
    { NULL },
};

static const struct effect_row dma_effects[] = {
    { "refuse", SG_EFFECT_REFUSE, VALUE_NONE },
    { NULL },
};

static const struct effect_row completion_effects[] = {
    { "late", SG_EFFECT_LATE, VALUE_TIME },
    { NULL },
};

static const struct effect_row message_effects[] = {
    { "terminate", SG_EFFECT_TERMINATE, VALUE_NONE },
    { "fin", SG_EFFECT_FIN, VALUE_NONE },
    { "rst", SG_EFFECT_RST, VALUE_NONE },
    { "mute", SG_EFFECT_MUTE, VALUE_NONE },
    { NULL },
};

static const struct effect_row link_effects[] = {
    { "down", SG_EFFECT_DOWN, VALUE_TIME, .timed = true },
    { NULL },
};

static const struct effect_row error_effects[] = {
    { "correctable", SG_EFFECT_CORRECTABLE, VALUE_NONE, .timed = true },
    { "nonfatal", SG_EFFECT_NONFATAL, VALUE_NONE, .timed = true },
    { "fatal", SG_EFFECT_FATAL, VALUE_NONE, .timed = true },
    { NULL },
};

static const struct {
    const char *name, *filter; /* the word that restricts it, or NULL */
    uint8_t takes;
    const struct effect_row *effects;
} points[SG_POINTS] = {
    [SG_POINT_COMMAND] = { "command", "op", VALUE_COMMAND, command_effects },
    [SG_POINT_INTERRUPT] = { "interrupt", "vector", VALUE_VECTOR, interrupt_effects },
    [SG_POINT_REGISTERS] = { "registers", "offset", VALUE_OFFSET, registers_effects },
    [SG_POINT_DMA] = { "dma", "dir", VALUE_DIRECTION, dma_effects },
    [SG_POINT_COMPLETION] = { "completion", "cq", VALUE_NUMBER, completion_effects },
    [SG_POINT_OUTBOUND] = { "outbound", "qp", VALUE_NUMBER, message_effects },
    [SG_POINT_INBOUND] = { "inbound", "qp", VALUE_NUMBER, message_effects },
    [SG_POINT_LINK] = { "link", NULL, VALUE_NONE, link_effects },
    [SG_POINT_ERROR] = { "error", NULL, VALUE_NONE, error_effects },
};

/* Words for all points, of rules that count occurrences or of timed ones. */
static const struct condition_row {
    const char *name;
    uint8_t takes;
    bool counted, timed;
    size_t member;
} conditions[] = {
    { "nth", VALUE_COUNT, true, false, offsetof(struct sg_fault_rule, nth) },
    { "every", VALUE_COUNT, true, false, offsetof(struct sg_fault_rule, every) },
    { "times", VALUE_TIMES, true, true, offsetof(struct sg_fault_rule, times) },
    { "after", VALUE_TIME, true, true, offsetof(struct sg_fault_rule, after) },
    { "for", VALUE_TIME, true, false, offsetof(struct sg_fault_rule, lasts) },
    { "period", VALUE_TIME, false, true, offsetof(struct sg_fault_rule, period) },
};

static const struct lot_row {
    const char *name;
    uint8_t takes;
    size_t member;
} lots[] = {
    { "seed", VALUE_SEED, offsetof(struct sg_fault_lot, seed) },
    { "rules", VALUE_COUNT, offsetof(struct sg_fault_lot, rules) },
    { "within", VALUE_TIME, offsetof(struct sg_fault_lot, within) },
};

/* For messages. */
#define POINTS_TEXT "command, interrupt, registers, dma, completion, outbound, inbound, link, error"

const char *sg_fault_point_name(enum sg_fault_point point)
{
    return points[point].name;
}

/* The state of one rule's parser. */
struct parser {
    const struct sg_fault_words *words;
    char *err;
    size_t err_len;
};

static __attribute__((format(printf, 2, 3))) bool refuse(struct parser *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->err, p->err_len, fmt, ap);
    va_end(ap);
    return false;
}

/* The value of 'name', which is 'text' or, if that is NULL, missing. */
static bool take_value(struct parser *p, const char *name, unsigned kind, const char *text,
                       uint64_t *value)
{
    if (kind == VALUE_NONE ? text != NULL : !text || !sg_fault_value(p->words, kind, text, value)) {
        return refuse(p, "%s takes %s", name, sg_fault_value_text(kind));
    }
    return true;
}

/* ---- words ---- */

/* The names of a point's effects, for messages. */
static void list_effects(const struct effect_row *row, char *buf, size_t len)
{
    size_t at = 0;

    for (*buf = 0; row->name && at < len; row++) {
        at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", row->name);
    }
}

static bool take_effect(struct parser *p, struct sg_fault_rule *r, const struct effect_row *row,
                        const char *text)
{
    if (r->effect != SG_EFFECT_NONE) {
        return refuse(p, "%s is a second effect: a rule has one", row->name);
    }
    r->effect = row->effect;
    r->timed = row->timed;
    r->value = row->value;
    if (row->lasting && !r->times) {
        r->times = SG_FAULT_ALWAYS;
    }
    return (!text && row->optional) || take_value(p, row->name, row->takes, text, &r->value);
}

static bool take_filter(struct parser *p, struct sg_fault_rule *r, const char *text)
{
    uint64_t value;

    if (!take_value(p, points[r->point].filter, points[r->point].takes, text, &value)) {
        return false;
    }
    r->only = true;
    r->which = (uint32_t)value;
    return true;
}

/* A word of a rule; text: behind its "=", or NULL. */
static bool take_word(struct parser *p, struct sg_fault_rule *r, const char *name, const char *text,
                      unsigned *given)
{
    const struct effect_row *row = points[r->point].effects;
    char names[80];

    for (; row->name; row++) {
        if (!strcmp(name, row->name)) {
            return take_effect(p, r, row, text);
        }
    }
    if (points[r->point].filter && !strcmp(name, points[r->point].filter)) {
        return take_filter(p, r, text);
    }
    for (unsigned i = 0; i < SG_ARRAY_SIZE(conditions); i++) {
        if (!strcmp(name, conditions[i].name)) {
            *given |= 1u << i;
            return take_value(p, name, conditions[i].takes, text,
                              (uint64_t *)(void *)((char *)r + conditions[i].member));
        }
    }
    list_effects(points[r->point].effects, names, sizeof(names));
    return refuse(p, "%s has no word %s; its effects are %s", points[r->point].name, name, names);
}

/* What the words mean together. */
static bool settle(struct parser *p, struct sg_fault_rule *r, unsigned given)
{
    char names[80];

    if (r->effect == SG_EFFECT_NONE) {
        list_effects(points[r->point].effects, names, sizeof(names));
        return refuse(p, "it has no effect: one of %s", names);
    }
    for (unsigned i = 0; i < SG_ARRAY_SIZE(conditions); i++) {
        if (given & 1u << i && !(r->timed ? conditions[i].timed : conditions[i].counted)) {
            return refuse(p, "%s has no meaning for a rule that %s", conditions[i].name,
                          r->timed ? "acts at a time" : "counts occurrences");
        }
    }
    if (r->timed && r->only) {
        return refuse(p, "%s has no meaning for a rule that acts at a time",
                      points[r->point].filter);
    }
    if (!r->times) {
        r->times = r->lasts != SG_NEVER || r->period ? SG_FAULT_ALWAYS : 1;
    }
    if (r->timed && r->times > 1 && !r->period) {
        return refuse(p, "more than one time needs period=");
    }
    if (r->period && r->period < SG_FAULT_PERIOD_MIN) {
        return refuse(p, "period is %u us at least", SG_FAULT_PERIOD_MIN / 1000);
    }
    return true;
}

/* The next word, ended by a NUL; its value, or NULL. */
static char *next_word(char **at, char **value)
{
    char *word = *at + strspn(*at, " \t\r"), *end = word + strcspn(word, " \t\r");

    *at = *end ? end + 1 : end;
    *end = 0;
    *value = strchr(word, '=');
    if (*value) {
        *(*value)++ = 0;
    }
    return word;
}

static bool parse_lot(struct parser *p, char *at, struct sg_fault_lot *lot)
{
    bool seeded = false;
    char *word, *value;
    unsigned i;

    *lot = (struct sg_fault_lot){ .rules = 4, .within = 10000000000ull };
    while (*(word = next_word(&at, &value))) {
        for (i = 0; i < SG_ARRAY_SIZE(lots) && strcmp(word, lots[i].name) != 0; i++) {
        }
        if (i == SG_ARRAY_SIZE(lots)) {
            return refuse(p, "draw has no word %s; it has seed, rules, within", word);
        }
        if (!take_value(p, word, lots[i].takes, value,
                        (uint64_t *)(void *)((char *)lot + lots[i].member))) {
            return false;
        }
        seeded |= i == 0;
    }
    if (!seeded) {
        return refuse(p, "draw needs seed=NUMBER");
    }
    return lot->rules <= SG_FAULT_RULES || refuse(p, "at most %d rules", SG_FAULT_RULES);
}

static bool parse_rule(struct parser *p, const char *point, char *at, struct sg_fault_rule *r)
{
    char *word, *value;
    unsigned given = 0, i;

    for (i = 0; i < SG_POINTS && strcmp(point, points[i].name) != 0; i++) {
    }
    if (i == SG_POINTS) {
        return refuse(p, "it begins with %s, not with %s or draw", point, POINTS_TEXT);
    }
    r->point = (uint8_t)i;
    r->every = 1;
    r->lasts = SG_NEVER;
    while (*(word = next_word(&at, &value))) {
        if (!take_word(p, r, word, value, &given)) {
            return false;
        }
    }
    return settle(p, r, given);
}

/* Copies the words with single blanks between them; false: too long, or not text. */
static bool copy_words(char *to, const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        bool blank = text[i] == ' ' || text[i] == '\t' || text[i] == '\r';

        if (!blank && (text[i] <= 0x20 || text[i] >= 0x7f || text[i] == '"' || text[i] == '\\')) {
            return false;
        }
        if (blank && (!n || to[n - 1] == ' ')) {
            continue;
        }
        if (n == SG_FAULT_TEXT - 1) {
            return false;
        }
        to[n++] = blank ? ' ' : text[i];
    }
    n -= n && to[n - 1] == ' ';
    to[n] = 0;
    return true;
}

int sg_fault_parse(const char *text, size_t len, const struct sg_fault_words *words,
                   struct sg_fault_rule *rule, struct sg_fault_lot *lot, char *err, size_t err_len)
{
    struct parser p = { words, err, err_len };
    char copy[SG_FAULT_TEXT], *at = copy, *point, *value;

    memset(rule, 0, sizeof(*rule));
    if (!copy_words(rule->text, text, len)) {
        refuse(&p, "it is longer than %d octets, or has octets that are no text",
               SG_FAULT_TEXT - 1);
        return -1;
    }
    memcpy(copy, rule->text, sizeof(copy));
    point = next_word(&at, &value);
    if (value) {
        refuse(&p, "%s takes no value", point);
        return -1;
    }
    if (!strcmp(point, "draw")) {
        return parse_lot(&p, at, lot) ? 0 : -1;
    }
    return parse_rule(&p, point, at, rule) ? 1 : -1;
}
