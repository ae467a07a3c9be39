/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-driver/provider: regions, with a hash and without (dv.c, pd.c), between the models of
 * kernel and device in model.h.
 */
#include "model.h"

#include "staghorndv.h"

static char memory[8192];

static void reg__ordinary_says_nothing(void)
{
    struct sgdv_mr_attr attr;
    struct ibv_mr *mr;

    world_init();
    mr = sgp_reg_mr(&w.spd.ibpd, memory, sizeof(memory), 0x5000, IBV_ACCESS_FLUSH_GLOBAL);
    T_NOT_NULL(mr);
    mr->context = w.spd.ibpd.context; /* as libibverbs does */
    T_EQ_U64(kernel.mr_cmd_size, sizeof(struct ibv_reg_mr));
    T_EQ_U64(kernel.mr.ibv_cmd.hca_va, 0x5000);
    T_EQ_U64(kernel.mr.ibv_cmd.access_flags, IBV_ACCESS_FLUSH_GLOBAL);
    T_EQ_INT(sgdv_query_mr(mr, &attr, sizeof(attr)), 0);
    T_EQ_U64(attr.hash, SGDV_HASH_NONE);
    T_EQ_INT(sgp_dereg_mr(verbs_get_mr(mr)), 0);
    world_fini();
}

static void reg__tells_the_kernel(void)
{
    struct sgdv_mr_attr attr = {
        .comp_mask = SGDV_MR_ATTR_IOVA, .hash = SGDV_HASH_HMAC_SHA256, .key = "secret",
        .key_len = 6, .mem_type = SGDV_MEM_PERSISTENT, .mem_mode = SGDV_MODE_DIRECT, .iova = 0x80,
    }, found;
    struct ibv_mr *mr;

    world_init();
    w.ctx->features = ALL_FEATURES;
    w.ctx->hash_mask = 0x1e;
    mr = sgdv_reg_mr(&w.spd.ibpd, memory, sizeof(memory), IBV_ACCESS_REMOTE_READ, &attr);
    T_NOT_NULL(mr);
    T_TRUE(mr->addr == memory && mr->length == sizeof(memory));
    T_TRUE(mr->pd == &w.spd.ibpd && mr->context == w.spd.ibpd.context);
    T_EQ_U64(kernel.mr_cmd_size, sizeof(struct sgp_reg_mr_cmd));
    T_EQ_U64(kernel.mr.ibv_cmd.hca_va, 0x80);
    T_EQ_U64(kernel.mr.ibv_cmd.access_flags, IBV_ACCESS_REMOTE_READ);
    T_EQ_U64(kernel.mr.drv_payload.hash_alg, SG_HASH_HMAC_SHA256);
    T_EQ_U64(kernel.mr.drv_payload.hash_key_len, 6);
    T_EQ_MEM(kernel.mr.drv_payload.hash_key, "secret\0", 7);
    T_EQ_U64(kernel.mr.drv_payload.mem_type, SG_MEM_TYPE_PERSISTENT);
    T_EQ_U64(kernel.mr.drv_payload.mem_mode, SG_MEM_MODE_DIRECT);
    T_EQ_U64(kernel.mr.drv_payload.reserved, 0);
    memset(&found, 0xee, sizeof(found));
    T_EQ_INT(sgdv_query_mr(mr, &found, sizeof(found)), 0);
    T_EQ_U64(found.hash, SGDV_HASH_HMAC_SHA256);
    T_EQ_U64(found.key_len, 6);
    T_NULL(found.key);
    T_EQ_U64(found.mem_type, SGDV_MEM_PERSISTENT);
    T_EQ_U64(found.mem_mode, SGDV_MODE_DIRECT);
    T_EQ_INT(sgdv_query_mr(mr, &found, 4), EINVAL);
    T_EQ_INT(sgp_dereg_mr(verbs_get_mr(mr)), 0);
    ibv_dofork_range(memory, sizeof(memory)); /* as ibv_dereg_mr() does */

    /* A second region over the same memory, with another hash; its offsets are addresses. */
    attr = (struct sgdv_mr_attr){ .hash = SGDV_HASH_CRC32C, .iova = 0x80 };
    mr = sgdv_reg_mr(&w.spd.ibpd, memory, sizeof(memory), IBV_ACCESS_REMOTE_READ, &attr);
    T_NOT_NULL(mr);
    T_EQ_U64(kernel.mr.ibv_cmd.hca_va, (uintptr_t)memory);
    T_EQ_INT(sgp_dereg_mr(verbs_get_mr(mr)), 0);
    ibv_dofork_range(memory, sizeof(memory));
    world_fini();
}

static void reg__bad_arguments(void)
{
    static char key[65];
    static const struct {
        uint32_t features, hash_mask;
        struct sgdv_mr_attr attr;
        int kernel, err;
    } rows[] = {
        { ALL_FEATURES, 0x1e, { .comp_mask = 2 }, 0, EINVAL },
        { ALL_FEATURES, 0x1e, { .mem_type = 3 }, 0, EINVAL },
        { ALL_FEATURES, 0x1e, { .mem_mode = 3 }, 0, EINVAL },
        { ALL_FEATURES, 0x1e, { .hash = 5 }, 0, EOPNOTSUPP },
        { ALL_FEATURES, ~0u, { .hash = 31 }, 0, EOPNOTSUPP },
        { ALL_FEATURES, ~0u, { .hash = 0x101 }, 0, EOPNOTSUPP },
        { ALL_FEATURES, 0x02, { .hash = SGDV_HASH_SHA256 }, 0, EOPNOTSUPP },
        { 0, 0x1e, { .hash = SGDV_HASH_SHA256 }, 0, EOPNOTSUPP },
        { ALL_FEATURES, 0x1e, { .hash = SGDV_HASH_SHA256, .key = key, .key_len = 1 }, 0, EINVAL },
        { ALL_FEATURES, 0x1e, { .hash = SGDV_HASH_NONE, .key = key, .key_len = 1 }, 0, EINVAL },
        { ALL_FEATURES, 0x1e, { .hash = SGDV_HASH_HMAC_SHA256 }, 0, EINVAL },
        { ALL_FEATURES, 0x1e, { .hash = SGDV_HASH_HMAC_SHA256, .key_len = 8 }, 0, EINVAL },
        { ALL_FEATURES,
          0x1e,
          { .hash = SGDV_HASH_HMAC_SHA256, .key = key, .key_len = 65 },
          0,
          EINVAL },
        { ALL_FEATURES, 0x1e, { .hash = SGDV_HASH_SHA256 }, EACCES, EACCES },
        { ALL_FEATURES, 0x1e, { .mem_type = SGDV_MEM_PERSISTENT }, EINVAL, EINVAL },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        world_init();
        w.ctx->features = rows[i].features;
        w.ctx->hash_mask = rows[i].hash_mask;
        kernel.fail_mr = rows[i].kernel;
        errno = 0;
        T_NULL(sgdv_reg_mr(&w.spd.ibpd, memory, sizeof(memory), 0, &rows[i].attr));
        T_EQ_INT(errno, rows[i].err);
        world_fini();
    }
    world_init();
    strcpy(w.device.name, FOREIGN);
    T_NULL(sgdv_reg_mr(&w.spd.ibpd, memory, sizeof(memory), 0, &rows[0].attr));
    T_EQ_INT(errno, EOPNOTSUPP);
    world_fini();
}

static void hash__lengths(void)
{
    T_EQ_U64(sgdv_hash_len(SGDV_HASH_NONE), 0);
    T_EQ_U64(sgdv_hash_len(SGDV_HASH_CRC32C), 4);
    T_EQ_U64(sgdv_hash_len(SGDV_HASH_SHA256), 32);
    T_EQ_U64(sgdv_hash_len(SGDV_HASH_SHA512), 64);
    T_EQ_U64(sgdv_hash_len(SGDV_HASH_HMAC_SHA256), 32);
    T_EQ_U64(sgdv_hash_len((enum sgdv_hash)5), 0);
    T_EQ_U64(sgdv_hash_len((enum sgdv_hash) - 1), 0);
}

static const struct t_case cases[] = {
    { "an ordinary region has no private part", reg__ordinary_says_nothing },
    { "hash, key, type and mode reach the kernel", reg__tells_the_kernel },
    { "regions that cannot be", reg__bad_arguments },
    { "lengths of hashes", hash__lengths },
};

T_MAIN(cases)
