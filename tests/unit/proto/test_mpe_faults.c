/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * draft-talpey-rdma-commit, the engine as responder: each field of each request malformed or
 * refused.
 */
#include <string.h>

#include "tap.h"
#include "fault_table.h"

enum { OFF = SG_MPE_DRAFT_OFF, D1 = SG_MPE_DRAFT_01, D2 = SG_MPE_DRAFT_02 };

#define HDR(op) "41" op " 00000000 00000001 00000001 00000000"
#define AT(stag, length, to) stag " " length " " to " "
#define GOOD AT("00000100", "00000008", "0000000000000010")
#define P "00000001"
#define ATOM "0123456789abcdef"

/* The header: every field, for each of the three. */
static const struct fault_row header_rows[] = {
    { "Flush: DDP version 0", D2, "404c 00000000 00000001 00000001 00000000", GOOD P, "1/2/06",
      .shows = "FLU-29 FLU-31" },
    { "Verify: DDP version 2", D2, "424e 00000000 00000001 00000001 00000000", GOOD, "1/2/06" },
    { "Atomic Write: DDP version 3", D2, "4350 00000000 00000001 00000001 00000000", GOOD ATOM,
      "1/2/06" },
    { "Flush: not the last segment", D2, "014c 00000000 00000001 00000001 00000000", GOOD P,
      "0/2/ff" },
    { "Verify: not the last segment", D2, "014e 00000000 00000001 00000001 00000000", GOOD,
      "0/2/ff" },
    { "Atomic Write: not the last segment", D2, "0150 00000000 00000001 00000001 00000000",
      GOOD ATOM, "0/2/ff" },
    { "Flush: RDMAP version 0", D2, "410c 00000000 00000001 00000001 00000000", GOOD P, "0/2/05" },
    { "Verify: RDMAP version 2", D2, "418e 00000000 00000001 00000001 00000000", GOOD, "0/2/05" },
    { "Atomic Write: RDMAP version 3", D2, "41d0 00000000 00000001 00000001 00000000", GOOD ATOM,
      "0/2/05" },
    { "Flush: tagged", D2, "c14c 00000100 0000000000000010", GOOD P, "0/2/06" },
    { "Verify: tagged", D2, "c14e 00000100 0000000000000010", GOOD, "0/2/06" },
    { "Atomic Write: tagged", D2, "c150 00000100 0000000000000010", ATOM, "0/2/06" },
    { "Flush Response: tagged", D2, "c14d 00000100 0000000000000010", "", "0/2/06" },
    { "Atomic Write Response: tagged", D2, "c151 00000100 0000000000000010", "", "0/2/06" },
    { "Flush: queue 0", D2, "414c 00000000 00000000 00000001 00000000", GOOD P, "0/2/06" },
    { "Verify: queue 2", D2, "414e 00000000 00000002 00000001 00000000", GOOD, "0/2/06" },
    { "Atomic Write: queue 3", D2, "4150 00000000 00000003 00000001 00000000", GOOD ATOM, "1/2/02",
      .shows = "FLU-31" },
    { "Flush: queue 4", D2, "414c 00000000 00000004 00000001 00000000", GOOD P, "1/2/01" },
    { "Verify: queue 2^32 - 1", D2, "414e 00000000 ffffffff 00000001 00000000", GOOD, "1/2/01" },
    { "Flush: MSN 0", D2, "414c 00000000 00000001 00000000 00000000", GOOD P, "1/2/03" },
    { "Verify: MSN 2", D2, "414e 00000000 00000001 00000002 00000000", GOOD, "1/2/03",
      .shows = "FLU-31" },
    { "Atomic Write: MSN 2^32 - 1", D2, "4150 00000000 00000001 ffffffff 00000000", GOOD ATOM,
      "1/2/03" },
    { "opcode 12", D2, HDR("52"), GOOD, "0/2/06" },
    { "opcode 1f", D2, HDR("5f"), GOOD, "0/2/06" },
    { "Atomic Request of RFC 7306", D2, HDR("4a"), GOOD, "0/2/06" },
    { "Flush Response on queue 1", D2, HDR("4d"), "", "0/2/06" },
    { "Verify Response on queue 1", D2, HDR("4f"), "01020304", "0/2/06" },
    { "Atomic Write Response on queue 1", D2, HDR("51"), "", "0/2/06" },
    { "Flush Response, nothing was asked", D2, "414d 00000000 00000003 00000001 00000000", "",
      "1/2/02" },
    { "Verify Response, nothing was asked", D2, "414f 00000000 00000003 00000001 00000000",
      "01020304", "1/2/02" },
    { "Atomic Write Response, nothing was asked", D2, "4151 00000000 00000003 00000001 00000000",
      "", "1/2/02" },
};

static void header_fields(void)
{
    fault_run(header_rows, SG_ARRAY_SIZE(header_rows));
}

/* The RDMAP part: sizes, and values that the engine itself checks. */
static const struct fault_row body_rows[] = {
    { "Flush: empty", D2, HDR("4c"), "", "0/2/ff", .shows = "FLU-33" },
    { "Flush: an octet missing", D2, HDR("4c"), GOOD "000000", "0/2/ff" },
    { "Flush: an octet too many", D2, HDR("4c"), GOOD P "00", "0/2/ff" },
    { "Flush: beyond the buffer", D2, HDR("4c"),
      GOOD P "00000000000000000000000000000000000000000000000000000000000000000000000000000000"
             "000000000000000000000000000000000000000000",
      "1/2/05" },
    { "Flush: flag 8", D2, HDR("4c"), GOOD "00000009", "0/2/ff" },
    { "Flush: flag 2^31", D2, HDR("4c"), GOOD "80000001", "0/2/ff" },
    { "Flush: all flags", D2, HDR("4c"), GOOD "ffffffff", "0/2/ff" },
    { "draft -01, Flush: R", D1, HDR("4c"), GOOD "00000005", "0/2/ff" },
    { "Verify: empty", D2, HDR("4e"), "", "0/2/ff" },
    { "Verify: an octet missing", D2, HDR("4e"), "00000100 00000008 00000000000000", "0/2/ff" },
    { "Verify: a hash of 65 octets", D2, HDR("4e"),
      GOOD "0001020304050607 0001020304050607 0001020304050607 0001020304050607 "
           "0001020304050607 0001020304050607 0001020304050607 0001020304050607 00",
      "1/2/05" },
    { "Atomic Write: empty", D2, HDR("50"), "", "0/2/ff" },
    { "Atomic Write: an octet missing", D2, HDR("50"), GOOD "0123456789abcd", "0/2/ff" },
    { "Atomic Write: an octet too many", D2, HDR("50"), GOOD ATOM "00", "0/2/ff" },
    { "Atomic Write: length 0", D2, HDR("50"), AT("00000100", "00000000", "0000000000000010") ATOM,
      "0/2/ff" },
    { "Atomic Write: length 7", D2, HDR("50"), AT("00000100", "00000007", "0000000000000010") ATOM,
      "0/2/ff", .shows = "FLU-33" },
    { "Atomic Write: length 16", D2, HDR("50"), AT("00000100", "00000010", "0000000000000010") ATOM,
      "0/2/ff" },
    { "Atomic Write: length 2^32 - 1", D2, HDR("50"),
      AT("00000100", "ffffffff", "0000000000000010") ATOM, "0/2/ff" },
    { "Read Request with octets too many", D2, HDR("41"),
      "00000000 0000000000000000 00000000 00000000 0000000000000000 00", "0/2/ff" },
};

static void body_fields(void)
{
    fault_run(body_rows, SG_ARRAY_SIZE(body_rows));
}

/* STag, Length and TO: what verbs refuse, and which code each refusal has. */
static void target_fields(void)
{
    static const struct {
        const char *what, *target, *lec;
    } targets[] = {
        { "no such STag", AT("00000999", "00000008", "0000000000000010"), "0/1/00" },
        { "STag 0", AT("00000000", "00000008", "0000000000000010"), "0/1/00" },
        { "beyond the region", AT("00000100", "00000008", "0000000000040000"), "0/1/01" },
        { "half beyond the region", AT("00000100", "00000008", "000000000003fffc"), "0/1/01" },
        { "no right", AT("00000200", "00000008", "0000000000000010"), "0/1/02" },
        { "another PD", AT("00000400", "00000008", "0000000000000010"), "0/1/03" },
        { "wraps", AT("00000100", "00000008", "fffffffffffffffc"), "0/1/04" },
        { "memory that does not respond", AT("00000500", "00000008", "0000000000000010"),
          "0/2/07" },
    };
    static const struct {
        const char *header, *rest;
    } requests[] = {
        { HDR("4c"), P },
        { HDR("4e"), "" },
        { HDR("50"), ATOM },
    };
    size_t i, k;

    for (i = 0; i < SG_ARRAY_SIZE(targets); i++) {
        for (k = 0; k < SG_ARRAY_SIZE(requests); k++) {
            char what[80], body[120];
            const struct fault_row r = { what,    i & 1 ? D1 : D2, requests[k].header,
                                         body,    targets[i].lec,  true,
                                         "FLU-32" };

            snprintf(what, sizeof(what), "%s, request %zu", targets[i].what, k);
            snprintf(body, sizeof(body), "%s%s", targets[i].target, requests[k].rest);
            fault_run(&r, 1);
        }
    }
}

static const struct fault_row execution_rows[] = {
    { "Atomic Write: not aligned", D2, HDR("50"),
      AT("00000100", "00000008", "0000000000000011") ATOM, "0/2/07", true,
      .shows = "FLU-24 FLU-33" },
    { "Atomic Write: aligned to 4", D2, HDR("50"),
      AT("00000100", "00000008", "0000000000000014") ATOM, "0/2/07", true },
    { "Verify: another hash", D2, HDR("4e"), GOOD "01020304", "0/2/07", true, .shows = "FLU-15" },
    { "Verify: a hash too short", D2, HDR("4e"), GOOD "01", "0/2/07", true },
    { "Verify: a hash too long", D2, HDR("4e"), GOOD "0102030405060708", "0/2/07", true },
    { "Verify: a hash of zeros is a hash", D2, HDR("4e"), GOOD "00000000", "0/2/07", true },
    { "draft -01, Verify: another hash", D1, HDR("4e"), GOOD "01020304", "0/2/07", true },
};

static void execution(void)
{
    fault_run(execution_rows, SG_ARRAY_SIZE(execution_rows));
}

/* Draft -02: no STag to invalidate.  Draft -01: if it is invalid, that is an error at the end. */
static const struct fault_row invalidate_rows[] = {
    { "Flush: STag to invalidate", D2, "414c 00000300 00000001 00000001 00000000", GOOD P, "0/1/09",
      .shows = "FLU-03" },
    { "Verify: STag to invalidate", D2, "414e 00000300 00000001 00000001 00000000", GOOD, "0/1/09",
      .shows = "FLU-03" },
    { "Atomic Write: STag to invalidate", D2, "4150 00000300 00000001 00000001 00000000", GOOD ATOM,
      "0/1/09", .shows = "FLU-03" },
    { "draft -01, Flush: no such STag to invalidate", D1,
      "414c 00000999 00000001 00000001 00000000", GOOD P, "0/1/09", true, .shows = "FLU-02" },
    { "draft -01, Verify: another PD's STag to invalidate", D1,
      "414e 00000400 00000001 00000001 00000000", GOOD, "0/1/09", true, .shows = "FLU-02" },
};

static void invalidation(void)
{
    fault_run(invalidate_rows, SG_ARRAY_SIZE(invalidate_rows));
}

/* Without the extension: four bits of opcode, no queue 3, nothing above 7. */
static const struct fault_row off_rows[] = {
    { "off: Flush", OFF, HDR("4c"), GOOD P, "0/2/06" },
    { "off: Verify", OFF, HDR("4e"), GOOD, "0/2/06" },
    { "off: Atomic Write looks like a Write", OFF, HDR("50"), GOOD ATOM, "0/2/06" },
    { "off: Flush Response", OFF, "414d 00000000 00000003 00000001 00000000", "", "1/2/01" },
    { "off: Verify Response", OFF, "414f 00000000 00000003 00000001 00000000", "00", "1/2/01" },
    { "off: Atomic Write Response", OFF, "4151 00000000 00000003 00000001 00000000", "", "1/2/01" },
};

static void extension_off(void)
{
    fault_run(off_rows, SG_ARRAY_SIZE(off_rows));
}

/* After a failed request nothing behind it is executed or answered. */
static void pending_work(void)
{
    uint8_t before[8];

    rig_passive_with(D2, false);
    memcpy(before, rig->mem + 0x10, 8);
    rig->exec_later = 2;
    rig->exec_fails = true;
    rig_say_fpdu("414c 00000000 00000001 00000001 00000000 " GOOD P);
    rig_say_fpdu("4150 00000000 00000001 00000002 00000000 " GOOD ATOM);
    rig_say_fpdu("4141 00000000 00000001 00000003 00000000 "
                 "0000000a 0000000000000000 00000004 00000100 0000000000000000");
    rig_pass(1);
    rig_expect_nothing();
    rig_pass(1);
    T_SHOWS("FLU-06 FLU-30") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 0207c000 0026 " HDR("4c"));
    }
    T_EQ_STR(rig_log(), "mpe(F1,100,10+8,1) later(1) mpe(F1,100,10+8,1) later(2) "
                        "mpe(F1,100,10+8,1) terminated(sent,0/2/07) disconnected(TERMINATED)");
    rig_pass(1000);
    rig_expect_nothing();
    T_SHOWS("FLU-26") {
        T_EQ_MEM(rig->mem + 0x10, before, 8);
    }
    T_TRUE(rig->peer_fin);
    rig_stop();
}

/* A malformed request behind an unfinished one is reported at once, and ends that one, too. */
static void malformed_behind(void)
{
    rig_passive_with(D2, false);
    rig->exec_later = 1;
    rig_say_fpdu("414c 00000000 00000001 00000001 00000000 " GOOD P);
    rig_say_fpdu("414c 00000000 00000001 00000002 00000000 " GOOD "00000008");
    rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 02ffc000 0026 "
                    "414c 00000000 00000001 00000002 00000000");
    rig_log();
    rig_pass(10);
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "");
    rig_stop();
}

/* Each request with each length, from nothing to beyond all buffers. */
static void all_lengths(void)
{
    static const struct {
        const char *op;
        unsigned least, most;
    } rows[] = { { "4c", 20, 20 }, { "4e", 16, 80 }, { "50", 24, 24 } };
    static const char target[] = "0000010000000008000000000000001000000000";
    size_t i, n;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        for (n = 0; n < 140; n++) {
            char text[400], *at = text;
            size_t k;
            bool good = n >= rows[i].least && n <= rows[i].most && (i != 1 || n == 16);

            T_CONTEXT("opcode %s, %zu octets", rows[i].op, n);
            rig_passive_with(D2, false);
            at += sprintf(at, HDR("%s"), rows[i].op);
            for (k = 0; k < n; k++) {
                at += sprintf(at, "%.2s", k < 20 ? target + 2 * k : "00");
            }
            rig_say_fpdu(text);
            T_EQ_INT(strstr(rig_log(), "terminated(sent,") == NULL, good);
            rig_stop();
        }
    }
}

static const struct t_case cases[] = {
    { "each field of the header", header_fields },
    { "sizes, flags and lengths", body_fields },
    { "STag, Length and TO", target_fields },
    { "what cannot be done, and a hash that differs", execution },
    { "an STag to invalidate", invalidation },
    { "the extension is off", extension_off },
    { "a failure ends what is pending", pending_work },
    { "a malformed request behind one in the making", malformed_behind },
    { "each length", all_lengths },
};

T_MAIN(cases)
