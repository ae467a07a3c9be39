/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: flash images and updates.
 *
 * An input changes some octets of a valid chip, and corrects its checksums or not.  Then come
 * updates to valid firmware with some octets changed, in pieces of any size and order, commits and
 * resets.  The
 * running firmware must always parse, and a chip that was accepted once must always boot.
 */
#include <glib.h>
#include <inttypes.h>

#include "base/crc32c.h"
#include "flash/chip.h"
#include "flash_make.h"
#include "fuzz.h"

static uint64_t accepted, refused, committed, booted;

static void change(struct fuzz_in *in, uint8_t *octets, size_t len)
{
    for (unsigned n = fuzz_below(in, 4); n; n--) {
        size_t at = fuzz_u16(in) % len;

        octets[at] = fuzz_u8(in);
    }
}

static void reseal_chip(uint8_t *chip)
{
    struct sg_flash_slot *slot = (void *)(chip + SG_FLASH_SLOT_BASE);
    struct sg_flash_header *header = (void *)chip;

    sg_put_le32(&header->crc, sg_crc32c(0, header, offsetof(struct sg_flash_header, crc)));
    sg_put_le32(&slot->crc, sg_crc32c(0, slot, offsetof(struct sg_flash_slot, crc)));
}

static struct sg_flash *make(struct fuzz_in *in, uint8_t *fw, size_t len)
{
    const struct sg_flash_ops none = { 0 };
    uint8_t *chip = make_chip(fw, len);
    size_t size = fuzz_rarely(in, 16) ? fuzz_u32(in) % SG_FLASH_SIZE : SG_FLASH_SIZE;
    struct sg_flash *f;
    char *why = NULL;

    if (fuzz_rarely(in, 2)) {
        change(in, chip, sizeof(struct sg_flash_header));
    }
    if (fuzz_rarely(in, 2)) {
        change(in, chip + SG_FLASH_SLOT_BASE, sizeof(struct sg_flash_slot));
    }
    if (fuzz_rarely(in, 2)) {
        change(in, chip + SG_FLASH_SLOT_BASE + SG_FLASH_FW_OFFSET, len);
    }
    if (fuzz_rarely(in, 2)) {
        reseal_chip(chip);
    }
    f = sg_flash_new(sg_span_of(chip, size), &none, &why);
    sg_assert(!f == !!why);
    accepted += !!f;
    refused += !f;
    g_free(why);
    g_free(chip);
    return f;
}

static void step(struct fuzz_in *in, struct sg_flash *f, uint8_t *fw, size_t len, uint32_t *at)
{
    uint32_t n = fuzz_u16(in) % 5000;

    switch (fuzz_below(in, 8)) {
    case 0:
        booted += sg_flash_boot(f);
        break;
    case 1:
        committed += sg_flash_commit(f, fuzz_rarely(in, 4) ? fuzz_u32(in) : *at, NULL, NULL) ==
                     SG_FLASH_GOOD;
        *at = 0;
        break;
    case 2:
        *at = fuzz_rarely(in, 2) ? 0 : fuzz_u32(in);
        break;
    case 3:
        change(in, fw, sizeof(struct sg_fw_header));
        reseal_firmware(fw, len);
        break;
    default:
        n = *at < len ? SG_MIN(n, len - *at) : 1;
        if (sg_flash_write(f, *at, fw + (*at < len ? *at : 0), n) == SG_FLASH_OK) {
            *at += n;
        }
    }
}

static void check(const struct sg_flash *f)
{
    const struct sg_slot_state *running = sg_flash_slot(f, sg_flash_running(f));

    sg_assert(running->reason == SG_FLASH_GOOD);
    sg_assert(sg_flash_slot(f, sg_flash_stored(f))->reason == SG_FLASH_GOOD);
    sg_assert(running->fw.version[0] && running->fw.profile.name[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = { data, size };
    size_t len;
    uint8_t *fw = make_firmware("1.2.3", "full", 1 + fuzz_below(&in, 4), &len);
    struct sg_flash *f = make(&in, fw, len);
    uint32_t at = 0;

    while (f && in.len) {
        step(&in, f, fw, len, &at);
        check(f);
    }
    sg_flash_free(f);
    g_free(fw);
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len,
             "accepted %" PRIu64 " refused %" PRIu64 " committed %" PRIu64 " booted %" PRIu64,
             accepted, refused, committed, booted);
    return accepted && refused && committed && booted;
}
