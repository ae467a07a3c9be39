/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A q35 machine with Staghorn functions, each behind its own PCI Express root port, and what a
 * firmware would do for them: bus numbers, bridge windows, BARs, bus mastering, MSI-X.
 *
 * Function i is on bus i + 1, is called "a<i>" and has the MAC address 52:54:00:00:00:<i + 1>.
 * MSI-X writes land in guest memory, where function_raised() finds them.
 *
 * All functions and the test itself are on one Ethernet hub.  A port without a NIC behind it does
 * not answer ARP: the test does, as the guests' network stacks would.
 */
#ifndef SG_TESTS_MACHINE_H
#define SG_TESTS_MACHINE_H

#include "qtest_client.h"

enum {
    MACHINE_FUNCTIONS = 2,
    MACHINE_RAM = 256 << 20,
    MACHINE_VECTORS = 64, /* most that a function may have */
    MACHINE_PLACES = 12,
    MACHINES = 3, /* at once */
};

#define MACHINE_CONFIG_0 (0xb0000000ull + (1 << 20))

struct machine;

struct function {
    struct machine *m;
    unsigned number, bus;
    uint64_t regs, doorbells, msix; /* BARs, bus addresses */
    uint64_t msix_table;
    unsigned vectors;                       /* of the MSI-X capability */
    uint64_t vector_words;                  /* guest memory that the vectors write to */
    unsigned cap_msix, cap_express, cap_pm; /* offsets in configuration space, 0: absent */
};

struct machine {
    struct qtest *q;
    unsigned n;
    struct function f[MACHINE_FUNCTIONS];
    uint64_t alloc_next;
    uint8_t *ram; /* shared with QEMU */
    int wire;     /* Ethernet frames, one in a datagram */
    bool mute;    /* do not answer ARP */
    /* NULL, or answers as further guests would; true if something was sent. */
    bool (*answer)(struct machine *m, const uint8_t *frame, size_t len);
    void (*tap)(struct machine *m, const uint8_t *frame, size_t len); /* NULL, or sees each frame */
    struct machine *other; /* NULL, or joined with this one: see machines_join() */
};

/*
 * Starts a machine with n functions on one Ethernet hub.  'extra' goes behind each "-device
 * staghorn,..." ("" or ",max-qp=4"), 'args' to the command line.  Functions are ready to be
 * accessed and may master the bus.
 */
struct machine *machine_start(unsigned n, const char *extra, const char *args);
/* As machine_start(), beside the machines that exist, with a hub of its own. */
struct machine *machine_start_beside(unsigned n, const char *extra, const char *args);
void machine_stop(struct machine *m);
/* As machine_stop(), but by SIGKILL. */
void machine_kill(struct machine *m);

/* What a firmware does; needed again after a reset of the machine or of a function. */
void machine_setup_ports(struct machine *m);
void function_setup(struct function *f);

/*
 * Addresses, in a machine with two functions, that an operating system would never use as memory:
 * devices, configuration space (MACHINE_CONFIG_0: of function 0), nothing.  Returns their number.
 */
unsigned machine_strange_places(struct machine *m, uint64_t at[MACHINE_PLACES]);

/* Allocates zeroed guest memory, which is never freed. */
uint64_t machine_alloc(struct machine *m, size_t len, size_t align);
/* Guest memory is shared memory: writes of the test and of QEMU are visible to both at once. */
void *machine_ptr(struct machine *m, uint64_t addr);

/* Configuration space, through the memory-mapped window. */
uint8_t function_config_readb(struct function *f, unsigned offset);
uint16_t function_config_readw(struct function *f, unsigned offset);
uint32_t function_config_readl(struct function *f, unsigned offset);
void function_config_writew(struct function *f, unsigned offset, uint16_t value);
void function_config_writel(struct function *f, unsigned offset, uint32_t value);
uint16_t port_config_readw(struct function *f, unsigned offset);
void port_config_writew(struct function *f, unsigned offset, uint16_t value);
/* Offset of a capability (id as in the PCI specifications), 0: there is none. */
unsigned function_find_cap(struct function *f, uint8_t id);
unsigned port_find_cap(struct function *f, uint8_t id);
unsigned function_find_ext_cap(struct function *f, uint16_t id);

/* Returns the size of a BAR, found by writing ones, and the flags in its low bits. */
uint64_t function_bar_size(struct function *f, unsigned bar, uint32_t *flags);

/* Registers and doorbells. */
uint32_t function_readl(struct function *f, uint32_t offset);
uint64_t function_readq(struct function *f, uint32_t offset);
void function_writel(struct function *f, uint32_t offset, uint32_t value);
void function_writeq(struct function *f, uint32_t offset, uint64_t value);
void function_doorbell(struct function *f, unsigned page, unsigned offset, uint64_t value);

/* Whether the vector was raised since the last call, once or several times. */
bool function_raised(struct function *f, unsigned vector);
/* Function level reset, then the set-up that it undid. */
void function_flr(struct function *f);
/* Native hot plug: the guest agrees to a removal by switching the slot's power off. */
void function_slot_off(struct function *f);
/* Reset of the machine, then the set-up that it undid. */
void machine_reset(struct machine *m);

/* Runs QEMU's main loop until all work that was started is done; the clock stands still. */
void machine_settle(struct machine *m);
/* A frame from the test to the hub. */
void machine_wire_send(struct machine *m, const void *frame, size_t len);
/* Lets virtual time go by, in steps of a millisecond. */
void machine_pass(struct machine *m, unsigned ms);
/*
 * Joins the hubs of two machines; from now on settling and passing time apply to both.  Function i
 * of either machine has MAC and IP address i: use each number in one of them only.  machines_part()
 * undoes it for m and its other one.
 */
void machines_join(struct machine *m, struct machine *other);
void machines_part(struct machine *m);

/* Lines about guest errors that QEMU has logged since the last call. */
unsigned machine_guest_errors(struct machine *m);

#endif
