/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the adapter says at power-on, for both images of the expansion ROM.
 *
 * Freestanding, and fit for 16-bit code that has no memory but the stack: no variables, and no
 * function takes the address of a local variable (start.S says why).
 */
#ifndef SG_ROM_LINES_H
#define SG_ROM_LINES_H

typedef unsigned char u8;
typedef unsigned int u32;
/* Where the image finds the adapter's registers: an address, or what it reaches them through. */
typedef unsigned long reg_place;

/* The image's: one register, and one letter of the text; each line ends with "\r\n". */
u32 reg_read(reg_place at, u32 reg);
void put_char(char c);

/*
 * The adapter's lines, of less than 80 columns where their numbers are not huge.
 * at: 0 if there is no way to its registers; bdf: bus in bits 15:8, device and function below.
 */
void say_adapter(reg_place at, u32 bdf);

#endif
