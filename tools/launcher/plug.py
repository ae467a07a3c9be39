# SPDX-License-Identifier: GPL-2.0-or-later
"""Hot unplug and plug of a VM's adapter, with the NIC behind its port, and saved machines.

The guest agrees to an unplug by releasing the slot.  A NIC model belongs to the port that it was
made with, so it is unplugged and plugged together with the adapter.
"""
import os
import time

from . import agent, proc, qemu
from .errors import ABSENT, TIMEOUT, LabError, UsageError
from .qmp import Monitor

LIMIT = 60.0  # seconds for the guest to release the slot

# Port MAC MTU ADDRESS...: waits for the Ethernet port and configures it as at boot.
CONFIGURE = """
mac=$1 mtu=$2; shift 2; n=0
while :; do
    for port in /sys/class/net/*; do
        read -r found < "$port/address" || continue
        [ "$found" = "$mac" ] || continue
        name=${port##*/}
        ip link set "$name" mtu "$mtu" up || exit 1
        for addr; do
            case $addr in
            *:*) ip addr add "$addr" dev "$name" nodad ;;
            *) ip addr add "$addr" dev "$name" ;;
            esac
        done
        exec /usr/lib/staghorn/rdma staghorn
    done
    n=$((n + 1)); [ $n -lt 600 ] || { echo "no port $mac" >&2; exit 1; }
    sleep 0.05
done
"""


def require(folder, name, number):
    """Returns the VM; it must be on and have such an adapter."""
    vm = folder.running(name)
    if vm["driver"] != "staghorn" or not 0 <= number <= len(vm["adapters"]):
        raise UsageError("VM %s has no adapter %d" % (name, number))
    return vm


def _there(monitor):
    return {each["name"] for each in monitor.run("qom-list", path="/machine/peripheral")}


def _remove(monitor, ident):
    """Repeats the request, because a guest that is booting ignores it."""
    deadline = time.monotonic() + LIMIT
    again = 0
    while ident in _there(monitor):
        if time.monotonic() > deadline:
            raise LabError("the guest does not release %s" % ident, None, TIMEOUT)
        if time.monotonic() > again:
            again = time.monotonic() + 5.5  # QEMU refuses a second request within five seconds
            try:
                monitor.run("device_del", id=ident)
            except LabError as error:
                if "already in the process" not in str(error):
                    raise
        time.sleep(0.05)


def unplug(folder, name, number):
    require(folder, name, number)
    with Monitor(folder, name) as monitor:
        if "r%d" % number not in _there(monitor):
            raise LabError("adapter %d of VM %s is already unplugged" % (number, name))
        _remove(monitor, "n%d" % number)
        _remove(monitor, "r%d" % number)


def plug(folder, name, number):
    """Returns when the guest has an RDMA device again."""
    vm = require(folder, name, number)
    with Monitor(folder, name) as monitor:
        if "r%d" % number in _there(monitor):
            raise LabError("adapter %d of VM %s is already plugged in" % (number, name))
        for words in qemu.devices(folder.data, name, number):
            said = monitor.run("human-monitor-command", **{"command-line": "device_add " + words})
            if said.strip():
                raise LabError("QEMU refuses the device: " + said.strip())
    port = [vm, *vm["adapters"]][number]
    words = [port["mac"], folder.data["mtu"], *qemu.addresses(port)]
    script = ["/bin/sh", "-c", CONFIGURE, "sh", *map(str, words)]
    status, _, error = agent.capture(folder, name, script, timeout=LIMIT)
    if status:
        raise LabError("the guest does not take the adapter: " + error.strip())


def _wait_migration(monitor, limit):
    deadline = time.monotonic() + limit
    while True:
        found = monitor.run("query-migrate")
        if found.get("status") == "completed":
            return
        if found.get("status") == "failed":
            raise LabError("the machine's state cannot be moved: %s" % found.get("error-desc"))
        if time.monotonic() > deadline:
            raise LabError("the machine's state takes too long", None, TIMEOUT)
        time.sleep(0.05)


def save(folder, name, path, limit, live=False):
    """Saves the machine's state to a file and switches the VM off.

    This is a live migration: the guest runs until little of its memory remains to be written."""
    vm = folder.running(name)
    with Monitor(folder, name) as monitor:
        parameters = {"max-bandwidth": 1 << 34}
        monitor.run("migrate-set-parameters", **parameters)
        if not live:
            monitor.run("stop")
        try:
            monitor.run("migrate", uri="file:" + os.path.abspath(path))
            _wait_migration(monitor, limit)
        except LabError:
            monitor.run("migrate_cancel")
            monitor.run("cont")
            raise
    proc.kill(vm["process"])
    vm["process"] = None
    vm["ready_s"] = None


def load(folder, name, path, limit):
    """Loads the file into the VM's QEMU, which was started to wait for it."""
    if not os.path.exists(path):
        raise LabError("there is no file %s" % path, None, ABSENT)
    with Monitor(folder, name) as monitor:
        monitor.run("migrate-incoming", uri="file:" + os.path.abspath(path))
        _wait_migration(monitor, limit)
        monitor.run("cont")
