/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access to an adapter for a process of root: its BARs and configuration space, through sysfs, and
 * memory of the process whose bus addresses are known.
 */
#ifndef SG_TESTS_HOSTILE_PCI_H
#define SG_TESTS_HOSTILE_PCI_H

#include <stdint.h>

enum { PAGE = 4096, PAGES = 128 };

extern volatile uint8_t *regs, *doorbells, *msix;
extern uint64_t bar_at[3];  /* lengths of regs, doorbells, msix */
extern uint64_t bus[PAGES]; /* bus addresses of the pages */
extern uint8_t *mem;        /* PAGES pages */

/* Ends the program on an error of the environment. */
_Noreturn void die(const char *what);

/* FOLDER is the adapter's folder in sysfs. */
void take_adapter(const char *folder);
/* Sets the BARs to the kernel's values; enables memory, bus mastering and MSI-X. */
void open_function(void);
/* Returns the capability's offset in configuration space; 0: there is none. */
unsigned capability(uint8_t id);
/* Does nothing for offset 0. */
void config_write(unsigned at, uint16_t value);

uint8_t *page(unsigned n);
uint32_t reg_read(uint32_t at);
void reg_write(uint32_t at, uint32_t value);
void reg_write64(uint32_t at, uint64_t value);
/* Writes a doorbell of that page. */
void ring(unsigned page, unsigned at, uint32_t number, uint32_t index);

#endif
