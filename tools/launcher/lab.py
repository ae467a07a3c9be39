# SPDX-License-Identifier: GPL-2.0-or-later
"""The operations on a lab: up, down, cut, on, link, impair, save, load, status.

The order ensures that nothing is left behind: each process is written into lab.json right after
its start, and the folder is removed only when all of them are gone.  So whatever happens to the
launcher, `down` finds what is left.
"""
import contextlib
import os
import re
import shutil
import signal
import time

from . import (
    agent,
    arch,
    debugging,
    domain,
    firmware,
    guest,
    images,
    impair,
    iommu,
    netboot,
    options,
    own_kernel,
    paths,
)
from . import plug, pmem, ports, proc, qemu, segment, share, snapshot, uefi
from .errors import TIMEOUT, LabError, UsageError
from .qmp import Monitor
from .state import LabFolder, all_names

# Guests poll for completions, and there may be fewer host CPUs than busy threads.  So the virtual
# CPUs have a lower priority than QEMU's main loop, which emulates the adapter and the network that
# they wait for.
VCPU_NICE = 5

TIME = re.compile(r"^\d{4}-\d\d-\d\dT[0-9:.]+Z ")  # before each of QEMU's messages
READY = [
    "/bin/sh",
    "-c",
    "cat /run/staghorn/error >&2 2>/dev/null; cat /run/staghorn/rdma 2>/dev/null; "
    "! cat /run/staghorn/failed >&2 2>/dev/null",
]


def _further(vm, index, adapters):
    """The further adapters of a VM, with their addresses."""
    return [
        dict(
            adapter,
            addr=options.NET % (number, index + 1),
            addr6=options.NET6 % (number, index + 1),
            mac=options.mac(vm, number),
        )
        for number, adapter in enumerate(adapters, 1)
    ]


def make_plan(name, args):
    """The state of a lab that is not started yet, from checked options."""
    kernel = options.kernel(args.kernel)
    names = options.vm_names(args.vms)
    driver_of = options.drivers(args.driver, names)
    arches = arch.parse(args.arch, names)
    properties = options.device_properties(args.device_prop, driver_of)
    memories = pmem.parse(args.pmem, names)
    profiles = firmware.parse(args.profile, driver_of)
    diskless = netboot.parse(args.netboot, names)
    with_iommu = iommu.parse(args.iommu, names, kernel)
    with_uefi = uefi.parse(args.uefi, names, diskless)
    traces = debugging.traces(args.trace, names)
    gdbstubs = debugging.gdbstubs(args.gdb, names, paths.labs() / name)
    further_words = debugging.qemu_words(args.qemu_arg, names)
    further = options.adapters(args.adapter, driver_of)
    shares = share.parse(args.share, diskless)
    vms = {}
    for index, vm in enumerate(names):
        vms[vm] = {
            "index": index,
            "addr": options.NET % (0, index + 1),
            "addr6": options.NET6 % (0, index + 1),
            "mac": options.mac(vm),
            "driver": driver_of[vm],
            "arch": arches[vm],
            "properties": properties[vm],
            "profile": profiles[vm],
            "netboot": vm in diskless,
            "uefi": vm in with_uefi,
            "iommu": vm in with_iommu,
            "adapters": _further(vm, index, further[vm]),
            "pmem": memories.get(vm),
            "trace": traces[vm],
            "gdb": gdbstubs[vm],
            "qemu_args": further_words[vm],
            "flash": [],
            "process": None,
            "starts": 0,
            "ready_s": None,
            "rdma": None,
        }
    arch.check(args, kernel, vms)
    own = _own_kernel(kernel, args, vms, shares)
    packages = images.packages(args.packages)
    slow = options.is_slow({"kernel": kernel, "own_kernel": own})
    patience = arch.patience(vms) * (options.DEBUG_PATIENCE if slow else 1)
    return {
        "version": 1,
        "name": name,
        "phase": "starting",
        "owner": proc.identify(os.getpid()),
        "mtu": options.mtu(args.mtu),
        "mem": options.memory(args.mem) + (options.DEBUG_MEMORY_MIB if slow else 0),
        "image": images.chosen(args.image, packages, own),
        "packages": packages,
        "kernel": kernel,
        "own_kernel": own,
        "shares": shares,
        "cpus": options.cpus(args.cpus),
        "accel": None,
        "capture": options.capture(args.capture),
        "timeout": args.timeout or options.READY_LIMIT * patience,
        "segment": segment.plan(vms, args.capture),
        "impair": impair.parse(args.impair, vms),
        "boot_snapshot": snapshot.wanted(args),
        "check": False,
        "vms": vms,
    }


def _own_kernel(kernel, args, vms, shares):
    """The facts of the user's kernel, which is checked; None: the kernel is one of ours."""
    if kernel in options.KERNELS:
        if args.modules:
            raise UsageError("--modules DIR belongs to --kernel FILE")
        if kernel == "debug" and shares:
            raise UsageError("--share: the debug kernel has no 9p over virtio")
        return None
    for name, vm in vms.items():
        if vm["netboot"]:
            raise UsageError("--netboot: VM %s boots only the kernels base and debug" % name)
    wanted = ["siw"] if any(vm["driver"] == "siw" for vm in vms.values()) else []
    wanted += ["share"] if shares else []
    wanted += ["iommu"] if any(vm["iommu"] for vm in vms.values()) else []
    wanted += ["pmem"] if any(vm["pmem"] for vm in vms.values()) else []
    return own_kernel.find(kernel, args.modules, wanted)


def require_built(lab):
    """Checks that all files that the lab needs exist, before anything starts."""
    paths.firmware()
    arch.require_built(lab["vms"])
    for vm in lab["vms"].values():
        if vm["profile"]:
            paths.adapter_firmware(vm["profile"] + ".flash")
        if arch.is_arm64(vm):
            continue
        paths.qemu()
        for name in () if lab["own_kernel"] else ("vmlinuz", "initrd"):
            paths.guest(name, lab["kernel"])
        if vm["netboot"]:
            paths.guest("netroot.gz")
        else:
            paths.image(lab["image"])


def _qemu_words(folder, name):
    """The reason why QEMU ended, in its own words."""
    try:
        lines = (folder.path / name / "qemu.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    lines = [TIME.sub("", line) for line in lines[-3:]]
    return " / ".join(lines) or "it said nothing"


def power_on(folder, name, incoming=False, pause=False):
    """Starts the VM's QEMU, or one that waits for a saved machine; returns the time of the
    start.  pause: as in qemu.command()."""
    place = folder.path / name
    place.mkdir(exist_ok=True)
    for stale in place.iterdir():
        if stale.is_socket():
            stale.unlink()
    vm = folder.data["vms"][name]
    pmem.prepare(folder, name, vm)
    firmware.prepare(folder, name, vm)
    uefi.prepare(folder, name, vm)
    moment = time.monotonic()
    vm["process"], child = debugging.spawn(
        folder, name, lambda log: qemu.command(folder.data, name, log, incoming, pause)
    )
    vm["starts"] += 1
    vm["ready_s"] = vm["rdma"] = None
    folder.save()
    _wait_sockets(folder, name, child)
    return moment


def _wait_sockets(folder, name, child):
    """Waits until QEMU listens on its last socket or has ended."""
    last = folder.path / name / ("x%d" % (qemu.AGENT_PORTS - 1))
    deadline = time.monotonic() + 20
    while not last.exists():
        if child.poll() is not None:
            raise LabError(
                "QEMU of VM %s did not start: %s" % (name, _qemu_words(folder, name)),
                "Check the options given (device properties, capture file, memory)",
            )
        if time.monotonic() > deadline:
            raise LabError(
                "QEMU of VM %s does not get ready" % name,
                "See %s" % (folder.path / name / "qemu.log"),
            )
        time.sleep(0.005)


def wait_ready(folder, name, since, limit):
    """Waits until the guest says that RDMA is up; returns the seconds since power-on."""
    left = since + limit - time.monotonic()
    try:
        status, device, error = agent.capture(
            folder, name, READY, answer_timeout=left, booting=True
        )
    except agent.Gone:
        raise LabError(
            "VM %s went off while it booted: %s" % (name, _qemu_words(folder, name)),
            "The end of its console:\n" + console_tail(folder, name),
        )
    except LabError as failure:
        if failure.status != TIMEOUT:
            raise
        raise LabError(
            "VM %s was not ready within %d s" % (name, limit),
            "Give it more with --timeout; the end of its console:\n" + console_tail(folder, name),
            TIMEOUT,
        )
    vm = folder.data["vms"][name]
    if status and device.strip():
        raise LabError("VM %s booted, but: %s" % (name, error.strip()))
    if status or (vm["driver"] != "none" and not device.strip()):
        raise LabError(
            "VM %s booted, but RDMA is not up: %s" % (name, error.strip() or "no device"),
            "The end of its console:\n" + console_tail(folder, name),
        )
    vm["rdma"] = device.strip() or None
    vm["ready_s"] = round(time.monotonic() - since, 2)
    proc.yield_threads(vm["process"], "CPU ", VCPU_NICE)
    return vm["ready_s"]


def console_tail(folder, name, lines=12):
    text = ""
    for path in debugging.log_files(folder, name, debugging.CONSOLE):
        with contextlib.suppress(OSError):
            text += path.read_text(errors="replace")
    return (
        "\n".join("    " + line for line in text.replace("\r", "").splitlines()[-lines:])
        or "    (nothing)"
    )


def stop_all(folder):
    """Ends all processes of the lab at once; true when all are gone."""
    found = folder.processes() + folder.keepers()
    for ident in found:
        if proc.alive(ident):
            try:
                os.kill(ident["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass
    return all([proc.kill(ident) for ident in found])


def up(name, args, accel, say, change=None):
    """Starts the lab; returns its state.  On any error nothing is left behind.

    change(plan): what options cannot say."""
    plan = make_plan(name, args)
    if change:
        change(plan)
    guest.prepare(say, any(vm["netboot"] for vm in plan["vms"].values()))
    require_built(plan)
    folder = LabFolder(name)
    with folder.lock():
        _clear_stale(folder, say)
        if plan["own_kernel"]:
            _build_kernel(plan, say)
        if plan["packages"]:
            plan["image"] = images.build(plan["image"], plan["packages"], say)
        folder.data = plan
        folder.save()
        try:
            plan["accel"] = accel(arch.accel(args.accel, plan["vms"]))
            _start(folder, say)
            for vm, doubt in domain.doubts(folder):
                say("%s: verdicts on its persistent memory are not to be trusted: %s" % (vm, doubt))
        except BaseException:
            kept = keep_logs(folder)
            stop_all(folder)
            folder.data = None
            if kept:
                say("logs kept in %s" % kept)
            raise
        folder.data["phase"] = "up"
        folder.save()
        return folder.data


def _build_kernel(plan, say):
    own = plan["own_kernel"]
    if own["lacks"]:
        say("the kernel %s is without %s" % (own["release"], ", ".join(own["lacks"])))
    plan["kernel"] = own_kernel.build(own, say)


def keep_logs(folder):
    """Copies logs to $STAGHORN_KEEP_LOGS, for the tests."""
    target = os.environ.get("STAGHORN_KEEP_LOGS")
    if not target:
        return None
    target = os.path.join(target, folder.name)
    for vm in folder.data["vms"]:
        for log in (debugging.CONSOLE, "qemu.log", debugging.LOG):
            source = folder.path / vm / log
            if source.exists():
                os.makedirs(target, exist_ok=True)
                shutil.copy(source, os.path.join(target, "%s-%s" % (vm, log)))
    return target if os.path.isdir(target) else None


def _clear_stale(folder, say):
    if not folder.data:
        return
    if folder.data["phase"] == "up" and any(proc.alive(i) for i in folder.processes()):
        raise LabError(
            "lab %s is up already" % folder.name,
            "Use it, end it with ./staghorn --lab %s down, or choose another name with --lab"
            % folder.name,
        )
    say("clearing what is left of an earlier lab %s" % folder.name)
    stop_all(folder)
    folder.clear()


def _start(folder, say):
    lab = folder.data
    names = list(lab["vms"])
    netboot.prepare(folder, qemu.guest_arguments)
    segment.start(folder)
    folder.save()
    say(
        "starting %s (%s, MTU %d)"
        % (
            ", ".join("%s: %s" % (vm, lab["vms"][vm]["driver"]) for vm in names),
            lab["accel"].upper(),
            lab["mtu"],
        )
    )
    saved = snapshot.prepare(folder, power_on, lab["timeout"], say) if lab["boot_snapshot"] else {}
    since = {vm: power_on(folder, vm, incoming=vm in saved) for vm in names}
    for vm in snapshot.resume(folder, saved, lab["timeout"], say):
        since[vm] = power_on(folder, vm)
    _wait_all(folder, since, lab["timeout"], say)
    folder.save()


def _wait_all(folder, since, limit, say):
    """Waits for all VMs at once; the first failure ends the wait."""
    import concurrent.futures

    pool = concurrent.futures.ThreadPoolExecutor(len(since))
    waits = {pool.submit(wait_ready, folder, vm, moment, limit): vm for vm, moment in since.items()}
    try:
        for done in concurrent.futures.as_completed(waits):
            say("%s is ready after %.1f s" % (waits[done], done.result()))
    finally:
        # Threads end by themselves once their QEMU is gone.
        pool.shutdown(wait=False, cancel_futures=True)


def down(name, say):
    """Ends the lab.  False: there was no lab."""
    folder = LabFolder(name)
    if not folder.path.exists():
        return False
    _interrupt_owner(folder)
    with folder.lock(wait=20):
        if not folder.data:
            return True
        if not stop_all(folder):
            raise LabError(
                "some QEMU of lab %s does not end" % name,
                "Look at: ps %s"
                % " ".join(str(i["pid"]) for i in folder.processes() if proc.alive(i)),
            )
        say("lab %s is down" % name)
        folder.data = None
    return True


def _interrupt_owner(folder):
    """Tells a running `up` to stop; it cleans up itself."""
    owner = (folder.data or {}).get("owner")
    if (
        folder.data
        and folder.data["phase"] == "starting"
        and proc.alive(owner)
        and owner["pid"] != os.getpid()
    ):
        proc.kill(owner, signal.SIGTERM, wait=15)


def cut(name, vm_name, policy=None, hard=False, wait=True, limit=None):
    """A power failure.  With a persistence domain power returns at once, unless the cut is hard,
    which ends the VM's QEMU.  Returns the domain's state, with "ready_s" if it waited for the VM;
    None: the VM is off."""
    folder = LabFolder(name)
    folder.require()
    with folder.lock():
        vm = folder.running(vm_name)
        if not hard and domain.has_one(vm):
            return _cut_domain(folder, vm_name, policy, wait, limit)
        if policy:
            domain.require(vm, vm_name)
            raise UsageError("cut: --hard takes no --policy, it kills QEMU")
        proc.kill(vm["process"])
        vm["process"] = None
        vm["ready_s"] = None
        folder.save()
        return None


def _cut_domain(folder, vm_name, policy, wait, limit):
    vm = folder.vm(vm_name)
    since = time.monotonic()
    state = domain.cut(folder, vm_name, policy)
    vm["starts"] += 1
    vm["ready_s"] = vm["rdma"] = None
    folder.save()
    if wait:
        state["ready_s"] = wait_ready(folder, vm_name, since, limit or folder.data["timeout"])
        folder.save()
    return state


def link(name, vm_name, number, up):
    """Plugs in or pulls the Ethernet cable of an adapter."""
    folder = LabFolder(name)
    vm = folder.running(vm_name)
    if not 0 <= number <= len(vm["adapters"]):
        raise UsageError("VM %s has no adapter %d" % (vm_name, number))
    with Monitor(folder, vm_name) as monitor:
        monitor.run("set_link", name="up%d" % number, up=up)
    if folder.data["boot_snapshot"] and domain.has_one(vm):
        domain.resume_from(folder, vm_name, "")  # there the cable is plugged in


def impair_links(name, items, clear):
    """Changes impaired links, or clears them; returns settings and counters of the named links."""
    folder = LabFolder(name)
    folder.require()
    with folder.lock(wait=20):
        vms = folder.data["vms"]
        shown = []
        plan = [impair.split(item, vms) for item in items]
        if clear and any(settings is not None for _, settings in plan):
            raise UsageError("impair --clear takes no settings")
        for wanted, settings in plan or [(impair.everything(vms), None)]:
            shown += [link for link in wanted if link not in shown]
            if clear or settings is not None:
                impair.change(folder, wanted, settings)
        return impair.show(folder, shown)


def save(name, vm_name, path, limit, live=False):
    """Saves the VM's state to a file and switches the VM off; returns the file's size."""
    folder = LabFolder(name)
    folder.require()
    with folder.lock():
        plug.save(folder, vm_name, path, limit or folder.data["timeout"], live)
        folder.save()
    return os.path.getsize(path)


def load(name, vm_name, path, limit):
    """Resumes a saved VM; returns the seconds that this took."""
    folder = LabFolder(name)
    folder.require()
    with folder.lock():
        vm = folder.vm(vm_name)
        if proc.alive(vm["process"]):
            raise LabError("VM %s is already on" % vm_name)
        since = power_on(folder, vm_name, incoming=True)
        try:
            plug.load(folder, vm_name, path, limit or folder.data["timeout"])
        except BaseException:
            proc.kill(vm["process"])
            vm["process"] = None
            folder.save()
            raise
        vm["ready_s"] = round(time.monotonic() - since, 2)
        proc.yield_threads(vm["process"], "CPU ", VCPU_NICE)
        folder.save()
        return vm["ready_s"]


def _power_on_again(folder, vm_name, limit, say):
    """Starts a VM that was up before, behind its boot if it can; returns the time of the start."""
    path = snapshot.present(folder, vm_name)
    since = power_on(folder, vm_name, incoming=path is not None)
    if path and snapshot.resume(folder, {vm_name: path}, limit, say):
        power_on(folder, vm_name)
    return since


def on(name, vm_name, limit, say=lambda text: None):
    """Switches power on; returns the seconds until RDMA is ready."""
    folder = LabFolder(name)
    folder.require()
    with folder.lock():
        vm = folder.vm(vm_name)
        if proc.alive(vm["process"]):
            raise LabError("VM %s is already on" % vm_name)
        limit = limit or folder.data["timeout"]
        try:
            since = _power_on_again(folder, vm_name, limit, say)
            seconds = wait_ready(folder, vm_name, since, limit)
        except BaseException:
            proc.kill(vm["process"])
            vm["process"] = None
            folder.save()
            raise
        folder.save()
        return seconds


def restart(name, vm_name, limit=0):
    """Kills the VM's QEMU and switches the VM on again; returns the seconds until RDMA is ready."""
    folder = LabFolder(name)
    folder.require()
    with folder.lock():
        proc.kill(folder.vm(vm_name)["process"])
    return on(name, vm_name, limit)


def status(name):
    """The lab's state, with the processes that run now; None if there is no such lab."""
    folder = LabFolder(name)
    if not folder.data:
        return None
    lab = folder.data
    alive = any(proc.alive(i) for i in folder.processes())
    phase = lab["phase"]
    if phase == "starting" and not proc.alive(lab["owner"]):
        phase = "abandoned"
    elif phase == "up" and not alive:
        phase = "dead"
    vms = {
        vm: {
            "state": "on" if proc.alive(state["process"]) else "off",
            "driver": state["driver"],
            "arch": state.get("arch", arch.X86),
            "device": state["rdma"],
            "address": state["addr"],
            "address6": state["addr6"],
            "mac": state["mac"],
            "pid": state["process"]["pid"] if proc.alive(state["process"]) else None,
            "ready_s": state["ready_s"],
            "starts": state["starts"],
            "properties": state["properties"],
            "profile": state["profile"],
            "adapters": state["adapters"],
            "pmem": state["pmem"],
            "trace": state["trace"],
            "gdb": state["gdb"],
            "qemu_args": state["qemu_args"],
            "iommu": state["iommu"],
            "impair": impair.summary(lab, vm),
            "ports": ports.counters(folder, vm),
        }
        for vm, state in lab["vms"].items()
    }
    return {
        "lab": name,
        "state": phase,
        "accel": lab["accel"],
        "kernel": lab["own_kernel"]["source"] if lab["own_kernel"] else lab["kernel"],
        "release": lab["own_kernel"]["release"] if lab["own_kernel"] else None,
        "shares": lab["shares"],
        "mtu": lab["mtu"],
        "mem_mib": lab["mem"],
        "cpus": lab["cpus"],
        "segment": lab["segment"]["kind"],
        "capture": lab["capture"],
        "folder": str(folder.path),
        "vms": vms,
    }


def status_all():
    return [found for found in map(status, all_names()) if found]
