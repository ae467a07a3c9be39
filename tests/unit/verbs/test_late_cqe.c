/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions that a fault rule delays: they come behind those of other queues, each queue keeps
 * its order, and nothing that ends makes them come too late or twice.
 *
 * A queue pair in ERROR flushes what is posted, so no connection is needed: its send queue
 * completes to 'first', its receive queue to 'second'.
 */
#include "faults/faults.h"
#include "rig.h"
#include "tap.h"

enum { MS = 1000000, TURN = 1 << 20, MANY = 40 };

static struct solo s;
static struct sg_faults *faults;
static struct md_cq first, second;
static struct md_qp qp;
static uint32_t pd;

static void set(const char *text)
{
    char err[256] = "";

    T_TRUE(sg_faults_set(faults, text, s.h.now_ns, err, sizeof(err)));
    sg_adapter_set_faults(s.md.a, faults);
    md_settle(&s.md);
}

static void begin(const char *effect)
{
    char rules[80];

    solo_new(&s, NULL, true);
    pd = md_create_pd(&s.md);
    md_create_cq(&s.md, &first, 64);
    md_create_cq(&s.md, &second, 64);
    md_create_qp(&s.md, &qp,
                 &(struct md_qp_params){
                     .pd = pd,
                     .scq = &first,
                     .rcq = &second,
                     .entries = 64,
                 });
    T_EQ_U64(md_modify_qp(&qp, SG_QP_ERROR), SG_OK);
    faults = sg_faults_new(&sg_adapter_fault_words);
    snprintf(rules, sizeof(rules), "completion cq=%u %s", first.cqn, effect);
    set(rules);
}

static void end(void)
{
    solo_end(&s);
    sg_faults_free(faults);
}

static void pass(uint64_t ns)
{
    s.h.now_ns += ns;
    if (s.h.timer_ns <= s.h.now_ns) {
        while (sg_adapter_run(s.md.a, TURN)) {
        }
    }
    md_settle(&s.md);
}

static void post(uint64_t wr_id)
{
    md_post_send(&qp, &(struct md_wr){ .opcode = SG_WR_SEND, .wr_id = wr_id });
    md_settle(&s.md);
}

/* The next completion is this one; 0: there is none. */
static void expect(struct md_cq *cq, uint64_t wr_id)
{
    struct sg_cqe e;
    bool there = md_poll(cq, &e);

    T_EQ_U64(there ? sg_get_le64(&e.wr_id) : 0, wr_id);
}

static void overtaken(void)
{
    begin("late=5ms");
    md_arm_eq(&s.md, 1);
    md_arm(&first, false);
    post(1);
    md_post_recv(&qp, 2, 0, 0, 0);
    md_settle(&s.md);
    expect(&second, 2); /* posted later, complete earlier */
    expect(&first, 0);
    post(3); /* not late itself, but behind the first */
    expect(&first, 0);
    T_EQ_U64(s.h.timer_ns, s.h.now_ns + 5 * MS);
    pass(5 * MS - 1);
    expect(&first, 0);
    T_EQ_U64(s.h.raised[1], 0);
    pass(1);
    expect(&first, 1);
    expect(&first, 3);
    expect(&first, 0);
    T_EQ_U64(s.h.raised[1], 1); /* the event came with the completion */
    post(4);
    expect(&first, 4);
    end();
}

/* A shorter delay does not overtake within the queue. */
static void in_order(void)
{
    begin("late=9ms");
    post(1);
    set("completion late=1ms"); /* new rules: what waited is written */
    expect(&first, 1);
    post(2);
    pass(MS);
    expect(&first, 2);
    set("completion late=9ms; completion late=1ms nth=2; completion late=2ms nth=3 times=always");
    for (uint64_t i = 1; i <= MANY; i++) {
        post(i);
    }
    pass(9 * MS - 1);
    expect(&first, 0);
    pass(1);
    for (uint64_t i = 1; i <= MANY; i++) {
        expect(&first, i);
    }
    expect(&first, 0);
    end();
}

static void ends(void)
{
    begin("late=5ms times=always");
    post(1);
    set(""); /* no more rules */
    expect(&first, 1);
    set("completion late=5ms times=always");
    post(2);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_QP, qp.qpn), SG_OK);
    expect(&first, 2); /* before the answer */
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_CQ, first.cqn), SG_OK);
    pass(10 * MS);
    end();
    begin("late=5ms times=always");
    post(1);
    sg_adapter_reset(s.md.a);
    pass(10 * MS);
    expect(&first, 0);
    end();
    begin("late=5ms times=always");
    post(1);
    sg_adapter_break(s.md.a); /* FATAL: nothing is completed any more */
    pass(10 * MS);
    expect(&first, 0);
    set("");
    expect(&first, 0);
    end();
    begin("late=5ms times=always"); /* the adapter ends with one that waits */
    post(1);
    end();
}

static const struct t_case cases[] = {
    { "completions of another queue overtake", overtaken },
    { "a queue keeps its order", in_order },
    { "rules, queue pairs and adapters that end", ends },
};

T_MAIN(cases)
