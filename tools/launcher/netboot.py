# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs without a disk, which get kernel and root through the adapter's port.

The boot server, which is libslirp's DHCP and TFTP, is one more end of the main segment's hub.  A
VM's NIC model has iPXE as its boot ROM.  iPXE fetches boot.ipxe, which asks for the VM's own script
by MAC address.  The files are links in the lab's folder.
"""
from . import options, paths

SERVER = "10.78.0.2"
FOLDER = "segment/boot"
FILES = ("vmlinuz", "initrd", "netroot.gz")


def parse(text, names):
    """Turns 'alpha,beta', or '' for all, into the set of VMs; None: no VM."""
    return options.some("--netboot", text, names)


def used(vms):
    return any(vm["netboot"] for vm in vms.values())


def netdevs(hub):
    """Arguments for the hub's QEMU."""
    yield from (
        "-netdev",
        "user,id=s-boot,restrict=on,ipv6=off,net=10.78.0.0/24,host=%s,dhcpstart=10.78.0.15,tftp=%s,"
        "bootfile=boot.ipxe" % (SERVER, FOLDER),
        "-netdev",
        "hubport,id=h-boot,hubid=%d,netdev=s-boot" % hub,
    )


def prepare(folder, arguments):
    """Fills the boot server's folder; arguments: {VM: its kernel's arguments}."""
    vms = folder.data["vms"]
    if not used(vms):
        return
    place = folder.path / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        link = place / name
        link.unlink(missing_ok=True)
        kernel = folder.data["kernel"] if name in ("vmlinuz", "initrd") else "base"
        link.symlink_to(paths.guest(name, kernel).resolve())
    (place / "boot.ipxe").write_text("#!ipxe\nchain ${net0/mac:hexhyp}.ipxe\n")
    for name, vm in vms.items():
        if vm["netboot"]:
            script = "#!ipxe\nkernel vmlinuz %s\ninitrd initrd\ninitrd netroot.gz\nboot\n"
            path = place / (vm["mac"].replace(":", "-") + ".ipxe")
            path.write_text(script % arguments(folder.data, name))
