/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Power cuts after which the machine resumes from a saved state (boot-state). */
#include <glib.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "persist_rig.h"
#include "tap.h"

enum { AT = 64 << 20, SAVED = 0x11, LATER = 0x22, TRIES = 12000 };

static char *state;

static void wait_for(const char *what, uint64_t value)
{
    for (unsigned i = 0; i < TRIES && rig_state(what) != value; i++) {
        qtest_clock_step(rig.m->q, 1);
        g_usleep(5000);
    }
    T_EQ_U64(rig_state(what), value);
}

static void wait_saved(void)
{
    for (unsigned i = 0; i < TRIES; i++) {
        g_autofree char *answer = qtest_qmp(rig.m->q, "{\"execute\": \"query-migrate\"}");

        if (strstr(answer, "\"status\": \"completed\"")) {
            return;
        }
        g_usleep(5000);
    }
    T_FAIL("the state is not saved");
}

/* A machine whose memory at AT is SAVED in the file and LATER now, as are its NVDIMM's octets. */
static void start(void)
{
    if (!state) {
        state = g_strdup_printf("/tmp/sg-boot-%d", getpid());
    }
    rig_start(1, PM_MIB, "untracked=at-risk");
    qtest_memset(rig.m->q, AT, SAVED, LEN);
    rig_store(0, SAVED, LEN);
    qtest_qmp_ok(rig.m->q, "{\"execute\": \"stop\"}");
    qtest_qmp_ok(rig.m->q, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"file:%s\"}}",
                 state);
    wait_saved();
    qtest_qmp_ok(rig.m->q, "{\"execute\": \"cont\"}");
    qtest_memset(rig.m->q, AT, LATER, LEN);
    rig_store(0, LATER, LEN);
}

static void resume_from(const char *path)
{
    g_autofree char *value = g_strdup_printf("\"%s\"", path);

    rig_set("boot-state", value);
}

static void expect_memory(uint8_t value)
{
    uint8_t now[LEN];

    qtest_memread(rig.m->q, AT, now, LEN);
    for (unsigned i = 0; i < LEN; i++) {
        T_EQ_INT(now[i], value);
    }
}

/* The firmware's work is not repeated: BARs are those of the state, and the adapter is reset. */
static void expect_adapter(void)
{
    T_EQ_U64(function_readl(&rig.m->f[0], SG_REG_MAGIC), SG_MAGIC);
    T_EQ_U64(function_readl(&rig.m->f[0], SG_REG_CTRL), 0);
    T_EQ_U64(function_readl(&rig.m->f[0], SG_REG_STATUS) & (SG_STATUS_READY | SG_STATUS_FATAL), 0);
}

static void resumes(void)
{
    static const struct {
        const char *policy;
        uint8_t left;
    } cuts[] = { { "keep-all", LATER }, { "lose-all", LATER }, { "keep-all", LATER } };

    start();
    resume_from(state);
    g_unlink(state); /* it stays open */
    for (unsigned i = 0; i < SG_ARRAY_SIZE(cuts); i++) {
        T_CONTEXT("cut %u", i);
        qtest_memset(rig.m->q, AT, LATER, LEN);
        rig_cut(cuts[i].policy);
        wait_for("resumed", i + 1);
        expect_memory(SAVED);
        expect_adapter();
        T_EQ_U64(rig_count(0, cuts[i].left, LEN), LEN);
        T_EQ_U64(rig_count_media(0, cuts[i].left, LEN), LEN);
    }
    rig_stop();
}

/* What is not durable is lost, as without it: the file has nothing of the NVDIMMs. */
static void loses(void)
{
    start();
    resume_from(state);
    rig_cut("keep-all");
    wait_for("resumed", 1);
    rig_store(0, SAVED + 1, LEN);
    rig_cut("lose-all");
    wait_for("resumed", 2);
    T_EQ_U64(rig_count(0, LATER, LEN), LEN);
    rig_stop();
}

static uint64_t clock_now(void)
{
    return qtest_readq(rig.m->q, rig.m->f[0].doorbells + SG_DB_CLOCK);
}

/* The time of adapters and of the model does not go back, though that of the machine does. */
static void time_goes_on(void)
{
    const uint64_t hour = 3600ull * 1000 * 1000 * 1000;
    uint64_t before, after;

    start();
    resume_from(state);
    qtest_clock_step(rig.m->q, hour);
    before = clock_now();
    T_TRUE(before >= hour);
    rig_cut("keep-all");
    wait_for("resumed", 1);
    after = clock_now();
    T_TRUE(after >= before);
    qtest_clock_step(rig.m->q, hour);
    T_TRUE(clock_now() >= after + hour);
    rig_stop();
}

static void rising(void)
{
    machine_setup_ports(rig.m);
    function_setup(&rig.m->f[0]);
    expect_adapter();
}

/* The machine boots instead, and works. */
static void boots(void)
{
    static const struct {
        const char *what;
        long size; /* of the file; -1: all of it */
        bool off;
    } bad[] = {
        { "no header", 0, false },
        { "half of a header", 6, false },
        { "half of a state", 100000, false },
        { "switched off", -1, true },
    };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(bad); i++) {
        T_CONTEXT("%s", bad[i].what);
        start();
        if (bad[i].size >= 0) {
            T_EQ_INT(truncate(state, bad[i].size), 0);
        }
        resume_from(state);
        if (bad[i].off) {
            resume_from("");
        }
        rig_cut("keep-all");
        qtest_clock_step(rig.m->q, 1000 * 1000);
        rising();
        T_EQ_U64(rig_state("resumed"), 0);
        T_EQ_U64(rig_count(0, LATER, LEN), LEN);
        rig_stop();
        g_unlink(state);
    }
}

static void refused(void)
{
    g_autofree char *answer = NULL;

    rig_start(1, PM_MIB, "");
    answer = rig_try_set("boot-state", "\"/no/such/file\"");
    T_NOT_NULL(strstr(answer, "/no/such/file"));
    T_EQ_U64(rig_state("resumed"), 0);
    rig_stop();
}

static const struct t_case cases[] = {
    { "a machine resumes after each cut", resumes },
    { "a machine that resumes has lost what it had to lose", loses },
    { "the time of adapters goes on", time_goes_on },
    { "a machine boots if its state cannot be loaded", boots },
    { "a state that is not there", refused },
};

T_MAIN(cases)
