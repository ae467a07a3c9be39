/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flush, Verify and Atomic Write: octets to structures and back. */
#include "wire/mpe.h"

/* Offsets in all three requests. */
enum {
    OFF_STAG = 0,
    OFF_LENGTH = 4,
    OFF_TO = 8,
    OFF_REST = 16,
};

/* Is the message between @least and @most octets long? */
static enum sg_wire_err check_len(struct sg_span in, size_t least, size_t most)
{
    if (in.len < least) {
        return SG_WIRE_SHORT;
    }
    return in.len > most ? SG_WIRE_BAD_LENGTH : SG_WIRE_OK;
}

static void emit_target(uint8_t *buf, uint32_t stag, uint32_t length, uint64_t to)
{
    sg_put_be32(buf + OFF_STAG, stag);
    sg_put_be32(buf + OFF_LENGTH, length);
    sg_put_be64(buf + OFF_TO, to);
}

enum sg_wire_err sg_flush_req_parse(struct sg_span in, struct sg_flush_req *out)
{
    enum sg_wire_err err = check_len(in, SG_FLUSH_REQ_LEN, SG_FLUSH_REQ_LEN);

    memset(out, 0, sizeof(*out));
    if (err == SG_WIRE_OK) {
        out->stag = sg_get_be32(in.p + OFF_STAG);
        out->length = sg_get_be32(in.p + OFF_LENGTH);
        out->to = sg_get_be64(in.p + OFF_TO);
        out->flags = sg_get_be32(in.p + OFF_REST);
    }
    return err;
}

size_t sg_flush_req_emit(const struct sg_flush_req *r, uint8_t *buf)
{
    emit_target(buf, r->stag, r->length, r->to);
    sg_put_be32(buf + OFF_REST, r->flags);
    return SG_FLUSH_REQ_LEN;
}

enum sg_wire_err sg_verify_req_parse(struct sg_span in, struct sg_verify_req *out)
{
    enum sg_wire_err err = check_len(in, SG_VERIFY_REQ_LEN, SG_MPE_REQ_LEN_MAX);

    memset(out, 0, sizeof(*out));
    if (err == SG_WIRE_OK) {
        out->stag = sg_get_be32(in.p + OFF_STAG);
        out->length = sg_get_be32(in.p + OFF_LENGTH);
        out->to = sg_get_be64(in.p + OFF_TO);
        out->hash_len = (uint8_t)(in.len - SG_VERIFY_REQ_LEN);
        memcpy(out->hash, in.p + OFF_REST, out->hash_len);
    }
    return err;
}

size_t sg_verify_req_emit(const struct sg_verify_req *r, uint8_t *buf)
{
    sg_assert(r->hash_len <= SG_HASH_LEN_MAX);
    emit_target(buf, r->stag, r->length, r->to);
    memcpy(buf + OFF_REST, r->hash, r->hash_len);
    return (size_t)SG_VERIFY_REQ_LEN + r->hash_len;
}

enum sg_wire_err sg_atomic_write_req_parse(struct sg_span in, struct sg_atomic_write_req *out)
{
    enum sg_wire_err err = check_len(in, SG_ATOMIC_WRITE_REQ_LEN, SG_ATOMIC_WRITE_REQ_LEN);

    memset(out, 0, sizeof(*out));
    if (err == SG_WIRE_OK) {
        out->stag = sg_get_be32(in.p + OFF_STAG);
        out->length = sg_get_be32(in.p + OFF_LENGTH);
        out->to = sg_get_be64(in.p + OFF_TO);
        out->data = sg_get_be64(in.p + OFF_REST);
    }
    return err;
}

size_t sg_atomic_write_req_emit(const struct sg_atomic_write_req *r, uint8_t *buf)
{
    emit_target(buf, r->stag, r->length, r->to);
    sg_put_be64(buf + OFF_REST, r->data);
    return SG_ATOMIC_WRITE_REQ_LEN;
}

enum sg_wire_err sg_verify_resp_parse(struct sg_span in, struct sg_verify_resp *out)
{
    enum sg_wire_err err = check_len(in, 0, SG_MPE_RESP_LEN_MAX);

    memset(out, 0, sizeof(*out));
    if (err == SG_WIRE_OK && in.len) {
        out->hash_len = (uint8_t)in.len;
        memcpy(out->hash, in.p, in.len);
    }
    return err;
}

size_t sg_verify_resp_emit(const struct sg_verify_resp *r, uint8_t *buf)
{
    sg_assert(r->hash_len <= SG_HASH_LEN_MAX);
    memcpy(buf, r->hash, r->hash_len);
    return r->hash_len;
}
