# SPDX-License-Identifier: GPL-2.0-or-later
"""What a command in a VM prints, with a bound on time and octets: guests may be silent or lie."""
from . import agent
from .errors import LabError

SECONDS = 20.0


def ask(folder, name, argv, most, seconds=SECONDS):
    """The octets that the command prints; b"" if the VM does not answer in time or sends more."""
    parts, size = [], 0

    def take(stream, data):
        nonlocal size
        if stream == 1:
            size += len(data)
            parts.append(data)
        if size > most:
            raise LabError("VM %s sends more than %d octets" % (name, most))

    try:
        agent.Session(folder, name, argv, None, take).run(seconds, seconds / 4)
    except LabError:
        return b""
    return b"".join(parts)
