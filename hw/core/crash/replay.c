/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kind of event that is an input has a function in a table; the others have none.
 *
 * What a machine cannot do is refused before the domain sees it: addresses outside of persistent
 * memory, adapters and vCPUs that cannot be.  A recorder leaves out what concerns other memory.
 */
#include "crash/replay_impl.h"
#include "crash/setting_text.h"

static const char outside[] = "an event outside of persistent memory";
static const char nobody[] = "an adapter or a vCPU that cannot be";

static struct sg_persist_source source_of(const struct sg_trace_event *e, uint8_t agent)
{
    return (struct sg_persist_source){
        .agent = agent,
        .mode = agent == SG_PERSIST_ADAPTER ? (uint8_t)e->arg : 0,
        .unit = (uint16_t)e->unit,
        .qpn = (uint32_t)e->qpn,
        .msn = (uint32_t)e->msn,
        .at = e->at,
    };
}

/* All of the range; an empty one is, too. */
static bool is_persistent(const struct sg_crash_replay *x, uint64_t addr, uint64_t len)
{
    return !len || sg_persist_query(x->p, addr, len) & SG_PM_PERSISTENT;
}

/*
 * Copies to visible memory what something else than the domain wrote there; within one extent.
 * Announces it if it was announced; elsewhere always, for memory has what was there before.
 */
static bool write_visible(struct sg_crash_replay *x, const struct sg_trace_event *e)
{
    uint64_t offset;
    int extent = sg_persist_find(x->p, e->addr, e->len, &offset);

    if (extent == SG_PERSIST_NO_EXTENT) {
        return false;
    }
    if (x->elsewhere || e->arg & SG_PERSIST_STORE_ANNOUNCED) {
        sg_persist_will_change(x->p, e->addr, e->len);
    }
    memcpy(x->extent[extent].visible + offset, e->data, e->len);
    return true;
}

/*
 * Somebody has read a range, and saw what was placed there when it was recorded: elsewhere it may
 * still be on its way.
 */
static void was_read(struct sg_crash_replay *x, uint64_t addr, uint64_t len)
{
    static const struct sg_persist_source device = { .agent = SG_PERSIST_OTHER };

    if (x->elsewhere) {
        sg_persist_cpu_load(x->p, &device, addr, len);
    }
}

/* ---- CPUs ---- */

static const char *tick(struct sg_crash_replay *x, const struct sg_trace_event *e, const char *name)
{
    if (!x->elsewhere) {
        sg_persist_tick(x->p, e->now_ns);
    }
    return NULL;
}

static const char *store(struct sg_crash_replay *x, const struct sg_trace_event *e,
                         const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_CPU);

    if (e->unit >= SG_PERSIST_VCPUS) {
        return nobody;
    }
    if (!(e->arg & SG_PERSIST_STORE_WRITE) && !write_visible(x, e)) {
        return outside;
    }
    return sg_persist_cpu_store(x->p, &who, e->addr, e->data, e->len, (unsigned)e->arg) ? NULL
                                                                                        : outside;
}

static const char *cpu_flush(struct sg_crash_replay *x, const struct sg_trace_event *e,
                             const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_CPU);

    sg_persist_cpu_flush(x->p, &who, e->addr, (enum sg_persist_cpu_flush)e->arg);
    return e->unit < SG_PERSIST_VCPUS ? NULL : nobody;
}

static const char *cpu_fence(struct sg_crash_replay *x, const struct sg_trace_event *e,
                             const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_CPU);

    sg_persist_cpu_fence(x->p, &who, (enum sg_persist_cpu_fence)e->arg);
    return e->unit < SG_PERSIST_VCPUS ? NULL : nobody;
}

static const char *load(struct sg_crash_replay *x, const struct sg_trace_event *e, const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_CPU);

    sg_persist_cpu_load(x->p, &who, e->addr, e->len);
    return e->unit < SG_PERSIST_VCPUS ? NULL : nobody;
}

static const char *cpu_sync(struct sg_crash_replay *x, const struct sg_trace_event *e,
                            const char *name)
{
    sg_persist_cpu_sync(x->p);
    return NULL;
}

static const char *orderly(struct sg_crash_replay *x, const struct sg_trace_event *e,
                           const char *name)
{
    sg_persist_orderly(x->p);
    return NULL;
}

static const char *write_back(struct sg_crash_replay *x, const struct sg_trace_event *e,
                              const char *name)
{
    uint64_t offset;

    if (sg_persist_find(x->p, e->addr, e->len, &offset) == SG_PERSIST_NO_EXTENT) {
        return outside;
    }
    sg_persist_write_back(x->p, e->addr, e->len);
    return NULL;
}

static const char *deep_flush(struct sg_crash_replay *x, const struct sg_trace_event *e,
                              const char *name)
{
    sg_persist_deep_flush(x->p, e->addr, e->len);
    return NULL;
}

/* ---- Adapters ---- */

static const char *place(struct sg_crash_replay *x, const struct sg_trace_event *e,
                         const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_ADAPTER);

    return !e->len || sg_persist_dma_write(x->p, &who, e->addr, e->data, e->len) ? NULL : outside;
}

static const char *atomic_write(struct sg_crash_replay *x, const struct sg_trace_event *e,
                                const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_ADAPTER);

    return sg_persist_atom_store(x->p, &who, e->addr, e->data) ? NULL : outside;
}

static const char *atomic(struct sg_crash_replay *x, const struct sg_trace_event *e,
                          const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_ADAPTER);
    uint64_t value = e->value;

    if (e->unit < SG_PERSIST_DEVICES) {
        was_read(x, e->addr, SG_PERSIST_ATOM);
    }
    return sg_persist_atomic(x->p, &who, e->addr, &value, e->swap) ? NULL : outside;
}

static const char *settle(struct sg_crash_replay *x, const struct sg_trace_event *e,
                          const char *name)
{
    sg_persist_settle(x->p, (unsigned)e->unit, (uint32_t)e->qpn);
    return NULL;
}

static const char *forget(struct sg_crash_replay *x, const struct sg_trace_event *e,
                          const char *name)
{
    if (!x->elsewhere) { /* what it has in S0 had been placed when it was recorded */
        sg_persist_forget(x->p, (unsigned)e->unit, (uint32_t)e->qpn);
    }
    return NULL;
}

static const char *device_fence(struct sg_crash_replay *x, const struct sg_trace_event *e,
                                const char *name)
{
    sg_persist_device_fence(x->p, (unsigned)e->unit);
    return NULL;
}

static const char *dma_read(struct sg_crash_replay *x, const struct sg_trace_event *e,
                            const char *name)
{
    was_read(x, e->addr, e->len);
    sg_persist_dma_read(x->p, (unsigned)e->unit, e->addr, e->len);
    return NULL;
}

/* A Flush that waits is called again when the recorded one ended; elsewhere each one waits. */
static const char *flush(struct sg_crash_replay *x, const struct sg_trace_event *e,
                         const char *name)
{
    uint64_t key = e->unit << 32 | e->qpn;
    struct sg_persist_source who = source_of(e, SG_PERSIST_ADAPTER);
    struct flush_under_way *f = g_hash_table_lookup(x->flushes, &key);
    enum sg_pm_result result = SG_PM_LATER;

    who.mode = 0;
    if (e->kind == SG_TRACE_FLUSH_END && !f) {
        return NULL; /* it was answered at once */
    }
    if (e->unit >= SG_PERSIST_DEVICES || !is_persistent(x, e->addr, e->len)) {
        return outside;
    }
    if (!f) {
        if (g_hash_table_size(x->flushes) == SG_CRASH_FLUSHES) {
            return "too many Flushes under way";
        }
        f = g_new0(struct flush_under_way, 1);
        g_hash_table_insert(x->flushes, g_memdup2(&key, sizeof(key)), f);
    }
    if (e->kind == SG_TRACE_FLUSH_BEGIN) {
        f->op = (struct sg_pm_op){ 0 };
        sg_persist_flush_begins(x->p, who.unit, &f->note);
    }
    f->op.len = e->len;
    f->op.flags = (uint32_t)e->arg;
    if (!x->elsewhere) {
        result = sg_persist_flush(x->p, &who, e->addr, &f->op);
    } else if (e->kind == SG_TRACE_FLUSH_END) {
        result = sg_persist_flush_ends(x->p, &who, e->addr, &f->op, &f->note);
    }
    if (result != SG_PM_LATER) {
        g_hash_table_remove(x->flushes, &key);
    }
    return NULL;
}

uint32_t sg_crash_replay_stops(const struct sg_crash_replay *x, const struct sg_trace_event *e)
{
    uint64_t key = e->unit << 32 | e->qpn;
    struct sg_persist_source who = source_of(e, SG_PERSIST_ADAPTER);
    const struct flush_under_way *f;
    struct sg_pm_op op = { .len = e->len, .flags = (uint32_t)e->arg };
    uint32_t n;

    switch (e->kind) {
    case SG_TRACE_LOAD:
    case SG_TRACE_MEDIA_READ:
        return sg_persist_stops_at_load(x->p, e->addr, e->len);
    case SG_TRACE_DMA_READ:
        n = sg_persist_stops_at_load(x->p, e->addr, e->len);
        return SG_MAX(n, sg_persist_stops_at_fence(x->p, (unsigned)e->unit));
    case SG_TRACE_DEVICE_FENCE:
    case SG_TRACE_ATOMIC:
        return sg_persist_stops_at_fence(x->p, (unsigned)e->unit);
    case SG_TRACE_FLUSH_END:
        f = g_hash_table_lookup(x->flushes, &key);
        return f ? sg_persist_stops_at_flush(x->p, &who, e->addr, &op, &f->note) : 0;
    default:
        return 0;
    }
}

bool sg_crash_replay_contradicted(const struct sg_crash_replay *x, const struct sg_trace_event *e)
{
    bool reads =
        e->kind == SG_TRACE_LOAD || e->kind == SG_TRACE_DMA_READ || e->kind == SG_TRACE_MEDIA_READ;

    return reads && sg_persist_contradicts(x->p, e->addr, e->len);
}

/* In one call, as the recorded one: a read ends at bad lines and leaves alone what follows. */
static const char *media_read(struct sg_crash_replay *x, const struct sg_trace_event *e,
                              const char *name)
{
    uint8_t *buf;

    if (e->len > SG_TRACE_DATA_MAX) {
        return "a Verify reads too much at once";
    }
    if (!is_persistent(x, e->addr, e->len)) {
        return outside;
    }
    was_read(x, e->addr, e->len);
    buf = g_malloc(SG_TRACE_DATA_MAX);
    sg_persist_media_read(x->p, e->addr, buf, e->len);
    g_free(buf);
    return NULL;
}

static const char *poison(struct sg_crash_replay *x, const struct sg_trace_event *e,
                          const char *name)
{
    if (!is_persistent(x, e->addr, e->len)) {
        return outside;
    }
    sg_persist_poison(x->p, e->addr, e->len);
    return NULL;
}

static const char *milestone(struct sg_crash_replay *x, const struct sg_trace_event *e,
                             const char *name)
{
    struct sg_persist_source who = source_of(e, SG_PERSIST_ADAPTER);

    sg_persist_milestone(x->p, &who, (enum sg_pm_milestone)e->arg);
    return NULL;
}

/* ---- Others ---- */

static const char *other_write(struct sg_crash_replay *x, const struct sg_trace_event *e,
                               const char *name)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_OTHER, .unit = (uint16_t)e->unit };

    if (e->unit >= SG_PERSIST_DEVICES) {
        return nobody;
    }
    if (!write_visible(x, e)) {
        return outside;
    }
    return sg_persist_other_write(x->p, &who, e->addr, e->len) ? NULL : outside;
}

static const char *mark_bad(struct sg_crash_replay *x, const struct sg_trace_event *e,
                            const char *name)
{
    if (e->arg != SG_PERSIST_UNCORRECTABLE && e->arg != SG_PERSIST_POISONED) {
        return "bad lines of a kind that does not exist";
    }
    if (!is_persistent(x, e->addr, e->len)) {
        return outside;
    }
    sg_persist_mark_bad(x->p, e->addr, e->len, (enum sg_persist_bad_kind)e->arg);
    return NULL;
}

static const char *clear_bad(struct sg_crash_replay *x, const struct sg_trace_event *e,
                             const char *name)
{
    sg_persist_clear_bad(x->p, e->addr, e->len);
    return NULL;
}

static const char *faults(struct sg_crash_replay *x, const struct sg_trace_event *e,
                          const char *name)
{
    struct sg_persist_faults f = {
        .read_only = e->arg & 1,
        .flush_fails_always = e->arg & 2,
        .wears_out = e->arg & 4,
        .flush_fails = (uint32_t)e->swap,
        .lines_left = e->value,
    };

    if (e->unit >= x->extents) {
        return "an extent that does not exist";
    }
    sg_persist_set_faults(x->p, (int)e->unit, &f);
    return NULL;
}

/* What of a configuration the guest's run had, and no platform has. */
static void take_run(struct sg_persist_config *to, const struct sg_persist_config *run)
{
    to->cpu_tracking = run->cpu_tracking;
    to->untracked = run->untracked;
    to->untracked_flush_max = run->untracked_flush_max;
    to->poison_on_mismatch = run->poison_on_mismatch;
}

static const char *configure(struct sg_crash_replay *x, const struct sg_trace_event *e,
                             const char *name)
{
    struct sg_persist_config run = *sg_persist_config(x->p), config = run;
    const char *wrong =
        name ? sg_crash_settings_parse(name, &run, NULL) : "a configuration without text";

    if (x->elsewhere) {
        take_run(&config, &run);
    } else {
        config = run;
    }
    return wrong ? wrong : sg_persist_configure(x->p, &config);
}

static const char lost_power[] = "the machine lost its power: only what is before can be explored";

/* By a milestone of our own: an armed cut comes due at once. */
static const char *freeze(struct sg_crash_replay *x, const struct sg_trace_event *e,
                          const char *name)
{
    static const struct sg_persist_source who = { .agent = SG_PERSIST_NOBODY };
    static const struct sg_persist_arm arm = {
        .kind = SG_PERSIST_ARM_MILESTONE,
        .milestone = SG_PM_WRITE_PLACED,
        .count = 1,
    };

    if (x->elsewhere) {
        return lost_power;
    }
    if (!sg_persist_frozen(x->p)) {
        sg_persist_arm(x->p, &arm);
        sg_persist_milestone(x->p, &who, SG_PM_WRITE_PLACED);
    }
    return NULL;
}

static const char *cut(struct sg_crash_replay *x, const struct sg_trace_event *e, const char *name)
{
    struct sg_persist_policy policy = {
        .outcome = (uint8_t)e->arg,
        .seed = e->value,
        .addr = e->addr,
        .len = e->len,
    };

    if (x->elsewhere) {
        return lost_power;
    }
    sg_persist_report_free(sg_persist_cut(x->p, &policy));
    g_hash_table_remove_all(x->flushes);
    x->is_cut = true;
    return NULL;
}

static const char *restart(struct sg_crash_replay *x, const struct sg_trace_event *e,
                           const char *name)
{
    if (!x->is_cut) {
        return "a restart without a cut";
    }
    x->is_cut = false;
    for (unsigned i = 0; i < x->extents; i++) {
        memcpy(x->extent[i].visible, x->extent[i].media, x->extent[i].size);
    }
    sg_persist_restart(x->p);
    return NULL;
}

/* ---- Interface ---- */

typedef const char *input(struct sg_crash_replay *x, const struct sg_trace_event *e,
                          const char *name);

static input *const inputs[SG_TRACE_KINDS] = {
    [SG_TRACE_TICK] = tick,
    [SG_TRACE_STORE] = store,
    [SG_TRACE_CPU_FLUSH] = cpu_flush,
    [SG_TRACE_CPU_FENCE] = cpu_fence,
    [SG_TRACE_LOAD] = load,
    [SG_TRACE_CPU_SYNC] = cpu_sync,
    [SG_TRACE_ORDERLY] = orderly,
    [SG_TRACE_WRITE_BACK] = write_back,
    [SG_TRACE_DEEP_FLUSH] = deep_flush,
    [SG_TRACE_PLACE] = place,
    [SG_TRACE_ATOMIC_WRITE] = atomic_write,
    [SG_TRACE_ATOMIC] = atomic,
    [SG_TRACE_SETTLE] = settle,
    [SG_TRACE_FORGET] = forget,
    [SG_TRACE_DEVICE_FENCE] = device_fence,
    [SG_TRACE_DMA_READ] = dma_read,
    [SG_TRACE_FLUSH_BEGIN] = flush,
    [SG_TRACE_FLUSH_END] = flush,
    [SG_TRACE_MEDIA_READ] = media_read,
    [SG_TRACE_POISON] = poison,
    [SG_TRACE_MILESTONE] = milestone,
    [SG_TRACE_OTHER_WRITE] = other_write,
    [SG_TRACE_MARK_BAD] = mark_bad,
    [SG_TRACE_CLEAR_BAD] = clear_bad,
    [SG_TRACE_FAULTS] = faults,
    [SG_TRACE_CONFIGURE] = configure,
    [SG_TRACE_FREEZE] = freeze,
    [SG_TRACE_CUT] = cut,
    [SG_TRACE_RESTART] = restart,
};

const char *sg_crash_replay_event(struct sg_crash_replay *x, const struct sg_trace_event *e,
                                  const char *name)
{
    input *f = inputs[e->kind];

    return f ? f(x, e, name) : NULL;
}

/* NULL: the settings are not allowed. */
static struct sg_crash_replay *new_replay(const struct sg_trace_header *header,
                                          const struct sg_persist_config *config,
                                          const struct sg_persist_limits *limits,
                                          const char **wrong)
{
    struct sg_crash_replay *x = g_new0(struct sg_crash_replay, 1);

    x->header = *header;
    x->flushes = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    x->p = sg_persist_new(NULL, limits, NULL, NULL);
    *wrong = sg_persist_configure(x->p, config);
    if (*wrong) {
        sg_crash_replay_free(x);
        return NULL;
    }
    return x;
}

struct sg_crash_replay *sg_crash_replay_new(const struct sg_trace_header *header,
                                            const char **wrong)
{
    struct sg_persist_config config;
    struct sg_persist_limits limits;

    sg_persist_config_init(&config);
    sg_persist_limits_init(&limits);
    limits.log_events = 0; /* the trace is the log */
    *wrong = sg_crash_settings_parse(header->text[SG_TRACE_CONFIG], &config, &limits);
    return *wrong ? NULL : new_replay(header, &config, &limits, wrong);
}

struct sg_crash_replay *sg_crash_replay_new_for(const struct sg_trace_header *header,
                                                const struct sg_persist_config *config,
                                                const struct sg_persist_limits *limits,
                                                const char **wrong)
{
    struct sg_persist_config run, platform = *config;
    struct sg_persist_limits defaults;
    struct sg_crash_replay *x;

    sg_persist_config_init(&run);
    sg_persist_limits_init(&defaults);
    defaults.log_events = 0;
    *wrong = sg_crash_settings_parse(header->text[SG_TRACE_CONFIG], &run, NULL);
    if (*wrong) {
        return NULL;
    }
    take_run(&platform, &run);
    platform.flush_latency_ns = platform.flush_latency_random_ns = 0; /* time does not pass */
    x = new_replay(header, &platform, limits ? limits : &defaults, wrong);
    if (x) {
        x->elsewhere = true;
    }
    return x;
}

void sg_crash_replay_free(struct sg_crash_replay *x)
{
    if (x) {
        sg_persist_free(x->p);
        g_hash_table_destroy(x->flushes);
        g_free(x);
    }
}

void sg_crash_replay_add(struct sg_crash_replay *x, uint8_t *visible, uint8_t *media)
{
    const struct sg_trace_extent *from = &x->header.extent[x->extents];
    struct sg_persist_extent *to = &x->extent[x->extents];

    sg_assert(x->extents < x->header.extent_count);
    *to = (struct sg_persist_extent){
        .base = from->base,
        .size = from->size,
        .visible = visible,
        .media = media,
        .name = from->name,
    };
    sg_assert(sg_persist_add(x->p, to) == (int)x->extents);
    x->extents++;
}

struct sg_persist *sg_crash_replay_domain(struct sg_crash_replay *x)
{
    return x->p;
}
