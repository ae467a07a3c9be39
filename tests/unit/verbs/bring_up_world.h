/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two machines for a driver under test (tests/lib/bring_up.h): adapters of the core on test hosts,
 * joined by the in-memory switch, and what can go wrong with the hardware.
 */
#ifndef SG_TESTS_BRING_UP_WORLD_H
#define SG_TESTS_BRING_UP_WORLD_H

#include "bring_up.h"
#include "stream_mem.h"
#include "test_host.h"
#include "verbs/adapter.h"

enum { BU_MEM = 16 << 20, BU_BLOCKS = 4096 };

struct bu_block {
    uint64_t bus;
    size_t octets;
    bool freed;
};

struct bu_world;

struct bu_side {
    struct bu_machine m;
    struct bu_world *world;
    struct test_host h;
    struct sg_adapter *a;
    struct sg_stream_net *net;
    struct bu_block blocks[BU_BLOCKS];
    unsigned block_count;
    unsigned msix; /* vectors; 0: disabled */
    uint64_t seen[TEST_HOST_VECTORS];
    unsigned resets, tests;  /* CTRL.RESET; test registers written since */
    unsigned doorbell_early; /* doorbells before READY */
    /* Faults. */
    uint32_t magic_xor, version_xor, scratch_xor;
    bool no_dma, no_irq, frozen, removed;
    void *d; /* the driver's object */
};

struct bu_world {
    struct sg_mem_switch *sw;
    struct bu_side side[2];
    unsigned visitors; /* of bu_world_listen() */
};

/* Adapters as after power-on; the drivers' objects are zero. */
void bu_world_begin(struct bu_world *w);
/* All memory was given back, and no adapter has touched it since. */
bool bu_world_clean(struct bu_world *w);
void bu_world_end(struct bu_world *w);

/* A third machine, 10.0.0.3, without any driver: it counts connections and resets them. */
void bu_world_listen(struct bu_world *w, uint16_t port);

/* Runs both adapters for 'ns'. */
void bu_world_pass(struct bu_world *w, uint64_t ns);

#endif
