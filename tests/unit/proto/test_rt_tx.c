/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outgoing segments of RDMA/TCP of 2000: fields, segmentation, numbers, order. */
#include "proto/rdma_tcp/rt.h"
#include "rt_rig.h"
#include "tap.h"

enum { EMSS = 200 }; /* segments of 200 octets: 172 of a Send, 160 of a Write */

static void sends(void)
{
    static const uint32_t lengths[] = { 0, 1, 171, 172, 173, 344, 1000 };
    uint32_t done, number;
    struct rt_fields f;
    size_t i;

    rt_start(EMSS);
    rt_passive();
    number = rt_peer.first;
    for (i = 0; i < SG_ARRAY_SIZE(lengths); i++) {
        T_CONTEXT("%u octets", lengths[i]);
        rt_post_send(100, lengths[i]);
        number++;
        done = 0;
        do {
            f = rt_hear();
            T_EQ_U64(f.version, 1);
            T_EQ_U64(f.conn_id, rt_peer.conn_id);
            T_EQ_U64(f.type, RT_SEND);
            T_EQ_U64(f.clen, 0);
            T_EQ_U64(f.order, 0);
            T_SHOWS("WIL-06") {
                T_EQ_U64(f.number, number);
            }
            T_SHOWS("WIL-13") {
                T_EQ_U64(f.offset, done);
            }
            T_EQ_MEM(f.p, rig->mem + 100 + done, f.n);
            done += f.n;
            T_SHOWS("WIL-03") {
                T_EQ_U64(f.flags & RT_B, done == f.n ? RT_B : 0);
                T_EQ_U64(f.flags & RT_E, done == lengths[i] ? RT_E : 0);
            }
            T_SHOWS("WIL-21") {
                T_EQ_U64(f.n, SG_MIN(172, lengths[i] - done + f.n)); /* with all around it: 200 */
            }
        } while (done < lengths[i]);
        rig_expect_nothing();
    }
    rig_stop();
}

static void solicited(void)
{
    struct rt_fields f;

    rt_start(EMSS);
    rt_passive();
    rig->queue[rig->tail++] =
        (struct sg_msg){ .kind = SG_MSG_SEND, .send = { .length = 3, .solicited = true } };
    sg_conn_wake(rig->c);
    rig_settle();
    f = rt_hear();
    T_EQ_U64(f.flags, RT_BE | RT_SE);
    rig_stop();
}

static void writes(void)
{
    static const struct {
        uint32_t length;
        uint64_t to;
    } rows[] = {
        { 0, 5 }, { 1, 0 }, { 160, 0x1122334455667788 }, { 161, 7 }, { 1000, 0x1fffffff0 },
    };
    struct rt_fields f;
    uint32_t done;
    size_t i;

    rt_start(EMSS);
    rt_passive();
    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%u octets", rows[i].length);
        rt_post_write(50, rows[i].length, 0xabcd0000 + (uint32_t)i, rows[i].to);
        done = 0;
        do {
            f = rt_hear();
            T_EQ_U64(f.type, RT_WRITE);
            T_EQ_U64(f.number, rt_peer.first + 1 + i);
            T_SHOWS("WIL-14") {
                T_EQ_U64(f.buffer, 0xabcd0000 + i);
                T_EQ_U64(f.offset, (uint32_t)(rows[i].to + done));
            }
            T_SHOWS("WIL-15") {
                T_EQ_U64(f.length, rows[i].length);
            }
            T_SHOWS("WIL-12") {
                T_EQ_U64(f.clen, 1);
                T_EQ_U64(f.control[0], (rows[i].to + done) >> 32); /* carries at 2^32 */
            }
            T_EQ_MEM(f.p, rig->mem + 50 + done, f.n);
            T_EQ_U64(f.n, SG_MIN(160, rows[i].length - done));
            done += f.n;
            T_EQ_U64(f.flags, (done == f.n ? RT_B : 0) | (done == rows[i].length ? RT_E : 0));
        } while (done < rows[i].length);
        rig_expect_nothing();
    }
    rig_stop();
}

/* Segments whose padding is 0 to 3 octets, for an EMSS of every residue; none is longer. */
static void emss(void)
{
    uint32_t size;

    for (size = 150; size < 158; size++) {
        T_CONTEXT("EMSS %u", size);
        rt_start(size);
        rt_passive();
        rt_post_send(0, 1000);
        rt_hear();
        T_SHOWS("WIL-21") {
            T_EQ_U64(rig->in_used, 40 - 4 + size / 4 * 4); /* setup has 36 octets */
        }
        rig_stop();
    }
    rt_start(10); /* smaller than a header: a segment of 132 octets, and TCP divides it */
    rt_passive();
    rt_post_send(0, 1000);
    T_EQ_U64(rt_hear().n, 128 - 24);
    rig_stop();
}

static void reads(void)
{
    struct rt_fields f;

    rt_start(EMSS);
    rt_passive();
    rt_post_read(300, 0x300000004, 64);
    f = rt_hear();
    T_EQ_U64(f.type, RT_READ_REQ);
    T_EQ_U64(f.number, rt_peer.first + 1);
    T_EQ_U64(f.order, 0);
    T_EQ_U64(f.buffer, 0x77);
    T_EQ_U64(f.offset, 4);
    T_EQ_U64(f.control[0], 3);
    T_EQ_U64(f.length, 300);
    T_SHOWS("WIL-18") {
        T_EQ_U64(f.flags, RT_BE);
        T_EQ_U64(f.n, 0);
    }
    rig_stop();
}

/* Responses, between the segments of a Send of ours. */
static void responses(void)
{
    uint32_t done[2] = { 0, 0 }, alternations = 0, last = 9;
    struct rt_fields f;

    rt_start(EMSS);
    rt_passive();
    rig->queue[rig->tail++] =
        (struct sg_msg){ .kind = SG_MSG_SEND, .cookie = 0, .send = { .length = 1000 } };
    rt_say(&(struct rt_fields){ .type = RT_READ_REQ,
                                .flags = RT_BE,
                                .number = RT_FIRST + 1,
                                .buffer = RIG_STAG_RW,
                                .offset = 2000,
                                .length = 1000 });
    while (done[0] < 1000 || done[1] < 1000) {
        unsigned which;

        f = rt_hear();
        which = f.type == RT_READ_RESP;
        alternations += which != last;
        last = which;
        T_SHOWS("WIL-13 WIL-19") {
            T_EQ_U64(f.offset, done[which]);
        }
        T_SHOWS("WIL-07") {
            T_EQ_U64(f.number, which ? RT_FIRST + 1 : rt_peer.first + 1);
        }
        T_EQ_U64(f.order, which ? 0xffff : 0);
        T_EQ_U64(f.clen, 0);
        T_EQ_MEM(f.p, rig->mem + (which ? 2000 : 0) + done[which], f.n);
        done[which] += f.n;
        T_SHOWS("WIL-03") {
            T_EQ_U64(f.flags, (done[which] == f.n ? RT_B : 0) | (done[which] == 1000 ? RT_E : 0));
        }
    }
    T_TRUE(alternations > 8);
    rig_expect_nothing();
    rig_stop();
}

static void answer_read(uint32_t number)
{
    rt_say(&(struct rt_fields){ .type = RT_READ_RESP,
                                .flags = RT_BE,
                                .number = number,
                                .order = 0xffff,
                                .p = "0123456789",
                                .n = 10 });
}

/* 0 while no Read is unanswered; then the distance to the oldest that is. */
static void order(void)
{
    uint32_t first;

    rt_start(EMSS);
    rt_passive();
    first = rt_peer.first + 1;
    rt_post_write(0, 10, 1, 0);
    T_EQ_U64(rt_hear().order, 0);
    rt_post_read(10, 0, 0); /* first + 1 */
    T_EQ_U64(rt_hear().order, 0);
    rt_post_write(0, 10, 1, 0);
    T_EQ_U64(rt_hear().order, 1);
    rt_post_read(10, 0, 0); /* first + 3 */
    T_EQ_U64(rt_hear().order, 0);
    rt_post_send(0, 500);
    T_EQ_U64(rt_hear().order, 3);
    T_EQ_U64(rt_hear().order, 3);
    T_EQ_U64(rt_hear().order, 3);
    answer_read(first + 1);
    rt_post_send(0, 5);
    T_EQ_U64(rt_hear().order, 2);
    answer_read(first + 3);
    rt_post_write(0, 10, 1, 0);
    T_EQ_U64(rt_hear().order, 0);
    rig_stop();
}

/* No more messages behind an unanswered Read than the field can leave out. */
static void order_limit(void)
{
    struct rt_fields f = { 0 };
    uint32_t first, i;

    rt_start(EMSS);
    rt_passive();
    first = rt_peer.first + 1;
    rt_post_read(10, 0, 0);
    rt_hear();
    for (i = 1; i <= 0xfffe; i++) {
        rig->queue[rig->tail++ % RIG_QUEUE] = (struct sg_msg){ .kind = SG_MSG_SEND };
        if (rig->tail - rig->head == RIG_QUEUE || i == 0xfffe) {
            sg_conn_wake(rig->c);
            rig_settle();
            while (rig->in_used < rig->in_len) {
                f = rt_hear();
            }
            rig->in_used = rig->in_len = 0;
            rig_log();
        }
    }
    T_EQ_U64(f.order, 0xfffe);
    rt_post_send(0, 1);
    rig_expect_nothing();
    answer_read(first);
    f = rt_hear();
    T_EQ_U64(f.order, 0);
    T_EQ_U64(f.number, first + 0xffff);
    rig_stop();
}

/* From 2^32 - 1 to 0. */
static void wrap(void)
{
    struct rt_fields f;

    rt_start(EMSS);
    rt_passive();
    rig->c->rt->tx.next = UINT32_MAX;
    rt_post_send(0, 1);
    rt_post_send(0, 1);
    f = rt_hear();
    T_SHOWS("WIL-06") {
        T_EQ_U64(f.number, UINT32_MAX);
    }
    f = rt_hear();
    T_SHOWS("WIL-06") {
        T_EQ_U64(f.number, 0);
    }
    rig_stop();
}

static const struct t_case cases[] = {
    { "Sends of every length", sends },
    { "solicited event", solicited },
    { "Writes", writes },
    { "EMSS of every residue, and a tiny one", emss },
    { "Read Requests", reads },
    { "Read Responses between the segments of a Send", responses },
    { "order", order },
    { "order has a limit", order_limit },
    { "numbers wrap", wrap },
};

T_MAIN(cases)
