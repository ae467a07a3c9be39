/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The active side of a librpma pair, for all programs that write into rpma_server's memory. */
#ifndef RPMA_CONNECT_H
#define RPMA_CONNECT_H

#include "rpma_pair.h"

/* No data have this context: marks name requests by it. */
#define PAIR_ATOM_ID UINTPTR_MAX

struct rpma_active {
    struct rpma_peer *peer;
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct rpma_mr_remote *remote;
    struct rpma_mr_local *data_mr, *message_mr;
    uint8_t *data;         /* the data to write; behind them room for the data read */
    uint8_t *message;      /* first half to send, second half received */
    uint64_t length, seed; /* of the data: set before connecting */
    bool persistent;
};

/* Connects to rpma_server, with memory for data of this length and seed. */
void rpma_active_connect(struct rpma_active *c, const char *address);
/* Writes one atom and waits for its completion; returns the completion's opcode. */
int rpma_active_atom(struct rpma_active *c, uint64_t atom);
/* Does the server see the data and this atom?  Otherwise the program ends with a message. */
void rpma_active_compare(struct rpma_active *c, uint64_t atom);
void rpma_active_close(struct rpma_active *c);

#endif
