/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Incoming segments of RDMA/TCP of 2000: framing, placement, sequence, order, faults. */
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
                               .control = { (uint32_t)(to >> 32) },
                               .length = length,
                               .p = p,
                               .n = n };
}

static struct rt_fields send_seg(uint32_t number, uint8_t flags, uint32_t offset, const void *p,
                                 uint32_t n)
{
    return (struct rt_fields){ .flags = flags, .number = number, .offset = offset, .p = p, .n = n };
}

static struct rt_fields read_req(uint32_t number, uint32_t to, uint32_t length)
{
    return (struct rt_fields){ .type = RT_READ_REQ,
                               .flags = RT_BE,
                               .number = number,
                               .buffer = RIG_STAG_RW,
                               .offset = to,
                               .length = length };
}

static void say(struct rt_fields f)
{
    rt_say(&f);
}

static void sends(void)
{
    rt_start(1460);
    rt_passive();
    rig->recvs = 4;
    say(send_seg(RT_FIRST + 1, RT_BE, 0, text, 5));
    say(send_seg(RT_FIRST + 2, RT_B, 0, text, 3));
    say(send_seg(RT_FIRST + 2, 0, 3, text + 3, 0));
    say(send_seg(RT_FIRST + 2, RT_E | RT_SE, 3, text + 3, 7));
    say(send_seg(RT_FIRST + 3, RT_BE, 0, NULL, 0));
    T_EQ_STR(rig_log(), "recv(1,5) recv(2,10,se) recv(3,0)");
    T_EQ_MEM(rig->recv_buf, text, 5);
    T_EQ_MEM(rig->recv_buf + RIG_RECV_ROOM, text, 10);
    rig_stop();
}

static void writes(void)
{
    rt_start(1460);
    rt_passive();
    rig->recvs = 1;
    say(write_seg(RT_FIRST + 1, RT_B, 100, 10, text, 4));
    say(write_seg(RT_FIRST + 1, RT_E, 104, 10, text + 4, 6));
    T_SHOWS("WIL-12") { /* nothing in front of it, or behind */
        T_EQ_U64(rig->mem[99], (uint8_t)(99 * 7));
        T_EQ_MEM(rig->mem + 100, text, 10);
        T_EQ_U64(rig->mem[110], (uint8_t)(110 * 7));
    }
    say(write_seg(RT_FIRST + 2, RT_BE, 0, 0, NULL, 0)); /* of nothing: nothing is placed */
    say(send_seg(RT_FIRST + 3, RT_BE, 0, text, 1));
    T_EQ_STR(rig_log(), "placed recv(1,1)");
    rig_stop();
}

/* An address above 2^32 is not that below it; without control data it is. */
static void upper_half(void)
{
    struct rt_fields f = write_seg(RT_FIRST + 1, RT_BE, 100, 4, text, 4);

    rt_start(1460);
    rt_passive();
    f.clen = 0;
    say(f);
    T_EQ_MEM(rig->mem + 100, text, 4);
    say(write_seg(RT_FIRST + 2, RT_BE, 0x100000064, 4, text + 4, 4));
    T_EQ_MEM(rig->mem + 100, text, 4);
    T_EQ_U64(sg_engine_stats(rig->e)->protection_errors, 1);
    T_EQ_STR(rig_log(), "placed faulted(ACCESS) disconnected(PROTOCOL)");
    rig_stop();
}

/* Any division into pieces, with padding of any value. */
static void pieces(void)
{
    static const size_t sizes[] = { 1, 2, 3, 4, 5, 31, 33, 64, 1000 };
    uint8_t out[1000];
    size_t i, n, at;

    for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        struct rt_fields f = write_seg(RT_FIRST + 1, RT_BE, 100, 9, text, 9);

        T_CONTEXT("pieces of %zu octets", sizes[i]);
        rt_start(1460);
        rt_passive();
        rig->recvs = 3;
        f.pad = 0x5a;
        n = rt_build(&f, out);
        f = send_seg(RT_FIRST + 2, RT_BE, 0, text, 17);
        f.pad = 0xff;
        n += rt_build(&f, out + n);
        f = send_seg(RT_FIRST + 3, RT_BE, 0, text, 36);
        n += rt_build(&f, out + n);
        for (at = 0; at < n; at += sizes[i]) {
            rig_say_octets(out + at, SG_MIN(sizes[i], n - at));
        }
        T_SHOWS("WIL-20 WIL-21 WIL-16") {
            T_EQ_STR(rig_log(), "placed recv(1,17) recv(2,36)");
        }
        T_EQ_MEM(rig->mem + 100, text, 9);
        T_EQ_U64(sg_engine_stats(rig->e)->rx_fpdus, 3);
        rig_stop();
    }
}

static void largest_segment(void)
{
    static uint8_t much[65535 - 36];
    size_t i;

    for (i = 0; i < sizeof(much); i++) {
        much[i] = (uint8_t)(i * 3 + (i >> 8));
    }
    rt_start(65535);
    rt_passive();
    say(write_seg(RT_FIRST + 1, RT_BE, 1000, sizeof(much), much, sizeof(much)));
    T_EQ_STR(rig_log(), "placed");
    T_EQ_MEM(rig->mem + 1000, much, sizeof(much));
    rig_stop();
}

static void response(uint32_t number, uint8_t flags, uint32_t offset, const char *p, uint32_t n)
{
    rt_say(&(struct rt_fields){ .type = RT_READ_RESP,
                                .flags = flags,
                                .number = number,
                                .order = 0xffff,
                                .offset = offset,
                                .p = p,
                                .n = n });
}

/* Responses to our Reads, between the segments of a Send of the peer. */
static void responses(void)
{
    uint32_t first;

    rt_start(1460);
    rt_passive();
    rig->recvs = 1;
    first = rt_peer.first + 1;
    rt_post_read(10, 0, 500);
    rt_post_read(0, 0, 0);
    rt_post_read(3, 0, 600);
    say(send_seg(RT_FIRST + 1, RT_B, 0, text, 2));
    response(first, RT_B, 0, text, 4);
    say(send_seg(RT_FIRST + 1, 0, 2, text + 2, 2));
    response(first, RT_E, 4, text + 4, 6);
    T_SHOWS("WIL-19") {
        T_EQ_STR(rig_log(), "read_done(10)");
        T_EQ_MEM(rig->mem + 500, text, 10);
    }
    response(first + 1, RT_BE, 0, NULL, 0);
    say(send_seg(RT_FIRST + 1, RT_E, 4, text + 4, 2));
    response(first + 2, RT_BE, 0, "xyz", 3);
    T_EQ_STR(rig_log(), "read_done(0) recv(1,6) read_done(3)");
    T_EQ_MEM(rig->mem + 600, "xyz", 3);
    rig_stop();
}

static void reads(void)
{
    struct rt_fields f;

    rt_start(1460);
    rt_passive();
    say(read_req(RT_FIRST + 1, 300, 40));
    say(read_req(RT_FIRST + 2, 0, 0));
    f = rt_hear();
    T_EQ_U64(f.number, RT_FIRST + 1);
    T_EQ_U64(f.n, 40);
    T_EQ_MEM(f.p, rig->mem + 300, 40);
    f = rt_hear();
    T_EQ_U64(f.number, RT_FIRST + 2);
    T_EQ_U64(f.flags, RT_BE);
    T_EQ_U64(f.n, 0);
    rig_expect_nothing();
    rig_stop();
}

/* ---- order ---- */

/*
 * A Read that cannot be answered yet, because our stream takes nothing; a Write to what it reads
 * waits if its order says so.
 */
static void ordered_write(uint16_t order, bool waits)
{
    struct rt_fields w = write_seg(RT_FIRST + 2, RT_BE, 300, 4, text, 4), f;

    rt_start(1460);
    rt_passive();
    rig->recvs = 1;
    w.order = order;
    rig->c->tx.blocked = true;
    say(read_req(RT_FIRST + 1, 300, 4));
    say(w);
    T_EQ_INT(memcmp(rig->mem + 300, text, 4) != 0, waits);
    say(send_seg(RT_FIRST + 3, RT_BE, 0, text, 3)); /* with order 0 */
    T_EQ_STR(rig_log(), waits ? "" : "placed");
    rig->c->tx.blocked = false;
    rig->c->stream->events->writable(rig->c->stream);
    rig_settle();
    f = rt_hear();
    T_EQ_U64(f.number, RT_FIRST + 1);
    if (waits) {
        uint8_t old[4];
        size_t i;

        for (i = 0; i < 4; i++) {
            old[i] = (uint8_t)((300 + i) * 7 + ((300 + i) >> 8));
        }
        T_EQ_MEM(f.p, old, 4); /* the Read has read what was there before the Write */
    } else {
        T_EQ_MEM(f.p, text, 4);
    }
    T_EQ_STR(rig_log(), waits ? "placed recv(1,3)" : "recv(1,3)");
    T_EQ_MEM(rig->mem + 300, text, 4);
    rig_stop();
}

static void order(void)
{
    T_SHOWS("WIL-09") {
        ordered_write(0, true);
        ordered_write(1, false);
        ordered_write(0xfffe, false);
    }
    T_SHOWS("WIL-10") {
        ordered_write(0xffff, false);
    }
}

/* The example of section 3.4: message 97 with order 5 waits for message 91. */
static void order_example(void)
{
    uint32_t number = RT_FIRST, i;
    unsigned read_at;

    for (read_at = 90; read_at < 97; read_at++) {
        T_CONTEXT("message %u is an unanswered Read", read_at);
        rt_start(1460);
        rt_passive();
        rig->recvs = 100;
        rig->c->tx.blocked = true;
        for (i = 1; i < 97; i++) {
            struct rt_fields f = send_seg(number + i, RT_BE, 0, NULL, 0);

            f.order = 0xffff;
            say(i == read_at ? read_req(number + i, 0, 4) : f);
        }
        rig_log();
        T_SHOWS("WIL-09") {
            struct rt_fields f = write_seg(number + 97, RT_BE, 300, 4, text, 4);

            f.order = 5;
            say(f);
            T_EQ_STR(rig_log(), read_at <= 91 ? "" : "placed");
        }
        rig_stop();
    }
}

/* ---- faults ---- */

struct rt_fault_row {
    const char *what;
    struct rt_fields before, f;
    enum { FORM, MEMORY, CRC } class;
};

static void run_fault(const struct rt_fault_row *r, bool from_server)
{
    static const char *const words[] = {
        [FORM] = "faulted(FORM) disconnected(PROTOCOL)",
        [MEMORY] = "faulted(ACCESS) disconnected(PROTOCOL)",
        [CRC] = "faulted(CRC) disconnected(PROTOCOL)",
    };
    static uint8_t mem[sizeof(rig->mem)], recv[sizeof(rig->recv_buf)];
    const struct sg_engine_stats *st;

    T_CONTEXT("%s, from the %s", r->what, from_server ? "server" : "client");
    rt_start(1460);
    if (from_server) {
        rt_active();
    } else {
        rt_passive();
    }
    if (r->before.flags) {
        rig->recvs = 1;
        rt_say(&r->before);
    }
    memcpy(mem, rig->mem, sizeof(mem));
    memcpy(recv, rig->recv_buf, sizeof(recv));
    rt_say(&r->f);
    T_EQ_MEM(rig->mem, mem, sizeof(mem)); /* nothing of it was placed */
    T_EQ_MEM(rig->recv_buf, recv, sizeof(recv));
    T_EQ_STR(rig_log(), words[r->class]);
    st = sg_engine_stats(rig->e);
    T_EQ_U64(st->protocol_errors, r->class == FORM);
    T_EQ_U64(st->protection_errors, r->class == MEMORY);
    T_EQ_U64(st->crc_errors, r->class == CRC);
    rig_expect_nothing();
    T_TRUE(rig->peer_fin);
    rt_say(&(struct rt_fields){ .flags = RT_BE, .number = RT_FIRST + 1 }); /* no second fault */
    rig_peer_close();
    T_EQ_STR(rig_log(), "closed(PROTOCOL)");
    rig_stop();
}

static void run_faults(const struct rt_fault_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        run_fault(&rows[i], false);
        run_fault(&rows[i], true);
    }
}

/* A segment that is wrong by itself. */
static void bad_fields(void)
{
    const uint32_t at = RT_FIRST + 1;
    struct rt_fields none = { 0 };
    struct rt_fault_row rows[] = {
        { "CRC", none, { .flags = RT_BE, .number = at, .bad_crc = true }, CRC },
        { "version", none, { .version = 2, .flags = RT_BE, .number = at }, FORM },
        { "Connection ID", none, { .conn_id = 1, .flags = RT_BE, .number = at }, FORM },
        { "number too small", none, send_seg(at - 1, RT_BE, 0, NULL, 0), FORM },
        { "number too large", none, send_seg(at + 1, RT_BE, 0, NULL, 0), FORM },
        { "no beginning", none, send_seg(at, RT_E, 0, NULL, 0), FORM },
        { "Data Offset at the beginning", none, send_seg(at, RT_BE, 1, NULL, 0), FORM },
        { "setup again", none, send_seg(at, RT_BE | RT_SETUP, 0, NULL, 0), FORM },
        { "Segment Length below any header",
          none,
          { .flags = RT_BE, .number = at, .seg_len = 23 },
          FORM },
        { "Segment Length 0xffff",
          none,
          { .flags = RT_BE, .number = at, .seg_len = 0xffff },
          FORM },
        { "Segment Length within a Write's header",
          none,
          { .type = RT_WRITE, .flags = RT_BE, .number = at, .buffer = RIG_STAG_RW, .seg_len = 28 },
          FORM },
        { "control data behind the Segment Length",
          none,
          { .flags = RT_BE, .number = at, .clen = 2, .seg_len = 28 },
          FORM },
        { "control data of a Send", none, { .flags = RT_BE, .number = at, .clen = 1 }, FORM },
        { "control data of a Response",
          none,
          { .type = RT_READ_RESP, .flags = RT_BE, .number = at, .clen = 1 },
          FORM },
        { "two words of control data of a Write",
          none,
          { .type = RT_WRITE, .flags = RT_BE, .number = at, .buffer = RIG_STAG_RW, .clen = 2 },
          FORM },
        { "two words of control data of a Read Request",
          none,
          { .type = RT_READ_REQ, .flags = RT_BE, .number = at, .buffer = RIG_STAG_RW, .clen = 2 },
          FORM },
        { "255 words of control data", none, { .flags = RT_BE, .number = at, .clen = 255 }, FORM },
        { "payload of a Read Request",
          none,
          { .type = RT_READ_REQ,
            .flags = RT_BE,
            .number = at,
            .buffer = RIG_STAG_RW,
            .length = 4,
            .p = text,
            .n = 4 },
          FORM },
    };

    run_faults(rows, SG_ARRAY_SIZE(rows));
}

/* One that does not fit what came before, or what verbs allow. */
static void bad_messages(void)
{
    const uint32_t at = RT_FIRST + 1;
    struct rt_fields none = { 0 };
    struct rt_fault_row rows[] = {
        { "another Buffer ID",
          write_seg(at, RT_B, 0, 9, text, 4),
          { .type = RT_WRITE,
            .flags = RT_E,
            .number = at,
            .buffer = RIG_STAG_WO,
            .offset = 4,
            .length = 9,
            .p = text,
            .n = 5 },
          FORM },
        { "no Receive", none, send_seg(at, RT_BE, 0, text, 1), FORM },
        { "two beginnings", send_seg(at, RT_B, 0, text, 4), send_seg(at, RT_BE, 0, text, 1), FORM },
        { "another Data Offset", send_seg(at, RT_B, 0, text, 4), send_seg(at, RT_E, 5, text, 1),
          FORM },
        { "another message", send_seg(at, RT_B, 0, text, 4), send_seg(at + 1, RT_E, 4, text, 1),
          FORM },
        { "another type", send_seg(at, RT_B, 0, text, 4), write_seg(at, RT_E, 4, 5, text, 1),
          FORM },
        { "Write beyond its length", none, write_seg(at, RT_BE, 0, 4, text, 5), FORM },
        { "Write that ends early", none, write_seg(at, RT_BE, 0, 6, text, 5), FORM },
        { "another length", write_seg(at, RT_B, 0, 9, text, 4), write_seg(at, RT_E, 4, 8, text, 4),
          FORM },
        { "a gap in a Write", write_seg(at, RT_B, 0, 9, text, 4), write_seg(at, 0, 5, 9, text, 4),
          FORM },
        { "another upper half", write_seg(at, RT_B, 0, 9, text, 4),
          write_seg(at, 0, 0x100000004, 9, text, 4), FORM },
        { "bounds", none, write_seg(at, RT_BE, RIG_MEM - 3, 4, text, 4), MEMORY },
        { "wrap", none, write_seg(at, RT_BE, UINT64_MAX - 1, 4, text, 4), MEMORY },
        { "source of a Read", none, read_req(at, RIG_MEM - 3, 4), MEMORY },
        { "Read Request in two", none, { .type = RT_READ_REQ, .flags = RT_B, .number = at }, FORM },
        { "Response to nothing",
          none,
          { .type = RT_READ_RESP, .flags = RT_BE, .number = at },
          FORM },
    };

    run_faults(rows, SG_ARRAY_SIZE(rows));
}

/* Fields that mean nothing may have any value: bits 5:4 of the second octet, octet 18, order. */
static void ignored(void)
{
    struct rt_fields f = send_seg(RT_FIRST + 1, RT_BE | 0x30, 0, text, 3);

    rt_start(1460);
    rt_passive();
    rig->recvs = 2;
    f.reserved = 0xff;
    say(f);
    f = send_seg(RT_FIRST + 2, RT_BE | 0x10, 0, text, 2);
    f.order = 0x1234;
    say(f);
    T_EQ_STR(rig_log(), "recv(1,3) recv(2,2)");
    rig_stop();
}

/* Memory that is not ours, by its STag. */
static void stags(void)
{
    static const uint32_t stags[] = { 0x999, RIG_STAG_ALIEN, RIG_STAG_RO };
    struct rt_fields f = write_seg(RT_FIRST + 1, RT_BE, 0, 4, text, 4);
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(stags); i++) {
        rt_start(1460);
        rt_passive();
        f.buffer = stags[i];
        rt_say(&f);
        T_EQ_STR(rig_log(), "faulted(ACCESS) disconnected(PROTOCOL)");
        T_EQ_U64(sg_engine_stats(rig->e)->protection_errors, 1);
        rig_stop();
    }
}

static void bad_responses(void)
{
    static const struct {
        const char *what;
        uint32_t number;
        uint8_t flags;
        uint32_t offset, n;
    } rows[] = {
        { "of the second Read", 1, RT_BE, 0, 10 },
        { "no beginning", 0, RT_E, 0, 10 },
        { "offset", 0, RT_BE, 1, 10 },
        { "too long", 0, RT_BE, 0, 11 },
        { "too short", 0, RT_BE, 0, 9 },
        { "of no Read", 7, RT_BE, 0, 10 },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].what);
        rt_start(1460);
        rt_passive();
        rt_post_read(10, 0, 500);
        rt_post_read(10, 0, 600);
        response(rt_peer.first + 1 + rows[i].number, rows[i].flags, rows[i].offset, text,
                 rows[i].n);
        T_EQ_STR(rig_log(), "faulted(FORM) disconnected(PROTOCOL)");
        rig_stop();
    }
}

static void too_many_reads(void)
{
    uint32_t i;

    rt_start(1460);
    rt_passive();
    rig->c->tx.blocked = true;
    for (i = 1; i <= 8; i++) {
        say(read_req(RT_FIRST + i, 0, 4));
    }
    T_EQ_STR(rig_log(), "");
    say(read_req(RT_FIRST + 9, 0, 4));
    T_EQ_STR(rig_log(), "faulted(FORM) disconnected(PROTOCOL)");
    rig_stop();
}

static void wrap(void)
{
    struct rt_fields f = { .flags = RT_SETUP | RT_BE,
                           .number = 0xfffffffe,
                           .clen = 2,
                           .control = { 0x01010000, 8 << 16 | 8 } };

    rt_start(1460);
    rig->recvs = 3;
    rig_request(NULL);
    rt_say(&f);
    rig_accept(8, 8, NULL);
    rig_log();
    say(send_seg(0xffffffff, RT_BE, 0, text, 1));
    say(send_seg(0, RT_BE, 0, text, 2));
    T_SHOWS("WIL-06") {
        T_EQ_STR(rig_log(), "recv(1,1) recv(2,2)");
    }
    rig_stop();
}

/* Verbs need time: the same segment comes again, and what is behind it. */
static void later(void)
{
    rt_start(1460);
    rt_passive();
    rig->recvs = 1;
    rig->later = 1;
    say(write_seg(RT_FIRST + 1, RT_BE, 0, 4, text, 4));
    say(send_seg(RT_FIRST + 2, RT_BE, 0, text, 1));
    T_EQ_STR(rig_log(), "");
    sg_conn_resume(rig->c);
    rig_settle();
    T_EQ_STR(rig_log(), "placed recv(1,1)");
    T_EQ_U64(sg_engine_stats(rig->e)->rx_fpdus, 2);
    rig_stop();
}

static void fin_inside(void)
{
    rt_start(1460);
    rt_passive();
    rig_say("010c");
    rig_peer_close();
    T_EQ_STR(rig_log(), "closed(RESET)");
    rig_stop();
}

static const struct t_case cases[] = {
    { "Sends", sends },
    { "Writes", writes },
    { "the upper half of an offset", upper_half },
    { "any division into pieces, any padding", pieces },
    { "the largest segment", largest_segment },
    { "Responses between segments of a Send", responses },
    { "Reads of the peer", reads },
    { "a Write that waits for a Read, or not", order },
    { "the document's example of order", order_example },
    { "fields that are wrong, of either side", bad_fields },
    { "messages that are wrong, of either side", bad_messages },
    { "fields that are ignored", ignored },
    { "STags that are not allowed", stags },
    { "Responses that are wrong", bad_responses },
    { "more Reads than IRD", too_many_reads },
    { "numbers wrap", wrap },
    { "verbs need time", later },
    { "a FIN inside a segment", fin_inside },
};

T_MAIN(cases)
