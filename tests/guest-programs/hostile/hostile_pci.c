/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See hostile_pci.h. */
#include "hostile_pci.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/pci_regs.h>

#include <staghorn/regs.h>

static const char *folder;
volatile uint8_t *regs, *doorbells, *msix;
uint64_t bar_at[3];
uint8_t *mem;
uint64_t bus[PAGES];
static int config;

_Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

uint32_t reg_read(uint32_t at)
{
    return le32toh(*(volatile uint32_t *)(regs + at));
}

void reg_write(uint32_t at, uint32_t value)
{
    *(volatile uint32_t *)(regs + at) = htole32(value);
}

void reg_write64(uint32_t at, uint64_t value)
{
    reg_write(at, (uint32_t)value);
    reg_write(at + 4, (uint32_t)(value >> 32));
}

void ring(unsigned page, unsigned at, uint32_t number, uint32_t index)
{
    *(volatile uint64_t *)(doorbells + page * SG_UAR_SIZE + at) =
        htole64(number | (uint64_t)index << 32);
}

static volatile uint8_t *map_bar(int number, size_t len)
{
    char path[300];
    void *p;
    int fd;

    snprintf(path, sizeof(path), "%s/resource%d", folder, number);
    fd = open(path, O_RDWR | O_SYNC);
    p = fd < 0 ? MAP_FAILED : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        die(path);
    }
    close(fd);
    return p;
}

static void find_bars(void)
{
    unsigned long long start, end, flags;
    char path[300];
    unsigned i;
    FILE *f;

    snprintf(path, sizeof(path), "%s/resource", folder);
    f = fopen(path, "r");
    for (i = 0; f && i < 6 && fscanf(f, "%llx %llx %llx", &start, &end, &flags) == 3; i++) {
        if (i % 2 == 0) {
            bar_at[i / 2] = start;
        }
    }
    if (i < 6) {
        die(path);
    }
    fclose(f);
    regs = map_bar(SG_BAR_REGS, SG_REGS_SIZE);
    doorbells = map_bar(SG_BAR_DOORBELL, SG_DOORBELL_SIZE);
    msix = map_bar(SG_BAR_MSIX, PAGE);
}

static void take_memory(void)
{
    int fd = open("/proc/self/pagemap", O_RDONLY);
    uint64_t entry;
    unsigned i;

    mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || mem == MAP_FAILED || mlock(mem, PAGES * PAGE)) {
        die("memory");
    }
    memset(mem, 0, PAGES * PAGE);
    for (i = 0; i < PAGES; i++) {
        off_t at = (off_t)((uintptr_t)mem / PAGE + i) * 8;

        if (pread(fd, &entry, 8, at) != 8 || !(entry << 9)) {
            die("pagemap");
        }
        bus[i] = (entry & ((1ull << 55) - 1)) * PAGE;
    }
    close(fd);
}

uint8_t *page(unsigned n)
{
    return mem + n * PAGE;
}

unsigned capability(uint8_t id)
{
    uint8_t header[2] = { 0, 0 };
    uint8_t at = 0;
    unsigned n;

    if (pread(config, &at, 1, PCI_CAPABILITY_LIST) != 1) {
        return 0;
    }
    for (n = 0; at && n < 16; n++, at = header[1]) {
        if (pread(config, header, 2, at) != 2 || header[0] == id) {
            return header[0] == id ? at : 0;
        }
    }
    return 0;
}

void config_write(unsigned at, uint16_t value)
{
    uint16_t v = htole16(value);

    if (at && pwrite(config, &v, 2, at) != 2) {
        die("configuration space");
    }
}

void open_function(void)
{
    unsigned i;

    for (i = 0; i < 3; i++) {
        uint64_t at = htole64(bar_at[i]);

        if (pwrite(config, &at, i == 1 ? 8 : 4, PCI_BASE_ADDRESS_0 + 8 * i) < 0) {
            die("BAR");
        }
    }
    config_write(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    config_write(capability(PCI_CAP_ID_MSIX) + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
}

void take_adapter(const char *name)
{
    char path[300];

    folder = name;
    snprintf(path, sizeof(path), "%s/config", folder);
    config = open(path, O_RDWR);
    if (config < 0) {
        die(path);
    }
    find_bars();
    take_memory();
}
