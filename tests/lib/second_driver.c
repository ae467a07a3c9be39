/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A second driver of the bring-up tests, written from docs/manual alone.
 *
 * Structures of the adapter are no C structures here: put() and get() take the offsets and widths
 * of the manual's tables, which makes the order of octets and the lack of padding explicit.
 *
 * Commands are executed one at a time and polled for.  Async events stay in their ring until
 * next_event() takes them, so the ring is large.
 */
#include "bring_up.h"

#include <endian.h>
#include <string.h>

/* Registers and their bits, and doorbells (registers.md). */
enum {
    REG_MAGIC = 0x000,
    REG_VERSION = 0x004,
    REG_CTRL = 0x008,
    REG_STATUS = 0x00c,
    REG_VECTORS = 0x014,
    REG_MAC_LO = 0x018,
    REG_MAC_HI = 0x01c,
    REG_GUID = 0x020,
    REG_TEST_SCRATCH = 0x040,
    REG_TEST_IRQ = 0x044,
    REG_TEST_DMA_ADDR = 0x048,
    REG_TEST_DMA_LEN = 0x050,
    REG_TEST_DMA_CMD = 0x054,
    REG_TEST_DMA_STATUS = 0x058,
    REG_ASQ_BASE = 0x080,
    REG_ACQ_BASE = 0x088,
    REG_ADMIN_SIZE = 0x090,
    REG_ADMIN_DB = 0x094,
    REG_ADMIN_CI = 0x098,
    REG_AEQ_BASE = 0x0a0,
    REG_AEQ_SIZE = 0x0a8,
    REG_EQ_DB = 0x1000,

    MAGIC = 0x48475453,
    VERSION_MAJOR = 1,
    CTRL_ENABLE = 0x1,
    CTRL_RESET = 0x2,
    STATUS_READY = 0x1,
    STATUS_FATAL = 0x2,
    TEST_DMA_FILL = 1,
    TEST_DMA_INVERT = 2,
    EQ_DB_CI_MASK = 0xffffff,

    DB_SQ = 0x00,
    DB_RQ = 0x08,
    DB_CQ_ARM = 0x18,
};
#define EQ_DB_ARM 0x80000000u
#define ALL_ONES 0xffffffffu

/* Commands, their statuses and bits (commands.md). */
enum {
    ADMIN_QUERY_CAPS = 0x01,
    ADMIN_QUERY_STATS = 0x02,
    ADMIN_CREATE_EQ = 0x03,
    ADMIN_SET_ADDR = 0x05,
    ADMIN_CREATE_PD = 0x10,
    ADMIN_DESTROY_PD = 0x11,
    ADMIN_REG_MR = 0x12,
    ADMIN_DEREG_MR = 0x13,
    ADMIN_CREATE_CQ = 0x18,
    ADMIN_DESTROY_CQ = 0x19,
    ADMIN_CREATE_QP = 0x20,
    ADMIN_MODIFY_QP = 0x21,
    ADMIN_QUERY_QP = 0x22,
    ADMIN_DESTROY_QP = 0x23,
    ADMIN_LISTEN = 0x30,
    ADMIN_UNLISTEN = 0x31,
    ADMIN_CONNECT = 0x32,
    ADMIN_ACCEPT = 0x33,
    ADMIN_REJECT = 0x34,
    ADMIN_CM_DATA = 0x35,

    STATUS_EINVAL = 2,
    STATUS_ENOMEM = 4,
    ADDR_ADD = 1,
    FAMILY_IPV4 = 4,
    QP_MOD_STATE = 0x01,
    CAPS_SIZE = 128,  /* all that is not reserved */
    STATS_SIZE = 144, /* up to guest_errors */
    CM_DATA_SIZE = 572,
    PRIVATE_DATA_MAX = 512,
    MR_PAGES_MAX = 16777216,
};

/* Entries (queues.md). */
enum {
    ADMIN_CMD_SIZE = 128,
    ADMIN_RSP_SIZE = 64,
    EQE_SIZE = 32,
    CQE_SIZE = 64,
    CQ_RECORD_SIZE = 64,
    WQE_HDR_SIZE = 48,
    RQE_HDR_SIZE = 16,
    SGE_SIZE = 16,
    WQE_STRIDE_MIN = 64,
    PAGE_SHIFT = 12,
    PAGE_SIZE = 4096,
    PAGE_SHIFT_MAX = 30,

    WQE_INLINE = 0x08,
    CQE_PHASE = 0x01,
    CQE_RECV = 0x10,
    WR_SEND = 0,
    WR_SEND_INV = 1,
    WR_READ = 3,
    WR_READ_INV = 4,
    WC_SUCCESS = 0,
    WC_FLUSH_ERR = 4,
    WC_RECV = 0x80,

    EV_COMPLETION = 0x02,
    EV_CQ_ERROR = 0x10,
    EV_QP_FIRST = 0x11,
    EV_QP_LAST = 0x13,
    EV_CM_REPLY = 0x31,
    EV_CM_CLOSED = 0x34,
};

/* Our own sizes.  The block is what the adapter uses from ENABLE on; it is also the test buffer. */
enum {
    ADMIN_ENTRIES = 32,
    AEQ_ENTRIES = 1024,
    CEQ_ENTRIES = 256,
    CEQ = 1,    /* number of the completion event queue */
    DEPTH = 16, /* IRD and ORD */
    QPS = 32,
    CQS = 32,

    BLOCK_ASQ = 0,
    BLOCK_ACQ = PAGE_SIZE,
    BLOCK_AEQ = 2 * PAGE_SIZE,
    BLOCK_CEQ = BLOCK_AEQ + AEQ_ENTRIES * EQE_SIZE,
    BLOCK_DATA = BLOCK_CEQ + CEQ_ENTRIES * EQE_SIZE, /* answers of queries, private data */
    BLOCK_SIZE = BLOCK_DATA + PAGE_SIZE,

    SETUP_LIMIT_MS = 5000,
    COMMAND_LIMIT_MS = 30000,
    WAIT_SLICE_MS = 500, /* how often STATUS is looked at while we wait for an interrupt */
};
#define MS 1000000ull

/* Where the adapter produces only 'ci' counts, the phase bit does the rest. */
struct ring {
    uint8_t *mem;
    uint32_t entries, stride, pi, ci;
};

struct cq {
    uint32_t num; /* 0: the slot is free */
    bool armed;   /* since its last event */
    struct ring ring;
    uint8_t *record; /* behind the ring, in the same piece of memory */
};

struct qp {
    uint32_t num; /* 0: the slot is free */
    uint32_t send_cq, recv_cq;
    struct ring sq, rq; /* one piece of memory, that of 'sq' */
};

struct driver {
    struct bu_machine *m; /* NULL: not started */
    bool known;           /* it is our adapter, so it may be reset */
    bool msix, lost;
    unsigned cq_vector;
    uint8_t *block;
    uint64_t block_bus;
    struct ring asq, acq, aeq, ceq;
    uint16_t cookie;
    uint8_t rsp[ADMIN_RSP_SIZE]; /* of the last command */
    struct bu_caps caps;
    uint32_t ird, ord;
    struct cq cqs[CQS];
    struct qp qps[QPS];
};

/* ---- little-endian fields of 'octets' octets ---- */

static void put(uint8_t *at, unsigned octets, uint64_t v)
{
    for (unsigned i = 0; i < octets; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get(const uint8_t *at, unsigned octets)
{
    uint64_t v = 0;

    while (octets-- > 0) {
        v = v << 8 | at[octets];
    }
    return v;
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)get(at, 4);
}

static uint32_t power_of_two(uint32_t least, uint32_t v)
{
    while (least < v && least < 0x80000000u)
        least *= 2;
    return least;
}

static size_t whole_pages(size_t octets)
{
    return (octets + PAGE_SIZE - 1) & ~(size_t)(PAGE_SIZE - 1);
}

/* ---- the adapter ---- */

static uint32_t reg(struct driver *d, uint32_t offset)
{
    return (uint32_t)d->m->read(d->m, offset, 4);
}

static void set_reg(struct driver *d, uint32_t offset, uint32_t value)
{
    d->m->write(d->m, offset, value, 4);
}

/* What was written to memory must be there before the adapter hears of it. */
#define write_barrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)

static void doorbell(struct driver *d, uint32_t offset, uint32_t number, uint32_t index)
{
    write_barrier();
    if (!d->lost)
        d->m->doorbell(d->m, offset, (uint64_t)index << 32 | number);
}

/* After it the adapter touches no memory, be it there or not: what it had may be freed. */
static void give_up(struct driver *d)
{
    d->lost = true;
    set_reg(d, REG_CTRL, CTRL_RESET);
    reg(d, REG_CTRL);
}

static bool lost(void *p)
{
    struct driver *d = p;
    uint32_t status;

    if (!d->m || d->lost)
        return true;
    status = reg(d, REG_STATUS);
    if (status == ALL_ONES || status & STATUS_FATAL || !(status & STATUS_READY))
        give_up(d);
    return d->lost;
}

static uint8_t *slot(const struct ring *r, uint32_t index)
{
    return r->mem + (size_t)(index & (r->entries - 1)) * r->stride;
}

/* The entry at the consumer index, if the adapter has written it; the rest is read after that. */
static const uint8_t *produced(const struct ring *r)
{
    const uint8_t *e = slot(r, r->ci);
    unsigned phase = __atomic_load_n(e + r->stride - 1, __ATOMIC_ACQUIRE) & 1;

    return phase != (r->ci / r->entries & 1) ? e : NULL;
}

static void set_eq(struct driver *d, unsigned eq, uint32_t ci, uint32_t arm)
{
    set_reg(d, REG_EQ_DB + 4 * eq, (ci & EQ_DB_CI_MASK) | arm);
}

static uint64_t deadline(struct driver *d, unsigned ms)
{
    return d->m->now(d->m) + ms * MS;
}

/* BU_OK: look again.  It returns now and then, because no interrupt tells of all losses. */
static int wait_vector(struct driver *d, unsigned vector, uint64_t end)
{
    uint64_t now = d->m->now(d->m);
    uint64_t ms = now < end ? (end - now + MS - 1) / MS : 0;

    if (ms == 0)
        return BU_TIMEOUT;
    d->m->msix_wait(d->m, vector, ms < WAIT_SLICE_MS ? (unsigned)ms : WAIT_SLICE_MS);
    return lost(d) ? BU_LOST : BU_OK;
}

/* ---- commands ---- */

/* Commands are arrays of 32-bit numbers, from behind the header on; these are larger fields. */
#define WORDS64(v) (uint32_t)(v), (uint32_t)((uint64_t)(v) >> 32)
#define WORDS_PAGES(bus, pages, shift) WORDS64(bus), (uint32_t)(pages), (uint32_t)(shift) << 8
#define WORDS_ADDR(a) \
    FAMILY_IPV4 | (a)->port >> 8 << 16 | ((a)->port & 0xffu) << 24, get32((a)->ip), 0, 0, 0, 0
#define COMMAND(d, opcode, ...) \
    command(d, opcode, (uint32_t[]){ __VA_ARGS__ }, sizeof(uint32_t[]){ __VA_ARGS__ } / 4)

/* The answer is in d->rsp. */
static int command(struct driver *d, uint8_t opcode, const uint32_t *words, size_t n)
{
    const uint8_t *e;
    unsigned step = 1;
    uint64_t end;
    uint8_t *cmd;

    if (lost(d))
        return BU_LOST;
    cmd = slot(&d->asq, d->asq.pi);
    memset(cmd, 0, ADMIN_CMD_SIZE);
    cmd[0] = opcode;
    put(cmd + 2, 2, ++d->cookie);
    for (size_t i = 0; i < n; i++)
        put(cmd + 8 + 4 * i, 4, words[i]);
    write_barrier();
    set_reg(d, REG_ADMIN_DB, ++d->asq.pi);

    end = deadline(d, COMMAND_LIMIT_MS);
    while (!(e = produced(&d->acq))) {
        if (lost(d))
            return BU_LOST;
        if (d->m->now(d->m) >= end) {
            give_up(d);
            return BU_LOST;
        }
        d->m->delay(d->m, step);
        step = step < 1000 ? step * 2 : step;
    }
    memcpy(d->rsp, e, ADMIN_RSP_SIZE);
    set_reg(d, REG_ADMIN_CI, ++d->acq.ci);
    if (get(d->rsp + 60, 2) != d->cookie) {
        give_up(d); /* not our command: nothing that it says can be trusted */
        return BU_LOST;
    }
    return d->rsp[62];
}

/* The answer is at BLOCK_DATA. */
static int query(struct driver *d, uint8_t opcode, uint32_t id, uint32_t octets)
{
    return COMMAND(d, opcode, WORDS64(d->block_bus + BLOCK_DATA), octets, id);
}

static int created(struct driver *d, int result, uint32_t *id)
{
    if (result == BU_OK)
        *id = get32(d->rsp);
    return result;
}

/* ---- bring-up ---- */

static bool reset(struct driver *d)
{
    uint64_t end = deadline(d, SETUP_LIMIT_MS);
    uint32_t ctrl;

    set_reg(d, REG_CTRL, CTRL_RESET);
    while ((ctrl = reg(d, REG_CTRL)) & (CTRL_RESET | CTRL_ENABLE)) {
        if (ctrl == ALL_ONES || d->m->now(d->m) >= end)
            return false;
        d->m->delay(d->m, 100);
    }
    return true;
}

static bool registers_work(struct driver *d)
{
    static const uint32_t values[] = { 0x00000000, 0xffffffff, 0x12345678, 0xa5a55a5a };

    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        set_reg(d, REG_TEST_SCRATCH, values[i]);
        if (reg(d, REG_TEST_SCRATCH) != (uint32_t)~values[i])
            return false;
    }
    return true;
}

/* The block is the buffer, so what is tested is what is used later. */
static bool dma_works(struct driver *d)
{
    static const uint32_t commands[] = { TEST_DMA_FILL, TEST_DMA_INVERT };

    memset(d->block, 0x5a, BLOCK_SIZE);
    write_barrier();
    d->m->write(d->m, REG_TEST_DMA_ADDR, d->block_bus, 8);
    set_reg(d, REG_TEST_DMA_LEN, BLOCK_SIZE);
    for (unsigned c = 0; c < 2; c++) {
        set_reg(d, REG_TEST_DMA_CMD, commands[c]);
        if (reg(d, REG_TEST_DMA_STATUS) != 0)
            return false;
        write_barrier();
        for (size_t i = 0; i < BLOCK_SIZE; i++)
            if (d->block[i] != (uint8_t)(c ? ~i : i))
                return false;
    }
    return true;
}

static bool interrupts_work(struct driver *d)
{
    unsigned vectors = d->cq_vector + 1;

    d->m->msix_enable(d->m, vectors);
    d->msix = true;
    for (unsigned v = 0; v < vectors; v++) {
        set_reg(d, REG_TEST_IRQ, v);
        if (!d->m->msix_wait(d->m, v, SETUP_LIMIT_MS))
            return false;
    }
    return true;
}

static void set_ring(struct ring *r, uint8_t *mem, uint32_t entries, uint32_t stride)
{
    *r = (struct ring){ .mem = mem, .entries = entries, .stride = stride };
}

static bool enable(struct driver *d)
{
    memset(d->block, 0, BLOCK_SIZE);
    set_ring(&d->asq, d->block + BLOCK_ASQ, ADMIN_ENTRIES, ADMIN_CMD_SIZE);
    set_ring(&d->acq, d->block + BLOCK_ACQ, ADMIN_ENTRIES, ADMIN_RSP_SIZE);
    set_ring(&d->aeq, d->block + BLOCK_AEQ, AEQ_ENTRIES, EQE_SIZE);
    set_ring(&d->ceq, d->block + BLOCK_CEQ, CEQ_ENTRIES, EQE_SIZE);
    write_barrier();
    d->m->write(d->m, REG_ASQ_BASE, d->block_bus + BLOCK_ASQ, 8);
    d->m->write(d->m, REG_ACQ_BASE, d->block_bus + BLOCK_ACQ, 8);
    set_reg(d, REG_ADMIN_SIZE, ADMIN_ENTRIES);
    d->m->write(d->m, REG_AEQ_BASE, d->block_bus + BLOCK_AEQ, 8);
    set_reg(d, REG_AEQ_SIZE, AEQ_ENTRIES);
    set_reg(d, REG_CTRL, CTRL_ENABLE);
    if (lost(d))
        return false;
    set_eq(d, 0, 0, EQ_DB_ARM);
    return true;
}

static int read_caps(struct driver *d)
{
    const uint8_t *c = d->block + BLOCK_DATA;
    int r = query(d, ADMIN_QUERY_CAPS, 0, CAPS_SIZE);

    if (r != BU_OK)
        return r;
    d->caps.features = get32(c + 4);
    d->caps.max_mr = get32(c + 12);
    d->caps.max_cqe = get32(c + 20);
    d->caps.max_qp = get32(c + 24);
    d->caps.max_qp_wr = get32(c + 28);
    d->caps.max_sq_sge = get32(c + 32);
    d->caps.max_inline = get32(c + 40);
    d->caps.max_mr_size = get(c + 64, 8);
    d->ird = get32(c + 44) < DEPTH ? get32(c + 44) : DEPTH;
    d->ord = get32(c + 48) < DEPTH ? get32(c + 48) : DEPTH;
    return BU_OK;
}

static int create_eq(struct driver *d)
{
    int r = COMMAND(d, ADMIN_CREATE_EQ, WORDS64(d->block_bus + BLOCK_CEQ), CEQ_ENTRIES, CEQ,
                    d->cq_vector);

    if (r == BU_OK)
        set_eq(d, CEQ, 0, EQ_DB_ARM);
    return r;
}

static int bring_up(struct driver *d)
{
    int r;

    if (reg(d, REG_MAGIC) != MAGIC || reg(d, REG_VERSION) >> 16 != VERSION_MAJOR)
        return BU_LOST;
    d->known = true;
    if (!reset(d) || !registers_work(d))
        return BU_LOST;
    d->block = d->m->dma_alloc(d->m, BLOCK_SIZE, PAGE_SIZE, &d->block_bus);
    if (!dma_works(d))
        return BU_LOST;
    d->caps.vectors = reg(d, REG_VECTORS);
    d->cq_vector = d->caps.vectors > 1 ? 1 : 0; /* an adapter with one vector shares it */
    put(d->caps.mac, 6, (uint64_t)reg(d, REG_MAC_HI) << 32 | reg(d, REG_MAC_LO));
    d->caps.guid = d->m->read(d->m, REG_GUID, 8);
    if (!interrupts_work(d) || !enable(d))
        return BU_LOST;
    r = read_caps(d);
    return r == BU_OK ? create_eq(d) : r;
}

static void stop(void *p)
{
    struct driver *d = p;

    if (!d->m)
        return;
    if (d->known)
        give_up(d);
    if (d->msix)
        d->m->msix_disable(d->m);
    for (unsigned i = 0; i < QPS; i++)
        if (d->qps[i].num)
            d->m->dma_free(d->m, d->qps[i].sq.mem);
    for (unsigned i = 0; i < CQS; i++)
        if (d->cqs[i].num)
            d->m->dma_free(d->m, d->cqs[i].ring.mem);
    if (d->block)
        d->m->dma_free(d->m, d->block);
    memset(d, 0, sizeof *d);
}

static int start(void *p, struct bu_machine *m)
{
    struct driver *d = p;
    int r;

    *d = (struct driver){ .m = m };
    r = bring_up(d);
    if (r != BU_OK)
        stop(d);
    return r;
}

static void caps(void *p, struct bu_caps *out)
{
    *out = ((struct driver *)p)->caps;
}

static int guest_errors(void *p, uint64_t *count)
{
    struct driver *d = p;
    int r = query(d, ADMIN_QUERY_STATS, 0, STATS_SIZE);

    if (r == BU_OK)
        *count = get(d->block + BLOCK_DATA + 136, 8);
    return r;
}

static int set_addr(void *p, const uint8_t ip[4], unsigned prefix_len)
{
    return COMMAND(p, ADMIN_SET_ADDR, FAMILY_IPV4, get32(ip), 0, 0, 0, 0,
                   ADDR_ADD | prefix_len << 8);
}

/* ---- domains and regions ---- */

static int pd_create(void *p, uint32_t *pd)
{
    return created(p, command(p, ADMIN_CREATE_PD, NULL, 0), pd);
}

static int pd_destroy(void *p, uint32_t pd)
{
    return COMMAND(p, ADMIN_DESTROY_PD, pd);
}

static int mr_create(void *p, uint32_t pd, uint64_t bus, uint64_t octets, uint32_t access,
                     uint32_t *stag)
{
    unsigned shift = PAGE_SHIFT;
    uint64_t pages;

    /* The memory is contiguous, so larger pages do where there would be too many small ones. */
    for (;; shift++) {
        uint64_t mask = (1ull << shift) - 1;

        pages = ((bus & mask) + octets + mask) >> shift;
        if (pages <= MR_PAGES_MAX || shift == PAGE_SHIFT_MAX)
            break;
    }
    return created(p,
                   COMMAND(p, ADMIN_REG_MR, pd, access, WORDS64(bus), WORDS64(octets),
                           WORDS_PAGES(bus >> shift << shift, pages, shift)),
                   stag);
}

static int mr_destroy(void *p, uint32_t stag)
{
    return COMMAND(p, ADMIN_DEREG_MR, stag);
}

/* ---- queues ---- */

/* Number 0, which no object has, finds a free one. */
#define FIND(name, table)                                                 \
    static struct name *find_##name(struct driver *d, uint32_t num)       \
    {                                                                     \
        for (size_t i = 0; i < sizeof d->table / sizeof d->table[0]; i++) \
            if (d->table[i].num == num)                                   \
                return &d->table[i];                                      \
        return NULL;                                                      \
    }
FIND(cq, cqs)
FIND(qp, qps)

static int cq_create(void *p, uint32_t entries, uint32_t *num)
{
    struct driver *d = p;
    struct cq *cq = find_cq(d, 0);
    uint64_t bus;
    size_t octets;
    uint8_t *mem;
    int r;

    entries = power_of_two(2, entries);
    if (entries > d->caps.max_cqe)
        return STATUS_EINVAL;
    if (!cq)
        return STATUS_ENOMEM;
    octets = whole_pages((size_t)entries * CQE_SIZE);
    mem = d->m->dma_alloc(d->m, octets + CQ_RECORD_SIZE, PAGE_SIZE, &bus);
    memset(mem, 0, octets + CQ_RECORD_SIZE);
    r = created(d,
                COMMAND(d, ADMIN_CREATE_CQ, entries, CEQ, 0, 0,
                        WORDS_PAGES(bus, octets / PAGE_SIZE, PAGE_SHIFT), WORDS64(bus + octets)),
                num);
    if (r != BU_OK) {
        d->m->dma_free(d->m, mem);
        return r;
    }
    *cq = (struct cq){ .num = *num, .record = mem + octets };
    set_ring(&cq->ring, mem, entries, CQE_SIZE);
    return BU_OK;
}

static int cq_destroy(void *p, uint32_t num)
{
    struct driver *d = p;
    struct cq *cq = num ? find_cq(d, num) : NULL;
    int r = COMMAND(d, ADMIN_DESTROY_CQ, num);

    if (r == BU_OK && cq) {
        d->m->dma_free(d->m, cq->ring.mem);
        memset(cq, 0, sizeof *cq);
    }
    return r;
}

static int qp_create(void *v, const struct bu_qp_params *p, uint32_t *num)
{
    struct driver *d = v;
    struct qp *qp = find_qp(d, 0);
    uint32_t entries = power_of_two(2, p->entries), sq_stride, rq_stride;
    size_t sq_octets, rq_octets;
    uint64_t bus;
    uint8_t *mem;
    int r;

    if (entries > d->caps.max_qp_wr || p->max_sge > d->caps.max_sq_sge ||
        p->max_inline > d->caps.max_inline)
        return STATUS_EINVAL;
    if (!qp)
        return STATUS_ENOMEM;
    sq_stride = power_of_two(WQE_STRIDE_MIN, WQE_HDR_SIZE + SGE_SIZE * p->max_sge);
    sq_stride = power_of_two(sq_stride, WQE_HDR_SIZE + p->max_inline);
    rq_stride = power_of_two(WQE_STRIDE_MIN, RQE_HDR_SIZE + SGE_SIZE * p->max_sge);
    sq_octets = whole_pages((size_t)entries * sq_stride);
    rq_octets = whole_pages((size_t)entries * rq_stride);
    mem = d->m->dma_alloc(d->m, sq_octets + rq_octets, PAGE_SIZE, &bus);
    r = created(d,
                COMMAND(d, ADMIN_CREATE_QP, p->pd, p->send_cq, p->recv_cq, 0, 0, entries, entries,
                        sq_stride | rq_stride << 16,
                        p->max_sge | p->max_sge << 8 | p->max_inline << 16, p->access,
                        WORDS_PAGES(bus, sq_octets / PAGE_SIZE, PAGE_SHIFT),
                        WORDS_PAGES(bus + sq_octets, rq_octets / PAGE_SIZE, PAGE_SHIFT)),
                num);
    if (r != BU_OK) {
        d->m->dma_free(d->m, mem);
        return r;
    }
    *qp = (struct qp){ .num = *num, .send_cq = p->send_cq, .recv_cq = p->recv_cq };
    set_ring(&qp->sq, mem, entries, sq_stride);
    set_ring(&qp->rq, mem + sq_octets, entries, rq_stride);
    return BU_OK;
}

static int qp_modify(void *p, uint32_t qp, uint32_t state)
{
    return COMMAND(p, ADMIN_MODIFY_QP, qp, QP_MOD_STATE, state);
}

static int qp_state(void *p, uint32_t qp, uint32_t *state)
{
    struct driver *d = p;
    int r = COMMAND(d, ADMIN_QUERY_QP, qp);

    if (r == BU_OK)
        *state = get32(d->rsp + 4);
    return r;
}

static int qp_destroy(void *p, uint32_t num)
{
    struct driver *d = p;
    struct qp *qp = find_qp(d, num);
    int r = COMMAND(d, ADMIN_DESTROY_QP, num);

    if (r == BU_OK && qp) {
        d->m->dma_free(d->m, qp->sq.mem);
        memset(qp, 0, sizeof *qp);
    }
    return r;
}

/* ---- data ---- */

/* Never writes beyond the slot; the adapter refuses an entry that has more than its queue. */
static void put_sges(uint8_t *at, size_t room, const struct bu_wr *wr)
{
    for (unsigned i = 0; i < wr->num_sge && i < 4 && (i + 1) * SGE_SIZE <= room; i++) {
        put(at + i * SGE_SIZE, 8, wr->sge[i].addr);
        put(at + i * SGE_SIZE + 8, 4, wr->sge[i].length);
        put(at + i * SGE_SIZE + 12, 4, wr->sge[i].lkey);
    }
}

static int post_send(void *p, uint32_t num, const struct bu_wr *wr)
{
    struct driver *d = p;
    struct qp *qp = find_qp(d, num);
    size_t room;
    uint8_t *e;

    if (!qp || qp->sq.pi - qp->sq.ci == qp->sq.entries)
        return BU_FULL;
    e = slot(&qp->sq, qp->sq.pi);
    room = qp->sq.stride - WQE_HDR_SIZE;
    memset(e, 0, qp->sq.stride);
    put(e, 8, wr->wr_id);
    e[8] = wr->opcode;
    e[9] = wr->flags;
    put(e + 16, 4, qp->sq.pi);
    put(e + 20, 4, wr->inv_stag);
    put(e + 24, 8, wr->remote_addr);
    put(e + 32, 4, wr->rkey);
    if (wr->flags & WQE_INLINE) {
        put(e + 12, 2, wr->payload_len < 0xffff ? wr->payload_len : 0xffff);
        if (wr->payload_len)
            memcpy(e + WQE_HDR_SIZE, wr->payload, wr->payload_len < room ? wr->payload_len : room);
    } else {
        e[10] = (uint8_t)wr->num_sge;
        put_sges(e + WQE_HDR_SIZE, room, wr);
    }
    doorbell(d, DB_SQ, qp->num, ++qp->sq.pi);
    return BU_OK;
}

static int post_recv(void *p, uint32_t num, const struct bu_wr *wr)
{
    struct driver *d = p;
    struct qp *qp = find_qp(d, num);
    uint8_t *e;

    if (!qp || qp->rq.pi - qp->rq.ci == qp->rq.entries)
        return BU_FULL;
    e = slot(&qp->rq, qp->rq.pi);
    memset(e, 0, qp->rq.stride);
    put(e, 8, wr->wr_id);
    put(e + 8, 4, qp->rq.pi);
    e[12] = (uint8_t)wr->num_sge;
    put_sges(e + RQE_HDR_SIZE, qp->rq.stride - RQE_HDR_SIZE, wr);
    doorbell(d, DB_RQ, qp->num, ++qp->rq.pi);
    return BU_OK;
}

/* The oldest entry of the queue, if there is one, is flushed, because the adapter is no more. */
static bool flush_one(struct qp *qp, struct ring *r, bool recv, struct bu_wc *wc)
{
    const uint8_t *e = slot(r, r->ci);
    uint8_t opcode = e[8] == WR_SEND_INV ? WR_SEND : e[8] == WR_READ_INV ? WR_READ : e[8];

    if (r->ci == r->pi)
        return false;
    *wc = (struct bu_wc){
        .wr_id = get(e, 8),
        .qp = qp->num,
        .status = WC_FLUSH_ERR,
        .opcode = recv ? WC_RECV : opcode,
        .flags = recv ? CQE_RECV : 0,
    };
    r->ci++;
    return true;
}

static bool flush_lost(struct driver *d, uint32_t cq, struct bu_wc *wc)
{
    for (struct qp *qp = d->qps; qp < d->qps + QPS; qp++) {
        if (qp->num && ((qp->send_cq == cq && flush_one(qp, &qp->sq, false, wc)) ||
                        (qp->recv_cq == cq && flush_one(qp, &qp->rq, true, wc))))
            return true;
    }
    return false;
}

static bool cq_poll(void *p, uint32_t num, struct bu_wc *wc)
{
    struct driver *d = p;
    struct cq *cq = num ? find_cq(d, num) : NULL;
    const uint8_t *e = cq ? produced(&cq->ring) : NULL;
    struct qp *qp;
    bool good;

    if (!e)
        return cq && d->lost && flush_lost(d, num, wc);
    good = e[60] == WC_SUCCESS;
    *wc = (struct bu_wc){
        .wr_id = get(e, 8),
        .qp = get32(e + 8),
        .status = e[60],
        .opcode = e[61],
        .vendor_err = get32(e + 20),
        .byte_len = good ? get32(e + 12) : 0,
        .flags = e[63] & (good ? 0xff & ~CQE_PHASE : CQE_RECV),
    };
    qp = find_qp(d, wc->qp);
    if (qp) /* not destroyed meanwhile; the silent entries before this one are free, too */
        (wc->flags & CQE_RECV ? &qp->rq : &qp->sq)->ci = get32(e + 56) + 1;
    cq->ring.ci++;
    __atomic_store_n((uint32_t *)(void *)cq->record, htole32(cq->ring.ci), __ATOMIC_RELEASE);
    return true;
}

static void take_completion_events(struct driver *d)
{
    const uint8_t *e;

    while ((e = produced(&d->ceq))) {
        struct cq *cq = find_cq(d, get32(e + 4));

        if (cq)
            cq->armed = false;
        d->ceq.ci++;
    }
}

/*
 * What counts is whether the ring has a completion; events only tell when to look.  So an event of
 * another queue needs no memory: its completions are found by the cq_wait() of that queue.
 */
static int cq_wait(void *p, uint32_t num, unsigned ms)
{
    struct driver *d = p;
    struct cq *cq = num ? find_cq(d, num) : NULL;
    uint64_t end;
    int r;

    if (lost(d))
        return BU_LOST;
    end = deadline(d, ms);
    while (cq) {
        take_completion_events(d);
        if (!cq->armed) {
            cq->armed = true;
            doorbell(d, DB_CQ_ARM, num, cq->ring.ci);
        }
        set_eq(d, CEQ, d->ceq.ci, EQ_DB_ARM);
        if (produced(&cq->ring))
            return BU_OK;
        r = wait_vector(d, d->cq_vector, end);
        if (r != BU_OK)
            return r;
    }
    return BU_TIMEOUT;
}

/* ---- connections ---- */

static int listen(void *p, const struct bu_addr *at, uint32_t backlog, uint32_t *listener)
{
    return created(p, COMMAND(p, ADMIN_LISTEN, WORDS_ADDR(at), backlog), listener);
}

static int unlisten(void *p, uint32_t listener)
{
    return COMMAND(p, ADMIN_UNLISTEN, listener);
}

static const struct bu_addr none; /* where the adapter ignores addresses */

/* CONNECT, ACCEPT, REJECT.  The adapter copies the private data while it executes the command. */
static int command_cm(struct driver *d, uint8_t opcode, uint32_t qp, uint32_t conn,
                      const struct bu_addr *from, const struct bu_addr *to,
                      const struct bu_pdata *pdata)
{
    uint32_t len = pdata ? pdata->len : 0, depths = d->ird << 16, ord = d->ord;

    if (lost(d))
        return BU_LOST;
    if (len > PRIVATE_DATA_MAX)
        return STATUS_EINVAL;
    if (len)
        memcpy(d->block + BLOCK_DATA, pdata->octets, len);
    if (opcode == ADMIN_REJECT)
        depths = ord = 0;
    return COMMAND(d, opcode, qp, conn, WORDS_ADDR(from), WORDS_ADDR(to),
                   WORDS64(d->block_bus + BLOCK_DATA), len | depths, ord);
}

static int connect(void *p, uint32_t qp, const struct bu_addr *from, const struct bu_addr *to,
                   const struct bu_pdata *pdata, uint32_t *conn)
{
    return created(p, command_cm(p, ADMIN_CONNECT, qp, 0, from, to, pdata), conn);
}

static int accept(void *p, uint32_t conn, uint32_t qp, const struct bu_pdata *pdata)
{
    return command_cm(p, ADMIN_ACCEPT, qp, conn, &none, &none, pdata);
}

static int reject(void *p, uint32_t conn, const struct bu_pdata *pdata)
{
    return command_cm(p, ADMIN_REJECT, 0, conn, &none, &none, pdata);
}

static int pdata(void *p, uint32_t conn, struct bu_pdata *out)
{
    struct driver *d = p;
    const uint8_t *answer = d->block + BLOCK_DATA;
    int r = query(d, ADMIN_CM_DATA, conn, CM_DATA_SIZE);

    if (r == BU_OK) {
        out->len = (unsigned)get(answer + 52, 2) % (PRIVATE_DATA_MAX + 1); /* never beyond */
        memcpy(out->octets, answer + 60, out->len);
    }
    return r;
}

/* Nobody wants to know of ADMIN, nor of what was destroyed before its event was read. */
static bool wanted(struct driver *d, uint8_t event, uint32_t id)
{
    if (event == EV_CM_CLOSED && id == 0)
        return true; /* of a request that was not answered */
    if ((event >= EV_QP_FIRST && event <= EV_QP_LAST) ||
        (event >= EV_CM_REPLY && event <= EV_CM_CLOSED))
        return id && find_qp(d, id);
    return event == EV_CQ_ERROR ? id && find_cq(d, id) : event > EV_COMPLETION;
}

static int next_event(void *p, struct bu_event *event, unsigned ms)
{
    struct driver *d = p;
    const uint8_t *e;
    uint64_t end;
    int r;

    if (lost(d))
        return BU_LOST;
    end = deadline(d, ms);
    for (;;) {
        while ((e = produced(&d->aeq))) {
            *event = (struct bu_event){
                .event = e[0],
                .status = e[1],
                .id = get32(e + 4),
                .conn = get32(e + 8),
                .aux = get32(e + 12),
            };
            d->aeq.ci++;
            set_eq(d, 0, d->aeq.ci, 0);
            if (wanted(d, event->event, event->id))
                return BU_OK;
        }
        set_eq(d, 0, d->aeq.ci, EQ_DB_ARM);
        r = wait_vector(d, 0, end);
        if (r != BU_OK)
            return r;
    }
}

const struct bu_driver bu_driver = {
    .name = "second",
    .size = sizeof(struct driver),
    .start = start,
    .stop = stop,
    .lost = lost,
    .caps = caps,
    .guest_errors = guest_errors,
    .set_addr = set_addr,
    .pd_create = pd_create,
    .pd_destroy = pd_destroy,
    .mr_create = mr_create,
    .mr_destroy = mr_destroy,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .qp_create = qp_create,
    .qp_modify = qp_modify,
    .qp_state = qp_state,
    .qp_destroy = qp_destroy,
    .post_send = post_send,
    .post_recv = post_recv,
    .cq_poll = cq_poll,
    .cq_wait = cq_wait,
    .listen = listen,
    .unlisten = unlisten,
    .connect = connect,
    .accept = accept,
    .reject = reject,
    .pdata = pdata,
    .next_event = next_event,
};
