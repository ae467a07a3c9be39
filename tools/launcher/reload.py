# SPDX-License-Identifier: GPL-2.0-or-later
"""reload: a newly built driver in a VM that runs, without a reboot.

The driver is built for the kernel of the lab, or is a file that the user built.  The guest unloads
the old one, which needs that no process has its devices open, and loads the new one.  If that is
refused, the old one is loaded again.  A VM that is switched on again has the driver of `up`.
"""
import os
import time
from pathlib import Path

from . import agent, kernel_files, options, own_kernel, paths, transfer
from .errors import LabError, UsageError

LIMIT = 90.0  # seconds for the guest to unload and load
PLACE = "/run/staghorn/"
MODULE_MAX = 256 << 20  # octets

# NAME FILE KILL: replaces the module; status 3: in use.
REPLACE = """
name=$1 file=$2 kill=$3
fail() { echo "$1" >&2; exit "${2:-1}"; }
real=$(modinfo -F name "$file") || fail "it is no kernel module"
[ "$real" = "$name" ] || fail "it is the module $real"
magic=$(modinfo -F vermagic "$file")
[ "${magic%% *}" = "$(uname -r)" ] ||
    fail "it is built for Linux ${magic%% *}, and the VM runs $(uname -r)"
users() {
    find /proc/[0-9]*/fd -lname '/dev/infiniband/uverbs*' 2>/dev/null | cut -d/ -f3 | sort -un
}
names() {
    for each; do read -r word < "/proc/$each/comm" && printf ' %s (%s)' "$word" "$each"; done
}
gone() {
    tries=30
    while [ -n "$(users)" ] && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1)); sleep 0.1
    done
}
load() {
    modprobe -a $(modinfo -F depends "$file" | tr , ' ') 2>/dev/null
    insmod "$file" 2> /run/staghorn/insmod && return
    why=$(cat /run/staghorn/insmod; dmesg | grep "$name" | tail -n 3)
    /usr/lib/staghorn/rdma "$name" 2>/dev/null && why="$why
the driver before it is loaded again"
    fail "the kernel does not take it: $why"
}
found=$(users)
if [ -n "$found" ] && [ "$kill" = yes ]; then
    kill $found; gone
    kill -KILL $(users) 2>/dev/null; gone
    found=$(users)
fi
[ -z "$found" ] || fail "it is in use by$(names $found)" 3
if [ -d "/sys/module/$name" ]; then
    [ "$name" != siw ] || for dev in /sys/class/infiniband/*; do
        [ ! -e "$dev" ] || rdma link delete "${dev##*/}" || :
    done
    holders=$(ls "/sys/module/$name/holders")
    [ -z "$holders" ] || fail "it is in use by the module $holders" 3
    rmmod "$name" 2> /run/staghorn/rmmod || {
        count=$(cat "/sys/module/$name/refcnt" 2>/dev/null)
        why=$(cat /run/staghorn/rmmod)
        [ "${count:-0}" = 0 ] || why="$why ($count users in the kernel, such as mounts)"
        fail "the kernel keeps the driver that runs: $why" 3
    }
fi
load
mkdir -p "/usr/lib/modules/$(uname -r)/updates"
cp "$file" "/usr/lib/modules/$(uname -r)/updates/$name.ko"
/usr/lib/staghorn/rdma "$name" || exit 1
cat /run/staghorn/rdma
cat "/sys/module/$name/srcversion" 2>/dev/null || :
"""
IN_USE = 3


def _script(*words):
    return [str(paths.TOP / "tools" / "guest" / words[0]), *words[1:]]


def built(lab, driver, say):
    """Builds the driver for the lab's kernel; returns the module's path."""
    own = lab["own_kernel"]
    name = driver + ".ko"
    if own:
        _unchanged(own)
        return Path(own_kernel.build(own, say, only="driver")) / name
    if driver != "staghorn":
        raise UsageError("reload: siw is not built anew here", "Name one:  reload VM --module FILE")
    script, product = ("debug-kernel.sh", "guest-debug-modules")
    if lab["kernel"] == "base":
        script, product = ("build.sh", "guest-driver")
    own_kernel.run_script(_script(script, "--only", "driver"), "the driver", say)
    return paths.build() / "products" / product / name


def _unchanged(own):
    """A tree that was built again has another kernel than the VM's."""
    modules = own["modules"] if own["kind"] == "files" else None
    if own_kernel.find(own["source"], modules, [])["id"] != own["id"]:
        raise LabError(
            "reload: the kernel %s has changed since the lab is up" % own["source"],
            "Boot it: down, and up --kernel; or load a module as it is: reload VM --module FILE",
        )


def chosen(path):
    """The user's module, checked."""
    found = Path(os.path.expanduser(path)).absolute()
    kernel_files.require_file(found, "reload")
    try:
        with open(found, "rb") as file:
            start = file.read(20)
        size = found.stat().st_size
    except OSError as error:
        raise UsageError("reload: %s: %s" % (path, error.strerror))
    # An object file (type 1) for x86-64 (machine 62).
    if start[:5] != b"\x7fELF\x02" or start[16:20] != b"\x01\0\x3e\0":
        raise UsageError("reload: %s is no kernel module for x86-64" % path)
    if size > MODULE_MAX:
        raise UsageError("reload: %s is larger than %d MiB" % (path, MODULE_MAX >> 20))
    return found


def reload(folder, name, path, kill, say):
    """Replaces the driver; returns what `reload` prints."""
    vm = folder.running(name)
    driver = vm["driver"]
    if driver == "none":
        raise UsageError("reload: VM %s has no RDMA driver" % name, "Start it with up --driver")
    module = chosen(path) if path else built(folder.data, driver, say)
    start = time.monotonic()
    target = PLACE + driver + ".ko"
    transfer.put(folder, str(module), name, target)
    words = ["/bin/sh", "-c", REPLACE, "sh", driver, target, "yes" if kill else "no"]
    limit = LIMIT * options.patience(folder.data)
    status, said, error = agent.capture(folder, name, words, timeout=limit)
    if status:
        hint = "Look at ./staghorn --lab %s log %s" % (folder.name, name)
        if status == IN_USE:
            hint = "End what uses it; reload %s --kill ends the processes" % name
        raise LabError("reload: VM %s: %s" % (name, error.strip() or "it failed"), hint)
    lines = said.split()
    return {
        "vm": name,
        "module": str(module),
        "device": lines[0] if lines else None,
        "srcversion": lines[1] if len(lines) > 1 else None,
        "seconds": round(time.monotonic() - start, 1),
    }
