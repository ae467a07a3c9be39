# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths of build products and state.

STAGHORN_BUILD  a build folder other than the clone's
STAGHORN_QEMU   a qemu-system-x86_64 other than ours
STAGHORN_STATE  a folder for labs other than $XDG_RUNTIME_DIR/staghorn or
                ~/.local/state/staghorn
"""
import os
import re
from pathlib import Path

from .errors import LabError

TOP = Path(__file__).resolve().parents[2]


def build():
    if os.environ.get("STAGHORN_BUILD"):
        return Path(os.environ["STAGHORN_BUILD"]).absolute()
    try:
        chosen = (TOP / ".build-dir").read_text().strip()
    except OSError:
        chosen = ""
    return TOP / (chosen or "build")


def version():
    """The project's version, from meson.build."""
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
        raise LabError("%s is not built" % path, "Build first:  make -C %s %s" % (TOP, target))
    return path


def qemu():
    if os.environ.get("STAGHORN_QEMU"):
        return _need(Path(os.environ["STAGHORN_QEMU"]).absolute())
    return _need(build() / "qemu" / "qemu-system-x86_64")


def firmware(name=""):
    """The folder of QEMU's -L, or a file in it."""
    return _need(build() / "products" / "firmware" / "share" / name)


def adapter_firmware(name):
    """A product of firmware/build.sh: NAME.flash, profiles.ini, sg-flash."""
    return _need(build() / "firmware" / name)


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
    return _need(build() / "native" / "hw" / "explore" / "staghorn-explore", "native")


def trace_printer():
    """The program that shows a trace as text."""
    return _need(build() / "native" / "hw" / "print" / "staghorn-trace", "native")


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
