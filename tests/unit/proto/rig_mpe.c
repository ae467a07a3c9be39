/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig's model of verbs for draft-talpey-rdma-commit: the memory behind the STags is its own
 * medium, RIG_STAG_RO lacks all rights of the extension, the hash is CRC32C.
 *
 * Words of the log:
 *   placed                               a Write is complete
 *   mpe(KIND MSN,STAG,TO+LEN,FLAGS)   an inbound request is asked about; KIND: F, V or A
 *   later(N)                             ... and put off, the Nth time
 *   answered(KIND MSN)                   its response was sent
 *   mpe_done(KIND[,HASH])             a request of ours is answered
 */
#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

static char letter(enum sg_msg_kind kind)
{
    T_TRUE(kind == SG_MSG_FLUSH || kind == SG_MSG_VERIFY || kind == SG_MSG_ATOMIC_WRITE);
    return kind == SG_MSG_FLUSH ? 'F' : kind == SG_MSG_VERIFY ? 'V' : 'A';
}

static enum sg_exec_result verify(const struct sg_mpe_req *r, uint8_t *hash,
                                    uint8_t *hash_len)
{
    uint8_t crc[4];

    sg_put_le32(crc, sg_crc32c(0, rig->mem + r->to, r->length));
    if (r->args.hash.len &&
        (r->args.hash.len != 4 || memcmp(r->args.hash.octets, crc, 4) != 0)) {
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
    bool region = r->kind == SG_MSG_FLUSH && r->args.flags & SG_FLUSH_REGION;

    T_TRUE(user == rig);
    rig_note("mpe(%c%u,%x,%" PRIx64 "+%u,%x)", letter(r->kind), r->msn, r->stag, r->to,
             r->length, r->kind == SG_MSG_FLUSH ? r->args.flags : 0);
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
    if (r->stag == RIG_STAG_BROKEN) {
        *why = SG_MEM_FAULT;
        return SG_EXEC_MEM;
    }
    *why = rig_check(r->stag, region ? 0 : r->to, region ? 0 : r->length, RIG_STAG_RO);
    if (*why != SG_MEM_OK) {
        return SG_EXEC_MEM;
    }
    if (rig->exec_fails) {
        return SG_EXEC_FAILED;
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

void rig_up_mpe_answered(void *user, const struct sg_mpe_req *r)
{
    T_TRUE(user == rig);
    rig_note("answered(%c%u)", letter(r->kind), r->msn);
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

/* Tests of the base protocol know nothing of this word. */
void rig_up_write_placed(void *user)
{
    T_TRUE(user == rig);
    if (rig->config.mpe_draft) {
        rig_note("placed");
    }
}
