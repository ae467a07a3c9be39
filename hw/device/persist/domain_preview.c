/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: the property "preview".
 *
 * Setting it to "ADDRESS+LENGTH:SEED:COUNT" (address of the machine) records, at one instant, the
 * visible content of the range and what a cut with policy "random" would leave of it, for COUNT
 * seeds beginning with SEED.  Reading it returns these in hexadecimal, separated by blanks, the
 * visible content first.  Nothing changes in the machine.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "domain_object.h"

enum { PREVIEW_OCTETS = 1 << 20 }; /* of all outcomes together */

static GString *answer; /* the last result; a machine has one domain */

static void append_hex(GString *text, const uint8_t *data, size_t len)
{
    if (text->len) {
        g_string_append_c(text, ' ');
    }
    for (size_t i = 0; i < len; i++) {
        g_string_append_printf(text, "%02x", data[i]);
    }
}

static const uint8_t *visible_at(StaghornDomain *d, uint64_t addr, uint64_t len)
{
    uint64_t offset;
    int extent = sg_persist_find(d->model, addr, len, &offset);

    for (unsigned i = 0; extent != SG_PERSIST_NO_EXTENT && i < d->dimms; i++) {
        if (d->dimm[i].extent == extent) {
            return d->dimm[i].visible + offset;
        }
    }
    return NULL;
}

/* One instant: the lock is held throughout; outcomes are printed after it. */
static bool take(StaghornDomain *d, uint64_t addr, uint64_t len, uint64_t seed, uint64_t count,
                 uint8_t *data)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_OUTCOME_RANDOM, .seed = seed };
    const uint8_t *visible;
    bool done;

    staghorn_domain_enter(d);
    visible = visible_at(d, addr, len);
    done = visible != NULL;
    if (done) {
        memcpy(data, visible, len);
    }
    for (uint64_t i = 1; done && i <= count; i++, policy.seed++) {
        done = sg_persist_preview(d->model, &policy, addr, data + i * len, len);
    }
    staghorn_domain_leave(d);
    return done;
}

static bool parse(const char *text, uint64_t *addr, uint64_t *len, uint64_t *seed, uint64_t *count)
{
    uint64_t *number[] = { addr, len, seed, count };

    for (unsigned i = 0; i < ARRAY_SIZE(number); i++) {
        const char *end;

        if (!g_ascii_isdigit(*text) || qemu_strtou64(text, &end, 0, number[i]) < 0 ||
            *end != "+::"[i]) {
            return false;
        }
        text = end + 1;
    }
    return true;
}

static void set_preview(Object *object, const char *text, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);
    uint64_t addr, len, seed, count;
    g_autofree uint8_t *data = NULL;

    if (!parse(text, &addr, &len, &seed, &count) || !len || len > PREVIEW_OCTETS ||
        count >= PREVIEW_OCTETS / len) {
        error_setg(errp,
                   "preview: '%s' is not ADDRESS+LENGTH:SEED:COUNT, or asks for more than "
                   "%d octets",
                   text, PREVIEW_OCTETS);
        return;
    }
    data = g_malloc((count + 1) * len);
    if (!d->model || !take(d, addr, len, seed, count, data)) {
        error_setg(errp, "preview: no NVDIMM of the domain has all of that range, or it is cut");
        return;
    }
    g_string_truncate(answer, 0);
    for (uint64_t i = 0; i <= count; i++) {
        append_hex(answer, data + i * len, len);
    }
}

static char *get_preview(Object *object, Error **errp)
{
    return g_strdup(answer->str);
}

void staghorn_domain_class_preview(ObjectClass *klass)
{
    answer = g_string_new(NULL);
    object_class_property_add_str(klass, "preview", get_preview, set_preview);
    object_class_property_set_description(klass, "preview",
                                          "what a cut at this instant would leave");
}
