/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver of the adapter in user space, through VFIO: README.md explains it step by step.
 *
 * The program has one thread and one command under way, and gives up at the first failure.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "staghorn/admin.h"
#include "staghorn/bits.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "staghorn/ring.h"

enum {
    VECTORS = 2, /* 0: async events and the admin queue, 1: completions */
    EQN = 1,
    STRIDE = 64,  /* of send and receive queues: holds a header and one element */
    ENTRIES = 64, /* of all queues */
    ENDS = 2,
    DATA = 4096,     /* octets of each buffer */
    RPING_SIZE = 64, /* what rping -s has room for */
    MESSAGE = 16,
    EXCHANGES = 3,
    IRQ_MS = 5000,
    WAIT_MS = 60000,
    COMMAND_S = 30,
    POOL = 1 << 20,
};
/* Where the pool begins in the adapter's addresses: the program chooses, the IOMMU translates. */
#define POOL_IOVA 0x10000000ull
#define UNMAPPED_IOVA 0x40000000ull

#define LE16(x) sg_to_le16((uint16_t)(x))
#define LE32(x) sg_to_le32((uint32_t)(x))
#define LE64(x) sg_to_le64((uint64_t)(x))

struct vx_ring {
    uint8_t *mem;
    uint32_t entries, stride, prod, cons;
};

/* What an end has in the region that peers may access. */
struct vx_data {
    char source[DATA], sink[DATA], out[DATA], in[DATA];
};

/* A queue pair with what rping's protocol needs. */
struct vx_end {
    uint32_t qpn;
    struct vx_ring sq, rq;
    struct vx_data *data;
    int status;          /* of the first failed completion */
    uint32_t up, closed; /* flags of the connection */
    uint64_t remote;     /* what the peer's last message names */
    uint32_t rkey, size;
};

static struct {
    int container, group, device, events[VECTORS];
    volatile uint8_t *regs, *doorbells;
    uint8_t *pool;
    size_t used;
    struct vx_ring asq, acq, aeq, eq, cq;
    struct sg_cq_record *record;
    uint32_t pd, stag, cqn, listener;
    uint32_t request;     /* a connection that is not answered */
    struct vx_data *data; /* the region: one for each end */
    struct sg_sockaddr address;
    uint8_t bits; /* of its prefix */
    struct vx_end ends[ENDS];
    unsigned n_ends;
} dev;

/* At the end of the process VFIO resets the adapter before the memory is unmapped. */
#define FAIL_IF(condition, ...) ((condition) ? errx(1, __VA_ARGS__) : (void)0)

/* What was written to memory is there before the adapter hears of it. */
static void barrier(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- step 1: VFIO gives us the device ---- */

/* The number of the device's IOMMU group, which is the name of its file. */
static void open_group(const char *name)
{
    struct vfio_group_status status = { .argsz = sizeof(status) };
    char path[128], link[256];
    ssize_t len;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group", name);
    len = readlink(path, link, sizeof(link) - 1);
    FAIL_IF(len < 0, "%s: %m: is there such a device, and an IOMMU?", path);
    link[len] = 0;
    snprintf(path, sizeof(path), "/dev/vfio/%s", strrchr(link, '/') + 1);
    dev.group = open(path, O_RDWR | O_CLOEXEC);
    FAIL_IF(dev.group < 0, "%s: %m: does the device have the driver vfio-pci?", path);
    FAIL_IF(ioctl(dev.group, VFIO_GROUP_GET_STATUS, &status) ||
                !(status.flags & VFIO_GROUP_FLAGS_VIABLE),
            "%s: other devices of this group have drivers of the kernel", path);
}

static void open_device(const char *name)
{
    dev.container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
    FAIL_IF(dev.container < 0 || ioctl(dev.container, VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
                !ioctl(dev.container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU),
            "/dev/vfio/vfio: no VFIO with an IOMMU of type 1");
    open_group(name);
    FAIL_IF(ioctl(dev.group, VFIO_GROUP_SET_CONTAINER, &dev.container) ||
                ioctl(dev.container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU),
            "the group does not go into a container: %m");
    /* VFIO resets the function (FLR) here, and when the file is closed. */
    dev.device = ioctl(dev.group, VFIO_GROUP_GET_DEVICE_FD, name);
    FAIL_IF(dev.device < 0, "%s: %m", name);
}

/* Where a BAR, or the configuration space, is in the device's file. */
static off_t region(unsigned index, size_t octets)
{
    struct vfio_region_info info = { .argsz = sizeof(info), .index = index };

    FAIL_IF(ioctl(dev.device, VFIO_DEVICE_GET_REGION_INFO, &info) || info.size < octets,
            "region %u of the device is not there, or smaller", index);
    return (off_t)info.offset;
}

static volatile uint8_t *map_bar(unsigned index, size_t octets)
{
    off_t at = region(index, octets);
    void *mem = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_SHARED, dev.device, at);

    FAIL_IF(mem == MAP_FAILED, "BAR%u: %m", index);
    return mem;
}

/* Memory space and bus mastering: without the latter there is neither DMA nor an interrupt. */
static void enable_bus_mastering(void)
{
    off_t at = region(VFIO_PCI_CONFIG_REGION_INDEX, PCI_STD_HEADER_SIZEOF) + PCI_COMMAND;
    __le16 command;

    FAIL_IF(pread(dev.device, &command, 2, at) != 2, "configuration space: %m");
    command |= LE16(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    FAIL_IF(pwrite(dev.device, &command, 2, at) != 2, "configuration space: %m");
}

/* Each vector becomes an eventfd. */
static void enable_interrupts(void)
{
    struct {
        struct vfio_irq_set set;
        int32_t fds[VECTORS];
    } irqs = {
        .set = {
            .argsz = sizeof(irqs),
            .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
            .index = VFIO_PCI_MSIX_IRQ_INDEX,
            .count = VECTORS,
        },
    };
    unsigned i;

    for (i = 0; i < VECTORS; i++) {
        dev.events[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        irqs.fds[i] = dev.events[i];
    }
    FAIL_IF(ioctl(dev.device, VFIO_DEVICE_SET_IRQS, &irqs), "MSI-X: %m");
}

/* ---- step 2: memory that the adapter can reach ---- */

static void map_pool(void)
{
    struct vfio_iommu_type1_dma_map map = {
        .argsz = sizeof(map),
        .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
        .iova = POOL_IOVA,
        .size = POOL,
    };

    dev.pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAIL_IF(dev.pool == MAP_FAILED, "no memory: %m");
    map.vaddr = (uintptr_t)dev.pool;
    FAIL_IF(ioctl(dev.container, VFIO_IOMMU_MAP_DMA, &map), "memory cannot be mapped for DMA: %m");
}

/* Zeroed whole pages; nothing is given back before the end. */
static void *dma_alloc(size_t octets)
{
    void *found = dev.pool + dev.used;

    dev.used += (octets + SG_PAGE_SIZE - 1) & ~(size_t)(SG_PAGE_SIZE - 1);
    FAIL_IF(dev.used > POOL, "the pool is too small");
    return found;
}

/* The address that the adapter uses for a place in the pool. */
static uint64_t iova_of(const void *place)
{
    return POOL_IOVA + (uint64_t)((const uint8_t *)place - dev.pool);
}

static struct vx_ring new_ring(uint32_t entries, uint32_t stride)
{
    return (struct vx_ring){ dma_alloc((size_t)entries * stride), entries, stride, 0, 0 };
}

static struct sg_page_list pages_of(const void *place, size_t octets)
{
    return (struct sg_page_list){
        .addr = LE64(iova_of(place)),
        .count = LE32((octets + SG_PAGE_SIZE - 1) >> SG_PAGE_SHIFT),
        .page_shift = SG_PAGE_SHIFT,
    };
}

static uint32_t reg(uint32_t offset)
{
    uint32_t value = sg_from_le32(*(volatile __le32 *)(dev.regs + offset));

    barrier(); /* what the adapter wrote before is read after this */
    return value;
}

static void set_reg(uint32_t offset, uint32_t value)
{
    barrier();
    *(volatile __le32 *)(dev.regs + offset) = sg_to_le32(value);
}

static void set_reg64(uint32_t offset, uint64_t value)
{
    *(volatile __le64 *)(dev.regs + offset) = LE64(value);
}

static void doorbell(uint32_t offset, uint32_t number, uint32_t index)
{
    barrier();
    *(volatile __le64 *)(dev.doorbells + offset) = LE64((uint64_t)index << 32 | number);
}

/* FATAL, removed (all ones), or reset by somebody else. */
static void check_adapter(void)
{
    uint32_t status = reg(SG_REG_STATUS);

    FAIL_IF(status == UINT32_MAX || status & SG_STATUS_FATAL || !(status & SG_STATUS_READY),
            "the adapter is lost: STATUS %#x, FATAL %u", status, reg(SG_REG_FATAL));
}

static void *slot(const struct vx_ring *r, uint32_t index)
{
    return r->mem + (size_t)sg_index_slot(index, r->entries) * r->stride;
}

/* The entry at the consumer index, if it is new; the rest of it is read after its phase. */
static void *produced(const struct vx_ring *r)
{
    uint8_t *entry = slot(r, r->cons);
    uint8_t last = __atomic_load_n(entry + r->stride - 1, __ATOMIC_ACQUIRE);

    return sg_index_is_new(last, r->cons, r->entries) ? entry : NULL;
}

/* Waits for an interrupt of the vector; false: none came. */
static bool wait_interrupt(unsigned vector, int ms)
{
    struct pollfd p = { .fd = dev.events[vector], .events = POLLIN };
    uint64_t count;

    return poll(&p, 1, ms) == 1 && read(p.fd, &count, sizeof(count)) == sizeof(count);
}

static void set_eq(unsigned eqn, const struct vx_ring *r, uint32_t arm)
{
    set_reg(SG_REG_EQ_DB + 4 * eqn, (r->cons & SG_EQ_DB_CI_MASK) | arm);
}

/* Executes a command and returns its status. */
static int try_command(uint8_t opcode, void *command, size_t octets, struct sg_admin_rsp *rsp)
{
    time_t end = time(NULL) + COMMAND_S;
    uint8_t *at = slot(&dev.asq, dev.asq.prod);
    void *answer;

    check_adapter();
    ((struct sg_admin_hdr *)command)->opcode = opcode;
    memset(at, 0, SG_ADMIN_CMD_SIZE);
    memcpy(at, command, octets);
    set_reg(SG_REG_ADMIN_DB, ++dev.asq.prod);
    while (!(answer = produced(&dev.acq))) {
        check_adapter();
        FAIL_IF(time(NULL) > end, "command %#x is not answered", opcode);
        usleep(20);
    }
    memcpy(rsp, answer, sizeof(*rsp));
    set_reg(SG_REG_ADMIN_CI, ++dev.acq.cons);
    return rsp->status;
}

/* A command that must succeed; the number that it returns. */
static uint32_t run(const char *name, uint8_t opcode, void *command, size_t octets)
{
    struct sg_admin_rsp rsp;
    int status = try_command(opcode, command, octets, &rsp);

    FAIL_IF(status != SG_OK, "%s: status %d", name, status);
    return sg_from_le32(rsp.id);
}
#define RUN(opcode, command) run(#opcode, SG_ADMIN_##opcode, command, sizeof(*(command)))

#define DESTROY(opcode, number) RUN(opcode, (&(struct sg_cmd_id){ .id = LE32(number) }))

/* ---- step 3: bring-up (driver.md#bring-up) ---- */

static void reset_adapter(void)
{
    set_reg(SG_REG_CTRL, SG_CTRL_RESET);
    FAIL_IF(reg(SG_REG_CTRL) & (SG_CTRL_RESET | SG_CTRL_ENABLE), "the reset does not end");
}

static uint32_t test_dma(uint64_t iova)
{
    set_reg64(SG_REG_TEST_DMA_LO, iova);
    set_reg(SG_REG_TEST_DMA_LEN, SG_PAGE_SIZE);
    set_reg(SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);
    return reg(SG_REG_TEST_DMA_STATUS);
}

/* Registers, DMA and interrupts work, before anything depends on them. */
static void test_adapter(void)
{
    uint8_t *buffer = dma_alloc(SG_PAGE_SIZE);
    unsigned i;

    set_reg(SG_REG_TEST_SCRATCH, 0x12345678);
    FAIL_IF(reg(SG_REG_TEST_SCRATCH) != (uint32_t)~0x12345678, "registers do not work");
    FAIL_IF(test_dma(iova_of(buffer)) != SG_OK, "DMA does not work: status %u",
            reg(SG_REG_TEST_DMA_STATUS));
    FAIL_IF(buffer[0] != 0 || buffer[1] != 1 || buffer[SG_PAGE_SIZE - 1] != 0xff,
            "DMA does not write what it should");
    for (i = 0; i < VECTORS; i++) {
        set_reg(SG_REG_TEST_IRQ, i);
        FAIL_IF(!wait_interrupt(i, IRQ_MS), "interrupt %u does not come", i);
    }
}

static void enable(void)
{
    struct sg_cmd_create_eq eq = { .entries = LE32(ENTRIES) };

    dev.asq = new_ring(ENTRIES, SG_ADMIN_CMD_SIZE);
    dev.acq = new_ring(ENTRIES, SG_ADMIN_RSP_SIZE);
    dev.aeq = new_ring(ENTRIES, sizeof(struct sg_eqe));
    dev.eq = new_ring(ENTRIES, sizeof(struct sg_eqe));
    set_reg64(SG_REG_ASQ_BASE_LO, iova_of(dev.asq.mem));
    set_reg64(SG_REG_ACQ_BASE_LO, iova_of(dev.acq.mem));
    set_reg(SG_REG_ADMIN_SIZE, ENTRIES);
    set_reg64(SG_REG_AEQ_BASE_LO, iova_of(dev.aeq.mem));
    set_reg(SG_REG_AEQ_SIZE, ENTRIES);
    set_reg(SG_REG_CTRL, SG_CTRL_ENABLE);
    check_adapter();
    set_eq(0, &dev.aeq, SG_EQ_DB_ARM);

    eq.base = LE64(iova_of(dev.eq.mem));
    eq.eqn = LE32(EQN);
    eq.vector = LE32(1);
    RUN(CREATE_EQ, &eq);
    set_eq(EQN, &dev.eq, SG_EQ_DB_ARM);
}

static void bring_up(const char *name)
{
    struct sg_cmd_set_addr c = { .addr = dev.address, .op = SG_ADDR_ADD, .prefix_len = dev.bits };

    open_device(name);
    enable_bus_mastering();
    dev.regs = map_bar(VFIO_PCI_BAR0_REGION_INDEX + SG_BAR_REGS, SG_REGS_SIZE);
    dev.doorbells = map_bar(VFIO_PCI_BAR0_REGION_INDEX + SG_BAR_DOORBELL, SG_UAR_SIZE);
    FAIL_IF(reg(SG_REG_MAGIC) != SG_MAGIC || reg(SG_REG_VERSION) >> 16 != SG_VERSION_MAJOR,
            "%s is not an adapter of version %u", name, SG_VERSION_MAJOR);
    reset_adapter();
    map_pool();
    enable_interrupts();
    test_adapter();
    enable();
    RUN(SET_ADDR, &c);
    printf("%s: firmware %#x is up\n", name, reg(SG_REG_FW_VERSION));
}

/* ---- step 4: objects ---- */

static void make_objects(void)
{
    struct sg_cmd_reg_mr mr = {
        .length = LE64(ENDS * sizeof(*dev.data)),
        .access = LE32(SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE),
    };
    struct sg_cmd_create_cq cq = { .entries = LE32(ENTRIES), .eqn = LE32(EQN) };

    dev.pd = RUN(CREATE_PD, &(struct sg_admin_hdr){ 0 });
    dev.data = dma_alloc(ENDS * sizeof(*dev.data));
    mr.pd = LE32(dev.pd);
    mr.va = LE64(iova_of(dev.data)); /* so elements name memory by its address */
    mr.pages = pages_of(dev.data, ENDS * sizeof(*dev.data));
    dev.stag = RUN(REG_MR, &mr);
    dev.cq = new_ring(ENTRIES, sizeof(struct sg_cqe));
    dev.record = dma_alloc(sizeof(*dev.record));
    cq.pages = pages_of(dev.cq.mem, (size_t)ENTRIES * sizeof(struct sg_cqe));
    cq.record = LE64(iova_of(dev.record));
    dev.cqn = RUN(CREATE_CQ, &cq);
}

static struct vx_end *make_end(void)
{
    struct vx_end *e = &dev.ends[dev.n_ends];
    struct sg_cmd_create_qp c = {
        .pd = LE32(dev.pd),
        .send_cqn = LE32(dev.cqn),
        .recv_cqn = LE32(dev.cqn),
        .sq_entries = LE32(ENTRIES),
        .rq_entries = LE32(ENTRIES),
        .sq_stride = LE16(STRIDE),
        .rq_stride = LE16(STRIDE),
        .sq_max_sge = 1,
        .rq_max_sge = 1,
        .access = LE32(SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE),
    };

    e->data = &dev.data[dev.n_ends++];
    e->sq = new_ring(ENTRIES, STRIDE);
    e->rq = new_ring(ENTRIES, STRIDE);
    c.sq_pages = pages_of(e->sq.mem, ENTRIES * STRIDE);
    c.rq_pages = pages_of(e->rq.mem, ENTRIES * STRIDE);
    e->qpn = RUN(CREATE_QP, &c);
    return e;
}

/* ---- step 5: work requests and completions ---- */

static struct sg_sge element(const char *buffer, uint32_t octets)
{
    return (struct sg_sge){ LE64(iova_of(buffer)), LE32(octets), LE32(dev.stag) };
}

static void post_receive(struct vx_end *e)
{
    struct sg_rqe_hdr *h = slot(&e->rq, e->rq.prod);

    memset(h, 0, STRIDE);
    h->index = LE32(e->rq.prod);
    h->num_sge = 1;
    *(struct sg_sge *)(h + 1) = element(e->data->in, MESSAGE);
    doorbell(SG_DB_RQ, e->qpn, ++e->rq.prod);
}

static void post(struct vx_end *e, uint8_t opcode, const char *buffer, uint32_t octets)
{
    struct sg_wqe_hdr *h = slot(&e->sq, e->sq.prod);

    memset(h, 0, STRIDE);
    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = 1;
    h->index = LE32(e->sq.prod);
    h->remote_addr = LE64(e->remote);
    h->rkey = LE32(e->rkey);
    *(struct sg_sge *)(h + 1) = element(buffer, octets);
    doorbell(SG_DB_SQ, e->qpn, ++e->sq.prod);
}

static struct vx_end *end_of(uint32_t qpn)
{
    struct vx_end *e = dev.ends;

    while (e->qpn != qpn) {
        FAIL_IF(++e == dev.ends + dev.n_ends, "queue pair %u is none of ours", qpn);
    }
    return e;
}

static void take_completion(const struct sg_cqe *c)
{
    struct vx_end *e = end_of(sg_from_le32(c->qpn));

    /* The entries up to this one are free again. */
    (c->flags_phase & SG_CQE_RECV ? &e->rq : &e->sq)->cons = sg_from_le32(c->wr_index) + 1;
    e->status = e->status == SG_WC_SUCCESS ? c->status : e->status;
    dev.cq.cons++;
    __atomic_store_n(&dev.record->consumer_index, LE32(dev.cq.cons), __ATOMIC_RELEASE);
}

/* Sleeps until all entries of the queue are complete: arm, look once more, wait. */
static int wait_completion(struct vx_end *e, const struct vx_ring *queue)
{
    while (queue->cons != queue->prod) {
        const struct sg_cqe *found = produced(&dev.cq);

        if (found) {
            take_completion(found);
            continue;
        }
        doorbell(SG_DB_CQ_ARM, dev.cqn, dev.cq.cons);
        set_eq(EQN, &dev.eq, SG_EQ_DB_ARM);
        FAIL_IF(!produced(&dev.cq) && !wait_interrupt(1, WAIT_MS), "no completion within %d s",
                WAIT_MS / 1000);
        while (produced(&dev.eq)) {
            dev.eq.cons++; /* it says that the completion queue has entries, and we have only one */
        }
        set_eq(EQN, &dev.eq, 0);
        check_adapter();
    }
    return e->status;
}

/* Posts a Read, Write or Send, and waits for it. */
static void transfer(struct vx_end *e, uint8_t opcode, const char *buffer, uint32_t octets)
{
    post(e, opcode, buffer, octets);
    FAIL_IF(wait_completion(e, &e->sq), "work request %#x: status %d", opcode, e->status);
}

/* ---- step 6: connections ---- */

static void take_event(const struct sg_eqe *event)
{
    uint32_t id = sg_from_le32(event->id);

    switch (event->event) {
    case SG_EV_CM_REQUEST:
        dev.request = sg_from_le32(event->conn);
        break;
    case SG_EV_CM_REPLY:
    case SG_EV_CM_ESTABLISHED:
        FAIL_IF(event->cm_status != SG_CM_OK, "no connection: status %u", event->cm_status);
        end_of(id)->up = true;
        break;
    case SG_EV_CM_CLOSED:
        if (id) {
            end_of(id)->closed = true;
        }
        break;
    case SG_EV_CQ_ERROR ... SG_EV_QP_ACCESS_ERR:
        errx(1, "event %#x of object %u", event->event, id);
    }
}

/* Takes events until one has set the flag. */
static void wait_event(const uint32_t *flag)
{
    while (!*flag) {
        const struct sg_eqe *event;

        set_eq(0, &dev.aeq, SG_EQ_DB_ARM);
        FAIL_IF(!wait_interrupt(0, WAIT_MS), "no event within %d s", WAIT_MS / 1000);
        check_adapter();
        while ((event = produced(&dev.aeq))) {
            take_event(event);
            dev.aeq.cons++;
        }
        set_eq(0, &dev.aeq, 0);
    }
}

static void begin_connection(uint8_t opcode, struct vx_end *e, struct sg_sockaddr peer)
{
    struct sg_cmd_connect c = {
        .qpn = LE32(e->qpn),
        .conn = LE32(dev.request), /* ACCEPT */
        .local = dev.address,      /* CONNECT */
        .remote = peer,
        .ird = LE16(1),
        .ord = LE16(1),
    };

    post_receive(e); /* before the peer can send */
    run(opcode == SG_ADMIN_CONNECT ? "CONNECT" : "ACCEPT", opcode, &c, sizeof(c));
}

static void listen_at(struct sg_sockaddr at)
{
    struct sg_cmd_listen c = { .local = at, .backlog = LE32(1) };

    dev.listener = RUN(LISTEN, &c);
}

/* ---- step 7: rping's protocol ---- */

struct vx_message { /* network order */
    uint64_t address;
    uint32_t rkey, size;
};

static void advertise(struct vx_end *e, const char *buffer, uint32_t size)
{
    struct vx_message m = { htobe64(iova_of(buffer)), htonl(dev.stag), htonl(size) };

    memcpy(e->data->out, &m, MESSAGE);
    transfer(e, SG_WR_SEND, e->data->out, MESSAGE);
}

/* False: the peer has ended the connection. */
static bool receive(struct vx_end *e)
{
    struct vx_message m;

    if (wait_completion(e, &e->rq) != SG_WC_SUCCESS) {
        return false;
    }
    memcpy(&m, e->data->in, MESSAGE);
    e->remote = be64toh(m.address);
    e->rkey = ntohl(m.rkey);
    e->size = ntohl(m.size);
    post_receive(e);
    return true;
}

/* The server reads what the client advertises, then writes it where the client wants it. */
static bool serve(struct vx_end *e, uint8_t opcode)
{
    if (!receive(e)) {
        return false;
    }
    FAIL_IF(e->size > DATA, "the peer has %u octets, and we have room for %u", e->size, DATA);
    transfer(e, opcode, e->data->sink, e->size);
    advertise(e, e->data->sink, e->size); /* the client only wants to know that it is done */
    return true;
}

/* With loop the server is an end of ours, too, and has to do its part; else it is NULL. */
static void exchange(struct vx_end *client, struct vx_end *server, uint32_t size, unsigned n)
{
    unsigned i;

    for (i = 0; i < size - 1; i++) {
        client->data->source[i] = (char)('A' + (i + n) % 26);
    }
    memset(client->data->sink, 0, size);
    advertise(client, client->data->source, size);
    FAIL_IF(server && !serve(server, SG_WR_READ), "the client has ended the connection");
    FAIL_IF(!receive(client), "the server has ended the connection");
    advertise(client, client->data->sink, size);
    FAIL_IF(server && !serve(server, SG_WR_WRITE), "the client has ended the connection");
    FAIL_IF(!receive(client), "the server has ended the connection");
    FAIL_IF(memcmp(client->data->sink, client->data->source, size),
            "exchange %u: other data came back", n);
    printf("exchange %u: %u octets were read and written back\n", n, size);
}

static void run_exchanges(struct vx_end *client, struct vx_end *server, uint32_t size)
{
    struct sg_cmd_modify_qp c = { .qpn = LE32(client->qpn), .mask = LE32(SG_QP_MOD_STATE) };
    unsigned n;

    wait_event(&client->up);
    for (n = 1; n <= EXCHANGES; n++) {
        exchange(client, server, size, n);
    }
    c.state = LE32(SG_QP_CLOSING); /* what was posted is sent, then the connection ends */
    RUN(MODIFY_QP, &c);
    wait_event(&client->closed);
}

static void run_client(struct sg_sockaddr peer)
{
    struct vx_end *e = make_end();

    begin_connection(SG_ADMIN_CONNECT, e, peer);
    run_exchanges(e, NULL, RPING_SIZE);
}

static struct vx_end *accept_one(void)
{
    struct vx_end *e = make_end();

    wait_event(&dev.request);
    begin_connection(SG_ADMIN_ACCEPT, e, dev.address);
    return e;
}

static void run_loop(struct sg_sockaddr self)
{
    struct vx_end *client = make_end(), *server;

    listen_at(self);
    begin_connection(SG_ADMIN_CONNECT, client, self);
    server = accept_one();
    wait_event(&server->up);
    run_exchanges(client, server, DATA);
}

static void run_server(struct sg_sockaddr self)
{
    struct vx_end *e;
    unsigned n = 0;

    listen_at(self);
    puts("waiting for a client");
    e = accept_one();
    while (serve(e, SG_WR_READ) && serve(e, SG_WR_WRITE)) {
        printf("exchange %u: %u octets were read and written back\n", ++n, e->size);
    }
    wait_event(&e->closed);
}

/* The IOMMU refuses what is not mapped: the test register and a command say so. */
static void run_unmapped(void)
{
    struct sg_cmd_query c = { .out_addr = LE64(UNMAPPED_IOVA), .out_len = LE32(SG_PAGE_SIZE) };
    struct sg_admin_rsp rsp;
    int status = try_command(SG_ADMIN_QUERY_CAPS, &c, sizeof(c), &rsp);

    printf("test register: status %u\n", test_dma(UNMAPPED_IOVA));
    printf("command: status %d\n", status);
}

/* ---- teardown (driver.md#teardown) ---- */

static void tear_down(void)
{
    unsigned i;

    if (dev.listener) {
        DESTROY(UNLISTEN, dev.listener);
    }
    for (i = 0; i < dev.n_ends; i++) {
        DESTROY(DESTROY_QP, dev.ends[i].qpn);
    }
    DESTROY(DEREG_MR, dev.stag);
    DESTROY(DESTROY_CQ, dev.cqn);
    DESTROY(DESTROY_EQ, EQN);
    DESTROY(DESTROY_PD, dev.pd);
    reset_adapter();
    /* The end of the process closes the files: VFIO then ends interrupts and mappings. */
    puts("torn down");
}

static struct sg_sockaddr address_of(const char *ip, const char *port)
{
    int number = port ? atoi(port) : 0;
    struct sg_sockaddr a = { .family = 4, .port = htons((uint16_t)number) };

    FAIL_IF(inet_pton(AF_INET, ip, a.ip) != 1, "%s is not an IPv4 address", ip);
    FAIL_IF(port && (number < 1 || number > 65535), "%s is not a port, 1 to 65535", port);
    return a;
}

int main(int argc, char **argv)
{
    const char *role = argc > 3 ? argv[3] : "", *port = "7174"; /* rping's own */
    bool serves = argc == 5 && !strcmp(role, "serve");
    bool connects = argc == 6 && !strcmp(role, "connect");
    bool loop = argc == 4 && !strcmp(role, "loop");
    struct sg_sockaddr at;
    char *bits;

    FAIL_IF(!loop && !serves && !connects && (argc != 4 || strcmp(role, "unmapped")),
            "usage: vfio_driver DEVICE ADDRESS/BITS loop|serve PORT|connect PEER PORT|unmapped");
    FAIL_IF(strlen(argv[1]) != 12 || strchr(argv[1], '/'), "%s is not like 0000:01:00.0", argv[1]);
    bits = strchr(argv[2], '/');
    dev.bits = (uint8_t)(bits ? atoi(bits + 1) : 0);
    FAIL_IF(dev.bits < 1 || dev.bits > 32, "%s is not ADDRESS/BITS", argv[2]);
    *bits = 0;
    dev.address = address_of(argv[2], NULL);
    at = address_of(connects ? argv[4] : argv[2], argc > 4 ? argv[argc - 1] : port);
    setlinebuf(stdout);
    bring_up(argv[1]);
    make_objects();
    if (loop) {
        run_loop(at);
    } else if (argc > 4) {
        (serves ? run_server : run_client)(at);
    } else {
        run_unmapped();
    }
    tear_down();
    return 0;
}
