# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel ULPs between the adapter and siw: NFS and NVMe, each device at each end.
# timeout: 1800

siw does not read a first message that arrives before its queue pair has the socket, sometimes
closes for no reason, and its kernel may stop with "kernel BUG at .../iwcm.c" (see test_interop).
So a case may fail three times, with the VMs restarted in between; each time is printed.  The data,
and the adapter's side, are judged strictly: no protocol error, no complaint of its kernel.
"""
import labtest
import rdmatest
import ulptest
import test_nfs
import test_nvme
from rdmatest import exports
from ulptest import CLIENT, SERVER

ATTEMPTS = 4  # of a case, because of siw
LIMIT = 90  # seconds of a step; if siw hangs it hangs for ever


class Mixed(labtest.LabCase):
    """The server is beta, the client alpha; the case says which of them has siw."""

    # The adapter gives siw time to pass its socket on, as in a lab that starts with siw.
    up_arguments = (*ulptest.UP, "--device-prop", "first-fpdu-delay=100")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kinds = {CLIENT: "staghorn", SERVER: "staghorn"}
        cls.prepare_client()

    @classmethod
    def prepare_client(cls):
        ulptest.programs.install(cls.lab, CLIENT, "fio")
        cls.lab.sh(CLIENT, "modprobe nvme-rdma; mkdir -p /mnt/nfs /etc/nvme")

    def setUp(self):
        self.ours = None

    def start_again(self, vm):
        """Restarts the VM with the same device."""
        self.lab.run("cut", vm)
        self.lab.run("on", vm, "--timeout", labtest.UP_LIMIT, timeout=labtest.UP_LIMIT + 60)
        if vm == CLIENT:
            self.prepare_client()
        rdmatest.rdma.use(rdmatest.folder(self.lab), self.kinds[vm], [vm])

    def sh(self, vm, script, limit=LIMIT):
        """Both ends have a time limit: a command that siw makes hang raises an AssertionError."""
        words = ("exec", "-n", "--timeout", limit, vm, "--", "sh", "-c", script)
        return self.lab.run(*words, timeout=limit + 60).out

    def run_case(self, siw, case):
        """Runs with siw in that VM and the adapter in the other."""
        self.ours = SERVER if siw == CLIENT else CLIENT
        for vm, kind in ((siw, "siw"), (self.ours, "staghorn")):
            if self.kinds[vm] != kind:
                rdmatest.rdma.use(rdmatest.folder(self.lab), kind, [vm])
                self.kinds[vm] = kind
        for attempt in range(1, ATTEMPTS + 1):
            before = ulptest.counters(self.lab, self.ours)
            try:
                case()
                break
            except AssertionError as error:
                ulptest.check_kernel(self.lab, self.ours)
                if attempt == ATTEMPTS:
                    raise
                print("# tried again: " + " ".join(str(error).splitlines()[:3]))
                for vm in (CLIENT, SERVER):
                    self.start_again(vm)
        after = ulptest.counters(self.lab, self.ours)
        self.assertEqual(after["protocol_errors"], before["protocol_errors"])
        moved = sum(after[name] - before[name] for name in ("tx_octets", "rx_octets"))
        self.assertGreater(moved, 8 << 20)
        ulptest.check_kernel(self.lab, self.ours)

    def fio(self, target, *more):
        words = ulptest.fio_words(target, *more, size="4M")
        words = ("exec", "-n", "--timeout", LIMIT, CLIENT, "--", *words)
        done = self.lab.run(*words, status=None, timeout=LIMIT + 60)
        ulptest.check_fio(done.returncode, done.out + done.err)

    def nfs(self):
        self.sh(SERVER, "new=yes\nset -e\n" + test_nfs.SERVE)
        self.sh(CLIENT, exports.nfs_mount(ulptest.ADDRESS, "/mnt/nfs"))
        self.assertIn(",proto=rdma,", self.sh(CLIENT, "grep /mnt/nfs /proc/mounts"))
        self.fio("/mnt/nfs/fio")
        script = "sync; echo 3 > /proc/sys/vm/drop_caches; sha256sum < %s/fio"
        client = self.sh(CLIENT, script % "/mnt/nfs")
        self.assertEqual(client, self.sh(SERVER, script % "/srv/export"))
        self.sh(CLIENT, "umount /mnt/nfs")
        self.sh(SERVER, exports.nfs_end("/srv/export"))

    def nvme(self):
        self.sh(SERVER, "set -e\n" + test_nvme.SERVE)
        words = (test_nvme.NQN, ulptest.ADDRESS, "--keep-alive-tmo=60")
        self.sh(CLIENT, exports.nvme_connect(*words))
        ulptest.wait_for(self.lab, CLIENT, "test -b $(%s)" % test_nvme.DISK, LIMIT)
        disk = self.sh(CLIENT, test_nvme.DISK).strip()
        self.fio(disk, "--iodepth=8", "--ioengine=io_uring")
        script = "dd if=%s bs=1M count=4 iflag=direct 2> /dev/null | sha256sum"
        client = self.sh(CLIENT, script % disk)
        self.assertEqual(client, self.sh(SERVER, script % ulptest.DISK))
        self.sh(CLIENT, "nvme disconnect -n " + test_nvme.NQN)
        self.sh(SERVER, exports.NVME_END)

    def test_nfs__server_is_siw(self):
        self.run_case(SERVER, self.nfs)

    def test_nfs__client_is_siw(self):
        self.run_case(CLIENT, self.nfs)

    def test_nvme__target_is_siw(self):
        self.run_case(SERVER, self.nvme)

    def test_nvme__host_is_siw(self):
        self.run_case(CLIENT, self.nvme)


if __name__ == "__main__":
    labtest.main()
