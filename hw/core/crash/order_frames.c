/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of frames: docs in order_impl.h. */
#include "crash/order_impl.h"

/* ---- All frames that are sent ---- */

enum {
    BITS_FIRST = 12, /* of the number of a bucket */
    BITS = 20,
    FEW = 1 << 15, /* frames for which the first table is large enough */
    WAYS = 16,
    COUNT_BITS = 6,
    COUNT_MAX = (1 << COUNT_BITS) - 1, /* or more: there may always be another */
};

struct crash_frames {
    unsigned bits;
    /* WAYS of each bucket: bits of the hash, then a count that is not 0 (0: free); sent so far */
    uint32_t *slot;
    uint8_t *sent;
    uint8_t *full;  /* a bit for each bucket: something found no room */
    GArray *hashes; /* of all, as long as they are few; then NULL */
};

static uint64_t hash_of(unsigned machine, uint64_t key)
{
    return crash_mix(key + (machine + 1) * 0x9e3779b97f4a7c15ull);
}

static size_t bucket_of(const struct crash_frames *f, uint64_t hash)
{
    return hash >> (64 - f->bits);
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)hash << COUNT_BITS;
}

enum { NONE = -1 };

static int64_t find_slot(const struct crash_frames *f, uint64_t hash)
{
    size_t first = bucket_of(f, hash) * WAYS;

    for (size_t i = first; i < first + WAYS; i++) {
        if ((f->slot[i] & ~(uint32_t)COUNT_MAX) == tag_of(hash) && f->slot[i]) {
            return (int64_t)i;
        }
    }
    return NONE;
}

static size_t slots(const struct crash_frames *f)
{
    return (size_t)WAYS << f->bits;
}

static void make_table(struct crash_frames *f, unsigned bits)
{
    f->bits = bits;
    f->slot = g_new0(uint32_t, slots(f));
    f->sent = g_new0(uint8_t, slots(f));
    f->full = g_new0(uint8_t, (1 << bits) / 8);
}

static void free_table(struct crash_frames *f)
{
    g_free(f->slot);
    g_free(f->sent);
    g_free(f->full);
}

struct crash_frames *crash_frames_new(void)
{
    struct crash_frames *f = g_new0(struct crash_frames, 1);

    make_table(f, BITS_FIRST);
    f->hashes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    return f;
}

void crash_frames_free(struct crash_frames *f)
{
    if (f) {
        free_table(f);
        if (f->hashes) {
            g_array_free(f->hashes, TRUE);
        }
        g_free(f);
    }
}

void crash_frames_rewind(struct crash_frames *f)
{
    memset(f->sent, 0, slots(f));
}

/* Returns whether it may have been there. */
static bool add_hash(struct crash_frames *f, uint64_t hash)
{
    int64_t at = find_slot(f, hash);
    size_t first = bucket_of(f, hash) * WAYS;

    if (at >= 0) {
        f->slot[at] += (f->slot[at] & COUNT_MAX) < COUNT_MAX;
        return true;
    }
    for (size_t i = first; i < first + WAYS; i++) {
        if (!f->slot[i]) {
            f->slot[i] = tag_of(hash) | 1;
            return false;
        }
    }
    f->full[bucket_of(f, hash) / 8] |= (uint8_t)(1 << bucket_of(f, hash) % 8);
    return true;
}

bool crash_frames_add(struct crash_frames *f, unsigned machine, uint64_t key)
{
    uint64_t hash = hash_of(machine, key);

    if (f->hashes && f->hashes->len == FEW) {
        free_table(f);
        make_table(f, BITS);
        for (unsigned i = 0; i < FEW; i++) {
            add_hash(f, g_array_index(f->hashes, uint64_t, i));
        }
        g_array_free(f->hashes, TRUE);
        f->hashes = NULL;
    }
    if (f->hashes) {
        g_array_append_val(f->hashes, hash);
    }
    return add_hash(f, hash);
}

void crash_frames_sent(struct crash_frames *f, unsigned machine, uint64_t key)
{
    int64_t at = find_slot(f, hash_of(machine, key));

    if (at >= 0) {
        f->sent[at] += f->sent[at] < COUNT_MAX;
    }
}

static bool is_full(const struct crash_frames *f, uint64_t hash)
{
    return f->full[bucket_of(f, hash) / 8] & 1 << bucket_of(f, hash) % 8;
}

enum crash_frames_when crash_frames_find(const struct crash_frames *f, unsigned machine,
                                         uint64_t key)
{
    uint64_t hash = hash_of(machine, key);
    int64_t at = find_slot(f, hash);
    unsigned count;

    if (at < 0) {
        return is_full(f, hash) ? FRAMES_LATER : FRAMES_NEVER;
    }
    count = f->slot[at] & COUNT_MAX;
    return count == COUNT_MAX || f->sent[at] < count ? FRAMES_LATER : FRAMES_BEFORE;
}

/* ---- Frames that one machine sent ---- */

void crash_sent_init(struct crash_sent_table *t, unsigned machines, uint64_t frames)
{
    uint32_t heads = 1;
    size_t pasts;

    *t = (struct crash_sent_table){ .machines = machines };
    t->capacity = (uint32_t)SG_MIN(2 * frames + 2, SG_CRASH_FRAMES / machines);
    while (heads < t->capacity) {
        heads *= 2;
    }
    t->head_mask = heads - 1;
    t->ring = g_new0(struct crash_sent, t->capacity);
    pasts = (size_t)machines * t->capacity;
    t->past = g_new0(uint64_t, 2 * pasts);
    t->taken = g_new0(uint32_t, pasts);
    t->head = g_new0(uint32_t, heads);
}

void crash_sent_fini(struct crash_sent_table *t)
{
    g_free(t->ring);
    g_free(t->past);
    g_free(t->taken);
    g_free(t->head);
}

void crash_sent_clear(struct crash_sent_table *t)
{
    memset(t->head, 0, ((size_t)t->head_mask + 1) * sizeof(*t->head));
    memset(t->ring, 0, t->capacity * sizeof(*t->ring));
    t->total = 0;
}

static uint32_t *chain_of(struct crash_sent_table *t, uint64_t key)
{
    return &t->head[key & t->head_mask];
}

/* Takes it out of its chain; it has been there. */
static void unlink_sent(struct crash_sent_table *t, struct crash_sent *s)
{
    uint32_t number = (uint32_t)(s - t->ring) + 1;
    uint32_t *at = chain_of(t, s->key);

    while (*at != number) {
        at = &t->ring[*at - 1].next;
    }
    *at = s->next;
    s->sends = 0;
}

struct crash_sent *crash_sent_find(struct crash_sent_table *t, uint64_t key)
{
    for (uint32_t at = *chain_of(t, key); at; at = t->ring[at - 1].next) {
        if (t->ring[at - 1].key == key) {
            return &t->ring[at - 1];
        }
    }
    return NULL;
}

void crash_sent_put(struct crash_sent_table *t, uint64_t key, const uint64_t *past,
                    const uint64_t *certain)
{
    uint32_t at = (uint32_t)(t->total++ % t->capacity);
    struct crash_sent *s = &t->ring[at];
    uint32_t *chain = chain_of(t, key), *taken = crash_sent_taken(t, s);
    struct crash_sent *last;
    uint32_t sends = 1;

    if (s->sends) {
        unlink_sent(t, s);
    }
    memset(taken, 0, t->machines * sizeof(*taken));
    last = crash_sent_find(t, key);
    if (last) {
        sends += last->sends - (last->sends == UINT32_MAX);
        memcpy(taken, crash_sent_taken(t, last), t->machines * sizeof(*taken));
        unlink_sent(t, last);
    }
    memcpy(&t->past[(size_t)at * 2 * t->machines], past, t->machines * sizeof(*past));
    memcpy(&t->past[((size_t)at * 2 + 1) * t->machines], certain, t->machines * sizeof(*past));
    *s = (struct crash_sent){ .key = key, .next = *chain, .sends = sends };
    *chain = at + 1;
}
