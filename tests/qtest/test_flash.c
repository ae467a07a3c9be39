/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flash image on the device: images that the command line refuses, precedence of properties,
 * vital product data, expansion ROM, updates and where they are kept.
 */
#include <glib.h>
#include <linux/pci_regs.h>
#include <unistd.h>

#include "driver.h"
#include "flash_make.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "tap.h"

static char path[64];

static void put_file(const uint8_t *octets, size_t len)
{
    int fd;

    strcpy(path, "/tmp/sg-flash-XXXXXX");
    fd = mkstemp(path);
    T_TRUE(fd >= 0);
    T_EQ_INT(write(fd, octets, len), len);
    close(fd);
}

/* Writes a chip with version 1.0.0 and that profile to the file 'path'. */
static void put_chip(const struct sg_profile_info *profile)
{
    uint8_t *rom = make_rom(3), *fw, *chip;
    size_t len;

    fw = sg_firmware_make("1.0.0", profile, sg_span_of(rom, 3 * 512), &len);
    T_NOT_NULL(fw);
    chip = make_chip(fw, len);
    put_file(chip, SG_FLASH_SIZE);
    g_free(chip);
    g_free(fw);
    g_free(rom);
}

static void put_full(void)
{
    struct sg_profile_info p;

    sg_profile_init(&p, "full");
    put_chip(&p);
}

static struct machine *start(const char *more)
{
    char *extra = g_strdup_printf(",romfile=%s%s", path, more);
    struct machine *m = machine_start(1, extra, "");

    g_free(extra);
    return m;
}

/* ---- the command line ---- */

static void refused(const char *more, const char *part)
{
    char *args = g_strdup_printf("-netdev hubport,id=n0,hubid=0 "
                                 "-device staghorn,netdev=n0,romfile=%s%s",
                                 path, more),
         *err;
    int status = qtest_refused(args, &err);

    if (status != 1 || !strstr(err, part)) {
        T_FAIL("status %d, \"%s\" is not in: %s", status, part, err);
    }
    g_free(err);
    g_free(args);
}

static void no_file(void)
{
    strcpy(path, "/nonexistent/flash");
    refused("", "Could not open '/nonexistent/flash'");
    path[0] = '\0';
    refused(",flash-write=on", "flash-write=on needs an image");
}

static void hostile_images(void)
{
    static const struct {
        const char *what;
        size_t offset, len; /* len 0: SG_FLASH_SIZE */
        uint8_t flip;
        const char *words;
    } rows[] = {
        { "empty", 0, 1, 0, "ends too early" },
        { "cut off", 0, SG_FLASH_SIZE - 1, 0, "ends too early" },
        { "magic", 0, 0, 1, "not one of Staghorn's" },
        { "format", 8, 0, 4, "format is not known" },
        { "size", 12, 0, 1, "is impossible" },
        { "serial number", 70, 0, 1, "checksum is wrong" },
        { "slot record", SG_FLASH_SLOT_BASE + 9, 0, 1, "no slot has firmware" },
        { "firmware", SG_FLASH_SLOT_BASE + SG_FLASH_FW_OFFSET + 100, 0, 1, "no slot has firmware" },
    };
    uint8_t *octets;
    size_t len;

    put_full();
    T_TRUE(g_file_get_contents(path, (char **)&octets, &len, NULL));
    unlink(path);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%s", rows[i].what);
        octets[rows[i].offset] ^= rows[i].flip;
        put_file(octets, rows[i].len ? rows[i].len : SG_FLASH_SIZE);
        refused("", rows[i].words);
        unlink(path);
        octets[rows[i].offset] ^= rows[i].flip;
    }
    g_free(octets);
}

static void profile_out_of_range(void)
{
    struct sg_profile_info p;

    sg_profile_init(&p, "greedy");
    p.max_sge = 99;
    put_chip(&p);
    refused("", "max-sge is 99, must be from 1 to 32");
    refused("", "profile greedy");
    unlink(path);
}

static void one_writer(void)
{
    struct machine *m;

    put_full();
    m = start(",flash-write=on");
    refused(",flash-write=on", "is in use");
    machine_stop(m);
    unlink(path);
}

/* ---- what the firmware decides ---- */

static void caps_of(struct md *md, struct machine *m, struct sg_caps *caps)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };
    uint64_t out = machine_alloc(m, 4096, 4096);

    sg_put_le64(&c.out_addr, out);
    sg_put_le32(&c.out_len, sizeof(*caps));
    T_EQ_U64(md_cmd(md, &c, sizeof(c), NULL), SG_OK);
    memcpy(caps, machine_ptr(m, out), sizeof(*caps));
}

static void precedence(void)
{
    struct sg_profile_info p;
    struct sg_caps caps;
    struct machine *m;
    struct md md;

    sg_profile_init(&p, "tight");
    p.max_sge = 2, p.max_inline = 16, p.max_ird = 1, p.max_qp = 9, p.mpa_rev = 1;
    put_chip(&p);
    /* max-inline has its default value, but it is set explicitly. */
    m = start(",max-sge=5,max-inline=256,max-ord=7");
    driver_start(&md, &m->f[0]);
    caps_of(&md, m, &caps);
    T_EQ_U64(sg_get_le32(&caps.max_sq_sge), 5);
    T_EQ_U64(sg_get_le32(&caps.max_inline), 256);
    T_EQ_U64(sg_get_le32(&caps.max_ord), 7);
    T_EQ_U64(sg_get_le32(&caps.max_ird), 1);
    T_EQ_U64(sg_get_le32(&caps.max_qp), 9);
    T_EQ_U64(sg_get_le32(&caps.features) & SG_FEATURE_MPA_V2, 0);
    machine_stop(m);
    unlink(path);
}

static uint32_t vpd_read(struct function *f, unsigned cap, unsigned at)
{
    function_config_writew(f, cap + PCI_VPD_ADDR, at);
    T_EQ_U64(function_config_readw(f, cap + PCI_VPD_ADDR), at | PCI_VPD_ADDR_F);
    return function_config_readl(f, cap + PCI_VPD_DATA);
}

static void vital_product_data(void)
{
    char vpd[512];
    struct machine *m;
    unsigned cap, end;
    uint8_t sum = 0;

    put_full();
    m = start("");
    cap = function_find_cap(&m->f[0], PCI_CAP_ID_VPD);
    T_TRUE(cap);
    for (unsigned at = 0; at < sizeof(vpd); at += 4) {
        sg_put_le32(vpd + at, vpd_read(&m->f[0], cap, at));
    }
    T_EQ_MEM(vpd + 3, "Staghorn iWARP RDMA adapter", 27);
    T_NOT_NULL(memmem(vpd, sizeof(vpd),
                      "PN\4SG-1SN\6SN0001V0\14"
                      "020000000009",
                      31));
    end = (char *)memmem(vpd, sizeof(vpd), "RV\1", 3) + 4 - vpd;
    for (unsigned i = 0; i < end; i++) {
        sum += (uint8_t)vpd[i];
    }
    T_EQ_U64(sum, 0);
    T_EQ_U64((uint8_t)vpd[end], 0x78);
    T_EQ_U64(vpd_read(&m->f[0], cap, 0x7ffc), 0);
    /* A write has no effect. */
    function_config_writel(&m->f[0], cap + PCI_VPD_DATA, 0x12345678);
    function_config_writew(&m->f[0], cap + PCI_VPD_ADDR, PCI_VPD_ADDR_F);
    T_EQ_U64(function_config_readw(&m->f[0], cap + PCI_VPD_ADDR), 0);
    T_EQ_U64(vpd_read(&m->f[0], cap, 0), sg_get_le32(vpd));
    machine_stop(m);
    unlink(path);
}

static void expansion_rom(void)
{
    struct machine *m;

    put_full();
    m = start("");
    function_config_writel(&m->f[0], PCI_ROM_ADDRESS, (uint32_t)PCI_ROM_ADDRESS_MASK);
    T_EQ_U64(function_config_readl(&m->f[0], PCI_ROM_ADDRESS), (uint32_t)-SG_ROM_BAR_SIZE);
    machine_stop(m);
    m = start(",rombar=0");
    function_config_writel(&m->f[0], PCI_ROM_ADDRESS, (uint32_t)PCI_ROM_ADDRESS_MASK);
    T_EQ_U64(function_config_readl(&m->f[0], PCI_ROM_ADDRESS), 0);
    machine_stop(m);
    unlink(path);
}

static void without_image(void)
{
    struct machine *m = machine_start(1, "", "");
    struct sg_cmd_flash c = { .hdr.opcode = SG_ADMIN_FLASH_COMMIT };
    struct md md;

    T_EQ_U64(function_find_cap(&m->f[0], PCI_CAP_ID_VPD), 0);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_FW_VERSION), 0x010000);
    driver_start(&md, &m->f[0]);
    T_EQ_U64(md_cmd(&md, &c, sizeof(c), NULL), SG_ENOTSUP);
    machine_stop(m);
}

/* ---- updates ---- */

enum { PATIENCE_MS = 20000 };

/* A thread of QEMU waits for the host's disk, so the test waits, too. */
static enum sg_status flash(struct md *md, uint8_t opcode, uint64_t addr, uint32_t len,
                            uint32_t offset)
{
    struct sg_cmd_flash c = { .hdr.opcode = opcode };
    struct sg_admin_rsp rsp;
    unsigned ms;

    sg_put_le64(&c.addr, addr);
    sg_put_le32(&c.len, len);
    sg_put_le32(&c.offset, offset);
    md_submit(md, &c, sizeof(c));
    md_settle(md);
    for (ms = 0; !md_reap(md, &rsp); ms++) {
        if (ms == PATIENCE_MS) {
            T_FAIL("flash command 0x%02x is not answered", opcode);
        }
        g_usleep(1000);
        md_settle(md);
    }
    return rsp.status;
}

/* Writes version 2.1.0 with profile "two" (two elements), completely or only half of it. */
static void update(struct md *md, struct machine *m, bool whole)
{
    uint64_t buffer = machine_alloc(m, SG_FLASH_CHUNK_MAX, 4096);
    struct sg_profile_info p;
    uint8_t *fw;
    size_t len;

    sg_profile_init(&p, "two");
    p.max_sge = 2;
    fw = sg_firmware_make("2.1.0", &p, SG_SPAN_NONE, &len);
    len = whole ? len : len / 2;
    memcpy(machine_ptr(m, buffer), fw, len);
    g_free(fw);
    T_EQ_U64(flash(md, SG_ADMIN_FLASH_WRITE, buffer, len, 0), SG_OK);
    if (whole) {
        T_EQ_U64(flash(md, SG_ADMIN_FLASH_COMMIT, 0, len, 0), SG_OK);
    }
}

static void check_runs(struct machine *m, uint32_t version, unsigned sge)
{
    struct sg_caps caps;
    struct md md;

    T_EQ_U64(function_readl(&m->f[0], SG_REG_FW_VERSION), version);
    driver_start(&md, &m->f[0]);
    caps_of(&md, m, &caps);
    T_EQ_U64(sg_get_le32(&caps.max_sq_sge), sge);
}

enum { OLD = 0x010000, NEW = 0x020100 };

static void runs_after_reset(void)
{
    static void (*const resets[])(struct function *) = { NULL, function_flr };
    struct md md;

    for (unsigned i = 0; i < G_N_ELEMENTS(resets); i++) {
        struct machine *m;

        T_CONTEXT("%s", i ? "FLR" : "CTRL.RESET");
        put_full();
        m = start("");
        driver_start(&md, &m->f[0]);
        update(&md, m, true);
        T_EQ_U64(function_readl(&m->f[0], SG_REG_FW_VERSION), OLD);
        if (resets[i]) {
            resets[i](&m->f[0]);
        } else {
            function_writel(&m->f[0], SG_REG_CTRL, SG_CTRL_RESET);
        }
        check_runs(m, NEW, 2);
        machine_reset(m);
        check_runs(m, NEW, 2);
        machine_stop(m);
        /* Not written through: the file is as it was. */
        m = start("");
        check_runs(m, OLD, SG_SQ_MAX_SGE);
        machine_stop(m);
        unlink(path);
    }
}

static enum sg_cm_status try_to_connect(struct qtest_side *s, unsigned i)
{
    struct sg_cmd_connect c = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(0, 0),
        .remote = driver_addr(100, 4000 + i),
    };
    struct md_qp qp;
    struct sg_eqe e;

    md_create_qp(&s->md, &qp, &(struct md_qp_params){ .pd = s->pd, .scq = &s->cq, .rcq = &s->cq });
    sg_put_le32(&c.qpn, qp.qpn);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    machine_settle(s->f->m);
    return md_next_async(&s->md, &e) ? e.cm_status : SG_CM_OK;
}

/* The port follows the profile: one connection with the first firmware, eight with the next. */
static void more_connections(void)
{
    struct sg_profile_info p;
    uint64_t buffer;
    struct machine *m;
    struct qtest_side s;
    uint8_t *fw;
    size_t len;
    unsigned i;

    sg_profile_init(&p, "one");
    p.max_conns = 1;
    put_chip(&p);
    m = start("");
    driver_start(&s.md, &m->f[0]);
    sg_profile_init(&p, "eight");
    p.max_conns = 8;
    fw = sg_firmware_make("2.1.0", &p, SG_SPAN_NONE, &len);
    buffer = machine_alloc(m, SG_FLASH_CHUNK_MAX, 4096);
    memcpy(machine_ptr(m, buffer), fw, len);
    g_free(fw);
    T_EQ_U64(flash(&s.md, SG_ADMIN_FLASH_WRITE, buffer, len, 0), SG_OK);
    T_EQ_U64(flash(&s.md, SG_ADMIN_FLASH_COMMIT, 0, len, 0), SG_OK);
    side_start(&s, &m->f[0]);
    for (i = 0; i < 8; i++) {
        T_CONTEXT("connection %u", i);
        T_EQ_U64(try_to_connect(&s, i), SG_CM_OK);
    }
    machine_stop(m);
    unlink(path);
}

static void written_through(void)
{
    struct machine *m;
    struct md md;

    put_full();
    m = start(",flash-write=on");
    driver_start(&md, &m->f[0]);
    update(&md, m, true);
    machine_kill(m); /* without any cleanup */
    m = start(",flash-write=on");
    check_runs(m, NEW, 2);
    machine_stop(m);
    unlink(path);
}

static void killed_in_the_middle(void)
{
    struct machine *m;
    struct md md;

    put_full();
    m = start(",flash-write=on");
    driver_start(&md, &m->f[0]);
    update(&md, m, false);
    machine_kill(m);
    m = start(",flash-write=on");
    check_runs(m, OLD, SG_SQ_MAX_SGE);
    machine_stop(m);
    unlink(path);
}

/* Reset, removal and QEMU's end while the file is written: nothing waits, nothing is lost. */
static void gone_meanwhile(void)
{
    struct sg_cmd_flash c = { .hdr.opcode = SG_ADMIN_FLASH_WRITE };
    struct machine *m;
    struct md md;
    uint64_t buffer;
    unsigned i;

    put_full();
    for (i = 0; i < 12; i++) {
        T_CONTEXT("round %u", i);
        m = start(",flash-write=on");
        driver_start(&md, &m->f[0]);
        buffer = machine_alloc(m, SG_FLASH_CHUNK_MAX, 4096);
        sg_put_le64(&c.addr, buffer);
        sg_put_le32(&c.len, SG_FLASH_CHUNK_MAX);
        md.hold = true;
        md_submit(&md, &c, sizeof(c));
        md.hold = false;
        if (i % 3 == 0) {
            function_flr(&m->f[0]);
            check_runs(m, OLD, SG_SQ_MAX_SGE);
            driver_start(&md, &m->f[0]);
            update(&md, m, true);
            function_flr(&m->f[0]);
            check_runs(m, NEW, 2);
            machine_stop(m);
            unlink(path);
            put_full();
        } else if (i % 3 == 1) {
            qtest_qmp_ok(m->q, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"a0\"}}");
            function_slot_off(&m->f[0]);
            qtest_qmp_event(m->q, "DEVICE_DELETED");
            machine_stop(m);
        } else {
            machine_stop(m);
        }
    }
    unlink(path);
}

static const struct t_case cases[] = {
    { "no file", no_file },
    { "hostile images are refused in words", hostile_images },
    { "a profile out of range is refused", profile_out_of_range },
    { "one writer for a file", one_writer },
    { "property, then profile, then default", precedence },
    { "vital product data", vital_product_data },
    { "expansion ROM BAR", expansion_rom },
    { "without an image", without_image },
    { "an update runs after a reset", runs_after_reset },
    { "an update may allow more connections", more_connections },
    { "an update is written through", written_through },
    { "killed in the middle of an update", killed_in_the_middle },
    { "gone while the file is written", gone_meanwhile },
};

T_MAIN(cases)
