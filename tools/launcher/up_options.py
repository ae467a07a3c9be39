# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of `up`."""
from . import images


def add(parser):
    """Adds all of them."""
    parser.add_argument(
        "--vms",
        default="alpha,beta",
        metavar="NAMES",
        help="VMs, separated by commas [%(default)s]",
    )
    parser.add_argument("--mtu", type=int, default=1500, help="MTU of the segment [%(default)s]")
    parser.add_argument(
        "--driver",
        default="",
        metavar="VM=DRIVER,...",
        help="RDMA device of a VM: staghorn (the adapter), siw (software, over virtio-net) "
        "or none; without VM= for all [staghorn]",
    )
    parser.add_argument(
        "--arch",
        default="",
        metavar="VM=ARCH,...",
        help="processors of a VM: x86_64, or arm64, whose guest make guest-arm64 builds; without "
        "VM= for all [x86_64]",
    )
    parser.add_argument(
        "--mem", default="1G", metavar="SIZE", help="memory of each VM [%(default)s]"
    )
    parser.add_argument("--cpus", type=int, default=2, help="CPUs of each VM [%(default)s]")
    _add_software(parser)
    parser.add_argument(
        "--accel",
        choices=("auto", "tcg", "kvm"),
        default="auto",
        help="auto: KVM if a guest boots with it [%(default)s]",
    )
    parser.add_argument(
        "--boot-snapshot",
        action="store_true",
        help="resume VMs behind the boot of their kernel, from a snapshot that the first such up "
        "makes; not with KVM, --netboot, --uefi, --gdb, --qemu-arg and --pmem ...,domain=off",
    )
    parser.add_argument(
        "--capture", metavar="FILE.pcap", help="write every frame of the segment to this file"
    )
    parser.add_argument(
        "--impair",
        action="append",
        metavar="[VM[.N]:][rx:|tx:]NAME=VALUE[,...]",
        default=[],
        help="impair the frames that a VM (its adapter N) receives or sends, by default both; "
        "without a VM, each frame of the segment once: loss=1%%, duplicate=1%%, corrupt=1%%, "
        "reorder=0.5%%, delay=5ms±1ms (or 5ms+-1ms), rate=100M (bit/s) with queue=256K, seed=N; "
        "may be repeated; the verb impair changes it",
    )
    _add_hardware(parser)
    _add_debugging(parser)
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="seconds until a VM must be ready [120, with the debug kernel 720]",
    )
    parser.add_argument("--json", action="store_true", help="print the lab's state as JSON")


def _add_software(parser):
    """Options of `up` about what runs in the VMs (docs/own-kernel.md)."""
    parser.add_argument(
        "--image",
        type=images.word,
        default="base",
        metavar="IMAGE",
        help="disk image of the VMs: base; consumers (built by make consumers), which has the "
        "programs of NVMe-oF, iSER, SRP, SMB and 9p, libfabric, Open MPI, qperf and Python; or a "
        "file with an ext4 file system of Debian [%(default)s]",
    )
    parser.add_argument(
        "--packages",
        metavar="NAMES",
        help="further packages of Debian in the image, separated by commas; the image is made "
        "once, which takes minutes and needs the network",
    )
    parser.add_argument(
        "--kernel",
        metavar="KERNEL",
        help="kernel of the VMs: Debian's (base); the same version with its checkers enabled "
        "(debug, built by make debug-kernel), which is several times slower and gets 1 GiB more "
        "memory; or your own (docs/own-kernel.md): a built tree, a bzImage with --modules, or a "
        "Debian kernel package [STAGHORN_KERNEL of the environment, or base]",
    )
    parser.add_argument(
        "--modules", metavar="DIR", help="the folder /lib/modules/RELEASE of --kernel FILE"
    )
    parser.add_argument(
        "--share",
        action="append",
        metavar="DIR[:PATH][,ro]",
        default=[],
        help="show a folder of this machine in each VM, at PATH [/mnt/ and the folder's name]; "
        "with ro the VMs cannot write there; may be repeated",
    )


def _add_hardware(parser):
    """Options of `up` about the VMs' hardware."""
    parser.add_argument(
        "--device-prop",
        action="append",
        metavar="[VM:]NAME=VALUE",
        default=[],
        help="property of the adapter, such as alpha:mpa-rev=1; may be repeated",
    )
    parser.add_argument(
        "--adapter",
        action="append",
        metavar="VM|[VM:]NAME=VALUE[,...]",
        default=[],
        help="add an adapter with its own NIC to the VM, or to each VM; segment=NAME is its "
        "Ethernet segment [main, that of the first adapters], nic=MODEL the NIC that shares its "
        "port [virtio-net-pci], the rest are properties of the adapter; may be repeated",
    )
    parser.add_argument(
        "--netboot",
        nargs="?",
        const="",
        metavar="NAMES",
        help="VMs without a disk, which boot through their adapter's port [all]",
    )
    parser.add_argument(
        "--uefi",
        nargs="?",
        const="",
        metavar="NAMES",
        help="VMs that boot with UEFI (OVMF) instead of a BIOS [all]",
    )
    parser.add_argument(
        "--iommu",
        nargs="?",
        const="",
        metavar="NAMES",
        help="VMs with an IOMMU, for programs that drive a device through VFIO; not with the debug "
        "kernel [all]",
    )
    parser.add_argument(
        "--profile",
        action="append",
        metavar="[VM=]NAME",
        default=[],
        help="capability profile of the adapter's firmware (see `staghorn profiles`), or none for "
        "an adapter without a flash image; may be repeated [full]",
    )
    parser.add_argument(
        "--pmem",
        action="append",
        metavar="[VM:]SIZE[,PROPERTY=VALUE...]",
        default=[],
        help="add an NVDIMM to the VM, or to each VM, such as beta:256M,domain=adr; properties are "
        "those of the persistence domain, or domain=off for none; may be repeated",
    )


def _add_debugging(parser):
    """Options of `up` for debugging (docs/debugging.md)."""
    parser.add_argument(
        "--trace",
        action="append",
        metavar="[VM:]PATTERN",
        default=[],
        help="trace events of QEMU that go to the device log (log VM --device), such as staghorn_* "
        "or alpha:pci_cfg_*; may be repeated [staghorn_peer and staghorn_failure always do]",
    )
    parser.add_argument(
        "--gdb",
        action="append",
        metavar="VM[=PORT]",
        default=[],
        help="let gdb attach to the guest, at a UNIX socket or a port of 127.0.0.1, which status "
        "shows; may be repeated",
    )
    parser.add_argument(
        "--qemu-arg",
        action="append",
        metavar="[VM:]'-OPTION [VALUE]'",
        default=[],
        help="pass an option to the VM's QEMU, or to each, such as --qemu-arg='-device edu' or "
        "--qemu-arg=alpha:-S; may be repeated; what -d names is logged besides guest_errors",
    )
