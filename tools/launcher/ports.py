# SPDX-License-Identifier: GPL-2.0-or-later
"""What the ports of a VM's adapters have seen and dropped, for `status`."""
from . import proc
from .errors import LabError
from .qmp import Monitor

PATIENCE = 1.0  # seconds; another client may have the monitor, and status does not wait for it
# Property of the adapter's "port-counters": what it is for people.
DROPPED = {
    "checksum-errors": "with a wrong checksum",
    "dropped": "without room for them",
    "uplink-dropped": "that the segment did not take",
}


def counters(folder, name):
    """Of each adapter of the VM, a dictionary; None: nobody knows.  The VM may be off."""
    vm = folder.data["vms"][name]
    count = 1 + len(vm["adapters"]) if vm["driver"] == "staghorn" else 0
    found = [None] * count
    if not count or not proc.alive(vm["process"]):
        return found
    try:
        with Monitor(folder, name, PATIENCE) as monitor:
            for number in range(count):
                words = {"path": "r%d" % number, "property": "port-counters"}
                found[number] = monitor.run("qom-get", **words)
    except LabError:
        pass  # unplugged, an older QEMU, or a monitor that is in use
    return found


def lines(vms):
    """For people: frames that were dropped; vms as `status` has them."""
    for name, vm in vms.items():
        for number, port in enumerate(vm["ports"]):
            seen = [key for key in DROPPED if (port or {}).get(key)]
            words = ["%d %s" % (port[key], DROPPED[key]) for key in seen]
            if words:
                adapter = "%s.%d" % (name, number) if number else name
                yield "dropped frames of %s: %s" % (adapter, ", ".join(words))
