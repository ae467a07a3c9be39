# SPDX-License-Identifier: GPL-2.0-or-later
"""Ethernet segments.

direct  two adapters, a stream over one UNIX socket between their QEMUs: the fastest
hub     more adapters, or a capture: a QEMU without a machine.  It has one network hub for each
        such segment, which joins one stream for each adapter.  It outlives each VM, and so does
        the capture, which is of the main segment.
none    one adapter alone

A lab with VMs that boot from the network has a hub, to which their boot server is connected.

Each VM's first adapter is on the segment "main"; the options say where the others are.  An adapter
is named after its VM, with a point and its number if it is not the first.

A QEMU that connects tries again for ever, so a VM that is cut and switched on again is back on the
segment.
"""
from . import netboot, options, paths, proc

RECONNECT_MS = 100


def end_name(vm, number):
    return "%s.%d" % (vm, number) if number else vm


def _kind(ends, capture):
    if capture or len(ends) > 2:
        return "hub"
    return "direct" if len(ends) == 2 else "none"


def plan(vms, capture):
    """The state of the lab's segments, made from its VMs: their kinds, and the ends that each one
    joins."""
    ends = {options.MAIN: list(vms)}
    for name, vm in vms.items():
        for number, adapter in enumerate(vm["adapters"], 1):
            ends.setdefault(adapter["segment"], []).append(end_name(name, number))
    capture = capture or netboot.used(vms)
    kinds = {seg: _kind(each, capture and seg == options.MAIN) for seg, each in ends.items()}
    return {
        "kind": kinds[options.MAIN],
        "kinds": kinds,
        "ends": ends,
        "boot": netboot.used(vms),
        "process": None,
    }


def netdev(state, vm, number):
    """The -netdev argument of the adapter's uplink; paths are relative to the lab's folder."""
    end = end_name(vm, number)
    seg = next(seg for seg, ends in state["ends"].items() if end in ends)
    link = "segment/link" if seg == options.MAIN else "segment/link-" + seg
    # One adapter alone: nothing ever connects, and frames are dropped.  (A hub without a second
    # port would never accept one.)
    if state["kinds"][seg] == "none" or (
        state["kinds"][seg] == "direct" and end == state["ends"][seg][0]
    ):
        return "stream,id=up%d,server=on,addr.type=unix,addr.path=%s" % (number, link)
    path = link if state["kinds"][seg] == "direct" else "segment/end-" + end
    return "stream,id=up%d,server=off,addr.type=unix,addr.path=%s,reconnect-ms=%d" % (
        number,
        path,
        RECONNECT_MS,
    )


def hub_command(state, capture):
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
    hubs = [seg for seg, kind in state["kinds"].items() if kind == "hub"]
    for number, seg in enumerate(hubs):
        for end in state["ends"][seg]:
            command += [
                "-netdev",
                "stream,id=s-%s,server=on,addr.type=unix,addr.path=segment/end-%s" % (end, end),
                "-netdev",
                "hubport,id=h-%s,hubid=%d,netdev=s-%s" % (end, number, end),
            ]
    if state.get("boot"):
        command += netboot.netdevs(hubs.index(options.MAIN))
    if capture:
        # Every frame passes every port of a hub, so one port sees the whole segment.
        command += [
            "-object",
            "filter-dump,id=capture,netdev=h-%s,file=%s,maxlen=262144"
            % (state["ends"][options.MAIN][0], capture.replace(",", ",,")),
        ]
    return command


def start(folder):
    """Starts the processes that the segments need, and records them in the lab's state."""
    state = folder.data["segment"]
    (folder.path / "segment").mkdir(exist_ok=True)
    if "hub" in state["kinds"].values():
        state["process"], _ = proc.spawn(
            hub_command(state, folder.data["capture"]),
            folder.path,
            folder.path / "segment" / "qemu.log",
        )
