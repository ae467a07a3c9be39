/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration, as snapshots are: the function goes along as the bus sees it, the adapter arrives as
 * after a reset.  The state goes through a file to a second QEMU.
 */
#include <glib.h>
#include <linux/pci_regs.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"
#include "flash_make.h"
#include "tap.h"
#include "staghorn/regs.h"

static char *path; /* of the state */

static void wait_completed(struct machine *m)
{
    unsigned i;

    for (i = 0; i < 2000; i++) {
        g_autofree char *answer = qtest_qmp(m->q, "{\"execute\": \"query-migrate\"}");

        if (strstr(answer, "\"status\": \"completed\"")) {
            return;
        }
        if (strstr(answer, "\"status\": \"failed\"")) {
            T_FAIL("%s", answer);
        }
        g_usleep(5000);
    }
    T_FAIL("the migration does not end");
}

static void save(struct machine *m)
{
    path = g_strdup_printf("/tmp/sg-state-%d", getpid());
    qtest_qmp_ok(m->q, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"file:%s\"}}", path);
    wait_completed(m);
    machine_stop(m);
}

static struct machine *load_with(unsigned functions, const char *extra)
{
    struct machine *m = machine_start(functions, extra, "-incoming defer ");

    qtest_qmp_ok(m->q, "{\"execute\": \"migrate-incoming\", \"arguments\": "
                 "{\"uri\": \"file:%s\"}}", path);
    wait_completed(m);
    unlink(path);
    g_free(path);
    return m;
}

static struct machine *load(unsigned functions)
{
    return load_with(functions, "");
}

/* BARs, bus mastering and MSI-X are as they were; registers are as after a reset. */
static void function_goes_along(void)
{
    struct machine *m = machine_start(1, "", "");
    struct function *f = &m->f[0];
    uint32_t bar0, bar2;
    uint16_t command, msix;
    uint64_t vector;

    function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
    bar0 = function_config_readl(f, PCI_BASE_ADDRESS_0);
    bar2 = function_config_readl(f, PCI_BASE_ADDRESS_2);
    command = function_config_readw(f, PCI_COMMAND);
    msix = function_config_readw(f, f->cap_msix + PCI_MSIX_FLAGS);
    vector = f->vector_words;
    save(m);
    m = load(1);
    f = &m->f[0];
    T_EQ_U64(function_config_readl(f, PCI_BASE_ADDRESS_0), bar0);
    T_EQ_U64(function_config_readl(f, PCI_BASE_ADDRESS_2), bar2);
    T_EQ_U64(function_config_readw(f, PCI_COMMAND), command);
    T_EQ_U64(function_config_readw(f, f->cap_msix + PCI_MSIX_FLAGS), msix);
    T_EQ_U64(f->vector_words, vector);
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    function_writel(f, SG_REG_TEST_IRQ, 1);
    T_TRUE(function_raised(f, 1));
    machine_stop(m);
}

/* What was connected finds itself reset, and both sides can start anew. */
static void adapters_start_anew(void)
{
    struct machine *m = machine_start(2, "", "");
    struct side a, b;

    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    T_TRUE(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_READY);
    save(m);
    m = load(2);
    T_TRUE(!(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_READY));
    T_EQ_U64(function_readl(&m->f[0], SG_REG_CTRL), 0);
    /* Doorbells of the queues that were are of nobody now. */
    function_doorbell(&m->f[0], 0, SG_DB_SQ, 1);
    function_doorbell(&m->f[1], 0, SG_DB_RQ, 1);
    machine_settle(m);
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    machine_stop(m);
}

static void not_with_a_domain(void)
{
    struct machine *m;
    char media[] = "/tmp/sg-media-XXXXXX";
    int fd = g_mkstemp(media);
    g_autofree char *args = NULL;
    char *answer;

    T_TRUE(fd >= 0 && ftruncate(fd, 32 << 20) == 0);
    close(fd);
    args = g_strdup_printf("-machine nvdimm=on -m slots=4,maxmem=8G -object staghorn-domain,id=d "
                           "-object memory-backend-file,id=mem1,size=32M,share=off,mem-path=%s "
                           "-device nvdimm,memdev=mem1 ", media);
    m = machine_start(1, "", args);
    answer = qtest_qmp(m->q, "{\"execute\": \"migrate\", \"arguments\": "
                       "{\"uri\": \"file:/dev/null\"}}");
    T_TRUE(strstr(answer, "persistence domain"));
    g_free(answer);
    machine_stop(m);
    unlink(media);
}

/* Vital product data that was read on the way does not make it another function. */
static void flash_image(void)
{
    size_t len;
    uint8_t *fw = make_firmware("3.2.1", "full", 2, &len), *chip = make_chip(fw, len);
    g_autofree char *file = g_strdup_printf("/tmp/sg-image-%d", getpid());
    g_autofree char *extra = g_strdup_printf(",romfile=%s", file);
    struct machine *m;
    unsigned cap;

    T_TRUE(g_file_set_contents(file, (char *)chip, SG_FLASH_SIZE, NULL));
    m = machine_start(1, extra, "");
    cap = function_find_cap(&m->f[0], PCI_CAP_ID_VPD);
    function_config_writew(&m->f[0], cap + PCI_VPD_ADDR, 4);
    T_TRUE(function_config_readl(&m->f[0], cap + PCI_VPD_DATA));
    save(m);
    m = load_with(1, extra);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_FW_VERSION), 0x030201);
    machine_stop(m);
    unlink(file);
    g_free(chip);
    g_free(fw);
}

static const struct t_case cases[] = {
    { "migration: the function is as it was", function_goes_along },
    { "migration: adapters start anew", adapters_start_anew },
    { "migration: refused with a persistence domain", not_with_a_domain },
    { "with a flash image", flash_image },
};

T_MAIN(cases)
