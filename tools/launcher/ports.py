# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of the ports of a VM's adapters, for `status`."""
import contextlib

from . import proc
from .errors import LabError
from .qmp import Monitor

PATIENCE = 1.0  # seconds; another client may have the monitor, and status does not wait for it
# Member of the adapter's property "port-counters": its name in texts.
DROPPED = {
    "checksum-errors": "with a wrong checksum",
    "dropped": "without room for them",
    "uplink-dropped": "that the segment did not take",
}


def counters(folder, name):
    """A dictionary for each adapter of the VM; None: not known.  The VM may be off."""
    vm = folder.data["vms"][name]
    count = 1 + len(vm["adapters"]) if vm["driver"] == "staghorn" else 0
    found = [None] * count
    if not count or not proc.alive(vm["process"]):
        return found
    with contextlib.suppress(LabError):  # the monitor is in use, or QEMU has stopped
        with Monitor(folder, name, PATIENCE) as monitor:
            for number in range(count):
                words = {"path": "r%d" % number, "property": "port-counters"}
                with contextlib.suppress(LabError):  # unplugged, or an older QEMU
                    found[number] = monitor.run("qom-get", **words)
    return found


def lines(vms):
    """Text: frames that were dropped; vms as in `status`."""
    for name, vm in vms.items():
        for number, port in enumerate(vm["ports"]):
            seen = [key for key in DROPPED if (port or {}).get(key)]
            words = ["%d %s" % (port[key], DROPPED[key]) for key in seen]
            if words:
                adapter = "%s.%d" % (name, number) if number else name
                yield "dropped frames of %s: %s" % (adapter, ", ".join(words))
