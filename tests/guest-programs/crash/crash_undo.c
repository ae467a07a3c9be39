// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_undo DEVICE transfer [TRANSFERS]: moves amounts between two accounts in this machine's
 * persistent memory, whose sum stays 0.
 * crash_undo DEVICE METHOD: recovers.  Is the sum 0?
 *
 * Accounts and log have a line each, 4 MiB from the device's start, behind the records of
 * crash_mirror.  A transfer saves both accounts in the log, changes them, and empties the log, with
 * CLWB and SFENCE behind each step; then a mark says that the accounts are durable.
 * If the log is not empty, a recovery restores the accounts, and then empties the log.  Methods:
 *
 *   recover    restored accounts, CLWB, SFENCE; the empty log, CLWB, SFENCE
 *   hasty      without the first SFENCE: the log may be durably empty before the accounts are
 *              restored.  That takes a second power cut, while it recovers from the first one.
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
    START = 4 << 20,
    SIZE = 2 << 20,
    LINE = 64,
    WORDS = LINE / 8,
    ACCOUNTS = 2,
    TRANSFERS = 2,
    MOST = 1000
};

struct undo_account {
    int64_t amount, rest[WORDS - 1];
};

struct undo_bank {
    struct undo_account account[ACCOUNTS];
    int64_t saved[ACCOUNTS]; /* the log */
    uint64_t valid;
};

static struct undo_bank *bank;

static void clwb_accounts(void)
{
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        _mm_clwb(&bank->account[i]);
    }
}

static void set_valid(uint64_t valid)
{
    __atomic_store_n(&bank->valid, valid, __ATOMIC_RELEASE);
    _mm_clwb(&bank->valid);
    _mm_sfence();
}

static void transfer(int64_t amount)
{
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        bank->saved[i] = bank->account[i].amount;
    }
    _mm_clwb(bank->saved);
    _mm_sfence();
    set_valid(1);
    bank->account[0].amount -= amount;
    bank->account[1].amount += amount;
    clwb_accounts();
    _mm_sfence();
    set_valid(0);
    sg_mark_durable(bank->account, sizeof(bank->account));
}

static void restore(bool hasty)
{
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        bank->account[i].amount = bank->saved[i];
    }
    clwb_accounts();
    if (!hasty) {
        _mm_sfence();
    }
    set_valid(0);
}

static int recover(bool hasty)
{
    bool undone = bank->valid;
    int64_t sum = 0;

    if (undone) {
        restore(hasty);
    }
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        sum += bank->account[i].amount;
    }
    printf("undone %d sum %lld\n", undone, (long long)sum);
    return sum != 0;
}

int main(int argc, char **argv)
{
    unsigned transfers = argc > 3 ? strtoul(argv[3], NULL, 0) : TRANSFERS;
    bool hasty;
    int fd;

    if (argc < 3 || argc > 4 || !transfers || transfers > MOST) {
        fprintf(stderr, "usage: crash_undo DEVICE transfer|recover|hasty [1..%d transfers]\n",
                MOST);
        return 2;
    }
    hasty = !strcmp(argv[2], "hasty");
    fd = open(argv[1], O_RDWR);
    bank = fd < 0 ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, START);
    if (bank == MAP_FAILED) {
        perror(argv[1]);
        return 2;
    }
    if (hasty || !strcmp(argv[2], "recover")) {
        return recover(hasty);
    }
    if (strcmp(argv[2], "transfer")) {
        fprintf(stderr, "crash_undo: %s is no method: take transfer, recover or hasty\n", argv[2]);
        return 2;
    }
    for (unsigned i = 1; i <= transfers; i++) {
        transfer(i);
    }
    printf("transferred %u\n", transfers);
    return 0;
}
