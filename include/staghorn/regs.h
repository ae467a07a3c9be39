/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: PCI identity, control registers (BAR0) and doorbells (BAR2).
 *
 * Manual: docs/manual/registers.md.  Registers are 32 bits wide, little-endian, accessed aligned;
 * a 64-bit register is a low/high pair (low first), and may also be accessed as one 64-bit word.
 * Holes read as zero and ignore writes; both are guest errors.
 */
#ifndef STAGHORN_REGS_H
#define STAGHORN_REGS_H

#include "types.h"

enum sg_pci_identity {
    SG_PCI_VENDOR_ID = 0x1234,
    SG_PCI_DEVICE_ID = 0x5347,
    SG_PCI_SUBSYSTEM_ID = 0x0001,
    SG_PCI_CLASS = 0x0c06, /* serial bus, InfiniBand class: an RDMA adapter */
    SG_PCI_REVISION = 1,
};

enum sg_bar {
    SG_BAR_REGS = 0,     /* 64 KiB of control registers */
    SG_BAR_DOORBELL = 2, /* 64-bit, prefetchable: one 4 KiB page per user context */
    SG_BAR_MSIX = 4,     /* MSI-X table and pending bits */
};

enum sg_bar_size {
    SG_REGS_SIZE = 0x10000,
    SG_UAR_SIZE = 0x1000,
    SG_UAR_COUNT = 1024, /* page 0 belongs to the kernel */
    SG_DOORBELL_SIZE = SG_UAR_SIZE * SG_UAR_COUNT,
};

/* Interface version: the major half changes when an old driver cannot work any more. */
#define SG_VERSION_MAJOR 1
#define SG_VERSION_MINOR 0
#define SG_VERSION ((SG_VERSION_MAJOR << 16) | SG_VERSION_MINOR)
#define SG_MAGIC 0x48475453 /* "STGH" read as little-endian octets */

enum sg_reg {
    SG_REG_MAGIC = 0x000,      /* RO  SG_MAGIC */
    SG_REG_VERSION = 0x004,    /* RO  SG_VERSION */
    SG_REG_CTRL = 0x008,       /* RW  SG_CTRL_* */
    SG_REG_STATUS = 0x00c,     /* RO  SG_STATUS_* */
    SG_REG_FATAL = 0x010,      /* RO  enum sg_fatal, why STATUS.FATAL is set */
    SG_REG_VECTORS = 0x014,    /* RO  number of MSI-X vectors */
    SG_REG_MAC_LO = 0x018,     /* RO  octets 0-3 of the port's MAC, octet 0 in bits 7:0 */
    SG_REG_MAC_HI = 0x01c,     /* RO  octets 4-5 in bits 15:0 */
    SG_REG_GUID_LO = 0x020,    /* RO  node GUID */
    SG_REG_GUID_HI = 0x024,    /* RO */
    SG_REG_LINK_SPEED = 0x028, /* RO  Mbit/s, nominal */
    SG_REG_LINK_MTU = 0x02c,   /* RO  largest MTU that the port can carry, octets */
    SG_REG_FW_VERSION = 0x030, /* RO  of the running firmware: MAJOR << 16 | MINOR << 8 | PATCH */
    /* Losses of persistent memory at the machine's last power cut; all 0: there was none. */
    SG_REG_POWER_CUTS = 0x034, /* RO  power cuts so far */
    SG_REG_POWER_KEPT = 0x038, /* RO  64-octet lines under way at the last one: survivors */
    SG_REG_POWER_LOST = 0x03c, /* RO  the same: losses */

    /* Test registers: bring the bus up before any protocol works. */
    SG_REG_TEST_SCRATCH = 0x040,    /* RW  reads back inverted */
    SG_REG_TEST_IRQ = 0x044,        /* WO  raises the vector written */
    SG_REG_TEST_DMA_LO = 0x048,     /* RW  address of the test buffer */
    SG_REG_TEST_DMA_HI = 0x04c,     /* RW */
    SG_REG_TEST_DMA_LEN = 0x050,    /* RW  octets, 1..SG_TEST_DMA_MAX */
    SG_REG_TEST_DMA_CMD = 0x054,    /* WO  enum sg_test_dma */
    SG_REG_TEST_DMA_STATUS = 0x058, /* RO  0 done, else enum sg_status */

    /* Admin queue: two rings of guest memory, set while CTRL.ENABLE is clear. */
    SG_REG_ASQ_BASE_LO = 0x080, /* RW  admin submission ring, 4 KiB aligned */
    SG_REG_ASQ_BASE_HI = 0x084,
    SG_REG_ACQ_BASE_LO = 0x088, /* RW  admin completion ring, 4 KiB aligned */
    SG_REG_ACQ_BASE_HI = 0x08c,
    SG_REG_ADMIN_SIZE = 0x090, /* RW  entries of both rings, power of two, 2..256 */
    SG_REG_ADMIN_DB = 0x094,   /* WO  producer index of the submission ring (free running) */
    SG_REG_ADMIN_CI = 0x098,   /* WO  consumer index of the completion ring (free running) */

    /* Async event queue, set while CTRL.ENABLE is clear; vector 0. */
    SG_REG_AEQ_BASE_LO = 0x0a0, /* RW  4 KiB aligned, contiguous */
    SG_REG_AEQ_BASE_HI = 0x0a4,
    SG_REG_AEQ_SIZE = 0x0a8, /* RW  entries, power of two, 64..65536 */

    /* Event queue doorbells: eqn 0 is the async event queue. */
    SG_REG_EQ_DB = 0x1000, /* WO  + 4 * eqn: SG_EQ_DB_*; eqn < SG_EQ_COUNT */
};

enum sg_reg_limits {
    SG_TEST_DMA_MAX = 65536,
    SG_ADMIN_SIZE_MIN = 2,
    SG_ADMIN_SIZE_MAX = 256,
    SG_AEQ_SIZE_MIN = 64,
    SG_EQ_SIZE_MAX = 65536,
    SG_EQ_COUNT = 64,
};

/* SG_REG_CTRL.  Writing RESET returns the adapter to its power-on state (the bit reads as 0). */
#define SG_CTRL_ENABLE 0x00000001u
#define SG_CTRL_RESET 0x00000002u

/* SG_REG_STATUS */
#define SG_STATUS_READY 0x00000001u
#define SG_STATUS_FATAL 0x00000002u
#define SG_STATUS_LINK_UP 0x00000004u

/* SG_REG_EQ_DB: consumer index (free running, modulo 2^24) and re-arm. */
#define SG_EQ_DB_CI_MASK 0x00ffffffu
#define SG_EQ_DB_ARM 0x80000000u

enum sg_test_dma {
    SG_TEST_DMA_FILL = 1,   /* octet i of the buffer becomes i modulo 256 */
    SG_TEST_DMA_INVERT = 2, /* every octet of the buffer is inverted */
};

enum sg_fatal {
    SG_FATAL_NONE = 0,
    SG_FATAL_BAD_SETUP = 1,   /* ENABLE with unusable ring registers */
    SG_FATAL_DMA = 2,         /* an admin or event ring cannot be reached */
    SG_FATAL_ADMIN_INDEX = 3, /* admin doorbell beyond the ring */
    SG_FATAL_AEQ_OVERRUN = 4, /* async events lost: the driver does not consume */
    SG_FATAL_INJECTED = 5,    /* by the machine's owner, to test recovery */
    SG_FATAL_CHECK = 6,       /* the driver checker is strict, and the driver broke a rule */
};

/*
 * Doorbell page (BAR2, one per user context).  64-bit writes: the queue number in bits 31:0, the
 * new producer index (free running, 32 bits) in bits 63:32.  A doorbell is idempotent and may be
 * coalesced.  A queue that was not created for this page ignores it (and logs a guest error).
 */
enum sg_doorbell {
    SG_DB_SQ = 0x00,     /* send queue */
    SG_DB_RQ = 0x08,     /* receive queue */
    SG_DB_SRQ = 0x10,    /* shared receive queue */
    SG_DB_CQ_ARM = 0x18, /* bits 31:0: SG_CQ_ARM_*; bits 63:32: consumer index */
    SG_DB_CLOCK = 0x20,  /* read: 64 bits, ns, the clock of completion timestamps */
};

#define SG_CQ_ARM_CQN_MASK 0x00ffffffu
#define SG_CQ_ARM_SOLICITED 0x80000000u /* only a solicited or failed completion raises the event */

#endif
