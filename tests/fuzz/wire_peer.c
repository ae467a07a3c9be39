/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the peer of target "wire" sends, as the input says. */
#include "wire_world.h"

#include "wire/mpe.h"
#include "wire/mpa_frame.h"
#include "wire/terminate.h"

static void peer_nothing(struct sg_stream *s)
{
    (void)s;
}

static void peer_receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    (void)s, (void)p, (void)n;
}

static void peer_closed(struct sg_stream *s, enum sg_stream_end why)
{
    (void)why;
    if (w.peer == s) {
        w.peer = NULL;
    }
}

const struct sg_stream_events peer_events = {
    .connected = peer_nothing,
    .receive = peer_receive,
    .writable = peer_nothing,
    .peer_closed = peer_nothing,
    .closed = peer_closed,
};

bool peer_accept(void *user, struct sg_stream *s)
{
    (void)user;
    if (w.peer) {
        return false;
    }
    s->events = &peer_events;
    w.peer = s;
    w.fin = false;
    return true;
}

void say(const uint8_t *p, size_t n)
{
    struct iovec iov = { (void *)p, n };

    if (w.peer && !w.fin && n && w.peer->ops->room(w.peer) >= n) {
        w.peer->ops->send(w.peer, &iov, 1, false);
        w.pos += n;
    }
}

void say_ulpdu(const uint8_t *p, size_t n)
{
    struct sg_span part = sg_span_of(p, n);
    /* After raw octets the position is not a multiple of 4, so Markers cannot be placed. */
    unsigned flags = w.pos % 4 ? w.fpdu_flags & ~SG_FPDU_MARKERS : w.fpdu_flags;
    size_t len = sg_fpdu_emit(w.out, w.pos, flags, &part, 1);

    if (fuzz_rarely(&w.in, 64)) {
        w.out[fuzz_below(&w.in, len)] ^= 1 << fuzz_below(&w.in, 8);
    }
    say(w.out, len);
}

void say_startup(void)
{
    uint8_t how = fuzz_u8(&w.in);
    struct sg_mpa_frame f = {
        .kind = how & 1 ? SG_MPA_REPLY : SG_MPA_REQUEST,
        .markers = how & 2,
        .crc = !(how & 4),
        .reject = (how & 1) && (how & 8),
        .rev = how & 16 ? 1 : 2,
        .enhanced = !(how & 16),
        .p2p = how & 32,
        .rtr = how & 32 ? fuzz_below(&w.in, SG_MPA_RTR_ALL + 1) : 0,
        .ird = fuzz_u16(&w.in) & SG_MPA_DEPTH_MAX,
        .ord = fuzz_u16(&w.in) & SG_MPA_DEPTH_MAX,
    };
    uint8_t buf[SG_MPA_FRAME_MAX];
    size_t n = fuzz_u16(&w.in) % (SG_MPA_PD_V2_MAX + 1), len;

    f.pd.p = fuzz_bytes(&w.in, &n);
    f.pd.len = n;
    len = sg_mpa_frame_emit(&f, buf);
    if (how & 64) {
        buf[fuzz_below(&w.in, len)] ^= fuzz_u8(&w.in);
    }
    w.pos = 0;
    say(buf, how & 128 ? fuzz_below(&w.in, len) : len);
    w.pos = 0;
}

/* The header behind DDP's of a Read Request or a request of the extension; 0: it has none. */
static size_t put_request(uint8_t op, uint8_t *buf)
{
    uint64_t to = w.buf + fuzz_below(&w.in, BUF / 2);
    bool odd = fuzz_rarely(&w.in, 16);
    uint32_t len = fuzz_below(&w.in, BUF / 2);
    struct sg_read_req read = {
        .sink_stag = fuzz_u32(&w.in),
        .sink_to = len,
        .src_stag = w.stag,
        .src_to = to,
        .size = len,
    };
    struct sg_flush_req flush = { .stag = w.stag, .to = to, .length = len };
    struct sg_verify_req verify = { .stag = w.stag, .to = to, .length = len };
    struct sg_atomic_req atomic = {
        .op = len & 1 ? SG_ATOMIC_FETCH_ADD : SG_ATOMIC_CMP_SWAP,
        .id = len,
        .stag = w.stag,
        .to = to & ~7ull,
        .data = len,
        .mask = len & 2 ? 0 : UINT64_MAX,
    };
    struct sg_atomic_resp answer = { .value = to };
    struct sg_atomic_write_req atom = { .stag = w.stag, .to = to & ~7ull, .length = SG_ATOM_LEN };

    if (odd) {
        read.src_to = flush.to = verify.to = atom.to = fuzz_edgy(&w.in);
        read.size = flush.length = verify.length = (uint32_t)fuzz_edgy(&w.in);
        verify.hash_len = fuzz_below(&w.in, SG_HASH_LEN_MAX + 1);
        atom.length = fuzz_u8(&w.in) % 10;
        atomic.to = atom.to;
        atomic.op = fuzz_u8(&w.in) & 0xf;
        atomic.mask = fuzz_edgy(&w.in);
    }
    switch (op) {
    case SG_OP_READ_REQ:
        return sg_read_req_emit(&read, buf);
    case SG_OP_ATOMIC_REQ:
        return sg_atomic_req_emit(&atomic, buf);
    case SG_OP_ATOMIC_RESP:
        answer.id = odd ? len : w.asked;
        return sg_atomic_resp_emit(&answer, buf);
    case SG_OP_FLUSH_REQ:
        flush.flags = odd ? fuzz_u8(&w.in) : 1 + fuzz_below(&w.in, 3);
        return sg_flush_req_emit(&flush, buf);
    case SG_OP_VERIFY_REQ:
        return sg_verify_req_emit(&verify, buf);
    case SG_OP_ATOMIC_WRITE_REQ:
        return sg_atomic_write_req_emit(&atom, buf);
    default:
        return 0;
    }
}

/* An opcode that the adapter knows, or any; those that end the stream are rare. */
static uint8_t choose_opcode(void)
{
    static const uint8_t plain[] = {
        SG_OP_WRITE,       SG_OP_WRITE,     SG_OP_WRITE,     SG_OP_WRITE,     SG_OP_WRITE,
        SG_OP_WRITE,       SG_OP_READ_REQ,  SG_OP_READ_REQ,  SG_OP_READ_REQ,  SG_OP_READ_REQ,
        SG_OP_READ_REQ,    SG_OP_SEND,      SG_OP_SEND,      SG_OP_SEND,      SG_OP_SEND,
        SG_OP_SEND,        SG_OP_SEND,      SG_OP_SEND,      SG_OP_SEND,      SG_OP_SEND,
        SG_OP_SEND_SE,     SG_OP_SEND_SE,   SG_OP_SEND_SE,   SG_OP_SEND_SE,   SG_OP_SEND_SE,
        SG_OP_SEND_SE,     SG_OP_READ_RESP, SG_OP_READ_RESP, SG_OP_READ_RESP, SG_OP_SEND_INV,
        SG_OP_SEND_SE_INV, SG_OP_TERMINATE
    };
    /* A Response is replaced by the one that is due. */
    static const uint8_t rfc7306[] = { SG_OP_IMM,        SG_OP_IMM,        SG_OP_IMM_SE,
                                       SG_OP_ATOMIC_REQ, SG_OP_ATOMIC_REQ, SG_OP_ATOMIC_REQ,
                                       SG_OP_ATOMIC_RESP };
    static const uint8_t draft[] = { SG_OP_FLUSH_REQ,        SG_OP_FLUSH_REQ,
                                     SG_OP_FLUSH_REQ,        SG_OP_VERIFY_REQ,
                                     SG_OP_VERIFY_REQ,       SG_OP_ATOMIC_WRITE_REQ,
                                     SG_OP_ATOMIC_WRITE_REQ, SG_OP_FLUSH_RESP };
    unsigned first = w.rfc7306 ? SG_ARRAY_SIZE(rfc7306) : 0, i;

    if (fuzz_rarely(&w.in, 64)) {
        return fuzz_u8(&w.in) & 0x1f;
    }
    i = fuzz_below(&w.in, SG_ARRAY_SIZE(plain) + first + (w.draft ? SG_ARRAY_SIZE(draft) : 0));
    if (i < SG_ARRAY_SIZE(plain)) {
        return plain[i];
    }
    i -= SG_ARRAY_SIZE(plain);
    return i < first ? rfc7306[i] : draft[i - first];
}

/* A valid message segment, with some fields changed by the input. */
void say_message(void)
{
    static uint8_t ulpdu[70000];
    uint8_t op = choose_opcode();
    const struct sg_rdmap_op *row = sg_rdmap_op(op);
    uint8_t spoil = fuzz_rarely(&w.in, 16) ? 1 << fuzz_below(&w.in, 8) : 0;
    struct sg_ddp_hdr h = {
        .tagged = row && row->tagged,
        .last = !fuzz_rarely(&w.in, 5),
        .version = SG_DDP_VERSION,
        .ulp_ctrl = sg_rdmap_ctrl_emit((struct sg_rdmap_ctrl){ SG_RDMAP_VERSION, op }),
        .stag = w.stag,
        .to = w.buf + fuzz_below(&w.in, BUF / 2),
        .qn = row ? row->qn : 0,
        .ulp_word = row && row->invalidates ? w.fast_stag : 0,
    };
    size_t n = fuzz_rarely(&w.in, 16) ? fuzz_below(&w.in, 60000) : fuzz_below(&w.in, 256);
    size_t have, at;
    const uint8_t *payload;

    if (op == SG_OP_READ_RESP) {
        if (!w.sink_len) {
            return;
        }
        h.to = w.sink_to;
        n = w.sink_len;
        w.sink_len = 0;
    }
    if (op == SG_OP_FLUSH_RESP || op == SG_OP_ATOMIC_RESP) {
        if (!w.due) {
            return;
        }
        op = w.due;
        h.ulp_ctrl = sg_rdmap_ctrl_emit((struct sg_rdmap_ctrl){ SG_RDMAP_VERSION, op });
        n = op == SG_OP_VERIFY_RESP ? 32 : 0;
        w.due = 0;
    }
    if (op == SG_OP_IMM || op == SG_OP_IMM_SE) {
        n = fuzz_rarely(&w.in, 16) ? n : SG_IMM_LEN;
        h.last = true;
    }

    h.stag ^= spoil & 1 ? fuzz_u32(&w.in) : 0;
    h.to = spoil & 2 ? fuzz_edgy(&w.in) : h.to;
    h.qn = spoil & 4 ? fuzz_below(&w.in, 6) : h.qn;
    h.version = spoil & 8 ? fuzz_below(&w.in, 4) : h.version;
    h.ulp_ctrl ^= spoil & 16 ? fuzz_u8(&w.in) : 0;
    h.tagged ^= !!(spoil & 32);
    h.msn = w.msn[h.qn % SG_QN_COUNT] + (spoil & 64 ? fuzz_below(&w.in, 256) : 0);
    h.mo = h.qn == SG_QN_SEND ? w.mo : 0;
    h.mo = spoil & 128 ? (uint32_t)fuzz_edgy(&w.in) : h.mo;
    at = sg_ddp_emit(&h, ulpdu);
    have = fuzz_rarely(&w.in, 16) ? 0 : put_request(op, ulpdu + at);
    if (have) {
        at += have;
        n = fuzz_rarely(&w.in, 16) ? n : 0;
    }
    have = n;
    payload = fuzz_bytes(&w.in, &have);
    memset(ulpdu + at, 0x42, n);
    if (have) {
        memcpy(ulpdu + at, payload, have);
    }
    say_ulpdu(ulpdu, at + n);
    if (!h.tagged && h.qn < SG_QN_COUNT) {
        w.msn[h.qn] += h.last;
        w.mo = h.qn == SG_QN_SEND ? (h.last ? 0 : h.mo + (uint32_t)n) : w.mo;
    }
}
