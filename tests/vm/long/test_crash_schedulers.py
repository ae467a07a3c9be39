#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Images of a hash table without a flush, judged in VMs by GNU parallel and by a Slurm array.
# timeout: 1500
# waits: for scripts that sleep

The lines are those of docs/crash-laboratory.md, for two shards.  In each case one of them is killed
and has to go on.  tests/build/test_crash_shards.py has all eight shards, with other judges.
"""
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import labtest
import programs
import schedulers

ENTRIES, SHARDS, VICTIM = 10, 2, 1
PROGRAM = Path(programs.FOLDER) / "crash_hash"
LIMIT = 600  # seconds of all shards, on a busy machine
FILES = ("check.json", "check-junit.xml", "report.html")
# A VM may take longer on a busy machine; the examples do not say so.
STAGHORN = """#!/bin/sh
if [ "$2" = check ]; then
    shift 2
    set -- crash check --vm-arg '--timeout %d' "$@"
fi
exec %s "$@"
""" % (
    labtest.UP_LIMIT,
    shlex.quote(labtest.STAGHORN),
)


class Schedulers(labtest.LabCase):
    up_arguments = ("--vms", "beta", "--driver", "none", "--cpus", "1") + (
        "--pmem",
        "beta:32M,domain=adr",
    )

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = Path(tempfile.mkdtemp(prefix="sg-shards-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        programs.install(cls.lab, "beta", "crash_hash")
        words = ("crash_hash", programs.DAX, "no-flush", ENTRIES, 1)
        cls.lab.run("crash", "record", "--output", cls.place / "run", "--", "beta", *words)
        cls.lab.down()
        cls.lab.run(
            *("crash", "explore", "--strategy", "random:2:7", "--domain", "adr", "--ddio", "on"),
            cls.place / "run",
            status=1,
        )
        whole = cls.work()
        line = whole.examples["array.sh"].split("\n", 2)[2]
        whole.run(re.sub(r'--shard "\S+"', "--no-reduce", line), 1)
        cls.wanted = cls.results(whole)

    @classmethod
    def work(cls):
        """A folder for the examples, with images that nobody has checked."""
        folder = Path(tempfile.mkdtemp(dir=cls.place))
        shutil.copytree(cls.place / "run", folder / "run")
        (folder / "build").symlink_to(Path(programs.BUILD).absolute())
        # Without the sleep a shard might be done before it is killed.
        (folder / "judge.sh").write_text("sleep 0.2\ncrash_hash %s check\n" % programs.DAX)
        (folder / "staghorn").write_text(STAGHORN)
        (folder / "staghorn").chmod(0o755)
        return schedulers.Work(folder, SHARDS, LIMIT * labtest.SLOW)

    @staticmethod
    def results(work):
        """The octets of the results; the commands in them name the folder."""
        place = bytes(work.explored.absolute())
        return [(work.explored / name).read_bytes().replace(place, b"FOLDER") for name in FILES]

    def labs(self):
        """Labs of checks that are still there."""
        folder = Path(self.lab.state) / "labs"
        return sorted(p.name for p in folder.glob("check-*")) if folder.exists() else []

    def assert_goes_on(self, work, output, before, script, environment=None):
        """The script ends what it began; nothing is lost, and nothing is judged twice."""
        self.assertRegex(output, "not been checked")
        kept = work.journal(VICTIM)
        self.assertEqual(kept[: len(before)], before)
        work.run(script, 1, environment)
        self.assertEqual(self.results(work), self.wanted)
        self.assertEqual(work.journal(VICTIM)[: len(kept)], kept)
        images = work.images()
        self.assertEqual(len(images), len(set(images)))
        self.assertEqual(self.labs(), [])
        work.run(script, 1, environment)
        self.assertEqual(work.images(), images)

    def test_parallel(self):
        """GNU parallel on two hosts; a shard is killed, and the same line is given again"""
        work = self.work()
        script = work.examples["parallel"]
        child = work.start(script)
        before = work.wait_lines(VICTIM, 3)
        work.kill(VICTIM)
        output = work.finish(child, None)
        self.assert_goes_on(work, output, before, script)

    def test_slurm(self):
        """A Slurm array; a task is killed, and the same array is submitted again"""
        work = self.work()
        with schedulers.Slurm(work.programs) as cluster:
            words = ("--parsable", "--chdir", str(work.folder), str(work.folder / "array.sh"))
            job = cluster.run("sbatch", *words).strip()
            before = work.wait_lines(VICTIM, 3)
            cluster.run("scancel", "--signal=KILL", "--full", "%s_%d" % (job, VICTIM))
            cluster.wait_end(work.limit)
            merge = "./staghorn crash merge run/so-far run/explored"
            output = work.run(merge, None, cluster.environment)
            script = work.examples["slurm"]
            self.assert_goes_on(work, output, before, script, cluster.environment)


if __name__ == "__main__":
    labtest.main()
