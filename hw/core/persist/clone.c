/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A second domain in the same state.
 *
 * Elements of pools keep their numbers, so the pools are copied as they are, and lines and stores
 * need no other work.  Everything else that the domain points to is copied one by one.  Costs what
 * is dirty, what is under way, and the log as far as it is filled.
 */
#include "persist/certain.h"
#include "persist/segments.h"

static void copy_pool(struct pool *to, const struct pool *from)
{
    *to = *from;
    to->chunks = g_new(uint8_t *, from->chunk_count);
    for (uint32_t i = 0; i < from->chunk_count; i++) {
        to->chunks[i] = g_memdup2(from->chunks[i], (size_t)SG_DOM_CHUNK * from->size);
    }
}

static struct fifo copy_fifo(const struct fifo *from)
{
    struct fifo to = { .head = NULL };

    for (const struct piece *x = from->head; x; x = x->next) {
        sg_dom_fifo_push(&to, g_memdup2(x, sizeof(*x) + x->len));
    }
    return to;
}

static struct cpu_ring copy_ring(const struct cpu_ring *from)
{
    struct cpu_ring to = *from;

    to.at = g_memdup2(from->at, from->size * sizeof(*from->at));
    return to;
}

/* The pages are in the clone's pool already. */
static void copy_extent(struct sg_persist *to, struct extent *x, const struct extent *from,
                        const struct sg_persist_memory *memory)
{
    size_t words = (from->page_count + 63) / 64, tops = (from->page_count + 4095) / 4096;

    *x = *from;
    x->visible = memory->visible;
    x->media = memory->media;
    x->name = g_strdup(from->name);
    x->map = g_memdup2(from->map, words * sizeof(*from->map));
    x->top = g_memdup2(from->top, tops * sizeof(*from->top));
    sg_dom_touched_copy(&x->touched, &from->touched, from->page_count);
    x->pages = g_new0(struct page *, from->page_count);
    SG_DOM_FOR_PAGES(from, page_no, 0, from->size) {
        x->pages[page_no] = sg_dom_pool_at(&to->pages, from->pages[page_no]->number);
    }
}

static void copy_cpu(struct sg_persist *to, const struct cpu *from)
{
    struct cpu *c = g_memdup2(from, sizeof(*from));

    c->sb = copy_ring(&from->sb);
    c->wc = copy_ring(&from->wc);
    c->flushes = g_array_copy(from->flushes);
    to->cpu[from->unit] = c;
}

static void copy_log(struct sg_persist *to, const struct sg_persist *from)
{
    uint64_t size = from->log_mask + 1, kept = SG_MIN(from->log_data_end, from->limits.log_data);

    to->log = g_new0(struct sg_persist_event, size);
    memcpy(to->log, from->log, SG_MIN(from->seq + 1, size) * sizeof(*to->log));
    if (from->log_data) {
        to->log_data = g_malloc(from->limits.log_data);
        memcpy(to->log_data, from->log_data, kept);
    }
}

static void copy_under_way(struct sg_persist *to, const struct sg_persist *from)
{
    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        to->s1[d] = copy_fifo(&from->s1[d]);
    }
    to->conns = g_hash_table_new(g_int64_hash, g_int64_equal);
    to->conn_order = g_ptr_array_new();
    for (unsigned i = 0; i < from->conn_order->len; i++) {
        const struct sg_dom_conn *conn = g_ptr_array_index(from->conn_order, i);

        sg_dom_make_conn(to, conn->device, conn->qpn)->s0 = copy_fifo(&conn->s0);
    }
}

struct sg_persist *sg_persist_clone(const struct sg_persist *p,
                                    const struct sg_persist_memory *memory)
{
    struct sg_persist *c = g_memdup2(p, sizeof(*p));

    c->ops = NULL;
    c->opaque = NULL;
    c->arrivals = NULL;
    c->arrivals_opaque = NULL;
    copy_pool(&c->pages, &p->pages);
    copy_pool(&c->lines, &p->lines);
    copy_pool(&c->recs, &p->recs);
    for (unsigned i = 0; i < p->extent_count; i++) {
        if (p->extent[i].used) {
            copy_extent(c, &c->extent[i], &p->extent[i], &memory[i]);
        }
    }
    copy_under_way(c, p);
    for (unsigned i = 0; i < p->cpu_count; i++) {
        if (p->cpu[i]) {
            copy_cpu(c, p->cpu[i]);
        }
    }
    for (unsigned i = 0; i < SG_ARRAY_SIZE(p->bad); i++) {
        if (p->bad[i].range) {
            c->bad[i].range = g_new(struct sg_persist_bad, SG_PERSIST_BAD_RANGES);
            memcpy(c->bad[i].range, p->bad[i].range, p->bad[i].count * sizeof(*p->bad[i].range));
        }
    }
    c->origins = g_array_copy(p->origins);
    sg_dom_overtaken_copy(c, p);
    copy_log(c, p);
    return c;
}
