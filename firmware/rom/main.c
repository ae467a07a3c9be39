/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expansion ROM: says at power-on which adapter there is, and what the last power cut has left.
 *
 * In lines of less than 80 columns, on the screen through INT 10h and on the first serial port.  A
 * BIOS that serves INT 10h itself without a video card (a serial console) writes to that port
 * already, so then the port is left to it.  Real mode, no memory but the stack: see start.S for
 * what the code may not do.
 */
#include "staghorn/regs.h"

typedef unsigned char u8;
typedef unsigned int u32;

enum {
    PCI_COMMAND = 0x04, PCI_BAR0 = 0x10, PCI_MEMORY_ON = 2,
    COM1 = 0x3f8, COM_STATUS = COM1 + 5, COM_ROOM = 0x20, COM_PATIENCE = 100000,
    BIOS_SEGMENT = 0xf000, NO_SCREEN = 0x0f00,
};

/* PCI Firmware Specification 3.0, section 5.1.2. */
struct pcir {
    u8 signature[4];
    __le16 vendor, device, devices, length;
    u8 revision, class[3];
    __le16 image_length; /* units of 512 octets; sg-flash sets it */
    __le16 code_revision;
    u8 code_type, last;
    __le16 reserved;
};
SG_ASSERT_SIZE(struct pcir, 24);

__attribute__((section(".pcir"), used)) const struct pcir pcir = {
    .signature = { 'P', 'C', 'I', 'R' },
    .vendor = SG_PCI_VENDOR_ID, .device = SG_PCI_DEVICE_ID, .length = sizeof(struct pcir),
    .class = { 0, SG_PCI_CLASS & 0xff, SG_PCI_CLASS >> 8 },
    .code_revision = 1, .last = 0x80,
};

/*
 * Plug and Play BIOS Specification 1.0a, section 3.2: with this header, which says that nothing can
 * be booted, a BIOS calls the ROM at once and tells which function it belongs to.
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
    CLASS_LOW = SG_PCI_CLASS & 0xff, CLASS_HIGH = SG_PCI_CLASS >> 8,
    PNP_SUM = '$' + 'P' + 'n' + 'P' + 1 + sizeof(struct pnp) / 16 + CLASS_LOW + CLASS_HIGH,
};

__attribute__((section(".pcir"), used)) const struct pnp pnp = {
    .signature = { '$', 'P', 'n', 'P' }, .revision = 1, .length = sizeof(struct pnp) / 16,
    .checksum = (u8)-PNP_SUM, .class = { CLASS_HIGH, CLASS_LOW, 0 },
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

static void put_char(char c)
{
    int screen = screen_mode() != NO_SCREEN;

    if (screen) {
        screen_char((u8)c);
    }
    if (!screen || screen_vector() >> 16 != BIOS_SEGMENT) {
        serial_char(c);
    }
}

static void put_text(const char *text)
{
    while (*text) {
        put_char(*text++);
    }
}

static void put_hex(u32 value, int digits)
{
    while (digits--) {
        u32 digit = value >> (4 * digits) & 15;

        put_char(digit < 10 ? '0' + digit : 'a' + digit - 10);
    }
}

static void put_number(u32 value)
{
    u32 unit = 1;

    while (value / unit > 9) {
        unit *= 10;
    }
    for (; unit; unit /= 10) {
        put_char('0' + value / unit % 10);
    }
}

static void put_end(void)
{
    put_text("\r\n");
}

static void put_mac(u32 regs)
{
    u32 lo = mmio_read(regs + SG_REG_MAC_LO), hi = mmio_read(regs + SG_REG_MAC_HI);

    for (int i = 0; i < 6; i++) {
        put_hex(i < 4 ? lo >> (8 * i) : hi >> (8 * (i - 4)), 2);
        if (i < 5) {
            put_char(':');
        }
    }
}

static void put_version(u32 word)
{
    put_number(word >> 16 & 255);
    put_char('.');
    put_number(word >> 8 & 255);
    put_char('.');
    put_number(word & 255);
}

static void put_adapter(u32 regs)
{
    put_text(", firmware ");
    put_version(mmio_read(regs + SG_REG_FW_VERSION));
    put_end();
    put_text("  MAC ");
    put_mac(regs);
    if (mmio_read(regs + SG_REG_STATUS) & SG_STATUS_LINK_UP) {
        put_text(", link up, ");
        put_number(mmio_read(regs + SG_REG_LINK_SPEED));
        put_text(" Mbit/s");
    } else {
        put_text(", link down");
    }
    put_end();
}

static void put_power_cut(u32 regs)
{
    u32 cuts = mmio_read(regs + SG_REG_POWER_CUTS);

    if (!cuts) {
        return;
    }
    put_text("  power cut ");
    put_number(cuts);
    put_text(": persistent memory kept ");
    put_number(mmio_read(regs + SG_REG_POWER_KEPT));
    put_text(" lines that were under way, lost ");
    put_number(mmio_read(regs + SG_REG_POWER_LOST));
    put_end();
}

/* bdf: bus in bits 15:8, device and function below. */
void rom_main(u32 bdf)
{
    u32 regs = pci_config(bdf, PCI_BAR0) & ~15u;

    put_text("Staghorn iWARP RDMA adapter at ");
    put_hex(bdf >> 8 & 255, 2);
    put_char(':');
    put_hex(bdf >> 3 & 31, 2);
    put_char('.');
    put_hex(bdf & 7, 1);
    if (!regs || !(pci_config(bdf, PCI_COMMAND) & PCI_MEMORY_ON) ||
        mmio_read(regs + SG_REG_MAGIC) != SG_MAGIC) {
        put_text(": its registers do not answer");
        put_end();
        return;
    }
    put_adapter(regs);
    put_power_cut(regs);
}
