/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adapter: everything a driver can reach through BARs, as one object.
 *
 * The device layer (hw/device) and the test host forward register accesses, doorbells and time;
 * the core decides.  All calls of one adapter are serialised by the caller.
 */
#ifndef SG_VERBS_ADAPTER_H
#define SG_VERBS_ADAPTER_H

#include "base/host.h"
#include "faults/faults.h"
#include "flash/chip.h"
#include "staghorn/regs.h"
#include "verbs/check/check.h"
#include "verbs/state/adapter_config.h"

struct sg_adapter;

/* Copies config; host and net must outlive the adapter.  Never NULL. */
struct sg_adapter *sg_adapter_new(const struct sg_host *host, struct sg_stream_net *net,
                                  const struct sg_adapter_config *config);
void sg_adapter_free(struct sg_adapter *a);
/* FLR, CTRL.RESET, machine reset: as freshly made; open connections are reset. */
void sg_adapter_reset(struct sg_adapter *a);
/*
 * Completes at once what a reset left for later turns.  For a machine without power, whose
 * adapters must not send RSTs when power returns: the caller drops their frames.
 */
void sg_adapter_finish_reset(struct sg_adapter *a);
/* The same, with other limits and policy from then on: new firmware starts. */
void sg_adapter_renew(struct sg_adapter *a, const struct sg_adapter_config *config);

/* BAR0.  offset < SG_REGS_SIZE, size 4 or 8, aligned. */
uint64_t sg_adapter_reg_read(struct sg_adapter *a, uint32_t offset, unsigned size);
void sg_adapter_reg_write(struct sg_adapter *a, uint32_t offset, uint64_t value, unsigned size);
/* BAR2.  page < SG_UAR_COUNT, offset < SG_UAR_SIZE, aligned; size 8 (others: guest error). */
void sg_adapter_doorbell(struct sg_adapter *a, uint32_t page, uint32_t offset, uint64_t value,
                         unsigned size);

/*
 * One turn (adapter.c), bounded by 'budget' octets.  Called after register writes, doorbells and
 * frames (the core calls 'kick' when it needs a turn), and at the deadline of arm_timer.  True:
 * there is more to do, call again soon.
 */
bool sg_adapter_run(struct sg_adapter *a, size_t budget);

/* Reads of BAR2: the clock (SG_DB_CLOCK), 8 octets or halves of 4; anything else is 0. */
uint64_t sg_adapter_doorbell_read(struct sg_adapter *a, uint32_t page, uint32_t offset,
                                  unsigned size);
/* Injects a fault for tests of drivers: SG_FATAL_INJECTED, if the adapter is enabled. */
void sg_adapter_break(struct sg_adapter *a);
/* Why the adapter is FATAL, for its owner; unlike the register it is not subject to faults. */
enum sg_fatal sg_adapter_fatal_error(const struct sg_adapter *a);

/*
 * The rules by which the adapter misbehaves; NULL, as at first: none.  They outlive resets, and
 * the adapter.  Called again when rules were set or cleared: an adapter whose 'faults' has no rules
 * does not look at it.
 */
void sg_adapter_set_faults(struct sg_adapter *a, struct sg_faults *faults);
/* Names of commands for the rules. */
extern const struct sg_fault_words sg_adapter_fault_words;

/*
 * The host observes from now on (sg_host_ops.observe): it is told of all connections that exist.
 */
void sg_adapter_observe_all(const struct sg_adapter *a);

void sg_adapter_set_link(struct sg_adapter *a, bool up);
/* Sets the flash for FLASH_* commands; initially NULL: none.  It must outlive the adapter. */
void sg_adapter_set_flash(struct sg_adapter *a, struct sg_flash *flash);

/* The driver checker, for its reports; NULL: off. */
const struct sg_check *sg_adapter_check(const struct sg_adapter *a);

/* For tests and diagnostics: the numbers of live objects. */
struct sg_adapter_census {
    uint32_t pds, mrs, mws, cqs, qps, srqs, eqs, conns, listeners;
};
void sg_adapter_census(const struct sg_adapter *a, struct sg_adapter_census *out);
/* Octets of max_host_memory in use. */
uint64_t sg_adapter_host_memory(const struct sg_adapter *a);

#endif
