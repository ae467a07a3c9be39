/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-driver/provider: Flush, Verify, Atomic Write (wr.c, post.c, dv.c), between the models of
 * kernel and device in model.h.
 */
#include "model.h"

#include "ops.h"
#include "staghorndv.h"

enum { RKEY = 0x1234, TO = 0x7000 };

#ifdef SGP_HAVE_FLUSH
enum { WITH_FLUSH = IBV_QP_EX_WITH_FLUSH, FLUSH_REFUSED = 0, FLUSH_CAPS = ~0 };
#else
enum { WITH_FLUSH = 0, FLUSH_REFUSED = EOPNOTSUPP };
enum { FLUSH_CAPS = ~(SGDV_CAP_FLUSH_GLOBAL | SGDV_CAP_FLUSH_PERSISTENT | SGDV_CAP_FLUSH_MR) };
#endif

static const uint64_t all_ops =
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;

/* A queue pair that can do everything, with room for Verifies of this many hash octets. */
static struct sgp_qp *make_place_qp(uint32_t features, uint32_t hash_len)
{
    struct ibv_qp_init_attr_ex attr = qp_attr(16, 1, SGDV_VERIFY_INLINE(hash_len));
    struct ibv_qp *qp;

    w.ctx->features = features;
    attr.send_ops_flags = all_ops;
    if (!(features & SG_FEATURE_FLUSH)) {
        attr.send_ops_flags &= ~(uint64_t)IBV_QP_EX_WITH_FLUSH;
    }
    if (!(features & SG_FEATURE_ATOMIC_WRITE)) {
        attr.send_ops_flags &= ~(uint64_t)IBV_QP_EX_WITH_ATOMIC_WRITE;
    }
    qp = sgp_create_qp_ex(w.spd.ibpd.context, &attr);
    T_NOT_NULL(qp);
    return to_sgp_qp(qp);
}

static void finish(struct sgp_qp *qp)
{
    T_EQ_INT(sgp_destroy_qp(&qp->vqp.qp), 0);
    world_fini();
}

/* ---- what the device offers ---- */

static void create__follows_the_features(void)
{
    static const struct {
        uint32_t features;
        uint64_t op;
        int err;
    } rows[] = {
        { 0, IBV_QP_EX_WITH_FLUSH, EOPNOTSUPP },
        { 0, IBV_QP_EX_WITH_ATOMIC_WRITE, EOPNOTSUPP },
        { SG_FEATURE_FLUSH, IBV_QP_EX_WITH_FLUSH, FLUSH_REFUSED },
        { SG_FEATURE_FLUSH, IBV_QP_EX_WITH_ATOMIC_WRITE, EOPNOTSUPP },
        { SG_FEATURE_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE, 0 },
        { SG_FEATURE_ATOMIC_WRITE, IBV_QP_EX_WITH_FLUSH, EOPNOTSUPP },
        { ALL_FEATURES, IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE, FLUSH_REFUSED },
        { ALL_FEATURES, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP },
    };

    world_init();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp_init_attr_ex attr = qp_attr(4, 1, 0);
        struct ibv_qp *qp;

        T_CONTEXT("row %zu", i);
        w.ctx->features = rows[i].features;
        attr.send_ops_flags = rows[i].op;
        errno = 0;
        qp = sgp_create_qp_ex(w.spd.ibpd.context, &attr);
        T_EQ_INT(qp ? 0 : errno, rows[i].err);
        if (qp) {
#ifdef SGP_HAVE_FLUSH
            T_EQ_INT(!to_sgp_qp(qp)->vqp.qp_ex.wr_flush, !(rows[i].op & IBV_QP_EX_WITH_FLUSH));
#endif
            sgp_destroy_qp(qp);
        }
    }
    world_fini();
}

static void query__device(void)
{
    static const struct {
        uint32_t features, hash_mask, caps, draft, hashes, key;
    } rows[] = {
        { 0, 0x1e, 0, 0, 0, 0 },
        { SG_FEATURE_FLUSH, 0, SGDV_CAP_FLUSH_GLOBAL, 1, 0, 0 },
        { SG_FEATURE_FLUSH_PERSISTENT, 0, 0, 0, 0, 0 },
        { SG_FEATURE_VERIFY, 0x0e, SGDV_CAP_VERIFY, 0, 0x0e, 0 },
        { ALL_FEATURES, 0x1e,
          SGDV_CAP_FLUSH_GLOBAL | SGDV_CAP_FLUSH_PERSISTENT | SGDV_CAP_FLUSH_MR |
              SGDV_CAP_ATOMIC_WRITE | SGDV_CAP_VERIFY,
          2, 0x1e, 64 },
    };
    struct {
        struct sgdv_device_attr attr;
        uint64_t behind;
    } big;

    world_init();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        w.ctx->features = rows[i].features;
        w.ctx->hash_mask = rows[i].hash_mask;
        memset(&big, 0xee, sizeof(big));
        T_EQ_INT(sgdv_query_device(w.spd.ibpd.context, &big.attr, sizeof(big)), 0);
        T_EQ_U64(big.attr.comp_mask, 0);
        T_EQ_U64(big.attr.caps, rows[i].caps & FLUSH_CAPS);
        T_EQ_U64(big.attr.draft, rows[i].draft);
        T_EQ_U64(big.attr.hash_mask, rows[i].hashes);
        T_EQ_U64(big.attr.max_hash_key, rows[i].key);
        T_EQ_U64(big.behind, 0); /* a field of a later library is 0 */
    }
    /* An older caller gets only the fields that it knows. */
    memset(&big, 0xee, sizeof(big));
    T_EQ_INT(sgdv_query_device(w.spd.ibpd.context, &big.attr,
                               offsetof(struct sgdv_device_attr, max_hash_key)),
             0);
    T_EQ_U64(big.attr.draft, 2);
    T_EQ_U64(big.attr.max_hash_key, 0xeeeeeeee);
    T_EQ_INT(sgdv_query_device(w.spd.ibpd.context, &big.attr, 8), EINVAL);
    strcpy(w.device.name, FOREIGN);
    T_EQ_INT(sgdv_query_device(w.spd.ibpd.context, &big.attr, sizeof(big.attr)), EOPNOTSUPP);
    world_fini();
}

/* ---- Flush ---- */

static void flush__of_windows(void)
{
    struct ibv_mr mr = { .pd = &w.spd.ibpd, .lkey = 0x200 };
    struct ibv_mw mw = { .pd = &w.spd.ibpd, .type = IBV_MW_TYPE_2 };
    struct ibv_mw_bind_info info = { &mr, TO, 8, IBV_ACCESS_FLUSH_GLOBAL };
    struct sgp_qp *qp;

    world_init();
    qp = make_place_qp(ALL_FEATURES, 0);
    T_EQ_INT(sgp_set_bind(sqe(qp, 0), &mw, RKEY, &info), FLUSH_REFUSED ? EINVAL : 0);
    info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
    T_EQ_INT(sgp_set_bind(sqe(qp, 0), &mw, RKEY, &info), 0);
    finish(qp);
}

#ifdef SGP_HAVE_FLUSH
static void flush__types_and_levels(void)
{
    static const struct {
        uint8_t type, level;
        size_t len;
        uint32_t flags, length;
    } rows[] = {
        { IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 4096, SG_FLUSH_GLOBAL, 4096 },
        { IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, 1, SG_FLUSH_PERSISTENT, 1 },
        { IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, UINT32_MAX,
          SG_FLUSH_GLOBAL | SG_FLUSH_PERSISTENT, UINT32_MAX },
        { IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 0, SG_FLUSH_GLOBAL, 0 },
        /* For a whole region address and length are ignored. */
        { IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR, SIZE_MAX, SG_FLUSH_PERSISTENT | SG_FLUSH_REGION, 0 },
        { IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, 17, SG_FLUSH_GLOBAL | SG_FLUSH_REGION, 0 },
    };
    struct sgp_qp *qp;
    struct ibv_qp_ex *ex;

    world_init();
    qp = make_place_qp(ALL_FEATURES, 0);
    ex = &qp->vqp.qp_ex;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool whole = rows[i].level == IBV_FLUSH_MR;
        struct sg_wqe_place *place;

        T_CONTEXT("row %u", i);
        ibv_wr_start(ex);
        ex->wr_id = 100 + i;
        ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_SOLICITED;
        ibv_wr_flush(ex, RKEY, TO, rows[i].len, rows[i].type, rows[i].level);
        T_EQ_INT(ibv_wr_complete(ex), 0);
        T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, i + 1));
        T_EQ_U64(sqe(qp, i)->opcode, SG_WR_FLUSH);
        T_EQ_U64(sqe(qp, i)->flags, SG_WQE_SIGNALED | SG_WQE_FENCE);
        T_EQ_U64(sqe(qp, i)->num_sge, 0);
        T_EQ_U64(le64toh(sqe(qp, i)->wr_id), 100 + i);
        T_EQ_U64(le32toh(sqe(qp, i)->rkey), RKEY);
        T_EQ_U64(le64toh(sqe(qp, i)->remote_addr), whole ? 0 : TO);
        place = sg_wqe_place(sqe(qp, i));
        T_EQ_U64(le32toh(place->flags), rows[i].flags);
        T_EQ_U64(le32toh(place->length), rows[i].length);
        T_EQ_U64(place->hash_len, 0);
    }
    finish(qp);
}

static void flush__bad_arguments(void)
{
    static const struct {
        uint32_t features;
        uint8_t type, level;
        size_t len;
        int err;
    } rows[] = {
        { ALL_FEATURES, 0, IBV_FLUSH_RANGE, 8, EINVAL },
        { ALL_FEATURES, 4, IBV_FLUSH_RANGE, 8, EINVAL },
        { ALL_FEATURES, IBV_FLUSH_GLOBAL | 0x80, IBV_FLUSH_RANGE, 8, EINVAL },
        { ALL_FEATURES, 0, IBV_FLUSH_MR, 0, EINVAL },
        { ALL_FEATURES, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR + 1, 8, EINVAL },
        { ALL_FEATURES, IBV_FLUSH_GLOBAL, 0xff, 8, EINVAL },
        { ALL_FEATURES, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, (size_t)UINT32_MAX + 1, EINVAL },
        { ALL_FEATURES, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, SIZE_MAX, EINVAL },
        /* Draft -01 has no flush of a region. */
        { ALL_FEATURES & ~SG_FEATURE_FLUSH_REGION, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, 0, EOPNOTSUPP },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp_ex *ex;
        struct sgp_qp *qp;

        T_CONTEXT("row %zu", i);
        world_init();
        qp = make_place_qp(rows[i].features, 0);
        ex = &qp->vqp.qp_ex;
        ex->wr_flags = 0;
        ibv_wr_start(ex);
        ibv_wr_flush(ex, RKEY, TO, rows[i].len, rows[i].type, rows[i].level);
        ibv_wr_flush(ex, RKEY, TO, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE); /* skipped */
        T_EQ_INT(ibv_wr_complete(ex), rows[i].err);
        T_EQ_U64(db(SG_DB_SQ), 0);
        finish(qp);
    }
}

#endif

/* ---- Atomic Write ---- */

static void atomic__copies_the_atom(void)
{
    uint8_t atom[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct ibv_qp_ex *ex;
    struct sgp_qp *qp;

    world_init();
    qp = make_place_qp(ALL_FEATURES, 0);
    ex = &qp->vqp.qp_ex;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_start(ex);
    ibv_wr_atomic_write(ex, RKEY, TO, atom);
    memset(atom, 0, sizeof(atom));
    /* The peer checks the alignment of its memory, which an offset does not show. */
    ibv_wr_atomic_write(ex, RKEY, TO + 3, atom);
    T_EQ_INT(ibv_wr_complete(ex), 0);
    T_EQ_U64(sqe(qp, 0)->opcode, SG_WR_ATOMIC_WRITE);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_SIGNALED | SG_WQE_INLINE);
    T_EQ_U64(le16toh(sqe(qp, 0)->inline_len), 8);
    T_EQ_U64(le64toh(sqe(qp, 0)->remote_addr), TO);
    T_EQ_U64(le32toh(sqe(qp, 0)->rkey), RKEY);
    T_EQ_MEM(sqe(qp, 0) + 1, "\1\2\3\4\5\6\7\10", 8);
    T_EQ_U64(le64toh(sqe(qp, 1)->remote_addr), TO + 3);
    finish(qp);
}

static void atomic__by_ibv_post_send(void)
{
    static uint64_t atom = 0x1122334455667788;
    static const struct {
        uint32_t features;
        uint32_t length;
        int num_sge;
        unsigned int flags;
        int err;
    } rows[] = {
        { ALL_FEATURES, 8, 1, IBV_SEND_INLINE, 0 },
        { ALL_FEATURES, 8, 1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, 0 },
        { ALL_FEATURES, 7, 1, 0, EINVAL },
        { ALL_FEATURES, 9, 1, 0, EINVAL },
        { ALL_FEATURES, 0, 1, IBV_SEND_INLINE, EINVAL },
        { ALL_FEATURES, 16, 1, IBV_SEND_INLINE, EINVAL },
        { ALL_FEATURES, 8, 0, IBV_SEND_INLINE, EINVAL },
        { ALL_FEATURES, 8, 0, 0, EINVAL },
        { ALL_FEATURES, 4, 2, 0, EINVAL },
        { ALL_FEATURES, 8, -1, 0, EINVAL },
        { ALL_FEATURES & ~SG_FEATURE_ATOMIC_WRITE, 8, 1, 0, EOPNOTSUPP },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_sge sge[2] = {
            { (uintptr_t)&atom, rows[i].length, 5 },
            { (uintptr_t)&atom, rows[i].length, 5 },
        };
        struct ibv_send_wr wr = {
            .opcode = IBV_WR_ATOMIC_WRITE,
            .sg_list = rows[i].num_sge ? sge : NULL,
            .num_sge = rows[i].num_sge,
            .send_flags = rows[i].flags,
            .wr.rdma = { .remote_addr = TO, .rkey = RKEY },
        };
        struct ibv_send_wr *bad;
        struct sgp_qp *qp;

        T_CONTEXT("row %zu", i);
        world_init();
        qp = make_place_qp(rows[i].features, 0);
        T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), rows[i].err);
        T_EQ_U64(db(SG_DB_SQ), rows[i].err ? 0 : db_of(qp->qpn, 1));
        if (!rows[i].err) {
            T_EQ_U64(sqe(qp, 0)->opcode, SG_WR_ATOMIC_WRITE);
            T_EQ_U64(le64toh(sqe(qp, 0)->remote_addr), TO);
            T_EQ_U64(sqe(qp, 0)->flags & SG_WQE_SOLICITED, 0);
        }
        if (!rows[i].err && rows[i].flags & IBV_SEND_INLINE) {
            T_EQ_MEM(sqe(qp, 0) + 1, &atom, 8);
        } else if (!rows[i].err) {
            T_EQ_U64(le32toh(sg_wqe_sge(sqe(qp, 0))->length), 8);
            T_EQ_U64(sqe(qp, 0)->num_sge, 1);
        }
        finish(qp);
    }
}

static void flush__not_by_ibv_post_send(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_FLUSH }, *bad = NULL;
    struct sgp_qp *qp;

    world_init();
    qp = make_place_qp(ALL_FEATURES, 0);
    T_EQ_INT(sgp_post_send(&qp->vqp.qp, &wr, &bad), EOPNOTSUPP);
    T_TRUE(bad == &wr);
    finish(qp);
}

/* ---- Verify ---- */

static void verify__with_sink_and_hash(void)
{
    static const uint8_t hash[SGDV_HASH_MAX] = { 0xaa, 0xbb, [63] = 0xcc };
    struct sgdv_verify v = {
        .remote_addr = TO,
        .rkey = RKEY,
        .length = 0x10000,
        .expected = hash,
        .expected_len = sizeof(hash),
        .sink_addr = 0x9000,
        .sink_lkey = 77,
        .sink_len = 64,
    };
    struct sg_wqe_place *place;
    struct ibv_qp_ex *ex;
    struct sgp_qp *qp;

    world_init();
    qp = make_place_qp(ALL_FEATURES, sizeof(hash));
    ex = &qp->vqp.qp_ex;
    ex->wr_id = 9;
    ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    ibv_wr_start(ex);
    sgdv_wr_verify(ex, &v);
    ibv_wr_set_sge(ex, 1, 2, 3); /* no request to set it in */
    v.expected_len = 0;
    v.sink_len = 0;
    sgdv_wr_verify(ex, &v);
    T_EQ_INT(ibv_wr_complete(ex), 0);
    T_EQ_U64(db(SG_DB_SQ), db_of(qp->qpn, 2));
    T_EQ_U64(sqe(qp, 0)->opcode, SG_WR_VERIFY);
    T_EQ_U64(sqe(qp, 0)->flags, SG_WQE_SIGNALED | SG_WQE_FENCE);
    T_EQ_U64(sqe(qp, 0)->num_sge, 1);
    T_EQ_U64(le64toh(sqe(qp, 0)->remote_addr), TO);
    place = sg_wqe_place(sqe(qp, 0));
    T_EQ_U64(le32toh(place->length), 0x10000);
    T_EQ_U64(place->flags, 0);
    T_EQ_U64(place->hash_len, 64);
    T_EQ_U64(le64toh(((struct sg_sge *)(place + 1))->addr), 0x9000);
    T_EQ_U64(le32toh(((struct sg_sge *)(place + 1))->lkey), 77);
    T_EQ_MEM((uint8_t *)(place + 1) + 16, hash, sizeof(hash));
    T_EQ_U64(sqe(qp, 1)->num_sge, 0);
    T_EQ_U64(sg_wqe_place(sqe(qp, 1))->hash_len, 0);
    finish(qp);
}

/* ---- Draft -01's invalidation ---- */

/* One that can have an invalidation. */
static void add_request(struct ibv_qp_ex *ex)
{
#ifdef SGP_HAVE_FLUSH
    ibv_wr_flush(ex, RKEY, TO, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
#else
    static const uint64_t atom = 2;

    ibv_wr_atomic_write(ex, RKEY, TO, &atom);
#endif
}

static void invalidate__with_each_request(void)
{
    struct sgdv_verify v = { .remote_addr = TO, .rkey = RKEY, .length = 64 };
    uint64_t atom = 1;
    struct ibv_qp_ex *ex;
    struct sgp_qp *qp;
    unsigned i;

    world_init();
    qp = make_place_qp(ALL_FEATURES & ~SG_FEATURE_FLUSH_REGION, 64);
    ex = &qp->vqp.qp_ex;
    ibv_wr_start(ex);
    add_request(ex);
    sgdv_wr_invalidate(ex, 0x101);
    sgdv_wr_verify(ex, &v);
    sgdv_wr_invalidate(ex, 0x102);
    ibv_wr_atomic_write(ex, RKEY, TO, &atom);
    sgdv_wr_invalidate(ex, 0x103);
    add_request(ex);
    T_EQ_INT(ibv_wr_complete(ex), 0);
    for (i = 0; i < 4; i++) {
        T_EQ_U64(le32toh(sqe(qp, i)->inv_stag), i < 3 ? 0x101 + i : 0);
    }
    finish(qp);
}

static void invalidate__refused(void)
{
    static const struct {
        uint32_t features, rkey;
        bool send;
        int err;
    } rows[] = {
        { ALL_FEATURES, 1, false, EOPNOTSUPP },
        { 0, 1, true, EOPNOTSUPP },
        { ALL_FEATURES & ~SG_FEATURE_FLUSH_REGION, 1, true, EINVAL },
        { ALL_FEATURES & ~SG_FEATURE_FLUSH_REGION, 0, false, EINVAL },
    };
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp_ex *ex;
        struct sgp_qp *qp;

        T_CONTEXT("row %u", i);
        world_init();
        qp = make_place_qp(rows[i].features, 0);
        ex = &qp->vqp.qp_ex;
        ibv_wr_start(ex);
        if (rows[i].send) {
            ibv_wr_send(ex);
        } else {
            add_request(ex);
        }
        sgdv_wr_invalidate(ex, rows[i].rkey);
        T_EQ_INT(ibv_wr_complete(ex), rows[i].err);
        ibv_wr_start(ex);
        sgdv_wr_invalidate(ex, 1); /* without a request */
        T_TRUE(ibv_wr_complete(ex) != 0);
        finish(qp);
    }
}

static void verify__bad_arguments(void)
{
    static const uint8_t hash[SGDV_HASH_MAX + 1];
    static const struct {
        uint32_t features, room;
        struct sgdv_verify v;
        int err;
    } rows[] = {
        { ALL_FEATURES, 64, { .comp_mask = 1 }, EINVAL },
        { ALL_FEATURES, 64, { .reserved = 1 }, EINVAL },
        { ALL_FEATURES, 64, { .expected = hash, .expected_len = 65 }, EINVAL },
        { ALL_FEATURES, 64, { .expected = NULL, .expected_len = 4 }, EINVAL },
        { ALL_FEATURES & ~SG_FEATURE_VERIFY, 64, { 0 }, EOPNOTSUPP },
        /* A slot of 128 octets holds a sink and 48 octets of hash. */
        { ALL_FEATURES, 32, { .expected = hash, .expected_len = 48, .sink_len = 1 }, 0 },
        { ALL_FEATURES, 32, { .expected = hash, .expected_len = 49, .sink_len = 1 }, EINVAL },
        { ALL_FEATURES, 32, { .expected = hash, .expected_len = 64 }, 0 },
        { ALL_FEATURES, 64, { .expected = hash, .expected_len = 64, .sink_len = 64 }, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp_ex *ex;
        struct sgp_qp *qp;

        T_CONTEXT("row %zu", i);
        world_init();
        qp = make_place_qp(rows[i].features, rows[i].room);
        ex = &qp->vqp.qp_ex;
        ex->wr_flags = 0;
        ibv_wr_start(ex);
        sgdv_wr_verify(ex, &rows[i].v);
        T_EQ_INT(ibv_wr_complete(ex), rows[i].err);
        T_EQ_U64(db(SG_DB_SQ), rows[i].err ? 0 : db_of(qp->qpn, 1));
        finish(qp);
    }
}

/* ---- completions ---- */

static void poll__opcodes(void)
{
    static const struct {
        uint8_t opcode, status;
        enum ibv_wc_opcode want;
        enum ibv_wc_status want_status;
    } rows[] = {
        { SG_WC_FLUSH, SG_WC_SUCCESS, IBV_WC_FLUSH, IBV_WC_SUCCESS },
        { SG_WC_ATOMIC_WRITE, SG_WC_SUCCESS, IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS },
        { SG_WC_VERIFY, SG_WC_SUCCESS, SGDV_WC_VERIFY, IBV_WC_SUCCESS },
        { SG_WC_VERIFY, SG_WC_REM_OP_ERR, SGDV_WC_VERIFY, IBV_WC_REM_OP_ERR },
        { SG_WC_FLUSH, SG_WC_REM_ACCESS_ERR, IBV_WC_FLUSH, IBV_WC_REM_ACCESS_ERR },
        { SG_WC_ATOMIC_WRITE, SG_WC_FLUSH_ERR, IBV_WC_ATOMIC_WRITE, IBV_WC_WR_FLUSH_ERR },
        { SG_WC_VERIFY, SG_WC_LOC_LEN_ERR, SGDV_WC_VERIFY, IBV_WC_LOC_LEN_ERR },
        /* Opcodes that a user's queue pair cannot have, and unknown ones, are no Verify. */
        { SG_WC_REG_MR, SG_WC_SUCCESS, IBV_WC_DRIVER3, IBV_WC_SUCCESS },
        { 0x0f, SG_WC_SUCCESS, IBV_WC_DRIVER3, IBV_WC_SUCCESS },
        { 0x7f, SG_WC_SUCCESS, IBV_WC_DRIVER3, IBV_WC_SUCCESS },
    };
    struct ibv_wc wc;
    struct sgp_qp *qp;

    world_init();
    qp = make_place_qp(ALL_FEATURES, 0);
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %u", i);
        complete(qp->qpn, i, i, rows[i].opcode, 0, rows[i].status);
        T_EQ_INT(sgp_poll_cq(w.cq, 1, &wc), 1);
        T_EQ_U64(wc.opcode, rows[i].want);
        T_EQ_U64(wc.status, rows[i].want_status);
        T_EQ_U64(wc.byte_len, 100);
    }
    finish(qp);
}

/* Another provider's queue pair has another layout. */
static void foreign__is_left_alone(void)
{
    struct sgdv_verify v = { .remote_addr = TO, .rkey = RKEY, .length = 64 };
    struct sgdv_cmp_swp swap = { 1, 2, 3, 4 };
    struct sgp_qp *qp, before;
    struct ibv_qp_ex *ex;

    world_init();
    qp = make_place_qp(ALL_FEATURES, 0);
    ex = &qp->vqp.qp_ex;
    ibv_wr_start(ex);
    strcpy(w.device.name, FOREIGN);
    before = *qp;
    sgdv_wr_verify(ex, &v);
    sgdv_wr_invalidate(ex, RKEY);
    sgdv_wr_masked_cmp_swp(ex, RKEY, TO, &swap);
    sgdv_wr_masked_fetch_add(ex, RKEY, TO, 1, 0);
    T_EQ_MEM(qp, &before, sizeof(before));
    strcpy(w.device.name, "ours");
    ibv_wr_abort(ex);
    finish(qp);
}

static void poll__terminate(void)
{
    T_EQ_U64(sgdv_terminate_layer(0x12345678), 1);
    T_EQ_U64(sgdv_terminate_type(0x12345678), 2);
    T_EQ_U64(sgdv_terminate_code(0x12345678), 0x34);
    T_EQ_U64(sgdv_terminate_type(0x02070000), 2);
    T_EQ_U64(sgdv_terminate_code(0x02070000), 7);
}

static const struct t_case cases[] = {
    { "creation follows the device's features", create__follows_the_features },
    { "the device is described to callers of all ages", query__device },
    { "Flush: rights of a window", flush__of_windows },
#ifdef SGP_HAVE_FLUSH
    { "Flush: types and levels", flush__types_and_levels },
    { "Flush: bad arguments post nothing", flush__bad_arguments },
#endif
    { "Atomic Write copies its atom", atomic__copies_the_atom },
    { "Atomic Write by ibv_post_send, good and bad", atomic__by_ibv_post_send },
    { "Flush does not fit in ibv_post_send", flush__not_by_ibv_post_send },
    { "Verify: sink and expected hash", verify__with_sink_and_hash },
    { "Verify: bad arguments and room", verify__bad_arguments },
    { "Invalidate of draft -01 with each request", invalidate__with_each_request },
    { "Invalidate of draft -01: refused", invalidate__refused },
    { "direct verbs leave another provider's queue pair alone", foreign__is_left_alone },
    { "opcodes and status of completions", poll__opcodes },
    { "fields of a Terminate in vendor_err", poll__terminate },
};

T_MAIN(cases)
