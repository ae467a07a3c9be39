/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of the kernel and of the device for the provider's tests.
 *
 * The kernel's commands (ibv_cmd_*) allocate numbers and record their arguments; the doorbell
 * page is plain memory; complete() acts as the device.  Included by single-file programs, which
 * link the provider's sources instead of libibverbs.
 */
#ifndef SG_TESTS_PROVIDER_MODEL_H
#define SG_TESTS_PROVIDER_MODEL_H

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>
#ifdef __s390x__
#include <sys/syscall.h>
#endif

#include "provider.h"
#include "wqe.h"

#include "tap.h"

#ifndef SGP_HAVE_FLUSH
/* As later versions of rdma-core number it: the provider has to refuse what it does not know. */
#define IBV_QP_EX_WITH_FLUSH (1 << 11)
#define IBV_WR_FLUSH ((enum ibv_wr_opcode)14)
#define IBV_ACCESS_FLUSH_GLOBAL (1 << 8)
#endif

/* Arguments that the commands do not have in all versions. */
#ifdef SGP_HAVE_CQ_PROV_ATTR
#define MODEL_CQ_PROV_ATTR struct verbs_create_cq_prov_attr *prov_attr,
#undef ibv_cmd_create_cq_ex
#else
#define MODEL_CQ_PROV_ATTR
#endif
#ifdef SGP_HAVE_DMABUF_DRIVER
#define MODEL_DMABUF_DRIVER , struct ibv_command_buffer *driver
#else
#define MODEL_DMABUF_DRIVER
#undef ibv_cmd_reg_dmabuf_mr
#endif

/* ---- model of the kernel ---- */

static struct {
    uint32_t next_qpn;
    uint32_t next_cqn;
    uint32_t next_srqn;
    int fail_qp; /* errno value of the next creation */
    unsigned int live_qps;
    unsigned int live_cqs;
    size_t live_bufs;
    struct sg_abi_create_qp qp;
    struct sg_abi_create_cq cq;
    struct sg_abi_resize_cq resize;
    int fail_resize;
    struct ibv_moderate_cq moderate;
    struct sg_abi_create_srq srq;
    int fail_srq;
    unsigned int live_srqs;
    struct ibv_srq_attr srq_attr; /* last set */
    int srq_mask;
    struct sg_abi_modify_srq srq_resize;
    int fail_srq_modify;
    int fail_mw;
    unsigned int live_mws;
    int fail_mr;
    unsigned int live_mrs;
    size_t mr_cmd_size;
    struct sgp_reg_mr_cmd mr;
} kernel;

#ifdef __s390x__
/* Where the processor has no instructions for it, registers of a device are the kernel's. */
long syscall(long number, ...)
{
    void *reg, *value;
    size_t length;
    va_list args;

    va_start(args, number);
    reg = va_arg(args, void *);
    value = va_arg(args, void *);
    length = va_arg(args, size_t);
    va_end(args);
    switch (number) {
    case SYS_s390_pci_mmio_write:
        memcpy(reg, value, length);
        return 0;
    case SYS_s390_pci_mmio_read:
        memcpy(value, reg, length);
        return 0;
    }
    errno = ENOSYS;
    return -1;
}
#endif

/* Returns the entries that the device wrote into the old ring, and starts at 0 in the new one. */
static uint32_t w_device_pi(void);

/* A device with this name belongs to another provider. */
#define FOREIGN "other0"

bool sgp_is_ours(struct ibv_device *device)
{
    return strcmp(device->name, FOREIGN) != 0;
}

int ibv_dontfork_range(void *base, size_t size)
{
    kernel.live_bufs++;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    kernel.live_bufs--;
    return 0;
}

int ibv_cmd_query_device_any(struct ibv_context *context,
                             const struct ibv_query_device_ex_input *input,
                             struct ibv_device_attr_ex *attr, size_t attr_size,
                             struct ib_uverbs_ex_query_device_resp *resp, size_t *resp_size)
{
    memset(attr, 0, attr_size);
    memset(resp, 0, *resp_size);
    return 0;
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num,
                       struct ibv_port_attr *port_attr, struct ibv_query_port *cmd, size_t cmd_size)
{
    return 0;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, struct ibv_alloc_pd *cmd,
                     size_t cmd_size, struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
    return 0;
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
    return 0;
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access,
                   struct verbs_mr *vmr, struct ibv_reg_mr *cmd, size_t cmd_size,
                   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
    kernel.mr_cmd_size = cmd_size;
    memset(&kernel.mr, 0xee, sizeof(kernel.mr));
    memcpy(&kernel.mr, cmd, cmd_size);
    kernel.mr.ibv_cmd.hca_va = hca_va;
    kernel.mr.ibv_cmd.access_flags = (uint32_t)access;
    if (kernel.fail_mr) {
        return kernel.fail_mr;
    }
    vmr->mr_type = IBV_MR_TYPE_MR;
    kernel.live_mrs++;
    return 0;
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr, size_t length,
                     uint64_t hca_va, int access, struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
                     size_t cmd_sz, struct ib_uverbs_rereg_mr_resp *resp, size_t resp_sz)
{
    return kernel.fail_mr;
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                          int access, struct verbs_mr *vmr MODEL_DMABUF_DRIVER)
{
    if (kernel.fail_mr) {
        errno = kernel.fail_mr;
        return kernel.fail_mr;
    }
    vmr->mr_type = IBV_MR_TYPE_DMABUF_MR;
    kernel.live_mrs++;
    return 0;
}

int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                      struct ibv_sge *sg_list, uint32_t num_sge)
{
    return 0;
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
    kernel.live_mrs--;
    return 0;
}

int ibv_cmd_create_cq_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
                         MODEL_CQ_PROV_ATTR struct verbs_cq *cq, struct ibv_create_cq_ex *cmd,
                         size_t cmd_size, struct ib_uverbs_ex_create_cq_resp *resp,
                         size_t resp_size, uint32_t cmd_flags)
{
    struct sgp_create_cq *full = container_of(cmd, struct sgp_create_cq, ibv_cmd);
    struct sgp_create_cq_resp *out = container_of(resp, struct sgp_create_cq_resp, ibv_resp);

    if (attr->wc_flags || attr->comp_mask) {
        return EOPNOTSUPP;
    }
    cq->cq.context = context;
    cq->cq.cqe = (int)attr->cqe;
    kernel.cq = full->drv_payload;
    out->drv_payload.cqn = kernel.next_cqn++;
    kernel.live_cqs++;
    return 0;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
    kernel.live_cqs--;
    return 0;
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
                      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
    struct sgp_resize_cq *full = container_of(cmd, struct sgp_resize_cq, ibv_cmd);
    struct sgp_resize_cq_resp *out = container_of(resp, struct sgp_resize_cq_resp, ibv_resp);

    kernel.resize = full->drv_payload;
    if (kernel.fail_resize) {
        return kernel.fail_resize;
    }
    out->drv_payload.old_producer = w_device_pi();
    return 0;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr, struct ibv_modify_cq *cmd,
                      size_t cmd_size)
{
    kernel.moderate = attr->moderate;
    return 0;
}

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
                       struct ibv_create_srq *cmd, size_t cmd_size,
                       struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
    struct sgp_create_srq *full = container_of(cmd, struct sgp_create_srq, ibv_cmd);
    struct sgp_create_srq_resp *out = container_of(resp, struct sgp_create_srq_resp, ibv_resp);

    if (kernel.fail_srq) {
        return kernel.fail_srq;
    }
    srq->context = pd->context;
    kernel.srq = full->drv_payload;
    kernel.srq_attr = attr->attr;
    out->drv_payload.srqn = kernel.next_srqn++;
    kernel.live_srqs++;
    return 0;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask,
                       struct ibv_modify_srq *cmd, size_t cmd_size)
{
    if (kernel.fail_srq_modify) {
        return kernel.fail_srq_modify;
    }
    kernel.srq_attr = *srq_attr;
    kernel.srq_mask = srq_attr_mask;
    if (cmd_size == sizeof(struct sgp_modify_srq)) {
        kernel.srq_resize = container_of(cmd, struct sgp_modify_srq, ibv_cmd)->drv_payload;
    }
    return 0;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, struct ibv_query_srq *cmd,
                      size_t cmd_size)
{
    *srq_attr = kernel.srq_attr;
    return 0;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
    kernel.live_srqs--;
    return 0;
}

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw,
                     struct ibv_alloc_mw *cmd, size_t cmd_size,
                     struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size)
{
    if (kernel.fail_mw) {
        return kernel.fail_mw;
    }
    mw->context = pd->context;
    mw->pd = pd;
    mw->type = type;
    mw->rkey = 0x4400;
    kernel.live_mws++;
    return 0;
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
    kernel.live_mws--;
    return 0;
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
                         struct ibv_qp_init_attr_ex *attr, struct ibv_create_qp *cmd,
                         size_t cmd_size, struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
    struct sgp_create_qp *full = container_of(cmd, struct sgp_create_qp, ibv_cmd);
    struct sgp_create_qp_resp *out = container_of(resp, struct sgp_create_qp_resp, ibv_resp);

    if (kernel.fail_qp) {
        return kernel.fail_qp;
    }
    qp->comp_mask = 0;
    qp->qp.context = context;
    qp->qp.send_cq = attr->send_cq;
    qp->qp.recv_cq = attr->recv_cq;
    qp->qp.qp_num = kernel.next_qpn;
    kernel.qp = full->drv_payload;
    out->drv_payload.qpn = kernel.next_qpn++;
    kernel.live_qps++;
    return 0;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
    kernel.live_qps--;
    return 0;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                     struct ibv_qp_init_attr *init_attr, struct ibv_query_qp *cmd, size_t cmd_size)
{
    memset(attr, 0, sizeof(*attr));
    memset(init_attr, 0, sizeof(*init_attr));
    return 0;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                      struct ibv_modify_qp *cmd, size_t cmd_size)
{
    return 0;
}

/* ---- the world of one case ---- */

struct model_world {
    struct sgp_context *ctx;
    struct ibv_device device;
    struct sgp_pd spd;
    struct ibv_cq *cq;
    uint64_t db[SG_UAR_SIZE / 8];
    uint32_t device_pi; /* completion entries written */
};

static struct model_world w;

static uint32_t w_device_pi(void)
{
    uint32_t pi = w.device_pi;

    w.device_pi = 0;
    return pi;
}

/* Everything of the drafts, in its last version. */
#define ALL_FEATURES                                                            \
    (SG_FEATURE_FLUSH | SG_FEATURE_FLUSH_PERSISTENT | SG_FEATURE_FLUSH_REGION | \
     SG_FEATURE_ATOMIC_WRITE | SG_FEATURE_VERIFY)

static void world_init(void)
{
    memset(&w, 0, sizeof(w));
    memset(&kernel, 0, sizeof(kernel));
    kernel.next_qpn = 0x1ffe; /* numbers on both sides of a leaf of the table */
    kernel.next_cqn = 0x123;
    kernel.next_srqn = 0x77;
    w.ctx = calloc(1, sizeof(*w.ctx));
    w.ctx->db = (uint8_t *)w.db;
    w.ctx->features = SG_FEATURE_SEND_INV;
    w.ctx->max_inline = SG_MAX_INLINE;
    w.ctx->max_sq_sge = SG_SQ_MAX_SGE;
    w.ctx->max_rq_sge = SG_RQ_MAX_SGE;
    w.spd.ibpd.context = &w.ctx->vctx.context;
    w.spd.ibpd.context->device = &w.device;
    pthread_mutex_init(&w.ctx->qp_mutex, NULL);
    w.cq = sgp_create_cq(w.spd.ibpd.context, 40, NULL, 0);
    T_NOT_NULL(w.cq);
}

static void world_fini(void)
{
    T_EQ_INT(sgp_destroy_cq(w.cq), 0);
    T_EQ_U64(kernel.live_qps, 0);
    T_EQ_U64(kernel.live_cqs, 0);
    T_EQ_U64(kernel.live_srqs, 0);
    T_EQ_U64(kernel.live_mrs, 0);
    T_EQ_U64(kernel.live_mws, 0);
    T_EQ_U64(kernel.live_bufs, 0);
    for (unsigned int i = 0; i < SGP_QP_ROOT_SIZE; i++) {
        free(atomic_load(&w.ctx->qp_root[i]));
    }
    free(w.ctx);
}

static struct ibv_qp_init_attr_ex qp_attr(uint32_t wrs, uint32_t sges, uint32_t inl)
{
    return (struct ibv_qp_init_attr_ex){
        .send_cq = w.cq,
        .recv_cq = w.cq,
        .pd = &w.spd.ibpd,
        .cap = { wrs, wrs, sges, sges, inl },
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags =
            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
            (w.ctx->features & SG_FEATURE_SEND_INV ? IBV_QP_EX_WITH_SEND_WITH_INV : 0),
    };
}

static T_UNUSED struct sgp_qp *make_qp(uint32_t wrs, uint32_t sges, uint32_t inl)
{
    struct ibv_qp_init_attr_ex attr = qp_attr(wrs, sges, inl);
    struct ibv_qp *qp = sgp_create_qp_ex(w.spd.ibpd.context, &attr);

    T_NOT_NULL(qp);
    return to_sgp_qp(qp);
}

static T_UNUSED void complete(uint32_t qpn, uint64_t wr_id, uint32_t wr_index, uint8_t opcode,
                              uint8_t flags, uint8_t status)
{
    struct sgp_cq *cq = to_sgp_cq(w.cq);
    struct sg_cqe *cqe = &cq->ring[w.device_pi & (cq->size - 1)];

    *cqe = (struct sg_cqe){
        .wr_id = htole64(wr_id),
        .qpn = htole32(qpn),
        .byte_len = htole32(100),
        .inv_stag = htole32(0x55),
        .timestamp = htole64(1000 + w.device_pi),
        .wr_index = htole32(wr_index),
        .status = status,
        .opcode = opcode,
        .flags_phase = flags | (w.device_pi / cq->size % 2 ? 0 : SG_CQE_PHASE),
    };
    w.device_pi++;
}

static T_UNUSED uint64_t db(enum sg_doorbell which)
{
    return le64toh(w.db[which / 8]);
}

static T_UNUSED uint64_t db_of(uint32_t low, uint32_t index)
{
    return (uint64_t)index << 32 | low;
}

static T_UNUSED uint32_t record(void)
{
    return le32toh(to_sgp_cq(w.cq)->record->consumer_index);
}

static T_UNUSED struct sg_wqe_hdr *sqe(struct sgp_qp *qp, uint32_t index)
{
    return sgp_ring_slot(&qp->sq, index);
}

#endif
