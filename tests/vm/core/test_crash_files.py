# SPDX-License-Identifier: GPL-2.0-or-later
"""ext4 with DAX: files that are made and replaced with fsync and without, recorded, explored and
judged.
# timeout: 900
# suite: full

The promises are marks "state": after each file, that so many are durable.  Whether an image keeps
them only a checker can say (tests/guest-programs/crash/crash_files_check.sh).
"""
import gzip
import json
import subprocess
import tempfile
from pathlib import Path

import crashfiles
import labtest
import programs

FILES, SIZE = 6, "48M"
MOUNT = "mount -o dax=always /dev/pmem0 /mnt"


class Files(labtest.LabCase):
    up_arguments = ("--vms", "beta", "--pmem", "beta:64M,domain=adr")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs.install(cls.lab, "beta", "crash_files")
        cls.lab.sh("beta", "ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem > /dev/null")

    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory(prefix="sg-files-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name) / "recording"
        self.new_file_system(Path(place.name) / "image")

    def new_file_system(self, image):
        """The guest has no mkfs."""
        words = ["mke2fs", "-q", *crashfiles.MKFS, "-b", "4096", str(image), SIZE]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        self.lab.run(
            *("exec", "beta", "--", "sh", "-c"),
            "umount /mnt 2> /dev/null; gzip -dc | dd of=/dev/pmem0 bs=1M conv=fsync && " + MOUNT,
            stdin=None,
            input=gzip.compress(image.read_bytes(), 1),
        )

    def record(self, method):
        words = ("crash_files", "/mnt", method, FILES)
        self.lab.run("crash", "record", "--output", self.folder, "--", "beta", *words, timeout=120)
        self.lab.sh("beta", "crash_files /mnt check %d" % FILES)

    def explore(self):
        words = ("--domain", "adr", "--ddio", "on", "--strategy", "random:2:1")
        done = self.lab.run(*("crash", "explore", "--json", *words, self.folder), timeout=300)
        promises = json.loads((self.folder / "explored" / "promises.json").read_text())
        texts = [each["text"] for each in promises["promises"]]
        self.assertEqual(texts, [str(n) for n in range(1, FILES + 1)])
        return json.loads(done.out)

    def check(self, method, status):
        self.record(method)
        result = self.explore()
        self.assertEqual(result["promises"]["promises"], FILES)
        self.assertGreater(result["images"], FILES)
        images = json.loads((self.folder / "explored" / "images.json").read_text())["images"]
        # Some images are those of cuts before the first promise, some behind the last.
        self.assertEqual({0, FILES} - {each["promises"] for each in images}, set())
        found = crashfiles.judge(self.lab, self.folder / "explored", status)
        self.assertGreater(found["images"], crashfiles.IMAGES // 2)
        self.assertEqual(sum(found["verdicts"].values()), found["images"])
        return found

    def test_right(self):
        """With fsync of file and folder, each image has the files that were promised"""
        found = self.check("right", 0)
        self.assertEqual(set(found["verdicts"]), {"good"})

    def test_no_fsync(self):
        """Without fsync, files that were promised are not there"""
        found = self.check("no-fsync", 1)
        crashfiles.broken_promises(self, found)


if __name__ == "__main__":
    labtest.main()
