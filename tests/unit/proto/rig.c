/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig: see rig.h.
 *
 * Words of the log, one per upcall (parameters in brackets):
 *   request reply established disconnected closed gone terminated faulted sent read_done recv
 *   inv placed mpe answered mpe_done atomic atomic_done imm (rig_requests.c)
 * 'tx_ready', 'next', 'gather' and placements are not logged; memory shows them.
 */
#include <glib.h>

#include "tap.h"
#include "rig.h"

struct conn_rig *rig;

static const char *const end_names[] = { "OK",          "REJECTED", "REFUSED", "TIMEOUT",
                                         "RESET",       "PROTOCOL", "CLOSED",  "TERMINATED",
                                         "UNREACHABLE", "NORES" };

void rig_note(const char *fmt, ...)
{
    size_t at = strlen(rig->log);
    va_list ap;

    if (at) {
        rig->log[at++] = ' ';
    }
    va_start(ap, fmt);
    vsnprintf(rig->log + at, sizeof(rig->log) - at, fmt, ap);
    va_end(ap);
    if (rig->abort_in) {
        rig->abort_in = false;
        sg_conn_abort(rig->c);
        rig->c = NULL;
    }
}

/* The host. */

static uint64_t host_now(void *h)
{
    return rig->now_ns;
}

static void host_kick(void *h)
{
    rig->kicks++;
}

static bool host_log_enabled(void *h, enum sg_log_class cls)
{
    return cls == SG_LOG_STATE || getenv("RIG_LOG");
}

static void host_log(void *h, enum sg_log_class cls, const char *line)
{
    if (cls == SG_LOG_STATE) {
        size_t at = strlen(rig->states);

        snprintf(rig->states + at, sizeof(rig->states) - at, "%s\n", line);
    }
    if (getenv("RIG_LOG")) {
        T_NOTE("%s", line);
    }
}

/* 1, 2, 3, ... */
static void host_random(void *h, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len--) {
        *p++ = ++rig->random;
    }
}

static const struct sg_host_ops host_ops = {
    .random = host_random,
    .now = host_now,
    .kick = host_kick,
    .log_enabled = host_log_enabled,
    .log = host_log,
};

/* Upcalls: connections. */

static void say_params(const char *word, const char *end, const struct sg_conn_params *p)
{
    char text[64] = "";

    rig->peer_ird = p->peer_ird;
    rig->peer_ord = p->peer_ord;
    if (p->pdata_len) {
        snprintf(text, sizeof(text), ",%.*s", (int)SG_MIN(p->pdata_len, 40),
                 (const char *)p->pdata);
    }
    rig_note("%s(%s%u/%u,rev%u%s)", word, end, p->ird, p->ord, p->mpa_rev, text);
}

static bool up_request_room(void *listener_user)
{
    T_TRUE(listener_user == rig);
    return !rig->no_room;
}

static void up_request(void *listener_user, struct sg_conn *c, const struct sg_conn_params *p)
{
    T_TRUE(listener_user == rig);
    rig->c = c;
    sg_conn_set_request_user(c, rig->in);
    say_params("request", "", p);
}

static void up_request_gone(struct sg_conn *c, void *request_user, enum sg_conn_end why)
{
    T_TRUE(c == rig->c && request_user == rig->in);
    rig->c = NULL;
    rig_note("gone(%s)", end_names[why]);
}

static void up_reply(void *user, enum sg_conn_end end, const struct sg_conn_params *p)
{
    char text[32];

    snprintf(text, sizeof(text), "%s,", end_names[end]);
    if (end != SG_CONN_OK) {
        rig->c = NULL;
    }
    say_params("reply", text, p);
}

static void up_established(void *user, const struct sg_conn_params *p)
{
    say_params("established", "", p);
}

static void up_disconnected(void *user, enum sg_conn_end why)
{
    rig_note("disconnected(%s)", end_names[why]);
}

static void up_closed(void *user, enum sg_conn_end why)
{
    rig->c = NULL;
    rig_note("closed(%s)", end_names[why]);
}

static void up_terminated(void *user, const struct sg_term_info *t)
{
    rig_note("terminated(%s,%u/%u/%02x)", t->sent ? "sent" : "received", t->layer, t->type,
             t->code);
}

static void up_faulted(void *user, enum sg_conn_fault what)
{
    static const char *const names[] = {
        [SG_FAULT_FORM] = "FORM",
        [SG_FAULT_ACCESS] = "ACCESS",
        [SG_FAULT_CRC] = "CRC",
        [SG_FAULT_HERE] = "HERE",
    };

    rig_note("faulted(%s)", names[what]);
}

/* Upcalls: transmission. */

static void up_tx_ready(void *user)
{
    T_TRUE(user == rig);
    rig->tx_ready = true;
}

static bool counts(enum sg_msg_kind kind)
{
    return kind != SG_MSG_SEND && kind != SG_MSG_WRITE && kind != SG_MSG_IMM;
}

static bool up_next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    if (rig->head == rig->tail) {
        return false;
    }
    if (counts(rig->queue[rig->head % RIG_QUEUE].kind) && !reads_room) {
        return false;
    }
    *msg = rig->queue[rig->head++ % RIG_QUEUE];
    if (counts(msg->kind)) {
        rig->outstanding++;
        rig->max_outstanding = SG_MAX(rig->max_outstanding, rig->outstanding);
    }
    return true;
}

/* Memory from 'cookie', in two pieces when that is possible. */
static int lend(uint64_t at, uint32_t len, struct iovec *iov)
{
    rig->gathers++;
    T_TRUE(sg_range_ok(at, len, RIG_MEM));
    iov[0].iov_base = rig->mem + at;
    iov[0].iov_len = len > 7 ? 5 : len;
    if (len <= 7) {
        return 1;
    }
    iov[1].iov_base = rig->mem + at + 5;
    iov[1].iov_len = len - 5;
    return 2;
}

static int up_gather(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                     struct iovec *iov)
{
    if (rig->gather_closed) {
        return SG_GATHER_CLOSED;
    }
    return rig->gather_fails ? -1 : lend(msg->cookie + off, len - rig->gather_short, iov);
}

static void up_gathered(void *user, struct iovec *iov, int n)
{
    rig->gathers--;
}

static void up_sent(void *user, const struct sg_msg *msg)
{
    rig_note("sent(%u)", sg_msg_length(msg));
}

void rig_answered(void)
{
    rig->outstanding--;
    rig->answers[1] = rig->answers[0];
    rig->answers[0] = sg_conn_ordinal(rig->c);
}

static void up_read_done(void *user, uint32_t octets)
{
    rig_answered();
    rig_note("read_done(%u)", octets);
}

/* Upcalls: reception. */

enum sg_mem_status rig_check(uint32_t stag, uint64_t to, uint64_t n, uint32_t forbidden)
{
    if (rig->all_closed) {
        return SG_MEM_CLOSED;
    }
    if (stag == RIG_STAG_ALIEN) {
        return SG_MEM_ASSOC;
    }
    if (stag != RIG_STAG_RW && stag != RIG_STAG_RO && stag != RIG_STAG_WO &&
        stag != RIG_STAG_BROKEN) {
        return SG_MEM_STAG;
    }
    if (to + n < to) {
        return SG_MEM_WRAP;
    }
    if (!sg_range_ok(to, n, RIG_MEM)) {
        return SG_MEM_BOUNDS;
    }
    if (stag == forbidden) {
        return SG_MEM_ACCESS;
    }
    return SG_MEM_OK;
}

static enum sg_mem_status up_place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                         size_t n)
{
    enum sg_mem_status st = rig_check(stag, to, n, RIG_STAG_RO);

    T_TRUE(n > 0);
    if (rig->later_skips) {
        rig->later_skips--;
    } else if (rig->later && st == SG_MEM_OK) {
        rig->later--;
        return SG_MEM_LATER;
    }
    if (st == SG_MEM_OK) {
        memcpy(rig->mem + to, p, n);
    }
    return st;
}

static enum sg_mem_status up_place_read(void *user, const struct sg_read_sink *sink, uint32_t off,
                                        const uint8_t *p, size_t n)
{
    enum sg_mem_status st = rig_check(sink->stag, sink->to + off, n, 0);

    if (st == SG_MEM_OK) {
        memcpy(rig->mem + sink->to + off, p, n);
    }
    return st;
}

static enum sg_recv_status up_place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                         size_t n)
{
    if (rig->all_closed) {
        return SG_RECV_CLOSED;
    }
    if (msn > rig->recvs) {
        return SG_RECV_NO_BUFFER;
    }
    if (!sg_range_ok(mo, n, RIG_RECV_ROOM)) {
        return SG_RECV_TOO_LONG;
    }
    if (rig->recv_fails) {
        return SG_RECV_FAULT;
    }
    if (n) {
        memcpy(rig->recv_buf + (size_t)((msn - 1) % 16) * RIG_RECV_ROOM + mo, p, n);
    }
    return SG_RECV_OK;
}

static void up_recv_done(void *user, const struct sg_recv_info *info)
{
    if (info->immediate) {
        rig_note_imm(info);
        return;
    }
    rig_note("recv(%u,%u%s)", info->msn, info->length, info->solicited ? ",se" : "");
}

static enum sg_mem_status up_invalidate(void *user, uint32_t stag)
{
    rig_note("inv(%x)", stag);
    return rig_check(stag, 0, 0, 0);
}

static enum sg_mem_status up_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len)
{
    T_TRUE(len > 0);
    return rig_check(stag, to, len, RIG_STAG_WO);
}

static int up_gather_source(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                            enum sg_mem_status *why)
{
    *why = rig_check(stag, to, len, RIG_STAG_WO);
    if (stag == RIG_STAG_BROKEN && to >= RIG_MEM / 2) {
        *why = SG_MEM_ACCESS; /* the second half went away after the check */
    }
    if (rig->source_closed) {
        *why = SG_MEM_CLOSED;
    }
    return *why == SG_MEM_OK ? lend(to, len, iov) : -1;
}

static const struct sg_engine_ops engine_ops = {
    .request_room = up_request_room,
    .request = up_request,
    .request_gone = up_request_gone,
    .reply = up_reply,
    .established = up_established,
    .disconnected = up_disconnected,
    .closed = up_closed,
    .terminated = up_terminated,
    .faulted = up_faulted,
    .tx_ready = up_tx_ready,
    .next = up_next,
    .gather = up_gather,
    .gathered = up_gathered,
    .sent = up_sent,
    .read_done = up_read_done,
    .place_write = up_place_write,
    .place_read = up_place_read,
    .place_recv = up_place_recv,
    .recv_done = up_recv_done,
    .invalidate = up_invalidate,
    .check_source = up_check_source,
    .gather_source = up_gather_source,
    .mpe = rig_up_mpe,
    .answered = rig_up_answered,
    .mpe_done = rig_up_mpe_done,
    .write_placed = rig_up_write_placed,
    .atomic = rig_up_atomic,
    .atomic_done = rig_up_atomic_done,
};

struct sg_engine_config rig_config(void)
{
    return (struct sg_engine_config){
        .mpa_rev = 2,
        .crc = true,
        .peer_to_peer = true,
        .rtr_mask = SG_RTR_WRITE | SG_RTR_READ,
        .max_ird = 8,
        .max_ord = 8,
        .reply_timeout_ms = 60000,
        .startup_timeout_ms = 10000,
        .close_timeout_ms = 4000,
        .linger_timeout_ms = 30000,
        .close_limit_ms = 120000,
    };
}

void rig_start_net(const struct sg_engine_config *config, const struct sg_mem_options *net)
{
    const struct sg_engine_config cfg = config ? *config : rig_config();
    enum sg_stream_end why;
    enum sg_conn_end end;
    unsigned i;

    rig = g_new0(struct conn_rig, 1);
    rig->host.ops = &host_ops;
    rig->now_ns = 1000000;
    rig->sw = sg_mem_switch_new(net);
    rig->at_engine = (struct sg_endpoint){ .family = 4, .port = 0, .ip = { 10, 0, 0, 1 } };
    rig->at_peer = (struct sg_endpoint){ .family = 4, .port = 0, .ip = { 10, 0, 0, 2 } };
    rig->net_engine = sg_mem_switch_port(rig->sw, &rig->at_engine);
    rig->net_peer = sg_mem_switch_port(rig->sw, &rig->at_peer);
    rig->at_engine.port = 4791;
    rig->at_peer.port = 4792;
    rig->config = cfg;
    rig->e = sg_engine_new(&rig->host, rig->net_engine, &cfg, &engine_ops);
    rig->listener = sg_engine_listen(rig->e, &rig->at_engine, 4, rig, &end);
    T_NOT_NULL(rig->listener);
    rig->peer_listener =
        rig->net_peer->ops->listen(rig->net_peer, &rig->at_peer, 4, rig_peer_accept, NULL, &why);
    T_NOT_NULL(rig->peer_listener);
    for (i = 0; i < RIG_MEM; i++) {
        rig->mem[i] = (uint8_t)(i * 7 + (i >> 8));
    }
}

void rig_start(const struct sg_engine_config *config)
{
    const struct sg_mem_options net = { .emss = 1460 };

    rig_start_net(config, &net);
}

void rig_stop(void)
{
    if (rig->c) {
        sg_conn_abort(rig->c);
        rig->c = NULL;
    }
    rig_pass(60000);
    T_EQ_U64(sg_engine_stats(rig->e)->conns, 0);
    T_EQ_U64(rig->gathers, 0);
    if (rig->peer) {
        rig->peer->ops->abort(rig->peer);
        rig->peer = NULL;
    }
    sg_engine_free(rig->e);
    sg_mem_switch_free(rig->sw);
    g_free(rig);
    rig = NULL;
}

void rig_settle(void)
{
    unsigned turn;

    for (turn = 0; turn < 10000; turn++) {
        uint64_t next = sg_mem_switch_run(rig->sw, rig->now_ns);

        rig->kicks = 0;
        sg_engine_run(rig->e, rig->now_ns);
        while (rig->tx_ready && rig->c) {
            rig->tx_ready = sg_conn_transmit(rig->c, 100000);
        }
        rig->tx_ready = false;
        if (next > rig->now_ns && !rig->kicks) {
            next = sg_mem_switch_run(rig->sw, rig->now_ns);
            if (next > rig->now_ns && !rig->tx_ready && !rig->kicks) {
                return;
            }
        }
    }
    T_FAIL("it never settles");
}

void rig_pass(uint64_t ms)
{
    rig->now_ns += ms * 1000000;
    rig_settle();
}

const char *rig_log(void)
{
    static char text[sizeof(rig->log)];

    strcpy(text, rig->log);
    rig->log[0] = '\0';
    return text;
}

void rig_active(const char *reply_hex)
{
    const struct sg_conn_params p = { .ird = 8, .ord = 8 };
    const struct sg_endpoint any = { .family = 4 };
    enum sg_conn_end why;

    rig->c = sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why);
    T_NOT_NULL(rig->c);
    rig_settle();
    T_TRUE(rig->peer_connected);
    rig->in_used = rig->in_len;
    rig_say(reply_hex ? reply_hex : "4d504120 49442052 65702046 72616d65 50020004 80084008");
}

void rig_accept(uint16_t ird, uint16_t ord, const char *pdata)
{
    struct sg_conn_params p = { .ird = ird, .ord = ord };

    if (pdata) {
        p.pdata = (const uint8_t *)pdata;
        p.pdata_len = (uint16_t)strlen(pdata);
    }
    T_TRUE(sg_conn_accept(rig->c, rig, &p));
    rig_settle();
}

void rig_passive(void)
{
    rig_request("4d504120 49442052 65712046 72616d65 50020004 80084008");
    rig_accept(8, 8, NULL);
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5f");
    T_EQ_STR(rig_log(), "request(8/8,rev2) established(8/8,rev2)");
    rig->in_used = rig->in_len;
}

static void start_with(uint8_t draft, bool rfc7306, uint16_t max_ord)
{
    struct sg_engine_config config = rig_config();

    config.mpe_draft = draft;
    config.rfc7306 = rfc7306;
    config.max_ord = max_ord;
    rig_start(&config);
}

void rig_passive_with(uint8_t draft, bool rfc7306)
{
    start_with(draft, rfc7306, rig_config().max_ord);
    rig_passive();
}

void rig_active_with(uint8_t draft, bool rfc7306, uint16_t max_ord)
{
    start_with(draft, rfc7306, max_ord);
    rig_active("4d504120 49442052 65702046 72616d65 50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
}

void rig_post(const struct sg_msg *m)
{
    T_TRUE(rig->tail - rig->head < RIG_QUEUE);
    rig->queue[rig->tail++ % RIG_QUEUE] = *m;
    if (rig->c) {
        sg_conn_wake(rig->c);
    }
}

void rig_post_now(const struct sg_msg *m)
{
    rig_post(m);
    rig_settle();
}

void rig_send(uint32_t off, uint32_t len)
{
    rig_post(&(struct sg_msg){ .kind = SG_MSG_SEND, .cookie = off, .send = { .length = len } });
}
