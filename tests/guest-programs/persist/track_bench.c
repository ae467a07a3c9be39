// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cost of a CPU's stores, flushes and fences, in a guest with cpu-tracking on or off:
 *
 *   track_bench DEVICE [WORD]
 *
 * measures on the device's memory and, beside it, on ordinary memory.  Each number is the best of
 * many short runs, so that a busy host does not matter; after each run the lines that it left dirty
 * are flushed.
 * With a word, only work whose name contains it is done.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "staghorn_mark.h"

enum { RUNS = 200, LINE = 64, PAGE = 4096, SIZE = 2 << 20, RECORD = 256 };

static volatile uint64_t *atoms;
static char *octets;

static void clwb(volatile void *p)
{
    __asm__ volatile("clwb (%0)" ::"r"(p) : "memory");
}

static void sfence(void)
{
    __asm__ volatile("sfence" ::: "memory");
}

static void movnti(volatile uint64_t *p, uint64_t value)
{
    __asm__ volatile("movnti %1, %0" : "=m"(*p) : "r"(value) : "memory");
}

static void flush(volatile void *p, size_t len)
{
    for (size_t at = 0; at < len; at += LINE) {
        clwb((char *)p + at);
    }
    sfence();
}

static void load(unsigned i)
{
    (void)atoms[i & 0xffff];
}

static void store(unsigned i)
{
    atoms[i & 0xffff] = i;
}

static void store_same_line(unsigned i)
{
    atoms[i & 7] = i;
}

static void store_locked(unsigned i)
{
    __atomic_fetch_add(&atoms[i & 0xffff], 1, __ATOMIC_SEQ_CST);
}

static void store_past_cache(unsigned i)
{
    movnti(&atoms[i & 0xffff], i);
}

static void line_past_cache(unsigned i)
{
    for (unsigned k = 0; k < 8; k++) {
        movnti(&atoms[(i & 0xfff) * 8 + k], i);
    }
    sfence();
}

static void store_flush_fence(unsigned i)
{
    atoms[(i & 0xfff) * 8] = i;
    clwb(&atoms[(i & 0xfff) * 8]);
    sfence();
}

static void fill(unsigned i)
{
    memset(octets + (i & 63) * PAGE, i, PAGE);
}

static void fill_flush(unsigned i)
{
    fill(i);
    flush(octets + (i & 63) * PAGE, PAGE);
}

/* A log: a record with a checksum, made in ordinary memory, then the log's end. */
static void append(unsigned i)
{
    static uint8_t record[RECORD];
    uint32_t sum = ~0u;
    char *to = octets + PAGE + (i & 0xfff) * RECORD;

    for (unsigned k = 0; k < RECORD - sizeof(sum); k++) {
        sum ^= record[k];
        for (unsigned bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ (0x82f63b78 & -(sum & 1));
        }
    }
    memcpy(record + RECORD - sizeof(sum), &sum, sizeof(sum));
    memcpy(to, record, RECORD);
    flush(to, RECORD);
    atoms[0] = i;
    flush(atoms, LINE);
}

/* ---- hash tables: a slot has a line for its key, and one for its value ---- */

enum { SLOTS = 4096, KEY = 24, WORDS = LINE / 8 };

struct track_slot {
    uint64_t used;
    uint8_t key[KEY];
    uint8_t unused[LINE - KEY - 8];
    uint64_t value[WORDS];
};

_Static_assert(sizeof(struct track_slot) * SLOTS <= SIZE, "the table fits");

/* The value is durable before the slot is in use. */
static void insert(struct track_slot *slot, const uint64_t *value)
{
    memcpy(slot->value, value, sizeof(slot->value));
    clwb(slot->value);
    sfence();
    __atomic_store_n(&slot->used, 1, __ATOMIC_RELEASE);
    clwb(slot);
    sfence();
}

/* Nothing but stores, flushes and fences; the place is known. */
static void hash_stores(unsigned i)
{
    uint64_t value[WORDS];

    for (unsigned k = 0; k < WORDS; k++) {
        value[k] = i + k;
    }
    insert((struct track_slot *)octets + i % SLOTS, value);
}

static uint64_t hash_of(const uint8_t *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (unsigned k = 0; k < KEY; k++) {
        hash = (hash ^ key[k]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static struct track_slot *find(const uint8_t *key)
{
    struct track_slot *table = (struct track_slot *)octets;
    uint64_t at = hash_of(key) % SLOTS;

    while (table[at].used && memcmp(table[at].key, key, KEY)) {
        at = (at + 1) % SLOTS;
    }
    return &table[at];
}

/* What a program does: key as text, hash, search; then value, checksum, and key if it is new. */
static struct track_slot *insert_customer(unsigned i)
{
    uint64_t value[WORDS], sum = 0;
    char text[KEY + 1];
    struct track_slot *slot;

    snprintf(text, sizeof(text), "customer-%015u", i % (SLOTS / 2));
    for (unsigned k = 0; k < WORDS - 1; k++) {
        value[k] = (i + k) * UINT64_C(0x9e3779b97f4a7c15);
        sum = (sum ^ value[k]) * UINT64_C(0x100000001b3);
    }
    value[WORDS - 1] = sum;
    slot = find((const uint8_t *)text);
    if (!slot->used) {
        memcpy(slot->key, text, KEY);
    }
    insert(slot, value);
    return slot;
}

static void hash_insert(unsigned i)
{
    insert_customer(i);
}

static void hash_insert_mark(unsigned i)
{
    sg_mark_durable(insert_customer(i), sizeof(struct track_slot));
}

static const struct work {
    const char *name;
    void (*once)(unsigned i);
    unsigned times;
    bool flushes; /* leaves nothing dirty */
} works[] = {
    { "load", load, 10000 },
    { "store", store, 3000 },
    { "store to the same line", store_same_line, 3000 },
    { "lock xadd", store_locked, 3000 },
    { "movnti", store_past_cache, 3000 },
    { "8 movnti, sfence", line_past_cache, 500 },
    { "store, clwb, sfence", store_flush_fence, 2000 },
    { "memset of 4 KiB", fill, 10 },
    { "memset of 4 KiB, 64 clwb, sfence", fill_flush, 10 },
    { "log record of 256 octets", append, 30 },
    { "hash table, stores only", hash_stores, 100, true },
    { "hash table of a program", hash_insert, 100, true },
    { "marked hash table", hash_insert_mark, 100, true },
};
enum { WORKS = sizeof(works) / sizeof(works[0]) };

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double measure(const struct work *w, void *memory)
{
    double best = 1e18;

    atoms = memory;
    octets = memory;
    for (unsigned run = 0; run < RUNS; run++) {
        double start = now_ns(), took;

        for (unsigned i = 0; i < w->times; i++) {
            w->once(i);
        }
        took = (now_ns() - start) / w->times;
        best = took < best ? took : best;
        if (!w->flushes) {
            flush(memory, SIZE);
        }
    }
    return best;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 || argc == 3 ? open(argv[1], O_RDWR) : -1;
    void *device, *ordinary;

    if (fd < 0) {
        fprintf(stderr, "usage: track_bench DEVICE [WORD]\n");
        return 2;
    }
    device = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, SIZE);
    ordinary = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (device == MAP_FAILED || ordinary == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    memset(device, 0, SIZE);
    memset(ordinary, 0, SIZE);
    printf("%-36s %12s %12s\n", "ns each", "persistent", "ordinary");
    for (unsigned i = 0; i < WORKS; i++) {
        if (argc < 3 || strstr(works[i].name, argv[2])) {
            printf("%-36s %12.1f %12.1f\n", works[i].name, measure(&works[i], device),
                   measure(&works[i], ordinary));
        }
    }
    return 0;
}
