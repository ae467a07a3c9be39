/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The persistence domain as a QEMU object: the NVDIMMs of a machine and over them the model of
 * hw/core/persist.  At most one in a machine; there before any device, and for good.
 *
 * persist.c        the object: NVDIMMs, the model, time, the machine's end
 * persist_props.c  its properties; persist_faults.c: those of failing media, and parsers
 * persist_cut.c    power cuts
 * persist_dma.c    what adapters do to it (staghorn.h)
 * persist_pages.c  which pages CPUs changed
 * persist_ram.c    the loss of ordinary memory
 * persist_map.c    where visible memory and the media are one
 * persist_bad.c    lines that cannot be read, and who is told; persist_mce.c: CPUs are
 *
 * Threads: the object and everything but the model belong to the big lock.  The model is used by
 * vCPU threads as well (cpu_track.c) and has a lock of its own (domain_lock.h), which is taken
 * last.
 */
#ifndef SG_DEVICE_PERSIST_H
#define SG_DEVICE_PERSIST_H

/* QEMU is built with warnings that do not stop it; newer compilers refuse this one. */
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
    uint8_t *media;             /* our shared mapping of the same file */
    uint64_t file_offset;       /* of it */
    int file;
    bool merged;                /* visible is a shared mapping, too */
    int extent;                 /* in the model */
    struct StaghornPages *pages; /* persist_pages.c */
    unsigned long *bad_pages;   /* guest pages with a bad line (persist_bad.c) */
} StaghornDimm;

/* What a cut took, microseconds. */
typedef struct StaghornCutTimes {
    int64_t stop, model, discard, clear, reset, all;
} StaghornCutTimes;

struct StaghornDomain {
    Object parent_obj;
    ResettableState reset_state;

    char *text[STAGHORN_PROPS_MAX];  /* properties as they were given (persist_props.c) */
    struct sg_persist_config config; /* what they come to */
    uint64_t seed;
    bool tracking;                   /* CPU stores are reported */

    StaghornDomainLock lock;         /* of the model */
    struct sg_persist *model;        /* NULL until the machine is complete */
    StaghornDimm dimm[SG_PERSIST_EXTENTS];
    unsigned dimms;
    /* Of a flush: comparisons go so far (offset in the extent), and over late changes only. */
    uint64_t sweep_end;
    bool sweep_all;
    bool unit_used[SG_PERSIST_DEVICES];

    uint64_t bad_generation;         /* of the model's bad ranges as last seen */
    struct StaghornBads *bads;       /* persist_bad.c */
    QEMUTimer *back_timer;           /* persist_map.c: what a cut left in visible memory... */
    bool owing;                      /* is not on the media yet, */
    unsigned back_dimm;              /* from here on */
    uint64_t back_offset;

    QEMUTimer *timer;                /* sg_persist_next_due() */
    uint64_t timer_ns;               /* what it is set to, SG_NEVER: not */
    QEMUBH *cut_bh;                  /* an armed cut is due */
    bool dark;                       /* no power: from the cut to the end of the reset */
    bool cutting;                    /* a cut is done, its reset is not */
    int64_t cut_start_ns;
    uint64_t cuts;
    StaghornCutTimes times;          /* of the last cut */
    struct sg_persist_report *report;

    Notifier machine_done, shutdown;
};

/* The machine's domain, or NULL. */
StaghornDomain *staghorn_domain(void);

/*
 * Into the model and out again; 'enter' lets the model's clock catch up.  Nobody calls anything of
 * QEMU's in between.
 */
struct sg_persist *staghorn_domain_enter(StaghornDomain *d);
void staghorn_domain_leave(StaghornDomain *d);
/* A device is told something by a CPU: what waits in store buffers has left them.  Any thread. */
void staghorn_domain_sync(StaghornDomain *d);
/* From now on writes of other devices to the NVDIMMs are inputs of the model (persist_dma.c). */
void staghorn_domain_watch_dma(void);
/* All that is visible reaches the media. */
void staghorn_domain_orderly(StaghornDomain *d);

/* persist.c; NULL: no NVDIMM of the domain is called so. */
StaghornDimm *staghorn_domain_dimm(StaghornDomain *d, const char *name);

/* ---- Properties (persist_props.c) ---- */

void staghorn_domain_class_props(ObjectClass *klass);
void staghorn_domain_init_props(StaghornDomain *d);
void staghorn_domain_free_props(StaghornDomain *d);
/* Those which name NVDIMMs or need the model, once there are any. */
bool staghorn_domain_apply_props(StaghornDomain *d, Error **errp);
const char *staghorn_domain_prop(const StaghornDomain *d, const char *name);
/* Takes a property's text, or refuses it. */
typedef bool StaghornApply(StaghornDomain *d, const char *text, Error **errp);
/*
 * "lose-all", "keep-all", "random[:SEED]", "worst-for:RANGE[:SEED]"; "": the property.  Seeds not
 * given come from the property seed and the number of cuts so far.
 */
bool staghorn_domain_parse_policy(StaghornDomain *d, const char *text,
                                  struct sg_persist_policy *policy, Error **errp);

/* Parsers; 'name' is the property's, for errors (persist_faults.c). */
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
/* Could it be switched on in this machine?  NULL likewise. */
extern bool (*staghorn_cpu_can_track)(Error **errp);

/* ---- Cuts (persist_cut.c) ---- */

void staghorn_domain_init_cuts(StaghornDomain *d);
void staghorn_domain_class_cuts(ObjectClass *klass);
void staghorn_domain_free_cuts(StaghornDomain *d);
/* Cuts the power of the whole machine, now; the reset follows in the main loop. */
void staghorn_domain_cut(StaghornDomain *d, const struct sg_persist_policy *policy);
/* The model's struct sg_persist_ops.cut_due. */
void staghorn_domain_cut_due(void *opaque);

/* ---- Lines that cannot be read (persist_bad.c) ---- */

/* When the NVDIMMs are there; reads what the file of the property bad-file says. */
bool staghorn_bads_init(StaghornDomain *d, Error **errp);
/* The model's bad ranges have changed.  Any thread. */
void staghorn_bads_changed(StaghornDomain *d);
/* What changed is in the file on return.  Main thread. */
void staghorn_bads_update(StaghornDomain *d);
/* Could a load from the page with this octet fail?  Any thread. */
bool staghorn_bads_page(StaghornDomain *d, const void *host);
/* Does a load of the octets fail?  The first bad line's address.  Any thread. */
bool staghorn_bads_load(StaghornDomain *d, const void *host, unsigned size, uint64_t *line);

/* ---- Machine checks (persist_mce.c) ---- */

/* From now on vCPUs' loads are asked about, where this accelerator can.  False: it cannot. */
bool staghorn_mce_watch_loads(StaghornDomain *d);
/*
 * Tells the guest of an error that nobody has come across yet: a machine check, action optional,
 * for the 2^order octets at addr.  done() then says, on any thread under the big lock, whether it
 * was taken; not: a processor is busy with another, or takes none.
 */
void staghorn_mce_announce(uint64_t addr, unsigned order, void (*done)(bool taken));

/* ---- Mappings (persist_map.c) ---- */

bool staghorn_map_init(StaghornDomain *d, Error **errp);
/* Configuration, faults or bad lines have changed, or are about to.  Main thread. */
void staghorn_map_update(StaghornDomain *d);
/* A cut has left visible memory as it is: the media follow. */
void staghorn_map_owe(StaghornDomain *d);
/* They have, on return.  Main thread. */
void staghorn_map_write_back(StaghornDomain *d);

/* ---- Ordinary memory (persist_ram.c) ---- */

/*
 * All ordinary memory of the machine loses its content.  It reads as noise, the same for the same
 * seed; as zero where it is a file's, or where the host does not let us.
 */
void staghorn_ram_scramble(uint64_t seed);

/* ---- Previews (persist_preview.c) ---- */

void staghorn_domain_class_preview(ObjectClass *klass);

/* ---- Pages (persist_pages.c) ---- */

/* Does this accelerator tell what CPUs change? */
bool staghorn_pages_possible(Error **errp);
/* Before entering the model for what compares: a Flush, a cut, the end, a new configuration. */
void staghorn_pages_sync(const StaghornDomain *d);
struct StaghornPages *staghorn_pages_new(StaghornDimm *dimm);
void staghorn_pages_free(struct StaghornPages *pages);
/* The model's struct sg_persist_ops.next_differing. */
uint64_t staghorn_pages_next_differing(void *opaque, int extent, uint64_t from, uint64_t *len);
/* Visible memory is to equal the media: drops the private pages. */
void staghorn_pages_discard(StaghornDimm *dimm);
/* The backend's file; -1: there is none. */
int staghorn_pages_file(MemoryRegion *mr, uint64_t *offset, bool *shared);

#endif
