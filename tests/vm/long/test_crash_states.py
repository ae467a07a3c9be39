# SPDX-License-Identifier: GPL-2.0-or-later
"""ext4 with DAX, judged by its states: fsck, and a dump with hashes that is compared between marks.
# timeout: 900

The checker prints which of the program's states the files are in, all of them and nothing else.
e2fsck comes behind the kernel's replay of the journal: what a power cut leaves is the file system
with its journal, and is consistent only with it.  Before the replay `e2fsck -n` does not read the
journal, and judges what nobody will see.
"""
import crashfiles
import labtest

FILES = 4
# The states of a run without a power cut, one for each number of files.
SETUP = (
    """
dump() { (cd "$1" && find . -type f ! -name new | sort | xargs -r sha256sum); }
for n in $(seq 0 %d); do
    mkdir -p /run/right/$n
    [ $n = 0 ] || crash_files /run/right/$n right $n > /dev/null || exit
    dump /run/right/$n > /run/right/$n.dump
done
"""
    % FILES
)
FSCK = 9  # the checker's status if e2fsck finds something
CHECK = (
    """
dump() { (cd "$1" && find . -type f ! -name new | sort | xargs -r sha256sum); }
mount -o dax=always /dev/pmem0 /mnt || { dmesg | tail -n 5; exit 3; }
dump /mnt > /run/found
umount /mnt || exit 4
e2fsck -fn /dev/pmem0 > /run/fsck 2>&1 || { cat /run/fsck; exit %d; }
for right in /run/right/*.dump; do
    if cmp -s $right /run/found; then
        basename $right .dump
        exit 0
    fi
done
cat /run/found
"""
    % FSCK
)
# Block 1 has the group descriptors.
DAMAGE = "debugfs -w -R 'freeb 1' /dev/pmem0 > /dev/null 2>&1\n"
TEXTS = "--compare-texts"


class States(crashfiles.FilesCase):
    def judge(self, method, status):
        """(explorations, what `crash check` finds) of a run of crash_files."""
        self.record(method, FILES)
        explored = crashfiles.explore(self, self.folder, "beta")
        return explored, self.check(explored, status, TEXTS)

    def check(self, explored, status, *words, script=CHECK):
        words = ("--setup", SETUP, "--script", script, "--copy", crashfiles.COPY, *words)
        return crashfiles.judge_by(self.lab, explored, status, *words, up="--image consumers")

    def test_right(self):
        """With fsync each image is sound, and has the files of the mark before the power failure
        or of the next one"""
        explored, judged = self.judge("right", 0)
        crashfiles.all_good(self, judged)
        for found, out in judged:
            self.assertEqual(found["compare"], FILES)
            digests = {one["digest"] for one in crashfiles.verdicts(out)}
            self.assertEqual(len(digests), FILES + 1)  # each state is among the images
        # The states that the run has in persistent memory at its marks are the same.
        crashfiles.all_good(self, self.check(explored, 0, "--compare"))

    def test_no_fsync(self):
        """Without fsync each image is sound, and some are in an old state: on each platform"""
        explored, judged = self.judge("no-fsync", 1)
        crashfiles.all_good(self, judged)
        bugs = [bug for found, _ in judged for bug in found["bugs"]]
        self.assertEqual({bug["verdict"] for bug in bugs}, {"state"})
        self.assertEqual({tuple(bug["cause"]) for bug in bugs}, {(crashfiles.UNSTORED,)})
        where = {name for bug in bugs for name in bug["platforms"]}
        self.assertEqual(where, {name for name in crashfiles.ALL if name.endswith("=on")})
        for bug in bugs:
            self.assertGreater(bug["step"], int(bug["example"]["output"]))
        self.damage(explored)

    def damage(self, explored):
        """A file system with a mistake is refused, though it can be mounted and has all files."""
        script = CHECK.replace("e2fsck -fn", DAMAGE + "e2fsck -fn")
        (domains, (_, out)), *_ = explored.items()
        words = ("--limit", 2, "--no-reduce", "--journal", out / "damaged")
        ((found, _),) = self.check({domains: (None, out)}, 1, *words, script=script)
        self.assertEqual(found["verdicts"], {"bug": 2})
        self.assertEqual({bug["status"] for bug in found["bugs"]}, {FSCK})
        self.assertIn("Block bitmap differences", found["bugs"][0]["example"]["output"])


if __name__ == "__main__":
    labtest.main()
