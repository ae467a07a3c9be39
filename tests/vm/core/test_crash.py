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

import crashfiles
import labtest
import programs
from crashfiles import ADR, ALL, BUFFERED, CACHED, NOWHERE

RECORDS = 10
# The cause of a bug that lost what alpha has placed in beta's memory.
BY_ALPHA = r"the (RDMA Write|Send) of alpha, in QP \d+\Z"
# Methods of crash_log with a flag, recorded together: their records have places of their own.
FLAGS = ("flag", "flag-first", "inline", "one-write")
FLAGS_START, FLAGS_RECORDS = 100, 2
# Notes in alpha's own memory: method, and its first record.  The session is an octet of each note.
NOTED = 4  # records
NOTES, NOTES_SESSION, NOTES_LINE = {"noted": 0, "noted-dirty": NOTED}, ord("N"), 64
# The data of a record may be lost while its flag is kept.
FLAGS_WRONG = {"flag-first": CACHED, "one-write": CACHED}
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
    # As in test_crash_both, so they have one boot snapshot.
    up_arguments = ("--pmem", "alpha:32M,domain=adr", "--pmem", "beta:32M,domain=adr")
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
            "crash", "explore", "--json", *options, self.folder, status=status, timeout=300
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
        words = ("--target", "beta", "--domain", crashfiles.CLAIMED, "--strategy", "all-but")
        result = self.explore(*words, status=0)
        self.assertGreaterEqual(result["promises"]["promises"], len(FLAGS) * FLAGS_RECORDS)
        script = "crash_flags %s %d" % (programs.DAX, FLAGS_START)
        found = self.check("crash_flags", "--script", script, status=1)
        self.assertEqual(set(found["verdicts"]), {"good", "bug"})
        self.assertEqual(set(found["platforms"]), ALL)
        self.assertEqual(set(crashfiles.by_platform(self.folder / "explored")), ALL)
        self.assertEqual(self.misled(), FLAGS_WRONG)
        for bug in found["bugs"]:
            self.assertEqual(len(bug["example"]["deviations"]), 1, bug)
            self.assertTrue(all(re.match(BY_ALPHA, text) for text in bug["cause"]), bug["cause"])

    def misled(self):
        """{method of a flag: platforms on which it misleads}, by the verdicts."""
        images = json.loads((self.folder / "explored" / "images.json").read_text())["images"]
        found = {}
        for one in crashfiles.verdicts(self.folder / "explored"):
            where = {p for x in images if x["image"] == one["image"] for p in x["platforms"]}
            for n in re.findall(r"record (\d+) is", one["output"]):
                method = FLAGS[(int(n) - FLAGS_START) // FLAGS_RECORDS]
                found[method] = found.get(method, set()) | where
        return found

    def check(self, program, *words, status):
        """The result of a check with that program."""
        found = self.lab.run(
            *("crash", "check", "--vm-arg", "--timeout %d" % labtest.UP_LIMIT, "--no-reduce"),
            *("--copy", "%s:/usr/bin/%s" % (self.program(program), program), "--json", *words),
            self.folder / "explored",
            status=status,
            timeout=300,
        )
        return json.loads(found.out)

    def own_memory(self, method, status):
        """What is found in images of alpha's own memory, where it notes what beta keeps."""
        first = NOTES[method]
        client = "crash_log %s %s %d %d %d %s" % (
            *(programs.ADDRESS["beta"], method, NOTED, NOTES_SESSION, first, programs.DAX),
        )
        self.record_pair(["crash_server", programs.ADDRESS["beta"], programs.DAX], client)
        symbols = ("--symbols", self.program("crash_log"))
        words = ("--target", "beta", "--domain", crashfiles.CLAIMED, "--strategy", "all-but")
        self.explore(*words, *symbols, status=0)
        # The session is a letter at each note; other octets are dots.
        places = (programs.DAX, first * NOTES_LINE, NOTED * NOTES_LINE)
        script = "dax_store %s read %d %d" % places
        words = ("--vm", "alpha", "--compare", "--script", script)
        found = self.check("dax_store", *words, status=status)
        self.assertEqual((found["target"], found["compare"]), ("alpha", NOTED))
        self.assertEqual(found["verdicts"], {"good": found["images"]})
        self.assertEqual(set(found["platforms"]), ALL)
        place = self.folder / "explored/vm-alpha"
        self.assertEqual(set(crashfiles.by_platform(place)), ALL)
        digests = {one["digest"] for one in crashfiles.verdicts(place)}
        self.assertGreater(len(digests), NOTED)
        return found["bugs"]

    @labtest.long
    def test_own_memory(self):
        """Notes of the requester, in its own memory, that it flushes: all images have them"""
        self.assertEqual(self.own_memory("noted", 0), [])

    @labtest.long
    def test_own_memory__dirty(self):
        """Notes that the requester does not flush are lost where caches are"""
        bugs = self.own_memory("noted-dirty", 1)
        self.assertEqual({name for bug in bugs for name in bug["platforms"]}, ADR)
        for bug in bugs:
            self.assertEqual(bug["verdict"], "state")
            (cause,) = bug["cause"]
            self.assertIn("the store by note at crash_log.c", cause)

    @labtest.long
    def test_library_images(self):
        """No image lacks a record that librpma's flush to persistence acknowledged."""
        self.library_images("persistent", NOWHERE)

    @labtest.long
    def test_library_images__wrong(self):
        """Images lack records that a flush to visibility acknowledged."""
        self.library_images("visibility", LIBRARY["visibility"][0])

    def library_images(self, method, where):
        """The checker finds bugs on these platforms, and on no other one."""
        self.record_library(method)
        seed, status = next(self.sessions) - 1, 1 if where else 0
        words = ("--target", "beta", "--domain", crashfiles.CLAIMED, "--strategy", "all-but")
        self.explore(*words, status=status)
        count = "$(grep -c ^acknowledged /run/crash/promises)"
        script = "crash_rpma %s check %s %d" % (programs.DAX, count, seed)
        words = ("--promises", "--limit", 90, "--script", script)
        found = self.check("crash_rpma", *words, status=status)
        self.assertEqual(set(found["verdicts"]), {"good", "bug"} if status else {"good"})
        rows = crashfiles.by_platform(self.folder / "explored")
        self.assertEqual({name for name in rows if "good" in rows[name]}, ALL, rows)
        self.assertEqual({name for name in rows if "bug" in rows[name]}, set(where), rows)
        for bug in found["bugs"]:
            self.assertEqual(bug["status"], 1)
            self.assertTrue(all(re.match(BY_ALPHA, text) for text in bug["cause"]), bug["cause"])

    @labtest.long
    def test_same_twice(self):
        """Two explorations of a recording have the same result, and images if wanted."""
        self.record_local("no-flush")
        options = ("--target", "beta", "--domain", "adr", "--ddio", "on")
        options += ("--strategy", "only,all-but,random:5:7")
        first = self.explore(*options, "--output", self.folder / "a", status=1)
        second = self.explore(*options, "--output", self.folder / "b", status=1)
        # The commands that show bugs again name the folder.
        second = json.loads(
            json.dumps(second).replace(str(self.folder / "b"), str(self.folder / "a"))
        )
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
