/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The admin queue.
 *
 * The driver writes commands into a ring and the producer index into a register.  Commands run in
 * order in sg_adapter_run(), a bounded number per turn; many page addresses and time also end the
 * turn.  Each is copied out of guest memory once; a long one is called again in the next turn.  The
 * table below has one row per opcode.  The dispatcher fetches the command, finds the row, calls the
 * handler, and writes the completion with cookie, status and phase.
 *
 * Completions raise SG_EV_ADMIN only while the async event queue is armed: drivers may poll the
 * admin queue instead.  A completion between two armings raises the event at the next one.
 *
 * Execution stops while the completion ring is full and continues when the driver moves its
 * consumer index.  A producer index beyond the ring, or a ring that fails DMA, is fatal.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/events/eq.h"
#include "verbs/state/adapter_state.h"

struct admin_row {
    const char *name;
    sg_admin_fn *run;  /* NULL: reserved */
    uint32_t features; /* SG_FEATURE_* without which the opcode is unknown */
};

static enum sg_status cmd_nop(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    (void)a, (void)cmd, (void)rsp;
    return SG_OK;
}

static const struct admin_row rows[SG_ADMIN_OPCODE_COUNT] = {
    [SG_ADMIN_NOP] = { "NOP", cmd_nop },
    [SG_ADMIN_QUERY_CAPS] = { "QUERY_CAPS", sg_cmd_query_caps },
    [SG_ADMIN_QUERY_STATS] = { "QUERY_STATS", sg_cmd_query_stats },
    [SG_ADMIN_CREATE_EQ] = { "CREATE_EQ", sg_cmd_create_eq },
    [SG_ADMIN_DESTROY_EQ] = { "DESTROY_EQ", sg_cmd_destroy_eq },
    [SG_ADMIN_SET_ADDR] = { "SET_ADDR", sg_cmd_set_addr },
    [SG_ADMIN_SET_PORT] = { "SET_PORT", sg_cmd_set_port },
    [SG_ADMIN_QUERY_QP_STATS] = { "QUERY_QP_STATS", sg_cmd_query_qp_stats },
    [SG_ADMIN_QUERY_MR_STATS] = { "QUERY_MR_STATS", sg_cmd_query_mr_stats },
    [SG_ADMIN_CREATE_PD] = { "CREATE_PD", sg_cmd_create_pd },
    [SG_ADMIN_DESTROY_PD] = { "DESTROY_PD", sg_cmd_destroy_pd },
    [SG_ADMIN_REG_MR] = { "REG_MR", sg_cmd_reg_mr },
    [SG_ADMIN_DEREG_MR] = { "DEREG_MR", sg_cmd_dereg_mr },
    [SG_ADMIN_MODIFY_MR] = { "MODIFY_MR", sg_cmd_modify_mr },
    [SG_ADMIN_ALLOC_MR] = { "ALLOC_MR", sg_cmd_alloc_mr, SG_FEATURE_FAST_REG },
    [SG_ADMIN_ALLOC_MW] = { "ALLOC_MW", sg_cmd_alloc_mw, SG_FEATURE_MW },
    [SG_ADMIN_DEALLOC_MW] = { "DEALLOC_MW", sg_cmd_dealloc_mw, SG_FEATURE_MW },
    [SG_ADMIN_MAP_PAGES] = { "MAP_PAGES", sg_cmd_map_pages, SG_FEATURE_ODP },
    [SG_ADMIN_CREATE_CQ] = { "CREATE_CQ", sg_cmd_create_cq },
    [SG_ADMIN_DESTROY_CQ] = { "DESTROY_CQ", sg_cmd_destroy_cq },
    [SG_ADMIN_RESIZE_CQ] = { "RESIZE_CQ", sg_cmd_resize_cq },
    [SG_ADMIN_MODIFY_CQ] = { "MODIFY_CQ", sg_cmd_modify_cq },
    [SG_ADMIN_CREATE_QP] = { "CREATE_QP", sg_cmd_create_qp },
    [SG_ADMIN_MODIFY_QP] = { "MODIFY_QP", sg_cmd_modify_qp },
    [SG_ADMIN_QUERY_QP] = { "QUERY_QP", sg_cmd_query_qp },
    [SG_ADMIN_DESTROY_QP] = { "DESTROY_QP", sg_cmd_destroy_qp },
    [SG_ADMIN_CREATE_SRQ] = { "CREATE_SRQ", sg_cmd_create_srq, SG_FEATURE_SRQ },
    [SG_ADMIN_MODIFY_SRQ] = { "MODIFY_SRQ", sg_cmd_modify_srq, SG_FEATURE_SRQ },
    [SG_ADMIN_DESTROY_SRQ] = { "DESTROY_SRQ", sg_cmd_destroy_srq, SG_FEATURE_SRQ },
    [SG_ADMIN_QUERY_SRQ] = { "QUERY_SRQ", sg_cmd_query_srq, SG_FEATURE_SRQ },
    [SG_ADMIN_RESIZE_SRQ] = { "RESIZE_SRQ", sg_cmd_resize_srq,
                              SG_FEATURE_SRQ | SG_FEATURE_SRQ_RESIZE },
    [SG_ADMIN_LISTEN] = { "LISTEN", sg_cmd_listen },
    [SG_ADMIN_UNLISTEN] = { "UNLISTEN", sg_cmd_unlisten },
    [SG_ADMIN_CONNECT] = { "CONNECT", sg_cmd_connect },
    [SG_ADMIN_ACCEPT] = { "ACCEPT", sg_cmd_accept },
    [SG_ADMIN_REJECT] = { "REJECT", sg_cmd_reject },
    [SG_ADMIN_CM_DATA] = { "CM_DATA", sg_cmd_cm_data },
    [SG_ADMIN_FLASH_INFO] = { "FLASH_INFO", sg_cmd_flash_info },
    [SG_ADMIN_FLASH_READ] = { "FLASH_READ", sg_cmd_flash_read },
    [SG_ADMIN_FLASH_WRITE] = { "FLASH_WRITE", sg_cmd_flash_write },
    [SG_ADMIN_FLASH_COMMIT] = { "FLASH_COMMIT", sg_cmd_flash_commit },
};

static const char *command_name(unsigned opcode)
{
    return rows[opcode].run ? rows[opcode].name : NULL;
}

const struct sg_fault_words sg_adapter_fault_words = { SG_ADMIN_OPCODE_COUNT, command_name };

static enum sg_rule refused_rule(const struct sg_adapter *a, enum sg_status status)
{
    if (a->admin->unforeseen) {
        return SG_RULE_NONE;
    }
    return status == SG_EFAULT ? SG_RULE_ADMIN_MEMORY : SG_RULE_ADMIN_FIELD;
}

static enum sg_status dispatch(struct sg_adapter *a, const uint8_t *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_admin_hdr *hdr = (const void *)cmd;
    const struct admin_row *row;
    enum sg_status status;

    a->admin->unfinished = a->admin->unforeseen = false;
    if (a->admin->fate.effect == SG_EFFECT_FAIL) {
        return (enum sg_status)a->admin->fate.value;
    }
    row = hdr->opcode < SG_ADMIN_OPCODE_COUNT ? &rows[hdr->opcode] : NULL;
    if (!row || !row->run || !sg_adapter_may(a, row->features)) {
        sg_guest_error(a, SG_RULE_ADMIN_OPCODE, sg_object(SG_OBJECT_ADMIN, 0),
                       "admin: opcode 0x%02x is unknown or reserved", hdr->opcode);
        return SG_EOPCODE;
    }
    status = row->run(a, cmd, rsp);
    if (a->admin->unfinished) {
        return status;
    }
    if (status == SG_EINVAL || status == SG_EFAULT) {
        sg_guest_error(a, refused_rule(a, status), sg_object(SG_OBJECT_ADMIN, 0),
                       "admin: %s: status %d", row->name, status);
    } else {
        sg_log(&a->host, SG_LOG_TRACE, "admin: %s: status %d, id 0x%x", row->name, status,
               sg_get_le32(&rsp->id));
    }
    return status;
}

static bool complete(struct sg_adapter *a, struct sg_admin_rsp *rsp)
{
    struct sg_admin_queue *q = a->admin;

    if (!sg_ring_post(&q->cq, &a->host, rsp, sizeof(*rsp), NULL)) {
        sg_adapter_fatal(a, SG_FATAL_DMA);
        return false;
    }
    return true;
}

static SG_COLD enum sg_status dispatch_checked(struct sg_adapter *a, struct sg_admin_rsp *rsp)
{
    struct sg_admin_queue *q = a->admin;

    if (!q->unfinished) {
        sg_check_admin_fetched(a);
    }
    rsp->status = dispatch(a, q->cmd, rsp);
    if (!q->unfinished && q->fate.effect != SG_EFFECT_FAIL) {
        sg_check_admin_done(a, rsp);
    }
    return rsp->status;
}

/* The command was copied: asks the fault rules about it.  False: it is not executed yet. */
static SG_COLD bool meet_fate(struct sg_adapter *a)
{
    struct sg_admin_queue *q = a->admin;
    const uint64_t now = sg_adapter_now(a);

    if (!q->held) {
        q->fate = sg_faults_at(a->faults, SG_POINT_COMMAND,
                               ((const struct sg_admin_hdr *)(const void *)q->cmd)->opcode, now);
        q->held = q->fate.effect == SG_EFFECT_SLOW || q->fate.effect == SG_EFFECT_STUCK;
        q->held_until = q->fate.effect == SG_EFFECT_SLOW ? now + q->fate.value : SG_NEVER;
    }
    return !q->held || now >= q->held_until;
}

uint64_t sg_admin_held_until(const struct sg_adapter *a)
{
    return a->admin->held && sg_adapter_alive(a) ? a->admin->held_until : SG_NEVER;
}

static bool run_one(struct sg_adapter *a)
{
    struct sg_admin_queue *q = a->admin;
    struct sg_admin_rsp rsp = { 0 };
    bool silent;

    if (!q->unfinished && !q->held &&
        !sg_ring_fetch(&q->sq, &a->host, q->sq.cons, 0, q->cmd, sizeof(q->cmd))) {
        sg_adapter_fatal(a, SG_FATAL_DMA);
        return false;
    }
    if (sg_faulty(a) && !q->unfinished && !meet_fate(a)) {
        q->waiting = true;
        return true;
    }
    q->held = false;
    rsp.status = sg_checking(a) ? dispatch_checked(a, &rsp) : dispatch(a, q->cmd, &rsp);
    if (q->unfinished) {
        return true;
    }
    q->sq.cons++;
    silent = q->fate.effect == SG_EFFECT_SILENT;
    q->fate.effect = SG_EFFECT_NONE;
    if (silent) {
        return true;
    }
    rsp.cookie = ((const struct sg_admin_hdr *)(const void *)q->cmd)->cookie;
    return complete(a, &rsp);
}

/* A completion was written. */
static void raise_event(struct sg_adapter *a)
{
    const struct sg_eq *eq = a->eqs[0];

    a->admin->event_due = !eq || !eq->armed;
    if (!a->admin->event_due) {
        sg_eq_async(a, &(struct sg_async){ .event = SG_EV_ADMIN });
    }
}

void sg_admin_armed(struct sg_adapter *a)
{
    if (a->admin->event_due && sg_ring_used(&a->admin->cq)) {
        raise_event(a);
    }
}

bool sg_admin_run(struct sg_adapter *a)
{
    struct sg_admin_queue *q = a->admin;
    const uint32_t before = q->cq.prod;
    bool more = true, enough = false;
    unsigned n;

    a->command_pages = 0;
    q->waiting = false;
    for (n = 0; more && !enough; n++) {
        more = sg_ring_used(&q->sq) && !sg_ring_full(&q->cq) && run_one(a) && !q->waiting &&
               sg_adapter_alive(a);
        enough = n == SG_TURN_ADMIN - 1 || a->command_pages >= SG_TURN_PAGES || sg_turn_over(a);
    }
    if (q->cq.prod != before && sg_adapter_alive(a)) {
        raise_event(a);
    }
    return more && sg_ring_used(&q->sq);
}

void sg_admin_doorbell(struct sg_adapter *a, uint32_t prod)
{
    struct sg_admin_queue *q = a->admin;
    const uint32_t before = q->sq.prod;

    if (!sg_adapter_alive(a)) {
        sg_guest_error(a, SG_RULE_NONE, sg_object(SG_OBJECT_ADMIN, 0),
                       "admin doorbell while the adapter is not ready");
        return;
    }
    if (sg_ring_take(&q->sq, SG_RING_PROD | SG_RING_IN_ORDER, prod) == SG_RING_BAD) {
        sg_guest_error(a, SG_RULE_ADMIN_BEYOND, sg_object(SG_OBJECT_ADMIN, 0),
                       "admin doorbell %u, %u executed, %u entries", prod, q->sq.cons,
                       q->sq.entries);
        sg_adapter_fatal(a, SG_FATAL_ADMIN_INDEX);
        return;
    }
    if (sg_checking(a)) {
        sg_check_admin_posted(a, before);
    }
    sg_adapter_kick(a);
}

void sg_admin_consumed(struct sg_adapter *a, uint32_t ci)
{
    struct sg_admin_queue *q = a->admin;
    const uint32_t before = q->cq.cons;

    if (!sg_adapter_alive(a) ||
        sg_ring_take(&q->cq, SG_RING_CONS | SG_RING_IN_ORDER, ci) == SG_RING_BAD) {
        sg_guest_error(
            a, sg_adapter_alive(a) ? SG_RULE_ADMIN_CI : SG_RULE_NONE, sg_object(SG_OBJECT_ADMIN, 0),
            "admin completion ring: consumer index %u, producer index %u", ci, q->cq.prod);
        return;
    }
    if (sg_checking(a)) {
        sg_check_admin_consumed(a, before);
    }
    if (sg_ring_used(&q->sq)) {
        sg_adapter_kick(a);
    }
}

enum sg_status sg_admin_answer(struct sg_adapter *a, const struct sg_cmd_query *c, const void *buf,
                               size_t len)
{
    size_t room = sg_get_le32(&c->out_len);

    if (room == 0) {
        return SG_EINVAL;
    }
    if (!a->host.ops->dma_write(a->host.opaque, sg_get_le64(&c->out_addr), buf,
                                SG_MIN(len, room))) {
        return SG_EFAULT;
    }
    return SG_OK;
}
