/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the program's commands share. */
#ifndef RPCRDMA_COMMANDS_H
#define RPCRDMA_COMMANDS_H

#include <glib.h>
#include <stdbool.h>

#include "port.h"

enum {
    STATUS_FINE = 0,
    STATUS_BROKEN = 1,
    STATUS_TROUBLE = 2,      /* wrong arguments, or a file that cannot be read or written */
    STATUS_NO_JUDGEMENT = 3, /* check: no rule is broken, but some cases had no judgement */
};

enum { RR_PORT_DEFAULT = 20049, RR_UNSET = -1 };

/* "rpcrdma: ..." on standard error; STATUS_TROUBLE, for the caller to return. */
__attribute__((format(printf, 1, 2))) int trouble(const char *format, ...);

/* Writes and empties it; false: standard output is closed or full. */
bool write_out(GString *out);

/*
 * HOST, HOST:PORT, [ADDRESS]:PORT; an IPv6 address without brackets has no port.  Cuts @target;
 * @port stays as it is if the target has none.
 */
bool split_target(char *target, const char **host, unsigned *port);

struct rr_check_arguments {
    char *program, *file, *rules, *junit, *address, *nfs, *octets;
    uint8_t private_data[RR_PRIVATE_ROOM]; /* what the octets say */
    size_t private_len;
    char **only;
    gboolean tap, verbose;
    int reply_ms, quiet_ms; /* RR_UNSET: the default */
    int port;
};

struct rr_book;

/* check client: waits for clients, and enters the cases into the book. */
int rr_check_client(const struct rr_check_arguments *a, struct rr_book *book);

int rr_main_bench(int argc, char **argv);
int rr_main_call(int argc, char **argv);
int rr_main_check(int argc, char **argv);
int rr_main_durable(int argc, char **argv);
int rr_main_serve(int argc, char **argv);

#endif
