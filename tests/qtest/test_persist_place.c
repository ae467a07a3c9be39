/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The persistence domain and adapters: the placements that survive a cut; failing media. */
#include <glib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "persist_rig.h"
#include "tap.h"

/* A cut keeps data of an answered Flush with P; it may lose others, flushed with G or not. */
static void flushed_or_not(void)
{
    static const char *const domains[] = { "domain=none", "domain=adr", "domain=adr,ddio=off",
                                           "domain=eadr", "domain=whole" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(domains); i++) {
        bool cached = strstr(domains[i], "eadr") || strstr(domains[i], "whole");
        bool queued = cached || strstr(domains[i], "ddio=off");

        T_CONTEXT("%s", domains[i]);
        rig_pair(domains[i]);
        rig_write(0, 1);
        T_EQ_U64(rig_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
        T_EQ_U64(rig_count_media(0, 1, LEN), LEN);
        rig_write(65536, 2);
        T_EQ_U64(rig_flush(65536, SG_FLUSH_GLOBAL), SG_WC_SUCCESS);
        T_EQ_U64(rig_count(65536, 2, LEN), LEN);
        rig_write(131072, 3);
        T_EQ_U64(rig_count(131072, 3, LEN), LEN);
        rig_cut("lose-all");
        T_EQ_U64(rig_count(0, 1, LEN), LEN);
        T_EQ_U64(rig_count(65536, 2, LEN), queued ? LEN : 0);
        T_EQ_U64(rig_count(131072, 3, LEN), queued ? LEN : 0);
        rig_stop();
    }
}

/* A Flush also covers CPU stores, whatever happens to such stores otherwise. */
static void flush_of_stores(void)
{
    rig_pair("untracked=at-risk");
    rig_store(0, 5, LEN);
    rig_store(65536, 6, LEN);
    T_EQ_U64(rig_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    rig_store(131072, 7, 64);
    T_EQ_U64(rig_flush(131072 - LEN + 64, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    rig_store(131072, 8, 64);
    T_EQ_U64(rig_flush(131072 - LEN + 64, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    rig_cut("lose-all");
    T_EQ_U64(rig_count(0, 5, LEN), LEN);
    T_EQ_U64(rig_count(65536, 6, LEN), 0);
    T_EQ_U64(rig_count(131072, 8, 64), 64);
    rig_stop();
}

/* If caches survive, placed and visible data survive the death of QEMU. */
static void placed_and_killed(void)
{
    rig_pair("domain=eadr");
    rig_write(0, 1);
    T_EQ_U64(rig_count(0, 1, LEN), LEN);
    machine_kill(rig.m);
    T_EQ_U64(rig_count_media(0, 1, LEN), LEN);
    unlink(rig.media);
}

/* A placement that waits in the adapter is not visible, and any domain may lose it. */
static void placement_waits(void)
{
    rig_pair("domain=whole,placement-delay=1000000000");
    rig_write(0, 1);
    T_EQ_U64(rig_count(0, 1, LEN), 0);
    T_EQ_U64(rig_flush(0, SG_FLUSH_GLOBAL), SG_WC_SUCCESS);
    T_EQ_U64(rig_count(0, 1, LEN), LEN);
    rig_write(65536, 2);
    rig_cut("lose-all");
    T_EQ_U64(rig_count(0, 1, LEN), LEN);
    T_EQ_U64(rig_count(65536, 2, LEN), 0);
    rig_stop();
}

static void placement_comes_with_time(void)
{
    rig_pair("placement-delay=20000000");
    rig_write(0, 1);
    T_EQ_U64(rig_count(0, 1, LEN), 0);
    machine_pass(rig.m, 40);
    T_EQ_U64(rig_count(0, 1, LEN), LEN);
    rig_stop();
}

/* ---- faults ---- */

static void failing_flushes(void)
{
    static const struct {
        const char *property, *value;
    } rows[] = {
        { "flush-fail", "\"always\"" },
        { "flush-fail", "\"once\"" },
        { "read-only", "\"on\"" },
        { "wear-out", "\"mem1=10\"" },
        { "uncorrectable", "\"mem1@64+64\"" },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%s=%s", rows[i].property, rows[i].value);
        rig_pair("");
        rig_write(0, 1);
        rig_set(rows[i].property, rows[i].value);
        T_TRUE(rig_flush(0, SG_FLUSH_PERSISTENT) != SG_WC_SUCCESS);
        T_EQ_U64(rig_state("flushes-failed"), 1);
        rig_stop();
    }
}

/* Lines that cannot be read outlive QEMU; poisoned ones heal when persisted anew. */
static void bad_lines_stay(void)
{
    g_autofree char *file = NULL, *domain = NULL;

    rig_start(0, PM_MIB, "");
    file = g_strconcat(rig.media, ".bad", NULL);
    domain = g_strdup_printf("bad-file=%s", file);
    machine_stop(rig.m);
    rig_restart(0, PM_MIB, domain);
    rig_set("uncorrectable", "\"mem1@64+64:mem1@65536+4096\"");
    machine_stop(rig.m);
    rig_restart(2, PM_MIB, domain);
    rig_sides(4000);
    T_TRUE(rig_flush(0, SG_FLUSH_PERSISTENT) != SG_WC_SUCCESS);
    rig_set("uncorrectable", "\"mem1@65536+64\"");
    machine_stop(rig.m);
    rig_restart(2, PM_MIB, domain);
    rig_sides(4000);
    T_EQ_U64(rig_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    T_TRUE(rig_flush(65536, SG_FLUSH_PERSISTENT) != SG_WC_SUCCESS);
    rig_stop();
    unlink(file);
}

static void slow_flush(void)
{
    struct sg_cqe c;

    rig_pair("flush-latency=50000000");
    rig_write(0, 1);
    rig_post_flush(0, SG_FLUSH_PERSISTENT);
    T_TRUE(!side_has_completion(&rig.a, &c, 30));
    c = side_completion(&rig.a, 60);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    rig_stop();
}

/* ---- registration ---- */

static void only_with_a_domain(void)
{
    uint32_t access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_FLUSH_PERSISTENT;
    struct sg_cmd_reg_mr c;

    rig_pair("");
    c = md_reg_mr_cmd(rig.b.pd, rig.b.buffer, LEN, access);
    T_EQ_U64(md_cmd(&rig.b.md, &c, sizeof(c), NULL), SG_ENOTPMEM);
    c = md_reg_mr_cmd(rig.b.pd, PM_BASE + ((uint64_t)PM_MIB << 20) - LEN, LEN, access);
    T_EQ_U64(md_cmd(&rig.b.md, &c, sizeof(c), NULL), SG_OK);
    c = md_reg_mr_cmd(rig.b.pd, PM_BASE + ((uint64_t)PM_MIB << 20) - LEN, 2 * LEN, access);
    T_EQ_U64(md_cmd(&rig.b.md, &c, sizeof(c), NULL), SG_ENOTPMEM);
    rig_stop();
}

static const struct t_case cases[] = {
    { "FLU placements at a cut: flushed, visible, neither", flushed_or_not },
    { "a Flush covers stores of CPUs", flush_of_stores },
    { "placements, and QEMU killed", placed_and_killed },
    { "data in the adapter is neither visible nor kept", placement_waits },
    { "data leaves the adapter in time", placement_comes_with_time },
    { "flushes that the medium refuses fail", failing_flushes },
    { "bad lines outlive QEMU", bad_lines_stay },
    { "a slow flush", slow_flush },
    { "registration knows where persistent memory ends", only_with_a_domain },
};

T_MAIN(cases)
