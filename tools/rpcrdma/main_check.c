/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rpcrdma check server HOST[:PORT]|nfs://HOST[:PORT] [OPTION]...: examines a server.
 * rpcrdma check client [OPTION]...: waits for clients, and examines them.
 * rpcrdma check self [OPTION]...: examines our own responder and requester, in this process and
 *   without RDMA.
 * rpcrdma check list: the cases.
 *
 * Status 0: all is well; 1: a rule is broken; 2: wrong arguments, or the JUnit file cannot be
 * written; 3: no rule is broken, but some cases had no judgement.
 */
#include <stdio.h>

#include "check.h"
#include "client_cases.h"
#include "commands.h"
#include "loopback.h"
#include "loopback_client.h"
#include "port_verbs.h"

/* In one process all that may come is there at once. */
enum { LIMIT_MAX_MS = 600000, SELF_QUIET_MS = 5 };

bool split_target(char *target, const char **host, unsigned *port)
{
    char *colon = strrchr(target, ':');
    bool brackets = target[0] == '[';
    guint64 number = *port;

    if (brackets && colon && colon > target && colon[-1] == ']') {
        colon[-1] = '\0';
    } else if (brackets) {
        char *close = strchr(target, ']');

        if (!close || close[1]) {
            return false;
        }
        *close = '\0';
        colon = NULL;
    } else if (colon && strchr(target, ':') != colon) {
        colon = NULL;
    }
    if (colon) {
        if (!g_ascii_string_to_unsigned(colon + 1, 10, 1, UINT16_MAX, &number, NULL)) {
            return false;
        }
        *colon = '\0';
    }
    *host = target + brackets;
    *port = (unsigned)number;
    return **host;
}

/* People see each case when it is done. */
static bool show(GString *out)
{
    return write_out(out) && !fflush(stdout);
}

static int finish(struct rr_book *book, const char *junit)
{
    g_autoptr(GError) error = NULL;
    int status = book->failed       ? STATUS_BROKEN
                 : book->in_trouble ? STATUS_NO_JUDGEMENT
                                    : STATUS_FINE;

    rr_book_close(book);
    if (!show(book->out) || ferror(stdout)) {
        status = trouble("cannot write the report");
    }
    g_string_free(book->out, true);
    if (junit && !g_file_set_contents(junit, book->junit->str, (gssize)book->junit->len, &error)) {
        status = trouble("%s", error->message);
    }
    if (book->junit) {
        g_string_free(book->junit, true);
    }
    return status;
}

static void book_init(struct rr_book *book, const struct rr_check_arguments *a, const char *target)
{
    *book = (struct rr_book){
        .target = target,
        .tap = a->tap,
        .verbose = a->verbose,
        .out = g_string_new(NULL),
        .write = show,
        .junit = a->junit ? g_string_new(NULL) : NULL,
    };
}

static struct rr_check_run server_run(const struct rr_check_arguments *a, struct rr_book *book,
                                      struct rr_dialer *dialer, const struct rr_service *service)
{
    struct rr_check_run r = {
        .options = { .service = service,
                     .nfs = rr_service_nfs,
                     .any_edition = !a->rules,
                     .edition = a->rules ? rr_edition_of(a->rules) : RR_EDITION_RFC,
                     .reply_ms = a->reply_ms != RR_UNSET ? (unsigned)a->reply_ms : RR_REPLY_MS,
                     .quiet_ms = a->quiet_ms != RR_UNSET ? (unsigned)a->quiet_ms : RR_QUIET_MS,
                     .private_data = sg_span_of(a->private_data, a->private_len) },
        .dialer = dialer,
        .only = a->only,
        .book = book,
    };

    r.options.nfs.file = a->file;
    return r;
}

static int check_server(const struct rr_check_arguments *a, const char *target)
{
    g_autofree char *copy = g_strdup(target);
    struct rr_verbs_dialer dialer;
    struct rr_check_run run;
    struct rr_book book;
    const char *host;
    unsigned port = RR_PORT_DEFAULT;

    if (!split_target(copy, &host, &port)) {
        return trouble("%s is no HOST, HOST:PORT or [ADDRESS]:PORT", target);
    }
    rr_verbs_dialer_init(&dialer, host, port);
    book_init(&book, a, target);
    run = server_run(a, &book, &dialer.dialer, &rr_service_echo);
    if (a->program && strcmp(a->program, "nfs") == 0) {
        run.options.service = &run.options.nfs;
    }
    rr_wait_ready(&run);
    rr_book_open(&book, rr_check_count(&run));
    rr_check_all(&run);
    return finish(&book, a->junit);
}

static int check_client(const struct rr_check_arguments *a)
{
    struct rr_book book;
    int status;

    book_init(&book, a, "client");
    status = rr_check_client(a, &book);
    if (status == STATUS_FINE) {
        return finish(&book, a->junit);
    }
    g_string_free(book.out, true);
    if (book.junit) {
        g_string_free(book.junit, true);
    }
    return status;
}

static int check_self(const struct rr_check_arguments *a)
{
    struct rr_settings settings = rr_settings_default();
    struct rr_requester_settings requester = rr_requester_defaults();
    struct rr_client_loopback clients;
    struct rr_client_run client_run;
    struct rr_loopback loopback;
    struct rr_check_run run;
    struct rr_book book;

    settings.edition = a->rules ? rr_edition_of(a->rules) : RR_EDITION_RFC;
    rr_loopback_init(&loopback, &settings);
    rr_client_loopback_init(&clients, &requester);
    book_init(&book, a, "self");
    run = server_run(a, &book, &loopback.dialer, &rr_service_echo);
    client_run = (struct rr_client_run){
        .options = { .acceptor = &clients.acceptor,
                     .source = &rr_source_echo,
                     .wait_ms = a->reply_ms != RR_UNSET ? (unsigned)a->reply_ms : RR_REPLY_MS,
                     .quiet_ms = a->quiet_ms != RR_UNSET ? (unsigned)a->quiet_ms : SELF_QUIET_MS },
        .only = a->only,
        .book = &book,
    };
    rr_wait_ready(&run);
    rr_book_open(&book, rr_check_count(&run) + rr_client_check_count(&client_run));
    rr_check_all(&run);
    rr_client_check_all(&client_run);
    rr_loopback_clear(&loopback);
    rr_client_loopback_clear(&clients);
    return finish(&book, a->junit);
}

static int list(void)
{
    g_autoptr(GString) out = g_string_new(NULL);

    rr_list_cases(out);
    rr_list_client_cases(out);
    return write_out(out) && !fflush(stdout) ? STATUS_FINE : trouble("cannot write the list");
}

static bool is_limit(int ms)
{
    return ms == RR_UNSET || (ms >= 1 && ms <= LIMIT_MAX_MS);
}

/* NULL, or what is wrong with the arguments. */
static char *wrong(struct rr_check_arguments *a)
{
    for (char **id = a->only; id && *id; id++) {
        if (!rr_case_of(*id) && !rr_client_case_of(*id)) {
            return g_strdup_printf("there is no case %s; see rpcrdma check list", *id);
        }
    }
    if (a->program && strcmp(a->program, "nfs") != 0 && strcmp(a->program, "echo") != 0) {
        return g_strdup_printf("--program takes nfs or echo, not %s", a->program);
    }
    if (a->file && (!a->program || strcmp(a->program, "nfs") != 0)) {
        return g_strdup("--file needs --program nfs");
    }
    if (a->file && (!*a->file || strlen(a->file) > UINT8_MAX || strchr(a->file, '/'))) {
        return g_strdup("--file takes the name of a file in the root of the export");
    }
    if (a->rules && rr_edition_of(a->rules) == RR_EDITIONS) {
        return g_strdup_printf("--rules takes rfc8166, 07 or 06, not %s", a->rules);
    }
    if (a->octets && !(a->private_len = rr_private_from_hex(a->octets, a->private_data,
                                                            sizeof(a->private_data)))) {
        return g_strdup_printf("--private-data takes 1 to %d octets as hex", RR_PRIVATE_ROOM);
    }
    if (a->port < 1 || a->port > UINT16_MAX) {
        return g_strdup("--port takes a number from 1 to 65535");
    }
    if (!is_limit(a->reply_ms) || !is_limit(a->quiet_ms)) {
        return g_strdup_printf("--wait and --quiet take 1 to %d milliseconds", LIMIT_MAX_MS);
    }
    return NULL;
}

/* A case of the other side would be no case here, and all would be well. */
static int misplaced(const struct rr_check_arguments *a, const char *side)
{
    bool server = strcmp(side, "server") == 0, one = server || strcmp(side, "client") == 0;

    for (char **id = a->only; one && id && *id; id++) {
        if ((rr_case_of(*id) != NULL) != server) {
            return trouble("case %s is for check %s, not for check %s", *id,
                           server ? "client" : "server", side);
        }
    }
    return STATUS_FINE;
}

/* nfs://HOST[:PORT] is HOST[:PORT] with the program nfs.  NULL, or what is wrong with it. */
static char *read_url(struct rr_check_arguments *a, char **target)
{
    static const char nfs[] = "nfs://";
    char *path;

    if (!strstr(*target, "://")) {
        return NULL;
    }
    if (!g_str_has_prefix(*target, nfs)) {
        return g_strdup_printf("%s is neither HOST[:PORT] nor nfs://HOST[:PORT]", *target);
    }
    if (a->program && strcmp(a->program, "nfs") != 0) {
        return g_strdup_printf("%s has the program nfs; leave out --program %s", *target,
                               a->program);
    }
    path = strchr(*target + strlen(nfs), '/');
    if (path && path[1]) {
        return g_strdup_printf("%s: leave out %s; --file names a file in the root of the export",
                               *target, path);
    }
    if (path) {
        *path = '\0';
    }
    *target += strlen(nfs);
    g_free(a->program);
    a->program = g_strdup("nfs");
    return NULL;
}

static int dispatch(struct rr_check_arguments *a, int argc, char **argv)
{
    bool server = argc == 3 && strcmp(argv[1], "server") == 0;
    g_autofree char *error = server ? read_url(a, &argv[2]) : NULL;
    g_autofree char *text = error ? g_steal_pointer(&error) : wrong(a);

    if (text) {
        return trouble("%s", text);
    }
    if (argc > 1 && misplaced(a, argv[1])) {
        return STATUS_TROUBLE;
    }
    if (server) {
        return check_server(a, argv[2]);
    }
    if (argc == 2 && strcmp(argv[1], "client") == 0) {
        return a->file || a->octets || a->rules
                   ? trouble("check client takes none of --file, --private-data, --rules")
                   : check_client(a);
    }
    if (argc == 2 && strcmp(argv[1], "self") == 0) {
        return a->program ? trouble("check self has the program echo") : check_self(a);
    }
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        return list();
    }
    return trouble(
        "check takes: server HOST[:PORT], client, self, or list; see rpcrdma check --help");
}

int rr_main_check(int argc, char **argv)
{
    struct rr_check_arguments a = { .port = RR_PORT_DEFAULT,
                                    .reply_ms = RR_UNSET,
                                    .quiet_ms = RR_UNSET };
    GOptionEntry entries[] = {
        { "program", 0, 0, G_OPTION_ARG_STRING, &a.program,
          "echo (default; that of rpcrdma serve and rpcrdma call) or nfs", "NAME" },
        { "file", 0, 0, G_OPTION_ARG_STRING, &a.file,
          "server, nfs: a file of at least 20003 octets in the root of the export, which is "
          "overwritten",
          "NAME" },
        { "nfs", 0, 0, G_OPTION_ARG_STRING, &a.nfs,
          "client, nfs: the NFS server over TCP that answers (127.0.0.1:2049)", "HOST[:PORT]" },
        { "address", 0, 0, G_OPTION_ARG_STRING, &a.address, "client: listen at this address only",
          "ADDRESS" },
        { "port", 0, 0, G_OPTION_ARG_INT, &a.port, "client: listen at this port (20049)", "N" },
        { "case", 0, 0, G_OPTION_ARG_STRING_ARRAY, &a.only, "only this case", "ID" },
        { "rules", 0, 0, G_OPTION_ARG_STRING, &a.rules,
          "what rfc8166, 07 or 06 says (default: rfc8166, and returned Write chunks of any)",
          "EDITION" },
        { "private-data", 0, 0, G_OPTION_ARG_STRING, &a.octets,
          "send these octets where private data are not the subject: f6ab0e1801010303", "HEX" },
        { "wait", 0, 0, G_OPTION_ARG_INT, &a.reply_ms,
          "for an answer (10000), for a client and its Calls (30000)", "MS" },
        { "quiet", 0, 0, G_OPTION_ARG_INT, &a.quiet_ms,
          "where no answer is due, listen so long (300)", "MS" },
        { "tap", 0, 0, G_OPTION_ARG_NONE, &a.tap, "report as TAP", NULL },
        { "junit", 0, 0, G_OPTION_ARG_FILENAME, &a.junit, "write a JUnit report, too", "FILE" },
        { "verbose", 0, 0, G_OPTION_ARG_NONE, &a.verbose,
          "what was sent and what came, also where all is well", NULL },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new(
        "server HOST[:PORT] | client | self | list - examines a server or a client");
    g_autoptr(GError) error = NULL;
    int status;

    g_option_context_add_main_entries(context, entries, NULL);
    status = g_option_context_parse(context, &argc, &argv, &error) ? dispatch(&a, argc, argv)
                                                                   : trouble("%s", error->message);
    g_free(a.program);
    g_free(a.file);
    g_free(a.rules);
    g_free(a.junit);
    g_free(a.address);
    g_free(a.nfs);
    g_free(a.octets);
    g_strfreev(a.only);
    return status;
}
