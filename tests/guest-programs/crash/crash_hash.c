// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_hash DEVICE METHOD [ENTRIES [SESSION]]: a hash table in this machine's persistent memory.
 * crash_hash DEVICE check: is each entry that has a key intact?
 *
 * A slot has two lines: the key, and the value.  An entry exists if its key is there, so the value
 * has to be durable before the key is stored.  Each insertion ends with a mark that both are
 * durable.  Methods:
 *
 *   right      value, CLWB, SFENCE; key, CLWB, SFENCE
 *   no-flush   the value is not flushed
 *   no-fence   the last SFENCE is missing
 *   order      the key is durable before the value is stored
 *   nt         a second thread copies the value by non-temporal stores and executes SFENCE; this
 *              thread stores the key
 *   nt-no-fence   ... without SFENCE: the one of this thread does not help
 */
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "staghorn_mark.h"

enum { SIZE = 2 << 20, LINE = 64, SLOTS = 4096, ENTRIES = 100, WORDS = LINE / 8 };

struct hash_slot {
    uint64_t key; /* 0: empty */
    uint64_t rest[WORDS - 1];
    uint64_t value[WORDS];
};

_Static_assert(sizeof(struct hash_slot) * SLOTS <= SIZE, "the table fits");

enum method { RIGHT, NO_FLUSH, NO_FENCE, ORDER, NT, NT_NO_FENCE, CHECK, METHODS };

static const char *const names[METHODS] = { "right", "no-flush",    "no-fence", "order",
                                            "nt",    "nt-no-fence", "check" };

static struct hash_slot *table;

static void make_value(uint64_t value[WORDS], uint64_t key)
{
    for (unsigned i = 0; i < WORDS; i++) {
        value[i] = (key + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* The slot of a key: the one that has it, or else the first empty one. */
static struct hash_slot *find(uint64_t key)
{
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 52;

    while (table[at % SLOTS].key && table[at % SLOTS].key != key) {
        at++;
    }
    return &table[at % SLOTS];
}

/* ---- the second thread ---- */

static struct {
    struct hash_slot *slot; /* work, or NULL: done */
    uint64_t key;
    bool fence, stop;
} copier;

static void copy_non_temporal(uint64_t *to, uint64_t key)
{
    uint64_t value[WORDS];

    make_value(value, key);
    for (unsigned i = 0; i < WORDS; i++) {
        _mm_stream_si64((long long *)&to[i], (long long)value[i]);
    }
}

static void *copy(void *unused)
{
    struct hash_slot *slot;

    while (!__atomic_load_n(&copier.stop, __ATOMIC_ACQUIRE)) {
        slot = __atomic_load_n(&copier.slot, __ATOMIC_ACQUIRE);
        if (slot) {
            copy_non_temporal(slot->value, copier.key);
            if (copier.fence) {
                _mm_sfence();
            }
            __atomic_store_n(&copier.slot, NULL, __ATOMIC_RELEASE); /* a plain store */
        }
    }
    return unused;
}

static void let_copy(struct hash_slot *slot, uint64_t key, bool fence)
{
    copier.key = key;
    copier.fence = fence;
    __atomic_store_n(&copier.slot, slot, __ATOMIC_RELEASE);
    while (__atomic_load_n(&copier.slot, __ATOMIC_ACQUIRE)) {
        _mm_pause();
    }
}

/* ---- the table ---- */

static void store_value(struct hash_slot *slot, uint64_t key, enum method method)
{
    uint64_t value[WORDS];

    make_value(value, key);
    memcpy(slot->value, value, sizeof(value));
    if (method != NO_FLUSH) {
        _mm_clwb(slot->value);
    }
    _mm_sfence();
}

static void store_key(struct hash_slot *slot, uint64_t key, enum method method)
{
    __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
    _mm_clwb(&slot->key);
    if (method != NO_FENCE) {
        _mm_sfence();
    }
}

static void insert(uint64_t key, enum method method)
{
    struct hash_slot *slot = find(key);

    if (method == ORDER) {
        store_key(slot, key, method);
    }
    if (method == NT || method == NT_NO_FENCE) {
        let_copy(slot, key, method == NT);
    } else {
        store_value(slot, key, method);
    }
    if (method != ORDER) {
        store_key(slot, key, method);
    }
    sg_mark_durable(slot, sizeof(*slot));
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int check(void)
{
    unsigned entries = 0, broken = 0;

    for (unsigned i = 0; i < SLOTS; i++) {
        uint64_t value[WORDS];

        if (table[i].key) {
            make_value(value, table[i].key);
            entries++;
            broken += memcmp(table[i].value, value, sizeof(value)) != 0;
        }
    }
    printf("entries %u broken %u\n", entries, broken);
    return broken != 0;
}

static enum method find_method(const char *name)
{
    for (unsigned i = 0; i < METHODS; i++) {
        if (!strcmp(names[i], name)) {
            return (enum method)i;
        }
    }
    fprintf(stderr, "crash_hash: %s is no method\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    unsigned entries = argc > 3 ? strtoul(argv[3], NULL, 0) : ENTRIES;
    uint64_t session = argc > 4 ? strtoul(argv[4], NULL, 0) : 0;
    enum method method;
    pthread_t thread;
    double start;
    int fd;

    if (argc < 3 || argc > 5 || !entries || entries > SLOTS / 2) {
        fprintf(stderr, "usage: crash_hash DEVICE METHOD [1..%d entries [SESSION]]\n", SLOTS / 2);
        return 2;
    }
    method = find_method(argv[2]);
    fd = open(argv[1], O_RDWR);
    table = fd < 0 ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (table == MAP_FAILED) {
        perror(argv[1]);
        return 2;
    }
    if (method == CHECK) {
        return check();
    }
    if (pthread_create(&thread, NULL, copy, NULL)) {
        perror("pthread_create");
        return 2;
    }
    start = now();
    for (uint64_t key = 1; key <= entries; key++) {
        insert(session << 32 | key, method);
    }
    printf("seconds %.6f\n", now() - start);
    __atomic_store_n(&copier.stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("inserted %u\n", entries);
    return 0;
}
