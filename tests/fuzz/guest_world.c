/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * See guest_world.h.  The beginning of an input is strict: after a reset of the machine both
 * adapters must come up, whatever the previous input did.  The rest accepts any answer, or none.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/pci_regs.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "flash_make.h"
#include "guest_world.h"
#include "tap.h"

struct guest_world w;

static char rom[] = "/tmp/sg-fuzz-rom-XXXXXX", media[] = "/tmp/sg-fuzz-media-XXXXXX";

enum { SLOT_CONFIG = 0xb0000000u };

uint64_t world_config(unsigned n, unsigned offset)
{
    return MACHINE_CONFIG_0 + ((uint64_t)n << 20) + offset;
}

uint64_t world_port_config(unsigned n, unsigned offset)
{
    return SLOT_CONFIG + ((2 + n) << 15) + offset;
}

/* ---- files ---- */

static void forget_files(void)
{
    unlink(rom);
    unlink(media);
}

static void write_chip(void)
{
    size_t len;
    uint8_t *fw = make_firmware("1.0.0", "full", 3, &len), *chip = make_chip(fw, len);

    T_TRUE(g_file_set_contents(rom, (char *)chip, SG_FLASH_SIZE, NULL));
    g_free(chip);
    g_free(fw);
}

static void make_files(void)
{
    int fd = g_mkstemp(media);

    T_TRUE(fd >= 0 && ftruncate(fd, WORLD_PM_MIB << 20) == 0);
    close(fd);
    fd = g_mkstemp(rom);
    T_TRUE(fd >= 0);
    close(fd);
    atexit(forget_files);
}

/* ---- plug and unplug ---- */

bool world_is_plugged(unsigned n)
{
    return qtest_readl(w.m->q, world_config(n, PCI_VENDOR_ID)) != UINT32_MAX;
}

static void qmp_any(const char *text)
{
    g_free(qtest_qmp(w.m->q, "%s", text));
}

/* False: QEMU has not finished to remove the previous one.  Even a failed command helps. */
static bool add_device(unsigned n)
{
    char *answer =
        qtest_qmp(w.m->q,
                  "{\"execute\": \"device_add\", \"arguments\": "
                  "{\"driver\": \"staghorn\", \"id\": \"a%u\", \"bus\": \"rp%u\", "
                  "\"netdev\": \"net%u\", \"mac\": \"52:54:00:00:00:%02x\"%s%s%s}}",
                  n, n, n, n + 1, n ? "" : ", \"romfile\": \"", n ? "" : rom, n ? "" : "\"");
    bool good = !strstr(answer, "\"error\"");

    g_free(answer);
    return good;
}

/* The guest may have unplugged it, or a write of the adapter's own to the slot's registers. */
void world_plug(unsigned n)
{
    unsigned express = port_find_cap(&w.m->f[n], PCI_CAP_ID_EXP), tries = 0;

    if (n == 0) {
        qmp_any("{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"b1\"}}");
        write_chip();
        w.flash_touched = false;
    }
    while (!add_device(n)) {
        T_TRUE(tries++ < 10);
        qtest_round(w.m->q);
    }
    port_config_writew(&w.m->f[n], express + PCI_EXP_SLTCTL, PCI_EXP_SLTCTL_PWR_IND_ON);
    if (n == 0) {
        qmp_any("{\"execute\": \"netdev_add\", \"arguments\": {\"type\": \"hubport\", "
                "\"id\": \"b1\", \"hubid\": 1, \"netdev\": \"a0.eth\"}}");
    }
}

void world_unplug(void)
{
    unsigned i;

    qmp_any("{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"b1\"}}");
    qmp_any("{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
    function_slot_off(&w.m->f[0]);
    for (i = 0; i < 3; i++) {
        qtest_round(w.m->q);
    }
    T_FALSE(world_is_plugged(0));
    w.unplugs++;
}

/* ---- the beginning ---- */

static void start(void)
{
    char *args;
    int fds[2];

    make_files();
    write_chip();
    T_TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    w.nic = fds[0];
    args = g_strdup_printf("-machine nvdimm=on -m slots=2,maxmem=8G "
                           "-object staghorn-domain,id=dom0 "
                           "-object memory-backend-file,id=mem1,size=%uM,share=off,mem-path=%s "
                           "-device nvdimm,memdev=mem1 "
                           "-netdev dgram,id=behind,local.type=fd,local.str=%d",
                           WORLD_PM_MIB, media, fds[1]);
    w.m = machine_start(2, "", args);
    g_free(args);
    close(fds[1]);
    w.first = w.m->alloc_next;
    qtest_qmp_ok(w.m->q, "{\"execute\": \"netdev_add\", \"arguments\": {\"type\": \"hubport\", "
                         "\"id\": \"b0\", \"hubid\": 1, \"netdev\": \"behind\"}}");
    world_unplug();
    world_plug(0);
}

static void drop_frames(void)
{
    uint8_t frame[64];

    while (recv(w.nic, frame, sizeof(frame), MSG_DONTWAIT) >= 0) {
    }
}

void world_begin(void)
{
    unsigned n;

    if (!w.m) {
        start();
    }
    qmp_any("{\"execute\": \"set_link\", \"arguments\": {\"name\": \"a0\", \"up\": true}}");
    if (w.flash_touched && world_is_plugged(0)) {
        world_unplug();
    }
    for (n = 0; n < 2; n++) {
        if (!world_is_plugged(n)) {
            world_plug(n);
        }
    }
    machine_reset(w.m);
    machine_settle(w.m);
    drop_frames();
    w.m->alloc_next = w.first;
    w.window = w.paged = w.pm_stag = 0;
    side_start(&w.b, &w.m->f[1]);
    side_start(&w.a, &w.m->f[0]);
}

/* ---- what any adapter, or none, may answer ---- */

bool world_cmd(struct qtest_side *s, const void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
    struct md *md = &s->md;
    bool any = false;

    if (md->asq.prod - md->acq.cons >= MD_ADMIN_SIZE - 1) {
        return false;
    }
    md_submit(md, cmd, len);
    machine_settle(w.m);
    w.commands++;
    while (md_reap(md, rsp)) {
        any = true;
    }
    any = any && rsp->status == SG_OK && sg_get_le16(&rsp->cookie) == md->cookie;
    w.good += any;
    return any;
}

static uint32_t make(struct qtest_side *s, const void *cmd, size_t len)
{
    struct sg_admin_rsp rsp;

    return world_cmd(s, cmd, len, &rsp) ? sg_get_le32(&rsp.id) : 0;
}

static void new_qp(struct qtest_side *s, uint32_t flags)
{
    struct sg_cmd_create_qp c = md_create_qp_cmd(&s->md, &(struct md_qp_params){
                                                             .pd = s->pd,
                                                             .scq = &s->cq,
                                                             .rcq = &s->cq,
                                                             .access = WORLD_RIGHTS,
                                                             .flags = flags,
                                                         });

    s->qp = (struct md_qp){ .md = &s->md, .scq = &s->cq, .rcq = &s->cq };
    s->qp.sq = (struct md_ring){ sg_get_le64(&c.sq_pages.addr), 16, 512, 0, 0 };
    s->qp.rq = (struct md_ring){ sg_get_le64(&c.rq_pages.addr), 16, 512, 0, 0 };
    s->qp.qpn = make(s, &c, sizeof(c));
}

void world_bring_up(void)
{
    struct sg_cmd_create_eq eq = { .hdr.opcode = SG_ADMIN_CREATE_EQ };
    struct sg_admin_hdr pd = { .opcode = SG_ADMIN_CREATE_PD };
    struct sg_cmd_set_addr addr = {
        .hdr.opcode = SG_ADMIN_SET_ADDR,
        .op = SG_ADDR_ADD,
        .prefix_len = 24,
        .addr = driver_addr(0, 0),
    };
    struct qtest_side *s = &w.a;
    struct sg_cmd_create_cq cq;
    struct sg_cmd_reg_mr mr;

    driver_attach(&s->md, &w.m->f[0]);
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_RESET);
    md_setup_rings(&s->md);
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_ENABLE);
    s->md.eq = md_new_ring(&s->md, MD_EQ_SIZE, sizeof(struct sg_eqe));
    sg_put_le64(&eq.base, s->md.eq.base);
    sg_put_le32(&eq.entries, MD_EQ_SIZE);
    sg_put_le32(&eq.eqn, 1);
    sg_put_le32(&eq.vector, 1);
    make(s, &eq, sizeof(eq));
    make(s, &addr, sizeof(addr));
    s->pd = make(s, &pd, sizeof(pd));
    cq = md_create_cq_cmd(&s->md, 64);
    s->cq = (struct md_cq){ .md = &s->md, .record = sg_get_le64(&cq.record) };
    s->cq.ring = (struct md_ring){ sg_get_le64(&cq.pages.addr), 64, 64, 0, 0 };
    s->cq.cqn = make(s, &cq, sizeof(cq));
    mr = md_reg_mr_cmd(s->pd, s->buffer, SIDE_BUFFER, WORLD_RIGHTS);
    s->stag = make(s, &mr, sizeof(mr));
    new_qp(s, 0);
    w.window = w.paged = 0;
}

/* Reads a limited number: the entries may be the guest's own random data, without an end. */
void world_drain(struct qtest_side *s)
{
    unsigned n = 0;
    struct sg_eqe e;
    struct sg_cqe c;

    while (n++ < 200 && md_next_async(&s->md, &e)) {
        if (e.event == SG_EV_CM_REQUEST) {
            struct sg_cmd_connect a = { .hdr.opcode = SG_ADMIN_ACCEPT, .conn = e.conn };
            struct sg_admin_rsp rsp;

            sg_put_le32(&a.qpn, s->qp.qpn);
            sg_put_le16(&a.ird, 4);
            sg_put_le16(&a.ord, 4);
            sg_put_le16(&a.flags, fuzz_below(&w.in, 4));
            world_cmd(s, &a, sizeof(a), &rsp);
        }
        w.connected += e.event == SG_EV_CM_ESTABLISHED && e.cm_status == SG_CM_OK;
    }
    while (n++ < 400 && md_poll(&s->cq, &c)) {
        w.completions++;
    }
}

void world_connect(void)
{
    struct sg_cmd_listen l = {
        .hdr.opcode = SG_ADMIN_LISTEN,
        .local = driver_addr(1, WORLD_PORT),
    };
    struct sg_cmd_connect c = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(0, 0),
        .remote = driver_addr(1, WORLD_PORT),
    };
    struct sg_admin_rsp rsp;

    world_drain(&w.b);
    sg_put_le32(&l.backlog, 4);
    world_cmd(&w.b, &l, sizeof(l), &rsp); /* refused when it listens already */
    new_qp(&w.b, 0);
    new_qp(&w.a, fuzz_below(&w.in, 4));
    sg_put_le32(&c.qpn, w.a.qp.qpn);
    sg_put_le16(&c.ird, 4);
    sg_put_le16(&c.ord, 4);
    sg_put_le16(&c.flags, fuzz_below(&w.in, 4));
    world_cmd(&w.a, &c, sizeof(c), &rsp);
    world_drain(&w.b);
    machine_settle(w.m);
    world_drain(&w.b);
}
