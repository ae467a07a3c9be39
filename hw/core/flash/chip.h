/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flash chip of one adapter: content, the slot that runs, updates.
 */
#ifndef SG_FLASH_CHIP_H
#define SG_FLASH_CHIP_H

#include "flash/image.h"

enum sg_flash_medium { SG_FLASH_TAKEN, SG_FLASH_REFUSED, SG_FLASH_BUSY };

struct sg_flash_ops {
    /*
     * Writes octets of the chip through to where it lives.  TAKEN: they are there for good;
     * REFUSED: it does not take them, and none of them count; BUSY: under way, and the same call
     * later tells the outcome.  There is one at a time.  NULL: the chip lives in memory.
     */
    enum sg_flash_medium (*program)(void *opaque, uint32_t offset, const void *buf, uint32_t len);
    void *opaque;
};

/* One slot, as its octets are now. */
struct sg_slot_state {
    enum sg_flash_reason reason; /* GOOD: fw and sequence are valid */
    uint32_t sequence;
    struct sg_firmware fw;       /* fw.rom points into the chip */
};

struct sg_flash;

/*
 * A chip with this content.  NULL: unusable; *why (g_free) says so in words, behind "the image is
 * refused: ".
 */
struct sg_flash *sg_flash_new(struct sg_span image, const struct sg_flash_ops *ops, char **why);
void sg_flash_free(struct sg_flash *f);

const struct sg_identity *sg_flash_identity(const struct sg_flash *f);
/* The slot that runs; the other one is that of updates. */
unsigned sg_flash_running(const struct sg_flash *f);
/* The slot that the next reset takes. */
unsigned sg_flash_stored(const struct sg_flash *f);
const struct sg_slot_state *sg_flash_slot(const struct sg_flash *f, unsigned slot);
/* The firmware that runs. */
const struct sg_firmware *sg_flash_firmware(const struct sg_flash *f);
/* Reset of the function: takes the stored slot.  True: it is another one than before. */
bool sg_flash_boot(struct sg_flash *f);

/* The last call said LATER or PENDING, and waits to be made again. */
bool sg_flash_waits(const struct sg_flash *f);
/* It will not be made: its caller is gone.  What the medium is writing is finished. */
void sg_flash_abandon(struct sg_flash *f);

/* Octets of the chip; len at most SG_FLASH_CHUNK_MAX.  NULL: not all of them exist. */
const uint8_t *sg_flash_octets(const struct sg_flash *f, uint32_t offset, uint32_t len);

enum sg_flash_result {
    SG_FLASH_OK, SG_FLASH_ORDER, SG_FLASH_RANGE, SG_FLASH_BROKEN, SG_FLASH_LATER,
};
/*
 * A piece of an update, in order; ORDER: not the next one, RANGE: too much.  LATER: the medium is
 * busy; the same call again, until it says something else.
 */
enum sg_flash_result sg_flash_write(struct sg_flash *f, uint32_t offset, const void *buf,
                                    uint32_t len);
/*
 * The update is complete.  GOOD: the next reset takes it; PENDING: as LATER; else it is gone.
 * @judge, if not NULL, has the last word on a firmware that is otherwise good.
 */
#define SG_FLASH_PENDING SG_FLASH_REASONS
enum sg_flash_reason sg_flash_commit(struct sg_flash *f, uint32_t len,
                                     bool (*judge)(void *opaque, const struct sg_firmware *fw),
                                     void *opaque);

#endif
