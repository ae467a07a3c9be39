/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ends of connections, and which two belong together.
 *
 * The two ends of a connection have the same addresses and ports, in opposite order.  If those are
 * used again, the k-th use of one end belongs to the k-th of the other.  A use that only one end
 * saw (the other one's adapter failed before) would shift all that follow: it is left out if its
 * end is among the causes of the other end's beginning.
 *
 * An end that is over is remembered for a while, because completions and marks may follow.
 */
#include "crash/promise_impl.h"

enum { ADDRESSES = 36, ADDRESS = 16, PORT = 2 };

/* Ends that wait for the other one, in the order of their beginning. */
struct crash_waiting {
    uint8_t address[ADDRESSES]; /* as side 0 has them */
    GQueue side[2];
};

static void free_waiting(void *opaque)
{
    struct crash_waiting *w = opaque;

    g_queue_clear(&w->side[0]);
    g_queue_clear(&w->side[1]);
    g_free(w);
}

static unsigned hash_addresses(const void *address)
{
    const uint8_t *p = address;
    uint64_t h = sg_get_le32(p + 32);

    for (unsigned i = 0; i < 32; i += 8) {
        h = crash_mix(h + sg_get_le64(p + i));
    }
    return (unsigned)h;
}

static gboolean same_addresses(const void *a, const void *b)
{
    return memcmp(a, b, ADDRESSES) == 0;
}

/* Which side the end is, and its addresses in the order of side 0. */
static void put_addresses(struct crash_end *e, const uint8_t *payload)
{
    const uint8_t *own = payload, *peer = payload + ADDRESS;
    const uint8_t *own_port = payload + 2 * ADDRESS, *peer_port = own_port + PORT;
    int order = memcmp(own, peer, ADDRESS);

    if (!order) {
        order = memcmp(own_port, peer_port, PORT);
    }
    e->side = order > 0;
    memcpy(e->address, e->side ? peer : own, ADDRESS);
    memcpy(e->address + ADDRESS, e->side ? own : peer, ADDRESS);
    memcpy(e->address + 2 * ADDRESS, e->side ? peer_port : own_port, PORT);
    memcpy(e->address + 2 * ADDRESS + PORT, e->side ? own_port : peer_port, PORT);
}

static uint64_t key_of(unsigned machine, uint64_t unit, uint64_t qpn)
{
    return (uint64_t)machine << 48 | unit << 32 | qpn;
}

struct crash_end *crash_end_of(struct sg_crash_promises *p, unsigned machine, uint64_t unit,
                               uint64_t qpn)
{
    uint64_t key = key_of(machine, unit, qpn);
    struct crash_machine *m = &p->machine[machine];

    if (!m->last || m->last->key != key) {
        m->last = g_hash_table_lookup(p->ends, &key);
    }
    return m->last;
}

void crash_end_dirty(struct sg_crash_promises *p, struct crash_end *q)
{
    struct crash_end **head = &p->machine[q->machine].dirty;

    if (!q->dirty) {
        q->dirty = true;
        q->next_dirty = *head;
        if (*head) {
            (*head)->prev_dirty = q;
        }
        *head = q;
    }
}

void crash_end_clean(struct sg_crash_promises *p, struct crash_end *q)
{
    if (q->dirty) {
        *(q->prev_dirty ? &q->prev_dirty->next_dirty : &p->machine[q->machine].dirty) =
            q->next_dirty;
        if (q->next_dirty) {
            q->next_dirty->prev_dirty = q->prev_dirty;
        }
        q->dirty = false;
        q->next_dirty = q->prev_dirty = NULL;
    }
}

/* ---- The end of an end ---- */

static void unmap(struct sg_crash_promises *p, struct crash_end *e)
{
    if (e->mapped) {
        g_hash_table_remove(p->ends, &e->key);
        e->mapped = false;
    }
    if (p->machine[e->machine].last == e) {
        p->machine[e->machine].last = NULL;
    }
}

static void wait_no_longer(struct sg_crash_promises *p, struct crash_end *e)
{
    struct crash_waiting *w = e->waits ? g_hash_table_lookup(p->waiting, e->address) : NULL;

    if (w) {
        g_queue_remove(&w->side[e->side], e);
        e->waits = false;
        if (g_queue_is_empty(&w->side[0]) && g_queue_is_empty(&w->side[1])) {
            g_hash_table_remove(p->waiting, e->address);
        }
    }
}

static void free_acks(struct sg_crash_promises *p, struct crash_acks *a)
{
    p->all_acks -= a->room;
    g_free(a->at);
}

static void destroy(struct sg_crash_promises *p, struct crash_end *e)
{
    unmap(p, e);
    wait_no_longer(p, e);
    crash_end_clean(p, e);
    for (unsigned list = 0; list < LISTS; list++) {
        while (e->head[list]) {
            p->counts.unpromised += p->pieces.all[e->head[list]].len > 0;
            crash_piece_free(p, e, e->head[list]);
        }
    }
    free_acks(p, &e->acks);
    free_acks(p, &e->exact);
    if (e->peer) {
        e->peer->peer = NULL;
    }
    p->counts.single_connections += !e->was_paired;
    p->by_number->pdata[e->number] = NULL;
    g_array_append_val(p->free_numbers, e->number);
    g_free(e);
}

static void end_gone(struct sg_crash_promises *p, struct crash_end *e, uint64_t event)
{
    GQueue *gone = p->machine[e->machine].gone;

    if (!e->gone) {
        e->gone = event;
        *(e->prev_live ? &e->prev_live->next_live : &p->machine[e->machine].live) = e->next_live;
        if (e->next_live) {
            e->next_live->prev_live = e->prev_live;
        }
        g_queue_push_tail(gone, e);
        if (gone->length > CRASH_GONE_MAX) {
            destroy(p, g_queue_pop_head(gone));
        }
    }
}

void crash_ends_init(struct sg_crash_promises *p)
{
    p->ends = g_hash_table_new(g_int64_hash, g_int64_equal);
    p->waiting = g_hash_table_new_full(hash_addresses, same_addresses, NULL, free_waiting);
    p->by_number = g_ptr_array_new();
    p->free_numbers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (unsigned i = 0; i < p->machines; i++) {
        p->machine[i].gone = g_queue_new();
    }
}

void crash_ends_free(struct sg_crash_promises *p)
{
    for (unsigned i = 0; i < p->by_number->len; i++) {
        if (p->by_number->pdata[i]) {
            destroy(p, p->by_number->pdata[i]);
        }
    }
    for (unsigned i = 0; i < p->machines; i++) {
        g_queue_free(p->machine[i].gone);
        g_free(p->machine[i].started);
        g_free(p->machine[i].completed);
    }
    g_hash_table_destroy(p->ends);
    g_hash_table_destroy(p->waiting);
    g_ptr_array_free(p->by_number, TRUE);
    g_array_free(p->free_numbers, TRUE);
}

/* ---- Events ---- */

static struct crash_end *new_end(struct sg_crash_promises *p, unsigned machine,
                                 const struct sg_trace_event *e)
{
    struct crash_end *end;
    GArray *free = p->free_numbers;
    uint32_t number;

    if (free->len) {
        number = g_array_index(free, uint32_t, free->len - 1);
        g_array_set_size(free, free->len - 1);
    } else if (p->by_number->len < SG_CRASH_CONNECTIONS) {
        number = p->by_number->len;
        g_ptr_array_add(p->by_number, NULL);
    } else {
        p->counts.connections_dropped++;
        return NULL;
    }
    end = g_new0(struct crash_end, 1);
    end->number = number;
    end->key = key_of(machine, e->unit, e->qpn);
    end->machine = (uint8_t)machine;
    end->unit = (uint16_t)e->unit;
    end->qpn = (uint32_t)e->qpn;
    put_addresses(end, e->data);
    p->by_number->pdata[number] = end;
    g_hash_table_insert(p->ends, &end->key, end);
    end->mapped = true;
    end->born = e->number;
    end->next_live = p->machine[machine].live;
    if (end->next_live) {
        end->next_live->prev_live = end;
    }
    p->machine[machine].live = end;
    return end;
}

/* The first that waits on the other side, and may be the peer. */
static struct crash_end *find_peer(struct crash_waiting *w, const struct crash_end *e,
                                   const uint64_t *past)
{
    struct crash_end *other;

    while ((other = g_queue_pop_head(&w->side[!e->side]))) {
        other->waits = false;
        if (!other->gone || other->gone > past[other->machine]) {
            return other;
        }
    }
    return NULL;
}

void crash_connected(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                     const uint64_t *past)
{
    struct crash_end *before = crash_end_of(p, machine, e->unit, e->qpn), *end;
    struct crash_waiting *w;

    if (before) {
        unmap(p, before);
        end_gone(p, before, e->number);
    }
    end = new_end(p, machine, e);
    if (!end) {
        return;
    }
    p->machine[machine].last = end;
    p->machine[machine].units |= e->unit < 64 ? 1ull << e->unit : 0;
    w = g_hash_table_lookup(p->waiting, end->address);
    if (!w) {
        w = g_new0(struct crash_waiting, 1);
        memcpy(w->address, end->address, ADDRESSES);
        g_hash_table_insert(p->waiting, w->address, w);
    }
    end->peer = find_peer(w, end, past);
    if (end->peer) {
        end->peer->peer = end;
        end->was_paired = end->peer->was_paired = true;
        p->counts.connections++;
        if (g_queue_is_empty(&w->side[0]) && g_queue_is_empty(&w->side[1])) {
            g_hash_table_remove(p->waiting, end->address);
        }
    } else {
        end->waits = true;
        g_queue_push_tail(&w->side[end->side], end);
    }
}

void crash_disconnected(struct sg_crash_promises *p, unsigned machine,
                        const struct sg_trace_event *e)
{
    struct crash_end *end = crash_end_of(p, machine, e->unit, e->qpn);

    if (end) {
        end_gone(p, end, e->number);
    }
}

void crash_all_disconnected(struct sg_crash_promises *p, unsigned machine,
                            const struct sg_trace_event *e)
{
    while (p->machine[machine].live) {
        end_gone(p, p->machine[machine].live, e->number);
    }
}
