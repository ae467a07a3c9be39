#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples of docs/crash-laboratory.md for GNU parallel and Slurm, with judges that are no VMs;
tests/vm/long has the same with VMs.
"""

# Daemons of Slurm start, and agree on what to run, in many seconds.
# suite: full
# timeout: 600
import re
import sys
from pathlib import Path

import cases

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "vm" / "lib"))
from judges import BAD, IMAGES, TOOLS, files_of, make_explored  # noqa: E402
from schedulers import Slurm, Work  # noqa: E402
from launcher import verdicts  # noqa: E402

SHARDS, LIMIT = 8, 120  # seconds of all shards, on a busy machine
VICTIM = 2  # the shard that is killed
TABLE = {n: BAD[n] for n in (3, 5, 7, 11)}
MISSING = re.compile(r"images? .*not been checked")

# ./staghorn, whose VMs are replaced.  It notes what it judges, before it does.
STAGHORN = """#!%s -B
import sys, time
from pathlib import Path
sys.path[:0] = %r
import judges
from launcher import check, cli
class Slow(judges.Judge):
    def check(self, path, *words):
        with open("judged", "a") as file:
            file.write(Path(path).stem + "\\n")
        if Path(path).stem in Path("slow").read_text():
            time.sleep(%d)
        return super().check(path, *words)
check.CheckLab = lambda *_: Slow(%r)
sys.exit(cli.main())
""" % (
    sys.executable,
    [str(TOOLS), str(Path(__file__).resolve().parent)],
    2 * LIMIT,
    TABLE,
)

CASES, WHOLE = [], []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def make_work(folder):
    """A folder for the examples, with images that nobody has checked."""
    program = folder / "build" / "guest" / "programs" / "crash_hash"
    program.parent.mkdir(parents=True)
    program.write_text("a program\n")
    (folder / "run").mkdir()
    make_explored(folder / "run" / "explored")
    (folder / "staghorn").write_text(STAGHORN)
    (folder / "staghorn").chmod(0o755)
    (folder / "judge.sh").write_text("crash_hash /dev/dax0.0 check\n")
    (folder / "slow").write_text("")
    return Work(folder, SHARDS, LIMIT)


def judged(work):
    """The images that were judged, each as often as it was."""
    path = work.folder / "judged"
    return path.read_text().split() if path.exists() else []


def results(work):
    return files_of(work.explored)


def results_of_whole(folder):
    """What a check without shards writes; it is the same for all cases."""
    if WHOLE:
        return WHOLE
    folder.mkdir()
    work = make_work(folder)
    line = next(x for x in work.examples["array.sh"].split("\n./") if "--shard" in x)
    words = "./" + re.sub(r'--shard "\S+"', "--no-reduce", line)
    work.run(words, 1)
    WHOLE.extend(results(work))
    return WHOLE


def complete(work):
    """Each image has one verdict."""
    found = work.images()
    assert sorted(found) == sorted(IMAGES), found


def hold(work):
    """The shard VICTIM will not get on with its third image."""
    mine = [image for image in IMAGES if verdicts.in_shard(image, (VICTIM, SHARDS))]
    assert len(mine) > 3, mine
    (work.folder / "slow").write_text("\n".join(mine[2:]))


def goes_on(work, again):
    """What had a verdict when VICTIM was killed is not judged again."""
    done, before = set(work.images()), work.journal(VICTIM)
    assert len(before) == 2 and done < set(IMAGES), (before, done)
    (work.folder / "judged").unlink()
    (work.folder / "slow").write_text("")
    again()
    complete(work)
    assert set(judged(work)) == set(IMAGES) - done
    assert work.journal(VICTIM)[:2] == before


@case
def parallel(folder):
    """GNU parallel on two hosts: the results of one check, and nothing is judged twice"""
    wanted = results_of_whole(folder / "whole")
    work = make_work(folder)
    work.run(work.examples["parallel"], 1)
    assert results(work) == wanted
    complete(work)
    rows = [x.split("\t") for x in (folder / "shards.log").read_text().splitlines()[1:]]
    assert {row[1] for row in rows} == {"host1", "host2"} and len(rows) == SHARDS, rows
    assert {row[6] for row in rows} <= {"0", "1"}, rows
    count = len(judged(work))
    assert count == len(IMAGES) + len(TABLE), count  # a bad image is judged twice
    work.run(work.examples["parallel"], 1)
    assert len(judged(work)) == count and results(work) == wanted


@case
def parallel_killed(folder):
    """A shard of GNU parallel that is killed goes on when the same line is given again"""
    wanted = results_of_whole(folder / "whole")
    work = make_work(folder)
    hold(work)
    child = work.start(work.examples["parallel"])
    work.wait_lines(VICTIM, 2)
    work.kill(VICTIM)
    output = work.finish(child, 1)
    assert MISSING.search(output), output
    goes_on(work, lambda: work.run(work.examples["parallel"], 1))
    assert results(work) == wanted


@case
def slurm(folder):
    """A Slurm array: the results of one check, and nothing is judged twice"""
    wanted = results_of_whole(folder / "whole")
    work = make_work(folder)
    with Slurm(work.programs) as cluster:
        work.run(work.examples["slurm"], 1, cluster.environment)
        assert results(work) == wanted
        complete(work)
        assert len(list(folder.glob("slurm-*_*.out"))) == SHARDS
        count = len(judged(work))
        assert count == len(IMAGES) + len(TABLE), count
        work.run(work.examples["slurm"], 1, cluster.environment)
        assert len(judged(work)) == count and results(work) == wanted


@case
def slurm_killed(folder):
    """A task of a Slurm array that is killed goes on when the same array is submitted again"""
    wanted = results_of_whole(folder / "whole")
    work = make_work(folder)
    hold(work)
    with Slurm(work.programs) as cluster:
        job = cluster.run("sbatch", "--parsable", "--chdir", str(folder), str(folder / "array.sh"))
        work.wait_lines(VICTIM, 2)
        cluster.run("scancel", "--signal=KILL", "--full", "%s_%d" % (job.strip(), VICTIM))
        cluster.wait_end()
        output = work.run("./staghorn crash merge run/so-far run/explored", 1, cluster.environment)
        assert MISSING.search(output), output
        goes_on(work, lambda: work.run(work.examples["slurm"], 1, cluster.environment))
    assert results(work) == wanted


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
