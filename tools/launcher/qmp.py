# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's monitor, one command at a time."""
import collections
import json

from .errors import ABSENT, TIMEOUT, LabError
from .state import connect

LIMIT = 20.0  # seconds; another client may be served first
EVENTS = 64


class Monitor:
    """A connection to a VM's monitor; with `with`.  limit: seconds that a command may take."""

    def __init__(self, folder, name, limit=LIMIT):
        self.name = name
        self.events = collections.deque(maxlen=EVENTS)
        try:
            self.sock = connect(folder.path / name / "qmp", limit)
        except OSError as error:
            raise LabError(
                "the monitor of VM %s does not answer (%s)" % (name, error.strerror or error),
                "See ./staghorn --lab %s status" % folder.name,
                ABSENT,
            )
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        try:
            self._line()
            self.run("qmp_capabilities")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def _line(self):
        try:
            line = self.file.readline()
        except TimeoutError:
            raise LabError(
                "the monitor of VM %s does not answer" % self.name,
                "Perhaps another client uses it: it takes one at a time",
                TIMEOUT,
            )
        except OSError as error:
            raise LabError("VM %s went off (%s)" % (self.name, error.strerror), None, ABSENT)
        if not line:
            raise LabError("VM %s went off" % self.name, None, ABSENT)
        return json.loads(line)

    def run(self, command, **arguments):
        """Returns the command's result, or raises its error as a LabError.  `events` has the last
        events before it."""
        request = {"execute": command, "arguments": arguments}
        try:
            self.sock.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise LabError("VM %s went off (%s)" % (self.name, error.strerror), None, ABSENT)
        while True:
            answer = self._line()
            if "error" in answer:
                raise LabError(answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]
            if "event" in answer:
                self.events.append(answer)
