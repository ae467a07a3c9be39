# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel ULPs on RDMA/TCP of 2000: 9P, NFS, NVMe-oF.
# timeout: 900

NFS and NVMe-oF register memory for the peer, and let it end that by Send with Invalidate.  This
wire has no such message: the peer's driver sends a Send, and the client invalidates by itself
(docs/manual/wires.md)."""
import programs
import ulptest
import test_9p as ninep
from labtest import main
from rdmatest import exports
from test_nvme import DISK, NQN
from ulptest import CLIENT, SERVER

FOLDER = "/srv/9p"
IMAGE = FOLDER + "/disk"  # a file may be a namespace, too
SERVE = (
    ninep.SERVE
    + exports.nfs(FOLDER)
    + "truncate -s 64M %s\n" % IMAGE
    + exports.nvme(NQN, ulptest.ADDRESS, IMAGE)
)


class Ulps(ulptest.FileCase):
    """beta's folder is /mnt/9p and /mnt/nfs of alpha; a file in it is alpha's disk."""

    up_arguments = (*ulptest.UP, "--device-prop", "wire=rdma-tcp-2000")
    server_script = SERVE
    served = FOLDER

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

    def errors(self, vm):
        found = ulptest.counters(self.lab, vm)
        return {name: found[name] for name in ("protocol_errors", "protection_errors")}

    def test_9p__verified(self):
        self.mounted = "/mnt/9p"
        self.sh(CLIENT, ninep.MOUNT % "", timeout=ulptest.LIMIT)
        try:
            before = ulptest.counters(self.lab, CLIENT)
            ulptest.fio(self.lab, "/mnt/9p/fio", size="4M")
            self.moved_by_rdma(before, 5 << 20)
            self.check_same("/mnt/9p/fio")
        finally:
            self.sh(CLIENT, "umount /mnt/9p", timeout=ulptest.LIMIT)

    def test_nfs__verified(self):
        """The client registers memory; nobody invalidates it from afar, and none is left"""
        self.mounted = "/mnt/nfs"
        self.sh(CLIENT, exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs"), timeout=ulptest.LIMIT)
        before = {vm: self.errors(vm) for vm in (CLIENT, SERVER)}
        try:
            self.check_data("/mnt/nfs/fio")
            self.assertEqual({vm: self.errors(vm) for vm in (CLIENT, SERVER)}, before)
        finally:
            self.sh(CLIENT, "umount /mnt/nfs", timeout=ulptest.LIMIT)
        ulptest.wait_empty(self.lab, CLIENT, ("qp", "mr"))

    def test_nvme__verified(self):
        before = {vm: self.errors(vm) for vm in (CLIENT, SERVER)}
        self.sh(CLIENT, exports.nvme_connect(NQN, ulptest.ADDRESS), timeout=ulptest.LIMIT)
        try:
            ulptest.wait_for(self.lab, CLIENT, "test -b $(%s)" % DISK)
            disk = self.sh(CLIENT, DISK).strip()
            counted = ulptest.counters(self.lab, CLIENT)
            ulptest.fio(self.lab, disk, "--iodepth=8", "--ioengine=io_uring", size="8M")
            self.moved_by_rdma(counted, 10 << 20)
            self.assertEqual({vm: self.errors(vm) for vm in (CLIENT, SERVER)}, before)
        finally:
            self.sh(CLIENT, "nvme disconnect -n " + NQN, timeout=ulptest.LIMIT)
        ulptest.wait_empty(self.lab, CLIENT, ("qp", "mr"))


if __name__ == "__main__":
    main()
