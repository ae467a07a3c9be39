/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: what happens in this machine becomes a trace (docs/trace-format.md).
 *
 * recorder.c          the order of events, and their time
 * recorder_control.c  begin and end of a recording: QMP's commands, content, the machine's end
 * recorder_file.c     the file: a thread writes what waits in a queue
 * recorder_loads.c    which loads of CPUs are worth an event
 * recorder_taps.c     what adapters and the port report
 *
 * Who reports.  An input of the model is recorded by whoever calls the model, under the domain's
 * lock, when the call returns (crash/record.h has the rules); so the trace has inputs in the order
 * in which the model had them.  All else is recorded under QEMU's big lock.  Locks are taken in
 * this order: big lock, domain's lock, recorder's lock.
 *
 * A slow file holds back whoever reports, and no event is ever left out.  If the file takes no
 * more, the recording ends there: what was written is a readable beginning, the machine goes on,
 * and the recorder's state says why.
 */
#ifndef SG_DEVICE_RECORDER_H
#define SG_DEVICE_RECORDER_H

#include "crash/record.h"

/*
 * Does a recording run?  Changes under the big lock while vCPUs are stopped, so that a vCPU thread
 * finds it constant from one instruction to the next.  The functions below may be called whenever
 * it is true.
 */
extern bool staghorn_recording;
/*
 * Called when it has changed, vCPUs still stopped; set by cpu_track.c, or NULL.  Translated code
 * that reports loads, for example, is needed or superfluous from now on.
 */
extern void (*staghorn_record_switched)(bool on);

/*
 * Appends an event; any thread.  Before it, time passes as staghorn_record_time() said; after it
 * the machine freezes if an armed cut came due in the call that it describes.
 */
void staghorn_record(const struct sg_trace_event *e);
/* The same for a store of a CPU, in fewer instructions. */
void staghorn_record_store(const struct sg_trace_store *s);
/*
 * The number of a name for the field 'name' of an event that follows; 0 if there is none.  What is
 * not printable ASCII becomes '?'; what is beyond SG_TRACE_NAME_MAX octets is left out.
 */
uint32_t staghorn_record_name(const char *text);

/* ---- Time ---- */

/*
 * The machine's clock, ns: of the events that follow.  Under the domain's lock, at the model's
 * tick; where there is no domain, under the big lock, or by a vCPU for its mark.
 */
void staghorn_record_time(uint64_t now_ns);
/* An armed cut came due in the call of the model that is about to be recorded; domain's lock. */
void staghorn_record_due(void);

/* ---- Adapters and their port (recorder_taps.c); big lock ---- */

struct StaghornState;
struct sg_observed;

/* An event that is no input of the model: not under the domain's lock. */
void staghorn_record_outside(struct StaghornState *s, struct sg_trace_event *e);
/* A frame passes the port: before it is sent, or examined. */
void staghorn_record_frame(struct StaghornState *s, const struct iovec *iov, unsigned n, bool sent);
/* The adapters' operation (base/host.h). */
void staghorn_observe(void *host, const struct sg_observed *o);

/* ---- The machine (recorder_control.c); big lock ---- */

/* It ends, and all that its end does to the media is done. */
void staghorn_record_machine_ends(void);

/* ---- Loads of CPUs (recorder_loads.c) ---- */

/*
 * Somebody is about to change octets of persistent memory: vCPU number 'who', or STAGHORN_DEVICE.
 * Called before memory changes, so that a load that saw the change finds it announced.  True: a
 * load by the same vCPU just before is worth an event (staghorn_record_wants_load()).  Domain's
 * lock.
 */
enum { STAGHORN_DEVICE = -1 };
bool staghorn_record_will_change(int who, uint64_t addr, uint64_t len);
/*
 * Has one of the lines been changed by anybody else than this vCPU since a load of it was recorded?
 * If not, a load proves nothing that the trace does not say already.  Any thread, without locks.
 *
 * Ask after the load has read, then record it under the domain's lock: what the load saw is in the
 * trace by then.  A change between the load and the question makes a load appear later than it was;
 * so a caller to whom that matters reads again under the lock.
 */
bool staghorn_record_wants_load(unsigned vcpu, uint64_t addr, uint64_t len);
/* The load's event is recorded; domain's lock. */
void staghorn_record_loaded(unsigned vcpu, uint64_t addr, uint64_t len);

#endif
