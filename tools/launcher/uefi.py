# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs that boot with UEFI: Debian's OVMF, without Secure Boot.

The variables are in a file for each VM, which lasts as long as the lab.
"""
import shutil

from . import options, paths
from .errors import UsageError

CODE = "OVMF_CODE_4M.fd"
VARIABLES = "OVMF_VARS_4M.fd"


def parse(text, names, diskless):
    """Turns 'alpha,beta', or '' for all, into the set of VMs; None: no VM."""
    wanted = options.some("--uefi", text, names)
    for name in sorted(wanted & diskless):
        raise UsageError("--uefi: VM %s boots from the network, which needs a BIOS" % name)
    return wanted


def _file(name):
    """The file's path, relative to the lab's folder."""
    return "%s/uefi.fd" % name


def prepare(folder, name, vm):
    """Makes the VM's file if it does not exist."""
    path = folder.path / _file(name)
    if vm.get("uefi") and not path.exists():
        new = path.with_suffix(".new")
        shutil.copyfile(paths.firmware(VARIABLES), new)
        new.rename(path)


def arguments(name, vm):
    if vm.get("uefi"):
        code = str(paths.firmware(CODE)).replace(",", ",,")
        yield from ("-drive", "if=pflash,unit=0,format=raw,readonly=on,file=" + code)
        yield from ("-drive", "if=pflash,unit=1,format=raw,file=" + _file(name))
