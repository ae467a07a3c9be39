/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine with a persistence domain "dom0" over one NVDIMM, memdev "mem1", and what tests do with
 * it.  To the domain the test's stores are those of another bus master, which it cannot follow.
 */
#ifndef SG_TESTS_PERSIST_RIG_H
#define SG_TESTS_PERSIST_RIG_H

#include "driver.h"

#define PM_BASE 0x100000000ull /* the first NVDIMM, with less than 4 GiB of memory */
#define DOMAIN "/objects/dom0"

enum { PM_MIB = 32, REGION = 1 << 20, LEN = 4096 };

struct persist_rig {
    char media[64];
    struct machine *m;
    struct qtest_side a, b;
    uint32_t pm_stag; /* of b: REGION octets at PM_BASE */
};
extern struct persist_rig rig;

/* Makes empty media, as rig_start() does. */
void rig_make_media(unsigned mib);
/* Starts QEMU with 'functions' adapters; domain: its properties "NAME=VALUE,...", or "". */
void rig_start(unsigned functions, unsigned mib, const char *domain);
/* As above, over the media that exist already. */
void rig_restart(unsigned functions, unsigned mib, const char *domain);
/* Without adapters; ordinary memory is private to QEMU. */
void rig_start_anonymous(unsigned ram_mib, unsigned mib, const char *domain);
void rig_stop_anonymous(void);
/* Two adapters, connected. */
void rig_pair(const char *domain);
void rig_stop(void);
/* Both adapters come up; b offers persistent memory to a. */
void rig_sides(uint16_t port);

/* Properties; values are JSON.  The functions that try return QEMU's answer as JSON. */
char *rig_get(const char *property);
char *rig_try_set(const char *property, const char *value);
void rig_set(const char *property, const char *value);
/* A number of the property "state". */
uint64_t rig_state(const char *name);

void rig_store(uint64_t offset, uint8_t value, size_t len);
/* Number of octets with this value in visible memory, and on the media. */
size_t rig_count(uint64_t offset, uint8_t value, size_t len);
size_t rig_count_media(uint64_t offset, uint8_t value, size_t len);
void rig_cut(const char *policy);
void rig_wait_for_cut(uint64_t cuts);

/* a writes LEN octets of a value to b's persistent memory; waits until they are sent. */
void rig_write(uint64_t offset, uint8_t value);
/* a posts, or posts and waits for the status of, a Flush of LEN octets. */
void rig_post_flush(uint64_t offset, uint32_t flags);
unsigned rig_flush(uint64_t offset, uint32_t flags);

#endif
