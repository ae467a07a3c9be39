#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the verb torture without a VM: its arguments, its rounds with guests that are fakes, and
what it takes for a failure."""
import json
import subprocess
import sys
from pathlib import Path

import cases

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from launcher import cli, errors, torture, torture_guest, torture_judge  # noqa: E402

CASES = []
OOPS = """[ 1.0] BUG: kernel NULL pointer dereference, address: 8
[ 1.1] RIP: 0010:sgh_irq+0x1/0x2 [staghorn]"""
LOST = "[ 2.0] staghorn 0000:01:00.0: adapter is lost: it does not answer (status 0x0, reason 0)\n"
NOT_UP = "[ 3.0] staghorn 0000:01:00.0: adapter does not come up again: -19\n"


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


class Folder:
    """A lab of two VMs with adapters, and one with siw."""

    name = "lab"
    data = {
        "kernel": "debian",
        "own_kernel": None,
        "vms": {
            name: {"driver": driver, "adapters": [], "addr": "10.77.0.%d" % number}
            for number, (name, driver) in enumerate(
                (("alpha", "staghorn"), ("beta", "staghorn"), ("gamma", "siw")), 1
            )
        },
    }

    def require(self):
        pass

    def running(self, name):
        if name not in self.data["vms"]:
            raise errors.AbsentError("there is no VM " + name)
        return self.data["vms"][name]


class FakeGuest(torture_guest.Guest):
    """A guest of the round's script: what it has and says."""

    asked, logs, objects, after, able, memory = [], {}, {"qp": 0}, None, True, ""
    rule = ""

    def serve(self):
        return "nfs"

    def connect(self):
        self.asked.append("connect")

    def stop_serving(self):
        self.asked.append("stop serving")

    def reload(self):
        self.asked.append("reload")

    def reset(self):
        self.asked.append("reset")

    def mark(self, seed):
        self.seed = seed

    def log(self):
        return self.logs.get((self.name, self.seed), "")

    def resources(self):
        FakeGuest.looks += 1
        return self.objects if FakeGuest.looks <= 2 or not self.after else self.after

    def trouble(self, peer, consumer):
        assert (peer.name, consumer) == ("alpha", "nfs")
        return "" if (self.able() if callable(self.able) else self.able) else "NFS fails"

    def blocked(self):
        return "D rping"

    def leaks(self):
        return self.memory if self.name == "beta" else ""


class FakeJob:
    """A script that ends at once."""

    result, output = None, ""

    def __init__(self, folder, vm, script, limit):
        self.output = FakeJob.output
        assert limit > torture.LIMIT, vm
        status = subprocess.run(["sh", "-n", "-c", script], capture_output=True, check=False)
        assert not status.returncode, status.stderr

    def failure(self):
        return self.result


class FakeTime:
    """Time passes only when somebody sleeps."""

    now = 0.0

    def monotonic(self):
        return FakeTime.now

    def sleep(self, seconds):
        FakeTime.now += seconds


def exchange(_folder, vm, text, adapter=0):
    """Notes the rules; the old ones were applied."""
    FakeGuest.asked.append((vm, text))
    rule = {"rule": FakeGuest.rule, "point": "registers", "seen": 2, "applied": 1, "spent": True}
    return {"rules": [] if text else [rule], "late": adapter}


def torture_of(*words, job=None, output="", **guest):
    """(status, progress, text) of `torture beta WORDS`."""
    torture.Guest, torture.Job, torture.time = FakeGuest, FakeJob, FakeTime()
    torture.faults.exchange = exchange
    FakeTime.now, FakeGuest.looks, FakeGuest.asked = 0.0, 0, []
    FakeJob.result, FakeJob.output = job, output
    defaults = {"logs": {}, "after": None, "able": True, "memory": "", "rule": "registers ones"}
    for name, value in {**defaults, **guest}.items():
        setattr(FakeGuest, name, staticmethod(value) if callable(value) else value)
    args = cli.make_parser(["torture"]).parse_args(["torture", "beta", *words])
    said, printed = [], []
    torture.print = lambda text, **_: printed.append(text)
    status = torture.run(Folder(), args, said.append)
    return status, said, "\n".join(printed)


def refusal(*words):
    """The status and the text of the error of `torture WORDS`."""
    args = cli.make_parser(["torture"]).parse_args(["torture", *words])
    try:
        torture.Plan(Folder(), args)
    except errors.LabError as error:
        return error.status, error.text()
    raise AssertionError("no error: %r" % (words,))


@case
def arguments(folder):
    """nonsense and VMs that are not there or have no adapter are refused"""
    for words, text in (
        (("beta", "--seed", "x"), "--seed x: a number"),
        (("beta", "--seed", "-1"), "--seed -1: a number"),
        (("beta", "--seed", "1", "--for", "10 minutes"), "--for 10 minutes: a time"),
        (("beta", "--seed", "1", "--within", "0"), "--within 0: a time"),
        (("beta", "--seed", "1", "--for", "200h"), "1 to 7 days"),
        (("beta", "--seed", "1", "--rules", "65"), "1 to 64"),
        (("gamma", "--seed", "1"), "gamma has no Staghorn adapter"),
        (("beta", "--seed", "1", "--peer", "gamma"), "gamma has no Staghorn adapter"),
        (("beta", "--seed", "1", "--peer", "beta"), "its own peer"),
    ):
        status, found = refusal(*words)
        assert status == errors.USAGE and text in found, (words, found)
    assert refusal("delta", "--seed", "1")[0] == errors.ABSENT
    try:
        torture_of("--seed", "1", "--json", str(folder / "none" / "file"))
        raise AssertionError("a file in no folder")
    except errors.LabError as error:
        assert error.status == errors.USAGE and "No such file" in str(error)
    assert not FakeGuest.asked
    assert torture.seconds_of("10m", "") == 600 and torture.seconds_of("7", "") == 7


@case
def rounds(folder):
    """one round, or one seed after the other for a time; rules begin and end, all is in the file"""
    file = folder / "found.json"
    status, said, text = torture_of("--seed", "0x10", "--json", str(file))
    assert status == 0 and "1 rounds, 0 failed" in text
    assert said[1] == "round 1, seed 16: 1 of 1 rules applied, works after 0.0 s"
    assert FakeGuest.asked == [
        "reload",
        "connect",
        ("beta", "draw seed=16 rules=4 within=5s"),
        ("beta", ""),
        "reload",
        "stop serving",
    ]
    found = json.loads(file.read_text())
    assert (found["vm"], found["peer"], found["consumer"]) == ("beta", "alpha", "nfs")
    assert found["rounds"][0]["rules"] == [{"rule": "registers ones", "seen": 2, "applied": 1}]
    status, said, _ = torture_of("--seed", "5", "--for", "20s", "--within", "4s", "--rules", "9")
    assert status == 0 and [line.split(":")[0] for line in said[1:]] == [
        "round %d, seed %d" % (number, number + 4) for number in (1, 2, 3)
    ]
    assert ("beta", "draw seed=6 rules=9 within=4s") in FakeGuest.asked


@case
def failures(_folder):
    """each kind of failure: named, with its rules and the command that has it again"""
    hung = ("hang", "beta: sh took too long and was ended")
    for kind, keywords, part in (
        ("kernel", {"logs": {("beta", 7): OOPS}}, "NULL pointer"),
        ("kernel", {"logs": {("alpha", 7): "WARNING: CPU: 0 PID: 1"}}, "alpha: WARNING"),
        ("hang", {"job": hung}, "D rping"),
        ("machine", {"job": ("machine", "beta: VM beta went off")}, "went off"),
        ("recovery", {"able": False}, "does not work 100 s after the faults: NFS fails\nD rping"),
        ("leak", {"after": {"qp": 2, "mr": 1}}, "objects are left: 1 mr, 2 qp"),
        ("data", {"output": torture_judge.CORRUPT + "\n"}, "other content"),
    ):
        status, said, text = torture_of("--seed", "7", "--within", "2s", **keywords)
        assert status == errors.FAILED, kind
        assert "FAILED, " in said[1] and kind in said[1], said
        assert part in text and "rule: registers ones, applied 1" in text, text
        assert "again: ./staghorn torture beta --seed 7 --within 2s --peer alpha" in text
        assert ("beta", "") in FakeGuest.asked
    status, _, text = torture_of("--seed", "7", memory="unreferenced object 0xff")
    assert status == errors.FAILED and "memory: beta: unreferenced" in text


@case
def going_on(_folder):
    """the first failure ends it, unless the user and the machines can go on"""
    words = ("--seed", "1", "--for", "100s")
    logs = {("beta", 2): OOPS}
    assert len(torture_of(*words, logs=logs)[1]) == 3
    assert len(torture_of(*words, "--keep-going", logs=logs)[1]) == 3
    leak = {"after": {"qp": 3}}
    assert len(torture_of(*words, **leak)[1]) == 2
    status, said, text = torture_of(*words, "--keep-going", output=torture_judge.CORRUPT)
    assert status == errors.FAILED and len(said) == 14 and "13 rounds, 13 failed" in text


@case
def given_up(_folder):
    """a driver that has used its attempts need not come back until it is loaded again"""
    logs = {("beta", 3): 2 * LOST + 2 * NOT_UP}
    again = lambda: FakeGuest.asked.count("reload") == 2  # noqa: E731
    status, said, _ = torture_of("--seed", "3", logs=logs, able=again)
    assert status == 0 and "adapter lost 2 times and given up" in said[1], said
    assert FakeGuest.asked.count("reload") == 3
    status, _, text = torture_of("--seed", "3", logs=logs, able=False)
    assert status == errors.FAILED and "100 s after the driver was loaded again" in text
    assert not torture_judge.given_up(LOST + NOT_UP)
    assert torture_judge.given_up("AER: device recovery failed")


@case
def silence(_folder):
    """after a connection was silenced the function is reset, and only then"""
    torture_of("--seed", "3", rule="outbound mute nth=2 after=5us")
    assert FakeGuest.asked[3:5] == [("beta", ""), "reset"]
    torture_of("--seed", "3", rule="outbound rst nth=2 after=5us")
    assert "reset" not in FakeGuest.asked
    assert not torture_judge.is_mute([{"rule": "inbound mute", "applied": 0}])


@case
def logs(_folder):
    """complaints of kernels behind the mark, and those that are none"""
    marked = "WARNING: old\nstaghorn-torture: seed 4\n" + OOPS
    assert torture_judge.reports(torture_judge.since_mark(marked)) == [OOPS]
    for line in (
        "traps: ib_write_bw[1] general protection fault ip:7f3f sp:7ffe error:0 in librdmacm.so.1",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
        "DMA-API: preallocated 65536 debug entries",
        "pcieport 0000:00:04.0: PCIe Bus Error: severity=Uncorrectable (Fatal)",
        "WARNING: CPU: 1 PID: 9 at kernel/dma/debug.c:596 add_dma_entry+0x2",
        "WARNING: kernel/dma/debug.c:596 at add_dma_entry+0x2, CPU#1: rping/9",
        LOST,
    ):
        assert not torture_judge.reports(line), line
    for line in (
        "INFO: task rping:77 blocked for more than 120 seconds.",
        "BUG: KASAN: slab-use-after-free in sgh_ceq_poll+0x1",
        "WARNING: possible circular locking dependency detected",
        "staghorn0: BUG: RESTRACK detected leak of resources",
        "DMA-API: staghorn 0000:01:00.0: device driver frees DMA memory with wrong function",
    ):
        assert torture_judge.reports(line) == [line], line


@case
def objects(_folder):
    """the objects of `rdma resource show`, and those of them that are left"""
    text = "0: siw0: pd 9\n1: staghorn0: pd 1 cq 2 qp 0 cm_id 0 mr 3 ctx 0 srq 0 \n"
    found = torture_judge.resources(text, "staghorn0")
    assert found == {"pd": 1, "cq": 2, "qp": 0, "cm_id": 0, "mr": 3, "ctx": 0, "srq": 0}
    assert torture_judge.resources(text, "") == {}
    assert torture_judge.left(found, dict(found, mr=1)) == ""
    assert torture_judge.left(found, dict(found, qp=1, mr=5)) == "2 mr, 1 qp"


@case
def scripts(_folder):
    """the scripts for guests: syntax, ports of which each belongs to one server"""
    sides = [torture_guest.Guest(None, "v%d" % n, n, "10.0.0.%d" % n, "p") for n in (0, 1)]
    texts = [side.work_script(5, "nfs") for side in sides]
    servers = [set(), set()]
    for number, text in enumerate(texts):
        for line in text.splitlines():
            if "rping -s" in line:
                servers[number].add(line.split("-p ")[1].split()[0])
        assert ("mount -t nfs4" in text) and ("wait" == text.splitlines()[-1])
    assert servers[0] and not servers[0] & servers[1]
    assert "mount" not in sides[0].work_script(5)
    for script in (
        torture_guest.SERVE % {"folder": "/x", "port": 1},
        torture_guest.BLOCKED,
        *texts,
    ):
        done = subprocess.run(["sh", "-n", "-c", script], capture_output=True, check=False)
        assert not done.returncode, done.stderr


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
