# SPDX-License-Identifier: GPL-2.0-or-later
"""ext4 with DAX: files that are made and replaced with fsync and without, recorded, explored and
judged.
# timeout: 900
# suite: full

The promises are marks "state": after each file, that so many are durable.  Whether an image keeps
them only a checker can say (tests/guest-programs/crash/crash_files_check.sh).
"""
import json

import crashfiles
import labtest

FILES = 4


class Files(crashfiles.FilesCase):
    def explore(self):
        explored = crashfiles.explore(self, self.folder, "beta")
        for _, out in explored.values():
            promises = json.loads((out / "promises.json").read_text())
            texts = [each["text"] for each in promises["promises"]]
            self.assertEqual(texts, [str(n) for n in range(1, FILES + 1)])
            images = json.loads((out / "images.json").read_text())["images"]
            # Some images are those of cuts before the first promise, some behind the last.
            self.assertEqual({0, FILES} - {each["promises"] for each in images}, set())
        return explored

    def check(self, method, status, *words):
        self.record(method, FILES)
        return crashfiles.judge(self.lab, self.explore(), status, *words)

    def test_right(self):
        """With fsync of file and folder, each image has the files that were promised"""
        crashfiles.all_good(self, self.check("right", 0))

    def test_no_fsync(self):
        """Without fsync, files that were promised are not there, on each platform"""
        judged = self.check("no-fsync", 1, "--no-reduce")
        crashfiles.some_bad(self, judged, crashfiles.MISSING, reduced=False)

    def test_no_folder(self):
        """Without fsync of the folder a promised file may have no name, on each platform"""
        crashfiles.some_bad(self, self.check("no-folder", 1), crashfiles.MISSING)


if __name__ == "__main__":
    labtest.main()
