/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writer's requests: a transaction appends a record to the log in the peer's NVDIMM, in one to
 * three Writes, and asks for the proof that it relies on (enum pw_habit).  All requests of a
 * transaction are posted at once, and up to 'depth' transactions are outstanding.
 *
 * The log is a ring.  A record never overlaps an outstanding one, so a Verify sees no later Write.
 * The number of a request determines its data, so that everybody can compute them.
 */
#include "base/hash.h"
#include "power.h"

enum { STRIDE = 256, ATOM = SG_PERSIST_ATOM };

static const uint8_t hash_key[20] = { 11, 22, 33 };

uint8_t pw_octet(const struct pw_flow *f, uint64_t seq, uint32_t i)
{
    uint64_t z = seq * 0x9e3779b97f4a7c15u + (i / 8 + 1) * 0xbf58476d1ce4e5b9u + f->index;

    z = (z ^ (z >> 29)) * 0x94d049bb133111ebu;
    return (uint8_t)((z ^ (z >> 31)) >> (i % 8 * 8));
}

struct sg_wqe_hdr *pw_post_entry(struct pw_flow *f, uint8_t opcode, uint32_t off, uint32_t len)
{
    struct pw_op *op = &f->op[f->posted % PW_OPS];
    struct sg_wqe_hdr *h = md_sq_entry(&f->a.qp);

    *op = (struct pw_op){
        .opcode = opcode,
        .seq = ++f->seq,
        .off = off,
        .len = len,
        .tx = f->tx_next,
    };
    sg_put_le64(&h->wr_id, f->posted++);
    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->remote_addr, f->to->pm + f->area + off);
    sg_put_le32(&h->rkey, f->rkey);
    return h;
}

static void put_sge(const struct pw_end *e, struct sg_wqe_hdr *h, void *at, uint64_t buf,
                    uint32_t len)
{
    struct sg_sge *sge = at;

    h->num_sge = 1;
    sg_put_le64(&sge->addr, e->buf + buf);
    sg_put_le32(&sge->length, len);
    sg_put_le32(&sge->lkey, e->stag);
}

/* Notes that the target must place these octets. */
static void expect(struct pw_flow *f, uint32_t off, uint32_t len, bool atom)
{
    struct pw_waits *q = &f->waits[atom];

    sg_assert(q->tail - q->head < SG_ARRAY_SIZE(q->wait));
    q->wait[q->tail++ % SG_ARRAY_SIZE(q->wait)] = (struct pw_wait){
        .seq = f->seq,
        .off = off,
        .len = len,
    };
}

static void post_write(struct pw_flow *f, uint32_t buf, uint32_t off, uint32_t len)
{
    struct sg_wqe_hdr *h = pw_post_entry(f, SG_WR_WRITE, off, len);
    uint8_t *p = pw_ptr(f->from, f->a.buf + buf);
    uint32_t i;

    for (i = 0; i < len; i++) {
        p[i] = pw_octet(f, f->seq, i);
    }
    memcpy(f->mirror + off, p, len);
    put_sge(&f->a, h, h + 1, buf, len);
    expect(f, off, len, false);
}

static void post_flush(struct pw_flow *f, uint32_t off, uint32_t len, uint32_t flags)
{
    bool region = flags & SG_FLUSH_REGION;
    struct sg_wqe_hdr *h = region ? pw_post_entry(f, SG_WR_FLUSH, 0, PW_AREA)
                                  : pw_post_entry(f, SG_WR_FLUSH, off, len);
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);

    sg_put_le32(&place->length, region ? pw_below(f->w, PW_REGION_LEN) : len);
    sg_put_le32(&place->flags, flags);
}

static void post_verify(struct pw_flow *f, uint32_t off, uint32_t len)
{
    struct sg_wqe_hdr *h = pw_post_entry(f, SG_WR_VERIFY, off, len);
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);
    struct sg_hasher hasher;

    sg_put_le32(&place->length, len);
    sg_hasher_init(&hasher, f->hash_alg, hash_key, sizeof(hash_key));
    sg_hasher_add(&hasher, f->mirror + off, len);
    place->hash_len = (uint8_t)sg_hasher_end(&hasher, (uint8_t *)(place + 1));
}

/* Writes the pointer to the last record, its transaction's number: as an atom, or swapped in. */
static void post_atomic(struct pw_flow *f)
{
    bool swap = pw_chance(f->w, 25);
    struct sg_wqe_hdr *h = pw_post_entry(f, swap ? SG_WR_CMP_SWAP : SG_WR_ATOMIC_WRITE, 0, ATOM);
    struct sg_wqe_atomic *atomic = (struct sg_wqe_atomic *)(h + 1);

    if (swap) { /* whatever the old value is */
        sg_put_le64(&atomic->data, f->tx_next);
        sg_put_le64(&atomic->data_mask, UINT64_MAX);
        put_sge(&f->a, h, atomic + 1, PW_SINK_AT, ATOM);
    } else {
        h->flags |= SG_WQE_INLINE;
        sg_put_le16(&h->inline_len, ATOM);
        sg_put_le64(h + 1, f->tx_next);
    }
    sg_put_le64(f->mirror, f->tx_next);
    expect(f, 0, ATOM, true);
}

static void post_read(struct pw_flow *f)
{
    uint32_t len = 1 + pw_below(f->w, 64);
    struct sg_wqe_hdr *h = pw_post_entry(f, SG_WR_READ, pw_below(f->w, PW_AREA - len), len);

    put_sge(&f->a, h, h + 1, PW_SINK_AT, len);
}

/* Tells the peer's program the place of the record; it answers. */
static void post_send(struct pw_flow *f, uint32_t off, uint32_t len)
{
    uint32_t buf = PW_SEND_AT + PW_MESSAGE * (f->tx_next % PW_RECVS);
    struct sg_wqe_hdr *h = pw_post_entry(f, SG_WR_SEND, off, len);
    uint8_t *p = pw_ptr(f->from, f->a.buf + buf);

    sg_put_le64(p, f->tx_next);
    sg_put_le32(p + 8, off);
    sg_put_le32(p + 12, len);
    sg_put_le64(&h->remote_addr, 0);
    sg_put_le32(&h->rkey, 0);
    put_sge(&f->a, h, h + 1, buf, PW_MESSAGE);
}

void pw_post_recv(struct pw_end *e, unsigned slot)
{
    struct sg_rqe_hdr *h = md_rq_entry(&e->qp);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    sg_put_le64(&h->wr_id, slot);
    h->num_sge = 1;
    sg_put_le64(&sge->addr, e->buf + PW_RECV_AT + slot * PW_MESSAGE);
    sg_put_le32(&sge->length, PW_MESSAGE);
    sg_put_le32(&sge->lkey, e->stag);
}

/* ---- transactions ---- */

static uint32_t random_length(struct pw_world *w)
{
    switch (pw_below(w, 8)) {
    case 0:
        return 1 + pw_below(w, PW_RECORD);
    case 1:
        return ATOM * (1 + pw_below(w, 40));
    case 2:
        return SG_PERSIST_LINE * (1 + pw_below(w, 8));
    default:
        return 1 + pw_below(w, 200);
    }
}

/* Chooses a place for a record. */
static uint32_t random_place(struct pw_flow *f, uint32_t len)
{
    uint32_t off = f->ring + pw_below(f->w, 9);

    if (pw_chance(f->w, 40)) {
        off = (uint32_t)sg_align_up(off, pw_chance(f->w, 50) ? ATOM : SG_PERSIST_LINE);
    }
    if (off + len > PW_AREA) {
        off = PW_TAIL;
    }
    f->ring = off + len;
    return off;
}

static void post_data(struct pw_flow *f, uint32_t off, uint32_t len)
{
    unsigned pieces = 1 + pw_below(f->w, 3);
    uint32_t buf = (f->tx_next % (PW_DEPTH + 1)) * PW_RECORD, at = 0;

    while (at < len) {
        uint32_t n = pieces > 1 ? 1 + pw_below(f->w, len - at) : len - at;

        pieces--;
        post_write(f, buf + at, off + at, n);
        at += n;
    }
}

static uint32_t persistent_flags(struct pw_world *w)
{
    return SG_FLUSH_PERSISTENT | (pw_chance(w, 30) ? SG_FLUSH_GLOBAL : 0) |
           (w->engine.mpe_draft == SG_MPE_DRAFT_02 && pw_chance(w, 5) ? SG_FLUSH_REGION : 0);
}

static void post_proof(struct pw_flow *f, uint32_t off, uint32_t len)
{
    struct pw_world *w = f->w;

    switch (f->habit) {
    case PW_FLUSH:
        post_flush(f, off, len, persistent_flags(w));
        post_verify(f, off, len);
        post_atomic(f);
        post_flush(f, 0, ATOM, SG_FLUSH_PERSISTENT);
        break;
    case PW_FLUSH_ONLY:
        post_flush(f, off, len, persistent_flags(w));
        break;
    case PW_VERIFY:
        post_verify(f, off, len);
        post_atomic(f);
        break;
    case PW_GLOBAL:
        post_flush(f, off, len, SG_FLUSH_GLOBAL);
        break;
    case PW_READ:
        post_read(f);
        break;
    case PW_SEND:
    case PW_SEND_CPU:
        post_send(f, off, len);
        break;
    case PW_ATOMIC:
        post_atomic(f);
        break;
    default:
        break;
    }
}

void pw_flow_post(struct pw_flow *f)
{
    uint32_t len = random_length(f->w), off;
    struct pw_tx *tx = &f->tx[f->tx_next % PW_TXS];
    uint64_t before = f->seq;

    if (f->state != PW_UP || f->tx_next - f->tx_done > f->depth ||
        (f->tx_limit && f->tx_next - f->tx_first >= f->tx_limit) ||
        f->waits[0].tail - f->waits[0].head > PW_OPS) {
        return;
    }
    off = random_place(f, len);
    post_data(f, off, len);
    *tx = (struct pw_tx){ .number = f->tx_next, .off = off, .len = len, .data_seq = f->seq + 1 };
    post_proof(f, off, len);
    sg_assert(f->seq > before);
    f->op[(f->posted - 1) % PW_OPS].last = f->habit != PW_SEND && f->habit != PW_SEND_CPU;
    f->tx_next++;
    md_sq_doorbell(&f->a.qp);
}
