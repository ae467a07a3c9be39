/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "explore_rig.h"
#include "crash/setting_text.h"
#include "staghorn/io.h"
#include "tap.h"

enum { ADDRESSES = 36 };

static bool sink(void *opaque, const uint8_t *octets, size_t len)
{
    g_byte_array_append(opaque, octets, (guint)len);
    return true;
}

static void begin(struct xr_machine *m, const struct sg_trace_header *header,
                  const uint8_t *content)
{
    uint8_t hash[1][SG_TRACE_HASH];

    m->file = g_byte_array_new();
    m->writer = sg_trace_writer_new(header, sink, m->file);
    if (header->extent_count && header->extent[0].has_content) {
        T_TRUE(sg_trace_writer_content(m->writer, 0, content));
    } else if (header->extent_count) {
        sg_trace_hash_memory(content, XR_SIZE, hash[0]);
    }
    T_TRUE(sg_trace_writer_start(m->writer, hash));
}

static const uint8_t no_content[XR_SIZE] __attribute__((aligned(8)));

void xr_init(struct xr *r, const char *told)
{
    xr_init_content(r, told, no_content, true);
}

static void init(struct xr *r, const char *told, const uint8_t content[XR_SIZE], bool within,
                 bool both)
{
    struct sg_trace_header target = {
        .run = { 1 },
        .machine = { 2 },
        .extent_count = 1,
        .extent = { { .base = XR_BASE, .size = XR_SIZE, .has_content = within, .name = "pmem" } },
        .text = { [SG_TRACE_MACHINE] = "target",
                  [SG_TRACE_PLATFORM] = told,
                  [SG_TRACE_CONFIG] = "cpu-tracking=on\nplacement-delay=0\nposted-drain=eager\n" },
    };
    struct sg_trace_header client = {
        .run = { 1 },
        .machine = { 3 },
        .text = { [SG_TRACE_MACHINE] = "client" },
    };

    if (both) {
        client.extent_count = 1;
        client.extent[0] = target.extent[0];
        client.text[SG_TRACE_PLATFORM] = told;
        client.text[SG_TRACE_CONFIG] = target.text[SG_TRACE_CONFIG];
    }
    *r = (struct xr){ .frames = 1 };
    begin(&r->machine[XR_TARGET], &target, content);
    begin(&r->machine[XR_CLIENT], &client, content);
}

void xr_init_content(struct xr *r, const char *told, const uint8_t content[XR_SIZE], bool within)
{
    init(r, told, content, within, false);
}

void xr_init_both(struct xr *r, const char *told)
{
    init(r, told, no_content, true, true);
}

void xr_free(struct xr *r)
{
    sg_crash_timelines_free(r->timelines);
    sg_crash_teller_free(r->teller);
    sg_crash_order_free(r->order);
    sg_crash_explorer_free(r->explorer);
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        for (unsigned k = 0; k < SG_CRASH_PASTS; k++) {
            g_free(r->memory[i][k]);
        }
    }
    sg_crash_issuers_fini(&r->issuers);
    sg_crash_promises_free(r->promises);
    if (r->bugs) {
        g_array_unref(r->bugs);
    }
    for (unsigned i = 0; i < XR_MACHINES; i++) {
        if (r->reader[i]) {
            sg_trace_reader_free(r->reader[i]);
        }
        sg_trace_writer_free(r->machine[i].writer);
        g_byte_array_unref(r->machine[i].file);
    }
}

/* ---- Events ---- */

uint64_t xr_event(struct xr *r, unsigned machine, struct sg_trace_event e)
{
    T_TRUE(sg_trace_write(r->machine[machine].writer, &e));
    return sg_trace_writer_events(r->machine[machine].writer);
}

void xr_frame(struct xr *r, unsigned from)
{
    struct sg_trace_event e = { .kind = SG_TRACE_FRAME, .value = r->frames++, .len = 60, .arg = 1 };

    xr_event(r, from, e);
    e.arg = 0;
    xr_event(r, from == XR_TARGET ? XR_CLIENT : XR_TARGET, e);
}

void xr_connect(struct xr *r, uint32_t qpn, uint16_t port)
{
    uint8_t ends[ADDRESSES] = { [15] = 1, [31] = 2 }; /* as the client sees them */
    struct sg_trace_event e = {
        .kind = SG_TRACE_CONNECTED, .qpn = qpn, .data = ends, .len = ADDRESSES
    };

    T_TRUE(qpn < XR_QPS);
    ends[32] = 0xc0;
    ends[33] = (uint8_t)qpn;
    ends[34] = (uint8_t)(port >> 8);
    ends[35] = (uint8_t)port;
    xr_event(r, XR_CLIENT, e);
    xr_frame(r, XR_CLIENT);
    ends[15] = 2;
    ends[31] = 1;
    memcpy(ends + 32, (uint8_t[]){ (uint8_t)(port >> 8), (uint8_t)port, 0xc0, (uint8_t)qpn }, 4);
    e.arg = 1;
    xr_event(r, XR_TARGET, e);
    xr_frame(r, XR_TARGET);
}

/* A work request starts; its message arrives. */
static struct sg_trace_event start(struct xr *r, uint32_t qpn, unsigned opcode, uint64_t off,
                                   uint64_t len)
{
    struct sg_trace_event e = {
        .kind = SG_TRACE_WORK,
        .value = ++r->wr_id,
        .ordinal = ++r->ordinal[qpn],
        .at = off,
        .len = len,
        .arg = opcode,
        .qpn = qpn,
    };

    xr_event(r, XR_CLIENT, e);
    xr_frame(r, XR_CLIENT);
    return e;
}

static uint64_t complete(struct xr *r, struct sg_trace_event e)
{
    e.kind = SG_TRACE_COMPLETED;
    e.at = 0;
    return xr_event(r, XR_CLIENT, e);
}

uint64_t xr_write(struct xr *r, uint32_t qpn, uint64_t off, uint64_t value, bool completes)
{
    struct sg_trace_event work = start(r, qpn, SG_WR_WRITE, off, sizeof(value));
    const uint64_t octets = GUINT64_TO_LE(value);
    uint64_t placed = xr_event(r, XR_TARGET,
                               (struct sg_trace_event){
                                   .kind = SG_TRACE_PLACE,
                                   .qpn = qpn,
                                   .ordinal = work.ordinal,
                                   .at = off,
                                   .addr = XR_BASE + off,
                                   .data = (const uint8_t *)&octets,
                                   .len = sizeof(value),
                               });

    if (completes) {
        xr_frame(r, XR_TARGET);
        complete(r, work);
    }
    return placed;
}

uint64_t xr_flush(struct xr *r, uint32_t qpn, uint64_t off, uint64_t len)
{
    struct sg_trace_event work = start(r, qpn, SG_WR_FLUSH, off, len);
    struct sg_trace_event e = {
        .kind = SG_TRACE_FLUSH_BEGIN,
        .qpn = qpn,
        .msn = (uint32_t)work.ordinal,
        .ordinal = work.ordinal,
        .addr = XR_BASE + off,
        .len = len,
        .arg = SG_FLUSH_PERSISTENT,
    };

    xr_event(r, XR_TARGET, e);
    e.kind = SG_TRACE_FLUSH_END;
    xr_event(r, XR_TARGET, e);
    xr_frame(r, XR_TARGET);
    return complete(r, work);
}

uint64_t xr_store(struct xr *r, uint64_t pc, uint64_t off, uint64_t value, unsigned flags)
{
    const uint64_t octets = GUINT64_TO_LE(value);

    return xr_event(r, XR_TARGET,
                    (struct sg_trace_event){
                        .kind = SG_TRACE_STORE,
                        .at = pc,
                        .root = 0x1000,
                        .addr = XR_BASE + off,
                        .data = (const uint8_t *)&octets,
                        .len = sizeof(value),
                        .arg = flags | SG_PERSIST_STORE_ANNOUNCED,
                    });
}

void xr_clwb(struct xr *r, uint64_t off)
{
    xr_event(r, XR_TARGET,
             (struct sg_trace_event){
                 .kind = SG_TRACE_CPU_FLUSH, .addr = XR_BASE + off, .arg = SG_PERSIST_CLWB });
}

void xr_sfence(struct xr *r)
{
    xr_event(r, XR_TARGET,
             (struct sg_trace_event){ .kind = SG_TRACE_CPU_FENCE, .arg = SG_PERSIST_SFENCE });
}

void xr_mark(struct xr *r, unsigned machine, const char *kind, const char *text)
{
    xr_event(r, machine,
             (struct sg_trace_event){
                 .kind = SG_TRACE_MARK,
                 .name = sg_trace_writer_name(r->machine[machine].writer, kind),
                 .data = (const uint8_t *)text,
                 .len = strlen(text),
             });
}

void xr_durable(struct xr *r, uint64_t off, uint64_t len)
{
    char *text = g_strdup_printf("phys=0x%" PRIx64 " len=%" PRIu64, (uint64_t)(XR_BASE + off), len);

    xr_mark(r, XR_TARGET, "durable", text);
    g_free(text);
}

void xr_end(struct xr *r)
{
    for (unsigned i = 0; i < XR_MACHINES; i++) {
        T_TRUE(sg_trace_writer_end(r->machine[i].writer, NULL));
    }
}

/* ---- Exploration ---- */

static void ordered(void *opaque, unsigned machine, const struct sg_trace_event *e,
                    const uint64_t *past)
{
    struct xr *r = opaque;

    sg_crash_promises_event(r->promises, machine, e, sg_trace_name(r->reader[machine], e->name),
                            past);
    if (machine == XR_TARGET) {
        sg_crash_issuers_add(&r->issuers, e);
    }
}

static struct sg_trace_reader *read_again(struct xr *r, unsigned machine,
                                          struct sg_trace_octets *octets)
{
    *octets =
        (struct sg_trace_octets){ r->machine[machine].file->data, r->machine[machine].file->len };
    if (r->reader[machine]) {
        sg_trace_reader_free(r->reader[machine]);
    }
    r->reader[machine] = sg_trace_reader_new(sg_trace_read_octets, octets);
    T_EQ_INT(sg_trace_open(r->reader[machine], NULL, NULL), SG_TRACE_GOOD);
    return r->reader[machine];
}

static void pass_1(struct xr *r, unsigned acks, struct sg_trace_octets octets[XR_MACHINES])
{
    struct sg_crash_order *order = sg_crash_order_new(XR_MACHINES);
    struct sg_crash_source source[XR_MACHINES];

    r->order = order;
    xr_end(r);
    for (unsigned i = 0; i < XR_MACHINES; i++) {
        sg_crash_order_scan(order, i, sg_crash_reader_source(read_again(r, i, &octets[i])));
    }
    do { /* at most SG_CRASH_RUNS times */
        sg_crash_promises_free(r->promises);
        sg_crash_issuers_fini(&r->issuers);
        sg_crash_issuers_init(&r->issuers);
        r->promises = sg_crash_promises_new(XR_MACHINES, 1u << XR_TARGET, acks);
        for (unsigned i = 0; i < XR_MACHINES; i++) {
            source[i] = sg_crash_reader_source(read_again(r, i, &octets[i]));
        }
    } while (!sg_crash_order_run(order, source, ordered, r));
    for (unsigned i = 0; i < XR_MACHINES; i++) {
        T_EQ_INT(sg_trace_status(r->reader[i]), SG_TRACE_END);
    }
    sg_crash_promises_end(r->promises);
}

static void at_point(void *opaque, unsigned platform, struct sg_persist *p, uint64_t behind)
{
    struct xr *r = opaque;

    r->point(r->opaque, platform, p, behind);
}

static bool fork_memory(void *opaque, unsigned platform, const struct sg_persist *p, unsigned from,
                        unsigned to, struct sg_persist_memory *memory)
{
    struct xr *r = opaque;
    uint8_t **at = r->memory[platform];

    (void)p;
    at[to] = at[to] ? at[to] : g_malloc((size_t)2 * XR_SIZE);
    memcpy(at[to], at[from], (size_t)2 * XR_SIZE);
    memory[0] = (struct sg_persist_memory){ at[to], at[to] + XR_SIZE };
    return true;
}

static struct sg_crash_exploration exploration(struct xr *r)
{
    return (struct sg_crash_exploration){
        .header = sg_trace_header(r->reader[XR_TARGET]),
        .platform = r->platform,
        .platforms = r->platforms,
        .promises = r->promises,
        .target = XR_TARGET,
        .issuers = &r->issuers,
        .point = r->point ? at_point : NULL,
        .fork = fork_memory,
        .opaque = r,
    };
}

const uint8_t *xr_memory(const struct xr *r, unsigned platform)
{
    unsigned n;

    sg_crash_explorer_past(r->explorer, platform, &n);
    return r->memory[platform][n];
}

void xr_explore(struct xr *r, const char *domains, const char *ddio, unsigned acks)
{
    struct sg_trace_octets octets[XR_MACHINES];
    struct sg_crash_exploration what;
    const struct sg_trace_event *e;
    const char *wrong;

    r->platforms = sg_crash_platforms_parse(domains, ddio, r->platform, &wrong);
    T_TRUE(r->platforms);
    for (unsigned i = 0; i < r->platforms; i++) {
        r->platform[i].arrivals = r->arrivals;
    }
    pass_1(r, acks, octets);
    read_again(r, XR_TARGET, &octets[XR_TARGET]);
    what = exploration(r);
    r->explorer = sg_crash_explorer_new(&what, &wrong);
    T_NOT_NULL(r->explorer);
    for (unsigned i = 0; i < r->platforms; i++) {
        r->memory[i][0] = g_malloc0(2 * XR_SIZE);
        sg_crash_explorer_add(r->explorer, i, r->memory[i][0], r->memory[i][0] + XR_SIZE);
    }
    while (!r->wrong && (e = sg_trace_next(r->reader[XR_TARGET]))) {
        r->wrong =
            sg_crash_explorer_event(r->explorer, e, sg_trace_name(r->reader[XR_TARGET], e->name));
    }
    sg_crash_explorer_end(r->explorer);
    r->bugs = sg_crash_bugs(r->explorer, r->platforms);
}

static void plot(void *opaque, unsigned machine, const struct sg_trace_event *e,
                 const uint64_t *past)
{
    struct xr *r = opaque;

    (void)past;
    sg_crash_timelines_event(r->timelines, machine, e);
}

void xr_tell(struct xr *r)
{
    struct sg_trace_octets octets[XR_MACHINES];
    struct sg_crash_source source[XR_MACHINES];
    struct sg_crash_exploration what;
    const struct sg_trace_event *e;
    const char *wrong;

    read_again(r, XR_TARGET, &octets[XR_TARGET]);
    what = exploration(r);
    r->teller = sg_crash_teller_new(&what, r->bugs, &wrong);
    T_NOT_NULL(r->teller);
    for (unsigned i = 0; i < r->platforms; i++) {
        if (sg_crash_teller_needs(r->teller, i)) {
            memset(r->memory[i][0], 0, (size_t)2 * XR_SIZE);
            sg_crash_teller_add(r->teller, i, r->memory[i][0], r->memory[i][0] + XR_SIZE);
        }
    }
    while ((e = sg_trace_next(r->reader[XR_TARGET])) &&
           !sg_crash_teller_event(r->teller, e, sg_trace_name(r->reader[XR_TARGET], e->name))) {
    }
    r->timelines = sg_crash_timelines_new(XR_MACHINES, XR_TARGET, r->bugs, r->promises, r->teller);
    for (unsigned i = 0; i < XR_MACHINES; i++) {
        source[i] = sg_crash_reader_source(read_again(r, i, &octets[i]));
    }
    T_TRUE(sg_crash_order_run(r->order, source, plot, r));
}

unsigned xr_platform(const struct xr *r, const char *name)
{
    char of[SG_CRASH_PLATFORM_NAME];

    for (unsigned i = 0; i < r->platforms; i++) {
        sg_crash_platform_name(&r->platform[i], of);
        if (strcmp(of, name) == 0) {
            return i;
        }
    }
    T_FAIL("no platform %s", name);
}

char *xr_broken(const struct xr *r)
{
    GString *out = g_string_new(NULL);
    char name[SG_CRASH_PLATFORM_NAME];

    for (unsigned i = 0; i < r->platforms; i++) {
        const struct sg_crash_verdict *v = sg_crash_explorer_verdict(r->explorer, i);
        uint64_t broken = 0;

        for (unsigned k = 0; k < SG_CRASH_ACKS; k++) {
            broken += v->broken[k];
        }
        if (broken) {
            sg_crash_platform_name(&v->platform, name);
            g_string_append_printf(out, "%s%s", out->len ? " " : "", name);
        }
    }
    return g_string_free(out, FALSE);
}
