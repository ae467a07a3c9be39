/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbered records in a file of a server, and which of them the server has promised to keep: those
 * whose WRITE was answered as stable, and those before a COMMIT that was answered with the verifier
 * of their WRITEs (RFC 7530 sections 16.3 and 16.36).  Data go by Read chunks and come back by
 * Write chunks.
 *
 * Record n has the octets from (n - 1) * size on; its content follows from the seed and n.
 */
#ifndef RPCRDMA_DURABLE_H
#define RPCRDMA_DURABLE_H

#include <stdio.h>

#include "session.h"

enum rr_durable_limits {
    RR_RECORD_MIN = 16,
    RR_RECORD_MAX = 64 * 1024,
    RR_RECORDS_MAX = 32 * 1024, /* offsets have 31 bits */
};

struct rr_durable {
    uint32_t seed;
    uint32_t records; /* how many to write or to verify */
    uint32_t size;    /* octets of each, a multiple of 4 */
    enum rr_stable stable;
    uint32_t every; /* a COMMIT behind so many records; 0: none */
    /* After each promise, if set. */
    void (*promised)(const struct rr_durable *d);

    uint32_t answered; /* records whose WRITE was answered */
    uint32_t kept;     /* records 1 to this one are promised */
    uint8_t verifier[RR_VERIFIER];
};

/* The content of a record. */
void rr_record_fill(const struct rr_durable *d, uint32_t n, uint8_t *octets);

/* Writes records until all are written or the session fails, which its verdict then says. */
bool rr_durable_write(struct rr_session *s, struct rr_durable *d);

/*
 * Reads records 1 to d->records.  *wrong: how many of them are missing or damaged, *first: the
 * first of these, or 0.  False: not all could be read.
 */
bool rr_durable_verify(struct rr_session *s, const struct rr_durable *d, uint32_t *wrong,
                       uint32_t *first);

/* ---- The file itself, behind a recovery ---- */

enum rr_record_state {
    RR_RECORD_RIGHT,
    RR_RECORD_LOST, /* nothing of it is there: the file ends before it, or has zeros */
    RR_RECORD_TORN, /* something else: a part of it, or other octets */
    RR_RECORD_STATES,
};

struct rr_inspection {
    uint32_t count[RR_RECORD_STATES]; /* of records 1 to d->records */
    uint8_t *state;                   /* of record n at n - 1, an enum rr_record_state */
};

/* "right", "lost", "torn" */
const char *rr_record_state_name(enum rr_record_state state);

/* What has become of record n, if its place has these octets; those behind the file's end are 0. */
enum rr_record_state rr_record_judge(const struct rr_durable *d, uint32_t n, const uint8_t *octets);

/*
 * Judges records 1 to d->records of the file, from where it stands.  False: it cannot be read, and
 * errno says why.  The caller frees the states, in either case.
 */
bool rr_durable_inspect(const struct rr_durable *d, FILE *file, struct rr_inspection *found);

#endif
