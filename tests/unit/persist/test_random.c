/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random histories compared with the oracle: whatever the configuration, no cut leaves a line in a
 * forbidden state, and the invariants hold after every event.
 */
#include "base/bytes.h"
#include "oracle.h"

enum { SIZE = ORACLE_LINES * SG_PERSIST_LINE, CUTS = 3, EVENTS = 120 };

static uint64_t rng;

static uint64_t below(uint64_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % n;
}

static uint8_t octet;

static void fresh(uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        buf[i] = ++octet;
    }
}

/* Mostly within a few lines, so that lines are written repeatedly. */
static uint64_t place(size_t len)
{
    return below(4) ? below(6 * SG_PERSIST_LINE) : below(SIZE - len + 1);
}

static void random_config(struct dom_rig *r)
{
    struct sg_persist_config *c = &r->config;

    rig_init(r);
    c->domain = below(SG_PERSIST_DOMAINS);
    c->ddio = below(3) > 0;
    c->store_buffer = below(3) == 0;
    c->eviction = below(SG_PERSIST_PACES);
    c->drain = below(SG_PERSIST_PACES);
    c->posted_drain = below(SG_PERSIST_PACES);
    c->one_in = 1 + below(10);
    c->placement_delay_ns = below(2) ? 0 : below(5000);
    r->limits.seed = rng;
    r->limits.line_stores = below(2) ? 8 + below(8) : 64;
    r->limits.s0_octets = 2048;
    r->limits.s1_octets = 1024;
}

static void dma_event(struct oracle *o, uint8_t *buf)
{
    size_t len = below(3) ? 1 + below(96) : 1 + below(512);
    uint64_t off = place(len);

    switch (below(10)) {
    case 8:
        fresh(buf, len);
        oracle_other(o, off, buf, len);
        break;
    case 9:
        oracle_read(o, 0, off, len);
        break;
    case 0:
        oracle_settle(o, 0);
        break;
    case 1:
        oracle_fence_device(o, 0);
        break;
    case 2:
        fresh(buf, 8);
        oracle_atom(o, 0, off & ~7ull, buf);
        break;
    case 3:
        oracle_flush(o, 0, off, len, 1 + below(3));
        break;
    default:
        fresh(buf, len);
        oracle_write(o, 0, off, buf, len);
    }
}

static void cpu_event(struct oracle *o, uint8_t *buf)
{
    static const uint8_t sizes[] = { 1, 2, 4, 8, 8, 8, 16, 32, 64 };
    size_t len = sizes[below(sizeof(sizes))];
    unsigned vcpu = below(4) ? 0 : below(ORACLE_VCPUS);
    uint64_t off = place(len);

    switch (below(6)) {
    case 0:
        oracle_cpu_flush(o, vcpu, off, below(SG_PERSIST_CPU_FLUSHES));
        break;
    case 1:
        oracle_sfence(o, vcpu);
        break;
    default:
        fresh(buf, len);
        oracle_store(o, vcpu, off, buf, len, below(3) == 0);
    }
}

static void run(uint64_t seed)
{
    struct dom_rig r;
    struct oracle o;
    uint8_t buf[512];
    uint64_t now = 0;

    T_CONTEXT("seed %" PRIu64, seed);
    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    random_config(&r);
    rig_up(&r, SIZE);
    oracle_init(&o, &r);
    for (unsigned cut = 0; cut < CUTS; cut++) {
        struct sg_persist_policy policy = {
            .outcome = below(3) ? SG_PERSIST_OUTCOME_RANDOM : below(SG_PERSIST_OUTCOMES),
            .seed = below(3) ? rng : 0,
            .addr = RIG_BASE + below(SIZE),
            .len = 1 + below(1000),
        };

        for (uint64_t n = below(EVENTS); n; n--) {
            switch (below(16)) {
            case 0:
                now += below(3000);
                oracle_tick(&o, now);
                break;
            case 1:
                oracle_deep_flush(&o);
                break;
            case 2 ... 8:
                cpu_event(&o, buf);
                break;
            default:
                dma_event(&o, buf);
            }
        }
        sg_assert_persist_state(r.p, true);
        sg_persist_report_free(sg_persist_cut(r.p, &policy));
        oracle_judge(&o);
        memcpy(r.visible, r.media, SIZE);
        sg_persist_restart(r.p);
        sg_assert_persist_state(r.p, true);
    }
    oracle_fini(&o);
    rig_down(&r);
}

static void histories(void)
{
    unsigned seeds = getenv("SG_SANITIZED") && getenv("SG_SANITIZED")[0] == '1' ? 1500 : 10000;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run(seed);
    }
    T_NOTE("%u histories", seeds);
}

static const struct t_case cases[] = {
    { "random histories of CPUs, adapters and other devices: no cut leaves a forbidden state "
      "(E1 E3 E4 E6-E10 E12-E14)",
      histories },
};

T_MAIN(cases)
