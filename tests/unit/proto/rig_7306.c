/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig's model of verbs for RFC 7306.  RIG_STAG_RO has no right to atomics.
 *
 * Words of the log:
 *   atomic(KIND MSN,STAG,TO)        an inbound request is asked about; KIND: + or =
 *   later(N)                        ... and put off, the Nth time
 *   atomic_done(KIND,ORIGINAL)      a request of ours is answered
 *   imm(MSN,OCTETS,LENGTH[,se])     Immediate Data, and the length of the Write before it
 */
#include "tap.h"
#include "rig.h"

static char sign(enum sg_msg_kind kind)
{
    T_TRUE(kind == SG_MSG_FETCH_ADD || kind == SG_MSG_CMP_SWAP);
    return kind == SG_MSG_FETCH_ADD ? '+' : '=';
}

/* Bit by bit, as the RFC's text has it. */
static uint64_t result(const struct sg_atomic_call *r, uint64_t value)
{
    uint64_t out = 0;
    unsigned bit, carry = 0;

    if (r->kind == SG_MSG_CMP_SWAP) {
        for (bit = 0; bit < 64; bit++) {
            uint64_t b = 1ull << bit;

            if (r->args.cmp_mask & b && (r->args.cmp & b) != (value & b)) {
                return value;
            }
            out |= (r->args.mask & b ? r->args.data : value) & b;
        }
        return out;
    }
    for (bit = 0; bit < 64; bit++) {
        unsigned sum = (value >> bit & 1) + (r->args.data >> bit & 1) + carry;

        out |= (uint64_t)(sum & 1) << bit;
        carry = r->args.mask >> bit & 1 ? 0 : sum >> 1;
    }
    return out;
}

enum sg_exec_result rig_up_atomic(void *user, const struct sg_atomic_call *r,
                                    uint64_t *original, enum sg_mem_status *why, uint64_t *token,
                                    uint64_t *again_ns)
{
    T_TRUE(user == rig);
    rig_note("atomic(%c%u,%x,%" PRIx64 ")", sign(r->kind), r->msn, r->stag, r->to);
    if (!rig->c) {
        return SG_EXEC_FAILED; /* rig_note() has aborted it */
    }
    if (rig->exec_later) {
        (*token)++;
        rig->exec_later--;
        *again_ns = rig->now_ns + 1000000;
        rig_note("later(%u)", (unsigned)*token);
        return SG_EXEC_LATER;
    }
    if (r->stag == RIG_STAG_BROKEN) {
        *why = SG_MEM_FAULT;
        return SG_EXEC_MEM;
    }
    *why = rig_check(r->stag, r->to, 8, RIG_STAG_RO);
    if (*why != SG_MEM_OK) {
        return SG_EXEC_MEM;
    }
    if (r->to % 8) {
        return SG_EXEC_UNALIGNED;
    }
    if (rig->exec_fails) {
        return SG_EXEC_FAILED;
    }
    *original = sg_get_le64(rig->mem + r->to);
    sg_put_le64(rig->mem + r->to, result(r, *original));
    return SG_EXEC_DONE;
}

void rig_up_atomic_done(void *user, enum sg_msg_kind kind, uint64_t original)
{
    T_TRUE(user == rig);
    rig->outstanding--;
    rig_note("atomic_done(%c,%" PRIx64 ")", sign(kind), original);
}

void rig_note_imm(const struct sg_recv_info *info)
{
    T_EQ_U64(info->length, 0);
    rig_note("imm(%u,%016" PRIx64 ",%u%s)", info->msn, sg_get_be64(info->imm), info->write_len,
             info->solicited ? ",se" : "");
}
