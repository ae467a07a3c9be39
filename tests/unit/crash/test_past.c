/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pasts of a platform: where data may have arrived before or behind a store to their line, there
 * are several, until something has proved what had been open.
 */
#include "explore_rig.h"
#include "staghorn/admin.h"
#include "tap.h"

enum { PORT = 7000, LINE = SG_PERSIST_LINE, ROUNDS = 300 };

static void start(struct xr *r, enum sg_crash_arrivals arrivals)
{
    xr_init(r, "");
    xr_connect(r, 1, PORT);
    r->arrivals = (uint8_t)arrivals;
}

static void place(struct xr *r, uint64_t off, const char *eight)
{
    xr_event(r, XR_TARGET,
             (struct sg_trace_event){
                 .kind = SG_TRACE_PLACE,
                 .qpn = 1,
                 .addr = XR_BASE + off,
                 .data = (const uint8_t *)eight,
                 .len = 8,
             });
}

/* It is proved that all that was placed has arrived. */
static void prove(struct xr *r)
{
    xr_event(r, XR_TARGET, (struct sg_trace_event){ .kind = SG_TRACE_SETTLE, .qpn = 1 });
    xr_event(r, XR_TARGET, (struct sg_trace_event){ .kind = SG_TRACE_DEVICE_FENCE });
}

static const struct sg_crash_verdict *verdict(const struct xr *r, const char *platform)
{
    return sg_crash_explorer_verdict(r->explorer, xr_platform(r, platform));
}

/* A flush of the line makes two pasts one, each time. */
static void they_join(void)
{
    struct xr r;

    start(&r, SG_CRASH_ANY);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t line = i % 64 * LINE;

        place(&r, line, "datadata");
        xr_store(&r, 0x401000, line + 8, i + 1, 0);
        prove(&r);
        xr_clwb(&r, line);
        xr_sfence(&r);
        xr_durable(&r, line, 16);
    }
    xr_explore(&r, "adr", "all", SG_CRASH_ACK_DEFAULT);
    T_NULL(r.wrong);
    for (unsigned i = 0; i < r.platforms; i++) {
        const struct sg_crash_verdict *v = sg_crash_explorer_verdict(r.explorer, i);

        T_CONTEXT("platform %u", i);
        T_EQ_U64(v->promises[SG_CRASH_ACK_DURABLE], ROUNDS);
        T_EQ_U64(v->broken[SG_CRASH_ACK_DURABLE], 0);
        T_EQ_INT(v->pasts, 2);
        T_EQ_U64(v->limited, 0);
    }
    xr_free(&r);
}

/* Nothing proves anything: there would be a past for each set of these lines. */
static void limit(void)
{
    struct xr r;

    start(&r, SG_CRASH_ANY);
    for (unsigned i = 0; i < 20; i++) {
        place(&r, i * LINE, "datadata");
        xr_store(&r, 0x401000, i * LINE + 8, i + 1, 0);
    }
    xr_explore(&r, "adr", "on", SG_CRASH_ACK_DEFAULT);
    T_NULL(r.wrong);
    T_TRUE(verdict(&r, "adr,ddio=on")->pasts <= SG_CRASH_PASTS);
    T_TRUE(verdict(&r, "adr,ddio=on")->pasts > SG_CRASH_PASTS / 2);
    T_TRUE(verdict(&r, "adr,ddio=on")->limited > 0);
    xr_free(&r);
}

/* Messages that share a line, and how many lines of them something proves at once. */
static void segments(void)
{
    for (unsigned lines = 1; lines <= SG_CRASH_STOPS + 1; lines++) {
        struct xr r;

        T_CONTEXT("%u lines", lines);
        start(&r, SG_CRASH_ANY);
        for (unsigned i = 0; i < lines; i++) {
            place(&r, i * LINE, "datadata");
            place(&r, i * LINE + 8, "datadata");
        }
        prove(&r);
        xr_explore(&r, "adr", "on", SG_CRASH_ACK_DEFAULT);
        T_NULL(r.wrong);
        T_EQ_INT(verdict(&r, "adr,ddio=on")->pasts > 1, lines <= SG_CRASH_STOPS);
        T_EQ_U64(verdict(&r, "adr,ddio=on")->mixed, lines > SG_CRASH_STOPS);
        T_EQ_U64(verdict(&r, "adr,ddio=on")->limited, 0);
        xr_free(&r);
    }
}

/* With one past a platform counts the stores of which it has one order. */
static void one_past(void)
{
    for (unsigned arrivals = 0; arrivals < SG_CRASH_ARRIVALS; arrivals++) {
        struct xr r;

        T_CONTEXT("arrivals %u", arrivals);
        start(&r, (enum sg_crash_arrivals)arrivals);
        xr_store(&r, 0x401000, 8, 1, 0);
        place(&r, 0, "datadata");
        xr_store(&r, 0x401000, 8, 1, 0);
        xr_store(&r, 0x401000, LINE, 1, 0);
        prove(&r);
        xr_store(&r, 0x401000, 8, 2, 0);
        xr_explore(&r, "adr", "on", SG_CRASH_ACK_DEFAULT);
        T_EQ_U64(verdict(&r, "adr,ddio=on")->beside, arrivals != SG_CRASH_ANY);
        xr_free(&r);
    }
}

/*
 * The first mark is wrong only if the data came before the store, the second one only if they came
 * behind it: neither of the two orders finds both.
 */
static void two_orders(void)
{
    static const struct {
        unsigned with, without; /* DDIO: broken marks */
    } broken[SG_CRASH_ARRIVALS] = {
        [SG_CRASH_LATE] = { 2, 0 },
        [SG_CRASH_EARLY] = { 1, 1 },
        [SG_CRASH_ANY] = { 2, 1 },
    };

    for (unsigned arrivals = 0; arrivals < SG_CRASH_ARRIVALS; arrivals++) {
        struct xr r;

        T_CONTEXT("arrivals %u", arrivals);
        start(&r, (enum sg_crash_arrivals)arrivals);
        place(&r, 0, "datadata");
        xr_store(&r, 0x401000, 8, 1, 0);
        xr_sfence(&r);
        prove(&r);
        xr_durable(&r, 8, 8); /* the store, without a flush */
        place(&r, LINE, "datadata");
        xr_store(&r, 0x402000, LINE + 8, 1, 0);
        xr_clwb(&r, LINE);
        xr_sfence(&r);
        prove(&r);
        xr_durable(&r, LINE, 8); /* the data, flushed before anything proved them */
        xr_explore(&r, "adr", "all", SG_CRASH_ACK_DEFAULT);
        T_NULL(r.wrong);
        T_EQ_U64(verdict(&r, "adr,ddio=on")->broken[SG_CRASH_ACK_DURABLE], broken[arrivals].with);
        T_EQ_U64(verdict(&r, "adr,ddio=off")->broken[SG_CRASH_ACK_DURABLE],
                 broken[arrivals].without);
        xr_free(&r);
    }
}

/* A Verify found the store on the media: the data were behind it, which took it there. */
static void contradicted(void)
{
    const uint64_t one = GUINT64_TO_LE(1);
    uint8_t hash[SG_HASHER_OUT];
    struct sg_hasher hasher;
    struct sg_trace_event e = { .kind = SG_TRACE_MEDIA_READ,
                                .addr = XR_BASE + 8,
                                .len = sizeof(one) };
    struct xr r;

    sg_hasher_init(&hasher, SG_HASH_CRC32C, NULL, 0);
    sg_hasher_add(&hasher, &one, sizeof(one));
    T_EQ_INT(sg_hasher_end(&hasher, hash), 4);
    start(&r, SG_CRASH_ANY);
    place(&r, 0, "datadata");
    xr_store(&r, 0x401000, 8, 1, 0);
    xr_sfence(&r);
    prove(&r);
    xr_event(&r, XR_TARGET, e);
    e = (struct sg_trace_event){
        .kind = SG_TRACE_VERIFY,
        .addr = XR_BASE + 8,
        .value = sizeof(one),
        .data = hash,
        .len = 4,
        .arg = SG_HASH_CRC32C,
        .qpn = 1,
    };
    xr_event(&r, XR_TARGET, e);
    xr_durable(&r, 8, 8);
    xr_explore(&r, "adr", "off", SG_CRASH_ACK_DEFAULT);
    T_NULL(r.wrong);
    T_EQ_U64(verdict(&r, "adr,ddio=off")->end, 0);
    T_EQ_INT(verdict(&r, "adr,ddio=off")->pasts, 2);
    T_EQ_U64(verdict(&r, "adr,ddio=off")->promises[SG_CRASH_ACK_DURABLE], 1);
    T_EQ_U64(verdict(&r, "adr,ddio=off")->broken[SG_CRASH_ACK_DURABLE], 0);
    xr_free(&r);
}

/* A store beside data of DMA, which is promised without a flush. */
static void begin_with_bug(struct xr *r)
{
    start(r, SG_CRASH_ANY);
    place(r, 0, "datadata");
    xr_store(r, 0x401000, 8, 1, 0);
    xr_sfence(r);
    prove(r);
    xr_durable(r, 8, 8);
}

/* The story is that of the past in which the store may be lost. */
static void story(void)
{
    const struct sg_crash_story *s;
    struct xr r;

    begin_with_bug(&r);
    xr_explore(&r, "adr", "off", SG_CRASH_ACK_DEFAULT);
    T_EQ_INT(r.bugs->len, 1);
    xr_tell(&r);
    s = sg_crash_teller_story(r.teller, 0);
    T_NOT_NULL(s);
    T_TRUE(s->events->len > 1);
    T_EQ_INT(g_array_index(s->events, struct sg_crash_story_event, s->events->len - 1).stage,
             SG_PERSIST_S2);
    xr_free(&r);
}

/*
 * Of two bugs in different pasts of a platform the second one has neither story nor timeline.  The
 * first one has both.
 */
static void untold(void)
{
    struct xr r;

    begin_with_bug(&r);
    place(&r, LINE, "datadata");
    xr_store(&r, 0x402000, LINE + 8, 1, 0);
    xr_sfence(&r);
    prove(&r);
    xr_durable(&r, LINE + 8, 8);
    xr_explore(&r, "adr", "off", SG_CRASH_ACK_DEFAULT);
    T_EQ_INT(r.bugs->len, 2);
    xr_tell(&r);
    T_NOT_NULL(sg_crash_teller_story(r.teller, 0));
    T_TRUE(sg_crash_timeline(r.timelines, 0)->events->len > 1);
    T_NULL(sg_crash_teller_story(r.teller, 1));
    T_NULL(sg_crash_timeline(r.timelines, 1));
    xr_free(&r);
}

static const struct t_case cases[] = {
    { "pasts become one when their lines are flushed", they_join },
    { "at most so many pasts; what is left out is counted", limit },
    { "orders of segments; those of many lines are left out and counted", segments },
    { "stores beside data are counted if there is one past", one_past },
    { "each order of data and store breaks another mark", two_orders },
    { "a Verify contradicts a past", contradicted },
    { "the story of a bug in one of several pasts", story },
    { "bugs in two pasts of a platform: one of them is told", untold },
};

T_MAIN(cases)
