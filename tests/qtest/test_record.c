/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings: what adapters do to persistent memory becomes a trace whose replay leaves the media
 * that the machine left; cuts, resets and the machine's end while a recording runs.
 */
#include <glib.h>
#include <linux/pci_regs.h>
#include <string.h>
#include <unistd.h>

#include "persist_rig.h"
#include "tap.h"
#include "trace_rig.h"

static char *path;
static struct {
    uint64_t frames[2];       /* received, sent */
    uint64_t begun[256];      /* how many work requests, by ordinal */
    unsigned lost, completed; /* segments that no work request has sent, completions */
} found;

static void take(const struct sg_trace_event *e)
{
    if (e->kind == SG_TRACE_FRAME) {
        found.frames[e->arg]++;
    } else if (e->kind == SG_TRACE_WORK) {
        found.begun[e->ordinal % 256]++;
    } else if (e->kind == SG_TRACE_PLACE) {
        found.lost += !e->ordinal || !found.begun[e->ordinal % 256];
    } else if (e->kind == SG_TRACE_COMPLETED) {
        found.completed += e->status == SG_WC_SUCCESS && e->ordinal;
    }
}

static struct trace_seen seen = { .each = take };

static void begin(const char *domain)
{
    rig_pair(domain);
    path = trace_path();
    trace_start(rig.m->q, path);
}

/* Reads the trace; its replay leaves the media that the machine has now. */
static void look(void)
{
    g_autofree char *media = NULL;
    gsize len;

    memset(&found, 0, sizeof(found));
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_END);
    T_EQ_U64(seen.extents, 1);
    T_EQ_U64(seen.base[0], PM_BASE);
    T_EQ_U64(seen.size[0], (uint64_t)PM_MIB << 20);
    T_TRUE(seen.end_hash_fits);
    T_TRUE(g_file_get_contents(rig.media, &media, &len, NULL));
    T_TRUE(len == seen.size[0] && !memcmp(media, seen.media[0], len));
}

static void finish(void)
{
    trace_seen_free(&seen);
    unlink(path);
    g_free(path);
}

/* ---- What replays ---- */

static void replays(void)
{
    static const char *const domains[] = {
        "",
        "domain=none",
        "domain=eadr",
        "domain=whole,ddio=off",
        "placement-delay=200000",
        "posted-drain=random,eviction=random,drain=random,domain=none,flush-latency=1000+5000",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(domains); i++) {
        T_CONTEXT("%s", domains[i]);
        rig_pair(domains[i]);
        rig_write(0, 1); /* not on the media yet */
        rig_write(3 * LEN, 7);
        path = trace_path();
        trace_start(rig.m->q, path);
        T_EQ_U64(rig_count_media(0, 1, LEN), LEN);
        rig_write(LEN, 2);
        T_EQ_U64(rig_flush(LEN, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
        rig_write(2 * LEN, 3);
        rig_write(0, 4);
        trace_stop(rig.m->q);
        look();
        T_TRUE(seen.kind[SG_TRACE_PLACE] >= 3);
        T_EQ_U64(seen.kind[SG_TRACE_FLUSH_BEGIN], 1);
        T_EQ_U64(seen.kind[SG_TRACE_FLUSH_END], 1);
        T_TRUE(seen.kind[SG_TRACE_TICK] && seen.kind[SG_TRACE_SETTLE]);
        T_TRUE(seen.kind[SG_TRACE_DEVICE_FENCE] && seen.kind[SG_TRACE_MILESTONE]);
        T_TRUE(found.frames[0] && found.frames[0] == found.frames[1]);
        T_EQ_U64(seen.kind[SG_TRACE_CONNECTED], 2);
        T_EQ_U64(seen.kind[SG_TRACE_WORK], 4);
        T_EQ_U64(found.completed, 4);
        T_EQ_U64(seen.kind[SG_TRACE_ANSWERED], 1);
        T_EQ_U64(found.lost, 0);
        T_TRUE(strstr(seen.config, "placement-delay=0\n") && strstr(seen.platform, "cpu-tracking"));
        T_EQ_U64(seen.media[0][LEN], 2);
        finish();
        rig_write(0, 5); /* it goes on */
        T_EQ_U64(rig_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
        rig_stop();
    }
}

/* What was set before is so again: data wait in the adapter. */
static void settings_return(void)
{
    struct sg_cqe c;

    begin("placement-delay=1000000000");
    rig_write(0, 1);
    T_EQ_U64(rig_count(0, 1, LEN), LEN);
    trace_stop(rig.m->q);
    memset(side_ptr(&rig.a, 0), 2, LEN);
    md_post_send(&rig.a.qp, &(struct md_wr){
                                .opcode = SG_WR_WRITE,
                                .addr = rig.a.buffer,
                                .len = LEN,
                                .lkey = rig.a.stag,
                                .raddr = PM_BASE,
                                .rkey = rig.pm_stag,
                            });
    T_TRUE(side_has_completion(&rig.a, &c, 20));
    T_TRUE(rig_count(0, 2, LEN) < LEN);
    look();
    finish();
    rig_stop();
}

/* Properties that change while a recording runs. */
static void changes(void)
{
    begin("");
    rig_write(0, 1);
    rig_set("domain", "\"none\"");
    rig_write(LEN, 2);
    T_EQ_U64(rig_flush(LEN, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    rig_set("ddio", "false");
    rig_set("placement-delay", "1000000000"); /* has to wait for the end */
    rig_write(2 * LEN, 3);
    T_EQ_U64(rig_count(2 * LEN, 3, LEN), LEN);
    rig_set("uncorrectable", "\"mem1@0x3000+0x1000\"");
    rig_write(3 * LEN, 4);
    rig_set("uncorrectable", "\"\"");
    rig_set("flush-fail", "\"once\"");
    T_TRUE(rig_flush(2 * LEN, SG_FLUSH_PERSISTENT) != SG_WC_SUCCESS);
    rig_set("persist", "true");
    trace_stop(rig.m->q);
    look();
    T_EQ_U64(seen.kind[SG_TRACE_CONFIGURE], 3);
    T_EQ_U64(seen.kind[SG_TRACE_MARK_BAD], 1);
    T_EQ_U64(seen.kind[SG_TRACE_CLEAR_BAD], 1);
    T_EQ_U64(seen.kind[SG_TRACE_FAULTS], 2);
    T_EQ_U64(seen.kind[SG_TRACE_ORDERLY], 1);
    finish();
    rig_stop();
}

/* Writes of others are in the trace with what they wrote. */
static void others(void)
{
    begin("");
    rig_store(LEN, 9, LEN);
    T_EQ_U64(rig_flush(LEN, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    trace_stop(rig.m->q);
    look();
    T_TRUE(seen.kind[SG_TRACE_OTHER_WRITE] >= 1);
    T_EQ_U64(seen.media[0][2 * LEN - 1], 9);
    finish();
    rig_stop();
}

/* ---- Cuts, resets, the end ---- */

static void reconnect(uint16_t port)
{
    machine_setup_ports(rig.m);
    function_setup(&rig.m->f[0]);
    function_setup(&rig.m->f[1]);
    rig_sides(port);
}

static void is_cut(void)
{
    static const char *const policies[] = { "lose-all", "keep-all", "random:5" };

    for (unsigned i = 0; i < G_N_ELEMENTS(policies); i++) {
        T_CONTEXT("%s", policies[i]);
        begin("untracked=at-risk");
        rig_write(0, 1);
        rig_write(LEN, 2);
        T_EQ_U64(rig_flush(LEN, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
        rig_cut(policies[i]);
        reconnect(4001);
        rig_write(2 * LEN, 3);
        T_EQ_U64(rig_flush(2 * LEN, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
        trace_stop(rig.m->q);
        look();
        T_EQ_U64(seen.kind[SG_TRACE_CUT], 1);
        T_EQ_U64(seen.kind[SG_TRACE_RESTART], 1);
        T_EQ_U64(seen.kind[SG_TRACE_FREEZE], 0);
        T_EQ_U64(seen.kind[SG_TRACE_RESET], 0);
        finish();
        rig_stop();
    }
}

/* Each armed cut freezes the replayed domain at the same event. */
static void is_cut_by_arm(void)
{
    static const char *const arms[] = {
        "write-placed",
        "before-flush-answer",
        "after-flush-answer",
        "event",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(arms); i++) {
        g_autofree char *value = NULL;

        T_CONTEXT("%s", arms[i]);
        begin("policy=keep-all");
        value = strcmp(arms[i], "event")
                    ? g_strdup_printf("\"%s\"", arms[i])
                    : g_strdup_printf("\"event:%" PRIu64 "\"", rig_state("events") + 3);
        rig_set("arm", value);
        memset(side_ptr(&rig.a, 0), 6, LEN);
        md_post_send(&rig.a.qp, &(struct md_wr){
                                    .opcode = SG_WR_WRITE,
                                    .addr = rig.a.buffer,
                                    .len = LEN,
                                    .lkey = rig.a.stag,
                                    .raddr = PM_BASE,
                                    .rkey = rig.pm_stag,
                                });
        rig_post_flush(0, SG_FLUSH_PERSISTENT);
        machine_pass(rig.m, 20);
        rig_wait_for_cut(1);
        trace_stop(rig.m->q);
        look();
        T_EQ_U64(seen.kind[SG_TRACE_FREEZE], 1);
        T_EQ_U64(seen.kind[SG_TRACE_CUT], 1);
        finish();
        rig_stop();
    }
}

/* What untracked CPUs changed, and a cut has kept, is written back later. */
static void is_written_back(void)
{
    rig_start_anonymous(128, PM_MIB, "policy=keep-all");
    path = trace_path();
    trace_start(rig.m->q, path);
    rig_store(0, 3, LEN);
    rig_set("cut", "\"\"");
    for (unsigned i = 0; i < 500 && rig_count_media(0, 3, LEN) < LEN; i++) {
        qtest_clock_step(rig.m->q, 1000);
        g_usleep(10000);
    }
    T_EQ_U64(rig_count_media(0, 3, LEN), LEN);
    trace_stop(rig.m->q);
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_END);
    T_TRUE(seen.kind[SG_TRACE_OTHER_WRITE] && seen.kind[SG_TRACE_WRITE_BACK]);
    finish();
    rig_stop_anonymous();
}

static void is_reset(void)
{
    begin("");
    rig_write(0, 1);
    machine_reset(rig.m);
    rig_sides(4002);
    rig_write(LEN, 2);
    T_EQ_U64(rig_flush(LEN, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    trace_stop(rig.m->q);
    look();
    T_EQ_U64(seen.kind[SG_TRACE_RESET], 1);
    finish();
    rig_stop();
}

/* A QEMU that is told to end completes the trace. */
static void ends(void)
{
    begin("");
    rig_write(0, 1);
    T_EQ_U64(rig_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    machine_stop(rig.m);
    look();
    T_EQ_U64(seen.media[0][0], 1);
    finish();
    unlink(rig.media);
}

/* ---- Adapters come and go ---- */

static void unplug(struct function *f)
{
    qtest_qmp_ok(f->m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a%u\"}}",
                 f->number);
    function_slot_off(f);
    qtest_qmp_event(f->m->q, "DEVICE_DELETED");
}

static void plug(struct function *f)
{
    unsigned express = port_find_cap(f, PCI_CAP_ID_EXP);

    qtest_qmp_ok(f->m->q,
                 "{\"execute\": \"device_add\", \"arguments\": {\"driver\": \"staghorn\", "
                 "\"id\": \"a%u\", \"bus\": \"rp%u\", \"netdev\": \"net%u\", "
                 "\"mac\": \"52:54:00:00:00:0%u\"}}",
                 f->number, f->number, f->number, f->number + 1);
    port_config_writew(f, express + PCI_EXP_SLTCTL, PCI_EXP_SLTCTL_PWR_IND_ON);
    function_setup(f);
}

static void adapters_change(void)
{
    begin("");
    rig_write(0, 1);
    unplug(&rig.m->f[1]);
    plug(&rig.m->f[1]);
    rig_sides(4003);
    rig_write(LEN, 2);
    T_EQ_U64(rig_flush(LEN, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    trace_stop(rig.m->q);
    look();
    T_TRUE(seen.kind[SG_TRACE_PLACE] >= 2);
    T_EQ_U64(seen.media[0][LEN], 2);
    finish();
    rig_stop();
}

/* ---- Machines without persistent memory ---- */

static void without_memory(void)
{
    struct machine *m = machine_start(2, "", "");
    struct qtest_side a, b;

    path = trace_path();
    trace_start(m->q, path);
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    machine_reset(m);
    trace_stop(m->q);
    trace_read(&seen, path);
    T_EQ_INT(seen.status, SG_TRACE_END);
    T_EQ_U64(seen.extents, 0);
    T_TRUE(seen.kind[SG_TRACE_FRAME] >= 4);
    T_EQ_U64(seen.kind[SG_TRACE_RESET], 1);
    T_TRUE(strstr(seen.platform, "persistence-domain=none\n") != NULL);
    finish();
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "the replay of a recording leaves the media", replays },
    { "the domain's settings return at the end", settings_return },
    { "settings and faults change while a recording runs", changes },
    { "writes of other devices", others },
    { "a cut while a recording runs", is_cut },
    { "armed cuts while a recording runs", is_cut_by_arm },
    { "the write-back after a cut", is_written_back },
    { "a reset while a recording runs", is_reset },
    { "the machine's end completes a recording", ends },
    { "adapters come and go while a recording runs", adapters_change },
    { "a machine without persistent memory", without_memory },
};

T_MAIN(cases)
