/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Terminate message: condition table, octets to structure and back, names.
 *
 * Where the RFCs give a condition no code of its own, the row's comment says
 * what was chosen and why.
 */
#include "wire/mpa_frame.h"
#include "wire/terminate.h"

#define LOCAL SG_TERM_RDMA, SG_TERM_RDMA_LOCAL
#define PROTECTION SG_TERM_RDMA, SG_TERM_RDMA_PROTECTION
#define OPERATION SG_TERM_RDMA, SG_TERM_RDMA_OPERATION
#define TAGGED SG_TERM_DDP, SG_TERM_DDP_TAGGED
#define UNTAGGED SG_TERM_DDP, SG_TERM_DDP_UNTAGGED
#define MPA SG_TERM_LLP, SG_TERM_LLP_MPA

/*
 * RFC 5040 figure 10 leaves the Read Request out of remote operation errors,
 * section 7.1 rule 3 demands it for every error in a Read Request.  The rule is
 * the MUST and receivers accept both, so operation errors carry it as well.
 */
#define NONE SG_TERM_HDRS_NONE
#define DDP SG_TERM_HDRS_DDP
#define DDP_READ SG_TERM_HDRS_DDP_READ

static const struct sg_term_row rows[SG_TERM_COND_COUNT] = {
    [SG_TERM_LOCAL_CATASTROPHE] = { "local catastrophe", LOCAL, 0x00, NONE },
    [SG_TERM_READ_BAD_STAG] = { "request: invalid STag", PROTECTION, 0x00, DDP_READ },
    [SG_TERM_READ_BOUNDS] = { "request: out of bounds", PROTECTION, 0x01, DDP_READ },
    [SG_TERM_READ_ACCESS] = { "request: no access right", PROTECTION, 0x02, DDP_READ },
    [SG_TERM_READ_NOT_ASSOCIATED] = { "request: STag of another stream", PROTECTION, 0x03,
                                      DDP_READ },
    [SG_TERM_READ_WRAP] = { "request: offset wraps", PROTECTION, 0x04, DDP_READ },
    [SG_TERM_INV_NOT_ASSOCIATED] = { "invalidate: STag of another stream", PROTECTION, 0x09,
                                     DDP_READ },
    [SG_TERM_INV_BAD_STAG] = { "invalidate: STag cannot be invalidated", PROTECTION, 0x09,
                               DDP_READ },
    [SG_TERM_PROT_UNSPECIFIED] = { "protection error", PROTECTION, 0xff, DDP_READ },
    [SG_TERM_RDMAP_VERSION] = { "RDMAP version", OPERATION, 0x05, DDP_READ },
    [SG_TERM_OPCODE] = { "unexpected opcode", OPERATION, 0x06, DDP_READ },
    /* No code exists; a message that its opcode does not allow is unexpected. */
    [SG_TERM_OPCODE_T_OR_QN] = { "opcode on the wrong queue", OPERATION, 0x06, DDP_READ },
    [SG_TERM_STREAM_CATASTROPHE] = { "stream catastrophe", OPERATION, 0x07, DDP_READ },
    [SG_TERM_GLOBAL_CATASTROPHE] = { "global catastrophe", OPERATION, 0x08, DDP_READ },
    [SG_TERM_OP_INV_FAILED] = { "invalidation failed", OPERATION, 0x09, DDP_READ },
    [SG_TERM_OP_UNSPECIFIED] = { "operation error", OPERATION, 0xff, DDP_READ },
    /* No code exists; an answer without a request is unexpected. */
    [SG_TERM_READ_RESP_MISMATCH] = { "unexpected read response", OPERATION, 0x06, DDP },
    /* No code exists for the two lengths. */
    [SG_TERM_MESSAGE_LENGTH] = { "RDMAP header length", OPERATION, 0xff, DDP },
    [SG_TERM_IMM_LENGTH] = { "immediate data length", OPERATION, 0xff, DDP },
    [SG_TERM_ATOMIC_MISALIGNED] = { "misaligned atomic", OPERATION, 0x07, DDP },
    /* RFC 7306 only asks for an error; the operation code extends the opcode. */
    [SG_TERM_ATOMIC_OPCODE] = { "unknown atomic operation", OPERATION, 0x06, DDP },
    /* No code exists: treated as misaligned, and as an answer without a request. */
    [SG_TERM_ATOMIC_FAILED] = { "atomic failed", OPERATION, 0x07, DDP },
    [SG_TERM_ATOMIC_RESP_ID] = { "atomic response: identifier", OPERATION, 0x06, DDP },
    /*
     * draft-talpey-rdma-commit requires Terminates and names no codes.  A request that cannot be
     * executed gets the code that RFC 7306 has for Atomics, one without meaning the unspecified
     * code (docs/protocol.md).
     */
    [SG_TERM_MPE_FAILED] = { "flush, verify or atomic write failed", OPERATION, 0x07, DDP },
    [SG_TERM_MPE_FLAGS] = { "flush: unknown disposition", OPERATION, 0xff, DDP },
    [SG_TERM_MPE_LENGTH] = { "atomic write: length", OPERATION, 0xff, DDP },
    [SG_TERM_MPE_RESP_MISMATCH] = { "unexpected kind of response", OPERATION, 0x06, DDP },

    [SG_TERM_DDP_CATASTROPHE] = { "DDP catastrophe", SG_TERM_DDP, SG_TERM_DDP_LOCAL, 0x00, DDP },
    /* No code exists; there is no complete header to return either. */
    [SG_TERM_DDP_SHORT] = { "segment shorter than its header", SG_TERM_DDP, SG_TERM_DDP_LOCAL, 0x00,
                            NONE },
    [SG_TERM_TAGGED_BAD_STAG] = { "write: invalid STag", TAGGED, 0x00, DDP },
    [SG_TERM_TAGGED_BOUNDS] = { "write: out of bounds", TAGGED, 0x01, DDP },
    [SG_TERM_TAGGED_NOT_ASSOCIATED] = { "write: STag of another stream", TAGGED, 0x02, DDP },
    [SG_TERM_TAGGED_WRAP] = { "write: offset wraps", TAGGED, 0x03, DDP },
    [SG_TERM_TAGGED_VERSION] = { "DDP version, tagged", TAGGED, 0x04, DDP },
    /*
     * RFC 5041 section 7.1 has one check, "valid and allows placement", and
     * one code for it; RFC 5040's access code is not for Writes (figure 10).
     */
    [SG_TERM_WRITE_ACCESS] = { "write: no access right", TAGGED, 0x00, DDP },
    [SG_TERM_UNTAGGED_BAD_QN] = { "invalid queue number", UNTAGGED, 0x01, DDP },
    [SG_TERM_UNTAGGED_NO_BUFFER] = { "no receive buffer", UNTAGGED, 0x02, DDP },
    [SG_TERM_UNTAGGED_IRD_EXCEEDED] = { "too many outstanding requests", UNTAGGED, 0x02, DDP },
    [SG_TERM_UNTAGGED_NO_REQUEST] = { "response without a request", UNTAGGED, 0x02, DDP },
    [SG_TERM_UNTAGGED_BAD_MSN] = { "MSN out of range", UNTAGGED, 0x03, DDP },
    [SG_TERM_UNTAGGED_BAD_MO] = { "MO out of range", UNTAGGED, 0x04, DDP },
    [SG_TERM_UNTAGGED_TOO_LONG] = { "message longer than its buffer", UNTAGGED, 0x05, DDP },
    [SG_TERM_UNTAGGED_VERSION] = { "DDP version, untagged", UNTAGGED, 0x06, DDP },

    [SG_TERM_MPA_LLP_LOST] = { "TCP connection lost", MPA, SG_MPA_ERR_LLP_LOST, NONE },
    [SG_TERM_MPA_CRC] = { "CRC mismatch", MPA, SG_MPA_ERR_CRC, NONE },
    [SG_TERM_MPA_MARKER] = { "marker mismatch", MPA, SG_MPA_ERR_MARKER, NONE },
    [SG_TERM_MPA_STARTUP] = { "bad MPA startup frame", MPA, SG_MPA_ERR_STARTUP, NONE },
    [SG_TERM_MPA_LOCAL] = { "MPA catastrophe", MPA, SG_MPA_ERR_LOCAL, NONE },
    [SG_TERM_MPA_IRD] = { "insufficient IRD", MPA, SG_MPA_ERR_IRD, NONE },
    [SG_TERM_MPA_RTR] = { "no common RTR message", MPA, SG_MPA_ERR_RTR, NONE },
};

const struct sg_term_row *sg_term_row(enum sg_term_cond cond)
{
    sg_assert((unsigned)cond < SG_TERM_COND_COUNT);
    return &rows[cond];
}

void sg_term_build(struct sg_term *t, enum sg_term_cond cond, const struct sg_ddp_hdr *ddp,
                   uint16_t seg_len, const struct sg_read_req *read)
{
    const struct sg_term_row *row = sg_term_row(cond);

    memset(t, 0, sizeof(*t));
    t->layer = row->layer;
    t->etype = row->etype;
    t->code = row->code;
    if (ddp && row->hdrs != SG_TERM_HDRS_NONE) {
        t->has_len = true;
        t->has_ddp = true;
        t->seg_len = seg_len;
        t->ddp = *ddp;
        if (read && row->hdrs == SG_TERM_HDRS_DDP_READ) {
            t->has_rdma = true;
            t->read = *read;
        }
    }
}

/* RFC 5040 section 4.8. */
enum {
    OFF_CODE = 1,
    OFF_FLAGS = 2,
    OFF_FLAGS_LOW = 3,
    FLAG_M = 0x80,
    FLAG_D = 0x40,
    FLAG_R = 0x20,

    /* Linux siw, up to 6.12 at least: the same fields, allocated from bit 0 up. */
    SIW_M = 0x01,
    SIW_D = 0x02,
    SIW_R = 0x04,
};

/*
 * Layer, type and flags.  siw's layout shows when one of its flags is set, as
 * these are reserved bits in the RFC and nobody else sends them.  Without any
 * flag the layouts cannot be told apart and the RFC's is assumed.
 */
static void parse_control(const uint8_t *p, struct sg_term *out)
{
    uint8_t flags = p[OFF_FLAGS];

    out->swapped = (flags & (SIW_M | SIW_D | SIW_R)) && !(flags & (FLAG_M | FLAG_D | FLAG_R)) &&
                   p[OFF_FLAGS_LOW] == 0;
    if (out->swapped) {
        out->layer = p[0] & 0xf;
        out->etype = p[0] >> 4;
        out->has_len = flags & SIW_M;
        out->has_ddp = flags & SIW_D;
        out->has_rdma = flags & SIW_R;
    } else {
        out->layer = p[0] >> 4;
        out->etype = p[0] & 0xf;
        out->has_len = flags & FLAG_M;
        out->has_ddp = flags & FLAG_D;
        out->has_rdma = flags & FLAG_R;
    }
    out->code = p[OFF_CODE];
}

/* The headers behind the control word; those that are not all there are dropped. */
static void parse_headers(struct sg_span in, struct sg_term *out)
{
    const uint8_t *p;

    if (out->has_len || out->has_ddp) {
        p = sg_span_get(in, 0, SG_TERM_SEGLEN_LEN);
        if (!p) {
            out->truncated = true;
            out->has_len = out->has_ddp = out->has_rdma = false;
            return;
        }
        out->seg_len = sg_get_be16(p);
        in = sg_span_from(in, SG_TERM_SEGLEN_LEN);
    }
    if (out->has_ddp) {
        if (sg_ddp_parse(in, &out->ddp) != SG_WIRE_OK) {
            memset(&out->ddp, 0, sizeof(out->ddp));
            out->truncated = true;
            out->has_ddp = out->has_rdma = false;
            return;
        }
        in = sg_span_from(in, sg_ddp_len(out->ddp.tagged));
    }
    if (out->has_rdma && sg_read_req_parse(in, &out->read) != SG_WIRE_OK) {
        out->truncated = true;
        out->has_rdma = false;
    }
}

enum sg_wire_err sg_term_parse(struct sg_span in, struct sg_term *out)
{
    const uint8_t *p = sg_span_get(in, 0, SG_TERM_CTRL_LEN);

    memset(out, 0, sizeof(*out));
    if (!p) {
        return SG_WIRE_SHORT;
    }
    parse_control(p, out);
    parse_headers(sg_span_from(in, SG_TERM_CTRL_LEN), out);
    return SG_WIRE_OK;
}

size_t sg_term_len(const struct sg_term *t)
{
    return SG_TERM_CTRL_LEN + (t->has_len ? SG_TERM_SEGLEN_LEN : 0) +
           (t->has_ddp ? sg_ddp_len(t->ddp.tagged) : 0) + (t->has_rdma ? SG_READ_REQ_LEN : 0);
}

size_t sg_term_emit(const struct sg_term *t, uint8_t *buf)
{
    uint8_t *p = buf + SG_TERM_CTRL_LEN;

    sg_assert((!t->has_rdma || t->has_ddp) && (!t->has_ddp || t->has_len));
    sg_assert(t->layer <= 0xf && t->etype <= 0xf);
    buf[0] = (uint8_t)(t->layer << 4 | t->etype);
    buf[OFF_CODE] = t->code;
    buf[OFF_FLAGS] =
        (t->has_len ? FLAG_M : 0) | (t->has_ddp ? FLAG_D : 0) | (t->has_rdma ? FLAG_R : 0);
    buf[OFF_FLAGS_LOW] = 0;
    if (t->has_len) {
        sg_put_be16(p, t->seg_len);
        p += SG_TERM_SEGLEN_LEN;
    }
    if (t->has_ddp) {
        p += sg_ddp_emit(&t->ddp, p);
    }
    if (t->has_rdma) {
        p += sg_read_req_emit(&t->read, p);
    }
    return (size_t)(p - buf);
}

/* One registered code, RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 6580. */
struct code_name {
    uint8_t layer;
    uint8_t etype;
    uint8_t code;
    const char *name;
};

static const struct code_name code_names[] = {
    { PROTECTION, 0x00, "invalid STag" },
    { PROTECTION, 0x01, "base or bounds violation" },
    { PROTECTION, 0x02, "access rights violation" },
    { PROTECTION, 0x03, "STag not associated with stream" },
    { PROTECTION, 0x04, "TO wrap" },
    { PROTECTION, 0x09, "STag cannot be invalidated" },
    { PROTECTION, 0xff, "unspecified protection error" },
    { OPERATION, 0x05, "invalid RDMAP version" },
    { OPERATION, 0x06, "unexpected opcode" },
    { OPERATION, 0x07, "catastrophic error, this stream" },
    { OPERATION, 0x08, "catastrophic error, global" },
    { OPERATION, 0x09, "STag cannot be invalidated" },
    { OPERATION, 0xff, "unspecified operation error" },
    { TAGGED, 0x00, "invalid STag" },
    { TAGGED, 0x01, "base or bounds violation" },
    { TAGGED, 0x02, "STag not associated with stream" },
    { TAGGED, 0x03, "TO wrap" },
    { TAGGED, 0x04, "invalid DDP version" },
    { UNTAGGED, 0x01, "invalid QN" },
    { UNTAGGED, 0x02, "no buffer available" },
    { UNTAGGED, 0x03, "MSN out of range" },
    { UNTAGGED, 0x04, "invalid MO" },
    { UNTAGGED, 0x05, "message too long" },
    { UNTAGGED, 0x06, "invalid DDP version" },
    { MPA, SG_MPA_ERR_LLP_LOST, "TCP connection closed or lost" },
    { MPA, SG_MPA_ERR_CRC, "CRC mismatch" },
    { MPA, SG_MPA_ERR_MARKER, "marker and length disagree" },
    { MPA, SG_MPA_ERR_STARTUP, "invalid startup frame" },
    { MPA, SG_MPA_ERR_LOCAL, "local catastrophic error" },
    { MPA, SG_MPA_ERR_IRD, "insufficient IRD resources" },
    { MPA, SG_MPA_ERR_RTR, "no matching RTR option" },
};

/* The registered types of each layer. */
static const struct type {
    const char *name;
    enum sg_term_class class;
} types[3][4] = {
    [SG_TERM_RDMA] = {
        [SG_TERM_RDMA_LOCAL] = { "local catastrophic", SG_TERM_CLASS_SENDER },
        [SG_TERM_RDMA_PROTECTION] = { "remote protection", SG_TERM_CLASS_ACCESS },
        [SG_TERM_RDMA_OPERATION] = { "remote operation", SG_TERM_CLASS_FORM },
    },
    [SG_TERM_DDP] = {
        [SG_TERM_DDP_LOCAL] = { "local catastrophic", SG_TERM_CLASS_SENDER },
        [SG_TERM_DDP_TAGGED] = { "tagged buffer", SG_TERM_CLASS_ACCESS },
        [SG_TERM_DDP_UNTAGGED] = { "untagged buffer", SG_TERM_CLASS_FORM },
        [3] = { "LLP", SG_TERM_CLASS_FORM },
    },
    [SG_TERM_LLP] = {
        [SG_TERM_LLP_MPA] = { "MPA", SG_TERM_CLASS_TRANSPORT },
        [SG_TERM_LLP_MPA_ALT] = { "MPA", SG_TERM_CLASS_TRANSPORT },
    },
};

/* NULL: not registered. */
static const struct type *type_of(unsigned layer, unsigned etype)
{
    bool there =
        layer < SG_ARRAY_SIZE(types) && etype < SG_ARRAY_SIZE(types[0]) && types[layer][etype].name;

    return there ? &types[layer][etype] : NULL;
}

enum sg_term_class sg_term_classify(unsigned layer, unsigned etype, unsigned code)
{
    /* Operation errors from this code on: the message was right, what it asks for went wrong. */
    const unsigned failed_from = 0x07;
    const struct type *type = type_of(layer, etype);
    enum sg_term_class class = type ? type->class : SG_TERM_CLASS_FORM;

    if (layer == SG_TERM_LLP) {
        return SG_TERM_CLASS_TRANSPORT;
    }
    return layer == SG_TERM_RDMA && class == SG_TERM_CLASS_FORM && code >= failed_from
               ? SG_TERM_CLASS_FAILED
               : class;
}

const char *sg_term_layer_name(unsigned layer)
{
    static const char *const names[] = {
        [SG_TERM_RDMA] = "RDMA",
        [SG_TERM_DDP] = "DDP",
        [SG_TERM_LLP] = "MPA",
    };

    return layer < SG_ARRAY_SIZE(names) ? names[layer] : "unknown";
}

const char *sg_term_type_name(unsigned layer, unsigned etype)
{
    const struct type *type = type_of(layer, etype);

    return type ? type->name : "unknown";
}

const char *sg_term_code_name(unsigned layer, unsigned etype, unsigned code)
{
    if (layer == SG_TERM_LLP && etype == SG_TERM_LLP_MPA_ALT) {
        etype = SG_TERM_LLP_MPA;
    }
    for (size_t i = 0; i < SG_ARRAY_SIZE(code_names); i++) {
        const struct code_name *c = &code_names[i];

        if (c->layer == layer && c->etype == etype && c->code == code) {
            return c->name;
        }
    }
    /* The code of local catastrophic errors carries no meaning. */
    if (etype == SG_TERM_RDMA_LOCAL && (layer == SG_TERM_RDMA || layer == SG_TERM_DDP)) {
        return "local catastrophic error";
    }
    return "unknown";
}
