/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Defaults, checks and names of the settings of a persistence domain. */
#include "base/bytes.h"
#include "persist/persist.h"

enum { DEFAULT_ONE_IN = 8, DEFAULT_LINE_STORES = 64, DEFAULT_PLACEMENT_NS = 200000 };

void sg_persist_config_init(struct sg_persist_config *config)
{
    *config = (struct sg_persist_config){
        .domain = SG_PERSIST_ADR,
        .untracked = SG_PERSIST_UNTRACKED_AT_RISK,
        .ddio = true,
        .eviction = SG_PERSIST_NEVER,
        .drain = SG_PERSIST_NEVER,
        .posted_drain = SG_PERSIST_RANDOM,
        .placement_delay_ns = DEFAULT_PLACEMENT_NS,
        .one_in = DEFAULT_ONE_IN,
        .untracked_flush_max = 1u << 20,
    };
}

void sg_persist_limits_init(struct sg_persist_limits *limits)
{
    *limits = (struct sg_persist_limits){
        .seed = 1,
        .log_events = 65536,
        .s0_octets = 1u << 20,
        .s1_octets = 64u << 10,
        .line_stores = DEFAULT_LINE_STORES,
        .stores = 1u << 20,
        .buffer_stores = 56,
        .nt_lines = 64,
    };
}

void sg_persist_limits_exact(struct sg_persist_limits *limits)
{
    *limits = (struct sg_persist_limits){
        .seed = 1,
        .s0_octets = UINT32_MAX,
        .s1_octets = UINT32_MAX,
        .line_stores = 4096,
        .stores = UINT32_MAX / 2,
        .buffer_stores = 4096,
        .nt_lines = 4096,
        .exact = true,
    };
}

static const char *const domain_names[SG_PERSIST_DOMAINS] = {
    [SG_PERSIST_NONE] = "none",
    [SG_PERSIST_ADR] = "adr",
    [SG_PERSIST_EADR] = "eadr",
    [SG_PERSIST_WHOLE] = "whole",
};

static const char *const pace_names[SG_PERSIST_PACES] = {
    [SG_PERSIST_NEVER] = "never",
    [SG_PERSIST_RANDOM] = "random",
    [SG_PERSIST_EAGER] = "eager",
};

static const char *const order_names[SG_PERSIST_ORDERS] = {
    [SG_PERSIST_IN_ORDER] = "in-order",
    [SG_PERSIST_RANDOM_ORDER] = "random",
};

static const char *const untracked_names[SG_PERSIST_UNTRACKED_KINDS] = {
    [SG_PERSIST_UNTRACKED_AT_RISK] = "at-risk",
    [SG_PERSIST_UNTRACKED_KEEP] = "keep",
};

static const char *const outcome_names[SG_PERSIST_OUTCOMES] = {
    [SG_PERSIST_LOSE_ALL] = "lose-all",
    [SG_PERSIST_KEEP_ALL] = "keep-all",
    [SG_PERSIST_OUTCOME_RANDOM] = "random",
    [SG_PERSIST_WORST_FOR] = "worst-for",
};

static const char *const stage_names[SG_PERSIST_STAGES] = {
    [SG_PERSIST_S0] = "S0", [SG_PERSIST_S1] = "S1", [SG_PERSIST_SB] = "S2'",
    [SG_PERSIST_S2] = "S2", [SG_PERSIST_S3] = "S3",
};

static const char *const fate_names[SG_PERSIST_FATES] = {
    [SG_PERSIST_LOST] = "lost",
    [SG_PERSIST_PARTLY] = "partly",
    [SG_PERSIST_KEPT] = "kept",
    [SG_PERSIST_REFUSED] = "refused",
};

static const char *const event_names[] = {
    [SG_PERSIST_EV_DMA_WRITE] = "dma-write",
    [SG_PERSIST_EV_ATOM_STORE] = "atom-store",
    [SG_PERSIST_EV_SETTLE] = "settle",
    [SG_PERSIST_EV_FORGET] = "forget",
    [SG_PERSIST_EV_DEVICE_FENCE] = "device-fence",
    [SG_PERSIST_EV_FLUSH] = "flush",
    [SG_PERSIST_EV_OTHER_WRITE] = "other-write",
    [SG_PERSIST_EV_CPU_STORE] = "cpu-store",
    [SG_PERSIST_EV_CPU_FLUSH] = "cpu-flush",
    [SG_PERSIST_EV_CPU_FENCE] = "cpu-fence",
    [SG_PERSIST_EV_CPU_SYNC] = "cpu-sync",
    [SG_PERSIST_EV_ORDERLY] = "orderly",
    [SG_PERSIST_EV_DEEP_FLUSH] = "deep-flush",
    [SG_PERSIST_EV_MARK_BAD] = "mark-bad",
    [SG_PERSIST_EV_CLEAR_BAD] = "clear-bad",
    [SG_PERSIST_EV_SET_FAULTS] = "set-faults",
    [SG_PERSIST_EV_MILESTONE] = "milestone",
    [SG_PERSIST_EV_TICK] = "tick",
    [SG_PERSIST_EV_CONFIGURE] = "configure",
    [SG_PERSIST_EV_CUT] = "cut",
    [SG_PERSIST_EV_RESTART] = "restart",
    [SG_PERSIST_EV_DMA_READ] = "dma-read",
    [SG_PERSIST_EV_CPU_LOAD] = "cpu-load",
    [SG_PERSIST_EV_POSTED] = "posted",
    [SG_PERSIST_EV_VISIBLE] = "visible",
    [SG_PERSIST_EV_EVICTED] = "evicted",
    [SG_PERSIST_EV_DRAINED] = "drained",
    [SG_PERSIST_EV_FLUSH_DONE] = "flush-done",
    [SG_PERSIST_EV_FLUSH_FAILED] = "flush-failed",
    [SG_PERSIST_EV_REFUSED] = "refused",
};

const char *sg_persist_doubt(const struct sg_persist_config *c)
{
    if (c->cpu_tracking) {
        return NULL;
    }
    if (c->domain >= SG_PERSIST_EADR) {
        return "CPU stores are not followed: non-temporal ones without a fence count as kept";
    }
    if (c->untracked == SG_PERSIST_UNTRACKED_KEEP) {
        return "CPU stores and flushes are not followed: what CPUs stored counts as kept, flushed "
               "or not, and what adapters placed may count as lost though a CPU flushed it";
    }
    return "CPU stores and flushes are not followed: what CPUs stored, and what adapters placed, "
           "may count as lost though a CPU flushed it";
}

static const char *name_of(const char *const *names, size_t count, unsigned i)
{
    return i < count && names[i] ? names[i] : "?";
}

static int index_of(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++) {
        if (names[i] && strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

const char *sg_persist_domain_name(enum sg_persist_domain domain)
{
    return name_of(domain_names, SG_PERSIST_DOMAINS, domain);
}

const char *sg_persist_pace_name(enum sg_persist_pace pace)
{
    return name_of(pace_names, SG_PERSIST_PACES, pace);
}

const char *sg_persist_order_name(enum sg_persist_order order)
{
    return name_of(order_names, SG_PERSIST_ORDERS, order);
}

const char *sg_persist_untracked_name(enum sg_persist_untracked untracked)
{
    return name_of(untracked_names, SG_PERSIST_UNTRACKED_KINDS, untracked);
}

const char *sg_persist_outcome_name(enum sg_persist_outcome outcome)
{
    return name_of(outcome_names, SG_PERSIST_OUTCOMES, outcome);
}

const char *sg_persist_stage_name(enum sg_persist_stage stage)
{
    return name_of(stage_names, SG_PERSIST_STAGES, stage);
}

const char *sg_persist_fate_name(enum sg_persist_fate fate)
{
    return name_of(fate_names, SG_PERSIST_FATES, fate);
}

const char *sg_persist_event_name(unsigned kind)
{
    return name_of(event_names, SG_ARRAY_SIZE(event_names), kind);
}

int sg_persist_domain_parse(const char *name)
{
    return index_of(domain_names, SG_PERSIST_DOMAINS, name);
}

int sg_persist_pace_parse(const char *name)
{
    return index_of(pace_names, SG_PERSIST_PACES, name);
}

int sg_persist_order_parse(const char *name)
{
    return index_of(order_names, SG_PERSIST_ORDERS, name);
}

int sg_persist_untracked_parse(const char *name)
{
    return index_of(untracked_names, SG_PERSIST_UNTRACKED_KINDS, name);
}

int sg_persist_outcome_parse(const char *name)
{
    return index_of(outcome_names, SG_PERSIST_OUTCOMES, name);
}
