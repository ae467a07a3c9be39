/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registration for Flush and Verify: granted rights, types of memory, hashes. */
#include "mpe_rig.h"

static enum sg_status reg(const struct sg_cmd_reg_mr *c)
{
    struct sg_adapter_census before, after;
    struct sg_admin_rsp rsp;
    enum sg_status status;

    sg_adapter_census(pair.side[1].md.a, &before);
    status = md_cmd(&pair.side[1].md, c, sizeof(*c), &rsp);
    sg_adapter_census(pair.side[1].md.a, &after);
    T_EQ_U64(after.mrs - before.mrs, status == SG_OK);
    if (status == SG_OK) {
        T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DEREG_MR, sg_get_le32(&rsp.id)), SG_OK);
    }
    return status;
}

enum { PERSISTENT, ORDINARY, MIXED };
static const struct {
    uint32_t off, len;
} where[] = {
    [PERSISTENT] = { 100, 5000 },
    [ORDINARY] = { PM_LEN + 4096, 5000 },
    [MIXED] = { PM_LEN - 4096, 8192 },
};

static void memory(void)
{
    static const struct {
        const char *name;
        uint8_t where;
        uint32_t access;
        uint8_t type;
        enum sg_status status, without; /* with and without a domain */
    } rows[] = {
        { "P on persistent", PERSISTENT, SG_ACCESS_FLUSH_PERSISTENT, 0, SG_OK, SG_ENOTPMEM },
        { "P on ordinary", ORDINARY, SG_ACCESS_FLUSH_PERSISTENT, 0, SG_ENOTPMEM, SG_ENOTPMEM },
        { "P on some", MIXED, SG_ACCESS_FLUSH_PERSISTENT, 0, SG_ENOTPMEM, SG_ENOTPMEM },
        { "P and G on persistent", PERSISTENT, ALL_FLUSH, 0, SG_OK, SG_ENOTPMEM },
        { "P and G on ordinary", ORDINARY, ALL_FLUSH, 0, SG_ENOTPMEM, SG_ENOTPMEM },
        { "G on persistent", PERSISTENT, SG_ACCESS_FLUSH_GLOBAL, 0, SG_OK, SG_OK },
        { "G on ordinary", ORDINARY, SG_ACCESS_FLUSH_GLOBAL, 0, SG_OK, SG_OK },
        { "G on some", MIXED, SG_ACCESS_FLUSH_GLOBAL, 0, SG_OK, SG_OK },
        { "neither on persistent", PERSISTENT, 0, 0, SG_OK, SG_OK },
        { "persistent claimed", PERSISTENT, 0, SG_MEM_TYPE_PERSISTENT, SG_OK, SG_ENOTPMEM },
        { "persistent claimed of ordinary", ORDINARY, 0, SG_MEM_TYPE_PERSISTENT, SG_ENOTPMEM,
          SG_ENOTPMEM },
        { "persistent claimed of some", MIXED, 0, SG_MEM_TYPE_PERSISTENT, SG_ENOTPMEM,
          SG_ENOTPMEM },
        { "volatile claimed", ORDINARY, SG_ACCESS_FLUSH_GLOBAL, SG_MEM_TYPE_VOLATILE, SG_OK,
          SG_OK },
        { "volatile claimed of persistent", PERSISTENT, 0, SG_MEM_TYPE_VOLATILE, SG_ENOTPMEM,
          SG_OK },
        { "volatile claimed of some", MIXED, 0, SG_MEM_TYPE_VOLATILE, SG_ENOTPMEM, SG_OK },
    };
    struct sg_cmd_reg_mr c;
    size_t i;
    int domain;

    for (domain = 0; domain < 2; domain++) {
        if (domain) {
            place_start(NULL);
        } else {
            pair_start(&pair, NULL, NULL);
        }
        for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
            T_CONTEXT("%s, %s domain", rows[i].name, domain ? "with a" : "no");
            c = region_cmd(1, where[rows[i].where].off, where[rows[i].where].len,
                           rows[i].access | SG_ACCESS_REMOTE_WRITE, 0);
            c.mem_type = rows[i].type;
            T_EQ_U64(reg(&c), domain ? rows[i].status : rows[i].without);
        }
        pair_stop(&pair);
        if (domain) {
            test_pm_fini(&pm[0]);
            test_pm_fini(&pm[1]);
        }
    }
}

/* One page of many is ordinary memory. */
static void memory_by_pages(void)
{
    struct sg_cmd_reg_mr c;
    uint64_t list;
    uint32_t i;

    place_start(NULL);
    list = test_host_alloc(&pair.side[1].h, 4096, 4096);
    for (i = 0; i < 8; i++) {
        sg_put_le64(test_host_ptr(&pair.side[1].h, list + 8 * i), at(1, 4096 * (9 - i)));
    }
    c = region_cmd(1, 4096, 8 * 4096, ALL_FLUSH, 0);
    c.pages.levels = 1;
    sg_put_le64(&c.pages.addr, list);
    sg_put_le32(&c.pages.count, 8);
    T_EQ_U64(reg(&c), SG_OK);
    sg_put_le64(test_host_ptr(&pair.side[1].h, list + 8 * 5), at(1, PM_LEN));
    T_EQ_U64(reg(&c), SG_ENOTPMEM);
    /* A page of the list behind the region's end does not matter. */
    sg_put_le64(&c.length, 5 * 4096);
    T_EQ_U64(reg(&c), SG_OK);
    sg_put_le64(&c.length, 5 * 4096 + 1);
    T_EQ_U64(reg(&c), SG_ENOTPMEM);
    /* Ordinary pages on either side of the persistent ones. */
    c = region_cmd(1, 0, 8192, SG_ACCESS_FLUSH_GLOBAL, 0);
    c.mem_type = SG_MEM_TYPE_VOLATILE;
    c.pages.levels = 1;
    sg_put_le64(&c.pages.addr, list);
    sg_put_le64(test_host_ptr(&pair.side[1].h, list), at(1, PM_LEN));
    sg_put_le64(test_host_ptr(&pair.side[1].h, list + 8), TEST_HOST_BASE);
    T_EQ_U64(reg(&c), SG_OK);
    sg_put_le64(test_host_ptr(&pair.side[1].h, list + 8), at(1, PM_LEN - 4096));
    T_EQ_U64(reg(&c), SG_ENOTPMEM);
    pair_stop(&pair);
    test_pm_fini(&pm[0]);
    test_pm_fini(&pm[1]);
}

static void hashes(void)
{
    enum { V = SG_ACCESS_VERIFY, VR = V | SG_ACCESS_REMOTE_READ };
    static const struct {
        const char *name;
        uint32_t access;
        uint8_t alg, key_len, type, mode, flags;
        enum sg_status status;
    } rows[] = {
        { "verify without a hash", V, 0, 0, 0, 0, 0, SG_EINVAL },
        { "hash without verify", SG_ACCESS_REMOTE_READ, 1, 0, 0, 0, 0, SG_EINVAL },
        { "SHA-256", V, SG_HASH_SHA256, 0, 0, 0, 0, SG_OK },
        { "SHA-512", V, SG_HASH_SHA512, 0, 0, 0, 0, SG_OK },
        { "HMAC", V, SG_HASH_HMAC_SHA256, 1, 0, 0, 0, SG_OK },
        { "HMAC, longest key", V, SG_HASH_HMAC_SHA256, SG_HASH_KEY_MAX, 0, 0, 0, SG_OK },
        { "HMAC without a key", V, SG_HASH_HMAC_SHA256, 0, 0, 0, 0, SG_EINVAL },
        { "HMAC, key too long", V, SG_HASH_HMAC_SHA256, SG_HASH_KEY_MAX + 1, 0, 0, 0, SG_EINVAL },
        { "SHA-256 with a key", V, SG_HASH_SHA256, 8, 0, 0, 0, SG_EINVAL },
        { "key without a hash", 0, 0, 8, 0, 0, 0, SG_EINVAL },
        { "unknown hash", VR, SG_HASH_COUNT, 0, 0, 0, 0, SG_EINVAL },
        { "unknown hash 255", VR, 255, 0, 0, 0, 0, SG_EINVAL },
        { "reversible hash, readable", VR, SG_HASH_CRC32C, 0, 0, 0, 0, SG_OK },
        { "reversible hash, not readable", V, SG_HASH_CRC32C, 0, 0, 0, 0, SG_ENOVERIFY },
        { "reversible hash, writable", V | SG_ACCESS_REMOTE_WRITE, SG_HASH_CRC32C, 0, 0, 0, 0,
          SG_ENOVERIFY },
        { "verify of the whole memory", V, SG_HASH_SHA256, 0, 0, 0, SG_MR_WHOLE_MEMORY,
          SG_ENOVERIFY },
        { "flush of the whole memory", SG_ACCESS_FLUSH_GLOBAL, 0, 0, 0, 0, SG_MR_WHOLE_MEMORY,
          SG_EINVAL },
        { "unknown memory type", 0, 0, 0, 3, 0, 0, SG_EINVAL },
        { "unknown memory mode", 0, 0, 0, 0, 3, 0, SG_EINVAL },
        { "cached", 0, 0, 0, 0, SG_MEM_MODE_CACHED, 0, SG_OK },
        { "direct", 0, 0, 0, 0, SG_MEM_MODE_DIRECT, 0, SG_OK },
    };
    struct sg_cmd_reg_mr c;
    size_t i;

    place_start(NULL);
    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].name);
        c = region_cmd(1, 0, 4096, rows[i].access, 0);
        c.hash_alg = rows[i].alg;
        c.hash_key_len = rows[i].key_len;
        c.mem_type = rows[i].type;
        c.mem_mode = rows[i].mode;
        c.flags = rows[i].flags;
        T_EQ_U64(reg(&c), rows[i].status);
    }
    pair_stop(&pair);
    test_pm_fini(&pm[0]);
    test_pm_fini(&pm[1]);
}

static struct sg_caps query_caps(void)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_CAPS };
    uint64_t out = test_host_alloc(&pair.side[1].h, sizeof(struct sg_caps), 8);

    sg_put_le64(&c.out_addr, out);
    sg_put_le32(&c.out_len, sizeof(struct sg_caps));
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), NULL), SG_OK);
    return *(struct sg_caps *)test_host_ptr(&pair.side[1].h, out);
}

static void features(void)
{
    const uint32_t ours = SG_FEATURE_FLUSH | SG_FEATURE_VERIFY | SG_FEATURE_ATOMIC_WRITE;
    const uint32_t all = ours | SG_FEATURE_FLUSH_PERSISTENT;
    static const uint32_t rights[] = { SG_ACCESS_FLUSH_GLOBAL, SG_ACCESS_FLUSH_PERSISTENT,
                                       SG_ACCESS_VERIFY };
    struct sg_adapter_config config;
    struct md_qp_params params = { 0 };
    struct sg_cmd_create_qp q;
    struct sg_cmd_reg_mr c;
    struct sg_caps caps;
    unsigned draft, i;

    for (draft = SG_MPE_DRAFT_OFF; draft <= SG_MPE_DRAFT_02; draft++) {
        T_CONTEXT("draft %u", draft);
        pair_default_config(&config);
        T_EQ_U64(config.engine.mpe_draft, SG_MPE_DRAFT_02);
        config.engine.mpe_draft = draft;
        pair_start(&pair, &config, NULL);
        caps = query_caps();
        T_EQ_U64(sg_get_le32(&caps.features) & all, draft ? ours : 0);
        T_EQ_U64(sg_get_le32(&caps.hash_mask), draft ? 0x1e : 0);
        test_pm_init(&pm[1], &pair.side[1].h, at(1, 0), at(1, PM_LEN));
        caps = query_caps();
        T_EQ_U64(sg_get_le32(&caps.features) & all, draft ? all : 0);
        for (i = 0; i < SG_ARRAY_SIZE(rights); i++) {
            c = region_cmd(1, 0, 4096, rights[i],
                           rights[i] == SG_ACCESS_VERIFY ? SG_HASH_SHA256 : 0);
            T_EQ_U64(reg(&c), draft ? SG_OK : SG_ENOTSUP);
            params = (struct md_qp_params){
                .pd = pair.side[1].pd,
                .scq = &pair.side[1].cq,
                .rcq = &pair.side[1].cq,
                .access = rights[i],
            };
            q = md_create_qp_cmd(&pair.side[1].md, &params);
            T_EQ_U64(md_cmd(&pair.side[1].md, &q, sizeof(q), NULL), draft ? SG_OK : SG_ENOTSUP);
        }
        pair_stop(&pair);
        test_pm_fini(&pm[1]);
    }
}

/* The rights of a queue pair change like others. */
static void modify_rights(void)
{
    struct sg_cmd_modify_qp m = { .hdr.opcode = SG_ADMIN_MODIFY_QP };
    struct sg_adapter_config config;
    unsigned draft;

    for (draft = SG_MPE_DRAFT_OFF; draft <= SG_MPE_DRAFT_02; draft += SG_MPE_DRAFT_02) {
        pair_default_config(&config);
        config.engine.mpe_draft = draft;
        pair_start(&pair, &config, NULL);
        pair_open(&pair, NULL);
        sg_put_le32(&m.qpn, pair.side[1].qp.qpn);
        sg_put_le32(&m.mask, SG_QP_MOD_ACCESS);
        sg_put_le32(&m.access, ALL_RIGHTS);
        T_EQ_U64(md_cmd(&pair.side[1].md, &m, sizeof(m), NULL), draft ? SG_OK : SG_EINVAL);
        pair_stop(&pair);
    }
}

static const struct t_case cases[] = {
    { "REG_MR: flush rights and claims against the memory", memory },
    { "REG_MR: every page counts", memory_by_pages },
    { "REG_MR: hash algorithms, keys, modes", hashes },
    { "features and rights by draft", features },
    { "rights of a queue pair by draft", modify_rights },
};

T_MAIN(cases)
