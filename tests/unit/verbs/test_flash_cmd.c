/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles applied to configurations, the effect of masked features, and the FLASH_* commands. */
#include <glib.h>

#include "flash_make.h"
#include "rig.h"
#include "tap.h"

static struct solo s;
static struct sg_flash *chip;
static uint64_t buffer; /* of the guest */

static bool busy; /* the medium */

static enum sg_flash_medium program(void *opaque, uint32_t offset, const void *buf, uint32_t len)
{
    (void)opaque, (void)offset, (void)buf, (void)len;
    return busy ? SG_FLASH_BUSY : SG_FLASH_TAKEN;
}

static void begin(const struct sg_adapter_config *config)
{
    const struct sg_flash_ops ops = { .program = program };
    size_t len;
    uint8_t *fw = make_firmware("1.0.0", "full", 1, &len), *octets = make_chip(fw, len);
    char *why;

    chip = sg_flash_new(sg_span_of(octets, SG_FLASH_SIZE), &ops, &why);
    g_free(octets);
    g_free(fw);
    solo_new(&s, config, true);
    sg_adapter_set_flash(s.md.a, chip);
    buffer = test_host_alloc(&s.h, 8192, 4096);
}

static void end(void)
{
    solo_end(&s);
    sg_flash_free(chip);
}

static enum sg_status flash_cmd(uint8_t opcode, uint64_t addr, uint32_t len, uint32_t offset,
                                struct sg_admin_rsp *rsp)
{
    struct sg_cmd_flash c = { .hdr.opcode = opcode };

    sg_put_le64(&c.addr, addr);
    sg_put_le32(&c.len, len);
    sg_put_le32(&c.offset, offset);
    return md_cmd(&s.md, &c, sizeof(c), rsp);
}

static enum sg_status query(uint8_t opcode, void *out, size_t len)
{
    struct sg_cmd_query c = { .hdr.opcode = opcode };
    enum sg_status status;

    sg_put_le64(&c.out_addr, buffer);
    sg_put_le32(&c.out_len, len);
    status = md_cmd(&s.md, &c, sizeof(c), NULL);
    memcpy(out, test_host_ptr(&s.h, buffer), len);
    return status;
}

static enum sg_status write_all(const uint8_t *fw, size_t len)
{
    enum sg_status status = SG_OK;

    for (size_t at = 0, n; at < len && status == SG_OK; at += n) {
        n = SG_MIN(len - at, (size_t)SG_FLASH_CHUNK_MAX);
        memcpy(test_host_ptr(&s.h, buffer), fw + at, n);
        status = flash_cmd(SG_ADMIN_FLASH_WRITE, buffer, n, at, NULL);
    }
    return status;
}

/* ---- profiles ---- */

static bool is_set(void *opaque, const char *property)
{
    const char *const *given = opaque;

    for (; given && *given; given++) {
        if (!strcmp(*given, property)) {
            return true;
        }
    }
    return false;
}

static struct sg_profile_info tight(void)
{
    struct sg_profile_info p;

    sg_profile_init(&p, "tight");
    p.features = ~(SG_FEATURE_SRQ | SG_FEATURE_IMM);
    p.mpa_rev = 1, p.crc = 0, p.markers = 1, p.commit = 1, p.peer_to_peer = 0;
    p.max_qp = 2, p.max_cq = 3, p.max_mr = 4, p.max_pd = 5, p.max_qp_wr = 8, p.max_cqe = 16;
    p.max_sge = 1, p.max_inline = 0, p.max_ird = 1, p.max_ord = 0, p.max_conns = 6;
    p.max_listeners = 7, p.max_mr_size = 20;
    return p;
}

static void profile_wins_over_defaults(void)
{
    struct sg_profile_info p = tight();
    struct sg_adapter_config c;

    sg_adapter_default_config(&c);
    sg_profile_apply(&p, &c, is_set, NULL);
    T_EQ_U64(c.features, p.features);
    T_FALSE(c.engine.rfc7306); /* without atomics no immediate data */
    T_EQ_U64(c.engine.mpa_rev, 1);
    T_FALSE(c.engine.crc);
    T_TRUE(c.engine.markers);
    T_FALSE(c.engine.peer_to_peer);
    T_EQ_U64(c.engine.mpe_draft, SG_MPE_DRAFT_01);
    T_EQ_U64(c.max_qp + c.max_cq + c.max_mr + c.max_pd, 2 + 3 + 4 + 5);
    T_EQ_U64(c.max_qp_wr, 8);
    T_EQ_U64(c.max_cqe, 16);
    T_EQ_U64(c.max_sge, 1);
    T_EQ_U64(c.max_inline, 0);
    T_EQ_U64(c.engine.max_ird, 1);
    T_EQ_U64(c.engine.max_ord, 0);
    T_EQ_U64(c.max_conns, 6);
    T_EQ_U64(c.max_listeners, 7);
    T_EQ_U64(c.max_mr_size, 1 << 20);
}

static void properties_win_over_profile(void)
{
    static const char *const all[] = { "max-qp",      "max-cq",       "max-mr",    "max-pd",
                                       "max-qp-wr",   "max-cqe",      "max-sge",   "max-inline",
                                       "max-ird",     "max-ord",      "max-conns", "max-listeners",
                                       "max-mr-size", "mpa-rev",      "crc",       "markers",
                                       "commit",      "peer-to-peer", "features",  NULL };
    struct sg_profile_info p = tight();
    struct sg_adapter_config c, defaults;

    memset(&c, 0, sizeof(c));
    memset(&defaults, 0, sizeof(defaults));
    sg_adapter_default_config(&defaults);
    sg_adapter_default_config(&c);
    sg_profile_apply(&p, &c, is_set, (void *)all);
    T_EQ_MEM(&c, &defaults, sizeof(c));
    for (size_t i = 0; all[i]; i++) {
        const char *one[] = { all[i], NULL };

        T_CONTEXT("%s given", all[i]);
        sg_adapter_default_config(&c);
        sg_profile_apply(&p, &c, is_set, one);
        T_EQ_INT(c.max_sge == defaults.max_sge, !strcmp(all[i], "max-sge"));
        T_EQ_INT(c.max_mr_size == defaults.max_mr_size, !strcmp(all[i], "max-mr-size"));
        T_EQ_INT(c.engine.mpa_rev == defaults.engine.mpa_rev, !strcmp(all[i], "mpa-rev"));
        T_EQ_INT(c.engine.max_ird == defaults.engine.max_ird, !strcmp(all[i], "max-ird"));
    }
}

/* Later firmware asks for more than the first, and for more than the user's properties. */
static void later_profiles_are_bounded(void)
{
    static const char *const given[] = { "max-qp", "max-mr-size", NULL };
    struct sg_profile_info first = tight(), greedy = tight();
    struct sg_adapter_config users, begun, bound, c;

    sg_adapter_default_config(&users);
    users.max_qp = 10;
    users.max_mr_size = 1 << 16;
    first.max_cqe = 1 << 20; /* more than the default, from the first image */
    begun = users;
    sg_profile_apply(&first, &begun, is_set, (void *)given);
    sg_profile_bound(&bound, &users, &begun);
    greedy.max_qp = greedy.max_cq = greedy.max_mr = greedy.max_pd = greedy.max_qp_wr = 1 << 20;
    greedy.max_cqe = 1 << 22, greedy.max_conns = 1 << 20, greedy.max_listeners = 65535;
    greedy.max_ird = greedy.max_ord = 16382, greedy.max_mr_size = 48;
    greedy.max_sge = 1, greedy.features = 5;
    c = users;
    sg_profile_apply(&greedy, &c, is_set, NULL); /* as if the user had set no property */
    sg_profile_limit(&c, &bound);
    T_EQ_U64(c.max_qp, 10);
    T_EQ_U64(c.max_cq, users.max_cq);
    T_EQ_U64(c.max_mr, users.max_mr);
    T_EQ_U64(c.max_pd, users.max_pd);
    T_EQ_U64(c.max_qp_wr, users.max_qp_wr);
    T_EQ_U64(c.max_cqe, 1 << 20);
    T_EQ_U64(c.max_conns, users.max_conns);
    T_EQ_U64(c.max_listeners, users.max_listeners);
    T_EQ_U64(c.engine.max_ird, users.engine.max_ird);
    T_EQ_U64(c.engine.max_ord, users.engine.max_ord);
    T_EQ_U64(c.max_mr_size, 1 << 16);
    T_EQ_U64(c.max_host_memory, users.max_host_memory);
    /* Values below the bound stay, and so do values that are no limits. */
    T_EQ_U64(c.max_sge, 1);
    T_EQ_U64(c.features, 5);
}

static void any_changes_nothing(void)
{
    struct sg_adapter_config c, defaults;
    struct sg_profile_info p;

    memset(&c, 0, sizeof(c));
    memset(&defaults, 0, sizeof(defaults));
    sg_profile_init(&p, "full");
    sg_adapter_default_config(&c);
    sg_adapter_default_config(&defaults);
    sg_profile_apply(&p, &c, is_set, NULL);
    T_EQ_MEM(&c, &defaults, sizeof(c));
}

/* The commands of a masked feature are unknown opcodes, and QUERY_CAPS does not offer it. */
static void masked_features(void)
{
    static const struct {
        uint32_t feature;
        uint8_t opcode;
        uint32_t with_it; /* features that depend on it */
    } rows[] = {
        { SG_FEATURE_FAST_REG, SG_ADMIN_ALLOC_MR, 0 },
        { SG_FEATURE_SRQ, SG_ADMIN_CREATE_SRQ, SG_FEATURE_SRQ_RESIZE },
        { SG_FEATURE_SRQ, SG_ADMIN_QUERY_SRQ, SG_FEATURE_SRQ_RESIZE },
        { SG_FEATURE_SRQ, SG_ADMIN_RESIZE_SRQ, SG_FEATURE_SRQ_RESIZE },
        { SG_FEATURE_SRQ_RESIZE, SG_ADMIN_RESIZE_SRQ, 0 },
        { SG_FEATURE_MW, SG_ADMIN_ALLOC_MW, 0 },
        { SG_FEATURE_MW, SG_ADMIN_DEALLOC_MW, 0 },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct sg_adapter_config c;
        struct sg_caps caps;

        T_CONTEXT("opcode 0x%02x", rows[i].opcode);
        sg_adapter_default_config(&c);
        c.features = ~rows[i].feature;
        begin(&c);
        T_EQ_U64(md_cmd_id(&s.md, rows[i].opcode, 0), SG_EOPCODE);
        T_EQ_U64(query(SG_ADMIN_QUERY_CAPS, &caps, sizeof(caps)), SG_OK);
        T_EQ_U64(sg_get_le32(&caps.features) & (rows[i].feature | rows[i].with_it), 0);
        end();
        begin(NULL);
        T_TRUE(md_cmd_id(&s.md, rows[i].opcode, 0) != SG_EOPCODE);
        end();
    }
}

/* ---- commands ---- */

static void update(void)
{
    struct sg_flash_info info;
    struct sg_admin_rsp rsp;
    size_t len;
    uint8_t *fw = make_firmware("2.3.4", "next", 20, &len);

    begin(NULL);
    T_EQ_U64(write_all(fw, len), SG_OK);
    T_EQ_U64(query(SG_ADMIN_FLASH_INFO, &info, sizeof(info)), SG_OK);
    T_EQ_U64(info.slot[1].reason, SG_FLASH_EMPTY);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_COMMIT, 0, len, 0, &rsp), SG_OK);
    T_EQ_U64(query(SG_ADMIN_FLASH_INFO, &info, sizeof(info)), SG_OK);
    T_EQ_U64(info.running, 0);
    T_EQ_U64(info.stored, 1);
    T_EQ_U64(sg_get_le32(&info.fw_size_max), SG_FW_SIZE_MAX); /* tools size their images by it */
    T_EQ_STR((char *)info.slot[1].version, "2.3.4");
    T_EQ_STR((char *)info.slot[1].profile, "next");
    T_EQ_STR((char *)info.slot[0].version, "1.0.0");
    T_EQ_STR((char *)info.part, "SG-1");
    T_EQ_STR((char *)info.serial, "SN0001");
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, buffer, 512,
                       SG_FLASH_SLOT_BASE + SG_FLASH_SLOT_SIZE + SG_FLASH_FW_OFFSET, NULL),
             SG_OK);
    T_EQ_MEM(test_host_ptr(&s.h, buffer), fw, 512);
    end();
    g_free(fw);
}

static void bad_profile(void)
{
    struct sg_profile_info p;
    struct sg_admin_rsp rsp;
    uint8_t *fw;
    size_t len;

    sg_profile_init(&p, "greedy");
    p.max_sge = 200;
    fw = sg_firmware_make("1.0.0", &p, SG_SPAN_NONE, &len);
    begin(NULL);
    T_EQ_U64(write_all(fw, len), SG_OK);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_COMMIT, 0, len, 0, &rsp), SG_EINVAL);
    T_EQ_U64(sg_get_le32(&rsp.data[0]), SG_FLASH_PROFILE);
    T_EQ_U64(sg_flash_stored(chip), 0);
    end();
    g_free(fw);
}

static void bad_fields(void)
{
    const uint64_t nowhere = 1ull << 40;

    begin(NULL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, buffer, 0, 0, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, buffer, SG_FLASH_CHUNK_MAX + 1, 0, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, buffer, 1, SG_FLASH_SIZE, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, buffer, 16, UINT32_MAX - 8, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, nowhere, 16, 0, NULL), SG_EFAULT);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, buffer, 16, SG_FLASH_SIZE - 16, NULL), SG_OK);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_WRITE, buffer, 0, 0, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_WRITE, buffer, SG_FLASH_CHUNK_MAX + 1, 0, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_WRITE, nowhere, 16, 0, NULL), SG_EFAULT);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_WRITE, buffer, 16, 16, NULL), SG_ESTATE);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_WRITE, buffer, 16, SG_FW_SIZE_MAX, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_COMMIT, 0, 16, 0, NULL), SG_EINVAL);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_WRITE, buffer, 16, 0, NULL), SG_OK);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_COMMIT, 0, UINT32_MAX, 0, NULL), SG_EINVAL);
    T_EQ_U64(sg_flash_stored(chip), 0);
    end();
}

static void submit(uint8_t opcode, uint32_t len)
{
    struct sg_cmd_flash c = { .hdr.opcode = opcode };

    sg_put_le64(&c.addr, buffer);
    sg_put_le32(&c.len, len);
    md_submit(&s.md, &c, sizeof(c));
    md_settle(&s.md);
}

/* A command completes when the medium has its octets; commands behind it wait. */
static void slow_medium(void)
{
    struct sg_admin_rsp rsp;

    begin(NULL);
    busy = true;
    submit(SG_ADMIN_FLASH_WRITE, 16);
    submit(SG_ADMIN_NOP, 0);
    T_FALSE(md_reap(&s.md, &rsp));
    sg_adapter_run(s.md.a, 4096);
    T_FALSE(md_reap(&s.md, &rsp));
    busy = false;
    sg_adapter_run(s.md.a, 4096);
    T_TRUE(md_reap(&s.md, &rsp));
    T_EQ_U64(rsp.status, SG_OK);
    T_TRUE(md_reap(&s.md, &rsp));
    T_EQ_U64(rsp.status, SG_OK);

    /* The adapter is disabled meanwhile: no answer is written, but the chip finishes. */
    busy = true;
    submit(SG_ADMIN_FLASH_WRITE, 16);
    T_TRUE(sg_flash_waits(chip));
    md_write(&s.md, SG_REG_CTRL, 0);
    T_FALSE(sg_flash_waits(chip));
    md_enable(&s.md);
    submit(SG_ADMIN_FLASH_COMMIT, 16);
    T_FALSE(md_reap(&s.md, &rsp));
    busy = false;
    sg_adapter_run(s.md.a, 4096);
    T_TRUE(md_reap(&s.md, &rsp));
    T_EQ_U64(rsp.status, SG_EINVAL);
    T_EQ_U64(sg_get_le32(&rsp.data[0]), SG_FLASH_SHORT);
    end();
}

static void without_flash(void)
{
    struct sg_flash_info info;

    begin(NULL);
    sg_adapter_set_flash(s.md.a, NULL);
    T_EQ_U64(query(SG_ADMIN_FLASH_INFO, &info, sizeof(info)), SG_ENOTSUP);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_READ, buffer, 16, 0, NULL), SG_ENOTSUP);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_WRITE, buffer, 16, 0, NULL), SG_ENOTSUP);
    T_EQ_U64(flash_cmd(SG_ADMIN_FLASH_COMMIT, 0, 16, 0, NULL), SG_ENOTSUP);
    end();
}

static const struct t_case cases[] = {
    { "a profile wins over defaults", profile_wins_over_defaults },
    { "properties win over a profile, each for itself", properties_win_over_profile },
    { "firmware that comes later raises no limit", later_profiles_are_bounded },
    { "a profile that says nothing changes nothing", any_changes_nothing },
    { "commands of masked features", masked_features },
    { "update", update },
    { "an update whose profile is out of range", bad_profile },
    { "each field out of range", bad_fields },
    { "a slow medium", slow_medium },
    { "without a flash", without_flash },
};

T_MAIN(cases)
