# SPDX-License-Identifier: GPL-2.0-or-later
"""rpcrdma decode on what Linux's NFS client and server say to each other.
# timeout: 1800

The lab captures all frames.  The client mounts, uses all forms of chunks, and unmounts; then the
decoder reads the capture.  docs/rpcrdma.md says what Linux does against the letter of RFC 8166.
"""
import json
import os
import subprocess
import tempfile
import time
from collections import Counter

import labtest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

PROGRAM = labtest.TOP / "build" / "native" / "tools" / "rpcrdma" / "rpcrdma"
MOUNTD_PORT = 2050
SERVE = (
    ulptest.MAKE_DISK
    + """
mkfs.ext4 -q -F -b 4096 /dev/pmem0
mkdir -p /srv/export
mount /dev/pmem0 /srv/export
"""
    # With version 3, whose client then asks rpc.mountd at a port of its own.
    + exports.nfs("/srv/export")
    .replace("rpc.mountd -N 3", "rpcbind\nrpc.mountd -p %d" % MOUNTD_PORT)
    .replace("rpc.nfsd -N 3", "rpc.nfsd -V 3")
)
MOUNT3 = "mount -t nfs -o vers=3,proto=rdma,port=%d,nolock,mountproto=tcp,mountport=%d %s:%s %s" % (
    *(exports.NFS_PORT, MOUNTD_PORT, ulptest.ADDRESS, "/srv/export", "/mnt/nfs"),
)
# Sizes at the edges of XDR's pad, of the inline threshold, of a page and of a chunk; long
# replies (ls, a symbolic link); a long argument, which is a Read chunk (a long symbolic link).
USE = """
set -e
cd /mnt/nfs
mkdir d
for n in 1 3 1000 1023 4097 65537 300001; do head -c $n /dev/urandom > f$n; done
sync
echo 3 > /proc/sys/vm/drop_caches
sha256sum f* > /dev/null
for n in $(seq 40); do echo x > d/a-rather-long-name-of-a-file-so-that-the-list-is-long-$n; done
ls -l d | wc -l
ln -s some/where/else link
echo 3 > /proc/sys/vm/drop_caches
readlink link
ln -s $(head -c 4050 /dev/zero | tr '\\0' x) long
rm -r d f* link long
cd /
umount /mnt/nfs
"""


class Rpcrdma(labtest.LabCase):
    """alpha is the client, beta the server."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()  # noqa: R1732
        cls.capture = cls.folder.name + "/nfs.pcap"
        cls.up_arguments = (*ulptest.UP, "--capture", cls.capture)
        super().setUpClass()
        cls.lab.sh(SERVER, "set -e\n" + SERVE, timeout=ulptest.LIMIT)
        cls.lab.sh(CLIENT, "mkdir -p /mnt/nfs")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def decode(self):
        """(status, the objects of --json) for the capture, once it no longer grows."""
        size = -1
        while size != os.path.getsize(self.capture):
            size = os.path.getsize(self.capture)
            time.sleep(1)
        done = subprocess.run(
            [PROGRAM, "decode", "--json", "--transactions", self.capture],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.stderr, "")
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def test_linux__breaks_one_rule(self):
        """Four versions of NFS, each on a connection of its own"""
        for version in ("4.2", "4.1", "4.0", "3"):
            mount = exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs", version)
            self.lab.sh(CLIENT, MOUNT3 if version == "3" else mount, timeout=ulptest.LIMIT)
            script = "set -- %s\n%s" % (version, USE)
            self.lab.sh(CLIENT, script, timeout=2 * ulptest.LIMIT)
        status, objects = self.decode()
        summary = objects[-1]["summary"]
        broken = [o for o in objects if o.get("transaction", {}).get("findings") or "finding" in o]
        # The server invalidates without having set R.
        self.assertEqual(set(summary["rules"]), {"PVT-05"}, broken[:5])
        self.assertEqual(status, 1)
        self.assertEqual(summary["incomplete_directions"], 0)
        self.assertEqual(summary["without_reply"], 0)
        self.assertGreaterEqual(summary["connections"], 4)

        calls = [o["transaction"] for o in objects if "transaction" in o]
        kinds = Counter(c["kind"] for call in calls for c in call["chunks"])
        for kind in ("read", "write", "reply"):
            self.assertGreaterEqual(kinds[kind], 3, kinds)
        moved = Counter()
        for call in calls:
            for chunk in call["chunks"]:
                moved[chunk["kind"]] += chunk["moved"]
        # 372,661 octets of files, four times in each direction.
        self.assertGreaterEqual(moved["write"], 1000000)
        self.assertGreaterEqual(moved["read"], 1000000)
        self.assertTrue(any("READ" in c["name"].split() for c in calls))
        self.assertTrue(any("WRITE" in c["name"].split() for c in calls))
        self.assertIn("RDMA_NOMSG", [c.get("reply") for c in calls])
        for name in ("NFS4.2", "NFS4.1", "NFS4.0", "NFS3"):
            self.assertTrue(any(c["name"].startswith(name) for c in calls), name)
        self.assertTrue(any("invalidated" in c for c in calls))


if __name__ == "__main__":
    labtest.main()
