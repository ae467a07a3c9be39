/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of frames: docs in order_impl.h. */
#include "base/large.h"
#include "crash/order_impl.h"

/* ---- All frames that are sent ---- */

enum {
    WAYS = 12, /* so that a bucket is what a processor's cache loads at once */
    COUNT_BITS = 6,
    COUNT_MAX = (1 << COUNT_BITS) - 1, /* or more: there may always be another */
};

/* Frames whose contents have the same first bits, of all machines. */
struct bucket {
    uint32_t slot[WAYS]; /* bits of the frame's hash, then a count that is not 0; 0: free */
    uint8_t sent[WAYS];  /* so far */
    uint8_t full;        /* something found no room */
    uint8_t unused[3];
};

/* Tables by number of frames: the last one is large enough for all. */
static const struct {
    unsigned bits; /* of the number of a bucket */
    guint frames;
} sizes[] = { { 12, 1 << 13 }, { 18, 1 << 19 }, { 21, UINT32_MAX } };

/* A frame that is kept, because it will have to go to a larger table. */
struct kept {
    uint64_t key;
    unsigned machine;
};

struct crash_frames {
    unsigned size;         /* index in sizes */
    void *memory;          /* of the buckets */
    struct bucket *bucket; /* aligned */
    GArray *kept;          /* all, as long as there is a larger table; then NULL */
};

static struct bucket *bucket_of(const struct crash_frames *f, uint64_t key)
{
    return &f->bucket[key >> (64 - sizes[f->size].bits)];
}

void crash_frames_prefetch(const struct crash_frames *f, uint64_t key)
{
    __builtin_prefetch(bucket_of(f, key), 1);
}

static uint32_t tag_of(unsigned machine, uint64_t key)
{
    return (uint32_t)crash_mix(key + (machine + 1) * 0x9e3779b97f4a7c15ull) << COUNT_BITS;
}

enum { NONE = WAYS };

/* The slot of a frame in its bucket. */
static unsigned find_slot(const struct bucket *b, uint32_t tag)
{
    unsigned i = 0;

    while (i < WAYS && !(b->slot[i] && (b->slot[i] & ~(uint32_t)COUNT_MAX) == tag)) {
        i++;
    }
    return i;
}

static size_t buckets(const struct crash_frames *f)
{
    return (size_t)1 << sizes[f->size].bits;
}

static void make_table(struct crash_frames *f, unsigned size)
{
    f->size = size;
    f->memory = sg_large_new0(buckets(f) + 1, sizeof(*f->bucket));
    f->bucket = (void *)(((uintptr_t)f->memory + sizeof(*f->bucket) - 1) &
                         ~(uintptr_t)(sizeof(*f->bucket) - 1));
}

struct crash_frames *crash_frames_new(void)
{
    struct crash_frames *f = g_new0(struct crash_frames, 1);

    _Static_assert(sizeof(struct bucket) == 64, "a bucket is a cache line");
    make_table(f, 0);
    f->kept = g_array_new(FALSE, FALSE, sizeof(struct kept));
    return f;
}

void crash_frames_free(struct crash_frames *f)
{
    if (f) {
        g_free(f->memory);
        if (f->kept) {
            g_array_free(f->kept, TRUE);
        }
        g_free(f);
    }
}

void crash_frames_rewind(struct crash_frames *f)
{
    for (size_t i = 0; i < buckets(f); i++) {
        memset(f->bucket[i].sent, 0, sizeof(f->bucket[i].sent));
    }
}

/* Returns whether it may have been there. */
static bool add_frame(struct crash_frames *f, unsigned machine, uint64_t key)
{
    struct bucket *b = bucket_of(f, key);
    uint32_t tag = tag_of(machine, key);
    unsigned at = find_slot(b, tag);

    if (at != NONE) {
        b->slot[at] += (b->slot[at] & COUNT_MAX) < COUNT_MAX;
        return true;
    }
    for (unsigned i = 0; i < WAYS; i++) {
        if (!b->slot[i]) {
            b->slot[i] = tag | 1;
            return false;
        }
    }
    b->full = 1;
    return true;
}

/* All frames so far go to the next table. */
static void grow(struct crash_frames *f)
{
    g_free(f->memory);
    make_table(f, f->size + 1);
    for (guint i = 0; i < f->kept->len; i++) {
        const struct kept *k = &g_array_index(f->kept, struct kept, i);

        add_frame(f, k->machine, k->key);
    }
    if (f->size == SG_ARRAY_SIZE(sizes) - 1) {
        g_array_free(f->kept, TRUE);
        f->kept = NULL;
    }
}

bool crash_frames_add(struct crash_frames *f, unsigned machine, uint64_t key)
{
    struct kept new = { key, machine };

    if (f->kept && f->kept->len == sizes[f->size].frames) {
        grow(f);
    }
    if (f->kept) {
        g_array_append_val(f->kept, new);
    }
    return add_frame(f, machine, key);
}

void crash_frames_sent(struct crash_frames *f, unsigned machine, uint64_t key)
{
    struct bucket *b = bucket_of(f, key);
    unsigned at = find_slot(b, tag_of(machine, key));

    if (at != NONE) {
        b->sent[at] += b->sent[at] < COUNT_MAX;
    }
}

enum crash_frames_when crash_frames_find(const struct crash_frames *f, unsigned machine,
                                         uint64_t key)
{
    const struct bucket *b = bucket_of(f, key);
    unsigned at = find_slot(b, tag_of(machine, key)), count;

    if (at == NONE) {
        return b->full ? FRAMES_LATER : FRAMES_NEVER;
    }
    count = b->slot[at] & COUNT_MAX;
    return count == COUNT_MAX || b->sent[at] < count ? FRAMES_LATER : FRAMES_BEFORE;
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
    t->ring = sg_large_new0(t->capacity, sizeof(*t->ring));
    pasts = (size_t)machines * t->capacity;
    t->past = sg_large_new0(2 * pasts, sizeof(*t->past));
    t->taken = sg_large_new0(pasts, sizeof(*t->taken));
    t->head = sg_large_new0(heads, sizeof(*t->head));
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
    t->next = 0;
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

void crash_sent_prefetch(const struct crash_sent_table *t, uint64_t key)
{
    __builtin_prefetch(&t->head[key & t->head_mask], 1);
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
    uint32_t at = t->next;
    struct crash_sent *s = &t->ring[at];
    uint32_t *chain = chain_of(t, key), *taken = crash_sent_taken(t, s);
    struct crash_sent *last;
    uint32_t sends = 1;

    t->next = at + 1 < t->capacity ? at + 1 : 0;
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
