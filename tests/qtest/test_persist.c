/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The persistence domain as a QEMU object: its properties, what a cut of the power leaves of stores
 * and of what an adapter placed, armed cuts, failing media, and the end of QEMU.
 *
 * Stores of the test are those of another bus master: as CPU stores that nobody follows.
 */
#include <fcntl.h>
#include <glib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

#define PM_BASE 0x100000000ull /* the first NVDIMM, with less than 4 GiB of memory */
#define DOMAIN "/objects/dom0"

enum { PM_MIB = 32, REGION = 1 << 20, LEN = 4096 };

static struct {
    char media[64];
    struct machine *m;
    struct side a, b;
    uint32_t pm_stag; /* b's: REGION octets at PM_BASE */
} w;

/* ---- the machine ---- */

static void make_media(unsigned mib)
{
    int fd;

    strcpy(w.media, "/tmp/sg-media-XXXXXX");
    fd = g_mkstemp(w.media);
    T_TRUE(fd >= 0 && ftruncate(fd, (off_t)mib << 20) == 0);
    close(fd);
}

static char *arguments(unsigned mib, const char *domain)
{
    return g_strdup_printf("-machine nvdimm=on -m slots=4,maxmem=8G "
                           "-object staghorn-domain,id=dom0%s%s "
                           "-object memory-backend-file,id=mem1,size=%uM,share=off,mem-path=%s "
                           "-device nvdimm,memdev=mem1 ",
                           *domain ? "," : "", domain, mib, w.media);
}

static void start(unsigned functions, unsigned mib, const char *domain)
{
    g_autofree char *args = NULL;

    make_media(mib);
    args = arguments(mib, domain);
    w.m = machine_start(functions, "", args);
}

static void stop(void)
{
    machine_stop(w.m);
    unlink(w.media);
}

/* Both adapters come up; b offers persistent memory to a. */
static void start_sides(uint16_t port)
{
    uint32_t access = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_FLUSH_GLOBAL |
                      SG_ACCESS_FLUSH_PERSISTENT;

    side_start(&w.a, &w.m->f[0]);
    side_start(&w.b, &w.m->f[1]);
    w.pm_stag = md_reg_mr(&w.b.md, w.b.pd, PM_BASE, REGION, SG_ACCESS_LOCAL_WRITE | access);
    md_create_qp(&w.b.md, &w.b.qp, &(struct md_qp_params){
        .pd = w.b.pd, .scq = &w.b.cq, .rcq = &w.b.cq, .access = access,
    });
    sides_connect(&w.a, &w.b, port);
}

/* Two adapters in one machine. */
static void start_pair(const char *domain)
{
    start(2, PM_MIB, domain);
    start_sides(4000);
}

/* ---- properties ---- */

static char *get(const char *property)
{
    return qtest_qmp(w.m->q, "{\"execute\": \"qom-get\", \"arguments\": {\"path\": \"" DOMAIN "\", "
                     "\"property\": \"%s\"}}", property);
}

/* value in JSON */
static char *try_set(const char *property, const char *value)
{
    return qtest_qmp(w.m->q, "{\"execute\": \"qom-set\", \"arguments\": {\"path\": \"" DOMAIN "\", "
                     "\"property\": \"%s\", \"value\": %s}}", property, value);
}

static void set(const char *property, const char *value)
{
    g_autofree char *answer = try_set(property, value);

    if (!strstr(answer, "\"return\"")) {
        T_FAIL("%s=%s: %s", property, value, answer);
    }
}

/* A number of the property "state", which is JSON within JSON. */
static uint64_t state(const char *name)
{
    g_autofree char *answer = get("state");
    g_autofree char *key = g_strdup_printf("\\\"%s\\\": ", name);
    const char *at = strstr(answer, key);

    if (!at) {
        T_FAIL("no %s in %s", name, answer);
    }
    return g_ascii_strtoull(at + strlen(key), NULL, 10);
}

static void expect_refusal(const char *args, const char *part)
{
    g_autofree char *err = NULL;
    int status;

    T_CONTEXT("%s", args);
    status = qtest_refused(args, &err);
    if (status != 1 || !strstr(err, part)) {
        T_FAIL("status %d, \"%s\" is not in: %s", status, part, err);
    }
}

static void command_line(void)
{
#define MACHINE "-machine nvdimm=on -m 64,slots=4,maxmem=8G "
#define DIMM "-object memory-backend-file,id=mem1,size=32M,share=off,mem-path=%s "
    static const struct {
        const char *args, *part;
    } rows[] = {
        { MACHINE "-object staghorn-domain,id=dom0", "no NVDIMM for the domain" },
        { MACHINE "-object staghorn-domain,id=dom0 -object memory-backend-file,id=mem1,size=32M,"
          "share=on,mem-path=%s -device nvdimm,memdev=mem1", "share=off" },
        { MACHINE "-object staghorn-domain,id=dom0 -object memory-backend-ram,id=mem1,size=32M "
          "-device nvdimm,memdev=mem1", "has no file" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0 -device nvdimm,memdev=mem1,label-size=2M",
          "labels" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0 -object staghorn-domain,id=dom1 "
          "-device nvdimm,memdev=mem1", "one persistence domain" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,memdevs=mem1:mem2 "
          "-device nvdimm,memdev=mem1", "'mem2'" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,domain=maybe -device nvdimm,memdev=mem1",
          "none, adr, eadr or whole" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,policy=worst-for:mem9@0+64 "
          "-device nvdimm,memdev=mem1", "'mem9'" },
        { MACHINE DIMM "-object staghorn-domain,id=dom0,colour=red -device nvdimm,memdev=mem1",
          "colour" },
    };
    unsigned i;

    make_media(32);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) parts = g_strsplit(rows[i].args, "%s", 2);
        g_autofree char *args = g_strjoinv(w.media, parts);

        expect_refusal(args, rows[i].part);
    }
    unlink(w.media);
}

static void bad_values(void)
{
    static const struct {
        const char *property, *value;
    } rows[] = {
        { "domain", "\"ADR\"" },          { "domain", "\"\"" },
        { "placement-order", "\"any\"" }, { "posted-drain", "\"sometimes\"" },
        { "eviction", "\"2\"" },          { "drain", "\"off\"" },
        { "one-in", "0" },                { "untracked", "\"lose\"" },
        { "policy", "\"\"" },             { "policy", "\"worst-for\"" },
        { "policy", "\"lose-all:1\"" },   { "policy", "\"random:x\"" },
        { "policy", "\"worst-for:mem1@0\"" },
        { "policy", "\"worst-for:mem1@0+0\"" },
        { "policy", "\"worst-for:mem1@0x2000000+64\"" },
        { "policy", "\"worst-for:0x1000+64\"" },
        { "policy", "\"worst-for:mem1@0+64:1:2\"" },
        { "arm", "\"event:0\"" },         { "arm", "\"noon\"" },
        { "arm", "\"event:x\"" },         { "read-only", "\"perhaps\"" },
        { "read-only", "\"mem2=on\"" },   { "wear-out", "\"soon\"" },
        { "uncorrectable", "\"64\"" },    { "uncorrectable", "\"mem1@0+64:mem1@-1+2\"" },
        { "flush-fail", "\"twice\"" },    { "flush-latency", "\"1+x\"" },
        { "flush-latency", "\"\"" },      { "memdevs", "\"mem1\"" },
        { "cut", "\"gently\"" },          { "export-log", "\"/nonexistent/log\"" },
    };
    unsigned i;

    start(0, PM_MIB, "");
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        bool action = i >= G_N_ELEMENTS(rows) - 2;
        g_autofree char *before = get(action ? "policy" : rows[i].property);
        g_autofree char *answer = NULL, *after = NULL;

        T_CONTEXT("%s = %s", rows[i].property, rows[i].value);
        answer = try_set(rows[i].property, rows[i].value);
        if (!strstr(answer, "\"error\"") ||
            !strstr(answer, strcmp(rows[i].property, "cut") ? rows[i].property : "policy")) {
            T_FAIL("answer: %s", answer);
        }
        after = get(action ? "policy" : rows[i].property);
        T_EQ_STR(after, before);
    }
    T_EQ_U64(state("cuts"), 0);
    stop();
}

static void good_values(void)
{
    static const struct {
        const char *property, *value;
    } rows[] = {
        { "domain", "\"none\"" },        { "domain", "\"whole\"" },
        { "ddio", "false" },             { "placement-delay", "1000000" },
        { "placement-order", "\"random\"" }, { "posted-drain", "\"never\"" },
        { "eviction", "\"random\"" },    { "drain", "\"eager\"" },
        { "one-in", "3" },               { "untracked", "\"at-risk\"" },
        { "policy", "\"worst-for:mem1@4096+64:7\"" },
        { "policy", "\"random:99\"" },   { "seed", "12345678901234567890" },
        { "arm", "\"after-flush-answer:3\"" }, { "arm", "\"event:1000000\"" },
        { "arm", "\"off\"" },            { "poison-on-mismatch", "true" },
        { "read-only", "\"mem1=on\"" },  { "wear-out", "\"100\"" },
        { "wear-out", "\"\"" },          { "uncorrectable", "\"mem1@0+64:0x100001000+128\"" },
        { "uncorrectable", "\"\"" },     { "flush-fail", "\"always\"" },
        { "flush-fail", "\"mem1=2\"" },  { "flush-latency", "\"1000+500\"" },
    };
    unsigned i;

    start(0, PM_MIB, "domain=eadr,ddio=off,seed=4,placement-delay=77,policy=lose-all");
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *answer = NULL;

        T_CONTEXT("%s = %s", rows[i].property, rows[i].value);
        set(rows[i].property, rows[i].value);
        answer = get(rows[i].property);
        if (!strstr(answer, rows[i].value)) {
            T_FAIL("it is %s", answer);
        }
    }
    stop();
}

static void not_at_run_time(void)
{
    g_autofree char *added = NULL, *removed = NULL;

    start(0, PM_MIB, "");
    added = qtest_qmp(w.m->q, "{\"execute\": \"object-add\", \"arguments\": {\"qom-type\": "
                      "\"staghorn-domain\", \"id\": \"dom1\"}}");
    T_TRUE(strstr(added, "one persistence domain") != NULL);
    removed = qtest_qmp(w.m->q, "{\"execute\": \"object-del\", \"arguments\": "
                        "{\"id\": \"dom0\"}}");
    T_TRUE(strstr(removed, "\"error\"") != NULL);
    T_EQ_U64(state("cuts"), 0);
    stop();
}

/* ---- stores and cuts ---- */

static void store(uint64_t offset, uint8_t value, size_t len)
{
    qtest_memset(w.m->q, PM_BASE + offset, value, len);
}

/* Octets of this value. */
static size_t count(uint64_t offset, uint8_t value, size_t len)
{
    g_autofree uint8_t *buf = g_malloc(len);
    size_t found = 0, i;

    qtest_memread(w.m->q, PM_BASE + offset, buf, len);
    for (i = 0; i < len; i++) {
        found += buf[i] == value;
    }
    return found;
}

/* Octets of this value on the media. */
static size_t count_media(uint64_t offset, uint8_t value, size_t len)
{
    g_autofree uint8_t *buf = g_malloc(len);
    size_t found = 0, i;
    int fd = open(w.media, O_RDONLY);

    T_TRUE(fd >= 0 && pread(fd, buf, len, offset) == (ssize_t)len);
    close(fd);
    for (i = 0; i < len; i++) {
        found += buf[i] == value;
    }
    return found;
}

static void wait_for_cut(uint64_t cuts)
{
    unsigned i;

    for (i = 0; i < 100 && state("cuts") < cuts; i++) {
        machine_settle(w.m);
    }
    T_EQ_U64(state("cuts"), cuts);
}

static void cut(const char *policy)
{
    uint64_t cuts = state("cuts");
    g_autofree char *value = g_strdup_printf("\"%s\"", policy);

    set("cut", value);
    wait_for_cut(cuts + 1);
}

static void stores(void)
{
    static const struct {
        const char *domain, *untracked, *policy;
        bool kept;
    } rows[] = {
        { "adr", "keep", "lose-all", true },      { "adr", "at-risk", "lose-all", false },
        { "adr", "at-risk", "keep-all", true },   { "none", "at-risk", "lose-all", false },
        { "eadr", "at-risk", "lose-all", true },  { "whole", "at-risk", "lose-all", true },
    };
    unsigned i;

    start(0, PM_MIB, "");
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *domain = g_strdup_printf("\"%s\"", rows[i].domain);
        g_autofree char *untracked = g_strdup_printf("\"%s\"", rows[i].untracked);

        T_CONTEXT("%s, %s, %s", rows[i].domain, rows[i].untracked, rows[i].policy);
        set("domain", domain);
        set("untracked", untracked);
        store(i * 65536, 0x40 + i, LEN);
        T_EQ_U64(count(i * 65536, 0x40 + i, LEN), LEN);
        cut(rows[i].policy);
        T_EQ_U64(count(i * 65536, 0x40 + i, LEN), rows[i].kept ? LEN : 0);
    }
    stop();
}

/* The same seed gives the same, and lines are kept or lost as wholes. */
static void random_outcomes(void)
{
    static uint8_t kept[3][64];
    unsigned round, i;

    start(0, PM_MIB, "untracked=at-risk");
    for (round = 0; round < 3; round++) {
        store(0, 0, 64 * 64);
        set("persist", "true");
        store(0, 1, 64 * 64);
        cut(round < 2 ? "random:5" : "random:6");
        for (i = 0; i < 64; i++) {
            size_t n = count(i * 64, 1, 64);

            T_TRUE(n == 0 || n == 64);
            kept[round][i] = n == 64;
        }
    }
    T_TRUE(memcmp(kept[0], kept[1], 64) == 0);
    T_TRUE(memcmp(kept[0], kept[2], 64) != 0);
    T_TRUE(memchr(kept[0], 0, 64) && memchr(kept[0], 1, 64));
    stop();
}

static void memory_is_cleared(void)
{
    uint64_t at;

    start(1, PM_MIB, "");
    at = machine_alloc(w.m, LEN, LEN);
    memset(machine_ptr(w.m, at), 0xa5, LEN);
    function_writel(&w.m->f[0], SG_REG_CTRL, SG_CTRL_ENABLE);
    cut("lose-all");
    T_EQ_U64(*(uint64_t *)machine_ptr(w.m, at), 0);
    machine_setup_ports(w.m);
    function_setup(&w.m->f[0]);
    T_EQ_U64(function_readl(&w.m->f[0], SG_REG_CTRL), 0);
    stop();
}

static void reset_keeps(void)
{
    start(0, PM_MIB, "untracked=at-risk,policy=lose-all");
    store(0, 7, LEN);
    machine_reset(w.m);
    T_EQ_U64(count(0, 7, LEN), LEN);
    T_EQ_U64(state("cuts"), 0);
    stop();
}

static void quit_loses(void)
{
    start(0, PM_MIB, "");
    store(0, 7, LEN);
    set("persist", "true");
    store(65536, 8, LEN);
    machine_stop(w.m);
    T_EQ_U64(count_media(0, 7, LEN), LEN);
    T_EQ_U64(count_media(65536, 8, LEN), 0);
    unlink(w.media);
}

/* ---- an adapter's placements ---- */

/* a writes LEN octets of a value to b's persistent memory; waits until they are out. */
static void remote_write(uint64_t offset, uint8_t value)
{
    struct sg_cqe c;

    memset(side_ptr(&w.a, 0), value, LEN);
    md_post_send(&w.a.qp, &(struct md_wr){
        .opcode = SG_WR_WRITE, .addr = w.a.buffer, .len = LEN, .lkey = w.a.stag,
        .raddr = PM_BASE + offset, .rkey = w.pm_stag,
    });
    c = side_completion(&w.a, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    machine_pass(w.m, 2);
}

static void post_flush(uint64_t offset, uint32_t flags)
{
    struct sg_wqe_hdr *h = md_sq_entry(&w.a.qp);
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);

    h->opcode = SG_WR_FLUSH;
    h->flags |= SG_WQE_SIGNALED;
    sg_put_le32(&h->rkey, w.pm_stag);
    sg_put_le64(&h->remote_addr, PM_BASE + offset);
    sg_put_le32(&place->length, LEN);
    sg_put_le32(&place->flags, flags);
    md_sq_doorbell(&w.a.qp);
}

static unsigned remote_flush(uint64_t offset, uint32_t flags)
{
    post_flush(offset, flags);
    return side_completion(&w.a, 200).status;
}

/* What a Flush with P has answered for is kept; what it has not, or only with G, may be lost. */
static void flushed_or_not(void)
{
    static const char *const domains[] = { "domain=none", "domain=adr", "domain=adr,ddio=off",
                                           "domain=eadr", "domain=whole" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(domains); i++) {
        bool cached = strstr(domains[i], "eadr") || strstr(domains[i], "whole");
        bool queued = cached || strstr(domains[i], "ddio=off");

        T_CONTEXT("%s", domains[i]);
        start_pair(domains[i]);
        remote_write(0, 1);
        T_EQ_U64(remote_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
        T_EQ_U64(count_media(0, 1, LEN), LEN);
        remote_write(65536, 2);
        T_EQ_U64(remote_flush(65536, SG_FLUSH_GLOBAL), SG_WC_SUCCESS);
        T_EQ_U64(count(65536, 2, LEN), LEN);
        remote_write(131072, 3);
        T_EQ_U64(count(131072, 3, LEN), LEN);
        cut("lose-all");
        T_EQ_U64(count(0, 1, LEN), LEN);
        T_EQ_U64(count(65536, 2, LEN), queued ? LEN : 0);
        T_EQ_U64(count(131072, 3, LEN), queued ? LEN : 0);
        stop();
    }
}

/* A Flush also covers what CPUs stored, whatever becomes of such stores otherwise. */
static void flush_of_stores(void)
{
    start_pair("untracked=at-risk");
    store(0, 5, LEN);
    store(65536, 6, LEN);
    T_EQ_U64(remote_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    store(131072, 7, 64);
    T_EQ_U64(remote_flush(131072 - LEN + 64, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    store(131072, 8, 64);
    T_EQ_U64(remote_flush(131072 - LEN + 64, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
    cut("lose-all");
    T_EQ_U64(count(0, 5, LEN), LEN);
    T_EQ_U64(count(65536, 6, LEN), 0);
    T_EQ_U64(count(131072, 8, 64), 64);
    stop();
}

/* Placement that waits in the adapter is not visible, and lost in any domain. */
static void placement_waits(void)
{
    start_pair("domain=whole,placement-delay=1000000000");
    remote_write(0, 1);
    T_EQ_U64(count(0, 1, LEN), 0);
    T_EQ_U64(remote_flush(0, SG_FLUSH_GLOBAL), SG_WC_SUCCESS);
    T_EQ_U64(count(0, 1, LEN), LEN);
    remote_write(65536, 2);
    cut("keep-all");
    T_EQ_U64(count(0, 1, LEN), LEN);
    T_EQ_U64(count(65536, 2, LEN), 0);
    stop();
}

static void placement_comes_with_time(void)
{
    start_pair("placement-delay=20000000");
    remote_write(0, 1);
    T_EQ_U64(count(0, 1, LEN), 0);
    machine_pass(w.m, 40);
    T_EQ_U64(count(0, 1, LEN), LEN);
    stop();
}

static void armed(void)
{
    static const struct {
        const char *arm;
        bool flushes, persists;
    } rows[] = {
        { "write-placed", false, false },
        { "before-flush-answer", true, true },
        { "after-flush-answer", true, true },
        { "event:1", false, false },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *value = g_strdup_printf("\"%s\"", rows[i].arm);
        struct sg_cqe c;

        T_CONTEXT("%s", rows[i].arm);
        start_pair("policy=lose-all");
        set("arm", value);
        memset(side_ptr(&w.a, 0), 9, LEN);
        md_post_send(&w.a.qp, &(struct md_wr){
            .opcode = SG_WR_WRITE, .addr = w.a.buffer, .len = LEN, .lkey = w.a.stag,
            .raddr = PM_BASE, .rkey = w.pm_stag,
        });
        if (rows[i].flushes) {
            post_flush(0, SG_FLUSH_PERSISTENT);
        }
        machine_pass(w.m, 20);
        wait_for_cut(1);
        T_EQ_U64(count(0, 9, LEN), rows[i].persists ? LEN : 0);
        T_TRUE(!md_poll(&w.a.cq, &c)); /* the memory of completions is gone, too */
        stop();
    }
}

/* After a cut the machine is as new: adapters come up, connect, and the next cut works. */
static void cut_again(void)
{
    unsigned i;

    start_pair("");
    for (i = 1; i <= 3; i++) {
        remote_write(0, i);
        T_EQ_U64(remote_flush(0, SG_FLUSH_PERSISTENT), SG_WC_SUCCESS);
        cut("lose-all");
        T_EQ_U64(count(0, i, LEN), LEN);
        machine_setup_ports(w.m);
        function_setup(&w.m->f[0]);
        function_setup(&w.m->f[1]);
        start_sides(4000 + i);
    }
    stop();
}

/* Write and Flush of a value; true: the Flush was answered, false: the power went first. */
static bool flush_or_cut(uint64_t offset, uint8_t value, uint64_t cuts)
{
    struct sg_cqe c;
    unsigned done = 0, i;

    memset(side_ptr(&w.a, 0), value, LEN);
    md_post_send(&w.a.qp, &(struct md_wr){
        .opcode = SG_WR_WRITE, .addr = w.a.buffer, .len = LEN, .lkey = w.a.stag,
        .raddr = PM_BASE + offset, .rkey = w.pm_stag,
    });
    post_flush(offset, SG_FLUSH_PERSISTENT);
    for (i = 0; i < 50; i++) {
        while (md_poll(&w.a.cq, &c)) {
            T_EQ_U64(c.status, SG_WC_SUCCESS);
            if (++done == 2) {
                return true;
            }
        }
        if (state("cuts") > cuts) {
            return false;
        }
        machine_pass(w.m, 1);
    }
    T_FAIL("neither answer nor cut");
}

/* A cut at each event of a story of five Flushes: what was answered for is there. */
static void cut_at_each_event(void)
{
    unsigned n, i, acked, before_last = 0, rounds = 0;
    const char *const domains[] = { "\"none\"", "\"adr\"", "\"eadr\"", "\"whole\"" };

    start(2, PM_MIB, "policy=lose-all,placement-delay=300000,placement-order=random,"
          "posted-drain=random,one-in=2");
    for (n = 1, acked = 0; acked < 5; n += 1 + n / 8) {
        uint64_t cuts = state("cuts");
        g_autofree char *arm = g_strdup_printf("\"event:%u\"", n);

        T_CONTEXT("event %u", n);
        set("domain", domains[n % 4]);
        start_sides(5000 + n);
        set("arm", arm);
        for (acked = 0; acked < 5 && flush_or_cut(acked * 65536, n + acked, cuts); acked++) {
        }
        if (state("cuts") == cuts) {
            cut("lose-all");
        } else {
            before_last = acked;
        }
        for (i = 0; i < acked; i++) {
            T_EQ_U64(count(i * 65536, n + i, LEN), LEN);
        }
        machine_setup_ports(w.m);
        function_setup(&w.m->f[0]);
        function_setup(&w.m->f[1]);
        rounds++;
    }
    T_TRUE(rounds > 8 && before_last > 0);
    stop();
}

static void cut_of_a_stopped_machine(void)
{
    start(0, PM_MIB, "untracked=at-risk");
    store(0, 7, LEN);
    qtest_qmp_ok(w.m->q, "{\"execute\": \"stop\"}");
    cut("lose-all");
    T_EQ_U64(count(0, 7, LEN), 0);
    qtest_qmp_ok(w.m->q, "{\"execute\": \"cont\"}");
    store(0, 8, LEN);
    cut("keep-all");
    T_EQ_U64(count(0, 8, LEN), LEN);
    stop();
}

/* ---- faults ---- */

static void failing_flushes(void)
{
    static const struct {
        const char *property, *value;
    } rows[] = {
        { "flush-fail", "\"always\"" },
        { "flush-fail", "\"once\"" },
        { "read-only", "\"on\"" },
        { "wear-out", "\"mem1=10\"" },
        { "uncorrectable", "\"mem1@64+64\"" },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("%s=%s", rows[i].property, rows[i].value);
        start_pair("");
        remote_write(0, 1);
        set(rows[i].property, rows[i].value);
        T_TRUE(remote_flush(0, SG_FLUSH_PERSISTENT) != SG_WC_SUCCESS);
        T_EQ_U64(state("flushes-failed"), 1);
        stop();
    }
}

static void slow_flush(void)
{
    struct sg_cqe c;

    start_pair("flush-latency=50000000");
    remote_write(0, 1);
    post_flush(0, SG_FLUSH_PERSISTENT);
    T_TRUE(!side_has_completion(&w.a, &c, 30));
    c = side_completion(&w.a, 60);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    stop();
}

/* ---- registration ---- */

static void only_with_a_domain(void)
{
    uint32_t access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_FLUSH_PERSISTENT;
    struct sg_cmd_reg_mr c;

    start_pair("");
    c = md_reg_mr_cmd(w.b.pd, w.b.buffer, LEN, access);
    T_EQ_U64(md_cmd(&w.b.md, &c, sizeof(c), NULL), SG_ENOTPMEM);
    c = md_reg_mr_cmd(w.b.pd, PM_BASE + ((uint64_t)PM_MIB << 20) - LEN, LEN, access);
    T_EQ_U64(md_cmd(&w.b.md, &c, sizeof(c), NULL), SG_OK);
    c = md_reg_mr_cmd(w.b.pd, PM_BASE + ((uint64_t)PM_MIB << 20) - LEN, 2 * LEN, access);
    T_EQ_U64(md_cmd(&w.b.md, &c, sizeof(c), NULL), SG_ENOTPMEM);
    stop();
}

/* ---- time ---- */

static void print_times(const char *what)
{
    printf("# %s: %.1f ms from power to power (CPUs stop %.1f, model %.1f, discard %.1f, "
           "clear %.1f, reset %.1f)\n", what, state("cut-us") / 1e3, state("stop-us") / 1e3,
           state("model-us") / 1e3, state("discard-us") / 1e3, state("clear-us") / 1e3,
           state("reset-us") / 1e3);
}

/* 1 GiB; the aim is 100 ms, which a test on a busy machine cannot insist on. */
static void time_of_a_cut(void)
{
    start(1, 1024, "untracked=at-risk");
    cut("lose-all");
    print_times("1 GiB, clean");
    store(0, 1, 64 << 20);
    cut("random:1");
    print_times("1 GiB, 64 MiB of it stored to, half of it kept");
    store(0, 1, 1 << 30);
    cut("lose-all");
    print_times("1 GiB, all of it stored to, nothing kept");
    store(0, 2, 256 << 20);
    cut("keep-all");
    print_times("1 GiB, 256 MiB of it stored to, all kept");
    store(0, 1, 256 << 20);
    cut("keep-all");
    print_times("the same, where the file has room already");
    T_TRUE(state("cut-us") < 5000000);
    stop();
}

static const struct t_case cases[] = {
    { "command lines that are refused", command_line },
    { "values that are refused change nothing", bad_values },
    { "values that are taken read back", good_values },
    { "no domain comes or goes at run time", not_at_run_time },
    { "stores at a cut, by domain and policy", stores },
    { "random outcomes: whole lines, by seed", random_outcomes },
    { "a cut clears ordinary memory and resets adapters", memory_is_cleared },
    { "a reset keeps what is visible", reset_keeps },
    { "the end of QEMU is a power cut", quit_loses },
    { "FLU placements at a cut: flushed, visible, neither", flushed_or_not },
    { "a Flush covers stores of CPUs", flush_of_stores },
    { "data in the adapter is neither visible nor kept", placement_waits },
    { "data leaves the adapter in time", placement_comes_with_time },
    { "armed cuts", armed },
    { "cut, restart, connect, and again", cut_again },
    { "a cut at each event: what a Flush answered for survives", cut_at_each_event },
    { "a cut of a stopped machine", cut_of_a_stopped_machine },
    { "flushes that the medium refuses fail", failing_flushes },
    { "a slow flush", slow_flush },
    { "registration knows where persistent memory ends", only_with_a_domain },
    { "time of a cut", time_of_a_cut },
};

T_MAIN(cases)
