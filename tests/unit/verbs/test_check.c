/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver checker itself: its bounds, the history of a report, its text, and what it says about
 * the processor.  The rules: test_check_rules.c.
 */
#include "rig.h"
#include "tap.h"

#include "verbs/check/check.h"

static struct solo solo;

static void begin(enum sg_check_mode mode)
{
    struct sg_adapter_config config;

    sg_adapter_default_config(&config);
    config.check = mode;
    config.max_qp = 2;
    config.max_conns = 1;
    config.max_cq = 1024;
    config.max_srq = 1;
    solo_new_sized(&solo, &config, true, 32 << 20);
}

static const struct sg_check *checker(void)
{
    return sg_adapter_check(solo.md.a);
}

static const struct sg_check_report *newest(void)
{
    uint64_t first, end;

    sg_check_range(checker(), &first, &end);
    return sg_check_get(checker(), end - 1);
}

static bool where(void *host, struct sg_where *w)
{
    (void)host;
    *w = (struct sg_where){ .cpu = 3, .pc = 0xffffffff81001234 };
    return true;
}

static void repeated_mistakes_are_counted(void)
{
    begin(SG_CHECK_WARN);
    for (int i = 0; i < 100; i++) {
        solo.h.now_ns += 1000;
        md_read(&solo.md, 0xf0);
    }
    T_EQ_U64(newest()->number, 1);
    T_EQ_U64(newest()->count, 100);
    T_EQ_U64(newest()->last_ns - newest()->ns, 99 * 1000);
    solo_end(&solo);
}

static void the_newest_reports_are_kept(void)
{
    uint64_t first, end;

    begin(SG_CHECK_WARN);
    for (uint32_t i = 1; i <= SG_CHECK_REPORTS + 44; i++) {
        md_doorbell(&solo.md, 0, SG_DB_SQ, 5000 + i, 1);
    }
    sg_check_range(checker(), &first, &end);
    T_EQ_U64(first, 45);
    T_EQ_U64(end, SG_CHECK_REPORTS + 45);
    T_TRUE(!sg_check_get(checker(), 44));
    T_TRUE(!sg_check_get(checker(), end));
    T_EQ_U64(sg_check_get(checker(), 45)->object.id, 5045);
    T_EQ_U64(newest()->object.id, 5000 + SG_CHECK_REPORTS + 44);
    solo_end(&solo);
}

/* The last events of the object itself, the oldest first, whatever else happened. */
static void a_report_has_the_history_of_its_object(void)
{
    const struct sg_check_report *r;
    struct md_cq cq;

    begin(SG_CHECK_WARN);
    md_create_cq(&solo.md, &cq, 16);
    for (int i = 0; i < 12; i++) {
        md_arm(&cq, false);
        md_create_pd(&solo.md);
    }
    md_doorbell(&solo.md, 0, SG_DB_CQ_ARM, cq.cqn, 9);
    r = newest();
    T_EQ_U64(r->rule, SG_RULE_CQ_ARM);
    T_EQ_U64(r->events, SG_CHECK_LAST);
    for (unsigned i = 0; i < r->events; i++) {
        T_EQ_U64(r->event[i].kind, SG_OBJECT_CQ);
        T_EQ_U64(r->event[i].id, cq.cqn);
        T_EQ_U64(r->event[i].what, SG_DID_ARM);
        T_TRUE(!i || r->event[i].ns >= r->event[i - 1].ns);
    }
    solo_end(&solo);
}

static void a_report_is_a_line_of_json(void)
{
    char line[SG_CHECK_JSON_MAX], small[40];
    struct md_cq cq;

    begin(SG_CHECK_WARN);
    solo.h.ops.where = where;
    md_create_cq(&solo.md, &cq, 16);
    solo.h.now_ns = 1234;
    md_doorbell(&solo.md, 0, SG_DB_CQ_ARM, cq.cqn, 9);
    T_TRUE(sg_check_json(newest(), line, sizeof(line)) == strlen(line));
    T_EQ_STR(line, "{\"number\": 1, \"rule\": \"CQ-ARM\", \"section\": \"registers.md#doorbells\", "
                   "\"strict\": \"ends\", \"object\": \"cq 1\", "
                   "\"text\": \"completion queue 1: consumer index 9, producer index 0\", "
                   "\"ns\": 1234, \"last_ns\": 1234, \"count\": 1, "
                   "\"cpu\": 3, \"pc\": \"0xffffffff81001234\", "
                   "\"events\": [{\"ns\": 0, \"text\": \"command, opcode 0x18, status 0\"}]}");
    T_EQ_U64(sg_check_json(newest(), small, sizeof(small)), sizeof(small) - 1);
    T_EQ_U64(strlen(small), sizeof(small) - 1);
    solo_end(&solo);
}

static bool where_with_stack(void *host, struct sg_where *w)
{
    where(host, w);
    w->sp = 0xffffc90000003f00;
    w->bp = 7;
    w->stack_octets = 3;
    memcpy(w->stack, "\x00\xff\x0a", 3);
    return true;
}

/* What the stack had at the instruction is there for tools: never more than was read. */
static void a_report_has_the_stack(void)
{
    char line[SG_CHECK_JSON_MAX];
    struct md_cq cq;

    begin(SG_CHECK_WARN);
    solo.h.ops.where = where_with_stack;
    md_create_cq(&solo.md, &cq, 16);
    md_doorbell(&solo.md, 0, SG_DB_CQ_ARM, cq.cqn, 9);
    sg_check_json(newest(), line, sizeof(line));
    T_TRUE(strstr(line, "\"pc\": \"0xffffffff81001234\", \"sp\": \"0xffffc90000003f00\", "
                        "\"bp\": \"0x7\", \"stack\": \"00ff0a\", \"events\": ["));
    solo_end(&solo);
}

/* The longest report fits: every text and every number as long as it can be. */
static void the_longest_report_fits(void)
{
    struct sg_check_report r = {
        .number = UINT64_MAX,
        .ns = UINT64_MAX,
        .last_ns = UINT64_MAX,
        .count = UINT64_MAX,
        .rule = SG_RULE_REG_BITS,
        .object = { SG_OBJECT_LISTENER, false, UINT32_MAX },
        .has_where = true,
        .where = { .cpu = UINT32_MAX,
                   .pc = UINT64_MAX,
                   .sp = UINT64_MAX,
                   .bp = UINT64_MAX,
                   .stack_octets = SG_WHERE_STACK },
        .events = SG_CHECK_LAST,
    };
    char line[SG_CHECK_JSON_MAX];

    memset(r.text, '"', sizeof(r.text) - 1);
    for (int i = 0; i < SG_CHECK_LAST; i++) {
        r.event[i] = (struct sg_check_event){ UINT64_MAX,       1,          SG_OBJECT_LISTENER,
                                              SG_DID_POST_RECV, UINT32_MAX, UINT32_MAX };
    }
    T_TRUE(sg_check_json(&r, line, sizeof(line)) < sizeof(line) - 1);
    T_EQ_INT(line[strlen(line) - 1], '}');
}

/* Reports survive a reset, so that a driver that resets at once can still be judged. */
static void reports_survive_a_reset(void)
{
    begin(SG_CHECK_WARN);
    md_read(&solo.md, 0xf0);
    md_write(&solo.md, SG_REG_CTRL, SG_CTRL_RESET);
    T_EQ_U64(newest()->rule, SG_RULE_REG_UNKNOWN);
    md_enable(&solo.md);
    md_doorbell(&solo.md, 0, SG_DB_SQ, 1, 1);
    T_EQ_U64(newest()->rule, SG_RULE_DB_UNKNOWN); /* not "gone": numbers begin again */
    solo_end(&solo);
}

/* A process has its own doorbell page: whatever it writes there, others go on. */
static void a_process_does_not_end_the_adapter(void)
{
    begin(SG_CHECK_STRICT);
    for (uint32_t offset = SG_DB_SQ; offset <= SG_DB_CQ_ARM; offset += 8) {
        md_doorbell(&solo.md, 7, offset, 77, 1);
    }
    md_doorbell(&solo.md, 7, 0x800, 77, 1);
    T_EQ_U64(newest()->number, 4); /* queue pair, shared queue, completion queue, page */
    T_EQ_INT(md_read(&solo.md, SG_REG_FATAL), SG_FATAL_NONE);
    solo_end(&solo);
}

static enum sg_status resize_srq(uint32_t srqn, uint32_t entries)
{
    struct sg_cmd_resize_srq c = { .hdr.opcode = SG_ADMIN_RESIZE_SRQ };

    sg_put_le32(&c.srqn, srqn);
    sg_put_le32(&c.entries, entries);
    return md_cmd(&solo.md, &c, sizeof(c), NULL);
}

/* What the adapter has taken, a driver learns later; how many entries there may be, it knows. */
static void what_no_driver_can_know_is_no_mistake(void)
{
    struct md_srq srq;
    uint64_t first, end;

    begin(SG_CHECK_WARN);
    md_create_srq(&solo.md, &srq, md_create_pd(&solo.md), 16);
    for (int i = 0; i < 9; i++) {
        md_post_srq(&srq, 1, 0, 0, 0);
    }
    T_EQ_INT(resize_srq(srq.srqn, 8), SG_EINVAL);
    sg_check_range(checker(), &first, &end);
    T_EQ_U64(first, end);
    T_EQ_INT(resize_srq(srq.srqn, 9), SG_EINVAL);
    T_EQ_U64(newest()->rule, SG_RULE_ADMIN_FIELD);
    solo_end(&solo);
}

/* The adapter's own DMA, aimed at its registers. */
static void (*inside)(void);

static bool dma_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    void (*call)(void) = inside;

    inside = NULL;
    if (call) {
        call();
    }
    memcpy(test_host_ptr(host, addr), buf, len);
    return true;
}

static void touch_register(void)
{
    md_read(&solo.md, SG_REG_STATUS);
}

static void touch_doorbell(void)
{
    sg_adapter_doorbell(solo.md.a, 0, SG_DB_SQ, 1, 8);
}

static void dma_to_the_adapter_itself(void)
{
    void (*const calls[])(void) = { touch_register, touch_doorbell };

    for (int i = 0; i < 2; i++) {
        begin(SG_CHECK_WARN);
        solo.h.ops.dma_write = dma_write;
        inside = calls[i];
        md_create_pd(&solo.md);
        T_EQ_U64(newest()->number, 1);
        T_EQ_U64(newest()->rule, SG_RULE_DMA_SELF);
        solo_end(&solo);
    }
}

/* A driver that causes events and takes none. */
static void async_events_overrun(void)
{
    uint64_t first, end, n;

    begin(SG_CHECK_STRICT);
    for (int i = 0; i < 6000 && !(md_read(&solo.md, SG_REG_STATUS) & SG_STATUS_FATAL); i++) {
        sg_adapter_set_link(solo.md.a, i & 1);
    }
    T_EQ_INT(md_read(&solo.md, SG_REG_FATAL), SG_FATAL_AEQ_OVERRUN);
    sg_check_range(checker(), &first, &end);
    T_EQ_U64(end - first, 1);
    for (n = first; n < end; n++) {
        T_EQ_U64(sg_check_get(checker(), n)->rule, SG_RULE_AEQ_OVERRUN);
    }
    solo_end(&solo);
}

static const struct t_case cases[] = {
    { "repeated mistakes are counted", repeated_mistakes_are_counted },
    { "the newest reports are kept", the_newest_reports_are_kept },
    { "a report has the history of its object", a_report_has_the_history_of_its_object },
    { "a report is a line of JSON", a_report_is_a_line_of_json },
    { "a report has the stack at its instruction", a_report_has_the_stack },
    { "the longest report fits", the_longest_report_fits },
    { "reports survive a reset", reports_survive_a_reset },
    { "a process does not end the adapter", a_process_does_not_end_the_adapter },
    { "what no driver can know is no mistake", what_no_driver_can_know_is_no_mistake },
    { "DMA to the adapter itself", dma_to_the_adapter_itself },
    { "async events overrun", async_events_overrun },
};

T_MAIN(cases)
