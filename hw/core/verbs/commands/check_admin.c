/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver checker's view of the admin queue: indices, commands that change after their doorbell,
 * and commands that name what does not exist or is in use.
 *
 * Objects that end without their driver (connections) are not judged: it may name them in good
 * faith.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/events/eq.h"
#include "verbs/state/adapter_state.h"

enum { NAMES = 4 };

/* A number in a command, and what it names; offset 0: none. */
struct name {
    uint8_t kind, offset;
};

struct checked_command {
    uint8_t makes; /* enum sg_object_kind; 0: nothing */
    bool ends;     /* its first name */
    bool order;    /* EBUSY is a mistake of the driver alone */
    struct name names[NAMES];
};

#define ONE(k) { { SG_OBJECT_##k, 8 } }

static const struct checked_command rows[SG_ADMIN_OPCODE_COUNT] = {
    [SG_ADMIN_CREATE_EQ] = { SG_OBJECT_EQ, .order = true },
    [SG_ADMIN_DESTROY_EQ] = { .ends = true, .order = true, .names = ONE(EQ) },
    [SG_ADMIN_CREATE_PD] = { SG_OBJECT_PD },
    [SG_ADMIN_DESTROY_PD] = { .ends = true, .order = true, .names = ONE(PD) },
    [SG_ADMIN_REG_MR] = { SG_OBJECT_MR, .names = ONE(PD) },
    [SG_ADMIN_DEREG_MR] = { .ends = true, .names = ONE(MR) },
    [SG_ADMIN_ALLOC_MR] = { SG_OBJECT_MR, .names = ONE(PD) },
    [SG_ADMIN_ALLOC_MW] = { SG_OBJECT_MR, .names = ONE(PD) },
    [SG_ADMIN_DEALLOC_MW] = { .ends = true, .names = ONE(MR) },
    [SG_ADMIN_CREATE_CQ] = { SG_OBJECT_CQ, .names = { { SG_OBJECT_EQ, 12 } } },
    [SG_ADMIN_DESTROY_CQ] = { .ends = true, .order = true, .names = ONE(CQ) },
    [SG_ADMIN_RESIZE_CQ] = { .names = ONE(CQ) },
    [SG_ADMIN_MODIFY_CQ] = { .names = ONE(CQ) },
    [SG_ADMIN_CREATE_QP] = { SG_OBJECT_QP, .names = { { SG_OBJECT_PD, 8 },
                                                      { SG_OBJECT_CQ, 12 },
                                                      { SG_OBJECT_CQ, 16 },
                                                      { SG_OBJECT_SRQ, 20 } } },
    [SG_ADMIN_MODIFY_QP] = { .names = ONE(QP) },
    [SG_ADMIN_QUERY_QP] = { .names = ONE(QP) },
    [SG_ADMIN_DESTROY_QP] = { .ends = true, .names = ONE(QP) },
    [SG_ADMIN_CREATE_SRQ] = { SG_OBJECT_SRQ, .names = ONE(PD) },
    [SG_ADMIN_MODIFY_SRQ] = { .names = ONE(SRQ) },
    [SG_ADMIN_QUERY_SRQ] = { .names = ONE(SRQ) },
    [SG_ADMIN_RESIZE_SRQ] = { .names = ONE(SRQ) },
    [SG_ADMIN_DESTROY_SRQ] = { .ends = true, .order = true, .names = ONE(SRQ) },
    [SG_ADMIN_LISTEN] = { SG_OBJECT_LISTENER },
    [SG_ADMIN_UNLISTEN] = { .ends = true, .names = ONE(LISTENER) },
};

static_assert(offsetof(struct sg_cmd_id, id) == 8 && offsetof(struct sg_cmd_create_cq, eqn) == 12 &&
                  offsetof(struct sg_cmd_create_qp, srqn) == 20,
              "the table has these offsets");

static struct sg_object queue(void)
{
    return sg_object(SG_OBJECT_ADMIN, 0);
}

void sg_check_admin_posted(struct sg_adapter *a, uint32_t before)
{
    struct sg_admin_queue *q = a->admin;
    uint8_t cmd[SG_ADMIN_CMD_SIZE];
    uint32_t i;

    sg_check_event(a->check, queue(), SG_DID_POST, q->sq.prod, before);
    if ((int32_t)(q->sq.prod - before) < 0) {
        sg_check_found(a, SG_RULE_ADMIN_BACK, queue(), "admin doorbell %u, before %u", q->sq.prod,
                       before);
        return;
    }
    for (i = before; q->sums && i != q->sq.prod; i++) { /* at most ADMIN_SIZE of them */
        q->sums->sum[i & (q->sums->entries - 1)] =
            sg_ring_fetch(&q->sq, &a->host, i, 0, cmd, sizeof(cmd)) ? sg_check_sum(cmd, sizeof(cmd))
                                                                    : 0;
    }
}

void sg_check_admin_consumed(struct sg_adapter *a, uint32_t before)
{
    const uint32_t ci = a->admin->cq.cons;

    sg_check_event(a->check, queue(), SG_DID_ANSWER, ci, a->admin->cq.prod);
    if ((int32_t)(ci - before) < 0) {
        sg_check_found(a, SG_RULE_ADMIN_CI_BACK, queue(),
                       "admin completion ring: consumer index %u, before %u", ci, before);
    }
}

void sg_check_admin_fetched(struct sg_adapter *a)
{
    struct sg_admin_queue *q = a->admin;
    const struct sg_admin_hdr *hdr = (const void *)q->cmd;
    const uint32_t then = q->sums ? q->sums->sum[q->sq.cons & (q->sums->entries - 1)] : 0;

    if (then && then != sg_check_sum(q->cmd, sizeof(q->cmd))) {
        sg_check_found(a, SG_RULE_ADMIN_CHANGED, queue(),
                       "command %u was changed between its doorbell and its completion",
                       q->sq.cons);
    } else if (hdr->reserved_8 || sg_get_le32(&hdr->reserved_32)) {
        sg_check_found(a, SG_RULE_ADMIN_RESERVED, queue(),
                       "command %u, opcode 0x%02x: reserved fields of its header are not 0",
                       q->sq.cons, hdr->opcode);
    }
}

static bool exists(struct sg_adapter *a, uint8_t kind, uint32_t id)
{
    switch (kind) {
    case SG_OBJECT_EQ:
        return id < SG_EQ_COUNT && a->eqs[id];
    case SG_OBJECT_PD:
        return sg_idtab_get(&a->pds, id);
    case SG_OBJECT_CQ:
        return sg_idtab_get(&a->cqs, id);
    case SG_OBJECT_QP:
        return sg_idtab_get(&a->qps, id);
    case SG_OBJECT_SRQ:
        return sg_idtab_get(&a->srqs, id);
    case SG_OBJECT_LISTENER:
        return sg_idtab_get(&a->listeners, id);
    default:
        return false;
    }
}

static uint32_t number(const struct sg_admin_queue *q, const struct name *n)
{
    return sg_get_le32(q->cmd + n->offset);
}

static void missing(struct sg_adapter *a, const struct checked_command *row, uint8_t opcode)
{
    for (unsigned i = 0; i < NAMES && row->names[i].offset; i++) {
        const struct name *n = &row->names[i];
        uint32_t id = number(a->admin, n);
        bool was = sg_check_was(a->check, n->kind, id);

        if (!exists(a, n->kind, id)) {
            sg_check_found(a, was ? SG_RULE_ADMIN_GONE : SG_RULE_ADMIN_UNKNOWN,
                           sg_object(n->kind, id), "command with opcode 0x%02x names %s", opcode,
                           was ? "what was destroyed" : "what never was");
            return;
        }
    }
}

void sg_check_admin_done(struct sg_adapter *a, const struct sg_admin_rsp *rsp)
{
    const uint8_t opcode = ((const struct sg_admin_hdr *)(const void *)a->admin->cmd)->opcode;
    const struct checked_command *row = opcode < SG_ADMIN_OPCODE_COUNT ? &rows[opcode] : &rows[0];
    const struct name *first = &row->names[0];
    struct sg_object o = queue();

    sg_check_event(a->check, o, SG_DID_COMMAND, opcode, rsp->status);
    if (rsp->status == SG_OK && row->makes) {
        o = sg_object(row->makes, sg_get_le32(&rsp->id));
        sg_check_made(a->check, row->makes, o.id);
    } else if (first->offset) {
        o = sg_object(first->kind, number(a->admin, first));
    }
    if (o.kind != SG_OBJECT_ADMIN) {
        sg_check_event(a->check, o, SG_DID_COMMAND, opcode, rsp->status);
    }
    if (rsp->status == SG_OK && row->ends && first->kind == SG_OBJECT_MR) {
        sg_check_stag_ended(a->check, o.id);
    } else if (rsp->status == SG_ENOENT) {
        missing(a, row, opcode);
    } else if (rsp->status == SG_EBUSY && row->order) {
        sg_check_found(a, SG_RULE_ADMIN_BUSY, o,
                       "command with opcode 0x%02x: it is in use, or the number is taken", opcode);
    }
}
