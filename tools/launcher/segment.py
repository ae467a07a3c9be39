# SPDX-License-Identifier: GPL-2.0-or-later
"""The Ethernet segment.

direct  two VMs, a stream over one UNIX socket between their QEMUs: the fastest
hub     more VMs, or a capture: a QEMU without a machine, whose network hub joins
        one stream for each VM.  It outlives each VM, and so does its capture.
none    one VM alone

Whoever connects tries again for ever, so a VM that is cut and switched on again
is back on the segment.
"""
from . import paths, proc

RECONNECT_MS = 100


def plan(names, capture):
    if capture or len(names) > 2:
        return "hub"
    return "direct" if len(names) == 2 else "none"


def netdev(kind, names, name):
    """The -netdev argument of the VM's uplink; paths are relative to the lab's folder."""
    # Alone: nobody ever connects, and frames are dropped.  (A hub without a second port would
    # never take one.)
    if kind == "none" or (kind == "direct" and name == names[0]):
        return "stream,id=up0,server=on,addr.type=unix,addr.path=segment/link"
    path = "segment/link" if kind == "direct" else "segment/" + name
    return "stream,id=up0,server=off,addr.type=unix,addr.path=%s,reconnect-ms=%d" % (
        path,
        RECONNECT_MS,
    )


def hub_command(names, capture):
    command = [
        paths.qemu(),
        "-L",
        paths.firmware(),
        "-M",
        "none",
        "-accel",
        "tcg",
        "-nodefaults",
        "-nographic",
        "-serial",
        "none",
        "-monitor",
        "none",
        "-name",
        "staghorn-segment",
    ]
    for name in names:
        command += [
            "-netdev",
            "stream,id=s-%s,server=on,addr.type=unix,addr.path=segment/%s" % (name, name),
            "-netdev",
            "hubport,id=h-%s,hubid=0,netdev=s-%s" % (name, name),
        ]
    if capture:
        # Every frame passes every port of a hub: one port's view is the whole segment.
        command += [
            "-object",
            "filter-dump,id=capture,netdev=h-%s,file=%s,maxlen=262144"
            % (names[0], capture.replace(",", ",,")),
        ]
    return command


def start(folder, kind, names, capture):
    """Starts what the segment needs; returns its part of the lab's state."""
    state = {"kind": kind, "process": None}
    (folder.path / "segment").mkdir(exist_ok=True)
    if kind == "hub":
        state["process"], _ = proc.spawn(
            hub_command(names, capture), folder.path, folder.path / "segment" / "qemu.log"
        )
    return state
