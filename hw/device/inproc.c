/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * See inproc.h.  QEMU runs with accelerator qtest: its CPUs do not run, and the caller, which holds
 * the big lock from sg_inproc_start() on, acts in their place.
 */
#include "qemu/osdep.h"
#include "exec/address-spaces.h"
#include "exec/ioport.h"
#include "qapi/error.h"
#include "qapi/qmp-registry.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qobject/qobject.h"
#include "qobject/qstring.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "system/runstate.h"
#include "system/system.h"
#include "inproc.h"

extern QmpCommandList qmp_commands;

/* Defined in system/main.c, which is not linked; user interfaces refer to it. */
int (*qemu_main)(void);

void sg_inproc_start(int argc, char **argv)
{
    qemu_init(argc, argv);
    /* QEMU's handlers ask its own main loop to end, which does not exist here. */
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

void sg_inproc_read(uint64_t addr, void *buf, size_t len)
{
    address_space_read(&address_space_memory, addr, MEMTXATTRS_UNSPECIFIED, buf, len);
}

void sg_inproc_write(uint64_t addr, const void *buf, size_t len)
{
    address_space_write(&address_space_memory, addr, MEMTXATTRS_UNSPECIFIED, buf, len);
}

void sg_inproc_out(uint16_t port, uint32_t value)
{
    cpu_outl(port, value);
}

uint32_t sg_inproc_in(uint16_t port)
{
    return cpu_inl(port);
}

bool sg_inproc_round(void)
{
    if (!g_main_context_pending(NULL)) {
        return false;
    }
    main_loop_wait(true);
    return true;
}

uint64_t sg_inproc_clock_step(uint64_t ns)
{
    return qemu_clock_advance_virtual_time(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + ns);
}

void sg_inproc_reset(void)
{
    qemu_system_reset(SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET);
}

void sg_inproc_drain(void)
{
    drain_call_rcu();
}

char *sg_inproc_qmp(const char *text)
{
    Error *err = NULL;
    QObject *request = qobject_from_json(text, &err);
    GString *answer;
    QDict *reply;
    char *line;

    if (!request) {
        error_reportf_err(err, "%s: ", text);
        abort();
    }
    reply = qmp_dispatch(&qmp_commands, request, false, NULL);
    qobject_unref(request);
    answer = qobject_to_json(QOBJECT(reply));
    qobject_unref(reply);
    line = g_string_free(answer, FALSE);
    return line;
}
