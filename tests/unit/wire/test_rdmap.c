/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wire/rdmap.h: control octet, opcode table, message headers. */
#include "hex.h"
#include "tap.h"
#include "wire/atomic_hdr.h"

static void control_octet(void)
{
    for (unsigned o = 0; o < 256; o++) {
        struct sg_rdmap_ctrl narrow = sg_rdmap_ctrl_parse((uint8_t)o, false);
        struct sg_rdmap_ctrl wide = sg_rdmap_ctrl_parse((uint8_t)o, true);

        T_CONTEXT("octet %02x", o);
        T_EQ_U64(narrow.version, o / 64);
        T_EQ_U64(narrow.opcode, o % 16);
        T_EQ_U64(wide.version, o / 64);
        T_EQ_U64(wide.opcode, o % 32);
    }
    for (unsigned op = 0; op < SG_OP_COUNT; op++) {
        struct sg_rdmap_ctrl c = { .version = SG_RDMAP_VERSION, .opcode = (uint8_t)op };

        T_EQ_U64(sg_rdmap_ctrl_emit(c), 0x40 + op);
        c.version = SG_RDMAP_VERSION_RDMAC;
        T_EQ_U64(sg_rdmap_ctrl_emit(c), op);
    }
}

static void opcode_table(void)
{
    static const struct {
        unsigned opcode;
        enum sg_rdmap_spec spec;
        bool tagged;
        unsigned qn, hdr;
        bool payload, inv, se, multi;
    } t[] = {
        { 0x0, SG_SPEC_RFC5040, true, 0, 0, true, false, false, true },
        { 0x1, SG_SPEC_RFC5040, false, 1, 28, false, false, false, false },
        { 0x2, SG_SPEC_RFC5040, true, 0, 0, true, false, false, true },
        { 0x3, SG_SPEC_RFC5040, false, 0, 0, true, false, false, true },
        { 0x4, SG_SPEC_RFC5040, false, 0, 0, true, true, false, true },
        { 0x5, SG_SPEC_RFC5040, false, 0, 0, true, false, true, true },
        { 0x6, SG_SPEC_RFC5040, false, 0, 0, true, true, true, true },
        { 0x7, SG_SPEC_RFC5040, false, 2, 4, true, false, false, false },
        { 0x8, SG_SPEC_RFC7306, false, 0, 8, false, false, false, false },
        { 0x9, SG_SPEC_RFC7306, false, 0, 8, false, false, true, false },
        { 0xa, SG_SPEC_RFC7306, false, 1, 52, false, false, false, false },
        { 0xb, SG_SPEC_RFC7306, false, 3, 12, false, false, false, false },
        { 0xc, SG_SPEC_MPE, false, 1, 20, false, false, false, false },
        { 0xd, SG_SPEC_MPE, false, 3, 0, false, false, false, false },
        { 0xe, SG_SPEC_MPE, false, 1, 16, true, false, false, false },
        { 0xf, SG_SPEC_MPE, false, 3, 0, true, false, false, false },
        { 0x10, SG_SPEC_MPE, false, 1, 24, false, false, false, false },
        { 0x11, SG_SPEC_MPE, false, 3, 0, false, false, false, false },
    };

    T_EQ_U64(SG_ARRAY_SIZE(t), SG_OP_COUNT);
    for (size_t i = 0; i < SG_ARRAY_SIZE(t); i++) {
        const struct sg_rdmap_op *op = sg_rdmap_op(t[i].opcode);

        T_CONTEXT("opcode %zx", i);
        T_EQ_U64(t[i].opcode, i);
        T_NOT_NULL(op);
        T_NOT_NULL(op->name);
        T_EQ_STR(sg_rdmap_op_name(t[i].opcode), op->name);
        T_EQ_INT(op->spec, t[i].spec);
        T_EQ_INT(op->tagged, t[i].tagged);
        T_EQ_U64(op->qn, t[i].qn);
        T_EQ_U64(op->hdr_len, t[i].hdr);
        T_EQ_INT(op->payload, t[i].payload);
        T_EQ_INT(op->invalidates, t[i].inv);
        T_EQ_INT(op->solicited, t[i].se);
        T_EQ_INT(op->multi, t[i].multi);
    }
    T_NULL(sg_rdmap_op(SG_OP_COUNT));
    T_NULL(sg_rdmap_op(UINT32_MAX));
    T_EQ_STR(sg_rdmap_op_name(SG_OP_COUNT), "unknown opcode");
}

static const char read_hex[] = "01020304 1112131415161718 21222324 31323334 4142434445464748";
static const struct sg_read_req read_req = {
    .sink_stag = 0x01020304,
    .sink_to = 0x1112131415161718,
    .size = 0x21222324,
    .src_stag = 0x31323334,
    .src_to = 0x4142434445464748,
};

static void read_request(void)
{
    uint8_t buf[SG_READ_REQ_LEN], out[SG_READ_REQ_LEN + 1];
    struct sg_span in = hex(read_hex, buf, sizeof(buf));
    struct sg_read_req r;

    T_EQ_U64(in.len, SG_READ_REQ_LEN);
    T_EQ_INT(sg_read_req_parse(in, &r), SG_WIRE_OK);
    T_EQ_U64(r.sink_stag, read_req.sink_stag);
    T_EQ_U64(r.sink_to, read_req.sink_to);
    T_EQ_U64(r.size, read_req.size);
    T_EQ_U64(r.src_stag, read_req.src_stag);
    T_EQ_U64(r.src_to, read_req.src_to);

    memset(out, 0xa5, sizeof(out));
    T_EQ_U64(sg_read_req_emit(&read_req, out), SG_READ_REQ_LEN);
    T_EQ_MEM(out, buf, SG_READ_REQ_LEN);
    T_EQ_U64(out[SG_READ_REQ_LEN], 0xa5);
}

static const char atomic_hex[] = "00000002 01020304 11121314 2122232425262728 3132333435363738 "
                                 "4142434445464748 5152535455565758 6162636465666768";
static const struct sg_atomic_req atomic_req = {
    .op = SG_ATOMIC_CMP_SWAP,
    .id = 0x01020304,
    .stag = 0x11121314,
    .to = 0x2122232425262728,
    .data = 0x3132333435363738,
    .mask = 0x4142434445464748,
    .cmp = 0x5152535455565758,
    .cmp_mask = 0x6162636465666768,
};

static void atomic_request(void)
{
    uint8_t buf[SG_ATOMIC_REQ_LEN], out[SG_ATOMIC_REQ_LEN + 1];
    struct sg_span in = hex(atomic_hex, buf, sizeof(buf));
    struct sg_atomic_req r;

    T_EQ_U64(in.len, SG_ATOMIC_REQ_LEN);
    memset(out, 0xa5, sizeof(out));
    T_EQ_U64(sg_atomic_req_emit(&atomic_req, out), SG_ATOMIC_REQ_LEN);
    T_EQ_MEM(out, buf, SG_ATOMIC_REQ_LEN);
    T_EQ_U64(out[SG_ATOMIC_REQ_LEN], 0xa5);

    memset(buf, 0xff, 3); /* reserved */
    buf[3] |= 0xf0;
    T_EQ_INT(sg_atomic_req_parse(in, &r), SG_WIRE_OK);
    T_EQ_U64(r.op, atomic_req.op);
    T_EQ_U64(r.id, atomic_req.id);
    T_EQ_U64(r.stag, atomic_req.stag);
    T_EQ_U64(r.to, atomic_req.to);
    T_EQ_U64(r.data, atomic_req.data);
    T_EQ_U64(r.mask, atomic_req.mask);
    T_EQ_U64(r.cmp, atomic_req.cmp);
    T_EQ_U64(r.cmp_mask, atomic_req.cmp_mask);
}

static void atomic_response(void)
{
    uint8_t buf[SG_ATOMIC_RESP_LEN], out[SG_ATOMIC_RESP_LEN + 1];
    struct sg_span in = hex("01020304 1112131415161718", buf, sizeof(buf));
    struct sg_atomic_resp r;

    T_EQ_INT(sg_atomic_resp_parse(in, &r), SG_WIRE_OK);
    T_EQ_U64(r.id, 0x01020304);
    T_EQ_U64(r.value, 0x1112131415161718);
    memset(out, 0xa5, sizeof(out));
    T_EQ_U64(sg_atomic_resp_emit(&r, out), SG_ATOMIC_RESP_LEN);
    T_EQ_MEM(out, buf, SG_ATOMIC_RESP_LEN);
    T_EQ_U64(out[SG_ATOMIC_RESP_LEN], 0xa5);
}

static void short_headers(void)
{
    static const uint8_t zeros[SG_ATOMIC_REQ_LEN];
    struct sg_read_req r;
    struct sg_atomic_req aq;
    struct sg_atomic_resp ap;

    for (size_t n = 0; n < SG_READ_REQ_LEN; n++) {
        T_EQ_INT(sg_read_req_parse(sg_span_of(zeros, n), &r), SG_WIRE_SHORT);
    }
    for (size_t n = 0; n < SG_ATOMIC_REQ_LEN; n++) {
        T_EQ_INT(sg_atomic_req_parse(sg_span_of(zeros, n), &aq), SG_WIRE_SHORT);
    }
    for (size_t n = 0; n < SG_ATOMIC_RESP_LEN; n++) {
        T_EQ_INT(sg_atomic_resp_parse(sg_span_of(zeros, n), &ap), SG_WIRE_SHORT);
    }
}

static const struct t_case cases[] = {
    { "control octet", control_octet },
    { "opcode table", opcode_table },
    { "Read Request header", read_request },
    { "Atomic Request header", atomic_request },
    { "Atomic Response header", atomic_response },
    { "message headers cut short", short_headers },
};

T_MAIN(cases)
