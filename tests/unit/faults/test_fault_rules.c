/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The grammar of fault rules: what each word means, and what is refused and why. */
#include "faults/fault_rules.h"
#include "tap.h"
#include "words.h"

enum { MS = 1000000 };

static struct sg_fault_rule rule;
static struct sg_fault_lot lot;
static char err[160];

static int parse(const char *text)
{
    *err = 0;
    return sg_fault_parse(text, strlen(text), &test_words, &rule, &lot, err, sizeof(err));
}

static void effects(void)
{
    static const struct {
        const char *text;
        uint8_t point, effect;
        uint64_t value, times;
    } rows[] = {
        { "command fail", SG_POINT_COMMAND, SG_EFFECT_FAIL, 4, 1 },
        { "command fail=EBUSY", SG_POINT_COMMAND, SG_EFFECT_FAIL, 5, 1 },
        { "command slow=5ms", SG_POINT_COMMAND, SG_EFFECT_SLOW, 5 * MS, 1 },
        { "command stuck", SG_POINT_COMMAND, SG_EFFECT_STUCK, 0, 1 },
        { "command silent", SG_POINT_COMMAND, SG_EFFECT_SILENT, 0, 1 },
        { "interrupt late=2us", SG_POINT_INTERRUPT, SG_EFFECT_LATE, 2000, 1 },
        { "interrupt lost", SG_POINT_INTERRUPT, SG_EFFECT_LOST, 0, 1 },
        { "interrupt wrong=63", SG_POINT_INTERRUPT, SG_EFFECT_WRONG, 63, 1 },
        { "interrupt spurious=2", SG_POINT_INTERRUPT, SG_EFFECT_SPURIOUS, 2, 1 },
        { "interrupt spurious=2 period=1ms", SG_POINT_INTERRUPT, SG_EFFECT_SPURIOUS, 2,
          SG_FAULT_ALWAYS },
        { "registers ones", SG_POINT_REGISTERS, SG_EFFECT_ONES, 0, SG_FAULT_ALWAYS },
        { "registers ones times=1", SG_POINT_REGISTERS, SG_EFFECT_ONES, 0, 1 },
        { "registers times=2 ones", SG_POINT_REGISTERS, SG_EFFECT_ONES, 0, 2 },
        { "dma refuse", SG_POINT_DMA, SG_EFFECT_REFUSE, 0, 1 },
        { "completion late=3ms", SG_POINT_COMPLETION, SG_EFFECT_LATE, 3 * MS, 1 },
        { "outbound terminate", SG_POINT_OUTBOUND, SG_EFFECT_TERMINATE, 0, 1 },
        { "outbound fin", SG_POINT_OUTBOUND, SG_EFFECT_FIN, 0, 1 },
        { "inbound rst", SG_POINT_INBOUND, SG_EFFECT_RST, 0, 1 },
        { "inbound mute qp=3 nth=4", SG_POINT_INBOUND, SG_EFFECT_MUTE, 0, 1 },
        { "link down=200ms", SG_POINT_LINK, SG_EFFECT_DOWN, 200 * MS, 1 },
        { "link down=1ms period=2ms times=5", SG_POINT_LINK, SG_EFFECT_DOWN, MS, 5 },
        { "error correctable", SG_POINT_ERROR, SG_EFFECT_CORRECTABLE, 0, 1 },
        { "error nonfatal", SG_POINT_ERROR, SG_EFFECT_NONFATAL, 0, 1 },
        { "error fatal after=1s", SG_POINT_ERROR, SG_EFFECT_FATAL, 0, 1 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].text);
        T_EQ_INT(parse(rows[i].text), 1);
        T_EQ_U64(rule.point, rows[i].point);
        T_EQ_U64(rule.effect, rows[i].effect);
        T_EQ_U64(rule.value, rows[i].value);
        T_EQ_U64(rule.times, rows[i].times);
        T_EQ_STR(rule.text, rows[i].text);
    }
}

static void conditions(void)
{
    T_EQ_INT(parse(" command  op=TWO\tfail=ENOENT nth=3 every=0x10 times=5 after=1s for=20ms "), 1);
    T_EQ_STR(rule.text, "command op=TWO fail=ENOENT nth=3 every=0x10 times=5 after=1s for=20ms");
    T_TRUE(rule.only);
    T_EQ_U64(rule.which, 2);
    T_EQ_U64(rule.nth, 3);
    T_EQ_U64(rule.every, 16);
    T_EQ_U64(rule.times, 5);
    T_EQ_U64(rule.after, 1000 * MS);
    T_EQ_U64(rule.lasts, 20 * MS);

    T_EQ_INT(parse("command op=0x4 stuck"), 1);
    T_EQ_U64(rule.which, 4);
    T_EQ_U64(rule.nth, 0);
    T_EQ_U64(rule.every, 1);
    T_EQ_U64(rule.lasts, SG_NEVER);

    T_EQ_INT(parse("interrupt lost vector=7 times=always"), 1);
    T_EQ_U64(rule.which, 7);
    T_EQ_U64(rule.times, SG_FAULT_ALWAYS);
    T_EQ_INT(parse("dma refuse dir=write"), 1);
    T_TRUE(rule.only && rule.which == 1);
    T_EQ_INT(parse("dma dir=read refuse"), 1);
    T_TRUE(rule.only && rule.which == 0);
    T_EQ_INT(parse("registers ones offset=0x0c"), 1);
    T_EQ_U64(rule.which, 12);
    /* What lasts is not limited to one occurrence. */
    T_EQ_INT(parse("interrupt lost for=1ms"), 1);
    T_EQ_U64(rule.times, SG_FAULT_ALWAYS);
    T_EQ_INT(parse("interrupt spurious=0 after=1ms period=2ms times=9"), 1);
    T_TRUE(rule.timed);
    T_EQ_U64(rule.period, 2 * MS);
    T_EQ_U64(rule.times, 9);
}

static void draws(void)
{
    T_EQ_INT(parse("draw seed=0x10"), 0);
    T_EQ_U64(lot.seed, 16);
    T_EQ_U64(lot.rules, 4);
    T_EQ_U64(lot.within, 10000ull * MS);
    T_EQ_INT(parse("draw rules=64 seed=18446744073709551615 within=5ms"), 0);
    T_EQ_U64(lot.seed, UINT64_MAX);
    T_EQ_U64(lot.rules, 64);
    T_EQ_U64(lot.within, 5 * MS);
}

static void refusals(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "nonsense", "it begins with nonsense" },
        { "=", "takes no value" },
        { "command=1 fail", "command takes no value" },
        { "command", "it has no effect: one of fail, slow, stuck, silent" },
        { "command nth=1", "it has no effect" },
        { "command fail silent", "silent is a second effect" },
        { "command late=5ms", "command has no word late; its effects are fail" },
        { "command fail=EWHAT", "fail takes a status such as ENOMEM" },
        { "command fail=", "fail takes a status" },
        { "command slow", "slow takes a time" },
        { "command slow=5", "slow takes a time" },
        { "command slow=5min", "slow takes a time" },
        { "command slow=-5ms", "slow takes a time" },
        { "command slow=3601s", "slow takes a time" },
        { "command slow=99999999999999999999s", "slow takes a time" },
        { "command slow=18446744073709551615s", "slow takes a time" },
        { "command silent=1", "silent takes no value" },
        { "command fail op=THREE", "op takes a command" },
        { "command fail op=3", "op takes a command" },
        { "command fail op=5", "op takes a command" },
        { "command fail op", "op takes a command" },
        { "command fail nth=0", "nth takes a number from 1 on" },
        { "command fail nth=1x", "nth takes a number" },
        { "command fail nth=", "nth takes a number" },
        { "command fail nth=always", "nth takes a number" },
        { "command fail every=0", "every takes a number" },
        { "command fail times=0", "times takes a number from 1 on, or always" },
        { "command fail times=1000000000001", "times takes a number" },
        { "command fail period=1ms", "period has no meaning for a rule that counts occurrences" },
        { "command fail vector=1", "command has no word vector" },
        { "interrupt wrong=64", "wrong takes a vector, 0 to 63" },
        { "interrupt wrong", "wrong takes a vector" },
        { "interrupt spurious=1 nth=2", "nth has no meaning for a rule that acts at a time" },
        { "interrupt spurious=1 vector=2", "vector has no meaning" },
        { "interrupt spurious=1 times=2", "more than one time needs period=" },
        { "interrupt spurious=1 period=99us", "period is 100 us at least" },
        { "registers ones=1", "ones takes no value" },
        { "registers ones offset=0x100000000", "offset takes the offset of a register" },
        { "dma refuse dir=up", "dir takes read or write" },
        { "dma refuse dir", "dir takes read or write" },
        { "dma ones", "dma has no word ones; its effects are refuse" },
        { "completion late=1ms cq=many", "cq takes the number of an object" },
        { "completion lost", "completion has no word lost; its effects are late" },
        { "link down", "down takes a time" },
        { "link up", "link has no word up; its effects are down" },
        { "link down=1ms nth=2", "nth has no meaning for a rule that acts at a time" },
        { "error", "it has no effect: one of correctable, nonfatal, fatal" },
        { "error fatal vector=1", "error has no word vector" },
        { "draw", "draw needs seed=NUMBER" },
        { "draw rules=3", "draw needs seed=NUMBER" },
        { "draw seed=x", "seed takes a number" },
        { "draw seed=1 rules=65", "at most 64 rules" },
        { "draw seed=1 rules=0", "rules takes a number from 1 on" },
        { "draw seed=1 fail", "draw has no word fail" },
        { "command f\"il", "octets that are no text" },
        { "command f\x01il", "octets that are no text" },
        { "command f\xc3\xa4il", "octets that are no text" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s: %s", rows[i].text, rows[i].why);
        T_EQ_INT(parse(rows[i].text), -1);
        T_CONTEXT("%s: %s, not %s", rows[i].text, rows[i].why, err);
        T_NOT_NULL(strstr(err, rows[i].why));
    }
}

static void lengths(void)
{
    char text[400];

    memset(text, ' ', sizeof(text));
    memcpy(text, "command", 7);
    memcpy(text + sizeof(text) - 5, "fail", 5);
    T_EQ_INT(parse(text), 1);
    T_EQ_STR(rule.text, "command fail");
    memset(text, 'x', sizeof(text) - 1);
    for (size_t len = SG_FAULT_TEXT - 2; len <= SG_FAULT_TEXT + 1; len++) {
        T_EQ_INT(sg_fault_parse(text, len, &test_words, &rule, &lot, err, sizeof(err)), -1);
        T_TRUE(!strstr(err, "longer than 159 octets") == (len < SG_FAULT_TEXT));
    }
    /* A short buffer for the message is filled, and ended. */
    T_EQ_INT(sg_fault_parse("x", 1, &test_words, &rule, &lot, err, 4), -1);
    T_EQ_STR(err, "it ");
}

static const struct t_case cases[] = {
    { "each effect, with its value", effects },
    { "conditions", conditions },
    { "requests to draw", draws },
    { "what is refused, and why", refusals },
    { "lengths", lengths },
};

T_MAIN(cases)
