# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM's command line.  Paths are relative to the lab's folder where they can be."""
from . import arch, debugging, firmware, impair, iommu, options, paths, pmem, segment, share, uefi

SIW_DELAY_MS = 100
AGENT_PORTS = 12

KERNEL_ARGUMENTS = (
    "loglevel=4 rdinit=/init panic=-1 mitigations=off no_timer_check "
    "random.trust_cpu=on nowatchdog"
)
CONSOLE = "console=ttyS0 "
# Linux compares the TSC with timers whose interrupts are late on a busy host, and gives it up for
# one that costs an access to an I/O port.  TCG's TSC is as steady as the host's.
TCG_ARGUMENTS = "tsc=reliable"
# TCG moves one octet at a time where it emulates `rep movsb` and `rep stosb`, and it reads one more
# level of page tables at each miss of the TLB if there are five.  This processor does not call them
# fast, so Linux and the C library move words; and it has four levels.
TCG_CPU = ",-fsrm,-fsrs,-fzrm,-fsrc,-la57"
# With NVDIMMs this feature stays: without it Linux's own copies do not survive a bad line.
TCG_CPU_NO_PMEM = ",-erms"
# The guest's init stops before it configures the network (snapshot.py).  Both are needed: the
# machine that resumes does not have the second, so a kernel that it starts by kexec, with the same
# command line, does not stop.
PAUSE_ARGUMENT = "sg.pause"
PAUSE_FILE = ("-fw_cfg", "name=opt/staghorn/pause,string=yes")
# Linux renews its random numbers when a machine resumes with another generation id: behind its
# boot, or when it is loaded once more.
GENERATION_ID = ("-device", "vmgenid,guid=auto")
# Some reports have only the level of a warning.  By default KASAN prints only its first report, and
# the DMA checker gives up when it has no entry left for a mapping.
DEBUG_ARGUMENTS = "loglevel=5 printk.time=1 kasan_multi_shot dma_debug_entries=262144"


def guest_arguments(lab, name):
    vm = lab["vms"][name]
    ports = [vm, *vm["adapters"]]
    hosts = ",".join("%s:%s" % (other, state["addr"]) for other, state in lab["vms"].items())
    return "%s sg.name=%s sg.addr=%s sg.addr6=%s sg.mtu=%d sg.mac=%s sg.rdma=%s sg.hosts=%s" % (
        _arguments(lab, vm)
        + (" " + DEBUG_ARGUMENTS if options.is_slow(lab) else "")
        + _own_arguments(lab)
        + iommu.kernel_arguments(vm),
        name,
        ",".join("%s/%d" % (port["addr"], options.NET_BITS) for port in ports),
        ",".join("%s/%d" % (port["addr6"], options.NET6_BITS) for port in ports),
        lab["mtu"],
        ",".join(port["mac"] for port in ports),
        vm["driver"],
        hosts,
    )


def _arguments(lab, vm):
    """What the kernel learns about its machine."""
    if arch.is_arm64(vm):
        return "%s %s" % (arch.KERNEL_ARGUMENTS, KERNEL_ARGUMENTS)
    return CONSOLE + KERNEL_ARGUMENTS + (" " + TCG_ARGUMENTS if lab["accel"] == "tcg" else "")


def _own_arguments(lab):
    """What the guest's scripts learn about the user's kernel and shared folders."""
    words = " sg.modules-disk" if lab["own_kernel"] else ""
    return words + share.kernel_arguments(lab["shares"])


def _adapter(lab, number, mac, properties):
    """The value of -device for the adapter at uplink upN; its NIC model is attached to id rN."""
    wanted = dict(properties)
    if any(other["driver"] == "siw" for other in lab["vms"].values()):
        # siw misses a first FPDU that arrives before siw has passed its socket on.
        wanted.setdefault("first-fpdu-delay", SIW_DELAY_MS)
    text = "".join(",%s=%s" % item for item in sorted(wanted.items()))
    return "staghorn,netdev=up%d,id=r%d,bus=rp%d,mac=%s%s" % (number, number, number, mac, text)


def addresses(port):
    """The addresses of an Ethernet port, with prefix lengths."""
    return [
        "%s/%d" % (port["addr"], options.NET_BITS),
        "%s/%d" % (port["addr6"], options.NET6_BITS),
    ]


def devices(lab, name, number):
    """The values of -device for the adapter and the NIC model behind it, or for the NIC alone."""
    vm = lab["vms"][name]
    first = {"mac": vm["mac"], "properties": vm["properties"], "nic": options.NIC}
    port = [first, *vm["adapters"]][number]
    backend = "up%d" % number
    if vm["driver"] == "staghorn":
        properties = {**firmware.properties(name, vm, number), **port["properties"]}
        yield _adapter(lab, number, port["mac"], properties)
        backend = "r%d.eth" % number
    model = "%s,netdev=%s,id=n%d,bus=np%d,mac=%s" % (
        port["nic"],
        backend,
        number,
        number,
        port["mac"],
    )
    if port["nic"].startswith("virtio-net"):
        model += ",host_mtu=%d" % lab["mtu"]
    yield model


def _network(lab, name):
    """Uplinks, adapters and NICs; each device has a slot of its own and can be unplugged."""
    for number in range(1 + len(lab["vms"][name]["adapters"])):
        yield from ("-netdev", segment.netdev(lab["segment"], name, number))
        for slot, kind in enumerate(("rp", "np"), 2 * number + 1):
            words = "pcie-root-port,id=%s%d,chassis=%d,slot=%d" % (kind, number, slot, slot)
            yield from ("-device", words)
        for words in devices(lab, name, number):
            yield from ("-device", words)


def _channels(name, console_log):
    """Console, monitor and the agent's ports."""
    yield from (
        "-chardev",
        "socket,id=console,path=%s/console,server=on,wait=off,logfile=%s,logappend=on"
        % (name, console_log),
        "-serial",
        "chardev:console",
    )
    yield from (
        "-chardev",
        "socket,id=qmp,path=%s/qmp,server=on,wait=off" % name,
        "-mon",
        "chardev=qmp,mode=control",
    )
    yield from ("-device", "virtio-serial-pci,id=agent,max_ports=%d" % (AGENT_PORTS + 1))
    for port in range(AGENT_PORTS):
        yield from (
            "-chardev",
            "socket,id=x%d,path=%s/x%d,server=on,wait=off" % (port, name, port),
            "-device",
            "virtserialport,bus=agent.0,nr=%d,chardev=x%d,name=staghorn.%d"
            % (port + 1, port, port),
        )


def _file(lab, vm, name):
    """Disk image, kernel or initramfs of a VM."""
    if arch.is_arm64(vm):
        return paths.guest_arm64(name)
    return paths.image(lab["image"]) if name == "root.img" else paths.guest(name, lab["kernel"])


def _boot(lab, name, pause):
    """Kernel and disk."""
    kernel, vm = lab["kernel"], lab["vms"][name]
    image = str(_file(lab, vm, "root.img").resolve()).replace(",", ",,")
    yield from ("-kernel", _file(lab, vm, "vmlinuz"))
    yield from ("-initrd", _file(lab, vm, "initrd"))
    more = " " + PAUSE_ARGUMENT if pause else ""
    yield from ("-append", guest_arguments(lab, name) + more)
    yield from (
        "-blockdev",
        "driver=raw,node-name=root,read-only=on,file.driver=file,file.locking=off,"
        "file.filename=%s" % image,
        "-device",
        "virtio-blk-pci,drive=root,bootindex=9",
    )
    if lab["own_kernel"]:
        disk = str(paths.guest("modules.img", kernel)).replace(",", ",,")
        yield from (
            "-blockdev",
            "driver=raw,node-name=modules,read-only=on,file.driver=file,file.locking=off,"
            "file.filename=%s" % disk,
            "-device",
            "virtio-blk-pci,drive=modules",
        )


def _processor(lab, name):
    """What the processor of a VM without KVM lacks."""
    if lab["accel"] != "tcg":
        return ""
    return TCG_CPU + ("" if lab["vms"][name]["pmem"] else TCG_CPU_NO_PMEM)


def _board(lab, name):
    """Machine, processor and what executes it."""
    vm, accel = lab["vms"][name], "tcg,thread=multi" if lab["accel"] == "tcg" else "kvm"
    machine, _ = pmem.machine(vm, lab["mem"])
    return [
        "-M",
        "q35,smbus=off,vmport=off" + machine + iommu.machine(vm, lab["accel"]),
        "-cpu",
        "max" + _processor(lab, name) + pmem.cpu(vm),
        "-accel",
        accel,
    ]


def command(lab, name, console_log, incoming=False, pause=False):
    """The argument vector that switches the VM on, or makes it wait for a saved machine.

    console_log: the path to which QEMU also writes the console's output.  pause: the guest's init
    stops early."""
    vm = lab["vms"][name]
    arm64 = arch.is_arm64(vm)
    _, memory = pmem.machine(vm, lab["mem"])
    return [
        paths.qemu(arm64),
        "-L",
        paths.firmware(),
        "-name",
        "guest=%s/%s,debug-threads=on" % (lab["name"], name),
        *(arch.BOARD if arm64 else _board(lab, name)),
        "-m",
        memory,
        "-smp",
        str(lab["cpus"]),
        "-nodefaults",
        "-nographic",
        "-no-reboot",
        *iommu.arguments(vm),
        *uefi.arguments(name, vm),
        *([] if vm["netboot"] else _boot(lab, name, pause)),
        *(() if arm64 else GENERATION_ID),
        *(PAUSE_FILE if pause else ()),
        "-device",
        "virtio-rng-pci",
        *pmem.arguments(name, vm),
        *share.arguments(lab["shares"]),
        *_channels(name, console_log),
        *_network(lab, name),
        *impair.arguments(lab, name),
        *debugging.arguments(vm, name),
        *(("-incoming", "defer") if incoming else ()),
    ]
