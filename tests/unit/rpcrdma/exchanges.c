/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "exchanges.h"

#include "echo.h"
#include "hex.h"

enum {
    ROOM = 16384,
    FH_LEN = 32,
    PUT_COUNT = 500,
    WRITE_TO = 0x10000,
    READ_TO = 0x20000,
    REPLY_TO = 0x30000
};

static uint8_t noise[ROOM];

void words(GByteArray *to, ...)
{
    uint64_t word;
    uint8_t octets[4];
    va_list ap;

    va_start(ap, to);
    while ((word = va_arg(ap, uint64_t)) != END) {
        sg_put_be32(octets, (uint32_t)word);
        g_byte_array_append(to, octets, sizeof(octets));
    }
    va_end(ap);
}

#define W(x) ((uint64_t)(x))

void filler(GByteArray *to, size_t octets)
{
    g_byte_array_append(to, noise, (guint)octets);
}

GByteArray *call3(uint32_t xid, uint32_t proc)
{
    GByteArray *a = g_byte_array_new();

    words(a, W(xid), W(RR_CALL), W(2), W(RR_PROG_NFS), W(3), W(proc), W(0), W(0), W(0), W(0), END);
    return a;
}

GByteArray *reply3(uint32_t xid)
{
    GByteArray *a = g_byte_array_new();

    words(a, W(xid), W(RR_REPLY), W(0), W(0), W(0), W(0), END);
    return a;
}

static void file_handle(GByteArray *a)
{
    words(a, W(FH_LEN), END);
    filler(a, FH_LEN);
}

struct rr_header *header(uint32_t xid, uint32_t proc)
{
    static struct rr_header h;

    memset(&h, 0, sizeof(h));
    h.xid = xid;
    h.vers = RR_VERSION;
    h.credit = GRANT;
    h.proc = proc;
    return &h;
}

GByteArray *message(const struct rr_header *h, const GByteArray *rpc)
{
    static uint8_t buf[RR_HEADER_ROOM];
    GByteArray *a = g_byte_array_new();

    g_byte_array_append(a, buf, (guint)rr_header_emit(h, buf, sizeof(buf)));
    if (rpc && rpc->len) {
        g_byte_array_append(a, rpc->data, rpc->len);
    }
    return a;
}

static void send_with(struct maker *m, enum rr_dir dir, uint8_t opcode, uint32_t stag,
                      const struct rr_header *h, GByteArray *rpc)
{
    GByteArray *a = message(h, rpc);

    maker_send(m, dir, opcode, stag, sg_span_of(a->data, a->len));
    g_byte_array_free(a, true);
    if (rpc) {
        g_byte_array_free(rpc, true);
    }
}

void send_message(struct maker *m, enum rr_dir dir, const struct rr_header *h, GByteArray *rpc)
{
    send_with(m, dir, SG_OP_SEND, 0, h, rpc);
}

void send_octets(struct maker *m, enum rr_dir dir, const char *hex_text)
{
    uint8_t buf[512];

    maker_send(m, dir, SG_OP_SEND, 0, hex(hex_text, buf, sizeof(buf)));
}

void null_call(struct maker *m, enum rr_dir dir, uint32_t xid)
{
    send_message(m, dir, header(xid, RR_MSG), call3(xid, NFS3_NULL));
}

void callback_call(struct maker *m, uint32_t xid)
{
    GByteArray *a = g_byte_array_new();

    words(a, W(xid), W(RR_CALL), W(2), W(RR_PROG_NFS_CALLBACK), W(1), W(1), W(0), W(0), W(0), W(0),
          END);
    /* No tag, minor version 1, no identifier, two operations; CB_SEQUENCE. */
    words(a, W(0), W(1), W(0), W(2), W(11), END);
    filler(a, 16 + 4 * 4);
    /* Referring calls: of one session, one; CB_RECALL. */
    words(a, W(1), END);
    filler(a, 16);
    words(a, W(1), W(7), W(0), W(4), END);
    filler(a, 20);
    file_handle(a);
    send_message(m, RR_BACK, header(xid, RR_MSG), a);
}

void null_reply(struct maker *m, enum rr_dir dir, uint32_t xid, uint32_t credit)
{
    struct rr_header *h = header(xid, RR_MSG);

    h->credit = credit;
    send_message(m, dir, h, reply3(xid));
}

void null3(struct maker *m, uint32_t xid)
{
    null_call(m, RR_OUT, xid);
    null_reply(m, RR_BACK, xid, GRANT);
}

/* ---- READ ---- */

/* The Write list of the Call, and the same with the Reply's lengths. */
static void read3_chunks(struct rr_header *h, const struct read3 *p, bool reply)
{
    uint32_t half = (uint32_t)p->offered / 2, left = p->returned;

    if (p->offered < 0 || (reply && p->no_back)) {
        return;
    }
    if (p->spare) {
        rr_open_chunk(h);
        rr_add_segment(h, (struct rr_segment){ 0x7777, reply ? 0 : 1024, 0x700 });
    }
    rr_open_chunk(h);
    if (p->empty && !(reply && p->back_stag)) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct rr_segment s = { WRITE_STAG, i ? (uint32_t)p->offered - half : half,
                                WRITE_TO + i * half };

        if (reply) {
            s.length = i ? left : SG_MIN(left, half);
            left -= s.length;
            if (p->draft07 && !s.length) {
                break;
            }
            s.handle = p->back_stag && !i ? p->back_stag : s.handle;
        }
        rr_add_segment(h, s);
    }
}

static GByteArray *read3_reply(uint32_t xid, const struct read3 *p)
{
    GByteArray *rpc = reply3(xid);

    if (p->getattr) {
        words(rpc, W(0), END);
        filler(rpc, 84);
    } else {
        words(rpc, W(0), W(0), W(p->result), W(1), W(p->result), END);
        filler(rpc, p->inlined);
    }
    return rpc;
}

void read3(struct maker *m, uint32_t xid, const struct read3 *p)
{
    bool invalidate = m->client.remote_inv && m->server.remote_inv && p->offered > 0 && !p->empty;
    GByteArray *rpc = call3(xid, p->getattr ? NFS3_GETATTR : NFS3_READ);
    struct rr_header *h = header(xid, RR_MSG);

    file_handle(rpc);
    if (!p->getattr) {
        words(rpc, W(0), W(0), W(p->count), END);
    }
    read3_chunks(h, p, false);
    send_message(m, RR_OUT, h, rpc);

    if (p->placed) {
        maker_write(m, RR_BACK, WRITE_STAG, WRITE_TO,
                    sg_span_of(noise, SG_MIN(p->placed, (uint32_t)p->offered / 2)));
    }
    if (p->placed > (uint32_t)p->offered / 2) {
        maker_write(m, RR_BACK, WRITE_STAG, WRITE_TO + (uint32_t)p->offered / 2,
                    sg_span_of(noise, p->placed - (uint32_t)p->offered / 2));
    }
    h = header(xid, RR_MSG);
    read3_chunks(h, p, true);
    send_with(m, RR_BACK,
              p->opcode    ? p->opcode
              : invalidate ? SG_OP_SEND_INV
                           : SG_OP_SEND,
              p->stag      ? p->stag
              : invalidate ? WRITE_STAG
                           : 0,
              h, read3_reply(xid, p));
}

/* ---- WRITE ---- */

void write3(struct maker *m, uint32_t xid, const struct write3 *p)
{
    GByteArray *rpc = call3(xid, p->getattr ? NFS3_GETATTR : NFS3_WRITE);
    struct rr_header *h = header(xid, RR_MSG);

    file_handle(rpc);
    if (!p->getattr) {
        words(rpc, W(0), W(0), W(p->count), W(2), W(p->count), END);
        sg_assert(rpc->len == WRITE3_POSITION);
    }
    if (p->uncounted) {
        g_byte_array_set_size(rpc, rpc->len - 4);
    }
    filler(rpc, p->inlined + p->pad);
    rr_add_read(h, p->position, (struct rr_segment){ READ_STAG, p->chunk, READ_TO });
    send_message(m, RR_OUT, h, rpc);
    maker_read(m, RR_BACK, READ_STAG, READ_TO, sg_span_of(noise, p->chunk));

    rpc = reply3(xid);
    words(rpc, W(0), W(0), W(0), W(p->count), W(2), W(0), W(0), END);
    send_message(m, RR_BACK, header(xid, RR_MSG), rpc);
}

void put(struct maker *m, uint32_t xid, const struct put *p)
{
    GByteArray *rpc = g_byte_array_new();
    struct rr_header *h = header(xid, RR_MSG);

    words(rpc, W(xid), W(RR_CALL), W(2), W(RR_ECHO), W(RR_ECHO_VERSION), W(RR_ECHO_PUT), END);
    words(rpc, W(0), W(0), W(0), W(0), W(0), END);
    words(rpc, W(RR_PUT_DATA), W(!p->nothing), W(PUT_COUNT), END);
    g_byte_array_set_size(rpc, rpc->len - (p->nothing ? 4 : p->moved));
    rr_add_read(h, rpc->len, (struct rr_segment){ READ_STAG, PUT_COUNT + p->moved, READ_TO });
    send_message(m, RR_OUT, h, rpc);
    maker_read(m, RR_BACK, READ_STAG, READ_TO, sg_span_of(noise, PUT_COUNT + p->moved));

    rpc = reply3(xid);
    words(rpc, W(PUT_COUNT), END);
    send_message(m, RR_BACK, header(xid, RR_MSG), rpc);
}

/* ---- Long messages ---- */

static void long3_call(struct maker *m, uint32_t xid, const struct long3 *p)
{
    bool far = p->call_proc == RR_NOMSG;
    GByteArray *rpc = call3(xid + (far ? p->rpc_xid : 0), NFS3_GETATTR);
    struct rr_header *h = header(xid, p->call_proc);

    file_handle(rpc);
    filler(rpc, p->call_more);
    if (p->call_position >= 0) {
        rr_add_read(h, (uint32_t)p->call_position,
                    (struct rr_segment){ READ_STAG, rpc->len, READ_TO });
    }
    if (p->reply_chunk) {
        rr_open_reply(h);
        rr_add_segment(h, (struct rr_segment){ REPLY_STAG, 5000, REPLY_TO });
        rr_add_segment(h, (struct rr_segment){ REPLY_STAG, 4000, REPLY_TO + 5000 });
    }
    if (!far) {
        send_message(m, RR_OUT, h, rpc);
        return;
    }
    send_message(m, RR_OUT, h, NULL);
    if (p->call_position >= 0) {
        maker_read(m, RR_BACK, READ_STAG, READ_TO, sg_span_of(rpc->data, rpc->len));
    }
    g_byte_array_free(rpc, true);
}

void long3(struct maker *m, uint32_t xid, const struct long3 *p)
{
    bool far = p->reply_proc == RR_NOMSG;
    GByteArray *rpc = reply3(xid + (far ? p->rpc_xid : 0));
    struct rr_header *h;
    uint32_t octets;

    long3_call(m, xid, p);
    filler(rpc, p->reply_octets);
    octets = far ? (uint32_t)((int)rpc->len + p->returned_more) : 0;
    if (far && p->reply_chunk) {
        maker_write(m, RR_BACK, REPLY_STAG, REPLY_TO,
                    sg_span_of(rpc->data, SG_MIN(rpc->len, 5000)));
        if (rpc->len > 5000) {
            maker_write(m, RR_BACK, REPLY_STAG, REPLY_TO + 5000,
                        sg_span_of(rpc->data + 5000, rpc->len - 5000));
        }
    }
    h = header(xid, p->reply_proc);
    if (p->reply_chunk && !p->no_back) {
        rr_open_reply(h);
        rr_add_segment(h, (struct rr_segment){ p->back_stag ? p->back_stag : REPLY_STAG,
                                               SG_MIN(octets, 5000), REPLY_TO });
        rr_add_segment(
            h, (struct rr_segment){ REPLY_STAG, octets - SG_MIN(octets, 5000), REPLY_TO + 5000 });
    }
    if (far) {
        g_byte_array_free(rpc, true);
        rpc = NULL;
    }
    send_message(m, RR_BACK, h, rpc);
}
