/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The persistence domain as a QEMU object: its properties, the stores that survive a power cut, and
 * the end of QEMU.
 */
#include <glib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "persist_rig.h"
#include "tap.h"

/* ---- properties ---- */

static void expect_refusal(const char *args, const char *part)
{
    g_autofree char *err = NULL;
    int status;

    T_CONTEXT("%s", args);
    status = qtest_refused(args, &err);
    if (status != 1 || !strstr(err, part)) {
        T_FAIL("status %d, \"%s\" is not in: %s", status, part, err);
    }
}

static void command_line(void)
{
#define MACHINE "-machine nvdimm=on -m 64,slots=4,maxmem=8G "
#define DIMM "-object memory-backend-file,id=mem1,size=32M,share=off,mem-path=%s "
    static const struct {
        const char *args, *part;
    } rows[] = {
        { MACHINE "-object staghorn-domain,id=dom0", "no NVDIMM for the domain" },
        { MACHINE "-object staghorn-domain,id=dom0 -object memory-backend-file,id=mem1,size=32M,"
                  "share=on,mem-path=%s -device nvdimm,memdev=mem1",
          "share=off" },
        { MACHINE "-object staghorn-domain,id=dom0 -object memory-backend-ram,id=mem1,size=32M "
                  "-device nvdimm,memdev=mem1",
          "has no file" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0 -device nvdimm,memdev=mem1,label-size=2M",
          "labels" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0 -object staghorn-domain,id=dom1 "
                       "-device nvdimm,memdev=mem1",
          "one persistence domain" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,memdevs=mem1:mem2 "
                       "-device nvdimm,memdev=mem1",
          "'mem2'" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,domain=maybe -device nvdimm,memdev=mem1",
          "none, adr, eadr or whole" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,policy=worst-for:mem9@0+64 "
                       "-device nvdimm,memdev=mem1",
          "'mem9'" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,colour=red -device nvdimm,memdev=mem1",
          "colour" },
    };
    unsigned i;

    rig_make_media(32);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) parts = g_strsplit(rows[i].args, "%s", 2);
        g_autofree char *args = g_strjoinv(rig.media, parts);

        expect_refusal(args, rows[i].part);
    }
    unlink(rig.media);
}

static void bad_values(void)
{
    static const struct {
        const char *property, *value;
    } rows[] = {
        { "domain", "\"ADR\"" },
        { "domain", "\"\"" },
        { "placement-order", "\"any\"" },
        { "posted-drain", "\"sometimes\"" },
        { "eviction", "\"2\"" },
        { "drain", "\"off\"" },
        { "one-in", "0" },
        { "untracked", "\"lose\"" },
        { "policy", "\"\"" },
        { "policy", "\"worst-for\"" },
        { "policy", "\"lose-all:1\"" },
        { "policy", "\"random:x\"" },
        { "policy", "\"worst-for:mem1@0\"" },
        { "policy", "\"worst-for:mem1@0+0\"" },
        { "policy", "\"worst-for:mem1@0x2000000+64\"" },
        { "policy", "\"worst-for:0x1000+64\"" },
        { "policy", "\"worst-for:mem1@0+64:1:2\"" },
        { "arm", "\"event:0\"" },
        { "arm", "\"noon\"" },
        { "arm", "\"event:x\"" },
        { "read-only", "\"perhaps\"" },
        { "read-only", "\"mem2=on\"" },
        { "wear-out", "\"soon\"" },
        { "uncorrectable", "\"64\"" },
        { "uncorrectable", "\"mem1@0+64:mem1@-1+2\"" },
        { "flush-fail", "\"twice\"" },
        { "flush-latency", "\"1+x\"" },
        { "flush-latency", "\"\"" },
        { "memdevs", "\"mem1\"" },
        { "cut", "\"gently\"" },
        { "export-log", "\"/nonexistent/log\"" },
    };
    unsigned i;

    rig_start(0, PM_MIB, "");
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        bool action = i >= G_N_ELEMENTS(rows) - 2;
        g_autofree char *before = rig_get(action ? "policy" : rows[i].property);
        g_autofree char *answer = NULL, *after = NULL;

        T_CONTEXT("%s = %s", rows[i].property, rows[i].value);
        answer = rig_try_set(rows[i].property, rows[i].value);
        if (!strstr(answer, "\"error\"") ||
            !strstr(answer, strcmp(rows[i].property, "cut") ? rows[i].property : "policy")) {
            T_FAIL("answer: %s", answer);
        }
        after = rig_get(action ? "policy" : rows[i].property);
        T_EQ_STR(after, before);
    }
    T_EQ_U64(rig_state("cuts"), 0);
    rig_stop();
}

static void good_values(void)
{
    static const struct {
        const char *property, *value;
    } rows[] = {
        { "domain", "\"none\"" },
        { "domain", "\"whole\"" },
        { "ddio", "false" },
        { "placement-delay", "1000000" },
        { "placement-order", "\"random\"" },
        { "posted-drain", "\"never\"" },
        { "eviction", "\"random\"" },
        { "drain", "\"eager\"" },
        { "one-in", "3" },
        { "untracked", "\"at-risk\"" },
        { "policy", "\"worst-for:mem1@4096+64:7\"" },
        { "policy", "\"random:99\"" },
        { "seed", "12345678901234567890" },
        { "arm", "\"after-flush-answer:3\"" },
        { "arm", "\"event:1000000\"" },
        { "arm", "\"off\"" },
        { "poison-on-mismatch", "true" },
        { "read-only", "\"mem1=on\"" },
        { "wear-out", "\"100\"" },
        { "wear-out", "\"\"" },
        { "uncorrectable", "\"mem1@0+64:0x100001000+128\"" },
        { "uncorrectable", "\"\"" },
        { "flush-fail", "\"always\"" },
        { "flush-fail", "\"mem1=2\"" },
        { "flush-latency", "\"1000+500\"" },
    };
    unsigned i;

    rig_start(0, PM_MIB, "domain=eadr,ddio=off,seed=4,placement-delay=77,policy=lose-all");
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *answer = NULL;

        T_CONTEXT("%s = %s", rows[i].property, rows[i].value);
        rig_set(rows[i].property, rows[i].value);
        answer = rig_get(rows[i].property);
        if (!strstr(answer, rows[i].value)) {
            T_FAIL("it is %s", answer);
        }
    }
    rig_stop();
}

/* This machine's CPUs cannot be tracked: the domain does not try, and reports the consequences. */
static void cpus_not_followed(void)
{
    g_autofree char *tracking = NULL, *state = NULL, *refused = NULL;

    rig_start(0, PM_MIB, "");
    tracking = rig_get("cpu-tracking");
    T_TRUE(strstr(tracking, "false") != NULL);
    state = rig_get("state");
    T_TRUE(strstr(state, "not-trusted") &&
           strstr(state, "CPU stores and flushes are not followed"));
    refused = rig_try_set("cpu-tracking", "true");
    T_TRUE(strstr(refused, "\"error\"") != NULL);
    rig_stop();
}

static void not_at_run_time(void)
{
    g_autofree char *added = NULL, *removed = NULL;

    rig_start(0, PM_MIB, "");
    added = qtest_qmp(rig.m->q, "{\"execute\": \"object-add\", \"arguments\": {\"qom-type\": "
                                "\"staghorn-domain\", \"id\": \"dom1\"}}");
    T_TRUE(strstr(added, "one persistence domain") != NULL);
    removed = qtest_qmp(rig.m->q, "{\"execute\": \"object-del\", \"arguments\": "
                                  "{\"id\": \"dom0\"}}");
    T_TRUE(strstr(removed, "\"error\"") != NULL);
    T_EQ_U64(rig_state("cuts"), 0);
    rig_stop();
}

/* ---- stores and cuts ---- */

/* ---- stores ---- */

static void stores(void)
{
    static const struct {
        const char *domain, *untracked, *policy;
        bool kept;
    } rows[] = {
        { "adr", "keep", "lose-all", true },     { "adr", "at-risk", "lose-all", false },
        { "adr", "at-risk", "keep-all", true },  { "none", "at-risk", "lose-all", false },
        { "eadr", "at-risk", "lose-all", true }, { "whole", "at-risk", "lose-all", true },
    };
    unsigned i;

    rig_start(0, PM_MIB, "");
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *domain = g_strdup_printf("\"%s\"", rows[i].domain);
        g_autofree char *untracked = g_strdup_printf("\"%s\"", rows[i].untracked);

        T_CONTEXT("%s, %s, %s", rows[i].domain, rows[i].untracked, rows[i].policy);
        rig_set("domain", domain);
        rig_set("untracked", untracked);
        rig_store(i * 65536, 0x40 + i, LEN);
        T_EQ_U64(rig_count(i * 65536, 0x40 + i, LEN), LEN);
        rig_cut(rows[i].policy);
        T_EQ_U64(rig_count(i * 65536, 0x40 + i, LEN), rows[i].kept ? LEN : 0);
    }
    rig_stop();
}

/* The same seed gives the same outcome, and lines are kept or lost as wholes. */
static void random_outcomes(void)
{
    static uint8_t kept[3][64];
    unsigned round, i;

    rig_start(0, PM_MIB, "untracked=at-risk");
    for (round = 0; round < 3; round++) {
        rig_store(0, 0, 64 * 64);
        rig_set("persist", "true");
        rig_store(0, 1, 64 * 64);
        rig_cut(round < 2 ? "random:5" : "random:6");
        for (i = 0; i < 64; i++) {
            size_t n = rig_count(i * 64, 1, 64);

            T_TRUE(n == 0 || n == 64);
            kept[round][i] = n == 64;
        }
    }
    T_TRUE(memcmp(kept[0], kept[1], 64) == 0);
    T_TRUE(memcmp(kept[0], kept[2], 64) != 0);
    T_TRUE(memchr(kept[0], 0, 64) && memchr(kept[0], 1, 64));
    rig_stop();
}

static void reset_keeps(void)
{
    rig_start(0, PM_MIB, "untracked=at-risk,policy=lose-all");
    rig_store(0, 7, LEN);
    machine_reset(rig.m);
    T_EQ_U64(rig_count(0, 7, LEN), LEN);
    T_EQ_U64(rig_state("cuts"), 0);
    rig_stop();
}

static void quit_loses(void)
{
    rig_start(0, PM_MIB, "");
    rig_store(0, 7, LEN);
    rig_set("persist", "true");
    rig_store(65536, 8, LEN);
    machine_stop(rig.m);
    T_EQ_U64(rig_count_media(0, 7, LEN), LEN);
    T_EQ_U64(rig_count_media(65536, 8, LEN), 0);
    unlink(rig.media);
}

/* A killed QEMU writes nothing more; domains that keep caches still keep them. */
static void kill_loses_what_a_cut_may(void)
{
    static const struct {
        const char *domain;
        bool kept;
    } rows[] = {
        { "domain=adr,untracked=at-risk", false },
        { "domain=none,untracked=at-risk", false },
        { "domain=eadr,untracked=at-risk", true },
        { "domain=whole,untracked=at-risk", true },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%s", rows[i].domain);
        rig_start(0, PM_MIB, rows[i].domain);
        rig_store(0, 7, LEN);
        machine_kill(rig.m);
        T_EQ_U64(rig_count_media(0, 7, LEN), rows[i].kept ? LEN : 0);
        rig_restart(0, PM_MIB, rows[i].domain);
        T_EQ_U64(rig_count(0, 7, LEN), rows[i].kept ? LEN : 0);
        rig_stop();
    }
}

/* The domain changes while memory is in use: earlier stores stay, then the new rule holds. */
static void domains_change(void)
{
    static const char *const domains[] = { "eadr", "adr", "whole", "none", "eadr" };
    unsigned i;

    rig_start(0, PM_MIB, "untracked=at-risk,policy=lose-all");
    for (i = 0; i < G_N_ELEMENTS(domains); i++) {
        g_autofree char *value = g_strdup_printf("\"%s\"", domains[i]);
        bool keeps = i % 2 == 0;

        T_CONTEXT("%u: %s", i, domains[i]);
        rig_store(0, 0x10 + i, LEN);
        rig_set("domain", value);
        T_EQ_U64(rig_count(0, 0x10 + i, LEN), LEN);
        rig_set("persist", "true");
        rig_store(65536, 0x20 + i, LEN);
        rig_set("wear-out", "\"1000000\""); /* two mappings, and one again */
        rig_set("wear-out", "\"never\"");
        rig_store(131072, 0x30 + i, LEN);
        rig_cut("lose-all");
        T_EQ_U64(rig_count(0, 0x10 + i, LEN), LEN);
        T_EQ_U64(rig_count(65536, 0x20 + i, LEN), keeps ? LEN : 0);
        T_EQ_U64(rig_count(131072, 0x30 + i, LEN), keeps ? LEN : 0);
    }
    rig_stop();
}

static const struct t_case cases[] = {
    { "command lines that are refused", command_line },
    { "values that are refused change nothing", bad_values },
    { "values that are taken read back", good_values },
    { "no domain comes or goes at run time", not_at_run_time },
    { "a machine whose CPUs cannot be followed says so", cpus_not_followed },
    { "stores at a cut, by domain and policy", stores },
    { "random outcomes: whole lines, by seed", random_outcomes },
    { "a reset keeps what is visible", reset_keeps },
    { "the end of QEMU is a power cut", quit_loses },
    { "QEMU killed: caches stay where the domain keeps them", kill_loses_what_a_cut_may },
    { "the domain changes", domains_change },
};

T_MAIN(cases)
