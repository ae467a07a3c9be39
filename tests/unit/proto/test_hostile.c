/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peers that send arbitrary octets: the engine neither crashes nor hangs nor leaks, and
 * never accesses memory that its checks did not allow.  Seeded; the context names the round.
 */
#include <string.h>

#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

enum { ROUNDS = 3000 };

#define REQ "4d504120 49442052 65712046 72616d65 "

static uint64_t state;

static uint32_t prng(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static size_t frame(uint8_t *out, const uint8_t *ulpdu, size_t n)
{
    sg_put_be16(out, (uint16_t)n);
    memcpy(out + 2, ulpdu, n);
    n += 2;
    while (n % 4) {
        out[n++] = 0;
    }
    sg_put_le32(out + n, sg_crc32c(0, out, n));
    return n + 4;
}

/* The same of draft-talpey-rdma-commit. */
static size_t plausible_mpe(uint8_t *u)
{
    static const uint32_t stags[] = { 0x100, 0x100, 0x200, 0x300, 0x400, 0x500, 0, 0x999 };
    static const uint8_t ops[] = { 0x4c, 0x4e, 0x50, 0x4d, 0x4f, 0x51 };
    const struct sg_engine_stats *st = sg_engine_stats(rig->e);
    uint8_t op = ops[prng(prng(10) ? 3 : 6)];
    size_t n = 16;

    u[0] = prng(20) ? 0x41 : 0xc1;
    u[1] = op;
    sg_put_be32(u + 2, prng(8) ? 0 : stags[prng(8)]);
    sg_put_be32(u + 6, op % 2 ? 3 : prng(20) ? 1 : prng(5));
    sg_put_be32(u + 10, prng(20) ? (uint32_t)(st->rx_flushes + st->rx_verifies +
                                              st->rx_atomic_writes + st->rx_reads + 1)
                                 : prng(3));
    sg_put_be32(u + 14, prng(2) ? 0 : prng(5000));
    sg_put_be32(u + 18, stags[prng(8)]);
    sg_put_be32(u + 22, op == 0x50 && prng(10) ? 8 : prng(prng(2) ? 100 : 2 * RIG_MEM));
    sg_put_be64(u + 26, prng(8) ? prng(RIG_MEM) & ~(uint64_t)7 : UINT64_MAX - prng(8));
    if (op == 0x4c) {
        sg_put_be32(u + 34, prng(10) ? prng(8) : prng(0x7fffffff));
        n += 4;
    } else {
        size_t extra = op == 0x50 ? 8 : prng(2) ? prng(80) : 0;

        memset(u + 34, 'c', extra);
        n += extra;
    }
    return 18 + n - (prng(10) == 0);
}

/* A header that is nearly right: each field is plausible, most of the time. */
static size_t plausible(uint8_t *u)
{
    static const uint8_t dv[] = { 0xc1, 0x81, 0x41, 0x01, 0x41, 0xc1, 0x43, 0x40 };
    static const uint32_t stags[] = { 0x100, 0x200, 0x300, 0x400, 0x500, 0, 0x999, 1 };
    bool tagged;
    size_t n;

    u[0] = dv[prng(prng(4) ? 6 : 8)];
    u[1] = (uint8_t)(0x40 | prng(prng(4) ? 8 : 18));
    if (rig->config.mpe_draft && prng(2)) {
        return plausible_mpe(u);
    }
    tagged = u[0] & 0x80;
    if (tagged) {
        sg_put_be32(u + 2, stags[prng(8)]);
        sg_put_be64(u + 6, prng(8) ? prng(RIG_MEM) : UINT64_MAX - prng(8));
        n = 14;
    } else {
        sg_put_be32(u + 2, stags[prng(8)]);
        sg_put_be32(u + 6, prng(prng(4) ? 3 : 5));
        sg_put_be32(u + 10, 1 + prng(2));
        sg_put_be32(u + 14, prng(2) ? 0 : prng(5000));
        n = 18;
        if ((u[1] & 15) == 1) {
            memset(u + n, 0, 28);
            sg_put_be32(u + n + 12, prng(100000));
            sg_put_be32(u + n + 16, stags[prng(8)]);
            sg_put_be64(u + n + 20, prng(RIG_MEM));
            return n + 28 - (prng(10) == 0);
        }
    }
    if (prng(3)) {
        size_t len = prng(600);

        memset(u + n, 'h', len);
        n += len;
    }
    return n;
}

static void check_quiet(void)
{
    /* Receive buffers and memory behind STags are inside the rig; ASan checks other accesses. */
    T_TRUE(sg_engine_stats(rig->e)->tx_terminates <= 1);
    T_EQ_U64(rig->gathers, 0);
}

static void valid_fpdus_of_nonsense(void)
{
    static uint8_t u[2048], f[2100];
    uint64_t flushes = 0, verifies = 0, atoms = 0;
    unsigned round, i, rounds = ROUNDS / t_stride(2);

    for (round = 0; round < rounds; round++) {
        struct sg_engine_config config = rig_config();

        T_CONTEXT("round %u", round);
        state = round;
        config.mpe_draft = (uint8_t)(round % 3);
        rig_start(&config);
        rig->recvs = prng(4);
        rig->exec_later = config.mpe_draft ? prng(3) : 0;
        rig_passive();
        for (i = 0; i < 8 && rig->peer; i++) {
            size_t n = prng(5) ? plausible(u) : prng(64);
            size_t len, cut;

            if (prng(10) == 0 && n) {
                u[prng((uint32_t)n)] ^= (uint8_t)(1 << prng(8));
            }
            len = frame(f, u, n);
            cut = prng(2) ? len : prng((uint32_t)len);
            rig_say_octets(f, cut);
            if (cut < len && rig->peer) {
                rig_say_octets(f + cut, len - cut);
            }
            rig->in_len = rig->in_used = 0;
            rig->log[0] = '\0';
            rig_pass(prng(2));
        }
        flushes += sg_engine_stats(rig->e)->rx_flushes;
        verifies += sg_engine_stats(rig->e)->rx_verifies;
        atoms += sg_engine_stats(rig->e)->rx_atomic_writes;
        check_quiet();
        rig_stop();
    }
    T_NOTE("accepted: %" PRIu64 " Flushes, %" PRIu64 " Verifies, %" PRIu64 " Atomic Writes",
           flushes, verifies, atoms);
    /* Octets that always fail the first check would test little. */
    T_TRUE(flushes > rounds / 30 && verifies > rounds / 30 && atoms > rounds / 30);
}

static void startup_of_nonsense(void)
{
    uint8_t buf[700];
    unsigned round, rounds = ROUNDS / t_stride(2);

    for (round = 0; round < rounds; round++) {
        size_t n = 20 + prng(60), i;

        T_CONTEXT("round %u", round);
        state = round * 7 + 1;
        memcpy(buf, "MPA ID Req Frame", 16);
        for (i = 16; i < sizeof(buf); i++) {
            buf[i] = (uint8_t)prng(256);
        }
        if (prng(2)) {
            buf[17] = (uint8_t)(1 + prng(2));
            sg_put_be16(buf + 18, (uint16_t)prng(520));
            n = 20 + sg_get_be16(buf + 18);
        }
        rig_start(NULL);
        rig_request(NULL);
        rig_say_octets(buf, n);
        if (rig->c) {
            T_TRUE(strstr(rig_log(), "request(") != NULL);
            rig_accept(4, 4, NULL);
        }
        check_quiet();
        rig_stop();
    }
}

/* Announces the largest FPDU, with markers, and sends as little as possible of it. */
static void slow_giant(void)
{
    struct sg_engine_config cfg = rig_config();
    unsigned i, markers;

    for (markers = 0; markers < 2; markers++) {
        cfg.markers = markers;
        rig_start(&cfg);
        rig_request(REQ "40010000");
        rig_accept(4, 4, NULL);
        rig_log();
        rig_say(markers ? "00000000 ffff" : "ffff");
        for (i = 0; i < 300; i++) {
            rig_say("c1");
        }
        T_EQ_STR(rig_log(), "");
        rig_peer_close();
        T_EQ_STR(rig_log(), "closed(RESET)");
        rig_stop();
    }
}

/* Endless empty segments without a last one cost nothing. */
static void endless_message(void)
{
    unsigned i;

    rig_start(NULL);
    rig->recvs = 1;
    rig_passive();
    for (i = 0; i < 2000; i++) {
        rig_say_fpdu("0143 00000000 00000000 00000001 00000000");
        rig_say_fpdu("8140 00000100 00000000 00000000");
    }
    T_EQ_STR(rig_log(), "");
    rig_expect_nothing();
    rig_stop();
}

static const struct t_case cases[] = {
    { "RDM-60 well-framed nonsense", valid_fpdus_of_nonsense },
    { "MP2-27 Requests of nonsense", startup_of_nonsense },
    { "SEC-13 an FPDU announced and never finished", slow_giant },
    { "messages without an end", endless_message },
};

T_MAIN(cases)
