/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile guest that uses several CPUs at once.
 *
 *     hostile PCI-FOLDER SECONDS SEED
 *
 * PCI-FOLDER is the adapter's folder in sysfs; no driver may be bound to it.  Four threads share
 * its registers and one piece of memory.  The first one drives the adapter as a driver does, but
 * often with a wrong field: rings, objects, a connection to itself, requests.  Meanwhile the second
 * overwrites the rings, page lists and records that the adapter is reading, the third rings
 * doorbells, the fourth accesses registers, MSI-X entries and configuration space.
 *
 * All memory that the adapter gets is the program's own, a device's, or absent, so that the guest's
 * kernel survives.  At the end the adapter is reset and must work; the program then prints what it
 * did, and "alive".
 */
#include <endian.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/pci_regs.h>

#include <staghorn/admin.h>
#include <staghorn/io.h>
#include <staghorn/regs.h>

#include "hostile_pci.h"

enum {
    ASQ_PAGE = 0,
    ACQ_PAGE,
    AEQ_PAGE,
    EQ_PAGE,
    CQ_PAGE = 4 /* two: record behind the entries */,
    SQ_PAGE = 6,
    RQ_PAGE = 8 /* of each of two queue pairs */,
    VECTOR_PAGE = 10,
    DATA_PAGE = 16,
    ADMIN_ENTRIES = 16,
    AEQ_ENTRIES = 64,
    CQ_ENTRIES = 64,
    WQ_ENTRIES = 16,
    WQ_STRIDE = 256,
    OWN_PORT = 4000,
    MSIX_ENTRIES = 8,
};

static volatile bool stop;
static volatile uint32_t sq_index[2], rq_index[2]; /* the driver's last doorbell values */
static unsigned long commands, answered, good, events, connections, rounds;

struct thread {
    pthread_t id;
    uint64_t random;
    void (*step)(struct thread *t);
};

static uint32_t draw(struct thread *t, uint32_t below)
{
    t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(t->random >> 33) % below;
}

/* ---- values ---- */

/* Mostly the program's memory; else a device's, or an address without memory. */
static uint64_t address(struct thread *t)
{
    uint32_t how = draw(t, 24);

    switch (how) {
    case 0:
    case 1:
    case 2:
        return bar_at[how] + draw(t, 0x1000);
    case 3:
        return 0x7000000000 + draw(t, 1 << 20);
    case 4:
        return UINT64_MAX - draw(t, 1 << 16);
    default:
        return bus[draw(t, PAGES)] + (how & 1 ? draw(t, PAGE) : 0);
    }
}

static uint32_t number(struct thread *t)
{
    static const uint32_t edges[] = {
        0, 1, 2, 63, 64, 255, 256, 0x7fffffff, 0xfffffff0, UINT32_MAX
    };

    return draw(t, 4) ? draw(t, 9) : edges[draw(t, 10)];
}

/* ---- the driver ---- */

static uint32_t asq, acq, aeq, pd, stag, cqn, qpn[2];

static void put_pages(struct sg_page_list *l, unsigned first, unsigned count)
{
    uint64_t *list = (uint64_t *)page(DATA_PAGE + 8) + 8 * first;
    unsigned i;

    for (i = 0; i < count; i++) {
        list[i] = htole64(bus[first + i]);
    }
    *l = (struct sg_page_list){
        .addr = htole64(bus[DATA_PAGE + 8] + 64 * first),
        .count = htole32(count),
        .levels = 1,
        .page_shift = 12,
    };
}

/* Returns the number in the answer; 0: there was no answer, or the command was refused. */
static uint32_t command(const void *cmd, size_t len)
{
    uint8_t *slot = page(ASQ_PAGE) + asq % ADMIN_ENTRIES * SG_ADMIN_CMD_SIZE;
    volatile struct sg_admin_rsp *rsp =
        (void *)(page(ACQ_PAGE) + acq % ADMIN_ENTRIES * SG_ADMIN_RSP_SIZE);
    uint8_t phase = !(acq / ADMIN_ENTRIES & 1);
    unsigned spins;

    memset(slot, 0, SG_ADMIN_CMD_SIZE);
    memcpy(slot, cmd, len);
    reg_write(SG_REG_ADMIN_DB, ++asq);
    commands++;
    for (spins = 0; spins < 300 && (rsp->phase & 1) != phase; spins++) {
        sched_yield();
    }
    if ((rsp->phase & 1) != phase) {
        return 0;
    }
    answered++;
    acq++;
    reg_write(SG_REG_ADMIN_CI, acq);
    good += rsp->status == SG_OK;
    return rsp->status == SG_OK ? le32toh(rsp->id) : 0;
}

static void enable(void)
{
    struct sg_cmd_create_eq eq = { .hdr.opcode = SG_ADMIN_CREATE_EQ };

    asq = acq = aeq = 0;
    memset(mem, 0, DATA_PAGE * PAGE);
    reg_write64(SG_REG_ASQ_BASE_LO, bus[ASQ_PAGE]);
    reg_write64(SG_REG_ACQ_BASE_LO, bus[ACQ_PAGE]);
    reg_write64(SG_REG_AEQ_BASE_LO, bus[AEQ_PAGE]);
    reg_write(SG_REG_ADMIN_SIZE, ADMIN_ENTRIES);
    reg_write(SG_REG_AEQ_SIZE, AEQ_ENTRIES);
    reg_write(SG_REG_CTRL, SG_CTRL_ENABLE);
    eq.base = htole64(bus[EQ_PAGE]);
    eq.entries = htole32(64);
    eq.eqn = eq.vector = htole32(1);
    command(&eq, sizeof(eq));
}

static struct sg_sockaddr own_address(uint16_t port)
{
    return (struct sg_sockaddr){ .family = 4, .port = htobe16(port), .ip = { 10, 99, 0, 1 } };
}

static void make_qp(unsigned i)
{
    struct sg_cmd_create_qp c = {
        .hdr.opcode = SG_ADMIN_CREATE_QP,
        .pd = htole32(pd),
        .send_cqn = htole32(cqn),
        .recv_cqn = htole32(cqn),
        .sq_entries = htole32(WQ_ENTRIES),
        .rq_entries = htole32(WQ_ENTRIES),
        .sq_stride = htole16(WQ_STRIDE),
        .rq_stride = htole16(WQ_STRIDE),
        .sq_max_sge = 4,
        .rq_max_sge = 4,
        .access = htole32(SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC),
    };

    put_pages(&c.sq_pages, SQ_PAGE + i, 1);
    put_pages(&c.rq_pages, RQ_PAGE + i, 1);
    qpn[i] = command(&c, sizeof(c));
    sq_index[i] = rq_index[i] = 0;
}

static void make_objects(void)
{
    struct sg_admin_hdr new_pd = { .opcode = SG_ADMIN_CREATE_PD };
    struct sg_cmd_set_addr addr = {
        .hdr.opcode = SG_ADMIN_SET_ADDR,
        .addr = own_address(0),
        .op = SG_ADDR_ADD,
        .prefix_len = 24,
    };
    struct sg_cmd_create_cq cq = {
        .hdr.opcode = SG_ADMIN_CREATE_CQ,
        .entries = htole32(CQ_ENTRIES),
        .eqn = htole32(1),
        .record = htole64(bus[CQ_PAGE + 1]),
    };
    struct sg_cmd_reg_mr mr = {
        .hdr.opcode = SG_ADMIN_REG_MR,
        .access = htole32(0xf),
        .va = 0,
        .key = 1,
        .length = htole64(8 * PAGE),
    };

    command(&addr, sizeof(addr));
    pd = command(&new_pd, sizeof(new_pd));
    put_pages(&cq.pages, CQ_PAGE, 1);
    cqn = command(&cq, sizeof(cq));
    mr.pd = htole32(pd);
    put_pages(&mr.pages, DATA_PAGE, 8);
    stag = command(&mr, sizeof(mr));
    make_qp(0);
    make_qp(1);
}

/* Reads events, and accepts connection requests. */
static void look_at_events(void)
{
    unsigned n;

    for (n = 0; n < AEQ_ENTRIES; n++) {
        volatile struct sg_eqe *e = (void *)(page(AEQ_PAGE) + aeq % AEQ_ENTRIES * sizeof(*e));

        if ((e->phase & 1) != !(aeq / AEQ_ENTRIES & 1)) {
            break;
        }
        aeq++;
        events++;
        connections += e->event == SG_EV_CM_ESTABLISHED && e->cm_status == SG_CM_OK;
        if (e->event == SG_EV_CM_REQUEST) {
            struct sg_cmd_connect c = {
                .hdr.opcode = SG_ADMIN_ACCEPT,
                .qpn = htole32(qpn[1]),
                .conn = e->conn,
                .ird = htole16(4),
                .ord = htole16(4),
            };

            command(&c, sizeof(c));
        }
    }
    reg_write(SG_REG_EQ_DB, SG_EQ_DB_ARM | (aeq & SG_EQ_DB_CI_MASK));
}

static void connect_to_self(void)
{
    struct sg_cmd_listen l = {
        .hdr.opcode = SG_ADMIN_LISTEN,
        .local = own_address(OWN_PORT),
        .backlog = htole32(4),
    };
    struct sg_cmd_connect c = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .qpn = htole32(qpn[0]),
        .local = own_address(0),
        .remote = own_address(OWN_PORT),
        .ird = htole16(4),
        .ord = htole16(4),
    };
    unsigned n;

    command(&l, sizeof(l));
    command(&c, sizeof(c));
    for (n = 0; n < 20; n++) {
        look_at_events();
        usleep(200);
    }
}

static void any_command(struct thread *t)
{
    union {
        struct sg_admin_hdr hdr;
        uint32_t words[SG_ADMIN_CMD_SIZE / 4];
    } c;
    unsigned i;

    memset(&c, 0, sizeof(c));
    for (i = 2; i < SG_ADMIN_CMD_SIZE / 4; i++) {
        c.words[i] = htole32(number(t));
        if (i % 2 == 0 && draw(t, 4) == 0) {
            uint64_t at = address(t);

            c.words[i] = htole32((uint32_t)at);
            c.words[++i] = htole32((uint32_t)(at >> 32));
        }
    }
    c.hdr.opcode = (uint8_t)draw(t, SG_ADMIN_OPCODE_COUNT);
    command(&c, sizeof(c));
}

static void post_send(struct thread *t, unsigned i)
{
    uint32_t index = sq_index[i];
    uint8_t *slot = page(SQ_PAGE + i) + index % WQ_ENTRIES * WQ_STRIDE;
    struct sg_wqe_hdr h = {
        .opcode = (uint8_t)draw(t, SG_WR_ATOMIC_WRITE + 1),
        .flags = (uint8_t)draw(t, 8),
        .num_sge = (uint8_t)draw(t, 4),
        .index = htole32(index),
        .rkey = htole32(stag),
        .remote_addr = htole64(draw(t, 8 * PAGE)),
    };
    struct sg_sge *sge = (struct sg_sge *)(slot + sizeof(h));
    unsigned n;

    memcpy(slot, &h, sizeof(h));
    for (n = 0; n < h.num_sge; n++) {
        sge[n] = (struct sg_sge){
            .addr = htole64(draw(t, 8 * PAGE)),
            .length = htole32(draw(t, 4 * PAGE)),
            .lkey = htole32(draw(t, 8) ? stag : draw(t, 1 << 16)),
        };
    }
    sq_index[i] = index + 1;
    ring(0, SG_DB_SQ, qpn[i], index + 1);
}

static void post_receive(struct thread *t, unsigned i)
{
    uint32_t index = rq_index[i];
    uint8_t *slot = page(RQ_PAGE + i) + index % WQ_ENTRIES * WQ_STRIDE;
    struct sg_rqe_hdr h = { .index = htole32(index), .num_sge = 1 };
    struct sg_sge sge = {
        .addr = htole64(draw(t, 4 * PAGE)),
        .length = htole32(4 * PAGE),
        .lkey = htole32(stag),
    };

    memcpy(slot, &h, sizeof(h));
    memcpy(slot + sizeof(h), &sge, sizeof(sge));
    rq_index[i] = index + 1;
    ring(0, SG_DB_RQ, qpn[i], index + 1);
}

static void drive(struct thread *t)
{
    unsigned n, actions = 50 + draw(t, 400);

    rounds++;
    open_function();
    reg_write(SG_REG_CTRL, SG_CTRL_RESET);
    enable();
    make_objects();
    connect_to_self();
    for (n = 0; n < actions && !stop; n++) {
        switch (draw(t, 8)) {
        case 0:
            any_command(t);
            break;
        case 1:
            look_at_events();
            break;
        case 2:
        case 3:
            post_receive(t, draw(t, 2));
            break;
        default:
            post_send(t, draw(t, 2));
        }
    }
}

/* ---- the others ---- */

/* Changes words of rings, lists and records that the adapter reads; it pauses in between. */
static void scribble(struct thread *t)
{
    unsigned n = draw(t, 16);

    while (n--) {
        uint8_t *p = page(draw(t, DATA_PAGE + 10)) + 8 * draw(t, PAGE / 8);

        switch (draw(t, 4)) {
        case 0:
            *(volatile uint64_t *)p = htole64(address(t));
            break;
        case 1:
            *(volatile uint32_t *)p = htole32(number(t));
            break;
        case 2:
            p[draw(t, 8)] = (uint8_t)draw(t, 32);
            break;
        default:
            *(volatile uint64_t *)p = 0;
        }
    }
    usleep(draw(t, 20) ? 100 : 20000);
}

static void ring_doorbells(struct thread *t)
{
    unsigned n = draw(t, 16), i = draw(t, 2);

    while (n--) {
        unsigned at = 8 * draw(t, 5), place = draw(t, 8) ? 0 : draw(t, SG_UAR_COUNT);
        uint32_t index = draw(t, 4) ? sq_index[i] : number(t);

        ring(place, at, draw(t, 4) ? qpn[i] : number(t), index);
        if (draw(t, 8) == 0) {
            doorbells[place * SG_UAR_SIZE + draw(t, SG_UAR_SIZE)] = (uint8_t)draw(t, 256);
        }
    }
    usleep(draw(t, 300));
}

static void touch_msix(struct thread *t)
{
    volatile uint32_t *entry = (volatile uint32_t *)(msix + 16 * draw(t, MSIX_ENTRIES));
    uint64_t at = draw(t, 4) ? bus[VECTOR_PAGE] : bar_at[0] + 4 * draw(t, 0x60);

    entry[0] = htole32((uint32_t)at);
    entry[1] = htole32((uint32_t)(at >> 32));
    entry[2] = htole32(number(t));
    entry[3] = htole32(draw(t, 4) == 0);
}

static void touch_config(struct thread *t)
{
    unsigned express = capability(PCI_CAP_ID_EXP);

    switch (draw(t, 4)) {
    case 0:
        config_write(PCI_COMMAND, PCI_COMMAND_MEMORY);
        break;
    case 1:
        config_write(capability(PCI_CAP_ID_MSIX) + PCI_MSIX_FLAGS,
                     draw(t, 2) ? PCI_MSIX_FLAGS_ENABLE : PCI_MSIX_FLAGS_MASKALL);
        break;
    case 2:
        config_write(express ? express + PCI_EXP_DEVCTL : 0, PCI_EXP_DEVCTL_BCR_FLR);
        break;
    }
    usleep(1000);
    open_function();
}

static void touch_registers(struct thread *t)
{
    unsigned n;

    for (n = draw(t, 24); n; n--) {
        uint32_t at = draw(t, 4) ? 4 * draw(t, 0x40) : SG_REG_EQ_DB + 4 * draw(t, SG_EQ_COUNT + 1);

        if (draw(t, 2)) {
            reg_read(draw(t, 8) ? at : 4 * draw(t, SG_REGS_SIZE / 4));
        } else if (at == SG_REG_TEST_DMA_LO) {
            reg_write64(at, address(t));
        } else if (at != SG_REG_TEST_DMA_HI && (at != SG_REG_CTRL || draw(t, 200) == 0)) {
            reg_write(at, number(t));
        }
    }
    touch_msix(t);
    if (draw(t, 300) == 0) {
        touch_config(t);
    }
    usleep(draw(t, 300));
}

static void *run(void *argument)
{
    struct thread *t = argument;

    while (!stop) {
        t->step(t);
    }
    return NULL;
}

static bool is_alive(void)
{
    struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    unsigned long before;

    open_function();
    reg_write(SG_REG_CTRL, SG_CTRL_RESET);
    usleep(10000);
    enable();
    before = answered;
    command(&nop, sizeof(nop));
    return reg_read(SG_REG_MAGIC) == SG_MAGIC && answered == before + 1;
}

int main(int argc, char **argv)
{
    static struct thread threads[] = {
        { .step = drive },
        { .step = scribble },
        { .step = ring_doorbells },
        { .step = touch_registers },
    };
    enum { THREADS = sizeof(threads) / sizeof(threads[0]) };
    unsigned i;

    if (argc != 4) {
        return 2;
    }
    take_adapter(argv[1]);
    for (i = 0; i < THREADS; i++) {
        threads[i].random = strtoull(argv[3], NULL, 0) * 4 + i;
        if (pthread_create(&threads[i].id, NULL, run, &threads[i])) {
            die("thread");
        }
    }
    sleep((unsigned)atoi(argv[2]));
    stop = true;
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i].id, NULL);
    }
    printf("%lu rounds, %lu commands, %lu answered, %lu good, %lu events, %lu connections\n",
           rounds, commands, answered, good, events, connections);
    puts(is_alive() ? "alive" : "dead");
    return 0;
}
