/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 7306, the engine as receiver: each field of each message malformed or refused. */
#include <string.h>

#include "tap.h"
#include "fault_table.h"

enum {
    NONE = SG_MPE_DRAFT_OFF, /* RFC 5040 alone */
    DRAFT = SG_MPE_DRAFT_02,
    ALONE = SPEAKS_7306,
    BOTH = SPEAKS_7306 | SG_MPE_DRAFT_02,
};

#define Q1(op) "41" op " 00000000 00000001 00000001 00000000"
#define Q0(op) "41" op " 00000000 00000000 00000001 00000000"
#define OP(code, stag, to)                                                               \
    code " 00000007 " stag " " to " 0000000000000005 0000000000000000 0000000000000000 " \
         "ffffffffffffffff"
#define GOOD OP("00000000", "00000100", "0000000000000020")
#define DATA "0102030405060708"

static const struct fault_row atomic_rows[] = {
    { "DDP version 0", BOTH, "404a 00000000 00000001 00000001 00000000", GOOD, "1/2/06",
      .shows = "EXT-30 EXT-31" },
    { "DDP version 2", ALONE, "424a 00000000 00000001 00000001 00000000", GOOD, "1/2/06" },
    { "not the last segment", BOTH, "014a 00000000 00000001 00000001 00000000", GOOD, "0/2/ff" },
    { "RDMAP version 0", BOTH, "410a 00000000 00000001 00000001 00000000", GOOD, "0/2/05",
      .shows = "EXT-31" },
    { "RDMAP version 2", ALONE, "418a 00000000 00000001 00000001 00000000", GOOD, "0/2/05" },
    { "RDMAP version 3", BOTH, "41ca 00000000 00000001 00000001 00000000", GOOD, "0/2/05" },
    { "tagged", BOTH, "c14a 00000100 0000000000000020", GOOD, "0/2/06" },
    { "Response, tagged", ALONE, "c14b 00000100 0000000000000020", "00000007 0000000000000001",
      "0/2/06" },
    { "queue 0", BOTH, Q0("4a"), GOOD, "0/2/06" },
    { "queue 2", BOTH, "414a 00000000 00000002 00000001 00000000", GOOD, "0/2/06" },
    { "queue 3, nothing asked", ALONE, "414a 00000000 00000003 00000001 00000000", GOOD, "1/2/02" },
    { "queue 4", BOTH, "414a 00000000 00000004 00000001 00000000", GOOD, "1/2/01" },
    { "queue 2^32 - 1", ALONE, "414a 00000000 ffffffff 00000001 00000000", GOOD, "1/2/01" },
    { "MSN 0", BOTH, "414a 00000000 00000001 00000000 00000000", GOOD, "1/2/03" },
    { "MSN 2", ALONE, "414a 00000000 00000001 00000002 00000000", GOOD, "1/2/03" },
    { "MSN 2^32 - 1", BOTH, "414a 00000000 00000001 ffffffff 00000000", GOOD, "1/2/03" },
    { "MO 1", BOTH, "414a 00000000 00000001 00000001 00000001", GOOD, "1/2/04" },
    { "MO 2^32 - 1", ALONE, "414a 00000000 00000001 00000001 ffffffff", GOOD, "1/2/04" },
    { "Response on queue 1", BOTH, Q1("4b"), "00000007 0000000000000001", "0/2/06" },
    { "Response, nothing asked", ALONE, "414b 00000000 00000003 00000001 00000000",
      "00000007 0000000000000001", "1/2/02" },
    { "empty", BOTH, Q1("4a"), "", "0/2/ff" },
    { "a Read Request's length", ALONE, Q1("4a"),
      "00000000 00000007 00000100 0000000000000020 0000000000000005", "0/2/ff" },
    { "an octet missing", ALONE, Q1("4a"),
      "00000000 00000007 00000100 0000000000000020 "
      "0000000000000005 0000000000000000 0000000000000000 ffffffffffffff",
      "0/2/ff" },
    { "an octet too many", BOTH, Q1("4a"), GOOD "00", "0/2/ff" },
    { "beyond the buffer", ALONE, Q1("4a"), GOOD "00", "1/2/05" },
    { "operation 1", BOTH, Q1("4a"), OP("00000001", "00000100", "0000000000000020"), "0/2/06",
      .shows = "EXT-14" },
    { "operation 3", ALONE, Q1("4a"), OP("00000003", "00000100", "0000000000000020"), "0/2/06",
      .shows = "EXT-14" },
    { "operation 8", BOTH, Q1("4a"), OP("00000008", "00000100", "0000000000000020"), "0/2/06" },
    { "operation 15, reserved bits", ALONE, Q1("4a"),
      OP("ffffffff", "00000100", "0000000000000020"), "0/2/06" },
    { "no such STag", BOTH, Q1("4a"), OP("00000000", "00000999", "0000000000000020"), "0/1/00",
      true },
    { "STag 0", ALONE, Q1("4a"), OP("00000002", "00000000", "0000000000000020"), "0/1/00", true },
    { "beyond the region", BOTH, Q1("4a"), OP("00000000", "00000100", "0000000000040000"), "0/1/01",
      true },
    { "half beyond the region", ALONE, Q1("4a"), OP("00000002", "00000100", "000000000003fffc"),
      "0/1/01", true },
    { "no right", BOTH, Q1("4a"), OP("00000000", "00000200", "0000000000000020"), "0/1/02", true },
    { "another PD", ALONE, Q1("4a"), OP("00000002", "00000400", "0000000000000020"), "0/1/03",
      true },
    { "wraps", BOTH, Q1("4a"), OP("00000000", "00000100", "fffffffffffffffc"), "0/1/04", true },
    { "memory that does not respond", ALONE, Q1("4a"),
      OP("00000002", "00000500", "0000000000000020"), "0/2/07", true },
    { "misaligned by 1", BOTH, Q1("4a"), OP("00000000", "00000100", "0000000000000021"), "0/2/07",
      true, .shows = "EXT-06 EXT-32" },
    { "misaligned by 4", ALONE, Q1("4a"), OP("00000002", "00000100", "0000000000000024"), "0/2/07",
      true, .shows = "EXT-08 EXT-32" },
    { "misaligned by 7", BOTH, Q1("4a"), OP("00000002", "00000100", "0000000000000027"), "0/2/07",
      true },
};

static void atomics(void)
{
    fault_run(atomic_rows, SG_ARRAY_SIZE(atomic_rows));
}

static const struct fault_row imm_rows[] = {
    { "DDP version 0", BOTH, "4048 00000000 00000000 00000001 00000000", DATA, "1/2/06" },
    { "DDP version 3", ALONE, "4349 00000000 00000000 00000001 00000000", DATA, "1/2/06" },
    { "RDMAP version 0", BOTH, "4108 00000000 00000000 00000001 00000000", DATA, "0/2/05" },
    { "RDMAP version 2", ALONE, "4189 00000000 00000000 00000001 00000000", DATA, "0/2/05" },
    { "tagged", BOTH, "c148 00000100 0000000000000020", DATA, "0/2/06" },
    { "tagged, SE", ALONE, "c149 00000100 0000000000000020", DATA, "0/2/06" },
    { "queue 1", BOTH, Q1("48"), DATA, "0/2/06" },
    { "queue 2", ALONE, "4149 00000000 00000002 00000001 00000000", DATA, "0/2/06" },
    { "queue 3", BOTH, "4148 00000000 00000003 00000001 00000000", DATA, "1/2/02" },
    { "queue 4", ALONE, "4149 00000000 00000004 00000001 00000000", DATA, "1/2/01" },
    { "MSN 0", BOTH, "4148 00000000 00000000 00000000 00000000", DATA, "1/2/03" },
    { "MSN 2", ALONE, "4149 00000000 00000000 00000002 00000000", DATA, "1/2/03" },
    { "MO 8", BOTH, "4148 00000000 00000000 00000001 00000008", DATA, "1/2/04" },
    { "MO 2^32 - 1", ALONE, "4149 00000000 00000000 00000001 ffffffff", DATA, "1/2/04" },
    { "not the last segment", BOTH, "0148 00000000 00000000 00000001 00000000", DATA, "0/2/ff" },
    { "empty", ALONE, Q0("48"), "", "0/2/ff" },
    { "4 octets", BOTH, Q0("49"), "01020304", "0/2/ff", .shows = "EXT-29" },
    { "7 octets", ALONE, Q0("48"), "01020304050607", "0/2/ff" },
    { "9 octets", BOTH, Q0("49"), DATA "09", "0/2/ff", .shows = "EXT-29" },
    { "16 octets", ALONE, Q0("48"), DATA DATA, "0/2/ff" },
};

static void immediates(void)
{
    fault_run(imm_rows, SG_ARRAY_SIZE(imm_rows));
}

/* A connection without it behaves as by RFC 5040 alone, with or without the draft. */
static const struct fault_row off_rows[] = {
    { "off: Immediate Data", NONE, Q0("48"), DATA, "0/2/06" },
    { "off: Immediate Data, SE", NONE, Q0("49"), DATA, "0/2/06" },
    { "off: Atomic Request", NONE, Q1("4a"), GOOD, "0/2/06" },
    { "off: Atomic Response", NONE, "414b 00000000 00000003 00000001 00000000",
      "00000007 0000000000000001", "1/2/01" },
    { "draft alone: Immediate Data", DRAFT, Q0("48"), DATA, "0/2/06" },
    { "draft alone: Immediate Data, SE", DRAFT, Q0("49"), DATA, "0/2/06" },
    { "draft alone: Atomic Request", DRAFT, Q1("4a"), GOOD, "0/2/06" },
    { "alone: Flush", ALONE, Q1("4c"), "00000100 00000008 0000000000000010 00000001", "0/2/06" },
    { "alone: opcode f", ALONE, Q1("4f"), "", "0/2/06" },
};

static void switched_off(void)
{
    fault_run(off_rows, SG_ARRAY_SIZE(off_rows));
}

/* Immediate Data as the end of a Send that has begun. */
static void end_of_a_send(void)
{
    fault_start(ALONE);
    rig_say_fpdu("0143 00000000 00000000 00000001 00000000 6869");
    rig_say_fpdu(Q0("48") DATA);
    rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 02ffc000 001a " Q0("48"));
    T_EQ_STR(rig_log(), "terminated(sent,0/2/ff) disconnected(TERMINATED)");
    rig_stop();
}

/* Of several faults the first one counts; later ones are not checked. */
static void first_fault(void)
{
    fault_start(BOTH);
    rig_say_fpdu(Q1("4a") OP("00000000", "00000100", "0000000000000020"));
    rig_say_fpdu(
        "414a 00000000 00000001 00000002 00000000 " OP("00000000", "00000100", "0000000000000021"));
    rig_say_fpdu(
        "414a 00000000 00000001 00000003 00000000 " OP("00000000", "00000999", "0000000000000020"));
    T_EQ_STR(rig_log(), "atomic(+1,100,20) atomic(+2,100,21) terminated(sent,0/2/07) "
                        "disconnected(TERMINATED)");
    rig_stop();
}

static const struct t_case cases[] = {
    { "each field of an Atomic", atomics },
    { "each field of Immediate Data", immediates },
    { "switched off", switched_off },
    { "Immediate Data as the end of a Send", end_of_a_send },
    { "of several faults the first", first_fault },
};

T_MAIN(cases)
