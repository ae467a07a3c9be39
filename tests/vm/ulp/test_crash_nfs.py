# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA from persistent memory, recorded and judged: what the client's fsync promises.
# timeout: 900

The client makes files on the mount and marks each as durable behind its fsync, which is a COMMIT
that the server has answered.  The server's file system is ext4 on an NVDIMM.  An export with the
option `async` answers before the data are stable: the broken twin.
"""
import json
import tempfile
from pathlib import Path

import crashfiles
import labtest
import programs
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

FILES = 4


class Nfs(ulptest.ProgramCase):
    up_arguments = (*ulptest.IMAGE, "--pmem", "beta:64M,domain=adr")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs.install(cls.lab, CLIENT, "crash_files")
        cls.lab.sh(SERVER, ulptest.MAKE_DISK)

    def serve(self, options):
        """An empty file system, served, and mounted by the client."""
        script = "set -e; mke2fs -q -F %s /dev/pmem0; " % " ".join(crashfiles.MKFS)
        script += "mkdir -p /srv/export; "
        script += "mount /dev/pmem0 /srv/export\n" + exports.nfs("/srv/export", options)
        self.lab.sh(SERVER, script, timeout=ulptest.LIMIT)
        self.addCleanup(self.lab.sh, SERVER, exports.nfs_end("/srv/export"), None)
        mount = exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs")
        self.lab.sh(CLIENT, "mkdir -p /mnt/nfs; " + mount, timeout=ulptest.LIMIT)
        self.addCleanup(self.lab.sh, CLIENT, "umount /mnt/nfs", None)

    def check(self, options, status):
        """What the checker finds in images of the server's file system."""
        self.serve(options)
        place = tempfile.TemporaryDirectory(prefix="sg-crash-nfs-")
        self.addCleanup(place.cleanup)
        folder = Path(place.name) / "recording"
        words = ("crash_files", "/mnt/nfs", "right", FILES)
        self.lab.run(
            "crash", "record", "--output", folder, "--", CLIENT, *words, timeout=ulptest.LIMIT
        )
        explored = crashfiles.explore(self, folder, SERVER)
        for result, out in explored.values():
            promises = json.loads((out / "promises.json").read_text())["promises"]
            self.assertEqual(
                [(each["machine"], each["text"]) for each in promises],
                [(CLIENT, str(n)) for n in range(1, FILES + 1)],
            )
            # A promise of the client binds the server behind the answer that caused it.
            self.assertEqual(len({each["binds-behind"] for each in promises}), FILES)
            self.assertGreater(result["order"]["matched"], 50)
        return crashfiles.judge(self.lab, explored, status)

    def test_sync(self):
        """The default, a COMMIT is answered when the data are stable: all images are good"""
        crashfiles.all_good(self, self.check("", 0))

    def test_async(self):
        """An export that answers early loses what it has acknowledged, on each platform"""
        crashfiles.some_bad(self, self.check("async,", 1), crashfiles.MISSING)


if __name__ == "__main__":
    labtest.main()
