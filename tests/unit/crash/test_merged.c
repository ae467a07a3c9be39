/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs that reach the limits of the model: that is counted and said, and nobody is blamed for what
 * only a merged store shows.
 */
#include "program_rig.h"
#include "staghorn/io.h"

enum { STORES = 5000, LIMIT = 4096, PC = 0x401000, PORT = 7000, LINES = XR_SIZE / 64 };

static const struct sg_crash_verdict *verdict(const struct xr *r, const char *platform)
{
    return sg_crash_explorer_verdict(r->explorer, xr_platform(r, platform));
}

static uint64_t sum(const uint64_t count[SG_CRASH_ACKS])
{
    uint64_t n = 0;

    for (unsigned i = 0; i < SG_CRASH_ACKS; i++) {
        n += count[i];
    }
    return n;
}

/* Nobody flushes the line; a mark says that it is durable. */
static uint64_t store_without_flush(struct xr *r)
{
    uint64_t last = 0;

    xr_init(r, "");
    for (unsigned i = 1; i <= STORES; i++) {
        last = xr_store(r, PC, i % 8 * 8, i, 0);
    }
    xr_sfence(r);
    xr_durable(r, 0, 64);
    return last;
}

static void one_line(void)
{
    const struct sg_crash_verdict *v;
    struct xr r;
    uint64_t last = store_without_flush(&r);

    xr_explore(&r, "adr,eadr", "on", SG_CRASH_ACK_DEFAULT);
    T_NULL(r.wrong);
    v = verdict(&r, "adr,ddio=on");
    T_TRUE(v->merged);
    T_EQ_U64(v->in_doubt, 0); /* all that were merged are promised */
    T_EQ_U64(v->broken[SG_CRASH_ACK_DURABLE], 1);
    T_EQ_INT(r.bugs->len, 1);
    T_EQ_U64(g_array_index(r.bugs, struct sg_crash_bug, 0).lost, last - STORES % 8);
    T_EQ_U64(sum(verdict(&r, "eadr,ddio=on")->broken), 0);
    xr_free(&r);
}

/*
 * What another connection placed before, and promised to nobody, may come later.  That is no
 * breach, also where some other line was merged.
 */
static void elsewhere(void)
{
    for (unsigned merges = 0; merges < 2; merges++) {
        struct xr r;

        xr_init(&r, "");
        xr_connect(&r, 1, PORT);
        xr_connect(&r, 2, PORT);
        for (unsigned i = 0; i < STORES * merges; i++) {
            xr_store(&r, PC, 64, i, 0);
        }
        xr_write(&r, 1, 0, 1, false);
        xr_write(&r, 2, 0, 2, false);
        xr_flush(&r, 2, 0, 8);
        xr_explore(&r, "adr", "on", SG_CRASH_ACK_DEFAULT);
        T_TRUE(!verdict(&r, "adr,ddio=on")->merged == !merges);
        T_EQ_U64(verdict(&r, "adr,ddio=on")->promises[SG_CRASH_ACK_FLUSH], 1);
        T_EQ_U64(sum(verdict(&r, "adr,ddio=on")->broken), 0);
        xr_free(&r);
    }
}

/*
 * A CPU overwrites what was placed, again and again, before the placement is acknowledged.  The
 * value that was promised is merged with later ones, so nobody knows whether it is lost.
 */
static void overwrite(struct xr *r)
{
    struct sg_trace_event work = {
        .kind = SG_TRACE_WORK, .value = 1, .ordinal = 1, .len = 8, .arg = SG_WR_WRITE, .qpn = 1
    };

    xr_init(r, "");
    xr_connect(r, 1, PORT);
    xr_event(r, XR_CLIENT, work);
    xr_frame(r, XR_CLIENT);
    xr_event(r, XR_TARGET,
             (struct sg_trace_event){ .kind = SG_TRACE_PLACE,
                                      .qpn = 1,
                                      .ordinal = 1,
                                      .addr = XR_BASE,
                                      .data = (const uint8_t *)"datadata",
                                      .len = 8 });
    for (unsigned i = 0; i < STORES; i++) {
        xr_store(r, PC, 0, i, 0);
    }
    xr_sfence(r);
    xr_frame(r, XR_TARGET);
    work.kind = SG_TRACE_COMPLETED;
    xr_event(r, XR_CLIENT, work);
}

static void in_doubt(void)
{
    const struct sg_crash_verdict *v;
    struct xr r;

    overwrite(&r);
    xr_explore(&r, "adr,eadr", "on", 1u << SG_CRASH_ACK_WRITE);
    T_NULL(r.wrong);
    v = verdict(&r, "adr,ddio=on");
    T_TRUE(v->merged);
    T_EQ_U64(v->in_doubt, 1);
    T_EQ_U64(sum(v->promises) + sum(v->broken), 0);
    T_EQ_INT(v->breaches->len, 0);
    T_EQ_U64(verdict(&r, "eadr,ddio=on")->promises[SG_CRASH_ACK_WRITE], 1); /* caches survive */
    xr_free(&r);
}

/* A processor's buffers that are full: each store that had to leave is counted. */
static void buffers(void)
{
    for (unsigned nt = 0; nt < 2; nt++) {
        struct xr r;

        xr_init(&r, "");
        for (unsigned i = 0; i < STORES; i++) {
            xr_store(&r, PC, i % LINES * 64, i, nt ? SG_PERSIST_STORE_NT : 0);
        }
        xr_explore(&r, "adr,eadr", "on", SG_CRASH_ACK_DEFAULT);
        T_NULL(r.wrong);
        T_EQ_U64(verdict(&r, "adr,ddio=on")->merged, STORES - LIMIT);
        T_EQ_U64(verdict(&r, "eadr,ddio=on")->merged, STORES - LIMIT);
        xr_free(&r);
    }
}

/* Each past counts, those that have ended as well. */
static void pasts(void)
{
    uint64_t merged[2];

    for (unsigned several = 0; several < 2; several++) {
        struct xr r;

        xr_init(&r, "");
        r.arrivals = several ? SG_CRASH_ANY : SG_CRASH_LATE;
        for (unsigned i = 0; i < LIMIT; i++) {
            xr_store(&r, PC, 8, i, 0);
        }
        xr_event(&r, XR_TARGET,
                 (struct sg_trace_event){ .kind = SG_TRACE_PLACE,
                                          .qpn = 1,
                                          .addr = XR_BASE,
                                          .data = (const uint8_t *)"datadata",
                                          .len = 8 });
        for (unsigned i = 0; i < 20; i++) {
            xr_store(&r, PC, 8, i, 0);
        }
        xr_explore(&r, "adr", "on", SG_CRASH_ACK_DEFAULT);
        merged[several] = verdict(&r, "adr,ddio=on")->merged;
        T_TRUE(verdict(&r, "adr,ddio=on")->pasts > 1 || !several);
        xr_free(&r);
    }
    T_TRUE(merged[0]);
    T_NOTE("%" PRIu64 " with one past, %" PRIu64 " with several", merged[0], merged[1]);
    T_TRUE(merged[1] > merged[0]);
}

static void save(struct xr *r)
{
    static const char *const name[XR_MACHINES] = { "target.trace", "client.trace" };

    xr_end(r);
    for (unsigned i = 0; i < XR_MACHINES; i++) {
        pr_save(name[i], r->machine[i].file->data, r->machine[i].file->len);
    }
    xr_free(r);
}

/* The program says so, in text and in its result. */
static void said(void)
{
    const struct json_value *of;
    struct json_value *result;
    struct xr r;

    store_without_flush(&r);
    save(&r);
    pr_expect("--out one --domain adr target.trace", 1, "had more than 4096 stores under way");
    pr_expect_in("one/result.json", "had more than 4096 stores under way");
    result = pr_json("one/result.json");
    of = pr_item(json_member(result, "platforms", JSON_ARRAY), 0);
    T_TRUE(pr_number(of, "merged"));
    T_EQ_U64(pr_number(of, "promises-in-doubt"), 0);
    json_free(result);
    /* Nothing else was promised, so there is no verdict. */
    overwrite(&r);
    save(&r);
    pr_expect("--out two --domain adr --ddio on --acks write target.trace client.trace", 4,
              "1 promises were not judged, because the stores that they are about were merged");
    result = pr_json("two/result.json");
    of = pr_item(json_member(result, "platforms", JSON_ARRAY), 0);
    T_EQ_U64(pr_number(of, "promises-in-doubt"), 1);
    json_free(result);
}

static const struct t_case cases[] = {
    { "5,000 stores to a line: the breach is there, the merge is counted", one_line },
    { "a merge in one line changes no verdict about another", elsewhere },
    { "a promise about a merged store is not judged", in_doubt },
    { "full buffers of a processor are counted", buffers },
    { "merges of all pasts are counted", pasts },
    { "staghorn-explore says so", said },
};

int main(int argc, char **argv)
{
    return pr_main(cases, SG_ARRAY_SIZE(cases), argc, argv);
}
