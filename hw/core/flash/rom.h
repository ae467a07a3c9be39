/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expansion ROM: a chain of images, one for a PC's BIOS and one for UEFI, each field checked.
 */
#ifndef SG_FLASH_ROM_H
#define SG_FLASH_ROM_H

#include "base/span.h"
#include "staghorn/flash.h"

/* True if @rom (any octets) consists only of images for this adapter.  An empty ROM is good. */
bool sg_rom_ok(struct sg_span rom);

/*
 * The ROM of @bios, which has the header and the PCI data structure of its image, and @efi, a
 * driver for x86-64 as a PE32+ file (empty: none); lengths, offsets and checksum are filled in.
 * On NULL *why has the reason.  g_free() frees the ROM.
 */
uint8_t *sg_rom_make(struct sg_span bios, struct sg_span efi, size_t *len, const char **why);

#endif
