/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log: a ring of events in one order, and a ring of the payload of those that have some.
 *
 * Events are numbered from 1.  Inputs, acknowledgements and spontaneous moves share one
 * order, so that a report can say which promise came before which loss.  docs/persistence.md has
 * the exported format.
 */
#include <assert.h>

#include "persist/domain_impl.h"

static const char magic[8] = { 'S', 'G', 'P', 'L', 'O', 'G', '\r', '\n' };
enum { LOG_VERSION = 1, LOG_HEADER = 96, LOG_EVENT = 64 };

static_assert(sizeof(struct sg_persist_event) == LOG_EVENT, "an event is 64 octets");

void sg_dom_log_init(struct sg_persist *p)
{
    uint64_t size = 64;

    while (size < p->limits.log_events && size < 1u << 28) {
        size *= 2;
    }
    p->log = g_new0(struct sg_persist_event, size);
    p->log_mask = size - 1;
    if (p->limits.log_data) {
        p->log_data = g_malloc(p->limits.log_data);
    }
}

static inline struct sg_persist_event *next_event(struct sg_persist *p, unsigned kind,
                                                  const struct sg_persist_source *source,
                                                  uint64_t addr, uint64_t len, uint32_t arg)
{
    struct sg_persist_event *e = &p->log[++p->seq & p->log_mask];

    *e = (struct sg_persist_event){
        .seq = p->seq,
        .now_ns = p->now_ns,
        .addr = addr,
        .kind = kind,
        .arg = arg,
        .len = SG_MIN(len, UINT32_MAX),
    };
    if (source) {
        e->at = source->at;
        e->qpn = source->qpn;
        e->msn = source->msn;
        e->unit = source->unit;
        e->agent = source->agent;
    }
    if (len > UINT32_MAX) {
        e->data = len; /* a Flush of a huge range */
    }
    return e;
}

uint64_t sg_dom_log(struct sg_persist *p, unsigned kind, const struct sg_persist_source *source,
                    uint64_t addr, uint64_t len, uint32_t arg)
{
    next_event(p, kind, source, addr, len, arg);
    return p->seq;
}

uint64_t sg_dom_log_payload(struct sg_persist *p, unsigned kind,
                            const struct sg_persist_source *source, uint64_t addr, const void *buf,
                            size_t len, uint32_t arg)
{
    struct sg_persist_event *e = next_event(p, kind, source, addr, len, arg);
    uint32_t size = p->limits.log_data, at, n;

    if (len == sizeof(e->data)) { /* without a call */
        memcpy(&e->data, buf, sizeof(e->data));
    } else if (len < sizeof(e->data)) {
        memcpy(&e->data, buf, len);
    } else if (len > size) {
        e->data = UINT64_MAX;
    } else {
        e->data = p->log_data_end;
        at = p->log_data_end % size;
        n = SG_MIN(len, size - at);
        memcpy(p->log_data + at, buf, n);
        memcpy(p->log_data, (const uint8_t *)buf + n, len - n);
        p->log_data_end += len;
    }
    return p->seq;
}

/* A configuration fits one event. */
void sg_dom_log_config(struct sg_persist *p)
{
    const struct sg_persist_config *c = &p->config;
    struct sg_persist_event *e;

    sg_dom_log(p, SG_PERSIST_EV_CONFIGURE, NULL, c->flush_latency_random_ns, 0,
               c->domain | c->untracked << 2 | c->eviction << 4 | c->drain << 6 |
                   c->posted_drain << 8 | c->ddio << 10 | c->cpu_tracking << 11 |
                   c->store_buffer << 12 | c->placement_order << 13 | c->poison_on_mismatch << 14);
    e = sg_dom_log_last(p);
    e->at = c->placement_delay_ns;
    e->data = c->flush_latency_ns;
    e->len = c->one_in;
    e->qpn = c->untracked_flush_max;
    e->msn = c->untracked_flush_max >> 32;
}

void sg_dom_log_unpack_config(const struct sg_persist_event *e, struct sg_persist_config *c)
{
    *c = (struct sg_persist_config){
        .domain = e->arg & 3,
        .untracked = e->arg >> 2 & 3,
        .eviction = e->arg >> 4 & 3,
        .drain = e->arg >> 6 & 3,
        .posted_drain = e->arg >> 8 & 3,
        .ddio = e->arg >> 10 & 1,
        .cpu_tracking = e->arg >> 11 & 1,
        .store_buffer = e->arg >> 12 & 1,
        .placement_order = e->arg >> 13 & 1,
        .poison_on_mismatch = e->arg >> 14 & 1,
        .one_in = e->len,
        .placement_delay_ns = e->at,
        .flush_latency_ns = e->data,
        .flush_latency_random_ns = e->addr,
        .untracked_flush_max = e->qpn | (uint64_t)e->msn << 32,
    };
}

void sg_persist_log_bounds(const struct sg_persist *p, uint64_t *oldest, uint64_t *newest)
{
    *newest = p->seq;
    *oldest = p->seq > p->log_mask ? p->seq - p->log_mask : SG_MIN(p->seq, 1);
}

bool sg_persist_log_event(const struct sg_persist *p, uint64_t seq, struct sg_persist_event *e)
{
    uint64_t oldest, newest;

    sg_persist_log_bounds(p, &oldest, &newest);
    if (!seq || seq < oldest || seq > newest) {
        return false;
    }
    *e = p->log[seq & p->log_mask];
    return true;
}

const struct sg_persist_event *sg_dom_log_find32(const struct sg_persist *p, uint32_t low)
{
    const struct sg_persist_event *e = &p->log[low & p->log_mask];

    return low && (uint32_t)e->seq == low ? e : NULL;
}

/* ---- Export and replay ---- */

static void put_event(uint8_t *to, const struct sg_persist_event *e)
{
    sg_put_le64(to, e->seq);
    sg_put_le64(to + 8, e->now_ns);
    sg_put_le64(to + 16, e->addr);
    sg_put_le64(to + 24, e->at);
    if (e->len <= 8) {
        memcpy(to + 32, &e->data, 8); /* octets in memory order; a number only on LE hosts */
    } else {
        sg_put_le64(to + 32, e->data);
    }
    sg_put_le32(to + 40, e->len);
    sg_put_le32(to + 44, e->qpn);
    sg_put_le32(to + 48, e->msn);
    sg_put_le32(to + 52, e->arg);
    sg_put_le16(to + 56, e->unit);
    to[58] = e->kind;
    to[59] = e->agent;
    sg_put_le32(to + 60, 0);
}

static void get_event(struct sg_persist_event *e, const uint8_t *from)
{
    *e = (struct sg_persist_event){
        .seq = sg_get_le64(from),
        .now_ns = sg_get_le64(from + 8),
        .addr = sg_get_le64(from + 16),
        .at = sg_get_le64(from + 24),
        .data = sg_get_le64(from + 32),
        .len = sg_get_le32(from + 40),
        .qpn = sg_get_le32(from + 44),
        .msn = sg_get_le32(from + 48),
        .arg = sg_get_le32(from + 52),
        .unit = sg_get_le16(from + 56),
        .kind = from[58],
        .agent = from[59],
    };
    if (e->len <= 8) {
        memcpy(&e->data, from + 32, 8);
    }
}

void sg_persist_log_export(const struct sg_persist *p, GByteArray *out)
{
    uint8_t header[LOG_HEADER] = { 0 }, event[LOG_EVENT];
    uint64_t oldest, newest, kept = SG_MIN(p->log_data_end, p->limits.log_data);
    uint64_t first = p->log_data_end - kept;

    sg_persist_log_bounds(p, &oldest, &newest);
    memcpy(header, magic, sizeof(magic));
    sg_put_le32(header + 8, LOG_VERSION);
    sg_put_le32(header + 12, LOG_HEADER);
    sg_put_le32(header + 16, LOG_EVENT);
    sg_put_le32(header + 20, p->limits.line_stores);
    sg_put_le64(header + 24, oldest);
    sg_put_le64(header + 32, newest ? newest - oldest + 1 : 0);
    sg_put_le64(header + 40, first);
    sg_put_le64(header + 48, kept);
    sg_put_le64(header + 56, p->limits.seed);
    sg_put_le32(header + 64, p->limits.s0_octets);
    sg_put_le32(header + 68, p->limits.s1_octets);
    g_byte_array_append(out, header, sizeof(header));
    for (uint64_t seq = oldest; newest && seq <= newest; seq++) {
        put_event(event, &p->log[seq & p->log_mask]);
        g_byte_array_append(out, event, sizeof(event));
    }
    for (uint64_t at = first; at < p->log_data_end;) {
        uint64_t n = SG_MIN(p->log_data_end - at, p->limits.log_data - at % p->limits.log_data);

        g_byte_array_append(out, p->log_data + at % p->limits.log_data, n);
        at += n;
    }
}

/* The parts of an exported log. */
struct log_view {
    const uint8_t *events, *data;
    uint64_t count, data_first, data_len;
};

static const char *parse_header(const struct sg_persist *p, const uint8_t *log, size_t len,
                                struct log_view *v)
{
    if (len < LOG_HEADER || memcmp(log, magic, sizeof(magic)) != 0) {
        return "not a log";
    }
    if (sg_get_le32(log + 8) != LOG_VERSION || sg_get_le32(log + 12) != LOG_HEADER ||
        sg_get_le32(log + 16) != LOG_EVENT) {
        return "unknown version";
    }
    v->count = sg_get_le64(log + 32);
    v->data_first = sg_get_le64(log + 40);
    v->data_len = sg_get_le64(log + 48);
    v->events = log + LOG_HEADER;
    if (v->count > (len - LOG_HEADER) / LOG_EVENT ||
        v->data_len != len - LOG_HEADER - v->count * LOG_EVENT) {
        return "truncated";
    }
    v->data = v->events + v->count * LOG_EVENT;
    if (!v->count || sg_get_le64(log + 24) != 1) {
        return "does not reach back to its first event";
    }
    if (sg_get_le32(log + 20) != p->limits.line_stores || sg_get_le64(log + 56) != p->limits.seed ||
        sg_get_le32(log + 64) != p->limits.s0_octets ||
        sg_get_le32(log + 68) != p->limits.s1_octets) {
        return "other limits";
    }
    return NULL;
}

static const uint8_t *payload_of(const struct log_view *v, const struct sg_persist_event *e)
{
    if (e->len <= sizeof(e->data)) {
        return (const uint8_t *)&e->data;
    }
    if (e->data < v->data_first || !sg_range_ok(e->data - v->data_first, e->len, v->data_len)) {
        return NULL;
    }
    return v->data + (e->data - v->data_first);
}

static uint64_t length(const struct sg_persist_event *e)
{
    return e->len == UINT32_MAX ? e->data : e->len;
}

static void replay_cut(struct sg_persist *p, const struct sg_persist_event *e)
{
    struct sg_persist_policy policy = {
        .outcome = e->arg % SG_PERSIST_OUTCOMES,
        .seed = e->data,
        .addr = e->addr,
        .len = e->at,
    };

    sg_persist_report_free(sg_persist_cut(p, &policy));
    for (unsigned i = 0; i < p->extent_count; i++) {
        if (p->extent[i].used) {
            memcpy(p->extent[i].visible, p->extent[i].media, p->extent[i].size);
        }
    }
}

static void replay_setting(struct sg_persist *p, const struct sg_persist_event *e)
{
    struct sg_persist_config config;

    switch (e->kind) {
    case SG_PERSIST_EV_CONFIGURE:
        sg_dom_log_unpack_config(e, &config);
        sg_persist_configure(p, &config);
        break;
    case SG_PERSIST_EV_MARK_BAD:
        sg_persist_mark_bad(p, e->addr, length(e),
                            e->arg == SG_PERSIST_UNCORRECTABLE ? SG_PERSIST_UNCORRECTABLE
                                                               : SG_PERSIST_POISONED);
        break;
    case SG_PERSIST_EV_CLEAR_BAD:
        sg_persist_clear_bad(p, e->addr, length(e));
        break;
    case SG_PERSIST_EV_SET_FAULTS:
        if (e->addr < p->extent_count && p->extent[e->addr].used) {
            sg_persist_set_faults(p, e->addr,
                                  &(struct sg_persist_faults){
                                      .read_only = e->arg & 1,
                                      .flush_fails_always = e->arg & 2,
                                      .wears_out = e->arg & 4,
                                      .flush_fails = e->msn,
                                      .lines_left = e->data,
                                  });
        }
        break;
    case SG_PERSIST_EV_CUT:
        replay_cut(p, e);
        break;
    case SG_PERSIST_EV_RESTART:
        sg_persist_restart(p);
        break;
    }
}

static void replay_flush(struct sg_persist *p, const struct sg_persist_event *e,
                         const struct sg_persist_source *who)
{
    unsigned flags = e->arg & (SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL);
    uint64_t len = length(e);

    sg_dom_log(p, SG_PERSIST_EV_FLUSH, who, e->addr, len, e->arg);
    if (e->arg & SG_DOM_FLUSH_BEGIN) {
        if (flags & SG_FLUSH_PERSISTENT && p->config.flush_latency_random_ns) {
            sg_dom_random(&p->rng); /* the answer time was random */
        }
        sg_dom_flush_begin(p, who);
    }
    if (e->arg & SG_DOM_FLUSH_FINISH) {
        sg_dom_flush_finish(p, who, e->addr, len, flags, NULL);
    }
    sg_dom_input_done(p);
}

/* One input; false: payload missing. */
static bool replay_event(struct sg_persist *p, const struct sg_persist_event *e,
                         const uint8_t *data)
{
    struct sg_persist_source who = {
        .agent = e->agent,
        .unit = e->unit,
        .qpn = e->qpn,
        .msn = e->msn,
        .at = e->at,
    };
    uint64_t off;
    struct extent *x;

    switch (e->kind) {
    case SG_PERSIST_EV_DMA_WRITE:
        who.mode = (uint8_t)e->arg;
        return data && sg_persist_dma_write(p, &who, e->addr, data, e->len);
    case SG_PERSIST_EV_ATOM_STORE:
        who.mode = (uint8_t)e->arg;
        return data && sg_persist_atom_store(p, &who, e->addr, data);
    case SG_PERSIST_EV_OTHER_WRITE:
        x = sg_dom_extent(p, e->addr, e->len, &off);
        if (!x || !data) {
            return false;
        }
        if (e->arg & SG_PERSIST_STORE_ANNOUNCED) {
            sg_dom_announce(p, x, off, e->len);
        }
        memcpy(x->visible + off, data, e->len);
        return sg_persist_other_write(p, &who, e->addr, e->len);
    case SG_PERSIST_EV_CPU_STORE:
        if (!(e->arg & SG_PERSIST_STORE_WRITE) &&
            (x = sg_dom_extent(p, e->addr, e->len, &off)) != NULL && data) {
            if (e->arg & SG_PERSIST_STORE_ANNOUNCED) {
                sg_dom_announce(p, x, off, e->len);
            }
            memcpy(x->visible + off, data, e->len);
        }
        return data && sg_persist_cpu_store(p, &who, e->addr, data, e->len, e->arg);
    case SG_PERSIST_EV_CPU_FLUSH:
        sg_persist_cpu_flush(p, &who, e->addr, e->arg);
        return true;
    case SG_PERSIST_EV_CPU_FENCE:
        sg_persist_cpu_fence(p, &who, e->arg);
        return true;
    case SG_PERSIST_EV_CPU_LOAD:
        sg_persist_cpu_load(p, &who, e->addr, length(e));
        return true;
    case SG_PERSIST_EV_FLUSH:
        if (who.unit < SG_PERSIST_DEVICES) {
            replay_flush(p, e, &who);
        }
        return who.unit < SG_PERSIST_DEVICES;
    case SG_PERSIST_EV_MILESTONE:
        sg_persist_milestone(p, &who, e->arg);
        return true;
    default:
        return false;
    }
}

static bool replay_plain(struct sg_persist *p, const struct sg_persist_event *e)
{
    switch (e->kind) {
    case SG_PERSIST_EV_SETTLE:
        sg_persist_settle(p, e->unit, e->qpn);
        return true;
    case SG_PERSIST_EV_FORGET:
        sg_persist_forget(p, e->unit, e->qpn);
        return true;
    case SG_PERSIST_EV_DEVICE_FENCE:
        sg_persist_device_fence(p, e->unit);
        return true;
    case SG_PERSIST_EV_DMA_READ:
        sg_persist_dma_read(p, e->unit, e->addr, length(e));
        return true;
    case SG_PERSIST_EV_CPU_SYNC:
        sg_persist_cpu_sync(p);
        return true;
    case SG_PERSIST_EV_ORDERLY:
        sg_persist_orderly(p);
        return true;
    case SG_PERSIST_EV_DEEP_FLUSH:
        sg_persist_deep_flush(p, e->addr, length(e));
        return true;
    case SG_PERSIST_EV_TICK:
        sg_persist_tick(p, e->now_ns);
        return true;
    case SG_PERSIST_EV_CONFIGURE:
    case SG_PERSIST_EV_MARK_BAD:
    case SG_PERSIST_EV_CLEAR_BAD:
    case SG_PERSIST_EV_SET_FAULTS:
    case SG_PERSIST_EV_CUT:
    case SG_PERSIST_EV_RESTART:
        replay_setting(p, e);
        return true;
    default:
        return false;
    }
}

const char *sg_persist_log_replay(struct sg_persist *p, const uint8_t *log, size_t len)
{
    struct sg_persist_event e;
    struct log_view v;
    const char *error = parse_header(p, log, len, &v);

    for (uint64_t i = 0; !error && i < v.count; i++) {
        get_event(&e, v.events + i * LOG_EVENT);
        if (e.kind >= SG_PERSIST_EV_INPUTS) {
            continue;
        }
        /* Only TICK events do work that comes due, as in the original run. */
        p->now_ns = SG_MAX(p->now_ns, e.now_ns);
        if (!replay_plain(p, &e) && !replay_event(p, &e, payload_of(&v, &e))) {
            error = "an event lacks its payload or does not fit the extents";
        }
    }
    return error;
}
