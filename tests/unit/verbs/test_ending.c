/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reset ends all objects: for the guest at once, when it writes the register; inside the adapter in
 * short turns, however many objects there are.
 */
#include "pair_rig.h"
#include "verbs/adapter_impl.h"
#include "verbs/memory/tpt.h"

enum { PDS = 1000, BUDGET = 1 << 20, FORBIDDEN = 0xee };

static uint64_t time_ns;

/* Each call advances the clock by the time of a whole turn. */
static uint64_t slow_now(void *host)
{
    (void)host;
    return time_ns += SG_TURN_NS;
}

static struct sg_adapter *adapter(int side)
{
    return pair.side[side].md.a;
}

static void begin_many(void)
{
    int i;

    begin(NULL);
    for (i = 0; i < PDS; i++) {
        md_create_pd(&pair.side[0].md);
    }
    time_ns = pair.side[0].h.now_ns;
    pair.side[0].h.ops.now = slow_now;
    pair.side[0].md.hold = true;
}

static struct sg_adapter_census census_of(int side)
{
    struct sg_adapter_census c;

    sg_adapter_census(adapter(side), &c);
    return c;
}

static void run_other(void)
{
    while (sg_adapter_run(adapter(1), BUDGET)) {
    }
}

/* Returns the turns of side 0 until it has nothing more to do; no single turn does everything. */
static unsigned turns(void)
{
    unsigned n = 1;

    while (sg_adapter_run(adapter(0), BUDGET)) {
        n++;
    }
    return n;
}

/*
 * A peer's Write comes when the reset is done for the guest, but not inside the adapter: the memory
 * belongs to the guest again.  Old doorbells and object numbers have no effect.
 */
static void nothing_of_before(void)
{
    struct pair_side *s = &pair.side[0];
    uint64_t errors;

    begin_many();
    memset(pair_buf(&pair, 0), FORBIDDEN, 4096);
    fill(1, 0, 4096, 5);
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_RESET);
    T_EQ_U64(md_read(&s->md, SG_REG_STATUS) & SG_STATUS_READY, 0);
    T_EQ_U64(census_of(0).pds + census_of(0).qps + census_of(0).conns + census_of(0).mrs, 0);
    T_TRUE(sg_adapter_host_memory(adapter(0)) > 0);
    pair.side[1].md.hold = true;
    post(1, wr(1, SG_WR_WRITE, 1, 0, 4096, 0));
    post(1, wr(1, SG_WR_SEND, 2, 0, 64, 0));
    run_other();
    T_EQ_INT(pair_buf(&pair, 0)[0], FORBIDDEN);
    md_setup_rings(&s->md);
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_ENABLE);
    T_EQ_U64(md_read(&s->md, SG_REG_STATUS) & SG_STATUS_READY, SG_STATUS_READY);
    errors = adapter(0)->stats.guest_errors;
    md_sq_doorbell(&s->qp);
    T_TRUE(adapter(0)->stats.guest_errors > errors);
    T_TRUE(turns() > 4);
    run_other();
    T_EQ_INT(pair_buf(&pair, 0)[0], FORBIDDEN);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR); /* the peer was reset */
    pair_stop(&pair);
}

/* A driver that restarts at once waits for its first command, and gets a clean adapter. */
static void commands_wait(void)
{
    const struct sg_admin_hdr pd = { .opcode = SG_ADMIN_CREATE_PD };
    struct pair_side *s = &pair.side[0];
    struct sg_admin_rsp rsp;
    unsigned n = 0;

    begin_many();
    md_write(&s->md, SG_REG_CTRL, 0);
    md_setup_rings(&s->md);
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_ENABLE);
    md_submit(&s->md, &pd, sizeof(pd));
    while (sg_adapter_run(adapter(0), BUDGET)) {
        if (adapter(0)->ending->under_way || adapter(0)->tpt->retired.full) {
            T_FALSE(md_reap(&s->md, &rsp));
        }
        n++;
    }
    T_TRUE(n > 4);
    T_TRUE(md_reap(&s->md, &rsp));
    T_EQ_U64(rsp.status, SG_OK);
    T_EQ_U64(sg_get_le32(&rsp.id), 1);
    T_EQ_U64(census_of(0).pds, 1);
    T_TRUE(sg_adapter_host_memory(adapter(0)) < 100);
    pair_stop(&pair);
}

/* Several resets before the first is done, and the adapter freed in the middle. */
static void again_and_again(void)
{
    struct pair_side *s = &pair.side[0];
    int i;

    begin_many();
    for (i = 0; i < 3; i++) {
        md_write(&s->md, SG_REG_CTRL, SG_CTRL_RESET);
        sg_adapter_run(adapter(0), BUDGET);
        md_setup_rings(&s->md);
        md_write(&s->md, SG_REG_CTRL, SG_CTRL_ENABLE);
        sg_adapter_run(adapter(0), BUDGET);
    }
    T_TRUE(adapter(0)->ending->under_way);
    pair_stop(&pair);
}

/* When a machine loses its power, all connections are gone before it starts again. */
static void at_once(void)
{
    begin_many();
    md_write(&pair.side[0].md, SG_REG_CTRL, SG_CTRL_RESET);
    T_TRUE(adapter(0)->ending->under_way);
    sg_adapter_finish_reset(adapter(0));
    T_FALSE(adapter(0)->ending->under_way);
    T_EQ_U64(sg_adapter_host_memory(adapter(0)), 0);
    T_FALSE(sg_adapter_run(adapter(0), BUDGET));
    pair_stop(&pair);
}

/* New firmware begins with its own limits, and old regions end as after a reset. */
static void renewed(void)
{
    struct sg_adapter_config config;

    begin_many();
    pair_default_config(&config);
    config.max_pd = 2;
    sg_adapter_renew(adapter(0), &config);
    T_TRUE(turns() > 4);
    T_EQ_U64(sg_adapter_host_memory(adapter(0)), 0);
    pair.side[0].md.hold = false;
    pair.side[0].h.brk = pair.base_brk[0];
    md_enable(&pair.side[0].md);
    md_create_pd(&pair.side[0].md);
    md_create_pd(&pair.side[0].md);
    T_EQ_U64(md_cmd(&pair.side[0].md, &(struct sg_admin_hdr){ .opcode = SG_ADMIN_CREATE_PD },
                    sizeof(struct sg_admin_hdr), NULL),
             SG_ENOMEM);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "after a reset nothing of before is there", nothing_of_before },
    { "commands wait until all is gone", commands_wait },
    { "resets during a reset, and removal", again_and_again },
    { "without power: all at once", at_once },
    { "new firmware: as after a reset, with other limits", renewed },
};

T_MAIN(cases)
