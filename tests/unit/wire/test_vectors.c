/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Golden vectors: whole startup frames and FPDUs (CRC on, no markers), each
 * built from structures, compared octet by octet, and taken apart again.
 */
#include "base/crc32c.h"
#include "hex.h"
#include "tap.h"
#include "staghorn/io.h"
#include "wire/atomic_hdr.h"
#include "wire/mpe.h"
#include "wire/fpdu.h"
#include "wire/mpa_frame.h"
#include "wire/terminate.h"

struct startup {
    const char *name;
    const char *bytes;
    struct sg_mpa_frame frame;
};

static const struct startup startups[] = {
    { "Request v1, C",
      "4d504120 49442052 65712046 72616d65 40010000",
      { .kind = SG_MPA_REQUEST, .rev = 1, .crc = true } },
    { "Request v2, A C D",
      "4d504120 49442052 65712046 72616d65 50020004 8004c008",
      { .kind = SG_MPA_REQUEST,
        .rev = 2,
        .crc = true,
        .enhanced = true,
        .p2p = true,
        .rtr = SG_MPA_RTR_WRITE | SG_MPA_RTR_READ,
        .ird = 4,
        .ord = 8 } },
    { "Reply v2, A C",
      "4d504120 49442052 65702046 72616d65 50020004 80088004",
      { .kind = SG_MPA_REPLY,
        .rev = 2,
        .crc = true,
        .enhanced = true,
        .p2p = true,
        .rtr = SG_MPA_RTR_WRITE,
        .ird = 8,
        .ord = 4 } },
};

static void startup_frames(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(startups); i++) {
        uint8_t want[64], out[64];
        struct sg_span v = hex(startups[i].bytes, want, sizeof(want));
        struct sg_mpa_frame f;
        size_t used;

        T_CONTEXT("%s", startups[i].name);
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(sg_mpa_frame_emit(&startups[i].frame, out), v.len);
        T_EQ_MEM(out, want, v.len);
        T_EQ_INT(sg_mpa_frame_parse(v, startups[i].frame.kind, &f, &used), SG_WIRE_OK);
        T_EQ_U64(used, v.len);
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(sg_mpa_frame_emit(&f, out), v.len);
        T_EQ_MEM(out, want, v.len);
    }
}

/* What stands behind the DDP header. */
struct body {
    const struct sg_read_req *read;
    const struct sg_atomic_req *atomic;
    const struct sg_atomic_resp *atomic_resp;
    const struct sg_term *term;
    const struct sg_flush_req *flush;
    const struct sg_verify_req *verify;
    const struct sg_atomic_write_req *atomic_write;
    const struct sg_verify_resp *verify_resp;
    const char *octets; /* hex */
};

struct wire_vector {
    const char *name;
    const char *bytes;
    struct sg_ddp_hdr ddp;
    struct body body;
};

/* Last segment of an untagged message, and of a tagged one. */
#define UNTAGGED(op, q, m) \
    .last = true, .version = 1, .ulp_ctrl = 0x40 | (op), .qn = (q), .msn = (m)
#define TAGGED(op, s, t) \
    .tagged = true, .last = true, .version = 1, .ulp_ctrl = 0x40 | (op), .stag = (s), .to = (t)

static const struct wire_vector vectors[] = {
    { "RTR Write",
      "000ec140 00000001 00000000 00000000 ebd34c5f",
      { TAGGED(SG_OP_WRITE, 1, 0) },
      { .octets = "" } },
    { "RTR Read Request",
      "002e4141 00000000 00000001 00000001 00000000 00000001 00000000 00000000 00000000 00000001 "
      "00000000 00000000 27dbd7e7",
      { UNTAGGED(SG_OP_READ_REQ, SG_QN_REQUEST, 1) },
      { .read = &(const struct sg_read_req){ .sink_stag = 1, .src_stag = 1 } } },
    { "RTR Send",
      "00124143 00000000 00000000 00000001 00000000 587be8c4",
      { UNTAGGED(SG_OP_SEND, SG_QN_SEND, 1) },
      { .octets = "" } },
    { "Send hello",
      "00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c",
      { UNTAGGED(SG_OP_SEND, SG_QN_SEND, 1) },
      { .octets = "68656c6c6f" } },
    { "Send with Solicited Event and Invalidate",
      "00144146 11223344 00000000 00000002 00000000 68690000 cbdf2b23",
      { UNTAGGED(SG_OP_SEND_SE_INV, SG_QN_SEND, 2), .ulp_word = 0x11223344 },
      { .octets = "6869" } },
    { "Read Request",
      "002e4141 00000000 00000001 00000001 00000000 a0000001 00000000 00001000 00000010 b0000002 "
      "00000000 00002000 563898b2",
      { UNTAGGED(SG_OP_READ_REQ, SG_QN_REQUEST, 1) },
      { .read = &(const struct sg_read_req){ .sink_stag = 0xa0000001,
                                             .sink_to = 0x1000,
                                             .size = 16,
                                             .src_stag = 0xb0000002,
                                             .src_to = 0x2000 } } },
    { "Read Response",
      "001ec142 a0000001 00000000 00001000 00010203 04050607 08090a0b 0c0d0e0f c1c664f1",
      { TAGGED(SG_OP_READ_RESP, 0xa0000001, 0x1000) },
      { .octets = "000102030405060708090a0b0c0d0e0f" } },
    { "Immediate Data",
      "001a4148 00000000 00000000 00000003 00000000 01020304 05060708 ccb28c64",
      { UNTAGGED(SG_OP_IMM, SG_QN_SEND, 3) },
      { .octets = "0102030405060708" } },
    { "Atomic Request, FetchAdd",
      "0046414a 00000000 00000001 00000002 00000000 00000000 00000007 b0000002 00000000 00002000 "
      "00000000 00000005 00000000 00000000 00000000 00000000 ffffffff ffffffff b46cf8b5",
      { UNTAGGED(SG_OP_ATOMIC_REQ, SG_QN_REQUEST, 2) },
      { .atomic = &(const struct sg_atomic_req){ .op = SG_ATOMIC_FETCH_ADD,
                                                 .id = 7,
                                                 .stag = 0xb0000002,
                                                 .to = 0x2000,
                                                 .data = 5,
                                                 .cmp_mask = UINT64_MAX } } },
    { "Atomic Request, CmpSwap",
      "0046414a 00000000 00000001 00000003 00000000 00000002 00000008 b0000002 00000000 00002000 "
      "00000000 00000009 ffffffff ffffffff 00000000 00000005 ffffffff ffffffff 9d86cfee",
      { UNTAGGED(SG_OP_ATOMIC_REQ, SG_QN_REQUEST, 3) },
      { .atomic = &(const struct sg_atomic_req){ .op = SG_ATOMIC_CMP_SWAP,
                                                 .id = 8,
                                                 .stag = 0xb0000002,
                                                 .to = 0x2000,
                                                 .data = 9,
                                                 .mask = UINT64_MAX,
                                                 .cmp = 5,
                                                 .cmp_mask = UINT64_MAX } } },
    { "Atomic Response",
      "001e414b 00000000 00000003 00000001 00000000 00000007 00000000 0000002a 4d18fffb",
      { UNTAGGED(SG_OP_ATOMIC_RESP, SG_QN_RESPONSE, 1) },
      { .atomic_resp = &(const struct sg_atomic_resp){ .id = 7, .value = 0x2a } } },
    { "Terminate, no receive buffer",
      "002a4147 00000000 00000002 00000001 00000000 1202c000 00764143 00000000 00000000 00000009 "
      "00000000 84b505b0",
      { UNTAGGED(SG_OP_TERMINATE, SG_QN_TERMINATE, 1) },
      { .term = &(const struct sg_term){ .layer = 1,
                                         .etype = 2,
                                         .code = 2,
                                         .has_len = true,
                                         .has_ddp = true,
                                         .seg_len = 118,
                                         .ddp = { UNTAGGED(SG_OP_SEND, SG_QN_SEND, 9) } } } },
    { "Terminate, insufficient IRD",
      "00164147 00000000 00000002 00000001 00000000 20060000 6540fb1b",
      { UNTAGGED(SG_OP_TERMINATE, SG_QN_TERMINATE, 1) },
      { .term = &(const struct sg_term){ .layer = 2, .etype = 0, .code = 6 } } },
    { "Flush Request",
      "0026414c 00000000 00000001 00000002 00000000 b0000002 00001000 00000000 00002000 00000001 "
      "6a09cd11",
      { UNTAGGED(SG_OP_FLUSH_REQ, SG_QN_REQUEST, 2) },
      { .flush = &(const struct sg_flush_req){ .stag = 0xb0000002,
                                               .length = 4096,
                                               .to = 0x2000,
                                               .flags = SG_FLUSH_PERSISTENT } } },
    { "Flush Response",
      "0012414d 00000000 00000003 00000001 00000000 58c70fec",
      { UNTAGGED(SG_OP_FLUSH_RESP, SG_QN_RESPONSE, 1) },
      { .octets = "" } },
    { "Verify Request",
      "0022414e 00000000 00000001 00000004 00000000 b0000002 00001000 00000000 00002000 551d6cf0",
      { UNTAGGED(SG_OP_VERIFY_REQ, SG_QN_REQUEST, 4) },
      { .verify =
            &(const struct sg_verify_req){ .stag = 0xb0000002, .length = 4096, .to = 0x2000 } } },
    { "Verify Request with a hash",
      "0026414e 00000000 00000001 00000005 00000000 b0000002 00001000 00000000 00002000 e3069283 "
      "68635b3d",
      { UNTAGGED(SG_OP_VERIFY_REQ, SG_QN_REQUEST, 5) },
      { .verify = &(const struct sg_verify_req){ .stag = 0xb0000002,
                                                 .length = 4096,
                                                 .to = 0x2000,
                                                 .hash_len = 4,
                                                 .hash = { 0xe3, 0x06, 0x92, 0x83 } } } },
    { "Verify Response",
      "0016414f 00000000 00000003 00000002 00000000 e3069283 ba7714b3",
      { UNTAGGED(SG_OP_VERIFY_RESP, SG_QN_RESPONSE, 2) },
      { .verify_resp =
            &(const struct sg_verify_resp){ .hash_len = 4, .hash = { 0xe3, 0x06, 0x92, 0x83 } } } },
    { "Atomic Write Request, five-bit opcode",
      "002a4150 00000000 00000001 00000003 00000000 b0000002 00000008 00000000 00002000 01234567 "
      "89abcdef 9ad58ce1",
      { UNTAGGED(SG_OP_ATOMIC_WRITE_REQ, SG_QN_REQUEST, 3) },
      { .atomic_write =
            &(const struct sg_atomic_write_req){
                .stag = 0xb0000002, .length = 8, .to = 0x2000, .data = 0x0123456789abcdef } } },
    { "Atomic Write Response, five-bit opcode",
      "00124151 00000000 00000003 00000003 00000000 5278bcfe",
      { UNTAGGED(SG_OP_ATOMIC_WRITE_RESP, SG_QN_RESPONSE, 3) },
      { .octets = "" } },
    { "Terminate, flush failed",
      "002a4147 00000000 00000002 00000001 00000000 0207c000 0026414c 00000000 00000001 00000002 "
      "00000000 2872acf7",
      { UNTAGGED(SG_OP_TERMINATE, SG_QN_TERMINATE, 1) },
      { .term =
            &(const struct sg_term){ .etype = 2,
                                     .code = 7,
                                     .has_len = true,
                                     .has_ddp = true,
                                     .seg_len = 38,
                                     .ddp = { UNTAGGED(SG_OP_FLUSH_REQ, SG_QN_REQUEST, 2) } } } },
};

static struct sg_span emit_body(const struct body *b, uint8_t *buf, size_t size)
{
    memset(buf, 0xa5, size);
    if (b->read) {
        return sg_span_of(buf, sg_read_req_emit(b->read, buf));
    }
    if (b->atomic) {
        return sg_span_of(buf, sg_atomic_req_emit(b->atomic, buf));
    }
    if (b->atomic_resp) {
        return sg_span_of(buf, sg_atomic_resp_emit(b->atomic_resp, buf));
    }
    if (b->term) {
        return sg_span_of(buf, sg_term_emit(b->term, buf));
    }
    if (b->flush) {
        return sg_span_of(buf, sg_flush_req_emit(b->flush, buf));
    }
    if (b->verify) {
        return sg_span_of(buf, sg_verify_req_emit(b->verify, buf));
    }
    if (b->atomic_write) {
        return sg_span_of(buf, sg_atomic_write_req_emit(b->atomic_write, buf));
    }
    if (b->verify_resp) {
        return sg_span_of(buf, sg_verify_resp_emit(b->verify_resp, buf));
    }
    return hex(b->octets, buf, size);
}

static void fpdus_to_bytes(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(vectors); i++) {
        uint8_t want[128], out[128], hdr[SG_DDP_HDR_MAX], body[64];
        struct sg_span v = hex(vectors[i].bytes, want, sizeof(want));
        struct sg_span parts[2];

        T_CONTEXT("%s", vectors[i].name);
        memset(hdr, 0xa5, sizeof(hdr));
        parts[0] = sg_span_of(hdr, sg_ddp_emit(&vectors[i].ddp, hdr));
        parts[1] = emit_body(&vectors[i].body, body, sizeof(body));
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(sg_fpdu_emit(out, 4, SG_FPDU_CRC_ON, parts, 2), v.len);
        T_EQ_MEM(out, want, v.len);
    }
}

/* Parse the body with the codec of its opcode and emit it again. */
static struct sg_span body_again(unsigned opcode, struct sg_span in, uint8_t *buf)
{
    struct sg_read_req read;
    struct sg_atomic_req atomic;
    struct sg_atomic_resp resp;
    struct sg_term term;
    struct sg_flush_req flush;
    struct sg_verify_req verify;
    struct sg_atomic_write_req atomic_write;
    struct sg_verify_resp verify_resp;

    switch (opcode) {
    case SG_OP_READ_REQ:
        T_EQ_INT(sg_read_req_parse(in, &read), SG_WIRE_OK);
        return sg_span_of(buf, sg_read_req_emit(&read, buf));
    case SG_OP_ATOMIC_REQ:
        T_EQ_INT(sg_atomic_req_parse(in, &atomic), SG_WIRE_OK);
        return sg_span_of(buf, sg_atomic_req_emit(&atomic, buf));
    case SG_OP_ATOMIC_RESP:
        T_EQ_INT(sg_atomic_resp_parse(in, &resp), SG_WIRE_OK);
        return sg_span_of(buf, sg_atomic_resp_emit(&resp, buf));
    case SG_OP_TERMINATE:
        T_EQ_INT(sg_term_parse(in, &term), SG_WIRE_OK);
        T_FALSE(term.swapped || term.truncated);
        return sg_span_of(buf, sg_term_emit(&term, buf));
    case SG_OP_FLUSH_REQ:
        T_EQ_INT(sg_flush_req_parse(in, &flush), SG_WIRE_OK);
        return sg_span_of(buf, sg_flush_req_emit(&flush, buf));
    case SG_OP_VERIFY_REQ:
        T_EQ_INT(sg_verify_req_parse(in, &verify), SG_WIRE_OK);
        return sg_span_of(buf, sg_verify_req_emit(&verify, buf));
    case SG_OP_ATOMIC_WRITE_REQ:
        T_EQ_INT(sg_atomic_write_req_parse(in, &atomic_write), SG_WIRE_OK);
        return sg_span_of(buf, sg_atomic_write_req_emit(&atomic_write, buf));
    case SG_OP_VERIFY_RESP:
        T_EQ_INT(sg_verify_resp_parse(in, &verify_resp), SG_WIRE_OK);
        return sg_span_of(buf, sg_verify_resp_emit(&verify_resp, buf));
    default:
        return in;
    }
}

static void fpdus_from_bytes(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(vectors); i++) {
        uint8_t want[128], hdr_out[SG_DDP_HDR_MAX], body_out[64];
        struct sg_span v = hex(vectors[i].bytes, want, sizeof(want));
        const struct sg_rdmap_op *op;
        struct sg_rdmap_ctrl ctrl;
        struct sg_span body, again;
        struct sg_ddp_hdr h;
        struct sg_fpdu f;

        T_CONTEXT("%s", vectors[i].name);
        T_EQ_INT(sg_fpdu_parse(v, 4, SG_FPDU_CRC_ON, NULL, &f), SG_WIRE_OK);
        T_EQ_U64(f.wire_len, v.len);
        T_EQ_INT(sg_ddp_parse(f.ulpdu, &h), SG_WIRE_OK);
        T_EQ_U64(sg_ddp_emit(&h, hdr_out), sg_ddp_len(h.tagged));
        T_EQ_MEM(hdr_out, f.ulpdu.p, sg_ddp_len(h.tagged));
        T_EQ_U64(h.stag, vectors[i].ddp.stag);
        T_EQ_U64(h.qn, vectors[i].ddp.qn);
        T_EQ_U64(h.msn, vectors[i].ddp.msn);

        ctrl = sg_rdmap_ctrl_parse(h.ulp_ctrl, true);
        op = sg_rdmap_op(ctrl.opcode);
        T_EQ_U64(ctrl.version, SG_RDMAP_VERSION);
        T_NOT_NULL(op);
        T_EQ_INT(op->tagged, h.tagged);
        T_EQ_U64(op->qn, h.qn);
        body = sg_span_from(f.ulpdu, sg_ddp_len(h.tagged));
        T_TRUE(op->payload ? body.len >= op->hdr_len : body.len == op->hdr_len);
        again = body_again(ctrl.opcode, body, body_out);
        T_EQ_U64(again.len, body.len);
        T_EQ_MEM(again.p, body.p, body.len);
    }
}

static void fields_by_value(void)
{
    uint8_t buf[128];
    struct sg_span v = hex(vectors[5].bytes, buf, sizeof(buf));
    struct sg_read_req r;
    struct sg_fpdu f;

    T_EQ_STR(vectors[5].name, "Read Request");
    T_EQ_INT(sg_fpdu_parse(v, 4, SG_FPDU_CRC_ON, NULL, &f), SG_WIRE_OK);
    T_EQ_INT(sg_read_req_parse(sg_span_from(f.ulpdu, 18), &r), SG_WIRE_OK);
    T_EQ_U64(r.sink_stag, 0xa0000001);
    T_EQ_U64(r.sink_to, 0x1000);
    T_EQ_U64(r.size, 16);
    T_EQ_U64(r.src_stag, 0xb0000002);
    T_EQ_U64(r.src_to, 0x2000);
}

static const struct t_case cases[] = {
    { "golden startup frames", startup_frames },
    { "golden FPDUs to bytes", fpdus_to_bytes },
    { "golden FPDUs from bytes", fpdus_from_bytes },
    { "golden Read Request by value", fields_by_value },
};

T_MAIN(cases)
