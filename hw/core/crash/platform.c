/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Platforms by name, and their settings. */
#include "crash/platform.h"

static const char persistence[] = "persistence-domain=";

static const char *const told_name[] = {
    [SG_CRASH_TOLD_NOTHING] = "not-told",
    [SG_CRASH_TOLD_QUEUE] = "memory-controller",
    [SG_CRASH_TOLD_CACHE] = "cpu-cache",
    [SG_CRASH_TOLD_UNKNOWN] = "unknown",
};

/* The weakest domain that keeps what the guest was told. */
static const uint8_t told_least[] = {
    [SG_CRASH_TOLD_NOTHING] = SG_PERSIST_NONE,
    [SG_CRASH_TOLD_QUEUE] = SG_PERSIST_ADR,
    [SG_CRASH_TOLD_CACHE] = SG_PERSIST_EADR,
    [SG_CRASH_TOLD_UNKNOWN] = SG_PERSIST_NONE,
};

static const char *const arrivals_name[SG_CRASH_ARRIVALS] = {
    [SG_CRASH_LATE] = "late",
    [SG_CRASH_EARLY] = "early",
    [SG_CRASH_ANY] = "any",
};

const char *sg_crash_arrivals_name(enum sg_crash_arrivals arrivals)
{
    return arrivals_name[arrivals];
}

int sg_crash_arrivals_parse(const char *name)
{
    for (int i = 0; i < SG_CRASH_ARRIVALS; i++) {
        if (strcmp(arrivals_name[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

void sg_crash_platform_name(const struct sg_crash_platform *platform,
                            char name[SG_CRASH_PLATFORM_NAME])
{
    g_snprintf(name, SG_CRASH_PLATFORM_NAME, "%s,ddio=%s", sg_persist_domain_name(platform->domain),
               platform->ddio ? "on" : "off");
}

static int ddio_parse(const char *word)
{
    return strcmp(word, "off") == 0 ? 0 : strcmp(word, "on") == 0 ? 1 : -1;
}

/* A list of words as a set of bits; "all": the first n.  0: empty or unknown. */
static unsigned parse_list(const char *list, int (*parse)(const char *word), unsigned n)
{
    char **words = g_strsplit(list, ",", -1);
    unsigned set = 0;
    bool good = true;

    for (unsigned i = 0; words[i] && good; i++) {
        int number = parse(words[i]);

        if (strcmp(words[i], "all") == 0) {
            set |= (1u << n) - 1;
        } else if (number >= 0 && number < (int)n) {
            set |= 1u << number;
        } else {
            good = false;
        }
    }
    g_strfreev(words);
    return good ? set : 0;
}

unsigned sg_crash_platforms_parse(const char *domains, const char *ddio,
                                  struct sg_crash_platform out[SG_CRASH_PLATFORMS],
                                  const char **wrong)
{
    unsigned domain_set = parse_list(domains, sg_persist_domain_parse, SG_PERSIST_DOMAINS);
    unsigned ddio_set = parse_list(ddio, ddio_parse, 2), count = 0;

    *wrong = !domain_set ? "an unknown domain: none, adr, eadr, whole and all are known"
             : !ddio_set ? "DDIO is on, off or all"
                         : NULL;
    for (unsigned d = 0; d < SG_PERSIST_DOMAINS && !*wrong; d++) {
        for (unsigned on = 2; on--;) {
            if (domain_set >> d & 1 && ddio_set >> on & 1) {
                out[count++] = (struct sg_crash_platform){ .domain = (uint8_t)d, .ddio = on };
            }
        }
    }
    return count;
}

void sg_crash_platform_settings(const struct sg_crash_platform *platform,
                                struct sg_persist_config *config, struct sg_persist_limits *limits)
{
    sg_persist_config_init(config);
    config->domain = platform->domain;
    config->ddio = platform->ddio;
    config->store_buffer = true;
    config->eviction = config->drain = config->posted_drain = SG_PERSIST_NEVER;
    config->placement_order = SG_PERSIST_RANDOM_ORDER;
    config->placement_delay_ns = SG_NEVER / 8;
    sg_persist_limits_exact(limits);
}

enum sg_crash_told sg_crash_told_parse(const char *text)
{
    const char *at = text ? strstr(text, persistence) : NULL;
    size_t len;

    while (at && at != text && at[-1] != '\n') {
        at = strstr(at + 1, persistence);
    }
    if (!at) {
        return SG_CRASH_TOLD_NOTHING;
    }
    at += strlen(persistence);
    len = strcspn(at, "\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(told_name); i++) {
        if (strlen(told_name[i]) == len && strncmp(told_name[i], at, len) == 0) {
            return (enum sg_crash_told)i;
        }
    }
    return SG_CRASH_TOLD_UNKNOWN;
}

const char *sg_crash_told_name(enum sg_crash_told told)
{
    return told_name[told];
}

bool sg_crash_platform_claims(const struct sg_crash_platform *platform, enum sg_crash_told told)
{
    return platform->domain >= told_least[told];
}
