// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes one doorbell of an adapter that no driver holds, as root: ring_doorbell FOLDER AT VALUE.
 * FOLDER is the adapter's in sysfs, AT an offset in BAR2.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { DOORBELL_SIZE = 0x400000 };

static __attribute__((noinline)) void ring(volatile uint64_t *doorbell, uint64_t value)
{
    *doorbell = value;
}

int main(int argc, char **argv)
{
    unsigned long at;
    char path[256];
    uint8_t *bar;
    int fd;

    if (argc != 4) {
        fprintf(stderr, "usage: ring_doorbell FOLDER AT VALUE\n");
        return 2;
    }
    at = strtoul(argv[2], NULL, 0);
    if (at > DOORBELL_SIZE - sizeof(uint64_t) || at % sizeof(uint64_t)) {
        fprintf(stderr, "ring_doorbell: there is no doorbell at 0x%lx\n", at);
        return 2;
    }
    snprintf(path, sizeof(path), "%s/resource2", argv[1]);
    fd = open(path, O_RDWR | O_SYNC);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    bar = mmap(NULL, DOORBELL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bar == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    ring((volatile uint64_t *)(bar + at), strtoull(argv[3], NULL, 0));
    return 0;
}
