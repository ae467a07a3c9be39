/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tools/rpcrdma/header.h: octets and structures in pairs, and octets that are no header. */
#include "hex.h"
#include "header.h"
#include "tap.h"

/* One header at a time; they are large. */
static struct rr_header h;

/* The examples of RFC 8166 section 4.7: each list with items, and none. */
static const struct {
    const char *what, *octets;
    unsigned reads, chunks, reply, segments;
} pairs[] = {
    { "no chunks", "00000007 00000001 00000020 00000000 00000000 00000000 00000000", 0, 0, 0, 0 },
    { "two Read segments",
      "00000007 00000001 00000020 00000000"
      "00000001 00000088 11111111 00001000 2222222233333333"
      "00000001 00000088 11111112 00000800 4444444455555555 00000000 00000000 00000000",
      2, 0, 0, 0 },
    { "a Write chunk of two segments, one of none",
      "00000007 00000001 00000020 00000000 00000000"
      "00000001 00000002 0a0a0a0a 00000010 0000000000000000 0b0b0b0b 00000020 ffffffffffffffff"
      "00000001 00000000 00000000 00000000",
      0, 2, 0, 2 },
    { "RDMA_NOMSG with a Reply chunk",
      "00000007 00000001 00000020 00000001 00000000 00000000"
      "00000001 00000001 0c0c0c0c 00002000 0000000000010000",
      0, 0, 1, 1 },
    { "all lists",
      "fffffffe 00000001 00000001 00000000"
      "00000001 00000000 11111111 00001000 2222222233333333 00000000"
      "00000001 00000001 0a0a0a0a 00000010 0000000000000000 00000000"
      "00000001 00000001 0c0c0c0c 00002000 0000000000010000",
      1, 1, 1, 2 },
    { "ERR_VERS", "00000007 00000001 00000020 00000004 00000001 00000001 00000002", 0, 0, 0, 0 },
    { "ERR_VERS for another version",
      "00000007 00000009 00000020 00000004 00000001 00000001 00000001", 0, 0, 0, 0 },
    { "ERR_CHUNK", "00000007 00000001 00000020 00000004 00000002", 0, 0, 0, 0 },
};

static void pairs__both_ways(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        uint8_t octets[256], out[256];
        struct sg_span in = hex(pairs[i].octets, octets, sizeof(octets));

        T_CONTEXT("%s", pairs[i].what);
        memset(&h, 0xa5, sizeof(h));
        T_EQ_INT(rr_header_parse(in, &h), RR_OK);
        T_EQ_U64(h.len, in.len);
        T_EQ_U64(h.reads, pairs[i].reads);
        T_EQ_U64(h.chunks, pairs[i].chunks);
        T_EQ_INT(h.has_reply, pairs[i].reply);
        T_EQ_U64(h.segments, pairs[i].segments);
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(rr_header_emit(&h, out, sizeof(out)), in.len);
        T_EQ_MEM(out, in.p, in.len);
        T_EQ_U64(out[in.len], 0xa5);
    }
}

static void fields(void)
{
    uint8_t octets[256];

    T_EQ_INT(rr_header_parse(hex(pairs[4].octets, octets, sizeof(octets)), &h), RR_OK);
    T_EQ_U64(h.xid, 0xfffffffe);
    T_EQ_U64(h.credit, 1);
    T_EQ_U64(h.read[0].position, 0);
    T_EQ_U64(h.read[0].segment.handle, 0x11111111);
    T_EQ_U64(h.read[0].segment.length, 0x1000);
    T_EQ_U64(h.read[0].segment.offset, 0x2222222233333333);
    T_EQ_U64(rr_position_octets(&h, 0), 0x1000);
    T_EQ_U64(rr_chunk_octets(&h, &h.chunk[0]), 0x10);
    T_EQ_U64(rr_chunk_octets(&h, &h.reply), 0x2000);
    T_EQ_U64(h.segment[h.reply.first].handle, 0x0c0c0c0c);
    T_EQ_INT(rr_header_parse(hex(pairs[5].octets, octets, sizeof(octets)), &h), RR_OK);
    T_EQ_U64(h.err, RR_ERR_VERS);
    T_EQ_U64(h.low, 1);
    T_EQ_U64(h.high, 2);
}

/* The RPC message begins behind the header. */
static void length__with_a_message_behind(void)
{
    uint8_t octets[256];
    struct sg_span in =
        hex("00000007 00000001 00000020 00000000 00000000 00000000 00000000 00000007 00000000",
            octets, sizeof(octets));

    T_EQ_INT(rr_header_parse(in, &h), RR_OK);
    T_EQ_U64(h.len, RR_HEADER_MIN);
}

static const struct {
    const char *what, *octets;
    enum rr_fault fault;
} faults[] = {
    { "nothing", "", RR_SHORT },
    { "16 octets", "00000007 00000001 00000020 00000000", RR_SHORT },
    { "27 octets", "00000007 00000001 00000020 00000000 00000000 00000000 000000", RR_SHORT },
    { "version 2", "00000007 00000002 00000020 00000000 00000000 00000000 00000000", RR_VERS },
    { "procedure 5", "00000007 00000001 00000020 00000005 00000000 00000000 00000000",
      RR_BAD_PROC },
    { "a flag of 2", "00000007 00000001 00000020 00000000 00000002 00000000 00000000",
      RR_BAD_FLAG },
    { "the Write list's flag", "00000007 00000001 00000020 00000000 00000000 ffffffff 00000000",
      RR_BAD_FLAG },
    { "the Reply chunk's flag", "00000007 00000001 00000020 00000000 00000000 00000000 00000100",
      RR_BAD_FLAG },
    { "a Read list without an end",
      "00000007 00000001 00000020 00000000 00000001 00000088 11111111 00001000 22222222 33333333",
      RR_CUT },
    { "a count without segments",
      "00000007 00000001 00000020 00000000 00000000 00000001 ffffffff 00000000", RR_CUT },
    { "error 3", "00000007 00000001 00000020 00000004 00000003 00000000 00000000", RR_BAD_ERR },
    { "error 0", "00000007 00000001 00000020 00000004 00000000 00000000 00000000", RR_BAD_ERR },
    { "ERR_VERS without versions", "00000007 00000001 00000020 00000004 00000001", RR_CUT },
};

static void parse__faults(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(faults); i++) {
        uint8_t octets[256];
        struct sg_span in = hex(faults[i].octets, octets, sizeof(octets));

        T_CONTEXT("%s", faults[i].what);
        T_EQ_INT(rr_header_parse(in, &h), faults[i].fault);
        if (faults[i].fault != RR_SHORT) {
            T_EQ_U64(h.xid, 7);
            T_EQ_U64(h.credit, 0x20);
        }
    }
}

/* Each shorter form of a header with all lists is refused, without a read behind its end. */
static void parse__every_cut(void)
{
    uint8_t octets[256];
    struct sg_span in = hex(pairs[4].octets, octets, sizeof(octets));

    for (size_t len = 0; len < in.len; len++) {
        uint8_t *copy = malloc(len + 1);
        enum rr_fault fault;

        memcpy(copy, in.p, len);
        fault = rr_header_parse(sg_span_of(copy, len), &h);
        free(copy);
        T_CONTEXT("%zu octets", len);
        T_EQ_INT(fault, len < RR_HEADER_MIN ? RR_SHORT : RR_CUT);
    }
}

static void limits__are_not_passed(void)
{
    static uint8_t octets[RR_HEADER_ROOM + 4 * 24];
    static struct rr_header full;
    size_t len;

    memset(&full, 0, sizeof(full));
    full.vers = RR_VERSION;
    while (rr_add_read(&full, 8, (struct rr_segment){ 1, 2, 3 })) {
    }
    while (rr_open_chunk(&full)) {
    }
    rr_open_reply(&full);
    while (rr_add_segment(&full, (struct rr_segment){ 4, 5, 6 })) {
    }
    T_EQ_U64(full.reads, RR_READS_MAX);
    T_EQ_U64(full.chunks, RR_CHUNKS_MAX);
    T_EQ_U64(full.reply.count, RR_SEGMENTS_MAX);
    len = rr_header_emit(&full, octets, RR_HEADER_ROOM);
    T_EQ_U64(len, RR_HEADER_ROOM);
    T_EQ_INT(rr_header_parse(sg_span_of(octets, len), &h), RR_OK);
    T_EQ_U64(rr_header_emit(&full, octets, len - 1), 0);

    /* One more of each. */
    rr_header_emit(&full, octets, sizeof(octets));
    memmove(octets + RR_FIXED_LEN + 24, octets + RR_FIXED_LEN, len - RR_FIXED_LEN);
    T_EQ_INT(rr_header_parse(sg_span_of(octets, len + 24), &h), RR_TOO_MANY);
    sg_put_be32(octets + 12, RR_MSG);
    full.reads = 0;
    len = rr_header_emit(&full, octets, sizeof(octets));
    memmove(octets + RR_FIXED_LEN + 12, octets + RR_FIXED_LEN + 4, len - RR_FIXED_LEN - 4);
    sg_put_be32(octets + RR_FIXED_LEN + 4, 1);
    sg_put_be32(octets + RR_FIXED_LEN + 8, 0);
    T_EQ_INT(rr_header_parse(sg_span_of(octets, len + 8), &h), RR_TOO_MANY);
    len = rr_header_emit(&full, octets, sizeof(octets));
    sg_put_be32(octets + len - 16 * RR_SEGMENTS_MAX - 4, RR_SEGMENTS_MAX + 1);
    T_EQ_INT(rr_header_parse(sg_span_of(octets, len + 16), &h), RR_TOO_MANY);
}

static const struct t_case cases[] = {
    { "octets and structures in pairs", pairs__both_ways },
    { "fields", fields },
    { "the length, with an RPC message behind", length__with_a_message_behind },
    { "octets that are no header", parse__faults },
    { "each shorter form is refused", parse__every_cut },
    { "the bounds on lists", limits__are_not_passed },
};

T_MAIN(cases)
