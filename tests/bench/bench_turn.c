/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The longest time for which a hostile guest can keep QEMU's lock with one call of the core.
 *
 *     bench_turn [--qps N] [--mrs N] [--pages N]
 *
 * Two adapters in one process, joined in memory; the clock of their machine is this process's CPU
 * time, so that a turn is bounded as in QEMU.  Each row makes a guest cause the most work for the
 * adapter of side 0 at the least cost of its own, and prints the longest call and the sum of all
 * calls.  A call is a register write, a doorbell, or a turn with the budget of the bottom half.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "many.h"
#include "test_pm.h"

enum { BUDGET = 1 << 20, LEAVES = SG_PAGE_SIZE / 8, TIMERS = 4096, ASKED = 2 };

static struct many m;
static struct test_pm pm;
static unsigned qps = 4096, mrs = 262144, pages = 1 << 24;
static uint64_t leaf, tops;
static double worst_of_all;

static uint64_t cpu_now(void *host)
{
    struct timespec ts;

    (void)host;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The machine's clock, which stands still while it is set. */
static uint64_t frozen;

static uint64_t machine_now(void *host)
{
    return frozen ? frozen : cpu_now(host);
}

static unsigned (*fast_query)(void *host, uint64_t addr, uint64_t len);

/* A look-up in QEMU's address spaces takes half a microsecond, as this function does. */
static unsigned query(void *host, uint64_t addr, uint64_t len)
{
    cpu_now(NULL);
    cpu_now(NULL);
    return fast_query(host, addr, len);
}

/* Time of the calls of a row. */
static uint64_t longest, sum;
static unsigned calls;

static void note(uint64_t begin)
{
    uint64_t took = cpu_now(NULL) - begin;

    longest = SG_MAX(longest, took);
    sum += took;
    calls++;
}

/* Runs turns until side 0 has nothing to do; side 1 runs in between, not measured. */
static void turns(void)
{
    struct pair_side *s = &m.pair.side[0];
    bool more = true;

    while (more) {
        uint64_t begin = cpu_now(NULL);

        more = sg_adapter_run(s->md.a, BUDGET);
        note(begin);
        test_host_take_kick(&s->h);
        while (sg_adapter_run(m.pair.side[1].md.a, BUDGET)) {
        }
        more |= test_host_take_kick(&s->h);
    }
}

static void begin_row(void)
{
    longest = sum = calls = 0;
}

static void end_row(const char *name)
{
    printf("%-58s %8.2f ms %10.1f ms %6u\n", name, (double)longest / 1e6, (double)sum / 1e6, calls);
    worst_of_all = SG_MAX(worst_of_all, (double)longest / 1e6);
}

static void reg_write(uint32_t reg, uint32_t value)
{
    uint64_t begin = cpu_now(NULL);

    sg_adapter_reg_write(m.pair.side[0].md.a, reg, value, 4);
    note(begin);
}

static void ring(struct md_qp *qp)
{
    uint64_t begin = cpu_now(NULL);

    sg_adapter_doorbell(qp->md->a, 0, SG_DB_SQ, qp->qpn | (uint64_t)qp->sq.prod << 32, 8);
    note(begin);
}

/* A list of two levels, all of whose leaves are one page; its pages alternate if it is mixed. */
static void make_lists(void)
{
    struct test_host *h = &m.pair.side[0].h;
    uint32_t i;

    leaf = test_host_alloc(h, SG_PAGE_SIZE, SG_PAGE_SIZE);
    tops = test_host_alloc(h, pages / LEAVES * 8, 8);
    for (i = 0; i < LEAVES; i++) {
        sg_put_le64(test_host_ptr(h, leaf + 8 * i), i % 2 ? pm.lo : TEST_HOST_BASE);
    }
    for (i = 0; i < pages / LEAVES; i++) {
        sg_put_le64(test_host_ptr(h, tops + 8ull * i), leaf);
    }
}

static struct sg_cmd_reg_mr reg_cmd(uint32_t count, uint32_t access)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(m.pair.side[0].pd, 0, (uint64_t)count << 12, access);

    c.pages = (struct sg_page_list){ .levels = 2, .page_shift = 12 };
    sg_put_le64(&c.pages.addr, tops);
    sg_put_le32(&c.pages.count, count);
    return c;
}

/* Posts the command 'times' times; returns the number in the last answer. */
static uint32_t commands(const char *name, const void *cmd, size_t len, unsigned times)
{
    struct md *md = &m.pair.side[0].md;
    struct sg_admin_rsp rsp = { 0 };
    unsigned i;

    begin_row();
    for (i = 0; i < times; i++) {
        md_submit(md, cmd, len);
    }
    turns();
    while (md_reap(md, &rsp)) {
        if (rsp.status != SG_OK) {
            printf("# %s: status %u\n", name, (unsigned)rsp.status);
        }
    }
    end_row(name);
    return sg_get_le32(&rsp.id);
}

static void put_bind(struct md_qp *qp, uint32_t window, uint32_t region, uint64_t len)
{
    struct sg_wqe_hdr *h = md_sq_entry(qp);
    struct sg_wqe_bind *b = (struct sg_wqe_bind *)(h + 1);

    h->opcode = SG_WR_BIND_MW;
    sg_put_le32(&b->stag, window);
    sg_put_le32(&b->mr_stag, region);
    sg_put_le32(&b->access, SG_ACCESS_REMOTE_READ);
    sg_put_le64(&b->length, len);
}

/* Connects queue pairs with room for many binds; returns the one of side 0. */
static struct md_qp *deep(void)
{
    for (int side = 0; side < 2; side++) {
        struct pair_side *s = &m.pair.side[side];

        md_create_qp(&s->md, &s->qp,
                     &(struct md_qp_params){
                         .pd = s->pd,
                         .scq = &s->cq,
                         .rcq = &s->cq,
                         .entries = MANY_DEPTH,
                         .stride = 128,
                         .access = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE |
                                   SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_FLUSH_PERSISTENT |
                                   SG_ACCESS_VERIFY,
                     });
    }
    pair_connect(&m.pair);
    return &m.pair.side[0].qp;
}

static void memory(void)
{
    struct pair_side *s = &m.pair.side[0];
    uint32_t all = SG_ACCESS_MW_BIND | SG_ACCESS_LOCAL_WRITE, window, i;
    struct sg_cmd_reg_mr big = reg_cmd(pages, all), small = reg_cmd(65536, all);
    struct sg_cmd_id dereg = { .hdr.opcode = SG_ADMIN_DEREG_MR };
    struct md_qp *qp;
    uint32_t stag;

    stag = commands("REG_MR of the longest list, mixed memory", &big, sizeof(big), 1);
    qp = deep();
    window = md_alloc_mw(&s->md, s->pd, SG_MW_TYPE_1);
    s->md.hold = true;
    begin_row();
    for (i = 0; i < 64; i++) {
        put_bind(qp, window, stag, (uint64_t)pages << 12);
    }
    ring(qp);
    turns();
    end_row("64 BIND_MW of all of it");
    begin_row();
    for (i = 0; i < MANY_DEPTH - 64; i++) {
        put_bind(qp, window, stag, 0);
    }
    ring(qp);
    turns();
    end_row("4,032 BIND_MW that unbind");
    sg_put_le32(&dereg.id, stag);
    commands("DEREG_MR of it", &dereg, sizeof(dereg), 1);
    commands("8 REG_MR of 65,536 pages", &small, sizeof(small), 8);
}

/* The peer of the deep queue pair posts many requests, each as large as possible. */
static void ask(const char *name, uint32_t stag, uint8_t opcode, uint32_t flags)
{
    struct md_qp *qp = &m.pair.side[1].qp;
    unsigned i;

    for (i = 0; i < ASKED; i++) {
        struct sg_wqe_hdr *h = md_sq_entry(qp);
        struct sg_wqe_place *p = (struct sg_wqe_place *)(h + 1);

        h->opcode = opcode;
        sg_put_le32(&h->rkey, stag);
        sg_put_le32(&p->length, (uint32_t)SG_MIN((uint64_t)pages << 12, (uint64_t)UINT32_MAX));
        sg_put_le32(&p->flags, flags);
    }
    begin_row();
    sg_adapter_doorbell(qp->md->a, 0, SG_DB_SQ, qp->qpn | (uint64_t)qp->sq.prod << 32, 8);
    while (sg_adapter_run(qp->md->a, BUDGET)) {
    }
    turns();
    end_row(name);
}

static void placement(void)
{
    struct sg_cmd_reg_mr c =
        reg_cmd(pages, SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_VERIFY | SG_ACCESS_REMOTE_READ);
    struct sg_cmd_id dereg = { .hdr.opcode = SG_ADMIN_DEREG_MR };
    struct test_host *h = &m.pair.side[0].h;
    uint32_t stag, i;

    c.hash_alg = SG_HASH_CRC32C;
    stag = commands("REG_MR for Flush and Verify", &c, sizeof(c), 1);
    ask("2 Flushes of 4 GiB, mixed memory", stag, SG_WR_FLUSH, SG_FLUSH_GLOBAL);
    ask("2 Verifies of 4 GiB, mixed memory, CRC32C", stag, SG_WR_VERIFY, 0);
    sg_put_le32(&dereg.id, stag);
    commands("DEREG_MR of it", &dereg, sizeof(dereg), 1);
    for (i = 0; i < LEAVES; i++) {
        sg_put_le64(test_host_ptr(h, leaf + 8 * i), pm.lo);
    }
    c = reg_cmd(pages, SG_ACCESS_FLUSH_PERSISTENT | SG_ACCESS_VERIFY);
    c.hash_alg = SG_HASH_SHA512;
    stag = commands("REG_MR of persistent memory alone", &c, sizeof(c), 1);
    ask("2 Flushes of 4 GiB of it", stag, SG_WR_FLUSH, SG_FLUSH_PERSISTENT);
    sg_put_le32(&dereg.id, stag);
    commands("DEREG_MR of it", &dereg, sizeof(dereg), 1);
    for (i = 0; i < LEAVES; i++) {
        sg_put_le64(test_host_ptr(h, leaf + 8 * i), i % 2 ? pm.lo : TEST_HOST_BASE);
    }
}

/* Many completion queues with one completion each; all moderation periods end at one time. */
static void moderation(void)
{
    struct sg_cmd_modify_cq c = { .hdr.opcode = SG_ADMIN_MODIFY_CQ };
    struct pair_side *s = &m.pair.side[0];
    unsigned n = SG_MIN(qps, (unsigned)TIMERS), i;
    struct md_cq *cq = calloc(n, sizeof(*cq));
    struct sg_eqe e;
    struct md_qp qp;

    s->md.hold = false;
    frozen = cpu_now(NULL);
    sg_put_le16(&c.count, UINT16_MAX);
    sg_put_le16(&c.period, 20000);
    for (i = 0; i < n; i++) {
        md_create_cq(&s->md, &cq[i], 16);
        sg_put_le32(&c.cqn, cq[i].cqn);
        md_cmd(&s->md, &c, sizeof(c), NULL);
        md_create_qp(&s->md, &qp,
                     &(struct md_qp_params){
                         .pd = s->pd,
                         .scq = &cq[i],
                         .rcq = &cq[i],
                         .entries = 4,
                         .stride = 128,
                     });
        md_arm(&cq[i], false);
        md_modify_qp(&qp, SG_QP_ERROR);
        md_post_recv(&qp, i, s->buf, 8, s->stag);
        md_settle(&s->md);
        md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, qp.qpn);
        while (md_next_async(&s->md, &e)) {
        }
    }
    frozen += 30000000;
    begin_row();
    turns();
    end_row("the periods of 4,096 moderated CQs end at once");
    frozen = 0;
    free(cq);
}

static void queues(void)
{
    struct pair_side *s = &m.pair.side[0];
    unsigned i, k;

    s->md.hold = true;
    begin_row();
    for (i = 0; i < m.count; i++) {
        struct sg_sge sge = many_sge(s->buf, s->stag);

        for (k = 0; k < MANY_ENTRIES; k++) {
            many_put(&m.qp[0][i], SG_WR_WRITE, 0, &sge, m.pair.side[1].buf, m.pair.side[1].stag);
        }
        ring(&m.qp[0][i]);
    }
    turns(); /* their completion queue is too small: it overruns, and they all end */
    end_row("doorbells of all queue pairs, then their CQ overruns");
}

static void listeners(void)
{
    struct sg_cmd_id unlisten = { .hdr.opcode = SG_ADMIN_UNLISTEN };
    struct sg_endpoint any = { .family = 4, .port = 999 };
    struct sg_cmd_listen l = { .hdr.opcode = SG_ADMIN_LISTEN };

    l.local = md_addr(&any, 999);
    sg_put_le32(&l.backlog, 100);
    sg_put_le32(&unlisten.id, commands("LISTEN", &l, sizeof(l), 1));
    commands("UNLISTEN", &unlisten, sizeof(unlisten), 1);
}

static void ends(void)
{
    struct pair_side *s = &m.pair.side[0];
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(s->pd, s->buf, 4096, 0);
    unsigned i;

    for (i = 0; i < mrs; i++) {
        md_make(&s->md, &c, sizeof(c));
    }
    begin_row();
    reg_write(SG_REG_CTRL, SG_CTRL_RESET);
    turns();
    end_row("CTRL.RESET with all queue pairs and regions");
}

int main(int argc, char **argv)
{
    int i;

    for (i = 1; i + 1 < argc; i += 2) {
        unsigned n = (unsigned)strtoul(argv[i + 1], NULL, 10);

        *(!strcmp(argv[i], "--qps") ? &qps : !strcmp(argv[i], "--mrs") ? &mrs : &pages) = n;
    }
    many_start(&m, qps,
               2 * (pages / LEAVES * 8 + MANY_DEPTH * 128 + 16 * SG_PAGE_SIZE) +
                   SG_MIN(qps, (unsigned)TIMERS) * 8ull * SG_PAGE_SIZE);
    pm.h = &m.pair.side[0].h;
    {
        uint64_t lo = test_host_alloc(pm.h, 2 * SG_PAGE_SIZE, SG_PAGE_SIZE);

        test_pm_init(&pm, pm.h, lo, lo + 2 * SG_PAGE_SIZE);
    }
    fast_query = pm.h->ops.pm_query;
    pm.h->ops.pm_query = query;
    make_lists();
    m.pair.side[0].h.ops.now = machine_now;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%u queue pairs, %u regions, %u pages of a list\n%-58s %11s %13s %6s\n", qps, mrs, pages,
           "", "longest", "all", "calls");
    memory();
    placement();
    m.pair.side[0].md.hold = false;
    moderation();
    many_connect(&m, qps);
    listeners();
    queues();
    m.pair.side[0].md.hold = false;
    ends();
    printf("longest of all: %.2f ms\n", worst_of_all);
    many_stop(&m);
    test_pm_fini(&pm);
    return 0;
}
