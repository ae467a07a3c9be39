# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel ULPs on RDMA/TCP of 2000: 9P works; NFS and NVMe need Send with Invalidate, and say so.
# timeout: 900

9P sends messages and registers nothing.  The other two register memory for the peer, which ends
that by Send with Invalidate if its client allows it, and Linux's clients always do.  So their
clients want an adapter that announces memory management extensions."""
import programs
import ulptest
import test_9p as ninep
from labtest import main
from rdmatest import exports
from test_nvme import NQN
from ulptest import CLIENT, SERVER


class Ulps(ulptest.FileCase):
    """/mnt/9p of alpha is beta's folder."""

    up_arguments = (*ulptest.UP, "--device-prop", "wire=rdma-tcp-2000")
    server_script = ninep.SERVE
    mounted, served = "/mnt/9p", "/srv/9p"

    @classmethod
    def serve(cls, new=False):
        programs.install(cls.lab, SERVER, "ninep_relay")
        super().serve(new)
        listens = "rdma resource show cm_id | grep -q 'LISTEN.*%d'" % ninep.PORT
        ulptest.wait_for(cls.lab, SERVER, listens)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        modules = "9p 9pnet_rdma nvme-rdma rpcrdma"
        cls.lab.sh(CLIENT, "modprobe -a %s; mkdir -p /mnt/9p /mnt/nfs /etc/nvme" % modules)

    def test_9p__verified(self):
        self.sh(CLIENT, ninep.MOUNT % "", timeout=ulptest.LIMIT)
        try:
            before = ulptest.counters(self.lab, CLIENT)
            ulptest.fio(self.lab, "/mnt/9p/fio", size="4M")
            self.moved_by_rdma(before, 5 << 20)
            self.check_same("/mnt/9p/fio")
        finally:
            self.sh(CLIENT, "umount /mnt/9p", timeout=ulptest.LIMIT)

    def refused(self, command, reason):
        """The command fails before its limit, the kernel says why, and nothing is left."""
        self.sh(CLIENT, "dmesg -C")
        text = self.sh(
            CLIENT, "timeout 60 %s 2>&1; echo status $?" % command, timeout=ulptest.LIMIT
        )
        self.assertNotRegex(text, r"status (0|124)$", text)
        self.assertIn(reason, self.sh(CLIENT, "dmesg"))
        ulptest.wait_empty(self.lab, CLIENT, ("qp", "mr"))

    def test_nfs__is_refused(self):
        mount = exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs")
        self.refused(
            mount.replace("-o ", "-o retry=0,"), "'frwr' mode is not supported by device staghorn0"
        )

    def test_nvme__is_refused(self):
        connect = exports.nvme_connect(NQN, ulptest.ADDRESS)
        self.refused(connect, "Memory registrations not supported")


if __name__ == "__main__":
    main()
