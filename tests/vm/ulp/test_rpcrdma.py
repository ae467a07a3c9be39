# SPDX-License-Identifier: GPL-2.0-or-later
"""rpcrdma decode on what Linux's NFS client and server say to each other, and rpcrdma check.
# timeout: 1800

The lab captures all frames.  The client mounts, uses all forms of chunks, and unmounts; then the
decoder reads the capture.  Then the server calls the client back.  After that rpcrdma itself is the
client: of rpcrdma serve, and of Linux's server.  docs/rpcrdma.md says what Linux does against the
letter of RFC 8166.
"""
import tempfile
from collections import Counter

import labtest
import rpcrdmatest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

MOUNTD_PORT = 2050
SERVE_PORT = 20050
CALLED = "/srv/export/called"
# Cases in which Linux's server breaks a rule, and the rules.
LINUX_BREAKS = {
    "empty-chunk": {"RPC-32"},
    "result-empty-chunk": {"RPC-32"},
    "long-reply-without": {"RPC-36", "RPC-43"},
    "short": {"RPC-35"},
    "nomsg-without-chunks": {"RPC-39"},
    "xid-differs": {"RPC-22", "RPC-39"},
    "private-invalidation": {"PVT-05"},
    "private-invalidation-xid": {"PVT-05"},
}
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

    def test_linux__breaks_one_rule(self):
        """Four versions of NFS, each on a connection of its own"""
        for version in ("4.2", "4.1", "4.0", "3"):
            mount = exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs", version)
            self.lab.sh(CLIENT, MOUNT3 if version == "3" else mount, timeout=ulptest.LIMIT)
            script = "set -- %s\n%s" % (version, USE)
            self.lab.sh(CLIENT, script, timeout=2 * ulptest.LIMIT)
        status, objects = rpcrdmatest.decode(self.capture)
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

    # The cases below run after the one above, which judges all that the capture has.

    def test_linux__calls_back(self):
        """The server recalls a delegation by a Call to the client, on the client's connection"""
        self.lab.sh(SERVER, "echo old > %s" % CALLED)
        mount = exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs", "4.1")
        self.lab.sh(CLIENT, mount, timeout=ulptest.LIMIT)
        up = "grep -q 'callback state: UP' /proc/fs/nfsd/clients/*/info"
        ulptest.wait_for(self.lab, SERVER, up)
        self.lab.start(CLIENT, "sh", "-c", "exec 3< /mnt/nfs/called; cat <&3; exec sleep 600")
        ulptest.wait_for(self.lab, SERVER, "grep -q 'type: deleg' /proc/fs/nfsd/clients/*/states")
        # A local open for writing waits until the client has given the delegation back.
        self.lab.sh(SERVER, "echo new > %s" % CALLED, timeout=ulptest.LIMIT)
        self.assertEqual(self.lab.sh(CLIENT, "cat /mnt/nfs/called"), "new\n")
        self.lab.kill_started()
        self.lab.sh(CLIENT, "until umount /mnt/nfs; do sleep 1; done", timeout=ulptest.LIMIT)

        _, objects = rpcrdmatest.decode(self.capture)
        calls = [o["transaction"] for o in objects if "transaction" in o]
        reverse = [call for call in calls if call["from"] == "server"]
        recalls = [call for call in reverse if "CB_RECALL" in call["name"].split()]
        print("# " + ", ".join(sorted({call["name"] for call in reverse})))
        self.assertGreaterEqual(len(recalls), 1, reverse)
        for call in recalls:
            self.assertIn("CB_SEQUENCE", call["name"].split())
            there = {c["name"].split()[0] for c in calls if c["connection"] == call["connection"]}
            self.assertIn("NFS4.1", there)
        # Each has its Reply, both are inline, and neither side breaks a rule.
        for call in reverse:
            self.assertEqual((call["call"], call.get("reply")), ("RDMA_MSG", "RDMA_MSG"), call)
            self.assertEqual((call["chunks"], call["findings"]), ([], []), call)
            self.assertNotIn("invalidated", call)
            self.assertGreaterEqual(call["credits_granted"], 1)
        numbers = {call["connection"] for call in recalls}
        found = {
            f["rule"] for call in calls if call["connection"] in numbers for f in call["findings"]
        }
        self.assertLessEqual(found, {"PVT-05"})

    def check(self, target, *more):
        """The report of rpcrdma check server, all of whose cases have a judgement."""
        self.lab.run("copy", rpcrdmatest.PROGRAM, CLIENT + ":/usr/bin/rpcrdma")
        status, report = rpcrdmatest.check_server(self.lab, target, *more)
        self.assertGreaterEqual(report.cases, 50, report.text)
        self.assertEqual(report.troubled, set(), report.text)
        self.assertEqual(status, 1 if report.broken else 0, report.text)
        return report

    def test_our_server__keeps_all_rules(self):
        """rpcrdma check and rpcrdma serve, each on an adapter"""
        self.lab.run("copy", rpcrdmatest.PROGRAM, SERVER + ":/usr/bin/rpcrdma")
        server = self.lab.start(SERVER, "rpcrdma", "serve", "--port", SERVE_PORT, "--invalidate")
        server.expect("listening at port %d" % SERVE_PORT)
        report = self.check("%s:%d" % (ulptest.ADDRESS, SERVE_PORT))
        self.assertEqual(report.broken, {}, report.text)
        self.assertEqual(report.skipped, set())
        server.stop()

    def test_server_of_linux__breaks_these_rules(self):
        """NFS version 4.0, and a file whose content goes through chunks"""
        self.lab.sh(SERVER, "head -c 40000 /dev/urandom > /srv/export/checked")
        report = self.check(ulptest.ADDRESS, "--program", "nfs", "--file", "checked")
        self.assertEqual(report.broken, LINUX_BREAKS, report.text)
        self.assertEqual(report.skipped, {"results"})


if __name__ == "__main__":
    labtest.main()
