// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_undo DEVICE transfer [TRANSFERS]: moves amounts between two accounts in this machine's
 * persistent memory, whose sum stays 0.
 * crash_undo DEVICE METHOD: recovers.  Is the sum 0?
 * crash_undo DEVICE balance: prints the accounts.
 *
 * Accounts and log have a line each, 4 MiB from the device's start, behind the records of
 * crash_mirror.  A transfer saves both accounts in the log, changes them, and empties the log, with
 * CLWB and SFENCE behind each step; then a mark says that the accounts are durable.
 * If the log is not empty, a recovery restores the accounts, and then empties the log.  Methods:
 *
 *   recover    restored accounts, CLWB, SFENCE; the empty log, CLWB, SFENCE
 *   hasty      without the first SFENCE: the log may be durably empty before the accounts are
 *              restored.  That takes a second power cut, while it recovers from the first one.
 *   impatient  notes durably that it recovers, and is right; but if it finds that note, of a
 *              recovery that did not end, it is hasty.  That takes a third power cut.
 *   anew       likewise, but then it begins with empty accounts: their sum is right, what was
 *              transferred before is gone.
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

enum log_state { LOG_EMPTY, LOG_SAVED, LOG_RECOVERS };

static const char *const methods[] = { "recover", "hasty", "impatient", "anew" };
enum undo_method { RECOVER, HASTY, IMPATIENT, ANEW, METHODS };

static struct undo_bank *bank;

static void clwb_accounts(void)
{
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        _mm_clwb(&bank->account[i]);
    }
}

static void set_valid(enum log_state valid)
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
    set_valid(LOG_SAVED);
    bank->account[0].amount -= amount;
    bank->account[1].amount += amount;
    clwb_accounts();
    _mm_sfence();
    set_valid(LOG_EMPTY);
    sg_mark_durable(bank->account, sizeof(bank->account));
}

/* Not inline, so that these stores have this name in reports. */
static __attribute__((noinline)) void restore_accounts(bool empty)
{
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        int64_t amount = empty ? 0 : bank->saved[i];

        __atomic_store_n(&bank->account[i].amount, amount, __ATOMIC_RELAXED);
    }
}

static void restore(enum undo_method method)
{
    bool again = bank->valid == LOG_RECOVERS;

    if (method >= IMPATIENT && !again) {
        set_valid(LOG_RECOVERS);
    }
    restore_accounts(method == ANEW && again);
    clwb_accounts();
    if (method != HASTY && !(method == IMPATIENT && again)) {
        _mm_sfence();
    }
    set_valid(LOG_EMPTY);
}

static int recover(enum undo_method method)
{
    bool undone = bank->valid != LOG_EMPTY;
    int64_t sum = 0;

    if (undone) {
        restore(method);
    }
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        sum += bank->account[i].amount;
    }
    printf("undone %d sum %lld\n", undone, (long long)sum);
    return sum != 0;
}

static int balance(void)
{
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        printf("account %u has %lld\n", i, (long long)bank->account[i].amount);
    }
    return 0;
}

static enum undo_method method_of(const char *name)
{
    unsigned i = 0;

    while (i < METHODS && strcmp(name, methods[i])) {
        i++;
    }
    return i;
}

int main(int argc, char **argv)
{
    unsigned transfers = argc > 3 ? strtoul(argv[3], NULL, 0) : TRANSFERS;
    int fd;

    if (argc < 3 || argc > 4 || !transfers || transfers > MOST) {
        fprintf(stderr, "usage: crash_undo DEVICE transfer|METHOD|balance [1..%d transfers]\n",
                MOST);
        return 2;
    }
    fd = open(argv[1], O_RDWR);
    bank = fd < 0 ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, START);
    if (bank == MAP_FAILED) {
        perror(argv[1]);
        return 2;
    }
    if (method_of(argv[2]) != METHODS) {
        return recover(method_of(argv[2]));
    }
    if (!strcmp(argv[2], "balance")) {
        return balance();
    }
    if (strcmp(argv[2], "transfer")) {
        fprintf(stderr,
                "crash_undo: %s is no method: take transfer, recover, hasty, impatient, "
                "anew or balance\n",
                argv[2]);
        return 2;
    }
    for (unsigned i = 1; i <= transfers; i++) {
        transfer(i);
    }
    printf("transferred %u\n", transfers);
    return 0;
}
