# SPDX-License-Identifier: GPL-2.0-or-later
"""What Linux's NFS/RDMA server keeps of what it has promised to rpcrdma, through a power cut.
# timeout: 1500

rpcrdma durable writes numbered records by Read chunks into a file on ext4 on an NVDIMM, the
server's power is cut in the middle, and rpcrdma reads the records back by Write chunks.  What was
answered as stable, or before a COMMIT that was answered, has to be there.  Unstable WRITEs without
a COMMIT are not, and neither is what an export with the option `async` has promised.
"""
import re

import labtest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

PROGRAM = labtest.TOP / "build" / "native" / "tools" / "rpcrdma" / "rpcrdma"
NAME, FOLDER = "records", "/srv/export"
MKFS = "mke2fs -q -F -t ext4 -O ^metadata_csum -b 4096 /dev/pmem0"
MOUNT = "mkdir -p %s; mount /dev/pmem0 %s\n" % (FOLDER, FOLDER)
# Enough that the cut comes before the end; 8 KiB each.
RECORDS = 4000
ENOUGH = 40  # records that are promised, or answered, before the cut
ENOUGH_STABLE = r"stable (?:[4-9]\d|\d{3,})\n"
WAIT_MS = 4000  # for an answer: none comes from a machine without power


class Durable(ulptest.ProgramCase):
    """alpha writes and reads, beta serves and loses its power."""

    up_arguments = (*ulptest.IMAGE, "--pmem", "beta:64M,domain=adr")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run("copy", PROGRAM, CLIENT + ":/usr/bin/rpcrdma")

    def tearDown(self):
        super().tearDown()
        # Whatever a failed case has left; the next one makes a new file system.
        self.lab.sh(SERVER, "umount %s 2> /dev/null || :" % FOLDER, status=None)

    def serve(self, options, new):
        """The file system, new and with an empty file in it or as the cut has left it, served."""
        make = "%s; %s\n%s: > %s/%s\nsync\n" % (ulptest.MAKE_DISK, MKFS, MOUNT, FOLDER, NAME)
        again = ulptest.MAKE_DISK + "; " + MOUNT
        script = (make if new else again) + exports.nfs(FOLDER, options)
        self.lab.sh(SERVER, "set -e\n" + script, timeout=ulptest.LIMIT)

    def durable(self, verb, seed, *words):
        argv = ["rpcrdma", "durable", verb, ulptest.ADDRESS, "--file", NAME, "--seed", seed]
        return [str(word) for word in (*argv, *words)]

    def cut(self, writer):
        """(records that were answered, records that were promised) when the power is cut."""
        words = ("cut", SERVER, "--policy", "random:5", "--timeout", labtest.UP_LIMIT)
        self.lab.run(*words, timeout=ulptest.LIMIT)
        status = writer.wait(ulptest.LIMIT)
        self.assertEqual(status, 3, writer.output)  # it did not come to its end
        states = re.findall(r"^answered (\d+) stable (\d+)$", writer.output, re.M)
        answered, kept = map(int, states[-1])
        self.assertLess(answered, RECORDS)
        return answered, kept

    def serve_again(self, options):
        self.serve(options, False)
        self.addCleanup(self.lab.sh, SERVER, exports.nfs_end(FOLDER), None)

    def write_and_cut(self, options, seed, *words):
        """The same, of a new file; the server is up again then."""
        self.serve(options, True)
        argv = self.durable("write", seed, "--records", RECORDS, "--wait", WAIT_MS, *words)
        writer = self.lab.start(CLIENT, *argv)
        writer.expect(ENOUGH_STABLE, timeout=ulptest.LIMIT)
        answered, kept = self.cut(writer)
        self.serve_again(options)
        return answered, kept

    def wrong(self, records, seed, status):
        """How many of these records are missing or damaged."""
        words = self.durable("verify", seed, "--records", records)
        done = self.lab.run(
            *("exec", "-n", "--timeout", ulptest.LIMIT, CLIENT, "--", *words),
            status=status,
            timeout=ulptest.LIMIT + 30,
        )
        found = re.search(r"^records (\d+) wrong (\d+)$", done.out, re.M)
        self.assertEqual(int(found[1]), records)
        return int(found[2])

    def test_commit__keeps(self):
        """Unstable WRITEs, and a COMMIT behind each sixteen of them"""
        answered, kept = self.write_and_cut("", 1, "--commit-every", 16)
        self.assertGreaterEqual(kept, ENOUGH)
        self.assertLessEqual(kept, answered)
        self.assertEqual(self.wrong(kept, 1, 0), 0)

    def test_file_sync__keeps(self):
        """Each WRITE is answered as FILE_SYNC"""
        answered, kept = self.write_and_cut("", 2, "--stable", "file-sync")
        self.assertEqual(kept, answered)
        self.assertEqual(self.wrong(kept, 2, 0), 0)

    def test_unstable__loses(self):
        """Without a COMMIT nothing is promised, and a client that relies on the answers loses"""
        # It prints only promises, and there are none; so the cut comes when records are there.
        self.serve("", True)
        argv = self.durable("write", 3, "--records", RECORDS, "--wait", WAIT_MS)
        writer = self.lab.start(CLIENT, *argv, "--commit-every", 0)
        size = "test $(stat -c %%s %s/%s) -gt %d" % (FOLDER, NAME, ENOUGH * 8192)
        ulptest.wait_for(self.lab, SERVER, size)
        answered, kept = self.cut(writer)
        self.assertEqual(kept, 0)
        self.assertGreaterEqual(answered, ENOUGH)
        self.serve_again("")
        self.assertGreater(self.wrong(answered, 3, 1), 0)

    def test_async_export__loses(self):
        """The server answers COMMITs without doing them"""
        _, kept = self.write_and_cut("async,", 4, "--commit-every", 16)
        self.assertGreater(self.wrong(kept, 4, 1), 0)


if __name__ == "__main__":
    labtest.main()
