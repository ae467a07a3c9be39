# SPDX-License-Identifier: GPL-2.0-or-later
"""SRP: the kernel's target (ib_srpt) and initiator (ib_srp), connected by rdma_cm.
# timeout: 1200

SRP is an InfiniBand protocol; its login through rdma_cm works on any RDMA device.  No tool in
Debian configures the target for iWARP, so the test writes LIO's configuration file system directly.
With use_srq the target's receive queue is shared.  The target knows an initiator that connects
through rdma_cm by the target's own address, because ib_srpt takes the connection's source address
for the initiator's."""
import labtest
import rdmatest
import ulptest
from launcher.qmp import Monitor
from ulptest import CLIENT, SERVER

PORT = 5555
SCSI_TIMEOUT = 300  # seconds of a command
GUID = "5347001122334455"
SERVE = (
    ulptest.MAKE_DISK
    + """
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
modprobe -a target_core_mod target_core_iblock
mkdir -p /etc/target/pr /var/target/pr /var/target/alua
modprobe ib_srpt srpt_service_guid=0x%(guid)s
cd /sys/kernel/config/target
mkdir -p core/iblock_0/disk
echo udev_path=/dev/pmem0 > core/iblock_0/disk/control
echo 1 > core/iblock_0/disk/enable
dev=$(cat /run/staghorn/rdma)
port=$(cut -d : -f 5-8 /sys/class/infiniband/$dev/ports/1/gids/0)
mkdir -p srpt/$port
echo %(port)d > srpt/discovery_auth/rdma_cm_port
mkdir -p srpt/$port/tpg
echo 256 > srpt/$port/tpg/attrib/srp_sq_size
echo ${srq:-0} > srpt/$port/tpg/attrib/use_srq
mkdir -p srpt/$port/tpg/lun/lun_0
ln -s /sys/kernel/config/target/core/iblock_0/disk srpt/$port/tpg/lun/lun_0/disk
mkdir -p srpt/$port/tpg/acls/%(client)s/lun_0
ln -s /sys/kernel/config/target/srpt/$port/tpg/lun/lun_0 srpt/$port/tpg/acls/%(client)s/lun_0/lun
echo 1 > srpt/$port/tpg/enable
"""
    % {"guid": GUID, "port": PORT, "client": ulptest.ADDRESS}
)
UNSERVE = """
cd /sys/kernel/config/target/srpt/*:*/tpg
echo 0 > enable
rm acls/*/lun_0/lun
rmdir acls/*/lun_0 acls/*
rm lun/lun_0/disk
rmdir lun/lun_0
cd ../..
rmdir *:*/tpg *:*
echo 0 > discovery_auth/rdma_cm_port
cd ../core
rmdir iblock_0/disk
cd /
rmdir /sys/kernel/config/target/srpt
modprobe -r ib_srpt
"""
LOGIN = (
    "echo id_ext=%(guid)s,ioc_guid=%(guid)s,dest=%(address)s:%(port)d,max_cmd_per_lun=16,"
    "queue_size=64 > /sys/class/infiniband_srp/srp-$(cat /run/staghorn/rdma)-1/add_target"
    % {"guid": GUID, "address": ulptest.ADDRESS, "port": PORT}
)
LOGOUT = "for port in /sys/class/srp_remote_ports/*; do echo 1 > $port/delete; done"
TIMEOUTS = """
for port in /sys/class/srp_remote_ports/*; do
    echo off > $port/dev_loss_tmo; echo %s > $port/fast_io_fail_tmo
    echo %s > $port/dev_loss_tmo; echo 2 > $port/reconnect_delay
done
"""


class Srp(ulptest.DiskCase):
    """alpha logs in to beta's target."""

    server_script = SERVE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.sh(CLIENT, "modprobe -a sd_mod ib_srp")

    def tearDown(self):
        super().tearDown()
        self.sh(CLIENT, LOGOUT, status=None)
        ulptest.wait_for(self.lab, CLIENT, "! ls /sys/class/srp_remote_ports | grep -q .")

    def login(self, fast_fail="off", loss="off"):
        """The disk's name, once it exists."""
        # The initiator refuses a login as long as it tears down an earlier one.
        ulptest.wait_for(self.lab, CLIENT, LOGIN)
        self.sh(CLIENT, TIMEOUTS % (fast_fail, loss))
        disk = self.wait_disk()
        # SCSI must not give up the disk as long as the transport waits for the target.
        self.sh(CLIENT, "echo %d > /sys/block/%s/device/timeout" % (SCSI_TIMEOUT, disk[5:]))
        return disk

    def test_fio__verified(self):
        """Each command's data is read or written by the target"""
        self.check_data(self.login(), *self.queued)

    def test_shared_receive_queue(self):
        """The target with use_srq: the same data"""
        # When ib_srpt tears down a channel it frees the cache of the channel's own receive buffers,
        # which a channel with a shared queue never had: hence its WARN_ON_ONCE, on any device.
        self.tolerated = (r"ulp/srpt/ib_srpt\.c:\d+ srpt_cache_put\+",)
        self.sh(SERVER, UNSERVE, timeout=ulptest.LIMIT)
        self.sh(SERVER, "srq=1\nset -e\n" + SERVE)
        try:
            self.assertGreaterEqual(ulptest.resources(self.lab, SERVER)["srq"], 1)
            self.check_data(self.login(), *self.queued)
            self.sh(CLIENT, LOGOUT)
            ulptest.wait_empty(self.lab, CLIENT, ("qp",))
        finally:
            self.sh(SERVER, UNSERVE, timeout=ulptest.LIMIT)
            ulptest.wait_empty(self.lab, SERVER)
            self.serve()

    def test_logout__leaves_nothing(self):
        self.login()
        self.assertGreaterEqual(ulptest.resources(self.lab, CLIENT)["qp"], 1)
        self.sh(CLIENT, LOGOUT)
        ulptest.wait_for(self.lab, CLIENT, "! ls /sys/class/srp_remote_ports | grep -q .")
        # The module keeps a protection domain on each device.
        ulptest.wait_empty(self.lab, CLIENT, ("qp", "cq", "mr"))
        ulptest.wait_for(self.lab, SERVER, "! rdma resource show qp | grep -q RTS")

    def test_unplugged(self):
        """The cable is out for four seconds under traffic: nothing is lost"""
        self.check_unplugged(self.login())

    def test_target_killed(self):
        """The target's power is cut under traffic; it comes back, and fio goes on"""
        # Without a limit for a lost device the initiator fails all waiting requests after one
        # refused connect (srp_reconnect_rport()), for example by a target that is just starting.
        self.check_killed(self.login(loss="300"))

    def test_adapter_lost(self):
        """The initiator's adapter fails under traffic; afterwards the initiator can log in again

        Its send queue completes into a completion queue that is polled directly.  An event for that
        queue would make the kernel warn."""
        disk = self.login(fast_fail="5", loss="10")
        # The initiator must not reconnect meanwhile: see docs/upstream/linux-0004.
        self.sh(
            CLIENT,
            "for port in /sys/class/srp_remote_ports/*; do "
            "echo off > $port/reconnect_delay; done",
        )
        running = ulptest.Running(self.lab, disk)
        with Monitor(rdmatest.folder(self.lab), CLIENT) as monitor:
            monitor.run("qom-set", value=True, path="r0", property="fatal")
        output = running.end()
        self.assertRegex(output, r"err= *[1-9]|Input/output error|No such device")
        ulptest.wait_for(self.lab, CLIENT, "dmesg | grep -q 'adapter is up again'")
        disk = self.login()
        ulptest.fio(self.lab, disk, size="4M")
        self.check_same(disk)

    def test_target_gone(self):
        """A target that stays away: errors in bounded time"""
        disk = self.login(fast_fail="5", loss="10")
        self.check_gone(disk, r"err= *[1-9]|Input/output error|No such device")


if __name__ == "__main__":
    labtest.main()
