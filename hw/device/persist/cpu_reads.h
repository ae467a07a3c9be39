/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which lines of the NVDIMMs CPUs load: between rewind_reads.c, which keeps them, and cpu_loads.c,
 * which watches loads.
 */
#ifndef SG_DEVICE_CPU_READS_H
#define SG_DEVICE_CPU_READS_H

#include "domain_object.h"

/* Are loads noted?  Changes while vCPUs are stopped. */
extern bool staghorn_reads_noted;
/* A vCPU loads these octets of the host's memory: of an NVDIMM, or not.  Its thread. */
void staghorn_reads_note(const void *host, unsigned size);
/*
 * Sets staghorn_reads_noted, and returns when all vCPUs act accordingly; main thread.  Set by
 * cpu_track.c; NULL: this QEMU cannot.  False: this machine cannot.
 */
extern bool (*staghorn_cpu_watch_reads)(bool on, Error **errp);

#endif
