/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sim --seed N        one run, with its log
 * sim --seeds A..B    many runs; stops at the first that fails and says how to see it again
 * sim --rdma-tcp ...  the same on RDMA/TCP of 2000
 *
 * Speaks TAP.  Without arguments: seeds 1 to 1000.
 */
#include <glib.h>
#include <inttypes.h>

#include "sim.h"

static int usage(void)
{
    fputs("usage: sim [--rdma-tcp] [--seed N | --seeds A..B]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct sim_world *w = g_new(struct sim_world, 1);
    uint64_t first = 1, last = 1000, seed, delivered = 0;
    enum sg_engine_wire wire = SG_ENGINE_IWARP;
    bool verbose = false;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "--rdma-tcp") == 0) {
        wire = SG_ENGINE_RDMA_TCP_2000;
        argc--;
        argv++;
    }
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        first = last = strtoull(argv[2], NULL, 0);
        verbose = true;
    } else if (argc == 3 && strcmp(argv[1], "--seeds") == 0) {
        if (sscanf(argv[2], "%" SCNu64 "..%" SCNu64, &first, &last) != 2 || first > last) {
            return usage();
        }
    } else if (argc != 1) {
        return usage();
    }
    puts("1..1");
    for (seed = first; seed <= last; seed++) {
        sim_run(w, seed, wire, verbose);
        delivered += w->delivered;
    }
    printf("ok 1 - %s seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " messages delivered\n",
           wire == SG_ENGINE_IWARP ? "RDM-42 RDM-47 EXT-15 EXT-26 DDP-26 DDP-27 DDP-28"
                                   : "WIL-06 WIL-19",
           first, last, delivered);
    g_free(w);
    return 0;
}
