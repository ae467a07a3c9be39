/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver checker: what a driver did wrong, with its rule, its object and what came before.
 *
 * It exists only with the property check=warn or check=strict.  Without it sg_adapter.check is
 * NULL, and a hook is one comparison.
 *
 * Bounds.  The newest SG_CHECK_REPORTS reports are kept.  A mistake that is repeated with the same
 * object adds to the report that is there.  The newest SG_CHECK_EVENTS events of all objects are
 * kept, and a report copies the last SG_CHECK_LAST of its object and SG_WHERE_STACK octets of the
 * kernel's stack.  Sums of entries take
 * SG_CHECK_SUM_OCTETS at most: entries of later queues are not compared.
 *
 * What a strict checker ends, it ends in the next turn (check_turn.c): a report is made in the
 * middle of other work.
 */
#ifndef SG_VERBS_CHECK_CHECK_H
#define SG_VERBS_CHECK_CHECK_H

#include <stdarg.h>
#include <string.h>

#include "base/host.h"
#include "verbs/check/rules.h"

enum sg_check_mode { SG_CHECK_OFF, SG_CHECK_WARN, SG_CHECK_STRICT, SG_CHECK_MODES };

enum sg_check_limits {
    SG_CHECK_REPORTS = 256,
    SG_CHECK_EVENTS = 4096,
    SG_CHECK_LAST = 8,
    SG_CHECK_TEXT = 160,
    SG_CHECK_ENDS = 32,             /* objects to be ended; more of them end the adapter */
    SG_CHECK_POSTED = 1024,         /* entries of one doorbell that are looked at */
    SG_CHECK_FRESH = 65536,         /* entries of a new ring that are looked at */
    SG_CHECK_SUM_OCTETS = 64 << 20, /* of all queues */
    SG_CHECK_ANSWER_MS = 30000,     /* from an interrupt to the doorbell of its event queue */
};

enum sg_object_kind {
    SG_OBJECT_ADAPTER,
    SG_OBJECT_ADMIN,
    SG_OBJECT_EQ,
    SG_OBJECT_PD,
    SG_OBJECT_CQ,
    SG_OBJECT_QP,
    SG_OBJECT_SRQ,
    SG_OBJECT_MR,
    SG_OBJECT_LISTENER,
    SG_OBJECTS,
};

struct sg_object {
    uint8_t kind; /* enum sg_object_kind */
    bool user;    /* a process did it, through its own doorbell page */
    uint32_t id;
};

static inline struct sg_object sg_object(enum sg_object_kind kind, uint32_t id)
{
    return (struct sg_object){ .kind = (uint8_t)kind, .id = id };
}

/* The same, of the doorbell page or context 'page': what a process does never ends the adapter. */
static inline struct sg_object sg_object_of(uint32_t page, enum sg_object_kind kind, uint32_t id)
{
    return (struct sg_object){ .kind = (uint8_t)kind, .user = page != 0, .id = id };
}

enum sg_check_what {
    SG_DID_COMMAND,   /* a: opcode, b: status */
    SG_DID_POST,      /* a: producer index, b: before.  Send queue, shared queue, admin queue */
    SG_DID_POST_RECV, /* the same of a receive queue */
    SG_DID_ARM,       /* a: consumer index, b: producer index */
    SG_DID_COMPLETE,  /* a: wr_index, b: status; of a completion queue: its index */
    SG_DID_RAISE,     /* a: vector */
    SG_DID_ANSWER,    /* a: consumer index */
    SG_DID_REGISTER,  /* a: offset, b: value */
    SG_DIDS,
};

struct sg_check_event {
    uint64_t ns;
    uint32_t id;
    uint8_t kind, what;
    uint32_t a, b;
};

struct sg_check_report {
    uint64_t number; /* from 1 */
    uint64_t ns, last_ns;
    uint64_t count; /* how often */
    uint16_t rule;  /* enum sg_rule */
    struct sg_object object;
    bool has_where;
    struct sg_where where; /* of the first time */
    unsigned events;
    struct sg_check_event event[SG_CHECK_LAST]; /* the oldest first */
    char text[SG_CHECK_TEXT];
};

struct sg_check;

/* NULL: the host has no memory. */
struct sg_check *sg_check_new(const struct sg_host *host, enum sg_check_mode mode);
void sg_check_free(struct sg_check *c);
/* All objects are gone.  Reports stay. */
void sg_check_reset(struct sg_check *c);

/* Something was done to the object. */
void sg_check_event(struct sg_check *c, struct sg_object o, enum sg_check_what what, uint32_t a,
                    uint32_t b);
/* The number was given to an object.  'was': was it ever, since the reset? */
void sg_check_made(struct sg_check *c, enum sg_object_kind kind, uint32_t id);
bool sg_check_was(const struct sg_check *c, enum sg_object_kind kind, uint32_t id);
/* STags are not counted up: the last ones that ended. */
void sg_check_stag_ended(struct sg_check *c, uint32_t stag);

/* True: something is to be ended, in a turn. */
bool sg_check_add(struct sg_check *c, enum sg_rule rule, struct sg_object o, const char *fmt,
                  va_list ap);

enum sg_check_mode sg_check_mode(const struct sg_check *c);
/* The kept reports are 'first' to 'end' - 1. */
void sg_check_range(const struct sg_check *c, uint64_t *first, uint64_t *end);
const struct sg_check_report *sg_check_get(const struct sg_check *c, uint64_t number);

/* The next object to be ended; false: none.  *adapter: the adapter itself. */
bool sg_check_next_end(struct sg_check *c, struct sg_object *o, bool *adapter);

/* text.c: an object's name, "qp 5". */
void sg_check_name(struct sg_object o, char *buf, size_t len);
/* A report as one line of JSON without newline; returns its length, at most len - 1. */
size_t sg_check_json(const struct sg_check_report *r, char *buf, size_t len);
enum { SG_CHECK_JSON_MAX = 4096 + 2 * SG_WHERE_STACK };

/* ---- sums of entries (sums.c) ---- */

struct sg_check_sums {
    uint32_t entries; /* power of two */
    uint32_t told;    /* entries below it were reported to the driver */
    bool changed;     /* the entry that was fetched last was reported as changed */
    uint32_t sum[];   /* by slot; 0: not known */
};

/* NULL: there is no checker, or no memory for it. */
struct sg_check_sums *sg_check_sums_new(struct sg_check *c, uint32_t entries);
void sg_check_sums_free(struct sg_check *c, struct sg_check_sums *s);

static inline uint64_t sg_check_sum_word(uint64_t sum, uint64_t word)
{
    /* Both steps can be undone: of 64 bits, a change of one word is a change of the sum. */
    return ((sum << 5 | sum >> 59) ^ word) * 0x9e3779b97f4a7c15u;
}

/*
 * Never 0.  The 64 bits are folded to 32, so about one of 2^32 changes is not noticed.  Each work
 * request takes two sums, so this is no CRC: what it shall find is a driver that uses an entry too
 * early, not a damaged one.
 */
static inline uint32_t sg_check_sum(const void *octets, size_t len)
{
    const uint8_t *p = octets;
    uint64_t sum = len, word;

    for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        sum = sg_check_sum_word(sum, word);
    }
    if (len) {
        word = 0;
        memcpy(&word, p, len);
        sum = sg_check_sum_word(sum, word);
    }
    sum ^= sum >> 32;
    return (uint32_t)sum ? (uint32_t)sum : 1;
}

#endif
