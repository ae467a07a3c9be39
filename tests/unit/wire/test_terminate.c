/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wire/terminate.h: layout, every row of the condition table, both bit orders. */
#include "hex.h"
#include "tap.h"
#include "wire/terminate.h"

static const struct sg_ddp_hdr send_hdr = {
    .last = true,
    .version = 1,
    .ulp_ctrl = 0x43,
    .msn = 9,
};
static const struct sg_ddp_hdr write_hdr = {
    .tagged = true,
    .last = true,
    .version = 1,
    .ulp_ctrl = 0x40,
    .stag = 0xb0000002,
    .to = 0x2000,
};
static const struct sg_ddp_hdr read_hdr = {
    .last = true,
    .version = 1,
    .ulp_ctrl = 0x41,
    .qn = 1,
    .msn = 1,
};
static const struct sg_ddp_hdr flush_hdr = {
    .last = true,
    .version = 1,
    .ulp_ctrl = 0x4c,
    .qn = 1,
    .msn = 2,
};
static const struct sg_read_req read_req = {
    .sink_stag = 0xa0000001,
    .sink_to = 0x1000,
    .size = 16,
    .src_stag = 0xb0000002,
    .src_to = 0x2000,
};

#define SEND_HEX "4143 00000000 00000000 00000009 00000000"
#define WRITE_HEX "c140 b0000002 0000000000002000"
#define READ_HEX "4141 00000000 00000001 00000001 00000000"
#define FLUSH_HEX "414c 00000000 00000001 00000002 00000000"
#define READ_REQ_HEX "a0000001 0000000000001000 00000010 b0000002 0000000000002000"

struct terminate_pair {
    const char *bytes;
    enum sg_term_cond cond;
    const struct sg_ddp_hdr *ddp;
    unsigned seg_len;
    const struct sg_read_req *read;
};

static const struct terminate_pair pairs[] = {
    { "20060000", SG_TERM_MPA_IRD, NULL, 0, NULL },
    { "12020000", SG_TERM_UNTAGGED_NO_BUFFER, NULL, 0, NULL },
    { "1202c000 0076" SEND_HEX, SG_TERM_UNTAGGED_NO_BUFFER, &send_hdr, 118, NULL },
    { "1100c000 000e" WRITE_HEX, SG_TERM_TAGGED_BAD_STAG, &write_hdr, 14, NULL },
    { "0101e000 002e" READ_HEX READ_REQ_HEX, SG_TERM_READ_BOUNDS, &read_hdr, 46, &read_req },
    { "0102c000 0026" FLUSH_HEX, SG_TERM_READ_ACCESS, &flush_hdr, 38, NULL },
    { "0207c000 0026" FLUSH_HEX, SG_TERM_MPE_FAILED, &flush_hdr, 38, NULL },
};

static void check_pair(const struct sg_term *t, const struct terminate_pair *p)
{
    T_EQ_INT(t->has_len, p->ddp != NULL);
    T_EQ_INT(t->has_ddp, p->ddp != NULL);
    T_EQ_INT(t->has_rdma, p->read != NULL);
    T_EQ_U64(t->seg_len, p->seg_len);
    if (p->ddp) {
        T_EQ_INT(t->ddp.tagged, p->ddp->tagged);
        T_EQ_U64(t->ddp.ulp_ctrl, p->ddp->ulp_ctrl);
        T_EQ_U64(t->ddp.stag, p->ddp->stag);
        T_EQ_U64(t->ddp.to, p->ddp->to);
        T_EQ_U64(t->ddp.qn, p->ddp->qn);
        T_EQ_U64(t->ddp.msn, p->ddp->msn);
    }
    if (p->read) {
        T_EQ_U64(t->read.sink_stag, p->read->sink_stag);
        T_EQ_U64(t->read.sink_to, p->read->sink_to);
        T_EQ_U64(t->read.size, p->read->size);
        T_EQ_U64(t->read.src_stag, p->read->src_stag);
        T_EQ_U64(t->read.src_to, p->read->src_to);
    }
}

static void emit_pairs(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        const struct terminate_pair *p = &pairs[i];
        uint8_t buf[SG_TERM_MAX], out[SG_TERM_MAX + 1];
        struct sg_span want = hex(p->bytes, buf, sizeof(buf));
        struct sg_term t;

        T_CONTEXT("%s", p->bytes);
        memset(&t, 0xa5, sizeof(t));
        memset(out, 0xa5, sizeof(out));
        sg_term_build(&t, p->cond, p->ddp, (uint16_t)p->seg_len, p->read);
        T_EQ_U64(sg_term_len(&t), want.len);
        T_EQ_U64(sg_term_emit(&t, out), want.len);
        T_EQ_MEM(out, want.p, want.len);
        T_EQ_U64(out[want.len], 0xa5);
    }
}

static void parse_pairs(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        const struct sg_term_row *row = sg_term_row(pairs[i].cond);
        uint8_t buf[SG_TERM_MAX];
        struct sg_term t;

        T_CONTEXT("%s", pairs[i].bytes);
        memset(&t, 0xa5, sizeof(t));
        T_EQ_INT(sg_term_parse(hex(pairs[i].bytes, buf, sizeof(buf)), &t), SG_WIRE_OK);
        T_EQ_U64(t.layer, row->layer);
        T_EQ_U64(t.etype, row->etype);
        T_EQ_U64(t.code, row->code);
        check_pair(&t, &pairs[i]);
        T_FALSE(t.truncated);
        T_FALSE(t.swapped);
    }
}

/* One row per condition, independent of the table under test. */
static const struct {
    enum sg_term_cond cond;
    unsigned lec; /* layer, type, code as hex digits */
    enum sg_term_hdrs hdrs;
} expected[] = {
    { SG_TERM_LOCAL_CATASTROPHE, 0x0000, SG_TERM_HDRS_NONE },
    { SG_TERM_READ_BAD_STAG, 0x0100, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_READ_BOUNDS, 0x0101, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_READ_ACCESS, 0x0102, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_READ_NOT_ASSOCIATED, 0x0103, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_READ_WRAP, 0x0104, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_INV_NOT_ASSOCIATED, 0x0109, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_INV_BAD_STAG, 0x0109, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_PROT_UNSPECIFIED, 0x01ff, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_RDMAP_VERSION, 0x0205, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_OPCODE, 0x0206, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_OPCODE_T_OR_QN, 0x0206, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_STREAM_CATASTROPHE, 0x0207, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_GLOBAL_CATASTROPHE, 0x0208, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_OP_INV_FAILED, 0x0209, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_OP_UNSPECIFIED, 0x02ff, SG_TERM_HDRS_DDP_READ },
    { SG_TERM_READ_RESP_MISMATCH, 0x0206, SG_TERM_HDRS_DDP },
    { SG_TERM_MESSAGE_LENGTH, 0x02ff, SG_TERM_HDRS_DDP },
    { SG_TERM_IMM_LENGTH, 0x02ff, SG_TERM_HDRS_DDP },
    { SG_TERM_ATOMIC_MISALIGNED, 0x0207, SG_TERM_HDRS_DDP },
    { SG_TERM_ATOMIC_OPCODE, 0x0206, SG_TERM_HDRS_DDP },
    { SG_TERM_ATOMIC_FAILED, 0x0207, SG_TERM_HDRS_DDP },
    { SG_TERM_ATOMIC_RESP_ID, 0x0206, SG_TERM_HDRS_DDP },
    { SG_TERM_MPE_FAILED, 0x0207, SG_TERM_HDRS_DDP },
    { SG_TERM_MPE_FLAGS, 0x02ff, SG_TERM_HDRS_DDP },
    { SG_TERM_MPE_LENGTH, 0x02ff, SG_TERM_HDRS_DDP },
    { SG_TERM_MPE_RESP_MISMATCH, 0x0206, SG_TERM_HDRS_DDP },
    { SG_TERM_DDP_CATASTROPHE, 0x1000, SG_TERM_HDRS_DDP },
    { SG_TERM_DDP_SHORT, 0x1000, SG_TERM_HDRS_NONE },
    { SG_TERM_TAGGED_BAD_STAG, 0x1100, SG_TERM_HDRS_DDP },
    { SG_TERM_TAGGED_BOUNDS, 0x1101, SG_TERM_HDRS_DDP },
    { SG_TERM_TAGGED_NOT_ASSOCIATED, 0x1102, SG_TERM_HDRS_DDP },
    { SG_TERM_TAGGED_WRAP, 0x1103, SG_TERM_HDRS_DDP },
    { SG_TERM_TAGGED_VERSION, 0x1104, SG_TERM_HDRS_DDP },
    { SG_TERM_WRITE_ACCESS, 0x1100, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_BAD_QN, 0x1201, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_NO_BUFFER, 0x1202, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_IRD_EXCEEDED, 0x1202, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_NO_REQUEST, 0x1202, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_BAD_MSN, 0x1203, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_BAD_MO, 0x1204, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_TOO_LONG, 0x1205, SG_TERM_HDRS_DDP },
    { SG_TERM_UNTAGGED_VERSION, 0x1206, SG_TERM_HDRS_DDP },
    { SG_TERM_MPA_LLP_LOST, 0x2001, SG_TERM_HDRS_NONE },
    { SG_TERM_MPA_CRC, 0x2002, SG_TERM_HDRS_NONE },
    { SG_TERM_MPA_MARKER, 0x2003, SG_TERM_HDRS_NONE },
    { SG_TERM_MPA_STARTUP, 0x2004, SG_TERM_HDRS_NONE },
    { SG_TERM_MPA_LOCAL, 0x2005, SG_TERM_HDRS_NONE },
    { SG_TERM_MPA_IRD, 0x2006, SG_TERM_HDRS_NONE },
    { SG_TERM_MPA_RTR, 0x2007, SG_TERM_HDRS_NONE },
};

static void every_condition(void)
{
    T_EQ_U64(SG_ARRAY_SIZE(expected), SG_TERM_COND_COUNT);
    for (size_t i = 0; i < SG_ARRAY_SIZE(expected); i++) {
        const struct sg_term_row *row = sg_term_row(expected[i].cond);
        uint8_t out[SG_TERM_MAX];
        struct sg_term t;

        T_EQ_U64(expected[i].cond, i);
        T_CONTEXT("condition %zu, %s", i, row->name ? row->name : "(no name)");
        T_NOT_NULL(row->name);
        T_EQ_INT(row->hdrs, expected[i].hdrs);

        sg_term_build(&t, expected[i].cond, &read_hdr, 46, &read_req);
        sg_term_emit(&t, out);
        T_EQ_U64(sg_get_be16(out), expected[i].lec);
        T_EQ_U64(out[2], expected[i].hdrs == SG_TERM_HDRS_NONE  ? 0x00
                         : expected[i].hdrs == SG_TERM_HDRS_DDP ? 0xc0
                                                                : 0xe0);
        T_EQ_U64(out[3], 0);
        /* R needs a Read Request to return; without any header only the control field is sent. */
        sg_term_build(&t, expected[i].cond, &send_hdr, 46, NULL);
        T_FALSE(t.has_rdma);
        sg_term_build(&t, expected[i].cond, NULL, 0, NULL);
        T_EQ_U64(sg_term_len(&t), SG_TERM_CTRL_LEN);

        T_TRUE(strcmp(sg_term_code_name(t.layer, t.etype, t.code), "unknown") != 0);
        T_TRUE(strcmp(sg_term_type_name(t.layer, t.etype), "unknown") != 0);
        T_TRUE(strcmp(sg_term_layer_name(t.layer), "unknown") != 0);
    }
}

static void cut_short(void)
{
    uint8_t buf[SG_TERM_MAX];
    struct sg_span in = hex(pairs[4].bytes, buf, sizeof(buf));
    struct sg_term t;

    T_EQ_U64(in.len, SG_TERM_MAX);
    for (size_t n = 0; n < in.len; n++) {
        uint8_t *exact = malloc(n + !n);
        enum sg_wire_err err;

        memcpy(exact, in.p, n);
        err = sg_term_parse(sg_span_of(exact, n), &t);
        free(exact);
        T_CONTEXT("%zu octets", n);
        T_EQ_INT(err, n < 4 ? SG_WIRE_SHORT : SG_WIRE_OK);
        T_EQ_INT(t.truncated, n >= 4);
        T_EQ_INT(t.has_len, n >= 6);
        T_EQ_INT(t.has_ddp, n >= 24);
        T_FALSE(t.has_rdma);
        if (n >= 4) {
            T_EQ_U64(t.code, 1);
        }
    }
}

static void reserved_and_extra(void)
{
    uint8_t buf[SG_TERM_MAX + 8];
    struct sg_term t;

    /* Reserved bits beside a regular flag; trailing zeros. */
    T_EQ_INT(sg_term_parse(hex("1202dfff 0076" SEND_HEX "0000000000000000", buf, sizeof(buf)), &t),
             SG_WIRE_OK);
    T_FALSE(t.swapped);
    T_TRUE(t.has_len && t.has_ddp && !t.has_rdma && !t.truncated);
    T_EQ_U64(t.ddp.msn, 9);
    T_EQ_INT(sg_term_parse(hex("20060000 0000000000000000", buf, sizeof(buf)), &t), SG_WIRE_OK);
    T_TRUE(!t.has_len && !t.has_ddp && !t.truncated);
    /* Length alone. */
    T_EQ_INT(sg_term_parse(hex("12028000 0076", buf, sizeof(buf)), &t), SG_WIRE_OK);
    T_TRUE(t.has_len && !t.has_ddp && !t.truncated);
    T_EQ_U64(t.seg_len, 0x76);
    T_EQ_U64(sg_term_len(&t), 6);
    /* A peer that returns the 20 octets of a Flush Request, which is not a Read Request. */
    T_EQ_INT(sg_term_parse(hex("0207e000 0026" FLUSH_HEX "b0000002 00001000 0000000000002000"
                               "00000001",
                               buf, sizeof(buf)),
                           &t),
             SG_WIRE_OK);
    T_TRUE(t.has_len && t.has_ddp && !t.has_rdma && t.truncated);
    T_EQ_U64(t.ddp.ulp_ctrl, 0x4c);
}

static void siw_layout(void)
{
    uint8_t buf[SG_TERM_MAX];
    struct sg_term t;

    T_EQ_INT(sg_term_parse(hex("21050300 0064" SEND_HEX, buf, sizeof(buf)), &t), SG_WIRE_OK);
    T_TRUE(t.swapped && t.has_len && t.has_ddp && !t.has_rdma && !t.truncated);
    T_EQ_U64(t.layer, SG_TERM_DDP);
    T_EQ_U64(t.etype, SG_TERM_DDP_UNTAGGED);
    T_EQ_U64(t.code, 5);
    T_EQ_U64(t.seg_len, 100);
    T_EQ_U64(t.ddp.msn, 9);
    /* siw sets R for Send with Invalidate although no Read Request follows. */
    T_EQ_INT(sg_term_parse(hex("10090700 0064" SEND_HEX, buf, sizeof(buf)), &t), SG_WIRE_OK);
    T_TRUE(t.swapped && t.has_ddp && !t.has_rdma && t.truncated);
    T_EQ_U64(t.layer, SG_TERM_RDMA);
    T_EQ_U64(t.etype, SG_TERM_RDMA_PROTECTION);
    /* Not recognisable: no flag set, or octet 3 in use. */
    T_EQ_INT(sg_term_parse(hex("02060000", buf, sizeof(buf)), &t), SG_WIRE_OK);
    T_FALSE(t.swapped);
    T_EQ_U64(t.etype, SG_TERM_RDMA_OPERATION);
    T_EQ_INT(sg_term_parse(hex("12020301", buf, sizeof(buf)), &t), SG_WIRE_OK);
    T_FALSE(t.swapped);
    T_EQ_U64(t.layer, SG_TERM_DDP);
}

static void names(void)
{
    T_EQ_STR(sg_term_layer_name(SG_TERM_LLP), "MPA");
    T_EQ_STR(sg_term_layer_name(3), "unknown");
    T_EQ_STR(sg_term_type_name(1, 1), "tagged buffer");
    T_EQ_STR(sg_term_type_name(0, 3), "unknown");
    T_EQ_STR(sg_term_type_name(2, 1), "unknown");
    T_EQ_STR(sg_term_type_name(2, 15), "unknown");
    T_EQ_STR(sg_term_type_name(15, 0), "unknown");
    T_EQ_STR(sg_term_code_name(2, 0, 2), "CRC mismatch");
    /* The type under which some adapters report MPA errors. */
    T_EQ_STR(sg_term_code_name(2, 3, 2), "CRC mismatch");
    T_EQ_STR(sg_term_code_name(1, 2, 5), "message too long");
    T_EQ_STR(sg_term_code_name(0, 0, 0x77), "local catastrophic error");
    T_EQ_STR(sg_term_code_name(1, 0, 1), "local catastrophic error");
    T_EQ_STR(sg_term_code_name(1, 2, 0), "unknown");
    T_EQ_STR(sg_term_code_name(2, 0, 0), "unknown");
}

/* All codes of a type, or those in [from, to]. */
static const struct {
    unsigned layer, etype, from, to;
    enum sg_term_class class;
} classes[] = {
    { 0, 0, 0x00, 0xff, SG_TERM_CLASS_SENDER },
    { 0, 1, 0x00, 0xff, SG_TERM_CLASS_ACCESS },
    { 0, 2, 0x00, 0x06, SG_TERM_CLASS_FORM },
    { 0, 2, 0x07, 0xff, SG_TERM_CLASS_FAILED },
    { 1, 0, 0x00, 0xff, SG_TERM_CLASS_SENDER },
    { 1, 1, 0x00, 0xff, SG_TERM_CLASS_ACCESS },
    { 1, 2, 0x00, 0xff, SG_TERM_CLASS_FORM },
    { 1, 3, 0x00, 0xff, SG_TERM_CLASS_FORM },
    { 2, 0, 0x00, 0xff, SG_TERM_CLASS_TRANSPORT },
    { 2, 3, 0x00, 0xff, SG_TERM_CLASS_TRANSPORT },
    /* Codes that are not registered. */
    { 0, 3, 0x00, 0x06, SG_TERM_CLASS_FORM },
    { 0, 15, 0x07, 0xff, SG_TERM_CLASS_FAILED },
    { 1, 15, 0x00, 0xff, SG_TERM_CLASS_FORM },
    { 2, 15, 0x00, 0xff, SG_TERM_CLASS_TRANSPORT },
    { 3, 0, 0x00, 0xff, SG_TERM_CLASS_FORM },
    { 15, 1, 0x00, 0xff, SG_TERM_CLASS_FORM },
};

static void kinds_of_fault(void)
{
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(classes); i++) {
        unsigned code;

        for (code = classes[i].from; code <= classes[i].to; code++) {
            T_CONTEXT("%u/%u/%02x", classes[i].layer, classes[i].etype, code);
            T_EQ_INT(sg_term_classify(classes[i].layer, classes[i].etype, code), classes[i].class);
        }
    }
}

static const struct t_case cases[] = {
    { "Terminate to bytes", emit_pairs },
    { "Terminate from bytes", parse_pairs },
    { "RDM-12 every Terminate condition", every_condition },
    { "Terminate cut short", cut_short },
    { "reserved bits and octets too many", reserved_and_extra },
    { "Terminate in the layout of Linux siw", siw_layout },
    { "Terminate names", names },
    { "what kind of fault a Terminate reports", kinds_of_fault },
};

T_MAIN(cases)
