# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors that a user can see.

Exit statuses of ./staghorn:
  0    done
  1    it did not work; the text says why
  2    wrong arguments
  3    the lab or the VM is not there, or not running
  4    not ready within the time limit
  125  `exec` itself failed (the command's own status otherwise, 127: no such command)
  130  interrupted
"""

FAILED, USAGE, ABSENT, TIMEOUT, EXEC_FAILED, INTERRUPTED = 1, 2, 3, 4, 125, 130


class LabError(Exception):
    """A message, what to do next, and the exit status."""

    def __init__(self, message, hint=None, status=FAILED):
        super().__init__(message)
        self.hint = hint
        self.status = status

    def text(self):
        return str(self) + ("\n  " + self.hint if self.hint else "")


USAGE_HINT = "./staghorn VERB --help shows the options"


class UsageError(LabError):
    def __init__(self, message, hint=None):
        super().__init__(message, hint or USAGE_HINT, USAGE)


class AbsentError(LabError):
    def __init__(self, message, hint=None):
        super().__init__(message, hint, ABSENT)
