/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: which loads of CPUs are worth an event.
 *
 * A load proves that what it read had left the adapter, or another processor.  Programs load far
 * more often than anything changes, and a second load proves nothing new.  So each line has an
 * octet that says who changed it since a load of it was recorded; loads of their own stores prove
 * nothing, because a processor reads these from its store buffer.
 *
 * The octets of lines that nobody changes take no memory of the host.
 */
#include "qemu/osdep.h"
#include "recorder_impl.h"

enum changed_by {
    NOBODY = 0, /* vCPU n: n + 1 */
    DEVICES = 254,
    SEVERAL = 255,
};

static struct {
    uint64_t base, lines;
    uint8_t *changed; /* enum changed_by, of each line */
} extents[SG_PERSIST_EXTENTS];
static unsigned extent_count;

static uint8_t tag_of(int who)
{
    return who == STAGHORN_DEVICE ? DEVICES : who < DEVICES - 1 ? who + 1 : SEVERAL;
}

/* The octet of the line at addr, and how many lines of the range follow from it; or NULL. */
static uint8_t *lines_of(uint64_t addr, uint64_t len, uint64_t *count)
{
    for (unsigned i = 0; i < extent_count; i++) {
        uint64_t first = (addr - extents[i].base) / SG_PERSIST_LINE;

        if (addr >= extents[i].base && first < extents[i].lines) {
            uint64_t past = DIV_ROUND_UP(addr + len - extents[i].base, SG_PERSIST_LINE);

            *count = MIN(past, extents[i].lines) - first;
            return extents[i].changed + first;
        }
    }
    return NULL;
}

/* Does a load of a line with this octet prove anything to who has the tag? */
static bool is_news(uint8_t changed, uint8_t own)
{
    return changed != NOBODY && (changed != own || own == SEVERAL);
}

bool staghorn_record_will_change(int who, uint64_t addr, uint64_t len)
{
    uint64_t count;
    uint8_t *line = lines_of(addr, len, &count), tag = tag_of(who);
    bool news = false;

    for (; line && count; line++, count--) {
        news |= is_news(*line, tag);
        if (*line != tag) {
            qatomic_set(line, *line == NOBODY ? tag : SEVERAL);
        }
    }
    smp_wmb(); /* before memory changes */
    return news;
}

bool staghorn_record_wants_load(unsigned vcpu, uint64_t addr, uint64_t len)
{
    uint64_t count;
    const uint8_t *line = lines_of(addr, len, &count);
    uint8_t own = tag_of(vcpu);

    for (; line && count; line++, count--) {
        if (is_news(qatomic_read(line), own)) {
            return true;
        }
    }
    return false;
}

void staghorn_record_loaded(unsigned vcpu, uint64_t addr, uint64_t len)
{
    uint64_t count;
    uint8_t *line = lines_of(addr, len, &count), own = tag_of(vcpu);

    for (; line && count; line++, count--) {
        /* Of several, this vCPU may be one: others still have to load its stores. */
        qatomic_set(line, *line == SEVERAL || *line == own ? own : NOBODY);
    }
}

void staghorn_loads_begin(const StaghornDomain *d)
{
    extent_count = d ? d->dimms : 0;
    for (unsigned i = 0; i < extent_count; i++) {
        extents[i].base = d->dimm[i].base;
        extents[i].lines = d->dimm[i].size / SG_PERSIST_LINE;
        extents[i].changed = g_malloc0(extents[i].lines);
    }
}

void staghorn_loads_end(void)
{
    for (unsigned i = 0; i < extent_count; i++) {
        g_free(extents[i].changed);
    }
    extent_count = 0;
}
