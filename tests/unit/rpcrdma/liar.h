/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A responder or a requester that errs in one way: its port changes what goes through it. */
#ifndef SG_TESTS_RPCRDMA_LIAR_H
#define SG_TESTS_RPCRDMA_LIAR_H

#include "header.h"
#include "loopback.h"
#include "rules.h"

enum { LIAR_ROOM = 16384 };

/* A message that goes out, taken apart. */
struct liar_message {
    struct rr_header h;
    enum rr_fault fault;
    uint8_t rest[LIAR_ROOM]; /* what follows the header */
    size_t rest_len;
    bool swallow; /* it does not go out */
    bool twice;   /* it goes out again, with another XID */
    bool invalidate;
    uint32_t stag; /* that it invalidates */
};

struct liar;

struct lie {
    const char *name;
    const char *case_id; /* which has to notice */
    enum rr_rule rule;   /* as a breach of this rule */
    void (*sends)(struct liar_message *m);
    void (*damages)(uint8_t *octets, size_t *len); /* of the Send as it is */
    void (*receives)(uint8_t *octets, size_t *len, bool *swallow);
    void (*places)(struct rr_post *post);
    void (*reads)(uint8_t *octets, size_t len);
    bool scribbles; /* before it answers, it writes to the first chunk that the Call offers */
    bool mute;      /* its Sends fail */
    bool pretends;  /* its RDMA Reads and Writes are left out, and pass for done */
    bool (*cannot_send)(const struct liar *l); /* likewise, while this is true */
    void (*starts)(struct rr_loopback *loopback, struct rr_port *liar);
    /* Messages that end the connection; that are answered with RDMA_ERROR; the end of all Sends. */
    bool (*ends)(const struct liar *l, struct sg_span message);
    bool (*answers)(const struct liar *l, struct sg_span message);
    bool (*stops)(const struct liar *l, struct sg_span message);
    bool (*leaves)(struct sg_span message); /* messages behind which it ends the connection */
    bool keeps_receives;                    /* they are not posted again */
    uint32_t credits;                       /* 0: the default */
    enum rr_edition edition;
};

struct liar {
    struct rr_port port;
    struct rr_port *inner;
    struct rr_loopback *loopback;
    const struct lie *lie;
    struct liar_message message;
    uint8_t out[LIAR_ROOM];
    uint32_t stag;             /* of the newest Call */
    struct rr_segment offered; /* its first segment for results; of length 0: none */
    unsigned scribbled;
    uint32_t sent; /* XID of the newest Send */
    bool stopped;
};

/* Is that an RPC Call in RDMA_MSG?  Its header is in @h. */
bool liar_is_call(struct sg_span message, struct rr_header *h);
/* For lie.receives: no Call gets through before a Reply has; the count is the caller's to clear. */
extern unsigned liar_replies;
void liar_replies_first(uint8_t *octets, size_t *len, bool *swallow);

/* For any side of a connection. */
void liar_wrap(struct liar *liar, const struct lie *lie, struct rr_port *port);
void liar_init(struct liar *liar, struct rr_loopback *loopback, const struct lie *lie);

#endif
