/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that is revoked while a request uses it.  A queue pair caches what it looked
 * up for as long as the protection table's counters say that nothing has changed; so the counters
 * must never wrap.
 */
#include "mpe_rig.h"
#include "verbs/memory/tpt.h"
#include "verbs/state/adapter_state.h"

/* A counter of 32 bits would wrap at the next step. */
static const uint64_t nearly_round = UINT32_MAX;

/* A Write of side 0 that stops in the middle, because the peer acknowledges nothing. */
static void begin_half_written(uint32_t len)
{
    struct md_wr w;

    begin_slow(0);
    w = wr(0, SG_WR_WRITE, 1, 0, len, 0);
    post(0, w);
    expect_none(0);
}

/* The owner deregisters the region, or moves it to another domain. */
static enum sg_status revoke(struct pair_side *s, bool give)
{
    struct sg_cmd_modify_mr c = { .hdr.opcode = SG_ADMIN_MODIFY_MR };

    if (!give) {
        return md_cmd_id(&s->md, SG_ADMIN_DEREG_MR, s->stag);
    }
    sg_put_le32(&c.stag, s->stag);
    sg_put_le32(&c.mask, SG_MR_MOD_PD);
    sg_put_le32(&c.pd, md_create_pd(&s->md));
    return md_cmd(&s->md, &c, sizeof(c), NULL);
}

/* The region is revoked, after a number of other changes of the table. */
static void source_goes(void)
{
    static const uint64_t others[] = { 0, 1, nearly_round };
    struct sg_eqe e;
    size_t i;

    for (i = 0; i < 2 * SG_ARRAY_SIZE(others); i++) {
        struct pair_side *s = &pair.side[0];

        T_CONTEXT("round %zu, %llu other changes", i, (unsigned long long)others[i / 2]);
        begin_half_written(PAIR_BUF);
        memset(pair_buf(&pair, 0), 0x77, PAIR_BUF);
        s->md.a->tpt->epoch += others[i / 2];
        T_EQ_U64(revoke(s, i % 2), SG_OK);
        pair_pass(&pair, 1000000000);
        expect(0, 1, SG_WC_LOC_PROT_ERR);
        T_EQ_U64(pair_buf(&pair, 1)[PAIR_BUF - 1], 0); /* the rest was not sent */
        while (md_next_async(&pair.side[1].md, &e)) {
        }
        end();
    }
}

/* The region of a Flush becomes a shorter one under the same STag. */
static void target_becomes_another(void)
{
    struct md *md = &pair.side[1].md;
    uint32_t stag;

    place_begin(NULL, NULL);
    pm[1].later = 1;
    pm[1].later_ns = 1000000;
    stag = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_SHA256);
    ask(flush_of(1, stag, 0, 4096, P | R));
    expect_none(0);
    T_EQ_U64(md_cmd_id(md, SG_ADMIN_DEREG_MR, stag), SG_OK);
    md->a->tpt->serial += nearly_round;
    T_EQ_U64(region(1, 0, 8192, ALL_RIGHTS, SG_HASH_SHA256), stag);
    pair_pass(&pair, 2000000);
    expect_refused(1, SG_WC_REM_ACCESS_ERR, 0, 1, 0);
    T_EQ_U64(test_pm_count(&pm[1], TEST_PM_FLUSH), 1);
    place_end();
}

static const struct t_case cases[] = {
    { "the source of a Write goes in the middle of it", source_goes },
    { "the region of a Flush becomes another", target_becomes_another },
};

T_MAIN(cases)
