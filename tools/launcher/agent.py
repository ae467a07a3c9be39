# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands in a VM.

The protocol is described in tools/guest/agent/agent.h: a VM has a dozen
virtio-serial ports, a client claims one by locking a file, and talks to the
guest's agent through QEMU's socket for it.  No other process is in between: when the client goes
away, for whatever reason, the agent sees its port close and ends the command.
"""
import fcntl
import os
import selectors
import time

from . import pmem, proc, qemu
from .errors import ABSENT, EXEC_FAILED, TIMEOUT, LabError
from .state import connect

MAGIC = b"\x01sg-agent-start\n"
HEADER = 8
CHUNK = 32768
REQUEST_PART = 60000
# A channel may need more than one try after a client that died; a booting VM only needs time.
RETRY_AFTER = (5.0, 10.0, 20.0)
# OVMF has a driver for virtio-serial, and discards what arrives while it has the ports open.
UEFI_RETRY_AFTER = (5.0,) * 12 + (20.0,) * 1000


class Gone(LabError):
    """The VM or its agent is gone."""


class Port:
    """One claimed port of a VM: lock and connection."""

    def __init__(self, folder, name, deadline):
        self.folder, self.name = folder, name
        self.lock = self.sock = None
        self._claim(deadline)

    def _claim(self, deadline):
        place = self.folder.path / self.name
        while self.lock is None:
            for number in range(qemu.AGENT_PORTS):
                file = open(place / ("x%d.lock" % number), "a")
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.close()
                    continue
                self.lock, self.path = file, place / ("x%d" % number)
                return
            if time.monotonic() > deadline:
                raise LabError(
                    "all %d command channels of VM %s are in use" % (qemu.AGENT_PORTS, self.name),
                    "Wait for a running exec or copy to end",
                    EXEC_FAILED,
                )
            time.sleep(0.05)

    def open(self):
        """Connects anew; the agent sees the old connection close."""
        if self.sock:
            self.sock.close()
        try:
            self.sock = connect(self.path)
        except OSError as error:
            raise Gone(
                "VM %s does not answer (%s)" % (self.name, error.strerror),
                "See ./staghorn --lab %s status" % self.folder.name,
                ABSENT,
            )
        self.sock.setblocking(False)
        return self.sock

    def close(self):
        if self.sock:
            self.sock.close()
        if self.lock:
            self.lock.close()


def _request(argv, env, folder, terminal):
    parts = [b"a" + os.fsencode(word) for word in argv]
    parts += [b"e" + os.fsencode("%s=%s" % item) for item in (env or {}).items()]
    if folder:
        parts.append(b"d" + os.fsencode(folder))
    if terminal:
        parts.append(b"t%dx%d" % terminal)
    for part in parts:
        if b"\0" in part:
            raise LabError("a zero octet cannot be part of a command", None, EXEC_FAILED)
    return b"".join(part + b"\0" for part in parts)


class Session:
    """One command in a VM.

    stdin: a file descriptor, bytes, or None for an empty input.  on_output(stream,
    data) gets what the command writes; stream is 1 or 2.  `interrupts` is a
    callable that returns signals to forward (see cli)."""

    def __init__(
        self, folder, name, argv, stdin=None, on_output=None, env=None, cwd=None, terminal=None
    ):
        self.folder, self.name, self.argv = folder, name, argv
        self.request = _request(argv, env, cwd, terminal)
        self.stdin = stdin
        self.on_output = on_output or (lambda stream, data: None)
        self.signals = []
        self.resize = None
        self.status = None
        self.out = b""
        self.rx = b""
        self.port = None

    # -- frames

    def send(self, kind, payload=b""):
        self.out += self.nonce[:4] + kind + b"\0" + len(payload).to_bytes(2, "little") + payload

    def _hello(self, sock, deadline):
        """Sends a preamble and waits for its answer.  False: no answer in time."""
        self.nonce = os.urandom(16)
        answer = self.nonce[:4] + b"h\0\x10\0" + self.nonce
        out, self.rx = MAGIC + self.nonce, b""
        with selectors.DefaultSelector() as selector:
            while time.monotonic() < deadline:
                selector.register(
                    sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if out else 0)
                )
                ready = selector.select(max(0.0, min(0.5, deadline - time.monotonic())))
                selector.unregister(sock)
                for _, events in ready:
                    if events & selectors.EVENT_WRITE:
                        out = out[self.write(sock, out) :]
                    if events & selectors.EVENT_READ:
                        self.read(sock)
                at = self.rx.find(answer)
                if at >= 0:
                    self.rx = self.rx[at + len(answer) :]
                    return True
                self.rx = self.rx[-len(answer) :]
                self.check_alive()
        return False

    def _power(self):
        """A number that changes with each power cut that QEMU survives."""
        try:
            return os.stat(self.folder.path / pmem.report_file(self.name)).st_mtime_ns
        except OSError:
            return None

    def check_alive(self):
        if self._power() != self.power:
            raise Gone("VM %s lost its power" % self.name, None, EXEC_FAILED)
        vm = (self.folder.data or {}).get("vms", {}).get(self.name, {})
        if not proc.alive(vm.get("process")):
            raise self._gone()

    def _gone(self):
        return Gone(
            "VM %s went off" % self.name,
            "Look at ./staghorn --lab %s log %s" % (self.folder.name, self.name),
            EXEC_FAILED,
        )

    def write(self, sock, data):
        try:
            return sock.send(data[: 1 << 16])
        except BlockingIOError:
            return 0
        except OSError:
            raise self._gone()

    def read(self, sock):
        try:
            data = sock.recv(1 << 17)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            raise self._gone()
        self.rx += data

    # -- the run

    def run(self, timeout=None, answer_timeout=40.0, booting=False):
        """Runs the command and returns its exit status.

        timeout: seconds for all; answer_timeout: seconds until the agent answers."""
        start = time.monotonic()
        limit = start + timeout if timeout else None
        try:
            self.begin(start, limit, answer_timeout, booting)
            if isinstance(self.stdin, bytes):
                for at in range(0, len(self.stdin), CHUNK):
                    self.send(b"i", self.stdin[at : at + CHUNK])
                self.stdin = None
            if self.stdin is None:
                self.send(b"f")
            self._loop(limit)
            return self.status
        finally:
            self.close()

    def begin(self, start, limit=None, answer_timeout=40.0, booting=False):
        """Claims a port, and sends the command; its input stays open.  start: time.monotonic();
        limit: until when an answer must have come, or None."""
        self.power = self._power()
        self.port = Port(self.folder, self.name, start + answer_timeout)
        self._connect(start + answer_timeout, limit, self._patience(booting))
        for at in range(0, len(self.request), REQUEST_PART):
            self.send(b"o", self.request[at : at + REQUEST_PART])
        self.send(b"x")

    def close(self):
        if self.port:
            self.port.close()
            self.port = None

    def _patience(self, booting):
        """How long to wait for each answer before a new try; after the last one for ever."""
        if not booting:
            return list(RETRY_AFTER)
        return list(UEFI_RETRY_AFTER) if self.folder.data["vms"][self.name].get("uefi") else []

    def _connect(self, deadline, limit, patience):
        """Waits until the agent answers."""
        while True:
            until = min(deadline, time.monotonic() + (patience.pop(0) if patience else 1e9))
            if self._hello(self.port.open(), min(until, limit or until)):
                return
            if time.monotonic() >= min(deadline, limit or deadline):
                raise LabError(
                    "VM %s does not answer" % self.name,
                    "It may still boot, or be stuck: look at "
                    "./staghorn --lab %s log %s" % (self.folder.name, self.name),
                    TIMEOUT,
                )

    def _loop(self, limit):
        sock = self.port.sock
        reading = isinstance(self.stdin, int)
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            polled = reading and self._pollable(selector)
            while self.status is None:
                self.take_frames()
                if self.status is not None:
                    return
                self._forward_signals()
                selector.modify(
                    sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if self.out else 0)
                )
                hungry = reading and len(self.out) < CHUNK
                if reading and polled:
                    self._watch(selector, hungry)
                wait = 0 if hungry and not polled else 0.5
                ready = selector.select(
                    wait if limit is None else min(wait, max(0.0, limit - time.monotonic()))
                )
                if limit is not None and time.monotonic() >= limit:
                    raise LabError(
                        "%s in VM %s took too long and was ended" % (self.argv[0], self.name),
                        None,
                        TIMEOUT,
                    )
                stdin_ready = hungry and not polled
                for key, events in ready:
                    if key.fileobj is not sock:
                        stdin_ready = True
                        continue
                    if events & selectors.EVENT_READ:
                        self.read(sock)
                    if events & selectors.EVENT_WRITE and self.out:
                        self.out = self.out[self.write(sock, self.out) :]
                if stdin_ready and hungry:
                    reading = self._take_stdin()
                    if not reading and polled:
                        self._watch(selector, False)
                if not ready:
                    self.check_alive()

    def _pollable(self, selector):
        """Regular files cannot be polled, and need no polling."""
        try:
            selector.register(self.stdin, selectors.EVENT_READ)
        except (PermissionError, ValueError):
            return False
        return True

    def _watch(self, selector, wanted):
        watched = self.stdin in selector.get_map()
        if wanted and not watched:
            selector.register(self.stdin, selectors.EVENT_READ)
        elif watched and not wanted:
            selector.unregister(self.stdin)

    def _take_stdin(self):
        try:
            data = os.read(self.stdin, CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if data:
            self.send(b"i", data)
            return True
        self.send(b"f")
        return False

    def _forward_signals(self):
        while self.signals:
            self.send(b"s", bytes([self.signals.pop(0)]))
        if self.resize:
            self.send(b"w", b"%dx%d" % self.resize)
            self.resize = None

    def take_frames(self):
        at = 0
        while len(self.rx) - at >= HEADER:
            length = int.from_bytes(self.rx[at + 6 : at + 8], "little")
            if self.rx[at : at + 4] != self.nonce[:4]:
                raise Gone("the agent of VM %s is out of step" % self.name, None, EXEC_FAILED)
            if len(self.rx) - at < HEADER + length:
                break
            kind = self.rx[at + 4 : at + 5]
            payload = self.rx[at + HEADER : at + HEADER + length]
            at += HEADER + length
            if kind in b"12":
                self.on_output(int(kind), payload)
            elif kind == b"q":
                self.status = int.from_bytes(payload, "little")
        self.rx = self.rx[at:]


def capture(folder, name, argv, stdin=None, timeout=None, answer_timeout=40.0, booting=False):
    """Runs a command; returns (status, stdout, stderr), both as text."""
    texts = {1: [], 2: []}
    session = Session(folder, name, argv, stdin, lambda stream, data: texts[stream].append(data))
    status = session.run(timeout, answer_timeout, booting)
    return (status, *(b"".join(texts[stream]).decode(errors="replace") for stream in (1, 2)))
