/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the benchmarks that write traces share. */
#ifndef SG_TESTS_BENCH_PUT_H
#define SG_TESTS_BENCH_PUT_H

#include <stdlib.h>

#include "trace/writer.h"

/* Writes an event of a CPU; a store's octets are those of word. */
static inline void bench_put(struct sg_trace_writer *w, unsigned kind, uint64_t at, uint64_t addr,
                             uint64_t len, uint64_t word)
{
    struct sg_trace_event e = {
        .kind = kind,
        .data = (const uint8_t *)&word,
        .at = at,
        .addr = addr,
        .len = len,
        .root = 0x12345000,
    };

    if (!sg_trace_write(w, &e)) {
        abort();
    }
}

#endif
