/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cases of `rpcrdma check`, against our responder, and against one that errs. */
#include "check.h"
#include "liar.h"
#include "tap.h"

static struct rr_book book;

static struct rr_check_run check_run(struct rr_dialer *dialer)
{
    book = (struct rr_book){ .target = "test", .out = g_string_new(NULL) };
    return (struct rr_check_run){
        .options = { .service = &rr_service_echo,
                     .any_edition = true,
                     .reply_ms = 10,
                     .quiet_ms = 10 },
        .dialer = dialer,
        .book = &book,
    };
}

/* ---- Our responder ---- */

static void expect_all(const struct rr_settings *settings, bool any_edition)
{
    struct rr_loopback loopback;
    struct rr_check_run run;

    rr_loopback_init(&loopback, settings);
    run = check_run(&loopback.dialer);
    run.options.any_edition = any_edition;
    run.options.edition = settings->edition;
    rr_check_all(&run);
    if (book.failed || book.in_trouble) {
        printf("# %s\n", book.out->str);
    }
    T_EQ_INT(book.failed, 0);
    T_EQ_INT(book.in_trouble, 0);
    /* Who grants one credit never has two Calls, and never confuses them. */
    T_EQ_INT(book.skipped, settings->credits == 1);
    T_TRUE(book.passed >= 50);
    rr_loopback_clear(&loopback);
    g_string_free(book.out, true);
}

static void self__keeps_all_rules(void)
{
    struct rr_settings settings = rr_settings_default();

    expect_all(&settings, true);
    expect_all(&settings, false);
}

static void self__other_settings(void)
{
    static const struct rr_settings rows[] = {
        { RR_EDITION_RFC, 32, 1024, true, true },   { RR_EDITION_RFC, 32, 4096, false, false },
        { RR_EDITION_RFC, 1, 4096, true, false },   { RR_EDITION_RFC, 255, 8192, true, true },
        { RR_EDITION_RFC, 32, 262144, true, true },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("row %zu", i);
        expect_all(&rows[i], true);
    }
}

/* Whatever private data it sends: it does what a client must make of them. */
static void self__other_private_data(void)
{
    static const char *const rows[] = {
        "f6ab0e18010003",           "f6ab0e1802010303",   "0011223344556677",
        "01020304f6ab0e1801010307", "f6f6ab0e180100ff3f", "f6ab0e1801010000",
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct rr_settings settings = rr_settings_default();

        T_CONTEXT("%s", rows[i]);
        settings.octets_len =
            rr_private_from_hex(rows[i], settings.octets, sizeof(settings.octets));
        T_TRUE(settings.octets_len > 0);
        expect_all(&settings, true);
    }
}

/* Revision 07 differs in returned chunks only, and has the same form for whoever asks for it. */
static void self__revision_07(void)
{
    struct rr_settings settings = rr_settings_default();

    settings.edition = RR_EDITION_07;
    expect_all(&settings, true);
    expect_all(&settings, false);
}

/* Revision 06 answers RDMA_DONE: that is right only for whoever asks for that revision. */
static void self__revision_06(void)
{
    struct rr_settings settings = rr_settings_default();

    settings.edition = RR_EDITION_06;
    expect_all(&settings, false);
}

/* ---- A responder that errs ---- */

static void grants_nothing(struct liar_message *m)
{
    m->h.credit = 0;
}

static void other_version(struct liar_message *m)
{
    m->h.vers = 2;
}

static void other_xid(struct liar_message *m)
{
    m->h.xid++;
}

static void other_rpc_xid(struct liar_message *m)
{
    m->rest[3]++;
}

static void no_answer(struct liar_message *m)
{
    m->swallow = true;
}

/* The Reply of WRITE is one word longer than that of NULL. */
static void no_answer_to_write(struct liar_message *m)
{
    m->swallow = m->rest_len == 28;
}

static void no_errors(struct liar_message *m)
{
    m->swallow = m->h.proc == RR_ERROR;
}

static void only_errors(struct liar_message *m)
{
    m->h.proc = RR_ERROR;
    m->h.err = RR_ERR_CHUNK;
    m->rest_len = 0;
}

static void has_read_list(struct liar_message *m)
{
    rr_add_read(&m->h, 0, (struct rr_segment){ 1, 4, 0 });
}

static void loses_chunks(struct liar_message *m)
{
    m->h.chunks = 0;
}

static void loses_last_chunk(struct liar_message *m)
{
    m->h.chunks -= m->h.chunks > 0;
}

static void loses_reply_chunk(struct liar_message *m)
{
    m->h.has_reply = false;
}

static void other_handle(struct liar_message *m)
{
    m->h.segment[0].handle++;
}

static void used_without_need(struct liar_message *m)
{
    m->h.segment[0].length = UINT32_MAX;
}

static void longer_by_one(struct liar_message *m)
{
    m->h.segment[0].length += m->h.segments > 0;
}

static void fills_empty_chunk(struct liar_message *m)
{
    if (m->h.chunks && !m->h.chunk[0].count) {
        m->h.segment[m->h.segments] = (struct rr_segment){ 5, 0, 0 };
        m->h.chunk[0] = (struct rr_chunk){ m->h.segments++, 1 };
    }
}

static void octets_behind(struct liar_message *m)
{
    memset(m->rest + m->rest_len, 0, 4);
    m->rest_len += 4;
}

static void too_long(struct liar_message *m)
{
    memset(m->rest + m->rest_len, 0, 5000);
    m->rest_len += 5000;
}

static void refuses(struct liar_message *m)
{
    sg_put_be32(m->rest + 20, RR_REPLY);
}

static void says_version_2(struct liar_message *m)
{
    m->h.low = m->h.high = 2;
}

static void no_err_vers(struct liar_message *m)
{
    m->h.err = RR_ERR_CHUNK;
}

static void no_err_chunk(struct liar_message *m)
{
    m->h.err = RR_ERR_VERS;
}

static void error_of_version_1(struct liar_message *m)
{
    m->h.vers = RR_VERSION;
}

static void invalidates_always(struct liar_message *m)
{
    m->invalidate = m->h.segments > 0;
}

/* Of two Replies, the first one invalidates nothing, and the second one what the first should. */
static void invalidates_late(struct liar_message *m)
{
    static uint32_t stag;

    if (m->invalidate && !stag) {
        stag = m->stag;
        m->invalidate = false;
    } else if (m->invalidate) {
        m->stag = stag;
        stag = 0;
    }
}

static void grants_more(struct liar_message *m)
{
    m->h.credit = 32;
}

static uint32_t proc_of(const uint8_t *octets, size_t len)
{
    return len < RR_FIXED_LEN ? UINT32_MAX : sg_get_be32(octets + 12);
}

static void answers_done(uint8_t *octets, size_t *len, bool *swallow)
{
    if (proc_of(octets, *len) == RR_DONE) {
        sg_put_be32(octets + 12, RR_MSGP);
    }
}

static void answers_errors(uint8_t *octets, size_t *len, bool *swallow)
{
    if (proc_of(octets, *len) == RR_ERROR) {
        sg_put_be32(octets + 12, RR_MSGP);
    }
}

static void drops_msgp(uint8_t *octets, size_t *len, bool *swallow)
{
    *swallow = proc_of(octets, *len) == RR_MSGP;
}

static void answers_short(uint8_t *octets, size_t *len, bool *swallow)
{
    if (*len < RR_HEADER_MIN) {
        memset(octets + *len, 0, RR_HEADER_MIN - *len);
        *len = RR_HEADER_MIN;
    }
}

static void answers_replies(uint8_t *octets, size_t *len, bool *swallow)
{
    if (*len == 52 && sg_get_be32(octets + 32) == RR_REPLY) {
        sg_put_be32(octets + 32, RR_CALL);
    }
}

static void drops_long_calls(uint8_t *octets, size_t *len, bool *swallow)
{
    *swallow = proc_of(octets, *len) == RR_NOMSG;
}

static void takes_any_flag(uint8_t *octets, size_t *len, bool *swallow)
{
    for (size_t at = 16; at < SG_MIN(*len, RR_HEADER_MIN); at += 4) {
        if (sg_get_be32(octets + at) > 1) {
            sg_put_be32(octets + at, 0);
        }
    }
}

/* It grants what the Call asks for, whatever that is. */
static uint32_t asked;

static void notes_asked(uint8_t *octets, size_t *len, bool *swallow)
{
    asked = *len < RR_FIXED_LEN ? 1 : sg_get_be32(octets + 8);
}

static void grants_asked(struct liar_message *m)
{
    m->h.credit = asked;
}

/* Only the argument of a WRITE is in a Read chunk above 0, and it belongs at the end. */
static void ignores_position(uint8_t *octets, size_t *len, bool *swallow)
{
    static struct rr_header h;

    if (rr_header_parse(sg_span_of(octets, *len), &h) == RR_OK && h.proc == RR_MSG && h.reads) {
        h.read[0].position = (uint32_t)(*len - h.len);
        rr_header_emit(&h, octets, h.len);
    }
}

static void ignores_xid(uint8_t *octets, size_t *len, bool *swallow)
{
    if (proc_of(octets, *len) == RR_MSG && *len > RR_HEADER_MIN) {
        memcpy(octets + RR_HEADER_MIN, octets, 4);
    }
}

static void writes_pad(struct rr_post *post)
{
    post->len = sg_align_up(post->len, 4);
}

static void writes_less(struct rr_post *post)
{
    post->len--;
}

static void writes_elsewhere(struct rr_post *post)
{
    post->at ^= 4;
}

static void damages(uint8_t *octets, size_t len)
{
    octets[len - 1] ^= 1;
}

/* The client's private data counts as if it said 4096 octets. */
static void assumes_4096(struct rr_loopback *loopback, struct rr_port *liar)
{
    static const uint8_t said[] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3 };

    memcpy(liar->peer, said, sizeof(said));
    liar->peer_len = sizeof(said);
}

/* Its private data is that of a client that it had before. */
static void remembers(struct rr_loopback *loopback, struct rr_port *liar)
{
    static uint8_t before[RR_PRIVATE_LEN];

    if (liar->peer_len) {
        memcpy(before, liar->peer, sizeof(before));
    } else {
        memcpy(liar->peer, before, sizeof(before));
        liar->peer_len = sizeof(before);
    }
}

static void reserved_bit(struct rr_loopback *loopback, struct rr_port *liar)
{
    rr_pair_port(loopback->pair, 0)->peer[5] |= 0x80;
}

#define LIE(id, rule_id, how, what) \
    { .name = #what, .case_id = id, .rule = rule_id, .how = what, .edition = RR_EDITION_RFC }

static const struct lie lies[] = {
    LIE("null", RPC_02, sends, grants_nothing),
    LIE("null", RPC_22, sends, only_errors),
    LIE("null", RPC_23, sends, other_version),
    LIE("null", RPC_22, sends, other_xid),
    LIE("null", RPC_22, sends, other_rpc_xid),
    LIE("null", RPC_22, sends, no_answer),
    LIE("null", RPC_22, sends, refuses),
    LIE("null", RPC_27, sends, has_read_list),
    LIE("null", RPC_43, sends, too_long),
    LIE("one-credit", RPC_02, sends, grants_nothing),
    { "grants_asked", "zero-credits", RPC_02, .sends = grants_asked, .receives = notes_asked,
      .edition = RR_EDITION_RFC },
    LIE("xid", RPC_22, sends, other_xid),
    LIE("full-call", RPC_15, sends, other_handle),
    LIE("unused-chunk", RPC_30, sends, loses_chunks),
    LIE("unused-chunk", RPC_15, sends, used_without_need),
    LIE("unused-segments", RPC_15, sends, other_handle),
    LIE("unused-chunks", RPC_30, sends, loses_last_chunk),
    LIE("empty-chunk", RPC_32, sends, fills_empty_chunk),
    LIE("reply-chunk", RPC_34, sends, loses_reply_chunk),
    LIE("reply-chunk-segments", RPC_34, sends, other_handle),
    LIE("many-segments", RPC_34, sends, other_handle),
    LIE("many-segments", RPC_34, sends, only_errors),
    LIE("both-lists", RPC_34, sends, loses_reply_chunk),
    LIE("long-call", RPC_18, receives, drops_long_calls),
    LIE("long-call", RPC_22, sends, other_rpc_xid),
    LIE("long-call-segments", RPC_18, receives, drops_long_calls),
    LIE("argument-inline", RPC_11, sends, octets_behind),
    LIE("argument", RPC_11, reads, damages),
    LIE("argument-pad", RPC_11, sends, octets_behind),
    LIE("argument-segments", RPC_11, reads, damages),
    LIE("argument-large", RPC_11, reads, damages),
    LIE("argument-long-call", RPC_20, receives, drops_long_calls),
    LIE("result", RPC_16, places, writes_pad),
    LIE("result", RPC_15, places, writes_less),
    LIE("result", RPC_15, places, writes_elsewhere),
    LIE("result", RPC_15, sends, longer_by_one),
    LIE("result", RPC_11, sends, octets_behind),
    LIE("result-segments", RPC_15, places, writes_elsewhere),
    LIE("result-empty-chunk", RPC_32, sends, fills_empty_chunk),
    LIE("results", RPC_30, sends, loses_last_chunk),
    LIE("chunk-too-small", RPC_36, sends, no_errors),
    LIE("long-reply", RPC_34, sends, loses_reply_chunk),
    LIE("long-reply-segments", RPC_34, sends, other_handle),
    LIE("long-reply-without", RPC_36, sends, no_errors),
    LIE("reply-chunk-too-small", RPC_36, sends, no_err_chunk),
    LIE("versions", RPC_38, sends, says_version_2),
    LIE("versions", RPC_38, sends, no_err_vers),
    LIE("versions", RPC_38, sends, no_errors),
    LIE("versions", RPC_36, sends, error_of_version_1),
    LIE("msgp", RPC_41, receives, drops_msgp),
    LIE("msgp", RPC_41, sends, no_err_chunk),
    LIE("done", RPC_42, receives, answers_done),
    LIE("error-of-requester", RPC_26, receives, answers_errors),
    LIE("unknown-procedure", RPC_39, sends, no_errors),
    LIE("short", RPC_35, receives, answers_short),
    LIE("cut-list", RPC_39, sends, no_err_chunk),
    LIE("huge-count", RPC_39, sends, no_errors),
    LIE("flag", RPC_39, receives, takes_any_flag),
    LIE("nomsg-without-chunks", RPC_39, receives, drops_long_calls),
    LIE("stray-reply", RPC_37, receives, answers_replies),
    LIE("position-odd", RPC_36, receives, ignores_position),
    LIE("position-odd", RPC_36, sends, no_answer),
    LIE("position-beyond", RPC_36, receives, ignores_position),
    LIE("position-beyond", RPC_36, sends, no_err_chunk),
    LIE("xid-differs", RPC_39, receives, ignores_xid),
    LIE("xid-differs", RPC_39, sends, no_errors),
    LIE("read-stag", RPC_36, pretends, true),
    LIE("write-stag", RPC_36, pretends, true),
    LIE("reply-stag", RPC_36, pretends, true),
    { "stays_silent", "read-stag", RPC_36, .pretends = true, .sends = no_answer_to_write,
      .edition = RR_EDITION_RFC },
    LIE("private-absent", RPC_19, starts, assumes_4096),
    LIE("private-smallest", RPC_19, starts, assumes_4096),
    LIE("private-unequal", RPC_19, starts, assumes_4096),
    LIE("private-sizes", RPC_19, starts, assumes_4096),
    LIE("private-largest", PVT_02, starts, reserved_bit),
    LIE("private-invalidation", PVT_05, sends, invalidates_always),
    LIE("private-invalidation-xid", PVT_04, sends, invalidates_late),
    LIE("private-offset", RPC_22, sends, other_rpc_xid),
    LIE("private-foreign", RPC_19, starts, assumes_4096),
    LIE("private-version", RPC_19, starts, assumes_4096),
    LIE("private-truncated", RPC_19, starts, assumes_4096),
    LIE("private-reserved", PVT_02, starts, reserved_bit),
    LIE("private-reconnect", RPC_19, starts, remembers),
    { "grants_more", "credits", RPC_03, .sends = grants_more, .credits = 8,
      .edition = RR_EDITION_RFC },
};

static void expect_noticed(const struct lie *lie)
{
    struct rr_loopback loopback;
    struct rr_check_run run;
    struct rr_verdict v;
    struct liar liar;

    T_CONTEXT("%s, case %s", lie->name, lie->case_id);
    liar_init(&liar, &loopback, lie);
    run = check_run(&loopback.dialer);
    T_NOT_NULL(rr_case_of(lie->case_id));
    rr_run_case(&run, rr_case_of(lie->case_id), &v);
    if (!rr_found(&v.findings, lie->rule)) {
        for (unsigned i = 0; i < v.findings.count; i++) {
            printf("# %s: %s\n", rr_rule(v.findings.found[i].rule)->id, v.findings.found[i].text);
        }
        printf("# %s\n", v.log->str);
    }
    T_TRUE(rr_found(&v.findings, lie->rule));
    T_EQ_STR(v.trouble, "");
    g_string_free(v.log, true);
    g_string_free(book.out, true);
    rr_loopback_clear(&loopback);
}

static void cases__notice_each_error(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(lies); i++) {
        expect_noticed(&lies[i]);
    }
}

/* One case, against that liar; *v is the caller's to free. */
static void run_against(const struct lie *lie, struct liar *liar, struct rr_verdict *v)
{
    struct rr_loopback loopback;
    struct rr_check_run run;

    liar_init(liar, &loopback, lie);
    run = check_run(&loopback.dialer);
    rr_run_case(&run, rr_case_of(lie->case_id), v);
    g_string_free(book.out, true);
    rr_loopback_clear(&loopback);
}

/* What a responder does to memory that it does not use is no matter of the requester. */
static void unused_memory__may_change(void)
{
    static const char *const ids[] = { "unused-chunk", "unused-chunks" };

    for (size_t i = 0; i < SG_ARRAY_SIZE(ids); i++) {
        struct lie lie = { .case_id = ids[i], .scribbles = true, .edition = RR_EDITION_RFC };
        struct rr_verdict v;
        struct liar liar;

        T_CONTEXT("case %s", ids[i]);
        run_against(&lie, &liar, &v);
        T_SHOWS("RPC-31") {
            T_TRUE(liar.scribbled > 0);
            T_EQ_INT(v.findings.count, 0);
            T_EQ_STR(v.trouble, "");
        }
        g_string_free(v.log, true);
    }
}

/* A responder that cannot answer ends the connection; the requester does not wait in vain. */
static void mute_responder__ends_connection(void)
{
    struct lie lie = { .case_id = "null", .mute = true, .edition = RR_EDITION_RFC };
    struct rr_verdict v;
    struct liar liar;

    run_against(&lie, &liar, &v);
    T_SHOWS("RPC-40") {
        T_EQ_INT(v.findings.count, 1);
        T_EQ_STR(v.findings.found[0].text, "the connection ended instead of a Reply");
    }
    g_string_free(v.log, true);
}

/* A server that takes one connection, and has fallen over when the next one comes. */
struct mortal {
    struct rr_loopback loopback;
    struct rr_port *(*dial)(struct rr_dialer *dialer, const struct rr_port_side *side);
    bool dead;
};

static struct rr_port *dial_once(struct rr_dialer *dialer, const struct rr_port_side *side)
{
    struct mortal *m = (struct mortal *)dialer;

    if (m->dead) {
        snprintf(dialer->why, sizeof(dialer->why), "nobody is there");
        return NULL;
    }
    m->dead = true;
    return m->dial(dialer, side);
}

static void fallen_server__is_a_breach(void)
{
    static const char *const ids[] = { "position-odd", "position-beyond", "read-stag", "write-stag",
                                       "reply-stag" };

    for (size_t i = 0; i < SG_ARRAY_SIZE(ids); i++) {
        struct rr_settings settings = rr_settings_default();
        struct rr_check_run run;
        struct rr_verdict v;
        struct mortal m;

        T_CONTEXT("case %s", ids[i]);
        rr_loopback_init(&m.loopback, &settings);
        m.dial = m.loopback.dialer.dial;
        m.dead = false;
        m.loopback.dialer.dial = dial_once;
        run = check_run(&m.loopback.dialer);
        rr_run_case(&run, rr_case_of(ids[i]), &v);
        T_TRUE(v.findings.count >= 1);
        T_EQ_STR(v.findings.found[0].text,
                 "the server takes no further connection: nobody is there");
        g_string_free(v.log, true);
        g_string_free(book.out, true);
        rr_loopback_clear(&m.loopback);
    }
}

/* No case is without an error that it notices. */
static void cases__all_can_fail(void)
{
    g_autoptr(GString) list = g_string_new(NULL);
    g_auto(GStrv) lines = NULL;

    rr_list_cases(list);
    lines = g_strsplit(list->str, "\n", -1);
    for (char **line = lines; **line; line++) {
        char *id = strtok(*line, " ");
        bool found = false;

        for (size_t i = 0; i < SG_ARRAY_SIZE(lies); i++) {
            found |= strcmp(lies[i].case_id, id) == 0;
        }
        T_CONTEXT("case %s", id);
        T_TRUE(found);
    }
}

/* Each does what the other one must not do. */
static void editions__differ(void)
{
    static const struct {
        enum rr_edition server, rules;
        const char *case_id;
        enum rr_rule rule;
    } rows[] = {
        { RR_EDITION_07, RR_EDITION_RFC, "unused-segments", RPC_15 },
        { RR_EDITION_RFC, RR_EDITION_07, "unused-segments", RPC_15 },
        { RR_EDITION_06, RR_EDITION_RFC, "done", RPC_42 },
        { RR_EDITION_RFC, RR_EDITION_06, "done", RPC_42 },
        { RR_EDITION_07, RR_EDITION_06, "done", RPC_42 },
        { RR_EDITION_06, RR_EDITION_07, "done", RPC_42 },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct rr_settings settings = rr_settings_default();
        struct rr_loopback loopback;
        struct rr_check_run run;
        struct rr_verdict v;

        settings.edition = rows[i].server;
        rr_loopback_init(&loopback, &settings);
        run = check_run(&loopback.dialer);
        run.options.any_edition = false;
        run.options.edition = rows[i].rules;
        rr_run_case(&run, rr_case_of(rows[i].case_id), &v);
        T_CONTEXT("row %zu", i);
        T_TRUE(rr_found(&v.findings, rows[i].rule));
        g_string_free(v.log, true);
        g_string_free(book.out, true);
        rr_loopback_clear(&loopback);
    }
}

static struct rr_port *nobody(struct rr_dialer *dialer, const struct rr_port_side *side)
{
    snprintf(dialer->why, sizeof(dialer->why), "nobody is there");
    return NULL;
}

static void no_connection__is_no_breach(void)
{
    struct rr_dialer dialer = { .dial = nobody };
    struct rr_check_run run = check_run(&dialer);

    rr_check_all(&run);
    T_EQ_INT(book.failed, 0);
    T_EQ_INT(book.passed, 0);
    T_TRUE(book.in_trouble >= 45);
    T_NOT_NULL(strstr(book.out->str, "cannot judge: no connection: nobody is there"));
    g_string_free(book.out, true);
}

static const struct t_case cases[] = {
    { "our responder keeps all rules", self__keeps_all_rules },
    { "also with other settings", self__other_settings },
    { "also with any private data", self__other_private_data },
    { "also with the chunks of revision 07", self__revision_07 },
    { "also with the answers of revision 06", self__revision_06 },
    { "each error of a responder is noticed", cases__notice_each_error },
    { "each case can fail", cases__all_can_fail },
    { "memory of unused chunks may change", unused_memory__may_change },
    { "a responder that cannot answer ends the connection", mute_responder__ends_connection },
    { "a server that has fallen over is a breach", fallen_server__is_a_breach },
    { "editions differ in returned chunks and RDMA_DONE", editions__differ },
    { "no connection is no breach", no_connection__is_no_breach },
};

T_MAIN(cases)
