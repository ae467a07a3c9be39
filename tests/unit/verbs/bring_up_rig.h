/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig of the bring-up tests: both sides' objects, the connection between them, and what a test
 * posts and expects.  Side 0 connects, side 1 listens.
 */
#ifndef SG_TESTS_BRING_UP_RIG_H
#define SG_TESTS_BRING_UP_RIG_H

#include "bring_up_world.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "tap.h"

enum { PORT = 4000, BUF = 64 * 1024, ENTRIES = 16, WAIT_MS = 1000 };
enum { RIGHTS = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE };

static struct bu_world world;
static const struct bu_driver *const drv = &bu_driver;

/* One side's objects. */
static struct bring_up_end {
    void *d;
    struct bu_side *s;
    struct bu_addr at;
    uint32_t pd, cq, qp, stag, conn;
    uint8_t *buf;
    uint64_t bus;
} ends[2];

static uint32_t listener;
static unsigned expected_errors;      /* guest errors of both sides that a test wants */
static bool expected_rules[SG_RULES]; /* of the driver checker, if there is one */

#define OK(call) T_EQ_INT(call, BU_OK)

static T_UNUSED void begin_machines(void)
{
    bu_world_begin(&world);
    expected_errors = 0;
    memset(expected_rules, 0, sizeof(expected_rules));
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct bring_up_end){
            .s = &world.side[i],
            .d = world.side[i].d,
            .at = { .ip = { 10, 0, 0, (uint8_t)(i + 1) } },
        };
    }
    ends[1].at.port = PORT;
}

static T_UNUSED void start_both(void)
{
    begin_machines();
    for (int i = 0; i < 2; i++) {
        OK(drv->start(ends[i].d, &ends[i].s->m));
        OK(drv->set_addr(ends[i].d, ends[i].at.ip, 24));
    }
}

/* With SG_TEST_CHECK: a driver is reported for what the test makes it do, and for nothing else. */
static T_UNUSED void check_rules_of(const struct sg_check *c)
{
    uint64_t n, end;

    if (!c) {
        return;
    }
    for (sg_check_range(c, &n, &end); n < end; n++) {
        const struct sg_check_report *r = sg_check_get(c, n);
        const struct sg_rule_info *info = sg_rule_info(r->rule);

        T_CONTEXT("%s: %s", info->name, r->text);
        T_TRUE(info->end == SG_RULE_ADVICE || expected_rules[r->rule]);
    }
}

static T_UNUSED void stop_both(void)
{
    for (int i = 0; i < 2; i++) {
        drv->stop(ends[i].d);
    }
    for (int i = 0; i < 2; i++) {
        check_rules_of(sg_adapter_check(world.side[i].a));
    }
    T_EQ_U64(world.side[0].h.guest_errors + world.side[1].h.guest_errors, expected_errors);
    bu_world_pass(&world, 1000000000ull);
    T_TRUE(bu_world_clean(&world));
    bu_world_end(&world);
}

static T_UNUSED void make_objects(struct bring_up_end *e)
{
    const struct bu_qp_params params = {
        .entries = ENTRIES,
        .max_sge = 4,
        .max_inline = 64,
        .access = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE,
    };
    struct bu_qp_params p = params;

    OK(drv->pd_create(e->d, &e->pd));
    OK(drv->cq_create(e->d, 4 * ENTRIES, &e->cq));
    if (!e->buf) {
        e->buf = e->s->m.dma_alloc(&e->s->m, BUF, 4096, &e->bus);
    }
    OK(drv->mr_create(e->d, e->pd, e->bus, BUF, RIGHTS, &e->stag));
    p.pd = e->pd;
    p.send_cq = p.recv_cq = e->cq;
    OK(drv->qp_create(e->d, &p, &e->qp));
}

static T_UNUSED void destroy_objects(struct bring_up_end *e)
{
    OK(drv->qp_destroy(e->d, e->qp));
    OK(drv->mr_destroy(e->d, e->stag));
    OK(drv->cq_destroy(e->d, e->cq));
    OK(drv->pd_destroy(e->d, e->pd));
}

static T_UNUSED struct bu_event expect_event(struct bring_up_end *e, uint8_t event)
{
    struct bu_event got = { 0 };

    T_CONTEXT("side %d waits for event 0x%02x", (int)(e - ends), event);
    OK(drv->next_event(e->d, &got, WAIT_MS));
    T_EQ_U64(got.event, event);
    return got;
}

static T_UNUSED void expect_no_event(struct bring_up_end *e)
{
    struct bu_event got;

    T_EQ_INT(drv->next_event(e->d, &got, 100), BU_TIMEOUT);
}

static T_UNUSED struct bu_wc take(struct bring_up_end *e)
{
    struct bu_wc wc = { 0 };

    while (!drv->cq_poll(e->d, e->cq, &wc)) {
        OK(drv->cq_wait(e->d, e->cq, WAIT_MS));
    }
    return wc;
}

static T_UNUSED struct bu_wc expect(struct bring_up_end *e, uint64_t wr_id, uint8_t status)
{
    struct bu_wc wc;

    T_CONTEXT("side %d waits for completion %u", (int)(e - ends), (unsigned)wr_id);
    wc = take(e);
    T_EQ_U64(wc.wr_id, wr_id);
    T_EQ_U64(wc.status, status);
    T_EQ_U64(wc.qp, e->qp);
    return wc;
}

static T_UNUSED struct bu_pdata text(const char *words)
{
    struct bu_pdata p = { .len = (unsigned)strlen(words) };

    memcpy(p.octets, words, p.len);
    return p;
}

static T_UNUSED void connect_both(void)
{
    const struct bu_pdata hello = text("hello"), welcome = text("welcome, B speaking");
    struct bu_pdata got;
    struct bu_event ev;

    OK(drv->connect(ends[0].d, ends[0].qp, &ends[0].at, &ends[1].at, &hello, &ends[0].conn));
    ev = expect_event(&ends[1], SG_EV_CM_REQUEST);
    T_EQ_U64(ev.aux, listener);
    ends[1].conn = ev.conn;
    OK(drv->pdata(ends[1].d, ev.conn, &got));
    T_EQ_U64(got.len, hello.len);
    T_EQ_MEM(got.octets, hello.octets, hello.len);
    OK(drv->accept(ends[1].d, ev.conn, ends[1].qp, &welcome));
    ev = expect_event(&ends[0], SG_EV_CM_REPLY);
    T_EQ_U64(ev.status, SG_CM_OK);
    T_EQ_U64(ev.id, ends[0].qp);
    T_EQ_U64(ev.conn, ends[0].conn);
    OK(drv->pdata(ends[0].d, ev.conn, &got));
    T_EQ_U64(got.len, welcome.len);
    T_EQ_MEM(got.octets, welcome.octets, welcome.len);
    ev = expect_event(&ends[1], SG_EV_CM_ESTABLISHED);
    T_EQ_U64(ev.status, SG_CM_OK);
    T_EQ_U64(ev.id, ends[1].qp);
}

static T_UNUSED void begin_connected(void)
{
    start_both();
    make_objects(&ends[0]);
    make_objects(&ends[1]);
    OK(drv->listen(ends[1].d, &ends[1].at, 4, &listener));
    connect_both();
}

static T_UNUSED void end_with_objects(void)
{
    OK(drv->unlisten(ends[1].d, listener));
    for (int i = 0; i < 2; i++) {
        destroy_objects(&ends[i]);
        ends[i].s->m.dma_free(&ends[i].s->m, ends[i].buf);
    }
    stop_both();
}

/* After the end of a connection, each side gets another QP. */
static T_UNUSED void renew_qps(void)
{
    for (int i = 0; i < 2; i++) {
        OK(drv->qp_destroy(ends[i].d, ends[i].qp));
        OK(drv->mr_destroy(ends[i].d, ends[i].stag));
        OK(drv->cq_destroy(ends[i].d, ends[i].cq));
        OK(drv->pd_destroy(ends[i].d, ends[i].pd));
        make_objects(&ends[i]);
    }
}

static T_UNUSED void fill(struct bring_up_end *e, size_t at, size_t len, uint8_t seed)
{
    for (size_t i = 0; i < len; i++) {
        e->buf[at + i] = (uint8_t)(seed + i * 7 + i / 256);
    }
}

static T_UNUSED struct bu_wr local(struct bring_up_end *e, uint8_t opcode, uint64_t wr_id,
                                   uint32_t at, uint32_t len)
{
    return (struct bu_wr){
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = SG_WQE_SIGNALED,
        .num_sge = 1,
        .sge = { { .addr = e->bus + at, .length = len, .lkey = e->stag } },
    };
}

static T_UNUSED struct bu_wr remote(int from, uint8_t opcode, uint64_t wr_id, uint32_t at,
                                    uint32_t len, uint32_t peer_at)
{
    struct bu_wr wr = local(&ends[from], opcode, wr_id, at, len);

    wr.remote_addr = ends[!from].bus + peer_at;
    wr.rkey = ends[!from].stag;
    return wr;
}

static T_UNUSED void send(int from, struct bu_wr wr)
{
    OK(drv->post_send(ends[from].d, ends[from].qp, &wr));
}

static T_UNUSED void receive(int at, uint64_t wr_id, uint32_t where, uint32_t len)
{
    struct bu_wr wr = local(&ends[at], 0, wr_id, where, len);

    OK(drv->post_recv(ends[at].d, ends[at].qp, &wr));
}

#endif
