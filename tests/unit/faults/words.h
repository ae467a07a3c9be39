/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of commands for tests of fault rules: 1 is ONE, 2 is TWO, 3 is reserved, 4 is FOUR.
 */
#ifndef SG_TESTS_FAULT_WORDS_H
#define SG_TESTS_FAULT_WORDS_H

#include "faults/faults.h"

static inline const char *test_command(unsigned opcode)
{
    static const char *const names[] = { NULL, "ONE", "TWO", NULL, "FOUR" };

    return names[opcode];
}

static const struct sg_fault_words test_words = { 5, test_command };

#endif
