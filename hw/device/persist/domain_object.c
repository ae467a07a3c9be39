/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The persistence domain as a QEMU object.
 *
 *   -object staghorn-domain,id=dom0,domain=adr
 *   -object memory-backend-file,id=mem0,size=256M,share=off,mem-path=media.img
 *   -device nvdimm,memdev=mem0
 *
 * Each NVDIMM has two memories.  CPUs and devices see QEMU's own mapping, which is private:
 * stores make private pages and do not reach the file.  The media is a second, shared mapping of
 * the file, which only the model writes: it copies a line there to persist it.  A power cut
 * discards the private pages; whatever ends this process has the same effect.  (Where caches
 * survive, the two mappings are one: domain_map.c.)
 *
 * The object is created before the devices, so that adapters find it, but its NVDIMMs are known
 * only when the machine is complete; then it creates the model.
 *
 * The end of the machine.  A guest that powers off, or reboots where QEMU is to exit then,
 * leaves its platform time to write the caches back: everything visible reaches the media.
 * QEMU told to quit, or killed, is a power cut.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qemu/nvdimm-utils.h"
#include "hw/mem/nvdimm.h"
#include "hw/qdev-core.h"
#include "qom/object_interfaces.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "system/system.h"
#include "domain_object.h"
#include "machine_clock.h"
#include "recorder.h"

bool (*staghorn_cpu_track)(StaghornDomain *d, bool on, Error **errp);
bool (*staghorn_cpu_can_track)(Error **errp);

static StaghornDomain *the_domain;

static const struct sg_persist_ops model_ops = {
    .cut_due = staghorn_domain_cut_due,
    .next_differing = staghorn_pages_next_differing,
    .may_stay = true,
};

StaghornDomain *staghorn_domain(void)
{
    return the_domain;
}

StaghornDimm *staghorn_domain_dimm(StaghornDomain *d, const char *name)
{
    for (unsigned i = 0; i < d->dimms; i++) {
        if (!strcmp(d->dimm[i].name, name)) {
            return &d->dimm[i];
        }
    }
    return NULL;
}

/* ---- the model: lock and time ---- */

struct sg_persist *staghorn_domain_enter(StaghornDomain *d)
{
    uint64_t now = staghorn_clock_ns();

    staghorn_domain_lock(&d->lock);
    sg_persist_tick(d->model, now);
    if (unlikely(staghorn_recording)) {
        staghorn_record_time(now);
    }
    return d->model;
}

void staghorn_domain_leave(StaghornDomain *d)
{
    uint64_t due = sg_persist_next_due(d->model);
    bool sooner = due < d->timer_ns;
    bool bad = sg_persist_bad_generation(d->model) != d->bad_generation;

    if (sooner) {
        d->timer_ns = due;
    }
    d->bad_generation = sg_persist_bad_generation(d->model);
    staghorn_domain_unlock(&d->lock);
    if (bad) {
        staghorn_bad_ranges_changed(d);
    }
    if (sooner && due < INT64_MAX) {
        timer_mod_ns(d->timer, staghorn_clock_virtual(due));
    }
}

void staghorn_domain_orderly(StaghornDomain *d)
{
    static const struct sg_trace_event orderly = { .kind = SG_TRACE_ORDERLY };

    staghorn_pages_sync(d);
    sg_persist_orderly(staghorn_domain_enter(d));
    if (staghorn_recording) {
        staghorn_record(&orderly);
    }
    staghorn_domain_leave(d);
}

static void time_passed(void *opaque)
{
    StaghornDomain *d = opaque;

    staghorn_domain_lock(&d->lock);
    d->timer_ns = SG_NEVER;
    staghorn_domain_unlock(&d->lock);
    staghorn_domain_enter(d);
    staghorn_domain_leave(d);
}

/* ---- NVDIMMs ---- */

/* Our own mapping of the media file. */
static bool map_media(StaghornDimm *dimm, Error **errp)
{
    uint64_t offset;
    bool shared;
    int fd = staghorn_pages_file(dimm->mr, &offset, &shared);
    void *media;

    if (fd < 0) {
        error_setg(errp,
                   "memdev %s of an NVDIMM has no file: a domain needs "
                   "memory-backend-file with share=off",
                   dimm->name);
        return false;
    }
    if (shared) {
        error_setg(errp, "memdev %s of an NVDIMM is shared with its file: a domain needs share=off",
                   dimm->name);
        return false;
    }
    media = mmap(NULL, dimm->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    if (media == MAP_FAILED) {
        error_setg_errno(errp, errno, "memdev %s: cannot write its file", dimm->name);
        return false;
    }
    dimm->media = media;
    dimm->file = fd;
    dimm->file_offset = offset;
    return true;
}

static bool add_extent(StaghornDomain *d, StaghornDimm *dimm)
{
    struct sg_persist_extent extent = {
        .base = dimm->base,
        .size = dimm->size,
        .visible = dimm->visible,
        .media = dimm->media,
        .name = dimm->name,
    };

    dimm->extent = sg_persist_add(d->model, &extent);
    return dimm->extent != SG_PERSIST_NO_EXTENT;
}

static bool add_dimm(StaghornDomain *d, NVDIMMDevice *nvdimm, Error **errp)
{
    PCDIMMDevice *pc = PC_DIMM(nvdimm);
    StaghornDimm *dimm = &d->dimm[d->dimms];

    if (nvdimm->label_size) {
        error_setg(errp,
                   "the NVDIMM of memdev %s has labels, which would not survive as they "
                   "should: a domain needs label-size=0",
                   object_get_canonical_path_component(OBJECT(pc->hostmem)));
        return false;
    }
    *dimm = (StaghornDimm){
        .backend = pc->hostmem,
        .mr = host_memory_backend_get_memory(pc->hostmem),
        .name = g_strdup(object_get_canonical_path_component(OBJECT(pc->hostmem))),
        .base = object_property_get_uint(OBJECT(pc), PC_DIMM_ADDR_PROP, &error_abort),
        .size = object_property_get_uint(OBJECT(pc), PC_DIMM_SIZE_PROP, &error_abort),
    };
    object_ref(OBJECT(dimm->backend));
    dimm->visible = memory_region_get_ram_ptr(dimm->mr);
    d->dimms++;
    if (!map_media(dimm, errp)) {
        return false;
    }
    if (!add_extent(d, dimm)) {
        error_setg(errp, "memdev %s cannot be added to the domain", dimm->name);
        return false;
    }
    dimm->pages = staghorn_pages_new(dimm);
    return true;
}

/* Does the property list the NVDIMM?  An empty property lists all. */
static bool is_wanted(char **wanted, NVDIMMDevice *nvdimm)
{
    HostMemoryBackend *backend = PC_DIMM(nvdimm)->hostmem;

    return !wanted || g_strv_contains((const char *const *)wanted,
                                      object_get_canonical_path_component(OBJECT(backend)));
}

static bool add_dimms(StaghornDomain *d, Error **errp)
{
    const char *list = staghorn_domain_prop(d, "memdevs");
    g_auto(GStrv) wanted = *list ? g_strsplit(list, ":", 0) : NULL;
    g_autoptr(GSList) nvdimms = nvdimm_get_device_list();

    for (GSList *each = nvdimms; each; each = each->next) {
        NVDIMMDevice *nvdimm = NVDIMM(each->data);

        if (!is_wanted(wanted, nvdimm)) {
            continue;
        }
        if (d->dimms == SG_PERSIST_EXTENTS) {
            error_setg(errp, "a domain has %d NVDIMMs at most", SG_PERSIST_EXTENTS);
            return false;
        }
        if (!add_dimm(d, nvdimm, errp)) {
            return false;
        }
    }
    for (char **name = wanted; name && *name; name++) {
        if (!staghorn_domain_dimm(d, *name)) {
            error_setg(errp, "memdevs: no NVDIMM has the memdev '%s'", *name);
            return false;
        }
    }
    if (!d->dimms) {
        error_setg(errp, "there is no NVDIMM for the domain: add -device nvdimm,memdev=ID");
        return false;
    }
    return true;
}

static struct sg_persist *new_model(StaghornDomain *d)
{
    sg_persist_limits_init(&d->limits);
    d->limits.seed = d->seed;
    return sg_persist_new(&d->config, &d->limits, &model_ops, d);
}

void staghorn_domain_renew_model(StaghornDomain *d)
{
    staghorn_domain_lock(&d->lock);
    sg_persist_free(d->model);
    d->model = new_model(d);
    for (unsigned i = 0; i < d->dimms; i++) {
        add_extent(d, &d->dimm[i]);
    }
    d->timer_ns = SG_NEVER;
    d->bad_generation = sg_persist_bad_generation(d->model);
    staghorn_domain_unlock(&d->lock);
    timer_del(d->timer);
}

static void machine_complete(Notifier *notifier, void *opaque)
{
    StaghornDomain *d = container_of(notifier, StaghornDomain, machine_done);
    Error *error = NULL;

    d->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, time_passed, d);
    d->model = new_model(d);
    if (!staghorn_pages_possible(&error) || !add_dimms(d, &error) ||
        !staghorn_domain_apply_props(d, &error) || !staghorn_bad_ranges_init(d, &error) ||
        !staghorn_map_init(d, &error)) {
        error_prepend(&error, "%s: ", TYPE_STAGHORN_DOMAIN);
        error_report_err(error);
        exit(EXIT_FAILURE);
    }
    staghorn_domain_watch_dma();
    qemu_register_resettable(OBJECT(d));
    staghorn_domain_save_init(d);
}

/* The machine and the process end. */
static void machine_ends(Notifier *notifier, void *opaque)
{
    StaghornDomain *d = container_of(notifier, StaghornDomain, shutdown);
    ShutdownCause *cause = opaque;

    if (d->model && !d->cutting &&
        (*cause == SHUTDOWN_CAUSE_GUEST_SHUTDOWN || *cause == SHUTDOWN_CAUSE_GUEST_RESET)) {
        staghorn_domain_orderly(d);
    }
    if (d->cutting && d->report->stays) {
        staghorn_map_owe(d);
    }
    staghorn_map_write_back(d);
    staghorn_bad_ranges_update(d);
    staghorn_record_machine_ends();
}

/* ---- the object ---- */

static void domain_complete(UserCreatable *uc, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(uc);

    if (staghorn_domain_impossible) {
        error_setg(errp, "%s", staghorn_domain_impossible);
        return;
    }
    if (the_domain) {
        error_setg(errp, "a machine has one persistence domain: list more memdevs in the first");
        return;
    }
    if (phase_check(PHASE_MACHINE_INITIALIZED)) {
        error_setg(errp, "a persistence domain has to be there from the machine's start");
        return;
    }
    the_domain = d;
    d->machine_done.notify = machine_complete;
    qemu_add_machine_init_done_notifier(&d->machine_done);
    d->shutdown.notify = machine_ends;
    qemu_register_shutdown_notifier(&d->shutdown);
}

static bool domain_can_be_deleted(UserCreatable *uc)
{
    return STAGHORN_DOMAIN(uc) != the_domain;
}

static void domain_init(Object *object)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);

    d->timer_ns = SG_NEVER;
    d->sweep_end = UINT64_MAX;
    d->sweep_all = true;
    staghorn_domain_init_props(d);
    staghorn_domain_init_cuts(d);
    staghorn_domain_init_boot(d);
}

/* Only for an object that was refused: the other one lives until the process ends. */
static void domain_finalize(Object *object)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);

    staghorn_domain_free_boot(d);
    staghorn_domain_free_cuts(d);
    staghorn_domain_free_props(d);
}

static void domain_class_init(ObjectClass *klass, void *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(klass);

    ucc->complete = domain_complete;
    ucc->can_be_deleted = domain_can_be_deleted;
    staghorn_domain_class_props(klass);
    staghorn_domain_class_cuts(klass);
    staghorn_domain_class_preview(klass);
    staghorn_domain_class_boot(klass);
    staghorn_domain_class_rewind(klass);
    staghorn_domain_class_rewind_reads(klass);
}

static const TypeInfo domain_info = {
    .name = TYPE_STAGHORN_DOMAIN,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(StaghornDomain),
    .instance_init = domain_init,
    .instance_finalize = domain_finalize,
    .class_init = domain_class_init,
    .interfaces = (InterfaceInfo[]){ { TYPE_USER_CREATABLE }, { TYPE_RESETTABLE_INTERFACE }, {} },
};

static void domain_register(void)
{
    type_register_static(&domain_info);
}

type_init(domain_register)
