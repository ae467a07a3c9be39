/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Segments behind a gap on RDMA/TCP of 2000: what is placed, what waits, what is ignored. */
#include "proto/conn.h"
#include "rt_rig.h"
#include "tap.h"

static const char text[] = "abcdefghijklmnopqrstuvwxyz0123456789";

static struct rt_fields write_seg(uint32_t number, uint8_t flags, uint64_t to, uint32_t length,
                                  const void *p, uint32_t n)
{
    return (struct rt_fields){ .type = RT_WRITE,
                               .flags = flags,
                               .number = number,
                               .buffer = RIG_STAG_RW,
                               .offset = (uint32_t)to,
                               .clen = 1,
                               .length = length,
                               .p = p,
                               .n = n };
}

static uint64_t early_count(void)
{
    return sg_engine_stats(rig->e)->rx_early;
}

/* The segments of one Write, the last one first; they are not placed again in their turn. */
static void any_order_in_a_write(void)
{
    struct rt_fields f[3] = {
        write_seg(RT_FIRST + 1, RT_B, 100, 12, text, 4),
        write_seg(RT_FIRST + 1, 0, 104, 12, text + 4, 4),
        write_seg(RT_FIRST + 1, RT_E, 108, 12, text + 8, 4),
    };
    uint8_t out[100];
    uint32_t len;

    rt_start(1460);
    rt_passive();
    len = (uint32_t)rt_build(&f[0], out);
    rt_say_early(&f[2], 2 * len);
    rt_say_early(&f[1], len);
    T_SHOWS("WIL-11") {
        T_EQ_MEM(rig->mem + 104, text + 4, 8);
        T_EQ_U64(early_count(), 2);
    }
    T_EQ_STR(rig_log(), "");  /* nothing is delivered */
    rt_say_early(&f[1], len); /* again: it is known */
    T_EQ_U64(early_count(), 2);
    rt_say(&f[0]);
    rig->mem[104] = 'X'; /* somebody else writes there meanwhile */
    rt_say(&f[1]);
    T_EQ_U64(rig->mem[104], 'X');
    rt_say(&f[2]);
    T_EQ_STR(rig_log(), "placed");
    T_EQ_MEM(rig->mem + 100, "abcdXfghijkl", 12);
    T_EQ_U64(sg_engine_stats(rig->e)->rx_fpdus, 3);
    rig_stop();
}

/* A Write 'ahead' messages in front of what is missing, with that order. */
static bool placed(uint32_t ahead, uint16_t order)
{
    struct rt_fields f = write_seg(RT_FIRST + 1 + ahead, RT_BE, 100, 4, text, 4);
    bool is;

    rt_start(1460);
    rt_passive();
    f.order = order;
    rt_say_early(&f, 4000);
    is = memcmp(rig->mem + 100, text, 4) == 0;
    T_EQ_U64(early_count(), is);
    T_EQ_STR(rig_log(), "");
    rig_stop();
    return is;
}

static void order(void)
{
    T_SHOWS("WIL-09") {
        T_TRUE(placed(0, 0)); /* the one that is missing itself */
        T_FALSE(placed(1, 0));
        T_TRUE(placed(1, 1));
        T_FALSE(placed(6, 5));
        T_TRUE(placed(5, 5));
    }
    T_SHOWS("WIL-10") {
        T_TRUE(placed(6, 0xffff));
        T_TRUE(placed(0xffff, 0xffff));
    }
    T_SHOWS("WIL-22") { /* numbers that are not plausible */
        T_FALSE(placed(0x10000, 0xffff));
        T_FALSE(placed((uint32_t)-1, 0xffff));
    }
}

/* What is no aligned segment beyond doubt. */
static void doubts(void)
{
    struct {
        const char *what;
        struct rt_fields f;
        unsigned cut, shift;
    } rows[] = {
        { .what = "nothing" },
        { .what = "CRC" },
        { .what = "Connection ID" },
        { .what = "version" },
        { .what = "cut short", .cut = 1 },
        { .what = "an octet in front", .shift = 1 },
        { .what = "four octets behind it", .cut = 0 },
    };
    uint8_t out[200];
    size_t i, n;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct rt_fields f = write_seg(RT_FIRST + 1, RT_BE, 100, 4, text, 4);
        struct sg_stream *s;

        T_CONTEXT("%s", rows[i].what);
        rt_start(1460);
        rt_passive();
        s = rig->c->stream;
        f.bad_crc = i == 1;
        f.conn_id = i == 2 ? rt_peer.conn_id ^ 1 : 0;
        f.version = i == 3 ? 2 : 1;
        memset(out, 0, sizeof(out));
        n = rt_build(&f, out + rows[i].shift) + rows[i].shift - rows[i].cut + (i == 6 ? 4 : 0);
        T_EQ_INT(s->events->receive_early(s, 1000, out, n), i == 0);
        T_SHOWS("WIL-22") {
            T_EQ_U64(early_count(), i == 0 || i == 6);
            T_EQ_INT(memcmp(rig->mem + 100, text, 4) == 0, i == 0 || i == 6);
        }
        T_EQ_STR(rig_log(), "");
        T_EQ_U64(sg_engine_stats(rig->e)->protocol_errors, 0);
        T_EQ_U64(sg_engine_stats(rig->e)->crc_errors, 0);
        rig_stop();
    }
}

/* Several segments in one TCP segment. */
static void several(void)
{
    struct rt_fields a = write_seg(RT_FIRST + 2, RT_BE, 100, 5, text, 5);
    struct rt_fields b = write_seg(RT_FIRST + 3, RT_BE, 200, 6, text, 6);
    uint8_t out[200];
    struct sg_stream *s;
    size_t n;

    rt_start(1460);
    rt_passive();
    s = rig->c->stream;
    a.order = b.order = 0xffff;
    n = rt_build(&a, out);
    n += rt_build(&b, out + n);
    T_TRUE(s->events->receive_early(s, 60, out, n));
    T_EQ_U64(early_count(), 2);
    T_EQ_MEM(rig->mem + 100, text, 5);
    T_EQ_MEM(rig->mem + 200, text, 6);
    rig_stop();
}

/* Of the Send under way, but of no later one. */
static void send_under_way(void)
{
    struct rt_fields f = { .flags = RT_B, .number = RT_FIRST + 1, .p = text, .n = 4 };
    struct rt_fields last = {
        .flags = RT_E, .number = RT_FIRST + 1, .offset = 8, .p = text + 8, .n = 4
    };
    struct rt_fields other = {
        .flags = RT_BE, .number = RT_FIRST + 2, .order = 0xffff, .p = "xyz0", .n = 4
    };

    rt_start(1460);
    rt_passive();
    rig->recvs = 2;
    rt_say_early(&last, 64); /* it has not begun */
    T_EQ_U64(early_count(), 0);
    rt_say(&f);
    rt_say_early(&last, 32);
    rt_say_early(&other, 64);
    T_EQ_U64(early_count(), 1);
    T_EQ_MEM(rig->recv_buf + 8, text + 8, 4);
    T_EQ_STR(rig_log(), "");
    f = (struct rt_fields){ .number = RT_FIRST + 1, .offset = 4, .p = text + 4, .n = 4 };
    rt_say(&f);
    rt_say(&last);
    rt_say(&other);
    T_EQ_STR(rig_log(), "recv(1,12) recv(2,4)");
    T_EQ_MEM(rig->recv_buf, text, 12);
    rig_stop();
}

/* Responses to Reads under way; order counts Responses. */
static void responses(void)
{
    struct rt_fields f = { .type = RT_READ_RESP, .flags = RT_BE, .p = text, .n = 10 };

    rt_start(1460);
    rt_passive();
    rt_post_read(10, 0, 500);
    rt_post_read(10, 0, 600);
    f.number = rt_peer.first + 2;
    f.order = 0;
    rt_say_early(&f, 100);
    T_EQ_U64(early_count(), 0);
    f.order = 1;
    rt_say_early(&f, 100);
    T_EQ_U64(early_count(), 1);
    T_EQ_MEM(rig->mem + 600, text, 10);
    T_EQ_STR(rig_log(), "");
    f.number = rt_peer.first + 3;
    f.order = 0xffff;
    rt_say_early(&f, 200); /* of no Read */
    f.number = rt_peer.first + 1;
    f.offset = 1;
    rt_say_early(&f, 200); /* beyond the sink */
    T_EQ_U64(early_count(), 1);
    rig_stop();
}

/* An early access that is not allowed has no effect; in its turn it is a fault. */
static void no_early_faults(void)
{
    struct rt_fields f = write_seg(RT_FIRST + 1, RT_BE, RIG_MEM - 2, 4, text, 4);

    rt_start(1460);
    rt_passive();
    rt_say_early(&f, 0);
    T_EQ_U64(early_count(), 0);
    T_EQ_STR(rig_log(), "");
    rt_say(&f);
    T_EQ_STR(rig_log(), "faulted(ACCESS) disconnected(PROTOCOL)");
    rig_stop();
}

/* In its turn nobody looks at the octets of what was placed early, however they are divided. */
static void dropped_octets(void)
{
    static const size_t pieces[] = { 1, 3, 44, 45, 1000 };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(pieces); i++) {
        struct rt_fields gap = write_seg(RT_FIRST + 1, RT_BE, 50, 4, text, 4);
        struct rt_fields w = write_seg(RT_FIRST + 2, RT_BE, 100, 4, text, 4);
        struct rt_fields begin = { .flags = RT_B, .number = RT_FIRST + 3, .p = text, .n = 4 };
        struct rt_fields end = {
            .flags = RT_E, .number = RT_FIRST + 3, .offset = 4, .p = text + 4, .n = 4
        };

        T_CONTEXT("pieces of %zu", pieces[i]);
        rt_start(1460);
        rt_passive();
        rig->recvs = 1;
        w.order = 0xffff;
        T_TRUE(rt_say_early(&w, 44));
        rt_say(&gap);
        rt_say_dropped(44, pieces[i]);
        T_EQ_STR(rig_log(), "placed placed");
        rt_say(&begin);
        T_TRUE(rt_say_early(&end, 0));
        rt_say_dropped(32, pieces[i]);
        T_EQ_STR(rig_log(), "recv(1,8)");
        T_EQ_MEM(rig->mem + 100, text, 4);
        T_EQ_MEM(rig->recv_buf, text, 8);
        T_EQ_U64(sg_engine_stats(rig->e)->crc_errors, 0);
        rig_stop();
    }
}

/* In its turn the header that was seen is checked as any other. */
static void dropped_out_of_sequence(void)
{
    struct rt_fields gap = write_seg(RT_FIRST + 1, RT_BE, 50, 4, text, 4);
    struct rt_fields w = write_seg(RT_FIRST + 3, RT_BE, 100, 4, text, 4);

    rt_start(1460);
    rt_passive();
    w.order = 0xffff;
    T_TRUE(rt_say_early(&w, 44));
    rt_say(&gap);
    rt_say_dropped(44, 44);
    T_EQ_STR(rig_log(), "placed faulted(FORM) disconnected(PROTOCOL)");
    rig_stop();
}

/* Places that have passed, and the limit. */
static void places(void)
{
    struct rt_fields early = write_seg(RT_FIRST + 1, RT_BE, 100, 4, text, 4);
    unsigned i;

    rt_start(1460);
    rt_passive();
    T_TRUE(rt_say_early(&early, 0));
    rt_say(&early);
    T_EQ_STR(rig_log(), "placed");
    /* The table is bounded; places that have passed are forgotten. */
    for (i = 0; i < 100; i++) {
        early = write_seg(RT_FIRST + 3 + i, RT_BE, 300, 4, text, 4);
        early.order = 0xffff;
        T_EQ_INT(rt_say_early(&early, 44 * (i + 1)), i < 64);
    }
    T_EQ_U64(early_count(), 1 + 64);
    for (i = 0; i < 101; i++) {
        early = write_seg(RT_FIRST + 2 + i, RT_BE, 300, 4, text, 4);
        early.order = i ? 0xffff : 0;
        rt_say(&early);
    }
    early = write_seg(RT_FIRST + 103, RT_BE, 300, 4, text, 4);
    rt_say_early(&early, 0);
    T_EQ_U64(early_count(), 1 + 64 + 1);
    rig_stop();
}

static const struct t_case cases[] = {
    { "the segments of a Write in any order", any_order_in_a_write },
    { "order, and plausible numbers", order },
    { "what is no segment beyond doubt waits", doubts },
    { "several in one TCP segment", several },
    { "the Send under way", send_under_way },
    { "Responses", responses },
    { "no fault is raised early", no_early_faults },
    { "octets that the stream has dropped", dropped_octets },
    { "dropped octets out of sequence", dropped_out_of_sequence },
    { "places that have passed; the limit", places },
};

T_MAIN(cases)
