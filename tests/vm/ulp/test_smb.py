# SPDX-License-Identifier: GPL-2.0-or-later
"""SMB Direct: the kernel's client (cifs) and server (ksmbd), from Debian's kernel source.
# timeout: 600

Debian's kernel has both without RDMA; `make consumers` builds them with RDMA (build/guest/smb).
ksmbd moves the data of large requests by RDMA to and from the client's memory; it listens on port
5445, as on any iWARP adapter."""
import os

import labtest
import programs
import ulptest
from ulptest import CLIENT, SERVER

MODULES = os.path.join(programs.BUILD, "guest", "smb")
# The module's dependencies are loaded as for Debian's module, which ours then replaces.
INSERT = (
    "grep -q '^%(name)s ' /proc/modules || { for module in $(modprobe --show-depends %(name)s | "
    "sed -n 's,^insmod .*/\\([^/]*\\)\\.ko[.xz]* *$,\\1,p' | grep -vx %(name)s); do "
    "modprobe $module; done; modprobe -a rdma_cm ib_core; insmod /tmp/%(name)s.ko; }\n"
)
# The debug kernel's own modules have RDMA.
INSERT = "modprobe %(name)s\n" if labtest.DEBUG else INSERT
SERVE = (
    ulptest.MAKE_DISK
    + "\n"
    + INSERT % {"name": "ksmbd"}
    + """
[ -z "$new" ] || mkfs.ext4 -q -F /dev/pmem0
mkdir -p /srv/share /etc/ksmbd
mount /dev/pmem0 /srv/share
cat > /etc/ksmbd/ksmbd.conf << END
[global]
    netbios name = beta
    map to guest = never
[share]
    path = /srv/share
    read only = no
    force user = root
    force group = root
END
ksmbd.adduser -a -p secret user
ksmbd.mountd
"""
)
MOUNT = "mount -t cifs //%s/share /mnt/smb -o rdma,username=user,password=secret,vers=%s,%s"

MOUNTS = 4  # attempts
# With the client's cache, which keeps files open for a second after they are closed.
CACHED = "cache=strict"


class Smb(ulptest.FileCase):
    """/mnt/smb of alpha is beta's share."""

    server_script = SERVE
    mounted, served = "/mnt/smb", "/srv/share"

    @classmethod
    def serve(cls, new=False):
        cls.lab.run("copy", os.path.join(MODULES, "ksmbd.ko"), SERVER + ":/tmp/ksmbd.ko")
        super().serve(new)
        ulptest.wait_for(cls.lab, SERVER, "rdma resource show cm_id | grep -q 'LISTEN.*5445'")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run("copy", os.path.join(MODULES, "cifs.ko"), CLIENT + ":/tmp/cifs.ko")
        script = "set -e; mkdir -p /mnt/smb\n" + INSERT % {"name": "cifs"}
        cls.lab.sh(CLIENT, script)

    def tearDown(self):
        super().tearDown()
        self.sh(CLIENT, "umount /mnt/smb || umount -f -l /mnt/smb", status=None, timeout=300)

    def mount(self, version="3.1.1", options="cache=none"):
        """ksmbd waits for its daemon for two seconds (IPC_WAIT_TIMEOUT); then there is no such
        share.  On a busy host that is short, so ENOENT is tried again."""
        script = MOUNT % (ulptest.ADDRESS, version, options)
        words = ("exec", CLIENT, "--", "sh", "-c", script)
        for _ in range(MOUNTS - 1):
            done = self.lab.run(*words, status=None, timeout=ulptest.LIMIT)
            if done.returncode == 0:
                return
            self.assertIn("mount error(2)", done.out + done.err)
            print("# the server's daemon did not answer in time; once more")
        self.sh(CLIENT, script, timeout=ulptest.LIMIT)

    def test_mount__is_over_rdma(self):
        self.mount()
        self.assertIn("rdma", self.sh(CLIENT, "grep /mnt/smb /proc/mounts"))
        self.assertRegex(self.sh(CLIENT, "cat /proc/fs/cifs/DebugData"), r"SMBDirect")
        for vm in (CLIENT, SERVER):
            self.assertGreaterEqual(ulptest.resources(self.lab, vm)["qp"], 1)

    def test_fio__verified(self):
        """Reads and writes of all sizes; the server uses RDMA for large ones"""
        self.mount()
        self.check_data("/mnt/smb/fio")

    def test_data__both_directions(self):
        self.mount(options=CACHED)
        script = "head -c 9000001 /dev/urandom > /mnt/smb/up && sync"
        self.sh(CLIENT, script, timeout=ulptest.LIMIT)
        ulptest.wait_for(self.lab, CLIENT, "! grep -q up /proc/fs/cifs/open_files")
        self.check_same("/mnt/smb/up")
        self.sh(SERVER, "head -c 5000003 /dev/urandom > /srv/share/down")
        self.check_same("/mnt/smb/down")

    def test_umount__leaves_nothing(self):
        self.mount()
        self.sh(CLIENT, "umount /mnt/smb", timeout=ulptest.LIMIT)
        ulptest.wait_empty(self.lab, CLIENT)
        ulptest.wait_for(self.lab, SERVER, "! rdma resource show qp | grep -q RTS")

    def test_unplugged(self):
        """The cable is out for four seconds under traffic: nothing is lost"""
        self.mount()
        self.check_unplugged("/mnt/smb/unplugged")

    def test_server_killed(self):
        """The server's power is cut: errors or success in bounded time, and a new mount works"""
        self.mount(options="cache=none,soft,echo_interval=2")
        running = ulptest.Running(self.lab, "/mnt/smb/killed")
        self.cut_and_on()
        running.end()
        self.sh(CLIENT, "umount -f -l /mnt/smb", status=None, timeout=ulptest.LIMIT)
        self.mount()
        ulptest.fio(self.lab, "/mnt/smb/again", size="4M")
        self.check_same("/mnt/smb/again")


if __name__ == "__main__":
    labtest.main()
