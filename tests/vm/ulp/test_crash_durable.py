# SPDX-License-Identifier: GPL-2.0-or-later
"""rpcrdma durable against Linux's NFS/RDMA server, recorded and judged: what a COMMIT promises.
# timeout: 1200

The client writes records by Read chunks, without a kernel's cache between it and the server, and
marks what the server has promised to keep.  The server's file system is ext4 on an NVDIMM.  A
checker VM mounts each image that a power cut may leave, and `rpcrdma durable inspect` judges the
promised records in it.  The broken twins: a server that answers COMMITs without doing them, and a
client that takes an answered UNSTABLE WRITE for a promise.
"""
import json
import tempfile
from pathlib import Path

import crashfiles
import labtest
import rpcrdmatest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

NAME, FOLDER = "records", "/srv/export"
RECORDS, SIZE, EVERY = 8, 8192, 2
# Marks the number in this column of each line, "answered N stable N", when it has changed.
WRITE = """
{ rpcrdma durable write %s --file %s --records %d --size %d %%s || echo failed $? failed $?; } |
while read -r _ answered _ stable; do
    [ "$%%s" != failed ] || exit 1
    [ "$%%s" = "${last:-0}" ] || staghorn-mark state "$%%s"
    last=$%%s
done
""" % (
    ulptest.ADDRESS,
    NAME,
    RECORDS,
    SIZE,
)
# The script runs once before the first image, so it unmounts what it has mounted.
CHECK = """
promised=$(sed -n 's/^state .*text=\\([0-9]*\\)$/\\1/p' /run/crash/promises | tail -n 1)
if ! mount /dev/pmem0 /mnt; then
    dmesg | tail -n 5
    exit 3
fi
rpcrdma durable inspect /mnt/%s --records ${promised:-0} --size %d
status=$?
umount /mnt
exit $status
""" % (
    NAME,
    SIZE,
)


class Durable(ulptest.ProgramCase):
    """alpha writes, beta serves; both are recorded, and beta's power may fail."""

    up_arguments = (*ulptest.IMAGE, "--pmem", "beta:64M,domain=adr")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run("copy", rpcrdmatest.PROGRAM, CLIENT + ":/usr/bin/rpcrdma")
        cls.lab.sh(SERVER, ulptest.MAKE_DISK)

    def serve(self, options):
        """A file system with an empty file, which is durable, served."""
        script = "set -e; mke2fs -q -F %s /dev/pmem0\n" % " ".join(crashfiles.MKFS)
        script += "mkdir -p %s; mount /dev/pmem0 %s\n" % (FOLDER, FOLDER)
        script += ": > %s/%s; sync\n" % (FOLDER, NAME)
        self.lab.sh(SERVER, script + exports.nfs(FOLDER, options), timeout=ulptest.LIMIT)
        self.addCleanup(self.lab.sh, SERVER, exports.nfs_end(FOLDER), None)

    def check(self, options, arguments, column, status):
        """What the checker finds in images of the server's file system.

        column: which number of the requester counts as a promise."""
        self.serve(options)
        place = tempfile.TemporaryDirectory(prefix="sg-crash-durable-")
        self.addCleanup(place.cleanup)
        folder = Path(place.name) / "recording"
        script = WRITE % (arguments, *(column,) * 4)
        self.lab.run(
            *("crash", "record", "--output", folder, "--", CLIENT, "sh", "-c", script),
            timeout=ulptest.LIMIT,
        )
        explored = crashfiles.explore(self, folder, SERVER)
        for result, out in explored.values():
            promises = json.loads((out / "promises.json").read_text())["promises"]
            self.assertEqual({each["machine"] for each in promises}, {CLIENT})
            self.assertGreater(result["order"]["matched"], RECORDS)
        judged = crashfiles.judge_by(
            *(self.lab, explored, status, "--promises", "--script", CHECK),
            *("--copy", "%s:/usr/bin/rpcrdma" % rpcrdmatest.PROGRAM),
            up="--image consumers",
        )
        return [each["text"] for each in promises], judged

    def check_loses(self, judged):
        """Some image of each platform lacks promised records, and nothing else is wrong."""
        crashfiles.some_bad(self, judged, r"record \d+ is (lost|torn)")

    def test_commit(self):
        """A COMMIT behind each two records is answered when they are stable: all images are good"""
        every = "--commit-every %d" % EVERY
        promises, judged = self.check("", every, "stable", 0)
        self.assertEqual(promises, [str(n) for n in range(EVERY, RECORDS + 1, EVERY)])
        crashfiles.all_good(self, judged)

    def test_async_export(self):
        """A server that answers COMMITs without doing them"""
        promises, judged = self.check("async,", "--commit-every %d" % EVERY, "stable", 1)
        self.assertEqual(promises[-1], str(RECORDS))
        self.check_loses(judged)

    def test_no_commit(self):
        """Whoever counts on answered UNSTABLE WRITEs, without a COMMIT, loses records"""
        promises, judged = self.check("", "--commit-every 0", "answered", 1)
        self.assertEqual(promises, [str(RECORDS)])
        self.check_loses(judged)


if __name__ == "__main__":
    labtest.main()
