/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands that a process sends to the driver without libibverbs and the provider: each field of
 * the driver's part of a command (staghorn/abi.h) is wrong, one at a time.
 *
 * verbs_abi ADDRESS [PART-OF-NAME]...: ADDRESS is that of this machine's adapter.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <staghorn/abi.h>
#include <staghorn/io.h>

#include "verbs_pair.h"

enum { BUF = 64 * 1024, ENTRIES = 64 };

static uint8_t *buf; /* memory of every queue here; page-aligned */
static uint8_t answer[512];

static void begin(void)
{
    if (!buf) {
        buf = mmap(NULL, BUF + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(buf + BUF, 4096, PROT_NONE);
    }
    pair_close();
}

/* ---- completion queues ---- */

static const struct ring_row {
    const char *what;
    uint64_t buf; /* added to the good one, or alone if the row says so */
    bool alone;
    uint32_t buf_len, entries;
    size_t len; /* of the driver's part */
    int want;
} ring_rows[] = {
    { "good", 0, false, BUF, ENTRIES, 16, 0 },
    { "short", 0, false, BUF, ENTRIES, 12, EINVAL },
    { "absent", 0, false, BUF, ENTRIES, 0, EINVAL },
    { "not a page", 64, false, BUF, ENTRIES, 16, EINVAL },
    { "no memory there", 0, true, BUF, ENTRIES, 16, EFAULT },
    { "the kernel's memory", 0xffff888000000000, true, BUF, ENTRIES, 16, EFAULT },
    { "entries not a power of two", 0, false, BUF, ENTRIES + 1, 16, EINVAL },
    { "fewer than asked for", 0, false, BUF, ENTRIES / 4, 16, EINVAL },
    { "none", 0, false, BUF, 0, 16, EINVAL },
    { "more than the adapter can", 0, false, BUF, 1u << 31, 16, EINVAL },
    { "no room for the record", 0, false, ENTRIES * 64, ENTRIES, 16, EINVAL },
    { "no room for the entries", 0, false, 4096, ENTRIES, 16, EINVAL },
    { "beyond the mapping", 0, false, 1u << 30, ENTRIES, 16, EFAULT },
};

#define RING_ROWS (sizeof(ring_rows) / sizeof(ring_rows[0]))

static struct sg_abi_create_cq ring_of(const struct ring_row *row)
{
    return (struct sg_abi_create_cq){
        .buf = row->alone ? row->buf : (uintptr_t)buf + row->buf,
        .buf_len = row->buf_len,
        .entries = row->entries,
    };
}

static void cq__creation(void)
{
    begin();
    for (size_t i = 0; i < RING_ROWS; i++) {
        struct sg_abi_create_cq req = ring_of(&ring_rows[i]);
        struct ib_uverbs_create_cq core = {
            .response = (uintptr_t)answer,
            .cqe = 32,
            .comp_channel = -1,
        };
        struct ib_uverbs_create_cq_resp *resp = (void *)answer;

        T_CONTEXT("%s", ring_rows[i].what);
        T_EQ_INT(command(IB_USER_VERBS_CMD_CREATE_CQ, &core, sizeof(core), &req, ring_rows[i].len,
                         sizeof(*resp) + 8),
                 ring_rows[i].want);
        if (!ring_rows[i].want) {
            struct ib_uverbs_destroy_cq end = { (uintptr_t)answer, resp->cq_handle, 0 };

            T_EQ_INT(command(IB_USER_VERBS_CMD_DESTROY_CQ, &end, sizeof(end), NULL, 0,
                             sizeof(struct ib_uverbs_destroy_cq_resp)),
                     0);
        }
    }
}

static void cq__resize(void)
{
    struct ibv_cq *cq;

    begin();
    cq = ibv_create_cq(w.ctx, 100, NULL, NULL, 0);
    T_NOT_NULL(cq);
    /* Backwards, so that the good row comes last. */
    for (size_t i = RING_ROWS; i-- > 0;) {
        struct sg_abi_create_cq req = ring_of(&ring_rows[i]);
        struct ib_uverbs_resize_cq core = {
            .response = (uintptr_t)answer,
            .cq_handle = cq->handle,
            .cqe = 32,
        };

        T_CONTEXT("%s", ring_rows[i].what);
        T_EQ_INT(command(IB_USER_VERBS_CMD_RESIZE_CQ, &core, sizeof(core), &req, ring_rows[i].len,
                         sizeof(struct ib_uverbs_resize_cq_resp) + 8),
                 ring_rows[i].want);
    }
    T_EQ_INT(ibv_destroy_cq(cq), 0);
}

/* ---- shared receive queues ---- */

static void srq__creation(void)
{
    static const struct {
        const char *what;
        uint64_t buf_add;
        uint32_t entries;
        uint16_t stride;
        uint8_t max_sge, reserved;
        size_t len;
        int want;
    } rows[] = {
        { "good", 0, ENTRIES, 64, 1, 0, 16, 0 },
        { "short", 0, ENTRIES, 64, 1, 0, 12, EINVAL },
        { "not a page", 64, ENTRIES, 64, 1, 0, 16, EINVAL },
        { "not a power of two", 0, ENTRIES + 1, 64, 1, 0, 16, EINVAL },
        { "fewer than asked for", 0, 16, 64, 1, 0, 16, EINVAL },
        { "too many", 0, 1u << 31, 64, 1, 0, 16, EINVAL },
        { "stride too small", 0, ENTRIES, 32, 1, 0, 16, EINVAL },
        { "stride too large", 0, ENTRIES, 2048, 1, 0, 16, EINVAL },
        { "stride odd", 0, ENTRIES, 96, 1, 0, 16, EINVAL },
        { "elements beyond the stride", 0, ENTRIES, 64, 16, 0, 16, EINVAL },
        { "fewer elements than asked for", 0, ENTRIES, 64, 0, 0, 16, EINVAL },
        { "too many elements", 0, ENTRIES, 512, 255, 0, 16, EINVAL },
        { "reserved", 0, ENTRIES, 64, 1, 1, 16, EINVAL },
        { "beyond the mapping", 0, 4096, 64, 1, 0, 16, EFAULT },
    };

    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sg_abi_create_srq req = {
            .buf = (uintptr_t)buf + rows[i].buf_add,
            .entries = rows[i].entries,
            .stride = rows[i].stride,
            .max_sge = rows[i].max_sge,
            .reserved = rows[i].reserved,
        };
        struct ib_uverbs_create_srq core = {
            .response = (uintptr_t)answer,
            .pd_handle = w.pd->handle,
            .max_wr = 32,
            .max_sge = 1,
        };
        struct ib_uverbs_create_srq_resp *resp = (void *)answer;

        T_CONTEXT("%s", rows[i].what);
        T_EQ_INT(command(IB_USER_VERBS_CMD_CREATE_SRQ, &core, sizeof(core), &req, rows[i].len,
                         sizeof(*resp) + 8),
                 rows[i].want);
        if (!rows[i].want) {
            struct ib_uverbs_destroy_srq end = { (uintptr_t)answer, resp->srq_handle, 0 };

            T_EQ_INT(command(IB_USER_VERBS_CMD_DESTROY_SRQ, &end, sizeof(end), NULL, 0,
                             sizeof(struct ib_uverbs_destroy_srq_resp)),
                     0);
        }
    }
}

static void srq__resize(void)
{
    static const struct {
        const char *what;
        uint64_t buf_add;
        uint32_t entries, reserved;
        size_t len;
        int want;
    } rows[] = {
        { "short", 0, ENTRIES, 0, 12, EINVAL },
        { "absent", 0, ENTRIES, 0, 0, EINVAL },
        { "not a page", 64, ENTRIES, 0, 16, EINVAL },
        { "not a power of two", 0, ENTRIES + 1, 0, 16, EINVAL },
        { "fewer than asked for", 0, 16, 0, 16, EINVAL },
        { "none", 0, 0, 0, 16, EINVAL },
        { "too many", 0, 1u << 31, 0, 16, EINVAL },
        { "reserved", 0, ENTRIES, 1, 16, EINVAL },
        { "beyond the mapping", 0, 4096, 0, 16, EFAULT },
        { "good", 0, ENTRIES, 0, 16, 0 },
    };
    struct ibv_srq_init_attr attr = { .attr = { 100, 1, 0 } };
    struct ibv_srq *srq;

    begin();
    srq = ibv_create_srq(w.pd, &attr);
    T_NOT_NULL(srq);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sg_abi_modify_srq req = {
            .buf = (uintptr_t)buf + rows[i].buf_add,
            .entries = rows[i].entries,
            .reserved = rows[i].reserved,
        };
        struct ib_uverbs_modify_srq core = {
            .srq_handle = srq->handle,
            .attr_mask = IBV_SRQ_MAX_WR,
            .max_wr = 32,
        };

        T_CONTEXT("%s", rows[i].what);
        T_EQ_INT(command(IB_USER_VERBS_CMD_MODIFY_SRQ, &core, sizeof(core), &req, rows[i].len, 0),
                 rows[i].want);
        T_EQ_INT(ibv_query_srq(srq, &attr.attr), 0);
        T_EQ_U64(attr.attr.max_wr, rows[i].want ? 128 : ENTRIES);
    }
    T_EQ_INT(ibv_destroy_srq(srq), 0);
}

/* ---- queue pairs ---- */

static const struct sg_abi_create_qp good_qp = {
    .sq_entries = 16,
    .rq_entries = 16,
    .sq_stride = 128,
    .rq_stride = 64,
    .max_inline = 64,
    .sq_max_sge = 2,
    .rq_max_sge = 1,
};

static int create_qp(const struct ibv_cq *cq, const struct sg_abi_create_qp *req, size_t len,
                     bool srq)
{
    struct ib_uverbs_create_qp core = {
        .response = (uintptr_t)answer,
        .pd_handle = w.pd->handle,
        .send_cq_handle = cq->handle,
        .recv_cq_handle = cq->handle,
        .max_send_wr = 16,
        .max_recv_wr = 16,
        .max_send_sge = 2,
        .max_recv_sge = 1,
        .max_inline_data = 64,
        .qp_type = IB_UVERBS_QPT_RC,
        .is_srq = srq,
    };
    struct ib_uverbs_create_qp_resp *resp = (void *)answer;
    struct ib_uverbs_destroy_qp end = { .response = (uintptr_t)answer };
    int ret =
        command(IB_USER_VERBS_CMD_CREATE_QP, &core, sizeof(core), req, len, sizeof(*resp) + 8);

    if (!ret) {
        end.qp_handle = resp->qp_handle;
        T_EQ_INT(command(IB_USER_VERBS_CMD_DESTROY_QP, &end, sizeof(end), NULL, 0,
                         sizeof(struct ib_uverbs_destroy_qp_resp)),
                 0);
    }
    return ret;
}

static void qp__creation(void)
{
    struct ibv_cq *cq;

    begin();
    cq = ibv_create_cq(w.ctx, 100, NULL, NULL, 0);
    T_NOT_NULL(cq);
#define ROW(expected, ...)                                   \
    do {                                                     \
        struct sg_abi_create_qp req = good_qp;               \
        size_t len = sizeof(req);                            \
                                                             \
        req.sq_buf = (uintptr_t)buf;                         \
        req.rq_buf = (uintptr_t)buf + 32768;                 \
        T_CONTEXT("%s", #__VA_ARGS__);                       \
        __VA_ARGS__;                                         \
        T_EQ_INT(create_qp(cq, &req, len, false), expected); \
    } while (0)
    ROW(0, (void)len);
    ROW(EINVAL, len = 8);
    ROW(EINVAL, req.sq_buf += 8);
    ROW(EINVAL, req.rq_buf += 8);
    ROW(EFAULT, req.sq_buf = 0);
    ROW(EFAULT, req.rq_buf = 0xffff888000000000);
    ROW(EINVAL, req.sq_entries = 8);
    ROW(EINVAL, req.sq_entries = 17);
    ROW(EINVAL, req.sq_entries = 1u << 31);
    ROW(EINVAL, req.rq_entries = 8);
    ROW(EINVAL, req.rq_entries = 17);
    ROW(EINVAL, req.rq_entries = 1u << 31);
    ROW(EINVAL, req.sq_stride = 0);
    ROW(EINVAL, req.sq_stride = 32);
    ROW(EINVAL, req.sq_stride = 64); /* too small for two elements and 64 octets inline */
    ROW(EINVAL, req.sq_stride = 100);
    ROW(EINVAL, req.sq_stride = 32768);
    ROW(EINVAL, req.rq_stride = 32);
    ROW(EINVAL, req.rq_stride = 2048);
    ROW(EINVAL, req.max_inline = 63);
    ROW(EINVAL, req.max_inline = 4096);
    ROW(EINVAL, req.sq_max_sge = 1);
    ROW(EINVAL, req.sq_max_sge = 255);
    ROW(EINVAL, req.rq_max_sge = 0);
    ROW(EINVAL, req.rq_max_sge = 255);
    ROW(EINVAL, req.rq_max_sge = 16); /* beyond the stride */
#undef ROW
    T_EQ_INT(ibv_destroy_cq(cq), 0);
}

/* ---- regions ---- */

static void mr__registration(void)
{
    begin();
#define ROW(expected, ...)                                                                   \
    do {                                                                                     \
        struct ib_uverbs_reg_mr core = {                                                     \
            .response = (uintptr_t)answer,                                                   \
            .start = (uintptr_t)buf,                                                         \
            .length = 4096,                                                                  \
            .hca_va = (uintptr_t)buf,                                                        \
            .pd_handle = w.pd->handle,                                                       \
            .access_flags = 7,                                                               \
        };                                                                                   \
        struct {                                                                             \
            struct sg_abi_reg_mr mr;                                                         \
            uint32_t more[4];                                                                \
        } req = { 0 };                                                                       \
        size_t len = sizeof(req.mr);                                                         \
                                                                                             \
        T_CONTEXT("%s", #__VA_ARGS__);                                                       \
        __VA_ARGS__;                                                                         \
        T_EQ_INT(command(IB_USER_VERBS_CMD_REG_MR, &core, sizeof(core), &req, len,           \
                         sizeof(struct ib_uverbs_reg_mr_resp)),                              \
                 expected);                                                                  \
        if (!(expected)) {                                                                   \
            struct ib_uverbs_dereg_mr end = {                                                \
                ((struct ib_uverbs_reg_mr_resp *)answer)->mr_handle                          \
            };                                                                               \
                                                                                             \
            T_EQ_INT(command(IB_USER_VERBS_CMD_DEREG_MR, &end, sizeof(end), NULL, 0, 0), 0); \
        }                                                                                    \
    } while (0)
    ROW(0, (void)req);
    ROW(0, len = 0);
    ROW(0, req.mr.hash_alg = SGDV_HASH_SHA256);
    ROW(0, len = sizeof(req)); /* of a newer program that uses nothing new */
    ROW(EINVAL, len = sizeof(req), req.more[3] = 1);
    ROW(EINVAL, req.mr.reserved = 1);
    ROW(EINVAL, req.mr.hash_alg = 99);
    ROW(EINVAL, req.mr.hash_key_len = 1);
    ROW(EINVAL, req.mr.hash_alg = SGDV_HASH_HMAC_SHA256);
    ROW(EINVAL, req.mr.hash_alg = SGDV_HASH_HMAC_SHA256, req.mr.hash_key_len = 65);
    ROW(EINVAL, req.mr.mem_type = 3);
    ROW(EINVAL, req.mr.mem_mode = 3);
    ROW(EINVAL, core.length = 0);
    ROW(EINVAL, core.hca_va += 1);
    ROW(EINVAL, core.length = UINT64_MAX);
    ROW(EINVAL, core.access_flags = 1 << 15);
    ROW(ENOENT, core.pd_handle += 12345);
#undef ROW
}

/* ---- on demand ---- */

static long available_kib(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[100];
    long kib = -1;

    while (f && kib < 0 && fgets(line, sizeof(line), f)) {
        sscanf(line, "MemAvailable: %ld", &kib);
    }
    T_NOT_NULL(f);
    fclose(f);
    return kib;
}

/* The kernel allocates nothing for unmapped addresses, although the region has them all. */
static void mr__on_demand(void)
{
    enum { PIECE_SHIFT = 26, PIECES = 2048, LOST_KIB_MAX = 128 * 1024 };
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
    struct ibv_device_attr attr;
    struct ibv_sge sge = { .length = 4096 };
    struct ibv_mr *mr;
    long before;

    begin();
    mr = ibv_reg_mr(w.pd, NULL, SIZE_MAX, access);
    T_NOT_NULL(mr);
    sge.lkey = mr->lkey;
    before = available_kib();
    for (uint64_t i = 0; i < PIECES; i++) {
        T_CONTEXT("piece %" PRIu64, i);
        sge.addr = 1ull << 45 | i << PIECE_SHIFT;
        T_EQ_INT(ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
                               &sge, 1),
                 EFAULT);
    }
    T_NOTE("%ld KiB less", before - available_kib());
    T_TRUE(before - available_kib() < LOST_KIB_MAX);
    for (uint64_t bit = 47; bit < 64; bit++) {
        T_CONTEXT("bit %" PRIu64, bit);
        sge.addr = 1ull << bit;
        T_EQ_INT(
            ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
            EFAULT);
    }
    sge.addr = (uintptr_t)buf;
    T_EQ_INT(
        ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
        0);
    T_EQ_INT(ibv_dereg_mr(mr), 0);
    T_EQ_INT(ibv_query_device(w.ctx, &attr), 0);
    T_NULL(ibv_reg_mr(w.pd, buf, attr.max_mr_size + 1, access));
    T_EQ_INT(errno, EINVAL);
    T_NULL(ibv_reg_mr(w.pd, buf, attr.max_mr_size, access));
    T_EQ_INT(errno, ENOMEM);
    T_NULL(ibv_reg_mr(w.pd, (void *)4096, SIZE_MAX, access));
}

/* ---- states, as on InfiniBand ---- */

static struct ibv_qp *new_qp(struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
    };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    struct ibv_qp *qp = ibv_create_qp(w.pd, &init);

    T_NOT_NULL(qp);
    T_EQ_INT(ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
             0);
    return qp;
}

/* Transitions to RTR; a queue pair whose transition is refused keeps its state. */
static void qp__states(void)
{
    const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    union ibv_gid gid;
    struct ibv_cq *cq;
    struct ibv_qp *qp;

    begin();
    cq = ibv_create_cq(w.ctx, 16, NULL, NULL, 0);
    T_NOT_NULL(cq);
    qp = new_qp(cq);
    T_EQ_INT(ibv_query_gid(w.ctx, 1, 1, &gid), 0);
#define ROW(good, ...)                                                                             \
    do {                                                                                           \
        struct ibv_qp_attr a = {                                                                   \
            .qp_state = IBV_QPS_RTR,                                                               \
            .path_mtu = IBV_MTU_1024,                                                              \
            .dest_qp_num = 0xabcdef,                                                               \
            .max_dest_rd_atomic = 1,                                                               \
            .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1, .dgid = gid } }, \
        };                                                                                         \
        int m = mask;                                                                              \
                                                                                                   \
        T_CONTEXT("%s", #__VA_ARGS__);                                                             \
        __VA_ARGS__;                                                                               \
        T_TRUE((ibv_modify_qp(qp, &a, m) == 0) == good);                                           \
        T_EQ_INT(ibv_query_qp(qp, &a, IBV_QP_STATE, &(struct ibv_qp_init_attr){ 0 }), 0);          \
        T_EQ_INT(a.qp_state, good ? IBV_QPS_RTR : IBV_QPS_INIT);                                   \
    } while (0)
    ROW(false, m &= ~IBV_QP_DEST_QPN);
    ROW(false, m &= ~IBV_QP_AV);
    ROW(false, m |= IBV_QP_QKEY);
    ROW(false, a.qp_state = IBV_QPS_RTS);
    ROW(false, a.qp_state = 99);
    ROW(false, m |= IBV_QP_CUR_STATE, a.cur_qp_state = IBV_QPS_RTS);
    ROW(false, a.path_mtu = 0);
    ROW(false, a.path_mtu = IBV_MTU_4096 + 1);
    ROW(false, a.dest_qp_num = 1 << 24);
    ROW(false, a.min_rnr_timer = 32);
    ROW(false, a.max_dest_rd_atomic = 255);
    ROW(false, a.ah_attr.is_global = 0);
    ROW(false, a.ah_attr.port_num = 2);
    ROW(false, a.ah_attr.grh.sgid_index = 16);
    ROW(false, a.ah_attr.grh.sgid_index = 255);
    ROW(false, memset(&a.ah_attr.grh.dgid, 0, 16));
    ROW(false, a.ah_attr.grh.dgid.raw[0] = 0xff, a.ah_attr.grh.dgid.raw[1] = 0x02);
    ROW(false, a.dest_qp_num = qp->qp_num); /* to itself */
    ROW(true, (void)m);
#undef ROW
    T_EQ_INT(ibv_destroy_qp(qp), 0);
    T_EQ_INT(ibv_destroy_cq(cq), 0);
}

/* ---- objects of others, or of another kind ---- */

static void handles(void)
{
    struct ib_uverbs_dealloc_mw end_mw;
    struct ibv_cq *cq;
    struct ibv_mw *mw;

    begin();
    cq = ibv_create_cq(w.ctx, 16, NULL, NULL, 0);
    T_NOT_NULL(cq);
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t handle = i < 60 ? 1000 + i : UINT32_MAX - i;
        struct ib_uverbs_destroy_cq end_cq = { (uintptr_t)answer, handle, 0 };
        struct ib_uverbs_destroy_qp end_qp = { (uintptr_t)answer, handle, 0 };
        struct ib_uverbs_destroy_srq end_srq = { (uintptr_t)answer, handle, 0 };
        struct ib_uverbs_dereg_mr end_mr = { handle };
        struct ib_uverbs_dealloc_pd end_pd = { handle };

        T_CONTEXT("handle %u", handle);
        T_TRUE(command(IB_USER_VERBS_CMD_DESTROY_CQ, &end_cq, sizeof(end_cq), NULL, 0, 8));
        T_TRUE(command(IB_USER_VERBS_CMD_DESTROY_QP, &end_qp, sizeof(end_qp), NULL, 0, 4));
        T_TRUE(command(IB_USER_VERBS_CMD_DESTROY_SRQ, &end_srq, sizeof(end_srq), NULL, 0, 4));
        T_TRUE(command(IB_USER_VERBS_CMD_DEREG_MR, &end_mr, sizeof(end_mr), NULL, 0, 0));
        T_TRUE(command(IB_USER_VERBS_CMD_DEALLOC_PD, &end_pd, sizeof(end_pd), NULL, 0, 0));
        end_mw.mw_handle = handle;
        T_EQ_INT(command(IB_USER_VERBS_CMD_DEALLOC_MW, &end_mw, sizeof(end_mw), NULL, 0, 0),
                 ENOENT);
    }
    T_CONTEXT("a completion queue that is called another thing");
    T_TRUE(command(IB_USER_VERBS_CMD_DEALLOC_PD, &(struct ib_uverbs_dealloc_pd){ cq->handle },
                   sizeof(struct ib_uverbs_dealloc_pd), NULL, 0, 0));
    T_TRUE(command(IB_USER_VERBS_CMD_DEREG_MR, &(struct ib_uverbs_dereg_mr){ cq->handle },
                   sizeof(struct ib_uverbs_dereg_mr), NULL, 0, 0));
    T_TRUE(command(IB_USER_VERBS_CMD_DEALLOC_MW, &(struct ib_uverbs_dealloc_mw){ cq->handle },
                   sizeof(struct ib_uverbs_dealloc_mw), NULL, 0, 0));
    T_EQ_INT(ibv_destroy_cq(cq), 0);
    T_CONTEXT("a window that is gone");
    mw = ibv_alloc_mw(w.pd, IBV_MW_TYPE_2);
    T_NOT_NULL(mw);
    end_mw.mw_handle = mw->handle;
    T_EQ_INT(ibv_dealloc_mw(mw), 0);
    T_EQ_INT(command(IB_USER_VERBS_CMD_DEALLOC_MW, &end_mw, sizeof(end_mw), NULL, 0, 0), ENOENT);
}

/* A process can map its own doorbell page, and no other. */
static void pages(void)
{
    unsigned seen = 0;

    begin();
    for (off_t i = 0; i < 256; i++) {
        void *p = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, w.ctx->cmd_fd, i * 4096);

        if (p != MAP_FAILED) {
            seen++;
            T_EQ_INT(munmap(p, 4096), 0);
        }
        T_CONTEXT("two pages from %lld on", (long long)i);
        T_TRUE(mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, w.ctx->cmd_fd, i * 4096) == MAP_FAILED);
        T_CONTEXT("page %lld of its own", (long long)i);
        T_TRUE(mmap(NULL, 4096, PROT_WRITE, MAP_PRIVATE, w.ctx->cmd_fd, i * 4096) == MAP_FAILED);
    }
    T_EQ_INT(seen, 1);
}

static const struct t_case cases[] = {
    { "abi: creation of completion queues", cq__creation },
    { "abi: completion queues of another size", cq__resize },
    { "abi: creation of shared receive queues", srq__creation },
    { "abi: shared receive queues of another size", srq__resize },
    { "abi: creation of queue pairs", qp__creation },
    { "abi: registration of memory", mr__registration },
    { "abi: memory on demand where there is none", mr__on_demand },
    { "abi: states of queue pairs", qp__states },
    { "abi: handles of nothing", handles },
    { "abi: doorbell pages", pages },
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    pair_open(argv[1]);
    return t_main(cases, sizeof(cases) / sizeof(cases[0]), argc - 1, argv + 1);
}
