/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Network filter that impairs a link (hw/net/impair.h): -object filter-staghorn-impair.
 *
 * It attaches to any network back end that QEMU's filters accept, also on a machine without an
 * adapter.  There is one link for each direction of the back end, with the virtual clock: while
 * the machine is stopped, no frame leaves.
 *
 * The core may be at work when a frame arrives here.  So a frame that was delayed or changed leaves
 * from a timer's callback and never from receive_iov(); one that is neither passes as if there
 * were no filter.  Sender and receiver are looked up when a frame leaves, because either may have
 * been unplugged meanwhile.
 *
 * Waiting frames are not part of the machine's state: they are not saved, they are lost when the
 * filter is removed, and a power cut of the machine does not affect them, like those in a network.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/iov.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qom/object.h"
#include "system/runstate.h"
#include "net/filter.h"
#include "net/net.h"
#include "impair.h"
#include "machine_clock.h"

#define TYPE_STAGHORN_IMPAIR "filter-staghorn-impair"
OBJECT_DECLARE_SIMPLE_TYPE(StaghornImpair, STAGHORN_IMPAIR)

enum {
    TURN = 256, /* frames that leave in one callback */
    DIRECTIONS = 2,
};

typedef struct ImpairLink {
    StaghornImpair *owner;
    bool from_netdev; /* the direction that QEMU calls tx */
    struct sg_impair *link;
    QEMUTimer *timer;
} ImpairLink;

struct StaghornImpair {
    NetFilterState parent_obj;

    struct sg_impair_config config;
    ImpairLink links[DIRECTIONS]; /* rx, tx; without a link before setup */
    VMChangeStateEntry *state_handler;
};

/* ---- frames ---- */

static void deliver(void *opaque, const uint8_t *frame, size_t len, uint32_t tag)
{
    ImpairLink *l = opaque;
    NetFilterState *nf = NETFILTER(l->owner);
    NetClientState *sender = l->from_netdev ? nf->netdev : nf->netdev->peer;
    struct iovec iov = { .iov_base = (void *)frame, .iov_len = len };

    qemu_netfilter_pass_to_next(sender, tag, &iov, 1, nf);
}

static void rearm(ImpairLink *l)
{
    uint64_t next = sg_impair_next(l->link);

    if (next == SG_IMPAIR_NEVER) {
        timer_del(l->timer);
    } else {
        timer_mod(l->timer, staghorn_clock_virtual(next));
    }
}

static void output(ImpairLink *l, unsigned max)
{
    sg_impair_output(l->link, staghorn_clock_ns(), max, deliver, l);
    rearm(l);
}

static void on_timer(void *opaque)
{
    output(opaque, TURN);
}

/* A loaded snapshot may have a different clock. */
static void on_run_state(void *opaque, bool running, RunState state)
{
    StaghornImpair *s = opaque;
    unsigned i;

    for (i = 0; running && i < DIRECTIONS; i++) {
        output(&s->links[i], 0);
    }
}

static ssize_t impair_receive_iov(NetFilterState *nf, NetClientState *sender, unsigned flags,
                                  const struct iovec *iov, int iovcnt, NetPacketSent *sent_cb)
{
    StaghornImpair *s = STAGHORN_IMPAIR(nf);
    ImpairLink *l = &s->links[sender == nf->netdev];
    size_t lead = flags & QEMU_NET_PACKET_FLAG_RAW ? 0 : nf->netdev->vnet_hdr_len;
    bool passes = sg_impair_input(l->link, iov, iovcnt, lead, flags, staghorn_clock_ns());

    rearm(l); /* a frame that passes may have left a copy behind */
    return passes ? 0 : iov_size(iov, iovcnt);
}

/* ---- life ---- */

/* The two directions are independent. */
static struct sg_impair_config config_of(const StaghornImpair *s, unsigned direction)
{
    struct sg_impair_config config = s->config;

    config.seed = direction ? config.seed : ~config.seed;
    return config;
}

static void impair_setup(NetFilterState *nf, Error **errp)
{
    StaghornImpair *s = STAGHORN_IMPAIR(nf);
    unsigned i;

    for (i = 0; i < DIRECTIONS; i++) {
        struct sg_impair_config config = config_of(s, i);
        ImpairLink *l = &s->links[i];

        l->owner = s;
        l->from_netdev = i;
        l->link = sg_impair_new(&config);
        g_assert(l->link); /* the properties were checked when they were set */
        l->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, on_timer, l);
    }
    s->state_handler = qemu_add_vm_change_state_handler(on_run_state, s);
}

static void impair_cleanup(NetFilterState *nf)
{
    StaghornImpair *s = STAGHORN_IMPAIR(nf);
    unsigned i;

    if (s->state_handler) {
        qemu_del_vm_change_state_handler(s->state_handler);
    }
    for (i = 0; i < DIRECTIONS; i++) {
        if (s->links[i].link) {
            timer_free(s->links[i].timer);
            sg_impair_free(s->links[i].link);
        }
    }
}

/* Switched off: later frames bypass the filter, so the waiting ones have to go first. */
static void impair_status_changed(NetFilterState *nf, Error **errp)
{
    StaghornImpair *s = STAGHORN_IMPAIR(nf);
    unsigned i;

    for (i = 0; !nf->on && i < DIRECTIONS; i++) {
        sg_impair_flush(s->links[i].link, deliver, &s->links[i]);
        rearm(&s->links[i]);
    }
}

/* ---- properties ---- */

typedef struct ImpairProp {
    const char *name, *description;
    size_t member;
    bool wide; /* uint64, else uint32 */
} ImpairProp;

#define MEMBER(name) offsetof(struct sg_impair_config, name)

static const ImpairProp props[] = {
    { "loss", "frames lost, in millionths", MEMBER(loss), false },
    { "duplicate", "frames that come twice, in millionths", MEMBER(duplicate), false },
    { "corrupt", "frames with one bit turned, in millionths", MEMBER(corrupt), false },
    { "reorder", "frames that later ones overtake, in millionths", MEMBER(reorder), false },
    { "delay", "time on the way, ns", MEMBER(delay), true },
    { "jitter", "most that the delay differs from it, ns", MEMBER(jitter), true },
    { "rate", "of the link, bit/s; 0: no limit", MEMBER(rate), true },
    { "queue-limit", "octets that may wait for the rate; 0: 256 KiB", MEMBER(queue), true },
    { "seed", "of all that is drawn; setting it begins again", MEMBER(seed), true },
};

static bool visit_member(Visitor *v, const ImpairProp *p, struct sg_impair_config *config,
                         Error **errp)
{
    char *member = (char *)config + p->member;

    if (p->wide) {
        return visit_type_uint64(v, p->name, (uint64_t *)member, errp);
    }
    return visit_type_uint32(v, p->name, (uint32_t *)member, errp);
}

static void get_prop(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    struct sg_impair_config config = STAGHORN_IMPAIR(obj)->config;

    visit_member(v, opaque, &config, errp);
}

static void set_prop(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    StaghornImpair *s = STAGHORN_IMPAIR(obj);
    const ImpairProp *p = opaque;
    struct sg_impair_config config = s->config;
    unsigned i;

    if (!visit_member(v, p, &config, errp)) {
        return;
    }
    if (sg_impair_check(&config)) {
        error_setg(errp, "%s is out of range, see docs/manual/properties.md", p->name);
        return;
    }
    s->config = config;
    for (i = 0; i < DIRECTIONS; i++) {
        if (s->links[i].link) {
            config = config_of(s, i);
            sg_impair_set(s->links[i].link, &config);
            if (p->member == MEMBER(seed)) {
                sg_impair_restart(s->links[i].link);
            }
        }
    }
}

#define COUNTER(name) { #name, offsetof(struct sg_impair_counters, name) }

static const struct {
    const char *name;
    size_t member;
} counters[] = { COUNTER(frames),     COUNTER(passed),     COUNTER(lost),
                 COUNTER(duplicated), COUNTER(corrupted),  COUNTER(reordered),
                 COUNTER(dropped),    COUNTER(overflowed), COUNTER(waiting) };

static bool visit_counters(Visitor *v, const char *name, const ImpairLink *l, Error **errp)
{
    struct sg_impair_counters c = { 0 };
    unsigned i;

    if (l->link) {
        sg_impair_counters(l->link, &c);
    }
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return false;
    }
    for (i = 0; i < ARRAY_SIZE(counters); i++) {
        uint64_t *value = (uint64_t *)((char *)&c + counters[i].member);

        if (!visit_type_uint64(v, counters[i].name, value, errp)) {
            break;
        }
    }
    visit_end_struct(v, NULL);
    return i == ARRAY_SIZE(counters);
}

static void get_counters(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    StaghornImpair *s = STAGHORN_IMPAIR(obj);

    if (visit_start_struct(v, name, NULL, 0, errp)) {
        if (visit_counters(v, "rx", &s->links[0], errp)) {
            visit_counters(v, "tx", &s->links[1], errp);
        }
        visit_end_struct(v, NULL);
    }
}

static void impair_instance_init(Object *obj)
{
    STAGHORN_IMPAIR(obj)->config.seed = 1;
}

static void impair_class_init(ObjectClass *oc, void *data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(props); i++) {
        object_class_property_add(oc, props[i].name, props[i].wide ? "uint64" : "uint32", get_prop,
                                  set_prop, NULL, (void *)&props[i]);
        object_class_property_set_description(oc, props[i].name, props[i].description);
    }
    object_class_property_add(oc, "counters", "struct", get_counters, NULL, NULL, NULL);
    object_class_property_set_description(oc, "counters", "what it did, of each direction");
    nfc->setup = impair_setup;
    nfc->cleanup = impair_cleanup;
    nfc->receive_iov = impair_receive_iov;
    nfc->status_changed = impair_status_changed;
}

static const TypeInfo impair_info = {
    .name = TYPE_STAGHORN_IMPAIR,
    .parent = TYPE_NETFILTER,
    .class_init = impair_class_init,
    .instance_init = impair_instance_init,
    .instance_size = sizeof(StaghornImpair),
};

static void impair_register(void)
{
    type_register_static(&impair_info);
}

type_init(impair_register)
