# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths of build products and state.

STAGHORN_BUILD  a build folder other than the clone's
STAGHORN_QEMU   a qemu-system-x86_64 other than ours
STAGHORN_QEMU_ARM64  a qemu-system-aarch64 other than ours
STAGHORN_STATE  a folder for labs other than $XDG_RUNTIME_DIR/staghorn or
                ~/.local/state/staghorn

An installed launcher has installed.json beside itself (tools/packaging/installed): where its
package has programs and firmware.  Its build folder is in the user's cache, and only has a guest.
"""
import functools
import json
import os
import re
from pathlib import Path

from .errors import LabError

TOP = Path(__file__).resolve().parents[2]
# Targets of make whose products the packages cannot make.
SOURCE_ONLY = ("consumers", "debug-kernel", "guest-arm64")


@functools.lru_cache(maxsize=None)
def installed():
    """What the package's build wrote; nothing in a source tree."""
    try:
        return json.loads((TOP / "installed.json").read_text())
    except FileNotFoundError:
        return {}


def cache():
    """The folder of what takes long to make; tools/build/lib.sh has the same default."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "staghorn"


def build():
    if os.environ.get("STAGHORN_BUILD"):
        return Path(os.environ["STAGHORN_BUILD"]).absolute()
    if installed():
        return cache() / "installed"
    try:
        chosen = (TOP / ".build-dir").read_text().strip()
    except OSError:
        chosen = ""
    return TOP / (chosen or "build")


def version():
    """The project's version, from meson.build, or from the package, which has it from there."""
    if installed():
        return installed()["version"]
    return re.search(r"^ *version: '([^']+)'", (TOP / "meson.build").read_text(), re.M)[1]


def config():
    """The settings that configure wrote, as a dictionary."""
    try:
        lines = (build() / "config.sh").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key: value.strip("'\"") for key, value in pairs}


def _need(path, target="all   (or make demo, which also shows it)"):
    if not path.exists():
        raise LabError("%s is not built" % path, _how(target))
    return path


def _how(target):
    """How to get what a target of make builds."""
    if not installed():
        return "Build first:  make -C %s %s" % (TOP, target)
    if target in SOURCE_ONLY:
        return "The packages do not have it: in a source tree, make %s builds it" % target
    return "Build it:  ./staghorn guest --again"


def _packaged(kind, name, *built):
    """A file of the package, or a product of the build folder."""
    if not installed():
        return _need(build().joinpath(*built, name))
    path = Path(os.path.normpath(TOP / installed()[kind])) / name
    if not path.exists():
        raise LabError(
            "%s is missing" % path,
            "Install the package staghorn again, and all that " "it depends on",
        )
    return path


def qemu(arm64=False):
    given = os.environ.get("STAGHORN_QEMU_ARM64" if arm64 else "STAGHORN_QEMU")
    if given:
        return _need(Path(given).absolute())
    if arm64:
        return _need(build() / "qemu-arm64" / "qemu-system-aarch64", "guest-arm64")
    return _packaged("programs", "qemu-system-x86_64", "qemu")


def firmware(name=""):
    """The folder of QEMU's -L, or a file in it."""
    return _packaged("firmware", name, "products", "firmware", "share")


def adapter_firmware(name):
    """A product of firmware/build.sh: NAME.flash, profiles.ini."""
    return _packaged("adapter", name, "firmware")


def flash_tool():
    """The program that reads and writes images of the adapter's flash."""
    return _packaged("programs", "sg-flash", "firmware")


def guest(name, kernel="base"):
    """root.img, vmlinuz or initrd; the latter two are those of a kernel (options.KERNELS), or of
    the user's, which is a folder (own_kernel.py) and has modules.img besides."""
    if os.path.isabs(kernel) and name != "root.img":
        path = Path(kernel) / name
        if not path.exists():
            raise LabError(
                "%s is no longer in the cache" % path, "End the lab and start it: down, up --kernel"
            )
        return path
    if kernel == "debug":
        return _need(build() / "guest" / "debug" / name, "debug-kernel")
    return _need(build() / "guest" / name)


def guest_arm64(name):
    """root.img, vmlinuz or initrd of arm64 VMs."""
    return _need(build() / "guest-arm64" / name, "guest-arm64")


def guest_release():
    """The release of the kernel that is built with the guest."""
    return _need(build() / "products" / "guest-tree" / "KERNEL").read_text().strip()


def image(name):
    """The VMs' disk image of that name (images.IMAGES), or a file's path."""
    if os.path.isabs(name):
        if not os.path.exists(name):
            raise LabError("the image %s is no longer there" % name, "Start the lab anew")
        return Path(name)
    if name == "consumers":
        return _need(build() / "guest" / "consumers.img", "consumers")
    return guest("root.img")


def explorer():
    """The program that explores recordings."""
    return _packaged("programs", "staghorn-explore", "native", "hw", "explore")


def command():
    """What a user types for this launcher, in whatever folder."""
    return "staghorn" if installed() else str(TOP / "staghorn")


def trace_printer():
    """The program that shows a trace as text."""
    return _packaged("programs", "staghorn-trace", "native", "hw", "print")


def state():
    """The folder of everything that labs keep on disk while they run."""
    if os.environ.get("STAGHORN_STATE"):
        return Path(os.environ["STAGHORN_STATE"]).absolute()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "staghorn"
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "staghorn"


def labs():
    return state() / "labs"
