/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: a machine that is put back in the same process, each time with another
 * content of its NVDIMMs.  For checkers of crash images: recovery begins behind the boot, and a
 * machine that recovery has ruined is good again some milliseconds later.
 *
 *   rewind-keep = true   keeps the present state: what is on its way reaches the media; the state
 *                        of devices and ordinary memory are copied; the media become a private
 *                        mapping, so from now on their file does not change
 *                        again: the present state of devices and ordinary memory, with the NVDIMMs
 *                        as they were kept the first time.  A command that ran in between has
 *                        warmed up the guest
 *   rewind = FILE        puts the machine back; its NVDIMMs are as they were kept, with the
 *                        differences of this crash image; "": without any
 *   rewind-keep = false  puts the machine back, and forgets the kept state: the media are the file
 *
 * A machine that ran runs on.  Its clocks are those of the kept state, so its processors never see
 * that time has passed.  Adapters are as after a reset, as after a migration; what their driver
 * knew of them, and their connections, is void.  So the driver is best not bound when the state is
 * kept.
 *
 * The domain begins anew: nothing is on its way, faults and bad lines are as they were kept; bad
 * lines are those of the image instead, if there is one.  They have not been announced: as after a
 * start of the machine, a guest meets them when it reads them.
 *
 * What would outlive the machine prevents keeping: a drive that can be written, a device that QEMU
 * cannot save.  While a state is kept, the machine does not migrate, and a machine that has
 * ended (its guest has rebooted, say, where QEMU then pauses) can be put back as well.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "exec/memory.h"
#include "exec/tb-flush.h"
#include "hw/pci/pci_device.h"
#include "io/channel-buffer.h"
#include "migration/blocker.h"
#include "migration/global_state.h"
#include "migration/migration.h"
#include "migration/qemu-file.h"
#include "migration/savevm.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "system/block-backend.h"
#include "system/cpus.h"
#include "system/hw_accel.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "crash/crash_image.h"
#include "recorder.h"
#include "rewind.h"

enum {
    STREAM_HEAD = 8, /* magic and version, in front of the devices' sections */
    BAD_MAX = 2 * SG_PERSIST_BAD_RANGES,
};

/* The duration of a rewind, microseconds. */
typedef struct RewindTimes {
    int64_t image, stop, reset, ram, nvdimms, devices, start, all;
} RewindTimes;

typedef struct StaghornRewind {
    GByteArray *devices; /* their state, as QEMU's stream */
    GByteArray *masters; /* which of them could read memory */
    struct StaghornRewindRam *ram;
    struct sg_persist_faults faults[SG_PERSIST_EXTENTS];
    uint8_t hash[SG_PERSIST_EXTENTS][SG_TRACE_HASH]; /* of the media */
    struct sg_persist_bad *bad;
    unsigned bad_count;
    bool running;
    Error *blocker; /* of migrations */
    uint64_t count; /* of rewinds */
    StaghornRewindPages pages;
    uint64_t lines; /* of the last image */
    RewindTimes times;
} StaghornRewind;

static int64_t us_since(int64_t *start_ns)
{
    int64_t now = get_clock(), us = (now - *start_ns) / 1000;

    *start_ns = now;
    return us;
}

/* ---- NVDIMMs ---- */

static void remap(void *at, const StaghornDimm *dimm, bool shared)
{
    int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE);

    if (mmap(at, dimm->size, PROT_READ | PROT_WRITE, flags, dimm->file, dimm->file_offset) ==
        MAP_FAILED) {
        error_report("NVDIMM of %s: cannot map its file anew: %s", dimm->name, strerror(errno));
        abort(); /* the old mapping may be gone */
    }
}

/* Everything is on the media; from now on they are private, as visible memory is. */
static void keep_nvdimms(StaghornDomain *d, StaghornRewind *r)
{
    struct sg_persist_bad bad;

    r->bad = g_new(struct sg_persist_bad, BAD_MAX);
    while (r->bad_count < BAD_MAX && sg_persist_bad_range(d->model, r->bad_count, &bad)) {
        r->bad[r->bad_count++] = bad;
    }
    for (unsigned i = 0; i < d->dimms; i++) {
        StaghornDimm *dimm = &d->dimm[i];

        sg_persist_get_faults(d->model, dimm->extent, &r->faults[i]);
        remap(dimm->media, dimm, false);
        sg_trace_hash_memory(dimm->media, dimm->size, r->hash[i]);
    }
}

static void apply_run(StaghornDomain *d, const struct sg_crash_image_run *run)
{
    StaghornDimm *dimm = d->dimm;

    if (run->bad) {
        sg_persist_mark_bad(d->model, run->addr, run->len, run->bad);
        return;
    }
    while (run->addr - dimm->base >= dimm->size) {
        dimm++;
    }
    memcpy(dimm->media + (run->addr - dimm->base), run->octets, run->len);
    memcpy(dimm->visible + (run->addr - dimm->base), run->octets, run->len);
}

/* image NULL: there is none. */
static void put_back_nvdimms(StaghornDomain *d, StaghornRewind *r, struct sg_crash_image *image)
{
    struct sg_crash_image_run run;

    for (unsigned i = 0; i < d->dimms; i++) {
        staghorn_pages_discard(&d->dimm[i]);
        if (madvise(d->dimm[i].media, d->dimm[i].size, MADV_DONTNEED)) {
            error_report("NVDIMM of %s: %s", d->dimm[i].name, strerror(errno));
            abort(); /* a verdict about other content would be wrong */
        }
        staghorn_rewind_translations(&d->dimm[i]);
    }
    staghorn_rewind_reads_clear();
    staghorn_domain_renew_model(d);
    for (unsigned i = 0; i < d->dimms; i++) {
        sg_persist_set_faults(d->model, d->dimm[i].extent, &r->faults[i]);
    }
    for (unsigned i = 0; !image && i < r->bad_count; i++) {
        sg_persist_mark_bad(d->model, r->bad[i].addr, r->bad[i].len, r->bad[i].kind);
    }
    while (image && sg_crash_image_next(image, &run)) {
        apply_run(d, &run);
    }
    d->owing = false;
    d->cutting = false;
    qatomic_set(&d->powered_off, false);
    qemu_bh_cancel(d->cut_bh);
    staghorn_bad_ranges_anew(d);
}

/* Does the image belong to these NVDIMMs with this content? */
static bool image_fits(StaghornDomain *d, const StaghornRewind *r,
                       const struct sg_crash_image *image, Error **errp)
{
    bool fits = image->head.extent_count == d->dimms;

    for (unsigned i = 0; fits && i < d->dimms; i++) {
        unsigned n = 0;

        while (n < d->dimms && image->head.extent[n].base != d->dimm[i].base) {
            n++;
        }
        fits = n < d->dimms && image->head.extent[n].size == d->dimm[i].size;
        if (fits && memcmp(image->head.base[n], r->hash[i], SG_TRACE_HASH)) {
            error_setg(errp, "the image has another base than the content of %s", d->dimm[i].name);
            return false;
        }
    }
    if (!fits) {
        error_setg(errp, "the image is one of other NVDIMMs");
    }
    return fits;
}

/* ---- devices ---- */

/*
 * Can devices be loaded before the memory map is rendered anew?  They read memory through the
 * present map: that of their bus if they are its masters.
 */
static int add_master(Object *object, void *opaque)
{
    PCIDevice *pci = (PCIDevice *)object_dynamic_cast(object, TYPE_PCI_DEVICE);

    if (pci) {
        g_byte_array_append(opaque, (const uint8_t *)&pci->bus_master_enable_region.enabled, 1);
    }
    return 0;
}

static GByteArray *bus_masters(void)
{
    GByteArray *masters = g_byte_array_new();

    object_child_foreach_recursive(object_get_root(), add_master, masters);
    return masters;
}

static bool save_devices(StaghornRewind *r, Error **errp)
{
    QIOChannelBuffer *buffer = qio_channel_buffer_new(1 << 20);
    QEMUFile *file = qemu_file_new_output(QIO_CHANNEL(buffer));
    int result;

    if (r->masters) {
        g_byte_array_unref(r->masters);
    }
    r->masters = bus_masters();
    global_state_store();
    result = qemu_save_device_state(file);
    result = qemu_fflush(file) || result;
    if (result) {
        error_setg(errp, "the state of the machine's devices cannot be saved");
    }
    if (r->devices) {
        g_byte_array_unref(r->devices);
    }
    r->devices = g_byte_array_new();
    g_byte_array_append(r->devices, buffer->data, buffer->usage);
    qemu_fclose(file);
    object_unref(OBJECT(buffer));
    return !result;
}

static bool load_devices(StaghornRewind *r, Error **errp)
{
    QIOChannelBuffer *buffer = qio_channel_buffer_new(r->devices->len);
    QEMUFile *file;
    int result;

    memcpy(buffer->data, r->devices->data, r->devices->len);
    buffer->usage = r->devices->len;
    file = qemu_file_new_input(QIO_CHANNEL(buffer));
    for (unsigned i = 0; i < STREAM_HEAD; i++) {
        qemu_get_byte(file);
    }
    cpu_synchronize_all_pre_loadvm();
    tb_keep_at_load = true; /* rewind_ram.c discarded those that became wrong */
    result = qemu_load_device_state(file);
    tb_keep_at_load = false;
    qemu_fclose(file);
    object_unref(OBJECT(buffer));
    if (result < 0) {
        error_setg(errp, "the state of the machine's devices cannot be loaded");
    }
    return result >= 0;
}

/* ---- keep ---- */

static bool can_keep(StaghornDomain *d, Error **errp)
{
    BlockBackend *drive = NULL;

    if (!d->model) {
        error_setg(errp, "the machine is not there yet");
        return false;
    }
    while ((drive = blk_next(drive))) {
        if (blk_is_inserted(drive) && blk_is_writable(drive)) {
            error_setg(errp, "a drive can be written: what is on it would not be put back");
            return false;
        }
    }
    return !migration_is_blocked(errp);
}

static void forget(StaghornDomain *d)
{
    StaghornRewind *r = d->rewind;

    d->rewind = NULL;
    staghorn_rewind_reads_end();
    staghorn_rewind_ram_free(r->ram);
    if (r->devices) {
        g_byte_array_unref(r->devices);
    }
    if (r->masters) {
        g_byte_array_unref(r->masters);
    }
    if (r->blocker) {
        migrate_del_blocker(&r->blocker);
    }
    g_free(r->bad);
    g_free(r);
}

static bool keep_all(StaghornDomain *d, StaghornRewind *r, Error **errp)
{
    staghorn_map_write_back(d);
    if (!staghorn_domain_settle(d, errp)) {
        return false;
    }
    staghorn_bad_ranges_update(d);
    d->rewind = r;
    staghorn_map_update(d); /* visible memory and media are two mappings */
    keep_nvdimms(d, r);
    r->ram = staghorn_rewind_ram_keep(errp);
    if (!r->ram || !save_devices(r, errp)) {
        return false;
    }
    error_setg(&r->blocker, "a state of the machine is kept (rewind-keep)");
    return migrate_add_blocker(&r->blocker, errp) >= 0;
}

static void keep(StaghornDomain *d, Error **errp)
{
    StaghornRewind *r;
    bool running = runstate_is_running();

    if (!can_keep(d, errp)) {
        return;
    }
    r = g_new0(StaghornRewind, 1);
    r->running = running;
    if (running) {
        vm_stop(RUN_STATE_PAUSED);
    }
    if (!keep_all(d, r, errp)) {
        if (d->rewind) {
            forget(d);
            for (unsigned i = 0; i < d->dimms; i++) {
                remap(d->dimm[i].media, &d->dimm[i], true);
            }
            staghorn_map_update(d);
        } else {
            g_free(r);
        }
    }
    if (running) {
        vm_start();
    }
}

/* ---- rewind ---- */

static bool map_is_right(const StaghornRewind *r)
{
    g_autoptr(GByteArray) now = bus_masters();

    return now->len == r->masters->len && !memcmp(now->data, r->masters->data, now->len);
}

/*
 * The machine's devices are reset first, because a stream has only what differs from a reset
 * device.  Memory is put back behind the reset, which writes to it, and before the devices are
 * loaded, which read it.  The memory map at the end is mostly the one from before the reset; so it
 * is rendered once, at the end.
 */
static bool put_back(StaghornDomain *d, struct sg_crash_image *image, Error **errp)
{
    StaghornRewind *r = d->rewind;
    bool good, once = map_is_right(r);
    int64_t at = get_clock();

    memory_region_transaction_begin();
    cpu_synchronize_all_states();
    qemu_devices_reset(RESET_TYPE_SNAPSHOT_LOAD);
    r->times.reset = us_since(&at);
    good = staghorn_rewind_ram(r->ram, &r->pages, errp);
    r->times.ram = us_since(&at);
    put_back_nvdimms(d, r, image);
    r->times.nvdimms = us_since(&at);
    if (!once) {
        memory_region_transaction_commit();
    }
    good = good && load_devices(r, errp);
    if (once) {
        memory_region_transaction_commit();
    }
    r->times.devices = us_since(&at);
    return good;
}

/* The machine stops, if it has not ended before. */
static bool halt(Error **errp)
{
    if (staghorn_recording) {
        error_setg(errp, "a recording runs: end it first (staghorn-record-stop)");
        return false;
    }
    if (runstate_is_running()) {
        vm_stop(RUN_STATE_PAUSED);
    }
    if (qemu_reset_requested_get() || qemu_shutdown_requested_get() ||
        runstate_check(RUN_STATE_SUSPENDED)) {
        error_setg(errp, "the machine is being reset or ends: try again");
        return false;
    }
    runstate_set(RUN_STATE_PRELAUNCH);
    return true;
}

static void rewind_to(StaghornDomain *d, struct sg_crash_image *image, Error **errp)
{
    StaghornRewind *r = d->rewind;
    int64_t at = get_clock();
    bool good;

    if (!halt(errp)) {
        return;
    }
    r->times.stop = us_since(&at);
    good = put_back(d, image, errp);
    at = get_clock();
    r->count++;
    r->lines = image ? image->lines : 0;
    if (good && r->running) {
        vm_start();
    }
    r->times.start = us_since(&at);
}

/* Another state of devices and ordinary memory, with the NVDIMMs as they were kept first. */
static void keep_again(StaghornDomain *d, Error **errp)
{
    StaghornRewind *r = d->rewind;
    bool running = runstate_is_running();

    if (!running && !runstate_check(RUN_STATE_PAUSED)) {
        error_setg(errp, "rewind-keep: the machine has ended");
        return;
    }
    if (halt(errp)) {
        put_back_nvdimms(d, r, NULL);
        staghorn_rewind_ram_again(r->ram);
        save_devices(r, errp);
        r->running = running;
        if (running) {
            vm_start();
        }
    }
}

static void set_rewind(Object *object, const char *path, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);
    int64_t start = get_clock(), at = start;
    struct sg_crash_image image;
    GMappedFile *file = NULL;
    GError *error = NULL;
    const char *wrong;

    if (!d->rewind) {
        error_setg(errp, "rewind: no state is kept (rewind-keep)");
        return;
    }
    if (*path) {
        file = g_mapped_file_new(path, false, &error);
        if (!file) {
            error_setg(errp, "rewind: %s", error->message);
            g_error_free(error);
            return;
        }
        wrong = sg_crash_image_open(&image, (const uint8_t *)g_mapped_file_get_contents(file),
                                    g_mapped_file_get_length(file));
        if (wrong) {
            error_setg(errp, "rewind: %s: %s", path, wrong);
            g_mapped_file_unref(file);
            return;
        }
    }
    d->rewind->times.image = us_since(&at);
    if (!file || image_fits(d, d->rewind, &image, errp)) {
        rewind_to(d, file ? &image : NULL, errp);
    }
    d->rewind->times.all = us_since(&start);
    if (file) {
        sg_crash_image_clear(&image);
        g_mapped_file_unref(file);
    }
}

static void end(StaghornDomain *d, Error **errp)
{
    bool running = d->rewind->running;
    Error *error = NULL;

    d->rewind->running = false;
    rewind_to(d, NULL, &error);
    if (error) {
        d->rewind->running = running;
        error_propagate(errp, error);
        return;
    }
    forget(d);
    for (unsigned i = 0; i < d->dimms; i++) {
        remap(d->dimm[i].media, &d->dimm[i], true);
    }
    staghorn_map_update(d);
    staghorn_bad_ranges_update(d);
    if (running) {
        vm_start();
    }
}

static bool get_keep(Object *object, Error **errp)
{
    return STAGHORN_DOMAIN(object)->rewind;
}

static void set_keep(Object *object, bool value, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);

    if (value && d->rewind) {
        keep_again(d, errp);
    } else if (value) {
        keep(d, errp);
    } else if (d->rewind) {
        end(d, errp);
    } else {
        error_setg(errp, "rewind-keep: no state is kept");
    }
}

/* ---- what it cost ---- */

static char *get_rewind_state(Object *object, Error **errp)
{
    const StaghornRewind *r = STAGHORN_DOMAIN(object)->rewind;
    g_autoptr(QDict) state = qdict_new();
    g_autoptr(GString) json = NULL;

    qdict_put_bool(state, "kept", r);
    if (r) {
        qdict_put_int(state, "memory", staghorn_rewind_ram_octets(r->ram));
        qdict_put_int(state, "devices", r->devices->len);
        qdict_put_int(state, "rewinds", r->count);
        qdict_put_int(state, "pages-written", r->pages.written);
        qdict_put_int(state, "pages-changed", r->pages.changed);
        qdict_put_int(state, "image-lines", r->lines);
        qdict_put_int(state, "image-us", r->times.image);
        qdict_put_int(state, "stop-us", r->times.stop);
        qdict_put_int(state, "reset-us", r->times.reset);
        qdict_put_int(state, "memory-us", r->times.ram);
        qdict_put_int(state, "nvdimms-us", r->times.nvdimms);
        qdict_put_int(state, "devices-us", r->times.devices);
        qdict_put_int(state, "start-us", r->times.start);
        qdict_put_int(state, "rewind-us", r->times.all);
    }
    json = qobject_to_json(QOBJECT(state));
    return g_strdup(json->str);
}

void staghorn_domain_class_rewind(ObjectClass *klass)
{
    object_class_property_add_bool(klass, "rewind-keep", get_keep, set_keep);
    object_class_property_set_description(klass, "rewind-keep", "Keeps the machine's state");
    object_class_property_add_str(klass, "rewind", NULL, set_rewind);
    object_class_property_set_description(klass, "rewind",
                                          "Puts the machine back, with a crash image");
    object_class_property_add_str(klass, "rewind-state", get_rewind_state, NULL);
}
