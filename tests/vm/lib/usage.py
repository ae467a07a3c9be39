# SPDX-License-Identifier: GPL-2.0-or-later
"""The processor time of a test program, with that of its VMs.

A VM outlives the launcher that started it.  So this program adopts it (prctl), and learns of its
time when it has ended.
"""
import ctypes
import os
import resource

PR_SET_CHILD_SUBREAPER = 36


def adopt():
    """From now on processes whose parents end become children of this one."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processor_seconds():
    """Processor time of this process and of all children that have ended, at the end of all work:
    nobody else can wait for them afterwards."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)
