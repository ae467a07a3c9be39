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
     * Writes octets of the chip through to its backing store.  TAKEN: they are durable;
     * REFUSED: none of them was written; BUSY: in progress, repeat the same call to learn the
     * outcome.  There is one write at a time.  NULL: the chip is in memory only.
     */
    enum sg_flash_medium (*program)(void *opaque, uint32_t offset, const void *buf, uint32_t len);
    void *opaque;
};

/* One slot, as its octets are now. */
struct sg_slot_state {
    enum sg_flash_reason reason; /* GOOD: fw and sequence are valid */
    uint32_t sequence;
    struct sg_firmware fw; /* fw.rom points into the chip */
};

struct sg_flash;

/*
 * A chip with this content.  NULL: unusable; *why (g_free) has the reason, a text that follows "the
 * image is refused: ".
 */
struct sg_flash *sg_flash_new(struct sg_span image, const struct sg_flash_ops *ops, char **why);
void sg_flash_free(struct sg_flash *f);

const struct sg_identity *sg_flash_identity(const struct sg_flash *f);
/* The running slot; updates go to the other one. */
unsigned sg_flash_running(const struct sg_flash *f);
/* The slot that the next reset starts. */
unsigned sg_flash_stored(const struct sg_flash *f);
const struct sg_slot_state *sg_flash_slot(const struct sg_flash *f, unsigned slot);
/* The running firmware. */
const struct sg_firmware *sg_flash_firmware(const struct sg_flash *f);
/* Reset of the function: starts the stored slot.  True: it is a different one than before. */
bool sg_flash_boot(struct sg_flash *f);

/* The last call returned LATER or PENDING and has to be repeated. */
bool sg_flash_waits(const struct sg_flash *f);
/* The last call will not be repeated.  A pending write of the medium is still finished. */
void sg_flash_abandon(struct sg_flash *f);

/* Octets of the chip; len at most SG_FLASH_CHUNK_MAX.  NULL: not all of them exist. */
const uint8_t *sg_flash_octets(const struct sg_flash *f, uint32_t offset, uint32_t len);

enum sg_flash_result {
    SG_FLASH_OK,
    SG_FLASH_ORDER,
    SG_FLASH_RANGE,
    SG_FLASH_BROKEN,
    SG_FLASH_LATER
};
/*
 * Writes the next piece of an update.  ORDER: not the next one, RANGE: too long.  LATER: the medium
 * is busy; repeat the same call until it returns something else.
 */
enum sg_flash_result sg_flash_write(struct sg_flash *f, uint32_t offset, const void *buf,
                                    uint32_t len);
/*
 * The update is complete.  GOOD: the next reset starts it; PENDING: as LATER; else it is dropped.
 * @judge, if not NULL, makes the final decision on a firmware that is otherwise good.
 */
#define SG_FLASH_PENDING SG_FLASH_REASONS
enum sg_flash_reason sg_flash_commit(struct sg_flash *f, uint32_t len,
                                     bool (*judge)(void *opaque, const struct sg_firmware *fw),
                                     void *opaque);

#endif
