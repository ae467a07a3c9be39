/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rpcrdma decode [--json] [--port PORT]... [--transactions] FILE
 * rpcrdma rules [--json]
 * rpcrdma bench, call, check, durable, serve: main_NAME.c
 *
 * docs/rpcrdma.md describes them.  Status 0: no rule is broken; 1: at least one is; 2: wrong
 * arguments, or a file that cannot be read.
 */
#include <pcap/pcap.h>
#include <stdio.h>

#include "commands.h"
#include "decode.h"

int trouble(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("rpcrdma: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return STATUS_TROUBLE;
}

/* Writes what the report has so far; false: standard output is closed or full. */
bool write_out(GString *out)
{
    bool done = fwrite(out->str, 1, out->len, stdout) == out->len;

    g_string_truncate(out, 0);
    return done;
}

/* ---- rpcrdma rules ---- */

static void print_rule(enum rr_rule rule, bool json)
{
    static const char *const judges[] = {
        [RR_DECODE] = "decode",
        [RR_SELF] = "itself",
    };
    const struct rr_rule_row *row = rr_rule(rule);

    printf(json ? "{\"id\": \"%s\", \"section\": \"%s\", \"judged\": \"%s\", \"text\": \"%s\"}\n"
                : "%s  %-8s %-7s %s\n",
           row->id, row->section, judges[row->judge], row->text);
}

static int rules(int argc, char **argv)
{
    gboolean json = false;
    GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "one object a line", NULL },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- the rules, by id");
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        return trouble("%s", error->message);
    }
    if (argc != 1) {
        return trouble("rules takes no argument such as %s", argv[1]);
    }
    for (enum rr_rule rule = 0; rule < RR_RULES; rule++) {
        print_rule(rule, json);
    }
    return STATUS_FINE;
}

/* ---- rpcrdma decode ---- */

struct decode_options {
    gboolean json, all;
    char **ports;
    uint16_t port[RR_PORTS_MAX];
    unsigned port_count;
};

static bool link_of(pcap_t *pcap, enum rr_link *link)
{
    static const struct {
        int type;
        enum rr_link link;
    } rows[] = {
        { DLT_EN10MB, RR_LINK_ETHERNET }, { DLT_RAW, RR_LINK_RAW },       { DLT_IPV4, RR_LINK_RAW },
        { DLT_IPV6, RR_LINK_RAW },        { DLT_LINUX_SLL, RR_LINK_SLL },
#ifdef DLT_LINUX_SLL2
        { DLT_LINUX_SLL2, RR_LINK_SLL2 },
#endif
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        if (rows[i].type == pcap_datalink(pcap)) {
            *link = rows[i].link;
            return true;
        }
    }
    return false;
}

/* All frames of the file; the answer of the last pcap_next_ex(). */
static int read_frames(pcap_t *pcap, enum rr_link link, struct rr_decode *d, GString *out)
{
    struct pcap_pkthdr *header;
    const u_char *octets;
    int got;

    while ((got = pcap_next_ex(pcap, &header, &octets)) == 1) {
        rr_decode_frame(d, link, sg_span_of(octets, header->caplen), header->len);
        if (out->len && !write_out(out)) {
            break;
        }
    }
    return got;
}

static int decode_frames(const char *path, pcap_t *pcap, enum rr_link link,
                         const struct decode_options *o)
{
    struct rr_report report = { .json = o->json, .all = o->all, .out = g_string_new(NULL) };
    struct rr_decode *d = rr_decode_new(&report, o->port, o->port_count);
    int status = STATUS_FINE;

    if (read_frames(pcap, link, d, report.out) == PCAP_ERROR) {
        status = trouble("%s: after the last complete frame: %s", path, pcap_geterr(pcap));
    }
    rr_decode_free(d);
    if (!write_out(report.out) || fflush(stdout)) {
        status = trouble("cannot write the report");
    }
    g_string_free(report.out, true);
    return status ? status : report.findings ? STATUS_BROKEN : STATUS_FINE;
}

static int decode_file(const char *path, const struct decode_options *o)
{
    char why[PCAP_ERRBUF_SIZE] = "";
    pcap_t *pcap = pcap_open_offline(path, why);
    enum rr_link link;
    int status;

    if (!pcap) {
        return trouble("cannot read %s: %s", path, why);
    }
    if (link_of(pcap, &link)) {
        status = decode_frames(path, pcap, link, o);
    } else {
        status = trouble("%s: frames of link type %d (%s) are not known; capture Ethernet or IP",
                         path, pcap_datalink(pcap), pcap_datalink_val_to_name(pcap_datalink(pcap)));
    }
    pcap_close(pcap);
    return status;
}

static bool take_ports(struct decode_options *o)
{
    for (char **p = o->ports; p && *p; p++) {
        guint64 port;

        if (o->port_count == RR_PORTS_MAX ||
            !g_ascii_string_to_unsigned(*p, 10, 1, UINT16_MAX, &port, NULL)) {
            return false;
        }
        o->port[o->port_count++] = (uint16_t)port;
    }
    return true;
}

static int decode(int argc, char **argv)
{
    struct decode_options o = { .json = false };
    GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "one object a line", NULL },
        { "port", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.ports, "a port of responders, besides 20049",
          "PORT" },
        { "transactions", 0, 0, G_OPTION_ARG_NONE, &o.all, "print those without findings too",
          NULL },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new("FILE - what is in a capture");
    g_autoptr(GError) error = NULL;
    int status;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        return trouble("%s", error->message);
    }
    if (argc != 2) {
        status = trouble("decode takes one file; see rpcrdma decode --help");
    } else if (!take_ports(&o)) {
        status = trouble("--port takes a number from 1 to 65535, and is given at most %d times",
                         RR_PORTS_MAX);
    } else {
        status = decode_file(argv[1], &o);
    }
    g_strfreev(o.ports);
    return status;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {
        { "bench", rr_main_bench }, { "call", rr_main_call },       { "check", rr_main_check },
        { "decode", decode },       { "durable", rr_main_durable }, { "rules", rules },
        { "serve", rr_main_serve },
    };

    for (size_t i = 0; argc > 1 && i < SG_ARRAY_SIZE(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fputs("usage: rpcrdma decode [--json] [--port PORT]... [--transactions] FILE\n"
          "       rpcrdma rules [--json]\n"
          "       rpcrdma check server HOST[:PORT] [OPTION]...\n"
          "       rpcrdma check client [OPTION]...\n"
          "       rpcrdma check self [OPTION]...\n"
          "       rpcrdma check list\n"
          "       rpcrdma durable write|verify HOST[:PORT] --file NAME [OPTION]...\n"
          "       rpcrdma durable inspect PATH [OPTION]...\n"
          "       rpcrdma bench HOST[:PORT] [OPTION]...\n"
          "       rpcrdma serve [OPTION]...\n"
          "       rpcrdma call HOST[:PORT] [OPTION]...\n"
          "rpcrdma COMMAND --help explains the options.\n",
          stderr);
    return STATUS_TROUBLE;
}
