# SPDX-License-Identifier: GPL-2.0-or-later
"""9P over RDMA: the kernel's client (9pnet_rdma), and Debian's diod behind a relay.
# timeout: 900

None of Debian's 9P servers supports RDMA: diod and nfs-ganesha are packaged without it.  But diod
can serve a stream that it is given; ninep_relay.c (tests/guest-programs/ulp) accepts RDMA
connections and passes the messages on, one Send each."""
import labtest
import programs
import ulptest
from ulptest import CLIENT, SERVER

PORT = 5640
SERVE = (
    ulptest.MAKE_DISK
    + """
[ -z "$new" ] || mkfs.ext4 -q -F /dev/pmem0
mkdir -p /srv/9p
mount /dev/pmem0 /srv/9p
setsid ninep_relay %d diod -f -r 0 -w 1 -e /srv/9p -n -N -L stderr \\
    < /dev/null > /tmp/relay.log 2>&1 &
"""
    % PORT
)
MOUNT = (
    "mount -t 9p -o trans=rdma,port=%d,version=9p2000.L,uname=root,access=user,aname=/srv/9p,"
    "msize=65536%%s %s /mnt/9p" % (PORT, ulptest.ADDRESS)
)


class NineP(ulptest.FileCase):
    """/mnt/9p of alpha is beta's folder."""

    server_script = SERVE
    mounted, served = "/mnt/9p", "/srv/9p"

    @classmethod
    def serve(cls, new=False):
        programs.install(cls.lab, SERVER, "ninep_relay")
        super().serve(new)
        ulptest.wait_for(cls.lab, SERVER, "rdma resource show cm_id | grep -q 'LISTEN.*%d'" % PORT)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.sh(CLIENT, "modprobe -a 9p 9pnet_rdma; mkdir -p /mnt/9p")

    def setUp(self):
        super().setUp()
        self.mount()

    def tearDown(self):
        super().tearDown()
        self.sh(
            CLIENT, "umount /mnt/9p || umount -f -l /mnt/9p", status=None, timeout=ulptest.LIMIT
        )

    def mount(self, more=""):
        self.sh(CLIENT, MOUNT % more, timeout=ulptest.LIMIT)

    def test_mount__is_over_rdma(self):
        """The connection allows no Reads in either direction"""
        self.assertRegex(self.sh(CLIENT, "grep /mnt/9p /proc/mounts"), r"trans=rdma")
        self.assertEqual(ulptest.resources(self.lab, CLIENT)["qp"], 1)

    def test_fio__verified(self):
        before = ulptest.counters(self.lab, CLIENT)
        ulptest.fio(self.lab, "/mnt/9p/fio", size="8M")
        after = self.moved_by_rdma(before, 10 << 20)
        self.assertEqual(after["tx_reads"], before["tx_reads"])
        self.check_same("/mnt/9p/fio")

    def test_data__both_directions(self):
        self.sh(CLIENT, "head -c 3000001 /dev/urandom > /mnt/9p/up", timeout=ulptest.LIMIT)
        self.check_same("/mnt/9p/up")
        self.sh(SERVER, "head -c 2000003 /dev/urandom > /srv/9p/down")
        self.check_same("/mnt/9p/down")

    def test_metadata__many_files(self):
        """Directory listings that take several replies"""
        names = self.sh(
            CLIENT,
            "mkdir /mnt/9p/many && cd /mnt/9p/many && for n in $(seq 50); do "
            "echo $n > a-rather-long-name-of-a-file-so-that-the-list-is-long-$n; done; "
            "cat * | sort -n | tail -n 1; ls | wc -l; cd /; rm -r /mnt/9p/many",
            timeout=ulptest.LIMIT,
        )
        self.assertEqual(names.split(), ["50", "50"])

    def test_umount__leaves_nothing(self):
        """Except objects of a mount whose server was killed: its client waits for ever"""
        self.sh(CLIENT, "umount /mnt/9p", timeout=ulptest.LIMIT)
        before = ulptest.resources(self.lab, CLIENT)
        self.mount()
        self.sh(CLIENT, "umount /mnt/9p", timeout=ulptest.LIMIT)
        ulptest.wait_empty(self.lab, CLIENT, beside=before)
        ulptest.wait_for(self.lab, SERVER, "! rdma resource show qp | grep -q RTS")

    def test_unplugged(self):
        """The cable is out for four seconds under traffic: nothing is lost"""
        self.check_unplugged("/mnt/9p/unplugged")

    def test_server_killed(self):
        """9P has no recovery, its client no time limit: a new mount works beside the dead one"""
        ulptest.Running(self.lab, "/mnt/9p/killed")
        self.cut_and_on()
        self.sh(CLIENT, "umount -f -l /mnt/9p", timeout=ulptest.LIMIT)
        self.mount()
        ulptest.fio(self.lab, "/mnt/9p/again", size="4M")
        self.check_same("/mnt/9p/again")


if __name__ == "__main__":
    labtest.main()
