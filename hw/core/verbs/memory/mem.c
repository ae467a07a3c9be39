/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Placement and gathering.
 *
 * Placement copies: the octets come from a network buffer and are written by dma_write, one call
 * per contiguous run; persistent memory is handled by pm.c.  Gathering maps runs of guest memory
 * so that large payloads go from the guest into the stream without a copy; small pieces, memory
 * that cannot be mapped and what exceeds the list are copied into one scratch buffer per adapter,
 * neighbours merged into one piece.
 *
 * Pieces live from 'gather' to 'gathered' within one sg_conn_transmit(), so the scratch buffer is
 * a stack that empties itself.
 */
#include "verbs/memory/mem.h"

#include "verbs/memory/pm.h"
#include "verbs/state/adapter_state.h"

/* Memory of a region does not respond.  Returns false. */
static SG_COLD bool silent(struct sg_adapter *a, const struct sg_mr *mr, uint64_t bus)
{
    if (sg_checking(a)) {
        a->check_silent = true;
        sg_check_found(a, SG_RULE_DMA_MEMORY, sg_object(SG_OBJECT_MR, mr->stag),
                       "region 0x%x: its memory at 0x%llx does not respond to DMA", mr->stag,
                       (unsigned long long)bus);
    }
    return false;
}

bool sg_mem_place(struct sg_mem_ctx *ctx, const struct sg_mr *mr, uint64_t to, const uint8_t *p,
                  size_t n)
{
    struct sg_adapter *a = ctx->adapter;
    uint64_t bus, run;

    if (mr->pm) {
        return sg_pm_place(ctx, mr, to, p, n);
    }
    while (n) {
        run = sg_mr_run(mr, to, n, &bus);
        if (!a->host.ops->dma_write(a->host.opaque, bus, p, run)) {
            return silent(a, mr, bus);
        }
        p += run;
        to += run;
        n -= run;
    }
    return true;
}

bool sg_mem_fetch(struct sg_adapter *a, const struct sg_mr *mr, uint64_t to, uint8_t *p, size_t n)
{
    uint64_t bus, run;

    while (n) {
        run = sg_mr_run(mr, to, n, &bus);
        if (!a->host.ops->dma_read(a->host.opaque, bus, p, run)) {
            return silent(a, mr, bus);
        }
        p += run;
        to += run;
        n -= run;
    }
    return true;
}

/* Room for len octets behind the last piece, which is extended if it ends there. */
static uint8_t *scratch_room(struct sg_adapter *a, struct sg_gather *g, size_t len)
{
    struct sg_scratch *s = a->scratch;
    struct iovec *last = g->n ? &g->iov[g->n - 1] : NULL;
    uint8_t *p;

    if (len > SG_SCRATCH_SIZE - s->used) {
        return NULL;
    }
    p = s->buf + s->used;
    if (last && (uint8_t *)last->iov_base + last->iov_len == p) {
        last->iov_len += len;
    } else if (g->n < g->max) {
        g->iov[g->n++] = (struct iovec){ .iov_base = p, .iov_len = len };
        s->live++;
    } else {
        return NULL;
    }
    s->used += len;
    return p;
}

static bool copy_run(struct sg_adapter *a, struct sg_gather *g, uint64_t bus, size_t len)
{
    uint8_t *p = scratch_room(a, g, len);

    if (p && a->host.ops->dma_read(a->host.opaque, bus, p, len)) {
        return true;
    }
    /* The piece stays, with stale octets: the caller drops the whole list. */
    a->check_silent = p != NULL;
    return false;
}

/* One contiguous run: mapped in as many pieces as the host chooses, the rest copied. */
static bool gather_run(struct sg_adapter *a, struct sg_gather *g, uint64_t bus, size_t len)
{
    size_t part;
    void *p;

    while (len) {
        part = len;
        p = len <= SG_COPY_MAX || g->n >= g->max - 1
                ? NULL
                : a->host.ops->map(a->host.opaque, bus, &part, false);
        if (!p) {
            return copy_run(a, g, bus, len);
        }
        g->iov[g->n++] = (struct iovec){ .iov_base = p, .iov_len = part };
        bus += part;
        len -= part;
    }
    return true;
}

bool sg_mem_gather(struct sg_adapter *a, struct sg_gather *g, const struct sg_mr *mr, uint64_t to,
                   size_t len)
{
    uint64_t bus, run;

    while (len) {
        run = sg_mr_run(mr, to, len, &bus);
        if (!gather_run(a, g, bus, run)) {
            return a->check_silent && silent(a, mr, bus);
        }
        to += run;
        len -= run;
    }
    return true;
}

bool sg_mem_gather_bytes(struct sg_adapter *a, struct sg_gather *g, const uint8_t *p, size_t len)
{
    uint8_t *room = scratch_room(a, g, len);

    if (!room) {
        return false;
    }
    memcpy(room, p, len);
    return true;
}

void sg_mem_release(struct sg_adapter *a, struct iovec *iov, int n)
{
    struct sg_scratch *s = a->scratch;
    int i;

    for (i = 0; i < n; i++) {
        uint8_t *p = iov[i].iov_base;

        if (p >= s->buf && p < s->buf + SG_SCRATCH_SIZE) {
            sg_assert(s->live);
            s->live--;
        } else {
            a->host.ops->unmap(a->host.opaque, p, iov[i].iov_len, false);
        }
    }
    if (!s->live) {
        s->used = 0;
    }
}
