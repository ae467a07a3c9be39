/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines that the adapter prints at power-on, for both images of the expansion ROM.
 *
 * Freestanding, and suitable for 16-bit code that has no memory except the stack: no variables, and
 * no function takes the address of a local variable (start.S says why).
 */
#ifndef SG_ROM_LINES_H
#define SG_ROM_LINES_H

typedef unsigned char u8;
typedef unsigned int u32;
/* The image's way to the adapter's registers: an address, or a handle. */
typedef unsigned long reg_place;

/* Provided by the image: reads a register, prints a character; each line ends with "\r\n". */
u32 reg_read(reg_place at, u32 reg);
void put_char(char c);

/*
 * Prints the adapter's lines, shorter than 80 columns unless their numbers are huge.
 * at: 0 if the registers cannot be reached; bdf: bus in bits 15:8, device and function below.
 */
void say_adapter(reg_place at, u32 bdf);

#endif
