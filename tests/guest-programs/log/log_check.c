// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * log_check DEVICE SESSION ACKNOWLEDGED: checks a log on the machine that has it.
 *
 * Prints "tail T lost L broken B": the number of records by the tail, how many acknowledged records
 * are damaged or not within the tail, how many records within the tail are damaged.  Status 0 if
 * nothing is lost or broken, otherwise 1.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "log_format.h"

#define GRAIN (2ull << 20) /* of a devdax mapping */

static const uint8_t *map_records(const char *name, uint32_t records)
{
    uint64_t size = LOG_RECORDS + (uint64_t)records * LOG_RECORD;
    int fd = open(name, O_RDWR);
    const uint8_t *start;

    size = (size + GRAIN - 1) / GRAIN * GRAIN;
    start = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) {
        perror(name);
        exit(2);
    }
    return start;
}

int main(int argc, char **argv)
{
    uint32_t session, acknowledged, tail, lost = 0, broken = 0;
    const uint8_t *start;
    uint64_t atom;

    if (argc != 4) {
        fprintf(stderr, "usage: log_check DEVICE SESSION ACKNOWLEDGED\n");
        return 2;
    }
    session = strtoul(argv[2], NULL, 0);
    acknowledged = strtoul(argv[3], NULL, 0);
    memcpy(&atom, map_records(argv[1], 0) + LOG_TAIL, sizeof(atom));
    tail = atom >> 32 == session ? (uint32_t)atom : 0;
    start = map_records(argv[1], tail > acknowledged ? tail : acknowledged);
    for (uint32_t n = 0; n < tail || n < acknowledged; n++) {
        bool intact = log_intact(start + LOG_RECORDS + (uint64_t)n * LOG_RECORD, session, n);

        lost += n < acknowledged && (n >= tail || !intact);
        broken += n < tail && !intact;
    }
    printf("tail %u lost %u broken %u\n", tail, lost, broken);
    return lost || broken;
}
