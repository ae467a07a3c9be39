/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The values of words in fault rules.
 */
#ifndef SG_FAULTS_FAULT_VALUES_H
#define SG_FAULTS_FAULT_VALUES_H

#include "faults/faults.h"

#define SG_FAULT_TIME_MAX 3600000000000ull /* ns: an hour */
#define SG_FAULT_COUNT_MAX 1000000000000ull
#define SG_FAULT_ALWAYS UINT64_MAX

enum sg_fault_value_kind {
    VALUE_NONE,
    VALUE_STATUS,
    VALUE_TIME,
    VALUE_VECTOR,
    VALUE_COMMAND,
    VALUE_OFFSET,
    VALUE_COUNT,
    VALUE_TIMES,
    VALUE_SEED,
    VALUE_DIRECTION,
    VALUE_NUMBER,
};

/* What a value of this kind is, for messages. */
const char *sg_fault_value_text(unsigned kind);
/* False: 'text' is not one. */
bool sg_fault_value(const struct sg_fault_words *words, unsigned kind, const char *text,
                    uint64_t *value);

#endif
