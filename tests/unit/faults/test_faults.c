/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules at work: which occurrence each concerns, windows, late interrupts, several rules. */
#include <glib.h>

#include "faults/fault_rules.h"
#include "tap.h"
#include "words.h"

enum { MS = 1000000, START = 7 * MS };

static struct sg_faults *f;
static char err[256];

static void begin(const char *text)
{
    f = sg_faults_new(&test_words);
    T_TRUE(!sg_faults_any(f));
    T_TRUE(sg_faults_set(f, text, START, err, sizeof(err)));
}

static void end(void)
{
    sg_faults_free(f);
}

static unsigned command(unsigned opcode, uint64_t ms)
{
    return sg_faults_at(f, SG_POINT_COMMAND, opcode, START + ms * MS).effect;
}

/* Of 'n' commands, bit i - 1 is set if the i-th one had the effect. */
static uint32_t hits(unsigned n, unsigned effect)
{
    uint32_t found = 0;

    for (unsigned i = 0; i < n; i++) {
        found |= (uint32_t)(command(1, 0) == effect) << i;
    }
    return found;
}

static void counting(void)
{
    static const struct {
        const char *text;
        uint32_t hits; /* of 12 */
    } rows[] = {
        { "command silent", 0x001 },
        { "command silent nth=3", 0x004 },
        { "command silent times=3", 0x007 },
        { "command silent nth=4 times=2", 0x018 },
        { "command silent every=4", 0x001 },
        { "command silent every=4 times=2", 0x011 },
        { "command silent nth=2 every=5 times=always", 0x842 },
        { "command silent times=always", 0xfff },
        { "command silent op=TWO", 0 },
        { "command silent op=ONE nth=12", 0x800 },
        { "interrupt lost times=always", 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].text);
        begin(rows[i].text);
        T_EQ_U64(hits(12, SG_EFFECT_SILENT), rows[i].hits);
        end();
    }
}

static void windows(void)
{
    /* From a time on: earlier occurrences do not count. */
    begin("command stuck after=5ms nth=2 for=10ms");
    T_EQ_U64(command(1, 0), SG_EFFECT_NONE);
    T_EQ_U64(command(1, 4), SG_EFFECT_NONE);
    T_EQ_U64(command(1, 5), SG_EFFECT_NONE);
    T_EQ_U64(command(1, 8), SG_EFFECT_STUCK);
    T_EQ_U64(command(1, 17), SG_EFFECT_STUCK); /* 10 ms from the one before */
    T_EQ_U64(command(1, 18), SG_EFFECT_NONE);
    end();
    /* Without nth the time counts alone. */
    begin("command stuck after=5ms for=10ms");
    T_EQ_U64(command(1, 4), SG_EFFECT_NONE);
    T_EQ_U64(command(1, 14), SG_EFFECT_STUCK);
    T_EQ_U64(command(1, 15), SG_EFFECT_NONE);
    end();
}

static bool reads_ones(uint32_t offset, uint64_t ms)
{
    return sg_faults_at(f, SG_POINT_REGISTERS, offset, START + ms * MS).effect == SG_EFFECT_ONES;
}

static bool unreachable(uint64_t ms)
{
    return sg_faults_unreachable(f, START + ms * MS);
}

static void registers(void)
{
    begin("registers ones after=2ms for=3ms");
    T_TRUE(!unreachable(1) && !reads_ones(0, 1));
    T_TRUE(unreachable(2) && reads_ones(0, 2) && reads_ones(4, 4));
    T_TRUE(!unreachable(5) && !reads_ones(0, 5));
    end();
    begin("registers ones nth=3"); /* removed when it is read for the third time */
    T_TRUE(!reads_ones(0, 0) && !reads_ones(0, 0) && !unreachable(0));
    T_TRUE(reads_ones(0, 0) && unreachable(0) && unreachable(1 << 20) && reads_ones(0, 1 << 20));
    end();
    begin("registers ones offset=8 times=1"); /* one bad read; writes arrive */
    T_TRUE(!reads_ones(0, 0) && reads_ones(8, 0) && !reads_ones(8, 0) && !unreachable(0));
    end();
}

/* All rules count; one has its effect, and the other one waits for the next occurrence. */
static void several(void)
{
    begin("command silent nth=2\n# a comment; command stuck\n command fail=EBUSY nth=2;;\n"
          "interrupt lost # and another");
    T_EQ_U64(command(1, 0), SG_EFFECT_NONE);
    T_EQ_U64(command(1, 0), SG_EFFECT_SILENT);
    T_EQ_U64(command(1, 0), SG_EFFECT_FAIL);
    T_EQ_U64(command(1, 0), SG_EFFECT_NONE);
    T_EQ_U64(sg_faults_at(f, SG_POINT_INTERRUPT, 3, START).effect, SG_EFFECT_LOST);
    end();
}

static void takes_vector(uint64_t ms, uint32_t vector)
{
    struct sg_fault_act act;

    T_TRUE(sg_faults_next(f) <= START + ms * MS);
    T_TRUE(sg_faults_take(f, START + ms * MS, &act));
    T_EQ_U64(act.effect, SG_EFFECT_SPURIOUS);
    T_EQ_U64(act.value, vector);
}

static bool takes_none(uint64_t ms)
{
    struct sg_fault_act act;

    return !sg_faults_take(f, START + ms * MS, &act);
}

static void times(void)
{
    begin("interrupt spurious=1 after=5ms; interrupt spurious=2 after=3ms period=4ms times=3");
    T_EQ_U64(sg_faults_next(f), START + 3 * MS);
    T_TRUE(takes_none(2));
    takes_vector(3, 2);
    T_EQ_U64(sg_faults_next(f), START + 5 * MS);
    T_TRUE(takes_none(4));
    takes_vector(7, 1);
    takes_vector(7, 2);
    T_EQ_U64(sg_faults_next(f), START + 11 * MS);
    takes_vector(11, 2);
    T_EQ_U64(sg_faults_next(f), SG_NEVER);
    T_TRUE(takes_none(1000));
    end();
    /* A leap of the clock is one time. */
    begin("interrupt spurious=0 period=1ms");
    takes_vector(500, 0);
    T_TRUE(takes_none(500));
    T_EQ_U64(sg_faults_next(f), START + 501ull * MS);
    end();
}

static unsigned takes_effect(uint64_t ms)
{
    struct sg_fault_act act = { 0 };

    sg_faults_take(f, START + ms * MS, &act);
    return act.effect;
}

/* What goes down comes up again, also when the rules end meanwhile. */
static void links(void)
{
    begin("link down=3ms after=1ms period=10ms times=2; error fatal after=12ms");
    T_TRUE(sg_faults_has(f, SG_POINT_LINK) && !sg_faults_has(f, SG_POINT_DMA));
    T_EQ_U64(takes_effect(1), SG_EFFECT_DOWN);
    T_EQ_U64(sg_faults_next(f), START + 4 * MS);
    T_EQ_U64(takes_effect(3), SG_EFFECT_NONE);
    T_EQ_U64(takes_effect(4), SG_EFFECT_UP);
    T_EQ_U64(takes_effect(4), SG_EFFECT_NONE);
    T_EQ_U64(takes_effect(11), SG_EFFECT_DOWN);
    T_EQ_U64(takes_effect(12), SG_EFFECT_FATAL);
    T_TRUE(sg_faults_set(f, "", START + 12 * MS, err, sizeof(err)));
    T_TRUE(sg_faults_any(f));
    T_EQ_U64(takes_effect(12), SG_EFFECT_UP);
    T_TRUE(!sg_faults_any(f));
    end();
    /* Two outages that overlap are one. */
    begin("link down=9ms; link down=2ms after=1ms");
    T_EQ_U64(takes_effect(0), SG_EFFECT_DOWN);
    T_EQ_U64(takes_effect(1), SG_EFFECT_DOWN);
    T_EQ_U64(takes_effect(8), SG_EFFECT_NONE);
    T_EQ_U64(takes_effect(9), SG_EFFECT_UP);
    T_EQ_U64(sg_faults_next(f), SG_NEVER);
    end();
}

static void late(void)
{
    unsigned i;

    begin("");
    T_TRUE(sg_faults_delay(f, 4, START + 2 * MS) && sg_faults_delay(f, 5, START + MS));
    T_TRUE(sg_faults_any(f));
    T_EQ_U64(sg_faults_next(f), START + MS);
    T_TRUE(takes_none(0));
    takes_vector(2, 5);
    takes_vector(2, 4);
    T_TRUE(takes_none(9) && !sg_faults_any(f));
    for (i = 0; i < SG_FAULT_LATE; i++) {
        T_TRUE(sg_faults_delay(f, i, START));
    }
    T_TRUE(!sg_faults_delay(f, 0, START));
    for (i = 0; i < SG_FAULT_LATE; i++) {
        takes_vector(0, i); /* in their order */
    }
    T_TRUE(sg_faults_delay(f, 1, START));
    sg_faults_reset(f);
    T_TRUE(takes_none(1));
    end();
}

static void setting(void)
{
    char *text, many[64 * 20] = "";

    begin("command silent nth=2");
    T_EQ_U64(command(1, 0), SG_EFFECT_NONE);
    T_TRUE(!sg_faults_set(f, "command fail; command bad;", START, err, sizeof(err)));
    T_EQ_STR(err, "fault rule 2, 'command bad': command has no word bad; its effects are fail, "
                  "slow, stuck, silent");
    T_EQ_U64(command(1, 0), SG_EFFECT_SILENT); /* nothing has changed */
    text = sg_faults_json(f);
    T_EQ_STR(text, "{\"rules\": [{\"rule\": \"command silent nth=2\", \"point\": \"command\", "
                   "\"seen\": 2, \"applied\": 1, \"spent\": true}], \"late\": 0}");
    g_free(text);
    T_TRUE(sg_faults_set(f, " ; \n# nothing", START, err, sizeof(err)) && !sg_faults_any(f));
    for (unsigned i = 0; i < 64; i++) {
        strcat(many, "command silent;");
    }
    T_TRUE(sg_faults_set(f, many, START, err, sizeof(err)));
    strcat(many, "command fail");
    T_TRUE(!sg_faults_set(f, many, START, err, sizeof(err)));
    T_NOT_NULL(strstr(err, "fault rule 65, 'command fail': there are more than 64 rules"));
    T_TRUE(!sg_faults_set(f, "\x7f\x01", START, err, sizeof(err)));
    T_NOT_NULL(strstr(err, "'\?\?'"));
    end();
}

static const struct t_case cases[] = {
    { "which occurrence", counting },
    { "windows of time", windows },
    { "registers", registers },
    { "several rules", several },
    { "rules that act at a time", times },
    { "the link, and errors", links },
    { "interrupts that are late", late },
    { "rules are replaced together", setting },
};

T_MAIN(cases)
