/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults on demand in the adapter: what a driver sees of each effect, and that a reset, or the end
 * of the rules, restores everything.  tests/unit/faults covers the rules themselves.
 */
#include "faults/faults.h"
#include "rig.h"
#include "tap.h"

enum { MS = 1000000, TURN = 1 << 20 };

static struct solo s;
static struct sg_faults *faults;

static void set(const char *text)
{
    char err[256] = "";

    T_TRUE(sg_faults_set(faults, text, s.h.now_ns, err, sizeof(err)));
    sg_adapter_set_faults(s.md.a, faults);
    md_settle(&s.md);
}

static void begin(const char *rules)
{
    solo_new(&s, NULL, true);
    faults = sg_faults_new(&sg_adapter_fault_words);
    set(rules);
}

static void end(void)
{
    solo_end(&s);
    sg_faults_free(faults);
}

/* Time passes, and the adapter's timer rings if it is due. */
static void pass(uint64_t ns)
{
    s.h.now_ns += ns;
    if (s.h.timer_ns <= s.h.now_ns) {
        while (sg_adapter_run(s.md.a, TURN)) {
        }
    }
    md_settle(&s.md);
}

static void submit(unsigned opcode)
{
    struct sg_admin_hdr c = { .opcode = (uint8_t)opcode };

    md_submit(&s.md, &c, sizeof(c));
    md_settle(&s.md);
}

/* The status of the next answer, or -1: there is none. */
static int answer(void)
{
    struct sg_admin_rsp rsp;

    return md_reap(&s.md, &rsp) ? rsp.status : -1;
}

/* ---- commands ---- */

static void command_fails(void)
{
    struct sg_adapter_census before, after;

    begin("command op=CREATE_PD fail=EBUSY nth=2; command op=NOP fail");
    md_create_pd(&s.md);
    sg_adapter_census(s.md.a, &before);
    submit(SG_ADMIN_CREATE_PD);
    T_EQ_INT(answer(), SG_EBUSY);
    sg_adapter_census(s.md.a, &after);
    T_EQ_MEM(&after, &before, sizeof(after)); /* it was not executed */
    md_create_pd(&s.md);
    submit(SG_ADMIN_NOP);
    T_EQ_INT(answer(), SG_ENOMEM);
    T_EQ_U64(s.h.guest_errors, 0);
    end();
}

static void command_slow(void)
{
    begin("command op=NOP slow=5ms");
    submit(SG_ADMIN_NOP);
    submit(SG_ADMIN_CREATE_PD); /* waits behind it */
    T_EQ_U64(s.h.timer_ns, s.h.now_ns + 5 * MS);
    pass(5 * MS - 1);
    T_EQ_INT(answer(), -1);
    pass(1);
    T_EQ_INT(answer(), SG_OK);
    T_EQ_INT(answer(), SG_OK);
    submit(SG_ADMIN_NOP);
    T_EQ_INT(answer(), SG_OK);
    end();
}

/* A delay that ends when the adapter is FATAL: it asks for no more turns on its account. */
static void slow_and_fatal(void)
{
    begin("command op=NOP slow=5ms");
    submit(SG_ADMIN_NOP);
    sg_adapter_break(s.md.a);
    md_settle(&s.md);
    pass(10 * MS);
    T_TRUE(s.h.timer_ns > s.h.now_ns);
    T_EQ_INT(answer(), -1);
    end();
}

static void command_silent(void)
{
    struct sg_adapter_census c;

    begin("command silent");
    submit(SG_ADMIN_CREATE_PD);
    T_EQ_INT(answer(), -1);
    sg_adapter_census(s.md.a, &c);
    T_EQ_U64(c.pds, 1); /* it was executed */
    submit(SG_ADMIN_NOP);
    T_EQ_INT(answer(), SG_OK); /* of the NOP */
    T_EQ_INT(answer(), -1);
    end();
}

static void command_stuck(void)
{
    begin("command op=CREATE_PD stuck");
    submit(SG_ADMIN_CREATE_PD);
    submit(SG_ADMIN_NOP);
    pass(3600ull * 1000 * MS);
    T_EQ_INT(answer(), -1);
    /* The end of the rules lets it go on. */
    set("");
    T_EQ_INT(answer(), SG_OK);
    T_EQ_INT(answer(), SG_OK);
    /* A reset, too: the rules stay, but this one is spent. */
    set("command op=NOP stuck");
    submit(SG_ADMIN_NOP);
    T_EQ_INT(answer(), -1);
    md_write(&s.md, SG_REG_CTRL, SG_CTRL_RESET);
    md_setup_rings(&s.md);
    md_enable(&s.md);
    submit(SG_ADMIN_NOP);
    T_EQ_INT(answer(), SG_OK);
    end();
}

/* ---- interrupts ---- */

static unsigned taken(unsigned vector)
{
    unsigned n = (unsigned)s.h.raised[vector];

    s.h.raised[vector] = 0;
    return n;
}

static void irq(unsigned vector)
{
    md_write(&s.md, SG_REG_TEST_IRQ, vector);
    md_settle(&s.md);
}

static void interrupt_lost(void)
{
    begin("interrupt vector=3 lost nth=2");
    irq(3);
    irq(4);
    irq(3);
    irq(3);
    T_EQ_U64(taken(3), 2);
    T_EQ_U64(taken(4), 1);
    /* The event is there, for a driver that polls. */
    set("interrupt vector=0 lost");
    md_write(&s.md, SG_REG_EQ_DB, SG_EQ_DB_ARM | s.md.aeq.cons);
    sg_adapter_set_link(s.md.a, true);
    T_EQ_U64(taken(0), 0);
    T_EQ_U64(((struct sg_eqe *)test_host_ptr(&s.h, s.md.aeq.base))->event, SG_EV_PORT_UP);
    end();
}

static void interrupt_wrong(void)
{
    begin("interrupt vector=3 wrong=5; interrupt vector=4 wrong=63");
    irq(3);
    T_EQ_U64(taken(3), 0);
    T_EQ_U64(taken(5), 1);
    irq(4); /* the adapter has no vector 63: nothing is raised */
    for (unsigned i = 0; i < TEST_HOST_VECTORS; i++) {
        T_EQ_U64(taken(i), 0);
    }
    end();
}

static void interrupt_late(void)
{
    begin("interrupt vector=2 late=3ms");
    irq(2);
    irq(1); /* is not delayed */
    T_EQ_U64(taken(1), 1);
    T_EQ_U64(s.h.timer_ns, s.h.now_ns + 3 * MS);
    pass(3 * MS - 1);
    T_EQ_U64(taken(2), 0);
    pass(1);
    T_EQ_U64(taken(2), 1);
    pass(100 * MS);
    T_EQ_U64(taken(2), 0);
    /* It is late, too, when the rules have ended, but a reset takes it. */
    set("interrupt late=1ms");
    irq(2);
    set("");
    pass(MS);
    T_EQ_U64(taken(2), 1);
    set("interrupt late=1ms");
    irq(2);
    sg_adapter_reset(s.md.a);
    pass(MS);
    T_EQ_U64(taken(2), 0);
    end();
}

/* Also in an adapter that is FATAL, whose other timers stand still. */
static void interrupt_of_fatal(void)
{
    begin("interrupt late=3ms");
    sg_adapter_break(s.md.a);
    md_settle(&s.md);
    T_EQ_U64(taken(0), 0);
    pass(3 * MS);
    T_EQ_U64(taken(0), 1);
    T_EQ_U64(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_FATAL, SG_STATUS_FATAL);
    end();
}

static void interrupt_spurious(void)
{
    begin("interrupt spurious=6 after=2ms period=4ms times=3");
    pass(2 * MS - 1);
    T_EQ_U64(taken(6), 0);
    for (unsigned i = 0; i < 3; i++) {
        pass(i ? 4 * MS - 1 : 0);
        T_EQ_U64(taken(6), 0);
        pass(1);
        T_EQ_U64(taken(6), 1);
    }
    pass(100 * MS);
    T_EQ_U64(taken(6), 0);
    end();
}

/* ---- registers ---- */

static uint64_t read_sized(unsigned offset, unsigned size)
{
    return sg_adapter_reg_read(s.md.a, offset, size);
}

static void registers_while(void)
{
    uint32_t magic, prod;
    struct md_cq cq;

    begin("");
    md_create_cq(&s.md, &cq, 16);
    magic = md_read(&s.md, SG_REG_MAGIC);
    prod = s.md.asq.prod;
    set("registers ones after=1ms for=2ms");
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), magic);
    pass(MS);
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), UINT32_MAX);
    T_EQ_U64(read_sized(SG_REG_MAGIC, 8), UINT64_MAX);
    T_EQ_U64(read_sized(SG_REG_MAGIC, 1), 0xff);
    T_EQ_U64(sg_adapter_doorbell_read(s.md.a, 0, SG_DB_CLOCK, 8), UINT64_MAX);
    T_EQ_U64(sg_adapter_doorbell_read(s.md.a, 0, SG_DB_CLOCK, 4), UINT32_MAX);
    T_EQ_U64(sg_adapter_fatal_error(s.md.a), SG_FATAL_NONE);
    /* Writes have no effect: neither a command, nor a doorbell, nor a reset. */
    submit(SG_ADMIN_NOP);
    T_EQ_INT(answer(), -1);
    md_doorbell(&s.md, 0, SG_DB_SQ, 77, 0);
    md_write(&s.md, SG_REG_CTRL, SG_CTRL_RESET);
    T_EQ_U64(s.h.guest_errors, 0);
    pass(2 * MS);
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), magic);
    T_EQ_U64(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_READY, SG_STATUS_READY);
    T_EQ_INT(answer(), -1);
    md_write(&s.md, SG_REG_ADMIN_DB, prod + 1);
    md_settle(&s.md);
    T_EQ_INT(answer(), SG_OK); /* the doorbell was lost, not the command */
    /* Doorbells work with other rules. */
    set("command silent op=LISTEN");
    md_doorbell(&s.md, 0, SG_DB_SQ, 77, 0);
    T_EQ_U64(s.h.guest_errors, 1); /* there is no such queue */
    end();
}

static void registers_for_ever(void)
{
    begin("registers ones nth=2");
    T_TRUE(md_read(&s.md, SG_REG_MAGIC) == SG_MAGIC);
    T_EQ_U64(md_read(&s.md, SG_REG_STATUS), UINT32_MAX);
    pass(3600ull * 1000 * MS);
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), UINT32_MAX);
    sg_adapter_reset(s.md.a);
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), UINT32_MAX);
    set("");
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), SG_MAGIC);
    end();
}

static void register_once(void)
{
    begin("registers ones offset=0x0c times=1");
    T_EQ_U64(md_read(&s.md, SG_REG_MAGIC), SG_MAGIC);
    T_EQ_U64(md_read(&s.md, 0x0c), UINT32_MAX);
    T_TRUE(md_read(&s.md, 0x0c) != UINT32_MAX);
    end();
}

/* ---- what the machine does ---- */

static unsigned asked[8], asked_count;

static void record_fault(void *host, unsigned effect)
{
    (void)host;
    T_TRUE(asked_count < 8);
    asked[asked_count++] = effect;
}

static void machine_asked(void)
{
    begin("");
    s.h.ops.fault = record_fault;
    asked_count = 0;
    set("link down=2ms after=1ms; error nonfatal after=5ms; error correctable after=6ms");
    T_EQ_U64(asked_count, 0);
    pass(MS);
    pass(2 * MS);
    pass(2 * MS);
    pass(MS);
    T_EQ_U64(asked_count, 4);
    T_EQ_U64(asked[0], SG_EFFECT_DOWN);
    T_EQ_U64(asked[1], SG_EFFECT_UP);
    T_EQ_U64(asked[2], SG_EFFECT_NONFATAL);
    T_EQ_U64(asked[3], SG_EFFECT_CORRECTABLE);
    s.h.ops.fault = NULL; /* a machine that can do neither */
    set("link down=1ms; error fatal");
    pass(2 * MS);
    T_EQ_U64(asked_count, 4);
    end();
}

static const struct t_case cases[] = {
    { "a command fails", command_fails },
    { "a command is slow", command_slow },
    { "a slow command of an adapter that fails", slow_and_fatal },
    { "a command is not answered", command_silent },
    { "a command is stuck", command_stuck },
    { "an interrupt is lost", interrupt_lost },
    { "an interrupt on the wrong vector", interrupt_wrong },
    { "an interrupt is late", interrupt_late },
    { "a late interrupt of a fatal error", interrupt_of_fatal },
    { "spurious interrupts", interrupt_spurious },
    { "registers are ones for a while", registers_while },
    { "registers are ones for ever", registers_for_ever },
    { "a register is ones once", register_once },
    { "the link and errors are the machine's", machine_asked },
};

T_MAIN(cases)
