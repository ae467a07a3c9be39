// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pmem_fill DEVICE MIB ROUNDS: memset of persistent memory, and a flush of all its lines.
 *
 * Prints how long each round took, the flush included.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    size_t size = argc == 4 ? strtoull(argv[2], NULL, 0) << 20 : 0;
    unsigned rounds = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
    int fd = argc == 4 ? open(argv[1], O_RDWR) : -1;
    char *memory;

    if (!size || !rounds || fd < 0) {
        fprintf(stderr, "usage: pmem_fill DEVICE MIB ROUNDS\n");
        return 2;
    }
    /* The mapping of a device begins and ends at 2 MiB. */
    memory =
        mmap(NULL, (size + (2 << 20) - 1) >> 21 << 21, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        perror(argv[1]);
        return 2;
    }
    for (unsigned round = 1; round <= rounds; round++) {
        double start = now();

        memset(memory, (int)round, size);
        for (size_t at = 0; at < size; at += LINE) {
            __asm__ volatile("clwb (%0)" ::"r"(memory + at) : "memory");
        }
        __asm__ volatile("sfence" ::: "memory");
        printf("seconds %.6f\n", now() - start);
    }
    return 0;
}
