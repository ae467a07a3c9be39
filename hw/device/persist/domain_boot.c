/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: a machine that resumes behind its boot when power returns.
 *
 *   boot-state = FILE      From now on the machine does not boot after a power cut.  Devices and
 *                          ordinary memory get the state in this file: that of a machine alike,
 *                          which was saved (migrate file:FILE) where its guest had booted, and had
 *                          not looked at the adapters and NVDIMMs.  "": it boots.
 *   boot-console = CHARDEV the guest waits there ...
 *   boot-text = TEXT       ... for this line, which it gets when it has been resumed
 *
 * The NVDIMMs are not in the file: they are as the cut has left them.  Ordinary memory does not
 * become noise, because nothing of it would remain.  The file stays open, so it may be removed.
 *
 * The machine boots, with a warning, if the file cannot be loaded.  It boots as well if the state
 * is not that of this machine any more, because a PCI function was plugged or removed or the flash
 * of an adapter was written, and while it is being recorded (a trace's clock never goes back).
 *
 * QEMU's virtual clock is that of the state afterwards.  The model and the adapters have one that
 * goes on (staghorn_clock_ns()).
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/yank.h"
#include "block/block-global-state.h"
#include "chardev/char.h"
#include "hw/pci/pci_device.h"
#include "io/channel-file.h"
#include "migration/misc.h"
#include "migration/migration.h"
#include "migration/qemu-file.h"
#include "migration/savevm.h"
#include "system/runstate.h"
#include "domain_object.h"
#include "machine_clock.h"
#include "recorder.h"
#include "staghorn.h"

enum { TYPE_MS = 5 }; /* between tries to type, while the guest's port has no room */

typedef struct StaghornBoot {
    char *path, *console, *text;
    int fd;            /* of the file; -1: none */
    uint64_t flash;    /* staghorn_flash_writes() when it was set */
    GString *machine;  /* the PCI functions then */
    QEMUBH *resume_bh; /* a cut's reset is done */
    QEMUTimer *typist;
    size_t typed; /* of the text and its end of line */
    uint64_t resumed;
} StaghornBoot;

/* ---- is it still the same machine? ---- */

static int add_function(Object *object, void *opaque)
{
    if (object_dynamic_cast(object, TYPE_PCI_DEVICE)) {
        g_autofree char *path = object_get_canonical_path(object);

        g_string_append_printf(opaque, "%s %s\n", path, object_get_typename(object));
    }
    return 0;
}

static GString *functions(void)
{
    GString *found = g_string_new("");

    object_child_foreach_recursive(object_get_root(), add_function, found);
    return found;
}

static bool is_same_machine(const StaghornBoot *b)
{
    GString *now = functions();
    bool same = g_string_equal(now, b->machine) && staghorn_flash_writes() == b->flash;

    g_string_free(now, true);
    return same;
}

bool staghorn_boot_resumes(StaghornDomain *d)
{
    return d->boot->fd >= 0 && !staghorn_recording && !d->rewind && is_same_machine(d->boot);
}

/* ---- the line on the console ---- */

static void type_some(void *opaque)
{
    StaghornBoot *b = opaque;
    Chardev *chr = qemu_chr_find(b->console);
    size_t len = strlen(b->text) + 1;

    while (chr && b->typed < len && qemu_chr_be_can_write(chr) > 0) {
        const char *next = b->typed < len - 1 ? b->text + b->typed : "\n";

        qemu_chr_be_write(chr, (const uint8_t *)next, 1);
        b->typed++;
    }
    if (chr && b->typed < len) {
        timer_mod(b->typist, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + TYPE_MS);
    }
}

/* ---- the state ---- */

static int load(StaghornBoot *b, Error **errp)
{
    MigrationIncomingState *incoming = migration_incoming_get_current();
    QIOChannelFile *channel = qio_channel_file_new_dupfd(b->fd, errp);
    int result;

    if (!channel) {
        return -1;
    }
    if (lseek(b->fd, 0, SEEK_SET) < 0 || !yank_register_instance(MIGRATION_YANK_INSTANCE, errp)) {
        object_unref(OBJECT(channel));
        return -1;
    }
    incoming->from_src_file = qemu_file_new_input(QIO_CHANNEL(channel));
    object_unref(OBJECT(channel));
    result = qemu_loadvm_state(incoming->from_src_file);
    migration_incoming_state_destroy();
    if (result < 0) {
        error_setg(errp, "%s cannot be loaded: %s", b->path, strerror(-result));
    }
    return result;
}

/* As QEMU's load_snapshot() does it. */
static void resume(void *opaque)
{
    StaghornDomain *d = opaque;
    StaghornBoot *b = d->boot;
    bool running = runstate_is_running();
    Error *error = NULL;

    if (b->fd < 0 || d->cutting || migration_is_running()) {
        return;
    }
    vm_stop(RUN_STATE_RESTORE_VM);
    bdrv_drain_all_begin();
    staghorn_clock_hold(true);
    qemu_system_reset(SHUTDOWN_CAUSE_SNAPSHOT_LOAD);
    if (load(b, &error) < 0) {
        error_prepend(&error, "boot-state: the machine boots: ");
        warn_report_err(error);
        qemu_system_reset(SHUTDOWN_CAUSE_SUBSYSTEM_RESET);
    } else {
        b->resumed++;
        b->typed = 0;
        timer_mod(b->typist, qemu_clock_get_ms(QEMU_CLOCK_REALTIME));
    }
    bdrv_drain_all_end();
    staghorn_clock_hold(false);
    if (running) {
        vm_start();
    }
}

void staghorn_boot_after_cut(StaghornDomain *d)
{
    qemu_bh_schedule(d->boot->resume_bh);
}

/* ---- properties ---- */

static void forget(StaghornBoot *b)
{
    if (b->fd >= 0) {
        close(b->fd);
        g_string_free(b->machine, true);
    }
    b->fd = -1;
    g_free(b->path);
    b->path = g_strdup("");
}

static void set_state(Object *object, const char *path, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);
    StaghornBoot *b = d->boot;
    int fd = -1;

    if (*path) {
        if (!d->model) {
            error_setg(errp, "boot-state: the machine is not there yet");
            return;
        }
        fd = qemu_open(path, O_RDONLY, errp);
        if (fd < 0) {
            return;
        }
    }
    forget(b);
    if (fd >= 0) {
        g_free(b->path);
        b->path = g_strdup(path);
        b->fd = fd;
        b->machine = functions();
        b->flash = staghorn_flash_writes();
    }
}

static char *get_state(Object *object, Error **errp)
{
    return g_strdup(STAGHORN_DOMAIN(object)->boot->path);
}

static void set_console(Object *object, const char *value, Error **errp)
{
    StaghornBoot *b = STAGHORN_DOMAIN(object)->boot;

    g_free(b->console);
    b->console = g_strdup(value);
}

static char *get_console(Object *object, Error **errp)
{
    return g_strdup(STAGHORN_DOMAIN(object)->boot->console);
}

static void set_text(Object *object, const char *value, Error **errp)
{
    StaghornBoot *b = STAGHORN_DOMAIN(object)->boot;

    g_free(b->text);
    b->text = g_strdup(value);
}

static char *get_text(Object *object, Error **errp)
{
    return g_strdup(STAGHORN_DOMAIN(object)->boot->text);
}

uint64_t staghorn_boot_resumed(const StaghornDomain *d)
{
    return d->boot->resumed;
}

void staghorn_domain_class_boot(ObjectClass *klass)
{
    object_class_property_add_str(klass, "boot-state", get_state, set_state);
    object_class_property_set_description(klass, "boot-state",
                                          "The machine resumes from this file after a cut");
    object_class_property_add_str(klass, "boot-console", get_console, set_console);
    object_class_property_set_description(klass, "boot-console",
                                          "The chardev on which it gets boot-text then");
    object_class_property_add_str(klass, "boot-text", get_text, set_text);
    object_class_property_set_description(klass, "boot-text", "A line of text for the guest");
}

void staghorn_domain_init_boot(StaghornDomain *d)
{
    StaghornBoot *b = d->boot = g_new0(StaghornBoot, 1);

    b->fd = -1;
    b->path = g_strdup("");
    b->console = g_strdup("");
    b->text = g_strdup("");
    b->resume_bh = qemu_bh_new(resume, d);
    b->typist = timer_new_ms(QEMU_CLOCK_REALTIME, type_some, b);
}

void staghorn_domain_free_boot(StaghornDomain *d)
{
    StaghornBoot *b = d->boot;

    forget(b);
    qemu_bh_delete(b->resume_bh);
    timer_free(b->typist);
    g_free(b->path);
    g_free(b->console);
    g_free(b->text);
    g_free(b);
}
