# SPDX-License-Identifier: GPL-2.0-or-later
"""Shell scripts in the VMs of a lab, for programs that measure there."""
from launcher import agent
from launcher.errors import LabError
from launcher.state import LabFolder


def shell(lab, vm, script, timeout=120):
    """What the script prints; it runs under "set -e" and has to succeed."""
    words = ["sh", "-c", "set -e\n" + script]
    status, out, error = agent.capture(LabFolder(lab), vm, words, timeout=timeout)
    if status:
        raise LabError("VM %s: status %d\n%s\n%s" % (vm, status, script, (out + error).strip()))
    return out
