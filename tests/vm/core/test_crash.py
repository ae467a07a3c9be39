# SPDX-License-Identifier: GPL-2.0-or-later
"""The crash laboratory: recordings of right and of wrong programs, explored on all platforms.
# timeout: 900

Each program of tests/guest-programs/crash is recorded once, in unmodified guests.  The explorer has
to find exactly the mistakes that were made, on exactly the platforms on which the contract
(docs/persistence.md) lets them lose data.
"""
import itertools
import json
import re
import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import labtest
import programs

RECORDS = 10
# Methods of crash_log with a flag, recorded together: their records have places of their own.
FLAGS = ("flag", "flag-first", "inline", "one-write")
FLAGS_WRONG = ("flag-first", "one-write")
FLAGS_START, FLAGS_RECORDS = 100, 4
ALL = frozenset(
    "%s,ddio=%s" % each for each in itertools.product(("adr", "eadr", "whole"), ("on", "off"))
)
NOWHERE = frozenset()
CACHED = frozenset(("adr,ddio=on",))  # DMA that DDIO left in the cache
ADR = frozenset(("adr,ddio=on", "adr,ddio=off"))
BUFFERED = ADR | {"eadr,ddio=on", "eadr,ddio=off"}
FENCE = "a fence of its processor"
FLUSH = "a flush of its cache line, and a fence behind it"
OTHER_FLUSH = "an RDMA Flush of it, or a flush of its cache line"
UNFLUSHED = "an RDMA Flush of it by the same queue pair"
# The placement may be later than the requester's completion.
LATE = "its placement: the promise was given before"
# Method: platforms on which promises are broken, what may be missing, whose store is lost.
REMOTE = {
    "flush": (NOWHERE, None, None),
    "completion": (ALL, (UNFLUSHED, LATE), "an RDMA Write"),
    "wrong-range": (CACHED, (OTHER_FLUSH,), "an RDMA Write"),
    "other-qp": (ALL, (UNFLUSHED,), "an RDMA Write"),
    "persist": (NOWHERE, None, None),
    "visible": (CACHED, (OTHER_FLUSH,), "an RDMA Write"),
    "poll": (ALL, (UNFLUSHED,), "an RDMA Write"),
    "flag": (NOWHERE, None, None),
    "flag-dirty": (ADR, (FLUSH,), "raise_flag"),
    "flag-early": (ADR, (FLUSH,), "raise_flag"),
    "inline": (NOWHERE, None, None),
    "inline-dirty": (ADR, (FLUSH,), "raise_flag"),
    "inline-early": (ADR, (FLUSH,), "raise_flag"),
}
LOCAL = {
    "right": (NOWHERE, None, None),
    "no-flush": (ADR, (FLUSH,), "store_value"),
    "no-fence": (BUFFERED, (FENCE,), "store_key"),
    "nt": (NOWHERE, None, None),
    "nt-no-fence": (BUFFERED, (FENCE,), "_mm_stream"),
}
# librpma: a flush to visibility leaves the data where a message would.
LIBRARY = {
    "persistent": (NOWHERE, None, None),
    "visibility": (CACHED, (OTHER_FLUSH,), "an RDMA Write"),
    "write": (ALL, (UNFLUSHED, LATE), "an RDMA Write"),
}

# One of each kind of writer without a mistake, and one or two with; make check runs these.
SHORT = (
    *(("record_remote", name) for name in ("flush", "wrong-range", "flag-dirty")),
    ("record_library", "persistent"),
    *(("record_local", name) for name in ("right", "no-fence")),
)


class Crash(labtest.LabCase):
    up_arguments = ("--pmem", "beta:64M,domain=adr")
    sessions = iter(range(1, 1000))
    installed = False

    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory(prefix="sg-crash-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name) / "recording"
        if not Crash.installed:
            programs.install(self.lab, "alpha", "crash_log", "crash_rpma")
            programs.install(self.lab, "beta", "crash_server", "crash_hash", "rpma_server")
            Crash.installed = True

    def record_remote(self, method):
        server = ["crash_server", programs.ADDRESS["beta"], programs.DAX]
        if method == "other-qp":
            server.append("2")
        client = "crash_log %s %s %d %d" % (
            *(programs.ADDRESS["beta"], method, RECORDS, next(self.sessions)),
        )
        self.record_pair(server, client)

    def record_pair(self, server, client):
        # The server may not listen yet.
        call = "for i in 1 2 3 4 5 6 7 8 9; do %s && exit; sleep 0.3; done; exit 1" % client
        self.lab.run(
            *("crash", "record", "--output", self.folder),
            *("--", "beta", *server),
            *("--", "alpha", "sh", "-c", call),
            timeout=120,
        )

    def record_flags(self):
        """One client after the other."""
        server = "for i in %s; do crash_server %s %s || exit; done" % (
            *(" ".join(FLAGS), programs.ADDRESS["beta"], programs.DAX),
        )
        clients = [
            "for i in 1 2 3 4 5 6 7 8 9; do crash_log %s %s %d %d %d && break; sleep 0.3; done"
            % (programs.ADDRESS["beta"], method, FLAGS_RECORDS, next(self.sessions), first)
            for method, first in zip(FLAGS, itertools.count(FLAGS_START, FLAGS_RECORDS))
        ]
        self.lab.run(
            *("crash", "record", "--output", self.folder),
            *("--", "beta", "sh", "-c", server),
            *("--", "alpha", "sh", "-c", " && ".join(clients)),
            timeout=120,
        )

    def record_library(self, method):
        client = "crash_rpma %s %s %d %d" % (
            *(programs.ADDRESS["beta"], method, RECORDS, next(self.sessions)),
        )
        self.record_pair(["rpma_server", programs.ADDRESS["beta"], programs.DAX], client)

    def record_local(self, method):
        words = ["crash_hash", programs.DAX, method, RECORDS, next(self.sessions)]
        self.lab.run(
            *("crash", "record", "--output", self.folder, "--", "beta", *words), timeout=120
        )

    def explore(self, *options, status):
        found = self.lab.run(
            "crash", "explore", "--json", *options, self.folder, status=status, timeout=120
        )
        return json.loads(found.out) if found.out.strip() else None

    def judge(self, expected, *symbols):
        """Explores, and compares the result with the expected platforms and explanation."""
        where, missing, who = expected
        options = [word for name in symbols for word in ("--symbols", self.program(name))]
        result = self.explore(*options, "--target", "beta", status=1 if where else 0)
        broken = {
            each["platform"]
            for each in result["platforms"]
            if each["claimed"] and sum(each["broken"].values())
        }
        self.assertEqual(broken, set(where), json.dumps(result["bugs"], indent=1))
        self.assertGreaterEqual(result["promises"]["promises"], RECORDS)
        if where:
            texts = [
                (bug["issuer"]["text"], each["missing"])
                for bug in result["bugs"]
                for each in bug["platforms"]
            ]
            good = [1 for text, gap in texts if who in text and gap.startswith(missing)]
            self.assertTrue(good, texts)
        self.results(result)

    def results(self, result):
        """The files of an exploration belong together."""
        out = self.folder / "explored"
        page = (out / "report.html").read_text()
        self.assertEqual(page.count("<h3>Bug "), len(result["bugs"]))
        self.assertNotIn("src=", page)
        suite = ElementTree.parse(out / "junit.xml").getroot()
        self.assertEqual(int(suite.get("failures")) > 0, bool(result["bugs"]))

    @staticmethod
    def program(name):
        return Path(programs.FOLDER).joinpath(name).resolve()

    def test_nothing_promised(self):
        """Without an acknowledgement there is no verdict."""
        self.lab.run(
            *("crash", "record", "--output", self.folder, "--", "beta"),
            *("dd", "if=/dev/zero", "of=/tmp/file", "bs=4096", "count=1"),
            timeout=120,
        )
        self.explore("--target", "beta", status=4)

    @labtest.long
    def test_flags(self):
        """A flag that may be durable before its record misleads who trusts it: a checker does."""
        self.record_flags()
        words = ("--target", "beta", "--domain", "adr", "--ddio", "on", "--strategy", "all-but")
        result = self.explore(*words, status=0)
        self.assertGreaterEqual(result["promises"]["promises"], len(FLAGS) * FLAGS_RECORDS)
        self.lab.run(
            *("crash", "check", "--vm-arg", "--timeout %d" % labtest.UP_LIMIT, "--no-reduce"),
            *("--copy", "%s:/usr/bin/crash_flags" % self.program("crash_flags")),
            *("--script", "crash_flags %s %d" % (programs.DAX, FLAGS_START)),
            self.folder / "explored",
            status=1,
            timeout=300,
        )
        text = (self.folder / "explored" / "verdicts.jsonl").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual({one["verdict"] for one in lines}, {"good", "bug"})
        broken = {int(n) for one in lines for n in re.findall(r"record (\d+) is", one["output"])}
        found = {FLAGS[(n - FLAGS_START) // FLAGS_RECORDS] for n in broken}
        self.assertEqual(found, set(FLAGS_WRONG), broken)

    @labtest.long
    def test_library_images(self):
        """No image lacks a record that librpma's flush to persistence acknowledged."""
        self.library_images("persistent", 0)

    @labtest.long
    def test_library_images__wrong(self):
        """Images lack records that a flush to visibility acknowledged."""
        self.library_images("visibility", 1)

    def library_images(self, method, status):
        self.record_library(method)
        seed = next(self.sessions) - 1
        words = ("--target", "beta", "--domain", "adr", "--ddio", "on", "--strategy", "all-but")
        self.explore(*words, status=status)
        count = "$(grep -c ^acknowledged /run/crash/promises)"
        script = "crash_rpma %s check %s %d" % (programs.DAX, count, seed)
        found = self.lab.run(
            *("crash", "check", "--vm-arg", "--timeout %d" % labtest.UP_LIMIT, "--json"),
            *("--no-reduce", "--promises", "--limit", 60, "--script", script),
            *("--copy", "%s:/usr/bin/crash_rpma" % self.program("crash_rpma")),
            self.folder / "explored",
            status=status,
            timeout=300,
        )
        found = json.loads(found.out)
        self.assertGreater(found["verdicts"]["good"], 0)
        self.assertEqual(set(found["verdicts"]), {"good", "bug"} if status else {"good"})
        for bug in found["bugs"]:
            self.assertEqual(bug["status"], 1)
            self.assertTrue(all(text.startswith("place") for text in bug["cause"]), bug)

    @labtest.long
    def test_same_twice(self):
        """Two explorations of a recording have the same result, and images if wanted."""
        self.record_local("no-flush")
        options = ("--target", "beta", "--strategy", "only,all-but,random:5:7")
        first = self.explore(*options, "--output", self.folder / "a", status=1)
        second = self.explore(*options, "--output", self.folder / "b", status=1)
        self.assertEqual(first, second)
        self.assertGreater(first["images"], RECORDS)
        names = [
            sorted(path.name for path in (self.folder / each / "images").iterdir()) for each in "ab"
        ]
        self.assertEqual(names[0], names[1])
        self.assertEqual(len(names[0]), first["images"])

    def test_replays(self):
        """The trace of a right program replays to the media that its VM left."""
        self.record_remote("flush")
        done = subprocess.run(
            [programs.BUILD + "/native/tests/trace_replay", str(self.folder / "beta.trace")],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def _add(name, record, expected, *symbols):
    def run(self):
        getattr(self, record)(name)
        self.judge(expected, *symbols)

    where = "nowhere" if not expected[0] else "on %d platforms" % len(expected[0])
    run.__doc__ = "%s loses what it acknowledged %s." % (name, where)
    run.long = (record, name) not in SHORT
    setattr(Crash, "test_%s__%s" % (record[7:], name.replace("-", "_")), run)


for _name, _expected in REMOTE.items():
    _add(_name, "record_remote", _expected, "crash_server")
for _name, _expected in LIBRARY.items():
    _add(_name, "record_library", _expected, "rpma_server")
for _name, _expected in LOCAL.items():
    _add(_name, "record_local", _expected, "crash_hash")


if __name__ == "__main__":
    labtest.main()
