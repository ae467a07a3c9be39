# SPDX-License-Identifier: GPL-2.0-or-later
"""Crash images are judged by a checker, a shell script in a VM: the verbs crash check and merge.

A folder EXPLORED has what `crash explore --strategy` wrote; a check adds the journal, the folder
checker/ (what judged: its script, setup and programs), and the results.
"""
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from pathlib import Path

from . import explore, verdicts
from .check_lab import CheckLab
from .check_run import Run
from .errors import LabError, UsageError
from .explored import load, platforms_of, promise_line

GOOD, BUGS, NO_VERDICT = explore.GOOD, explore.BUGS, explore.NO_VERDICT
FOLDER, FILE, SELECTION = "checker", "checker.json", "selection.json"
VERDICTS, JOURNALS = "verdicts.jsonl", "verdicts*.jsonl"
TEXT_MAX = 1 << 20  # octets of a script
COPIES_MAX, COPY_MAX = 64, 1 << 30


def read_text(path, option):
    """The text of a file that an option names."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError("%s %s: %s" % (option, path, error.strerror))
    if len(text) > TEXT_MAX:
        raise UsageError("%s %s is longer than 1 MiB" % (option, path))
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise UsageError("%s %s is no text" % (option, path))


def _digest(path):
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            found.update(part)
    return found.hexdigest()


def copies_of(items):
    """["FILE:PATH"] to [(file, path)]."""
    found = []
    for item in items:
        file, colon, path = item.rpartition(":")
        if not colon or not file or not path.startswith("/"):
            raise UsageError("--copy %s is not FILE:/PATH" % item)
        if not os.path.isfile(file):
            raise UsageError("--copy %s: there is no file %s" % (item, file))
        if os.path.getsize(file) > COPY_MAX:
            raise UsageError("--copy %s: it is longer than 1 GiB" % item)
        found.append((os.path.abspath(file), path))
    if len(found) > COPIES_MAX:
        raise UsageError("more than %d --copy" % COPIES_MAX)
    return found


class Checker:
    """What judges an image.  Two checks belong together if their checkers have one identity."""

    def __init__(self, script, setup="", copies=(), **settings):
        self.script, self.setup, self.copies = script, setup, list(copies)
        self.timeout = settings.get("timeout") or 10.0
        self.memory = settings.get("memory") or "1G"
        self.cpus = settings.get("cpus") or 1
        self.vm_arguments = list(settings.get("vm_arguments") or ())
        for line in script.split("\n"):
            if line in ("#.", "#:"):
                raise UsageError("a script for a checker has no lines #. and #:")

    def settings(self):
        """Its JSON; copied programs by their contents."""
        return {
            "version": 1,
            "script": self.script,
            "setup": self.setup,
            "copies": [
                {"path": path, "sha256": _digest(file), "mode": os.stat(file).st_mode & 0o777}
                for file, path in self.copies
            ],
            "timeout": self.timeout,
            "memory": self.memory,
            "cpus": self.cpus,
            "vm-arguments": self.vm_arguments,
        }

    def identity(self, explored):
        """16 digits: of the checker and of the run that it judges."""
        text = json.dumps([self.settings(), explored.run, [x[:4] for x in explored.extents]])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def save(self, folder):
        """Writes the checker with its programs to a folder, for `crash keep` and `crash merge`."""
        folder.mkdir(exist_ok=True)
        found = self.settings()
        for (file, _), one in zip(self.copies, found["copies"]):
            target = _place(folder, one)
            if not target.exists():  # several shards may do this at once
                new = "%s.%s.new" % (target, secrets.token_hex(4))
                shutil.copy(file, new)
                os.replace(new, target)
        explore.write(folder / FILE, json.dumps(found, indent=1) + "\n")


def _place(folder, one):
    """The file of a saved program, by its content and mode."""
    if not re.match(r"[0-9a-f]{64}\Z", one["sha256"]) or not 0 <= one["mode"] <= 0o777:
        raise KeyError("sha256")
    return Path(folder) / ("%s-%o" % (one["sha256"], one["mode"]))


def restored(found, copies):
    """The Checker of its settings(), whose copied programs are these."""
    return Checker(
        found["script"],
        found["setup"],
        copies,
        timeout=found["timeout"],
        memory=found["memory"],
        cpus=found["cpus"],
        vm_arguments=found["vm-arguments"],
    )


def saved(folder, restore=restored):
    """The Checker that save() wrote, or None.  restore: makes it of its settings."""
    found = load(Path(folder) / FILE, "crash check")
    if found is None:
        return None
    try:
        return restore(found, [(_place(folder, one), one["path"]) for one in found["copies"]])
    except (KeyError, TypeError):
        raise LabError("%s is not what crash check writes" % (Path(folder) / FILE))


def texts_of(args):
    """(script, setup) of the options; None for one that is not given."""
    found = []
    for name in ("script", "setup"):
        text, file = getattr(args, name), getattr(args, name + "_file")
        if text is not None and file is not None:
            raise UsageError("crash check: --%s and --%s-file exclude each other" % (name, name))
        found.append(read_text(file, "--%s-file" % name) if file is not None else text)
    if found[0] is not None and not found[0].strip():
        raise UsageError("crash check: the script is empty")
    return found


def checker_of(args, explored):
    """The Checker that the options describe."""
    script, setup = texts_of(args)
    if script is None:
        raise UsageError(
            "crash check: give the checker with --script or --script-file",
            "It is a shell script that runs in a VM; status 0 means that the image is good, as in\n"
            "  ./staghorn crash check --script 'mount /dev/pmem0 /mnt && my-fsck /mnt' %s"
            % args.explored,
        )
    recorded = explored.result.get("recording")
    recorded = recorded.get("memory") if isinstance(recorded, dict) else None
    return Checker(
        script,
        setup or "",
        copies_of(args.copy),
        timeout=args.timeout,
        memory=args.memory or recorded,
        cpus=args.cpus,
        vm_arguments=args.vm_arg,
    )


# -- what is checked


def platforms_named(texts):
    """The platforms that --platform names, each once."""
    return list(dict.fromkeys(name for text in texts for name in platforms_of(text)))


class Selection:
    """The units of a check: those of all shards (units), those of this one (mine), and the
    platforms."""

    def __init__(self, explored, platform, promises, limit, shard):
        self.explored, self.promises, self.limit = explored, promises, limit
        self.nested = None  # recoveries.Settings
        self.shard = verdicts.shard_of(shard) if shard else None
        self.take(platforms_named(platform) or explored.claimed())

    def take(self, platforms):
        """Selects the units of these platforms."""
        self.platforms = platforms
        self.choose(self.explored.units(platforms, self.promises, self.limit))

    def choose(self, units):
        """Selects these units of all shards."""
        self.units = units
        self.mine = [u for u in units if not self.shard or verdicts.in_shard(u.image, self.shard)]

    def settings(self):
        return {"platforms": self.platforms, "promises": self.promises, "limit": self.limit}

    def save(self, folder, marks):
        """What `crash merge` has to know."""
        found = {"version": 1, **self.settings(), "marks": marks and marks.settings()}
        found["nested"] = self.nested and self.nested._asdict()
        explore.write(folder / SELECTION, json.dumps(found, indent=1) + "\n")

    def journal(self):
        """The name of its file of verdicts."""
        return "verdicts-%d-of-%d.jsonl" % self.shard if self.shard else VERDICTS


def left(units, done):
    """The units without a verdict."""
    return [unit for unit in units if is_left(key(unit), done)]


def is_left(name, done):
    """Whether a journal has no verdict about what it calls so."""
    return done.get(name, {"verdict": "failed"})["verdict"] == "failed"


def key(unit):
    """What the journal calls the unit."""
    return verdicts.key_of({"image": unit.image, "promises": unit.promises})


def require_same(done, identity, path):
    """A journal goes on only with the same checker."""
    if any(one.get("check") != identity for one in done.values()):
        raise UsageError(
            "%s has verdicts of another checker or run" % path,
            "Take another file with --journal, or remove this one",
        )


def known(paths, identity):
    """{key: verdict} of journals that belong to one check, as far as they are there."""
    found = {}
    for path in paths:
        lines = verdicts.read(path)
        require_same(lines, identity, path)
        for name, one in lines.items():
            found[name] = verdicts.joined(found.get(name), one)
    return found


class Judges:
    """The lab of a command, which begins when it is needed; use with `with`."""

    def __init__(self, explored, checker, platform, jobs, say, reads=False):
        self.explored, self.checker, self.platform = explored, checker, platform
        self.jobs, self.say, self.reads = jobs, say, reads
        self._lab = None

    def make(self):
        """The lab, which has not begun."""
        one = self.explored.extents, self.platform, self.checker
        return CheckLab(*one, self.jobs, self.say, self.reads)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._lab:
            self._lab.__exit__(*error)

    def get(self):
        if not self._lab:
            self._lab = self.make().__enter__()
        return self._lab

    def renew(self):
        """The next lab begins anew."""
        self.__exit__()
        self._lab = None


def check(explored, checker, selection, marks, options, say, judges=None, lines=None, more=None):
    """Checks what the journal does not have; returns {key: verdict} of this shard.

    marks: compare.Marks or None; options: journal, jobs, repeat; judges: Judges that are there
    already; lines: what the checks read joins this Lines; more: members of the journal's lines."""
    identity = checker.identity(explored)
    checker.save(explored.folder / FOLDER)
    selection.save(explored.folder / FOLDER, marks)
    promises = [promise_line(each) for each in explored.promises()] if selection.promises else []
    path = Path(options.journal or explored.folder / selection.journal())
    units = {key(unit): unit for unit in selection.mine + (marks.units() if marks else [])}
    with verdicts.Journal(path) as journal:
        require_same(journal.done, identity, path)
        todo = left(units.values(), journal.done)
        again = marks.doubtful(selection.mine, journal.done) if marks and not todo else []
        if not todo and not again:
            return dict(journal.done)
        with contextlib.ExitStack() as stack:
            judges = judges or stack.enter_context(
                Judges(explored, checker, selection.platforms[0], options.jobs, say)
            )
            judge, rest = judges.get(), (checker.timeout, options.repeat, identity, lines, more)
            run = Run(judge, explored, promises, *rest)
            run.run(todo, journal, say, len(units))
            again = marks.doubtful(selection.mine, journal.done) if marks else []
            if again:
                say("%d images are of a wrong state: they are checked again" % len(again))
                run.run(again, journal, say, before=dict(journal.done))
        return dict(journal.done)
