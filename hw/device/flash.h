/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flash of an adapter on QEMU: where its content lives, and what the bus sees of it.
 */
#ifndef SG_DEVICE_FLASH_H
#define SG_DEVICE_FLASH_H

#include "qemu/osdep.h"
#include "hw/pci/pci_device.h"
#include "flash/chip.h"
#include "verbs/adapter.h"

struct StaghornState;
struct sg_pm_cut;

struct StaghornFlashJob;

typedef struct StaghornFlash {
    struct sg_flash *chip;   /* NULL: the adapter has no image */
    char *path;              /* of the image */
    int fd;                  /* written through to; -1: not */
    struct StaghornFlashJob *job; /* a thread writes to it */
    uint8_t vpd_cap;         /* offset of the capability; 0: none */
    uint8_t vpd[256];        /* vital product data, PCI 3.0 appendix I */
    unsigned vpd_len;
    struct sg_adapter_config before; /* the configuration without a profile */
    struct sg_adapter_config bound;  /* the limits of any profile that comes later */
} StaghornFlash;

/* Loads the image of the property romfile, if there is one, and takes the property over. */
bool staghorn_flash_init(struct StaghornState *s, Error **errp);
/* The profile of the firmware that runs, over the properties that were not given. */
bool staghorn_flash_configure(struct StaghornState *s, Error **errp);
/* Capability and expansion ROM; at the end of realize. */
bool staghorn_flash_expose(struct StaghornState *s, Error **errp);
/* The expansion ROM is off the bus; then, when the core is gone, all else. */
void staghorn_flash_hide(struct StaghornState *s);
void staghorn_flash_exit(struct StaghornState *s);
/* Reset of the function: what an update has stored runs from now on. */
void staghorn_flash_boot(struct StaghornState *s);
/* Configuration space was written. */
void staghorn_flash_write_config(struct StaghornState *s, uint32_t addr, int len);
/* struct sg_host_ops.pm_last_cut */
bool staghorn_last_cut(void *opaque, struct sg_pm_cut *cut);

#endif
