/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The example driver: memory, commands, bring-up, teardown, and an adapter that is lost.
 */
#include "example_driver.h"

enum { COMMAND_MS = 30000, RESET_MS = 5000, IRQ_TEST_MS = 5000 };

/* ---- memory ---- */

void *ex_memory(struct ex_driver *d, size_t octets, size_t align, uint64_t *bus)
{
    struct ex_block *b = d->blocks;

    while (b->memory) {
        sg_assert(++b < d->blocks + EX_BLOCKS);
    }
    b->memory = d->m->dma_alloc(d->m, octets, align, &b->bus);
    b->octets = octets;
    *bus = b->bus;
    return memset(b->memory, 0, octets);
}

static struct ex_block *block_of(struct ex_driver *d, uint64_t bus)
{
    struct ex_block *b = d->blocks;

    while (!b->memory || bus < b->bus || bus - b->bus >= b->octets) {
        sg_assert(++b < d->blocks + EX_BLOCKS);
    }
    return b;
}

void ex_free(struct ex_driver *d, uint64_t bus)
{
    struct ex_block *b = block_of(d, bus);

    d->m->dma_free(d->m, b->memory);
    *b = (struct ex_block){ 0 };
}

/* ---- how the mini-driver reaches the adapter ---- */

static uint64_t op_read(void *opaque, uint32_t offset, unsigned size)
{
    struct ex_driver *d = opaque;

    return d->m->read(d->m, offset, size);
}

static void op_write(void *opaque, uint32_t offset, uint64_t value, unsigned size)
{
    struct ex_driver *d = opaque;

    d->m->write(d->m, offset, value, size);
}

static void op_doorbell(void *opaque, uint32_t page, uint32_t offset, uint64_t value)
{
    struct ex_driver *d = opaque;

    d->m->doorbell(d->m, page * SG_UAR_SIZE + offset, value);
}

static uint64_t op_alloc(void *opaque, size_t len, size_t align)
{
    uint64_t bus;

    ex_memory(opaque, len, align, &bus);
    return bus;
}

static void *op_ptr(void *opaque, uint64_t addr)
{
    struct ex_block *b = block_of(opaque, addr);

    return (uint8_t *)b->memory + (addr - b->bus);
}

static const struct md_ops ops = {
    .reg_read = op_read,
    .reg_write = op_write,
    .doorbell = op_doorbell,
    .alloc = op_alloc,
    .ptr = op_ptr,
};

/* ---- the adapter is lost ---- */

/* After the reset the adapter, if it is still there, touches no memory and completes nothing. */
static void give_up(struct ex_driver *d)
{
    d->lost = true;
    md_write(&d->md, SG_REG_CTRL, SG_CTRL_RESET);
    md_read(&d->md, SG_REG_CTRL); /* the write has arrived */
}

bool ex_lost(struct ex_driver *d)
{
    uint32_t status = md_read(&d->md, SG_REG_STATUS);

    /* All ones: removed.  Not READY: somebody else has reset it. */
    if (!d->lost &&
        (status == UINT32_MAX || status & SG_STATUS_FATAL || !(status & SG_STATUS_READY))) {
        give_up(d);
    }
    return d->lost;
}

uint64_t ex_limit(struct ex_driver *d, unsigned ms)
{
    return d->m->now(d->m) + ms * 1000000ull;
}

/* The time until 'end' in ms, rounded up. */
unsigned ex_left(struct ex_driver *d, uint64_t end)
{
    uint64_t now = d->m->now(d->m);

    return now < end ? (unsigned)((end - now + 999999) / 1000000) : 0;
}

/* ---- commands ---- */

/* 'cmd' begins with struct sg_admin_hdr, whose opcode is set. */
int ex_command(struct ex_driver *d, const void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
    uint64_t end = ex_limit(d, COMMAND_MS);
    unsigned pause = 10;

    if (ex_lost(d)) {
        return BU_LOST;
    }
    md_submit(&d->md, cmd, len);
    while (!md_reap(&d->md, rsp)) {
        if (ex_lost(d)) {
            return BU_LOST;
        }
        if (!ex_left(d, end)) {
            give_up(d); /* only now its memory is ours again */
            return BU_LOST;
        }
        d->m->delay(d->m, pause);
        pause = SG_MIN(2 * pause, 1000u);
    }
    return rsp->status;
}

/* A command that makes something: *id is its number. */
int ex_make(struct ex_driver *d, const void *cmd, size_t len, uint32_t *id)
{
    struct sg_admin_rsp rsp;
    int result = ex_command(d, cmd, len, &rsp);

    if (result == BU_OK) {
        *id = sg_get_le32(&rsp.id);
    }
    return result;
}

int ex_command_id(struct ex_driver *d, enum sg_admin_opcode opcode, uint32_t id)
{
    struct sg_cmd_id c = { .hdr.opcode = (uint8_t)opcode };
    struct sg_admin_rsp rsp;

    sg_put_le32(&c.id, id);
    return ex_command(d, &c, sizeof(c), &rsp);
}

int ex_query(struct ex_driver *d, enum sg_admin_opcode opcode, uint32_t id, void *out, size_t len)
{
    struct sg_cmd_query c = { .hdr.opcode = (uint8_t)opcode };
    struct sg_admin_rsp rsp;
    uint64_t bus;
    void *answer = ex_memory(d, len, 8, &bus);
    int result;

    sg_put_le64(&c.out_addr, bus);
    sg_put_le32(&c.out_len, (uint32_t)len);
    sg_put_le32(&c.id, id);
    result = ex_command(d, &c, sizeof(c), &rsp);
    if (result == BU_OK) {
        memcpy(out, answer, len);
    }
    ex_free(d, bus);
    return result;
}

/* ---- bring-up ---- */

static bool reset(struct ex_driver *d)
{
    uint64_t end = ex_limit(d, RESET_MS);

    if (md_read(&d->md, SG_REG_MAGIC) != SG_MAGIC ||
        md_read(&d->md, SG_REG_VERSION) >> 16 != SG_VERSION_MAJOR) {
        return false;
    }
    md_write(&d->md, SG_REG_CTRL, SG_CTRL_RESET);
    while (md_read(&d->md, SG_REG_CTRL) & (SG_CTRL_RESET | SG_CTRL_ENABLE)) {
        if (!ex_left(d, end)) {
            return false;
        }
        d->m->delay(d->m, 100);
    }
    return true;
}

static bool test_registers(struct ex_driver *d)
{
    static const uint32_t patterns[] = { 0, UINT32_MAX, 0x5aa5c33c };
    unsigned i;

    for (i = 0; i < SG_ARRAY_SIZE(patterns); i++) {
        md_write(&d->md, SG_REG_TEST_SCRATCH, patterns[i]);
        if (md_read(&d->md, SG_REG_TEST_SCRATCH) != ~patterns[i]) {
            return false;
        }
    }
    return true;
}

static bool test_dma(struct ex_driver *d)
{
    uint64_t bus;
    uint8_t *buf = ex_memory(d, SG_PAGE_SIZE, SG_PAGE_SIZE, &bus);
    bool good;
    unsigned i;

    d->m->write(d->m, SG_REG_TEST_DMA_LO, bus, 8);
    md_write(&d->md, SG_REG_TEST_DMA_LEN, SG_PAGE_SIZE);
    md_write(&d->md, SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);
    good = md_read(&d->md, SG_REG_TEST_DMA_STATUS) == SG_OK;
    for (i = 0; good && i < SG_PAGE_SIZE; i++) {
        good = buf[i] == (uint8_t)i;
    }
    ex_free(d, bus);
    return good;
}

static bool test_interrupt(struct ex_driver *d)
{
    md_write(&d->md, SG_REG_TEST_IRQ, 0);
    return d->m->msix_wait(d->m, 0, IRQ_TEST_MS);
}

static void read_identity(struct ex_driver *d)
{
    uint32_t lo = md_read(&d->md, SG_REG_MAC_LO), hi = md_read(&d->md, SG_REG_MAC_HI);

    sg_put_le32(d->caps.mac, lo);
    sg_put_le16(d->caps.mac + 4, (uint16_t)hi);
    d->caps.guid = d->m->read(d->m, SG_REG_GUID_LO, 8);
    d->caps.vectors = md_read(&d->md, SG_REG_VECTORS);
}

/* The rings' memory is new and zero, so their indices and phases begin anew, too. */
static bool enable(struct ex_driver *d)
{
    md_setup_rings(&d->md);
    md_write(&d->md, SG_REG_CTRL, SG_CTRL_ENABLE);
    if (ex_lost(d)) {
        return false; /* register FATAL says why */
    }
    md_arm_eq(&d->md, 0);
    return true;
}

static int read_caps(struct ex_driver *d)
{
    struct sg_caps c;
    int result = ex_query(d, SG_ADMIN_QUERY_CAPS, 0, &c, sizeof(c));

    if (result == BU_OK) {
        d->caps.features = sg_get_le32(&c.features);
        d->caps.max_qp = sg_get_le32(&c.max_qp);
        d->caps.max_qp_wr = sg_get_le32(&c.max_qp_wr);
        d->caps.max_cqe = sg_get_le32(&c.max_cqe);
        d->caps.max_sq_sge = sg_get_le32(&c.max_sq_sge);
        d->caps.max_inline = sg_get_le32(&c.max_inline);
        d->caps.max_mr = sg_get_le32(&c.max_mr);
        d->caps.max_mr_size = sg_get_le64(&c.max_mr_size);
    }
    return result;
}

static int create_eq(struct ex_driver *d)
{
    struct sg_cmd_create_eq c = { .hdr.opcode = SG_ADMIN_CREATE_EQ };
    uint32_t eqn;
    int result;

    d->md.eq = md_new_ring(&d->md, MD_EQ_SIZE, sizeof(struct sg_eqe));
    sg_put_le64(&c.base, d->md.eq.base);
    sg_put_le32(&c.entries, MD_EQ_SIZE);
    sg_put_le32(&c.eqn, 1);
    sg_put_le32(&c.vector, EX_VECTOR);
    result = ex_make(d, &c, sizeof(c), &eqn);
    if (result == BU_OK) {
        md_arm_eq(&d->md, eqn);
    }
    return result;
}

void ex_stop(void *opaque)
{
    struct ex_driver *d = opaque;
    struct ex_block *b;

    give_up(d);
    d->m->msix_disable(d->m);
    for (b = d->blocks; b < d->blocks + EX_BLOCKS; b++) {
        if (b->memory) {
            ex_free(d, b->bus);
        }
    }
    memset(d->cqs, 0, sizeof(d->cqs));
    memset(d->qps, 0, sizeof(d->qps));
}

int ex_start(void *opaque, struct bu_machine *m)
{
    struct ex_driver *d = opaque;

    d->m = m;
    d->lost = false;
    md_attach(&d->md, &ops, d);
    d->md.hold = true; /* a doorbell returns at once */
    if (!reset(d) || !test_registers(d) || !test_dma(d)) {
        return BU_LOST;
    }
    read_identity(d);
    m->msix_enable(m, EX_VECTOR + 1);
    if (!test_interrupt(d) || !enable(d) || read_caps(d) != BU_OK || create_eq(d) != BU_OK) {
        ex_stop(d);
        return BU_LOST;
    }
    return BU_OK;
}
