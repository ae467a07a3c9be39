/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flash of an adapter on QEMU: the storage of its content, and what the bus sees of it.
 */
#ifndef SG_DEVICE_FLASH_FILE_H
#define SG_DEVICE_FLASH_FILE_H

#include "qemu/osdep.h"
#include "hw/pci/pci_device.h"
#include "flash/chip.h"
#include "verbs/adapter.h"

struct StaghornState;
struct sg_pm_cut;

struct StaghornFlashJob;

typedef struct StaghornFlash {
    struct sg_flash *chip;        /* NULL: the adapter has no image */
    char *path;                   /* of the image */
    int fd;                       /* of the file that is written through to; -1: none */
    struct StaghornFlashJob *job; /* a thread writes to it */
    uint8_t vpd_cap;              /* offset of the capability; 0: none */
    uint8_t vpd[256];             /* vital product data, PCI 3.0 appendix I */
    unsigned vpd_len;
    struct sg_adapter_config before; /* the configuration without a profile */
    struct sg_adapter_config bound;  /* the limits for any later profile */
} StaghornFlash;

/* How often guests have written to the flash of an adapter, since the start of the process. */
uint64_t staghorn_flash_writes(void);
/* Loads the image of the property romfile, if it is set, and takes the property over. */
bool staghorn_flash_init(struct StaghornState *s, Error **errp);
/* Applies the profile of the running firmware to the properties that were not set explicitly. */
bool staghorn_flash_configure(struct StaghornState *s, Error **errp);
/* Capability and expansion ROM; at the end of realize. */
bool staghorn_flash_expose(struct StaghornState *s, Error **errp);
/* Takes the expansion ROM off the bus; the second one frees the rest when the core is gone. */
void staghorn_flash_hide(struct StaghornState *s);
void staghorn_flash_exit(struct StaghornState *s);
/* Reset of the function: starts what an update has stored. */
void staghorn_flash_boot(struct StaghornState *s);
/* Configuration space was written. */
void staghorn_flash_write_config(struct StaghornState *s, uint32_t addr, int len);
/* struct sg_host_ops.pm_last_cut */
bool staghorn_last_cut(void *opaque, struct sg_pm_cut *cut);

#endif
