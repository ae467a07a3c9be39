/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "oracle.h"

#include "base/bytes.h"

/* One QP per device, so that S0 is in order per device, too. */
static struct sg_persist_source adapter(unsigned device)
{
    return (struct sg_persist_source){
        .agent = SG_PERSIST_ADAPTER,
        .unit = device,
        .qpn = 7 + device,
    };
}

static struct sg_persist_source cpu(unsigned vcpu)
{
    return (struct sg_persist_source){ .agent = SG_PERSIST_CPU, .unit = vcpu };
}

void oracle_init(struct oracle *o, struct dom_rig *r)
{
    memset(o, 0, sizeof(*o));
    o->r = r;
    for (unsigned i = 0; i < ORACLE_LINES; i++) {
        o->states[i] = g_array_new(FALSE, FALSE, SG_PERSIST_LINE);
        g_array_append_vals(o->states[i], r->media + i * SG_PERSIST_LINE, 1);
    }
    g_queue_init(&o->s0);
    for (unsigned d = 0; d < ORACLE_DEVICES; d++) {
        g_queue_init(&o->posted[d]);
    }
}

static void drop_pieces(struct oracle *o)
{
    g_queue_clear_full(&o->s0, g_free);
    for (unsigned d = 0; d < ORACLE_DEVICES; d++) {
        g_queue_clear_full(&o->posted[d], g_free);
    }
}

void oracle_fini(struct oracle *o)
{
    drop_pieces(o);
    for (unsigned i = 0; i < ORACLE_LINES; i++) {
        g_array_free(o->states[i], TRUE);
    }
}

static const uint8_t *state_at(const struct oracle *o, unsigned line, unsigned n)
{
    return (uint8_t *)o->states[line]->data + (size_t)n * SG_PERSIST_LINE;
}

static unsigned newest(const struct oracle *o, unsigned line)
{
    return o->states[line]->len - 1;
}

/* A store adds one state per atom to the line, in ascending order. */
static void add_states(struct oracle *o, uint64_t off, const uint8_t *buf, size_t len)
{
    while (len) {
        unsigned line = off / SG_PERSIST_LINE;
        size_t n = SG_MIN(len, SG_PERSIST_ATOM - off % SG_PERSIST_ATOM);
        uint8_t content[SG_PERSIST_LINE];

        memcpy(content, state_at(o, line, newest(o, line)), sizeof(content));
        memcpy(content + off % SG_PERSIST_LINE, buf, n);
        g_array_append_vals(o->states[line], content, 1);
        off += n;
        buf += n;
        len -= n;
    }
}

static void make_certain(struct oracle *o, unsigned line, unsigned state)
{
    o->certain[line] = SG_MAX(o->certain[line], state);
}

/* The state is certainly in S3, and so survives unless the domain is NONE. */
static void reached_s3(struct oracle *o, unsigned line, unsigned state)
{
    o->queued[line] = SG_MAX(o->queued[line], state);
    if (o->r->config.domain >= SG_PERSIST_ADR) {
        make_certain(o, line, state);
    }
}

/* The newest state without non-temporal stores that wait in another vCPU. */
static unsigned flushable(const struct oracle *o, unsigned vcpu, unsigned line)
{
    return o->before[line] && o->waits[line] != vcpu ? o->before[line] - 1 : newest(o, line);
}

static void range_reached(struct oracle *o, uint64_t off, uint64_t len, bool media)
{
    if (!len) {
        return;
    }
    for (unsigned i = off / SG_PERSIST_LINE; i <= (off + len - 1) / SG_PERSIST_LINE; i++) {
        if (media) {
            make_certain(o, i, flushable(o, UINT_MAX, i));
        } else {
            reached_s3(o, i, newest(o, i));
        }
    }
}

/* Another agent than this vCPU accesses lines: non-temporal stores of others to them have left. */
static void others_access(struct oracle *o, unsigned vcpu, uint64_t off, size_t len)
{
    for (unsigned i = off / SG_PERSIST_LINE; i <= (off + len - 1) / SG_PERSIST_LINE; i++) {
        for (unsigned v = 0; v < ORACLE_VCPUS; v++) {
            if (v != vcpu && o->nt[v][i] && o->before[i] && o->waits[i] == v) {
                reached_s3(o, i, o->nt[v][i] - 1);
            }
        }
        if (o->waits[i] != vcpu) {
            o->before[i] = 0;
        }
    }
}

/* A DMA write became visible. */
static void became_visible(struct oracle *o, const struct oracle_piece *x)
{
    others_access(o, UINT_MAX, x->off, x->len);
    add_states(o, x->off, x->data, x->len);
    if (!o->r->config.ddio) {
        range_reached(o, x->off, x->len, false);
    } else if (o->r->config.domain >= SG_PERSIST_EADR) {
        range_reached(o, x->off, x->len, true);
    }
}

/*
 * Follows data that left S0 and S1 by themselves, by the sizes of both, which are FIFOs.  With
 * several devices S0 is followed only if one device has data there.
 */
static void follow(struct oracle *o)
{
    struct sg_persist_stats stats;
    uint64_t s0 = 0, s1 = 0;
    struct oracle_piece *x;

    sg_persist_stats(o->r->p, &stats);
    for (GList *l = o->s0.head; l; l = l->next) {
        s0 += ((struct oracle_piece *)l->data)->len;
    }
    while (s0 > stats.stage[SG_PERSIST_S0]) {
        x = g_queue_pop_head(&o->s0);
        s0 -= x->len;
        g_queue_push_tail(&o->posted[x->device], x);
    }
    T_EQ_U64(s0, stats.stage[SG_PERSIST_S0]);
    for (unsigned d = 0; d < ORACLE_DEVICES; d++) {
        for (GList *l = o->posted[d].head; l; l = l->next) {
            s1 += ((struct oracle_piece *)l->data)->len;
        }
    }
    /* Only device 0 has a lazy root complex's queue in these tests. */
    while (s1 > stats.stage[SG_PERSIST_S1]) {
        x = g_queue_pop_head(&o->posted[o->posted[0].head ? 0 : 1]);
        s1 -= x->len;
        became_visible(o, x);
        g_free(x);
    }
    T_EQ_U64(s1, stats.stage[SG_PERSIST_S1]);
}

void oracle_write(struct oracle *o, unsigned device, uint64_t off, const uint8_t *buf, size_t len)
{
    struct sg_persist_source who = adapter(device);
    struct oracle_piece *x = g_new0(struct oracle_piece, 1);

    T_TRUE(len <= sizeof(x->data));
    x->device = device;
    x->off = off;
    x->len = len;
    memcpy(x->data, buf, len);
    g_queue_push_tail(&o->s0, x);
    T_TRUE(sg_persist_dma_write(o->r->p, &who, RIG_BASE + off, buf, len));
    follow(o);
}

void oracle_atom(struct oracle *o, unsigned device, uint64_t off, const uint8_t *buf)
{
    struct sg_persist_source who = adapter(device);
    struct oracle_piece *x;

    oracle_settle(o, device);
    x = g_new0(struct oracle_piece, 1);
    x->device = device;
    x->off = off;
    x->len = SG_PERSIST_ATOM;
    memcpy(x->data, buf, SG_PERSIST_ATOM);
    g_queue_push_tail(&o->posted[device], x);
    T_TRUE(sg_persist_atom_store(o->r->p, &who, RIG_BASE + off, buf));
    follow(o);
}

/* Memory first, then the report, as with any device of QEMU. */
void oracle_other(struct oracle *o, uint64_t off, const uint8_t *buf, size_t len)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_OTHER };

    memcpy(o->r->visible + off, buf, len);
    T_TRUE(sg_persist_other_write(o->r->p, &who, RIG_BASE + off, len));
    others_access(o, UINT_MAX, off, len);
    add_states(o, off, buf, len);
    if (!o->r->config.ddio) {
        range_reached(o, off, len, false);
    } else if (o->r->config.domain >= SG_PERSIST_EADR) {
        range_reached(o, off, len, true);
    }
}

/* Data that a device reads have left the CPU: to memory if non-temporal, else to the cache. */
void oracle_read(struct oracle *o, unsigned device, uint64_t off, size_t len)
{
    sg_persist_dma_read(o->r->p, device, RIG_BASE + off, len);
    follow(o);
    T_TRUE(g_queue_is_empty(&o->posted[device]));
    others_access(o, UINT_MAX, off, len);
    for (unsigned i = off / SG_PERSIST_LINE; i <= (off + len - 1) / SG_PERSIST_LINE; i++) {
        if (o->r->config.domain >= SG_PERSIST_EADR) {
            make_certain(o, i, newest(o, i));
        }
    }
}

void oracle_settle(struct oracle *o, unsigned device)
{
    sg_persist_settle(o->r->p, device, 7 + device);
    follow(o);
}

void oracle_fence_device(struct oracle *o, unsigned device)
{
    sg_persist_device_fence(o->r->p, device);
    follow(o);
    T_TRUE(g_queue_is_empty(&o->posted[device]));
}

void oracle_flush(struct oracle *o, unsigned device, uint64_t off, uint64_t len, unsigned flags)
{
    struct sg_persist_source who = adapter(device);
    struct sg_pm_op op = { .len = len, .flags = flags };

    T_EQ_INT(sg_persist_flush(o->r->p, &who, RIG_BASE + off, &op), SG_PM_DONE);
    follow(o);
    T_TRUE(g_queue_is_empty(&o->posted[device]));
    if (flags & SG_FLUSH_PERSISTENT) {
        range_reached(o, off, len, true);
    }
}

void oracle_store(struct oracle *o, unsigned vcpu, uint64_t off, const uint8_t *buf, size_t len,
                  bool nt)
{
    struct sg_persist_source who = cpu(vcpu);

    T_TRUE(sg_persist_cpu_store(o->r->p, &who, RIG_BASE + off, buf, len,
                                SG_PERSIST_STORE_WRITE | (nt ? SG_PERSIST_STORE_NT : 0)));
    others_access(o, vcpu, off, len);
    for (unsigned i = off / SG_PERSIST_LINE; i <= (off + len - 1) / SG_PERSIST_LINE; i++) {
        o->before[i] = !nt ? 0 : o->before[i] ? o->before[i] : newest(o, i) + 1;
        o->waits[i] = vcpu;
        o->loose[i] |= nt;
    }
    add_states(o, off, buf, len);
    for (unsigned i = off / SG_PERSIST_LINE; i <= (off + len - 1) / SG_PERSIST_LINE; i++) {
        if (nt) {
            o->nt[vcpu][i] = newest(o, i) + 1;
        } else if (!o->r->config.store_buffer && o->r->config.domain >= SG_PERSIST_EADR) {
            make_certain(o, i, newest(o, i));
        }
    }
}

void oracle_cpu_flush(struct oracle *o, unsigned vcpu, uint64_t off, enum sg_persist_cpu_flush kind)
{
    struct sg_persist_source who = cpu(vcpu);
    unsigned line = off / SG_PERSIST_LINE;

    sg_persist_cpu_flush(o->r->p, &who, RIG_BASE + off, kind);
    if (kind == SG_PERSIST_CLFLUSH && !o->r->config.store_buffer) {
        reached_s3(o, line, flushable(o, vcpu, line));
    } else {
        o->noted[vcpu][line] = flushable(o, vcpu, line) + 1;
    }
}

void oracle_sfence(struct oracle *o, unsigned vcpu)
{
    struct sg_persist_source who = cpu(vcpu);

    sg_persist_cpu_fence(o->r->p, &who, SG_PERSIST_SFENCE);
    for (unsigned i = 0; i < ORACLE_LINES; i++) {
        if (o->noted[vcpu][i]) {
            reached_s3(o, i, o->noted[vcpu][i] - 1);
        }
        if (o->nt[vcpu][i]) {
            reached_s3(o, i, o->nt[vcpu][i] - 1);
        }
        o->noted[vcpu][i] = o->nt[vcpu][i] = 0;
        o->before[i] = o->waits[i] == vcpu ? 0 : o->before[i];
    }
}

void oracle_deep_flush(struct oracle *o)
{
    sg_persist_deep_flush(o->r->p, RIG_BASE, o->r->size);
    for (unsigned i = 0; i < ORACLE_LINES; i++) {
        make_certain(o, i, o->queued[i]);
    }
}

void oracle_tick(struct oracle *o, uint64_t now_ns)
{
    sg_persist_tick(o->r->p, now_ns);
    follow(o);
}

/* Each unit of so many octets, on its own, as in one of the states from n on. */
static bool units_allowed(const struct oracle *o, unsigned line, const uint8_t *media, unsigned n,
                          unsigned unit)
{
    for (unsigned at = 0; at < SG_PERSIST_LINE; at += unit) {
        unsigned k = n;

        while (k <= newest(o, line) && memcmp(state_at(o, line, k) + at, media + at, unit) != 0) {
            k++;
        }
        if (k > newest(o, line)) {
            return false;
        }
    }
    return true;
}

/* Data that may become visible at the cut, in order. */
static void arrive_late(struct oracle *o, const GQueue *queue, bool late[ORACLE_LINES])
{
    for (GList *l = queue->head; l; l = l->next) {
        struct oracle_piece *x = l->data;

        add_states(o, x->off, x->data, x->len);
        for (uint64_t at = x->off; at < x->off + x->len; at++) {
            late[at / SG_PERSIST_LINE] = true;
        }
    }
}

/* May data of several devices become visible at the cut?  Their order is not known. */
static bool several_devices(const struct oracle *o)
{
    bool some[ORACLE_DEVICES] = { o->posted[0].head, o->posted[1].head };

    for (GList *l = o->s0.head; l; l = l->next) {
        some[((struct oracle_piece *)l->data)->device] = true;
    }
    return some[0] && some[1];
}

/*
 * Data that arrive at the cut come to a line that lacks what stayed in a processor: only their
 * octets are judged then.
 */
void oracle_judge(struct oracle *o)
{
    bool late[ORACLE_LINES] = { false }, mixed = several_devices(o);
    unsigned least[ORACLE_LINES];

    /* In the domain WHOLE all of S1 has become visible. */
    for (unsigned d = 0; d < ORACLE_DEVICES; d++) {
        arrive_late(o, &o->posted[d], late);
    }
    for (unsigned i = 0; i < ORACLE_LINES; i++) {
        least[i] = o->r->config.domain == SG_PERSIST_WHOLE ? newest(o, i) : o->certain[i];
    }
    arrive_late(o, &o->s0, late);
    for (unsigned i = 0; i < ORACLE_LINES; i++) {
        const uint8_t *media = o->r->media + i * SG_PERSIST_LINE;
        unsigned n = least[i];

        while (n <= newest(o, i) && memcmp(state_at(o, i, n), media, SG_PERSIST_LINE) != 0) {
            n++;
        }
        if (n > newest(o, i) &&
            !((o->loose[i] || (late[i] && (mixed || o->r->config.store_buffer))) &&
              units_allowed(o, i, media, least[i], late[i] ? 1 : SG_PERSIST_ATOM))) {
            T_FAIL("line %u: none of the states %u to %u", i, o->certain[i], newest(o, i));
        }
        g_array_set_size(o->states[i], 0);
        g_array_append_vals(o->states[i], media, 1);
        o->certain[i] = o->queued[i] = 0;
    }
    memset(o->noted, 0, sizeof(o->noted));
    memset(o->nt, 0, sizeof(o->nt));
    memset(o->before, 0, sizeof(o->before));
    memset(o->loose, 0, sizeof(o->loose));
    drop_pieces(o);
}
