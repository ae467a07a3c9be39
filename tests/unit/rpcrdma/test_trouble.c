/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `rpcrdma check client` when not the client fails, but what stands around it: the server behind,
 * our own port.  That is no breach of the client, and no case passes because of it.
 */
#include "client_cases.h"
#include "loopback_client.h"
#include "tap.h"

enum { WAIT_MS = 40, QUIET_MS = 2, TICK_US = 20 };

/* Time passes when it is looked at: on a busy machine all is as on an idle one. */
static gint64 now_us;

static gint64 tick(void)
{
    return now_us += TICK_US;
}

/* All cases, with that server behind; the report is in @book. */
static void run_all(const struct rr_source *source, struct rr_book *book)
{
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_client_run run = { .book = book };
    struct rr_client_loopback loopback;

    *book = (struct rr_book){ .target = "test", .out = g_string_new(NULL) };
    rr_client_loopback_init(&loopback, &settings);
    run.options = (struct rr_client_options){ .acceptor = &loopback.acceptor,
                                              .source = source,
                                              .wait_ms = WAIT_MS,
                                              .quiet_ms = QUIET_MS,
                                              .now = tick };
    rr_client_check_all(&run);
    T_EQ_INT(book->number, rr_client_check_count(&run));
    rr_client_loopback_clear(&loopback);
}

static struct rr_upstream *open_nothing(const struct rr_source *source, char *why)
{
    snprintf(why, RR_WHY, "nobody listens there");
    return NULL;
}

/* Each case tries again, and says what is missing. */
static void no_server_behind(void)
{
    static const struct rr_source source = { .open = open_nothing };
    struct rr_book book;

    run_all(&source, &book);
    T_EQ_INT(book.in_trouble, book.number);
    T_NOT_NULL(strstr(book.out->str, "cannot judge: the server behind: nobody listens there\n"));
    T_NULL(strstr(book.out->str, "no client"));
    g_string_free(book.out, true);
}

static const struct t_case cases[] = {
    { "no server behind is no breach", no_server_behind },
};

T_MAIN(cases)
