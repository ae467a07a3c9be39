/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "many.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tcp_link.h"

enum { RINGS = 2 * SG_PAGE_SIZE, PRIVATE = SG_PAGE_SIZE };

/* NULL: in memory. */
static void start(struct many *m, struct pair_link *link, unsigned qps, size_t extra)
{
    static const struct sg_mem_options immediate;
    struct sg_adapter_config config;
    /* Two send and receive queues, and completion queues, of MANY_DEPTH entries of 64 octets. */
    size_t mem = PAIR_MEM + 8 * (size_t)MANY_DEPTH * 64 + (size_t)qps * RINGS + PRIVATE + extra;

    memset(m, 0, sizeof(*m));
    pair_default_config(&config);
    if (link) {
        pair_start_on(&m->pair, &config, link, mem);
    } else {
        pair_start_sized(&m->pair, &config, &immediate, mem);
    }
    for (int side = 0; side < 2; side++) {
        struct test_host *h = &m->pair.side[side].h;

        memset(h->log_on, 0, sizeof(h->log_on));
        m->qp[side] = calloc(qps, sizeof(struct md_qp));
    }
}

void many_start(struct many *m, unsigned qps, size_t extra)
{
    start(m, NULL, qps, extra);
}

void many_start_tcp(struct many *m, unsigned qps, size_t extra)
{
    struct tcp_link_options options = {
        .port = { .mtu = 9000, .send_buffer = MANY_TCP_RING },
    };

    start(m, tcp_link_new(&options), qps, extra);
}

void many_stop(struct many *m)
{
    pair_stop(&m->pair);
    free(m->qp[0]);
    free(m->qp[1]);
}

/* A queue pair at each side, connected with the other. */
static void open_one(struct many *m, struct md_qp qp[2], struct md_cq *cq[2], uint32_t entries)
{
    for (int side = 0; side < 2; side++) {
        struct pair_side *s = &m->pair.side[side];

        md_create_qp(&s->md, &s->qp,
                     &(struct md_qp_params){
                         .pd = s->pd,
                         .scq = cq[side],
                         .rcq = cq[side],
                         .entries = entries,
                         .stride = 64,
                     });
    }
    pair_connect(&m->pair);
    for (int side = 0; side < 2; side++) {
        qp[side] = m->pair.side[side].qp;
        md_arm_eq(&m->pair.side[side].md, 0);
    }
}

void many_connect(struct many *m, unsigned count)
{
    struct md_cq *cq[2] = { &m->pair.side[0].cq, &m->pair.side[1].cq };

    for (; m->count < count; m->count++) {
        struct md_qp qp[2];

        open_one(m, qp, cq, MANY_ENTRIES);
        m->qp[0][m->count] = qp[0];
        m->qp[1][m->count] = qp[1];
    }
}

void many_deep(struct many *m, struct md_qp qp[2], struct md_cq cq[2])
{
    struct md_cq *own[2] = { &cq[0], &cq[1] };

    for (int side = 0; side < 2; side++) {
        md_create_cq(&m->pair.side[side].md, &cq[side], MANY_DEPTH);
    }
    open_one(m, qp, own, MANY_DEPTH);
}

struct sg_sge many_sge(uint64_t addr, uint32_t lkey)
{
    struct sg_sge sge;

    sg_put_le64(&sge.addr, addr);
    sg_put_le32(&sge.length, MANY_LEN);
    sg_put_le32(&sge.lkey, lkey);
    return sge;
}

void many_put(struct md_qp *qp, uint8_t opcode, uint64_t wr_id, const struct sg_sge *local,
              uint64_t raddr, uint32_t rkey)
{
    struct sg_wqe_hdr *h = md_sq_entry(qp);

    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = 1;
    sg_put_le64(&h->wr_id, wr_id);
    sg_put_le64(&h->remote_addr, raddr);
    sg_put_le32(&h->rkey, rkey);
    memcpy(h + 1, local, sizeof(*local));
}

double many_allocated(void)
{
    struct mallinfo2 m = mallinfo2();

    return (double)m.uordblks + (double)m.hblkhd;
}
