# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel ULPs on lesser adapters: NFS, NVMe and 9P over RDMA, each with several profiles.
# timeout: 1200

The profiles change as a user would change them, by an update and a reload.  A ULP reports that a
capability which it needs is missing; the adapter continues."""
import os
import tempfile

import labtest
import programs
import ulptest
import test_9p as ninep
import test_nfs as nfs
import test_nvme as nvme
import updatetest
from rdmatest import exports
from ulptest import CLIENT, SERVER

LIMIT = ulptest.LIMIT
NVME_WORDS = "--queue-size=32 --keep-alive-tmo=60"
END_NINEP = r"kill $(sed -n 's/^\([0-9]*\) (\(ninep_relay\|diod\)) .*/\1/p' /proc/[0-9]*/stat)"


class Profiles(ulptest.ConsumerCase):
    """alpha is the client, beta the server."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sg-profiles-")
        cls.number = 0
        super().setUpClass()
        cls.lab.sh(
            CLIENT, "modprobe -a nvme-rdma 9p 9pnet_rdma; mkdir -p /etc/nvme /mnt/nfs /mnt/9p"
        )
        programs.install(cls.lab, SERVER, "ninep_relay")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def become(self, **profiles):
        for vm, profile in profiles.items():
            path = os.path.join(self.folder.name, "new.fw")
            type(self).number += 1
            updatetest.make(path, profile, "2.0.%d" % self.number)
            updatetest.flash(self.lab, vm, updatetest.read(path))
            updatetest.reload_driver(self.lab, vm)
            found = updatetest.info(self.lab, vm)["versions"]["running"]
            self.assertEqual(found["fw.profile"], profile)

    def nfs(self, run):
        """Starts the server, and calls run() while it serves."""
        self.sh(SERVER, "set -e\nnew=yes\n" + nfs.SERVE, timeout=LIMIT)
        try:
            run()
        finally:
            self.sh(SERVER, exports.nfs_end("/srv/export"), timeout=LIMIT)

    def nfs_moves(self):
        self.sh(CLIENT, exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs"), timeout=LIMIT)
        try:
            self.assertIn("proto=rdma", self.sh(CLIENT, "grep /mnt/nfs /proc/mounts"))
            ulptest.fio(self.lab, "/mnt/nfs/fio", size="4M")
            sums = [
                self.sh(vm, "sync; sha256sum < %s/fio" % folder, timeout=LIMIT)
                for vm, folder in ((CLIENT, "/mnt/nfs"), (SERVER, "/srv/export"))
            ]
            self.assertEqual(*sums)
        finally:
            self.sh(CLIENT, "umount /mnt/nfs", timeout=LIMIT)

    def nvme(self, srq="N"):
        self.sh(SERVER, "srq=%s\nset -e\n%s" % (srq, nvme.SERVE), timeout=LIMIT)
        try:
            self.nvme_moves()
        finally:
            self.sh(SERVER, exports.NVME_END, timeout=LIMIT)

    def nvme_moves(self):
        script = exports.nvme_connect(nvme.NQN, ulptest.ADDRESS, NVME_WORDS)
        self.sh(CLIENT, script, timeout=LIMIT)
        try:
            ulptest.wait_for(self.lab, CLIENT, "test -b $(%s)" % nvme.DISK)
            disk = self.sh(CLIENT, nvme.DISK).strip()
            ulptest.fio(self.lab, disk, "--iodepth=8", "--ioengine=io_uring", size="4M")
            script = "dd if=%s bs=1M count=4 iflag=direct 2>/dev/null | sha256sum"
            self.assertEqual(self.sh(CLIENT, script % disk), self.sh(SERVER, script % ulptest.DISK))
        finally:
            self.sh(CLIENT, "nvme disconnect -n " + nvme.NQN, timeout=LIMIT)

    def ninep(self, run):
        """Starts the 9P server, and calls run() while it serves."""
        self.sh(SERVER, "set -e\nnew=yes\n" + ninep.SERVE, timeout=LIMIT)
        listens = "rdma resource show cm_id | grep -q 'LISTEN.*%d'" % ninep.PORT
        try:
            ulptest.wait_for(self.lab, SERVER, listens)
            run()
        finally:
            # diod keeps the file system busy until it has ended.
            self.sh(SERVER, END_NINEP, status=None)
            ulptest.wait_for(self.lab, SERVER, "umount /srv/9p || ! mountpoint -q /srv/9p")
            ulptest.wait_for(self.lab, SERVER, "! " + listens)

    def ninep_moves(self):
        self.sh(CLIENT, ninep.MOUNT % "", timeout=LIMIT)
        try:
            ulptest.fio(self.lab, "/mnt/9p/fio", size="2M")
            sums = [
                self.sh(vm, "sync; sha256sum < %s/fio" % folder, timeout=LIMIT)
                for vm, folder in ((CLIENT, "/mnt/9p"), (SERVER, "/srv/9p"))
            ]
            self.assertEqual(*sums)
        finally:
            self.sh(CLIENT, "umount /mnt/9p", timeout=LIMIT)

    def ninep_refused(self):
        text = self.sh(
            CLIENT, "timeout 60 %s 2>&1; echo status $?" % (ninep.MOUNT % ""), timeout=LIMIT
        )
        self.assertNotRegex(text, "status (0|124)$", text)
        self.assertIn("Transport endpoint is not connected", text)
        self.sh(CLIENT, "! mountpoint -q /mnt/9p")

    def nfs_refused(self):
        mount = exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs")
        self.sh(CLIENT, "timeout 60 %s; test $? -ne 0" % mount, timeout=LIMIT)
        self.assertIn("HCA provides only 2 send SGEs", self.sh(CLIENT, "dmesg"))

    # -- the profiles

    def test_no_srq_no_mw(self):
        """A target that is told to share its receive queues works without"""
        self.become(alpha="no-srq-no-mw", beta="no-srq-no-mw")
        self.nvme(srq="Y")
        self.assertIn("SRQ requested but not supported", self.sh(SERVER, "dmesg"))
        self.nfs(self.nfs_moves)

    def test_small__server(self):
        """One Read at a time, two elements"""
        self.become(alpha="full", beta="small")
        self.nvme()
        self.nfs(self.nfs_moves)
        self.ninep(self.ninep_moves)

    def test_small__client(self):
        """NFS needs three elements at its client, 9P four; they find two, and say so"""
        self.become(alpha="small", beta="full")
        self.nfs(self.nfs_refused)
        self.ninep(self.ninep_refused)
        self.nvme()

    def test_strict__client_of_mpa1(self):
        """CRC and markers on one side, no negotiation of depths on the other"""
        self.become(alpha="mpa1", beta="strict")
        self.nvme()
        self.nfs(self.nfs_moves)

    def test_no_placement(self):
        self.become(alpha="no-placement", beta="no-placement")
        self.nvme()
        self.nfs(self.nfs_moves)


if __name__ == "__main__":
    labtest.main()
