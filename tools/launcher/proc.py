# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that outlive the launcher.

A process is recorded by its id and its start time since boot, so that a recycled id is never
mistaken for it, nor signalled.
"""
import os
import signal
import subprocess
import time

from .errors import TIMEOUT, LabError

ASK_S = 60  # seconds


def _stat(pid):
    """(state letter, start time) of a process, or None."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return fields[0], int(fields[19])


def identify(pid):
    found = _stat(pid)
    return {"pid": pid, "start": found[1] if found else 0}


def alive(ident):
    if not ident:
        return False
    found = _stat(ident["pid"])
    return bool(found) and found[1] == ident["start"] and found[0] not in "ZX"


def ask(words, limit=ASK_S, **keywords):
    """Runs a program of the host that answers by itself; returns its CompletedProcess.

    A program that is not there, or that does not end within so many seconds, is an error."""
    keywords.setdefault("stdin", subprocess.DEVNULL)
    keywords.setdefault("stderr", subprocess.PIPE)
    try:
        return subprocess.run(
            [str(word) for word in words],
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=limit,
            check=False,
            **keywords,
        )
    except subprocess.TimeoutExpired:
        raise LabError("%s did not end within %g s" % (words[0], limit), None, TIMEOUT)
    except OSError as error:
        raise LabError("%s: %s" % (words[0], error.strerror), "Install it, then try again")


def spawn(command, folder, log, stdin=subprocess.DEVNULL, inherited=()):
    """Starts a process in a session of its own; its output goes to the file log.

    stdin and inherited are file descriptors for it.  Returns (its identity, the Popen object)."""
    with open(log, "ab") as out:
        child = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            stdout=out,
            stderr=out,
            stdin=stdin,
            pass_fds=inherited,
            start_new_session=True,
        )
    return identify(child.pid), child


def yield_threads(ident, prefix, nice):
    """Lowers the priority of those threads of the process whose names begin with prefix, by
    nice."""
    if not alive(ident):
        return
    nice = min(nice + os.getpriority(os.PRIO_PROCESS, ident["pid"]), 19)
    base = "/proc/%d/task" % ident["pid"]
    for thread in os.listdir(base):
        try:
            with open("%s/%s/comm" % (base, thread)) as file:
                name = file.read()
            if name.startswith(prefix):
                os.setpriority(os.PRIO_PROCESS, int(thread), nice)
        except OSError:
            continue  # the thread has ended meanwhile


def wait_end(ident, limit):
    """Whether the process ends by itself within `limit` seconds."""
    deadline = time.monotonic() + limit
    while alive(ident) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(ident)


def kill(ident, sig=signal.SIGKILL, wait=5.0):
    """Signals the process, if it is still the same one, and waits for its end."""
    if not alive(ident):
        return True
    try:
        os.kill(ident["pid"], sig)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + wait
    while alive(ident):
        try:
            os.waitpid(ident["pid"], os.WNOHANG)
        except ChildProcessError:
            pass
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
