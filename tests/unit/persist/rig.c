/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rig.h"

#include "base/bytes.h"

static void cut_due(void *opaque)
{
    ((struct dom_rig *)opaque)->cuts_due++;
}

static const struct sg_persist_ops ops = { .cut_due = cut_due };

void rig_init(struct dom_rig *r)
{
    memset(r, 0, sizeof(*r));
    sg_persist_config_init(&r->config);
    sg_persist_limits_init(&r->limits);
    r->config.cpu_tracking = true;
    r->config.placement_delay_ns = 0;
    r->config.posted_drain = SG_PERSIST_EAGER;
    r->limits.check = true;
    r->limits.log_events = 256;
    r->pc = 0x400000;
}

void rig_up(struct dom_rig *r, size_t size)
{
    struct sg_persist_extent extent = { .base = RIG_BASE, .size = size, .name = "pmem0" };

    r->size = size;
    extent.visible = r->visible = g_malloc0(size);
    extent.media = r->media = g_malloc0(size);
    r->p = sg_persist_new(&r->config, &r->limits, &ops, r);
    T_EQ_INT(sg_persist_add(r->p, &extent), 0);
}

void rig_down(struct dom_rig *r)
{
    sg_persist_free(r->p);
    g_free(r->visible);
    g_free(r->media);
    r->p = NULL;
}

void rig_simple(struct dom_rig *r, enum sg_persist_domain domain)
{
    rig_init(r);
    r->config.domain = domain;
    rig_up(r, 65536);
}

void rig_configure(struct dom_rig *r)
{
    T_NULL(sg_persist_configure(r->p, &r->config));
}

static struct sg_persist_source adapter(uint32_t qpn, uint64_t off)
{
    return (struct sg_persist_source){
        .agent = SG_PERSIST_ADAPTER,
        .qpn = qpn,
        .at = 0x5000 + off,
    };
}

static struct sg_persist_source cpu(struct dom_rig *r, unsigned vcpu)
{
    r->pc += 4;
    return (struct sg_persist_source){
        .agent = SG_PERSIST_CPU,
        .unit = vcpu,
        .at = r->pc,
    };
}

void rig_write(struct dom_rig *r, uint32_t qpn, uint64_t off, const void *buf, size_t len)
{
    struct sg_persist_source who = adapter(qpn, off);

    T_TRUE(sg_persist_dma_write(r->p, &who, RIG_BASE + off, buf, len));
}

void rig_write_u64(struct dom_rig *r, uint32_t qpn, uint64_t off, uint64_t value)
{
    uint8_t buf[8];

    sg_put_le64(buf, value);
    rig_write(r, qpn, off, buf, sizeof(buf));
}

enum sg_pm_result rig_flush(struct dom_rig *r, uint32_t qpn, uint64_t off, uint64_t len,
                            unsigned flags)
{
    struct sg_persist_source who = adapter(qpn, off);
    struct sg_pm_op op = { .len = len, .flags = flags };

    who.msn = 1;
    return sg_persist_flush(r->p, &who, RIG_BASE + off, &op);
}

static void store(struct dom_rig *r, unsigned vcpu, uint64_t off, uint64_t value, unsigned flags)
{
    struct sg_persist_source who = cpu(r, vcpu);
    uint8_t buf[8];

    sg_put_le64(buf, value);
    T_TRUE(sg_persist_cpu_store(r->p, &who, RIG_BASE + off, buf, sizeof(buf),
                                flags | SG_PERSIST_STORE_WRITE));
}

void rig_store(struct dom_rig *r, unsigned vcpu, uint64_t off, uint64_t value)
{
    store(r, vcpu, off, value, 0);
}

void rig_store_nt(struct dom_rig *r, unsigned vcpu, uint64_t off, uint64_t value)
{
    store(r, vcpu, off, value, SG_PERSIST_STORE_NT);
}

void rig_cpu_flush(struct dom_rig *r, unsigned vcpu, uint64_t off, enum sg_persist_cpu_flush kind)
{
    struct sg_persist_source who = cpu(r, vcpu);

    sg_persist_cpu_flush(r->p, &who, RIG_BASE + off, kind);
}

void rig_sfence(struct dom_rig *r, unsigned vcpu)
{
    struct sg_persist_source who = cpu(r, vcpu);

    sg_persist_cpu_fence(r->p, &who, SG_PERSIST_SFENCE);
}

uint64_t rig_visible(const struct dom_rig *r, uint64_t off)
{
    return sg_get_le64(r->visible + off);
}

uint64_t rig_media(const struct dom_rig *r, uint64_t off)
{
    return sg_get_le64(r->media + off);
}

struct sg_persist_report *rig_cut_report(struct dom_rig *r, enum sg_persist_outcome outcome,
                                         uint64_t seed)
{
    struct sg_persist_policy policy = { .outcome = outcome, .seed = seed };
    struct sg_persist_report *report;

    sg_assert_persist_state(r->p, true);
    report = sg_persist_cut(r->p, &policy);
    memcpy(r->visible, r->media, r->size);
    sg_persist_restart(r->p);
    sg_assert_persist_state(r->p, true);
    return report;
}

void rig_cut(struct dom_rig *r, enum sg_persist_outcome outcome, uint64_t seed)
{
    sg_persist_report_free(rig_cut_report(r, outcome, seed));
}

uint64_t rig_outcomes_of(const struct dom_rig *proto, rig_scene *scene,
                         unsigned (*of)(const struct dom_rig *r), unsigned seeds)
{
    uint64_t set = 0;

    for (unsigned seed = 1; seed <= seeds; seed++) {
        struct dom_rig r = *proto;
        unsigned value;

        r.limits.seed = seed;
        rig_up(&r, 65536);
        scene(&r);
        rig_cut(&r, SG_PERSIST_OUTCOME_RANDOM, seed);
        value = of(&r);
        T_TRUE(value < 64);
        set |= 1ull << value;
        rig_down(&r);
    }
    return set;
}

static uint64_t outcome_offset;

static unsigned at_offset(const struct dom_rig *r)
{
    return SG_MIN(rig_media(r, outcome_offset), 64);
}

uint64_t rig_outcomes(const struct dom_rig *proto, rig_scene *scene, uint64_t off, unsigned seeds)
{
    outcome_offset = off;
    return rig_outcomes_of(proto, scene, at_offset, seeds);
}
