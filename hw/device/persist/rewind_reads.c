/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a machine that is put back has read of its NVDIMMs: the lines that its CPUs have loaded
 * since the last rewind.  A checker that reads few lines judges images alike that differ in others.
 *
 *   rewind-reads = true  CPUs' loads are noted from now on; a state has to be kept
 *   rewind-lines         reads as JSON: [ADDRESS, LENGTH] of each range of lines, ascending
 *
 * A bit for each line.  vCPU threads set bits, the main thread clears all of them while they are
 * stopped, and asks at any time.  Bits of lines that nobody loads take no memory of the host.
 *
 * TCG only.  What is not noted: instructions that are fetched from an NVDIMM, the processor's own
 * walk of page tables there, and what devices read.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "cpu_reads.h"
#include "rewind.h"

enum { RANGES_MAX = 1 << 16 }; /* that are told */

bool staghorn_reads_noted;
bool (*staghorn_cpu_watch_reads)(bool on, Error **errp);

static struct {
    const StaghornDimm *dimm;
    unsigned long *bits;
    size_t octets, lines;
} reads[SG_PERSIST_EXTENTS];
static unsigned reads_count;

void staghorn_reads_note(const void *host, unsigned size)
{
    for (unsigned i = 0; i < reads_count; i++) {
        uintptr_t at = (uintptr_t)host - (uintptr_t)reads[i].dimm->visible;

        if (at < reads[i].dimm->size) {
            size_t line = at / SG_PERSIST_LINE, last = (at + size - 1) / SG_PERSIST_LINE;

            for (; line <= MIN(last, reads[i].lines - 1); line++) {
                if (!test_bit(line, reads[i].bits)) {
                    set_bit_atomic(line, reads[i].bits);
                }
            }
            return;
        }
    }
}

/* ---- on and off; vCPUs do not note then ---- */

static void free_bits(void)
{
    while (reads_count) {
        reads_count--;
        munmap(reads[reads_count].bits, reads[reads_count].octets);
    }
}

static bool make_bits(const StaghornDomain *d, Error **errp)
{
    for (unsigned i = 0; i < d->dimms; i++) {
        size_t lines = DIV_ROUND_UP(d->dimm[i].size, SG_PERSIST_LINE);
        size_t octets = BITS_TO_LONGS(lines) * sizeof(unsigned long);
        void *bits = mmap(NULL, octets, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (bits == MAP_FAILED) {
            error_setg_errno(errp, errno, "rewind-reads: no memory to note loads");
            free_bits();
            return false;
        }
        reads[i].dimm = &d->dimm[i];
        reads[i].bits = bits;
        reads[i].octets = octets;
        reads[i].lines = lines;
        reads_count = i + 1;
    }
    return true;
}

void staghorn_rewind_reads_clear(void)
{
    for (unsigned i = 0; i < reads_count; i++) {
        if (madvise(reads[i].bits, reads[i].octets, MADV_DONTNEED)) {
            memset(reads[i].bits, 0, reads[i].octets);
        }
    }
}

void staghorn_rewind_reads_end(void)
{
    if (staghorn_reads_noted) {
        staghorn_cpu_watch_reads(false, NULL);
        free_bits();
    }
}

static bool get_reads(Object *object, Error **errp)
{
    return staghorn_reads_noted;
}

static void set_reads(Object *object, bool on, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);

    if (on == staghorn_reads_noted) {
        return;
    }
    if (!on) {
        staghorn_rewind_reads_end();
    } else if (!d->rewind) {
        error_setg(errp, "rewind-reads: no state is kept (rewind-keep)");
    } else if (!staghorn_cpu_watch_reads) {
        error_setg(errp, "rewind-reads: this QEMU cannot watch loads of CPUs");
    } else if (make_bits(d, errp) && !staghorn_cpu_watch_reads(true, errp)) {
        free_bits();
    }
}

/* ---- what was read ---- */

/* The first line from 'from' on whose bit is as wanted; the number of lines: none is. */
static size_t next_line(unsigned i, size_t from, bool wanted)
{
    return wanted ? find_next_bit(reads[i].bits, reads[i].lines, from)
                  : find_next_zero_bit(reads[i].bits, reads[i].lines, from);
}

/*
 * The ranges of lines, where those that are less than 'gap' lines apart are one.  NULL: they are
 * more than may be told.
 */
static GString *tell_ranges(size_t gap)
{
    g_autoptr(GString) text = g_string_new("[");
    unsigned count = 0;

    for (unsigned i = 0; i < reads_count; i++) {
        size_t end, next, from = next_line(i, 0, true);

        for (; from < reads[i].lines; from = next) {
            end = next_line(i, from, false);
            next = next_line(i, end, true);
            while (next < reads[i].lines && next - end < gap) {
                end = next_line(i, next, false);
                next = next_line(i, end, true);
            }
            if (++count > RANGES_MAX) {
                return NULL;
            }
            g_string_append_printf(text, "%s[%" PRIu64 ", %" PRIu64 "]", count > 1 ? ", " : "",
                                   reads[i].dimm->base + (uint64_t)from * SG_PERSIST_LINE,
                                   (uint64_t)(end - from) * SG_PERSIST_LINE);
        }
    }
    return g_string_append_c(g_steal_pointer(&text), ']');
}

/* More lines than were read are no mistake: they cost images that a checker cannot tell apart. */
static char *get_lines(Object *object, Error **errp)
{
    GString *text;
    size_t gap = 1;

    if (!staghorn_reads_noted) {
        error_setg(errp, "rewind-lines: loads are not noted (rewind-reads)");
        return NULL;
    }
    while (!(text = tell_ranges(gap))) {
        gap *= 2;
    }
    return g_string_free(text, false);
}

void staghorn_domain_class_rewind_reads(ObjectClass *klass)
{
    object_class_property_add_bool(klass, "rewind-reads", get_reads, set_reads);
    object_class_property_set_description(klass, "rewind-reads", "Notes which lines CPUs load");
    object_class_property_add_str(klass, "rewind-lines", get_lines, NULL);
    object_class_property_set_description(klass, "rewind-lines",
                                          "What CPUs have loaded since the last rewind");
}
