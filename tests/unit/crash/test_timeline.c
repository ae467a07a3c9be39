/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What both machines did about a lost store, in one order. */
#include "explore_rig.h"
#include "tap.h"

enum { PORT = 7000, LOG = 0, OTHER = 4096 };

static const struct sg_crash_timeline *line_of(const struct xr *r, unsigned bug)
{
    const struct sg_crash_timeline *line = sg_crash_timeline(r->timelines, bug);

    T_NOT_NULL(line);
    return line;
}

/* One row each: "client: the request is sent", with its stage, and the row that it comes from. */
static char *text_of(const struct sg_crash_timeline *line)
{
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < line->events->len; i++) {
        const struct sg_crash_timeline_event *e =
            &g_array_index(line->events, struct sg_crash_timeline_event, i);

        g_string_append_printf(out, "%s: %s", e->machine == XR_TARGET ? "target" : "client",
                               e->what);
        if (e->stage != SG_CRASH_NO_STAGE) {
            g_string_append_printf(out, ", %s",
                                   e->stage == SG_CRASH_CERTAIN ? "certain"
                                                                : sg_crash_stage_name(e->stage));
        }
        if (e->cause) {
            g_string_append_printf(out, " <- %d", e->cause - 1);
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}

static void expect_line(const struct xr *r, unsigned bug, const char *text)
{
    char *found = text_of(line_of(r, bug));

    T_EQ_STR(found, text);
    g_free(found);
}

/* Explores, and plots what one platform shows. */
static void tell(struct xr *r, const char *domain, unsigned acks)
{
    xr_explore(r, domain, "on", acks);
    T_NULL(r->wrong);
    T_EQ_INT(r->bugs->len, 1);
    xr_tell(r);
}

/* Messages from before and behind are no part of it. */
static void lost_write(void)
{
    const struct sg_crash_carriers *c;
    struct xr r;
    uint64_t lost;

    xr_init(&r, "");
    xr_connect(&r, 1, PORT);
    xr_connect(&r, 2, PORT);
    xr_write(&r, 1, OTHER, 1, true);
    xr_flush(&r, 1, OTHER, 64);
    xr_write(&r, 2, OTHER + 64, 1, true);
    lost = xr_write(&r, 1, LOG, 1, true);
    xr_flush(&r, 1, OTHER, 64);
    xr_mark(&r, XR_CLIENT, "acknowledged", "wr_id=4");
    xr_frame(&r, XR_CLIENT);
    xr_mark(&r, XR_CLIENT, "note", "");
    xr_write(&r, 1, OTHER, 2, true);
    tell(&r, "adr", SG_CRASH_ACK_DEFAULT);
    expect_line(&r, 0,
                "client: the request is sent\n"
                "target: the store, S0 <- 0\n"
                "client: the request's completion, S0\n"
                "client: a Flush is sent, S0\n"
                "target: a Flush begins, S0 <- 3\n"
                "target: a Flush of another range, S2\n"
                "target: from here on it is promised, S2\n"
                "client: a Flush's completion, S2\n"
                "client: the acknowledgement, S2\n");
    c = &line_of(&r, 0)->store;
    T_TRUE(c->known);
    T_EQ_INT(c->machine, XR_TARGET);
    T_EQ_INT(c->ends[31], 1); /* the client */
    T_EQ_U64(c->frame[c->count - 1].event, lost - 1);
    T_EQ_U64(c->frame[c->count - 1].len, 60);
    c = &line_of(&r, 0)->acknowledgement;
    T_TRUE(c->known);
    T_EQ_INT(c->machine, XR_CLIENT);
    T_EQ_INT(c->ends[31], 2);
    /* That of the Flush's completion: the next to last one of the client's. */
    T_EQ_U64(c->frame[c->count - 1].crc, r.frames - 4);
    xr_free(&r);
}

/* The completion of a later request is the acknowledgement. */
static void completion(void)
{
    const struct sg_crash_carriers *c;
    struct xr r;

    xr_init(&r, "");
    xr_connect(&r, 1, PORT);
    xr_write(&r, 1, LOG, 1, false);
    xr_write(&r, 1, LOG + 8, 2, true);
    xr_frame(&r, XR_TARGET);
    tell(&r, "adr", 1u << SG_CRASH_ACK_WRITE);
    expect_line(&r, 0,
                "client: the request is sent\n"
                "client: the request of the acknowledgement is sent\n"
                "target: the store, S0 <- 0\n"
                "target: an adapter writes to the line, S0 <- 1\n"
                "target: from here on it is promised, S0\n"
                "client: the acknowledgement, S0\n");
    c = &line_of(&r, 0)->acknowledgement;
    T_EQ_U64(c->frame[c->count - 1].crc, r.frames - 2);
    xr_free(&r);
}

/* Without a peer: the stores of CPUs and a mark. */
static void local_store(void)
{
    struct xr r;

    xr_init(&r, "");
    xr_mark(&r, XR_TARGET, "note", "");
    xr_store(&r, 0x401000, LOG, 1, 0);
    xr_mark(&r, XR_TARGET, "note", "");
    xr_clwb(&r, LOG);
    xr_durable(&r, LOG, 8);
    xr_sfence(&r);
    xr_mark(&r, XR_TARGET, "note", "");
    tell(&r, "adr", SG_CRASH_ACK_DEFAULT);
    expect_line(&r, 0,
                "target: the store, S2'\n"
                "target: a mark, S2'\n"
                "target: a flush of the cache line, S2'\n"
                "target: from here on it is promised, S2'\n"
                "target: it moves on, certain\n");
    T_TRUE(!line_of(&r, 0)->store.known);
    T_TRUE(!line_of(&r, 0)->acknowledgement.known);
    xr_free(&r);
}

/* A connection with the same addresses came before. */
static void same_addresses(void)
{
    struct sg_trace_event gone = { .kind = SG_TRACE_DISCONNECTED, .qpn = 1 };
    struct xr r;

    xr_init(&r, "");
    xr_connect(&r, 1, PORT);
    xr_write(&r, 1, OTHER, 1, true);
    xr_event(&r, XR_CLIENT, gone);
    xr_frame(&r, XR_CLIENT);
    xr_event(&r, XR_TARGET, gone);
    xr_frame(&r, XR_TARGET);
    r.ordinal[1] = 0;
    xr_connect(&r, 1, PORT);
    xr_write(&r, 1, LOG, 1, true);
    xr_mark(&r, XR_CLIENT, "acknowledged", "wr_id=2");
    tell(&r, "adr", SG_CRASH_ACK_DEFAULT);
    expect_line(&r, 0,
                "client: the request is sent\n"
                "target: the store, S0 <- 0\n"
                "target: from here on it is promised, S0\n"
                "client: the request's completion, S0\n"
                "client: the acknowledgement, S0\n");
    xr_free(&r);
}

/* What is too much is counted; story and acknowledgement stay. */
static void long_line(void)
{
    enum { NOTES = 300 };
    const struct sg_crash_timeline *line;
    struct xr r;
    guint rows;

    xr_init(&r, "");
    xr_connect(&r, 1, PORT);
    xr_write(&r, 1, LOG, 1, true);
    for (unsigned i = 0; i < NOTES; i++) {
        xr_mark(&r, XR_CLIENT, "note", "");
    }
    xr_mark(&r, XR_CLIENT, "acknowledged", "");
    tell(&r, "adr", SG_CRASH_ACK_DEFAULT);
    line = line_of(&r, 0);
    rows = line->events->len;
    T_TRUE(rows < SG_CRASH_TIMELINE_EVENTS);
    T_EQ_U64(rows + line->omitted, NOTES + 5);
    T_EQ_STR(g_array_index(line->events, struct sg_crash_timeline_event, rows - 1).what,
             "the acknowledgement");
    xr_free(&r);
}

static const struct t_case cases[] = {
    { "a lost Write and its acknowledgement by a mark", lost_write },
    { "a lost Write and a completion", completion },
    { "a lost store of a CPU", local_store },
    { "the same addresses once more", same_addresses },
    { "a long timeline", long_line },
};

T_MAIN(cases)
