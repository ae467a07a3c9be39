/* SPDX-License-Identifier: GPL-2.0-or-later */
/* guest-driver/provider: wqe.h, ring.h */
#include "wqe.h"

#include "tap.h"

static void geometry__strides(void)
{
    static const struct {
        uint32_t sge, inl, stride;
    } rows[] = {
        { 0, 0, 64 },    { 1, 0, 64 },     { 1, 16, 64 },    { 1, 17, 128 }, { 2, 0, 128 },
        { 5, 80, 128 },  { 6, 0, 256 },    { 13, 208, 256 }, { 14, 0, 512 }, { 16, 256, 512 },
        { 1, 464, 512 }, { 1, 465, 1024 }, { 30, 0, 1024 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%u elements, %u inline", rows[i].sge, rows[i].inl);
        T_EQ_U64(sgp_sq_stride(rows[i].sge, rows[i].inl, 0), rows[i].stride);
    }
    T_EQ_U64(sgp_rq_stride(0), 64);
    T_EQ_U64(sgp_rq_stride(3), 64);
    T_EQ_U64(sgp_rq_stride(4), 128);
    T_EQ_U64(sgp_rq_stride(7), 128);
    T_EQ_U64(sgp_rq_stride(16), 512);
}

/* As many elements as the stride is said to hold do fit, and one more does not. */
static void geometry__room(void)
{
    for (uint32_t stride = SG_WQE_STRIDE_MIN; stride <= SG_WQE_STRIDE_MAX; stride *= 2) {
        T_CONTEXT("stride %u", stride);
        T_EQ_U64(sgp_sq_stride(sgp_sq_sge_room(stride), sgp_sq_inline_room(stride), 0), stride);
        T_TRUE(sgp_sq_stride(sgp_sq_sge_room(stride) + 1, 0, 0) > stride);
        T_TRUE(sgp_sq_stride(0, sgp_sq_inline_room(stride) + 1, 0) > stride);
        T_EQ_U64(sgp_rq_stride(sgp_rq_sge_room(stride)), stride);
        T_TRUE(sgp_rq_stride(sgp_rq_sge_room(stride) + 1) > stride);
    }
    T_TRUE(sgp_sq_stride(SG_SQ_MAX_SGE, SG_MAX_INLINE, 0) <= SG_WQE_STRIDE_MAX);
    T_TRUE(sgp_rq_stride(SG_RQ_MAX_SGE) <= SG_WQE_STRIDE_MAX);
}

static void geometry__power_of_two(void)
{
    T_EQ_U64(sgp_pow2_at_least(0), 1);
    T_EQ_U64(sgp_pow2_at_least(1), 1);
    T_EQ_U64(sgp_pow2_at_least(2), 2);
    T_EQ_U64(sgp_pow2_at_least(3), 4);
    T_EQ_U64(sgp_pow2_at_least(4097), 8192);
    T_EQ_U64(sgp_pow2_at_least(1u << 31), 1u << 31);
}

static void ring__full_and_slots(void)
{
    static uint8_t memory[4 * 64];
    struct sgp_ring r;

    sgp_ring_init(&r, memory, 4, 64);
    T_FALSE(sgp_ring_full(&r, 3));
    T_TRUE(sgp_ring_full(&r, 4));
    T_TRUE(sgp_ring_slot(&r, 0) == memory);
    T_TRUE(sgp_ring_slot(&r, 3) == memory + 192);
    T_TRUE(sgp_ring_slot(&r, 7) == memory + 192);
    sgp_ring_release(&r, 1); /* 0 and 1 are free again */
    T_FALSE(sgp_ring_full(&r, 5));
    T_TRUE(sgp_ring_full(&r, 6));
    r.head = 5;
    sgp_ring_drain(&r);
    T_FALSE(sgp_ring_full(&r, 8));
    T_TRUE(sgp_ring_full(&r, 9));
}

static void ring__index_wraps_at_32_bits(void)
{
    static uint8_t memory[4 * 64];
    struct sgp_ring r;

    sgp_ring_init(&r, memory, 4, 64);
    sgp_ring_release(&r, UINT32_MAX - 2); /* tail: 2^32 - 2 */
    T_FALSE(sgp_ring_full(&r, UINT32_MAX));
    T_FALSE(sgp_ring_full(&r, 1));
    T_TRUE(sgp_ring_full(&r, 2));
    T_TRUE(sgp_ring_slot(&r, UINT32_MAX) == memory + 192);
    T_TRUE(sgp_ring_slot(&r, 0) == memory);
    sgp_ring_release(&r, UINT32_MAX);
    T_FALSE(sgp_ring_full(&r, 3));
    T_TRUE(sgp_ring_full(&r, 4));
}

static void send__octets(void)
{
    static const uint8_t want[80] = {
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* wr_id */
        0x02, 0x05, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, /* opcode flags num_sge . inline_len . */
        0x04, 0x03, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, /* index, inv_stag */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* remote_addr */
        0xdd, 0xcc, 0xbb, 0xaa, 0x00, 0x00, 0x00, 0x00, /* rkey */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* imm */
        0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* first element */
        0x20, 0x00, 0x00, 0x00, 0x34, 0x12, 0x00, 0x00,
        0x00, 0x20, 0x00, 0x00, 0xff, 0x7f, 0x00, 0x00, /* second */
        0xff, 0xff, 0xff, 0xff, 0x78, 0x56, 0x34, 0x12
    };
    uint8_t slot[128];
    struct sg_wqe_hdr *wqe = (struct sg_wqe_hdr *)slot;

    memset(slot, 0xee, sizeof(slot)); /* an old entry must leave no trace in the header */
    sg_wqe_init(wqe, 0x01020304, SG_WR_WRITE, SG_WQE_SIGNALED | SG_WQE_FENCE,
                UINT64_C(0x0102030405060708));
    sg_wqe_set_remote(wqe, 0xaabbccdd, UINT64_C(0x1122334455667788));
    wqe->num_sge = 2;
    sg_sge_set(&sg_wqe_sge(wqe)[0], 0x1000, 0x20, 0x1234);
    sg_sge_set(&sg_wqe_sge(wqe)[1], UINT64_C(0x7fff00002000), UINT32_MAX, 0x12345678);
    T_EQ_MEM(slot, want, sizeof(want));
    T_EQ_U64(slot[80], 0xee);
}

static void flush__octets(void)
{
    static const uint8_t want[64] = {
        0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* wr_id */
        0x0c, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* opcode flags num_sge . inline_len . */
        0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* index, inv_stag */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* remote_addr */
        0xdd, 0xcc, 0xbb, 0xaa, 0x00, 0x00, 0x00, 0x00, /* rkey */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* imm */
        0x00, 0x10, 0x20, 0x40, 0x03, 0x00, 0x00, 0x00, /* length, flags */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00  /* hash_len, reserved */
    };
    uint8_t slot[128];
    struct sg_wqe_hdr *wqe = (struct sg_wqe_hdr *)slot;

    memset(slot, 0xee, sizeof(slot));
    sg_wqe_init(wqe, 5, SG_WR_FLUSH, SG_WQE_SIGNALED, 7);
    sg_wqe_set_remote(wqe, 0xaabbccdd, UINT64_C(0x1122334455667788));
    sg_wqe_set_place(wqe, 0x40201000, SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL);
    T_EQ_MEM(slot, want, sizeof(want));
    T_EQ_U64(slot[64], 0xee);
    T_TRUE(sizeof(want) <= SG_WQE_STRIDE_MIN);
}

/* With and without each of the two optional parts; the hash is the last one. */
static void verify__octets(void)
{
    static const uint8_t hash[4] = { 0xc0, 0xc1, 0xc2, 0xc3 };
    static const uint8_t sink[16] = { 0x00, 0x30, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x09, 0, 0, 0 };
    uint8_t place[16] = { 0x00, 0x02, 0, 0 };

    for (unsigned int row = 0; row < 4; row++) {
        bool with_sink = row & 1, with_hash = row & 2;
        uint8_t slot[128];
        struct sg_wqe_hdr *wqe = (struct sg_wqe_hdr *)slot;
        uint8_t *at = slot + sizeof(*wqe) + sizeof(place);

        T_CONTEXT("sink %d, hash %d", with_sink, with_hash);
        memset(slot, 0xee, sizeof(slot));
        sg_wqe_init(wqe, 0, SG_WR_VERIFY, 0, 1);
        sg_wqe_set_place(wqe, 0x200, 0);
        if (with_sink) {
            sg_sge_set(sg_wqe_verify_sink(wqe), 0x3000, 0x40, 9);
        }
        if (with_hash) {
            memcpy(sg_wqe_verify_hash(wqe, sizeof(hash)), hash, sizeof(hash));
        }
        T_EQ_U64(wqe->opcode, 0x0d);
        T_EQ_U64(wqe->num_sge, with_sink);
        place[8] = with_hash ? sizeof(hash) : 0;
        T_EQ_MEM(wqe + 1, place, sizeof(place));
        if (with_sink) {
            T_EQ_MEM(at, sink, sizeof(sink));
            at += sizeof(sink);
        }
        if (with_hash) {
            T_EQ_MEM(at, hash, sizeof(hash));
            at += sizeof(hash);
        }
        T_EQ_U64(*at, 0xee);
        T_EQ_U64(sg_wqe_verify_body(with_sink, with_hash ? sizeof(hash) : 0),
                 (uint64_t)(at - slot) - sizeof(*wqe));
    }
    T_TRUE(sg_wqe_verify_body(1, SG_HASH_MAX) <= sgp_sq_inline_room(256));
}

static void send__with_invalidate(void)
{
    struct sg_wqe_hdr wqe;

    sg_wqe_init(&wqe, 0, SG_WR_SEND_INV, SG_WQE_SOLICITED, 1);
    sg_wqe_set_inv(&wqe, 0x00abcd01);
    T_EQ_U64(le32toh(wqe.inv_stag), 0x00abcd01);
    T_EQ_U64(wqe.flags, SG_WQE_SOLICITED);
    T_EQ_U64(wqe.rkey, 0);
}

static void inline__gathers(void)
{
    uint8_t slot[512] = { 0 };
    struct sg_wqe_hdr *wqe = (struct sg_wqe_hdr *)slot;
    uint32_t used = 0;

    sg_wqe_init(wqe, 9, SG_WR_SEND, SG_WQE_SIGNALED, 0);
    used = sgp_wqe_append_inline(wqe, used, SG_MAX_INLINE, "abc", 3);
    used = sgp_wqe_append_inline(wqe, used, SG_MAX_INLINE, NULL, 0);
    used = sgp_wqe_append_inline(wqe, used, SG_MAX_INLINE, "defgh", 5);
    sg_wqe_set_inline_len(wqe, used);
    T_EQ_U64(le16toh(wqe->inline_len), 8);
    T_EQ_U64(wqe->flags, SG_WQE_SIGNALED | SG_WQE_INLINE);
    T_EQ_MEM(slot + sizeof(*wqe), "abcdefgh", 8);
}

static void inline__limit(void)
{
    uint8_t slot[SG_WQE_STRIDE_MAX] = { 0 };
    uint8_t data[SG_MAX_INLINE + 1];
    struct sg_wqe_hdr *wqe = (struct sg_wqe_hdr *)slot;

    memset(data, 0x5a, sizeof(data));
    sg_wqe_init(wqe, 0, SG_WR_SEND, 0, 0);
    T_EQ_U64(sgp_wqe_append_inline(wqe, 0, SG_MAX_INLINE, data, SG_MAX_INLINE + 1),
             SGP_INLINE_TOO_LONG);
    T_EQ_U64(slot[sizeof(*wqe)], 0);
    T_EQ_U64(sgp_wqe_append_inline(wqe, 0, SG_MAX_INLINE, data, SG_MAX_INLINE), SG_MAX_INLINE);
    T_EQ_U64(sgp_wqe_append_inline(wqe, SG_MAX_INLINE, SG_MAX_INLINE, data, 1),
             SGP_INLINE_TOO_LONG);
    T_EQ_U64(slot[sizeof(*wqe) + SG_MAX_INLINE], 0);
    /* A length that would wrap a 32-bit sum. */
    T_EQ_U64(sgp_wqe_append_inline(wqe, 8, SG_MAX_INLINE, data, UINT32_MAX), SGP_INLINE_TOO_LONG);
    T_EQ_U64(sgp_wqe_append_inline(wqe, 8, SG_MAX_INLINE, data, SIZE_MAX), SGP_INLINE_TOO_LONG);
}

static void recv__octets(void)
{
    static const uint8_t want[32] = { 0x2a, 0,    0,    0,    0, 0,    0,    0x80, 0xff, 0xff, 0xff,
                                      0xff, 0x01, 0,    0,    0, 0x00, 0x10, 0,    0,    0,    0,
                                      0,    0,    0x00, 0x08, 0, 0,    0x07, 0,    0,    0 };
    uint8_t slot[64];
    struct sg_rqe_hdr *rqe = (struct sg_rqe_hdr *)slot;

    memset(slot, 0xee, sizeof(slot));
    sg_rqe_init(rqe, UINT32_MAX, 1, UINT64_C(0x800000000000002a));
    sg_sge_set(sg_rqe_sge(rqe), 0x1000, 0x800, 7);
    T_EQ_MEM(slot, want, sizeof(want));
}

static void cqe__fields(void)
{
    static const uint8_t octets[8] = { 0x04, 0x03, 0x02, 0x01, 0x06, 0x80, 0x00, 0x15 };
    struct sg_cqe cqe = { 0 };
    uint64_t tail;

    memcpy((uint8_t *)&cqe + 56, octets, 8);
    tail = sgp_cqe_tail(&cqe);
    T_EQ_U64(sgp_cqe_wr_index(tail), 0x01020304);
    T_EQ_U64(sgp_cqe_status(tail), SG_WC_REM_ACCESS_ERR);
    T_EQ_U64(sgp_cqe_opcode(tail), SG_WC_RECV);
    T_EQ_U64(sgp_cqe_flags(tail), SG_CQE_PHASE | SG_CQE_WITH_INV | SG_CQE_RECV);
}

/* Three rounds of a ring that a model of the device fills, starting at any round. */
static void cqe__phase(void)
{
    static const uint32_t starts[] = { 0, 8, 1u << 20, UINT32_MAX - 7 };

    for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        struct sg_cqe ring[8] = { 0 };
        uint32_t pi = starts[s];
        uint32_t ci = starts[s];

        /* Entries of the previous round. */
        for (uint32_t i = 0; i < 8 && starts[s]; i++) {
            ring[i].flags_phase = (((starts[s] - 1) >> 3) & 1) ^ 1;
        }
        for (uint32_t i = 0; i < 24; i++) {
            T_CONTEXT("index %u", ci);
            T_FALSE(sgp_cqe_is_new(sgp_cqe_tail(&ring[ci & 7]), ci, 8));
            ring[pi & 7].flags_phase = ((pi >> 3) & 1) ^ 1;
            pi++;
            T_TRUE(sgp_cqe_is_new(sgp_cqe_tail(&ring[ci & 7]), ci, 8));
            ci++;
        }
    }
}

static const struct t_case cases[] = {
    { "strides of send and receive queues", geometry__strides },
    { "a stride holds what it is said to hold", geometry__room },
    { "rounding to powers of two", geometry__power_of_two },
    { "a ring is full at its size, slots repeat", ring__full_and_slots },
    { "ring indices wrap at 32 bits", ring__index_wraps_at_32_bits },
    { "octets of a send entry", send__octets },
    { "octets of a Flush entry", flush__octets },
    { "octets of a Verify entry, with and without sink and hash", verify__octets },
    { "Send with Invalidate carries the STag", send__with_invalidate },
    { "inline data is gathered", inline__gathers },
    { "inline data beyond the limit is refused", inline__limit },
    { "octets of a receive entry", recv__octets },
    { "fields of a completion's last word", cqe__fields },
    { "phase of completions over the laps of a ring", cqe__phase },
};

T_MAIN(cases)
