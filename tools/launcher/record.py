# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings: what happens in all VMs of a lab while scripts run, as a trace of each.

QEMU records (docs/manual/properties.md, "Recordings"); this begins and ends it in all VMs at once,
runs the scripts, and writes record.json beside the traces.
"""
import concurrent.futures
import contextlib
import json
import os
import secrets
import signal
import sys
import threading
import time

from . import agent, proc, transfer
from .errors import EXEC_FAILED, LabError, UsageError
from .qmp import Monitor

VERSION = 1
RESULT = "record.json"
GUEST_FOLDER = "/tmp/staghorn-record"
# The content of persistent memory is written while the VM stands still.
PATIENCE = 600.0
# A script that was told to end.
END_PATIENCE = 10.0
LOOK_EVERY = 1.0  # at the recordings


# -- the recorders of QEMU


def trace_path(target, vm):
    return os.path.join(os.path.abspath(target), vm + ".trace")


def _each(names, work):
    """Does it for all VMs at once: ({VM: result}, {VM: LabError})."""
    results, failures = {}, {}
    with concurrent.futures.ThreadPoolExecutor(max(1, len(names))) as pool:
        tasks = {pool.submit(work, name): name for name in names}
        for task in concurrent.futures.as_completed(tasks):
            try:
                results[tasks[task]] = task.result()
            except LabError as error:
                failures[tasks[task]] = error
    return results, failures


def start(folder, target, run_id):
    """Begins to record all running VMs, to files in the folder target; returns their names.  If
    one refuses, none is recorded."""
    names = [
        name for name, vm in sorted(folder.require()["vms"].items()) if proc.alive(vm["process"])
    ]
    if not names:
        raise LabError("all VMs of lab %s are off" % folder.name)

    def begin(name):
        with Monitor(folder, name, PATIENCE) as monitor:
            monitor.run(
                "staghorn-record-start",
                **{"file": trace_path(target, name), "run-id": run_id, "machine": name},
            )

    begun, failures = _each(names, begin)
    if failures:
        stop(folder, begun)
        for name in begun:
            os.unlink(trace_path(target, name))
        name, error = sorted(failures.items())[0]
        hint = error.hint
        if "runs already" in str(error):
            hint = "End it:  ./staghorn --lab %s crash record --stop" % folder.name
        raise LabError("VM %s cannot be recorded: %s" % (name, error), hint, error.status)
    return names


def stop_all(folder):
    """Ends recordings that nobody ends, because their command was killed; {VM: as of stop()}."""
    names = [name for name, vm in folder.require()["vms"].items() if proc.alive(vm["process"])]
    running, failures = _each(names, lambda name: _query(folder, name)["state"] == "running")
    if failures:
        raise sorted(failures.items())[0][1]
    return stop(folder, sorted(name for name, runs in running.items() if runs))


def stop(folder, names):
    """Ends the recordings of these VMs; {VM: {"state", "events", "octets", "error"}}."""

    def end(name):
        with Monitor(folder, name, PATIENCE) as monitor:
            found = monitor.run("query-staghorn-record")
            if found["state"] in ("complete", "none"):
                return found
            return monitor.run("staghorn-record-stop")

    ended, failures = _each(list(names), end)
    found = {}
    for name in names:
        answer = ended.get(name, {})
        found[name] = {
            "state": answer.get("state", "failed"),
            "events": answer.get("events"),
            "octets": answer.get("octets"),
            "error": answer.get("error") or (str(failures[name]) if name in failures else None),
        }
    return found


# -- scripts


class Script:
    """What runs in one VM: a script of the host, which is copied, or a command of the guest."""

    def __init__(self, vm, source=None, command=None):
        self.vm, self.source, self.command = vm, source, command
        self.status = self.error = self.seconds = self.session = None
        self.ended = False  # told to end

    def title(self):
        return os.path.basename(self.source) if self.source else " ".join(self.command)

    def check(self, folder):
        folder.running(self.vm)
        if self.source and not os.path.isfile(self.source):
            raise UsageError("crash record: there is no script %s" % self.source)

    def prepare(self, folder):
        """Copies the script; the recording has not begun."""
        if not self.source:
            return
        status, _, text = agent.capture(folder, self.vm, ["mkdir", "-p", GUEST_FOLDER])
        if status:
            raise LabError("VM %s: mkdir %s: %s" % (self.vm, GUEST_FOLDER, text.strip()))
        path = GUEST_FOLDER + "/" + os.path.basename(self.source)
        transfer.put(folder, self.source, self.vm, path)
        self.command = [path] if os.access(self.source, os.X_OK) else ["/bin/sh", path]

    def run(self, folder, output, timeout):
        """Runs it to its end; output is called with each line."""
        rest = {1: b"", 2: b""}
        begin = time.monotonic()

        def take(stream, data):
            *lines, rest[stream] = (rest[stream] + data).split(b"\n")
            for line in lines:
                output(self.vm, line.decode(errors="replace"))

        # Program counters mean something if each run has the same addresses (symbols.py).
        command = ["setarch", "-R", *self.command]
        self.session = agent.Session(folder, self.vm, command, None, take)
        try:
            self.status = self.session.run(timeout)
        except LabError as error:
            self.error = str(error)
        for line in filter(None, rest.values()):
            output(self.vm, line.decode(errors="replace"))
        self.seconds = round(time.monotonic() - begin, 3)

    def told_to_end(self):
        self.ended = True
        if self.session:
            self.session.signals.append(int(signal.SIGTERM))

    def wrong(self):
        """Why the run is not what was wanted, or None."""
        if self.error:
            return "%s in VM %s: %s" % (self.title(), self.vm, self.error)
        if self.status and not self.ended:
            return "%s in VM %s ended with status %d" % (self.title(), self.vm, self.status)
        return None


def parse_scripts(items):
    """'alpha:server.sh beta:client.sh -- beta uptime -a' to Scripts."""
    scripts, group = [], None
    for item in items:
        if item == "--":
            group = []
            scripts.append(group)
        elif group is not None:
            group.append(item)
        else:
            vm, colon, path = item.partition(":")
            if not colon or not vm or not path:
                raise UsageError("crash record: %s is not VM:SCRIPT" % item)
            scripts.append(Script(vm, source=path))
    for at, group in enumerate(scripts):
        if isinstance(group, list):
            if len(group) < 2:
                raise UsageError("crash record: -- needs VM COMMAND...")
            scripts[at] = Script(group[0], command=group[1:])
    names = [script.vm for script in scripts]
    for name in names:
        if names.count(name) > 1:
            raise UsageError("crash record: VM %s has more than one script" % name)
    if not scripts:
        raise UsageError("crash record: there is no script", "crash record VM:SCRIPT...")
    return scripts


def _failed(folder, names):
    """Why a recording has ended before its time, or None.  A VM that is off has no monitor."""
    found, _ = _each(list(names), lambda name: _query(folder, name))
    for name, answer in sorted(found.items()):
        if answer["state"] == "failed":
            return "the recording of VM %s has ended: %s" % (name, answer["error"])
    return None


def _query(folder, name):
    with Monitor(folder, name, PATIENCE) as monitor:
        return monitor.run("query-staghorn-record")


def run_scripts(folder, names, scripts, servers, timeout, say, output):
    """Runs all at once.  Those of the VMs in servers are told to end when the others have, and all
    of them when one of the recordings fails."""
    threads = {}
    for script in scripts:
        thread = threading.Thread(
            target=script.run, args=(folder, output, timeout), name=script.vm, daemon=True
        )
        threads[script] = thread
        thread.start()
    left = [script for script in scripts if script.vm not in servers]
    failed = None
    while left and not failed:
        threads[left[0]].join(LOOK_EVERY)
        for script in [script for script in left if not threads[script].is_alive()]:
            say("%s has ended after %.1f s%s" % (script.vm, script.seconds, _status(script)))
            left.remove(script)
        failed = _failed(folder, names)
    if failed:
        say(failed)
    for script, thread in threads.items():
        if script.vm in servers or script in left:
            script.told_to_end()
            thread.join(END_PATIENCE)
            if thread.is_alive():
                script.error = "it does not end when it is told to"


def _status(script):
    if script.error:
        return ": " + script.error
    return " with status %d" % script.status if script.status else ""


# -- the whole run


def make_folder(target):
    """A new or empty folder."""
    try:
        os.makedirs(target, exist_ok=True)
        used = os.listdir(target)
    except OSError as error:
        raise LabError("crash record: %s: %s" % (target, error.strerror))
    if used:
        raise UsageError(
            "crash record: the folder %s is not empty" % target, "Choose another with --output"
        )


def _result(folder, run_id, scripts, found, began):
    vms = {}
    for name, numbers in found.items():
        vm = folder.data["vms"][name]
        vms[name] = dict(
            numbers,
            trace=name + ".trace",
            driver=vm["driver"],
            pmem=(vm["pmem"] or {}).get("domain"),
        )
    return {
        "version": VERSION,
        "run": run_id,
        "lab": folder.name,
        "accel": folder.data["accel"],
        "memory": "%dM" % folder.data["mem"],
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": round(time.time() - began, 3),
        "vms": vms,
        "scripts": [
            {
                "vm": script.vm,
                "script": script.source,
                "command": script.command,
                "told-to-end": script.ended,
                "status": script.status,
                "seconds": script.seconds,
                "error": script.error,
            }
            for script in scripts
        ],
        "problems": [],
    }


def _problems(result, scripts):
    found = [
        "the recording of VM %s is not complete: %s" % (name, vm["error"] or vm["state"])
        for name, vm in result["vms"].items()
        if vm["state"] != "complete"
    ]
    return found + list(filter(None, (script.wrong() for script in scripts)))


def record(folder, target, scripts, servers=(), timeout=None, say=print, output=None):
    """Records a lab while the scripts run.  Returns what record.json has; its "problems" is empty
    if all went well.  An interruption completes the traces, too."""
    for script in scripts:
        script.check(folder)
    for name in servers:
        if name not in [script.vm for script in scripts]:
            raise UsageError("crash record: --server %s: this VM has no script" % name)
    if {script.vm for script in scripts} == set(servers):
        raise UsageError("crash record: all scripts are servers: nothing ends the recording")
    make_folder(target)
    for script in scripts:
        script.prepare(folder)
    run_id, began = secrets.token_hex(16), time.time()
    names = start(folder, target, run_id)
    begun = dict.fromkeys(names, {"state": "running", "events": None, "octets": None})
    _write(target, _result(folder, run_id, scripts, begun, began))
    say("recording %s to %s" % (", ".join(names), target))
    try:
        run_scripts(folder, names, scripts, servers, timeout, say, output or print_line)
    except BaseException:
        for script in scripts:
            script.error = script.error or (None if script.seconds else "interrupted")
        raise
    finally:
        result = _result(folder, run_id, scripts, stop(folder, names), began)
        result["problems"] += _problems(result, scripts)
        _write(target, result)
    return result


def _write(target, result):
    """What cannot be written is one more problem: it does not hide the others."""
    path = os.path.join(target, RESULT)
    try:
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        os.replace(path + ".new", path)
    except OSError as error:
        result["problems"].append("%s: %s" % (path, error.strerror))
        with contextlib.suppress(OSError):
            os.unlink(path + ".new")


_printing = threading.Lock()


def print_line(vm, line):
    with _printing:
        sys.stdout.write("%s: %s\n" % (vm, line))
        sys.stdout.flush()


def summary(result, target):
    """The result as text."""
    lines = []
    for name, vm in result["vms"].items():
        if vm["octets"] is not None:
            lines.append(
                "%s: %d events, %.1f MiB" % (name, vm["events"], vm["octets"] / float(1 << 20))
            )
    lines.append("recording of %.1f s in %s" % (result["seconds"], target))
    return "\n".join(lines)


def failure(result):
    """The error that the command ends with, or None."""
    if not result["problems"]:
        return None
    broken = any(vm["state"] != "complete" for vm in result["vms"].values())
    return LabError(
        result["problems"][0],
        "\n  ".join(result["problems"][1:]) or None,
        EXEC_FAILED if broken else 1,
    )
