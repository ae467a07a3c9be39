/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine of the power simulator: ordinary memory, an NVDIMM, an adapter.
 *
 * The NVDIMM is two memories: the visible one is the end of the test host's memory, the media is
 * separate; hw/core/persist is between them.  Everything that the adapter does to it passes the
 * operations below, which inform the oracle.  Any other bus access of the adapter comes after its
 * posted writes, as in hw/device/persist/domain_dma.c.
 *
 * An armed cut comes due in the middle of a call of the adapter.  From then on the domain is frozen
 * and the machine counts as powered off, until the world cuts its power.  It does so before
 * anything is delivered, so octets that the adapter still sends are lost with its connections.
 */
#include "crash/record.h"
#include "power.h"

static struct pw_host *host_of(void *host)
{
    return ((struct test_host *)host)->pm;
}

/* ---- operations: persistent memory ---- */

static struct sg_persist_source source_of(const struct sg_pm_who *who)
{
    return (struct sg_persist_source){
        .agent = SG_PERSIST_ADAPTER,
        .qpn = who->qpn,
        .msn = who->msn,
        .at = who->to,
    };
}

/* Any other DMA of the adapter. */
static void fence(struct pw_host *x)
{
    sg_persist_device_fence(x->p, 0);
    PW_TRACE(x, SG_TRACE_DEVICE_FENCE, NULL);
}

static unsigned pm_query(void *host, uint64_t addr, uint64_t len)
{
    return sg_persist_query(host_of(host)->p, addr, len);
}

static bool pm_place(void *host, const struct sg_pm_who *who, uint64_t addr, const void *buf,
                     size_t len)
{
    struct pw_host *x = host_of(host);
    struct sg_persist_source source = source_of(who);
    struct pw_flow *f = pw_flow_of(x, who->qpn);
    bool good;

    PW_CHECK(x->w, f, "a Write is placed for queue pair %u, which is nobody's", who->qpn);
    if (f && !sg_persist_frozen(x->p)) {
        pw_flow_placed(f, addr - x->pm, buf, len, false, false);
    }
    good = sg_persist_dma_write(x->p, &source, addr, buf, len);
    if (good) {
        PW_TRACE(x, SG_TRACE_PLACE, &source, .ordinal = who->ordinal, .addr = addr, .len = len,
                 .data = buf);
    }
    return good;
}

static void settled(struct pw_host *x, uint32_t qpn)
{
    struct pw_flow *f = pw_flow_of(x, qpn);

    if (f && !sg_persist_frozen(x->p)) {
        pw_flow_settled(f);
    }
}

static void pm_complete_writes(void *host, uint32_t qpn)
{
    struct pw_host *x = host_of(host);

    settled(x, qpn);
    if (x->w->opt.mutant != PW_FLUSH_SKIPS_S0) {
        struct sg_persist_source source = { .agent = SG_PERSIST_ADAPTER, .qpn = qpn };

        sg_persist_settle(x->p, 0, qpn);
        PW_TRACE(x, SG_TRACE_SETTLE, &source);
    }
}

static enum sg_pm_result recorded_flush(struct pw_host *x, const struct sg_persist_source *source,
                                        struct sg_pm_op *op)
{
    bool live = !sg_persist_frozen(x->p), begins = live && op->phase == SG_PM_NEW;
    enum sg_pm_result result = sg_persist_flush(x->p, source, op->addr, op);
    uint64_t status;
    bool ends = live && sg_crash_flush_ends(op, result, &status);

    /* No event of its end comes between, so the beginning may be recorded now. */
    if (begins) {
        PW_TRACE(x, SG_TRACE_FLUSH_BEGIN, source, .ordinal = op->who.ordinal, .addr = op->addr,
                 .len = op->len, .arg = op->flags);
    }
    if (ends) {
        PW_TRACE(x, SG_TRACE_FLUSH_END, source, .ordinal = op->who.ordinal, .addr = op->addr,
                 .len = op->len, .arg = op->flags, .status = status);
    }
    return result;
}

static enum sg_pm_result pm_flush(void *host, struct sg_pm_op *op)
{
    struct pw_host *x = host_of(host);
    struct sg_persist_source source = source_of(&op->who);
    uint64_t len = op->len, last = op->addr + len - 1;
    enum sg_pm_result result;

    settled(x, op->who.qpn);
    switch (x->w->opt.mutant) {
    case PW_FLUSH_DOES_NOTHING:
        return SG_PM_DONE;
    case PW_FLUSH_SKIPS_LINE:
        op->len -= len > 1 && last % SG_PERSIST_LINE < len ? 1 + last % SG_PERSIST_LINE : 0;
        break;
    case PW_FLUSH_SKIPS_S0:
        source.qpn += 1000;
        break;
    default:
        break;
    }
    result = recorded_flush(x, &source, op);
    op->len = len;
    return result;
}

static enum sg_pm_result pm_media_read(void *host, uint64_t addr, void *buf, size_t len)
{
    struct pw_host *x = host_of(host);
    enum sg_pm_result result;

    if (x->w->opt.mutant == PW_VERIFY_READS_CACHE) {
        fence(x);
        memcpy(buf, pw_ptr(x, addr), len);
        return SG_PM_DONE;
    }
    result = sg_persist_media_read(x->p, addr, buf, len);
    PW_TRACE(x, SG_TRACE_MEDIA_READ, NULL, .addr = addr, .len = len);
    return result;
}

static bool pm_store(void *host, const struct sg_pm_who *who, uint64_t addr, const uint8_t atom[8])
{
    struct pw_host *x = host_of(host);
    struct sg_persist_source source = source_of(who);
    struct pw_flow *f = pw_flow_of(x, who->qpn);
    bool good;

    PW_CHECK(x->w, f, "an Atomic Write for queue pair %u, which is nobody's", who->qpn);
    if (f && !sg_persist_frozen(x->p)) {
        pw_flow_settled(f);
        pw_flow_placed(f, addr - x->pm, atom, SG_PERSIST_ATOM, true, false);
        pw_flow_settled(f);
    }
    good = sg_persist_atom_store(x->p, &source, addr, atom);
    if (good) {
        PW_TRACE(x, SG_TRACE_ATOMIC_WRITE, &source, .ordinal = who->ordinal, .addr = addr,
                 .len = SG_PERSIST_ATOM, .data = atom);
    }
    return good;
}

static bool pm_cmpxchg64(void *host, const struct sg_pm_who *who, uint64_t addr, uint64_t *value,
                         uint64_t desired)
{
    struct pw_host *x = host_of(host);
    struct sg_persist_source source = source_of(who);
    struct pw_flow *f = pw_flow_of(x, who->qpn);
    uint64_t expected = *value;
    bool live = !sg_persist_frozen(x->p), done;

    PW_CHECK(x->w, f, "an Atomic for queue pair %u, which is nobody's", who->qpn);
    done = sg_persist_atomic(x->p, &source, addr, value, desired);
    if (done) {
        PW_TRACE(x, SG_TRACE_ATOMIC, &source, .ordinal = who->ordinal, .addr = addr,
                 .value = expected, .swap = desired, .found = *value);
    }
    if (f && live && done && *value == expected) {
        pw_flow_settled(f);
        pw_flow_placed(f, addr - x->pm, pw_ptr(x, addr), SG_PERSIST_ATOM, true, true);
        pw_flow_settled(f);
    }
    return done;
}

static void pm_poison(void *host, uint64_t addr, uint64_t len)
{
    sg_persist_poison(host_of(host)->p, addr, len);
    PW_TRACE(host_of(host), SG_TRACE_POISON, NULL, .addr = addr, .len = len);
}

static void pm_milestone(void *host, const struct sg_pm_who *who, enum sg_pm_milestone what)
{
    struct sg_persist_source source = source_of(who);

    sg_persist_milestone(host_of(host)->p, &source, what);
    PW_TRACE(host_of(host), SG_TRACE_MILESTONE, &source, .ordinal = who->ordinal, .arg = what);
}

/* ---- other operations ---- */

static bool fenced_dma_read(void *host, uint64_t addr, void *buf, size_t len)
{
    fence(host_of(host));
    return host_of(host)->plain->dma_read(host, addr, buf, len);
}

static bool fenced_dma_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    fence(host_of(host));
    return host_of(host)->plain->dma_write(host, addr, buf, len);
}

static bool fenced_dma_store64(void *host, uint64_t addr, uint64_t value)
{
    fence(host_of(host));
    return host_of(host)->plain->dma_store64(host, addr, value);
}

static bool fenced_dma_cmpxchg64(void *host, uint64_t addr, uint64_t *value, uint64_t desired)
{
    fence(host_of(host));
    return host_of(host)->plain->dma_cmpxchg64(host, addr, value, desired);
}

static void *fenced_map(void *host, uint64_t addr, size_t *len, bool for_write)
{
    fence(host_of(host));
    return host_of(host)->plain->map(host, addr, len, for_write);
}

static void add_operations(struct pw_host *x)
{
    static struct sg_host_ops plain; /* the same for all */
    struct sg_host_ops *ops = &x->h.ops;

    plain = *ops;
    x->plain = &plain;
    ops->dma_read = fenced_dma_read;
    ops->dma_write = fenced_dma_write;
    ops->dma_store64 = fenced_dma_store64;
    ops->dma_cmpxchg64 = fenced_dma_cmpxchg64;
    ops->map = fenced_map;
    ops->pm_query = pm_query;
    ops->pm_place = pm_place;
    ops->pm_complete_writes = pm_complete_writes;
    ops->pm_flush = pm_flush;
    ops->pm_media_read = pm_media_read;
    ops->pm_store = pm_store;
    ops->pm_cmpxchg64 = pm_cmpxchg64;
    ops->pm_poison = pm_poison;
    ops->pm_milestone = pm_milestone;
    ops->observe = pw_trace_observe;
}

/* ---- start and end ---- */

static void cut_due(void *opaque)
{
    ((struct pw_host *)opaque)->powered_off = true;
}

static const struct sg_persist_ops persist_ops = { .cut_due = cut_due };

/* One NVDIMM, or two at consecutive addresses. */
static void add_extents(const struct pw_host *x, struct sg_persist *p, uint8_t *visible,
                        uint8_t *media)
{
    uint64_t at, size;

    for (at = 0; at < PW_PM; at += size) {
        struct sg_persist_extent e = {
            .base = x->pm + at,
            .visible = visible + at,
            .media = media + at,
        };

        e.size = size = at ? PW_PM - at : x->split;
        sg_assert(sg_persist_add(p, &e) != SG_PERSIST_NO_EXTENT);
    }
}

static void random_limits(struct pw_host *x)
{
    struct sg_persist_limits *limits = &x->limits;

    sg_persist_limits_init(limits);
    limits->seed = pw_prng(x->w);
    limits->log_events = 256;
    limits->check = true;
    if (pw_chance(x->w, 30)) {
        limits->s0_octets = 2000;
        limits->s1_octets = 1000;
        limits->line_stores = 8;
    }
    if (pw_chance(x->w, 5)) {
        limits->log_events = 1 << 16;
        limits->log_data = 1 << 22;
    }
}

void pw_host_init(struct pw_host *x, struct pw_world *w, unsigned index)
{
    struct sg_adapter_config config;
    struct sg_stream_net *net;

    x->w = w;
    x->index = index;
    x->at = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, (uint8_t)(index + 1) } };
    test_host_init(&x->h, PW_RAM + PW_PM, pw_prng(w));
    x->h.now_ns = w->now_ns;
    x->h.pm = x;
    x->pm = TEST_HOST_BASE + PW_RAM;
    x->media = g_malloc0(PW_PM);
    add_operations(x);
    x->first = x->config;
    x->split = pw_chance(w, 30) ? PW_PM / 2 - 1024 : PW_PM;
    random_limits(x);
    x->p = sg_persist_new(&x->config, &x->limits, &persist_ops, x);
    add_extents(x, x->p, pw_ptr(x, x->pm), x->media);
    pw_trace_begin(x);
    sg_adapter_default_config(&config);
    config.mac[5] = (uint8_t)(index + 1);
    config.guid += index;
    config.engine = w->engine;
    config.max_qp = config.max_cq = config.max_mr = config.max_pd = config.max_conns = 64;
    net = sg_mem_switch_port(w->sw, &x->at);
    md_new(&x->md, &x->h, net, &config);
}

void pw_host_replay(struct pw_host *x)
{
    uint8_t *visible, *media;
    struct sg_persist *again;
    uint64_t oldest, newest;
    const char *wrong;
    GByteArray *log;

    sg_persist_log_bounds(x->p, &oldest, &newest);
    if (!x->limits.log_data || oldest > 1 || x->w->opt.mutant) {
        return;
    }
    log = g_byte_array_new();
    visible = g_malloc0(PW_PM);
    media = g_malloc0(PW_PM);
    again = sg_persist_new(&x->first, &x->limits, NULL, NULL);
    add_extents(x, again, visible, media);
    sg_persist_log_export(x->p, log);
    wrong = sg_persist_log_replay(again, log->data, log->len);
    PW_CHECK(x->w, !wrong, "machine %u: the log does not replay: %s", x->index, wrong);
    PW_CHECK(x->w,
             memcmp(media, x->media, PW_PM) == 0 && memcmp(visible, pw_ptr(x, x->pm), PW_PM) == 0,
             "machine %u: the log replays to something else", x->index);
    x->w->sums->replays++;
    sg_persist_free(again);
    g_free(visible);
    g_free(media);
    g_byte_array_free(log, TRUE);
}

void pw_host_free(struct pw_host *x)
{
    x->w->sums->events += pw_host_events(x);
    pw_trace_free(x);
    sg_persist_free(x->p);
    pw_model_free(&x->model);
    pw_model_free(&x->program);
    g_free(x->media);
    test_host_fini(&x->h);
}

uint64_t pw_host_events(const struct pw_host *x)
{
    return sg_persist_events(x->p);
}

void pw_host_boot(struct pw_host *x)
{
    struct sg_cmd_set_addr c = { .hdr.opcode = SG_ADMIN_SET_ADDR, .op = SG_ADDR_ADD };

    x->md.hold = true;
    md_enable(&x->md);
    c.addr = md_addr(&x->at, 0);
    c.prefix_len = 24;
    sg_assert(md_cmd(&x->md, &c, sizeof(c), NULL) == SG_OK);
    x->pd = md_create_pd(&x->md);
    x->enabled = true;
    x->life_steps = 0;
    x->events_before = pw_host_events(x);
}

void pw_host_tick(struct pw_host *x)
{
    x->h.now_ns = x->w->now_ns;
    sg_persist_tick(x->p, x->w->now_ns);
    PW_TRACE(x, SG_TRACE_TICK, NULL);
}

/* ---- the cut ---- */

static struct sg_persist_policy random_policy(struct pw_host *x)
{
    struct pw_world *w = x->w;
    struct sg_persist_policy policy = {
        .outcome = (uint8_t)(w->opt.outcome >= 0 ? (unsigned)w->opt.outcome
                                                 : pw_below(w, SG_PERSIST_OUTCOMES)),
        .seed = pw_chance(w, 50) ? pw_prng(w) : 0,
        .addr = x->pm + pw_below(w, PW_PM),
    };

    policy.len = 1 + pw_below(w, pw_chance(w, 50) ? 100 : PW_PM);
    if (w->opt.mutant == PW_KEEPS_ALL) {
        policy.outcome = SG_PERSIST_KEEP_ALL;
    }
    return policy;
}

/* Undoes a part of what has reached the media since 'before'. */
static void mutate(struct pw_host *x, const uint8_t *before)
{
    enum pw_mutant mutant = x->w->opt.mutant;
    unsigned i;

    for (i = 0; i + SG_PERSIST_ATOM <= PW_PM; i += SG_PERSIST_ATOM) {
        bool last = i % SG_PERSIST_LINE == SG_PERSIST_LINE - SG_PERSIST_ATOM;

        if (memcmp(before + i, x->media + i, SG_PERSIST_ATOM) == 0) {
            continue;
        }
        if (mutant == PW_TEARS_ATOM && before[i] != x->media[i] &&
            before[i + 7] != x->media[i + 7]) {
            x->media[i + 7] = before[i + 7];
            return;
        }
        if (mutant == PW_TEARS_LINE && !last &&
            memcmp(before + i + 8, x->media + i + 8, SG_PERSIST_ATOM) != 0) {
            memcpy(x->media + i, before + i, SG_PERSIST_ATOM);
            return;
        }
    }
}

static void lose_power(struct pw_host *x)
{
    struct sg_persist_policy policy = random_policy(x);
    uint8_t *before = g_memdup2(x->media, PW_PM);
    struct sg_persist_report *report;
    unsigned i;

    pw_note(x->w, "machine %u loses its power: %s, domain %s%s, event %" PRIu64, x->index,
            sg_persist_outcome_name(policy.outcome), sg_persist_domain_name(x->config.domain),
            x->config.ddio ? ", ddio" : "", pw_host_events(x) - x->events_before);
    report = sg_persist_cut(x->p, &policy);
    pw_trace_cut(x, &policy);
    for (i = 0; i < SG_PERSIST_STAGES; i++) {
        x->w->sums->stage_lost[i] +=
            report->count[i][SG_PERSIST_LOST] + report->count[i][SG_PERSIST_PARTLY];
    }
    sg_persist_report_free(report);
    mutate(x, before);
    g_free(before);
}

void pw_host_cut(struct pw_host *x)
{
    x->w->sums->cuts++;
    x->w->sums->armed += x->powered_off;
    sg_assert_persist_state(x->p, true);
    lose_power(x);
    x->powered_off = x->enabled = false;
    sg_adapter_reset(x->md.a);
    x->h.kicked = false;
    x->h.timer_ns = SG_NEVER;
    x->h.brk = 0;
    memset(x->h.mem, 0xa5, PW_RAM);
    memcpy(x->h.mem + PW_RAM, x->media, PW_PM);
}
