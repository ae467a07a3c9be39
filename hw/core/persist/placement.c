/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the wire to visibility: S0, and the events of adapters; posted.c has S1.
 *
 * S0 is a list of pieces per connection; a piece is the payload of one dma_write (at most a DDP
 * segment).  It moves on when it is due (placement_delay_ns), when the connection settles, or when
 * it holds more than s0_octets.  In random order any piece of the connection may go first: RFC 5041
 * section 5.3 lets the order of placement differ from the order of sending, and RFC 5040 section
 * 5.5 promises nothing between Writes.
 *
 * Without delay, reordering and a lazy root complex, a write passes straight through.
 */
#include "persist/segments.h"

/* ---- S0 ---- */

static struct sg_dom_conn *find_conn(struct sg_persist *p, unsigned device, uint32_t qpn)
{
    int64_t key = (int64_t)device << 32 | qpn;

    return g_hash_table_lookup(p->conns, &key);
}

/* The key is inside the entry, so that the table owns no memory of its own. */
struct keyed_conn {
    int64_t key;
    struct sg_dom_conn conn;
};

struct sg_dom_conn *sg_dom_make_conn(struct sg_persist *p, unsigned device, uint32_t qpn)
{
    struct keyed_conn *k = g_new0(struct keyed_conn, 1);

    k->key = (int64_t)device << 32 | qpn;
    k->conn.device = device;
    k->conn.qpn = qpn;
    g_hash_table_insert(p->conns, &k->key, &k->conn);
    g_ptr_array_add(p->conn_order, &k->conn);
    return &k->conn;
}

static void drop_conn(struct sg_persist *p, struct sg_dom_conn *c)
{
    struct keyed_conn *k = sg_container_of(c, struct keyed_conn, conn);

    g_hash_table_remove(p->conns, &k->key);
    g_ptr_array_remove(p->conn_order, c);
    sg_dom_fifo_clear(&c->s0);
    g_free(k);
}

void sg_dom_drop_empty(struct sg_persist *p)
{
    for (unsigned i = p->conn_order->len; i--;) {
        struct sg_dom_conn *c = g_ptr_array_index(p->conn_order, i);

        if (!c->s0.head) {
            drop_conn(p, c);
        }
    }
}

/* The next piece to leave S0, in order or not. */
static struct piece *take_next(struct sg_persist *p, struct sg_dom_conn *c)
{
    struct piece *prev = NULL;

    if (p->config.placement_order == SG_PERSIST_RANDOM_ORDER && !p->limits.exact) {
        for (uint64_t skip = sg_dom_below(&p->rng, c->s0.count); skip; skip--) {
            prev = prev ? prev->next : c->s0.head;
        }
    }
    return sg_dom_fifo_take(&c->s0, prev);
}

void sg_dom_settle(struct sg_persist *p, unsigned device, uint32_t qpn)
{
    struct sg_dom_conn *c = find_conn(p, device, qpn);

    if (c && p->config.posted_drain == SG_PERSIST_EAGER) {
        sg_dom_segments_settling(p, device, qpn);
        c = find_conn(p, device, qpn);
    }
    while (c && c->s0.head) {
        sg_dom_post(p, take_next(p, c));
    }
    if (c) {
        drop_conn(p, c);
    }
}

/* Past what other connections have posted since: the Flush may have been before that. */
void sg_dom_noted_leaves_s0(struct sg_persist *p, const struct sg_persist_source *source,
                            const struct sg_persist_flush_note *note)
{
    struct sg_dom_conn *c = find_conn(p, source->unit, source->qpn);
    struct piece *prev = NULL;

    while (c && (prev ? prev->next : c->s0.head)) {
        struct piece *x = prev ? prev->next : c->s0.head;

        if (x->seq <= note->seq) {
            sg_dom_pass(p, sg_dom_fifo_take(&c->s0, prev));
        } else {
            prev = x;
        }
    }
    if (c && !c->s0.head) {
        drop_conn(p, c);
    }
}

void sg_dom_place_clear(struct sg_persist *p)
{
    while (p->conn_order->len) {
        drop_conn(p, g_ptr_array_index(p->conn_order, p->conn_order->len - 1));
    }
    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        sg_dom_fifo_clear(&p->s1[d]);
    }
    p->s1_devices = 0;
    p->place_due_ns = p->posted_due_ns = SG_NEVER;
    sg_dom_overtaken_clear(p);
}

/* A piece has to wait in the adapter. */
static void hold(struct sg_persist *p, struct piece *x)
{
    const struct sg_persist_config *g = &p->config;
    struct sg_dom_conn *c = find_conn(p, x->source.unit, x->source.qpn);
    uint64_t delay = g->placement_delay_ns ? g->placement_delay_ns : SG_DOM_REORDER_NS;

    if (!c) {
        c = sg_dom_make_conn(p, x->source.unit, x->source.qpn);
    }
    if (g->placement_order == SG_PERSIST_RANDOM_ORDER && !p->limits.exact) {
        delay = sg_dom_below(&p->rng, delay + 1);
    }
    x->due_ns = p->now_ns + delay;
    p->place_due_ns = SG_MIN(p->place_due_ns, x->due_ns);
    sg_dom_fifo_push(&c->s0, x);
    while (c->s0.octets > p->limits.s0_octets) {
        sg_dom_post(p, take_next(p, c));
        p->merged++;
    }
    if (!c->s0.head) {
        drop_conn(p, c);
    }
}

/* Moves pieces of a connection that are due; in order, an early one waits for earlier ones. */
static void place_due(struct sg_persist *p, struct sg_dom_conn *c)
{
    struct piece *prev = NULL, *x = c->s0.head;

    while (x) {
        struct piece *next = x->next;

        if (x->due_ns <= p->now_ns) {
            sg_dom_post(p, sg_dom_fifo_take(&c->s0, prev));
        } else if (p->config.placement_order == SG_PERSIST_RANDOM_ORDER) {
            prev = x;
        } else {
            break;
        }
        x = next;
    }
    for (x = c->s0.head; x; x = x->next) {
        p->place_due_ns = SG_MIN(p->place_due_ns, x->due_ns);
    }
}

/* ---- Loads ---- */

bool sg_dom_posted_sees(const struct sg_persist *p, uint64_t lo, uint64_t last)
{
    for (unsigned i = 0; i < p->conn_order->len; i++) {
        const struct sg_dom_conn *c = g_ptr_array_index(p->conn_order, i);

        if (sg_dom_fifo_last_for(&c->s0, lo, last)) {
            return true;
        }
    }
    for (uint64_t m = p->s1_devices; m; m &= m - 1) {
        if (sg_dom_fifo_last_for(&p->s1[__builtin_ctzll(m)], lo, last)) {
            return true;
        }
    }
    return false;
}

bool sg_persist_posted_waits(const struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t unit = p->arrivals ? SG_PERSIST_LINE : SG_PERSIST_ATOM;

    return len && sg_dom_posted_sees(p, sg_align_down(addr, unit), (addr + (len - 1)) | (unit - 1));
}

/* Takes from a connection's S0 what is for these lines, and in order what is before it. */
static void take_seen(struct sg_persist *p, struct sg_dom_conn *c, uint64_t lo, uint64_t last,
                      GPtrArray *to)
{
    const struct piece *until = sg_dom_fifo_last_for(&c->s0, lo, last);
    struct piece *prev = NULL;

    while (until) {
        struct piece *x = prev ? prev->next : c->s0.head;

        until = x == until ? NULL : until;
        if (p->config.placement_order == SG_PERSIST_RANDOM_ORDER &&
            !sg_dom_piece_is_for(x, lo, last)) {
            prev = x;
        } else {
            g_ptr_array_add(to, sg_dom_fifo_take(&c->s0, prev));
        }
    }
}

static gint by_event(gconstpointer a, gconstpointer b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;

    return x->seq < y->seq ? -1 : 1;
}

void sg_dom_posted_seen(struct sg_persist *p, uint64_t lo, uint64_t last)
{
    GPtrArray *seen;

    if (sg_dom_any_order(p)) {
        sg_dom_segments_seen(p, lo, last);
        return;
    }
    seen = g_ptr_array_new();
    for (unsigned i = 0; i < p->conn_order->len;) {
        struct sg_dom_conn *c = g_ptr_array_index(p->conn_order, i);

        take_seen(p, c, lo, last, seen);
        if (c->s0.head) {
            i++;
        } else {
            drop_conn(p, c);
        }
    }
    g_ptr_array_sort(seen, by_event);
    for (unsigned i = 0; i < seen->len; i++) {
        sg_dom_post(p, g_ptr_array_index(seen, i));
    }
    g_ptr_array_free(seen, TRUE);
    sg_dom_leave_s1(p, lo, last);
}

void sg_dom_posted_before(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t lo = sg_align_down(addr, SG_PERSIST_ATOM);
    uint64_t last = (addr + (len - 1)) | (SG_PERSIST_ATOM - 1);

    if (p->limits.exact && sg_dom_posted_sees(p, lo, last)) {
        sg_dom_posted_seen(p, lo, last);
    }
}

/* ---- Time ---- */

void sg_persist_tick(struct sg_persist *p, uint64_t now_ns)
{
    p->now_ns = SG_MAX(p->now_ns, now_ns);
    if (p->frozen || (p->place_due_ns > p->now_ns && p->posted_due_ns > p->now_ns)) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_TICK, NULL, 0, 0, 0);
    if (p->place_due_ns <= p->now_ns) {
        p->place_due_ns = SG_NEVER;
        for (unsigned i = 0; i < p->conn_order->len;) {
            struct sg_dom_conn *c = g_ptr_array_index(p->conn_order, i);

            place_due(p, c);
            if (c->s0.head) {
                i++;
            } else {
                drop_conn(p, c);
            }
        }
    }
    if (p->posted_due_ns <= p->now_ns) {
        p->posted_due_ns = SG_NEVER;
        for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
            sg_dom_drain_posted(p, d);
        }
    }
    sg_dom_input_done(p);
}

uint64_t sg_persist_next_due(const struct sg_persist *p)
{
    return p->frozen ? SG_NEVER : SG_MIN(p->place_due_ns, p->posted_due_ns);
}

/* ---- Events ---- */

static bool acceptable(const struct sg_persist *p, const struct sg_persist_source *source,
                       uint64_t addr, uint64_t len)
{
    return source->unit < SG_PERSIST_DEVICES && len <= UINT32_MAX &&
           sg_persist_query(p, addr, len) & SG_PM_PERSISTENT;
}

bool sg_persist_dma_write(struct sg_persist *p, const struct sg_persist_source *source,
                          uint64_t addr, const void *buf, size_t len)
{
    const struct sg_persist_config *g = &p->config;
    uint64_t seq;

    if (!acceptable(p, source, addr, len)) {
        return false;
    }
    if (p->frozen) {
        return true;
    }
    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    seq = sg_dom_log_payload(p, SG_PERSIST_EV_DMA_WRITE, source, addr, buf, len, source->mode);
    if (g->placement_delay_ns || g->placement_order == SG_PERSIST_RANDOM_ORDER) {
        hold(p, sg_dom_new_piece(source, addr, buf, len, seq));
    } else if (g->posted_drain == SG_PERSIST_EAGER) {
        sg_dom_become_visible(p, addr, buf, len, seq, source->mode);
    } else {
        sg_dom_post(p, sg_dom_new_piece(source, addr, buf, len, seq));
    }
    sg_dom_input_done(p);
    return true;
}

bool sg_persist_atom_store(struct sg_persist *p, const struct sg_persist_source *source,
                           uint64_t addr, const uint8_t atom[SG_PERSIST_ATOM])
{
    uint64_t seq;

    if (!sg_is_aligned(addr, SG_PERSIST_ATOM) || !acceptable(p, source, addr, SG_PERSIST_ATOM)) {
        return false;
    }
    if (p->frozen) {
        return true;
    }
    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    seq = sg_dom_log_payload(p, SG_PERSIST_EV_ATOM_STORE, source, addr, atom, SG_PERSIST_ATOM,
                             source->mode);
    if (p->config.posted_drain == SG_PERSIST_EAGER) { /* it is there at once */
        sg_dom_segments_early(p, addr, SG_PERSIST_ATOM);
    }
    sg_dom_post(p, sg_dom_new_piece(source, addr, atom, SG_PERSIST_ATOM, seq));
    sg_dom_input_done(p);
    return true;
}

/*
 * Octets of an extent that somebody else has already changed in visible memory.  One atom that was
 * announced is a store of its own, whatever else comes to its line.
 */
static void changed_outside(struct sg_persist *p, const struct sg_persist_source *source,
                            struct extent *e, uint64_t off, uint64_t addr, uint64_t len)
{
    unsigned flags = sg_dom_was_announced(p, addr, len) ? SG_PERSIST_STORE_ANNOUNCED : 0;
    uint64_t seq = sg_dom_log_payload(p, SG_PERSIST_EV_OTHER_WRITE, source, addr, e->visible + off,
                                      len, flags);

    sg_dom_others_leave(p, e, off, len, -1);
    if (flags && off / SG_PERSIST_ATOM == (off + len - 1) / SG_PERSIST_ATOM) {
        sg_dom_line_store(p, e, off / SG_PERSIST_PAGE, off % SG_PERSIST_PAGE / SG_PERSIST_LINE,
                          &(struct sg_dom_store){
                              .in = off % SG_PERSIST_LINE,
                              .len = len,
                              .data = e->visible + off,
                              .seq = seq,
                          });
    } else {
        sg_dom_visible_mark(p, e, off, len, seq);
    }
    if (!p->config.ddio) {
        sg_dom_advance_range(p, e, off, len, SG_DOM_TO_S3, true);
    }
    sg_dom_pace(p, e, off, len);
    sg_dom_input_done(p);
}

bool sg_persist_atomic(struct sg_persist *p, const struct sg_persist_source *source, uint64_t addr,
                       uint64_t *value, uint64_t desired)
{
    uint64_t off, found, want;
    struct extent *e;

    if (!sg_is_aligned(addr, SG_PERSIST_ATOM) || !acceptable(p, source, addr, SG_PERSIST_ATOM)) {
        return false;
    }
    if (p->frozen) {
        return true;
    }
    e = sg_dom_extent(p, addr, SG_PERSIST_ATOM, &off);
    if (!e) {
        return false;
    }
    sg_dom_posted_before(p, addr, SG_PERSIST_ATOM);
    sg_dom_dma_read(p, source->unit, addr, SG_PERSIST_ATOM);
    sg_dom_keep_untracked(p, e, off / SG_PERSIST_PAGE,
                          1ull << (off % SG_PERSIST_PAGE / SG_PERSIST_LINE));
    sg_put_le64(&found, *value);
    sg_put_le64(&want, desired);
    if (memcmp(e->visible + off, &found, sizeof(found)) == 0) {
        sg_dom_segments_early(p, addr, SG_PERSIST_ATOM);
    }
    if (found != want && memcmp(e->visible + off, &found, sizeof(found)) == 0) {
        sg_dom_announce(p, e, off, SG_PERSIST_ATOM);
    }
    if (__atomic_compare_exchange_n((uint64_t *)(e->visible + off), &found, want, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        if (found != want) { /* else there was no event to be logged */
            sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
            changed_outside(p, source, e, off, addr, SG_PERSIST_ATOM);
        }
    }
    p->announced_len = 0;
    *value = sg_get_le64(&found);
    sg_dom_call_done(p);
    return true;
}

bool sg_persist_other_write(struct sg_persist *p, const struct sg_persist_source *source,
                            uint64_t addr, uint64_t len)
{
    uint64_t off;
    struct extent *e = len ? sg_dom_extent(p, addr, len, &off) : NULL;

    if (!e) {
        return false;
    }
    sg_dom_touch_range(&e->touched, off, len);
    if (p->frozen) {
        return true;
    }
    sg_dom_others_drain(p, -1, SG_DOM_PROCESSOR);
    changed_outside(p, source, e, off, addr, len);
    return true;
}

void sg_persist_settle(struct sg_persist *p, unsigned device, uint32_t qpn)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .unit = device, .qpn = qpn };

    if (p->frozen || !find_conn(p, device, qpn)) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_SETTLE, &who, 0, 0, 0);
    sg_dom_settle(p, device, qpn);
    sg_dom_input_done(p);
}

void sg_persist_forget(struct sg_persist *p, unsigned device, uint32_t qpn)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .unit = device, .qpn = qpn };
    struct sg_dom_conn *c = find_conn(p, device, qpn);

    if (p->frozen || !c) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_FORGET, &who, 0, 0, 0);
    drop_conn(p, c);
    sg_dom_input_done(p);
}

static void device_fence(struct sg_persist *p, unsigned device)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .unit = device };

    if (device < SG_PERSIST_DEVICES && p->s1[device].head) {
        sg_dom_log(p, SG_PERSIST_EV_DEVICE_FENCE, &who, 0, 0, 0);
        sg_dom_drain_posted(p, device);
        sg_dom_step_done(p);
    }
}

void sg_dom_dma_read(struct sg_persist *p, unsigned device, uint64_t addr, uint64_t len)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .unit = device };

    device_fence(p, device);
    if (len && sg_dom_cpu_sees(p, addr, len, -1)) {
        sg_dom_log(p, SG_PERSIST_EV_DMA_READ, &who, addr, len, 0);
        sg_dom_cpu_seen(p, addr, len, -1);
        sg_dom_step_done(p);
    }
}

void sg_persist_dma_read(struct sg_persist *p, unsigned device, uint64_t addr, uint64_t len)
{
    if (!p->frozen) {
        sg_dom_dma_read(p, device, addr, len);
        sg_dom_call_done(p);
    }
}

void sg_persist_device_fence(struct sg_persist *p, unsigned device)
{
    if (!p->frozen) {
        device_fence(p, device);
        sg_dom_call_done(p);
    }
}
