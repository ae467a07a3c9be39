/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bring_up_world.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "staghorn/regs.h"

enum { RUBBISH = 0xa5, FREED = 0xee };

static struct bu_side *side_of(struct bu_machine *m)
{
    return sg_container_of(m, struct bu_side, m);
}

/* ---- time ---- */

static uint64_t now_of(const struct bu_world *w)
{
    return w->side[0].h.now_ns;
}

/* Runs both adapters until nothing moves; returns the next deadline. */
static uint64_t settle(struct bu_world *w)
{
    uint64_t next;
    bool more;
    int i;

    do {
        next = sg_mem_switch_run(w->sw, now_of(w));
        more = next <= now_of(w);
        for (i = 0; i < 2; i++) {
            struct bu_side *s = &w->side[i];
            struct test_host *h = &s->h;

            if (s->frozen || s->removed) {
                continue;
            }
            if (test_host_take_kick(h) || h->timer_ns <= h->now_ns) {
                h->kicked |= sg_adapter_run(s->a, 1 << 20);
                more = true;
            }
            next = SG_MIN(next, h->timer_ns);
        }
    } while (more);
    return next;
}

/* Moves the clock to the next deadline, but not beyond 'end'. */
static void step(struct bu_world *w, uint64_t end)
{
    uint64_t to = SG_MIN(settle(w), end);
    int i;

    for (i = 0; i < 2; i++) {
        w->side[i].h.now_ns = SG_MAX(to, w->side[i].h.now_ns);
    }
    settle(w);
}

void bu_world_pass(struct bu_world *w, uint64_t ns)
{
    uint64_t end = now_of(w) + ns;

    settle(w);
    while (now_of(w) < end) {
        step(w, end);
    }
}

/* ---- what the machine offers ---- */

static uint64_t bu_read(struct bu_machine *m, uint32_t offset, unsigned octets)
{
    struct bu_side *s = side_of(m);
    uint64_t value;

    if (s->removed) {
        return octets == 8 ? UINT64_MAX : UINT32_MAX;
    }
    value = sg_adapter_reg_read(s->a, offset, octets);
    switch (offset) {
    case SG_REG_MAGIC:
        return value ^ s->magic_xor;
    case SG_REG_VERSION:
        return value ^ s->version_xor;
    case SG_REG_TEST_SCRATCH:
        return value ^ s->scratch_xor;
    default:
        return value;
    }
}

static void bu_write(struct bu_machine *m, uint32_t offset, uint64_t value, unsigned octets)
{
    struct bu_side *s = side_of(m);

    if (s->removed) {
        return;
    }
    if (offset == SG_REG_CTRL && value & SG_CTRL_RESET) {
        s->resets++;
        s->tests = 0;
    }
    s->tests +=
        offset == SG_REG_TEST_SCRATCH || offset == SG_REG_TEST_IRQ || offset == SG_REG_TEST_DMA_CMD;
    s->h.fault_hi = s->no_dma ? UINT64_MAX : 0;
    sg_adapter_reg_write(s->a, offset, value, octets);
}

static void bu_doorbell(struct bu_machine *m, uint32_t offset, uint64_t value)
{
    struct bu_side *s = side_of(m);

    if (!s->removed) {
        sg_adapter_doorbell(s->a, offset / SG_UAR_SIZE, offset % SG_UAR_SIZE, value, 8);
    }
}

static void *bu_dma_alloc(struct bu_machine *m, size_t octets, size_t align, uint64_t *bus)
{
    struct bu_side *s = side_of(m);
    void *p;

    sg_assert(s->block_count < BU_BLOCKS);
    *bus = test_host_alloc(&s->h, octets, align);
    s->blocks[s->block_count++] = (struct bu_block){ .bus = *bus, .octets = octets };
    p = test_host_ptr(&s->h, *bus);
    memset(p, RUBBISH, octets);
    return p;
}

static void bu_dma_free(struct bu_machine *m, void *memory)
{
    struct bu_side *s = side_of(m);
    unsigned i;

    for (i = 0; i < s->block_count; i++) {
        struct bu_block *b = &s->blocks[i];

        if (!b->freed && test_host_ptr(&s->h, b->bus) == memory) {
            memset(memory, FREED, b->octets);
            b->freed = true;
            return;
        }
    }
    sg_assert(!"memory that was not allocated, or is free already");
}

static void bu_msix_enable(struct bu_machine *m, unsigned vectors)
{
    struct bu_side *s = side_of(m);

    s->msix = vectors;
    memcpy(s->seen, s->h.raised, sizeof(s->seen));
}

static void bu_msix_disable(struct bu_machine *m)
{
    side_of(m)->msix = 0;
}

static bool bu_msix_wait(struct bu_machine *m, unsigned vector, unsigned ms)
{
    struct bu_side *s = side_of(m);
    uint64_t end = now_of(s->world) + ms * 1000000ull;

    sg_assert(vector < s->msix);
    settle(s->world);
    for (;;) {
        if (s->h.raised[vector] != s->seen[vector]) {
            s->seen[vector] = s->h.raised[vector];
            if (!s->no_irq) {
                return true;
            }
        }
        if (now_of(s->world) >= end) {
            return false;
        }
        step(s->world, end);
    }
}

static void bu_delay(struct bu_machine *m, unsigned us)
{
    bu_world_pass(side_of(m)->world, us * 1000ull);
}

static uint64_t bu_now(struct bu_machine *m)
{
    return now_of(side_of(m)->world);
}

static const struct bu_machine machine = {
    .read = bu_read,
    .write = bu_write,
    .doorbell = bu_doorbell,
    .dma_alloc = bu_dma_alloc,
    .dma_free = bu_dma_free,
    .msix_enable = bu_msix_enable,
    .msix_disable = bu_msix_disable,
    .msix_wait = bu_msix_wait,
    .delay = bu_delay,
    .now = bu_now,
};

/* ---- the world ---- */

static void begin_side(struct bu_world *w, int i)
{
    struct bu_side *s = &w->side[i];
    struct sg_endpoint at = { .family = 4, .ip = { 10, 0, 0, (uint8_t)(i + 1) } };
    struct sg_adapter_config config;

    sg_adapter_default_config(&config);
    config.mac[5] = (uint8_t)(i + 1);
    config.guid += i;
    config.vectors = 4;
    config.max_qp = 1000 + i;
    config.max_qp_wr = 3000; /* not a power of two */
    config.max_inline = 100;
    config.check = (uint8_t)test_host_check();
    test_host_init(&s->h, BU_MEM, 77 + i);
    s->h.raised[0] = s->h.raised[1] = 1; /* before MSI-X was enabled, so lost */
    s->m = machine;
    s->world = w;
    s->net = sg_mem_switch_port(w->sw, &at);
    s->net->ops->clear_addrs(s->net); /* the driver sets them */
    s->a = sg_adapter_new(&s->h.host, s->net, &config);
    s->d = calloc(1, bu_driver.size);
    sg_assert(s->d);
}

void bu_world_begin(struct bu_world *w)
{
    static const struct sg_mem_options late = {
        /* so that there is something to wait for */
        .queued = true,
        .seed = 1,
        .delay_min_ns = 20000,
        .delay_max_ns = 300000,
    };
    int i;

    memset(w, 0, sizeof(*w));
    w->sw = sg_mem_switch_new(&late);
    for (i = 0; i < 2; i++) {
        begin_side(w, i);
    }
}

static bool count_visitor(void *user, struct sg_stream *s)
{
    struct bu_world *w = user;

    (void)s;
    w->visitors++;
    return false;
}

void bu_world_listen(struct bu_world *w, uint16_t port)
{
    struct sg_endpoint at = { .family = 4, .ip = { 10, 0, 0, 3 } };
    struct sg_stream_net *net = sg_mem_switch_port(w->sw, &at);
    enum sg_stream_end why;

    at.port = port;
    sg_assert(net->ops->listen(net, &at, 4, count_visitor, w, &why));
}

bool bu_world_clean(struct bu_world *w)
{
    bool clean = true;
    size_t k;
    int i;

    settle(w);
    for (i = 0; i < 2; i++) {
        struct bu_side *s = &w->side[i];

        for (unsigned b = 0; b < s->block_count; b++) {
            const uint8_t *p = test_host_ptr(&s->h, s->blocks[b].bus);

            clean = clean && s->blocks[b].freed;
            for (k = 0; clean && k < s->blocks[b].octets; k++) {
                clean = p[k] == FREED;
            }
        }
    }
    return clean;
}

void bu_world_end(struct bu_world *w)
{
    int i;

    for (i = 0; i < 2; i++) {
        sg_adapter_free(w->side[i].a);
    }
    sg_mem_switch_free(w->sw);
    for (i = 0; i < 2; i++) {
        test_host_fini(&w->side[i].h);
        free(w->side[i].d);
    }
}
