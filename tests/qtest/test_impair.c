/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network filter filter-staghorn-impair in QEMU: its properties, both directions, the virtual
 * clock, and what happens while frames wait in it. tests/unit/net/test_impair.c covers what it does
 * to frames.
 *
 * Most cases have no adapter: the test's wire and a second socket, "far", are on one hub, and the
 * filter is attached to "far".  The content of a frame is a number.
 */
#include <fcntl.h>
#include <glib.h>
#include <linux/pci_regs.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

enum { MS = 1000000, FRAMES_MAX = 400, FRAME = 64 };

static struct machine *m;
static int far;
static unsigned got[FRAMES_MAX], got_count;

/* 'filter' goes behind "-object filter-staghorn-impair,id=i,netdev=far". */
static void start(const char *filter)
{
    char *args;
    int fds[2];

    T_TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    far = fds[0];
    args = g_strdup_printf(" -netdev dgram,id=far,local.type=fd,local.str=%d"
                           " -netdev hubport,id=farport,hubid=0,netdev=far"
                           " -object filter-staghorn-impair,id=i,netdev=far%s",
                           fds[1], filter);
    m = machine_start(0, "", args);
    g_free(args);
    close(fds[1]);
    got_count = 0;
}

static void stop(void)
{
    machine_stop(m);
    close(far);
}

static void frame_of(uint8_t *frame, unsigned number)
{
    memset(frame, 0, FRAME);
    memset(frame, 0xff, 6);
    frame[6] = 0x52;
    sg_put_be16(frame + 12, 0x88b5); /* EtherType for experiments */
    sg_put_be32(frame + 14, number);
}

/* Frames from, from + 1, ... cross the filter in the direction that QEMU calls rx. */
static void say(unsigned from, unsigned count)
{
    uint8_t frame[FRAME];
    unsigned i;

    for (i = 0; i < count; i++) {
        frame_of(frame, from + i);
        machine_wire_send(m, frame, sizeof(frame));
        if (i % 8 == 7) {
            machine_settle(m);
        }
    }
    machine_settle(m);
}

/* Appends to 'got' what has arrived. */
static void hear(void)
{
    uint8_t frame[2048];
    ssize_t n;

    machine_settle(m);
    while ((n = recv(far, frame, sizeof(frame), MSG_DONTWAIT)) >= 0) {
        T_TRUE(n == FRAME && got_count < FRAMES_MAX);
        got[got_count++] = sg_get_be32(frame + 14);
    }
}

static void pass(unsigned ms)
{
    machine_pass(m, ms);
    hear();
}

static void set(const char *name, uint64_t value)
{
    qtest_qmp_ok(m->q,
                 "{\"execute\": \"qom-set\", \"arguments\": {\"path\": \"/objects/i\", "
                 "\"property\": \"%s\", \"value\": %" PRIu64 "}}",
                 name, value);
}

static bool refuses(const char *name, uint64_t value)
{
    char *answer = qtest_qmp(m->q,
                             "{\"execute\": \"qom-set\", \"arguments\": {\"path\": "
                             "\"/objects/i\", \"property\": \"%s\", \"value\": %" PRIu64 "}}",
                             name, value);
    bool refused = strstr(answer, "is out of range") != NULL;

    g_free(answer);
    return refused;
}

/* A counter of an adapter's port. */
static uint64_t port_counter(const char *adapter, const char *name)
{
    char *answer = qtest_qmp(m->q,
                             "{\"execute\": \"qom-get\", \"arguments\": {\"path\": "
                             "\"%s\", \"property\": \"port-counters\"}}",
                             adapter);
    char *key = g_strdup_printf("\"%s\": ", name);
    const char *at = strstr(answer, key);
    uint64_t value;

    T_NOT_NULL(at);
    value = strtoull(at + strlen(key), NULL, 10);
    g_free(key);
    g_free(answer);
    return value;
}

static uint64_t counter(const char *direction, const char *name)
{
    char *answer = qtest_qmp(m->q, "{\"execute\": \"qom-get\", \"arguments\": {\"path\": "
                                   "\"/objects/i\", \"property\": \"counters\"}}");
    char *key = g_strdup_printf("\"%s\": ", name), *other;
    const char *at = strstr(answer, direction);
    uint64_t value;

    T_NOT_NULL(at);
    other = strchr(at, '{');
    T_NOT_NULL(other);
    at = strstr(other, key);
    T_NOT_NULL(at);
    value = strtoull(at + strlen(key), NULL, 10);
    g_free(key);
    g_free(answer);
    return value;
}

static void expect_run(unsigned first, unsigned count)
{
    unsigned i;

    T_EQ_U64(got_count, count);
    for (i = 0; i < count; i++) {
        T_EQ_U64(got[i], first + i);
    }
    got_count = 0;
}

static void nothing_asked_for(void)
{
    start("");
    say(0, 20);
    hear();
    expect_run(0, 20);
    T_EQ_U64(counter("rx", "passed"), 20);
    T_EQ_U64(counter("tx", "frames"), 0);
    stop();
}

static void changed_at_run_time(void)
{
    start(",loss=1000000");
    say(0, 10);
    hear();
    expect_run(0, 0);
    T_EQ_U64(counter("rx", "lost"), 10);
    set("loss", 0);
    say(10, 10);
    hear();
    expect_run(10, 10);
    set("duplicate", 1000000);
    say(20, 1);
    pass(1);
    T_EQ_U64(got_count, 2);
    T_EQ_U64(got[1], 20);
    T_EQ_U64(counter("rx", "duplicated"), 1);
    T_TRUE(refuses("loss", 1000001));
    T_TRUE(refuses("delay", 10000000001));
    T_TRUE(refuses("rate", 999));
    T_TRUE(refuses("queue-limit", (64 << 20) + 1));
    stop();
}

static void delayed(void)
{
    start(",delay=5000000");
    say(0, 10);
    pass(4);
    expect_run(0, 0);
    T_EQ_U64(counter("rx", "waiting"), 10);
    pass(1);
    expect_run(0, 10);
    stop();
}

/* Only frames that leave the back end: QEMU calls that its transmit queue. */
static void one_direction(void)
{
    start(",queue=tx,loss=1000000");
    say(0, 10);
    hear();
    expect_run(0, 10);
    T_EQ_U64(counter("rx", "frames"), 0);
    {
        uint8_t frame[FRAME];

        frame_of(frame, 1);
        T_EQ_INT(send(far, frame, sizeof(frame), 0), FRAME);
    }
    machine_settle(m);
    T_EQ_U64(counter("tx", "lost"), 1);
    stop();
}

/* The same seed gives the same result: in a filter whose seed is set, and in another QEMU. */
static void replayed(void)
{
    unsigned first[FRAMES_MAX], count, round;

    start(",loss=300000,seed=7");
    for (round = 0; round < 3; round++) {
        T_CONTEXT("round %u", round);
        if (round == 1) {
            set("seed", 7);
        } else if (round == 2) {
            stop();
            start(",loss=300000,seed=7");
        }
        got_count = 0;
        say(0, 100);
        hear();
        T_TRUE(got_count > 40 && got_count < 95);
        if (round == 0) {
            count = got_count;
            memcpy(first, got, sizeof(first));
        }
        T_EQ_U64(got_count, count);
        T_EQ_MEM(got, first, count * sizeof(got[0]));
    }
    stop();
}

static void object_del(void)
{
    qtest_qmp_ok(m->q, "{\"execute\": \"object-del\", \"arguments\": {\"id\": \"i\"}}");
}

/* Waiting frames are lost, later ones pass; another filter can take the place. */
static void removed_with_frames(void)
{
    start(",delay=5000000");
    say(0, 10);
    object_del();
    say(10, 10);
    pass(10);
    expect_run(10, 10);
    qtest_qmp_ok(m->q, "{\"execute\": \"object-add\", \"arguments\": {\"qom-type\": "
                       "\"filter-staghorn-impair\", \"id\": \"i\", \"netdev\": \"far\", "
                       "\"delay\": 2000000}}");
    say(20, 10);
    expect_run(0, 0);
    pass(2);
    expect_run(20, 10);
    stop();
}

static void netdev_removed_with_frames(void)
{
    start(",delay=5000000");
    say(0, 10);
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"farport\"}}");
    pass(2); /* the sender is removed */
    qtest_qmp_ok(m->q, "{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"far\"}}");
    pass(10);
    expect_run(0, 0);
    stop();
}

static void switched_off_with_frames(void)
{
    start(",delay=5000000");
    say(0, 10);
    qtest_qmp_ok(m->q, "{\"execute\": \"qom-set\", \"arguments\": {\"path\": \"/objects/i\", "
                       "\"property\": \"status\", \"value\": \"off\"}}");
    say(10, 10);
    hear();
    expect_run(0, 20);
    pass(10);
    qtest_qmp_ok(m->q, "{\"execute\": \"qom-set\", \"arguments\": {\"path\": \"/objects/i\", "
                       "\"property\": \"status\", \"value\": \"on\"}}");
    say(20, 10);
    expect_run(0, 0);
    pass(5);
    expect_run(20, 10);
    stop();
}

/* While the machine is stopped so is its network; a reset of the machine does not affect it. */
static void machine_stopped(void)
{
    start(",delay=5000000");
    say(0, 10);
    qtest_qmp_ok(m->q, "{\"execute\": \"stop\"}");
    say(10, 10);
    hear();
    expect_run(0, 0);
    qtest_qmp_ok(m->q, "{\"execute\": \"cont\"}");
    pass(6);
    expect_run(0, 20);
    say(20, 10);
    machine_reset(m);
    pass(6);
    expect_run(20, 10);
    stop();
}

/* A full queue drops frames and QEMU goes on; 65536 may wait. */
static void queue_full(void)
{
    unsigned i;

    start(",delay=10000000000,duplicate=1000000");
    for (i = 0; i < 330; i++) {
        say(i * 100, 100);
    }
    T_EQ_U64(counter("rx", "waiting"), 65536);
    T_EQ_U64(counter("rx", "overflowed"), 2 * 33000 - 65536);
    object_del();
    stop();
}

/* ---- with adapters ---- */

static struct qtest_side a, b;

static void start_adapters(const char *spec)
{
    char *args = g_strdup_printf(" -object filter-staghorn-impair,id=i,netdev=net0%s"
                                 " -object filter-staghorn-impair,id=k,netdev=net1%s",
                                 spec, spec);

    m = machine_start(2, "", args);
    g_free(args);
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
}

/* RDMA over it: everything arrives, because TCP repairs the losses of the link. */
static void rdma(void)
{
    enum { LEN = 32 << 10 };
    unsigned i;

    start_adapters(",loss=50000,duplicate=50000,reorder=100000,corrupt=50000,delay=1000000,"
                   "jitter=500000,rate=100000000,seed=3");
    sides_connect(&a, &b, 4000);
    for (i = 0; i < LEN; i++) {
        side_ptr(&a, 0)[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    for (i = 0; i < 24; i++) {
        struct sg_cqe c;

        md_post_send(&a.qp, &(struct md_wr){
                                .opcode = i & 1 ? SG_WR_READ : SG_WR_WRITE,
                                .wr_id = i,
                                .addr = a.buffer,
                                .len = LEN,
                                .lkey = a.stag,
                                .raddr = b.buffer,
                                .rkey = b.stag,
                            });
        c = side_completion(&a, 60000);
        T_EQ_U64(c.status, SG_WC_SUCCESS);
    }
    T_EQ_MEM(side_ptr(&b, 0), side_ptr(&a, 0), LEN);
    T_TRUE(counter("rx", "lost") + counter("tx", "lost") > 0);
    T_TRUE(counter("rx", "corrupted") + counter("tx", "corrupted") > 0);
    T_TRUE(counter("rx", "reordered") + counter("tx", "reordered") > 0);
    T_TRUE(port_counter("a0", "checksum-errors") + port_counter("a1", "checksum-errors") > 0);
    T_TRUE(port_counter("a0", "frames-in") > 0 && port_counter("a0", "frames-out") > 0);
    T_EQ_U64(port_counter("a0", "dropped"), 0);
    T_EQ_U64(port_counter("a1", "uplink-dropped"), 0);
    machine_stop(m);
}

/* Frames of a connection wait in both directions when the adapter is removed. */
static void unplugged_with_frames(void)
{
    start_adapters(",delay=1000000");
    sides_connect(&a, &b, 4000);
    md_post_send(&a.qp, &(struct md_wr){
                            .opcode = SG_WR_WRITE,
                            .wr_id = 1,
                            .addr = a.buffer,
                            .len = 60000,
                            .lkey = a.stag,
                            .raddr = b.buffer,
                            .rkey = b.stag,
                        });
    md_post_send(&b.qp, &(struct md_wr){
                            .opcode = SG_WR_WRITE,
                            .wr_id = 1,
                            .addr = b.buffer,
                            .len = 60000,
                            .lkey = b.stag,
                            .raddr = a.buffer,
                            .rkey = a.stag,
                        });
    machine_settle(m);
    T_TRUE(counter("rx", "waiting") > 0);
    qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
    function_slot_off(&m->f[0]);
    qtest_qmp_event(m->q, "DEVICE_DELETED");
    machine_pass(m, 20);
    machine_stop(m);
}

static void bad_command_lines(void)
{
    static const struct {
        const char *args, *text;
    } rows[] = {
        { "-object filter-staghorn-impair,id=i", "netdev" },
        { "-object filter-staghorn-impair,id=i,netdev=none", "a network backend id" },
        { "-netdev hubport,id=h,hubid=0 -object filter-staghorn-impair,id=i,netdev=h,loss=1000001",
          "loss is out of range" },
        { "-netdev hubport,id=h,hubid=0 -object filter-staghorn-impair,id=i,netdev=h,rate=1",
          "rate is out of range" },
        { "-netdev hubport,id=h,hubid=0 -object filter-staghorn-impair,id=i,netdev=h,delay=x",
          "delay" },
        { "-netdev hubport,id=h,hubid=0 -object filter-staghorn-impair,id=i,netdev=h,fun=1",
          "fun" },
    };
    size_t i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        char *err;

        T_CONTEXT("%s", rows[i].args);
        T_EQ_INT(qtest_refused(rows[i].args, &err), 1);
        T_TRUE(strstr(err, rows[i].text) != NULL);
        g_free(err);
    }
}

static const struct t_case cases[] = {
    { "nothing asked for: frames pass", nothing_asked_for },
    { "properties at run time, and those out of range", changed_at_run_time },
    { "delay, by the virtual clock", delayed },
    { "one direction", one_direction },
    { "a seed replays", replayed },
    { "removed while frames wait", removed_with_frames },
    { "the back end goes while frames wait", netdev_removed_with_frames },
    { "switched off while frames wait", switched_off_with_frames },
    { "the machine stopped, and reset", machine_stopped },
    { "more frames than may wait", queue_full },
    { "RDMA over two impaired links", rdma, .takes_long = true },
    { "an adapter unplugged while frames wait", unplugged_with_frames },
    { "command lines that are refused", bad_command_lines },
};

T_MAIN(cases)
