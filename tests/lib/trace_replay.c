/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_replay FILE: reads and replays a trace; one line of JSON says what was found.  For tests in
 * VMs.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>

#include "trace_seen.h"

static const char *between = "";

/* [sent, octets, CRC32c] */
static void print_frame(const struct sg_trace_event *e)
{
    if (e->kind == SG_TRACE_FRAME) {
        printf("%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", between, e->arg, e->len, e->value);
        between = ", ";
    }
}

int main(int argc, char **argv)
{
    struct trace_seen seen = { .each = print_frame };
    char *wrong;

    if (argc != 2) {
        fprintf(stderr, "usage: trace_replay FILE\n");
        return 2;
    }
    printf("{\"frames\": [");
    wrong = trace_seen_read(&seen, argv[1]);
    printf("], \"wrong\": \"%s\", \"status\": \"%s\", \"extents\": %u, \"end-hash-fits\": %s",
           wrong ? wrong : "", sg_trace_status_name(seen.status), seen.extents,
           seen.end_hash_fits ? "true" : "false");
    for (unsigned i = 1; i < SG_TRACE_KINDS; i++) {
        printf(", \"%s\": %" PRIu64, sg_trace_row(i)->name, seen.kind[i]);
    }
    printf("}\n");
    g_free(wrong);
    trace_seen_free(&seen);
    return 0;
}
