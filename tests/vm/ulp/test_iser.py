# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER: the kernel's target (LIO with ib_isert, set up by targetcli) and open-iscsi.
# timeout: 1200

The adapter listens on the portal's port, so iSCSI over TCP cannot be reached at the same address
and port: the port decides what is RDMA, as with all iWARP adapters."""
import labtest
import programs
import ulptest
from ulptest import CLIENT, SERVER

TARGET = "iqn.2024-01.org.example:disk"
INITIATOR = "iqn.2024-01.org.example:alpha"
PORTAL = ulptest.ADDRESS + ":3260"
SERVE = (
    ulptest.MAKE_DISK
    + """
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
modprobe -a target_core_mod target_core_iblock iscsi_target_mod ib_isert
mkdir -p /etc/target/pr /var/target/pr /var/target/alua
mkdir -p /run/dbus
[ -e /run/dbus/system_bus_socket ] || dbus-daemon --system --fork
targetcli > /tmp/targetcli.log 2>&1 << END || { cat /tmp/targetcli.log >&2; exit 1; }
/backstores/block create name=disk dev=/dev/pmem0
/iscsi create %(target)s
/iscsi/%(target)s/tpg1/portals delete 0.0.0.0 3260
/iscsi/%(target)s/tpg1/portals create %(address)s 3260
/iscsi/%(target)s/tpg1/portals/%(address)s:3260 enable_iser true
/iscsi/%(target)s/tpg1/luns create /backstores/block/disk
/iscsi/%(target)s/tpg1/acls create %(initiator)s
exit
END
grep -q 1 /sys/kernel/config/target/iscsi/%(target)s/tpgt_1/np/%(address)s:3260/iser
"""
    % {"target": TARGET, "address": ulptest.ADDRESS, "initiator": INITIATOR}
)
PREPARE = (
    """
mkdir -p /etc/iscsi /run/lock/iscsi
echo InitiatorName=%s > /etc/iscsi/initiatorname.iscsi
modprobe ib_iser
modprobe sd_mod
iscsid
"""
    % INITIATOR
)
NODE = "iscsiadm -m node -T %s -p %s" % (TARGET, PORTAL)
SETTINGS = (
    "node.session.timeo.replacement_timeout=%d",
    "node.conn[0].timeo.noop_out_interval=%d",
    "node.conn[0].timeo.noop_out_timeout=%d",
    "node.conn[0].timeo.login_timeout=60",
)


class Iser(ulptest.DiskCase):
    """alpha logs in to beta's target.

    LIO's login thread sets a connection's parameters after it has sent the last login response;
    ib_isert passes commands on as they arrive.  A command that arrives in between finds lengths of
    0, and iscsit_build_pdu_and_seq_lists() never ends.  An initiator that logs in again with
    pending writes is fast enough for that if the login thread does not continue at once.  With one
    processor, whose kernel threads are not preempted, the command waits until the thread is
    done."""

    up_arguments = (*ulptest.UP, "--cpus", "1")
    server_script = SERVE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.sh(CLIENT, PREPARE)

    def tearDown(self):
        super().tearDown()
        self.sh(CLIENT, NODE + " -u; " + NODE + " -o delete", status=None, timeout=ulptest.LIMIT)

    def login(self, replacement=600, noop=15):
        """The disk's name, once it exists."""
        values = [
            text % value if "%d" in text else text
            for text, value in zip(SETTINGS, (replacement, noop, noop, 0))
        ]
        script = "set -e; %s -o new -I iser\n" % NODE
        for name, value in (text.split("=") for text in values):
            script += "%s -o update -n '%s' -v %s\n" % (NODE, name, value)
        self.sh(CLIENT, script + NODE + " --login", timeout=ulptest.LIMIT)
        return self.wait_disk()

    def restart_client(self):
        self.lab.run("cut", CLIENT)
        self.lab.run("on", CLIENT, "--timeout", labtest.UP_LIMIT)
        programs.install(self.lab, CLIENT, "fio")
        self.sh(CLIENT, PREPARE)

    def test_discovery(self):
        """The discovery session is over RDMA, too

        On a busy machine both ends have races of their own here, in which no message is lost (the
        counters agree).  LIO rejects a Text request that arrives before the login thread has set
        the type of the session.  iscsiadm misses a response that its kernel has delivered, waits
        for 30 seconds, and may crash, which leaves a session that nothing can end."""
        script = "iscsiadm -m discovery -t sendtargets -p %s -I iser" % PORTAL
        for _ in range(4):
            before = ulptest.counters(self.lab, CLIENT)
            words = ("exec", CLIENT, "--", "timeout", "100", "sh", "-c", script)
            done = self.lab.run(*words, status=None, timeout=ulptest.LIMIT)
            after = ulptest.counters(self.lab, CLIENT)
            # Each request that was sent has its answer, whatever the upper layers did with it.
            sends, answers = (after[k] - before[k] for k in ("tx_sends", "rx_sends"))
            self.assertEqual(sends, answers, done.out + done.err)
            if done.returncode == 0 and TARGET in done.out:
                self.assertGreaterEqual(answers, 2)
                return
            print("# discovery again:", *(done.out + done.err).splitlines(), sep="\n#   ")
            self.restart_client()
        self.fail(done.out + done.err)

    def test_session__is_iser(self):
        self.login()
        self.assertRegex(self.sh(CLIENT, "iscsiadm -m session"), r"(?m)^iser: ")
        self.assertGreaterEqual(ulptest.resources(self.lab, CLIENT)["qp"], 1)

    def test_fio__verified(self):
        """Each command's data is read or written by the target"""
        self.check_data(self.login(), *self.queued)

    def test_logout__leaves_nothing(self):
        self.login()
        self.sh(CLIENT, NODE + " -u", timeout=ulptest.LIMIT)
        ulptest.wait_empty(self.lab, CLIENT)
        ulptest.wait_for(self.lab, SERVER, "! rdma resource show qp | grep -q RTS")

    def test_unplugged(self):
        """The cable is out for longer than iSCSI's ping timeout: the session is recovered"""
        disk = self.login(noop=3)
        running = ulptest.Running(self.lab, disk)
        self.lab.run("link", SERVER, "down")
        ulptest.wait_for(self.lab, CLIENT, "! grep -q LOGGED_IN /sys/class/iscsi_session/*/state")
        self.lab.run("link", SERVER, "up")
        running.finish()
        self.check_same(disk)

    def test_target_killed(self):
        """The target's power is cut under traffic; it comes back, and fio goes on"""
        self.check_killed(self.login())

    def test_target_gone(self):
        """A target that stays away: errors in bounded time"""
        disk = self.login(replacement=5, noop=3)
        self.check_gone(disk, r"err= *[1-9]|Input/output error")


if __name__ == "__main__":
    labtest.main()
