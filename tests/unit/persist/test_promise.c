/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Only the promise of a Flush, under all kinds of trouble: several adapters and connections whose
 * writes share lines, placed late and out of order, failing media, changing configurations, cuts
 * armed at any event.  Data that a successful Flush covers survive.  A Flush that fails promises
 * nothing, but never breaks an older promise.
 */
#include "base/bytes.h"
#include "rig.h"

enum { DEVICES = 2, QPS = 3, OWNERS = DEVICES * QPS, ATOMS = 1024, SIZE = ATOMS * 8, STEPS = 250 };

struct promise_world {
    struct dom_rig r;
    uint64_t rng, now, value;
    uint64_t promised[ATOMS]; /* value at the time of an answered Flush */
    uint64_t since[ATOMS];    /* values above this were written after that Flush began */
    struct sg_pm_op op[OWNERS];
    uint64_t flush_off[OWNERS];
    uint64_t began[OWNERS]; /* the last value written before the Flush */
    uint64_t answered, refused, cuts, kept_back;
};

static uint64_t below(struct promise_world *w, uint64_t n)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return w->rng % n;
}

static struct sg_persist_source source_of(unsigned owner)
{
    return (struct sg_persist_source){
        .agent = SG_PERSIST_ADAPTER,
        .unit = owner % DEVICES,
        .qpn = 10 + owner,
    };
}

/* Each owner has every sixth atom, so that lines are shared. */
static void write_atom(struct promise_world *w, unsigned owner)
{
    struct sg_persist_source who = source_of(owner);
    uint64_t atom = below(w, ATOMS / OWNERS) * OWNERS + owner;
    uint8_t buf[8];

    sg_put_le64(buf, ++w->value);
    if (below(w, 10) == 0) {
        /* The adapter settles before it executes one (E14). */
        sg_persist_settle(w->r.p, who.unit, who.qpn);
        T_TRUE(sg_persist_atom_store(w->r.p, &who, RIG_BASE + atom * 8, buf));
    } else {
        T_TRUE(sg_persist_dma_write(w->r.p, &who, RIG_BASE + atom * 8, buf, 8));
    }
}

static void flush(struct promise_world *w, unsigned owner)
{
    struct sg_persist_source who = source_of(owner);
    struct sg_pm_op *op = &w->op[owner];
    enum sg_pm_result result;

    if (op->phase == SG_PM_NEW) {
        w->flush_off[owner] = below(w, SIZE);
        op->len = below(w, 4) ? 1 + below(w, 500) : SIZE;
        op->len = SG_MIN(op->len, SIZE - w->flush_off[owner]);
        op->flags = SG_FLUSH_PERSISTENT;
        w->began[owner] = w->value;
    }
    result = sg_persist_flush(w->r.p, &who, RIG_BASE + w->flush_off[owner], op);
    if (result != SG_PM_DONE) {
        w->refused += result == SG_PM_FAILED;
        return;
    }
    w->answered++;
    for (uint64_t atom = owner; atom < ATOMS; atom += OWNERS) {
        if (atom * 8 >= w->flush_off[owner] && atom * 8 + 8 <= w->flush_off[owner] + op->len) {
            w->promised[atom] = rig_visible(&w->r, atom * 8);
            w->since[atom] = w->began[owner];
        }
    }
}

static void random_config(struct promise_world *w)
{
    struct sg_persist_config *c = &w->r.config;

    c->domain = below(w, SG_PERSIST_DOMAINS);
    c->ddio = below(w, 2);
    c->eviction = below(w, SG_PERSIST_PACES);
    c->drain = below(w, SG_PERSIST_PACES);
    c->posted_drain = below(w, SG_PERSIST_PACES);
    c->one_in = 1 + below(w, 10);
    c->placement_delay_ns = below(w, 2) * 3000;
    c->placement_order = below(w, SG_PERSIST_ORDERS);
    c->flush_latency_ns = below(w, 2) * 1000;
    c->flush_latency_random_ns = below(w, 2) * 1000;
    c->cpu_tracking = below(w, 2);
    c->poison_on_mismatch = below(w, 2);
}

static void trouble(struct promise_world *w)
{
    struct sg_persist_faults f = { .lines_left = below(w, 100) };
    struct sg_persist_arm arm = { .kind = SG_PERSIST_ARM_EVENT, .count = 1 + below(w, 60) };

    switch (below(w, 8)) {
    case 0:
        f.read_only = below(w, 2);
        f.wears_out = below(w, 2);
        f.flush_fails = below(w, 3);
        sg_persist_set_faults(w->r.p, 0, &f);
        break;
    case 1:
        sg_persist_mark_bad(w->r.p, RIG_BASE + below(w, SIZE), 1, 1 + below(w, 2));
        break;
    case 2:
        sg_persist_clear_bad(w->r.p, RIG_BASE, SIZE);
        break;
    case 3:
        random_config(w);
        rig_configure(&w->r);
        break;
    case 4:
        sg_persist_arm(w->r.p, &arm);
        break;
    default: /* mostly no fault */
        sg_persist_set_faults(w->r.p, 0, &(struct sg_persist_faults){ 0 });
    }
}

static void judge(struct promise_world *w)
{
    for (uint64_t atom = 0; atom < ATOMS; atom++) {
        uint64_t found = rig_media(&w->r, atom * 8);

        if (found != w->promised[atom] && found <= w->since[atom]) {
            T_FAIL("atom %" PRIu64 ": %" PRIu64 ", promised was %" PRIu64, atom, found,
                   w->promised[atom]);
        }
        w->kept_back += rig_visible(&w->r, atom * 8) != found;
        /* What is there now survives the next cut as well. */
        w->promised[atom] = found;
        w->since[atom] = w->value;
    }
}

static void cut(struct promise_world *w)
{
    struct sg_persist_policy policy = {
        .outcome = below(w, SG_PERSIST_OUTCOMES),
        .seed = w->rng,
        .addr = RIG_BASE + below(w, SIZE),
        .len = below(w, SIZE),
    };

    sg_persist_report_free(sg_persist_cut(w->r.p, &policy));
    judge(w);
    memcpy(w->r.visible, w->r.media, SIZE);
    sg_persist_restart(w->r.p);
    memset(w->op, 0, sizeof(w->op));
    w->cuts++;
}

static void run(struct promise_world *w, uint64_t seed)
{
    T_CONTEXT("seed %" PRIu64, seed);
    w->rng = seed * 0x9e3779b97f4a7c15ull + 1;
    w->now = w->value = 0;
    memset(w->promised, 0, sizeof(w->promised));
    memset(w->since, 0, sizeof(w->since));
    memset(w->op, 0, sizeof(w->op));
    rig_init(&w->r);
    random_config(w);
    w->r.limits.seed = seed;
    w->r.limits.s0_octets = 200;
    w->r.limits.s1_octets = 100;
    rig_up(&w->r, SIZE);
    for (unsigned step = 0; step < STEPS; step++) {
        switch (below(w, 24)) {
        case 0:
            trouble(w);
            break;
        case 1:
        case 2:
            w->now += below(w, 2000);
            sg_persist_tick(w->r.p, w->now);
            break;
        case 3 ... 7:
            flush(w, below(w, OWNERS));
            break;
        default:
            write_atom(w, below(w, OWNERS));
        }
        if (sg_persist_frozen(w->r.p) || below(w, 120) == 0) {
            cut(w);
        }
    }
    cut(w);
    rig_down(&w->r);
}

static void kept(void)
{
    unsigned seeds = getenv("SG_SANITIZED") && getenv("SG_SANITIZED")[0] == '1' ? 500 : 4000;
    struct promise_world *w = g_new0(struct promise_world, 1);

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run(w, seed);
    }
    T_NOTE("%" PRIu64 " cuts; %" PRIu64 " Flushes answered, %" PRIu64 " refused; %" PRIu64
           " atoms lost that were visible",
           w->cuts, w->answered, w->refused, w->kept_back);
    T_TRUE(w->answered > seeds && w->refused > seeds && w->kept_back > seeds);
    g_free(w);
}

static const struct t_case cases[] = {
    { "E10 what an answered Flush covered survives, whatever happens", kept },
};

T_MAIN(cases)
