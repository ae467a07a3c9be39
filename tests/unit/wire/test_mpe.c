/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wire/mpe.h: messages of draft-talpey-rdma-commit, every field, every length. */
#include "hex.h"
#include "tap.h"
#include "wire/mpe.h"

static const char flush_hex[] = "01020304 11121314 2122232425262728 31323334";
static const struct sg_flush_req flush_req = {
    .stag = 0x01020304,
    .length = 0x11121314,
    .to = 0x2122232425262728,
    .flags = 0x31323334,
};

static void flush_request(void)
{
    uint8_t buf[SG_FLUSH_REQ_LEN], out[SG_FLUSH_REQ_LEN + 1];
    struct sg_span in = hex(flush_hex, buf, sizeof(buf));
    struct sg_flush_req r;

    T_EQ_U64(in.len, SG_FLUSH_REQ_LEN);
    T_EQ_INT(sg_flush_req_parse(in, &r), SG_WIRE_OK);
    T_EQ_U64(r.stag, flush_req.stag);
    T_EQ_U64(r.length, flush_req.length);
    T_EQ_U64(r.to, flush_req.to);
    T_EQ_U64(r.flags, flush_req.flags);
    memset(out, 0xa5, sizeof(out));
    T_EQ_U64(sg_flush_req_emit(&flush_req, out), SG_FLUSH_REQ_LEN);
    T_EQ_MEM(out, buf, SG_FLUSH_REQ_LEN);
    T_EQ_U64(out[SG_FLUSH_REQ_LEN], 0xa5);
}

static void atomic_write_request(void)
{
    uint8_t buf[SG_ATOMIC_WRITE_REQ_LEN], out[SG_ATOMIC_WRITE_REQ_LEN + 1];
    struct sg_span in =
        hex("01020304 00000008 2122232425262728 0123456789abcdef", buf, sizeof(buf));
    struct sg_atomic_write_req r;

    T_EQ_U64(in.len, SG_ATOMIC_WRITE_REQ_LEN);
    T_EQ_INT(sg_atomic_write_req_parse(in, &r), SG_WIRE_OK);
    T_EQ_U64(r.stag, 0x01020304);
    T_EQ_U64(r.length, SG_ATOM_LEN);
    T_EQ_U64(r.to, 0x2122232425262728);
    T_EQ_U64(r.data, 0x0123456789abcdef);
    memset(out, 0xa5, sizeof(out));
    T_EQ_U64(sg_atomic_write_req_emit(&r, out), SG_ATOMIC_WRITE_REQ_LEN);
    T_EQ_MEM(out, buf, SG_ATOMIC_WRITE_REQ_LEN);
    T_EQ_U64(out[SG_ATOMIC_WRITE_REQ_LEN], 0xa5);
}

/* Every length of hash, and none; a response is the hash alone. */
static void verify_messages(void)
{
    uint8_t buf[SG_MPE_REQ_LEN_MAX], out[SG_MPE_REQ_LEN_MAX + 1];
    struct sg_verify_resp resp;
    struct sg_verify_req r;
    size_t i, n;

    hex("01020304 11121314 2122232425262728", buf, sizeof(buf));
    for (i = SG_VERIFY_REQ_LEN; i < sizeof(buf); i++) {
        buf[i] = (uint8_t)(0x80 + i);
    }
    for (n = 0; n <= SG_HASH_LEN_MAX; n++) {
        T_CONTEXT("hash of %zu octets", n);
        T_EQ_INT(sg_verify_req_parse(sg_span_of(buf, SG_VERIFY_REQ_LEN + n), &r), SG_WIRE_OK);
        T_EQ_U64(r.stag, 0x01020304);
        T_EQ_U64(r.length, 0x11121314);
        T_EQ_U64(r.to, 0x2122232425262728);
        T_EQ_U64(r.hash_len, n);
        T_EQ_MEM(r.hash, buf + SG_VERIFY_REQ_LEN, n);
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(sg_verify_req_emit(&r, out), SG_VERIFY_REQ_LEN + n);
        T_EQ_MEM(out, buf, SG_VERIFY_REQ_LEN + n);
        T_EQ_U64(out[SG_VERIFY_REQ_LEN + n], 0xa5);

        T_EQ_INT(sg_verify_resp_parse(sg_span_of(buf + SG_VERIFY_REQ_LEN, n), &resp), SG_WIRE_OK);
        T_EQ_U64(resp.hash_len, n);
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(sg_verify_resp_emit(&resp, out), n);
        T_EQ_MEM(out, buf + SG_VERIFY_REQ_LEN, n);
        T_EQ_U64(out[n], 0xa5);
    }
}

/* Too few or too many octets.  The memory ends with the message, so sanitizers see overruns. */
static void wrong_lengths(void)
{
    struct sg_atomic_write_req aw;
    struct sg_verify_resp resp;
    struct sg_verify_req v;
    struct sg_flush_req f;
    size_t n;

    for (n = 0; n <= SG_MPE_REQ_LEN_MAX + 8; n++) {
        uint8_t *p = calloc(1, n + !n);
        struct sg_span in = sg_span_of(p, n);

        T_CONTEXT("%zu octets", n);
        T_EQ_INT(sg_flush_req_parse(in, &f), n < 20   ? SG_WIRE_SHORT
                                             : n > 20 ? SG_WIRE_BAD_LENGTH
                                                      : SG_WIRE_OK);
        T_EQ_INT(sg_atomic_write_req_parse(in, &aw), n < 24   ? SG_WIRE_SHORT
                                                     : n > 24 ? SG_WIRE_BAD_LENGTH
                                                              : SG_WIRE_OK);
        T_EQ_INT(sg_verify_req_parse(in, &v), n < 16   ? SG_WIRE_SHORT
                                              : n > 80 ? SG_WIRE_BAD_LENGTH
                                                       : SG_WIRE_OK);
        T_EQ_INT(sg_verify_resp_parse(in, &resp), n > 64 ? SG_WIRE_BAD_LENGTH : SG_WIRE_OK);
        free(p);
    }
    T_EQ_INT(sg_verify_resp_parse(SG_SPAN_NONE, &resp), SG_WIRE_OK);
    T_EQ_U64(resp.hash_len, 0);
}

static const struct t_case cases[] = {
    { "Flush Request", flush_request },
    { "Verify Request and Response", verify_messages },
    { "Atomic Write Request", atomic_write_request },
    { "messages cut short or with octets too many", wrong_lengths },
};

T_MAIN(cases)
