# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest of an installed launcher: kernel, initramfs and disk image of the VMs.

The package has their sources, not the image (docs/decisions/0025-packages.md).  The first `up`
builds them in the user's cache with the scripts of the source tree, and so does the first one
after an upgrade.  In a source tree `make` builds them, and nothing here happens.
"""
import contextlib
import fcntl
import os
import shutil
import sys

from . import own_kernel, paths
from .errors import LabError, UsageError
from .state import all_names

# What a first build leaves in the cache, and needs besides while it runs.
ROOM_MIB = 5000
PROGRAMS = ("mmdebstrap", "mke2fs", "cpio", "depmod", "patch", "xz", "apt-get")
FOLDERS = os.pathsep.join(("", "/usr/sbin", "/sbin"))


def _stamp():
    return paths.build() / "guest" / "PACKAGE"


def _current():
    """Whether the guest was built from the package's sources, and is still in the cache."""
    try:
        if _stamp().read_text() != paths.installed()["id"]:
            return False
    except OSError:
        return False
    folder = paths.build() / "guest"
    return all((folder / name).exists() for name in ("root.img", "vmlinuz", "initrd"))


@contextlib.contextmanager
def _lock(wait=True):
    """One build at a time in this folder; without waiting, another one is an error."""
    paths.build().mkdir(parents=True, exist_ok=True)
    with open(paths.build() / ".lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise LabError("the guest is being built", "Wait for its end, or end it") from None
        yield


def _check():
    """Says before a build of minutes what would end it."""
    path = os.environ.get("PATH", "") + FOLDERS
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if missing:
        raise LabError(
            "the guest cannot be built without %s" % ", ".join(missing),
            "Install what the package staghorn depends on:  apt-get -f install",
        )
    free = shutil.disk_usage(paths.build()).free >> 20
    if free < ROOM_MIB:
        raise LabError(
            "%d MiB are free in %s; building the guest takes up to %d"
            % (free, paths.cache(), ROOM_MIB),
            "Make room, or name another folder in XDG_CACHE_HOME",
        )


def _run(script, words, what, say):
    command = [str(paths.TOP / "tools" / "guest" / script), *words]
    own_kernel.run_script(command, what, say, show=sys.stderr.isatty())


def prepare(say, netboot=False, again=False):
    """Builds what is missing; returns whether anything was."""
    if not paths.installed() or os.environ.get("STAGHORN_BUILD"):
        return False
    root = paths.build() / "guest" / "netroot.gz"
    if _current() and not again and (root.exists() or not netboot):
        return False
    with _lock():
        done = _current() and not again
        if not done:
            _check()
            say(
                "building the guest once, in %s; it is made of packages of Debian's mirror, which "
                "takes about ten minutes" % paths.cache()
            )
            root.unlink(missing_ok=True)
            _stamp().unlink(missing_ok=True)
            words = ["--without", "programs", "--without", "firmware"]
            _run("build.sh", words, "the guest", say)
            _stamp().write_text(paths.installed()["id"])
        if netboot and not root.exists():
            _run("netboot.sh", [], "the guest without a disk", say)
    return True


def remove():
    """Removes the cache; returns its size in octets."""
    if all_names():
        raise LabError("a lab uses the guest", "End it: ./staghorn down; status --all lists labs")
    with _lock(wait=False):
        return _remove_all()


def _remove_all():
    size = 0
    for folder, _, names in os.walk(paths.cache()):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_blocks * 512
    for folder, names, _ in os.walk(paths.cache()):
        for name in names:  # packages have folders that their owner cannot write
            path = os.path.join(folder, name)
            if not os.path.islink(path) and not os.access(path, os.W_OK | os.X_OK):
                os.chmod(path, 0o700)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(paths.cache())
    return size


def run(args, emit, say):
    """The verb guest."""
    if not paths.installed():
        raise UsageError(
            "guest: this is a source tree, in which make builds the guest",
            "make -C %s guest" % paths.TOP,
        )
    if args.remove:
        size = remove()
        emit(
            args,
            {"removed": str(paths.cache()), "bytes": size},
            "%d MiB are free again" % (size >> 20),
        )
        return 0
    built = prepare((lambda text: None) if args.json else say, again=args.again)
    found = {"folder": str(paths.build() / "guest"), "built": built}
    found["kernel"] = paths.guest_release()
    emit(args, found, "the guest is in %(folder)s, its kernel is %(kernel)s" % found)
    return 0


def add(verbs, work):
    """Adds the verb to the launcher's."""
    text = (
        "build the VMs' guest in the cache, which the first up does otherwise, or remove the cache"
    )
    parser = verbs.add_parser("guest", help=text, description=text + "; for installed packages.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--again", action="store_true", help="build it even if it is up to date")
    choice.add_argument(
        "--remove",
        action="store_true",
        help="remove the cache with all that was built; source trees use it as well",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=work)
