/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Congestion: the uplink is a stream socket with a small buffer, which the test reads late.  All
 * frames must arrive, whole, and those of one sender in order.  Behind "a0.eth" is a second hub
 * with a socket of the test, in the place of another NIC model.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

enum {
    NIC_FRAMES_MAX = 200,
    NIC_FRAME_LEN = 9000,
    CONNECTS = 6,
    FIRST_HOST = 100, /* 10.0.0.100 and following do not exist */
    ARP_LEN = 42,
};

static struct machine *m;
static int nic, uplink;

static void stream_pair(int *ours, int *theirs)
{
    int fds[2], size = 4096;

    T_TRUE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    T_TRUE(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
    *ours = fds[0];
    *theirs = fds[1];
}

/* Plugs function 0 again, with the stream socket as its uplink. */
static void plug(void)
{
    struct function *f = &m->f[0];

    qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
    function_slot_off(f);
    qtest_qmp_event(m->q, "DEVICE_DELETED");
    qtest_qmp_ok(m->q, "{\"execute\": \"device_add\", \"arguments\": {\"driver\": \"staghorn\", "
                       "\"id\": \"a0\", \"bus\": \"rp0\", \"netdev\": \"up\", "
                       "\"mac\": \"52:54:00:00:00:01\"}}");
    port_config_writew(f, port_find_cap(f, PCI_CAP_ID_EXP) + PCI_EXP_SLTCTL,
                       PCI_EXP_SLTCTL_PWR_IND_ON);
    function_setup(f);
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_add\", \"arguments\": {\"type\": \"hubport\", "
                       "\"id\": \"b1\", \"hubid\": 1, \"netdev\": \"a0.eth\"}}");
}

static void start(void)
{
    int fds[2], stream;
    char *args;

    T_TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    nic = fds[0];
    stream_pair(&uplink, &stream);
    args = g_strdup_printf(" -netdev dgram,id=behind,local.type=fd,local.str=%d"
                           " -netdev hubport,id=b0,hubid=1,netdev=behind"
                           " -netdev stream,id=up,addr.type=fd,addr.str=%d",
                           fds[1], stream);
    m = machine_start(1, "", args);
    g_free(args);
    close(fds[1]);
    close(stream);
    plug();
}

static void stop(void)
{
    machine_stop(m);
    close(nic);
    close(uplink);
}

/* Each call sends an ARP request. */
static void connect_to(struct qtest_side *s, unsigned i)
{
    struct md_qp *qp = g_new0(struct md_qp, 1);
    struct sg_cmd_connect c = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(0, 0),
        .remote = driver_addr(FIRST_HOST + i - 1, 4000),
    };

    md_create_qp(&s->md, qp, &(struct md_qp_params){ .pd = s->pd, .scq = &s->cq, .rcq = &s->cq });
    sg_put_le32(&c.qpn, qp->qpn);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    g_free(qp);
}

/* False: QEMU has stopped reading, because the port accepts no more. */
static bool nic_sends(unsigned i)
{
    static uint8_t frame[NIC_FRAME_LEN];

    memset(frame, (int)i, sizeof(frame));
    memset(frame, 0xff, 6);
    memcpy(frame + 6, "\x52\x54\0\0\0\x77", 6);
    sg_put_be16(frame + 12, 0x88cc);
    if (send(nic, frame, sizeof(frame), MSG_DONTWAIT) < 0) {
        T_EQ_INT(errno, EAGAIN);
        return false;
    }
    machine_settle(m);
    return true;
}

/* Reads n octets, running QEMU's main loop while there are none. */
static void take(uint8_t *p, size_t n)
{
    unsigned idle = 0;
    ssize_t got;

    while (n) {
        got = recv(uplink, p, n, MSG_DONTWAIT);
        if (got > 0) {
            p += got;
            n -= (size_t)got;
            idle = 0;
            continue;
        }
        T_TRUE(got < 0 && errno == EAGAIN);
        if (++idle > 50) {
            T_FAIL("%zu octets do not come", n);
        }
        machine_settle(m);
    }
}

static size_t take_frame(uint8_t *frame, size_t max)
{
    uint8_t len[4];

    take(len, sizeof(len));
    if (sg_get_be32(len) < 14 || sg_get_be32(len) > max) {
        T_FAIL("a frame of %u octets", sg_get_be32(len));
    }
    take(frame, sg_get_be32(len));
    return sg_get_be32(len);
}

static bool all_octets_are(const uint8_t *p, size_t n, uint8_t value)
{
    while (n && *p == value) {
        p++, n--;
    }
    return n == 0;
}

static void in_order_when_congested(void)
{
    static uint8_t frame[NIC_FRAME_LEN];
    unsigned nic_next = 0, nic_frames = 0, arp_next = 0, i;
    struct qtest_side s;

    start();
    side_start(&s, &m->f[0]);
    while (nic_frames < NIC_FRAMES_MAX && nic_sends(nic_frames)) {
        nic_frames++;
    }
    T_TRUE(nic_frames > 2 && nic_frames < NIC_FRAMES_MAX);
    for (i = 0; i < CONNECTS; i++) {
        connect_to(&s, i);
    }
    while (nic_next < nic_frames || arp_next < CONNECTS) {
        size_t len = take_frame(frame, sizeof(frame));

        T_CONTEXT("after %u frames of the NIC and %u of the adapter", nic_next, arp_next);
        if (sg_get_be16(frame + 12) == 0x0806) {
            T_EQ_U64(len, ARP_LEN);
            T_EQ_U64(frame[41], FIRST_HOST + arp_next);
            arp_next++;
        } else {
            T_EQ_U64(len, NIC_FRAME_LEN);
            T_TRUE(all_octets_are(frame + 14, len - 14, (uint8_t)nic_next));
            nic_next++;
        }
    }
    stop();
}

/* Frames that wait for the uplink are dropped with the adapter, before the uplink is read. */
static void unplug_when_congested(void)
{
    static uint8_t rest[NIC_FRAME_LEN];
    struct qtest_side s;
    unsigned i;

    start();
    side_start(&s, &m->f[0]);
    for (i = 0; i < 4; i++) {
        T_TRUE(nic_sends(i));
    }
    for (i = 0; i < CONNECTS; i++) {
        connect_to(&s, i);
    }
    qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
    function_slot_off(&m->f[0]);
    qtest_qmp_event(m->q, "DEVICE_DELETED");
    for (i = 0; i < 10; i++) {
        machine_settle(m);
        if (recv(uplink, rest, sizeof(rest), MSG_DONTWAIT) < 0) {
            T_EQ_INT(errno, EAGAIN);
        }
    }
    stop();
}

/* The uplink is removed first: the link is down, and waiting frames do not block the removal. */
static void uplink_deleted_when_congested(void)
{
    struct qtest_side s;
    unsigned i;

    start();
    side_start(&s, &m->f[0]);
    for (i = 0; i < 4; i++) {
        T_TRUE(nic_sends(i));
    }
    connect_to(&s, 0);
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"up\"}}");
    side_event(&s, SG_EV_PORT_DOWN, 10);
    T_TRUE(!(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_LINK_UP));
    connect_to(&s, 1);
    machine_pass(m, 5);
    qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
    function_slot_off(&m->f[0]);
    qtest_qmp_event(m->q, "DEVICE_DELETED");
    machine_settle(m);
    stop();
}

/* Reads frames until one is an ARP request for the address of a host. */
static void take_until_asked_for(unsigned host)
{
    static uint8_t frame[NIC_FRAME_LEN];

    do {
        take_frame(frame, sizeof(frame));
    } while (sg_get_be16(frame + 12) != 0x0806 || frame[41] != host);
}

/* Both drop all waiting frames, as wholes; later frames are sent. */
static void interrupted_when_congested(void)
{
    static const char *const rows[][2] = {
        { "{\"execute\": \"stop\"}", "{\"execute\": \"cont\"}" },
        { "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"a0\", \"up\": false}}",
          "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"a0\", \"up\": true}}" },
    };
    struct qtest_side s;
    unsigned i, j;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%s", rows[i][0]);
        start();
        side_start(&s, &m->f[0]);
        for (j = 0; j < 4; j++) {
            T_TRUE(nic_sends(j));
        }
        connect_to(&s, 0);
        connect_to(&s, 1);
        qtest_qmp_ok(m->q, "%s", rows[i][0]);
        machine_settle(m);
        qtest_qmp_ok(m->q, "%s", rows[i][1]);
        machine_settle(m);
        connect_to(&s, 2);
        take_until_asked_for(FIRST_HOST + 2);
        connect_to(&s, 3);
        take_until_asked_for(FIRST_HOST + 3);
        stop();
    }
}

static int listen_stream(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    T_TRUE(fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
    T_TRUE(listen(fd, 1) == 0);
    return fd;
}

/* QEMU's next connection; it tries again every few milliseconds of real time. */
static int accept_stream(int listener)
{
    struct pollfd ready = { .fd = listener, .events = POLLIN };

    int fd;

    T_EQ_INT(poll(&ready, 1, 10000), 1);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    qtest_qmp_event(m->q, "NETDEV_STREAM_CONNECTED");
    return fd;
}

/* The other end closes in the middle of a frame; the next connection begins with a whole one. */
static void reconnected_when_congested(void)
{
    static uint8_t frame[NIC_FRAME_LEN];
    char folder[] = "/tmp/sg-uplink-XXXXXX";
    g_autofree char *path = NULL, *args = NULL;
    unsigned sent = 0, i;
    int fds[2], listener;
    struct qtest_side s;

    T_TRUE(g_mkdtemp(folder) != NULL);
    path = g_strdup_printf("%s/up", folder);
    listener = listen_stream(path);
    T_TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    nic = fds[0];
    args = g_strdup_printf(" -netdev dgram,id=behind,local.type=fd,local.str=%d"
                           " -netdev hubport,id=b0,hubid=1,netdev=behind"
                           " -netdev stream,id=up,addr.type=unix,addr.path=%s,reconnect-ms=5",
                           fds[1], path);
    m = machine_start(1, "", args);
    close(fds[1]);
    uplink = accept_stream(listener);
    machine_settle(m);
    plug();
    side_start(&s, &m->f[0]);
    while (sent < NIC_FRAMES_MAX && nic_sends(sent)) {
        sent++;
    }
    T_TRUE(sent > 2 && sent < NIC_FRAMES_MAX);
    for (i = 0; i < 3; i++) {
        close(uplink);
        uplink = accept_stream(listener);
        machine_settle(m);
        connect_to(&s, i);
        do {
            take_frame(frame, sizeof(frame));
        } while (sg_get_be16(frame + 12) != 0x0806 &&
                 all_octets_are(frame + 15, NIC_FRAME_LEN - 15, frame[14]));
        T_EQ_U64(sg_get_be16(frame + 12), 0x0806);
        while (sent < (i + 2) * NIC_FRAMES_MAX && nic_sends(sent)) {
            sent++;
        }
    }
    close(listener);
    unlink(path);
    rmdir(folder);
    stop();
}

/* Frames for a stream to which nobody is connected are dropped, whatever its cable does. */
static void set_link_without_connection(void)
{
    char folder[] = "/tmp/sg-uplink-XXXXXX";
    g_autofree char *path = NULL, *args = NULL;
    struct qtest_side s;
    unsigned i;
    int fds[2];

    T_TRUE(mkdtemp(folder) != NULL);
    path = g_strdup_printf("%s/s", folder);
    T_TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    args = g_strdup_printf(" -netdev dgram,id=behind,local.type=fd,local.str=%d"
                           " -netdev hubport,id=b0,hubid=1,netdev=behind"
                           " -netdev stream,id=up,server=on,addr.type=unix,addr.path=%s",
                           fds[1], path);
    m = machine_start(1, "", args);
    close(fds[0]);
    close(fds[1]);
    plug();
    side_start(&s, &m->f[0]);
    for (i = 0; i < 2; i++) {
        connect_to(&s, i);
        qtest_qmp_ok(m->q, "{\"execute\": \"set_link\", \"arguments\": "
                           "{\"name\": \"up\", \"up\": false}}");
        qtest_qmp_ok(m->q, "{\"execute\": \"set_link\", \"arguments\": "
                           "{\"name\": \"up\", \"up\": true}}");
        machine_settle(m);
    }
    connect_to(&s, i);
    machine_settle(m);
    machine_stop(m);
    unlink(path);
    rmdir(folder);
}

/* A NIC model without a driver accepts no frames, which affects nothing else. */
static void nic_that_takes_nothing(void)
{
    uint8_t frame[1000] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0, 0, 0, 0x77 };
    struct qtest_side a, b;
    unsigned i;

    m = machine_start(2, "", " -device pcie-root-port,id=rpx,chassis=9,slot=9,bus=pcie.0,addr=9.0");
    qtest_qmp_ok(m->q, "{\"execute\": \"device_add\", \"arguments\": {\"driver\": "
                       "\"virtio-net-pci\", \"id\": \"v\", \"bus\": \"rpx\", "
                       "\"netdev\": \"a1.eth\"}}");
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sg_put_be16(frame + 12, 0x88cc);
    for (i = 0; i < 3000; i++) { /* more than may wait, too */
        machine_wire_send(m, frame, sizeof(frame));
        if (i % 8 == 7) {
            machine_settle(m);
        }
    }
    sides_connect(&a, &b, 4000);
    qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a1\"}}");
    function_slot_off(&m->f[1]);
    qtest_qmp_event(m->q, "DEVICE_DELETED");
    machine_settle(m);
    machine_stop(m);
}

static void get_stats(struct qtest_side *s, struct sg_stats *out)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_STATS };

    sg_put_le64(&c.out_addr, s->buffer);
    sg_put_le32(&c.out_len, sizeof(*out));
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    memcpy(out, side_ptr(s, 0), sizeof(*out));
}

/* Like all counters, those of the port count since the last reset. */
static void frame_counters(void)
{
    struct sg_stats before, after;
    struct qtest_side a, b;

    m = machine_start(2, "", "");
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    get_stats(&a, &before);
    T_EQ_U64(sg_get_le64(&before.tx_frames), 0);
    sides_connect(&a, &b, 4000);
    get_stats(&a, &after);
    /* SYN, ACK, Request, RTR message; SYN and ACK, Reply */
    T_TRUE(sg_get_le64(&after.tx_frames) >= 4);
    T_TRUE(sg_get_le64(&after.rx_frames) >= sg_get_le64(&before.rx_frames) + 2);
    T_EQ_U64(sg_get_le64(&after.tx_dropped_frames), 0);
    T_EQ_U64(sg_get_le64(&after.tcp_retransmits), 0);
    side_start(&a, &m->f[0]);
    get_stats(&a, &after);
    T_EQ_U64(sg_get_le64(&after.tx_frames), 0);
    T_EQ_U64(sg_get_le64(&after.rx_frames), 0);
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "congested uplink: frames keep their order and their octets", in_order_when_congested },
    { "congested uplink: the adapter is unplugged", unplug_when_congested },
    { "congested uplink: netdev_del, then the adapter is unplugged",
      uplink_deleted_when_congested },
    { "congested uplink: stop and cont, link down and up", interrupted_when_congested },
    { "congested uplink: a broken stream and the next one", reconnected_when_congested },
    { "unconnected uplink: link down and up", set_link_without_connection },
    { "congested NIC: the adapter goes on, and can be unplugged", nic_that_takes_nothing },
    { "counters: frames in and out, since reset", frame_counters },
};

T_MAIN(cases)
