/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Atomic operations, immediate data, and memory of every kind: zero-based regions, regions that are
 * registered again, regions of a dma-buf, windows of both types.
 *
 * verbs_memory ADDRESS [PART-OF-NAME]...: ADDRESS is that of this machine's adapter.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_pair.h"

/* A request of a that succeeds. */
static void rdma_ok(enum ibv_wr_opcode op, uint64_t at, uint32_t len, uint32_t rkey, uint64_t addr)
{
    T_EQ_INT(pair_rdma(&w.a, op, at, len, rkey, addr), 0);
    pair_expect_ok(w.a.cq, op == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
}

/*
 * Requests that the peer must refuse.  A Write completes before its refusal is known, so the Read
 * behind it fails, or finds the connection closed already.
 */
static void refused(enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr, uint32_t len)
{
    struct ibv_wc wc;

    T_EQ_INT(pair_rdma(&w.a, op, 0, len, rkey, addr), 0);
    if (op == IBV_WR_RDMA_WRITE) {
        pair_rdma(&w.a, IBV_WR_RDMA_READ, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf);
    }
    do {
        wc = pair_wait(w.a.cq);
    } while (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE);
    if (op != IBV_WR_RDMA_WRITE || wc.status != IBV_WC_WR_FLUSH_ERR) {
        T_EQ_U64(wc.status, pair_terminates() ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
    }
}

/* ---- atomics ---- */

static uint64_t *word_of(struct verbs_side *s, uint64_t at)
{
    return (uint64_t *)(void *)(s->buf + at);
}

static uint64_t atomic(enum ibv_wr_opcode op, uint64_t at, uint64_t compare_add, uint64_t swap)
{
    struct ibv_sge sge = { (uintptr_t)w.a.buf, 8, w.a.mr->lkey };
    struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1 };

    wr.wr.atomic.remote_addr = (uintptr_t)w.b.buf + at;
    wr.wr.atomic.rkey = w.b.mr->rkey;
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    T_EQ_INT(pair_post(&w.a, &wr), 0);
    T_EQ_U64(pair_expect_ok(w.a.cq,
                            op == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD)
                 .byte_len,
             8);
    return *word_of(&w.a, 0);
}

static void atomic__values(void)
{
    pair_connect(NULL);
    T_EQ_U64(w.attr.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
    *word_of(&w.b, 64) = 0xfffffffffffffffe;
    T_EQ_U64(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 5, 99), 0xfffffffffffffffe);
    T_EQ_U64(*word_of(&w.b, 64), 3);
    T_EQ_U64(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 64, 4, 77), 3);
    T_EQ_U64(*word_of(&w.b, 64), 3);
    T_EQ_U64(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 64, 3, 77), 3);
    T_EQ_U64(*word_of(&w.b, 64), 77);
    T_EQ_U64(*word_of(&w.b, 56), 0);
    T_EQ_U64(*word_of(&w.b, 72), 0);
}

static void atomic__masked(void)
{
    struct sgdv_cmp_swp cs = { 0x34, 0xff, 0xab00, 0xff00 };
    struct sgdv_device_attr attr;

    pair_connect(NULL);
    T_EQ_INT(sgdv_query_device(w.ctx, &attr, sizeof(attr)), 0);
    T_TRUE(attr.caps & SGDV_CAP_MASKED_ATOMICS);
    *word_of(&w.b, 0) = 0x1234;
    *word_of(&w.b, 8) = 0xffffffff00000001;
    ibv_wr_start(w.a.qpx);
    w.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    sgdv_wr_masked_cmp_swp(w.a.qpx, w.b.mr->rkey, (uintptr_t)w.b.buf, &cs);
    ibv_wr_set_sge(w.a.qpx, w.a.mr->lkey, (uintptr_t)w.a.buf, 8);
    sgdv_wr_masked_fetch_add(w.a.qpx, w.b.mr->rkey, (uintptr_t)w.b.buf + 8, 0x100000001,
                             0x8000000080000000);
    ibv_wr_set_sge(w.a.qpx, w.a.mr->lkey, (uintptr_t)w.a.buf + 8, 8);
    T_EQ_INT(ibv_wr_complete(w.a.qpx), 0);
    pair_expect_ok(w.a.cq, IBV_WC_COMP_SWAP);
    pair_expect_ok(w.a.cq, IBV_WC_FETCH_ADD);
    T_EQ_U64(*word_of(&w.a, 0), 0x1234);
    T_EQ_U64(*word_of(&w.b, 0), 0xab34);
    T_EQ_U64(*word_of(&w.a, 8), 0xffffffff00000001);
    T_EQ_U64(*word_of(&w.b, 8), 0x0000000000000002);
}

static void atomic__refused(void)
{
    static const struct {
        const char *what;
        int access;
        uint64_t at;
        enum ibv_wc_status status;
    } rows[] = {
        { "misaligned", PAIR_ALL, 4, IBV_WC_REM_OP_ERR },
        { "no right", PAIR_ALL & ~IBV_ACCESS_REMOTE_ATOMIC, 0, IBV_WC_REM_ACCESS_ERR },
        { "beyond", PAIR_ALL, 4096, IBV_WC_REM_ACCESS_ERR },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_sge sge = { 0 };
        struct ibv_send_wr wr = {
            .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
            .sg_list = &sge,
            .num_sge = 1,
        };
        struct ibv_mr *mr;

        pair_connect(NULL);
        T_CONTEXT("%s", rows[i].what);
        mr = ibv_reg_mr(w.pd, w.b.buf, 4096, rows[i].access);
        T_NOT_NULL(mr);
        sge = (struct ibv_sge){ (uintptr_t)w.a.buf, 8, w.a.mr->lkey };
        wr.wr.atomic.remote_addr = (uintptr_t)w.b.buf + rows[i].at;
        wr.wr.atomic.rkey = mr->rkey;
        wr.wr.atomic.compare_add = 1;
        T_EQ_INT(pair_post(&w.a, &wr), 0);
        pair_expect(w.a.cq, rows[i].status);
        T_EQ_U64(*word_of(&w.b, 0), 0);
        T_EQ_U64(*word_of(&w.b, 8), 0);
        pair_close();
        T_EQ_INT(ibv_dereg_mr(mr), 0);
    }
}

/* ---- immediate data ---- */

static void imm__arrives(void)
{
    const uint32_t value = htobe32(0xdeadbeef);
    struct ibv_sge sge;
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .imm_data = value };
    struct ibv_wc wc;

    pair_connect(NULL);
    for (int i = 0; i < 3; i++) {
        T_EQ_INT(pair_recv(&w.b, 4096, 64), 0);
    }
    sge = (struct ibv_sge){ (uintptr_t)w.a.buf, 1000, w.a.mr->lkey };
    memset(w.a.buf, 0x5a, 1000);
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.wr.rdma.remote_addr = (uintptr_t)w.b.buf;
    wr.wr.rdma.rkey = w.b.mr->rkey;
    for (int i = 0; i < 3; i++) {
        T_CONTEXT("message %d", i);
        T_EQ_INT(pair_post(&w.a, &wr), 0);
        pair_expect_ok(w.a.cq, i < 2 ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
        wc = pair_expect_ok(w.b.cq, IBV_WC_RECV_RDMA_WITH_IMM);
        T_EQ_U64(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
        T_EQ_U64(wc.imm_data, value);
        T_EQ_U64(wc.byte_len, i ? 0 : 1000);
        sge.length = 0;
        wr.opcode = i ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM;
    }
    T_EQ_MEM(w.b.buf, w.a.buf, 1000);
    T_EQ_U64(w.b.buf[1000], 0);
    /* The library refuses what the message cannot carry. */
    sge.length = 1;
    T_EQ_INT(pair_post(&w.a, &wr), EOPNOTSUPP);
}

/* ---- regions ---- */

static void mr__zero_based(void)
{
    struct ibv_sge sge = { 16, 8, 0 };
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };
    struct ibv_mr *far, *near;

    pair_connect(NULL);
    far = ibv_reg_mr(w.pd, w.b.buf + 100, 8192, PAIR_ALL | IBV_ACCESS_ZERO_BASED);
    near = ibv_reg_mr(w.pd, w.a.buf + 300, 100, IBV_ACCESS_ZERO_BASED);
    T_TRUE(far && near);
    memset(w.a.buf + 316, 0x77, 8);
    sge.lkey = near->lkey;
    wr.wr.rdma.rkey = far->rkey;
    wr.wr.rdma.remote_addr = 5000;
    T_EQ_INT(pair_post(&w.a, &wr), 0);
    pair_expect_ok(w.a.cq, IBV_WC_RDMA_WRITE);
    rdma_ok(IBV_WR_RDMA_READ, 0, 8, w.b.mr->rkey, (uintptr_t)w.b.buf);
    T_EQ_MEM(w.b.buf + 5100, w.a.buf + 316, 8);
    refused(IBV_WR_RDMA_WRITE, far->rkey, 8185, 8);
    pair_close();
    T_EQ_INT(ibv_dereg_mr(far), 0);
    T_EQ_INT(ibv_dereg_mr(near), 0);
}

static void mr__iova(void)
{
    const uint64_t iova = 0x123400000000;
    struct ibv_mr *mr;

    pair_connect(NULL);
    mr = ibv_reg_mr_iova(w.pd, w.b.buf, 65536, iova, PAIR_ALL | IBV_ACCESS_RELAXED_ORDERING);
    T_NOT_NULL(mr);
    memset(w.a.buf, 0x31, 4096);
    rdma_ok(IBV_WR_RDMA_WRITE, 0, 4096, mr->rkey, iova + 60000);
    rdma_ok(IBV_WR_RDMA_READ, 8192, 4096, mr->rkey, iova + 60000);
    T_EQ_MEM(w.b.buf + 60000, w.a.buf, 4096);
    refused(IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)w.b.buf, 8);
    pair_close();
    T_EQ_INT(ibv_dereg_mr(mr), 0);
}

/* Each combination of changes; everything else stays. */
static void mr__registered_anew(void)
{
    for (int flags = 1; flags < 8; flags++) {
        struct ibv_pd *other = ibv_alloc_pd(w.ctx);
        uint8_t *at = w.b.buf, *to = w.b.buf + 8192;
        struct ibv_mr *mr;
        uint32_t key;

        T_CONTEXT("flags %d", flags);
        pair_connect(NULL);
        /* The queue pair can use this region only after what the flags change. */
        mr = ibv_reg_mr(flags & IBV_REREG_MR_CHANGE_PD ? other : w.pd, at, 4096,
                        flags & IBV_REREG_MR_CHANGE_ACCESS ? 0 : PAIR_ALL);
        T_NOT_NULL(mr);
        key = mr->rkey;
        T_EQ_INT(ibv_rereg_mr(mr, flags, flags & IBV_REREG_MR_CHANGE_PD ? w.pd : NULL,
                              flags & IBV_REREG_MR_CHANGE_TRANSLATION ? to : NULL,
                              flags & IBV_REREG_MR_CHANGE_TRANSLATION ? 100 : 0,
                              flags & IBV_REREG_MR_CHANGE_ACCESS ? PAIR_ALL : 0),
                 0);
        if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
            at = to;
            T_TRUE(mr->addr == to && mr->length == 100);
        }
        /* Pages that were pinned only for reading are pinned again. */
        T_TRUE((mr->rkey == key) == (flags == IBV_REREG_MR_CHANGE_PD));
        memset(w.a.buf, 0x40 + flags, 100);
        rdma_ok(IBV_WR_RDMA_WRITE, 0, 100, mr->rkey, (uintptr_t)at);
        rdma_ok(IBV_WR_RDMA_READ, 4096, 100, mr->rkey, (uintptr_t)at);
        T_EQ_MEM(at, w.a.buf, 100);
        pair_close();
        T_EQ_INT(ibv_dereg_mr(mr), 0);
        T_EQ_INT(ibv_dealloc_pd(other), 0);
    }
}

static void mr__dma_buf(void)
{
    enum { SIZE = 1 << 16 };
    struct udmabuf_create create = { .size = SIZE };
    int udmabuf = open("/dev/udmabuf", O_RDWR), fd;
    struct ibv_mr *mr;
    uint8_t *view;

    if (udmabuf < 0) {
        T_SKIP("no /dev/udmabuf");
    }
    create.memfd = (uint32_t)memfd_create("dmabuf", MFD_ALLOW_SEALING);
    T_EQ_INT(ftruncate((int)create.memfd, SIZE), 0);
    T_EQ_INT(fcntl((int)create.memfd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    fd = ioctl(udmabuf, UDMABUF_CREATE, &create);
    T_TRUE(fd >= 0);
    view = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)create.memfd, 0);
    pair_connect(NULL);
    mr = ibv_reg_dmabuf_mr(w.pd, 4096, SIZE - 4096, 0x10000, fd,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ);
    T_NOT_NULL(mr);
    memset(w.a.buf, 0x66, 8192);
    rdma_ok(IBV_WR_RDMA_WRITE, 0, 8192, mr->rkey, 0x10000 + 100);
    rdma_ok(IBV_WR_RDMA_READ, 8192, 8192, mr->rkey, 0x10000 + 100);
    T_EQ_MEM(view + 4196, w.a.buf, 8192);
    T_EQ_U64(view[4195], 0);
    T_EQ_INT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0, 1);
    refused(IBV_WR_RDMA_WRITE, mr->rkey, 0x10000 + SIZE - 4096 - 4, 8);
    pair_close();
    T_EQ_INT(ibv_dereg_mr(mr), 0);
    T_NULL(ibv_reg_dmabuf_mr(w.pd, 4096, SIZE, 0x10000, fd, 0)); /* longer than it is */
    T_NULL(ibv_reg_dmabuf_mr(w.pd, 0, 4096, 0, udmabuf, 0));     /* no dma-buf */
    munmap(view, SIZE);
    close(fd);
    close((int)create.memfd);
    close(udmabuf);
}

static void mr__cannot_be(void)
{
    const struct {
        size_t length;
        int access, want;
    } rows[] = {
        { 0, PAIR_ALL, EINVAL },
        { 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL },
        { 4096, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
        { 4096, 1 << 12, EINVAL },
    };
    void *page;

    pair_close();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("row %zu", i);
        errno = 0;
        T_NULL(ibv_reg_mr(w.pd, w.a.buf, rows[i].length, rows[i].access));
        T_EQ_INT(errno, rows[i].want);
    }
    errno = 0;
    T_NULL(ibv_reg_mr(w.pd, (void *)0x1000, 4096, 0)); /* nobody's memory */
    T_EQ_INT(errno, EFAULT);
    /* Memory that the process may only read: the adapter must not write there for it. */
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    T_TRUE(page != MAP_FAILED);
    T_NULL(ibv_reg_mr(w.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE));
    T_EQ_INT(errno, EFAULT);
    errno = 0;
    T_NULL(ibv_reg_mr(w.pd, (void *)0xffff888000000000, 4096, 0)); /* the kernel's */
    T_TRUE(errno != 0);
    munmap(page, 4096);
}

/* ---- on demand ---- */

enum { ODP_SIZE = 1 << 21 };

static uint8_t *fresh_memory(void)
{
    void *p = mmap(NULL, ODP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    T_TRUE(p != MAP_FAILED);
    madvise(p, ODP_SIZE, MADV_NOHUGEPAGE);
    return p;
}

/* Remote and local accesses to pages that are absent, appear, and are freed again. */
static void odp_case(bool implicit)
{
    uint8_t *mem = fresh_memory();
    uint64_t at = (uintptr_t)mem + 4001;
    struct ibv_sge sge = { (uintptr_t)mem + 500000, 9000, 0 };
    struct ibv_send_wr swr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 };
    struct ibv_mr *mr;

    pair_connect(NULL);
    mr = ibv_reg_mr(w.pd, implicit ? NULL : mem, implicit ? SIZE_MAX : ODP_SIZE,
                    PAIR_ALL | IBV_ACCESS_ON_DEMAND);
    T_NOT_NULL(mr);
    for (int round = 0; round < 3; round++) {
        T_CONTEXT("round %d", round);
        memset(w.a.buf, 0x21 + round, 100000);
        rdma_ok(IBV_WR_RDMA_WRITE, 0, 100000, mr->rkey, at);
        rdma_ok(IBV_WR_RDMA_READ, 200000, 100000, mr->rkey, at);
        T_EQ_MEM(mem + 4001, w.a.buf, 100000);
        T_EQ_MEM(w.a.buf + 200000, w.a.buf, 100000);
        T_EQ_U64(mem[4000], 0);
        /* The pages go back to the kernel: the adapter sees the new ones. */
        T_EQ_INT(madvise(mem, ODP_SIZE, MADV_DONTNEED), 0);
        rdma_ok(IBV_WR_RDMA_READ, 200000, 100000, mr->rkey, at);
        T_EQ_U64(w.a.buf[200000], 0);
        T_EQ_U64(w.a.buf[299999], 0);
        mem[4001] = 0x77;
        rdma_ok(IBV_WR_RDMA_READ, 200000, 8, mr->rkey, at);
        T_EQ_U64(w.a.buf[200000], 0x77);
        mem[4001] = 0;
    }
    /* Sends from this memory, and receives there. */
    sge.lkey = mr->lkey;
    T_EQ_INT(pair_recv(&w.b, 0, 9000), 0);
    T_EQ_INT(pair_post(&w.a, &swr), 0);
    pair_expect_ok(w.a.cq, IBV_WC_SEND);
    pair_expect_ok(w.b.cq, IBV_WC_RECV);
    T_EQ_MEM(w.b.buf, mem + 500000, 9000);
    {
        struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *bad;

        T_EQ_INT(madvise(mem, ODP_SIZE, MADV_DONTNEED), 0);
        memset(w.a.buf, 0x55, 9000);
        T_EQ_INT(ibv_post_recv(w.b.qp, &rwr, &bad), 0);
        T_EQ_INT(pair_send(&w.a, 0, 9000), 0);
        pair_expect_ok(w.b.cq, IBV_WC_RECV);
        pair_expect_ok(w.a.cq, IBV_WC_SEND);
        T_EQ_MEM(mem + 500000, w.a.buf, 9000);
    }
    /* Memory that is unmapped for good. */
    T_EQ_INT(munmap(mem, ODP_SIZE), 0);
    refused(IBV_WR_RDMA_READ, mr->rkey, at, 8);
    pair_close();
    T_EQ_INT(ibv_dereg_mr(mr), 0);
}

static void odp__explicit(void)
{
    T_TRUE(w.attr.odp_caps.general_caps & IBV_ODP_SUPPORT);
    odp_case(false);
}

static void odp__implicit(void)
{
    T_TRUE(w.attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
    odp_case(true);
}

static void odp__prefetch(void)
{
    uint8_t *mem = fresh_memory();
    struct ibv_sge sge = { (uintptr_t)mem + 100, 1 << 20, 0 };
    unsigned char there[1];
    struct ibv_mr *mr;

    pair_connect(NULL);
    mr = ibv_reg_mr(w.pd, mem, ODP_SIZE, PAIR_ALL | IBV_ACCESS_ON_DEMAND);
    T_NOT_NULL(mr);
    sge.lkey = mr->lkey;
    T_EQ_INT(mincore(mem, 4096, there), 0);
    T_EQ_INT(
        ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
        0);
    T_EQ_INT(mincore(mem + 4096, 4096, there), 0);
    T_EQ_U64(there[0] & 1, 1);
    rdma_ok(IBV_WR_RDMA_WRITE, 0, 100000, mr->rkey, (uintptr_t)mem);
    rdma_ok(IBV_WR_RDMA_READ, 0, 8, mr->rkey, (uintptr_t)mem);
    sge.length = 2 * ODP_SIZE;
    T_EQ_INT(ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
             EFAULT);
    sge.lkey = w.a.mr->lkey; /* not on demand */
    T_EQ_INT(ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), ENOENT);
    T_EQ_INT(ibv_dereg_mr(mr), 0);
    /* ibv_advise_mr() takes addresses of the region, not of the process. */
    mr = ibv_reg_mr_iova(w.pd, mem, ODP_SIZE, 1ull << 40, PAIR_ALL | IBV_ACCESS_ON_DEMAND);
    T_NOT_NULL(mr);
    T_EQ_INT(madvise(mem, ODP_SIZE, MADV_DONTNEED), 0);
    sge = (struct ibv_sge){ (1ull << 40) + 8192, 4096, mr->lkey };
    T_EQ_INT(
        ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
        0);
    T_EQ_INT(mincore(mem + 8192, 4096, there), 0);
    T_EQ_U64(there[0] & 1, 1);
    T_EQ_INT(mincore(mem, 4096, there), 0);
    T_EQ_U64(there[0] & 1, 0);
    sge.addr = (uintptr_t)mem + 8192;
    T_EQ_INT(ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
             EFAULT);
    pair_close();
    T_EQ_INT(ibv_dereg_mr(mr), 0);
    munmap(mem, ODP_SIZE);
}

/* A file on persistent memory, without a page cache, can only be registered on demand. */
static void odp__file(void)
{
    enum { SIZE = 1 << 20 };
    const char *path = getenv("VERBS_FILE");
    uint8_t *view, back[5000];
    struct ibv_mr *mr;
    int fd;

    if (!path) {
        T_SKIP("VERBS_FILE names no file");
    }
    fd = open(path, O_RDWR | O_CREAT, 0600);
    T_TRUE(fd >= 0);
    T_EQ_INT(ftruncate(fd, SIZE), 0);
    view = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    T_TRUE(view != MAP_FAILED);
    pair_connect(NULL);
    T_NULL(ibv_reg_mr(w.pd, view, SIZE, PAIR_ALL));
    mr = ibv_reg_mr(w.pd, view, SIZE, PAIR_ALL | IBV_ACCESS_ON_DEMAND);
    T_NOT_NULL(mr);
    memset(w.a.buf, 0x3c, sizeof(back));
    rdma_ok(IBV_WR_RDMA_WRITE, 0, sizeof(back), mr->rkey, (uintptr_t)view + 12345);
    rdma_ok(IBV_WR_RDMA_READ, 8192, sizeof(back), mr->rkey, (uintptr_t)view + 12345);
    T_EQ_MEM(w.a.buf + 8192, w.a.buf, sizeof(back));
    T_EQ_INT(pread(fd, back, sizeof(back), 12345), sizeof(back));
    T_EQ_MEM(back, w.a.buf, sizeof(back));
    /* Its blocks are freed, so the adapter loses access to them. */
    T_EQ_INT(ftruncate(fd, 0), 0);
    refused(IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)view + 12345, 8);
    pair_close();
    T_EQ_INT(ibv_dereg_mr(mr), 0);
    munmap(view, SIZE);
    close(fd);
}

static void reserve_huge_pages(int count)
{
    FILE *file = fopen("/proc/sys/vm/nr_hugepages", "w");

    T_NOT_NULL(file);
    fprintf(file, "%d\n", count);
    T_EQ_INT(fclose(file), 0);
}

/* Each page of the region is a huge one; accesses reach over the border of two. */
static void odp__huge_pages(void)
{
    enum { HUGE_SIZE = 2 << 20, COUNT = 3, SIZE = COUNT * HUGE_SIZE, AT = 2 * HUGE_SIZE - 50000 };
    uint8_t *mem;
    struct ibv_mr *mr;

    reserve_huge_pages(COUNT);
    mem =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    T_TRUE(mem != MAP_FAILED);
    pair_connect(NULL);
    mr = ibv_reg_mr(w.pd, mem, SIZE, PAIR_ALL | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB);
    T_NOT_NULL(mr);
    for (int round = 0; round < 2; round++) {
        T_CONTEXT("round %d", round);
        memset(w.a.buf, 0x31 + round, 100000);
        rdma_ok(IBV_WR_RDMA_WRITE, 0, 100000, mr->rkey, (uintptr_t)mem + AT);
        rdma_ok(IBV_WR_RDMA_READ, 200000, 100000, mr->rkey, (uintptr_t)mem + AT);
        T_EQ_MEM(mem + AT, w.a.buf, 100000);
        T_EQ_MEM(w.a.buf + 200000, w.a.buf, 100000);
        T_EQ_U64(mem[AT - 1], 0);
        T_EQ_U64(mem[AT + 100000], 0);
        T_EQ_U64(mem[0], 0);
        T_EQ_INT(madvise(mem, SIZE, MADV_DONTNEED), 0);
        rdma_ok(IBV_WR_RDMA_READ, 200000, 100000, mr->rkey, (uintptr_t)mem + AT);
        T_EQ_U64(w.a.buf[200000], 0);
        T_EQ_U64(w.a.buf[299999], 0);
    }
    pair_close();
    T_EQ_INT(ibv_dereg_mr(mr), 0);
    munmap(mem, SIZE);
    reserve_huge_pages(0);
}

/* ---- windows ---- */

static struct ibv_mw *make_window(enum ibv_mw_type type)
{
    struct ibv_mw *mw = ibv_alloc_mw(w.pd, type);

    T_NOT_NULL(mw);
    return mw;
}

static void window__type_1(void)
{
    struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
    struct ibv_mw *mw;
    uint32_t old;

    pair_connect(NULL);
    T_TRUE(w.attr.orig_attr.max_mw > 0);
    T_TRUE(w.attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
    mw = make_window(IBV_MW_TYPE_1);
    bind.bind_info = (struct ibv_mw_bind_info){ w.b.mr, (uintptr_t)w.b.buf + 1000, 500,
                                                IBV_ACCESS_REMOTE_WRITE };
    T_EQ_INT(ibv_bind_mw(w.b.qp, mw, &bind), 0);
    pair_expect_ok(w.b.cq, IBV_WC_BIND_MW);
    memset(w.a.buf, 0x12, 500);
    rdma_ok(IBV_WR_RDMA_WRITE, 0, 500, mw->rkey, (uintptr_t)w.b.buf + 1000);
    rdma_ok(IBV_WR_RDMA_READ, 4096, 500, w.b.mr->rkey, (uintptr_t)w.b.buf + 1000);
    T_EQ_MEM(w.b.buf + 1000, w.a.buf, 500);
    /* Bound again, with the first octet at 0: the former binding is gone. */
    old = mw->rkey;
    bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
    T_EQ_INT(ibv_bind_mw(w.b.qp, mw, &bind), 0);
    pair_expect_ok(w.b.cq, IBV_WC_BIND_MW);
    T_TRUE(mw->rkey != old);
    rdma_ok(IBV_WR_RDMA_WRITE, 0, 500, mw->rkey, 0);
    refused(IBV_WR_RDMA_WRITE, old, (uintptr_t)w.b.buf + 1000, 8);
    /* A region stays while a window is bound to it. */
    T_EQ_INT(ibv_dereg_mr(w.b.mr), EBUSY);
    T_EQ_INT(ibv_dealloc_mw(mw), 0);
    pair_close();
}

static void invalidated_by_peer(uint32_t rkey)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey };
    struct ibv_wc wc;

    T_EQ_INT(pair_recv(&w.b, 4096, 64), 0);
    T_EQ_INT(pair_post(&w.a, &wr), 0);
    pair_expect_ok(w.a.cq, IBV_WC_SEND);
    wc = pair_expect_ok(w.b.cq, IBV_WC_RECV);
    T_EQ_U64(wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
    T_EQ_U64(wc.invalidated_rkey, rkey);
}

static void window__type_2(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, inv = { .opcode = IBV_WR_LOCAL_INV };
    struct ibv_mw *mw;

    pair_connect(NULL);
    T_TRUE(w.attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    mw = make_window(IBV_MW_TYPE_2);
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info =
        (struct ibv_mw_bind_info){ w.b.mr, (uintptr_t)w.b.buf, 64, IBV_ACCESS_REMOTE_READ };
    T_EQ_INT(pair_post(&w.b, &wr), 0);
    pair_expect_ok(w.b.cq, IBV_WC_BIND_MW);
    rdma_ok(IBV_WR_RDMA_READ, 0, 64, wr.bind_mw.rkey, (uintptr_t)w.b.buf);
    inv.invalidate_rkey = wr.bind_mw.rkey;
    T_EQ_INT(pair_post(&w.b, &inv), 0);
    pair_expect_ok(w.b.cq, IBV_WC_LOCAL_INV);
    if (pair_invalidates()) {
        wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.rkey);
        T_EQ_INT(pair_post(&w.b, &wr), 0);
        pair_expect_ok(w.b.cq, IBV_WC_BIND_MW);
        invalidated_by_peer(wr.bind_mw.rkey);
    }
    refused(IBV_WR_RDMA_READ, wr.bind_mw.rkey, (uintptr_t)w.b.buf, 8);
    pair_close();
    T_EQ_INT(ibv_dealloc_mw(mw), 0);
}

/* Bindings that the device refuses with a completion that ends the queue pair. */
static void window__cannot_be_bound(void)
{
    for (int i = 0; i < 4; i++) {
        struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
        struct ibv_mr *mr;
        struct ibv_mw *mw;

        T_CONTEXT("row %d", i);
        pair_connect(NULL);
        mw = make_window(IBV_MW_TYPE_2);
        mr = ibv_reg_mr(w.pd, w.b.buf, 4096,
                        i == 0 ? PAIR_ALL : /* not bindable */
                            i == 1 ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND
                        : i == 2   ? IBV_ACCESS_MW_BIND
                                   : PAIR_ALL | IBV_ACCESS_MW_BIND);
        T_NOT_NULL(mr);
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = i == 3 ? w.b.mr->rkey : ibv_inc_rkey(mw->rkey); /* no window */
        wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
            mr, (uintptr_t)w.b.buf, i == 1 ? 4097 : 8, /* too long */
            IBV_ACCESS_REMOTE_WRITE,                   /* of what is not writable: row 2 */
        };
        T_EQ_INT(pair_post(&w.b, &wr), 0);
        pair_expect(w.b.cq, IBV_WC_MW_BIND_ERR);
        pair_close();
        T_EQ_INT(ibv_dealloc_mw(mw), 0);
        T_EQ_INT(ibv_dereg_mr(mr), 0);
    }
}

static const struct t_case cases[] = {
    { "atomic: values", atomic__values },
    { "atomic: masks", atomic__masked },
    { "atomic: the peer refuses", atomic__refused },
    { "imm: arrives as it is", imm__arrives },
    { "mr: zero-based", mr__zero_based },
    { "mr: at another address", mr__iova },
    { "mr: registered anew", mr__registered_anew },
    { "mr: of a dma-buf", mr__dma_buf },
    { "mr: what cannot be", mr__cannot_be },
    { "odp: a region", odp__explicit },
    { "odp: the address space", odp__implicit },
    { "odp: prefetch", odp__prefetch },
    { "odp: a file on persistent memory", odp__file },
    { "odp: huge pages", odp__huge_pages },
    { "window: type 1", window__type_1 },
    { "window: type 2", window__type_2 },
    { "window: what cannot be bound", window__cannot_be_bound },
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    pair_open(argv[1]);
    return t_main(cases, sizeof(cases) / sizeof(cases[0]), argc - 1, argv + 1);
}
