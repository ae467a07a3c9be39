/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RESIZE_SRQ: posted entries survive, whatever is taken, posted or rung meanwhile; a ring too small
 * for them is refused; commands wrong in each field.
 *
 * The driver here is as uncooperative as allowed: it overwrites the old ring right after the
 * command.
 */
#include "field_row.h"
#include "rig.h"
#include "srq_rig.h"

enum { STRIDE = 128 };

/* A ring whose pages lie in reverse order, so that the adapter needs its list. */
struct place {
    uint64_t base, list;
    uint32_t entries, pages;
};

static uint64_t stamp; /* wr_id of the next entry that is posted */

static struct place new_place(uint32_t entries)
{
    struct test_host *h = &pair.side[1].h;
    struct place r = { .entries = entries, .pages = (entries * STRIDE + 4095) / 4096 };
    __le64 *list;
    uint32_t i;

    r.base = test_host_alloc(h, r.pages * 4096ull, 4096);
    r.list = test_host_alloc(h, r.pages * 8ull, 4096);
    list = test_host_ptr(h, r.list);
    for (i = 0; i < r.pages; i++) {
        sg_put_le64(&list[i], r.base + (r.pages - 1 - i) * 4096ull);
    }
    return r;
}

static uint8_t *slot(const struct place *r, uint32_t index)
{
    uint32_t off = (index & (r->entries - 1)) * STRIDE;

    return test_host_ptr(&pair.side[1].h,
                         r->base + (r->pages - 1 - off / 4096) * 4096ull + off % 4096);
}

static struct sg_cmd_resize_srq command_for(const struct place *r)
{
    struct sg_cmd_resize_srq c = { .hdr.opcode = SG_ADMIN_RESIZE_SRQ };

    sg_put_le32(&c.srqn, srq.srqn);
    sg_put_le32(&c.entries, r->entries);
    sg_put_le64(&c.pages.addr, r->list);
    sg_put_le32(&c.pages.count, r->pages);
    c.pages.levels = 1;
    c.pages.page_shift = 12;
    return c;
}

/* Copies the entries that have not completed, by the consumer's count, to the new ring. */
static void copy(const struct place *to, const struct place *from, uint32_t completed)
{
    uint32_t i;

    for (i = completed; i != srq.ring.prod; i++) {
        memcpy(slot(to, i), slot(from, i), STRIDE);
    }
}

/* Writes the entry into one ring or into both; the caller rings the doorbell. */
static void put(const struct place *r, const struct place *other)
{
    struct sg_rqe_hdr *h = (void *)slot(r, srq.ring.prod);
    struct sg_sge *sge = (struct sg_sge *)(h + 1);

    memset(h, 0, STRIDE);
    sg_put_le64(&h->wr_id, stamp);
    sg_put_le32(&h->index, srq.ring.prod);
    h->num_sge = 1;
    sg_put_le64(&sge->addr, pair.side[1].buf + 4096 * (stamp % 32));
    sg_put_le32(&sge->length, 4096);
    sg_put_le32(&sge->lkey, pair.side[1].stag);
    if (other) {
        memcpy(slot(other, srq.ring.prod), h, STRIDE);
    }
    stamp++;
    srq.ring.prod++;
}

static void ring_at(uint32_t prod)
{
    md_doorbell(&pair.side[1].md, 0, SG_DB_SRQ, srq.srqn, prod);
}

static void put_rung(const struct place *r, uint32_t n)
{
    while (n--) {
        put(r, NULL);
    }
    ring_at(srq.ring.prod);
}

static void spoil(const struct place *r)
{
    memset(test_host_ptr(&pair.side[1].h, r->base), 0xee, r->pages * 4096u);
}

static enum sg_status resize(const struct place *to, uint32_t *oldest)
{
    struct sg_cmd_resize_srq c = command_for(to);
    struct sg_admin_rsp rsp;
    enum sg_status status = md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp);

    if (status == SG_OK) {
        T_EQ_U64(sg_get_le32(&rsp.id), srq.srqn);
        *oldest = sg_get_le32(&rsp.data[0]);
    }
    return status;
}

/* Creates the shared queue and resizes it into a ring of the test's own. */
static struct place begin_in(uint32_t entries)
{
    struct place r;
    uint32_t oldest;

    begin_shared();
    stamp = 0;
    r = new_place(entries);
    T_EQ_U64(resize(&r, &oldest), SG_OK);
    T_EQ_U64(oldest, 0);
    return r;
}

static uint32_t asked(int i)
{
    struct sg_admin_rsp rsp = query();

    return sg_get_le32(&rsp.data[i]);
}

static uint32_t got_count(int n, uint64_t id, enum sg_wc_status status)
{
    struct sg_cqe c = got(1, n, id, status);

    return sg_get_le32(&c.wr_index);
}

/* A message by connection n takes the entry with this stamp. */
static void message(int n, uint64_t id)
{
    send_on(n, id, 64);
    got(0, n, id, SG_WC_SUCCESS);
    T_EQ_U64(got_count(n, id, SG_WC_SUCCESS), id);
}

static void up_and_down(void)
{
    static const uint32_t sizes[] = { 64, 4, 512, 2048, 2, 32, 64, 8 };
    struct place now, next;
    uint32_t oldest;
    uint64_t id = 0;
    size_t i;

    now = begin_in(8);
    for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        T_CONTEXT("to %u entries", sizes[i]);
        next = new_place(sizes[i]);
        put_rung(&now, 2);
        message((int)i % LINKS, id);
        copy(&next, &now, (uint32_t)id + 1);
        T_EQ_U64(resize(&next, &oldest), SG_OK);
        T_EQ_U64(oldest, id + 1);
        T_EQ_U64(asked(0), 1);
        spoil(&now);
        now = next;
        put_rung(&now, 1); /* a ring of 2 is full now */
        message(1, id + 1);
        message(2, id + 2);
        id += 3;
        T_EQ_U64(asked(2), id);
    }
    end_shared();
}

/* Full before, full after, and several times around the new ring. */
static void full(void)
{
    struct place now = begin_in(8), next = new_place(32);
    uint32_t oldest, i;

    put_rung(&now, 5);
    for (i = 0; i < 5; i++) {
        message(0, i);
    }
    put_rung(&now, 8); /* does not begin at slot 0 */
    copy(&next, &now, 5);
    T_EQ_U64(resize(&next, &oldest), SG_OK);
    spoil(&now);
    put_rung(&next, 24);
    for (i = 5; i < 37; i++) {
        message((int)i % LINKS, i);
    }
    for (; i < 137; i++) {
        put_rung(&next, 1);
        message((int)i % LINKS, i);
    }
    put_rung(&next, 32);
    T_TRUE(no_event(1));
    ring_at(srq.ring.prod + 1);
    pair_expect(&pair, 1, SG_EV_SRQ_ERROR);
    end_shared();
}

/* Entries are taken, posted and rung between the driver's copy and the command, and after it. */
static void in_between(void)
{
    struct place now = begin_in(16), next = new_place(8);
    uint32_t oldest, late;

    put_rung(&now, 3);
    copy(&next, &now, 0);
    late = srq.ring.prod;
    put(&now, &next);
    put(&now, &next);
    begin_message(2); /* takes 0, from the old ring */
    ring_at(srq.ring.prod);
    put(&now, &next); /* in memory, but its doorbell comes after the command */
    T_EQ_U64(resize(&next, &oldest), SG_OK);
    T_EQ_U64(oldest, 1);
    spoil(&now);
    T_EQ_U64(asked(0), 4);
    ring_at(srq.ring.prod);
    ring_at(late); /* an older doorbell */
    T_EQ_U64(asked(0), 5);
    /* The entry that was taken before completes on its own queue pair, and first. */
    send_on(2, 100, 200);
    got(0, 2, 100, SG_WC_SUCCESS);
    T_EQ_U64(got_count(2, 0, SG_WC_SUCCESS), 0);
    for (uint64_t id = 1; id < 6; id++) {
        message((int)id % 2, id);
    }
    T_TRUE(no_event(1));
    end_shared();
}

/* A doorbell may be late by as much as the largest ring; an older one is an error. */
static void late_doorbells(void)
{
    struct place now = begin_in(64), next = new_place(4);
    uint32_t oldest, i;

    put_rung(&now, 64);
    for (i = 0; i < 64; i++) {
        message(0, i);
    }
    T_EQ_U64(resize(&next, &oldest), SG_OK);
    T_EQ_U64(oldest, 64);
    put_rung(&next, 4);
    ring_at(4);
    ring_at(64);
    ring_at(67);
    T_TRUE(no_event(1));
    T_EQ_U64(asked(0), 4);
    message(1, 64);
    ring_at(3);
    pair_expect(&pair, 1, SG_EV_SRQ_ERROR);
    end_shared();
}

/* All entries that have not completed must fit, taken or not; else the old ring stays in use. */
static void too_small(void)
{
    struct place now = begin_in(8), small = new_place(4), smaller = new_place(2);
    uint32_t oldest;

    put_rung(&now, 5);
    begin_message(0);
    begin_message(1);
    T_EQ_U64(resize(&small, &oldest), SG_EINVAL);
    T_EQ_U64(asked(0), 3);
    send_on(0, 50, 200);
    got(0, 0, 50, SG_WC_SUCCESS);
    got(1, 0, 0, SG_WC_SUCCESS);
    T_EQ_U64(resize(&smaller, &oldest), SG_EINVAL);
    copy(&small, &now, 1);
    T_EQ_U64(resize(&small, &oldest), SG_OK);
    T_EQ_U64(oldest, 2);
    spoil(&now);
    send_on(1, 51, 200);
    got(0, 1, 51, SG_WC_SUCCESS);
    got(1, 1, 1, SG_WC_SUCCESS);
    message(2, 2);
    message(2, 3);
    message(2, 4);
    /* The new ring's size applies, and a queue in error cannot be resized. */
    ring_at(srq.ring.prod + 5);
    pair_expect(&pair, 1, SG_EV_SRQ_ERROR);
    T_EQ_U64(resize(&now, &oldest), SG_ESTATE);
    end_shared();
}

/* The driver copies nothing, so the entry has a wrong index. */
static void not_copied(void)
{
    struct place now = begin_in(8), next = new_place(16);
    uint32_t oldest;

    put_rung(&now, 1);
    message(0, 0);
    put_rung(&now, 2);
    T_EQ_U64(resize(&next, &oldest), SG_OK);
    send_on(0, 7, 64);
    T_EQ_U64(got_count(0, 0, SG_WC_LOC_QP_OP_ERR), 1);
    T_EQ_U64(md_qp_state(&joints[1].qp[1]), SG_QP_RTS);
    end_shared();
}

static void limits(void)
{
    struct place now = begin_in(8), next = new_place(4), big = new_place(32);
    struct sg_cmd_resize_srq c;
    struct sg_eqe e;
    uint32_t oldest;

    put_rung(&now, 4);
    T_EQ_U64(set_limit(5), SG_OK); /* the event comes at once */
    T_TRUE(md_next_async(&pair.side[1].md, &e));
    put_rung(&now, 2);
    T_EQ_U64(set_limit(6), SG_OK);
    T_TRUE(no_event(1));
    /* It stays armed; a ring smaller than the limit is refused. */
    T_EQ_U64(resize(&next, &oldest), SG_EINVAL);
    T_EQ_U64(asked(1), 6);
    copy(&big, &now, 0);
    T_EQ_U64(resize(&big, &oldest), SG_OK);
    T_EQ_U64(asked(1), 6);
    T_TRUE(no_event(1));
    message(0, 0);
    pair_expect(&pair, 1, SG_EV_SRQ_LIMIT);
    T_EQ_U64(asked(1), 0);
    /* Size and limit in one command. */
    message(0, 1);
    copy(&next, &big, 2);
    c = command_for(&next);
    sg_put_le32(&c.flags, SG_RESIZE_SRQ_LIMIT);
    sg_put_le32(&c.limit, 5);
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), NULL), SG_EINVAL);
    sg_put_le32(&c.limit, 4);
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(asked(1), 4);
    T_TRUE(no_event(1));
    message(1, 2);
    pair_expect(&pair, 1, SG_EV_SRQ_LIMIT);
    c = command_for(&big);
    copy(&big, &next, 3);
    sg_put_le32(&c.flags, SG_RESIZE_SRQ_LIMIT);
    sg_put_le32(&c.limit, 4); /* three are left: the event comes at once */
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), NULL), SG_OK);
    pair_expect(&pair, 1, SG_EV_SRQ_LIMIT);
    message(1, 3);
    end_shared();
}

static void commands(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_resize_srq, srqn), 0, SG_ENOENT },
        { FIELD(sg_cmd_resize_srq, srqn), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_resize_srq, entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, entries), 48, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, entries), 256, SG_EINVAL }, /* list too short */
        { FIELD(sg_cmd_resize_srq, entries), 65536, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, entries), 1u << 31, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, flags), 2, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, flags), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, pages.addr), 4, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, pages.addr), 8, SG_EFAULT },
        { FIELD(sg_cmd_resize_srq, pages.count), 0, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, pages.levels), 3, SG_EINVAL },
        { FIELD(sg_cmd_resize_srq, pages.page_shift), 13, SG_EINVAL },
    };
    struct sg_cmd_resize_srq good;
    struct place now, next;
    uint32_t oldest;
    size_t i;

    now = begin_in(8);
    put_rung(&now, 2);
    next = new_place(64);
    good = command_for(&next);
    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct sg_cmd_resize_srq c = good;

        T_CONTEXT("%s = 0x%" PRIx64, rows[i].name, rows[i].value);
        field_put(&c, &rows[i]);
        T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), NULL), rows[i].status);
        T_EQ_U64(asked(0), 2);
    }
    message(0, 0); /* still from the old ring */
    copy(&next, &now, 1);
    T_EQ_U64(resize(&next, &oldest), SG_OK);
    message(0, 1);
    end_shared();
}

/* The configuration's limit, and firmware with shared queues that cannot be resized. */
static void bounds(void)
{
    struct sg_cmd_resize_srq c = { .hdr.opcode = SG_ADMIN_RESIZE_SRQ };
    struct sg_adapter_config config;
    struct sg_cmd_create_srq like;
    static struct solo s;
    struct md_srq own;
    int i;

    for (i = 0; i < 3; i++) {
        sg_adapter_default_config(&config);
        config.max_srq_wr = 16;
        config.features = i ? ~(i == 1 ? SG_FEATURE_SRQ_RESIZE : SG_FEATURE_SRQ) : UINT32_MAX;
        solo_new(&s, &config, true);
        if (i < 2) {
            md_create_srq(&s.md, &own, md_create_pd(&s.md), 4);
            sg_put_le32(&c.srqn, own.srqn);
        }
        like = md_create_srq_cmd(&s.md, 1, 32);
        sg_put_le32(&c.entries, 32);
        c.pages = like.pages;
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), i ? SG_EOPCODE : SG_EINVAL);
        sg_put_le32(&c.entries, 16);
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), i ? SG_EOPCODE : SG_OK);
        solo_end(&s);
    }
}

static const struct t_case cases[] = {
    { "larger and smaller: what is posted stays posted", up_and_down },
    { "full rings, and the bounds of the new one", full },
    { "taken, posted and rung between copy and command", in_between },
    { "late doorbells of a larger ring", late_doorbells },
    { "what has not completed must fit; a queue in error", too_small },
    { "a driver that copies nothing", not_copied },
    { "the limit stays, changes with the size, must fit", limits },
    { "commands with each field wrong", commands },
    { "limits of the configuration and of the firmware", bounds },
};

T_MAIN(cases)
