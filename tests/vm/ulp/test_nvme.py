# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA: the kernel's target (nvmet-rdma) and host (nvme-rdma), nvme-cli.
# timeout: 1200

The namespace is the target's NVDIMM, so acknowledged data survive a power cut of the target.  The
target has one receive queue per queue pair, or a shared one (use_srq)."""
import labtest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

NQN = "nqn.2024-01.org.example:disk"
SERVE = ulptest.MAKE_DISK + exports.nvme(NQN, ulptest.ADDRESS, ulptest.DISK)
DISK = "ls /dev/nvme*n1 | head -n 1"


class Nvme(ulptest.DiskCase):
    """alpha connects to beta's namespace."""

    server_script = SERVE
    disk_script = DISK

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.sh(CLIENT, "modprobe nvme-rdma; mkdir -p /etc/nvme")

    def tearDown(self):
        super().tearDown()
        self.sh(CLIENT, "nvme disconnect -n " + NQN, status=None, timeout=ulptest.LIMIT)

    def connect(self, **more):
        """The disk's name, once it exists."""
        options = {"ctrl_loss_tmo": 600, "reconnect_delay": 1, "keep_alive_tmo": 60, **more}
        words = " ".join("--%s=%d" % (k.replace("_", "-"), v) for k, v in options.items())
        script = exports.nvme_connect(NQN, ulptest.ADDRESS, words)
        self.sh(CLIENT, script, timeout=ulptest.LIMIT)
        return self.wait_disk()

    def state(self):
        return self.sh(CLIENT, "cat /sys/class/nvme/nvme*/state", status=None).strip()

    def test_discover(self):
        text = self.sh(CLIENT, "nvme discover -t rdma -a %s -s 4420" % ulptest.ADDRESS)
        self.assertIn(NQN, text)
        self.assertRegex(text, r"trtype: *rdma")
        self.assertRegex(text, r"rdma_qptype: *connected")

    def test_fio__verified(self):
        """Small writes are in the capsule; the target reads the others"""
        self.check_data(self.connect(), *self.queued)

    def test_file_system(self):
        """An ext4 file system is made, written, unmounted and checked"""
        disk = self.connect()
        self.sh(
            CLIENT,
            "set -e; mkfs.ext4 -q -F %s 96M; mkdir -p /mnt/x; mount %s /mnt/x; "
            "cp -r /usr/share/nfs* /usr/lib/x86_64-linux-gnu/libc.so* /mnt/x 2>/dev/null || :; "
            "sha256sum /mnt/x/libc.so.6 | cut -c1-64 > /tmp/a; umount /mnt/x; e2fsck -fn %s; "
            "mount %s /mnt/x; sha256sum /mnt/x/libc.so.6 | cut -c1-64 > /tmp/b; umount /mnt/x; "
            "cmp /tmp/a /tmp/b" % (disk, disk, disk, disk),
            timeout=ulptest.LIMIT,
        )

    def test_shared_receive_queue(self):
        """The target with use_srq=1: the same data, and a queue that all queue pairs share"""
        self.sh(SERVER, exports.NVME_END, timeout=ulptest.LIMIT)
        self.sh(SERVER, "srq=Y\nset -e\n" + SERVE)
        try:
            disk = self.connect()
            found = ulptest.resources(self.lab, SERVER)
            self.assertGreaterEqual(found["srq"], 1)
            self.assertGreaterEqual(found["qp"], 3)
            ulptest.fio(self.lab, disk, *self.queued, size="16M")
            self.check_same(disk)
            self.sh(CLIENT, "nvme disconnect -n " + NQN, timeout=ulptest.LIMIT)
        finally:
            self.sh(SERVER, exports.NVME_END, timeout=ulptest.LIMIT)
            ulptest.wait_empty(self.lab, SERVER)
            self.serve()

    def test_disconnect__leaves_nothing(self):
        self.connect()
        self.assertGreaterEqual(ulptest.resources(self.lab, CLIENT)["qp"], 3)
        text = self.sh(CLIENT, "nvme disconnect -n " + NQN, timeout=ulptest.LIMIT)
        self.assertIn("disconnected 1 controller", text)
        ulptest.wait_empty(self.lab, CLIENT)
        ulptest.wait_for(self.lab, SERVER, "! rdma resource show qp | grep -q RTS")

    def test_unplugged(self):
        """The cable is out for longer than the keep-alive: the host reconnects, fio continues"""
        disk = self.connect(keep_alive_tmo=5)
        running = ulptest.Running(self.lab, disk)
        self.lab.run("link", SERVER, "down")
        ulptest.wait_for(self.lab, CLIENT, "grep -q connecting /sys/class/nvme/nvme*/state")
        self.lab.run("link", SERVER, "up")
        running.finish()
        self.assertEqual(self.state(), "live")
        self.check_same(disk)

    def test_unplugged_shortly(self):
        """The cable is out for less: TCP retransmits, and the host does not reconnect"""
        disk = self.connect()
        # On the debug kernel the log has the cases before this one, too.
        self.sh(CLIENT, "echo unplugged shortly > /dev/kmsg")
        self.check_unplugged(disk)
        newest = self.sh(CLIENT, "dmesg | tac | sed '/unplugged shortly/q'")
        self.assertNotIn("econnecting", newest)

    def test_target_killed(self):
        """The target's power is cut under traffic; it comes back, and fio continues"""
        self.check_killed(self.connect(keep_alive_tmo=5))

    def test_target_gone(self):
        """A target that stays away: errors in bounded time, and the host gives up the controller"""
        disk = self.connect(ctrl_loss_tmo=10, reconnect_delay=5, keep_alive_tmo=5)

        def given_up():
            ulptest.wait_for(self.lab, CLIENT, "! ls /dev/nvme*n1")
            ulptest.wait_empty(self.lab, CLIENT)

        # EIO, or ENOLINK if the host has given up the path with the write on it.
        self.check_gone(disk, r"err= *(5|67)\b", given_up)


if __name__ == "__main__":
    labtest.main()
