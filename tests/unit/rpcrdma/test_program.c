/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rpcrdma as a program: files, options, statuses, and the document's table of rules. */
#include <glib/gstdio.h>
#include <pcap/pcap.h>
#include <sys/wait.h>

#include "durable.h"
#include "exchanges.h"
#include "tap.h"

static char *folder;

static char *path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

struct rpcrdma_run {
    int status;
    char *out, *err;
};

static struct rpcrdma_run run(const char *arguments)
{
    char *line = g_strdup_printf("%s %s", getenv("SG_RPCRDMA"), arguments);
    struct rpcrdma_run ran;

    T_TRUE(g_spawn_command_line_sync(line, &ran.out, &ran.err, &ran.status, NULL));
    T_TRUE(WIFEXITED(ran.status));
    ran.status = WEXITSTATUS(ran.status);
    T_CONTEXT("%s: status %d %s", arguments, ran.status, ran.err);
    g_free(line);
    return ran;
}

static void expect(const char *arguments, int status, const char *piece)
{
    struct rpcrdma_run ran = run(arguments);

    T_EQ_INT(ran.status, status);
    T_TRUE(strstr(ran.out, piece) || strstr(ran.err, piece));
    T_EQ_INT(*ran.err != 0, status == 2);
    g_free(ran.out);
    g_free(ran.err);
}

/* A capture on disk: one NULL call, sound or with a grant of zero, and a READ. */
static void save(const char *name, int link, uint32_t credit, size_t cut)
{
    static const struct read3 whole = {
        .count = 1001, .offered = 1004, .result = 1001, .placed = 1001, .returned = 1001
    };
    char *path = path_of(name);
    pcap_t *pcap = pcap_open_dead(link, 65535);
    pcap_dumper_t *dumper = pcap_dump_open(pcap, path);
    struct maker m;

    T_NOT_NULL(dumper);
    maker_init(&m);
    m.hold = true;
    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    null_reply(&m, RR_BACK, 1, credit);
    read3(&m, 2, &whole);
    for (guint i = 0; i < m.held->len; i++) {
        const GByteArray *frame = m.held->pdata[i];
        size_t skip = link == DLT_RAW ? 14 : 0;
        struct pcap_pkthdr header = { .caplen = (bpf_u_int32)SG_MIN(frame->len - skip, cut),
                                      .len = (bpf_u_int32)(frame->len - skip) };

        pcap_dump((u_char *)dumper, &header, frame->data + skip);
    }
    pcap_dump_close(dumper);
    pcap_close(pcap);
    maker_release(&m, NULL, 0);
    maker_finish(&m);
    maker_free(&m);
    g_free(path);
}

static void in_folder(const char *format, const char *name, int status, const char *piece)
{
    char *path = path_of(name);
    char *arguments = g_strdup_printf(format, path);

    expect(arguments, status, piece);
    g_free(arguments);
    g_free(path);
}

static void decode__statuses(void)
{
    save("fine.pcap", DLT_EN10MB, GRANT, 65535);
    in_folder("decode %s", "fine.pcap", 0, "2 transactions, 0 without a Reply, 0 breaches\n");
    in_folder("decode --transactions %s", "fine.pcap", 0, "NFS3 READ");
    in_folder("decode --json %s", "fine.pcap", 0, "{\"summary\": {\"frames\": ");
    save("raw.pcap", DLT_RAW, GRANT, 65535);
    in_folder("decode %s", "raw.pcap", 0, "2 transactions, 0 without a Reply, 0 breaches\n");
    save("broken.pcap", DLT_EN10MB, 0, 65535);
    in_folder("decode %s", "broken.pcap", 1, "RPC-02 (RFC 8166 3.3.1): a grant of zero credits");
    in_folder("decode --json --transactions %s", "broken.pcap", 1, "{\"RPC-02\": 1}");
}

/* A snapshot length cuts the frames: that is said. */
static void decode__cut_frames(void)
{
    save("cut.pcap", DLT_EN10MB, GRANT, 300);
    in_folder("decode %s", "cut.pcap", 0, "octets are missing from the capture");
}

static void decode__bad_files(void)
{
    char *path = path_of("short.pcap"), *whole = path_of("whole.pcap"), *octets;
    gsize len;

    in_folder("decode %s", "missing.pcap", 2, "missing.pcap: No such file or directory");
    save("link.pcap", DLT_USB, GRANT, 65535);
    in_folder("decode %s", "link.pcap", 2, "are not known; capture Ethernet or IP");
    save("whole.pcap", DLT_EN10MB, GRANT, 65535);
    T_TRUE(g_file_get_contents(whole, &octets, &len, NULL));
    T_TRUE(g_file_set_contents(path, octets, (gssize)len - 5, NULL));
    in_folder("decode %s", "short.pcap", 2, "after the last complete frame: truncated");
    T_TRUE(g_file_set_contents(path, "no capture", -1, NULL));
    in_folder("decode %s", "short.pcap", 2, "rpcrdma: cannot read ");
    g_free(octets);
    g_free(whole);
    g_free(path);
}

static void arguments(void)
{
    expect("", 2, "usage: rpcrdma decode");
    expect("server", 2, "usage: rpcrdma decode");
    expect("decode", 2, "decode takes one file");
    expect("decode --jason x", 2, "Unknown option --jason");
    expect("decode --port 0 x", 2, "--port takes a number from 1 to 65535");
    expect("decode --port nfs x", 2, "--port takes a number from 1 to 65535");
    expect("rules all", 2, "rules takes no argument such as all");
}

static void check__arguments(void)
{
    expect("check", 2, "check takes: server HOST[:PORT], client, self, or list");
    expect("check server", 2, "check takes: server HOST[:PORT], client, self, or list");
    expect("check self again", 2, "check takes: server HOST[:PORT], client, self, or list");
    expect("check self --case nul", 2, "there is no case nul; see rpcrdma check list");
    expect("check client --case null", 2, "case null is for check server, not for check client");
    expect("check client --case client-msgp --case msgp", 2, "case msgp is for check server, not");
    expect("check server x --case client-msgp", 2, "case client-msgp is for check client, not for");
    expect("check self --program nfs", 2, "check self has the program echo");
    expect("check self --program smb", 2, "--program takes nfs or echo, not smb");
    expect("check self --file x", 2, "--file needs --program nfs");
    expect("check server x --program nfs --file a/b", 2, "a file in the root of the export");
    expect("check self --rules 08", 2, "--rules takes rfc8166, 07 or 06, not 08");
    expect("check self --wait 0", 2, "--wait and --quiet take 1 to 600000 milliseconds");
    expect("check server :20049", 2, "is no HOST, HOST:PORT or [ADDRESS]:PORT");
    expect("check server nfs://", 2, "is no HOST, HOST:PORT or [ADDRESS]:PORT");
    expect("check server nfs://a:0", 2, "is no HOST, HOST:PORT or [ADDRESS]:PORT");
    expect("check server nfs://a/b", 2, "leave out /b; --file names a file in the root");
    expect("check server http://a", 2, "http://a is neither HOST[:PORT] nor nfs://HOST[:PORT]");
    expect("check server nfs://a --program echo", 2, "leave out --program echo");
    expect("check server a:0", 2, "is no HOST, HOST:PORT or [ADDRESS]:PORT");
    expect("check server [::1", 2, "is no HOST, HOST:PORT or [ADDRESS]:PORT");
    expect("check self --private-data f6a", 2, "--private-data takes 1 to 148 octets as hex");
    expect("check self --case null --private-data 0102f6ab0e18010100ff --verbose", 0,
           "our private data present (R=1, send 1024, receive 262144)");
    expect("serve --private-data xy", 2, "--private-data takes 1 to 148 octets as hex");
    expect("serve --private-data 00 --invalidate", 2, "--private-data says it all");
    expect("check client now", 2, "check takes: server HOST[:PORT], client, self, or list");
    expect("check client --port 0", 2, "--port takes a number from 1 to 65535");
    expect("check client --file x", 2, "--file needs --program nfs");
    expect("check client --program nfs --file x", 2,
           "check client takes none of --file, --private");
    expect("check client --rules 07", 2, "check client takes none of --file, --private-data, ");
    expect("check client --private-data f6", 2, "check client takes none of --file, --private");
    expect("check client --nfs beta", 2, "--nfs needs --program nfs");
    expect("check client --program nfs --nfs beta:x", 2, "is no HOST, HOST:PORT or [ADDRESS]");
    expect("call", 2, "call takes HOST[:PORT]; see rpcrdma call --help");
    expect("call :20049", 2, "is no HOST, HOST:PORT or [ADDRESS]:PORT");
    expect("call x --count -1", 2, "--count takes a number from 0");
    expect("call x --seconds 0", 2, "--seconds takes a number from 1 to 86400");
    expect("call x --at-once 33", 2, "--at-once takes a number from 1 to 32");
    expect("call x --inline 1000", 2, "--inline takes a multiple of 1024");
    expect("serve now", 2, "serve takes no argument such as now");
    expect("serve --rules 08", 2, "--rules takes rfc8166, 07 or 06, not 08");
    expect("serve --port 65536", 2, "--port takes a number from 1 to 65535");
    expect("serve --inline 1000", 2, "--inline takes a multiple of 1024");
    expect("serve --credits 256", 2, "--credits takes a number from 1 to 255");
}

static void durable_and_bench__arguments(void)
{
    expect("durable", 2, "durable takes: write HOST[:PORT], verify HOST[:PORT] or inspect PATH");
    expect("durable erase x --file y", 2, "durable takes: write HOST[:PORT]");
    expect("durable write x", 2, "--file takes the name of a file in the root of the export");
    expect("durable write x --file a/b", 2, "--file takes the name of a file in the root");
    expect("durable write x --file a --size 70000", 2, "--size takes a multiple of 4 from 16");
    expect("durable write x --file a --records 40000", 2, "--records takes a number from 0 to");
    expect("durable write x --file a --stable yes", 2, "--stable takes unstable, data-sync");
    expect("durable write x --file a --json", 2, "--json is for inspect");
    expect("durable inspect x --file a", 2, "inspect takes the PATH of the file, and no --file");
    expect("durable inspect", 2, "durable takes:");
    expect("bench", 2, "bench takes one HOST[:PORT]");
    expect("bench x --file y", 2, "--file needs --program nfs");
    expect("bench x --seconds 0", 2, "--seconds takes a number above 0, at most 600");
    expect("bench x --depth 33", 2, "--depth takes a number from 1 to 32");
}

enum { INSPECTED = 5, OCTETS = 64 };

/* Records 1, 2 and 4 are right, 3 is torn, 5 is behind the end of the file. */
static void durable_inspect__a_file(void)
{
    struct rr_durable d = { .seed = 7, .size = OCTETS };
    uint8_t octets[(INSPECTED - 1) * OCTETS];
    char *path = path_of("records"), *arguments;

    for (uint32_t n = 1; n < INSPECTED; n++) {
        rr_record_fill(&d, n, octets + (n - 1) * OCTETS);
    }
    octets[3 * OCTETS - 1] ^= 1;
    T_TRUE(g_file_set_contents(path, (char *)octets, sizeof(octets), NULL));
    arguments = g_strdup_printf("durable inspect %s --seed 7 --size %d --records", path, OCTETS);
    {
        g_autofree char *fine = g_strdup_printf("%s 2", arguments);
        g_autofree char *none = g_strdup_printf("%s 0", arguments);
        g_autofree char *wrong = g_strdup_printf("%s %d", arguments, INSPECTED);
        g_autofree char *json = g_strdup_printf("%s --json", wrong);
        g_autofree char *other = g_strdup_printf("%s --seed 8", fine);
        g_autofree char *missing = g_strdup_printf("durable inspect %s-no --records 1", path);

        expect(fine, 0, "records 2 right 2 lost 0 torn 0\n");
        expect(none, 0, "records 0 right 0 lost 0 torn 0\n");
        expect(wrong, 1, "records 5 right 3 lost 1 torn 1\nrecord 3 is torn\nrecord 5 is lost\n");
        expect(json, 1,
               "{\"records\": 5, \"right\": 3, \"lost\": 1, \"torn\": 1, \"wrong\": "
               "[{\"record\": 3, \"state\": \"torn\"}, {\"record\": 5, \"state\": \"lost\"}]}\n");
        expect(other, 1, "records 2 right 0 lost 0 torn 2\n");
        expect(missing, 2, "No such file or directory");
    }
    T_EQ_INT(g_remove(path), 0);
    g_free(arguments);
    g_free(path);
}

/* The responder of this program keeps all rules; each form of report says so. */
static void check__self(void)
{
    char *path = path_of("junit.xml"), *arguments, *junit;

    expect("check list", 0, "reply-chunk-too-small  RPC-36  a Reply chunk that is");
    expect("check self", 0, " ok, 0 broken, 0 skipped, 0 without judgement\n");
    expect("check self --tap --case null --case msgp", 0, "1..2\nok 1 - null: a Call without");
    expect("check self --verbose --case msgp", 0, "    sent: RDMA_MSGP, 76 octets\n    came: ");
    expect("check self --rules 07 --case unused-segments", 0, "self: 1 ok, 0 broken");
    expect("check list", 0, "client-err-vers        RPC-25  ERR_VERS ends its Call");
    expect("check self --tap --case client-msgp --case null", 0,
           "1..2\nok 1 - null: a Call without chunks gets its Reply\nok 2 - client-msgp: RDMA_M");
    expect("check self --verbose --case client-short", 0, "    sent: 24 octets, 24 octets\n");

    arguments = g_strdup_printf("check self --junit %s --case null", path);
    expect(arguments, 0, "self: 1 ok");
    T_TRUE(g_file_get_contents(path, &junit, NULL, NULL));
    T_NOT_NULL(strstr(junit, "<testsuite name=\"rpcrdma\" tests=\"1\">\n  <testcase "));
    g_free(junit);
    g_free(arguments);
    g_free(path);
    expect("check self --junit /nowhere/junit.xml --case null", 2, "/nowhere/junit.xml");
}

/* Nobody listens at that port; without an RDMA device there is not even a connection manager. */
static void check__no_server(void)
{
    expect("check server nfs://127.0.0.1:1 --case null", 3, "cannot judge: no connection: ");
    expect("check server nfs://127.0.0.1:1/ --case null --file f", 3, "no connection: ");
    expect("check server 127.0.0.1:1 --case null", 3, "cannot judge: no connection: ");
    expect("check server 127.0.0.1:1 --tap --case null", 3, "not ok 1 - null");
    expect("call 127.0.0.1:1", 2, "rpcrdma: no connection: ");
    /* Not a port that can be had; without an RDMA device none can. */
    expect("check client --address 192.0.2.1", 2, "rpcrdma: cannot listen at port 20049: ");
}

/* docs/rpcrdma.md has the same rules, sections and texts. */
static void rules__as_in_the_document(void)
{
    char *path = g_build_filename(getenv("SG_TOP"), "docs/rpcrdma.md", NULL), *document;
    static const char *const judges[] = { "decode", "itself" };
    struct rpcrdma_run ran = run("rules");

    T_EQ_INT(ran.status, 0);
    T_TRUE(g_file_get_contents(path, &document, NULL, NULL));
    for (unsigned i = 0; i < RR_RULES; i++) {
        const struct rr_rule_row *row = rr_rule(i);
        char *line = g_strdup_printf("\n| %s | %s | %s | %s |\n", row->id, row->section,
                                     judges[row->judge], row->text);

        T_CONTEXT("%s", line);
        T_NOT_NULL(strstr(document, line));
        T_NOT_NULL(strstr(ran.out, row->text));
        g_free(line);
    }
    expect("rules --json", 0, "{\"id\": \"PVT-09\", \"section\": \"5.2\", \"judged\": \"itself\"");
    g_free(document);
    g_free(path);
    g_free(ran.out);
    g_free(ran.err);
}

static const struct t_case cases[] = {
    { "decode: statuses and forms", decode__statuses },
    { "decode: frames that a snapshot length cut", decode__cut_frames },
    { "decode: files that cannot be read", decode__bad_files },
    { "arguments", arguments },
    { "check and serve: arguments", check__arguments },
    { "durable and bench: arguments", durable_and_bench__arguments },
    { "durable inspect: a file behind a recovery", durable_inspect__a_file },
    { "check self: reports", check__self },
    { "check without a server: no judgement", check__no_server },
    { "the document has the rules", rules__as_in_the_document },
};

int main(int argc, char **argv)
{
    char *line;
    int status;

    folder = g_dir_make_tmp("rpcrdma-XXXXXX", NULL);
    if (!folder || !getenv("SG_RPCRDMA") || !getenv("SG_TOP")) {
        puts("Bail out! no folder, no SG_RPCRDMA, or no SG_TOP");
        return 1;
    }
    status = t_main(cases, G_N_ELEMENTS(cases), argc, argv);
    line = g_strdup_printf("rm -rf %s", folder);
    g_spawn_command_line_sync(line, NULL, NULL, NULL, NULL);
    g_free(line);
    g_free(folder);
    return status;
}
