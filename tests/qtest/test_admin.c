/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The admin queue of the device in QEMU: bring-up, queries, the life of every object, events and
 * interrupts, rings that fill and wrap, invalid doorbells, resets in the middle.
 * test_admin_fields.c has the commands with wrong fields.
 */
#include <glib.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

static void query(struct md *md, enum sg_admin_opcode op, void *out, size_t len)
{
    struct sg_cmd_query c = { .hdr.opcode = op };
    uint64_t at = md->ops->alloc(md->opaque, 4096, 64);

    sg_put_le64(&c.out_addr, at);
    sg_put_le32(&c.out_len, len);
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_OK);
    memcpy(out, md->ops->ptr(md->opaque, at), len);
}

static void nop(void)
{
    struct machine *m = machine_start(1, "", "");
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp rsp;
    struct md md;
    unsigned i;

    driver_start(&md, &m->f[0]);
    /* The rings wrap several times: phase bits and free-running indices. */
    for (i = 0; i < 5 * MD_ADMIN_SIZE; i++) {
        T_CONTEXT("command %u", i);
        T_EQ_U64(md_cmd(&md, &c, sizeof(c), &rsp), SG_OK);
        T_EQ_U64(sg_get_le32(&rsp.id), 0);
    }
    machine_stop(m);
}

static void caps(void)
{
    struct machine *m = machine_start(1,
                                      ",max-qp=77,max-cq=88,max-mr=99,max-pd=11,max-qp-wr=64,"
                                      "max-cqe=128,max-sge=5,max-inline=100,max-ird=7,max-ord=9,"
                                      "max-listeners=3,max-conns=44,max-mr-size=1048576",
                                      "");
    struct sg_caps c;
    struct md md;

    driver_start(&md, &m->f[0]);
    query(&md, SG_ADMIN_QUERY_CAPS, &c, sizeof(c));
    T_EQ_U64(sg_get_le32(&c.version), SG_VERSION);
    T_EQ_U64(sg_get_le32(&c.max_qp), 77);
    T_EQ_U64(sg_get_le32(&c.max_cq), 88);
    T_EQ_U64(sg_get_le32(&c.max_mr), 99);
    T_EQ_U64(sg_get_le32(&c.max_pd), 11);
    T_EQ_U64(sg_get_le32(&c.max_qp_wr), 64);
    T_EQ_U64(sg_get_le32(&c.max_cqe), 128);
    T_EQ_U64(sg_get_le32(&c.max_sq_sge), 5);
    T_EQ_U64(sg_get_le32(&c.max_rq_sge), 5);
    T_EQ_U64(sg_get_le32(&c.max_inline), 100);
    T_EQ_U64(sg_get_le32(&c.max_ird), 7);
    T_EQ_U64(sg_get_le32(&c.max_ord), 9);
    T_EQ_U64(sg_get_le32(&c.max_listeners), 3);
    T_EQ_U64(sg_get_le32(&c.max_conns), 44);
    T_EQ_U64(sg_get_le64(&c.max_mr_size), 1048576);
    T_EQ_U64(sg_get_le32(&c.num_uar), SG_UAR_COUNT);
    T_EQ_U64(sg_get_le32(&c.num_eq), SG_EQ_COUNT);
    T_EQ_U64(sg_get_le32(&c.max_private_data), SG_PRIVATE_DATA_MAX);
    T_TRUE(sg_get_le64(&c.page_size_mask) & SG_PAGE_SIZE);
    T_TRUE(c.fw_version[0] && !c.fw_version[sizeof(c.fw_version) - 1]);
    machine_stop(m);
}

/* The adapter writes no more than the answer's buffer holds. */
static void short_answer(void)
{
    struct machine *m = machine_start(1, "", "");
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };
    uint64_t at = machine_alloc(m, 4096, 4096);
    uint8_t *p = machine_ptr(m, at);
    struct md md;

    driver_start(&md, &m->f[0]);
    memset(p, 0xee, 4096);
    sg_put_le64(&c.out_addr, at);
    sg_put_le32(&c.out_len, 6);
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(sg_get_le32(p), SG_VERSION);
    T_TRUE(p[5] != 0xee);
    T_EQ_U64(p[6], 0xee);
    sg_put_le32(&c.out_len, UINT32_MAX);
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(p[sizeof(struct sg_caps)], 0xee);
    machine_stop(m);
}

static void expect_objects(struct md *md, uint64_t pds, uint64_t mrs, uint64_t cqs, uint64_t qps)
{
    struct sg_stats s;

    query(md, SG_ADMIN_QUERY_STATS, &s, sizeof(s));
    T_EQ_U64(sg_get_le64(&s.pds), pds);
    T_EQ_U64(sg_get_le64(&s.mrs), mrs);
    T_EQ_U64(sg_get_le64(&s.cqs), cqs);
    T_EQ_U64(sg_get_le64(&s.qps), qps);
}

static void life_cycle(void)
{
    struct machine *m = machine_start(1, "", "");
    struct md md;
    struct md_cq cq;
    struct md_qp qp;
    uint32_t pd, stag, fast;
    struct sg_cmd_alloc_mr alloc = { .hdr.opcode = SG_ADMIN_ALLOC_MR, .key = 9 };
    struct sg_admin_rsp rsp;
    unsigned round;

    driver_start(&md, &m->f[0]);
    for (round = 0; round < 3; round++) {
        T_CONTEXT("round %u", round);
        pd = md_create_pd(&md);
        stag = md_reg_mr(&md, pd, machine_alloc(m, 8192, 4096), 8192, SG_ACCESS_LOCAL_WRITE);
        T_TRUE(stag != 0);
        sg_put_le32(&alloc.pd, pd);
        sg_put_le32(&alloc.max_pages, 16);
        T_EQ_U64(md_cmd(&md, &alloc, sizeof(alloc), &rsp), SG_OK);
        fast = sg_get_le32(&rsp.id);
        T_EQ_U64(fast & 0xff, 9);
        md_create_cq(&md, &cq, 16);
        md_create_qp(&md, &qp, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
        expect_objects(&md, 1, 2, 1, 1);
        T_EQ_U64(md_qp_state(&qp), SG_QP_IDLE);

        /* Objects in use cannot be destroyed. */
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_PD, pd), SG_EBUSY);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_CQ, cq.cqn), SG_EBUSY);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_EQ, 1), SG_EBUSY);

        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_QP, qp.qpn), SG_OK);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_QP, qp.qpn), SG_ENOENT);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_CQ, cq.cqn), SG_OK);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_CQ, cq.cqn), SG_ENOENT);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DEREG_MR, stag ^ 1), SG_ENOENT);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DEREG_MR, stag), SG_OK);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DEREG_MR, stag), SG_ENOENT);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DEREG_MR, fast), SG_OK);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_PD, pd), SG_OK);
        T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_PD, pd), SG_ENOENT);
        expect_objects(&md, 0, 0, 0, 0);
    }
    T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_EQ, 1), SG_OK);
    T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_EQ, 1), SG_ENOENT);
    T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_EQ, 0), SG_ENOENT);
    machine_stop(m);
}

/* The configured limits hold, and a failed command leaves nothing behind. */
static void limits(void)
{
    struct machine *m = machine_start(1, ",max-qp=2,max-cq=2,max-mr=2,max-pd=2", "");
    struct md md;
    struct md_cq cq[2];
    struct md_qp qp[2];
    struct sg_admin_hdr create_pd = { .opcode = SG_ADMIN_CREATE_PD };
    struct sg_cmd_reg_mr reg;
    struct sg_cmd_create_cq create_cq;
    struct sg_cmd_create_qp create_qp;
    struct md_qp_params params = { .scq = &cq[0], .rcq = &cq[1] };
    uint64_t buf = machine_alloc(m, 4096, 4096);
    uint32_t pd, i;

    driver_start(&md, &m->f[0]);
    pd = md_create_pd(&md);
    md_create_pd(&md);
    params.pd = pd;
    for (i = 0; i < 2; i++) {
        md_reg_mr(&md, pd, buf, 4096, SG_ACCESS_LOCAL_WRITE);
        md_create_cq(&md, &cq[i], 4);
    }
    for (i = 0; i < 2; i++) {
        md_create_qp(&md, &qp[i], &params);
    }
    reg = md_reg_mr_cmd(pd, buf, 4096, SG_ACCESS_LOCAL_WRITE);
    create_cq = md_create_cq_cmd(&md, 4);
    create_qp = md_create_qp_cmd(&md, &params);
    for (i = 0; i < 3; i++) {
        T_EQ_U64(md_cmd(&md, &create_pd, sizeof(create_pd), NULL), SG_ENOMEM);
        T_EQ_U64(md_cmd(&md, &reg, sizeof(reg), NULL), SG_ENOMEM);
        T_EQ_U64(md_cmd(&md, &create_cq, sizeof(create_cq), NULL), SG_ENOMEM);
        T_EQ_U64(md_cmd(&md, &create_qp, sizeof(create_qp), NULL), SG_ENOMEM);
    }
    expect_objects(&md, 2, 2, 2, 2);
    T_EQ_U64(md_cmd_id(&md, SG_ADMIN_DESTROY_QP, qp[0].qpn), SG_OK);
    T_EQ_U64(md_cmd(&md, &create_qp, sizeof(create_qp), NULL), SG_OK);
    machine_stop(m);
}

static void admin_event(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp rsp;
    struct sg_eqe *e;
    struct md md;

    driver_start(&md, f);
    function_raised(f, 0);
    /* Not armed: no event. */
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    T_FALSE(function_raised(f, 0));
    md_arm_eq(&md, 0);
    md_submit(&md, &c, sizeof(c));
    md_settle(&md);
    T_TRUE(function_raised(f, 0));
    e = machine_ptr(m, md.aeq.base);
    T_EQ_U64(e->event, SG_EV_ADMIN);
    T_EQ_U64(e->phase & 1, 1);
    T_TRUE(md_reap(&md, &rsp));
    /* Once per arming. */
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    T_FALSE(function_raised(f, 0));
    /* Arming with an unread entry raises the interrupt at once. */
    md_arm_eq(&md, 0);
    T_TRUE(function_raised(f, 0));
    machine_stop(m);
}

/* Posts more than the completion ring takes without consuming: the rest waits, nothing is lost. */
static void completion_ring_full(void)
{
    struct machine *m = machine_start(1, "", "");
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp *acq;
    struct md md;
    unsigned i, done = 0;

    driver_start(&md, &m->f[0]);
    acq = machine_ptr(m, md.acq.base);
    for (i = 0; i < MD_ADMIN_SIZE; i++) {
        md_submit(&md, &c, sizeof(c));
    }
    md_settle(&md);
    for (i = 0; i < MD_ADMIN_SIZE - 1; i++) {
        md_submit(&md, &c, sizeof(c));
    }
    md_settle(&md);
    T_EQ_U64(md_read(&md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
    T_TRUE(acq[0].cookie != 0);
    for (i = 0; i < 2 * MD_ADMIN_SIZE - 1; i++) {
        struct sg_admin_rsp rsp;

        T_CONTEXT("completion %u", i);
        T_TRUE(md_reap(&md, &rsp));
        T_EQ_U64(rsp.status, SG_OK);
        done++;
        md_settle(&md);
    }
    T_EQ_U64(done, 2 * MD_ADMIN_SIZE - 1);
    machine_stop(m);
}

static void doorbell_beyond_ring(void)
{
    static const uint32_t ahead[] = { MD_ADMIN_SIZE + 1, 0x80000000, UINT32_MAX };
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    struct sg_eqe e;
    struct md md;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(ahead); i++) {
        T_CONTEXT("%u ahead", ahead[i]);
        driver_start(&md, f);
        function_raised(f, 0);
        md_arm_eq(&md, 0);
        md_write(&md, SG_REG_ADMIN_DB, md.asq.prod + ahead[i]);
        md_settle(&md);
        T_TRUE(md_read(&md, SG_REG_STATUS) & SG_STATUS_FATAL);
        T_EQ_U64(md_read(&md, SG_REG_FATAL), SG_FATAL_ADMIN_INDEX);
        T_TRUE(function_raised(f, 0));
        T_TRUE(md_next_async(&md, &e));
        T_EQ_U64(e.event, SG_EV_DEVICE_FATAL);
    }
    driver_start(&md, f);
    md_create_pd(&md);
    machine_stop(m);
}

/* Impossible consumer indices are ignored and logged. */
static void consumer_indices_that_lie(void)
{
    static const uint32_t wrong[] = { 1, 100, 0x007fffff, 0x7ff00000 };
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    struct md md;
    unsigned i;

    driver_start(&md, f);
    for (i = 0; i < G_N_ELEMENTS(wrong); i++) {
        T_CONTEXT("index + %u", wrong[i]);
        machine_guest_errors(m);
        md_write(&md, SG_REG_ADMIN_CI, md.acq.cons + wrong[i]);
        T_EQ_U64(machine_guest_errors(m), 1);
        md_write(&md, SG_REG_EQ_DB, (md.aeq.cons + wrong[i]) & SG_EQ_DB_CI_MASK);
        T_EQ_U64(machine_guest_errors(m), 1);
        md_write(&md, SG_REG_EQ_DB + 4, (md.eq.cons + wrong[i]) & SG_EQ_DB_CI_MASK);
        T_EQ_U64(machine_guest_errors(m), 1);
    }
    md_write(&md, SG_REG_EQ_DB + 4 * 2, SG_EQ_DB_ARM); /* there is no such queue */
    T_EQ_U64(machine_guest_errors(m), 1);
    md_create_pd(&md);
    machine_stop(m);
}

static void flushed_receive(struct qtest_side *s, uint64_t wr_id)
{
    md_post_recv(&s->qp, wr_id, s->buffer, 64, s->stag);
}

/* Completions, completion events, the vector of event queue 1; armings of both kinds. */
static void completion_events(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    struct qtest_side s;
    struct sg_cqe c;
    struct sg_eqe e;

    side_start(&s, f);
    flushed_receive(&s, 11);
    T_FALSE(md_poll(&s.cq, &c));
    md_arm_eq(&s.md, 1);
    md_arm(&s.cq, false);
    T_FALSE(function_raised(f, 1));
    T_EQ_U64(md_modify_qp(&s.qp, SG_QP_ERROR), SG_OK);
    c = side_completion(&s, 0);
    T_EQ_U64(sg_get_le64(&c.wr_id), 11);
    T_EQ_U64(c.status, SG_WC_FLUSH_ERR);
    T_EQ_U64(c.opcode, SG_WC_RECV);
    T_EQ_U64(sg_get_le32(&c.qpn), s.qp.qpn);
    T_TRUE(c.flags_phase & SG_CQE_RECV);
    T_TRUE(function_raised(f, 1));
    T_TRUE(md_next_event(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_COMPLETION);
    T_EQ_U64(sg_get_le32(&e.id), s.cq.cqn);
    T_FALSE(md_next_event(&s.md, &e));

    /* Not armed: an entry but no event. */
    flushed_receive(&s, 12);
    c = side_completion(&s, 0);
    T_EQ_U64(sg_get_le64(&c.wr_id), 12);
    T_FALSE(md_next_event(&s.md, &e));
    /* Armed for solicited completions: one in error counts. */
    md_arm_eq(&s.md, 1);
    md_arm(&s.cq, true);
    flushed_receive(&s, 13);
    T_TRUE(md_next_event(&s.md, &e));
    T_TRUE(function_raised(f, 1));
    /* Armed while an entry that raised no event is unread. */
    md_arm_eq(&s.md, 1);
    flushed_receive(&s, 14);
    T_FALSE(md_next_event(&s.md, &e));
    md_arm(&s.cq, false);
    T_TRUE(md_next_event(&s.md, &e));
    T_TRUE(function_raised(f, 1));
    /* Armed again: both entries are unread, but had their events. */
    md_arm(&s.cq, false);
    T_FALSE(md_next_event(&s.md, &e));
    machine_stop(m);
}

/* A queue that is not read overruns: an event, its QP in error; everything else continues. */
static void cq_overrun(void)
{
    struct machine *m = machine_start(1, "", "");
    struct qtest_side s;
    struct md_cq small;
    struct md_qp qp;
    struct sg_eqe e;
    struct sg_cqe c;
    unsigned i;

    side_start(&s, &m->f[0]);
    md_create_cq(&s.md, &small, 4);
    md_create_qp(&s.md, &qp,
                 &(struct md_qp_params){
                     .pd = s.pd,
                     .scq = &small,
                     .rcq = &small,
                 });
    for (i = 0; i < 5; i++) {
        md_post_recv(&qp, i, s.buffer, 64, s.stag);
    }
    T_EQ_U64(md_modify_qp(&qp, SG_QP_ERROR), SG_OK);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_CQ_ERROR);
    T_EQ_U64(sg_get_le32(&e.id), small.cqn);
    for (i = 0; i < 4; i++) {
        T_TRUE(md_poll(&small, &c));
        T_EQ_U64(sg_get_le64(&c.wr_id), i);
    }
    T_FALSE(md_poll(&small, &c));
    T_EQ_U64(md_qp_state(&s.qp), SG_QP_IDLE);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_QP, qp.qpn), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_CQ, small.cqn), SG_OK);
    machine_stop(m);
}

/* As many addresses as the header says; removing one makes room again. */
static void port_addresses(void)
{
    struct sg_cmd_set_addr c = {
        .hdr.opcode = SG_ADMIN_SET_ADDR,
        .op = SG_ADDR_CLEAR,
        .prefix_len = 24,
        .addr = { .family = 4, .ip = { 192, 168, 7, 0 } },
    };
    struct machine *m = machine_start(1, "", "");
    struct md md;
    int i;

    driver_start(&md, &m->f[0]);
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    c.op = SG_ADDR_ADD;
    for (i = 1; i <= SG_PORT_ADDR_MAX; i++) {
        T_CONTEXT("address %d", i);
        c.addr.ip[3] = (uint8_t)i;
        T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    }
    c.addr.ip[3] = 200;
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_ENOMEM);
    c.op = SG_ADDR_DEL;
    c.addr.ip[3] = 5;
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    c.op = SG_ADDR_ADD;
    c.addr.ip[3] = 200;
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_OK);
    machine_stop(m);
}

/* Resets with commands posted, receives outstanding and a connection being established. */
static void reset_in_the_middle(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_CREATE_PD };
    struct sg_cmd_connect connect = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(0, 0),
        .remote = driver_addr(7, 4000), /* no such host */
    };
    struct qtest_side s;
    unsigned round, i;

    for (round = 0; round < 6; round++) {
        T_CONTEXT("round %u", round);
        side_start(&s, f);
        sg_put_le32(&connect.qpn, s.qp.qpn);
        T_EQ_U64(md_cmd(&s.md, &connect, sizeof(connect), NULL), SG_OK);
        for (i = 0; i < 10; i++) {
            md_post_recv(&s.qp, i, s.buffer, 64, s.stag);
            md_submit(&s.md, &c, sizeof(c));
        }
        if (round % 3 == 0) {
            function_flr(f);
        } else if (round % 3 == 1) {
            function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
        } else {
            machine_reset(m);
        }
        T_EQ_U64(function_readl(f, SG_REG_STATUS), SG_STATUS_LINK_UP);
        machine_pass(m, 3);
        T_FALSE(function_raised(f, 0));
    }
    machine_stop(m);
}

/* A reset frees every object: nothing accumulates over rounds of bring-up. */
static void reset_leaks_nothing(void)
{
    struct machine *m = machine_start(1,
                                      ",max-qp=1,max-cq=1,max-mr=1,max-pd=1,max-conns=1,"
                                      "max-listeners=1",
                                      "");
    struct sg_cmd_listen listen = { .hdr.opcode = SG_ADMIN_LISTEN, .local = driver_addr(0, 9) };
    struct qtest_side s;
    unsigned i;

    sg_put_le32(&listen.backlog, 1);
    for (i = 0; i < 20; i++) {
        T_CONTEXT("round %u", i);
        side_start(&s, &m->f[0]);
        expect_objects(&s.md, 1, 1, 1, 1);
        T_EQ_U64(md_cmd(&s.md, &listen, sizeof(listen), NULL), SG_OK);
    }
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "admin: NOP, several times round the rings", nop },
    { "admin: QUERY_CAPS tells the properties", caps },
    { "admin: answers stop where the room ends", short_answer },
    { "objects: PD, MR, CQ, QP, EQ live and die; what is in use stays", life_cycle },
    { "objects: limits hold and leave nothing behind", limits },
    { "objects: as many addresses of the port as there may be", port_addresses },
    { "events: ADMIN when armed, once", admin_event },
    { "admin: a full completion ring delays, nothing is lost", completion_ring_full },
    { "admin: a producer index beyond the ring is fatal", doorbell_beyond_ring },
    { "admin: consumer indices that cannot be are ignored", consumer_indices_that_lie },
    { "events: completions, arming, vector 1", completion_events },
    { "events: an overrun CQ fails alone", cq_overrun },
    { "reset: in the middle of things, all kinds", reset_in_the_middle },
    { "reset: leaks nothing", reset_leaks_nothing },
};

T_MAIN(cases)
