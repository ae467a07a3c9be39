/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shared Ethernet port: function 0's uplink is the hub where the test listens ("the wire");
 * behind its "a0.eth" is a second hub with a socket of the test, in the place of another NIC model.
 */
#include <fcntl.h>
#include <glib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

enum { FRAME_MAX = 65536 };

static struct machine *m;
static int nic; /* frames to and from the hub behind a0.eth */
static struct {
    uint8_t last[FRAME_MAX];
    size_t len;
    unsigned count;
} wire, behind;

static void on_wire(struct machine *machine, const uint8_t *frame, size_t len)
{
    (void)machine;
    wire.len = SG_MIN(len, sizeof(wire.last));
    memcpy(wire.last, frame, wire.len);
    wire.count++;
}

static void settle(void)
{
    ssize_t n;

    machine_settle(m);
    while ((n = recv(nic, behind.last, sizeof(behind.last), MSG_DONTWAIT)) >= 0) {
        behind.len = n;
        behind.count++;
    }
}

static void forget_frames(void)
{
    settle();
    wire.count = behind.count = 0;
}

static void start(unsigned functions)
{
    char *args;
    int fds[2];

    T_TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    nic = fds[0];
    args = g_strdup_printf(" -netdev dgram,id=behind,local.type=fd,local.str=%d", fds[1]);
    m = machine_start(functions, "", args);
    g_free(args);
    close(fds[1]);
    m->tap = on_wire;
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_add\", \"arguments\": {\"type\": \"hubport\", "
                       "\"id\": \"b0\", \"hubid\": 1, \"netdev\": \"behind\"}}");
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_add\", \"arguments\": {\"type\": \"hubport\", "
                       "\"id\": \"b1\", \"hubid\": 1, \"netdev\": \"a0.eth\"}}");
    forget_frames();
}

static void stop(void)
{
    machine_stop(m);
    close(nic);
}

/* A frame for function 0, or for everybody. */
static size_t make_frame(uint8_t *f, bool broadcast, uint16_t type, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        f[i] = i * 11 + (i >> 8);
    }
    memcpy(f, broadcast ? "\xff\xff\xff\xff\xff\xff" : "\x52\x54\0\0\0\1", 6);
    memcpy(f + 6, "\x52\x54\0\0\0\x77", 6);
    sg_put_be16(f + 12, type);
    return len;
}

static void from_the_wire(void)
{
    static const struct {
        bool broadcast;
        uint16_t type;
        size_t len;
    } rows[] = {
        { true, 0x0800, 60 },  { false, 0x0800, 60 },   { false, 0x86dd, 1514 },
        { true, 0x88cc, 100 }, { false, 0x8100, 1518 }, { false, 0x0800, 9014 },
    };
    uint8_t frame[10000];
    unsigned i;

    start(1);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        size_t len = make_frame(frame, rows[i].broadcast, rows[i].type, rows[i].len);

        T_CONTEXT("type 0x%04x, %zu octets", rows[i].type, len);
        forget_frames();
        machine_wire_send(m, frame, len);
        settle();
        T_EQ_U64(behind.count, 1);
        T_EQ_U64(behind.len, len);
        T_EQ_MEM(behind.last, frame, len);
        T_EQ_U64(wire.count, 0);
    }
    stop();
}

static void from_the_nic(void)
{
    static const size_t sizes[] = { 60, 61, 1514, 9014, 60000 };
    static uint8_t frame[60000];
    unsigned i;

    start(1);
    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        size_t len = make_frame(frame, true, 0x0800, sizes[i]);

        T_CONTEXT("%zu octets", len);
        forget_frames();
        T_EQ_INT(send(nic, frame, len, 0), len);
        settle();
        T_EQ_U64(wire.count, 1);
        T_EQ_U64(wire.len, len);
        T_EQ_MEM(wire.last, frame, len);
        T_EQ_U64(behind.count, 0);
    }
    stop();
}

/* ARP concerns both: the NIC gets it, and the adapter learns from it. */
static void arp_goes_to_both(void)
{
    struct qtest_side a, b;
    unsigned arps = 0;

    start(2);
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    forget_frames();
    sides_connect(&a, &b, 4000);
    settle();
    /* The answer to the adapter's own request; the others were TCP of the adapter. */
    arps += behind.count;
    T_EQ_U64(arps, 1);
    T_EQ_U64(sg_get_be16(behind.last + 12), 0x0806);
    stop();
}

static void connections_stay_with_the_adapter(void)
{
    struct qtest_side a, b;
    struct sg_cqe c;

    start(2);
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&b, &a, 4000); /* function 0 listens */
    forget_frames();
    md_post_send(&b.qp, &(struct md_wr){
                            .opcode = SG_WR_WRITE,
                            .addr = b.buffer,
                            .len = 20000,
                            .lkey = b.stag,
                            .raddr = a.buffer,
                            .rkey = a.stag,
                        });
    c = side_completion(&b, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    settle();
    T_TRUE(wire.count > 2);
    T_EQ_U64(behind.count, 0);
    stop();
}

/* A segment to a TCP port that the adapter does not have is the NIC's. */
static void other_tcp_is_the_nics(void)
{
    uint8_t f[60] = { 0 };
    struct md md;

    start(1);
    driver_start(&md, &m->f[0]);
    driver_set_addr(&md, 0);
    make_frame(f, false, 0x0800, sizeof(f));
    memset(f + 14, 0, sizeof(f) - 14);
    f[14] = 0x45;
    sg_put_be16(f + 16, 40);
    f[22] = 64;
    f[23] = 6;
    memcpy(f + 26, "\x0a\0\0\x09", 4);
    memcpy(f + 30, "\x0a\0\0\x01", 4);
    sg_put_be16(f + 34, 1234);
    sg_put_be16(f + 36, 22);
    f[46] = 0x50;
    f[47] = 2;
    forget_frames();
    machine_wire_send(m, f, sizeof(f));
    settle();
    T_EQ_U64(behind.count, 1);
    T_EQ_MEM(behind.last, f, sizeof(f));
    T_EQ_U64(wire.count, 0); /* the adapter sends no RST */
    stop();
}

/* Many frames of the NIC while nothing reads the wire: they wait, none is lost. */
static void congestion(void)
{
    static uint8_t frame[1514];
    unsigned i, sent = 0, all;

    start(1);
    make_frame(frame, true, 0x0800, sizeof(frame));
    forget_frames();
    for (i = 0; i < 3000; i++) {
        if (send(nic, frame, sizeof(frame), MSG_DONTWAIT) < 0) {
            qtest_readl(m->q, 0);
            continue;
        }
        sent++;
    }
    T_TRUE(sent > 100);
    for (i = 0; i < 200 && wire.count < sent; i++) {
        settle();
    }
    all = wire.count;
    T_EQ_U64(all, sent);
    stop();
}

/* The adapter is removed while another NIC is on its port. */
static void unplug_with_a_nic_behind(void)
{
    struct function *f;
    uint8_t frame[100];

    start(1);
    f = &m->f[0];
    qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
    function_slot_off(f);
    qtest_qmp_event(m->q, "DEVICE_DELETED");
    make_frame(frame, true, 0x0800, sizeof(frame));
    T_EQ_INT(send(nic, frame, sizeof(frame), 0), sizeof(frame));
    machine_wire_send(m, frame, sizeof(frame));
    settle();
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"b1\"}}");
    settle();
    stop();
}

static void backend_goes_first(void)
{
    struct qtest_side s;
    uint8_t frame[100];

    start(1);
    side_start(&s, &m->f[0]);
    make_frame(frame, true, 0x0800, sizeof(frame));
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"b1\"}}");
    machine_wire_send(m, frame, sizeof(frame));
    settle();
    T_EQ_U64(md_qp_state(&s.qp), SG_QP_IDLE);
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"net0\"}}");
    settle();
    T_EQ_U64(md_qp_state(&s.qp), SG_QP_IDLE);
    T_FALSE(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_LINK_UP);
    stop();
}

static const struct t_case cases[] = {
    { "port: frames from the wire reach the NIC behind it unchanged", from_the_wire },
    { "port: frames from the NIC reach the wire unchanged", from_the_nic },
    { "port: ARP goes to both", arp_goes_to_both },
    { "port: the adapter's connections do not reach the NIC", connections_stay_with_the_adapter },
    { "port: TCP that is not the adapter's is the NIC's", other_tcp_is_the_nics },
    { "port: a congested wire loses nothing", congestion },
    { "port: unplug with a NIC behind it", unplug_with_a_nic_behind },
    { "port: the backends go before the adapter", backend_goes_first },
};

T_MAIN(cases)
