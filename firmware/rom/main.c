/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The expansion ROM's image for a PC's BIOS: prints the adapter's lines at power-on (lines.c).
 *
 * It prints to the screen through INT 10h and to the first serial port.  A BIOS that serves INT 10h
 * itself without a video card (a serial console) already writes to that port, so the ROM does not.
 * The code runs in real mode without memory except the stack: see start.S for its restrictions.
 */
#include "lines.h"
#include "staghorn/regs.h"

enum {
    PCI_COMMAND = 0x04,
    PCI_BAR0 = 0x10,
    PCI_MEMORY_ON = 2,
    COM1 = 0x3f8,
    COM_STATUS = COM1 + 5,
    COM_ROOM = 0x20,
    COM_PATIENCE = 100000,
    BIOS_SEGMENT = 0xf000,
    NO_SCREEN = 0x0f00,
};

/* PCI Firmware Specification 3.0, section 5.1.2. */
struct pcir {
    u8 signature[4];
    __le16 vendor, device, devices, length;
    u8 revision, class[3];
    __le16 image_length; /* units of 512 octets; sg-flash sets it */
    __le16 code_revision;
    u8 code_type, last; /* last: sg-flash sets it */
    __le16 reserved;
};
SG_ASSERT_SIZE(struct pcir, 24);

__attribute__((section(".pcir"), used)) const struct pcir pcir = {
    .signature = { 'P', 'C', 'I', 'R' },
    .vendor = SG_PCI_VENDOR_ID,
    .device = SG_PCI_DEVICE_ID,
    .length = sizeof(struct pcir),
    .class = { 0, SG_PCI_CLASS & 0xff, SG_PCI_CLASS >> 8 },
    .code_revision = 1,
};

/*
 * Plug and Play BIOS Specification 1.0a, section 3.2: a BIOS calls a ROM with this header at once,
 * and passes the function that it belongs to.  The header says that nothing can be booted.
 */
struct pnp {
    u8 signature[4];
    u8 revision, length; /* units of 16 octets */
    __le16 next;
    u8 reserved, checksum;
    u8 device_id[4];
    __le16 manufacturer, product;
    u8 class[3], indicators;
    __le16 boot_connection, disconnect, bootstrap, reserved_26, resources;
};
SG_ASSERT_SIZE(struct pnp, 32);

enum {
    CLASS_LOW = SG_PCI_CLASS & 0xff,
    CLASS_HIGH = SG_PCI_CLASS >> 8,
    PNP_SUM = '$' + 'P' + 'n' + 'P' + 1 + sizeof(struct pnp) / 16 + CLASS_LOW + CLASS_HIGH,
};

__attribute__((section(".pcir"), used)) const struct pnp pnp = {
    .signature = { '$', 'P', 'n', 'P' },
    .revision = 1,
    .length = sizeof(struct pnp) / 16,
    .checksum = (u8)-PNP_SUM,
    .class = { CLASS_HIGH, CLASS_LOW, 0 },
};

u32 mmio_read(u32 address);
u32 pci_config(u32 bdf, u32 reg);
void screen_char(u32 c);
u32 screen_mode(void);
u32 screen_vector(void);
void rom_main(u32 bdf);

static inline u8 inb(unsigned short port)
{
    u8 value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "d"(port));
    return value;
}

static inline void outb(unsigned short port, u8 value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "d"(port));
}

static void serial_char(char c)
{
    int patience = COM_PATIENCE;

    if (inb(COM_STATUS) == 0xff) {
        return; /* no such port */
    }
    while (!(inb(COM_STATUS) & COM_ROOM)) {
        if (!--patience) {
            return;
        }
    }
    outb(COM1, c);
}

void put_char(char c)
{
    int screen = screen_mode() != NO_SCREEN;

    if (screen) {
        screen_char((u8)c);
    }
    if (!screen || screen_vector() >> 16 != BIOS_SEGMENT) {
        serial_char(c);
    }
}

u32 reg_read(reg_place at, u32 reg)
{
    return mmio_read(at + reg);
}

/* bdf: bus in bits 15:8, device and function below. */
void rom_main(u32 bdf)
{
    u32 regs = pci_config(bdf, PCI_BAR0) & ~15u;
    int on = pci_config(bdf, PCI_COMMAND) & PCI_MEMORY_ON;

    say_adapter(on ? regs : 0, bdf);
}
