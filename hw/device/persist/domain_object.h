/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The persistence domain as a QEMU object: the NVDIMMs of a machine and the model of
 * hw/core/persist above them.  A machine has at most one; it is created before any device and never
 * removed.
 *
 * domain_object.c   the object: NVDIMMs, the model, time, the machine's end
 * domain_props.c    its properties; domain_faults.c: those of failing media, and parsers
 * domain_cut.c      power cuts
 * domain_dma.c      accesses of adapters and of other devices (staghorn.h)
 * domain_pages.c    the pages that CPUs changed
 * domain_ram.c      the loss of ordinary memory
 * domain_boot.c     a machine that resumes behind its boot after a cut
 * domain_map.c      where visible memory and the media are one
 * domain_bad.c      unreadable lines, and their announcement; domain_mce.c: machine checks
 * domain_preview.c  the property "preview"
 * domain_save.c     everything reaches the media: for a saved machine, and for a recording
 * rewind.c          machines that are put back; rewind_ram.c: their ordinary memory;
 *                   rewind_reads.c: what they read
 * cpu_track.c       reports of CPU stores to the model; cpu_loads.c, cpu_marks.c: beside it
 *
 * Threads: everything except the model belongs to the big lock.  vCPU threads use the model as
 * well (cpu_track.c), so it has a lock of its own (domain_lock.h), which is the innermost one.
 */
#ifndef SG_DEVICE_DOMAIN_OBJECT_H
#define SG_DEVICE_DOMAIN_OBJECT_H

/* QEMU's build only warns about this; newer compilers make it an error. */
#pragma GCC diagnostic error "-Wimplicit-function-declaration"

#include "qemu/notify.h"
#include "qemu/timer.h"
#include "hw/resettable.h"
#include "qom/object.h"
#include "system/hostmem.h"
#include "domain_lock.h"
#include "persist/persist.h"

#define TYPE_STAGHORN_DOMAIN "staghorn-domain"
OBJECT_DECLARE_SIMPLE_TYPE(StaghornDomain, STAGHORN_DOMAIN)

enum { STAGHORN_PROPS_MAX = 32 };

/* One NVDIMM.  Its visible memory is QEMU's private mapping of the media file. */
typedef struct StaghornDimm {
    HostMemoryBackend *backend; /* referenced */
    MemoryRegion *mr;           /* the backend's */
    char *name;                 /* the backend's id */
    uint64_t base, size;        /* guest-physical */
    uint8_t *visible;
    uint8_t *media;       /* our shared mapping of the same file */
    uint64_t file_offset; /* of it */
    int file;
    bool merged;                 /* visible is a shared mapping as well */
    int extent;                  /* in the model */
    struct StaghornPages *pages; /* domain_pages.c */
    unsigned long *bad_pages;    /* guest pages with a bad line (domain_bad.c) */
} StaghornDimm;

/* The duration of a cut, microseconds. */
typedef struct StaghornCutTimes {
    int64_t stop, model, discard, clear, reset, all;
} StaghornCutTimes;

struct StaghornDomain {
    Object parent_obj;
    ResettableState reset_state;

    char *text[STAGHORN_PROPS_MAX];  /* properties as they were set (domain_props.c) */
    struct sg_persist_config config; /* their meaning for the model */
    struct sg_persist_limits limits; /* of the model */
    bool recording; /* the model has other settings: staghorn_domain_set_recording() */
    uint64_t seed;
    bool tracking; /* CPU stores are reported */

    StaghornDomainLock lock;  /* of the model */
    struct sg_persist *model; /* NULL until the machine is complete */
    StaghornDimm dimm[SG_PERSIST_EXTENTS];
    uint32_t dimms;
    /* For a flush: comparisons go up to this offset in the extent, over late changes only. */
    uint64_t sweep_end;
    bool sweep_all;

    uint64_t bad_generation;              /* of the model's bad ranges as last seen */
    struct StaghornBadRanges *bad_ranges; /* domain_bad.c */
    QEMUTimer *back_timer;                /* write-back after a cut (domain_map.c) */
    bool owing;                           /* it is not complete */
    unsigned back_dimm;                   /* its next line: NVDIMM, offset */
    uint64_t back_offset;

    QEMUTimer *timer;  /* sg_persist_next_due() */
    uint64_t timer_ns; /* what it is set to, SG_NEVER: not */
    QEMUBH *cut_bh;    /* an armed cut is due */
    bool powered_off;  /* from the cut to the end of the reset */
    bool cutting;      /* a cut is done, its reset is not */
    int64_t cut_start_ns;
    uint64_t cuts;
    StaghornCutTimes times; /* of the last cut */
    struct sg_persist_report *report;

    struct StaghornRewind *rewind; /* a kept state (rewind.c), or NULL */
    struct StaghornBoot *boot;     /* domain_boot.c */

    Notifier machine_done, shutdown;
};

/* Why machines with this QEMU's processors have no domain; NULL: they may have one. */
extern const char *const staghorn_domain_impossible;

/* The machine's domain, or NULL. */
StaghornDomain *staghorn_domain(void);

/*
 * Enters and leaves the model; 'enter' advances the model's clock.  No functions of QEMU may be
 * called in between.
 */
struct sg_persist *staghorn_domain_enter(StaghornDomain *d);
void staghorn_domain_leave(StaghornDomain *d);
/* A CPU writes to a device: store buffers drain.  Any thread. */
void staghorn_domain_sync(StaghornDomain *d);
/* From now on, writes of other devices to the NVDIMMs are inputs of the model (domain_dma.c). */
void staghorn_domain_watch_dma(void);
/* Everything visible reaches the media. */
void staghorn_domain_orderly(StaghornDomain *d);
/* The same; false: some of it cannot, or the power was cut (domain_save.c). */
bool staghorn_domain_settle(StaghornDomain *d, Error **errp);

/*
 * A fresh model in place of the present one: NVDIMMs as they are, nothing on its way, no faults, no
 * bad lines.  The machine is stopped.
 */
void staghorn_domain_renew_model(StaghornDomain *d);

/* The machine can be saved; after all NVDIMMs were added (domain_save.c). */
void staghorn_domain_save_init(StaghornDomain *d);

/* domain_object.c; NULL: the domain has no NVDIMM of that name. */
StaghornDimm *staghorn_domain_dimm(StaghornDomain *d, const char *name);

/* ---- Properties (domain_props.c) ---- */

void staghorn_domain_class_props(ObjectClass *klass);
void staghorn_domain_init_props(StaghornDomain *d);
void staghorn_domain_free_props(StaghornDomain *d);
/* Applies the properties that name NVDIMMs or need the model, once there are any. */
bool staghorn_domain_apply_props(StaghornDomain *d, Error **errp);
const char *staghorn_domain_prop(const StaghornDomain *d, const char *name);
/*
 * A recording begins or has ended (recorder_control.c): while it runs, data move on as early as
 * they may, and nothing is random.  vCPUs are stopped.  False: the media refuse what is on its way
 * to them, and nothing has changed.
 */
bool staghorn_domain_set_recording(StaghornDomain *d, bool on, Error **errp);
/* Takes a property's text, or refuses it. */
typedef bool StaghornApply(StaghornDomain *d, const char *text, Error **errp);
/*
 * "lose-all", "keep-all", "random[:SEED]", "worst-for:RANGE[:SEED]"; "": the property.  Seeds that
 * are left out derive from the property seed and the number of cuts so far.
 */
bool staghorn_domain_parse_policy(StaghornDomain *d, const char *text,
                                  struct sg_persist_policy *policy, Error **errp);

/* Parsers; 'name' is the property's, for errors (domain_faults.c). */
bool staghorn_parse_bool(const char *name, const char *text, bool *value, Error **errp);
bool staghorn_parse_number(const char *name, const char *text, uint64_t *value, Error **errp);
/* The range lies within one NVDIMM; *addr is an address of the machine. */
bool staghorn_parse_range(StaghornDomain *d, const char *name, const char *text, uint64_t *addr,
                          uint64_t *len, Error **errp);
StaghornApply staghorn_set_read_only, staghorn_set_wear_out, staghorn_set_uncorrectable,
    staghorn_set_flush_fail;

/*
 * Switches the reporting of CPU stores on or off, main thread, under the big lock.  Set by
 * cpu_track.c; NULL: this QEMU cannot.
 */
extern bool (*staghorn_cpu_track)(StaghornDomain *d, bool on, Error **errp);
/* Could it be switched on in this machine?  NULL: as above. */
extern bool (*staghorn_cpu_can_track)(Error **errp);

/* ---- Cuts (domain_cut.c) ---- */

void staghorn_domain_init_cuts(StaghornDomain *d);
void staghorn_domain_class_cuts(ObjectClass *klass);
void staghorn_domain_free_cuts(StaghornDomain *d);
/* Cuts the power of the whole machine, now; the reset follows in the main loop. */
void staghorn_domain_cut(StaghornDomain *d, const struct sg_persist_policy *policy);
/* The model's struct sg_persist_ops.cut_due. */
void staghorn_domain_cut_due(void *opaque);

/* ---- Unreadable lines (domain_bad.c) ---- */

/* Called when the NVDIMMs exist; reads the file of the property bad-file. */
bool staghorn_bad_ranges_init(StaghornDomain *d, Error **errp);
/* The model's bad ranges have changed.  Any thread. */
void staghorn_bad_ranges_changed(StaghornDomain *d);
/* The guest, put back, has heard of none: what is bad now is found when it is read. */
void staghorn_bad_ranges_anew(StaghornDomain *d);
/* On return the file has all changes.  Main thread. */
void staghorn_bad_ranges_update(StaghornDomain *d);
/* Could a load from the page with this octet fail?  Any thread. */
bool staghorn_bad_ranges_in_page(StaghornDomain *d, const void *host);
/* Does a load of the octets fail?  *line: address of the first bad line.  Any thread. */
bool staghorn_bad_ranges_load(StaghornDomain *d, const void *host, unsigned size, uint64_t *line);

/* ---- Machine checks (domain_mce.c) ---- */

/* From now on vCPUs check their loads, if the accelerator supports it.  False: it does not. */
bool staghorn_mce_watch_loads(StaghornDomain *d);
/*
 * A vCPU is about to load from a page with bad lines, by translated code that returns to ra: raises
 * its machine check, instead of returning, if the load fails.
 */
void staghorn_mce_load(CPUState *cpu, const void *host, unsigned size, uintptr_t ra);
/*
 * Tells the guest of an error that no load has met yet: a machine check, action optional,
 * for the 2^order octets at addr.  done() then says, on any thread under the big lock, whether it
 * was taken; if not, a processor is busy with another one, or has machine checks disabled.
 */
void staghorn_mce_announce(uint64_t addr, unsigned order, void (*done)(bool taken));

/* ---- Mappings (domain_map.c) ---- */

bool staghorn_map_init(StaghornDomain *d, Error **errp);
/* Configuration, faults or bad lines have changed, or are about to.  Main thread. */
void staghorn_map_update(StaghornDomain *d);
/* A cut has left visible memory unchanged: the media have to follow. */
void staghorn_map_owe(StaghornDomain *d);
/* On return all of it is on the media.  Main thread. */
void staghorn_map_write_back(StaghornDomain *d);

/* ---- Ordinary memory (domain_ram.c) ---- */

/*
 * All ordinary memory of the machine loses its content.  It reads as noise, the same for the same
 * seed; as zero if it belongs to a file, or if the host does not allow it.
 */
void staghorn_ram_scramble(uint64_t seed);
/* The same, for memory that gets other content at once: it need not become noise. */
void staghorn_ram_clear(void);
/* Has that happened since the last call? */
bool staghorn_ram_scrambled(void);

/* ---- Machines that are put back (rewind.c) ---- */

void staghorn_domain_class_rewind(ObjectClass *klass);
void staghorn_domain_class_rewind_reads(ObjectClass *klass); /* rewind_reads.c */

/* ---- Previews (domain_preview.c) ---- */

void staghorn_domain_class_preview(ObjectClass *klass);

/* ---- Pages (domain_pages.c) ---- */

/* Does this accelerator report which pages CPUs change? */
bool staghorn_pages_possible(Error **errp);
/* For use before operations of the model that compare: a Flush, a cut, the end, a new config. */
void staghorn_pages_sync(const StaghornDomain *d);
struct StaghornPages *staghorn_pages_new(StaghornDimm *dimm);
void staghorn_pages_free(struct StaghornPages *pages);
/* The model's struct sg_persist_ops.next_differing. */
uint64_t staghorn_pages_next_differing(void *opaque, int extent, uint64_t from, uint64_t *len);
/* Visible memory must equal the media: drops the private pages. */
void staghorn_pages_discard(StaghornDimm *dimm);
/* The backend's file; -1: there is none. */
int staghorn_pages_file(MemoryRegion *mr, uint64_t *offset, bool *shared);

/* ---- Resuming behind the boot (domain_boot.c) ---- */

void staghorn_domain_class_boot(ObjectClass *klass);
void staghorn_domain_init_boot(StaghornDomain *d);
void staghorn_domain_free_boot(StaghornDomain *d);
/* Whether the machine will resume after the cut whose reset is under way. */
bool staghorn_boot_resumes(StaghornDomain *d);
/* It does so from the main loop, when the reset is complete. */
void staghorn_boot_after_cut(StaghornDomain *d);
/* How often it has. */
uint64_t staghorn_boot_resumed(const StaghornDomain *d);

#endif
