# SPDX-License-Identifier: GPL-2.0-or-later
"""Crash images of right and of wrong programs, judged in VMs by the program's own check.
# timeout: 2400

The programs are recorded once, in an unmodified guest.  crash_hash finds an entry whose key is
there and whose value is not.  What is wrong with crash_mirror takes two lost lines, so only images
of what its check reads show it; what is wrong with recoveries of crash_undo takes a second cut, or
a third one.
"""
import concurrent.futures
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import crashfiles
import crashimage
import labtest
import programs

ENTRIES = 3
RECORDS, SLOTS, WRONG = 2, 32, 1  # of crash_mirror; WRONG: records at once, behind the others
MOVED = 1  # by the transfer of crash_undo that nobody records
# Folder of the recording: program, and the words behind the device.
RECORDED = {
    "right": ("crash_hash", "right", ENTRIES, 1),
    "no-flush": ("crash_hash", "no-flush", ENTRIES, 2),
    "order": ("crash_hash", "order", ENTRIES, 3),
    "mirror": ("crash_mirror", "right", RECORDS, 0),
    "at-once": ("crash_mirror", "at-once", WRONG, RECORDS),
    "undo": ("crash_undo", "transfer", 1),
}
PROGRAMS = {row[0] for row in RECORDED.values()}
SCRIPT = "crash_hash %s check" % programs.DAX
MIRROR = "crash_mirror %s check" % programs.DAX
UNDO = "crash_undo %s " % programs.DAX
DATA, AWAY = 2 << 20, 24 << 20  # of the device in its NVDIMM; of a place that no program uses
VM = ("--vm-arg", "--timeout %d" % labtest.UP_LIMIT)
AGAIN = ("--nested-depth", 2, "--limit", 8)
LIMIT = 600  # seconds of a check, on a busy machine


class CrashCheck(labtest.LabCase):
    up_arguments = ("--vms", "beta", "--driver", "none", "--cpus", "1") + (
        "--pmem",
        "beta:32M,domain=adr",
    )
    made = {}  # script to what checked() returns

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = Path(tempfile.mkdtemp(prefix="sg-check-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        programs.install(cls.lab, "beta", *PROGRAMS)

    @classmethod
    def recording(cls, name):
        """The folder of a recording.  It and those before it, whose data stay in the memory, are
        made and explored when they are wanted first."""
        for each in RECORDED:
            if not (cls.place / each).exists():
                cls.record(each)
            if each == name:
                return cls.place / each
        raise AssertionError("no recording " + name)

    @classmethod
    def record(cls, name):
        program, *more = RECORDED[name]
        words = (program, programs.DAX, *more)
        if name == "undo":  # so that no account is 0 when the recording begins
            cls.lab.sh("beta", UNDO + "transfer %d" % MOVED)
        cls.lab.run(
            *("crash", "record", "--output", cls.place / name, "--", "beta", *words), timeout=120
        )
        strategy = "all-but" if program == "crash_hash" else "only,all-but"
        cls.explore(name, strategy, cls.place / name / "explored")

    @staticmethod
    def file(script):
        """The file of the program that a script begins with."""
        return Path(programs.FOLDER).joinpath(script.split()[0]).resolve()

    @classmethod
    def explore(cls, name, strategy, output, platforms=("--domain", "adr,eadr", "--ddio", "on")):
        cls.lab.run(
            *("crash", "explore", "--strategy", strategy, *platforms),
            *("--symbols", cls.file(RECORDED[name][0]), "--output", output, cls.place / name),
            status=None,
            timeout=120,
        )

    def copy(self, name):
        """A folder of images without verdicts, beside the traces."""
        folder = self.recording(name)
        out = Path(tempfile.mkdtemp(dir=folder))
        shutil.copytree(folder / "explored", out, dirs_exist_ok=True)
        return out

    def words(self, explored, *options, script=SCRIPT):
        name = script.split()[0]
        copy = ("--copy", "%s:/usr/bin/%s" % (self.file(script), name)) if name in PROGRAMS else ()
        return ("crash", "check", *VM, *copy, "--script", script, *options, explored)

    def check(self, explored, *options, status, script=SCRIPT):
        """A check; returns its result."""
        words = self.words(explored, "--json", *options, script=script)
        found = self.lab.run(*words, status=status, timeout=LIMIT)
        self.assertEqual(self.labs(), [])
        return json.loads(found.out)

    def checked(self, name, *options, script):
        """(folder, result) of a check that finds a bug, which cases share: the first one makes it.
        The folder is there no more when test_kept_recovery has removed it."""
        if script not in self.made:
            explored = self.copy(name)
            found = self.check(explored, *options, status=1, script=script)
            self.made[script] = explored, found
        return self.made[script]

    def labs(self):
        """Labs of checks that are still there."""
        folder = Path(self.lab.state) / "labs"
        return sorted(p.name for p in folder.glob("check-*")) if folder.exists() else []

    def test_right(self):
        """All images of a right program are good, and have the state of a mark beside them"""
        found = self.check(self.copy("right"), "--compare", status=0)
        self.assertEqual(found["verdict"], "good")
        self.assertEqual(found["verdicts"], {"good": found["images"]})
        self.assertEqual(found["compare"], ENTRIES)
        self.assertGreater(found["images"], 2 * ENTRIES)

    @labtest.long
    def test_wrong_order(self):
        """A key that is durable before its value is found on all platforms, and by its state"""
        explored = self.recording("order") / "everywhere"
        self.explore("order", "all-but", explored, platforms=())
        found = self.check(explored, "--no-reduce", status=1)
        self.everywhere(found)
        # A script that forgives what is broken finds all images good: only their states are wrong.
        found = self.check(
            *(explored, "--no-reduce", "--compare", "--journal", explored / "other"),
            status=1,
            script=SCRIPT + " || :",
        )
        self.assertEqual(found["verdicts"], {"good": found["images"]})
        self.assertEqual({bug["verdict"] for bug in found["bugs"]}, {"state"})
        self.everywhere(found)

    def everywhere(self, found):
        """A bug of the order of stores: each platform has it, also if the power cut loses none."""
        self.assertEqual(set(found["platforms"]), crashfiles.ALL)
        (least,) = (bug for bug in found["bugs"] if bug["cause"] == ["nothing is lost"])
        self.assertEqual(set(least["platforms"]), crashfiles.ALL)
        self.assertEqual(least["example"]["deviations"], [])

    def test_wrong_flush(self):
        """A value that is not flushed is found where caches are lost; one lost store is enough"""
        explored = self.recording("no-flush") / "random"
        self.explore("no-flush", "random:3:7", explored)
        found = self.check(explored, "--platform", "adr,ddio=on,eadr,ddio=on", status=1)
        self.assertEqual(set(found["platforms"]), {"adr,ddio=on", "eadr,ddio=on"})
        # So all images of eadr are good.
        self.assertEqual(set(found["verdicts"]), {"good", "bug"})
        where = {name for bug in found["bugs"] for name in bug["platforms"]}
        self.assertEqual(where, crashfiles.CACHED)
        made = [bug["minimal"] for bug in found["bugs"] if bug["minimal"]]
        self.assertTrue(made, found["bugs"])
        for one in made:
            self.assertEqual(len(one["deviations"]), 1, one)
            self.assertTrue(any("store_value" in x["issuer"] for x in one["lost"]), one)
        page = (explored / "report.html").read_text()
        self.assertIn("Images judged by a checker", page)
        for bug in found["bugs"]:
            self.is_told(bug["timelines"], bug["minimal"] or bug["example"])
        self.assertIn("<b>the power fails</b>", page)

    def is_told(self, timelines, shown):
        """Each timeline begins with a store that was lost, and ends with the power failure."""
        self.assertTrue(timelines, shown)
        lost = [each["number"] for each in shown["lost"]]
        for one in timelines:
            steps = one["timeline"]
            (first,) = (each for each in steps if each["what"] == "the store")
            self.assertIn(first["event"]["event"], lost)
            self.assertEqual(one["behind"], shown["behind"])
            self.assertTrue(steps[-1].get("power-fails"), steps)
            self.assertNotEqual(steps[-1]["stage-behind"], "certain", steps)
            self.assertIn("symbol", first["event"])

    @labtest.long
    def test_kept(self):
        """A kept bug is there, and gone with another program; a wrong file has no verdict"""
        explored, kept = self.copy("order"), self.place / "kept"
        self.check(explored, "--limit", "9", status=1)
        self.lab.run("crash", "keep", explored, "--bug", "1", "--output", kept)
        self.assertLess(kept.stat().st_size, 1 << 20)
        shutil.rmtree(explored)
        again = ("crash", "check", *VM)
        self.assertIn("the bug is there", self.lab.run(*again, kept, status=1, timeout=LIMIT).out)
        other = self.place / "other"
        other.write_text("#!/bin/sh\nexit 0\n")
        other.chmod(0o755)
        words = (*again, "--copy", "%s:/usr/bin/crash_hash" % other, kept)
        self.assertIn("the bug is gone", self.lab.run(*words, status=0, timeout=LIMIT).out)
        other.write_text("#!/bin/sh\nexit 127\n")
        self.lab.run(*words, status=125, timeout=LIMIT)
        self.lab.run(*again, other, status=125, timeout=LIMIT)
        self.assertEqual(self.labs(), [])

    @labtest.long
    def test_promises_broken(self):
        """The images of broken promises are judged, and kept, as others are"""
        explored, kept = self.recording("no-flush") / "bugs", self.place / "kept-promise"
        self.explore("no-flush", "bugs", explored)
        told = json.loads((explored / "result.json").read_text())["bugs"]
        self.assertTrue(told)
        found = self.check(explored, "--no-reduce", status=1)
        self.assertEqual(found["verdicts"], {"bug": len({bug["image"] for bug in told})})
        self.lab.run("crash", "keep", explored, "--bug", "1", "--output", kept)
        done = self.lab.run("crash", "check", *VM, kept, status=1, timeout=LIMIT)
        self.assertIn("the bug is there", done.out)

    @labtest.long
    def test_killed(self):
        """A killed check leaves a lab, which the next one removes; no image is checked twice"""
        explored = self.copy("order")
        journal = explored / "verdicts.jsonl"
        words = self.lab.command(*self.words(explored, "--no-reduce"))
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as child:
            limit = time.monotonic() + LIMIT
            while not journal.exists() or journal.read_bytes().count(b"\n") < 6:
                self.assertIsNone(child.poll())
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.02)
            child.send_signal(signal.SIGKILL)
        self.assertEqual(len(self.labs()), 1)
        before = journal.read_text().splitlines()[:6]
        found = self.check(explored, "--no-reduce", status=1)
        lines = journal.read_text().splitlines()
        self.assertEqual(lines[:6], before)
        images = [json.loads(line)["image"] for line in lines]
        self.assertEqual(len(images), len(set(images)))
        self.assertEqual(len(images), found["images"])

    @labtest.long
    def test_interrupted(self):
        """A check that gets a signal removes its lab"""
        words = self.lab.command(*self.words(self.copy("right")))
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:
            for line in child.stderr:
                if "ready" in line:
                    child.send_signal(signal.SIGTERM)
                    break
            child.stderr.read()
        self.assertEqual(child.returncode, 130)
        self.assertEqual(self.labs(), [])

    @labtest.long
    def test_shards(self):
        """Shards are checked apart; together they are one check, file by file"""
        whole, parts = self.copy("order"), self.copy("order")
        wanted = self.check(whole, "--no-reduce", status=1)
        jobs = str(min(2, os.cpu_count()))
        for i in (1, 2):
            shard = ("--shard", "%d/2" % i, "--jobs", jobs)
            self.lab.run(*self.words(parts, *shard), status=None, timeout=LIMIT)
        self.lab.run("crash", "merge", parts, parts, status=1)
        # Commands that show bugs again name the folder.
        wanted = json.loads(json.dumps(wanted).replace(str(whole), str(parts)))
        self.assertEqual(json.loads((parts / "check.json").read_text()), wanted)
        for name in ("check-junit.xml", "report.html"):
            text = (whole / name).read_text().replace(str(whole), str(parts))
            self.assertEqual((parts / name).read_text(), text)
        again = shlex.split(wanted["bugs"][0]["again"])
        self.assertIn("image ", self.lab.run(*again[1:], status=1, timeout=LIMIT).out)

    def in_shards(self, explored, *options, script, merge=()):
        """Checks in two shards; the folder of results.  The first one ends before the other has
        begun, so it has to go on when its command is given again."""

        def run(i, *more):
            words = self.words(explored, *options, "--shard", "%d/2" % i, *more, script=script)
            return self.lab.run(*words, status=None, timeout=LIMIT).out

        self.assertRegex(run(1), "again when other shards have|then give it again")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda i: run(i, "--wait", LIMIT), (1, 2)))
        self.lab.run("crash", "merge", *merge, explored, explored, status=None)
        place = explored / "reads" if merge else explored
        text = (place / "check.json").read_text()
        self.assertNotRegex(text, "have not been|are missing")
        return place

    @labtest.long
    def test_reads_shards(self):
        """Shards with --reads find the bug that one check finds (test_reads)"""
        parts = self.copy("at-once")
        self.in_shards(parts, "--reads", script=MIRROR, merge=("--reads",))
        # A check of all then only makes the minimal examples.
        found = self.check(parts, "--reads", status=1, script=MIRROR)
        (bug,) = found["bugs"]
        self.assertEqual(len(bug["minimal"]["deviations"]), 2, bug)

    @labtest.long
    def test_nested_shards(self):
        """Shards with --nested-depth find what one check does, and each recovery once"""
        script, parts = UNDO + "impatient", self.copy("undo")
        wanted = self.checked("undo", *AGAIN, script=script)[1]["nested"]
        place = self.in_shards(parts, *AGAIN, script=script)
        nested = json.loads((place / "check.json").read_text())["nested"]
        # What a recovery does in a VM is not the same each time, event by event.
        self.assertEqual(nested["depths"][0]["recoveries"], wanted["depths"][0]["recoveries"])
        self.assertEqual({bug["depth"] for bug in nested["bugs"]}, {2})
        lines = [x.read_text().splitlines() for x in sorted(parts.glob("nested-*-of-2.jsonl"))]
        names = [json.loads(line)["image"] for part in lines for line in part]
        self.assertEqual(len(lines), 2)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), nested["recoveries"])

    @labtest.long
    def test_kept_recovery(self):
        """A kept bug of a recovery is there, and gone with a recovery that may begin anew"""
        kept = self.place / "kept-recovery"
        explored, _ = self.checked("undo", "--nested", script=UNDO + "hasty")
        self.lab.run("crash", "keep", explored, "--recovery-bug", "1", "--output", kept)
        self.assertLess(kept.stat().st_size, 1 << 20)
        shutil.rmtree(explored)
        again = ("crash", "check", *VM)
        found = self.lab.run(*again, kept, status=1, timeout=LIMIT)
        self.assertIn("the bug is there", found.out)
        found = self.lab.run(*again, "--nested", kept, status=1, timeout=LIMIT)
        self.assertIn("the bug is there", found.out)
        words = (*again, "--script", UNDO + "recover", kept)
        found = self.lab.run(*words, status=0, timeout=LIMIT)
        self.assertIn("images of 1 recoveries are good", found.out)
        self.assertEqual(self.labs(), [])

    @labtest.long
    def test_ends(self):
        """Hang, panic, reboot and switching off are verdicts about an image"""
        explored = self.copy("right")
        images = json.loads((explored / "images.json").read_text())["images"][1:5]
        ends = {"hang": "sleep 99", "panic": "echo c > /proc/sysrq-trigger; sleep 99"}
        ends.update(reboot="echo b > /proc/sysrq-trigger; sleep 99")
        ends.update(off="echo o > /proc/sysrq-trigger; sleep 99")
        rows = ["%s) %s ;;" % (one["image"], script) for one, script in zip(images, ends.values())]
        found = self.check(
            *(explored, "--timeout", 4 * labtest.SLOW, "--no-reduce"),
            status=1,
            script="case $CRASH_IMAGE in\n%s\nesac" % "\n".join(rows),
        )
        self.assertEqual(
            {bug["verdict"]: bug["example"]["image"] for bug in found["bugs"]},
            {kind: one["image"] for one, kind in zip(images, ends)},
        )
        self.assertEqual(found["verdicts"]["good"], found["images"] - len(ends))

    @labtest.long
    def test_oops(self):
        """An oops and a WARN of the kernel are verdicts, also if the script ends well"""
        explored, module = self.copy("right"), programs.kernel_module(self, "kernel-faults")
        images = json.loads((explored / "images.json").read_text())["images"][1:3]
        # What the end of the report has, which is kept.
        mistakes = {"oops": "CR2: 0000000000000000", "WARN": "sg_fault: on purpose"}
        rows = [
            "%s) insmod /tmp/%s mistake=%s || : ;;" % (one["image"], module.name, mistake)
            for one, mistake in zip(images, mistakes)
        ]
        found = self.check(
            *(explored, "--no-reduce", "--copy", "%s:/tmp/%s" % (module, module.name)),
            status=1,
            script="case $CRASH_IMAGE in\n%s\nesac" % "\n".join(rows),
        )
        self.assertEqual(found["verdicts"], {"good": found["images"] - 2, "oops": 2})
        lines = {one["image"]: one for one in crashfiles.verdicts(explored)}
        for one, words in zip(images, mistakes.values()):
            line = lines[one["image"]]
            self.assertEqual((line["verdict"], line["status"]), ("oops", 0), line)
            self.assertIn(words, line["output"])

    @labtest.long
    def test_machine_check(self):
        """A line that becomes unreadable in the run gives a machine check to who reads it"""
        folder, go = self.place / "bad-line", "/run/go"
        # The program waits for the line to become bad, and then stores elsewhere.
        store = "dax_store %s persist %d " % (programs.DAX, AWAY + crashimage.PAGE)
        script = "%s before; echo ready; until [ -e %s ]; do sleep 0.1; done; %s behind"
        programs.install(self.lab, "beta", "dax_store")
        self.lab.sh("beta", "rm -f " + go)
        words = ("crash", "record", "--output", folder, "--", "beta", "sh", "-c")
        recorder = labtest.Started(self.lab.command(*words, script % (store, go, store)))
        self.addCleanup(recorder.stop)
        recorder.expect("ready", 60)
        place = "uncorrectable=pmem0@%#x+%d" % (DATA + AWAY, crashimage.LINE)
        self.lab.run("pmem", "beta", "--set", place)
        self.addCleanup(self.lab.run, "pmem", "beta", "--set", "uncorrectable=")
        self.lab.sh("beta", "touch " + go)
        self.assertEqual(recorder.wait(120), 0, recorder.output)
        words = ("--domain", "adr", "--ddio", "on", "--strategy", "only", folder)
        self.lab.run("crash", "explore", *words, status=4, timeout=120)
        read = "dax_store %s read %d 4" % (programs.DAX, AWAY)
        program = "%s:/usr/bin/dax_store" % self.file(read)
        words = (folder / "explored", "--no-reduce", "--copy", program)
        found = self.check(*words, status=1, script=read)
        self.assertEqual(set(found["verdicts"]), {"good", "machine-check"})
        for bug in found["bugs"]:
            self.assertEqual(bug["verdict"], "machine-check")
            self.assertIn("hardware memory error", bug["example"]["output"])
        # Who reads another line does not notice.
        read = read.replace(str(AWAY), str(AWAY + crashimage.PAGE))
        words += ("--journal", folder / "other")
        found = self.check(*words, status=0, script=read)
        self.assertEqual(found["verdicts"], {"good": found["images"]})

    @labtest.long
    def test_floods(self):
        """A script that writes without end hangs; what is kept of it is short"""
        explored = self.copy("right")
        words = ("--limit", 2, "--timeout", 2 * labtest.SLOW, "--no-reduce")
        script = 'test -n "$CRASH_IMAGE" || exit 0\nexec yes'
        found = self.check(explored, *words, status=1, script=script)
        self.assertEqual(found["verdicts"], {"hang": 2})
        self.assertLess((explored / "verdicts.jsonl").stat().st_size, 2 * 8192)

    @labtest.long
    def test_promises(self):
        """The script gets the promises that are in force, and may ask more of an image for them"""
        explored = self.copy("right")
        script = "test $(grep -c ^durable /run/crash/promises) -le %d" % (ENTRIES - 1)
        found = self.check(explored, "--promises", "--no-reduce", status=1, script=script)
        bad = {bug["example"]["promises"] for bug in found["bugs"]}
        self.assertEqual(bad, {ENTRIES})

    @labtest.long
    def test_reads(self):
        """A bug that takes two lost lines is found by images of what the checker reads"""
        explored = self.copy("at-once")
        found = self.check(explored, status=0, script=MIRROR)
        self.assertEqual(found["verdicts"], {"good": found["images"]})
        found = self.check(explored, "--reads", status=1, script=MIRROR)
        (bug,) = found["bugs"]
        self.assertEqual({name.split(",")[0] for name in bug["platforms"]}, {"adr"}, bug)
        self.assertEqual(len(bug["minimal"]["deviations"]), 2, bug)
        self.assertTrue(all("make_data" in x["issuer"] for x in bug["minimal"]["lost"]), bug)
        self.assertTrue(found["reads"]["complete"], found["reads"])
        # All first flags; of a record the second flag and the data, of both copies if it is broken.
        self.assertEqual(found["reads"]["lines"], SLOTS + 2 * RECORDS + 3 * WRONG)

    @labtest.long
    def test_reads_right(self):
        """A right program has no bad image of what the checker reads"""
        found = self.check(self.copy("mirror"), "--reads", status=0, script=MIRROR)
        self.assertEqual(found["verdicts"], {"good": found["images"]})
        self.assertGreater(found["images"], 3 * RECORDS)
        self.assertEqual(found["reads"]["lines"], SLOTS + 2 * RECORDS)
        self.assertEqual(found["reads"]["notes"], [])

    @labtest.long
    def test_nested(self):
        """A recovery that cannot begin anew is found by a second cut, and only by that"""
        _, found = self.checked("undo", "--nested", script=UNDO + "hasty")
        self.assertEqual(found["verdicts"], {"good": found["images"]})
        self.assertEqual(found["nested"]["recoveries"], found["images"])
        bugs = found["nested"]["bugs"]
        self.assertEqual(
            {text for bug in bugs for text in bug["cause"] if "restore" not in text}, set()
        )
        for bug in bugs:
            self.assertEqual(len(bug["minimal"]["deviations"]), 1, bug)
            self.assertIn("undone 0", bug["example"]["output"])
            self.is_told(bug["timelines"], bug["minimal"])

    @labtest.long
    def test_nested_right(self):
        """A recovery that may begin anew has no bad image"""
        found = self.check(self.copy("undo"), "--nested", status=0, script=UNDO + "recover")
        nested = found["nested"]
        self.assertEqual(nested["recoveries"], found["images"])
        self.assertEqual(nested["verdicts"], {"good": nested["images"]})
        self.assertGreater(nested["images"], 2 * found["images"])
        self.assertEqual(nested["notes"], [])

    @labtest.long
    def test_nested_again(self):
        """A recovery that is wrong only if one before it was cut, too, takes a third cut"""
        _, found = self.checked("undo", *AGAIN, script=UNDO + "impatient")
        nested = found["nested"]
        self.assertEqual({bug["depth"] for bug in nested["bugs"]}, {2}, nested["bugs"])
        self.assertEqual(len(nested["depths"]), 2)
        # With one cut less nothing is wrong.
        self.assertEqual(found["verdicts"], {"good": found["images"]})
        second = nested["depths"][0]
        self.assertEqual(second["verdicts"], {"good": second["images"]})
        for bug in nested["bugs"]:
            self.assertEqual(len(bug["cuts"]), 2)
            self.assertIn("undone 0", bug["example"]["output"])
            self.assertTrue(all("restore" in text for text in bug["cause"]), bug)

    @labtest.long
    def test_nested_states(self):
        """A recovery that forgets everything if it is cut: only its states show that"""
        script = UNDO + "anew > /dev/null && " + UNDO + "balance"
        found = self.check(self.copy("undo"), "--compare", "--nested", status=1, script=script)
        self.assertEqual(found["bugs"], [])
        nested = found["nested"]
        self.assertEqual(nested["verdicts"], {"good": nested["images"]})
        bugs = nested["bugs"]
        self.assertEqual({bug["verdict"] for bug in bugs}, {"state"}, bugs)
        self.assertIn("account 0 has 0", bugs[0]["example"]["output"])

    @labtest.long
    def test_refused(self):
        """NVDIMMs at another place, a setup that writes to them, and wrong programs are errors"""
        explored = self.copy("right")
        for words, text in (
            (("--memory", "3G"), "--memory"),
            (("--setup", "exit 3"), "status 3"),
            (("--setup", "crash_hash %s right 1 99" % programs.DAX), "a setup must not write"),
        ):
            done = self.lab.run(*self.words(explored, *words), status=5, timeout=LIMIT)
            self.assertIn(text, done.err)
        done = self.lab.run(*self.words(explored, script="/none"), status=5, timeout=LIMIT)
        self.assertIn("in a row failed", done.err)
        self.assertIn("not found", done.err)
        self.assertEqual(self.labs(), [])


if __name__ == "__main__":
    labtest.main()
