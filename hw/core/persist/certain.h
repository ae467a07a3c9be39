/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Questions about all cuts of one instant at once, for those who explore them.
 *
 * Is something certain?  What could cuts decide?  When does something arrive?  A second domain, to
 * cut it.  Nothing here changes the domain, and no image is made.
 */
#ifndef SG_PERSIST_CERTAIN_H
#define SG_PERSIST_CERTAIN_H

#include "persist/persist.h"

/* Number of the newest event in the log, 0 before the first; inputs that do nothing log nothing. */
uint64_t sg_persist_seq(const struct sg_persist *p);
/* The member merged of struct sg_persist_stats, at no cost. */
uint64_t sg_persist_merged(const struct sg_persist *p);

/* Why an octet is not certain. */
enum sg_persist_doubts {
    SG_PERSIST_DOUBT_PENDING,   /* a cut may lose what was stored */
    SG_PERSIST_DOUBT_UNTRACKED, /* a CPU changed it, nobody knows when, nor whether it flushed it */
    SG_PERSIST_DOUBT_REFUSED,   /* it would survive, if the medium took it */
    SG_PERSIST_DOUBT_BAD,       /* in a line that nobody can read after the cut */
    SG_PERSIST_DOUBT_OUTSIDE,   /* in no extent */
    SG_PERSIST_DOUBT_MERGED,    /* not known: the store was merged with others by a limit */
    SG_PERSIST_DOUBTS,
};

struct sg_persist_uncertain {
    uint64_t lost; /* the event of the store that may be lost; 0: unknown, or there is none */
    uint64_t len;  /* octets of the range from the first one on, in its line, that share all this */
    uint8_t stage; /* enum sg_persist_stage of that store; SG_PERSIST_STAGES: there is none */
    uint8_t doubt; /* enum sg_persist_doubts */
};

/*
 * Is each octet of a range certain, as events with numbers behind @after, up to @seq, left it
 * (sg_persist_seq() before the first and behind the last of these inputs)?  Returns the address of
 * the first octet that is not, and fills *why; or addr + len, and clears it.  @after 0: as it was
 * when event @seq was the newest.  Else the question is about these stores alone: what another
 * adapter placed before them may still be on its way, be lost, or come behind them.
 *
 * An octet is certain if every cut leaves each of these stores to it, or what reached memory after
 * that store.  If all that a cut may leave instead has the same value, it is certain, too.  The
 * number of a write of an adapter is that of its input, however long it waited in S0 and S1; and
 * what waits there will reach memory after all that has, whatever their numbers.  An octet without
 * such a store on its way is certain, but for bad lines.
 *
 * The answer is exact where cuts are: if it is not certain, some answers to the questions of a cut
 * lead to an image that shows it, and if it is, none do.  Where the domain merged stores, or
 * several writes of adapters share a line without a history, the oldest number counts for all;
 * limits.exact avoids both, until a limit merges; without it @after counts as 0.  With it, and
 * merged stores in the line, an octet that is not certain is still lost by some cut, unless the
 * answer is SG_PERSIST_DOUBT_MERGED: then nobody knows.  What is called certain there is so but
 * for the outcomes that merging took away.  A medium that wears out, and might not take all that is
 * on its way, counts as one that may refuse any line.  Changes by untracked CPUs may be any of
 * these stores: they are certain where sg_persist_doubt() says that they survive, and nowhere else.
 *
 * Costs the range's lines, and what is in S0 and S1.
 */
uint64_t sg_persist_uncertain(const struct sg_persist *p, uint64_t addr, uint64_t len,
                              uint64_t after, uint64_t seq, struct sg_persist_uncertain *why);

typedef void sg_persist_queue_line(void *opaque, uint32_t number, uint64_t line);
/*
 * The lines in the queue or buffer that a question is about, before the cut: the entry with this
 * number is the first that is lost if the answer is the number.  Returns how many entries there
 * are; 0 for other questions.
 */
uint32_t sg_persist_queue_lines(const struct sg_persist *p, const struct sg_persist_choice *q,
                                sg_persist_queue_line *line, void *opaque);

/*
 * With limits.exact and sets (segments.c): data in S0 and S1 may arrive at any instant, and it
 * matters whether that is before or behind somebody else's store to their line, and what else is
 * for it.  From now on the domain asks before each such store, for each segment that has something
 * for its lines: SG_PERSIST_CHOICE_EARLY, with unit, qpn and addr as SG_PERSIST_CHOICE_SEGMENT; how
 * many of its atoms for them have arrived.  Before that, and before anything arrives because it is
 * proved, it asks the same about lines for which several segments have something, one line after
 * the other; if there are several lines, SG_PERSIST_CHOICE_STOP says before each which one is next,
 * or 0 that it was enough.  0 to each question, or @choose NULL: as late as possible.  All answers,
 * with all of the cut, lead to all images.  A clone does not ask; a log has no answers.
 *
 * As the answers say, an older segment may come behind a newer one for the same octets.  Memory has
 * then what the recorded memory did not have (sg_persist_contradicts()).
 */
void sg_persist_arrivals(struct sg_persist *p, sg_persist_choose *choose, void *opaque);
/*
 * Has memory other octets in this range than the recorded memory, by answers to such questions?  If
 * a CPU has just loaded it (sg_persist_cpu_load()), and has seen what was recorded, then the
 * answers are not what happened.  False with @choose NULL.  Costs such octets, mostly none.
 */
bool sg_persist_contradicts(const struct sg_persist *p, uint64_t addr, uint64_t len);
/*
 * About how many lines of several segments would the domain ask at first, before what this event
 * proves arrives?  A load of a range; a fence of a device, of any kind; the end of a Flush.
 */
uint32_t sg_persist_stops_at_load(struct sg_persist *p, uint64_t addr, uint64_t len);
uint32_t sg_persist_stops_at_fence(struct sg_persist *p, unsigned device);
uint32_t sg_persist_stops_at_flush(struct sg_persist *p, const struct sg_persist_source *source,
                                   uint64_t addr, const struct sg_pm_op *op,
                                   const struct sg_persist_flush_note *note);

/*
 * From now on the domain notes which pages it touches: in both memories, and in what it knows of
 * their lines; also those that its owner says that somebody writes to.  Or not any more.  A clone
 * goes on with what its original has noted.  Of a cut the pages are noted that it changes in the
 * memories or decides about; of a restart nothing is.
 */
void sg_persist_note_touched(struct sg_persist *p, bool on);
/*
 * The numbers, in an extent, of the pages that were touched, each once, in any order; valid until
 * the domain changes.
 */
const uint64_t *sg_persist_touched(const struct sg_persist *p, unsigned extent, size_t *count);
/* Is this one of them? */
bool sg_persist_was_touched(const struct sg_persist *p, unsigned extent, uint64_t page_no);

typedef uint64_t sg_persist_number(void *opaque, uint64_t seq);
/* A domain, and what numbers of its events stand for: of two domains these are compared. */
struct sg_persist_side {
    const struct sg_persist *p;
    sg_persist_number *number; /* ascends; the same number for two events only if no input tells */
    void *opaque;              /* whether something came between them */
};
/*
 * Are two domains that had the same inputs in the same state?  What is under way or dirty, what
 * processors keep, and the memories where something is dirty.  If so, and if the memories are equal
 * elsewhere, cuts of both leave the same, now and after the same further inputs.  False may be
 * wrong.  Costs what is dirty.
 *
 * If both note what they touch, and one of them is a clone of the other since, or both of a third
 * one, only what they have touched is looked at, all of both memories there; that is all that may
 * differ.
 */
bool sg_persist_same(const struct sg_persist_side *a, const struct sg_persist_side *b);

/* The memories of one extent of a clone: of the same size, contents equal to the original's. */
struct sg_persist_memory {
    uint8_t *visible, *media; /* aligned to 8; owned by the caller; outlive the clone */
};
/*
 * A domain in the same state, by number of extent with these memories (those of unused numbers are
 * ignored).  From the same inputs and the same cut both get the same media.  It shares nothing with
 * the original and has no operations: nobody is told that a cut is due, all pages may differ, and
 * a cut copies everything.  The caller owns it (sg_persist_free()).
 */
struct sg_persist *sg_persist_clone(const struct sg_persist *p,
                                    const struct sg_persist_memory *memory);

#endif
