/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records and promises (durable.h, bench.h), against our responder.  Its program answers as an NFS
 * server would: the test decides how stable a WRITE is, and when the verifier changes.
 */
#include "bench.h"
#include "durable.h"
#include "echo.h"
#include "liar.h"
#include "loopback.h"
#include "tap.h"

enum { SIZE = 1024, RECORDS = RR_ECHO_MEMORY / SIZE };

static struct {
    enum rr_stable at_most;  /* how stable a WRITE becomes, whatever it asked for */
    unsigned restart_before; /* the verifier changes before this Reply; 0: never */
    unsigned replies;
    unsigned commits;
} server;

static bool make_call(const struct rr_service *service, const struct rr_request *q, uint32_t xid,
                      struct rr_stream *s)
{
    struct rr_request request = *q;

    request.want = q->want == RR_WANT_COMMIT ? RR_WANT_NULL : q->want;
    return rr_service_echo.make(service, &request, xid, s);
}

static bool read_reply(const struct rr_service *service, const struct rr_request *q,
                       struct sg_span stream, size_t body, unsigned reduced,
                       struct rr_results *results, const char **why)
{
    struct rr_request request = *q;

    request.want = q->want == RR_WANT_COMMIT ? RR_WANT_NULL : q->want;
    if (!rr_service_echo.read(service, &request, stream, body, reduced, results, why)) {
        return false;
    }
    server.replies++;
    server.commits += q->want == RR_WANT_COMMIT;
    results->stable = SG_MIN(q->stable, server.at_most);
    results->verifier[0] = server.restart_before && server.replies >= server.restart_before;
    return true;
}

static const struct rr_service service = { .name = "test", .make = make_call, .read = read_reply };

/* A session with the responder, which lives until close_session(). */
static struct open_session {
    struct rr_loopback loopback;
    struct rr_check_options options;
    struct rr_verdict verdict;
    struct rr_session *s;
    struct liar liar;
} o;

/* @lie: of the responder; NULL: it has none. */
static void open_lying_session(const struct lie *lie)
{
    struct rr_settings settings = rr_settings_default();
    struct rr_opening opening = rr_opening_default();

    memset(&o, 0, sizeof(o));
    if (lie) {
        liar_init(&o.liar, &o.loopback, lie);
    } else {
        rr_loopback_init(&o.loopback, &settings);
    }
    o.options = (struct rr_check_options){ .service = &service, .any_edition = true };
    o.verdict.log = g_string_new(NULL);
    o.s = rr_session_new(&o.options, &o.loopback.dialer, &o.verdict, RPC_22);
    T_TRUE(rr_open(o.s, &opening));
    server.replies = server.commits = server.restart_before = 0;
    server.at_most = RR_FILE_SYNC;
}

static void open_session(void)
{
    open_lying_session(NULL);
}

static void close_session(void)
{
    rr_session_free(o.s);
    g_string_free(o.verdict.log, true);
    rr_loopback_clear(&o.loopback);
}

static void expect_verified(struct rr_durable d, uint32_t seed, uint32_t wrong, uint32_t first)
{
    uint32_t found = 0, at = 0;

    d.seed = seed;
    T_TRUE(rr_durable_verify(o.s, &d, &found, &at));
    T_EQ_U64(found, wrong);
    T_EQ_U64(at, first);
}

static void stable_at_once(void)
{
    struct rr_durable d = { .records = RECORDS, .size = SIZE, .every = 4 };

    for (d.stable = RR_DATA_SYNC; d.stable <= RR_FILE_SYNC; d.stable++) {
        open_session();
        d.answered = d.kept = 0;
        d.seed = d.stable;
        T_TRUE(rr_durable_write(o.s, &d));
        T_EQ_U64(d.answered, RECORDS);
        T_EQ_U64(d.kept, RECORDS);
        T_EQ_U64(server.commits, 0);
        T_EQ_INT(o.verdict.findings.count, 0);
        expect_verified(d, d.seed, 0, 0);
        expect_verified(d, d.seed + 1, RECORDS, 1);
        close_session();
    }
}

static void commits(void)
{
    static const struct {
        uint32_t every, commits, kept;
    } rows[] = { { 0, 0, 0 }, { 1, 32, 32 }, { 5, 7, 32 }, { 16, 2, 32 }, { 100, 1, 32 } };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct rr_durable d = { .records = 32, .size = SIZE, .every = rows[i].every };

        T_CONTEXT("a COMMIT behind %u records", rows[i].every);
        open_session();
        T_TRUE(rr_durable_write(o.s, &d));
        T_EQ_U64(d.answered, 32);
        T_EQ_U64(server.commits, rows[i].commits);
        T_EQ_U64(d.kept, rows[i].kept);
        close_session();
    }
}

/* The server restarts before the nth Reply: what was not committed then is not promised. */
static void restarts(void)
{
    static const struct {
        unsigned before;
        uint32_t answered, kept;
    } rows[] = {
        { 2, 1, 0 },   /* the second WRITE has another verifier than the first one */
        { 5, 4, 0 },   /* so has the COMMIT behind four WRITEs */
        { 6, 32, 32 }, /* nothing is unstable behind the COMMIT */
        { 8, 6, 4 },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct rr_durable d = { .records = 32, .size = SIZE, .every = 4 };

        T_CONTEXT("before Reply %u", rows[i].before);
        open_session();
        server.restart_before = rows[i].before;
        T_EQ_INT(rr_durable_write(o.s, &d), rows[i].answered == 32);
        T_EQ_U64(d.answered, rows[i].answered);
        T_EQ_U64(d.kept, rows[i].kept);
        T_EQ_INT(strstr(o.verdict.trouble, "the server has restarted") != NULL,
                 rows[i].answered < 32);
        close_session();
    }
}

static void less_stable_than_asked(void)
{
    struct rr_durable d = { .records = 4, .size = SIZE, .stable = RR_FILE_SYNC };

    open_session();
    server.at_most = RR_DATA_SYNC;
    T_FALSE(rr_durable_write(o.s, &d));
    T_EQ_U64(d.kept, 0);
    T_NOT_NULL(strstr(o.verdict.trouble, "record 1 is less stable than it was asked for"));
    close_session();
}

/* One octet of one record. */
static void damage__is_found(void)
{
    struct rr_durable d = { .records = 8, .size = SIZE, .stable = RR_FILE_SYNC, .seed = 9 };
    uint8_t octets[4] = { 1, 2, 3, 4 };
    struct rr_results results;

    open_session();
    T_TRUE(rr_durable_write(o.s, &d));
    T_TRUE(rr_begin(o.s, (struct rr_request){ RR_WANT_WRITE, .offset = 6 * SIZE - 4, .count = 4,
                                              .data = octets }));
    T_TRUE(rr_send(o.s) && rr_expect_reply(o.s) && rr_results(o.s, &results));
    expect_verified(d, 9, 1, 6);
    close_session();
}

/* ---- The file itself ---- */

static void record__states(void)
{
    static const struct {
        uint32_t zeros_from, zeros_to, changed; /* changed: this octet; 0: none */
        enum rr_record_state state;
    } rows[] = {
        { 0, 0, 0, RR_RECORD_RIGHT },       { 0, SIZE, 0, RR_RECORD_LOST },
        { 512, SIZE, 0, RR_RECORD_TORN },   /* the second half has not come */
        { 0, SIZE - 8, 0, RR_RECORD_TORN }, /* only the last octets have */
        { 0, 0, SIZE - 1, RR_RECORD_TORN }, /* one octet is another one */
        { 0, SIZE, 9, RR_RECORD_TORN },     /* nothing but a foreign octet */
    };
    struct rr_durable d = { .size = SIZE, .seed = 3 };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        uint8_t octets[SIZE];

        T_CONTEXT("row %zu", i);
        rr_record_fill(&d, 2, octets);
        memset(octets + rows[i].zeros_from, 0, rows[i].zeros_to - rows[i].zeros_from);
        if (rows[i].changed) {
            octets[rows[i].changed] ^= 0x40;
        }
        T_EQ_INT(rr_record_judge(&d, 2, octets), rows[i].state);
        /* Another record in its place is not right either. */
        T_TRUE(rr_record_judge(&d, 1, octets) != RR_RECORD_RIGHT);
    }
}

/* A file with five records of which the last one is cut, judged with as many as are asked for. */
static void inspect__ends_anywhere(void)
{
    enum { RECORDS_HERE = 5 };
    struct rr_durable d = { .size = SIZE, .seed = 3 };
    uint8_t octets[RECORDS_HERE * SIZE];

    for (uint32_t n = 1; n <= RECORDS_HERE; n++) {
        rr_record_fill(&d, n, octets + (size_t)(n - 1) * SIZE);
    }
    memset(octets + SIZE, 0, SIZE);
    for (d.records = 0; d.records <= RECORDS_HERE + 2; d.records++) {
        FILE *file = fmemopen(octets, sizeof(octets) - 4, "rb");
        uint32_t torn = d.records >= RECORDS_HERE, lost = d.records >= 2;
        struct rr_inspection found;

        T_CONTEXT("%u records", d.records);
        lost += d.records > RECORDS_HERE ? d.records - RECORDS_HERE : 0;
        T_NOT_NULL(file);
        T_TRUE(rr_durable_inspect(&d, file, &found));
        T_EQ_U64(found.count[RR_RECORD_TORN], torn);
        T_EQ_U64(found.count[RR_RECORD_LOST], lost);
        T_EQ_U64(found.count[RR_RECORD_RIGHT], d.records - torn - lost);
        if (torn) {
            T_EQ_INT(found.state[RECORDS_HERE - 1], RR_RECORD_TORN);
        }
        g_free(found.state);
        fclose(file);
    }
}

/* ---- NFS ---- */

static void nfs__stable_and_commit(void)
{
    static struct rr_stream s;
    /* A COMPOUND of three operations, of which PUTROOTFH and LOOKUP come first. */
    static const uint32_t words[] = { 0, 0, 3, 24, 0, 15, 0, 38, 0 };
    struct rr_service nfs = rr_service_nfs;
    struct rr_request write = { .want = RR_WANT_WRITE, .count = 4, .stable = RR_FILE_SYNC };
    struct rr_results results;
    const char *why = "";
    size_t body;

    T_FALSE(nfs.make(&nfs, &(struct rr_request){ .want = RR_WANT_COMMIT }, 7, &s));
    nfs.file = "file";
    T_TRUE(nfs.make(&nfs, &(struct rr_request){ .want = RR_WANT_COMMIT }, 7, &s));
    /* Operation 5, offset 0, count 0: all. */
    T_EQ_U64(sg_get_be32(s.octets + s.len - 16), 5);
    T_EQ_U64(sg_get_be64(s.octets + s.len - 12), 0);
    T_EQ_U64(sg_get_be32(s.octets + s.len - 4), 0);
    write.data = s.octets;
    T_TRUE(nfs.make(&nfs, &write, 7, &s));
    T_EQ_U64(sg_get_be32(s.octets + s.len - 12), RR_FILE_SYNC);

    rr_stream_reply(&s, 7, 0);
    body = s.len;
    for (unsigned i = 0; i < SG_ARRAY_SIZE(words); i++) {
        rr_put_word(&s, words[i]);
    }
    rr_put_word(&s, 4); /* octets */
    rr_put_word(&s, RR_DATA_SYNC);
    rr_put_hyper(&s, 0x0102030405060708);
    T_TRUE(nfs.read(&nfs, &write, sg_span_of(s.octets, s.len), body, 0, &results, &why));
    T_EQ_INT(results.stable, RR_DATA_SYNC);
    T_EQ_U64(sg_get_be64(results.verifier), 0x0102030405060708);
    T_FALSE(nfs.read(&nfs, &write, sg_span_of(s.octets, s.len - 4), body, 0, &results, &why));
}

static void bench__counts(void)
{
    static const struct rr_request requests[] = {
        { .want = RR_WANT_NULL },
        { .want = RR_WANT_READ, .count = 20000 },
    };

    for (size_t i = 0; i < 2 * SG_ARRAY_SIZE(requests); i++) {
        unsigned depth = i % 2 ? 8 : 1;
        struct rr_rate rate;

        open_session();
        o.options.reply_ms = 10;
        T_TRUE(rr_bench(o.s, requests[i / 2], depth, 0.02, &rate));
        T_TRUE(rate.per_second > 100);
        T_EQ_INT(rate.depth, depth);
        T_EQ_INT(o.verdict.findings.count, 0);
        close_session();
    }
}

static const uint32_t *grants; /* of the Replies in turn; the last one stays */

static void grants_in_turn(struct liar_message *m)
{
    m->h.credit = *grants;
    grants += grants[1] != UINT32_MAX;
}

/* What is reported is what was measured, and a server that breaks a rule meanwhile is noticed. */
static void bench__keeps_to_the_grant(void)
{
    static const struct lie lie = { .name = "grants_in_turn", .sends = grants_in_turn };
    static const struct {
        uint32_t grants[4];
        unsigned depth;
        bool breach;
    } rows[] = {
        { { 3, UINT32_MAX }, 3, false },
        { { 2, 2, 5, UINT32_MAX }, 5, false },
        { { 0, UINT32_MAX }, 1, true },
        { { 4, 4, 0, UINT32_MAX }, 4, true },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct rr_rate rate;

        T_CONTEXT("row %zu", i);
        grants = rows[i].grants;
        open_lying_session(&lie);
        o.options.reply_ms = 10;
        T_TRUE(rr_bench(o.s, (struct rr_request){ .want = RR_WANT_NULL }, 8, 0.02, &rate));
        T_EQ_INT(rate.depth, rows[i].depth);
        T_EQ_INT(rr_found(&o.verdict.findings, RPC_02), rows[i].breach);
        close_session();
    }
}

static const struct t_case cases[] = {
    { "WRITEs that are stable at once", stable_at_once },
    { "a COMMIT behind some unstable WRITEs", commits },
    { "a server that restarts", restarts },
    { "a server that does less than it was asked for", less_stable_than_asked },
    { "a damaged record is found", damage__is_found },
    { "what has become of a record", record__states },
    { "a file that ends anywhere", inspect__ends_anywhere },
    { "stable WRITEs and COMMIT of NFS", nfs__stable_and_commit },
    { "measurements", bench__counts },
    { "measurements keep to the grant", bench__keeps_to_the_grant },
};

T_MAIN(cases)
