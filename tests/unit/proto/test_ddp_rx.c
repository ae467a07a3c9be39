/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One inbound segment, one verdict: the Terminate for each malformed or forbidden segment (RFC 5041
 * section 7, RFC 5040 section 7), and the effect of well-formed ones.
 */
#include <string.h>

#include "tap.h"
#include "rig.h"

#define Z4 "00000000"
#define SEND_HDR(msn) "4143 00000000 00000000 " msn " 00000000"
#define READ_HDR(msn) "4141 00000000 00000001 " msn " 00000000"

/* 'quoted' is what follows the control word of the Terminate: length, DDP and RDMAP header. */
struct ddp_rx_fault_row {
    const char *what;
    const char *ulpdu;
    const char *control; /* layer, type, code, flags */
    const char *quoted;
    const char *word;
    const char *before; /* sent ahead of it, or NULL */
    const char *shows;  /* rows of the checklist */
};

static const struct ddp_rx_fault_row faults[] = {
    { "no octets", "", "10000000", "", "1/0/00", NULL, .shows = "RDM-11" },
    { "tagged header cut", "c140 00000100 00000000 000000", "10000000", "", "1/0/00", NULL },
    { "untagged header cut", "4143 00000000 00000000 00000002 000000", "10000000", "", "1/0/00",
      NULL },
    { "tagged, DV 0", "c040 00000100 00000000 00000000 aa", "1104c000",
      "000f c040 00000100 00000000 00000000", "1/1/04", NULL, .shows = "DDP-07" },
    { "tagged, DV 2", "c240 00000100 00000000 00000000 aa", "1104c000",
      "000f c240 00000100 00000000 00000000", "1/1/04", NULL },
    { "untagged, DV 3", "4343 00000000 00000000 00000001 00000000", "1206c000",
      "0012 4343 00000000 00000000 00000001 00000000", "1/2/06", NULL },
    { "QN 3", "4143 00000000 00000003 00000001 00000000", "1201c000",
      "0012 4143 00000000 00000003 00000001 00000000", "1/2/01", NULL, .shows = "DDP-36" },
    { "QN 0x80000000", "4143 00000000 80000000 00000001 00000000", "1201c000",
      "0012 4143 00000000 80000000 00000001 00000000", "1/2/01", NULL },
    { "version is judged before the queue", "4043 00000000 00000009 00000001 00000000", "1206c000",
      "0012 4043 00000000 00000009 00000001 00000000", "1/2/06", NULL },
    { "MSN 0", SEND_HDR("00000000"), "1203c000", "0012 4143 00000000 00000000 00000000 00000000",
      "1/2/03", NULL, .shows = "DDP-40" },
    { "MSN 2 without 1", SEND_HDR("00000002"), "1203c000",
      "0012 4143 00000000 00000000 00000002 00000000", "1/2/03", NULL, .shows = "DDP-40" },
    { "MSN 1 twice", SEND_HDR("00000001"), "1203c000",
      "0012 4143 00000000 00000000 00000001 00000000", "1/2/03", SEND_HDR("00000001"),
      .shows = "DDP-26" },
    { "Read Request MSN 2", READ_HDR("00000002") Z4 Z4 Z4 Z4 Z4 Z4 Z4, "1203c000",
      "002e 4141 00000000 00000001 00000002 00000000", "1/2/03", NULL },
    { "no Receive posted", SEND_HDR("00000001") " 616263", "1202c000",
      "0015 4143 00000000 00000000 00000001 00000000", "1/2/02", "norecv", .shows = "DDP-37" },
    { "no Receive posted, no octets", SEND_HDR("00000001"), "1202c000",
      "0012 4143 00000000 00000000 00000001 00000000", "1/2/02", "norecv" },
    { "MO outside the Receive", "4143 00000000 00000000 00000001 00001001 61", "1204c000",
      "0013 4143 00000000 00000000 00000001 00001001", "1/2/04", NULL, .shows = "DDP-38" },
    { "MO + length outside", "4143 00000000 00000000 00000001 00000fff 6162", "1205c000",
      "0014 4143 00000000 00000000 00000001 00000fff", "1/2/05", NULL, .shows = "DDP-39 RDM-34" },
    { "MO + length beyond 32 bits", "4143 00000000 00000000 00000001 ffffffff 6162", "1205c000",
      "0014 4143 00000000 00000000 00000001 ffffffff", "1/2/05", NULL },
    { "Write: no such STag", "c140 00000999 00000000 00000000 61", "1100c000",
      "000f c140 00000999 00000000 00000000", "1/1/00", NULL,
      .shows = "DDP-11 DDP-41 DDP-48 RDM-60 RDM-62" },
    { "Write: STag 0", "c140 00000000 00000000 00000000 61", "1100c000",
      "000f c140 00000000 00000000 00000000", "1/1/00", NULL },
    { "Write: one octet past the end", "c140 00000100 00000000 0003ffff 6162", "1101c000",
      "0010 c140 00000100 00000000 0003ffff", "1/1/01", NULL, .shows = "DDP-43" },
    { "Write: another PD", "c140 00000400 00000000 00000000 61", "1102c000",
      "000f c140 00000400 00000000 00000000", "1/1/02", NULL, .shows = "DDP-41 DDP-50" },
    { "Write: TO wraps", "c140 00000100 ffffffff ffffffff 6162", "1103c000",
      "0010 c140 00000100 ffffffff ffffffff", "1/1/03", NULL, .shows = "DDP-44" },
    { "Write: no right", "c140 00000200 00000000 00000000 61", "1100c000",
      "000f c140 00000200 00000000 00000000", "1/1/00", NULL, .shows = "DDP-42" },
    { "RDMAP version 0", "c100 00000100 00000000 00000000 61", "0205c000",
      "000f c100 00000100 00000000 00000000", "0/2/05", NULL, .shows = "RDM-66" },
    { "RDMAP version 2", "4183 00000000 00000000 00000001 00000000", "0205c000",
      "0012 4183 00000000 00000000 00000001 00000000", "0/2/05", NULL, .shows = "RDM-66" },
    { "opcode 8 (Immediate, not enabled)", "4148 00000000 00000000 00000001 00000000" Z4 Z4,
      "0206c000", "001a 4148 00000000 00000000 00000001 00000000", "0/2/06", NULL },
    { "opcode 15", "414f 00000000 00000000 00000001 00000000", "0206c000",
      "0012 414f 00000000 00000000 00000001 00000000", "0/2/06", NULL, .shows = "RDM-52 RDM-65" },
    { "Write, untagged", "4140 00000000 00000000 00000001 00000000", "0206c000",
      "0012 4140 00000000 00000000 00000001 00000000", "0/2/06", NULL, .shows = "RDM-06" },
    { "Send, tagged", "c143 00000100 00000000 00000000", "0206c000",
      "000e c143 00000100 00000000 00000000", "0/2/06", NULL, .shows = "DDP-01 RDM-06" },
    { "Send on QN 1", "4143 00000000 00000001 00000001 00000000", "0206c000",
      "0012 4143 00000000 00000001 00000001 00000000", "0/2/06", NULL },
    { "Read Request on QN 0", "4141 00000000 00000000 00000001 00000000", "0206c000",
      "0012 4141 00000000 00000000 00000001 00000000", "0/2/06", NULL },
    { "Terminate on QN 0", "4147 00000000 00000000 00000001 00000000" Z4, "0206c000",
      "0016 4147 00000000 00000000 00000001 00000000", "0/2/06", NULL },
    { "Read Response that nobody asked for", "c142 00000100 00000000 00000000 61", "0206c000",
      "000f c142 00000100 00000000 00000000", "0/2/06", NULL },
    { "Read Request cut short", READ_HDR("00000001") Z4 Z4 Z4 Z4 Z4 Z4, "02ffc000",
      "002a 4141 00000000 00000001 00000001 00000000", "0/2/ff", NULL },
    { "Read Request too long", READ_HDR("00000001") Z4 Z4 Z4 Z4 Z4 Z4 Z4 "00", "1205c000",
      "002f 4141 00000000 00000001 00000001 00000000", "1/2/05", NULL },
    { "Read Request at MO 4", "4141 00000000 00000001 00000001 00000004" Z4 Z4 Z4 Z4 Z4 Z4 Z4,
      "1204c000", "002e 4141 00000000 00000001 00000001 00000004", "1/2/04", NULL },
    { "Read Request without L", "0141 00000000 00000001 00000001 00000000" Z4 Z4 Z4 Z4 Z4 Z4 Z4,
      "02ffc000", "002e 0141 00000000 00000001 00000001 00000000", "0/2/ff", NULL,
      .shows = "RDM-44" },
    { "Read: no such STag",
      READ_HDR("00000001") "0a0b0c0d 00000000 00000010 00000008 00000999 00000000 00000020",
      "0100e000",
      "002e 4141 00000000 00000001 00000001 00000000 "
      "0a0b0c0d 00000000 00000010 00000008 00000999 00000000 00000020",
      "0/1/00", NULL, .shows = "RDM-10 RDM-11 RDM-24 RDM-63 RDM-68" },
    { "Read: out of bounds",
      READ_HDR("00000001") "0a0b0c0d 00000000 00000010 00000008 00000100 00000000 0003fff9",
      "0101e000",
      "002e 4141 00000000 00000001 00000001 00000000 "
      "0a0b0c0d 00000000 00000010 00000008 00000100 00000000 0003fff9",
      "0/1/01", NULL, .shows = "RDM-69" },
    { "Read: no right",
      READ_HDR("00000001") "0a0b0c0d 00000000 00000010 00000008 00000300 00000000 00000000",
      "0102e000",
      "002e 4141 00000000 00000001 00000001 00000000 "
      "0a0b0c0d 00000000 00000010 00000008 00000300 00000000 00000000",
      "0/1/02", NULL },
    { "Read: another PD",
      READ_HDR("00000001") "0a0b0c0d 00000000 00000010 00000008 00000400 00000000 00000000",
      "0103e000",
      "002e 4141 00000000 00000001 00000001 00000000 "
      "0a0b0c0d 00000000 00000010 00000008 00000400 00000000 00000000",
      "0/1/03", NULL, .shows = "RDM-68" },
    { "Read: wraps",
      READ_HDR("00000001") "0a0b0c0d 00000000 00000010 00000008 00000100 ffffffff fffffffc",
      "0104e000",
      "002e 4141 00000000 00000001 00000001 00000000 "
      "0a0b0c0d 00000000 00000010 00000008 00000100 ffffffff fffffffc",
      "0/1/04", NULL, .shows = "RDM-70" },
    { "Invalidate: no such STag", "4144 00000999 00000000 00000001 00000000", "0109c000",
      "0012 4144 00000999 00000000 00000001 00000000", "0/1/09", NULL, .shows = "RDM-37 RDM-67" },
    { "Invalidate with SE: another PD", "4146 00000400 00000000 00000001 00000000", "0109c000",
      "0012 4146 00000400 00000000 00000001 00000000", "0/1/09", NULL, .shows = "RDM-36" },
    { "Terminate too short", "4147 00000000 00000002 00000001 00000000 010203", "02ffc000",
      "0015 4147 00000000 00000002 00000001 00000000", "0/2/ff", NULL },
};

static void run_fault(const struct ddp_rx_fault_row *r, bool from_responder)
{
    static uint8_t memory[RIG_MEM];
    char want[256], words[128];

    T_CONTEXT("%s, from the %s", r->what, from_responder ? "responder" : "initiator");
    rig_start(NULL);
    rig->recvs = r->before && strcmp(r->before, "norecv") == 0 ? 0 : 4;
    if (from_responder) {
        rig_active("4d504120 49442052 65702046 72616d65 50020004 00080008");
        rig_log();
    } else {
        rig_passive();
    }
    if (r->before && rig->recvs) {
        rig_say_fpdu(r->before);
        rig_log();
    }
    memcpy(memory, rig->mem, sizeof(memory));
    rig_say_fpdu(r->ulpdu);
    snprintf(want, sizeof(want), "4147 00000000 00000002 00000001 00000000 %s %s", r->control,
             r->quoted);
    snprintf(words, sizeof(words), "%sterminated(sent,%s) disconnected(TERMINATED)",
             strstr(r->what, "Invalidate: ")      ? "inv(999) "
             : strstr(r->what, "Invalidate with") ? "inv(400) "
                                                  : "",
             r->word);
    T_SHOWS(r->shows) {
        rig_expect_fpdu(want);
        rig_expect_nothing();
        T_EQ_STR(rig_log(), words);
        T_EQ_MEM(rig->mem, memory, sizeof(memory));
    }
    T_TRUE(rig->peer_fin);
    T_EQ_U64(sg_engine_stats(rig->e)->protocol_errors + sg_engine_stats(rig->e)->protection_errors,
             1);
    T_EQ_U64(sg_engine_stats(rig->e)->tx_terminates, 1);
    rig_peer_close();
    T_EQ_STR(rig_log(), "closed(TERMINATED)");
    rig_stop();
}

static void every_fault(void)
{
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(faults); i++) {
        run_fault(&faults[i], false);
        run_fault(&faults[i], true);
    }
}

/* After the first error nothing is placed, delivered or answered any more. */
static void later_segments_dropped(void)
{
    uint8_t before[16];

    rig_start(NULL);
    rig->recvs = 4;
    rig_passive();
    memcpy(before, rig->mem, sizeof(before));
    rig_say_fpdu("c140 00000999 00000000 00000000 61");
    rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 1100c000 000f "
                    "c140 00000999 00000000 00000000");
    rig_log();
    rig_say_fpdu("c140 00000100 00000000 00000000 ffffffff");
    rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61");
    rig_say_fpdu("4043 00000000 00000000 00000001 00000000 61");
    rig_say_fpdu("4147 00000000 00000002 00000001 00000000 10000000");
    T_SHOWS("DDP-46 MPA-72") {
        T_EQ_STR(rig_log(), "");
    }
    T_SHOWS("RDM-59") {
        T_EQ_MEM(rig->mem, before, sizeof(before));
    }
    rig_expect_nothing();
    rig_stop();
}

/* Nothing of a segment that fails is placed, not even the octets that would fit. */
static void failing_segment_not_placed(void)
{
    uint8_t before[4];

    rig_start(NULL);
    rig_passive();
    memcpy(before, rig->mem + RIG_MEM - 4, 4);
    rig_say_fpdu("c140 00000100 00000000 0003fffc 0102030405");
    T_SHOWS("DDP-45 SEC-03") {
        T_EQ_MEM(rig->mem + RIG_MEM - 4, before, 4);
    }
    rig_stop();
}

static void zero_length_write_unchecked(void)
{
    rig_start(NULL);
    rig_passive();
    rig_say_fpdu("c140 00000999 ffffffff ffffffff");
    rig_say_fpdu("c140 00000400 00000000 00000000");
    T_EQ_STR(rig_log(), "");
    rig_expect_nothing();
    T_SHOWS("DDP-23") {
        T_EQ_U64(sg_engine_stats(rig->e)->rx_writes, 3); /* with the RTR message */
    }
    rig_stop();
}

static void writes_are_silent_and_exact(void)
{
    uint8_t want[12];

    rig_start(NULL);
    rig_passive();
    memcpy(want, rig->mem + 0xfe, 12);
    rig_say_fpdu("8140 00000100 00000000 00000100 01020304");
    rig_say_fpdu("c140 00000100 00000000 00000104 05060708");
    memcpy(want + 2, "\1\2\3\4\5\6\7\10", 8);
    T_SHOWS("DDP-20") {
        T_EQ_MEM(rig->mem + 0xfe, want, 12);
    }
    T_SHOWS("RDM-14") {
        T_EQ_STR(rig_log(), "");
    }
    rig_stop();
}

/* Reserved bits of both headers, and an STag field that a message does not use, are ignored. */
static void reserved_ignored(void)
{
    rig_start(NULL);
    rig->recvs = 3;
    rig_passive();
    rig_say_fpdu("7d73 deadbeef 00000000 00000001 00000000 61");
    rig_say_fpdu("4145 deadbeef 00000000 00000002 00000000");
    T_SHOWS("DDP-06 RDM-03 RDM-05") {
        T_EQ_STR(rig_log(), "recv(1,1) recv(2,0,se)");
    }
    rig_expect_nothing();
    rig_stop();
}

static void send_in_segments(void)
{
    rig_start(NULL);
    rig->recvs = 2;
    rig_passive();
    rig_say_fpdu("0143 00000000 00000000 00000001 00000000 616263");
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu("c140 00000100 00000000 00000000 61"); /* another message in between */
    rig_say_fpdu("0143 00000000 00000000 00000001 00000003 646566");
    T_SHOWS("DDP-05 RDM-48") {
        T_EQ_STR(rig_log(), "");
    }
    rig_say_fpdu("4143 00000000 00000000 00000001 00000006 67");
    T_SHOWS("DDP-28 DDP-29") {
        T_EQ_STR(rig_log(), "recv(1,7)");
    }
    T_EQ_MEM(rig->recv_buf, "abcdefg", 7);
    rig_say_fpdu("4143 00000000 00000000 00000002 00000000");
    T_SHOWS("DDP-27 RDM-33 RDM-42") {
        T_EQ_STR(rig_log(), "recv(2,0)");
    }
    rig_stop();
}

static void invalidate_before_delivery(void)
{
    rig_start(NULL);
    rig->recvs = 2;
    rig_passive();
    rig_say_fpdu("0144 00000100 00000000 00000001 00000000 61");
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu("4144 00000100 00000000 00000001 00000001 62");
    T_SHOWS("DDP-09 RDM-37") {
        T_EQ_STR(rig_log(), "inv(100) recv(1,2)");
    }
    rig_say_fpdu("4146 00000200 00000000 00000002 00000000");
    T_EQ_STR(rig_log(), "inv(200) recv(2,0,se)");
    rig_stop();
}

/* Length 0: the source is not checked, and the answer has no octets. */
static void zero_length_read(void)
{
    rig_start(NULL);
    rig_passive();
    rig_say_fpdu("4141 00000000 00000001 00000001 00000000 "
                 "0a0b0c0d 01020304 05060708 00000000 00000999 ffffffff ffffffff");
    T_SHOWS("RDM-09 RDM-25 RDM-26") {
        rig_expect_fpdu("c142 0a0b0c0d 01020304 05060708");
    }
    rig_expect_nothing();
    T_SHOWS("RDM-19") {
        T_EQ_STR(rig_log(), "");
    }
    rig_stop();
}

static const struct t_case cases[] = {
    { "RDM-12 every fault has its Terminate", every_fault },
    { "after the first error all is dropped", later_segments_dropped },
    { "a failing segment places nothing", failing_segment_not_placed },
    { "zero-length Write: STag and TO unchecked", zero_length_write_unchecked },
    { "Writes land exactly and silently", writes_are_silent_and_exact },
    { "reserved fields are ignored", reserved_ignored },
    { "a Send in segments", send_in_segments },
    { "invalidation comes before delivery", invalidate_before_delivery },
    { "zero-length Read", zero_length_read },
};

T_MAIN(cases)
