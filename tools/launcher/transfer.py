# SPDX-License-Identifier: GPL-2.0-or-later
"""copy: copies files and folders into or out of a VM, like cp -a without owners.

A file goes through cat, a folder through tar; the guest has both.
"""
import os
import tarfile
import tempfile
import threading

from . import agent
from .errors import LabError, UsageError

PUT = (
    'dst=$1; [ ! -d "$dst" ] || dst=${dst%/}/$2; tmp=$dst.part$$; '
    'trap \'rm -f "$tmp"\' EXIT; cat > "$tmp" && chmod "$3" "$tmp" && mv -f "$tmp" "$dst"'
)
PUT_FOLDER = (
    'dst=$1; [ ! -d "$dst" ] || dst=${dst%/}/$2; mkdir -p "$dst" && '
    'tar -x --no-same-owner -f - -C "$dst"'
)
LOOK = (
    '[ -e "$1" ] || { echo "no such file or folder"; exit 1; }; '
    '[ -d "$1" ] && echo folder || stat -L -c %a "$1"'
)


def split(text):
    """Turns 'VM:path' into (VM, path), a host path into (None, path)."""
    vm, colon, path = text.partition(":")
    if colon and vm and "/" not in vm:
        if not path:
            raise UsageError("copy: %s names no path" % text)
        return vm, path
    return None, text


def copy(folder, source, target):
    """Copies; returns the number of octets of file content."""
    (from_vm, from_path), (to_vm, to_path) = split(source), split(target)
    if not from_vm and not to_vm:
        raise UsageError("copy: neither side is in a VM", "Write VM:PATH for one of them")
    for vm in filter(None, (from_vm, to_vm)):
        folder.running(vm)
    if from_vm and to_vm:
        with tempfile.TemporaryDirectory(prefix="staghorn-copy-") as between:
            get(folder, from_vm, from_path, between + "/")
            (name,) = os.listdir(between)
            return put(folder, os.path.join(between, name), to_vm, to_path)
    if from_vm:
        return get(folder, from_vm, from_path, to_path)
    return put(folder, from_path, to_vm, to_path)


def _run(folder, vm, script, arguments, stdin=None, sink=None, what=""):
    errors = []

    def take(stream, data):
        if stream == 1 and sink:
            sink(data)
        elif stream == 2:
            errors.append(data)

    status = agent.Session(
        folder, vm, ["/bin/sh", "-c", script, "copy", *arguments], stdin, take
    ).run()
    if status:
        raise LabError(
            "copy: %s: %s"
            % (
                what,
                b"".join(errors).decode(errors="replace").strip()
                or "failed with status %d" % status,
            )
        )


def put(folder, path, vm, target):
    name = os.path.basename(os.path.abspath(path))
    if os.path.isdir(path):
        return _put_folder(folder, path, vm, target, name)
    try:
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            _run(
                folder,
                vm,
                PUT,
                [target, name, "%o" % (facts.st_mode & 0o7777)],
                file.fileno(),
                what="%s:%s" % (vm, target),
            )
            return facts.st_size
    except OSError as error:
        raise LabError("copy: %s: %s" % (path, error.strerror))


def _put_folder(folder, path, vm, target, name):
    reader, writer = os.pipe()
    failures = []

    def produce():
        try:
            with open(writer, "wb") as file, tarfile.open(fileobj=file, mode="w|") as archive:
                archive.add(path, arcname=".")
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        _run(folder, vm, PUT_FOLDER, [target, name], reader, what="%s:%s" % (vm, target))
    finally:
        os.close(reader)
        thread.join()
    if failures and not isinstance(failures[0], BrokenPipeError):
        raise LabError("copy: %s: %s" % (path, failures[0]))
    return sum(
        os.lstat(os.path.join(base, file)).st_size
        for base, _, files in os.walk(path)
        for file in files
    )


def get(folder, vm, path, target):
    status, kind, _ = agent.capture(folder, vm, ["/bin/sh", "-c", LOOK, "copy", path])
    kind = kind.strip()
    if status:
        raise LabError("copy: %s:%s: %s" % (vm, path, kind))
    name = os.path.basename(os.path.normpath(path))
    if os.path.isdir(target):
        target = os.path.join(target, name)
    try:
        if kind == "folder":
            return _get_folder(folder, vm, path, target)
        return _get_file(folder, vm, path, target, int(kind, 8))
    except OSError as error:
        raise LabError("copy: %s: %s" % (target, error.strerror or error))


def _get_file(folder, vm, path, target, mode):
    """Writes to a temporary name first, so that a partial copy is not mistaken for a whole one."""
    part = "%s.part%d" % (target, os.getpid())
    try:
        with open(part, "wb") as file:
            _run(folder, vm, 'exec cat "$1"', [path], sink=file.write, what="%s:%s" % (vm, path))
            size = file.tell()
        os.chmod(part, mode)
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.unlink(part)
    return size


def _get_folder(folder, vm, path, target):
    with tempfile.TemporaryFile() as spool:
        _run(
            folder,
            vm,
            'exec tar -c -f - -C "$1" .',
            [path],
            sink=spool.write,
            what="%s:%s" % (vm, path),
        )
        size = spool.tell()
        spool.seek(0)
        os.makedirs(target, exist_ok=True)
        with tarfile.open(fileobj=spool) as archive:
            _extract(archive, target)
    return size


def _extract(archive, target):
    """A guest must not be able to write to paths outside the target."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(target, filter="tar")
        return
    root = os.path.realpath(target)
    for member in archive.getmembers():
        place = os.path.realpath(os.path.join(root, member.name))
        if place != root and not place.startswith(root + os.sep):
            raise LabError("copy: the VM's archive names %s, outside of the target" % member.name)
        archive.extract(member, root)
