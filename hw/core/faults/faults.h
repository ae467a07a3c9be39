/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults on demand: rules that make an adapter misbehave as hardware does.
 *
 * A rule names a point of the adapter, an effect and the occurrences that it concerns: "the third
 * REG_MR fails".  docs/manual/faults.md has the grammar and the meaning of each effect.  This layer
 * knows neither the adapter nor a clock: the adapter asks at its points, with the time, and does
 * what it is told.  The same rules and the same sequence of occurrences give the same faults.
 *
 * An adapter without rules has a NULL pointer instead of this object; a point is then one
 * comparison.
 */
#ifndef SG_FAULTS_FAULTS_H
#define SG_FAULTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/host.h"

enum sg_fault_limits {
    SG_FAULT_RULES = 64, /* those that were drawn included */
    SG_FAULT_TEXT = 160, /* of a rule, with the NUL */
    SG_FAULT_LATE = 64,  /* interrupts that wait; further ones are not delayed */
    SG_FAULT_VECTORS = 64,
};

enum sg_fault_point {
    SG_POINT_COMMAND,    /* which: the opcode */
    SG_POINT_INTERRUPT,  /* which: the vector */
    SG_POINT_REGISTERS,  /* a read; which: the offset */
    SG_POINT_DMA,        /* which: 0 reads memory, 1 writes it */
    SG_POINT_COMPLETION, /* which: the completion queue */
    SG_POINT_OUTBOUND,   /* a message; which: our queue pair */
    SG_POINT_INBOUND,
    SG_POINT_LINK,
    SG_POINT_ERROR,
    SG_POINTS,
};

enum sg_fault_effect {
    SG_EFFECT_NONE,
    /* Of a command. */
    SG_EFFECT_FAIL,   /* not executed; value: its status */
    SG_EFFECT_SLOW,   /* executed later; value: ns */
    SG_EFFECT_STUCK,  /* never executed, and none behind it */
    SG_EFFECT_SILENT, /* executed, but not answered */
    /* Of an interrupt; LATE also of a completion. */
    SG_EFFECT_LATE,     /* value: ns */
    SG_EFFECT_LOST,     /* */
    SG_EFFECT_WRONG,    /* value: the vector instead */
    SG_EFFECT_SPURIOUS, /* at a time, without a cause; value: the vector */
    /* Of the registers. */
    SG_EFFECT_ONES, /* all bits are 1 */
    /* Of DMA. */
    SG_EFFECT_REFUSE, /* the address does not respond */
    /* Of a message: what the peer gets then. */
    SG_EFFECT_TERMINATE,
    SG_EFFECT_FIN,
    SG_EFFECT_RST,
    SG_EFFECT_MUTE, /* nothing more */
    /* Of the link, at a time; the machine around the adapter does it. */
    SG_EFFECT_DOWN, /* value: for so many ns */
    SG_EFFECT_UP,   /* and then this */
    /* Errors that the PCI function reports, at a time; likewise. */
    SG_EFFECT_CORRECTABLE,
    SG_EFFECT_NONFATAL,
    SG_EFFECT_FATAL,
};

/* What to do; NONE: nothing out of the ordinary. */
struct sg_fault_act {
    uint8_t effect; /* enum sg_fault_effect */
    uint64_t value;
};

/* Names that the rules use and this layer does not know. */
struct sg_fault_words {
    unsigned commands;                       /* opcodes are below this */
    const char *(*command)(unsigned opcode); /* NULL: there is none */
};

struct sg_faults;

struct sg_faults *sg_faults_new(const struct sg_fault_words *words);
void sg_faults_free(struct sg_faults *f);

/*
 * Replaces all rules; "" clears them.  Their times count from 'now'.  False: a rule is wrong, 'err'
 * says which one and why, and nothing has changed.
 */
bool sg_faults_set(struct sg_faults *f, const char *text, uint64_t now, char *err, size_t len);
bool sg_faults_any(const struct sg_faults *f);
/* Is there a rule of this point? */
bool sg_faults_has(const struct sg_faults *f, enum sg_fault_point point);

/*
 * Something happens at a point: what becomes of it.  All rules of the point count it; the first
 * one that concerns it has its effect.
 */
struct sg_fault_act sg_faults_at(struct sg_faults *f, enum sg_fault_point point, uint32_t which,
                                 uint64_t now);
/* Are the registers unreachable?  Counts nothing: for writes. */
bool sg_faults_unreachable(const struct sg_faults *f, uint64_t now);

/* Keeps an interrupt that is LATE; false: too many of them wait. */
bool sg_faults_delay(struct sg_faults *f, uint32_t vector, uint64_t until);
/* What happens at a time: when the next one is due (SG_NEVER: nothing will), and one that is. */
uint64_t sg_faults_next(const struct sg_faults *f);
bool sg_faults_take(struct sg_faults *f, uint64_t now, struct sg_fault_act *act);
/* The adapter was reset: interrupts that wait are gone, rules and counts stay. */
void sg_faults_reset(struct sg_faults *f);

/* Rules and counts as JSON, one line; the caller frees it with g_free. */
char *sg_faults_json(const struct sg_faults *f);

#endif
