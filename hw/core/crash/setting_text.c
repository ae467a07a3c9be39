/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings of a domain as text: one row of a table for each. */
#include "base/bytes.h"
#include "crash/setting_text.h"

enum setting_type { SETTING_SWITCH, SETTING_NAMED, SETTING_32, SETTING_64 };

struct setting {
    const char *name;
    enum setting_type type;
    bool of_limits;
    size_t offset;
    int (*parse)(const char *name); /* of a NAMED one */
    unsigned count;                 /* of its names */
    uint64_t max;                   /* of a number; 0: any */
};

/* One type for the functions that name values. */
#define NAMER(what)                            \
    static const char *name_##what(unsigned v) \
    {                                          \
        return sg_persist_##what##_name(v);    \
    }
NAMER(domain)
NAMER(pace)
NAMER(order)
NAMER(untracked)

#define CONFIG(field) .offset = offsetof(struct sg_persist_config, field)
#define LIMIT(field) .of_limits = true, .offset = offsetof(struct sg_persist_limits, field)

/* Memory that a domain may take for a file that anybody may have written. */
enum { S0_MAX = 64 << 20, LINE_STORES_MAX = 4096, STORES_MAX = 16 << 20 };

/* clang-format off */
static const struct setting settings[] = {
    { "domain", SETTING_NAMED, CONFIG(domain), sg_persist_domain_parse, SG_PERSIST_DOMAINS },
    { "untracked", SETTING_NAMED, CONFIG(untracked), sg_persist_untracked_parse,
      SG_PERSIST_UNTRACKED_KINDS },
    { "ddio", SETTING_SWITCH, CONFIG(ddio) },
    { "cpu-tracking", SETTING_SWITCH, CONFIG(cpu_tracking) },
    { "store-buffer", SETTING_SWITCH, CONFIG(store_buffer) },
    { "placement-order", SETTING_NAMED, CONFIG(placement_order), sg_persist_order_parse,
      SG_PERSIST_ORDERS },
    { "poison-on-mismatch", SETTING_SWITCH, CONFIG(poison_on_mismatch) },
    { "eviction", SETTING_NAMED, CONFIG(eviction), sg_persist_pace_parse, SG_PERSIST_PACES },
    { "drain", SETTING_NAMED, CONFIG(drain), sg_persist_pace_parse, SG_PERSIST_PACES },
    { "posted-drain", SETTING_NAMED, CONFIG(posted_drain), sg_persist_pace_parse,
      SG_PERSIST_PACES },
    { "one-in", SETTING_32, CONFIG(one_in) },
    { "placement-delay", SETTING_64, CONFIG(placement_delay_ns) },
    { "flush-latency", SETTING_64, CONFIG(flush_latency_ns) },
    { "flush-latency-random", SETTING_64, CONFIG(flush_latency_random_ns) },
    { "untracked-flush-max", SETTING_64, CONFIG(untracked_flush_max) },
    { "seed", SETTING_64, LIMIT(seed) },
    { "s0-octets", SETTING_32, LIMIT(s0_octets), .max = S0_MAX },
    { "s1-octets", SETTING_32, LIMIT(s1_octets), .max = S0_MAX },
    { "line-stores", SETTING_32, LIMIT(line_stores), .max = LINE_STORES_MAX },
    { "stores", SETTING_32, LIMIT(stores), .max = STORES_MAX },
};
/* clang-format on */

static const char *value_name(const struct setting *s, unsigned value)
{
    static const struct {
        int (*parse)(const char *name);
        const char *(*name)(unsigned value);
    } names[] = {
        { sg_persist_domain_parse, name_domain },
        { sg_persist_pace_parse, name_pace },
        { sg_persist_order_parse, name_order },
        { sg_persist_untracked_parse, name_untracked },
    };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(names); i++) {
        if (names[i].parse == s->parse) {
            return names[i].name(value);
        }
    }
    return "?";
}

void sg_crash_settings_text(const struct sg_persist_config *config,
                            const struct sg_persist_limits *limits, GString *out)
{
    for (unsigned i = 0; i < SG_ARRAY_SIZE(settings); i++) {
        const struct setting *s = &settings[i];
        const uint8_t *at = (s->of_limits ? (const uint8_t *)limits : (const uint8_t *)config);

        if (!at) {
            continue;
        }
        at += s->offset;
        g_string_append_printf(out, "%s=", s->name);
        switch (s->type) {
        case SETTING_SWITCH:
            g_string_append(out, *(const bool *)at ? "on" : "off");
            break;
        case SETTING_NAMED:
            g_string_append(out, value_name(s, *at));
            break;
        case SETTING_32:
            g_string_append_printf(out, "%u", *(const uint32_t *)at);
            break;
        case SETTING_64:
            g_string_append_printf(out, "%llu",
                                   (unsigned long long)*(const uint64_t *)(const void *)at);
            break;
        }
        g_string_append_c(out, '\n');
    }
}

static const char *set_number(const struct setting *s, const char *value, void *at)
{
    uint64_t max = s->type == SETTING_32 ? UINT32_MAX : UINT64_MAX;
    guint64 number;

    max = s->max ? s->max : max;
    if (!g_ascii_string_to_unsigned(value, 10, 0, max, &number, NULL)) {
        return "a setting whose number is out of range";
    }
    if (s->type == SETTING_32) {
        *(uint32_t *)at = (uint32_t)number;
    } else {
        *(uint64_t *)at = number;
    }
    return NULL;
}

static const char *set(const struct setting *s, const char *value, void *at)
{
    int number;

    if (s->type == SETTING_SWITCH) {
        *(bool *)at = strcmp(value, "on") == 0;
        return strcmp(value, "on") && strcmp(value, "off") ? "a switch that is not on or off"
                                                           : NULL;
    }
    if (s->type == SETTING_NAMED) {
        number = s->parse(value);
        if (number < 0 || number >= (int)s->count) {
            return "a setting whose value is not known";
        }
        *(uint8_t *)at = (uint8_t)number;
        return NULL;
    }
    return set_number(s, value, at);
}

/* One line without its end. */
static const char *parse_line(const char *line, struct sg_persist_config *config,
                              struct sg_persist_limits *limits)
{
    const char *value = strchr(line, '=');
    struct sg_persist_limits ignored;
    const struct setting *s;

    if (!value) {
        return "a setting without value";
    }
    for (s = settings; s < settings + SG_ARRAY_SIZE(settings); s++) {
        if (strlen(s->name) == (size_t)(value - line) &&
            strncmp(s->name, line, strlen(s->name)) == 0) {
            uint8_t *to =
                s->of_limits ? (uint8_t *)(limits ? limits : &ignored) : (uint8_t *)config;

            return set(s, value + 1, to + s->offset);
        }
    }
    return "a setting that is not known";
}

const char *sg_crash_settings_parse(const char *text, struct sg_persist_config *config,
                                    struct sg_persist_limits *limits)
{
    char **lines = g_strsplit(text, "\n", -1);
    const char *wrong = NULL;

    for (unsigned i = 0; lines[i] && !wrong; i++) {
        wrong = lines[i][0] ? parse_line(lines[i], config, limits) : NULL;
    }
    g_strfreev(lines);
    return wrong;
}
