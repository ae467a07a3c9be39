/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging.
 *
 * A region of SG_MR_ODP begins without pages.  An access to a missing page (or a write to one that
 * is only readable) raises SG_EV_PAGE_FAULT and waits; MAP_PAGES adds pages, removes them, or says
 * that there are none.  Every access that waited for pages of that range then tries again: the same
 * segment, message or request, from its beginning.  All waiters share one fault.
 *
 * The table is sparse: chunks of 512 entries in a hash table.  An entry is the page's bus address
 * and four bits; one that is all zero need not exist.  Chunks count as 512 addresses against the
 * limit of the protection table, and a chunk without entries is freed.  A peer can make a chunk
 * only by a fault, and has no more faults open than its queue pair has sides.
 *
 * Nothing is held across calls except bus addresses of deferred writes (pm.c), which are completed
 * before pages are removed; so after UNMAP completes the adapter does not use them.
 *
 * For results that arrive with an answer to our own requests (Atomics, hashes), the pages are
 * requested before the request starts.  If they are gone when the answer arrives, the request fails
 * with LOC_PROT_ERR.
 */
#include "verbs/memory/odp.h"

#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/state/adapter_state.h"

enum { CHUNK_SHIFT = 9, CHUNK = 1 << CHUNK_SHIFT, MAP_MAX = SG_TURN_PAGES };

/* Low bits of an entry: pages are aligned to 4 KiB at least. */
#define ENTRY_WRITE 1ull /* as in the list of MAP_PAGES */
#define ENTRY_PRESENT 2ull
#define ENTRY_REQUESTED_READ 4ull /* SG_EV_PAGE_FAULT was raised and not answered */
#define ENTRY_REQUESTED_WRITE 8ull
#define ENTRY_REQUESTED (ENTRY_REQUESTED_READ | ENTRY_REQUESTED_WRITE)
#define ENTRY_ADDR (~0xfffull)

struct chunk {
    struct chunk *next;
    uint64_t number;
    uint32_t used; /* entries that are not 0 */
    uint64_t entry[CHUNK];
};

/* A hash table by number.  It is twice as large when there are more chunks than buckets. */
struct sg_odp {
    struct chunk **buckets; /* at first 'single' */
    struct chunk *single;
    uint32_t mask;
    uint32_t count;
};

enum { LOAD_MAX = 4 }; /* chunks per bucket, if there is no memory for more buckets */

struct sg_odp *sg_odp_new(struct sg_adapter *a)
{
    struct sg_odp *odp = sg_account_new0(&a->account, sizeof(*odp));

    if (odp) {
        odp->buckets = &odp->single;
    }
    return odp;
}

static struct chunk **bucket_of(struct chunk **buckets, uint32_t mask, uint64_t number)
{
    return &buckets[(number * 0x9e3779b97f4a7c15ull) >> 32 & mask];
}

static void free_buckets(struct sg_adapter *a, struct sg_odp *odp)
{
    if (odp->buckets != &odp->single) {
        sg_account_free(&a->account, odp->buckets, (odp->mask + 1ull) * sizeof(*odp->buckets));
    }
}

/* Room for one more; false: no memory. */
static bool make_bucket(struct sg_adapter *a, struct sg_odp *odp)
{
    uint32_t mask = 2 * odp->mask + 1, i;
    struct chunk **buckets, *k;

    if (odp->count <= odp->mask) {
        return true;
    }
    buckets = sg_account_new0(&a->account, (mask + 1ull) * sizeof(*buckets));
    if (!buckets) {
        return odp->count / LOAD_MAX <= odp->mask;
    }
    for (i = 0; i <= odp->mask; i++) {
        while ((k = odp->buckets[i]) != NULL) {
            struct chunk **to = bucket_of(buckets, mask, k->number);

            odp->buckets[i] = k->next;
            k->next = *to;
            *to = k;
        }
    }
    free_buckets(a, odp);
    odp->buckets = buckets;
    odp->mask = mask;
    return true;
}

static void chunk_free(struct sg_adapter *a, struct chunk *k)
{
    a->tpt->pages -= CHUNK;
    sg_account_free(&a->account, k, sizeof(*k));
}

void sg_odp_free(struct sg_adapter *a, struct sg_odp *odp)
{
    uint32_t i;

    if (!odp) {
        return;
    }
    for (i = 0; odp->count && i <= odp->mask; i++) {
        struct chunk *k;

        while ((k = odp->buckets[i]) != NULL) {
            odp->buckets[i] = k->next;
            odp->count--;
            chunk_free(a, k);
        }
    }
    free_buckets(a, odp);
    sg_account_free(&a->account, odp, sizeof(*odp));
}

static struct chunk *find_chunk(const struct sg_odp *odp, uint64_t page)
{
    const uint64_t number = page >> CHUNK_SHIFT;
    struct chunk *k = *bucket_of(odp->buckets, odp->mask, number);

    while (k && k->number != number) {
        k = k->next;
    }
    return k;
}

static uint64_t get(const struct sg_odp *odp, uint64_t page)
{
    const struct chunk *k = find_chunk(odp, page);

    return k ? k->entry[page % CHUNK] : 0;
}

static struct chunk *make_chunk(struct sg_adapter *a, struct sg_odp *odp, uint64_t page)
{
    struct chunk *k = find_chunk(odp, page), **bucket;

    if (k || a->tpt->pages + CHUNK > SG_TPT_PAGES_MAX || !make_bucket(a, odp)) {
        return k;
    }
    k = sg_account_new0(&a->account, sizeof(*k));
    if (k) {
        k->number = page >> CHUNK_SHIFT;
        bucket = bucket_of(odp->buckets, odp->mask, k->number);
        k->next = *bucket;
        *bucket = k;
        odp->count++;
        a->tpt->pages += CHUNK;
    }
    return k;
}

/* The chunk may be gone on return. */
static void put(struct sg_adapter *a, struct sg_odp *odp, struct chunk *k, uint64_t page,
                uint64_t value)
{
    uint64_t *e = &k->entry[page % CHUNK];

    k->used += (value != 0) - (*e != 0);
    *e = value;
    if (!k->used) {
        struct chunk **at = bucket_of(odp->buckets, odp->mask, k->number);

        while (*at != k) {
            at = &(*at)->next;
        }
        *at = k->next;
        odp->count--;
        chunk_free(a, k);
    }
}

/* Makes room for all of the pages, or changes nothing. */
static bool make_chunks(struct sg_adapter *a, struct sg_odp *odp, uint64_t first, uint64_t last)
{
    uint64_t n = first >> CHUNK_SHIFT;

    for (; n <= last >> CHUNK_SHIFT; n++) {
        if (!make_chunk(a, odp, n << CHUNK_SHIFT)) {
            while (n-- > first >> CHUNK_SHIFT) {
                struct chunk *k = find_chunk(odp, n << CHUNK_SHIFT);

                put(a, odp, k, 0, k->entry[0]); /* frees it if it is empty */
            }
            return false;
        }
    }
    return true;
}

static bool usable(uint64_t entry, bool write)
{
    return entry & ENTRY_PRESENT && (!write || entry & ENTRY_WRITE);
}

bool sg_odp_page(const struct sg_odp *odp, uint64_t page, uint64_t *bus)
{
    uint64_t e = get(odp, page);

    *bus = e & ENTRY_ADDR;
    return e & ENTRY_PRESENT;
}

/* The pages of an access. */
struct span {
    const struct sg_mr *root;
    uint64_t first, last;
    bool write;
};

static struct span span_of(const struct sg_mr *mr, uint64_t to, uint64_t len, bool write)
{
    const struct sg_mr *root = sg_mr_root(mr);
    uint64_t off = to - mr->base + mr->skip;

    return (struct span){
        .root = root,
        .first = off >> root->pages.shift,
        .last = (off + len - 1) >> root->pages.shift,
        .write = write,
    };
}

/* The first missing page at or behind 'first'; last + 1: none. */
static uint64_t missing(const struct span *s)
{
    uint64_t page = s->first;

    while (page <= s->last && usable(get(s->root->odp, page), s->write)) {
        page++;
    }
    return page;
}

bool sg_odp_there(const struct sg_mr *mr, uint64_t to, uint64_t len, bool write)
{
    struct span s = span_of(mr, to, len, write);

    return !s.root->odp || missing(&s) > s.last;
}

/* Requests 'count' missing pages, except those already requested; false: no memory. */
static bool request_pages(struct sg_mem_ctx *ctx, const struct span *s, uint64_t first,
                          uint64_t count)
{
    uint64_t requested = s->write ? ENTRY_REQUESTED_WRITE : ENTRY_REQUESTED, from = 0, n = 0, page;
    struct sg_adapter *a = ctx->adapter;

    if (!make_chunks(a, s->root->odp, first, first + count - 1)) {
        return false;
    }
    for (page = first; page < first + count; page++) {
        struct chunk *k = find_chunk(s->root->odp, page);
        uint64_t e = k->entry[page % CHUNK];

        if (e & requested) {
            continue;
        }
        put(a, s->root->odp, k, page,
            e | (s->write ? ENTRY_REQUESTED_WRITE : ENTRY_REQUESTED_READ));
        from = n ? from : page;
        n = page - from + 1;
    }
    if (n) {
        a->stats.page_faults++;
        ((struct sg_mr *)s->root)->counters.page_faults++;
        a->mem_ops->page_fault(a, s->root->stag, s->write, from, (uint32_t)n);
    }
    return true;
}

/* Is it about one of these pages? */
static bool covers(const struct sg_odp_wait *w, uint64_t serial, uint64_t first, uint64_t last)
{
    return w->serial == serial && w->first <= last && first <= w->first + (w->count - 1);
}

/*
 * A waiting access starts again with the first of its elements.  So a page that is present only
 * clears what was recorded for itself, not the failure of an element behind it.  No failure
 * outlives its access: a failed access ends the queue pair, and pages that were mapped after all
 * are found here.
 */
enum sg_odp_status sg_odp_check(struct sg_mem_ctx *ctx, enum sg_odp_side side,
                                const struct sg_mr *mr, uint64_t to, uint64_t len, bool write)
{
    struct span s = span_of(mr, to, len, write);
    struct sg_odp_wait *w = &ctx->waits[side];
    struct sg_odp_wait old = *w;
    uint64_t page = missing(&s), count = 1;

    if (page > s.last) {
        if (covers(w, s.root->serial, s.first, s.last)) {
            w->serial = 0;
        }
        return SG_ODP_READY;
    }
    w->serial = 0;
    if (old.serial == s.root->serial && old.failed && page - old.first < old.count) {
        return SG_ODP_FAILED;
    }
    while (page + count <= s.last && !usable(get(s.root->odp, page + count), write)) {
        count++;
    }
    if (!request_pages(ctx, &s, page, count)) {
        return SG_ODP_FAILED;
    }
    *w = (struct sg_odp_wait){ .serial = s.root->serial, .first = page, .count = count };
    sg_list_append(&ctx->adapter->paging, &ctx->paging_link);
    return SG_ODP_WAIT;
}

enum sg_odp_status sg_odp_element(struct sg_mem_ctx *ctx, const struct sg_sge *sge, bool write)
{
    uint32_t len = sg_get_le32(&sge->length);
    uint64_t addr = sg_get_le64(&sge->addr);
    struct sg_mr *mr;

    if (!len || sg_tpt_check_local(ctx, sg_get_le32(&sge->lkey), addr, len,
                                   write ? SG_ACCESS_LOCAL_WRITE : 0, &mr) != SG_MEM_OK) {
        return SG_ODP_READY;
    }
    return sg_odp_ready(ctx, SG_ODP_SEND, mr, addr, SG_MIN(len, (uint32_t)SG_HASH_MAX), write);
}

void sg_odp_forget(struct sg_mem_ctx *ctx)
{
    memset(ctx->waits, 0, sizeof(ctx->waits));
    sg_list_remove(&ctx->paging_link);
}

/* Does it wait for one of these pages?  If so, records a failure. */
static bool concerns(struct sg_mem_ctx *ctx, uint64_t serial, uint64_t first, uint64_t last,
                     bool failed)
{
    bool hit = false;
    int i;

    for (i = 0; i < SG_ODP_SIDES; i++) {
        struct sg_odp_wait *w = &ctx->waits[i];

        if (covers(w, serial, first, last)) {
            w->failed |= failed;
            hit = true;
        }
    }
    return hit;
}

static void resume(struct sg_adapter *a, uint64_t serial, uint64_t first, uint64_t last,
                   bool failed)
{
    struct sg_list hit, rest;
    struct sg_link *k;

    sg_list_init(&hit);
    sg_list_init(&rest);
    while ((k = sg_list_pop(&a->paging))) {
        struct sg_mem_ctx *ctx = sg_container_of(k, struct sg_mem_ctx, paging_link);

        sg_list_append(concerns(ctx, serial, first, last, failed) ? &hit : &rest, k);
    }
    while ((k = sg_list_pop(&rest))) {
        sg_list_append(&a->paging, k);
    }
    while ((k = sg_list_pop(&hit))) {
        a->mem_ops->resume(sg_container_of(k, struct sg_mem_ctx, paging_link));
    }
}

void sg_odp_region_gone(struct sg_adapter *a, uint64_t serial)
{
    resume(a, serial, 0, UINT64_MAX, false);
}

/* The chunk may be gone on return. */
static void in_chunk(struct sg_adapter *a, struct sg_odp *odp, struct chunk *k, uint64_t first,
                     uint64_t last, uint64_t (*fn)(uint64_t entry))
{
    uint64_t start = k->number << CHUNK_SHIFT, page = SG_MAX(start, first);
    uint64_t end = SG_MIN(start + CHUNK - 1, last);
    uint32_t used = k->used;

    for (; used && page <= end; page++) {
        uint64_t e = k->entry[page % CHUNK];

        if (e) {
            used = k->used - (fn(e) == 0);
            put(a, odp, k, page, fn(e)); /* the chunk goes with its last entry */
        }
    }
}

/* Calls fn for each entry that is not 0, which may clear it. */
static void for_each(struct sg_adapter *a, struct sg_odp *odp, uint64_t first, uint64_t last,
                     uint64_t (*fn)(uint64_t entry))
{
    struct chunk *k, *next;
    uint32_t i;

    a->command_pages += odp->mask + odp->count;
    for (i = 0; i <= odp->mask; i++) {
        for (k = odp->buckets[i]; k; k = next) {
            next = k->next;
            in_chunk(a, odp, k, first, last, fn);
        }
    }
}

static uint64_t without_page(uint64_t e)
{
    return e & ENTRY_REQUESTED;
}

static uint64_t without_request(uint64_t e)
{
    return e & ~ENTRY_REQUESTED;
}

/* Copies the list of MAP_PAGES; NULL: see *status. */
static uint64_t *read_list(struct sg_adapter *a, uint64_t addr, uint32_t count, unsigned shift,
                           enum sg_status *status)
{
    uint64_t *list = sg_account_new(&a->account, count * 8ull);
    uint32_t i;

    *status = SG_ENOMEM;
    if (!list) {
        return NULL;
    }
    *status =
        a->host.ops->dma_read(a->host.opaque, addr, list, (size_t)count * 8) ? SG_OK : SG_EFAULT;
    for (i = 0; i < count && *status == SG_OK; i++) {
        list[i] = sg_get_le64(&list[i]);
        if (!sg_is_aligned(list[i] & ~ENTRY_WRITE, 1ull << shift)) {
            *status = SG_EINVAL;
        }
    }
    if (*status != SG_OK) {
        sg_account_free(&a->account, list, count * 8ull);
        return NULL;
    }
    return list;
}

enum sg_status sg_odp_map(struct sg_adapter *a, struct sg_mr *mr, uint64_t first, uint64_t count,
                          uint64_t addr)
{
    enum sg_status status;
    uint64_t *list, i;

    if (count > MAP_MAX || !sg_is_aligned(addr, 8) || addr + count * 8 < addr) {
        return SG_EINVAL;
    }
    a->command_pages += (uint32_t)count;
    list = read_list(a, addr, (uint32_t)count, mr->pages.shift, &status);
    if (!list) {
        return status;
    }
    if (!make_chunks(a, mr->odp, first, first + count - 1)) {
        sg_account_free(&a->account, list, count * 8);
        return SG_ENOMEM;
    }
    for (i = 0; i < count; i++) {
        put(a, mr->odp, find_chunk(mr->odp, first + i), first + i, list[i] | ENTRY_PRESENT);
    }
    sg_account_free(&a->account, list, count * 8);
    resume(a, mr->serial, first, first + count - 1, false);
    return SG_OK;
}

void sg_odp_unmap(struct sg_adapter *a, struct sg_mr *mr, uint64_t first, uint64_t count)
{
    if (mr->pm) {
        sg_pm_complete_all_writes(a);
    }
    for_each(a, mr->odp, first, first + count - 1, without_page);
}

void sg_odp_fail(struct sg_adapter *a, struct sg_mr *mr, uint64_t first, uint64_t count)
{
    for_each(a, mr->odp, first, first + count - 1, without_request);
    resume(a, mr->serial, first, first + count - 1, true);
}
