/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images for tests: valid ones, and new checksums for changed ones.
 */
#ifndef SG_TESTS_FLASH_MAKE_H
#define SG_TESTS_FLASH_MAKE_H

#include "flash/image.h"

/* A valid expansion ROM of @units times 512 octets.  g_free(). */
uint8_t *make_rom(unsigned units);
/* A firmware with that ROM (0: none) and a profile without limits.  g_free(). */
uint8_t *make_firmware(const char *version, const char *profile, unsigned rom_units, size_t *len);
/* Gives a changed firmware a valid checksum. */
void reseal_firmware(uint8_t *fw, size_t len);
/* The whole chip, erased except for header and the firmware in slot 0, sequence 1.  g_free(). */
uint8_t *make_chip(const uint8_t *fw, size_t len);
/* Writes a firmware and its record to a slot. */
void fill_slot(uint8_t *chip, unsigned slot, uint32_t sequence, const uint8_t *fw, size_t len);

#endif
