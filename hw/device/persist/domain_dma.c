/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: accesses of adapters and of other devices.
 *
 * An adapter of a machine with a domain has this file's host operations instead of host.c's.
 * Those for persistent memory call the model.  The others call host.c's after two checks:
 *
 *   order   Any other read or write of the adapter, including an interrupt, is behind its posted
 *           writes on the bus: they reach memory first (E4 of docs/persistence.md).
 *   power   From a cut to the end of the machine's reset the adapter changes nothing.
 *
 * While a recording runs each access becomes an event, under the same lock (recorder.h).
 *
 * Bus addresses are translated on each access, like those of any DMA.  A range that an IOMMU
 * scatters over the domain's memory does not count as persistent memory.
 *
 * Our patch to QEMU (exec/dma-track.h) reports writes of other devices (virtio-blk, NVMe...) once
 * they are in memory, before the device tells the guest of them.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "exec/dma-track.h"
#include "exec/memory.h"
#include "hw/pci/pci.h"
#include "qemu/rcu.h"
#include "domain_object.h"
#include "recorder.h"
#include "staghorn.h"

static const MemTxAttrs memory_only = { .memory = 1 };

/*
 * Limit of the translated pieces of a range.  Without an IOMMU a range has a few; with one, each
 * page of its tables is a piece, and the guest makes the tables.
 */
enum { PIECES_MAX = 4096 };

static bool is_powered_off(const StaghornState *s)
{
    return qatomic_read(&s->domain->powered_off);
}

/* ---- addresses ---- */

/* The machine's address of a piece of persistent memory; *len: at most the requested length. */
static bool translate(StaghornState *s, uint64_t addr, uint64_t *len, bool write, uint64_t *to)
{
    AddressSpace *as = pci_get_address_space(&s->parent_obj);
    StaghornDomain *d = s->domain;
    hwaddr at, n = *len;
    MemoryRegion *mr;

    if (s->gone) { /* removed from the bus */
        *len = 0;
        return false;
    }
    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(as, addr, &at, &n, write, memory_only);
    *len = n;
    for (unsigned i = 0; i < d->dimms; i++) {
        if (mr == d->dimm[i].mr && at < d->dimm[i].size) {
            *to = d->dimm[i].base + at;
            return true;
        }
    }
    return false;
}

/* The same for the whole range, if it is contiguous in the machine, in not too many pieces. */
static bool translate_all(StaghornState *s, uint64_t addr, uint64_t len, bool write, uint64_t *to)
{
    uint64_t done = 0, n, piece;
    unsigned pieces = 0;

    do {
        n = len - done;
        if (pieces++ == PIECES_MAX) {
            return false;
        }
        if (!translate(s, addr + done, &n, write, &piece) || !n || (done && piece != *to + done)) {
            return false;
        }
        if (!done) {
            *to = piece;
        }
        done += n;
    } while (done < len);
    return true;
}

static struct sg_persist_source source_of(const StaghornState *s, const struct sg_pm_who *who)
{
    return (struct sg_persist_source){
        .agent = SG_PERSIST_ADAPTER,
        .unit = s->pm_unit,
        .qpn = who->qpn,
        .msn = who->msn,
        .at = who->to,
        .mode = who->mode,
    };
}

/* ---- recording ---- */

/* The event of an access, all but what only its kind has. */
static struct sg_trace_event event_of(const StaghornState *s, enum sg_trace_kind kind,
                                      const struct sg_pm_who *who, uint64_t addr, uint64_t len)
{
    static const struct sg_pm_who nobody;
    struct sg_persist_source source = source_of(s, who ? who : &nobody);
    struct sg_trace_event e = sg_crash_event(kind, &source, addr, len);

    e.ordinal = who ? who->ordinal : 0;
    return e;
}

static void record(const StaghornState *s, enum sg_trace_kind kind, uint64_t addr, uint64_t len)
{
    struct sg_trace_event e = event_of(s, kind, NULL, addr, len);

    if (staghorn_recording) {
        staghorn_record(&e);
    }
}

static void will_change(uint64_t addr, uint64_t len)
{
    if (staghorn_recording) {
        staghorn_record_will_change(STAGHORN_DEVICE, addr, len);
    }
}

/* A payload longer than any event's becomes several. */
static void record_placement(const StaghornState *s, const struct sg_pm_who *who, uint64_t addr,
                             const uint8_t *buf, size_t len)
{
    struct sg_trace_event e = event_of(s, SG_TRACE_PLACE, who, addr, len);

    for (size_t n; staghorn_recording && len; len -= n, buf += n, e.addr += n, e.at += n) {
        n = MIN(len, SG_TRACE_DATA_MAX);
        e.len = n;
        e.data = buf;
        staghorn_record(&e);
    }
}

static void record_flush(const StaghornState *s, enum sg_trace_kind kind, uint64_t addr,
                         const struct sg_pm_op *op, uint64_t status)
{
    struct sg_trace_event e = event_of(s, kind, &op->who, addr, op->len);

    e.arg = op->flags;
    e.status = status;
    staghorn_record(&e);
}

/* ---- persistent memory ---- */

static unsigned pm_query(void *opaque, uint64_t addr, uint64_t len)
{
    StaghornState *s = opaque;
    unsigned found = 0, pieces;
    uint64_t to, first = 0, n;

    if (!len || addr + len - 1 < addr) {
        return 0;
    }
    if (translate_all(s, addr, len, true, &to)) {
        return SG_PM_PERSISTENT | SG_PM_SOME;
    }
    for (pieces = 0; first < len && !found; first += n) {
        n = len - first;
        if (pieces++ == PIECES_MAX) {
            return SG_PM_SOME; /* the rest was not checked */
        }
        if (translate(s, addr + first, &n, true, &to)) {
            found = SG_PM_SOME;
        }
        if (!n) {
            break;
        }
    }
    return found;
}

static bool pm_place(void *opaque, const struct sg_pm_who *who, uint64_t addr, const void *buf,
                     size_t len)
{
    StaghornState *s = opaque;
    struct sg_persist_source source = source_of(s, who);
    uint64_t to;
    bool placed;

    if (!translate_all(s, addr, len, true, &to)) {
        return false;
    }
    staghorn_domain_enter(s->domain);
    will_change(to, len);
    placed = sg_persist_dma_write(s->domain->model, &source, to, buf, len);
    if (placed) {
        record_placement(s, who, to, buf, len);
    }
    staghorn_domain_leave(s->domain);
    return placed || is_powered_off(s);
}

static void pm_complete_writes(void *opaque, uint32_t qpn)
{
    StaghornState *s = opaque;

    const struct sg_pm_who who = { .qpn = qpn };
    struct sg_trace_event e = event_of(s, SG_TRACE_SETTLE, &who, 0, 0);

    sg_persist_settle(staghorn_domain_enter(s->domain), s->pm_unit, qpn);
    if (staghorn_recording) {
        staghorn_record(&e);
    }
    staghorn_domain_leave(s->domain);
}

static enum sg_pm_result pm_flush(void *opaque, struct sg_pm_op *op)
{
    StaghornState *s = opaque;
    StaghornDomain *d = s->domain;
    struct sg_persist_source source = source_of(s, &op->who);
    enum sg_pm_result result;
    uint64_t to, offset, status;

    if (!translate_all(s, op->addr, op->len, true, &to)) {
        return SG_PM_FAILED;
    }
    if (op->flags & SG_FLUSH_PERSISTENT) {
        staghorn_pages_sync(d);
    }
    staghorn_domain_enter(d);
    if (sg_persist_find(d->model, to, op->len, &offset) != SG_PERSIST_NO_EXTENT) {
        d->sweep_end = offset + op->len;
        d->sweep_all = false;
    }
    if (staghorn_recording && op->phase == SG_PM_NEW) {
        record_flush(s, SG_TRACE_FLUSH_BEGIN, to, op, 0);
    }
    result = sg_persist_flush(d->model, &source, to, op);
    if (staghorn_recording && sg_crash_flush_ends(op, result, &status)) {
        record_flush(s, SG_TRACE_FLUSH_END, to, op, status);
    }
    d->sweep_end = UINT64_MAX;
    d->sweep_all = true;
    staghorn_domain_leave(d);
    return result;
}

static enum sg_pm_result pm_media_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    StaghornState *s = opaque;
    enum sg_pm_result result;
    uint64_t to;

    if (!translate_all(s, addr, len, false, &to)) {
        return SG_PM_FAILED;
    }
    result = sg_persist_media_read(staghorn_domain_enter(s->domain), to, buf, len);
    record(s, SG_TRACE_MEDIA_READ, to, len);
    staghorn_domain_leave(s->domain);
    return result;
}

static bool pm_store(void *opaque, const struct sg_pm_who *who, uint64_t addr,
                     const uint8_t atom[8])
{
    StaghornState *s = opaque;
    struct sg_persist_source source = source_of(s, who);
    uint64_t to;
    bool stored;

    if (!translate_all(s, addr, SG_PERSIST_ATOM, true, &to)) {
        return false;
    }
    staghorn_domain_enter(s->domain);
    will_change(to, SG_PERSIST_ATOM);
    stored = sg_persist_atom_store(s->domain->model, &source, to, atom);
    if (stored && staghorn_recording) {
        struct sg_trace_event e = event_of(s, SG_TRACE_ATOMIC_WRITE, who, to, SG_PERSIST_ATOM);

        e.data = atom;
        staghorn_record(&e);
    }
    staghorn_domain_leave(s->domain);
    return stored || is_powered_off(s);
}

static bool pm_cmpxchg64(void *opaque, const struct sg_pm_who *who, uint64_t addr, uint64_t *value,
                         uint64_t desired)
{
    StaghornState *s = opaque;
    struct sg_persist_source source = source_of(s, who);
    uint64_t to, compared = *value;
    bool done;

    if (!translate_all(s, addr, SG_PERSIST_ATOM, true, &to)) {
        return false;
    }
    staghorn_domain_enter(s->domain);
    will_change(to, SG_PERSIST_ATOM);
    done = sg_persist_atomic(s->domain->model, &source, to, value, desired);
    if (done && staghorn_recording) {
        struct sg_trace_event e = event_of(s, SG_TRACE_ATOMIC, who, to, 0);

        e.value = compared;
        e.swap = desired;
        e.found = *value;
        staghorn_record(&e);
    }
    staghorn_domain_leave(s->domain);
    return done || is_powered_off(s);
}

static void pm_poison(void *opaque, uint64_t addr, uint64_t len)
{
    StaghornState *s = opaque;
    uint64_t to;

    if (translate_all(s, addr, len, true, &to)) {
        sg_persist_poison(staghorn_domain_enter(s->domain), to, len);
        record(s, SG_TRACE_POISON, to, len);
        staghorn_domain_leave(s->domain);
    }
}

static void pm_milestone(void *opaque, const struct sg_pm_who *who, enum sg_pm_milestone what)
{
    StaghornState *s = opaque;
    struct sg_persist_source source = source_of(s, who);

    struct sg_trace_event e = event_of(s, SG_TRACE_MILESTONE, who, 0, 0);

    e.arg = what;
    sg_persist_milestone(staghorn_domain_enter(s->domain), &source, what);
    if (staghorn_recording) {
        staghorn_record(&e);
    }
    staghorn_domain_leave(s->domain);
}

/* ---- other operations ---- */

static void fence(StaghornState *s)
{
    sg_persist_device_fence(staghorn_domain_enter(s->domain), s->pm_unit);
    record(s, SG_TRACE_DEVICE_FENCE, 0, 0);
    staghorn_domain_leave(s->domain);
}

/* The adapter is about to read: the stores that it will see have left the CPUs. */
static void read_fence(StaghornState *s, uint64_t addr, uint64_t len)
{
    StaghornDomain *d = s->domain;
    uint64_t to, n;
    bool waits;

    sg_persist_device_fence(staghorn_domain_enter(d), s->pm_unit);
    record(s, SG_TRACE_DEVICE_FENCE, 0, 0);
    waits = sg_persist_cpu_waits(d->model) || staghorn_recording;
    staghorn_domain_leave(d);
    for (; waits && len; addr += n, len -= n) {
        n = len;
        if (translate(s, addr, &n, false, &to)) {
            sg_persist_dma_read(staghorn_domain_enter(d), s->pm_unit, to, n);
            record(s, SG_TRACE_DMA_READ, to, n);
            staghorn_domain_leave(d);
        }
        if (!n) {
            return;
        }
    }
}

static bool fenced_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    read_fence(opaque, addr, len);
    return staghorn_host_ops.dma_read(opaque, addr, buf, len);
}

static bool fenced_dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    if (is_powered_off(opaque)) {
        return true;
    }
    fence(opaque);
    return staghorn_host_ops.dma_write(opaque, addr, buf, len);
}

static bool fenced_dma_store64(void *opaque, uint64_t addr, uint64_t value)
{
    if (is_powered_off(opaque)) {
        return true;
    }
    fence(opaque);
    return staghorn_host_ops.dma_store64(opaque, addr, value);
}

static bool fenced_dma_cmpxchg64(void *opaque, uint64_t addr, uint64_t *value, uint64_t desired)
{
    if (is_powered_off(opaque)) {
        return true;
    }
    fence(opaque);
    return staghorn_host_ops.dma_cmpxchg64(opaque, addr, value, desired);
}

static void *fenced_map(void *opaque, uint64_t addr, size_t *len, bool for_write)
{
    if (for_write && is_powered_off(opaque)) {
        return NULL;
    }
    read_fence(opaque, addr, for_write ? 0 : *len);
    return staghorn_host_ops.map(opaque, addr, len, for_write);
}

static void fenced_raise(void *opaque, unsigned vector)
{
    if (!is_powered_off(opaque)) {
        fence(opaque);
        staghorn_host_ops.raise(opaque, vector);
    }
}

/* ---- arrival and removal ---- */

static void add_operations(struct sg_host_ops *ops)
{
    ops->dma_read = fenced_dma_read;
    ops->dma_write = fenced_dma_write;
    ops->dma_store64 = fenced_dma_store64;
    ops->dma_cmpxchg64 = fenced_dma_cmpxchg64;
    ops->map = fenced_map;
    ops->raise = fenced_raise;
    ops->pm_query = pm_query;
    ops->pm_place = pm_place;
    ops->pm_complete_writes = pm_complete_writes;
    ops->pm_flush = pm_flush;
    ops->pm_media_read = pm_media_read;
    ops->pm_store = pm_store;
    ops->pm_cmpxchg64 = pm_cmpxchg64;
    ops->pm_poison = pm_poison;
    ops->pm_milestone = pm_milestone;
}

/* Numbers of the machine's adapters.  Without a domain they only name them in a recording. */
enum { UNITS = 1024 };
static DECLARE_BITMAP(units, UNITS);

bool staghorn_pm_attach(StaghornState *s, Error **errp)
{
    StaghornDomain *d = staghorn_domain();
    unsigned unit = find_first_zero_bit(units, UNITS);

    if (d && unit >= SG_PERSIST_DEVICES) {
        error_setg(errp, "a persistence domain serves %d adapters at most", SG_PERSIST_DEVICES);
        return false;
    }
    s->ops = staghorn_host_ops;
    if (d) {
        add_operations(&s->ops);
    }
    s->ops.observe = staghorn_recording ? staghorn_observe : NULL;
    s->pm_unit = MIN(unit, UNITS - 1);
    set_bit(s->pm_unit, units);
    s->domain = d;
    return true;
}

void staghorn_pm_reset(StaghornState *s)
{
    if (s->domain && s->domain->model) {
        fence(s);
    }
}

void staghorn_pm_detach(StaghornState *s)
{
    staghorn_pm_reset(s);
    clear_bit(s->pm_unit, units);
    s->domain = NULL;
}

bool staghorn_pm_find(StaghornState *s, uint64_t addr, uint64_t len, uint64_t *to)
{
    return s->domain && s->domain->model && len && translate_all(s, addr, len, false, to);
}

bool staghorn_is_powered_off(const StaghornState *s)
{
    return s->domain && is_powered_off(s);
}

void staghorn_domain_sync(StaghornDomain *d)
{
    if (d->config.store_buffer) { /* not while a recording runs: cpu_track.c */
        sg_persist_cpu_sync(staghorn_domain_enter(d));
        staghorn_domain_leave(d);
    }
}

void staghorn_cpus_sync(StaghornState *s)
{
    if (s->domain) {
        staghorn_domain_sync(s->domain);
    }
}

/* ---- other devices ---- */

/*
 * RAM has been written by another device, by ours past the model, or by QEMU itself.
 * Without tracking nothing is reported, since it is unknown which of these lines CPUs flushed;
 * but a recording has it in any case.
 */
static void others_wrote(MemoryRegion *mr, hwaddr offset, hwaddr len)
{
    static const struct sg_persist_source other = { .agent = SG_PERSIST_OTHER };
    StaghornDomain *d = staghorn_domain();

    for (const StaghornDimm *dimm = d->dimm; dimm < d->dimm + d->dimms; dimm++) {
        if (mr == dimm->mr && offset < dimm->size && (d->config.cpu_tracking || d->recording)) {
            struct sg_trace_event e = {
                .kind = SG_TRACE_OTHER_WRITE,
                .addr = dimm->base + offset,
                .len = MIN(len, dimm->size - offset),
                .data = dimm->visible + offset,
            };

            staghorn_domain_enter(d);
            will_change(e.addr, e.len);
            if (d->config.cpu_tracking) {
                sg_persist_other_write(d->model, &other, e.addr, e.len);
            }
            if (staghorn_recording) {
                staghorn_record(&e);
            }
            staghorn_domain_leave(d);
        }
    }
}

void staghorn_domain_watch_dma(void)
{
    dma_track = others_wrote;
}
