/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: properties.
 *
 * Every property is kept as the text that was set, and applied by one function that takes such a
 * text; QEMU's types (bool, numbers) only wrap it.  All properties can be changed at any time,
 * except memdevs; those that need the NVDIMMs wait until there are some.  A text that is refused
 * changes nothing.
 *
 * domain_faults.c has the parsers and the settings of faults.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/cutils.h"
#include "crash/setting_text.h"
#include "domain_object.h"
#include "recorder.h"

enum prop_type { TEXT, BOOL, UINT, PACE };

enum prop_flags {
    FIXED = 1, /* not after the machine's start */
    NEEDS_DIMMS = 2,
};

/* A property without 'apply' is just a member of the model's configuration. */
typedef struct DomainProp {
    const char *name;
    const char *initial;
    uint8_t type, flags;
    StaghornApply *apply;
    const char *description;
    size_t member;
} DomainProp;

#define MEMBER(name) offsetof(struct sg_persist_config, name)

/* ---- configuration of the model ---- */

/*
 * While a recording runs, the order of events is that of visible memory, and a replay decides as
 * the machine did.
 */
static void use_for_recording(struct sg_persist_config *used)
{
    used->placement_delay_ns = 0;
    used->placement_order = SG_PERSIST_IN_ORDER;
    used->posted_drain = SG_PERSIST_EAGER;
    used->store_buffer = false;
    used->eviction = used->domain >= SG_PERSIST_EADR ? SG_PERSIST_EAGER : SG_PERSIST_NEVER;
    used->drain = used->drain == SG_PERSIST_RANDOM ? SG_PERSIST_NEVER : used->drain;
    used->flush_latency_random_ns = 0;
}

static void record_configuration(const struct sg_persist_config *used)
{
    struct sg_trace_event e = { .kind = SG_TRACE_CONFIGURE };
    g_autoptr(GString) text = g_string_new("");

    sg_crash_settings_text(used, NULL, text);
    e.name = staghorn_record_name(text->str);
    staghorn_record(&e);
}

static bool configure(StaghornDomain *d, const struct sg_persist_config *config, const char *name,
                      Error **errp)
{
    struct sg_persist_config used = *config;
    const char *wrong = NULL;

    /* Surviving caches must survive a kill of QEMU, but visible memory is not the media here. */
    if (used.cpu_tracking && used.domain >= SG_PERSIST_EADR) {
        used.eviction = SG_PERSIST_EAGER;
    }
    if (d->recording) {
        use_for_recording(&used);
    }
    if (d->model) {
        staghorn_map_write_back(d);
        staghorn_pages_sync(d);
        staghorn_domain_enter(d);
        wrong = sg_persist_configure(d->model, &used);
        if (staghorn_recording && !wrong) {
            record_configuration(&used);
        }
        staghorn_domain_leave(d);
    }
    if (wrong) {
        error_setg(errp, "%s: %s", name, wrong);
        return false;
    }
    d->config = *config;
    staghorn_map_update(d);
    return true;
}

bool staghorn_domain_set_recording(StaghornDomain *d, bool on, Error **errp)
{
    d->recording = on;
    configure(d, &d->config, "recording", &error_abort);
    if (on && !staghorn_domain_settle(d, errp)) {
        d->recording = false;
        configure(d, &d->config, "recording", &error_abort);
        return false;
    }
    return true;
}

static bool set_domain(StaghornDomain *d, const char *text, Error **errp)
{
    struct sg_persist_config config = d->config;
    int value = sg_persist_domain_parse(text);

    if (value < 0) {
        error_setg(errp, "domain: '%s' is not none, adr, eadr or whole", text);
        return false;
    }
    config.domain = value;
    return configure(d, &config, "domain", errp);
}

static bool set_placement_order(StaghornDomain *d, const char *text, Error **errp)
{
    struct sg_persist_config config = d->config;
    int value = sg_persist_order_parse(text);

    if (value < 0) {
        error_setg(errp, "placement-order: '%s' is not in-order or random", text);
        return false;
    }
    config.placement_order = value;
    return configure(d, &config, "placement-order", errp);
}

static bool set_one_in(StaghornDomain *d, const char *text, Error **errp)
{
    struct sg_persist_config config = d->config;
    uint64_t value;

    if (!staghorn_parse_number("one-in", text, &value, errp)) {
        return false;
    }
    if (value < 1 || value > UINT32_MAX) {
        error_setg(errp, "one-in: %" PRIu64 " is not within 1 to 4294967295", value);
        return false;
    }
    config.one_in = value;
    return configure(d, &config, "one-in", errp);
}

static bool set_untracked(StaghornDomain *d, const char *text, Error **errp)
{
    struct sg_persist_config config = d->config;
    int value = sg_persist_untracked_parse(text);

    if (value < 0) {
        error_setg(errp, "untracked: '%s' is not keep or at-risk", text);
        return false;
    }
    config.untracked = value;
    return configure(d, &config, "untracked", errp);
}

/* "FIXED" or "FIXED+RANDOM", ns. */
static bool set_flush_latency(StaghornDomain *d, const char *text, Error **errp)
{
    struct sg_persist_config config = d->config;
    g_auto(GStrv) parts = g_strsplit(text, "+", 2);

    config.flush_latency_random_ns = 0;
    if (!staghorn_parse_number("flush-latency", parts[0] ? parts[0] : "", &config.flush_latency_ns,
                               errp) ||
        (parts[0] && parts[1] &&
         !staghorn_parse_number("flush-latency", parts[1], &config.flush_latency_random_ns,
                                errp))) {
        return false;
    }
    return configure(d, &config, "flush-latency", errp);
}

/*
 * The reporter of stores first, then the model: earlier stores are in visible memory and
 * count as untracked; the other way round for off.
 */
static bool set_cpu_tracking(StaghornDomain *d, const char *text, Error **errp)
{
    struct sg_persist_config config = d->config;

    if (!staghorn_parse_bool("cpu-tracking", text, &config.cpu_tracking, errp)) {
        return false;
    }
    if (config.cpu_tracking == d->tracking) {
        return true;
    }
    if (staghorn_recording) {
        error_setg(errp, "cpu-tracking: cannot be changed while a recording runs");
        return false;
    }
    if (!staghorn_cpu_track) {
        error_setg(errp, "cpu-tracking: this QEMU cannot follow CPU stores");
        return false;
    }
    if (config.cpu_tracking && !staghorn_cpu_track(d, true, errp)) {
        return false;
    }
    d->tracking = config.cpu_tracking;
    return configure(d, &config, "cpu-tracking", errp) &&
           (config.cpu_tracking || staghorn_cpu_track(d, false, errp));
}

static bool set_seed(StaghornDomain *d, const char *text, Error **errp)
{
    return staghorn_parse_number("seed", text, &d->seed, errp);
}

static bool set_anything(StaghornDomain *d, const char *text, Error **errp)
{
    return true;
}

/* ---- cuts ---- */

bool staghorn_domain_parse_policy(StaghornDomain *d, const char *text,
                                  struct sg_persist_policy *policy, Error **errp)
{
    g_auto(GStrv) parts = g_strsplit(*text ? text : staghorn_domain_prop(d, "policy"), ":", 3);
    unsigned next = 1;
    int outcome = sg_persist_outcome_parse(parts[0]);

    if (outcome < 0) {
        error_setg(errp, "policy: '%s' is not lose-all, keep-all, random or worst-for",
                   parts[0] ? parts[0] : "");
        return false;
    }
    *policy = (struct sg_persist_policy){ .outcome = outcome };
    if (outcome == SG_PERSIST_WORST_FOR) {
        if (!parts[1]) {
            error_setg(errp, "policy: worst-for what? worst-for:[MEMDEV@]ADDRESS+LENGTH");
            return false;
        }
        if (!staghorn_parse_range(d, "policy", parts[1], &policy->addr, &policy->len, errp)) {
            return false;
        }
        next++;
    } else if (outcome == SG_PERSIST_OUTCOME_RANDOM) {
        policy->seed = d->seed + d->cuts;
    }
    if (!parts[next]) {
        return true;
    }
    if (outcome == SG_PERSIST_LOSE_ALL || outcome == SG_PERSIST_KEEP_ALL || parts[next + 1]) {
        error_setg(errp, "policy: there is more in '%s' than %s takes", text, parts[0]);
        return false;
    }
    return staghorn_parse_number("policy", parts[next], &policy->seed, errp);
}

static bool set_policy(StaghornDomain *d, const char *text, Error **errp)
{
    struct sg_persist_policy policy;

    if (!*text) {
        error_setg(errp, "policy: it is empty");
        return false;
    }
    return staghorn_domain_parse_policy(d, text, &policy, errp);
}

static const char *const milestones[SG_PM_MILESTONES] = {
    [SG_PM_BEFORE_FLUSH_ANSWER] = "before-flush-answer",
    [SG_PM_AFTER_FLUSH_ANSWER] = "after-flush-answer",
    [SG_PM_WRITE_PLACED] = "write-placed",
    [SG_PM_BEFORE_ATOMIC_WRITE] = "before-atomic-write",
    [SG_PM_AFTER_ATOMIC_WRITE] = "after-atomic-write",
};

static bool set_arm(StaghornDomain *d, const char *text, Error **errp)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 2);
    struct sg_persist_arm arm = { .kind = SG_PERSIST_ARM_MILESTONE, .count = 1 };
    const char *what = parts[0] ? parts[0] : "";

    if (!*what || !strcmp(what, "off")) {
        arm.kind = SG_PERSIST_ARM_OFF;
    } else if (!strcmp(what, "event")) {
        arm.kind = SG_PERSIST_ARM_EVENT;
    } else {
        while (arm.milestone < SG_PM_MILESTONES && strcmp(what, milestones[arm.milestone])) {
            arm.milestone++;
        }
        if (arm.milestone == SG_PM_MILESTONES) {
            error_setg(errp,
                       "arm: '%s' is not off, event:N, write-placed, before-flush-answer, "
                       "after-flush-answer, before-atomic-write or after-atomic-write, with :N for "
                       "the N-th",
                       what);
            return false;
        }
    }
    if (*what && parts[1] && !staghorn_parse_number("arm", parts[1], &arm.count, errp)) {
        return false;
    }
    if (!arm.count) {
        error_setg(errp, "arm: there is no 0-th event");
        return false;
    }
    staghorn_domain_enter(d);
    sg_persist_arm(d->model, &arm);
    staghorn_domain_leave(d);
    return true;
}

/* ---- the table ---- */

/* Value of cpu-tracking until the machine is complete, unless it was set. */
static const char by_accelerator[] = "";

static const DomainProp props[] = {
    { "memdevs", "", TEXT, FIXED, set_anything, "Memory backends of the NVDIMMs, A:B; empty: all" },
    { "domain", "adr", TEXT, 0, set_domain, "What survives a cut: none, adr, eadr, whole" },
    { "ddio", "on", BOOL, 0, NULL, "DMA goes to the CPU's cache", MEMBER(ddio) },
    { "placement-delay", "200000", UINT, 0, NULL, "Time of data in the adapter, ns",
      MEMBER(placement_delay_ns) },
    { "placement-order", "in-order", TEXT, 0, set_placement_order, "in-order or random" },
    { "posted-drain", "random", PACE, 0, NULL, "Posted writes: never, random, eager",
      MEMBER(posted_drain) },
    { "eviction", "never", PACE, 0, NULL, "Lines of the cache: never, random, eager",
      MEMBER(eviction) },
    { "drain", "never", PACE, 0, NULL, "Write-pending queue: never, random, eager", MEMBER(drain) },
    { "one-in", "8", UINT, 0, set_one_in, "Odds of what is random" },
    { "untracked", "keep", TEXT, 0, set_untracked, "CPU stores that nobody saw: keep, at-risk" },
    { "store-buffer", "off", BOOL, 0, NULL, "CPU stores wait in store buffers",
      MEMBER(store_buffer) },
    { "cpu-tracking", by_accelerator, BOOL, NEEDS_DIMMS, set_cpu_tracking,
      "CPU stores are followed; on where this accelerator can" },
    { "seed", "1", UINT, 0, set_seed, "Of all that is random" },
    { "policy", "random", TEXT, NEEDS_DIMMS, set_policy,
      "lose-all, keep-all, random[:SEED], worst-for:RANGE[:SEED]" },
    { "arm", "off", TEXT, NEEDS_DIMMS, set_arm, "When to cut: off, event:N, write-placed:N, ..." },
    { "report-file", "", TEXT, 0, set_anything, "Each report goes there, and to FILE.txt" },
    { "bad-file", "", TEXT, FIXED, set_anything, "Lines that cannot be read are kept there" },
    { "poison-on-mismatch", "off", BOOL, 0, NULL, "What fails to verify is poisoned",
      MEMBER(poison_on_mismatch) },
    { "read-only", "", TEXT, NEEDS_DIMMS, staghorn_set_read_only, "[MEMDEV=]on" },
    { "wear-out", "", TEXT, NEEDS_DIMMS, staghorn_set_wear_out, "[MEMDEV=]LINES still written" },
    { "uncorrectable", "", TEXT, NEEDS_DIMMS, staghorn_set_uncorrectable, "RANGE:RANGE..." },
    { "flush-fail", "", TEXT, NEEDS_DIMMS, staghorn_set_flush_fail,
      "[MEMDEV=]once, always, COUNT, never" },
    { "flush-latency", "0", TEXT, 0, set_flush_latency, "ns, or FIXED+RANDOM" },
};
QEMU_BUILD_BUG_ON(ARRAY_SIZE(props) > STAGHORN_PROPS_MAX);

const char *staghorn_domain_prop(const StaghornDomain *d, const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(props); i++) {
        if (!strcmp(props[i].name, name)) {
            return d->text[i];
        }
    }
    g_assert_not_reached();
}

static bool set_member(StaghornDomain *d, const DomainProp *prop, const char *text, Error **errp)
{
    struct sg_persist_config config = d->config;
    void *member = (char *)&config + prop->member;
    int pace;

    switch (prop->type) {
    case BOOL:
        if (!staghorn_parse_bool(prop->name, text, member, errp)) {
            return false;
        }
        break;
    case UINT:
        if (!staghorn_parse_number(prop->name, text, member, errp)) {
            return false;
        }
        break;
    default:
        pace = sg_persist_pace_parse(text);
        if (pace < 0) {
            error_setg(errp, "%s: '%s' is not never, random or eager", prop->name, text);
            return false;
        }
        *(uint8_t *)member = pace;
    }
    return configure(d, &config, prop->name, errp);
}

static bool apply(StaghornDomain *d, const DomainProp *prop, const char *text, Error **errp)
{
    return prop->apply ? prop->apply(d, text, errp) : set_member(d, prop, text, errp);
}

static bool set_text(StaghornDomain *d, const DomainProp *prop, const char *text, Error **errp)
{
    char **place = &d->text[prop - props];

    if (d->model && (prop->flags & FIXED)) {
        error_setg(errp, "%s cannot be changed while the machine is there", prop->name);
        return false;
    }
    if ((d->model || !(prop->flags & NEEDS_DIMMS)) && !apply(d, prop, text, errp)) {
        return false;
    }
    g_free(*place);
    *place = g_strdup(text);
    return true;
}

static void prop_set(Object *object, Visitor *v, const char *name, void *opaque, Error **errp)
{
    const DomainProp *prop = opaque;
    g_autofree char *text = NULL;
    uint64_t number;
    bool flag;

    switch (prop->type) {
    case TEXT:
    case PACE:
        if (!visit_type_str(v, name, &text, errp)) {
            return;
        }
        break;
    case BOOL:
        if (!visit_type_bool(v, name, &flag, errp)) {
            return;
        }
        text = g_strdup(flag ? "on" : "off");
        break;
    default:
        if (!visit_type_uint64(v, name, &number, errp)) {
            return;
        }
        text = g_strdup_printf("%" PRIu64, number);
    }
    set_text(STAGHORN_DOMAIN(object), prop, text, errp);
}

static void prop_get(Object *object, Visitor *v, const char *name, void *opaque, Error **errp)
{
    const DomainProp *prop = opaque;
    char *text = STAGHORN_DOMAIN(object)->text[prop - props];
    uint64_t number;
    bool flag;

    switch (prop->type) {
    case TEXT:
    case PACE:
        visit_type_str(v, name, &text, errp);
        break;
    case BOOL:
        flag = !strcmp(text, "on");
        visit_type_bool(v, name, &flag, errp);
        break;
    default:
        number = g_ascii_strtoull(text, NULL, 10);
        visit_type_uint64(v, name, &number, errp);
    }
}

void staghorn_domain_class_props(ObjectClass *klass)
{
    static const char *const types[] = {
        [TEXT] = "str",
        [PACE] = "str",
        [BOOL] = "bool",
        [UINT] = "uint64",
    };

    for (unsigned i = 0; i < ARRAY_SIZE(props); i++) {
        object_class_property_add(klass, props[i].name, types[props[i].type], prop_get, prop_set,
                                  NULL, (void *)&props[i]);
        object_class_property_set_description(klass, props[i].name, props[i].description);
    }
}

void staghorn_domain_init_props(StaghornDomain *d)
{
    sg_persist_config_init(&d->config);
    d->config.untracked_flush_max = UINT64_MAX; /* domain_pages.c has a better bound */
    for (unsigned i = 0; i < ARRAY_SIZE(props); i++) {
        set_text(d, &props[i], props[i].initial, &error_abort);
    }
}

void staghorn_domain_free_props(StaghornDomain *d)
{
    for (unsigned i = 0; i < ARRAY_SIZE(props); i++) {
        g_free(d->text[i]);
    }
}

bool staghorn_domain_apply_props(StaghornDomain *d, Error **errp)
{
    for (unsigned i = 0; i < ARRAY_SIZE(props); i++) {
        if (props[i].initial == by_accelerator && !*d->text[i]) {
            bool can = staghorn_cpu_can_track && staghorn_cpu_can_track(NULL);

            g_free(d->text[i]);
            d->text[i] = g_strdup(can ? "on" : "off");
        }
        if ((props[i].flags & NEEDS_DIMMS) && !apply(d, &props[i], d->text[i], errp)) {
            return false;
        }
    }
    return true;
}
