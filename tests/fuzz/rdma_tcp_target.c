/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the engine on RDMA/TCP of 2000, against a hostile peer.
 *
 * The input is a program: segments with right CRC and arbitrary fields, in order or behind a gap,
 * whole or in pieces; arbitrary octets; and what verbs do meanwhile.  Whatever comes, the engine
 * must not touch memory that it was not given, must place nothing in memory that verbs refuse, and
 * must be able to end the connection.
 */
#include <glib.h>
#include <inttypes.h>

#include "base/crc32m.h"
#include "base/host.h"
#include "fuzz.h"
#include "proto/engine.h"
#include "wire/rdma_tcp.h"

enum { MEM = 4096, STAG = 0x100, RECV = 600, PAYLOAD = 200, STEPS = 400 };

static struct rdma_tcp_world {
    struct sg_engine *e;
    struct sg_conn *c;
    struct sg_stream stream;
    struct sg_stream_net net;
    uint64_t conn_id, now_ns;
    uint32_t next;   /* number of the peer's next message */
    uint32_t first;  /* that of the engine's setup message */
    uint32_t offset; /* payload of the peer's message so far */
    unsigned later, posts;
    unsigned asked; /* messages of the engine */
    struct {
        uint32_t number, length;
    } read; /* the engine's oldest unanswered Read; length 0: none */
    bool up, full, faulted;
    uint8_t mem[MEM], recv[RECV], scratch[MEM];
} w;

static uint64_t received, placed, early, faults, answers, ends;

/* ---- host and stream ---- */

static uint64_t host_now(void *h)
{
    return w.now_ns;
}

static void host_kick(void *h)
{
}

static void host_random(void *h, void *buf, size_t len)
{
    memset(buf, 0x5a, len);
}

static bool host_log_enabled(void *h, enum sg_log_class cls)
{
    return false;
}

static const struct sg_host_ops host_ops = {
    .now = host_now,
    .kick = host_kick,
    .random = host_random,
    .log_enabled = host_log_enabled,
};
static const struct sg_host host = { .ops = &host_ops };

static size_t st_number(struct sg_stream *s)
{
    return 0;
}

static size_t st_emss(struct sg_stream *s)
{
    return 300;
}

static bool st_send(struct sg_stream *s, const struct iovec *iov, unsigned n, bool more)
{
    if (w.full) {
        return false;
    }
    if (!w.conn_id) {
        w.conn_id = sg_get_be64((uint8_t *)iov[0].iov_base + 4);
        w.first = sg_get_be32((uint8_t *)iov[0].iov_base + 12);
    }
    return true;
}

static void st_nothing(struct sg_stream *s)
{
}

static const struct sg_stream_ops stream_ops = {
    .room = st_number,
    .send = st_send,
    .push = st_nothing,
    .shutdown = st_nothing,
    .abort = st_nothing,
    .emss = st_emss,
    .unacked = st_number,
};

static struct sg_stream *net_connect(struct sg_stream_net *net, const struct sg_endpoint *local,
                                     const struct sg_endpoint *remote,
                                     const struct sg_stream_events *events, void *user,
                                     enum sg_stream_end *why)
{
    w.stream = (struct sg_stream){ .ops = &stream_ops, .events = events, .user = user };
    return &w.stream;
}

static const struct sg_stream_net_ops net_ops = { .connect = net_connect };

/* ---- verbs ---- */

static void up_reply(void *user, enum sg_conn_end end, const struct sg_conn_params *p)
{
    w.up = end == SG_CONN_OK;
    if (!w.up) {
        w.c = NULL;
    }
}

static void up_faulted(void *user, enum sg_conn_fault what)
{
    sg_assert(!w.faulted && what < SG_FAULTS); /* once, and before the end that it causes */
    w.faulted = true;
}

static void up_end(void *user, enum sg_conn_end why)
{
    sg_assert(!w.faulted || why == SG_CONN_PROTOCOL || why == SG_CONN_RESET);
    faults += why == SG_CONN_PROTOCOL;
}

static void up_closed(void *user, enum sg_conn_end why)
{
    w.c = NULL;
    ends++;
}

static void up_tx_ready(void *user)
{
}

static bool up_next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    if (!w.posts || !reads_room) {
        return false;
    }
    w.posts--;
    w.asked++;
    *msg = (struct sg_msg){ .kind = w.posts % 3 ? SG_MSG_READ_REQ : SG_MSG_SEND };
    if (w.posts % 3) {
        msg->read.length = w.posts * 7;
        if (!w.read.length) {
            w.read.number = w.first + w.asked;
            w.read.length = msg->read.length;
        }
    } else {
        msg->send.length = w.posts * 100;
    }
    return true;
}

static int up_gather(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                     struct iovec *iov)
{
    *iov = (struct iovec){ w.scratch, len };
    return w.later ? SG_GATHER_LATER : 1;
}

static void up_gathered(void *user, struct iovec *iov, int n)
{
}

static void up_sent(void *user, const struct sg_msg *msg)
{
}

static void up_read_done(void *user, uint32_t octets)
{
    answers++;
    w.read.length = 0;
}

static enum sg_mem_status check(uint32_t stag, uint64_t to, uint64_t n)
{
    if (w.later) {
        w.later--;
        return SG_MEM_LATER;
    }
    return stag != STAG ? SG_MEM_STAG : sg_range_ok(to, n, MEM) ? SG_MEM_OK : SG_MEM_BOUNDS;
}

static enum sg_mem_status up_place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                         size_t n)
{
    enum sg_mem_status st = check(stag, to, n);

    if (st == SG_MEM_OK) {
        memcpy(w.mem + to, p, n);
        placed++;
    }
    return st;
}

static enum sg_mem_status up_place_read(void *user, const struct sg_read_sink *sink, uint32_t off,
                                        const uint8_t *p, size_t n)
{
    sg_assert(off + n <= 7 * 255); /* the longest Read of ours */
    memcpy(w.scratch + off, p, n);
    return SG_MEM_OK;
}

static enum sg_recv_status up_place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                         size_t n)
{
    if (!sg_range_ok(mo, n, RECV)) {
        return SG_RECV_TOO_LONG;
    }
    if (n) {
        memcpy(w.recv + mo, p, n);
    }
    return SG_RECV_OK;
}

static void up_recv_done(void *user, const struct sg_recv_info *info)
{
    sg_assert(info->length <= RECV);
    received++;
}

static enum sg_mem_status up_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len)
{
    return stag != STAG ? SG_MEM_STAG : sg_range_ok(to, len, MEM) ? SG_MEM_OK : SG_MEM_BOUNDS;
}

static int up_gather_source(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                            enum sg_mem_status *why)
{
    *why = w.later ? SG_MEM_LATER : up_check_source(user, stag, to, len);
    *iov = (struct iovec){ w.mem + (*why == SG_MEM_OK ? to : 0), len };
    return *why == SG_MEM_OK ? 1 : -1;
}

static const struct sg_engine_ops ops = {
    .reply = up_reply,
    .faulted = up_faulted,
    .disconnected = up_end,
    .closed = up_closed,
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
    .check_source = up_check_source,
    .gather_source = up_gather_source,
};

/* ---- the peer ---- */

/* In memory of its own size, so that a sanitizer sees reads past the end. */
static void say(const uint8_t *p, size_t n, bool ahead, uint32_t by)
{
    uint8_t *copy = g_memdup2(p, n);

    if (w.c && ahead) {
        w.stream.events->receive_early(&w.stream, by, copy, n);
    } else if (w.c) {
        w.stream.events->receive(&w.stream, copy, n);
    }
    g_free(copy);
}

static size_t frame(const struct sg_rt_hdr *h, const uint8_t *control, const uint8_t *payload,
                    size_t n, uint8_t *out)
{
    size_t at = sg_rt_hdr_emit(h, sg_rt_hdr_len(h->type) + h->clen * 4u + n, out);

    memcpy(out + at, control, h->clen * 4u);
    at += h->clen * 4u;
    if (n) {
        memcpy(out + at, payload, n);
    }
    at += n;
    return at + sg_rt_tail_emit(out + at, at, sg_crc32m(0, out, at));
}

/* Sometimes makes one field wrong. */
static void spoil(struct fuzz_in *in, struct sg_rt_hdr *h)
{
    switch (fuzz_below(in, 32)) {
    case 0:
        h->number += fuzz_u16(in);
        break;
    case 1:
        h->data_offset = (uint32_t)fuzz_edgy(in);
        break;
    case 2:
        h->buffer_offset = (uint32_t)fuzz_edgy(in);
        break;
    case 3:
        h->rdma_len = (uint32_t)fuzz_edgy(in);
        break;
    case 4:
        h->begin = !h->begin;
        break;
    default:
        break;
    }
}

/* A segment that fits what came before, unless the input wants it otherwise. */
static void segment(struct fuzz_in *in)
{
    static const uint8_t control[4 * 3] = { 0, 0, 0, 0, 1, 2 };
    uint8_t bits = fuzz_u8(in), out[SG_RT_HDR_MAX + sizeof(control) + PAYLOAD + SG_RT_TAIL_MAX];
    bool begins = !w.offset, ahead = bits & 0x40;
    struct sg_rt_hdr h = {
        .version = SG_RT_VERSION,
        .type = bits & 3,
        .begin = begins,
        .end = bits & 4,
        .conn_id = w.conn_id,
        .number = w.next,
        .order = fuzz_rarely(in, 3) ? fuzz_u16(in)
                 : bits & 8         ? SG_RT_AT_ONCE
                                    : 0,
        .clen = fuzz_rarely(in, 16) ? 3 : 0,
        .data_offset = w.offset,
        .buffer_id = fuzz_rarely(in, 16) ? 0 : STAG,
        .buffer_offset = w.offset,
        .rdma_len = 300,
    };
    size_t n = fuzz_u8(in) % PAYLOAD, len;
    const uint8_t *p = fuzz_bytes(in, &n);

    if (h.type == SG_RT_READ_REQ) {
        n = 0;
        h.end = true;
    }
    if (h.type == SG_RT_READ_RESP) {
        h.number = fuzz_rarely(in, 4) ? w.first + fuzz_u8(in) % 4 : w.read.number;
        h.end = true;
        n = fuzz_rarely(in, 16) ? n : w.read.length % PAYLOAD;
        p = w.scratch;
        h.begin = true;
        h.data_offset = 0;
    } else if (h.end && h.type == SG_RT_WRITE) {
        h.rdma_len = w.offset + (uint32_t)n;
    }
    spoil(in, &h);
    len = frame(&h, control, p, n, out);
    if (ahead) {
        early -= sg_engine_stats(w.e)->rx_early;
        say(out, len, true, fuzz_u8(in));
        early += sg_engine_stats(w.e)->rx_early;
        return;
    }
    if (h.type != SG_RT_READ_RESP) {
        w.offset = h.end ? 0 : w.offset + (uint32_t)n;
        w.next += h.end;
    }
    if (bits & 0x80) {
        size_t half = fuzz_u8(in) % len;

        say(out, half, false, 0);
        say(out + half, len - half, false, 0);
    } else {
        say(out, len, false, 0);
    }
}

static void set_up(void)
{
    static const uint8_t control[8] = { 1, SG_RT_ACCEPT, 0, 0, 0, 4, 0, 4 };
    const struct sg_engine_config config = {
        .wire = SG_ENGINE_RDMA_TCP_2000,
        .mpa_rev = 2,
        .max_ird = 4,
        .max_ord = 4,
        .reply_timeout_ms = 1000,
        .startup_timeout_ms = 1000,
        .close_timeout_ms = 1000,
        .linger_timeout_ms = 1000,
        .close_limit_ms = 4000,
    };
    const struct sg_conn_params p = { .ird = 4, .ord = 4 };
    const struct sg_endpoint at = { .family = 4 };
    struct sg_rt_hdr h = { .version = SG_RT_VERSION,
                           .res = SG_RT_RES_SETUP,
                           .begin = true,
                           .end = true,
                           .clen = 2,
                           .number = 0xfffffff0 };
    enum sg_conn_end why;
    uint8_t out[64];

    memset(&w, 0, sizeof(w));
    w.net.ops = &net_ops;
    w.next = h.number + 1;
    w.e = sg_engine_new(&host, &w.net, &config, &ops);
    w.c = sg_engine_connect(w.e, &at, &at, &p, &w, &why);
    w.stream.events->connected(&w.stream);
    sg_conn_transmit(w.c, 1000);
    h.conn_id = w.conn_id;
    say(out, frame(&h, control, NULL, 0, out), false, 0);
    sg_assert(w.up);
}

static void verbs(struct fuzz_in *in)
{
    switch (fuzz_below(in, 8)) {
    case 0:
        w.later = fuzz_u8(in) % 3;
        break;
    case 1:
        w.full = !w.full;
        if (!w.full) {
            w.stream.events->writable(&w.stream);
        }
        break;
    case 2:
        w.posts += fuzz_u8(in) % 5;
        sg_conn_wake(w.c);
        break;
    case 3:
        sg_conn_resume(w.c);
        break;
    case 4:
        if (fuzz_rarely(in, 20)) {
            sg_conn_close(w.c);
        }
        break;
    default:
        sg_conn_transmit(w.c, 2000);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = { data, size };
    unsigned step;

    set_up();
    for (step = 0; step < STEPS && in.len && w.c; step++) {
        uint8_t what = fuzz_below(&in, 16);

        if (what < 10) {
            segment(&in);
        } else if (what < 15) {
            verbs(&in);
        } else if (fuzz_rarely(&in, 8)) {
            size_t n = fuzz_u8(&in);
            const uint8_t *p = fuzz_bytes(&in, &n);

            say(p, n, fuzz_u8(&in) & 1, fuzz_u8(&in));
        }
        w.now_ns += 1000;
        sg_engine_run(w.e, w.now_ns);
    }
    if (w.c) {
        w.stream.events->peer_closed(&w.stream);
    }
    w.full = false;
    for (step = 0; step < 20 && w.c; step++) {
        w.now_ns += 1000000000;
        sg_engine_run(w.e, w.now_ns);
        if (w.c) {
            sg_conn_close(w.c);
            sg_conn_transmit(w.c, 100000);
        }
    }
    if (w.c) {
        sg_conn_abort(w.c);
    }
    sg_assert(!sg_engine_stats(w.e)->conns);
    sg_engine_free(w.e);
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len,
             "received %" PRIu64 " placed %" PRIu64 " early %" PRIu64 " faults %" PRIu64
             " answers %" PRIu64 " ends %" PRIu64,
             received, placed, early, faults, answers, ends);
    return received && placed && early && faults && answers && ends;
}
