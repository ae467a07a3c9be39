/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Putting a machine back to a state that was kept, in the same process, with a crash image
 * (rewind.c), the part of it that concerns ordinary memory (rewind_ram.c), and what the machine has
 * read of its NVDIMMs since (rewind_reads.c).
 */
#ifndef SG_DEVICE_REWIND_H
#define SG_DEVICE_REWIND_H

#include "domain_object.h"

struct StaghornRewindRam;

/* What became of ordinary memory at a rewind. */
typedef struct StaghornRewindPages {
    uint64_t written; /* pages since the state was kept, or since the last rewind */
    uint64_t changed; /* of them, that differed from it */
} StaghornRewindPages;

/*
 * Copies all ordinary memory of the machine, which is stopped, and records changes from now on.
 * NULL: it cannot be done.
 */
struct StaghornRewindRam *staghorn_rewind_ram_keep(Error **errp);
/* The present content is kept, in place of that of before; the machine is stopped. */
void staghorn_rewind_ram_again(struct StaghornRewindRam *ram);
void staghorn_rewind_ram_free(struct StaghornRewindRam *ram);
/*
 * Memory becomes what it was; only the translations of pages that differ are discarded.  False: a
 * memory has another size.  The machine is stopped.
 */
bool staghorn_rewind_ram(struct StaghornRewindRam *ram, StaghornRewindPages *pages, Error **errp);
/* The content of this NVDIMM was replaced: discards translations. */
void staghorn_rewind_translations(StaghornDimm *dimm);
/* The octets that the copy takes. */
uint64_t staghorn_rewind_ram_octets(const struct StaghornRewindRam *ram);

/* Nothing has been read; the machine is stopped. */
void staghorn_rewind_reads_clear(void);
/* Loads are not noted any more. */
void staghorn_rewind_reads_end(void);

#endif
