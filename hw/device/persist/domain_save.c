/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: a machine that has one is saved, migrates, is recorded, or is kept.
 *
 * The media are files of their own, which the destination opens as well, so the stream contains
 * nothing of the NVDIMMs.  Before it ends everything that is on its way reaches the media, which it
 * may do at any time: so there is no state of the model to save either.  What cannot reach them,
 * because a medium refuses it, prevents the migration.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "exec/cpu-common.h"
#include "migration/vmstate.h"
#include "domain_object.h"

bool staghorn_domain_settle(StaghornDomain *d, Error **errp)
{
    struct sg_persist_stats stats;
    uint64_t left = 0;

    if (qatomic_read(&d->powered_off)) {
        error_setg(errp, "its power was cut, and is not back yet");
        return false;
    }
    staghorn_domain_orderly(d);
    sg_persist_stats(staghorn_domain_enter(d), &stats);
    staghorn_domain_leave(d);
    for (unsigned i = 0; i < SG_PERSIST_STAGES; i++) {
        left += stats.stage[i];
    }
    if (left) {
        error_setg(errp, "the media of its NVDIMMs refuse %" PRIu64 " lines", left);
    }
    return !left;
}

static int domain_pre_save(void *opaque)
{
    Error *error = NULL;

    if (!staghorn_domain_settle(opaque, &error)) {
        error_reportf_err(error, "the machine cannot be saved: ");
        return -EBUSY;
    }
    return 0;
}

static const VMStateDescription vmstate_domain = {
    .name = "staghorn-domain",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = domain_pre_save,
    .fields =
        (const VMStateField[]){
            VMSTATE_UINT32_EQUAL(dimms, StaghornDomain, "the machines have different NVDIMMs"),
            VMSTATE_END_OF_LIST(),
        },
};

void staghorn_domain_save_init(StaghornDomain *d)
{
    for (unsigned i = 0; i < d->dimms; i++) {
        qemu_ram_unset_migratable(d->dimm[i].mr->ram_block);
    }
    vmstate_register(NULL, 0, &vmstate_domain, d);
}
