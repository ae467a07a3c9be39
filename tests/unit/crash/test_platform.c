/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Platforms by name, what the guest was told, and who issued a store. */
#include "crash/issuer.h"
#include "crash/platform.h"
#include "tap.h"

static void lists(void)
{
    struct sg_crash_platform out[SG_CRASH_PLATFORMS];
    char name[SG_CRASH_PLATFORM_NAME];
    const char *wrong;

    T_EQ_INT(sg_crash_platforms_parse("all", "all", out, &wrong), SG_CRASH_PLATFORMS);
    T_EQ_INT(sg_crash_platforms_parse("eadr,none", "on", out, &wrong), 2);
    sg_crash_platform_name(&out[0], name);
    T_EQ_STR(name, "none,ddio=on");
    sg_crash_platform_name(&out[1], name);
    T_EQ_STR(name, "eadr,ddio=on");
    T_EQ_INT(sg_crash_platforms_parse("adr,adr", "off", out, &wrong), 1);
    sg_crash_platform_name(&out[0], name);
    T_EQ_STR(name, "adr,ddio=off");
    T_NULL(wrong);
    T_EQ_INT(sg_crash_platforms_parse("adr,adrr", "on", out, &wrong), 0);
    T_NOT_NULL(strstr(wrong, "domain"));
    T_EQ_INT(sg_crash_platforms_parse("adr", "yes", out, &wrong), 0);
    T_NOT_NULL(strstr(wrong, "DDIO"));
    T_EQ_INT(sg_crash_platforms_parse("", "on", out, &wrong), 0);
    T_EQ_INT(sg_crash_platforms_parse("adr,", "on", out, &wrong), 0);
}

static void told(void)
{
    static const struct {
        const char *text;
        enum sg_crash_told told;
        unsigned claims; /* domains, as bits */
    } rows[] = {
        { "", SG_CRASH_TOLD_NOTHING, 0xf },
        { NULL, SG_CRASH_TOLD_NOTHING, 0xf },
        { "persistence-domain=memory-controller\n", SG_CRASH_TOLD_QUEUE, 0xe },
        { "a=b\npersistence-domain=cpu-cache", SG_CRASH_TOLD_CACHE, 0xc },
        { "not-persistence-domain=cpu-cache\n", SG_CRASH_TOLD_NOTHING, 0xf },
        { "persistence-domain=cpu\n", SG_CRASH_TOLD_UNKNOWN, 0xf },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        T_CONTEXT("row %u", i);
        T_EQ_INT(sg_crash_told_parse(rows[i].text), rows[i].told);
        for (unsigned d = 0; d < SG_PERSIST_DOMAINS; d++) {
            struct sg_crash_platform platform = { .domain = (uint8_t)d };

            T_EQ_INT(sg_crash_platform_claims(&platform, rows[i].told), rows[i].claims >> d & 1);
        }
    }
}

static uint32_t add(struct sg_crash_issuers *x, struct sg_trace_event e)
{
    sg_crash_issuers_add(x, &e);
    return sg_crash_issuers_of(x, x->of_event->len);
}

static void issuers(void)
{
    static const uint8_t ends[36] = { [32] = 0x1b, [33] = 0x58, [34] = 0xc0, [35] = 0 };
    struct sg_crash_issuers x;
    uint32_t pc, kernel, write, send;
    GString *text = g_string_new(NULL);

    sg_crash_issuers_init(&x);
    pc = add(&x, (struct sg_trace_event){ .kind = SG_TRACE_STORE, .at = 0x401000, .root = 1 });
    T_EQ_INT(pc, 1);
    T_EQ_INT(add(&x, (struct sg_trace_event){ .kind = SG_TRACE_CPU_FENCE, .at = 0x401000 }), 0);
    T_EQ_INT(add(&x,
                 (struct sg_trace_event){
                     .kind = SG_TRACE_STORE, .at = 0x401000, .root = 1, .unit = 3 }),
             pc);
    T_TRUE(add(&x, (struct sg_trace_event){ .kind = SG_TRACE_STORE, .at = 0x401000, .root = 2 }) !=
           pc);
    kernel =
        add(&x, (struct sg_trace_event){ .kind = SG_TRACE_STORE, .at = 1ull << 63, .root = 1 });
    T_EQ_INT(
        add(&x, (struct sg_trace_event){ .kind = SG_TRACE_STORE, .at = 1ull << 63, .root = 2 }),
        kernel);
    add(&x,
        (struct sg_trace_event){
            .kind = SG_TRACE_CONNECTED, .qpn = 5, .arg = 1, .data = ends, .len = sizeof(ends) });
    add(&x,
        (struct sg_trace_event){
            .kind = SG_TRACE_CONNECTED, .qpn = 6, .arg = 1, .data = ends, .len = sizeof(ends) });
    write = add(&x, (struct sg_trace_event){ .kind = SG_TRACE_PLACE, .qpn = 5, .len = 8 });
    T_EQ_INT(add(&x, (struct sg_trace_event){ .kind = SG_TRACE_PLACE, .qpn = 6, .len = 8 }), write);
    send = add(&x, (struct sg_trace_event){ .kind = SG_TRACE_PLACE, .qpn = 5, .msn = 1, .len = 8 });
    T_TRUE(send != write);
    sg_crash_issuer_text(sg_crash_issuers_at(&x, write), text);
    T_EQ_STR(text->str, "an RDMA Write to port 7000");
    g_string_truncate(text, 0);
    sg_crash_issuer_text(sg_crash_issuers_at(&x, pc), text);
    T_EQ_STR(text->str, "the store at 0x401000");
    T_EQ_INT(sg_crash_issuers_of(&x, 0), 0);
    T_EQ_INT(sg_crash_issuers_of(&x, 1000), 0);
    g_string_free(text, TRUE);
    sg_crash_issuers_fini(&x);
}

static const struct t_case cases[] = {
    { "lists of platforms", lists },
    { "what the guest was told", told },
    { "who issued a store", issuers },
};

T_MAIN(cases)
