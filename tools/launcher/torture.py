# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver under faults of a seed: the verb torture.

A round has one seed.  The VM's adapter gets the rules that faults.md draws from it; meanwhile
programs of verbs and rdma_cm and, where the guest can, NFS over RDMA run between the VM and its
peer.  Then the rules end, and a round demands what torture_judge.py lists.  The next round has the
next seed, so a round can be had again by itself.
"""
import contextlib
import json
import re
import threading
import time
from pathlib import Path

from . import agent, errors, faults, options, torture_judge
from .errors import LabError, UsageError
from .torture_guest import Guest

WITHIN = 5  # seconds in which the rules begin, unless the user says otherwise
REST = 3  # seconds that the work goes on after that
RULES = 4
RULES_MAX = 64
UNITS = {"s": 1, "m": 60, "h": 3600}
TIME_MAX = 7 * 86400
# A command without an answer (30 s), the attempts to bring the adapter up, a program's own limit.
LIMIT = 100
LEFT_LIMIT = 100  # until a peer that is silent counts as dead, and its objects are released


def add(parser):
    """The options of the verb."""
    parser.add_argument(
        "--seed", required=True, metavar="N", help="the seed of the first round, from 0"
    )
    parser.add_argument(
        "--for",
        dest="length",
        metavar="TIME",
        help="go on with the next seeds for this time, such as 90s, 10m, 2h [one round]",
    )
    parser.add_argument("--rules", type=int, default=RULES, metavar="N", help="[%(default)s]")
    parser.add_argument(
        "--within", metavar="TIME", help="the rules of a round begin within it [%ds]" % WITHIN
    )
    parser.add_argument("--peer", metavar="VM", help="the other VM [the first other one]")
    parser.add_argument(
        "--keep-going", action="store_true", help="go on after a round that has failed"
    )
    parser.add_argument("--json", metavar="FILE", help="write all rounds to a file")


def seconds_of(text, name):
    """A time of the command line."""
    found = re.fullmatch(r"([0-9]{1,7})([smh]?)", text)
    value = int(found[1]) * UNITS[found[2] or "s"] if found else 0
    if not 1 <= value <= TIME_MAX:
        raise UsageError("torture %s %s: a time is 1 to 7 days, such as 90s, 10m" % (name, text))
    return value


def seed_of(text):
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 64:
        raise UsageError("torture --seed %s: a number from 0 to 2^64 - 1" % text)
    return value


class Plan:
    """What the command line asks for."""

    def __init__(self, folder, args):
        self.lab, self.vm = folder.name, args.vm
        self.seed = seed_of(args.seed)
        self.within = seconds_of(args.within, "--within") if args.within else WITHIN
        self.length = seconds_of(args.length, "--for") if args.length else 0
        self.rules, self.keep_going = args.rules, args.keep_going
        if not 1 <= self.rules <= RULES_MAX:
            raise UsageError("torture --rules %d: 1 to %d" % (self.rules, RULES_MAX))
        folder.require()
        self.peer = args.peer or self._other(folder)
        for name in (self.vm, self.peer):
            vm = folder.running(name)
            if vm["driver"] != "staghorn":
                raise UsageError("%s has no Staghorn adapter" % name)
        if self.peer == self.vm:
            raise UsageError("torture: %s cannot be its own peer" % self.vm)

    def _other(self, folder):
        for name, vm in folder.data["vms"].items():
            if name != self.vm and vm["driver"] == "staghorn":
                return name
        raise UsageError("torture needs a second VM with a Staghorn adapter")

    def draw(self, seed):
        """The request for the rules of a round."""
        return "draw seed=%d rules=%d within=%ds" % (seed, self.rules, self.within)

    def replay(self, seed):
        """The command that has this round again."""
        words = ["./staghorn"] + (["--lab", self.lab] if self.lab != "lab" else [])
        words += ["torture", self.vm, "--seed", str(seed)]
        words += ["--rules", str(self.rules)] if self.rules != RULES else []
        words += ["--within", "%ds" % self.within] if self.within != WITHIN else []
        return " ".join([*words, "--peer", self.peer])


def kind_of(error):
    """The kind of failure of an error."""
    return "hang" if error.status == errors.TIMEOUT else "machine"


class Job(threading.Thread):
    """A script in a VM, run by a thread that does not keep the launcher from ending."""

    def __init__(self, folder, vm, script, limit):
        super().__init__(daemon=True)
        self.call = (folder, vm, ["sh", "-c", script], None, limit)
        self.vm, self.output, self.error = vm, "", None
        self.start()

    def run(self):
        try:
            _, self.output, _ = agent.capture(*self.call)
        except LabError as error:
            self.error = error

    def failure(self):
        """(kind, text) if the script did not end by itself, else None."""
        self.join()
        if not self.error:
            return None
        return kind_of(self.error), "%s: %s" % (self.vm, self.error)


class Torture:
    """All rounds on one lab."""

    def __init__(self, folder, plan, say):
        self.folder, self.plan, self.say = folder, plan, say
        self.patience = options.patience(folder.data)
        here, there = (folder.data["vms"][vm]["addr"] for vm in (plan.vm, plan.peer))
        self.victim = Guest(folder, plan.vm, 0, here, there)
        self.peer = Guest(folder, plan.peer, 1, there, here)
        self.guests = (self.victim, self.peer)
        self.consumer = self.peer.serve()
        self.rounds = []

    def rule(self, text):
        """Sets the rules of the adapter; returns what the old ones did."""
        state = faults.exchange(self.folder, self.plan.vm, text)
        return [{key: one[key] for key in ("rule", "seen", "applied")} for one in state["rules"]]

    def go(self):
        """Rounds until the time is over or one has failed; returns whether none has."""
        self.victim.reload()
        begin, seed = time.monotonic(), self.plan.seed
        while True:
            found = self.round(seed)
            self.rounds.append(found)
            self.say(torture_judge.line_of(len(self.rounds), found))
            if found["failures"] and not self.going_on(found):
                break
            if time.monotonic() - begin >= self.plan.length:
                break
            seed = (seed + 1) % (1 << 64)
        return not any(found["failures"] for found in self.rounds)

    def going_on(self, found):
        """After a failure: if the user wants it, and the machines can."""
        fatal = {"machine", "hang", "kernel"}
        return self.plan.keep_going and not any(one["kind"] in fatal for one in found["failures"])

    def round(self, seed):
        """One round, as an object for the report."""
        found = {"seed": seed, "rules": [], "losses": 0, "recovered_s": None, "failures": []}
        try:
            self._work(seed, found)
            if all(failure["kind"] == "data" for failure in found["failures"]):
                self._demand(found)
                self.victim.reload()  # complains about what the driver has left
        except LabError as error:
            self._fail(found, kind_of(error), error.text() + "\n" + self.victim.blocked())
        try:
            self._judge_logs(found)
        except LabError as error:
            self._fail(found, kind_of(error), error.text())
        for failure in found["failures"]:
            failure["replay"] = self.plan.replay(seed)
        return found

    @staticmethod
    def _fail(found, kind, text):
        found["failures"].append({"kind": kind, "text": text})

    def _work(self, seed, found):
        """The programs, under the faults."""
        for guest in self.guests:
            guest.mark(seed)
        self.before = [guest.resources() for guest in self.guests]
        if self.consumer == "nfs":
            self.victim.connect()
        length = self.plan.within + REST
        limit = (length + LIMIT) * self.patience
        self.rule(self.plan.draw(seed))
        try:
            jobs = [
                Job(self.folder, self.plan.peer, self.peer.work_script(length), limit),
                Job(
                    self.folder, self.plan.vm, self.victim.work_script(length, self.consumer), limit
                ),
            ]
            time.sleep(length)
        finally:
            found["rules"] = self.rule("")
        if torture_judge.is_mute(found["rules"]):
            self.victim.reset()
        for job in jobs:
            failure = job.failure()
            if failure:
                self._fail(found, *failure)
                found["failures"][-1]["text"] += "\n" + self.victim.blocked()
            for line in torture_judge.corruptions(job.output):
                self._fail(found, "data", line)

    def _demand(self, found):
        """What has to be when the faults are over."""
        began = time.monotonic()
        if self._recovers():
            found["recovered_s"] = round(time.monotonic() - began, 1)
            self._judge_left(found)
        elif torture_judge.given_up(self.victim.log()):
            found["given_up"] = True  # the manual promises no more attempts
            self.victim.reload()
            if not self._recovers():
                self._fail(found, "recovery", self._trouble("the driver was loaded again"))
        else:
            self._fail(found, "recovery", self._trouble("the faults"))

    def _recovers(self):
        deadline = time.monotonic() + LIMIT * self.patience
        while why := self.victim.trouble(self.peer, self.consumer):
            if time.monotonic() > deadline:
                self.why = why
                return False
            time.sleep(1)
        return True

    def _trouble(self, what):
        """The text of a failure to recover."""
        text = "RDMA does not work %d s after %s: %s" % (LIMIT * self.patience, what, self.why)
        return "%s\n%s" % (text, self.victim.blocked())

    def _judge_left(self, found):
        deadline = time.monotonic() + LEFT_LIMIT * self.patience
        for guest, before in zip(self.guests, self.before):
            while (left := torture_judge.left(before, guest.resources())) and (
                time.monotonic() < deadline
            ):
                time.sleep(1)
            if left:
                self._fail(found, "leak", "%s: objects are left: %s" % (guest.name, left))

    def _judge_logs(self, found):
        for guest in self.guests:
            text = guest.log()
            if guest is self.victim:
                found["losses"] = torture_judge.losses(text)
            for report in torture_judge.reports(text):
                self._fail(found, "kernel", "%s: %s" % (guest.name, report))

    def finish(self):
        """The server ends; returns failures: leaked memory."""
        found = []
        try:
            self.peer.stop_serving()
            for guest in self.guests:
                leak = guest.leaks()
                if leak:
                    found.append({"kind": "memory", "text": "%s: %s" % (guest.name, leak)})
        except LabError as error:
            found.append({"kind": kind_of(error), "text": error.text()})
        return found


def write(path, text):
    """Writes the file of --json."""
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise UsageError("torture --json %s: %s" % (path, error.strerror))


def run(folder, args, say):
    """The verb; returns the exit status."""
    plan = Plan(folder, args)
    if args.json:
        write(args.json, "")
    torture = Torture(folder, plan, say)
    say("torture of %s, peer %s, kernel consumer: %s" % (plan.vm, plan.peer, torture.consumer))
    began = time.monotonic()
    try:
        good = torture.go()
    except BaseException:
        with contextlib.suppress(LabError):
            torture.rule("")
        raise
    leaked = torture.finish() if good or plan.keep_going else []
    result = {
        "vm": plan.vm,
        "peer": plan.peer,
        "consumer": torture.consumer,
        "seconds": round(time.monotonic() - began, 1),
        "rounds": torture.rounds,
        "memory": leaked,
    }
    print(errors.spoken(torture_judge.text_of(result)), flush=True)
    if args.json:
        write(args.json, json.dumps(result, indent=1) + "\n")
    return 0 if good and not leaked else errors.FAILED
