/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wrong command lines.  QEMU must refuse each with one clear sentence that names the property or
 * the object, and exit with status 1; it must never crash.
 */
#include <glib.h>

#include "machine.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "tap.h"

#define PORTS "-device pcie-root-port,id=rp0,chassis=1 -device pcie-root-port,id=rp1,chassis=2 "
#define NETS "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
#define ONE "-device staghorn,bus=rp0,netdev=n0"

/* QEMU's message behind the option that it complains about, which it repeats. */
static const char *sentence(const char *err)
{
    const char *option = strstr(err, ": -"), *end = option ? strstr(option + 3, ": ") : NULL;

    return end ? end + 2 : err;
}

static void expect_refusal(const char *args, const char *part)
{
    char *err;
    int status;

    T_CONTEXT("%s", args);
    status = qtest_refused(args, &err);
    if (status != 1 || !strstr(sentence(err), part)) {
        T_FAIL("status %d, \"%s\" is not in: %s", status, part, err);
    }
    g_free(err);
}

/* One property with one value that must be refused by name. */
static void expect_bad(const char *property, const char *value)
{
    char *args = g_strdup_printf(PORTS NETS ONE ",%s=%s", property, value);

    expect_refusal(args, property);
    g_free(args);
}

static void expect_accepted(const char *property, const char *value)
{
    char *args = g_strdup_printf(PORTS NETS ONE ",%s=%s", property, value);
    struct qtest *q = qtest_start(args);

    T_CONTEXT("%s=%s", property, value);
    qtest_stop(q);
    g_free(args);
}

static void no_netdev(void)
{
    expect_refusal(PORTS "-device staghorn,bus=rp0", "netdev");
}

static void unknown_netdev(void)
{
    expect_refusal(PORTS "-device staghorn,bus=rp0,netdev=nope", "nope");
}

static void used_netdev(void)
{
    expect_refusal(PORTS NETS ONE " -device staghorn,bus=rp1,netdev=n0", "n0");
}

static void netdev_of_another_nic(void)
{
    expect_refusal(PORTS NETS "-device virtio-net-pci,netdev=n0,bus=rp1 " ONE, "n0");
}

static void same_mac(void)
{
    expect_refusal(PORTS NETS "-device staghorn,id=first,bus=rp0,netdev=n0,mac=52:54:00:00:00:09 "
                              "-device staghorn,id=second,bus=rp1,netdev=n1,mac=52:54:00:00:00:09",
                   "first");
}

static void bad_mac(void)
{
    expect_bad("mac", "01:00:5e:00:00:01");
    expect_bad("mac", "ff:ff:ff:ff:ff:ff");
    expect_bad("mac", "52:54:00");
    expect_bad("mac", "hello");
}

static void unknown_property(void)
{
    expect_bad("max-fun", "1");
}

/* Values just outside of each range, and far outside. */
/* Likewise in a machine that runs: its monitor reads options as the command line does. */
static void expect_bad_hot_plug(struct qtest *q, const char *property, const char *value)
{
    char *answer = qtest_qmp(q,
                             "{\"execute\": \"human-monitor-command\", \"arguments\": "
                             "{\"command-line\": \"device_add staghorn,bus=rp0,netdev=n0,%s=%s\"}}",
                             property, value);

    T_CONTEXT("%s=%s", property, value);
    if (!strstr(answer, "Error: ") || !strstr(answer, property)) {
        T_FAIL("the answer is %s", answer);
    }
    g_free(answer);
}

static void out_of_range(void)
{
    static const struct {
        const char *property;
        uint64_t min, max; /* both valid */
    } rows[] = {
        { "vectors", 1, SG_EQ_COUNT },
        { "max-qp", 1, 1 << 20 },
        { "max-cq", 1, 1 << 20 },
        { "max-mr", 1, 1 << 22 },
        { "max-pd", 1, 1 << 20 },
        { "max-qp-wr", 2, 1 << 20 },
        { "max-cqe", 2, 1 << 22 },
        { "max-listeners", 1, 65535 },
        { "max-sge", 1, SG_SQ_MAX_SGE },
        { "max-inline", 0, SG_MAX_INLINE },
        { "max-ird", 0, 16382 },
        { "max-ord", 0, 16382 },
        { "mpa-rev", 1, 2 },
        { "peer-timeout", 2, 3600 },
        { "tcp-window", 262144, 16777216 },
        { "tcp-send-buffer", 65536, 16777216 },
        { "tcp-rto-min", 1, 10000 },
        { "max-mr-size", 4096, 1ull << 48 },
        { "max-host-memory", 1 << 20, 1ull << 48 },
    };
    struct qtest *q = qtest_start(PORTS NETS);
    unsigned i;
    char text[32];

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].min > 0) {
            snprintf(text, sizeof(text), "%" PRIu64, rows[i].min - 1);
            expect_bad_hot_plug(q, rows[i].property, text);
        }
        snprintf(text, sizeof(text), "%" PRIu64, rows[i].max + 1);
        expect_bad_hot_plug(q, rows[i].property, text);
        expect_bad_hot_plug(q, rows[i].property, "99999999999999999999");
        expect_bad_hot_plug(q, rows[i].property, "many");
    }
    qtest_stop(q);
    for (i = 0; i < G_N_ELEMENTS(rows); i += t_stride(1)) {
        snprintf(text, sizeof(text), "%" PRIu64, rows[i].max + 1);
        expect_bad(rows[i].property, text);
    }
}

/* The wire, and what the second one does not have. */
static void wires(void)
{
    static const char *const iwarp_only[][2] = {
        { "mpa-rev", "2" },          { "crc", "on" },       { "markers", "off" },
        { "rtr-send", "on" },        { "rtr-write", "on" }, { "rtr-read", "on" },
        { "commit", "off" },         { "rfc7306", "off" },  { "peer-to-peer", "on" },
        { "first-fpdu-delay", "1" },
    };
    size_t i;

    expect_bad("wire", "rdma-tcp");
    expect_bad("wire", "");
    expect_accepted("wire", "iwarp,commit=01,crc=off");
    expect_accepted("wire", "rdma-tcp-2000,rnr=wait,max-ird=7");
    for (i = 0; i < G_N_ELEMENTS(iwarp_only); i += t_stride(1)) {
        char *args = g_strdup_printf(PORTS NETS ONE ",%s=%s,wire=rdma-tcp-2000", iwarp_only[i][0],
                                     iwarp_only[i][1]);

        expect_refusal(args, iwarp_only[i][0]);
        g_free(args);
    }
}

/* The ends of ranges are accepted; values that need too much memory are not tried. */
static void ends_of_ranges(void)
{
    static const char *const rows[][2] = {
        { "vectors", "1" },          { "vectors", "64" },
        { "max-qp", "1" },           { "max-cq", "1" },
        { "max-mr", "1" },           { "max-pd", "1" },
        { "max-qp-wr", "2" },        { "max-cqe", "2" },
        { "max-sge", "1" },          { "max-inline", "0" },
        { "max-ird", "0" },          { "max-ord", "0" },
        { "max-conns", "1" },        { "max-listeners", "1" },
        { "mpa-rev", "1" },          { "max-mr-size", "4096" },
        { "check", "off" },          { "check", "warn" },
        { "check", "strict" },       { "crc", "off" },
        { "markers", "on" },         { "peer-to-peer", "off" },
        { "rtr-send", "on" },        { "rtr-read", "off" },
        { "rtr-write", "off" },      { "guid", "0x1" },
        { "max-host-memory", "1M" }, { "max-host-memory", "64G" },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i += t_stride(1)) {
        expect_accepted(rows[i][0], rows[i][1]);
    }
}

static void max_conns_range(void)
{
    expect_bad("max-conns", "0");
    expect_bad("max-conns", "4294967295");
    expect_bad("max-conns", "4294967296");
}

static void bad_words(void)
{
    expect_bad("check", "on");
    expect_bad("check", "");
    expect_bad("check", "stricter");
    expect_refusal(PORTS NETS ONE ",check=WARN", "off, warn or strict");
}

static void bad_booleans(void)
{
    expect_bad("crc", "maybe");
    expect_bad("markers", "2");
}

/* Only PCI Express buses are accepted. */
static void conventional_bus(void)
{
    struct qtest *q;

    /* The root complex itself is one. */
    q = qtest_start(NETS "-device staghorn,netdev=n0,bus=pcie.0");
    qtest_stop(q);
}

static void help(void)
{
    static const char *const names[] = {
        "netdev",       "mac",        "guid",        "vectors",   "max-qp",
        "max-cq",       "max-mr",     "max-pd",      "max-qp-wr", "max-cqe",
        "max-sge",      "max-inline", "max-mr-size", "max-conns", "max-listeners",
        "max-ird",      "max-ord",    "mpa-rev",     "crc",       "markers",
        "peer-to-peer", "rtr-send",   "rtr-write",   "rtr-read",  "max-host-memory"
    };
    char *text, *line;
    unsigned i;

    T_EQ_INT(qtest_refused("-device staghorn,help", &text), 0);
    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        line = g_strdup_printf("  %s=<", names[i]);
        if (!strstr(text, line)) {
            T_FAIL("property %s is not in the help:\n%s", names[i], text);
        }
        g_free(line);
    }
    g_free(text);
}

/* The other half of the port: a backend that one NIC model, of any kind, can use. */
static void port_for_another_nic(void)
{
    struct qtest *q =
        qtest_start(PORTS NETS "-device staghorn,id=r0,bus=rp0,netdev=n0,"
                               "mac=52:54:00:00:00:09 -device virtio-net-pci,netdev=r0.eth,"
                               "bus=rp1,mac=52:54:00:00:00:09");
    char *answer = qtest_qmp(q, "{\"execute\": \"human-monitor-command\", \"arguments\": "
                                "{\"command-line\": \"info network\"}}");

    T_TRUE(strstr(answer, "r0.eth"));
    g_free(answer);
    qtest_stop(q);
}

static void port_used_twice(void)
{
    expect_refusal(PORTS NETS "-device staghorn,id=r0,bus=rp0,netdev=n0 "
                              "-device virtio-net-pci,netdev=r0.eth "
                              "-device virtio-net-pci,netdev=r0.eth",
                   "r0.eth");
}

/* device_add answers with the same sentence, and the machine continues. */
static void hot_plug_errors(void)
{
    struct qtest *q = qtest_start(PORTS NETS);
    unsigned i;

    for (i = 0; i < 3; i++) {
        char *answer = qtest_qmp(q,
                                 "{\"execute\": \"device_add\", \"arguments\": {\"driver\": "
                                 "\"staghorn\", \"bus\": \"rp0\", \"netdev\": \"n0\", "
                                 "\"max-sge\": %d}}",
                                 (int)SG_SQ_MAX_SGE + 1);

        T_TRUE(strstr(answer, "\"error\"") && strstr(answer, "max-sge"));
        g_free(answer);
    }
    qtest_qmp_ok(q, "{\"execute\": \"device_add\", \"arguments\": {\"driver\": \"staghorn\", "
                    "\"bus\": \"rp0\", \"netdev\": \"n0\", \"id\": \"good\"}}");
    qtest_stop(q);
}

static const struct t_case cases[] = {
    { "netdev: missing", no_netdev },
    { "netdev: unknown", unknown_netdev },
    { "netdev: taken by another adapter", used_netdev },
    { "netdev: taken by another NIC", netdev_of_another_nic },
    { "mac: two adapters with one", same_mac },
    { "mac: multicast, malformed", bad_mac },
    { "property: unknown", unknown_property },
    { "property: out of range, each one", out_of_range },
    { "property: ends of the ranges are accepted", ends_of_ranges },
    { "property: the wire, and what only iWARP has", wires },
    { "property: max-conns", max_conns_range },
    { "property: booleans", bad_booleans },
    { "property: words", bad_words },
    { "bus: the root complex will do", conventional_bus },
    { "help: lists every property", help },
    { "port: another NIC shares it", port_for_another_nic },
    { "port: only one NIC shares it", port_used_twice },
    { "hot plug: errors are answers", hot_plug_errors },
};

T_MAIN(cases)
