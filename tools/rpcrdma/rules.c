/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules.h"

#include <stdarg.h>
#include <stdio.h>

#define ROW(family, number, at, who, what) \
    [family##_##number] = { #family "-" #number, at, what, who }

static const struct rr_rule_row rows[RR_RULES] = {
    ROW(RPC, 01, "3.3.1", RR_DECODE, "A requester has no more Calls open than it has credits."),
    ROW(RPC, 02, "3.3.1", RR_DECODE, "A responder never grants zero credits."),
    ROW(RPC, 03, "3.3.1", RR_DECODE, "A responder has the receives posted that it grants."),
    ROW(RPC, 04, "3.3.1", RR_DECODE, "A requester has receives posted for the Replies it expects."),
    ROW(RPC, 05, "3.3.3", RR_DECODE, "Before the first Reply a requester uses one credit."),
    ROW(RPC, 06, "3.3.3", RR_DECODE, "Each side can receive messages of 1024 octets."),
    ROW(RPC, 07, "3.4.2", RR_DECODE, "A chunk carries only an item that is DDP-eligible."),
    ROW(RPC, 08, "3.4.4.1", RR_DECODE, "The count of an array stays, its elements may move."),
    ROW(RPC, 09, "3.4.4.2", RR_DECODE, "The flag of optional data stays, the data may move."),
    ROW(RPC, 10, "3.4.4.3", RR_DECODE, "Unions are not DDP-eligible; their arms may be."),
    ROW(RPC, 11, "3.4.4.4", RR_DECODE, "The pad of a reduced item leaves the stream with it."),
    ROW(RPC, 12, "3.4.5", RR_DECODE, "A Position counts from the unreduced stream's start, by 4."),
    ROW(RPC, 13, "3.4.5.2", RR_DECODE, "A Read chunk is as long as its item, or the padded item."),
    ROW(RPC, 14, "3.4.6", RR_DECODE, "A Write chunk holds the largest result that may come."),
    ROW(RPC, 15, "3.4.6", RR_DECODE,
        "A Write chunk comes back with its segments and true lengths."),
    ROW(RPC, 16, "3.4.6.2", RR_DECODE, "No pad is written to a Write chunk."),
    ROW(RPC, 17, "3.5.3", RR_DECODE, "A Call above the threshold is a Long Call."),
    ROW(RPC, 18, "3.5.3", RR_DECODE, "The chunk of a Long Call has Position 0, and only there."),
    ROW(RPC, 19, "3.5.3", RR_DECODE, "A Reply above the threshold uses its Reply chunk."),
    ROW(RPC, 20, "3.5.3", RR_DECODE, "A chunk with a whole message contains the message's pads."),
    ROW(RPC, 21, "4", RR_DECODE, "Headers are XDR."),
    ROW(RPC, 22, "4.2.1", RR_DECODE, "The header's XID is that of the RPC message."),
    ROW(RPC, 23, "4.2.2", RR_DECODE, "The version is 1."),
    ROW(RPC, 24, "4.2.4", RR_DECODE, "RDMA_NOMSG has the chunk that holds its message."),
    ROW(RPC, 25, "4.2.4", RR_DECODE, "A requester sends no RDMA_ERROR."),
    ROW(RPC, 26, "4.2.4", RR_DECODE, "A responder drops an RDMA_ERROR without an answer."),
    ROW(RPC, 27, "4.3.1", RR_DECODE, "The Read list of a Reply is empty."),
    ROW(RPC, 28, "4.3.2", RR_DECODE, "A responder uses the Write list for eligible results."),
    ROW(RPC, 29, "4.3.2.2", RR_DECODE, "The next eligible result uses the first free chunk."),
    ROW(RPC, 30, "4.3.2.2", RR_DECODE, "Write chunks without a result come back, unused."),
    ROW(RPC, 31, "4.3.2.2", RR_SELF, "An unused chunk's memory may have been changed."),
    ROW(RPC, 32, "4.3.2.3", RR_DECODE, "An empty Write chunk comes back empty."),
    ROW(RPC, 33, "4.3.3", RR_DECODE, "A Call whose Reply may be long offers a Reply chunk."),
    ROW(RPC, 34, "4.3.3", RR_DECODE, "A Reply chunk comes back with its segments, true lengths."),
    ROW(RPC, 35, "4.5", RR_DECODE, "A message shorter than 28 octets gets no answer."),
    ROW(RPC, 36, "4.5", RR_DECODE, "A bad Call gets RDMA_ERROR with its XID and version."),
    ROW(RPC, 37, "4.5", RR_DECODE, "A requester drops a bad Reply without an answer."),
    ROW(RPC, 38, "4.5.1", RR_DECODE, "Another version gets ERR_VERS with a range of versions."),
    ROW(RPC, 39, "4.5.2", RR_DECODE, "A header that is no XDR gets ERR_CHUNK."),
    ROW(RPC, 40, "4.5.4", RR_SELF, "Who cannot invalidate or reply closes the connection."),
    ROW(RPC, 41, "4.6.1", RR_DECODE, "Nobody sends RDMA_MSGP."),
    ROW(RPC, 42, "4.6.2", RR_DECODE, "Nobody sends RDMA_DONE."),
    ROW(RPC, 43, "4.2.4", RR_DECODE, "A Send is not longer than the inline threshold."),
    ROW(PVT, 01, "4", RR_SELF, "The settings may differ after a reconnect."),
    ROW(PVT, 02, "4", RR_DECODE, "Reserved bits are sent as 0."),
    ROW(PVT, 03, "4", RR_SELF, "Reserved bits are ignored when received."),
    ROW(PVT, 04, "4.1", RR_DECODE, "Only an STag of the same XID is invalidated remotely."),
    ROW(PVT, 05, "4.1", RR_DECODE, "Remote invalidation needs R of both sides."),
    ROW(PVT, 06, "5.1", RR_SELF, "Without valid private data: R is 0, the sizes are 1024."),
    ROW(PVT, 07, "5.2", RR_SELF, "Without the identifier there is no private data."),
    ROW(PVT, 08, "5.2", RR_SELF, "Version and length are checked."),
    ROW(PVT, 09, "5.2", RR_SELF, "The identifier may stand at any octet."),
};

const struct rr_rule_row *rr_rule(enum rr_rule rule)
{
    return &rows[rule];
}

void rr_find(struct rr_findings *f, enum rr_rule rule, const char *format, ...)
{
    va_list ap;

    if (f->count == RR_FINDINGS_MAX) {
        f->left_out++;
        return;
    }
    f->found[f->count].rule = rule;
    va_start(ap, format);
    vsnprintf(f->found[f->count].text, sizeof(f->found[0].text), format, ap);
    va_end(ap);
    f->count++;
}

bool rr_found(const struct rr_findings *f, enum rr_rule rule)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (f->found[i].rule == rule) {
            return true;
        }
    }
    return false;
}

void rr_find_all(struct rr_findings *f, const struct rr_findings *more)
{
    for (unsigned i = 0; i < more->count; i++) {
        rr_find(f, more->found[i].rule, "%s", more->found[i].text);
    }
    f->left_out += more->left_out;
}
