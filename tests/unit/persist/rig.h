/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A domain with small memories, and shorthands for its events.
 *
 * RIG_BASE is the machine address of the first extent.  Cases own their rig: rig_up() to
 * rig_down(); a failing check leaks it, as tap.h says.
 */
#ifndef SG_TESTS_PERSIST_RIG_H
#define SG_TESTS_PERSIST_RIG_H

#include "persist/persist.h"
#include "tap.h"

#define RIG_BASE 0x100000000ull

struct dom_rig {
    struct sg_persist *p;
    struct sg_persist_config config;
    struct sg_persist_limits limits;
    uint8_t *visible, *media;
    size_t size;
    unsigned cuts_due;
    uint64_t pc; /* of the next CPU event */
};

/*
 * Defaults, but CPUs are tracked, S0 and S1 are empty, so that the effect of an event is there when
 * it returns, and every event is followed by the checks.
 */
void rig_init(struct dom_rig *r);
/* Uses r's present config and limits. */
void rig_up(struct dom_rig *r, size_t size);
void rig_down(struct dom_rig *r);
/* As rig_init, this domain, and up with 64 KiB. */
void rig_simple(struct dom_rig *r, enum sg_persist_domain domain);
/* Takes over r->config. */
void rig_configure(struct dom_rig *r);

/* Events of adapter 0, QP qpn, and of vCPUs, with offsets instead of addresses. */
void rig_write(struct dom_rig *r, uint32_t qpn, uint64_t off, const void *buf, size_t len);
void rig_write_u64(struct dom_rig *r, uint32_t qpn, uint64_t off, uint64_t value);
enum sg_pm_result rig_flush(struct dom_rig *r, uint32_t qpn, uint64_t off, uint64_t len,
                            unsigned flags);
void rig_store(struct dom_rig *r, unsigned vcpu, uint64_t off, uint64_t value);
void rig_store_nt(struct dom_rig *r, unsigned vcpu, uint64_t off, uint64_t value);
void rig_cpu_flush(struct dom_rig *r, unsigned vcpu, uint64_t off, enum sg_persist_cpu_flush kind);
void rig_sfence(struct dom_rig *r, unsigned vcpu);

uint64_t rig_visible(const struct dom_rig *r, uint64_t off);
uint64_t rig_media(const struct dom_rig *r, uint64_t off);

/* Cuts, makes the memories equal, restarts.  The caller frees the report of rig_cut_report(). */
void rig_cut(struct dom_rig *r, enum sg_persist_outcome outcome, uint64_t seed);
struct sg_persist_report *rig_cut_report(struct dom_rig *r, enum sg_persist_outcome outcome,
                                         uint64_t seed);

/*
 * Runs scene() many times from zeroed memories, cuts each time with another seed, and returns which
 * values (0 to 63) the media then have at an offset, read as a 64-bit number: a set of bits.
 * Values above 63 fail the case.
 */
typedef void rig_scene(struct dom_rig *r);
uint64_t rig_outcomes(const struct dom_rig *proto, rig_scene *scene, uint64_t off, unsigned seeds);
/* The same for a number that of() computes from the media. */
uint64_t rig_outcomes_of(const struct dom_rig *proto, rig_scene *scene,
                         unsigned (*of)(const struct dom_rig *r), unsigned seeds);
#define SET1(a) (1ull << (a))
#define SET2(a, b) (SET1(a) | SET1(b))
#define SET3(a, b, c) (SET2(a, b) | SET1(c))

#endif
