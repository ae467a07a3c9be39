/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bring-up tests: a driver (bring_up.h) on two machines, from reset to an error and teardown.
 *
 * Nothing here knows how the driver works; what it does wrong shows as data that is not there, as
 * memory that was not given back or was touched afterwards, or as a guest error of its adapter.
 */
#include "bring_up_rig.h"
#include "staghorn/regs.h"

/* ---- the adapter ---- */

static void from_reset_to_ready(void)
{
    struct bu_caps caps;
    uint64_t errors;

    start_both();
    for (int i = 0; i < 2; i++) {
        T_TRUE(ends[i].s->resets >= 1);
        T_TRUE(ends[i].s->tests >= 3); /* registers, DMA, interrupt */
        T_TRUE(sg_adapter_reg_read(ends[i].s->a, SG_REG_STATUS, 4) & SG_STATUS_READY);
        drv->caps(ends[i].d, &caps);
        T_EQ_U64(caps.max_qp, 1000 + i);
        T_EQ_U64(caps.max_qp_wr, 3000);
        T_EQ_U64(caps.max_inline, 100);
        T_EQ_U64(caps.max_mr_size, 1ull << 40);
        T_TRUE(caps.features & SG_FEATURE_MPA_V2);
        T_EQ_U64(caps.vectors, 4);
        T_EQ_U64(caps.mac[0], 0x52);
        T_EQ_U64(caps.mac[5], i + 1);
        T_EQ_U64(caps.guid, 0x525400fffe534701 + i);
        T_TRUE(!drv->lost(ends[i].d));
        OK(drv->guest_errors(ends[i].d, &errors));
        T_EQ_U64(errors, 0);
    }
    stop_both();
}

/* The driver gives up in bounded time, and starts when the fault is gone. */
static void refuses_what_does_not_work(void)
{
    struct bu_side *s;
    uint64_t then;

    begin_machines();
    s = ends[0].s;
    for (int fault = 0; fault < 6; fault++) {
        T_CONTEXT("fault %d", fault);
        s->magic_xor = fault == 0 ? 0x01000000 : 0;
        s->version_xor = fault == 1 ? 0x00030000 : 0;
        s->scratch_xor = fault == 2 ? 0x00000400 : 0;
        s->no_dma = fault == 3;
        s->no_irq = fault == 4;
        s->removed = fault == 5;
        then = world.side[0].h.now_ns;
        T_EQ_INT(drv->start(ends[0].d, &s->m), BU_LOST);
        T_TRUE(world.side[0].h.now_ns - then < 60000000000ull);
        T_TRUE(bu_world_clean(&world));
    }
    s->removed = false;
    OK(drv->start(ends[0].d, &s->m));
    OK(drv->start(ends[1].d, &ends[1].s->m));
    expected_errors = 0;
    stop_both();
}

/* A newer minor version does not matter to the driver. */
static void accepts_a_newer_minor_version(void)
{
    begin_machines();
    ends[0].s->version_xor = 0x0007;
    OK(drv->start(ends[0].d, &ends[0].s->m));
    OK(drv->start(ends[1].d, &ends[1].s->m));
    stop_both();
}

/* Several times more commands than the ring has entries, and their statuses. */
static void commands_and_statuses(void)
{
    uint32_t pd[700], stag, other;
    uint64_t bus;
    void *p;

    start_both();
    for (unsigned i = 0; i < 700; i++) {
        OK(drv->pd_create(ends[0].d, &pd[i]));
        T_TRUE(i == 0 || pd[i] != pd[i - 1]);
    }
    for (unsigned i = 1; i < 700; i++) {
        OK(drv->pd_destroy(ends[0].d, pd[i]));
    }
    T_EQ_INT(drv->pd_destroy(ends[0].d, pd[1]), SG_ENOENT);
    p = ends[0].s->m.dma_alloc(&ends[0].s->m, 100000, 8, &bus);
    OK(drv->mr_create(ends[0].d, pd[0], bus + 123, 99000, RIGHTS, &stag));
    OK(drv->mr_create(ends[0].d, pd[0], bus + 123, 1, RIGHTS, &other));
    T_TRUE(stag >> 8 != other >> 8);
    T_EQ_INT(drv->pd_destroy(ends[0].d, pd[0]), SG_EBUSY);
    T_EQ_INT(drv->mr_create(ends[0].d, pd[1], bus, 1000, RIGHTS, &other), SG_ENOENT);
    expected_errors++;
    expected_rules[SG_RULE_ADMIN_GONE] = expected_rules[SG_RULE_ADMIN_BUSY] = true;
    expected_rules[SG_RULE_ADMIN_FIELD] = true;
    T_EQ_INT(drv->mr_create(ends[0].d, pd[0], bus, 1000, 0x8000, &other), SG_EINVAL);
    OK(drv->mr_destroy(ends[0].d, stag));
    OK(drv->mr_destroy(ends[0].d, other));
    T_EQ_INT(drv->mr_destroy(ends[0].d, stag), SG_ENOENT);
    OK(drv->pd_destroy(ends[0].d, pd[0]));
    ends[0].s->m.dma_free(&ends[0].s->m, p);
    stop_both();
}

/* ---- data ---- */

static void write_between_two_adapters(void)
{
    begin_connected();
    fill(&ends[0], 0, 5000, 3);
    send(0, remote(0, SG_WR_WRITE, 7, 100, 4000, 9));
    T_EQ_U64(expect(&ends[0], 7, SG_WC_SUCCESS).opcode, SG_WC_WRITE);
    receive(1, 8, 60000, 100);
    send(0, local(&ends[0], SG_WR_SEND, 9, 0, 10)); /* tells the peer */
    expect(&ends[0], 9, SG_WC_SUCCESS);
    expect(&ends[1], 8, SG_WC_SUCCESS);
    T_EQ_MEM(ends[1].buf + 9, ends[0].buf + 100, 4000);
    end_with_objects();
}

static void sends_both_ways(void)
{
    static const uint32_t sizes[] = { 0, 1, 64, 1000, 4096, 20000 };
    struct bu_wc wc;

    begin_connected();
    for (unsigned i = 0; i < 600; i++) { /* the rings wrap, with each phase twice */
        const uint32_t len = sizes[i % 6];
        const int from = i % 2;

        fill(&ends[from], 0, len, (uint8_t)i);
        receive(!from, 1000 + i, 32768, 20000);
        send(from, local(&ends[from], SG_WR_SEND, i, 0, len));
        T_EQ_U64(expect(&ends[from], i, SG_WC_SUCCESS).opcode, SG_WC_SEND);
        wc = expect(&ends[!from], 1000 + i, SG_WC_SUCCESS);
        T_EQ_U64(wc.opcode, SG_WC_RECV);
        T_TRUE(wc.flags & SG_CQE_RECV);
        T_EQ_U64(wc.byte_len, len);
        T_EQ_MEM(ends[!from].buf + 32768, ends[from].buf, len);
    }
    expect_no_event(&ends[0]);
    end_with_objects();
}

static void reads_and_elements(void)
{
    struct bu_wr wr;
    struct bu_wc wc;
    uint32_t stag;

    begin_connected();
    fill(&ends[0], 0, 40000, 2);
    fill(&ends[1], 0, 30000, 5);
    send(0, remote(0, SG_WR_READ, 1, 100, 30000, 0));
    wc = expect(&ends[0], 1, SG_WC_SUCCESS);
    T_EQ_U64(wc.opcode, SG_WC_READ);
    T_EQ_U64(wc.byte_len, 30000);
    T_EQ_MEM(ends[0].buf + 100, ends[1].buf, 30000);

    wr = remote(0, SG_WR_WRITE, 2, 0, 10, 40000); /* three pieces become one */
    wr.num_sge = 3;
    wr.sge[1] = (struct bu_sge){ ends[0].bus + 500, 600, ends[0].stag };
    wr.sge[2] = (struct bu_sge){ ends[0].bus + 2000, 1, ends[0].stag };
    send(0, wr);
    expect(&ends[0], 2, SG_WC_SUCCESS);
    send(0, remote(0, SG_WR_READ, 3, 50000, 611, 40000)); /* behind the Write */
    expect(&ends[0], 3, SG_WC_SUCCESS);
    T_EQ_MEM(ends[0].buf + 50000, ends[0].buf, 10);
    T_EQ_MEM(ends[0].buf + 50010, ends[0].buf + 500, 600);
    T_EQ_MEM(ends[0].buf + 50610, ends[0].buf + 2000, 1);

    OK(drv->mr_create(ends[0].d, ends[0].pd, ends[0].bus + 4000, 4300, RIGHTS, &stag));
    wr = remote(0, SG_WR_WRITE, 6, 4001, 4299, 33); /* a region that begins anywhere */
    wr.sge[0].lkey = stag;
    send(0, wr);
    expect(&ends[0], 6, SG_WC_SUCCESS);
    send(0, remote(0, SG_WR_READ, 7, 50000, 4299, 33));
    expect(&ends[0], 7, SG_WC_SUCCESS);
    T_EQ_MEM(ends[0].buf + 50000, ends[0].buf + 4001, 4299);
    OK(drv->mr_destroy(ends[0].d, stag));

    receive(1, 5, 60000, 64);
    wr = (struct bu_wr){
        .wr_id = 4,
        .opcode = SG_WR_SEND,
        .payload = "inline octets",
        .flags = SG_WQE_SIGNALED | SG_WQE_INLINE,
        .payload_len = 13,
    };
    send(0, wr);
    expect(&ends[0], 4, SG_WC_SUCCESS);
    T_EQ_U64(expect(&ends[1], 5, SG_WC_SUCCESS).byte_len, 13);
    T_EQ_MEM(ends[1].buf + 60000, "inline octets", 13);
    end_with_objects();
}

/* A full queue takes nothing; one late completion frees all entries before it. */
static void queues_fill_and_drain(void)
{
    struct bu_wr wr;
    struct bu_wc wc;

    begin_connected();
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < ENTRIES; i++) {
            wr = remote(0, SG_WR_WRITE, 100 * round + i, i, 1, i);
            wr.flags = i == ENTRIES - 1 ? SG_WQE_SIGNALED : 0;
            send(0, wr);
        }
        T_EQ_INT(drv->post_send(ends[0].d, ends[0].qp, &wr), BU_FULL);
        expect(&ends[0], 100 * round + ENTRIES - 1, SG_WC_SUCCESS);
        for (unsigned i = 0; i < ENTRIES; i++) {
            receive(1, 100 * round + i, 1000, 16);
        }
        wr = local(&ends[1], 0, 0, 0, 1);
        T_EQ_INT(drv->post_recv(ends[1].d, ends[1].qp, &wr), BU_FULL);
        for (unsigned i = 0; i < ENTRIES; i++) {
            send(0, local(&ends[0], SG_WR_SEND, i, 0, 16));
        }
        for (unsigned i = 0; i < ENTRIES; i++) {
            expect(&ends[0], i, SG_WC_SUCCESS);
            expect(&ends[1], 100 * round + i, SG_WC_SUCCESS);
        }
    }
    T_TRUE(!drv->cq_poll(ends[0].d, ends[0].cq, &wc));
    T_EQ_INT(drv->cq_wait(ends[0].d, ends[0].cq, 50), BU_TIMEOUT);
    end_with_objects();
}

/* Two completion queues of one event queue: an event for the one is not lost on the other. */
static void events_of_two_queues(void)
{
    struct bu_qp_params p = { .entries = 4, .max_sge = 1 };
    uint32_t cq, first;
    struct bu_wc wc;

    start_both();
    for (int i = 0; i < 2; i++) {
        make_objects(&ends[i]);
        OK(drv->qp_destroy(ends[i].d, ends[i].qp));
    }
    OK(drv->cq_create(ends[1].d, 16, &cq));
    p.pd = ends[1].pd;
    p.send_cq = ends[1].cq;
    p.recv_cq = cq;
    OK(drv->qp_create(ends[1].d, &p, &ends[1].qp));
    p = (struct bu_qp_params){
        .pd = ends[0].pd,
        .send_cq = ends[0].cq,
        .recv_cq = ends[0].cq,
        .entries = 4,
        .max_sge = 1,
    };
    OK(drv->qp_create(ends[0].d, &p, &ends[0].qp));
    OK(drv->listen(ends[1].d, &ends[1].at, 4, &listener));
    connect_both();

    first = ends[1].cq;
    for (unsigned i = 0; i < 200; i++) { /* event queues wrap, too */
        receive(1, i, 0, 8);
        T_EQ_INT(drv->cq_wait(ends[1].d, cq, 0), BU_TIMEOUT); /* armed from here on */
        send(0, local(&ends[0], SG_WR_SEND, i, 0, 8));
        expect(&ends[0], i, SG_WC_SUCCESS);
        T_EQ_INT(drv->cq_wait(ends[1].d, first, 10), BU_TIMEOUT); /* another queue's event */
        OK(drv->cq_wait(ends[1].d, cq, WAIT_MS));
        T_TRUE(drv->cq_poll(ends[1].d, cq, &wc));
        T_EQ_U64(wc.wr_id, i);
    }
    OK(drv->qp_destroy(ends[1].d, ends[1].qp));
    OK(drv->cq_destroy(ends[1].d, cq));
    p = (struct bu_qp_params){
        .pd = ends[1].pd,
        .send_cq = first,
        .recv_cq = first,
        .entries = 4,
        .max_sge = 1,
    };
    OK(drv->qp_create(ends[1].d, &p, &ends[1].qp));
    end_with_objects();
}

/* ---- errors and ends ---- */

static void local_error_flushes(void)
{
    struct bu_wr wr;

    begin_connected();
    receive(0, 50, 0, 100);
    wr = local(&ends[0], SG_WR_SEND, 1, 0, 10);
    wr.sge[0].lkey ^= 0x100;
    send(0, wr);
    send(0, local(&ends[0], SG_WR_SEND, 2, 0, 10));
    expected_errors++; /* the faulty entry */
    expected_rules[SG_RULE_ENTRY_ACCESS] = true;
    expect(&ends[0], 1, SG_WC_LOC_PROT_ERR);
    expect(&ends[0], 2, SG_WC_FLUSH_ERR);
    expect(&ends[0], 50, SG_WC_FLUSH_ERR);
    send(0, local(&ends[0], SG_WR_SEND, 3, 0, 10)); /* posted later: flushed, too */
    expect(&ends[0], 3, SG_WC_FLUSH_ERR);
    expect_event(&ends[0], SG_EV_CM_DISCONNECT);
    expect_event(&ends[0], SG_EV_CM_CLOSED);
    renew_qps();
    while (drv->next_event(ends[1].d, &(struct bu_event){ 0 }, 10) == BU_OK) {
    }
    connect_both(); /* the adapters still work */
    send(0, remote(0, SG_WR_WRITE, 4, 0, 10, 0));
    expect(&ends[0], 4, SG_WC_SUCCESS);
    end_with_objects();
}

static void remote_error_names_the_request(void)
{
    struct bu_wr wr;
    struct bu_wc wc;
    struct bu_event ev;
    uint32_t state;

    begin_connected();
    wr = remote(0, SG_WR_READ, 1, 0, 100, BUF - 50); /* beyond the peer's region */
    send(0, wr);
    wc = expect(&ends[0], 1, SG_WC_REM_ACCESS_ERR);
    T_TRUE(wc.vendor_err != 0);
    ev = expect_event(&ends[1], SG_EV_QP_ACCESS_ERR);
    T_EQ_U64(ev.id, ends[1].qp);
    ev = expect_event(&ends[0], SG_EV_CM_DISCONNECT);
    T_EQ_U64(ev.status, SG_CM_TERMINATED);
    expect_event(&ends[0], SG_EV_CM_CLOSED);
    OK(drv->qp_state(ends[0].d, ends[0].qp, &state));
    T_EQ_U64(state, SG_QP_ERROR);
    end_with_objects();
}

static void graceful_end(void)
{
    struct bu_event ev;
    uint32_t state;

    begin_connected();
    receive(1, 1, 0, 1000);
    receive(1, 2, 0, 1000);
    send(0, local(&ends[0], SG_WR_SEND, 3, 0, 1000));
    OK(drv->qp_modify(ends[0].d, ends[0].qp, SG_QP_CLOSING));
    expect(&ends[0], 3, SG_WC_SUCCESS); /* what was posted before still goes out */
    expect(&ends[1], 1, SG_WC_SUCCESS);
    expect(&ends[1], 2, SG_WC_FLUSH_ERR);
    ev = expect_event(&ends[1], SG_EV_CM_DISCONNECT);
    T_EQ_U64(ev.status, SG_CM_CLOSED);
    T_EQ_U64(ev.id, ends[1].qp);
    expect_event(&ends[1], SG_EV_CM_CLOSED);
    OK(drv->qp_state(ends[1].d, ends[1].qp, &state));
    T_EQ_U64(state, SG_QP_ERROR);
    OK(drv->qp_modify(ends[1].d, ends[1].qp, SG_QP_IDLE));
    OK(drv->qp_state(ends[1].d, ends[1].qp, &state));
    T_EQ_U64(state, SG_QP_IDLE);
    T_EQ_INT(drv->qp_modify(ends[1].d, ends[1].qp, SG_QP_CLOSING), SG_ESTATE);
    end_with_objects();
}

static void refused_and_rejected(void)
{
    const struct bu_pdata no = text("not today");
    struct bu_pdata got;
    struct bu_event ev;
    struct bu_addr nobody;

    start_both();
    make_objects(&ends[0]);
    make_objects(&ends[1]);
    OK(drv->listen(ends[1].d, &ends[1].at, 4, &listener));
    nobody = ends[1].at;
    nobody.port++;
    OK(drv->connect(ends[0].d, ends[0].qp, &ends[0].at, &nobody, NULL, &ends[0].conn));
    ev = expect_event(&ends[0], SG_EV_CM_REPLY);
    T_EQ_U64(ev.status, SG_CM_REFUSED);
    for (unsigned i = 0; i < 100; i++) { /* the async queue wraps */
        OK(drv->connect(ends[0].d, ends[0].qp, &ends[0].at, &ends[1].at, NULL, &ends[0].conn));
        ev = expect_event(&ends[1], SG_EV_CM_REQUEST);
        OK(drv->reject(ends[1].d, ev.conn, &no));
        ev = expect_event(&ends[0], SG_EV_CM_REPLY);
        T_EQ_U64(ev.status, SG_CM_REJECTED);
        OK(drv->pdata(ends[0].d, ev.conn, &got));
        T_EQ_U64(got.len, no.len);
        T_EQ_MEM(got.octets, no.octets, no.len);
    }
    connect_both();
    end_with_objects();
}

static void addresses_in_the_right_order(void)
{
    const struct bu_addr third = { .ip = { 10, 0, 0, 3 }, .port = 0x1234 };
    struct bu_event ev;

    start_both();
    make_objects(&ends[0]);
    bu_world_listen(&world, third.port);
    OK(drv->connect(ends[0].d, ends[0].qp, &ends[0].at, &third, NULL, &ends[0].conn));
    ev = expect_event(&ends[0], SG_EV_CM_REPLY);
    T_TRUE(ev.status != SG_CM_OK);
    T_EQ_U64(world.visitors, 1);
    ends[0].s->m.dma_free(&ends[0].s->m, ends[0].buf);
    destroy_objects(&ends[0]);
    stop_both();
}

/* ---- an adapter that is lost ---- */

enum loss { FATAL, RESET_BY_SOMEBODY, REMOVED, SILENT, LOSSES };

static void lose(struct bu_side *s, enum loss how)
{
    switch (how) {
    case FATAL:
        sg_adapter_break(s->a);
        break;
    case RESET_BY_SOMEBODY:
        sg_adapter_reset(s->a);
        break;
    case REMOVED:
        sg_adapter_reset(s->a); /* its wire is cut, too */
        sg_adapter_finish_reset(s->a);
        s->removed = true;
        break;
    default:
        s->frozen = true;
    }
}

/* The driver notices each loss in time, all calls end, and a new start works. */
static void recovers_from(enum loss how)
{
    struct bu_event ev;
    uint64_t then;
    uint32_t pd;

    begin_connected();
    receive(0, 1, 0, 100);
    lose(ends[0].s, how);
    then = world.side[0].h.now_ns;
    if (how != SILENT) {
        T_TRUE(drv->lost(ends[0].d)); /* its registers show it */
    }
    if (how == FATAL) {
        if (drv->next_event(ends[0].d, &ev, WAIT_MS) == BU_OK) {
            T_EQ_U64(ev.event, SG_EV_DEVICE_FATAL);
        }
        T_EQ_INT(drv->next_event(ends[0].d, &ev, WAIT_MS), BU_LOST);
    }
    T_EQ_INT(drv->pd_create(ends[0].d, &pd), BU_LOST);
    T_TRUE(world.side[0].h.now_ns - then < 40000000000ull);
    T_TRUE(drv->lost(ends[0].d));
    then = world.side[0].h.now_ns;
    T_EQ_INT(drv->pd_create(ends[0].d, &pd), BU_LOST); /* at once */
    T_EQ_INT(drv->cq_wait(ends[0].d, ends[0].cq, WAIT_MS), BU_LOST);
    T_TRUE(world.side[0].h.now_ns - then < 10000000ull);
    ends[0].s->m.dma_free(&ends[0].s->m, ends[0].buf);
    ends[0].buf = NULL;
    drv->stop(ends[0].d);
    ends[0].s->frozen = ends[0].s->removed = false;
    world.side[0].h.guest_errors = 0; /* a lost adapter logs accesses that still come */

    OK(drv->start(ends[0].d, &ends[0].s->m));
    OK(drv->set_addr(ends[0].d, ends[0].at.ip, 24));
    make_objects(&ends[0]);
    expect_event(&ends[1], SG_EV_CM_DISCONNECT);
    expect_event(&ends[1], SG_EV_CM_CLOSED);
    OK(drv->qp_modify(ends[1].d, ends[1].qp, SG_QP_IDLE));
    connect_both();
    send(0, remote(0, SG_WR_WRITE, 4, 0, 10, 0));
    expect(&ends[0], 4, SG_WC_SUCCESS);
    end_with_objects();
}

static void recovers_from_failure(void)
{
    recovers_from(FATAL);
}
static void recovers_from_a_foreign_reset(void)
{
    recovers_from(RESET_BY_SOMEBODY);
}
static void recovers_from_removal(void)
{
    recovers_from(REMOVED);
}
static void recovers_from_silence(void)
{
    recovers_from(SILENT);
}

/* stop() without any teardown before: the reset ends all objects. */
static void stops_in_the_middle(void)
{
    begin_connected();
    receive(1, 1, 0, 100);
    send(0, local(&ends[0], SG_WR_SEND, 2, 0, 10));
    for (int i = 0; i < 2; i++) {
        drv->stop(ends[i].d);
        T_TRUE(!(sg_adapter_reg_read(ends[i].s->a, SG_REG_CTRL, 4) & SG_CTRL_ENABLE));
        ends[i].s->m.dma_free(&ends[i].s->m, ends[i].buf);
    }
    bu_world_pass(&world, 1000000000ull);
    T_TRUE(bu_world_clean(&world));
    bu_world_end(&world);
}

static const struct t_case cases[] = {
    { "from reset to ready, with all tests on the way", from_reset_to_ready },
    { "what does not work is refused in finite time", refuses_what_does_not_work },
    { "a newer minor version is accepted", accepts_a_newer_minor_version },
    { "commands, more than the ring holds, and their statuses", commands_and_statuses },
    { "a Write between two adapters", write_between_two_adapters },
    { "Sends of all sizes both ways, all rings go round", sends_both_ways },
    { "Reads, several elements, inline payload", reads_and_elements },
    { "queues fill and drain", queues_fill_and_drain },
    { "events of two completion queues", events_of_two_queues },
    { "a local error flushes the rest", local_error_flushes },
    { "a remote error names the request", remote_error_names_the_request },
    { "a graceful end", graceful_end },
    { "refused, and rejected with private data", refused_and_rejected },
    { "addresses and ports in the right order", addresses_in_the_right_order },
    { "recovers from an adapter that fails", recovers_from_failure },
    { "recovers from a reset by somebody else", recovers_from_a_foreign_reset },
    { "recovers from surprise removal", recovers_from_removal },
    { "recovers from a command without an answer", recovers_from_silence },
    { "stops in the middle of everything", stops_in_the_middle },
};

T_MAIN(cases)
