/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stores to persistent memory by the CPU, and loads from it:
 *
 *   dax_store DEVICE write OFFSET TEXT     stores only
 *   dax_store DEVICE persist OFFSET TEXT   stores, CLFLUSHOPT of each line, SFENCE
 *   dax_store DEVICE fill OFFSET LENGTH OCTET
 *   dax_store DEVICE read OFFSET LENGTH    prints text; unprintable octets as dots
 *   dax_store DEVICE count OFFSET LENGTH OCTET   how many octets have that value
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, HUGE = 2 << 20 };

static char *map(const char *device, size_t offset, size_t len)
{
    size_t from = offset & ~(size_t)(HUGE - 1);
    size_t size = (offset + len - from + HUGE - 1) & ~(size_t)(HUGE - 1);
    int fd = open(device, O_RDWR);
    char *p;

    if (fd < 0) {
        perror(device);
        exit(1);
    }
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, from);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return p + (offset - from);
}

static void flush(const char *p, size_t len)
{
    uintptr_t at = (uintptr_t)p & ~(uintptr_t)(LINE - 1);

    for (; at < (uintptr_t)p + len; at += LINE) {
        __asm__ volatile("clflushopt (%0)" : : "r"(at) : "memory");
    }
    __asm__ volatile("sfence" : : : "memory");
}

int main(int argc, char **argv)
{
    const char *what = argc > 4 ? argv[2] : "";
    size_t offset = argc > 3 ? strtoull(argv[3], NULL, 0) : 0, len, n = 0;
    char *p;

    if (!strcmp(what, "write") || !strcmp(what, "persist")) {
        len = strlen(argv[4]);
        p = map(argv[1], offset, len);
        memcpy(p, argv[4], len);
        if (!strcmp(what, "persist")) {
            flush(p, len);
        }
        puts("stored");
        return 0;
    }
    if (!*what || (argc != 5 && argc != 6)) {
        fprintf(stderr, "dax_store DEVICE write|persist OFFSET TEXT | read OFFSET LENGTH | "
                        "fill|count OFFSET LENGTH OCTET\n");
        return 2;
    }
    len = strtoull(argv[4], NULL, 0);
    p = map(argv[1], offset, len);
    if (!strcmp(what, "fill") && argc == 6) {
        memset(p, atoi(argv[5]), len);
        puts("stored");
    } else if (!strcmp(what, "count") && argc == 6) {
        for (size_t i = 0; i < len; i++) {
            n += (uint8_t)p[i] == (uint8_t)atoi(argv[5]);
        }
        printf("%zu\n", n);
    } else if (!strcmp(what, "read")) {
        for (size_t i = 0; i < len; i++) {
            putchar(isprint((uint8_t)p[i]) ? p[i] : '.');
        }
        putchar('\n');
    } else {
        return 2;
    }
    return 0;
}
