# SPDX-License-Identifier: GPL-2.0-or-later
"""The persistence domain of a running VM: properties, state, reports, power cuts.

QEMU's object staghorn-domain does all of it; docs/manual/properties.md has its properties.
"""
import json

from .errors import LabError, UsageError
from .qmp import Monitor

OBJECT = "/objects/dom0"
ACTIONS = ("cut", "persist", "export-log", "preview", "rewind")
RESULTS = ("report", "report-json", "state", "rewind-state", "rewind-lines")
OTHERS = ("type", "memdevs", "boot-state", "boot-console", "boot-text")


def require(vm, name):
    """The VM's persistent memory as the options describe it; it must have a domain."""
    pmem = vm.get("pmem")
    if not pmem:
        raise LabError(
            "VM %s has no persistent memory" % name,
            "Give it some: ./staghorn up --pmem %s:256M,domain=adr" % name,
        )
    if pmem["domain"].get("domain") == "off":
        raise LabError(
            "the persistent memory of VM %s has no persistence domain (domain=off)" % name,
            "It keeps everything, as plain NVDIMMs do",
        )
    return pmem


def has_one(vm):
    return bool(vm.get("pmem")) and vm["pmem"]["domain"].get("domain") != "off"


def _kinds(monitor):
    return {
        each["name"]: each["type"]
        for each in monitor.run("qom-list", path=OBJECT)
        if each["name"] not in OTHERS
    }


def _set(monitor, kinds, key, value):
    if key not in kinds or key in RESULTS:
        raise UsageError(
            "a persistence domain has no property %s" % key,
            "It has: " + ", ".join(sorted(set(kinds) - set(RESULTS) - set(ACTIONS))),
        )
    kind = kinds[key]
    if kind == "bool":
        if value not in ("on", "off"):
            raise UsageError("%s takes on or off, not %s" % (key, value))
        value = value == "on"
    elif kind == "uint64":
        if not value.isdigit():
            raise UsageError("%s takes a number, not %s" % (key, value))
        value = int(value)
    monitor.run("qom-set", path=OBJECT, property=key, value=value)


def change(folder, name, settings):
    """Sets properties, in order."""
    with Monitor(folder, name) as monitor:
        kinds = _kinds(monitor)
        for key, value in settings:
            _set(monitor, kinds, key, value)


def show(folder, name):
    """Properties and state."""
    with Monitor(folder, name) as monitor:
        found = {
            key: monitor.run("qom-get", path=OBJECT, property=key)
            for key in sorted(_kinds(monitor))
            if key not in ACTIONS + RESULTS
        }
        state = json.loads(monitor.run("qom-get", path=OBJECT, property="state"))
    return {"vm": name, "properties": found, "state": state}


def doubts(folder):
    """(VM, the verdicts of its domain that cannot be trusted) of all running VMs."""
    for name, vm in sorted(folder.data["vms"].items()):
        if has_one(vm):
            with Monitor(folder, name) as monitor:
                state = json.loads(monitor.run("qom-get", path=OBJECT, property="state"))
            if "not-trusted" in state:
                yield name, state["not-trusted"]


def report(folder, name, as_json):
    """The report of the last cut, as text or as an object."""
    with Monitor(folder, name) as monitor:
        text = monitor.run("qom-get", path=OBJECT, property="report-json" if as_json else "report")
    return json.loads(text) if as_json else text


def resume_from(folder, name, path):
    """After a power cut the VM resumes from this boot snapshot; "": it boots."""
    settings = {"boot-console": "console", "boot-text": "go", "boot-state": str(path)}
    with Monitor(folder, name) as monitor:
        for key, value in settings.items():
            monitor.run("qom-set", path=OBJECT, property=key, value=value)


def cut(folder, name, policy):
    """Cuts the power; returns the domain's state when the machine has been reset."""
    with Monitor(folder, name) as monitor:
        monitor.run("qom-set", path=OBJECT, property="cut", value=policy or "")
        return json.loads(monitor.run("qom-get", path=OBJECT, property="state"))


def text_of(found):
    """The result of `show` as text."""
    state = found["state"]
    lines = [
        "%s: power %s, %d cuts" % (found["vm"], "on" if state["power"] else "off", state["cuts"])
    ]
    for dimm, facts in sorted(state["nvdimms"].items()):
        lines.append("  NVDIMM %s: %d MiB at %#x" % (dimm, facts["size"] >> 20, facts["base"]))
    lines.append(
        "  not on the media (octets in S0 and S1, lines elsewhere): "
        + ", ".join("%s %d" % item for item in sorted(state["stages"].items()))
    )
    lines.append(
        "  %(events)d events, %(flushes)d flushes, %(flushes-failed)d of them failed, "
        "%(lines-persisted)d lines persisted, %(media-refusals)d refused" % state
    )
    if "not-trusted" in state:
        lines.append("  verdicts not to be trusted: " + state["not-trusted"])
    if "cut-us" in state:
        lines.append("  last cut: %.1f ms from power-off to power-on" % (state["cut-us"] / 1e3))
    for key, value in found["properties"].items():
        if isinstance(value, bool):
            value = "on" if value else "off"
        lines.append("  %-20s %s" % (key, value if value != "" else "-"))
    return "\n".join(lines)
