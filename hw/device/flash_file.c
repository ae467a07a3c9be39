/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: the flash image.
 *
 * The property romfile names an image of the whole chip (include/staghorn/flash.h).  QEMU would map
 * the file itself.  We take the property over before it does, because the bus sees only the
 * expansion ROM of the running firmware, which an update changes.  With flash-write=on the
 * driver's writes to the chip go to the file, which we lock; else they last as long as this QEMU.
 * A thread writes the file, because the host's disk may be slow: the driver's command waits for it,
 * but neither other vCPUs nor the main loop do.
 *
 * Without an image there is no ROM, no vital product data and no flash command, and the model's
 * defaults are the profile.
 *
 * A reset of the function starts the firmware of the later valid slot, with its profile; the core
 * is created anew if that firmware is a different one than before.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/datadir.h"
#include "qemu/error-report.h"
#include "qemu/units.h"
#include "block/thread-pool.h"
#include "hw/pci/pci_regs.h"
#include "migration/vmstate.h"
#include "net/eth.h"
#include "flash_file.h"
#include "prop_set.h"
#include "persist/domain_object.h"
#include "staghorn.h"

enum {
    VPD_CAP_LEN = 8,
    VPD_ADDR = 2,
    VPD_DATA = 4,
    VPD_ADDR_MASK = 0x7fff,
    VPD_DONE = 0x8000,
    VPD_ID_STRING = 0x82,
    VPD_READ_ONLY = 0x90,
    VPD_END = 0x78,
};

static bool is_zero_mac(const uint8_t *mac)
{
    static const MACAddr zero;

    return !memcmp(mac, zero.a, ETH_ALEN);
}

/* ---- the image ---- */

/* Reads the file; one octet more than the chip is enough to see that it is too long. */
static uint8_t *read_image(StaghornFlash *f, bool write, size_t *len, Error **errp)
{
    int fd = qemu_open(f->path, write ? O_RDWR : O_RDONLY, errp);
    g_autofree uint8_t *octets = g_malloc(SG_FLASH_SIZE + 1);
    ssize_t n;

    if (fd < 0) {
        error_prepend(errp, "romfile: ");
        return NULL;
    }
    if (write && qemu_lock_fd(fd, 0, 0, true) < 0) {
        error_setg(errp, "romfile: '%s' is in use, and flash-write=on needs it alone", f->path);
        close(fd);
        return NULL;
    }
    for (*len = 0; *len < SG_FLASH_SIZE + 1; *len += n) {
        n = RETRY_ON_EINTR(pread(fd, octets + *len, SG_FLASH_SIZE + 1 - *len, *len));
        if (n < 0) {
            error_setg_errno(errp, errno, "romfile: '%s' cannot be read", f->path);
            close(fd);
            return NULL;
        }
        if (n == 0) {
            break;
        }
    }
    if (write) {
        f->fd = fd;
    } else {
        close(fd);
    }
    return g_steal_pointer(&octets);
}

/* One write and its result.  If the adapter is removed meanwhile, the file is closed here. */
typedef struct StaghornFlashJob {
    StaghornState *s; /* referenced */
    int fd;
    uint32_t offset, len;
    bool done, alone;
    int error; /* errno, 0: written */
    uint8_t octets[SG_FLASH_CHUNK_MAX];
} StaghornFlashJob;

/* In a thread. */
static int write_octets(void *opaque)
{
    StaghornFlashJob *job = opaque;

    for (uint32_t at = 0; at < job->len;) {
        ssize_t n =
            RETRY_ON_EINTR(pwrite(job->fd, job->octets + at, job->len - at, job->offset + at));
        if (n <= 0) {
            return n ? -errno : -ENOSPC;
        }
        at += n;
    }
    return qemu_fdatasync(job->fd) ? -errno : 0;
}

static void free_job(StaghornFlashJob *job)
{
    object_unref(OBJECT(job->s));
    g_free(job);
}

static void octets_written(void *opaque, int ret)
{
    StaghornFlashJob *job = opaque;

    job->done = true;
    job->error = -ret;
    if (job->alone) {
        close(job->fd);
        free_job(job);
    } else {
        staghorn_owe(job->s, STAGHORN_DUE_TURN);
    }
}

static enum sg_flash_medium outcome(StaghornFlash *f)
{
    StaghornFlashJob *job = f->job;
    int error = job->error;

    if (!job->done) {
        return SG_FLASH_BUSY;
    }
    f->job = NULL;
    free_job(job);
    if (error) {
        warn_report_once("flash: '%s' cannot be written: %s", f->path, strerror(error));
        return SG_FLASH_REFUSED;
    }
    return SG_FLASH_TAKEN;
}

static uint64_t flash_writes;

uint64_t staghorn_flash_writes(void)
{
    return flash_writes;
}

static enum sg_flash_medium program_file(void *opaque, uint32_t offset, const void *buf,
                                         uint32_t len)
{
    StaghornState *s = opaque;
    StaghornFlash *f = &s->flash;
    StaghornFlashJob *job;

    if (f->fd < 0) {
        return SG_FLASH_TAKEN;
    }
    if (f->job) {
        return outcome(f);
    }
    flash_writes++;
    job = f->job = g_new0(StaghornFlashJob, 1);
    job->s = s;
    job->fd = f->fd;
    job->offset = offset;
    job->len = len;
    memcpy(job->octets, buf, len);
    object_ref(OBJECT(s));
    thread_pool_submit_aio(write_octets, job, octets_written, job);
    return SG_FLASH_BUSY;
}

/* Closes the file; if a thread is still writing to it, later. */
static void close_file(StaghornFlash *f)
{
    if (f->job && !f->job->done) {
        f->job->alone = true;
    } else {
        if (f->job) {
            free_job(f->job);
        }
        if (f->fd >= 0) {
            close(f->fd);
        }
    }
    f->job = NULL;
    f->fd = -1;
}

static bool open_chip(StaghornState *s, Error **errp)
{
    const struct sg_flash_ops ops = { .program = program_file, .opaque = s };
    StaghornFlash *f = &s->flash;
    g_autofree uint8_t *octets = NULL;
    g_autofree char *why = NULL;
    size_t len;

    octets = read_image(f, s->flash_write, &len, errp);
    if (!octets) {
        return false;
    }
    f->chip = sg_flash_new(sg_span_of(octets, len), &ops, &why);
    if (!f->chip) {
        error_setg(errp, "romfile: '%s' is refused as a flash image: %s", f->path, why);
        return false;
    }
    return true;
}

bool staghorn_flash_init(StaghornState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);
    StaghornFlash *f = &s->flash;
    const struct sg_identity *id;

    f->fd = -1;
    if (!pci->romfile || !*pci->romfile) {
        if (s->flash_write) {
            error_setg(errp, "flash-write=on needs an image: romfile=FILE");
            return false;
        }
        return true;
    }
    f->path = qemu_find_file(QEMU_FILE_TYPE_BIOS, pci->romfile);
    if (!f->path) {
        f->path = g_strdup(pci->romfile);
    }
    g_free(pci->romfile);
    pci->romfile = NULL;
    if (!open_chip(s, errp)) {
        return false;
    }
    id = sg_flash_identity(f->chip);
    if (is_unicast_ether_addr(id->mac) && is_zero_mac(s->conf.macaddr.a)) {
        memcpy(s->conf.macaddr.a, id->mac, ETH_ALEN);
    }
    if (id->guid && !staghorn_prop_is_set(s, "guid")) {
        s->config.guid = id->guid;
    }
    return true;
}

void staghorn_flash_hide(StaghornState *s)
{
    if (PCI_DEVICE(s)->has_rom) { /* realize failed halfway */
        vmstate_unregister_ram(&PCI_DEVICE(s)->rom, DEVICE(s));
        PCI_DEVICE(s)->has_rom = false;
    }
}

void staghorn_flash_exit(StaghornState *s)
{
    StaghornFlash *f = &s->flash;

    sg_flash_free(f->chip);
    f->chip = NULL;
    close_file(f);
    g_free(f->path);
    f->path = NULL;
}

/* ---- profile ---- */

static void apply_firmware(StaghornState *s)
{
    const struct sg_firmware *fw = sg_flash_firmware(s->flash.chip);

    s->config = s->flash.before;
    sg_profile_apply(&fw->profile, &s->config, staghorn_prop_is_set, s);
    memcpy(s->config.fw_version, fw->version, sizeof(s->config.fw_version));
    s->config.fw_version_word = fw->version_word;
}

bool staghorn_flash_configure(StaghornState *s, Error **errp)
{
    StaghornFlash *f = &s->flash;
    char buf[200];
    const char *wrong;

    if (!f->chip) {
        return true;
    }
    f->before = s->config;
    apply_firmware(s);
    sg_profile_bound(&f->bound, &f->before, &s->config);
    wrong = sg_adapter_check_config(&s->config, buf, sizeof(buf));
    if (wrong) {
        error_setg(errp, "%s (romfile '%s' has profile %s)", wrong, f->path,
                   sg_flash_firmware(f->chip)->profile.name);
        return false;
    }
    return true;
}

/* ---- vital product data ---- */

static void vpd_item(StaghornFlash *f, const char *keyword, const char *text)
{
    size_t len = strlen(text);

    if (!len) {
        return;
    }
    g_assert(f->vpd_len + 3 + len < sizeof(f->vpd) - 8);
    memcpy(f->vpd + f->vpd_len, keyword, 2);
    f->vpd[f->vpd_len + 2] = len;
    memcpy(f->vpd + f->vpd_len + 3, text, len);
    f->vpd_len += 3 + len;
}

/* PCI Local Bus Specification 3.0, appendix I. */
static void vpd_make(StaghornState *s)
{
    StaghornFlash *f = &s->flash;
    const struct sg_identity *id = sg_flash_identity(f->chip);
    const struct sg_firmware *fw = sg_flash_firmware(f->chip);
    g_autofree char *mac = g_strdup_printf("%02x%02x%02x%02x%02x%02x", id->mac[0], id->mac[1],
                                           id->mac[2], id->mac[3], id->mac[4], id->mac[5]);
    g_autofree char *guid = g_strdup_printf("%016" PRIx64, id->guid);
    size_t name = strlen(id->product), resource;
    uint8_t sum = 0;

    memset(f->vpd, 0, sizeof(f->vpd));
    f->vpd[0] = VPD_ID_STRING;
    f->vpd[1] = name;
    memcpy(f->vpd + 3, id->product, name);
    resource = 3 + name;
    f->vpd[resource] = VPD_READ_ONLY;
    f->vpd_len = resource + 3;
    vpd_item(f, "PN", id->part);
    vpd_item(f, "SN", id->serial);
    vpd_item(f, "V0", is_zero_mac(id->mac) ? "" : mac);
    vpd_item(f, "V1", id->guid ? guid : "");
    vpd_item(f, "V2", fw->version);
    vpd_item(f, "V3", fw->profile.name);
    memcpy(f->vpd + f->vpd_len, "RV\1", 3);
    for (unsigned i = 0; i < f->vpd_len + 3; i++) {
        sum += f->vpd[i];
    }
    /* The checksum covers the length as well, so set it first. */
    f->vpd[resource + 1] = f->vpd_len + 4 - (resource + 3);
    sum += f->vpd[resource + 1];
    f->vpd[f->vpd_len + 3] = -sum;
    f->vpd[f->vpd_len + 4] = VPD_END;
    f->vpd_len += 5;
}

/* The driver writes an address with bit 15 clear, and finds four octets when the bit is set. */
void staghorn_flash_write_config(StaghornState *s, uint32_t addr, int len)
{
    StaghornFlash *f = &s->flash;
    uint8_t *cap = PCI_DEVICE(s)->config + f->vpd_cap;
    uint16_t at;

    if (!f->vpd_cap || !ranges_overlap(addr, len, f->vpd_cap + VPD_ADDR, 2)) {
        return;
    }
    at = pci_get_word(cap + VPD_ADDR);
    if (at & VPD_DONE) { /* a write: nothing is writable */
        pci_set_word(cap + VPD_ADDR, at & VPD_ADDR_MASK);
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        cap[VPD_DATA + i] = at + i < f->vpd_len ? f->vpd[at + i] : 0;
    }
    pci_set_word(cap + VPD_ADDR, at | VPD_DONE);
}

/* ---- expansion ROM ---- */

static void show_rom(StaghornState *s)
{
    PCIDevice *pci = PCI_DEVICE(s);
    struct sg_span rom = sg_flash_firmware(s->flash.chip)->rom;
    uint8_t *p;

    if (!pci->has_rom) {
        return;
    }
    p = memory_region_get_ram_ptr(&pci->rom);
    memset(p, 0xff, SG_ROM_BAR_SIZE);
    if (rom.len) {
        memcpy(p, rom.p, rom.len);
    }
    memory_region_set_dirty(&pci->rom, 0, SG_ROM_BAR_SIZE);
}

bool staghorn_flash_expose(StaghornState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);
    int cap;

    if (!s->flash.chip) {
        return true;
    }
    vpd_make(s);
    cap = pci_add_capability(pci, PCI_CAP_ID_VPD, 0, VPD_CAP_LEN, errp);
    if (cap < 0) {
        return false;
    }
    s->flash.vpd_cap = cap;
    pci_set_word(pci->wmask + cap + VPD_ADDR, 0xffff);
    memset(pci->cmask + cap + VPD_ADDR, 0, VPD_CAP_LEN - VPD_ADDR); /* differs between machines */
    if (pci->rom_bar) {
        if (!memory_region_init_rom(&pci->rom, OBJECT(pci), "staghorn.rom", SG_ROM_BAR_SIZE,
                                    errp)) {
            return false;
        }
        pci->has_rom = true;
        pci_register_bar(pci, PCI_ROM_SLOT, 0, &pci->rom);
        show_rom(s);
    }
    return true;
}

/* ---- reset ---- */

void staghorn_flash_boot(StaghornState *s)
{
    char buf[200];

    if (!s->flash.chip || !sg_flash_boot(s->flash.chip)) {
        return;
    }
    apply_firmware(s);
    sg_profile_limit(&s->config, &s->flash.bound);
    /* Each value was checked when the image was loaded or the update accepted. */
    g_assert(!sg_adapter_check_config(&s->config, buf, sizeof(buf)));
    vpd_make(s);
    show_rom(s);
    staghorn_host_renew(s);
}

bool staghorn_last_cut(void *opaque, struct sg_pm_cut *cut)
{
    StaghornState *s = opaque;
    const struct sg_persist_report *r = s->domain ? s->domain->report : NULL;
    uint64_t kept, lost;

    if (!r) {
        return false;
    }
    kept = r->untracked[SG_PERSIST_KEPT];
    lost = r->untracked[SG_PERSIST_LOST] + r->untracked[SG_PERSIST_PARTLY] +
           r->untracked[SG_PERSIST_REFUSED];
    for (unsigned stage = 0; stage < SG_PERSIST_STAGES; stage++) {
        unsigned unit = stage <= SG_PERSIST_S1 ? SG_PERSIST_LINE : 1;

        kept += DIV_ROUND_UP(r->count[stage][SG_PERSIST_KEPT], unit);
        for (unsigned fate = 0; fate < SG_PERSIST_FATES; fate++) {
            lost += fate == SG_PERSIST_KEPT ? 0 : DIV_ROUND_UP(r->count[stage][fate], unit);
        }
    }
    *cut = (struct sg_pm_cut){
        .cuts = MIN(s->domain->cuts, UINT32_MAX),
        .kept = MIN(kept, UINT32_MAX),
        .lost = MIN(lost, UINT32_MAX),
    };
    return true;
}
