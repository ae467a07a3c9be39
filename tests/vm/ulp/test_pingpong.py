#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that connect by ibv_modify_qp alone.

They are rdma-core's ping-pong programs, between two VMs and within one, and two programs of
tests/guest-programs/rendezvous: rendezvous.py tests faults, rdv_unknown.c unknown peers."""
# timeout: 900
import re

import labtest
import programs
import rdmatest
from ulptest import check_kernel, wait_for

GIDS = "/sys/class/infiniband/staghorn0/ports/1/gids"
UNCONFIRMED = "transport retry counter exceeded"
ENDS_EARLY = 5
SECOND, SECOND_GID = "10.77.0.77", "ffff:0a4d:004d$"


class Pingpong(labtest.LabCase):
    up_arguments = ("--image", "consumers")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        script = programs.SOURCES / "rendezvous" / "rendezvous.py"
        cls.lab.run("copy", script, "alpha:/root/rendezvous.py")
        for vm in ("alpha", "beta"):
            programs.install(cls.lab, vm, "rdv_unknown")
            for start in ("fd77", "fe80"):
                wait_for(cls.lab, vm, "grep -q ^%s %s/*" % (start, GIDS))
        cls.gids = {vm: cls.table(vm) for vm in ("alpha", "beta")}

    @classmethod
    def table(cls, vm):
        """The existing entries: {index: GID}."""
        out = cls.lab.sh(vm, "cd %s; grep . *" % GIDS)
        lines = (line.split(":", 1) for line in out.split())
        return {int(i): gid for i, gid in lines if gid.strip("0:")}

    def program(self, server, client, tool, *extra):
        """One run, whose client starts when the server listens; returns the client's output."""
        waiting = self.lab.start(server, "timeout", "90", tool, *extra)
        waiting.expect("local address")
        address = self.lab.sh(server, "hostname -I").split()[0]
        words = " ".join(map(str, extra))
        out = self.lab.sh(client, "timeout 90 %s %s %s" % (tool, words, address))
        self.assertEqual(waiting.wait(), 0, waiting.output)
        self.assertRegex(out, r"iters in [0-9.]+ seconds")
        return out

    def test_gid_kinds(self):
        """GIDs from MAC, IPv4, global and link-local IPv6 address, each with a peer of its kind."""
        kinds = set()
        for index, gid in self.gids["beta"].items():
            kinds.add(gid[:4] if index else "mac")
            with self.subTest(gid=gid):
                self.program("beta", "alpha", "ibv_rc_pingpong", "-g", index, "-n", 50)
        self.assertLessEqual({"mac", "0000", "fd77", "fe80"}, kinds)

    def test_variants(self):
        """Events, sizes from one octet up, many messages in flight, either side first."""
        runs = (
            ("beta", "alpha", "-s", 1, "-n", 200),
            ("alpha", "beta", "-e", "-s", 1024, "-n", 200),
            ("beta", "alpha", "-s", 65536, "-n", 50, "-r", 16),
            ("alpha", "beta", "-s", 1 << 20, "-n", 5, "-e", "-c"),
            ("beta", "alpha", "-s", 100, "-n", 100, "-l", 3, "-c"),
        )
        for server, client, *extra in runs:
            with self.subTest(extra=extra):
                self.program(server, client, "ibv_rc_pingpong", "-g", 1, *extra)

    def test_loopback(self):
        """Two processes, one adapter."""
        for index in self.gids["alpha"]:
            with self.subTest(index=index):
                self.program("alpha", "alpha", "ibv_rc_pingpong", "-g", index, "-n", 50)

    def test_srq(self):
        """16 queue pairs with one receive queue."""
        # Each program ends when it has counted 200 messages.  If one ends between the other's Send
        # and its probe, nothing confirms that Send (docs/protocol.md, Meaning of a completion).
        for _ in range(ENDS_EARLY):
            try:
                self.program("beta", "alpha", "ibv_srq_pingpong", "-g", 1, "-n", 200)
                return
            except AssertionError as error:
                if UNCONFIRMED not in str(error):
                    raise
                print("# the peer ended early")
                self.lab.kill_started()
        self.fail("a peer ended early in each of %d runs" % ENDS_EARLY)

    def test_refused(self):
        """Without a destination GID there is no peer to connect to."""
        waiting = self.lab.start("beta", "timeout", "60", "ibv_rc_pingpong")
        waiting.expect("local address")
        self.lab.run(
            "exec", "alpha", "--", "timeout", "60", "ibv_rc_pingpong", "10.77.0.2", status=None
        )
        self.assertNotEqual(waiting.wait(), 0)
        self.assertIn("Failed to modify QP to RTR", waiting.output)

    def test_killed(self):
        """Both programs are killed in the middle; their remains do not disturb the next ones."""
        waiting = self.lab.start("beta", "ibv_rc_pingpong", "-g", "1", "-n", "1000000")
        waiting.expect("local address")
        client = self.lab.start("alpha", "ibv_rc_pingpong", "-g", "1", "-n", "1000000", "10.77.0.2")
        client.expect("remote address")
        self.lab.sh("beta", "sleep 1; pkill -9 ibv_rc_pingpong")
        self.lab.sh("alpha", "pkill -9 ibv_rc_pingpong; true")
        client.wait()
        self.program("beta", "alpha", "ibv_rc_pingpong", "-g", 1, "-n", 50)

    def test_rendezvous(self):
        """States, masks, roles, unknown peers, wrong numbers, bounds, restarts, GID changes."""
        done = self.lab.run(
            "exec",
            "--timeout",
            "500",
            "alpha",
            "--",
            "python3",
            "/root/rendezvous.py",
            status=None,
            timeout=600,
        )
        said = re.findall(r"^(ok|not ok) (\w+)$", done.out, re.M)
        self.assertGreaterEqual(len(said), 13, done.out + done.err)
        for word, name in said:
            with self.subTest(case=name):
                self.assertEqual(word, "ok", done.out)
        self.assertEqual(done.returncode, 0, done.out + done.err)

    def test_unknown_peers(self):
        """Requests wrong in one field are refused with the reason; then the right peer connects."""
        port = self.lab.sh("alpha", "cat /run/staghorn/port").strip()
        self.lab.sh("alpha", "ip addr add %s/24 dev %s" % (SECOND, port))
        wait_for(self.lab, "alpha", "grep -q %s %s/*" % (SECOND_GID, GIDS))
        waiting = self.lab.start("beta", "rdv_unknown", "wait", "staghorn0", SECOND)
        waiting.expect("waiting", 60)
        words = "rdv_unknown", "ask", "staghorn0", "10.77.0.2", SECOND
        done = self.lab.run("exec", "-n", "alpha", "--", *words, status=None)
        good = re.findall(r"^ok \d+ - rendezvous: ", done.out, re.M)
        self.assertEqual((done.returncode, len(good)), (0, 4), done.out + waiting.output)
        self.assertEqual(waiting.wait(), 0, waiting.output)
        self.lab.sh("alpha", "ip addr del %s/24 dev %s" % (SECOND, port))

    def test_zz_nothing_left(self):
        """No queue pair outlives its program, and the kernel has not complained."""
        for vm in ("alpha", "beta"):
            self.assertEqual(self.lab.sh(vm, "rdma resource show qp").strip(), "")
            check_kernel(self.lab, vm, keep=True)

    def test_zzz_no_port(self):
        """rendezvous_port=0: RTR is refused, and rdma_cm works as before."""
        self.lab.sh("alpha", "modprobe -r staghorn && modprobe staghorn rendezvous_port=0")
        wait_for(self.lab, "alpha", "/usr/lib/staghorn/rdma staghorn")
        wait_for(self.lab, "alpha", "grep -q ffff:0a4d:0001$ %s/*" % GIDS)
        out = self.lab.sh("alpha", "python3 /root/rendezvous.py off")
        self.assertIn("ok off", out)
        self.lab.sh("alpha", "ping -c 1 -W 30 10.77.0.2")
        rdmatest.rping(self.lab, "beta", "alpha", count=5, size=2000)
        check_kernel(self.lab, "alpha", keep=True)


if __name__ == "__main__":
    labtest.main()
