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
# alpha judges, and asks beta.
SERVER = ("--checker-vm", "alpha", "--peer-script", NOTES + "serve")
SERVER += ("--script", NOTES + "ask $CRASH_PEER")
FEW, MANY = ("--limit", "24"), ("--limit", "60")
LIMIT = 600  # seconds of a check, on a busy machine


class CrashBoth(labtest.LabCase):
    up_arguments = ("--pmem", "alpha:32M,domain=adr", "--pmem", "beta:32M,domain=adr")
    checked = []  # what wrong() returns

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = Path(tempfile.mkdtemp(prefix="sg-both-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        programs.install(cls.lab, "alpha", "crash_log")
        programs.install(cls.lab, "beta", "crash_server")

    def record(self, method):
        """A copy of a recording, which is made when it is wanted first.  Each method has records
        and notes of its own."""
        if not (self.place / method).exists():
            self.make(method)
        out = Path(tempfile.mkdtemp(prefix=method, dir=self.place))
        shutil.copytree(self.place / method, out, dirs_exist_ok=True)
        return out

    def make(self, method):
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

    def check(self, recording, *options, status):
        """A check of pairs; returns its result."""
        program = Path(programs.FOLDER).joinpath("crash_notes").resolve()
        words = ("--together", "--vm", "alpha", "--vm", "beta", "--platform", "adr,ddio=on")
        words += ("--copy", "%s:/usr/bin/crash_notes" % program)
        return self.judge(recording, *words, *options, status=status)

    def judge(self, what, *options, status):
        """What crash check says of a recording, or of a kept bug."""
        words = ("crash", "check", *VM, "--json", *options, what)
        found = self.lab.run(*words, status=status, timeout=LIMIT)
        folder = Path(self.lab.state) / "labs"
        self.assertEqual([p.name for p in folder.glob("check-*")] if folder.exists() else [], [])
        return json.loads(found.out)

    @labtest.long
    def test_right(self):
        """Notes behind the Flush: all pairs are good, with a script in both VMs"""
        recording = self.record("noted")
        words = (*FEW, "--script", BOTH)
        found = self.check(recording, *words, status=0)
        self.assertEqual(found["verdict"], "good")
        self.assertEqual(found["verdicts"], {"good": found["pairs"]})
        self.assertGreater(found["pairs"], 2 * RECORDS)
        (platform,) = (x for x in found["explored"]["platforms"] if x["platform"] == "adr,ddio=on")
        self.assertGreater(int(platform["cuts"]), platform["point-pairs"])
        self.assertEqual(platform["intervals-alone"], 0)
        # The same command checks nothing again.
        self.assertEqual(self.check(recording, *words, status=0), found)

    def wrong(self):
        """(recording, result) of a check of notes before the Write, made once for all cases."""
        if not self.checked:
            recording = self.record("noted-first")
            self.checked.append((recording, self.check(recording, *SERVER, *MANY, status=1)))
        return self.checked[0]

    def test_wrong(self):
        """Notes before the Write: a record is missing, as the script of one VM finds"""
        recording, found = self.wrong()
        self.assertGreater(found["verdicts"]["good"], 0)
        self.assertEqual({bug["verdict"] for bug in found["bugs"]}, {"bug"})
        for bug in found["bugs"]:
            self.assertIn("missing 1", bug["example"]["output"])
        # Both that a record was lost, and that it was not sent yet, is found.
        self.assertEqual({self.is_minimal(bug) for bug in found["bugs"]}, {0, 1})
        place = recording / "together-alpha-beta"
        self.assertIn("alpha and beta", (place / "report.html").read_text())
        self.assertIn("<failure", (place / "check-junit.xml").read_text())

    def is_minimal(self, bug):
        """Of what was lost beta's loss of the record is needed, and nothing else.  Where nothing
        was lost, the record had not been sent yet."""
        if not any(bug["example"]["deviations"]):
            self.assertEqual((bug["cause"], bug["minimal"]), (["nothing is lost"], None))
            return 0
        small = bug["minimal"]
        self.assertEqual(small["behind"], bug["example"]["behind"])
        self.assertEqual((small["deviations"][0], small["lost"][0]), ([], []))
        self.assertGreater(len(small["lost"][1]), 0)
        # The record was sent, and nothing flushed it before the power failed.
        rows = [(each["machine"], x) for each in bug["timelines"] for x in each["timeline"]]
        self.assertEqual({name for name, _ in rows}, {"beta"})
        said = [(step["machine"], step["what"]) for _, step in rows]
        self.assertIn(("alpha", "the request is sent"), said)
        self.assertTrue(any(x.get("power-fails") for _, x in rows), rows)
        self.assertEqual({cause.split(":")[0] for cause in bug["cause"]}, {"beta"})
        return 1

    def comparable(self, place):
        """A result without the folder's name, and without what a server printed before it was put
        back."""
        found = json.loads((place / "check.json").read_text())
        for bug in found["bugs"]:
            del bug["again"], bug["example"]["output"]
        return found

    @labtest.long
    def test_shards(self):
        """Two shards are one check; a kept bug is judged again, without the recording"""
        whole, parts = Path(tempfile.mkdtemp(dir=self.place)), self.record("noted-first")
        shutil.copytree(self.wrong()[0], whole, dirs_exist_ok=True)
        # What the copy's pairs are is known; without minimal examples it is as parts are.
        (whole / "together-alpha-beta" / "minimal.json").unlink()
        words = (*SERVER, *MANY, "--no-reduce")
        found = self.check(whole, *words, status=1)
        for shard in ("1/2", "2/2"):
            self.check(parts, *words, "--repeat", "1", "--shard", shard, status=1)
        places = [folder / "together-alpha-beta" for folder in (whole, parts)]
        self.assertFalse((places[1] / "check.json").exists())
        self.lab.run("crash", "merge", places[1], places[1], status=1)
        self.assertEqual(*map(self.comparable, places))
        # What is merged gets minimal examples, and no check of a pair that was judged.
        small = self.check(parts, *words[:-1], status=1)
        self.assertEqual(small["verdicts"], found["verdicts"])
        kept = self.place / "kept"
        self.lab.run("crash", "keep", places[1], "--bug", "1", "--output", kept)
        shutil.rmtree(parts)
        self.assertEqual(self.judge(kept, status=1)["text"], "the bug is there")
        script = ("--script", NOTES + "ask $CRASH_PEER || :")
        self.assertIn("the bug is gone", self.judge(kept, *script, status=0)["text"])


if __name__ == "__main__":
    labtest.main()
