# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA: the kernel's client and server, each on an adapter.
# timeout: 1200
# waits: for leases and for servers that are gone

This uses only Debian's kernel and nfs-utils.  The export is an ext4 file system on the server's
NVDIMM, so that a server whose power was cut comes back with all acknowledged data, and NFS clients
continue.
"""
import re

import labtest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

SERVE = (
    ulptest.MAKE_DISK
    + """
[ -z "$new" ] || mkfs.ext4 -q -F /dev/pmem0
mkdir -p /srv/export
mount /dev/pmem0 /srv/export
"""
    + exports.nfs("/srv/export")
)


class Nfs(ulptest.FileCase):
    """/mnt/nfs of alpha is beta's export."""

    server_script = SERVE
    mounted, served = "/mnt/nfs", "/srv/export"
    before_reading = "sync; echo 3 > /proc/sys/vm/drop_caches; "

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.sh(CLIENT, "mkdir -p /mnt/nfs")

    def setUp(self):
        super().setUp()
        self.mount()

    def mount(self, version="4.2"):
        script = "mountpoint -q /mnt/nfs || " + exports.nfs_mount(
            ulptest.ADDRESS, "/mnt/nfs", version
        )
        self.sh(CLIENT, script, timeout=ulptest.LIMIT)

    def calls(self):
        """nfsstat's counts of the client: {"read": 12, ...}, the sum of all versions."""
        found = {}
        text = self.sh(CLIENT, "nfsstat -c -l")
        for name, count in re.findall(r"^nfs v\d+ client\s+(\w+): +(\d+) *$", text, re.M):
            found[name] = found.get(name, 0) + int(count)
        return found

    def test_mount__is_over_rdma(self):
        self.assertIn(",proto=rdma,port=20049,", self.sh(CLIENT, "grep /mnt/nfs /proc/mounts"))
        self.assertIn("proto=rdma", self.sh(CLIENT, "nfsstat -m"))
        self.assertRegex(self.sh(CLIENT, "cat /proc/self/mountstats"), r"xprt:\s+rdma ")
        for vm in (CLIENT, SERVER):
            self.assertGreaterEqual(ulptest.resources(self.lab, vm)["qp"], 1)

    def test_fio__verified(self):
        """Reads and writes of all sizes; for each the server uses RDMA on the client's memory"""
        server = ulptest.counters(self.lab, SERVER)
        calls = self.calls()
        self.check_data("/mnt/nfs/fio")
        more = self.calls()
        for kind in ("read", "write"):
            # Nothing is cached, and no request of fio is longer than 256 KiB.
            self.assertGreaterEqual(more.get(kind, 0) - calls.get(kind, 0), 64, (kind, more))
        after = ulptest.counters(self.lab, SERVER)
        self.assertEqual(after["protection_errors"], server["protection_errors"])

    def test_data__both_directions(self):
        script = "head -c 9000001 /dev/urandom > /mnt/nfs/up && sha256sum < /mnt/nfs/up"
        self.sh(CLIENT, script, timeout=ulptest.LIMIT)
        self.check_same("/mnt/nfs/up")
        self.sh(SERVER, "head -c 5000003 /dev/urandom > /srv/export/down")
        self.check_same("/mnt/nfs/down")

    def test_metadata__many_files(self):
        """Short calls, which are only Sends, and long replies, which are not"""
        names = self.sh(
            CLIENT,
            "mkdir /mnt/nfs/many && cd /mnt/nfs/many && for n in $(seq 100); do "
            "echo $n > a-rather-long-name-of-a-file-so-that-the-list-is-long-$n; done; "
            "cat * | sort -n | tail -n 1; ls | wc -l; cd /; rm -r /mnt/nfs/many",
            timeout=ulptest.LIMIT,
        )
        self.assertEqual(names.split(), ["100", "100"])

    def test_versions(self):
        for version in ("4.0", "4.1"):
            with self.subTest(version):
                self.sh(CLIENT, "umount /mnt/nfs")
                self.mount(version)
                self.assertIn("vers=%s," % version, self.sh(CLIENT, "grep nfs4 /proc/mounts"))
                ulptest.fio(self.lab, "/mnt/nfs/v" + version, size="2M")
        self.sh(CLIENT, "umount /mnt/nfs")

    def test_umount__leaves_nothing(self):
        self.sh(CLIENT, "umount /mnt/nfs", timeout=ulptest.LIMIT)
        ulptest.wait_empty(self.lab, CLIENT, ("qp", "cq", "mr", "pd", "srq"))
        ulptest.wait_for(self.lab, SERVER, "! rdma resource show qp | grep -q RTS")

    def test_unplugged(self):
        """The cable is out for four seconds under traffic: nothing is lost, no client reconnects"""
        self.check_unplugged("/mnt/nfs/unplugged")

    def test_server_killed(self):
        """The server's power is cut under traffic; it comes back, and so does the client"""
        self.check_killed("/mnt/nfs/killed")

    def test_server_gone(self):
        """A soft mount reports in bounded time that the server is gone"""
        self.sh(
            CLIENT,
            "mkdir -p /mnt/soft && mount -t nfs4 -o rdma,port=20049,soft,timeo=30,"
            "retrans=1,noac %s:/ /mnt/soft" % ulptest.ADDRESS,
        )
        self.sh(CLIENT, "echo here > /mnt/soft/file; umount /mnt/nfs")
        self.cut()
        text = self.sh(CLIENT, "timeout 200 cat /mnt/soft/file 2>&1; echo status $?", timeout=220)
        self.assertIn("status 1", text)
        self.sh(CLIENT, "umount -f -l /mnt/soft")
        self.on()
        self.mount()
        self.assertEqual(self.sh(CLIENT, "cat /mnt/nfs/file"), "here\n")


if __name__ == "__main__":
    labtest.main()
