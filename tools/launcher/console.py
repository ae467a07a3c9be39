# SPDX-License-Identifier: GPL-2.0-or-later
"""console and log: the VM's serial line, live and as logged, and the device log."""
import contextlib
import fcntl
import os
import selectors
import sys
import termios
import time
import tty

from . import debugging, proc
from .errors import LabError
from .state import connect

LEAVE = b"\x1d"  # Ctrl-]


def console(folder, name):
    """Connects the terminal to the serial line until Ctrl-] or the VM's end."""
    folder.running(name)
    with open(folder.path / name / "console.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(
                "the console of VM %s is open elsewhere" % name,
                "Leave it there with Ctrl-], or use: ./staghorn --lab %s exec %s -- COMMAND"
                % (folder.name, name),
            )
        sock = connect(folder.path / name / "console")
        try:
            if sys.stdin.isatty():
                print("Console of %s; Ctrl-] leaves it." % name, flush=True)
                with _raw(sys.stdin.fileno()):
                    return _join(sock)
            return _join(sock)
        finally:
            sock.close()


class _raw:
    """The terminal without line editing, restored whatever happens."""

    def __init__(self, fd):
        self.fd = fd

    def __enter__(self):
        self.saved = termios.tcgetattr(self.fd)
        tty.setraw(self.fd)

    def __exit__(self, *_):
        termios.tcsetattr(self.fd, termios.TCSADRAIN, self.saved)
        print("", flush=True)


def _join(sock):
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        sock.sendall(b"\n")
        while True:
            for key, _ in selector.select():
                if key.fileobj is sock:
                    data = sock.recv(65536)
                    if not data:
                        return "the VM went off"
                    os.write(sys.stdout.fileno(), data)
                    continue
                data = os.read(sys.stdin.fileno(), 1024)
                if LEAVE in data:
                    sock.sendall(data.split(LEAVE)[0])
                    return None
                if not data:
                    return None
                sock.sendall(data)


def show_log(folder, name, follow, device=False):
    """The output of the serial line since the lab came up, or QEMU's log of devices, as far as
    either is kept; with follow, goes on until the VM's end."""
    vm = folder.vm(name)
    log = debugging.LOG if device else debugging.CONSOLE
    files = debugging.log_files(folder, name, log)
    for older in files[:-1]:
        with contextlib.suppress(FileNotFoundError):
            _write(older.read_bytes())
    try:
        file = open(files[-1], "rb")
    except FileNotFoundError:
        raise LabError("VM %s has no log yet" % name)
    while True:
        data = file.read(65536)
        if data:
            _write(data)
        elif not follow or not proc.alive(vm["process"]):
            break
        elif _replaced(file, files[-1]):
            _write(file.read())
            file.close()
            file = open(files[-1], "rb")
        else:
            time.sleep(0.1)
    file.close()


def _write(data):
    sys.stdout.buffer.write(data.replace(b"\r", b""))
    sys.stdout.buffer.flush()


def _replaced(file, path):
    """Whether the path now names another file."""
    try:
        return not os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
