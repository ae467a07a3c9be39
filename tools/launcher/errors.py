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
import re
from pathlib import Path

FAILED, USAGE, ABSENT, TIMEOUT, EXEC_FAILED, INTERRUPTED = 1, 2, 3, 4, 125, 130

# Beside an installed launcher (paths.installed).
PACKAGED = (Path(__file__).resolve().parents[2] / "installed.json").exists()
DOCUMENTS = "/usr/share/doc/staghorn/"


def spoken(text):
    """A text for the user, who may not be in a source tree."""
    return packaged(text) if PACKAGED else text


def packaged(text):
    """The text with the name of an installed launcher, and the place of its documents."""
    return re.sub(
        r"(?<![\w./-])docs/(?=[\w/-]+\.md)", DOCUMENTS, text.replace("./staghorn", "staghorn")
    )


class LabError(Exception):
    """A message, what to do next, and the exit status."""

    def __init__(self, message, hint=None, status=FAILED):
        super().__init__(message)
        self.hint = hint
        self.status = status

    def text(self):
        return spoken(str(self) + ("\n  " + self.hint if self.hint else ""))


USAGE_HINT = "./staghorn VERB --help shows the options"


class UsageError(LabError):
    def __init__(self, message, hint=None):
        super().__init__(message, hint or USAGE_HINT, USAGE)


class AbsentError(LabError):
    def __init__(self, message, hint=None):
        super().__init__(message, hint, ABSENT)
