/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SG_VERBS_CHECK_CHECK_IMPL_H
#define SG_VERBS_CHECK_CHECK_IMPL_H

#include "verbs/check/check.h"

enum { SG_CHECK_STAGS = 256 };

struct sg_check {
    const struct sg_host *host;
    enum sg_check_mode mode;
    uint32_t highest[SG_OBJECTS]; /* number that was given to an object */
    uint32_t stags[SG_CHECK_STAGS];
    unsigned stag_end;
    uint64_t report_end; /* the newest report's number; 0: none */
    uint64_t event_end;
    size_t sum_octets; /* of all sums */
    unsigned end_count;
    bool end_adapter;
    struct sg_object end[SG_CHECK_ENDS];
    struct sg_check_report report[SG_CHECK_REPORTS]; /* by number, modulo their number */
    struct sg_check_event event[SG_CHECK_EVENTS];
};

#endif
