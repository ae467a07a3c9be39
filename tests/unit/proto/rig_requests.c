/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig's model of verbs for the requests that are executed: those of draft-talpey-rdma-commit
 * and of RFC 7306.  The memory behind the STags is its own medium, RIG_STAG_RO lacks all of their
 * rights, the hash is CRC32C.
 *
 * Words of the log:
 *   placed                               a Write is complete
 *   mpe(KIND MSN,STAG,TO+LEN,FLAGS)      verbs get an inbound request; KIND: F, V or A
 *   atomic(KIND MSN,STAG,TO)             the same of an Atomic; KIND: + or =
 *   later(N)                             ... which is put off, the Nth time
 *   answered(KIND MSN)                   its response was sent
 *   mpe_done(KIND[,HASH])                a request of ours is answered
 *   atomic_done(KIND,ORIGINAL)           the same of an Atomic
 *   imm(MSN,OCTETS,LENGTH[,se])          Immediate Data, and the length of the Write before it
 */
#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

static char letter(enum sg_msg_kind kind)
{
    T_TRUE(kind == SG_MSG_FLUSH || kind == SG_MSG_VERIFY || kind == SG_MSG_ATOMIC_WRITE);
    return kind == SG_MSG_FLUSH ? 'F' : kind == SG_MSG_VERIFY ? 'V' : 'A';
}

static char sign(enum sg_msg_kind kind)
{
    T_TRUE(kind == SG_MSG_FETCH_ADD || kind == SG_MSG_CMP_SWAP);
    return kind == SG_MSG_FETCH_ADD ? '+' : '=';
}

/* The checks that all requests share; DONE: it may be executed. */
static enum sg_exec_result admit(uint32_t stag, uint64_t to, uint64_t len, enum sg_mem_status *why,
                                 uint64_t *token, uint64_t *again_ns)
{
    if (!rig->c) {
        return SG_EXEC_FAILED; /* rig_note() has aborted it */
    }
    if (rig->exec_later) {
        T_EQ_U64(*again_ns, SG_NEVER);
        (*token)++;
        rig->exec_later--;
        *again_ns = rig->now_ns + 1000000;
        rig_note("later(%u)", (unsigned)*token);
        return SG_EXEC_LATER;
    }
    if (stag == RIG_STAG_BROKEN) {
        *why = SG_MEM_FAULT;
        return SG_EXEC_MEM;
    }
    *why = rig_check(stag, to, len, RIG_STAG_RO);
    return *why == SG_MEM_OK ? SG_EXEC_DONE : SG_EXEC_MEM;
}

static enum sg_exec_result verify(const struct sg_mpe_req *r, uint8_t *hash, uint8_t *hash_len)
{
    uint8_t crc[4];

    sg_put_le32(crc, sg_crc32c(0, rig->mem + r->to, r->length));
    if (r->args.hash.len && (r->args.hash.len != 4 || memcmp(r->args.hash.octets, crc, 4) != 0)) {
        return SG_EXEC_FAILED;
    }
    memcpy(hash, crc, 4);
    *hash_len = 4;
    return SG_EXEC_DONE;
}

enum sg_exec_result rig_up_mpe(void *user, const struct sg_mpe_req *r, uint8_t hash[64],
                               uint8_t *hash_len, enum sg_mem_status *why, uint64_t *token,
                               uint64_t *again_ns)
{
    uint32_t flags = r->kind == SG_MSG_FLUSH ? r->args.flags : 0;
    bool region = flags & SG_FLUSH_REGION;
    enum sg_exec_result result;

    T_TRUE(user == rig);
    rig_note("mpe(%c%u,%x,%" PRIx64 "+%u,%x)", letter(r->kind), r->msn, r->stag, r->to, r->length,
             flags);
    result = admit(r->stag, region ? 0 : r->to, region ? 0 : r->length, why, token, again_ns);
    if (result != SG_EXEC_DONE || rig->exec_fails) {
        return result != SG_EXEC_DONE ? result : SG_EXEC_FAILED;
    }
    if (r->kind == SG_MSG_VERIFY) {
        return verify(r, hash, hash_len);
    }
    if (r->kind == SG_MSG_ATOMIC_WRITE) {
        if (r->to % 8) {
            return SG_EXEC_UNALIGNED;
        }
        memcpy(rig->mem + r->to, r->args.atom, 8);
    }
    return SG_EXEC_DONE;
}

/* Tests of Atomics do not expect this word. */
void rig_up_answered(void *user, const struct sg_answer *r)
{
    T_TRUE(user == rig);
    if (r->kind != SG_MSG_FETCH_ADD && r->kind != SG_MSG_CMP_SWAP) {
        rig_note("answered(%c%u)", letter(r->kind), r->msn);
    }
}

void rig_up_mpe_done(void *user, enum sg_msg_kind kind, const uint8_t *hash, size_t len)
{
    char text[132] = "";
    size_t i, at = 0;

    T_TRUE(user == rig && len <= 64);
    rig->outstanding--;
    for (i = 0; i < len; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, i ? "%02x" : ",%02x", hash[i]);
    }
    rig_note("mpe_done(%c%s)", letter(kind), text);
}

/* Tests of the base protocol do not expect this word. */
void rig_up_write_placed(void *user)
{
    T_TRUE(user == rig);
    if (rig->config.mpe_draft || rig->config.wire) {
        rig_note("placed");
    }
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

enum sg_exec_result rig_up_atomic(void *user, const struct sg_atomic_call *r, uint64_t *original,
                                  enum sg_mem_status *why, uint64_t *token, uint64_t *again_ns)
{
    enum sg_exec_result admitted;

    T_TRUE(user == rig);
    rig_note("atomic(%c%u,%x,%" PRIx64 ")", sign(r->kind), r->msn, r->stag, r->to);
    admitted = admit(r->stag, r->to, 8, why, token, again_ns);
    if (admitted != SG_EXEC_DONE) {
        return admitted;
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
    rig_answered();
    rig_note("atomic_done(%c,%" PRIx64 ")", sign(kind), original);
}

void rig_note_imm(const struct sg_recv_info *info)
{
    T_EQ_U64(info->length, 0);
    rig_note("imm(%u,%016" PRIx64 ",%u%s)", info->msn, sg_get_be64(info->imm), info->write_len,
             info->solicited ? ",se" : "");
}
