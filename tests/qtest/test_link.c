/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two adapters in one QEMU, joined by a hub: connections, data in all directions, every way to
 * close, through TCP/IP.  Virtual time advances only when a test advances it.
 */
#include <glib.h>
#include <linux/pci_regs.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

struct link_pair {
    struct machine *m;
    struct qtest_side a, b;
};

static struct link_pair pair;

static void start(const char *extra)
{
    pair.m = machine_start(2, extra, "");
    side_start(&pair.a, &pair.m->f[0]);
    side_start(&pair.b, &pair.m->f[1]);
}

static void start_connected(const char *extra)
{
    start(extra);
    sides_connect(&pair.a, &pair.b, 4000);
}

static void stop(void)
{
    machine_stop(pair.m);
}

static void fill(struct qtest_side *s, uint64_t offset, size_t len, unsigned seed)
{
    uint8_t *p = side_ptr(s, offset);
    size_t i;

    for (i = 0; i < len; i++) {
        p[i] = seed + i * 7 + (i >> 8);
    }
}

static void post(struct qtest_side *s, uint8_t opcode, uint64_t offset, uint32_t len,
                 const struct qtest_side *peer, uint64_t peer_offset)
{
    md_post_send(&s->qp, &(struct md_wr){
                             .opcode = opcode,
                             .wr_id = 0x1000 + opcode,
                             .addr = s->buffer + offset,
                             .len = len,
                             .lkey = s->stag,
                             .raddr = peer->buffer + peer_offset,
                             .rkey = peer->stag,
                         });
}

static struct sg_cqe expect_completion(struct qtest_side *s, uint8_t opcode, uint8_t status)
{
    struct sg_cqe c = side_completion(s, 200);

    T_EQ_U64(c.status, status);
    T_EQ_U64(c.opcode, opcode);
    T_EQ_U64(sg_get_le32(&c.qpn), s->qp.qpn);
    return c;
}

static void sends(void)
{
    static const uint32_t sizes[] = { 0, 1, 100, 8192, 30000 };
    unsigned i;

    start_connected("");
    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        struct sg_cqe c;

        T_CONTEXT("%u octets", sizes[i]);
        fill(&pair.a, 0, sizes[i], i);
        memset(side_ptr(&pair.b, 0), 0, SIDE_BUFFER);
        md_post_recv(&pair.b.qp, 77 + i, pair.b.buffer, 30000, pair.b.stag);
        post(&pair.a, SG_WR_SEND, 0, sizes[i], &pair.b, 0);
        expect_completion(&pair.a, SG_WC_SEND, SG_WC_SUCCESS);
        c = expect_completion(&pair.b, SG_WC_RECV, SG_WC_SUCCESS);
        T_EQ_U64(sg_get_le64(&c.wr_id), 77 + i);
        T_EQ_U64(sg_get_le32(&c.byte_len), sizes[i]);
        T_EQ_MEM(side_ptr(&pair.b, 0), side_ptr(&pair.a, 0), sizes[i]);
        T_EQ_U64(*side_ptr(&pair.b, sizes[i]), 0);
    }
    stop();
}

static void solicited(void)
{
    struct sg_cqe c;
    struct sg_eqe e;

    start_connected("");
    md_arm_eq(&pair.b.md, 1);
    md_arm(&pair.b.cq, true);
    md_post_recv(&pair.b.qp, 1, pair.b.buffer, 64, pair.b.stag);
    md_post_recv(&pair.b.qp, 2, pair.b.buffer, 64, pair.b.stag);
    post(&pair.a, SG_WR_SEND, 0, 16, &pair.b, 0);
    expect_completion(&pair.b, SG_WC_RECV, SG_WC_SUCCESS);
    T_FALSE(md_next_event(&pair.b.md, &e));
    md_post_send(&pair.a.qp, &(struct md_wr){
                                 .opcode = SG_WR_SEND,
                                 .flags = SG_WQE_SOLICITED,
                                 .addr = pair.a.buffer,
                                 .len = 16,
                                 .lkey = pair.a.stag,
                             });
    c = expect_completion(&pair.b, SG_WC_RECV, SG_WC_SUCCESS);
    T_TRUE(c.flags_phase & SG_CQE_SOLICITED);
    T_TRUE(md_next_event(&pair.b.md, &e));
    T_TRUE(function_raised(pair.b.f, 1));
    stop();
}

static void writes_and_reads(void)
{
    static const uint32_t sizes[] = { 0, 1, 8, 1000, SIDE_BUFFER / 2 };
    unsigned i;

    start_connected("");
    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t half = SIDE_BUFFER / 2;
        struct sg_cqe c;

        T_CONTEXT("%u octets", sizes[i]);
        memset(side_ptr(&pair.b, 0), 0, SIDE_BUFFER);
        fill(&pair.a, 0, sizes[i], 30 + i);
        post(&pair.a, SG_WR_WRITE, 0, sizes[i], &pair.b, half);
        expect_completion(&pair.a, SG_WC_WRITE, SG_WC_SUCCESS);
        machine_pass(pair.m, 2);
        T_EQ_MEM(side_ptr(&pair.b, half), side_ptr(&pair.a, 0), sizes[i]);
        memset(side_ptr(&pair.a, half), 0, half);
        post(&pair.a, SG_WR_READ, half, sizes[i], &pair.b, half);
        c = expect_completion(&pair.a, SG_WC_READ, SG_WC_SUCCESS);
        T_EQ_U64(sg_get_le32(&c.byte_len), sizes[i]);
        T_EQ_MEM(side_ptr(&pair.a, half), side_ptr(&pair.a, 0), sizes[i]);
    }
    /* The target gets no completion. */
    T_FALSE(md_poll(&pair.b.cq, &(struct sg_cqe){ 0 }));
    stop();
}

/* Both send at once, more than any window holds, into small receives. */
static void both_directions(void)
{
    unsigned i, seen[2] = { 0, 0 };
    struct sg_cqe c;

    start_connected(",markers=on");
    for (i = 0; i < 12; i++) {
        md_post_recv(&pair.a.qp, 0, pair.a.buffer, SIDE_BUFFER, pair.a.stag);
        md_post_recv(&pair.b.qp, 0, pair.b.buffer, SIDE_BUFFER, pair.b.stag);
    }
    pair.a.md.hold = pair.b.md.hold = true;
    for (i = 0; i < 12; i++) {
        post(&pair.a, SG_WR_SEND, 0, SIDE_BUFFER, &pair.b, 0);
        post(&pair.b, SG_WR_SEND, 0, SIDE_BUFFER, &pair.a, 0);
    }
    for (i = 0; i < 400 && seen[0] + seen[1] < 48; i++) {
        machine_pass(pair.m, 1);
        while (md_poll(&pair.a.cq, &c)) {
            T_EQ_U64(c.status, SG_WC_SUCCESS);
            seen[0]++;
        }
        while (md_poll(&pair.b.cq, &c)) {
            T_EQ_U64(c.status, SG_WC_SUCCESS);
            seen[1]++;
        }
    }
    T_EQ_U64(seen[0], 24);
    T_EQ_U64(seen[1], 24);
    stop();
}

/* Each side's data of the connection setup reach the other side. */
static void private_data(void)
{
    struct sg_cmd_listen listen = {
        .hdr.opcode = SG_ADMIN_LISTEN,
        .local = driver_addr(1, 4001),
    };
    struct sg_cmd_connect connect = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(0, 0),
        .remote = driver_addr(1, 4001),
    };
    struct sg_cmd_connect reject = { .hdr.opcode = SG_ADMIN_REJECT };
    struct sg_cmd_query get = { .hdr.opcode = SG_ADMIN_CM_DATA };
    struct sg_admin_rsp rsp;
    struct sg_cm_data *data;
    struct sg_eqe e;

    start("");
    fill(&pair.a, 0, 508, 1);
    fill(&pair.b, 0, 300, 2);
    sg_put_le32(&listen.backlog, 1);
    T_EQ_U64(md_cmd(&pair.b.md, &listen, sizeof(listen), NULL), SG_OK);
    sg_put_le32(&connect.qpn, pair.a.qp.qpn);
    sg_put_le64(&connect.pdata_addr, pair.a.buffer);
    sg_put_le16(&connect.pdata_len, 508);
    sg_put_le16(&connect.ird, 5);
    sg_put_le16(&connect.ord, 6);
    T_EQ_U64(md_cmd(&pair.a.md, &connect, sizeof(connect), &rsp), SG_OK);
    e = side_event(&pair.b, SG_EV_CM_REQUEST, 100);

    sg_put_le64(&get.out_addr, pair.b.buffer + 4096);
    sg_put_le32(&get.out_len, sizeof(struct sg_cm_data));
    get.id = e.conn;
    T_EQ_U64(md_cmd(&pair.b.md, &get, sizeof(get), NULL), SG_OK);
    data = (void *)side_ptr(&pair.b, 4096);
    T_EQ_U64(sg_get_le16(&data->pdata_len), 508);
    T_EQ_MEM(data->pdata, side_ptr(&pair.a, 0), 508);
    T_EQ_U64(sg_get_le16(&data->ird), 5);
    T_EQ_U64(sg_get_le16(&data->ord), 6);
    T_EQ_U64(data->mpa_rev, 2);
    T_EQ_U64(data->remote.ip[3], 1);
    T_EQ_U64(sg_get_be16(&data->local.port), 4001);

    reject.conn = e.conn;
    sg_put_le64(&reject.pdata_addr, pair.b.buffer);
    sg_put_le16(&reject.pdata_len, 300);
    T_EQ_U64(md_cmd(&pair.b.md, &reject, sizeof(reject), NULL), SG_OK);
    e = side_event(&pair.a, SG_EV_CM_REPLY, 100);
    T_EQ_U64(e.cm_status, SG_CM_REJECTED);
    sg_put_le64(&get.out_addr, pair.a.buffer + 4096);
    get.id = rsp.id;
    T_EQ_U64(md_cmd(&pair.a.md, &get, sizeof(get), NULL), SG_OK);
    data = (void *)side_ptr(&pair.a, 4096);
    T_EQ_U64(sg_get_le16(&data->pdata_len), 300);
    T_EQ_MEM(data->pdata, side_ptr(&pair.b, 0), 300);
    T_EQ_U64(md_qp_state(&pair.a.qp), SG_QP_IDLE);
    stop();
}

/* No answer: CM_REPLY after the timeout, and the QP can try again. */
static void nobody_there(void)
{
    struct sg_cmd_connect connect = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(0, 0),
        .remote = driver_addr(9, 4000),
    };
    struct sg_eqe e;
    unsigned i;

    start("");
    sg_put_le32(&connect.qpn, pair.a.qp.qpn);
    T_EQ_U64(md_cmd(&pair.a.md, &connect, sizeof(connect), NULL), SG_OK);
    for (i = 0; i < 300 && !md_next_async(&pair.a.md, &e); i++) {
        qtest_clock_step(pair.m->q, 100000000);
        machine_settle(pair.m);
    }
    T_EQ_U64(e.event, SG_EV_CM_REPLY);
    T_TRUE(e.cm_status == SG_CM_TIMEOUT || e.cm_status == SG_CM_UNREACHABLE);
    T_EQ_U64(md_qp_state(&pair.a.qp), SG_QP_IDLE);
    sides_connect(&pair.a, &pair.b, 4000);
    stop();
}

static void graceful_end(void)
{
    struct sg_eqe e;
    struct sg_cqe c;
    unsigned i;

    start_connected("");
    for (i = 0; i < 3; i++) {
        md_post_recv(&pair.b.qp, i, pair.b.buffer, 64, pair.b.stag);
    }
    post(&pair.a, SG_WR_SEND, 0, 64, &pair.b, 0);
    expect_completion(&pair.a, SG_WC_SEND, SG_WC_SUCCESS);
    T_EQ_U64(md_modify_qp(&pair.a.qp, SG_QP_CLOSING), SG_OK);
    e = side_event(&pair.b, SG_EV_CM_DISCONNECT, 200);
    T_EQ_U64(e.cm_status, SG_CM_CLOSED);
    expect_completion(&pair.b, SG_WC_RECV, SG_WC_SUCCESS);
    for (i = 1; i < 3; i++) {
        c = expect_completion(&pair.b, SG_WC_RECV, SG_WC_FLUSH_ERR);
        T_EQ_U64(sg_get_le64(&c.wr_id), i);
    }
    e = side_event(&pair.b, SG_EV_CM_CLOSED, 200);
    T_EQ_U64(e.cm_status, SG_CM_CLOSED);
    side_event(&pair.a, SG_EV_CM_DISCONNECT, 200);
    side_event(&pair.a, SG_EV_CM_CLOSED, 200);
    T_EQ_U64(md_qp_state(&pair.a.qp), SG_QP_ERROR);
    stop();
}

/* A Write outside the peer's rights: Terminate, both QPs in error, events at the right side. */
static void remote_access_error(void)
{
    struct sg_cqe c;
    struct sg_eqe e;

    start_connected("");
    memset(side_ptr(&pair.b, 0), 0x55, 64);
    md_post_recv(&pair.a.qp, 5, pair.a.buffer, 64, pair.a.stag);
    md_post_send(&pair.a.qp, &(struct md_wr){
                                 .opcode = SG_WR_READ,
                                 .wr_id = 9,
                                 .addr = pair.a.buffer,
                                 .len = 64,
                                 .lkey = pair.a.stag,
                                 .raddr = pair.b.buffer,
                                 .rkey = pair.b.stag ^ 1,
                             });
    c = expect_completion(&pair.a, SG_WC_READ, SG_WC_REM_ACCESS_ERR);
    T_TRUE(sg_get_le32(&c.vendor_err) != 0);
    expect_completion(&pair.a, SG_WC_RECV, SG_WC_FLUSH_ERR);
    e = side_event(&pair.b, SG_EV_QP_ACCESS_ERR, 200);
    T_EQ_U64(sg_get_le32(&e.id), pair.b.qp.qpn);
    e = side_event(&pair.b, SG_EV_CM_DISCONNECT, 200);
    T_EQ_U64(e.cm_status, SG_CM_TERMINATED);
    e = side_event(&pair.a, SG_EV_CM_DISCONNECT, 200);
    T_EQ_U64(e.cm_status, SG_CM_TERMINATED);
    side_event(&pair.a, SG_EV_CM_CLOSED, 200);
    side_event(&pair.b, SG_EV_CM_CLOSED, 200);
    T_EQ_U64(md_qp_state(&pair.a.qp), SG_QP_ERROR);
    T_EQ_U64(md_qp_state(&pair.b.qp), SG_QP_ERROR);
    T_EQ_U64(*side_ptr(&pair.b, 0), 0x55);
    stop();
}

/* One side is reset without notice; the other learns of it at once (RST). */
static void reset_of_one(bool flr)
{
    struct sg_eqe e;

    start_connected("");
    md_post_recv(&pair.b.qp, 1, pair.b.buffer, 64, pair.b.stag);
    if (flr) {
        function_flr(pair.a.f);
    } else {
        function_writel(pair.a.f, SG_REG_CTRL, SG_CTRL_RESET);
    }
    e = side_event(&pair.b, SG_EV_CM_DISCONNECT, 200);
    T_EQ_U64(e.cm_status, SG_CM_RESET);
    side_event(&pair.b, SG_EV_CM_CLOSED, 200);
    expect_completion(&pair.b, SG_WC_RECV, SG_WC_FLUSH_ERR);
    /* Both can connect again. */
    side_start(&pair.a, pair.a.f);
    T_EQ_U64(md_modify_qp(&pair.b.qp, SG_QP_IDLE), SG_OK);
    sides_connect(&pair.a, &pair.b, 4002);
    stop();
}

static void flr_of_one(void)
{
    reset_of_one(true);
}

static void register_reset_of_one(void)
{
    reset_of_one(false);
}

/* Sets a property by qom-set.  True: QEMU accepts it. */
static bool set_fatal(bool value)
{
    g_autofree char *answer = qtest_qmp(pair.m->q,
                                        "{\"execute\": \"qom-set\", \"arguments\": "
                                        "{\"path\": \"a0\", \"property\": \"fatal\", "
                                        "\"value\": %s}}",
                                        value ? "true" : "false");

    return strstr(answer, "\"error\"") == NULL;
}

static void expect_fatal(enum sg_fatal reason)
{
    g_autofree char *answer = qtest_qmp(pair.m->q, "{\"execute\": \"qom-get\", \"arguments\": "
                                                   "{\"path\": \"a0\", \"property\": \"fatal\"}}");
    bool fatal = reason != SG_FATAL_NONE;
    uint32_t status = function_readl(pair.a.f, SG_REG_STATUS);

    T_TRUE(strstr(answer, fatal ? "{\"return\": true" : "{\"return\": false"));
    T_EQ_U64(status & SG_STATUS_FATAL, fatal ? SG_STATUS_FATAL : 0);
    T_EQ_U64(function_readl(pair.a.f, SG_REG_FATAL), reason);
}

/* A fault injected through the property: both sides learn of it, and a reset ends it. */
static void fault_by_monitor(void)
{
    struct sg_eqe e;

    start_connected("");
    md_post_recv(&pair.b.qp, 1, pair.b.buffer, 64, pair.b.stag);
    expect_fatal(SG_FATAL_NONE);
    T_FALSE(set_fatal(false));
    expect_fatal(SG_FATAL_NONE);
    T_TRUE(set_fatal(true));
    expect_fatal(SG_FATAL_INJECTED);
    side_event(&pair.a, SG_EV_DEVICE_FATAL, 10);
    e = side_event(&pair.b, SG_EV_CM_DISCONNECT, 200);
    T_EQ_U64(e.cm_status, SG_CM_RESET);
    side_event(&pair.b, SG_EV_CM_CLOSED, 200);
    expect_completion(&pair.b, SG_WC_RECV, SG_WC_FLUSH_ERR);
    T_FALSE(set_fatal(false)); /* only a reset by the driver ends it */
    expect_fatal(SG_FATAL_INJECTED);
    function_writel(pair.a.f, SG_REG_CTRL, SG_CTRL_RESET);
    expect_fatal(SG_FATAL_NONE);
    T_TRUE(set_fatal(true)); /* not enabled: no effect */
    expect_fatal(SG_FATAL_NONE);
    side_start(&pair.a, pair.a.f);
    T_EQ_U64(md_modify_qp(&pair.b.qp, SG_QP_IDLE), SG_OK);
    sides_connect(&pair.a, &pair.b, 4002);
    stop();
}

static void machine_reset_while_connected(void)
{
    start_connected("");
    pair.a.md.hold = true;
    post(&pair.a, SG_WR_WRITE, 0, SIDE_BUFFER, &pair.b, 0);
    machine_reset(pair.m);
    machine_pass(pair.m, 10);
    side_start(&pair.a, &pair.m->f[0]);
    side_start(&pair.b, &pair.m->f[1]);
    sides_connect(&pair.a, &pair.b, 4000);
    stop();
}

/* The cable is pulled in the middle of a transfer and put back: TCP repairs it. */
static void link_down_and_up(void)
{
    unsigned i;
    struct sg_cqe c;

    start_connected("");
    fill(&pair.a, 0, SIDE_BUFFER, 5);
    qtest_qmp_ok(pair.m->q, "{\"execute\": \"set_link\", \"arguments\": "
                            "{\"name\": \"net1\", \"up\": false}}");
    post(&pair.a, SG_WR_WRITE, 0, SIDE_BUFFER, &pair.b, 0);
    machine_pass(pair.m, 20);
    qtest_qmp_ok(pair.m->q, "{\"execute\": \"set_link\", \"arguments\": "
                            "{\"name\": \"net1\", \"up\": true}}");
    for (i = 0; i < 100 && memcmp(side_ptr(&pair.a, 0), side_ptr(&pair.b, 0), SIDE_BUFFER); i++) {
        qtest_clock_step(pair.m->q, 100000000);
        machine_settle(pair.m);
    }
    T_EQ_MEM(side_ptr(&pair.b, 0), side_ptr(&pair.a, 0), SIDE_BUFFER);
    T_TRUE(side_has_completion(&pair.a, &c, 10));
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    stop();
}

static void destroy_in_the_middle(void)
{
    unsigned i;

    start_connected("");
    pair.a.md.hold = true;
    for (i = 0; i < 8; i++) {
        post(&pair.a, SG_WR_WRITE, 0, SIDE_BUFFER, &pair.b, 0);
    }
    pair.a.md.hold = false;
    T_EQ_U64(md_cmd_id(&pair.a.md, SG_ADMIN_DESTROY_QP, pair.a.qp.qpn), SG_OK);
    T_EQ_U64(md_cmd_id(&pair.a.md, SG_ADMIN_DEREG_MR, pair.a.stag), SG_OK);
    side_event(&pair.b, SG_EV_CM_DISCONNECT, 300);
    side_event(&pair.b, SG_EV_CM_CLOSED, 6000);
    T_EQ_U64(md_qp_state(&pair.b.qp), SG_QP_ERROR);
    stop();
}

/* Each policy of the device's properties, the same at both ends: connect, Write, Send. */
static void policies(void)
{
    static const char *const rows[] = { ",mpa-rev=1",
                                        ",mpa-rev=1,markers=on",
                                        ",crc=off",
                                        ",crc=off,markers=on",
                                        ",peer-to-peer=off",
                                        ",rtr-write=off",
                                        ",rtr-read=off",
                                        ",rtr-send=on,rtr-write=off,"
                                        "rtr-read=off",
                                        ",max-ird=4,max-ord=4" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%s", rows[i]);
        start(rows[i]);
        if (strstr(rows[i], "rtr-send=on")) {
            /* The RTR message is a Send and takes a Receive like any other. */
            md_post_recv(&pair.b.qp, 0, pair.b.buffer, 64, pair.b.stag);
            sides_connect(&pair.a, &pair.b, 4000);
            expect_completion(&pair.b, SG_WC_RECV, SG_WC_SUCCESS);
        } else {
            sides_connect(&pair.a, &pair.b, 4000);
        }
        md_post_recv(&pair.b.qp, 1, pair.b.buffer + 8192, 4096, pair.b.stag);
        fill(&pair.a, 0, 4096, i);
        post(&pair.a, SG_WR_WRITE, 0, 4096, &pair.b, 0);
        expect_completion(&pair.a, SG_WC_WRITE, SG_WC_SUCCESS);
        post(&pair.a, SG_WR_SEND, 0, 4096, &pair.b, 0);
        expect_completion(&pair.a, SG_WC_SEND, SG_WC_SUCCESS);
        expect_completion(&pair.b, SG_WC_RECV, SG_WC_SUCCESS);
        T_EQ_MEM(side_ptr(&pair.b, 0), side_ptr(&pair.a, 0), 4096);
        T_EQ_MEM(side_ptr(&pair.b, 8192), side_ptr(&pair.a, 0), 4096);
        stop();
    }
}

/* The guest disables bus mastering under load: at worst a fatal error; the peer notices. */
static void bus_mastering_withdrawn(void)
{
    struct sg_eqe e;
    unsigned i;

    start_connected("");
    md_post_recv(&pair.b.qp, 1, pair.b.buffer, 64, pair.b.stag);
    function_config_writew(pair.b.f, PCI_COMMAND, PCI_COMMAND_MEMORY);
    pair.a.md.hold = true;
    for (i = 0; i < 4; i++) {
        post(&pair.a, SG_WR_WRITE, 0, SIDE_BUFFER, &pair.b, 0);
    }
    function_writel(pair.b.f, SG_REG_ADMIN_DB, pair.b.md.asq.prod + 1);
    machine_pass(pair.m, 20);
    T_TRUE(function_readl(pair.b.f, SG_REG_STATUS) & SG_STATUS_FATAL);
    T_EQ_U64(function_readl(pair.b.f, SG_REG_FATAL), SG_FATAL_DMA);
    /* A Terminate comes first if it could still be sent. */
    for (i = 0; i < 200 && !md_next_async(&pair.a.md, &e); i++) {
        machine_pass(pair.m, 1);
    }
    T_TRUE(i < 200);
    if (e.event == SG_EV_QP_FATAL) {
        e = side_event(&pair.a, SG_EV_CM_DISCONNECT, 200);
    }
    T_EQ_U64(e.event, SG_EV_CM_DISCONNECT);
    T_EQ_U64(md_qp_state(&pair.a.qp), SG_QP_ERROR);
    function_setup(pair.b.f);
    side_start(&pair.a, pair.a.f);
    side_start(&pair.b, pair.b.f);
    sides_connect(&pair.a, &pair.b, 4000);
    stop();
}

static void get_stats(struct qtest_side *s, struct sg_stats *out)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_STATS };

    sg_put_le64(&c.out_addr, s->buffer);
    sg_put_le32(&c.out_len, sizeof(*out));
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    memcpy(out, side_ptr(s, 0), sizeof(*out));
}

/* Connections come and go; nothing is left behind. */
static void many_cycles(void)
{
    struct sg_stats stats;
    unsigned i;

    start("");
    for (i = 0; i < 60; i++) {
        struct qtest_side *closer = i & 1 ? &pair.a : &pair.b;

        T_CONTEXT("cycle %u", i);
        sides_connect(&pair.a, &pair.b, 5000 + i);
        if (i % 3) {
            T_EQ_U64(md_modify_qp(&closer->qp, SG_QP_CLOSING), SG_OK);
        } else {
            T_EQ_U64(md_modify_qp(&closer->qp, SG_QP_ERROR), SG_OK);
        }
        side_event(&pair.a, SG_EV_CM_DISCONNECT, 6000);
        side_event(&pair.a, SG_EV_CM_CLOSED, 6000);
        side_event(&pair.b, SG_EV_CM_DISCONNECT, 6000);
        side_event(&pair.b, SG_EV_CM_CLOSED, 6000);
        T_EQ_U64(md_modify_qp(&pair.a.qp, SG_QP_IDLE), SG_OK);
        T_EQ_U64(md_modify_qp(&pair.b.qp, SG_QP_IDLE), SG_OK);
    }
    get_stats(&pair.a, &stats);
    T_EQ_U64(sg_get_le64(&stats.conns), 0);
    T_EQ_U64(sg_get_le64(&stats.conn_active), 60);
    T_EQ_U64(sg_get_le64(&stats.conn_closed), 60);
    get_stats(&pair.b, &stats);
    T_EQ_U64(sg_get_le64(&stats.conns), 0);
    T_EQ_U64(sg_get_le64(&stats.conn_passive), 60);
    stop();
}

static const struct t_case cases[] = {
    { "Send: sizes from 0 up", sends },
    { "Send with solicited event", solicited },
    { "Write and Read: sizes from 0 up, silent at the target", writes_and_reads },
    { "Sends in both directions at once, with markers", both_directions },
    { "connect: private data, IRD, ORD; rejected", private_data },
    { "connect: nobody there", nobody_there },
    { "end: graceful", graceful_end },
    { "end: remote access error", remote_access_error },
    { "end: FLR of one side", flr_of_one },
    { "end: CTRL.RESET of one side", register_reset_of_one },
    { "end: a fault of one side, injected by qom-set", fault_by_monitor },
    { "end: machine reset", machine_reset_while_connected },
    { "end: QP and MR destroyed in the middle of Writes", destroy_in_the_middle },
    { "end: bus mastering withdrawn", bus_mastering_withdrawn },
    { "policies: MPA revision, CRC, markers, RTR", policies },
    { "link down and up in the middle of a Write", link_down_and_up },
    { "connect and disconnect, 60 times, nothing stays", many_cycles },
};

T_MAIN(cases)
