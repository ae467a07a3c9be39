/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C library's assert.h as far as include/staghorn needs it: the ROM has no C library, and
 * 16-bit code cannot include the host's.
 */
#ifndef SG_ROM_ASSERT_H
#define SG_ROM_ASSERT_H

#define static_assert _Static_assert

#endif
