// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_mirror DEVICE METHOD [RECORDS [FIRST]]: records FIRST, FIRST + 1... in this machine's
 * persistent memory, each in two copies.  FIRST is 0, or what is behind the records of an earlier
 * run.
 * crash_mirror DEVICE check: has each record that exists an intact copy?
 *
 * The records are 2 MiB from the device's start, behind the table of crash_hash.
 *
 * A copy has two lines: the data, and a flag.  A record exists if the flags of both copies are set;
 * then one intact copy is enough.  Each record ends with a mark that it is durable.  Methods:
 *
 *   right      the data of both copies, CLWB, SFENCE; both flags, CLWB, SFENCE
 *   at-once    data and flags, CLWB, SFENCE: flags may be durable without the data
 *
 * No single line that a power cut loses, or keeps, shows what is wrong with at-once: it takes the
 * data of both copies, and neither flag.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "staghorn_mark.h"

enum {
    START = 2 << 20,
    SIZE = 2 << 20,
    LINE = 64,
    WORDS = LINE / 8,
    COPIES = 2,
    RECORDS = 3,
    SLOTS = 32
};

struct mirror_copy {
    uint64_t data[WORDS];
    uint64_t flag, rest[WORDS - 1];
};

struct mirror_record {
    struct mirror_copy copy[COPIES];
};

_Static_assert(sizeof(struct mirror_record) * SLOTS <= SIZE, "the records fit");

static uint64_t word(unsigned record, unsigned at)
{
    return (record * WORDS + at + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void make_data(struct mirror_copy *copy, unsigned number)
{
    for (unsigned i = 0; i < WORDS; i++) {
        copy->data[i] = word(number, i);
    }
    _mm_clwb(copy->data);
}

static void set_flag(struct mirror_copy *copy)
{
    __atomic_store_n(&copy->flag, 1, __ATOMIC_RELEASE);
    _mm_clwb(&copy->flag);
}

static void add(struct mirror_record *record, unsigned number, bool right)
{
    for (unsigned i = 0; i < COPIES; i++) {
        make_data(&record->copy[i], number);
    }
    if (right) {
        _mm_sfence();
    }
    for (unsigned i = 0; i < COPIES; i++) {
        set_flag(&record->copy[i]);
    }
    _mm_sfence();
    sg_mark_durable(record, sizeof(*record));
}

static bool is_intact(const struct mirror_copy *copy, unsigned number)
{
    for (unsigned i = 0; i < WORDS; i++) {
        if (copy->data[i] != word(number, i)) {
            return false;
        }
    }
    return true;
}

/* It reads no line that it does not need: the tests count them. */
static int check(const struct mirror_record *records)
{
    unsigned found = 0, broken = 0;

    for (unsigned i = 0; i < SLOTS; i++) {
        const struct mirror_copy *copy = records[i].copy;

        if (copy[0].flag && copy[1].flag) {
            found++;
            broken += !is_intact(&copy[0], i) && !is_intact(&copy[1], i);
        }
    }
    printf("records %u broken %u\n", found, broken);
    return broken != 0;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 3 ? strtoul(argv[3], NULL, 0) : RECORDS;
    unsigned first = argc > 4 ? strtoul(argv[4], NULL, 0) : 0;
    struct mirror_record *records;
    bool right, checks;
    int fd;

    if (argc < 3 || argc > 5 || !count || count > SLOTS || first > SLOTS - count) {
        fprintf(stderr,
                "usage: crash_mirror DEVICE right|at-once|check [RECORDS [FIRST]]\n"
                "There is room for %d records\n",
                SLOTS);
        return 2;
    }
    right = !strcmp(argv[2], "right");
    checks = !strcmp(argv[2], "check");
    if (!right && !checks && strcmp(argv[2], "at-once")) {
        fprintf(stderr, "crash_mirror: %s is no method: take right, at-once or check\n", argv[2]);
        return 2;
    }
    fd = open(argv[1], O_RDWR);
    records = fd < 0 ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, START);
    if (records == MAP_FAILED) {
        perror(argv[1]);
        return 2;
    }
    if (checks) {
        return check(records);
    }
    for (unsigned i = first; i < first + count; i++) {
        add(&records[i], i, right);
    }
    printf("written %u\n", count);
    return 0;
}
