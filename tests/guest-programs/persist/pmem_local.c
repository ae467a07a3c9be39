// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pmem_local VERB DEVICE [OFFSET LENGTH SEED]: a program of PMDK's libpmem2 on its own NVDIMM.
 *
 *   info     size, store granularity
 *   write    a pattern at OFFSET, persistent when this returns
 *   dirty    the same, but stored only, neither flushed nor drained
 *   check    status 0 if that pattern is there
 *   churn    stores and persists an atom somewhere in the range, SEED times; prints the rate
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libpmem2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct pmem_local_memory {
    struct pmem2_map *map;
    uint8_t *start;
    size_t size;
};

static void must(int ret, const char *what)
{
    if (ret != 0) {
        fprintf(stderr, "%s: %s\n", what, pmem2_errormsg());
        exit(2);
    }
}

static struct pmem_local_memory map_device(const char *name)
{
    struct pmem2_source *source = NULL;
    struct pmem2_config *config = NULL;
    struct pmem_local_memory memory;
    int fd = open(name, O_RDWR);

    if (fd < 0) {
        perror(name);
        exit(2);
    }
    must(pmem2_source_from_fd(&source, fd), "pmem2_source_from_fd");
    must(pmem2_config_new(&config), "pmem2_config_new");
    must(pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_CACHE_LINE),
         "pmem2_config_set_required_store_granularity");
    must(pmem2_map_new(&memory.map, config, source), "pmem2_map_new");
    memory.start = pmem2_map_get_address(memory.map);
    memory.size = pmem2_map_get_size(memory.map);
    return memory;
}

static void info(struct pmem_local_memory memory)
{
    static const char *const names[] = { "byte", "cache line", "page" };

    printf("size: %zu\ngranularity: %s\n", memory.size,
           names[pmem2_map_get_store_granularity(memory.map)]);
}

static uint8_t *make_pattern(uint64_t length, uint64_t seed)
{
    uint8_t *data = malloc(length);
    uint64_t x = seed * 2 + 1;

    if (data == NULL) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    for (uint64_t i = 0; i < length; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = x >> 56;
    }
    return data;
}

static int check(const uint8_t *found, const uint8_t *wanted, uint64_t length)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < length; i++) {
        wrong += found[i] != wanted[i];
    }
    printf("wrong: %" PRIu64 " of %" PRIu64 "\n", wrong, length);
    return wrong != 0;
}

static void churn(struct pmem_local_memory memory, uint64_t offset, uint64_t length, uint64_t times)
{
    pmem2_persist_fn persist = pmem2_get_persist_fn(memory.map);
    struct timespec start, end;
    uint64_t x = 1;
    double seconds;

    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t n = 0; n < times; n++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t *atom = (uint64_t *)(memory.start + offset + (x >> 20) % length / 8 * 8);

        *atom = n;
        persist(atom, sizeof(*atom));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    printf("persisted: %.0f a second\n", (double)times / seconds);
}

int main(int argc, char **argv)
{
    uint64_t offset, length, seed;
    struct pmem_local_memory memory;
    uint8_t *data;

    if (argc == 3 && strcmp(argv[1], "info") == 0) {
        info(map_device(argv[2]));
        return 0;
    }
    if (argc != 6) {
        fprintf(stderr, "usage: pmem_local info|write|dirty|check|churn DEVICE "
                        "[OFFSET LENGTH SEED]\n");
        return 2;
    }
    memory = map_device(argv[2]);
    offset = strtoull(argv[3], NULL, 0);
    length = strtoull(argv[4], NULL, 0);
    seed = strtoull(argv[5], NULL, 0);
    if (offset > memory.size || length > memory.size - offset) {
        fprintf(stderr, "the device has only %zu octets\n", memory.size);
        return 2;
    }
    if (strcmp(argv[1], "churn") == 0) {
        churn(memory, offset, length, seed);
        return 0;
    }
    data = make_pattern(length, seed);
    if (strcmp(argv[1], "check") == 0) {
        return check(memory.start + offset, data, length);
    }
    if (strcmp(argv[1], "dirty") == 0) {
        pmem2_get_memcpy_fn(memory.map)(memory.start + offset, data, length,
                                        PMEM2_F_MEM_NOFLUSH | PMEM2_F_MEM_TEMPORAL);
    } else {
        pmem2_get_memcpy_fn(memory.map)(memory.start + offset, data, length, 0);
    }
    return 0;
}
