/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RDMAP: the opcode table and the message headers. */
#include "wire/rdmap.h"

/* RFC 5040 figure 4 and section 4.3; RFC 7306 section 8; one row per opcode. */
static const struct sg_rdmap_op ops[SG_OP_COUNT] = {
    [SG_OP_WRITE] = { .name = "RDMA Write", .tagged = true, .payload = true, .multi = true },
    [SG_OP_READ_REQ] = { .name = "RDMA Read Request",
                         .qn = SG_QN_REQUEST,
                         .hdr_len = SG_READ_REQ_LEN },
    [SG_OP_READ_RESP] = { .name = "RDMA Read Response",
                          .tagged = true,
                          .payload = true,
                          .multi = true },
    [SG_OP_SEND] = { .name = "Send", .qn = SG_QN_SEND, .payload = true, .multi = true },
    [SG_OP_SEND_INV] = { .name = "Send with Invalidate",
                         .qn = SG_QN_SEND,
                         .payload = true,
                         .invalidates = true,
                         .multi = true },
    [SG_OP_SEND_SE] = { .name = "Send with Solicited Event",
                        .qn = SG_QN_SEND,
                        .payload = true,
                        .solicited = true,
                        .multi = true },
    [SG_OP_SEND_SE_INV] = { .name = "Send with Solicited Event and Invalidate",
                            .qn = SG_QN_SEND,
                            .payload = true,
                            .invalidates = true,
                            .solicited = true,
                            .multi = true },
    /* Least form: control word only; the terminated headers are optional. */
    [SG_OP_TERMINATE] = { .name = "Terminate",
                          .qn = SG_QN_TERMINATE,
                          .hdr_len = 4,
                          .payload = true },

    [SG_OP_IMM] = { .name = "Immediate Data",
                    .spec = SG_SPEC_RFC7306,
                    .qn = SG_QN_SEND,
                    .hdr_len = SG_IMM_LEN },
    [SG_OP_IMM_SE] = { .name = "Immediate Data with Solicited Event",
                       .spec = SG_SPEC_RFC7306,
                       .qn = SG_QN_SEND,
                       .hdr_len = SG_IMM_LEN,
                       .solicited = true },
    [SG_OP_ATOMIC_REQ] = { .name = "Atomic Request",
                           .spec = SG_SPEC_RFC7306,
                           .qn = SG_QN_REQUEST,
                           .hdr_len = SG_ATOMIC_REQ_LEN },
    [SG_OP_ATOMIC_RESP] = { .name = "Atomic Response",
                            .spec = SG_SPEC_RFC7306,
                            .qn = SG_QN_RESPONSE,
                            .hdr_len = SG_ATOMIC_RESP_LEN },

    [SG_OP_FLUSH_REQ] = { .name = "RDMA Flush Request",
                          .spec = SG_SPEC_MPE,
                          .qn = SG_QN_REQUEST,
                          .hdr_len = SG_FLUSH_REQ_LEN },
    [SG_OP_FLUSH_RESP] = { .name = "RDMA Flush Response",
                           .spec = SG_SPEC_MPE,
                           .qn = SG_QN_RESPONSE },
    [SG_OP_VERIFY_REQ] = { .name = "RDMA Verify Request",
                           .spec = SG_SPEC_MPE,
                           .qn = SG_QN_REQUEST,
                           .hdr_len = SG_VERIFY_REQ_LEN,
                           .payload = true },
    [SG_OP_VERIFY_RESP] = { .name = "RDMA Verify Response",
                            .spec = SG_SPEC_MPE,
                            .qn = SG_QN_RESPONSE,
                            .payload = true },
    [SG_OP_ATOMIC_WRITE_REQ] = { .name = "Atomic Write Request",
                                 .spec = SG_SPEC_MPE,
                                 .qn = SG_QN_REQUEST,
                                 .hdr_len = SG_ATOMIC_WRITE_REQ_LEN },
    [SG_OP_ATOMIC_WRITE_RESP] = { .name = "Atomic Write Response",
                                  .spec = SG_SPEC_MPE,
                                  .qn = SG_QN_RESPONSE },
};

const struct sg_rdmap_op *sg_rdmap_op(unsigned opcode)
{
    return opcode < SG_OP_COUNT ? &ops[opcode] : NULL;
}

const char *sg_rdmap_op_name(unsigned opcode)
{
    return opcode < SG_OP_COUNT ? ops[opcode].name : "unknown opcode";
}

/* Offsets in the Read Request header. */
enum {
    RR_SINK_STAG = 0,
    RR_SINK_TO = 4,
    RR_SIZE = 12,
    RR_SRC_STAG = 16,
    RR_SRC_TO = 20,
};

enum sg_wire_err sg_read_req_parse(struct sg_span in, struct sg_read_req *out)
{
    const uint8_t *p = sg_span_get(in, 0, SG_READ_REQ_LEN);

    memset(out, 0, sizeof(*out));
    if (!p) {
        return SG_WIRE_SHORT;
    }
    out->sink_stag = sg_get_be32(p + RR_SINK_STAG);
    out->sink_to = sg_get_be64(p + RR_SINK_TO);
    out->size = sg_get_be32(p + RR_SIZE);
    out->src_stag = sg_get_be32(p + RR_SRC_STAG);
    out->src_to = sg_get_be64(p + RR_SRC_TO);
    return SG_WIRE_OK;
}

size_t sg_read_req_emit(const struct sg_read_req *r, uint8_t *buf)
{
    sg_put_be32(buf + RR_SINK_STAG, r->sink_stag);
    sg_put_be64(buf + RR_SINK_TO, r->sink_to);
    sg_put_be32(buf + RR_SIZE, r->size);
    sg_put_be32(buf + RR_SRC_STAG, r->src_stag);
    sg_put_be64(buf + RR_SRC_TO, r->src_to);
    return SG_READ_REQ_LEN;
}
