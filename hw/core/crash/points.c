/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each kind of event has a class, which says when it may take images away. */
#include "crash/points.h"
#include "persist/certain.h"

enum event_class {
    CLASS_NONE,    /* changes nothing that a cut leaves */
    CLASS_STORE,   /* of a CPU */
    CLASS_PLACE,   /* data of an adapter, on their way */
    CLASS_ATOM,    /* likewise, but past what other connections have in S0 */
    CLASS_AT_ONCE, /* stores in memory, past buffers and queues */
    CLASS_FENCE,   /* of a CPU */
    CLASS_FLUSH,   /* of a CPU */
    CLASS_SETTLE,  /* S0 to S1 */
    CLASS_DEVICE,  /* an adapter's fence */
    CLASS_READ,    /* of memory, by anybody */
    CLASS_SYNC,    /* empties store buffers */
    CLASS_ANY,     /* anything may become certain */
    CLASS_MARK,
};

/* clang-format off */
static const uint8_t class_of[SG_TRACE_KINDS] = {
    [SG_TRACE_STORE] = CLASS_STORE,
    [SG_TRACE_LOAD] = CLASS_READ,
    [SG_TRACE_CPU_FLUSH] = CLASS_FLUSH,
    [SG_TRACE_CPU_FENCE] = CLASS_FENCE,
    [SG_TRACE_CPU_SYNC] = CLASS_SYNC,
    [SG_TRACE_ORDERLY] = CLASS_ANY,
    [SG_TRACE_WRITE_BACK] = CLASS_ANY,
    [SG_TRACE_DEEP_FLUSH] = CLASS_ANY,
    [SG_TRACE_PLACE] = CLASS_PLACE,
    [SG_TRACE_ATOMIC_WRITE] = CLASS_ATOM,
    [SG_TRACE_ATOMIC] = CLASS_AT_ONCE,
    [SG_TRACE_SETTLE] = CLASS_SETTLE,
    [SG_TRACE_FORGET] = CLASS_ANY,
    [SG_TRACE_DEVICE_FENCE] = CLASS_DEVICE,
    [SG_TRACE_DMA_READ] = CLASS_READ,
    [SG_TRACE_FLUSH_END] = CLASS_ANY,
    [SG_TRACE_MEDIA_READ] = CLASS_READ,
    [SG_TRACE_POISON] = CLASS_ANY,
    [SG_TRACE_OTHER_WRITE] = CLASS_AT_ONCE,
    [SG_TRACE_MARK_BAD] = CLASS_ANY,
    [SG_TRACE_CLEAR_BAD] = CLASS_ANY,
    [SG_TRACE_FAULTS] = CLASS_ANY,
    [SG_TRACE_MARK] = CLASS_MARK,
};
/* clang-format on */

void sg_crash_points_init(struct sg_crash_points *x, enum sg_persist_domain domain)
{
    *x = (struct sg_crash_points){
        .everything = domain == SG_PERSIST_WHOLE,
        .grown = true, /* the content at the start has not been looked at */
    };
}

/* Has the vCPU done this since its last fence?  One that cannot be has. */
static bool has_done(const struct sg_crash_points *x, uint64_t unit,
                     enum sg_crash_points_stores what)
{
    return unit >= SG_PERSIST_VCPUS || x->storing[what][unit / 64] >> (unit % 64) & 1;
}

static bool is_busy(const struct sg_crash_points *x, uint64_t unit)
{
    return has_done(x, unit, SG_CRASH_POINTS_PLAIN) || has_done(x, unit, SG_CRASH_POINTS_NT) ||
           has_done(x, unit, SG_CRASH_POINTS_FLUSH);
}

static bool has_posted(const struct sg_crash_points *x, uint64_t unit)
{
    return unit >= SG_PERSIST_DEVICES || x->busy_device >> unit & 1;
}

/* Does a vCPU act while another one's stores wait?  They may have left it then. */
static bool proves_others(const struct sg_crash_points *x, const struct sg_persist *p,
                          const struct sg_trace_event *e)
{
    return x->busy_cpus > is_busy(x, e->unit) && sg_persist_cpu_waits(p);
}

bool sg_crash_points_acts(const struct sg_crash_points *x, const struct sg_persist *p,
                          const struct sg_trace_event *e)
{
    bool nt = e->arg & SG_PERSIST_STORE_NT;
    enum sg_crash_points_stores other = nt ? SG_CRASH_POINTS_PLAIN : SG_CRASH_POINTS_NT;

    switch (class_of[e->kind]) {
    case CLASS_STORE: /* while stores of another vCPU, or of the other kind, or its atoms wait */
        return x->everything || proves_others(x, p, e) ||
               (has_done(x, e->unit, other) && sg_persist_cpu_waits(p)) ||
               (x->placed && sg_persist_posted_waits(p, e->addr, e->len));
    case CLASS_PLACE:
        return x->everything || sg_persist_cpu_waits(p) ||
               (x->placed && sg_persist_posted_waits(p, e->addr, e->len));
    case CLASS_FENCE:
        return e->arg == SG_PERSIST_WBINVD || is_busy(x, e->unit) || proves_others(x, p, e);
    case CLASS_FLUSH:
        return e->arg == SG_PERSIST_CLFLUSH || proves_others(x, p, e);
    case CLASS_ATOM:
        return x->placed || x->everything || sg_persist_cpu_waits(p);
    case CLASS_SETTLE: /* it is before what comes from now on; in `whole` it is kept */
        return x->placed && x->everything;
    case CLASS_DEVICE:
        return has_posted(x, e->unit);
    case CLASS_READ:
        return x->placed || sg_persist_cpu_waits(p) || sg_persist_contradicts(p, e->addr, e->len);
    case CLASS_SYNC:
        return sg_persist_cpu_waits(p);
    case CLASS_AT_ONCE:
    case CLASS_ANY:
        return true;
    default:
        return false;
    }
}

bool sg_crash_points_before(struct sg_crash_points *x, bool acts, const struct sg_trace_event *e)
{
    x->acts = acts;
    x->bounds = x->acts || class_of[e->kind] == CLASS_MARK;
    if (!(x->grown || x->demands) || !x->bounds) {
        return false;
    }
    x->grown = x->demands = false;
    x->count++;
    return true;
}

static void cpu_acts(struct sg_crash_points *x, const struct sg_trace_event *e,
                     enum sg_crash_points_stores what)
{
    if (e->unit < SG_PERSIST_VCPUS) {
        x->busy_cpus += !is_busy(x, e->unit);
        x->storing[what][e->unit / 64] |= 1ull << (e->unit % 64);
    }
}

static void cpu_fences(struct sg_crash_points *x, const struct sg_trace_event *e)
{
    if (e->unit < SG_PERSIST_VCPUS) {
        x->busy_cpus -= is_busy(x, e->unit);
        for (unsigned i = 0; i < SG_CRASH_POINTS_STORES; i++) {
            x->storing[i][e->unit / 64] &= ~(1ull << (e->unit % 64));
        }
    }
}

static void device_acts(struct sg_crash_points *x, const struct sg_trace_event *e, bool busy)
{
    uint64_t bit = e->unit < SG_PERSIST_DEVICES ? 1ull << e->unit : 0;

    x->busy_device &= ~bit;
    x->busy_device |= busy ? bit : 0;
}

/* What left a queue may be found without what it waited behind: that, too, is growth. */
void sg_crash_points_behind(struct sg_crash_points *x, const struct sg_trace_event *e)
{
    x->grown |= x->acts;
    switch (class_of[e->kind]) {
    case CLASS_STORE:
        x->grown = true;
        cpu_acts(x, e, e->arg & SG_PERSIST_STORE_NT ? SG_CRASH_POINTS_NT : SG_CRASH_POINTS_PLAIN);
        break;
    case CLASS_FLUSH:
        cpu_acts(x, e, SG_CRASH_POINTS_FLUSH);
        break;
    case CLASS_FENCE:
        cpu_fences(x, e);
        break;
    case CLASS_PLACE:
    case CLASS_ATOM:
    case CLASS_SETTLE:
        x->grown = x->placed = true;
        device_acts(x, e, true);
        break;
    case CLASS_DEVICE:
        device_acts(x, e, false);
        break;
    case CLASS_MARK:
        x->demands = true;
        break;
    default:
        break;
    }
}

void sg_crash_points_demand(struct sg_crash_points *x)
{
    x->demands = true;
}

bool sg_crash_points_end(struct sg_crash_points *x)
{
    bool point = x->grown || x->demands || !x->count;

    x->count += point;
    x->grown = x->demands = false;
    return point;
}

bool sg_crash_points_settles(const struct sg_trace_event *e)
{
    return class_of[e->kind] != CLASS_NONE && class_of[e->kind] != CLASS_MARK;
}
