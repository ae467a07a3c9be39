/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that stores into the last area of its own machine's NVDIMM, and the CPU's work for
 * a remote writer.
 */
#include "power.h"

enum { AREA_AT = PW_PM - PW_AREA, STORES = 6 };

static const struct sg_persist_source self = { .agent = SG_PERSIST_CPU, .unit = 1 };

enum pw_proof pw_cpu_proof(enum pw_cpu_habit habit, const struct sg_persist_config *c)
{
    switch (habit) {
    case PW_CPU_CLWB:
    case PW_CPU_NT:
        return PW_QUEUED;
    case PW_CPU_NT_NO_FENCE:
        return PW_BUFFERED;
    default:
        return c->store_buffer ? PW_BUFFERED : PW_CACHED;
    }
}

static void flush_lines(struct pw_host *x, uint64_t off, uint64_t len, unsigned kind)
{
    uint64_t at;

    for (at = sg_align_down(off, SG_PERSIST_LINE); at < off + len; at += SG_PERSIST_LINE) {
        sg_persist_cpu_flush(x->p, &self, x->pm + at, kind);
        PW_TRACE(x, SG_TRACE_CPU_FLUSH, &self, .addr = x->pm + at, .arg = kind);
    }
}

static void fence(struct pw_host *x)
{
    enum sg_persist_cpu_fence kind = pw_below(x->w, SG_PERSIST_WBINVD);

    sg_persist_cpu_fence(x->p, &self, kind);
    PW_TRACE(x, SG_TRACE_CPU_FENCE, &self, .arg = kind);
}

static void deep_flush(struct pw_host *x, uint64_t off, uint64_t len)
{
    sg_persist_deep_flush(x->p, x->pm + off, len);
    PW_TRACE(x, SG_TRACE_DEEP_FLUSH, &self, .addr = x->pm + off, .len = len);
}

void pw_cpu_flush(struct pw_host *x, uint64_t off, uint64_t len, bool deep)
{
    flush_lines(x, off, len, pw_below(x->w, SG_PERSIST_CPU_FLUSHES));
    fence(x);
    if (deep) {
        uint64_t first = off < x->split ? SG_MIN(len, x->split - off) : len;

        deep_flush(x, off, first);
        deep_flush(x, off + first, len - first);
    }
}

/* One store instruction. */
static void store(struct pw_host *x, uint64_t off, size_t len, unsigned flags)
{
    uint8_t buf[SG_PERSIST_LINE];
    size_t i;

    for (i = 0; i < len; i++) {
        buf[i] = (uint8_t)pw_prng(x->w);
    }
    x->cpu_seq++;
    pw_model_store(&x->program, off, buf, len, x->cpu_seq, (uint32_t)x->cpu_seq);
    flags |= SG_PERSIST_STORE_WRITE;
    if (sg_persist_cpu_store(x->p, &self, x->pm + off, buf, len, flags)) {
        PW_TRACE(x, SG_TRACE_STORE, &self, .addr = x->pm + off, .len = len, .arg = flags,
                 .data = buf);
    }
}

void pw_cpu_step(struct pw_host *x)
{
    bool nt = x->cpu == PW_CPU_NT || x->cpu == PW_CPU_NT_NO_FENCE;
    unsigned n = 1 + pw_below(x->w, STORES);
    uint64_t off = AREA_AT + pw_below(x->w, PW_AREA - STORES * SG_PERSIST_LINE), at = off;

    x->program.unordered = nt; /* a line's leave the processor in any order */
    for (; n && !sg_persist_frozen(x->p); n--) {
        size_t len = pw_chance(x->w, 60) ? 8 : 1 + pw_below(x->w, SG_PERSIST_LINE);

        at = pw_chance(x->w, 60) ? sg_align_up(at, len & -len) : at;
        if (at + len > PW_PM) {
            break;
        }
        store(x, at, len, nt ? SG_PERSIST_STORE_NT : 0);
        at = pw_chance(x->w, 80) ? at + len : off;
        off = SG_MIN(off, at);
    }
    at = SG_MIN(off + STORES * SG_PERSIST_LINE * 2, (uint64_t)PW_PM);
    if (x->cpu == PW_CPU_CLWB || x->cpu == PW_CPU_NO_FENCE) {
        flush_lines(x, off, at - off, pw_below(x->w, 2));
    }
    if (x->cpu == PW_CPU_CLWB || x->cpu == PW_CPU_NT) {
        fence(x);
    }
    if (sg_persist_frozen(x->p)) {
        return; /* the power failed before the program ended */
    }
    if (pw_may_lose(&x->config, pw_cpu_proof(x->cpu, &x->config))) {
        pw_model_believe(&x->program, off, at - off, x->cpu_seq + 1);
    } else {
        pw_model_ack(&x->program, off, at - off, x->cpu_seq + 1);
        x->w->sums->acks++;
    }
    x->cpu_commits++;
}

void pw_cpu_judge(struct pw_host *x, const uint8_t *now, bool for_good)
{
    struct pw_verdict v = { .wrong = NULL };

    pw_model_judge(&x->program, now, AREA_AT, PW_AREA, false, &v);
    PW_CHECK(x->w, !v.wrong, "program of machine %u, line 0x%" PRIx64 "%s: %s", x->index, v.off,
             for_good ? "" : " (a cut here)", v.wrong);
    if (!for_good) {
        return;
    }
    x->w->sums->dropped += v.dropped;
    if (pw_may_lose(&x->config, pw_cpu_proof(x->cpu, &x->config))) {
        x->w->sums->cpu_lost[x->cpu][x->config.domain] += v.believed_lost;
    } else {
        x->w->sums->cpu_safe[x->cpu][x->config.domain] += x->cpu_commits != 0;
    }
    pw_model_rebase(&x->program, now, AREA_AT, PW_AREA);
    x->cpu_commits = 0;
}
