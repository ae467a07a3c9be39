# SPDX-License-Identifier: GPL-2.0-or-later
"""One power failure of two VMs: the writer of a log notes in its own persistent memory what the
other VM keeps, and the recovery compares both over the network.
# timeout: 900

A note behind the Flush's completion is never found without its record; a note before the Write is.
Each VM alone has nothing wrong: only pairs of images show it.
"""
import json
import shutil
import tempfile
from pathlib import Path

import labtest
import programs

RECORDS = 2
METHODS = ("noted", "noted-first")
NOTES = "crash_notes %s " % programs.DAX
BOTH = "case $CRASH_VM in alpha) %sask $CRASH_PEER ;; *) %sserve ;; esac" % (NOTES, NOTES)
VM = ("--vm-arg", "--timeout %d" % labtest.UP_LIMIT)
LIMIT = 600  # seconds of a check, on a busy machine


class CrashBoth(labtest.LabCase):
    up_arguments = ("--pmem", "alpha:32M,domain=adr", "--pmem", "beta:32M,domain=adr")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = Path(tempfile.mkdtemp(prefix="sg-both-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        programs.install(cls.lab, "alpha", "crash_log")
        programs.install(cls.lab, "beta", "crash_server")

    def record(self, method):
        """The folder of a recording.  Each method has records and notes of its own."""
        number = METHODS.index(method)
        client = "crash_log %s %s %d %d %d %s" % (
            *(programs.ADDRESS["beta"], method, RECORDS, number + 1, number * RECORDS),
            programs.DAX,
        )
        # The server may not listen yet.
        call = "for i in 1 2 3 4 5 6 7 8 9; do %s && exit; sleep 0.3; done; exit 1" % client
        self.lab.run(
            *("crash", "record", "--output", self.place / method),
            *("--", "beta", "crash_server", programs.ADDRESS["beta"], programs.DAX),
            *("--", "alpha", "sh", "-c", call),
            timeout=120,
        )
        return self.place / method

    def check(self, recording, *options, status):
        """A check of pairs; returns its result."""
        program = Path(programs.FOLDER).joinpath("crash_notes").resolve()
        words = ("--together", "--vm", "alpha", "--vm", "beta", "--platform", "adr,ddio=on")
        found = self.lab.run(
            *("crash", "check", *VM, *words, "--copy", "%s:/usr/bin/crash_notes" % program),
            *("--json", *options, recording),
            status=status,
            timeout=LIMIT,
        )
        folder = Path(self.lab.state) / "labs"
        self.assertEqual([p.name for p in folder.glob("check-*")] if folder.exists() else [], [])
        return json.loads(found.out)

    @labtest.long
    def test_right(self):
        """Notes behind the Flush: all pairs are good, with a script in both VMs"""
        recording = self.record("noted")
        words = ("--limit", "60", "--script", BOTH)
        found = self.check(recording, *words, status=0)
        self.assertEqual(found["verdict"], "good")
        self.assertEqual(found["verdicts"], {"good": found["pairs"]})
        self.assertGreater(found["pairs"], 2 * RECORDS)
        (platform,) = (x for x in found["explored"]["platforms"] if x["platform"] == "adr,ddio=on")
        self.assertGreater(int(platform["cuts"]), platform["point-pairs"])
        self.assertEqual(platform["intervals-alone"], 0)
        # The same command checks nothing again.
        self.assertEqual(self.check(recording, *words, status=0), found)

    def test_wrong(self):
        """Notes before the Write: a record is missing, as the script of one VM finds"""
        recording = self.record("noted-first")
        server = ("--checker-vm", "alpha", "--peer-script", NOTES + "serve")
        found = self.check(
            *(recording, *server, "--limit", "60", "--script", NOTES + "ask $CRASH_PEER"),
            status=1,
        )
        self.assertGreater(found["verdicts"]["good"], 0)
        self.assertEqual({bug["verdict"] for bug in found["bugs"]}, {"bug"})
        for bug in found["bugs"]:
            self.assertIn("missing 1", bug["example"]["output"])
        place = recording / "together-alpha-beta"
        self.assertIn("alpha and beta", (place / "report.html").read_text())
        self.assertIn("<failure", (place / "check-junit.xml").read_text())


if __name__ == "__main__":
    labtest.main()
