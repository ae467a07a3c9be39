/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table "what survives a power cut", row by row and column by column: the set of values that
 * many seeds leave is exactly the set that the model permits.  A missing value would mean that
 * the emulator is too kind or too cruel; an extra one would break a promise.
 */
#include "rig.h"

enum { SEEDS = 200 };

/* Each scene brings the value 1 to offset 0 and into one stage, over a 0 on the media. */

static void in_s4(struct dom_rig *r)
{
    rig_write_u64(r, 1, 0, 1);
    T_EQ_INT(rig_flush(r, 1, 0, 8, SG_FLUSH_PERSISTENT), SG_PM_DONE);
}

static void in_s3_by_cpu(struct dom_rig *r)
{
    rig_store(r, 0, 0, 1);
    rig_cpu_flush(r, 0, 0, SG_PERSIST_CLWB);
    rig_sfence(r, 0);
}

static void in_s3_by_nt(struct dom_rig *r)
{
    rig_store_nt(r, 0, 0, 1);
    rig_sfence(r, 0);
}

static void in_s3_by_dma(struct dom_rig *r)
{
    r->config.ddio = false;
    rig_configure(r);
    rig_write_u64(r, 1, 0, 1);
}

static void in_s2_by_dma(struct dom_rig *r)
{
    rig_write_u64(r, 1, 0, 1);
}

static void in_s2_by_cpu(struct dom_rig *r)
{
    rig_store(r, 0, 0, 1);
}

static void in_s2_flushed_unfenced(struct dom_rig *r)
{
    rig_store(r, 0, 0, 1);
    rig_cpu_flush(r, 0, 0, SG_PERSIST_CLWB);
}

static void in_s2_visible_by_flush_g(struct dom_rig *r)
{
    rig_write_u64(r, 1, 0, 1);
    T_EQ_INT(rig_flush(r, 1, 0, 8, SG_FLUSH_GLOBAL), SG_PM_DONE);
}

static void in_wc_buffer(struct dom_rig *r)
{
    rig_store_nt(r, 0, 0, 1);
}

static void in_store_buffer(struct dom_rig *r)
{
    r->config.store_buffer = true;
    rig_configure(r);
    rig_store(r, 0, 0, 1);
}

static void in_s1(struct dom_rig *r)
{
    r->config.posted_drain = SG_PERSIST_NEVER;
    rig_configure(r);
    rig_write_u64(r, 1, 0, 1);
    T_EQ_U64(rig_visible(r, 0), 0);
}

static void in_s0(struct dom_rig *r)
{
    r->config.placement_delay_ns = 1000;
    rig_configure(r);
    rig_write_u64(r, 1, 0, 1);
    T_EQ_U64(rig_visible(r, 0), 0);
}

#define LOST SET1(0)
#define KEPT SET1(1)
#define EITHER SET2(0, 1)

static const struct {
    const char *name;
    rig_scene *scene;
    uint64_t allowed[SG_PERSIST_DOMAINS];
} rows[] = {
    { "S4", in_s4, { KEPT, KEPT, KEPT, KEPT } },
    { "S3, CLWB and SFENCE", in_s3_by_cpu, { EITHER, KEPT, KEPT, KEPT } },
    { "S3, non-temporal and SFENCE", in_s3_by_nt, { EITHER, KEPT, KEPT, KEPT } },
    { "S3, DMA without DDIO", in_s3_by_dma, { EITHER, KEPT, KEPT, KEPT } },
    { "S2, DMA with DDIO", in_s2_by_dma, { EITHER, EITHER, KEPT, KEPT } },
    { "S2, CPU store", in_s2_by_cpu, { EITHER, EITHER, KEPT, KEPT } },
    { "S2, CLWB without fence", in_s2_flushed_unfenced, { EITHER, EITHER, KEPT, KEPT } },
    { "S2, Flush with G", in_s2_visible_by_flush_g, { EITHER, EITHER, KEPT, KEPT } },
    { "S2', non-temporal", in_wc_buffer, { EITHER, EITHER, EITHER, KEPT } },
    { "S2', store buffer", in_store_buffer, { EITHER, EITHER, EITHER, KEPT } },
    { "S1", in_s1, { EITHER, EITHER, EITHER, KEPT } },
    { "S0", in_s0, { EITHER, EITHER, EITHER, EITHER } },
};

static void column(enum sg_persist_domain domain)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dom_rig proto;

        T_CONTEXT("%s, domain %s", rows[i].name, sg_persist_domain_name(domain));
        rig_init(&proto);
        proto.config.domain = domain;
        T_EQ_U64(rig_outcomes(&proto, rows[i].scene, 0, SEEDS), rows[i].allowed[domain]);
    }
}

static void none(void)
{
    column(SG_PERSIST_NONE);
}

static void adr(void)
{
    column(SG_PERSIST_ADR);
}

static void eadr(void)
{
    column(SG_PERSIST_EADR);
}

static void whole(void)
{
    column(SG_PERSIST_WHOLE);
}

/* lose-all and keep-all leave the smallest and the largest value of the sets. */
static void ends(void)
{
    for (unsigned d = 0; d < SG_PERSIST_DOMAINS; d++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            for (unsigned keep = 0; keep < 2; keep++) {
                struct dom_rig r;

                T_CONTEXT("%s, domain %s, keep %u", rows[i].name, sg_persist_domain_name(d), keep);
                rig_simple(&r, d);
                rows[i].scene(&r);
                rig_cut(&r, keep ? SG_PERSIST_KEEP_ALL : SG_PERSIST_LOSE_ALL, 0);
                T_EQ_U64(rig_media(&r, 0),
                         keep ? rows[i].allowed[d] != LOST : rows[i].allowed[d] == KEPT);
                rig_down(&r);
            }
        }
    }
}

/* "Any subset of lines": two lines in one stage, all four outcomes where each may be lost. */
static void two_lines_s2(struct dom_rig *r)
{
    rig_write_u64(r, 1, 0, 1);
    rig_store(r, 0, 64, 1);
}

static void two_lines_s3(struct dom_rig *r)
{
    for (uint64_t off = 0; off < 128; off += 64) {
        rig_store(r, 0, off, 1);
        rig_cpu_flush(r, 0, off, SG_PERSIST_CLWB);
    }
    rig_sfence(r, 0);
}

static void two_lines_wc(struct dom_rig *r)
{
    rig_store_nt(r, 0, 0, 1);
    rig_store_nt(r, 0, 64, 1);
}

static unsigned both(const struct dom_rig *r)
{
    return rig_media(r, 0) + 2 * rig_media(r, 64);
}

static void subsets(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    T_EQ_U64(rig_outcomes_of(&proto, two_lines_s2, both, SEEDS), 0xf);
    T_EQ_U64(rig_outcomes_of(&proto, two_lines_wc, both, SEEDS), 0xf);
    proto.config.domain = SG_PERSIST_NONE;
    T_EQ_U64(rig_outcomes_of(&proto, two_lines_s3, both, SEEDS), 0xf);
}

/* The first three atoms as bits. */
static unsigned three_atoms(const struct dom_rig *r)
{
    return (rig_media(r, 0) != 0) + 2 * (rig_media(r, 8) != 0) + 4 * (rig_media(r, 16) != 0);
}

static void queued_stores(struct dom_rig *r)
{
    rig_store(r, 0, 0, 1);
    rig_store(r, 0, 8, 1);
    rig_cpu_flush(r, 0, 0, SG_PERSIST_CLWB);
    rig_sfence(r, 0);
    rig_store(r, 0, 16, 1); /* in the cache */
}

static void queued_write(struct dom_rig *r)
{
    uint8_t line[64];

    memset(line, 1, sizeof(line));
    rig_write(r, 1, 0, line, sizeof(line));
    rig_cpu_flush(r, 0, 0, SG_PERSIST_CLWB);
    rig_sfence(r, 0);
}

/* Without ADR a line has any of its older states: it may have left the cache, and drained, then. */
static void queue_drains_at_any_time(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.domain = SG_PERSIST_NONE;
    T_EQ_U64(rig_outcomes_of(&proto, queued_stores, three_atoms, 300), SET3(0, 3, 7) | SET1(1));
    T_EQ_U64(rig_outcomes_of(&proto, queued_write, three_atoms, 300), SET3(0, 3, 7) | SET1(1));
}

static void overwritten(struct dom_rig *r)
{
    uint8_t line[64];

    rig_store(r, 0, 5 * 64, 1);
    for (unsigned i = 2; i <= 10; i++) {
        memset(line, 0, sizeof(line));
        line[0] = i;
        rig_write(r, 1, 5 * 64, line, sizeof(line));
    }
}

/* A line that DMA overwrites repeatedly loses its history in the end: then it is one version. */
static void versions(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    T_EQ_U64(rig_outcomes(&proto, overwritten, 5 * 64, SEEDS), SET2(0, 10));
}

static const struct t_case cases[] = {
    { "table of survival, domain none", none },
    { "the write-pending queue drains at any time", queue_drains_at_any_time },
    { "table of survival, domain adr", adr },
    { "table of survival, domain eadr", eadr },
    { "table of survival, domain whole", whole },
    { "lose-all and keep-all are the ends of the table's sets", ends },
    { "any subset of lines survives", subsets },
    { "versions in a line's history are bounded", versions },
};

T_MAIN(cases)
