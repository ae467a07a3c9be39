/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cases of `rpcrdma check client`, against our requester, and against one that errs. */
#include "base/prng.h"
#include "check.h"
#include "client_cases.h"
#include "liar.h"
#include "loopback_client.h"
#include "tap.h"

enum { SEEDS = 40, WAIT_MS = 100, QUIET_MS = 5, TICK_US = 20 };

/* Time passes when it is looked at: on a busy machine all is as on an idle one. */
static gint64 now_us;

static gint64 tick(void)
{
    return now_us += TICK_US;
}

/* A requester behind a port that lies, or behind none. */
struct client {
    struct rr_client_loopback loopback;
    const struct lie *lie;
    struct liar liar;
};

static struct rr_port *wrap(struct rr_port *port, void *arg)
{
    struct client *c = arg;

    liar_wrap(&c->liar, c->lie, port);
    return &c->liar.port;
}

static void client_init(struct client *c, const struct rr_requester_settings *settings,
                        const struct lie *lie)
{
    memset(c, 0, sizeof(*c));
    rr_client_loopback_init(&c->loopback, settings);
    if (lie) {
        c->lie = lie;
        c->loopback.wrap = wrap;
        c->loopback.wrap_arg = c;
    }
}

static struct rr_client_options options_of(struct client *c)
{
    return (struct rr_client_options){ .acceptor = &c->loopback.acceptor,
                                       .source = &rr_source_echo,
                                       .wait_ms = WAIT_MS,
                                       .quiet_ms = QUIET_MS,
                                       .now = tick };
}

/* ---- Our requester ---- */

static void expect_all(const struct rr_requester_settings *settings)
{
    struct rr_book book = { .target = "test", .out = g_string_new(NULL) };
    struct rr_client_run run = { .book = &book };
    struct rr_requester_counts n;
    struct client c;

    client_init(&c, settings, NULL);
    run.options = options_of(&c);
    rr_client_check_all(&run);
    if (book.failed || book.in_trouble || book.skipped > 1) {
        printf("# %s\n", book.out->str);
    }
    T_EQ_INT(book.failed, 0);
    T_EQ_INT(book.in_trouble, 0);
    T_EQ_INT(book.skipped, !settings->private_data); /* client-invalidation */
    T_EQ_INT(book.passed + book.skipped, rr_client_check_count(&run));
    rr_client_loopback_clear(&c.loopback);
    /* What the cases did reached the requester, and it has noticed. */
    n = c.loopback.before;
    T_EQ_INT(n.failed, 2);  /* ERR_CHUNK, ERR_VERS */
    T_EQ_INT(n.expired, 0); /* each other Call was answered */
    T_EQ_INT(n.refused, 0);
    /* In client-unused-chunk other octets go to the chunk than those that count. */
    T_SHOWS("RPC-31") {
        T_EQ_INT(n.wrong, 0);
    }
    T_EQ_INT(n.dropped, 20); /* one for each message that is not sound */
    T_EQ_INT(n.back, 11);    /* Calls to the client */
    T_TRUE(n.answered >= 200);
    g_string_free(book.out, true);
}

static void self__keeps_all_rules(void)
{
    struct rr_requester_settings settings = rr_requester_defaults();

    expect_all(&settings);
}

static void self__other_settings(void)
{
    static const struct rr_requester_settings rows[] = {
        { .inline_size = 1024, .private_data = true, .at_once = 8, .limit_ms = 600000 },
        { .inline_size = 4096, .private_data = false, .at_once = 8, .limit_ms = 600000 },
        { .inline_size = 8192, .private_data = true, .at_once = 32, .limit_ms = 600000 },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("row %zu", i);
        expect_all(&rows[i]);
    }
}

/* ---- A requester that errs ---- */

static struct rr_header seen;

static enum rr_fault parse(struct sg_span message)
{
    return rr_header_parse(message, &seen);
}

static bool is_call(struct sg_span message)
{
    return liar_is_call(message, &seen);
}

/* Messages that a sound requester drops. */
static bool unsound(const struct liar *l, struct sg_span message)
{
    if (parse(message) != RR_OK || seen.proc == RR_MSGP || seen.proc == RR_DONE || seen.reads) {
        return true;
    }
    return !is_call(message) &&
           ((seen.xid ^ l->sent) >= 0x10000 || (seen.proc == RR_NOMSG && !seen.has_reply) ||
            (seen.chunks && seen.segment[0].handle == 0x7777) ||
            (seen.proc == RR_MSG && seen.len == message.len));
}

static bool is_error(const struct liar *l, struct sg_span message)
{
    return parse(message) == RR_OK && seen.proc == RR_ERROR;
}

static bool grants_zero(const struct liar *l, struct sg_span message)
{
    return !is_call(message) && parse(message) == RR_OK && seen.credit == 0;
}

static bool has_unused_segment(const struct liar *l, struct sg_span message)
{
    return parse(message) == RR_OK && seen.chunks && seen.chunk[0].count > 1 &&
           !seen.segment[seen.chunk[0].count - 1].length;
}

static bool lost_segments(const struct liar *l, struct sg_span message)
{
    return parse(message) == RR_OK && seen.chunks && seen.chunk[0].count == 3;
}

static bool has_unused_chunk(const struct liar *l, struct sg_span message)
{
    return parse(message) == RR_OK && seen.chunks && !rr_chunk_octets(&seen, &seen.chunk[0]);
}

static bool spare_inline(const struct liar *l, struct sg_span message)
{
    return parse(message) == RR_OK && seen.has_reply && seen.proc == RR_MSG;
}

static bool spare_long(const struct liar *l, struct sg_span message)
{
    return parse(message) == RR_OK && seen.proc == RR_NOMSG &&
           rr_chunk_octets(&seen, &seen.reply) < 100;
}

static bool any_long(const struct liar *l, struct sg_span message)
{
    return parse(message) == RR_OK && seen.proc == RR_NOMSG;
}

static bool is_full(const struct liar *l, struct sg_span message)
{
    return message.len == 4096 || message.len == 1024;
}

/* The first segment that each Call offers, by the XID's low bits. */
enum { OFFERS = 64 };
static struct rr_segment offers[OFFERS];

static void notes_offer(struct liar_message *m)
{
    offers[m->h.xid % OFFERS] = m->h.segments ? m->h.segment[0] : (struct rr_segment){ 0 };
}

static bool other_segment(const struct liar *l, struct sg_span message)
{
    const struct rr_segment *offer;

    if (is_call(message) || parse(message) != RR_OK || !seen.segments) {
        return false;
    }
    offer = &offers[seen.xid % OFFERS];
    return offer->handle != seen.segment[0].handle || offer->offset != seen.segment[0].offset ||
           offer->length < seen.segment[0].length;
}

/* A Reply whose verifier has octets: it begins behind XID, message type and status. */
static bool has_verifier(const struct liar *l, struct sg_span message)
{
    const uint8_t *len;

    if (is_call(message) || parse(message) != RR_OK || seen.proc != RR_MSG) {
        return false;
    }
    len = sg_span_get(message, seen.len + 16, 4);
    return len && sg_get_be32(len);
}

static void twice(struct liar_message *m)
{
    m->twice = m->h.proc == RR_MSG && !m->h.reads && !m->h.segments && m->rest_len == 40;
}

static void other_rpc_xid(struct liar_message *m)
{
    m->rest[3] += m->h.proc == RR_MSG;
}

static void odd_position(struct liar_message *m)
{
    m->h.read[0].position |= m->h.reads ? 2 : 0;
}

static void longer_read(struct liar_message *m)
{
    m->h.read[0].segment.length -= m->h.reads && m->h.proc == RR_MSG ? 8 : 0;
}

static void small_chunk(struct liar_message *m)
{
    for (unsigned i = 0; i < m->h.segments && m->h.chunks; i++) {
        m->h.segment[i].length = 16;
    }
}

static void no_reply_chunk(struct liar_message *m)
{
    m->h.has_reply = false;
}

static void too_long(struct liar_message *m)
{
    if (m->h.proc == RR_MSG && m->rest_len < 100) {
        memset(m->rest + m->rest_len, 0, 1200);
        m->rest_len += 1200;
    }
}

static void version_2(struct liar_message *m)
{
    m->h.vers = 2;
}

static void back_without_grant(struct liar_message *m)
{
    m->h.credit = m->rest_len >= 8 && sg_get_be32(m->rest + 4) == RR_REPLY ? 0 : m->h.credit;
}

static void back_with_error(struct liar_message *m)
{
    if (m->rest_len == 24 && sg_get_be32(m->rest + 4) == RR_REPLY) {
        m->h.proc = RR_ERROR;
        m->h.err = RR_ERR_CHUNK;
        m->rest_len = 0;
    }
}

static void ignores_calls(uint8_t *octets, size_t *len, bool *swallow)
{
    *swallow = is_call(sg_span_of(octets, *len));
}

/* It looks for the XID first, and takes such a Call for a Reply. */
static uint32_t newest;

static void notes_xid(struct liar_message *m)
{
    newest = m->h.xid;
}

static void knows_by_xid(uint8_t *octets, size_t *len, bool *swallow)
{
    *swallow = is_call(sg_span_of(octets, *len)) && (seen.xid ^ newest) < 0x10000;
}

static void one_call_at_a_time(uint8_t *octets, size_t *len, bool *swallow)
{
    static uint32_t before;

    *swallow = is_call(sg_span_of(octets, *len)) && seen.xid == before + 1;
    if (is_call(sg_span_of(octets, *len))) {
        before = seen.xid;
    }
}

static uint32_t first_stag;

static bool has_result(const struct liar *l, struct sg_span message)
{
    return !is_call(message) && parse(message) == RR_OK && seen.chunks &&
           rr_chunk_octets(&seen, &seen.chunk[0]);
}

/* The memory of its first Call with a Write chunk, although a Reply has invalidated it. */
static void same_stag_again(struct liar_message *m)
{
    if (m->h.segments) {
        first_stag = first_stag ? first_stag : m->h.segment[0].handle;
        m->h.segment[0].handle = first_stag;
    }
}

static void forgets_private_data(struct liar_message *m)
{
    too_long(m);
}

#define OFFER_LIE(id, reaction) \
    { .name = "other_segment",  \
      .case_id = id,            \
      .rule = RPC_37,           \
      .sends = notes_offer,     \
      .reaction = other_segment }
#define LIE(id, rule_id, how, what) { .name = #what, .case_id = id, .rule = rule_id, .how = what }

static const struct lie lies[] = {
    LIE("client-first-credit", RPC_05, sends, twice),
    LIE("client-calls", RPC_22, sends, other_rpc_xid),
    LIE("client-calls", RPC_12, sends, odd_position),
    LIE("client-calls", RPC_13, sends, longer_read),
    LIE("client-calls", RPC_23, sends, version_2),
    LIE("client-result", RPC_14, sends, small_chunk),
    LIE("client-long-reply", RPC_33, sends, no_reply_chunk),
    LIE("client-long-reply", RPC_33, ends, any_long),
    LIE("client-threshold", RPC_17, sends, too_long),
    LIE("client-no-private", RPC_17, sends, forgets_private_data),
    LIE("client-grant-one", RPC_01, sends, twice),
    LIE("client-grant-few", RPC_01, sends, twice),
    { "keeps_receives", "client-grant-many", RPC_04, .keeps_receives = true },
    LIE("client-grant-zero", RPC_01, stops, grants_zero),
    LIE("client-grant-change", RPC_01, sends, twice),
    LIE("client-returned-all", RPC_15, ends, has_unused_segment),
    LIE("client-returned-used", RPC_15, ends, lost_segments),
    LIE("client-unused-chunk", RPC_30, ends, has_unused_chunk),
    LIE("client-spare-inline", RPC_34, ends, spare_inline),
    LIE("client-spare-long", RPC_34, ends, spare_long),
    LIE("client-full-reply", RPC_06, ends, is_full),
    LIE("client-full-reply-1024", RPC_06, ends, is_full),
    LIE("client-invalidation", PVT_05, ends, has_result),
    LIE("client-invalidation", RPC_14, sends, same_stag_again),
    LIE("client-short", RPC_35, ends, unsound),
    LIE("client-short", RPC_25, answers, unsound),
    LIE("client-shortest", RPC_35, ends, unsound),
    LIE("client-cut-list", RPC_37, answers, unsound),
    LIE("client-huge-count", RPC_37, answers, unsound),
    LIE("client-flag", RPC_37, answers, unsound),
    LIE("client-version", RPC_37, answers, unsound),
    LIE("client-procedure", RPC_37, answers, unsound),
    LIE("client-read-list", RPC_37, answers, unsound),
    LIE("client-nomsg", RPC_37, answers, unsound),
    LIE("client-other-chunk", RPC_37, answers, unsound),
    OFFER_LIE("client-other-handle", answers),
    OFFER_LIE("client-other-handle", ends),
    OFFER_LIE("client-other-offset", answers),
    OFFER_LIE("client-other-offset", stops),
    OFFER_LIE("client-longer-chunk", answers),
    OFFER_LIE("client-longer-chunk", ends),
    LIE("client-no-message", RPC_37, answers, unsound),
    LIE("client-no-message", RPC_37, stops, unsound),
    LIE("client-msgp", RPC_25, answers, unsound),
    LIE("client-msgp", RPC_41, ends, unsound),
    LIE("client-done", RPC_25, answers, unsound),
    LIE("client-done", RPC_42, ends, unsound),
    LIE("client-unknown-xid", RPC_37, answers, unsound),
    LIE("client-stray-error", RPC_25, answers, unsound),
    LIE("client-unknown-error", RPC_37, answers, unsound),
    LIE("client-cut-error", RPC_37, answers, unsound),
    LIE("client-err-chunk", RPC_25, answers, is_error),
    LIE("client-err-chunk", RPC_25, stops, is_error),
    LIE("client-err-vers", RPC_25, answers, is_error),
    LIE("client-reverse-null", RPC_22, receives, ignores_calls),
    LIE("client-reverse-null", RPC_02, sends, back_without_grant),
    LIE("client-reverse-call", RPC_22, receives, ignores_calls),
    LIE("client-reverse-proc", RPC_22, sends, back_with_error),
    { "knows_by_xid", "client-reverse-xid", RPC_22, .sends = notes_xid, .receives = knows_by_xid },
    LIE("client-reverse-first", RPC_22, receives, liar_replies_first),
    LIE("client-reverse-many", RPC_03, receives, one_call_at_a_time),
};

/* One case, against that lie; v->log is the caller's to free. */
static void run_against(const struct lie *lie, struct rr_verdict *v)
{
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_client client;
    struct rr_client_options options;
    struct client c;

    T_CONTEXT("%s, case %s", lie->name, lie->case_id);
    liar_replies = first_stag = 0;
    client_init(&c, &settings, lie);
    options = options_of(&c);
    memset(&client, 0, sizeof(client));
    client.o = &options;
    g_queue_init(&client.open);
    T_NOT_NULL(rr_client_case_of(lie->case_id));
    rr_run_client_case(&client, rr_client_case_of(lie->case_id), v);
    rr_client_close(&client);
    rr_client_loopback_clear(&c.loopback);
}

static void expect_noticed(const struct lie *lie)
{
    struct rr_verdict v;

    run_against(lie, &v);
    if (!rr_found(&v.findings, lie->rule)) {
        for (unsigned i = 0; i < v.findings.count; i++) {
            printf("# %s: %s\n", rr_rule(v.findings.found[i].rule)->id, v.findings.found[i].text);
        }
        printf("# %s %s %s\n", v.trouble, v.skipped, v.log->str);
    }
    T_SHOWS(rr_rule(lie->rule)->id) {
        T_TRUE(rr_found(&v.findings, lie->rule));
    }
    g_string_free(v.log, true);
}

/* Whom the verifier drives away does not show what it does with a full Reply. */
static void verifier__is_no_threshold(void)
{
    static const char *const ids[] = { "client-full-reply", "client-full-reply-1024" };

    for (size_t i = 0; i < SG_ARRAY_SIZE(ids); i++) {
        struct lie lie = { .name = "has_verifier", .case_id = ids[i], .ends = has_verifier };
        struct rr_verdict v;

        run_against(&lie, &v);
        T_EQ_INT(v.findings.count, 0);
        T_EQ_STR(v.trouble, "");
        T_TRUE(g_str_has_prefix(v.skipped, "the client ends the connection at a verifier of "));
        g_string_free(v.log, true);
    }
}

static void cases__notice_each_error(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(lies); i++) {
        expect_noticed(&lies[i]);
    }
}

/* No case is without an error that it notices. */
static void cases__all_can_fail(void)
{
    g_autoptr(GString) list = g_string_new(NULL);
    g_auto(GStrv) lines = NULL;

    rr_list_client_cases(list);
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

/* ---- Clients that are no clients ---- */

static uint64_t prng;

static uint32_t any(uint32_t below)
{
    return (uint32_t)(sg_prng(&prng) % below);
}

static void damage(uint8_t *octets, size_t *len)
{
    for (uint32_t i = any(4); i && *len; i--) {
        octets[any((uint32_t)SG_MIN(*len, 120))] ^= 1u << any(8);
    }
    *len = any(4) ? *len : any((uint32_t)*len + 1);
}

static void flood(struct liar_message *m)
{
    m->twice = true;
}

static bool sometimes(const struct liar *l, struct sg_span message)
{
    return any(20) == 0;
}

static bool always(const struct liar *l, struct sg_span message)
{
    return true;
}

/* All cases against a client that never behaves; nothing hangs.  How many find something. */
static unsigned failures(const struct lie *lie)
{
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_book book = { .target = "test", .out = g_string_new(NULL) };
    struct rr_client_run run = { .book = &book };
    struct client c;

    client_init(&c, &settings, lie);
    run.options = options_of(&c);
    run.options.wait_ms = 5;
    run.options.quiet_ms = 1;
    rr_client_check_all(&run);
    T_EQ_INT(book.number, rr_client_check_count(&run));
    rr_client_loopback_clear(&c.loopback);
    g_string_free(book.out, true);
    return book.failed;
}

static void garbage__is_bounded(void)
{
    static const struct lie damaged = { .name = "damage", .damages = damage };
    static const struct lie floods = { .name = "flood", .sends = flood };
    static const struct lie leaves = { .name = "leaves", .ends = sometimes };
    static const struct lie mute = { .name = "mute", .stops = always };
    unsigned failed = 0, left = 0, seeds = SEEDS / t_stride(2);

    for (uint32_t seed = 1; seed <= seeds; seed++) {
        T_CONTEXT("seed %u", seed);
        prng = seed;
        failed += failures(&damaged);
        left += failures(&leaves);
    }
    T_TRUE(failed > 5 * seeds);
    T_TRUE(left > seeds);
    T_TRUE(failures(&floods) >= 5);
    T_EQ_INT(failures(&mute), 0);
}

static struct rr_port *nobody(struct rr_acceptor *acceptor, const struct rr_port_side *side,
                              unsigned ms)
{
    return NULL;
}

static void no_client__is_no_breach(void)
{
    struct rr_acceptor acceptor = { .accept = nobody };
    struct rr_book book = { .target = "test", .out = g_string_new(NULL) };
    struct rr_client_run run = {
        .options = { .acceptor = &acceptor,
                     .source = &rr_source_echo,
                     .wait_ms = 5,
                     .quiet_ms = 1 },
        .book = &book,
    };

    rr_client_check_all(&run);
    T_EQ_INT(book.failed, 0);
    T_EQ_INT(book.passed, 0);
    T_EQ_INT(book.in_trouble, rr_client_check_count(&run));
    T_NOT_NULL(strstr(book.out->str, "cannot judge: no client came within 5 ms"));
    g_string_free(book.out, true);
}

static const struct t_case cases[] = {
    { "our requester keeps all rules", self__keeps_all_rules },
    { "also with other settings", self__other_settings },
    { "each error of a client is noticed", cases__notice_each_error },
    { "a client that takes no verifier is not judged by one", verifier__is_no_threshold },
    { "each case can fail", cases__all_can_fail },
    { "garbage, floods and sudden ends are bounded", garbage__is_bounded },
    { "no client is no breach", no_client__is_no_breach },
};

T_MAIN(cases)
