/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The methods by which programs make a remote write persistent, on each platform, with all other
 * properties at their defaults: which of them may lose an acknowledged record, and which never
 * do.  Both directions count: a method that is wrong on a platform must be able to fail there.
 *
 * A record is a Write to one line.  Each method ends with its acknowledgement; then the power
 * fails.
 */
#include "base/bytes.h"
#include "rig.h"

enum { X = 128, QP = 1, OTHER_QP = 2, SEEDS = 200, WIRE_NS = 5000 };

static void time_passes(struct dom_rig *r, uint64_t now_ns)
{
    sg_persist_tick(r->p, now_ns);
}

static void write_record(struct dom_rig *r)
{
    rig_write_u64(r, QP, X, 1);
}

/* The record counts as acknowledged when it is posted. */
static void write_only(struct dom_rig *r)
{
    write_record(r);
}

/* The peer's TCP has acknowledged it. */
static void write_completes(struct dom_rig *r)
{
    write_record(r);
    time_passes(r, WIRE_NS);
}

/* The Send is behind the Write; its completion entry is DMA of the adapter's. */
static void message_arrives(struct dom_rig *r)
{
    sg_persist_settle(r->p, 0, QP);
    sg_persist_device_fence(r->p, 0);
    time_passes(r, WIRE_NS);
}

static void write_message(struct dom_rig *r)
{
    write_record(r);
    message_arrives(r);
}

static void write_message_flush(struct dom_rig *r)
{
    write_record(r);
    message_arrives(r);
    rig_cpu_flush(r, 0, X, SG_PERSIST_CLWB);
    rig_sfence(r, 0);
}

/* The server copies the record to its place and stores its own mark beside it. */
static void write_message_mark_flush(struct dom_rig *r)
{
    write_record(r);
    message_arrives(r);
    rig_store(r, 0, X + 8, 7);
    rig_cpu_flush(r, 0, X, SG_PERSIST_CLWB);
    rig_sfence(r, 0);
}

static void write_flush(struct dom_rig *r)
{
    write_record(r);
    T_EQ_INT(rig_flush(r, QP, X, 8, SG_FLUSH_PERSISTENT), SG_PM_DONE);
}

static void flush_elsewhere(struct dom_rig *r)
{
    write_record(r);
    time_passes(r, WIRE_NS);
    T_EQ_INT(rig_flush(r, OTHER_QP, X, 8, SG_FLUSH_PERSISTENT), SG_PM_DONE);
}

static void write_read(struct dom_rig *r)
{
    write_record(r);
    sg_persist_settle(r->p, 0, QP);
    sg_persist_dma_read(r->p, 0, RIG_BASE + X, 8);
    time_passes(r, WIRE_NS);
}

static void atomic_write(struct dom_rig *r)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = QP };
    uint8_t atom[8] = { 1 };

    sg_persist_settle(r->p, 0, QP);
    T_TRUE(sg_persist_atom_store(r->p, &who, RIG_BASE + X, atom));
    time_passes(r, WIRE_NS);
}

static void atomic_write_flush(struct dom_rig *r)
{
    atomic_write(r);
    T_EQ_INT(rig_flush(r, QP, X, 8, SG_FLUSH_PERSISTENT), SG_PM_DONE);
}

/* Domains in which an acknowledged record may be lost: n(one), a(dr), e(adr), w(hole). */
static const struct {
    const char *name;
    rig_scene *scene;
    const char *ddio, *direct;
} methods[] = {
    { "Write, nothing more", write_only, "naew", "naew" },
    { "Write, its completion", write_completes, "naew", "naew" },
    { "Write, Send, answer", write_message, "na", "n" },
    { "Write, Send, CLWB, SFENCE, answer", write_message_flush, "n", "n" },
    { "Write, Send, store beside it, CLWB, SFENCE, answer", write_message_mark_flush, "n", "n" },
    { "Write, Flush", write_flush, "", "" },
    { "Write, Flush on another connection", flush_elsewhere, "naew", "naew" },
    { "Write, Read", write_read, "na", "n" },
    { "Atomic Write", atomic_write, "nae", "nae" },
    { "Atomic Write, Flush", atomic_write_flush, "", "" },
};

static void defaults(struct dom_rig *r, unsigned domain, bool ddio)
{
    rig_init(r);
    sg_persist_config_init(&r->config);
    r->config.domain = domain;
    r->config.ddio = ddio;
    r->config.cpu_tracking = true; /* as if CPU stores can be followed */
}

static void matrix(void)
{
    for (unsigned m = 0; m < SG_ARRAY_SIZE(methods); m++) {
        for (unsigned k = 0; k < 2 * SG_PERSIST_DOMAINS; k++) {
            unsigned domain = k / 2;
            const char *losing = k % 2 ? methods[m].ddio : methods[m].direct;
            bool may_lose = strchr(losing, sg_persist_domain_name(domain)[0]) != NULL;
            struct dom_rig proto;

            T_CONTEXT("%s, domain %s, ddio %s", methods[m].name, sg_persist_domain_name(domain),
                      k % 2 ? "on" : "off");
            defaults(&proto, domain, k % 2);
            T_EQ_U64(rig_outcomes(&proto, methods[m].scene, X, SEEDS) & SET1(0), may_lose);
        }
    }
}

/* Where CPUs cannot be followed, a safe method seems to lose data: the report must say so. */
static void not_followed(void)
{
    struct dom_rig proto, r;
    struct sg_persist_report *report;
    GString *text = g_string_new(NULL), *json = g_string_new(NULL);

    defaults(&proto, SG_PERSIST_ADR, true);
    proto.config.cpu_tracking = false;
    proto.config.untracked = SG_PERSIST_UNTRACKED_KEEP;
    T_EQ_U64(rig_outcomes(&proto, write_message_flush, X, SEEDS), SET2(0, 1));
    T_TRUE(strstr(sg_persist_doubt(&proto.config), "may count as lost though a CPU flushed it"));

    r = proto;
    rig_up(&r, 65536);
    report = rig_cut_report(&r, SG_PERSIST_LOSE_ALL, 0);
    sg_persist_report_text(report, text);
    sg_persist_report_json(report, json);
    T_TRUE(strstr(text->str, "Not to be trusted: CPU stores and flushes are not followed"));
    T_TRUE(strstr(json->str, "\"not-trusted\": \"CPU stores and flushes are not followed"));
    sg_persist_report_free(report);
    rig_down(&r);

    proto.config.untracked = SG_PERSIST_UNTRACKED_AT_RISK;
    T_TRUE(strstr(sg_persist_doubt(&proto.config), "may count as lost though a CPU flushed it"));
    proto.config.domain = SG_PERSIST_EADR;
    T_TRUE(strstr(sg_persist_doubt(&proto.config), "without a fence count as kept"));
    proto.config.cpu_tracking = true;
    T_NULL(sg_persist_doubt(&proto.config));
    g_string_free(text, TRUE);
    g_string_free(json, TRUE);
}

static const struct t_case cases[] = {
    { "FLU-07 which method may lose what, on which platform, by default", matrix },
    { "a platform whose CPUs cannot be followed says what is not to be trusted", not_followed },
};

T_MAIN(cases)
