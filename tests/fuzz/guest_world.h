/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine of the fuzz target "guest": two adapters on one hub.  Function 0 belongs to the
 * hostile guest; it has a flash chip, and a place for another NIC model behind its Ethernet port.
 * Function 1 is its peer.  The machine has persistent memory in a domain.
 */
#ifndef SG_TESTS_FUZZ_GUEST_WORLD_H
#define SG_TESTS_FUZZ_GUEST_WORLD_H

#include "driver.h"
#include "fuzz.h"

enum {
    WORLD_PORT = 4000,
    WORLD_PM_MIB = 2,
    WORLD_RIGHTS = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE |
                   SG_ACCESS_REMOTE_ATOMIC | SG_ACCESS_FLUSH_GLOBAL,
};
#define WORLD_PM 0x100000000ull /* of persistent memory, behind 4 GiB */

struct guest_world {
    struct machine *m;
    struct qtest_side a, b; /* hostile, peer */
    struct fuzz_in in;
    uint64_t first; /* where an input's guest memory begins; memory before it stays */
    int nic;        /* frames to and from the place behind function 0's port */
    bool flash_touched;
    uint32_t window, paged, pm_stag; /* of a; 0: none yet */
    unsigned long long commands, good, connected, completions, unplugs, resets, frames;
};

extern struct guest_world w;

/* Starts the machine at the first call; resets it, then brings both adapters up. */
void world_begin(void);
bool world_is_plugged(unsigned n);
/* Unplugs function 0, which must be plugged. */
void world_unplug(void);
/* Plugs function n if it is not plugged. */
void world_plug(unsigned n);

/* A command of side s if its ring has room; the last answer is in rsp.  False: none, or bad. */
bool world_cmd(struct qtest_side *s, const void *cmd, size_t len, struct sg_admin_rsp *rsp);
/* Creates the hostile side's objects again, as far as this succeeds. */
void world_bring_up(void);
/* New queue pairs and a connection between the two. */
void world_connect(void);
/* Takes events and completions; accepts requests for connections. */
void world_drain(struct qtest_side *s);

/* Configuration space: of function n, and of the port in front of it. */
uint64_t world_config(unsigned n, unsigned offset);
uint64_t world_port_config(unsigned n, unsigned offset);

#endif
