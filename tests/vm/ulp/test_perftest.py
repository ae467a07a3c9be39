#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's perftest between two VMs, with rdma_cm (-R) and by ibv_modify_qp (-x).

alpha is the client, beta the server.  perftest 25.01 validates no data.  But it can take its buffer
from a file (--mmap) and the content from another (--payload_file_path), so the test compares
files."""
# timeout: 1500
import base64
import itertools
import re
import struct
import time

import labtest
from rdmatest import rdma
from ulptest import ProgramCase, wait_for

LIMIT = 240  # seconds; other work may share the machine
MAC = "02:00:00:00:00:01"
GID = ("-x", "1", "-u", "20")  # 34 seconds to find each other, instead of 4
CM = ("-R",)
N = ("-n", "100")
# ib_send_bw's client tracks its server's receives by credits, which the server writes into its
# memory.  With -e it sleeps until a completion of its own, and does not see the credits.  When they
# run out it may sleep for ever: always with -n 100, where the 100th message asks for a completion
# and there are 99 credits, otherwise if the server is slow.  An odd -n below 512 is rounded up for
# the receives (get_parameters()), so that there is one for each message.
ODD = ("-n", "99")
# With --use-srq -q 2 each queue pair has credits for all the receives that both share, and a Send
# without a receive ends the connection (RFC 5040 section 6.2.1); so there is only one queue pair.
# (test_pingpong has 16 with one receive queue.)
# All sizes, of up to 8 MiB, with one program of each verb: each such run takes 10 to 15 seconds of
# processor time, and a ping-pong of all sizes twice as long.
LARGE = ("-n", "5", "-s", "1048576")
RUNS = (  # program, options
    ("ib_send_bw", *CM, *N),
    ("ib_send_bw", *GID, "-a", "-n", "5"),
    ("ib_send_bw", *GID, "-D", "2"),
    ("ib_send_bw", *CM, *N, "--use-srq"),
    ("ib_send_bw", *CM, *N, "-q", "8", "-b"),
    ("ib_send_bw", *CM, *N, "--recv_post_list", "4", "-r", "64"),
    ("ib_send_bw", *CM, *ODD, "-e"),
    ("ib_send_bw", *CM, *ODD, "-e", "-q", "2", "-Q", "1"),
    ("ib_send_bw", *GID, *ODD, "-e", "-b"),
    ("ib_send_lat", *CM, *N, "-I", "64", "-s", "64"),
    ("ib_send_lat", *GID, *LARGE),
    ("ib_send_lat", *CM, *N, "-e"),
    ("ib_send_lat", *GID, *N, "-e", "--use-srq"),
    ("ib_write_bw", *GID, "-a", "-n", "5"),
    ("ib_write_bw", *CM, "-D", "2", "-b"),
    ("ib_write_bw", *CM, "-n", "48", "-q", "16", "-s", "4096"),
    ("ib_write_bw", *GID, "-n", "96", "-l", "8", "-I", "128", "-s", "128"),
    ("ib_write_bw", "-z", "-n", "50"),
    ("ib_write_bw", *CM, "--ipv6-addr", "-n", "50"),
    ("ib_write_bw", "-x", "ipv6", "--ipv6", "-n", "50"),
    ("ib_write_bw", "-x", "0", "-n", "50"),
    ("ib_write_bw", *GID, "-n", "50", "--odp"),
    ("ib_write_bw", *CM, "-n", "50", "--mr_per_qp", "-q", "4"),
    ("ib_write_bw", *GID, "-n", "50", "--write_with_imm"),
    ("ib_write_bw", *GID, "-n", "50", "--use_old_post_send"),
    ("ib_write_bw", *GID, "-n", "50", "--reversed"),
    ("ib_write_bw", *CM, "-n", "50", "-T", "32"),
    ("ib_write_lat", *CM, "-n", "50", "--write_with_imm"),
    ("ib_write_lat", *GID, *LARGE, "-I", "64"),
    ("ib_write_lat", *GID, "-n", "50", "-I", "64", "-s", "64"),
    ("ib_read_bw", *CM, *N),
    ("ib_read_bw", *GID, "-a", "-n", "5"),
    ("ib_read_bw", *GID, *N, "-b", "-q", "4"),
    ("ib_read_bw", *GID, *N, "-e", "-q", "2"),
    ("ib_read_lat", *CM, *LARGE),
    ("ib_read_lat", *GID, "-D", "2"),
    ("ib_read_lat", *CM, *N, "-e", "-o", "4"),
    ("ib_atomic_bw", *CM, *N),
    ("ib_atomic_bw", *CM, *N, "-e", "-o", "1"),
    ("ib_atomic_bw", *GID, *N, "-e", "-q", "2"),
    ("ib_atomic_bw", *GID, *N, "-A", "CMP_AND_SWAP"),
    ("ib_atomic_bw", *GID, *N, "-q", "4", "-b"),
    ("ib_atomic_lat", *GID, *N, "-A", "FETCH_AND_ADD"),
    ("ib_atomic_lat", *CM, *N, "-A", "CMP_AND_SWAP", "-e"),
)
REFUSED = (  # program and options, what both sides say
    (("ib_send_bw", *GID, "-c", "UD"), "Unable to create QP"),
    (("ib_send_bw", *GID, "-c", "UC"), "Unable to create QP"),
    (("ib_write_bw", *GID, "-c", "DC"), "Unable to create QP"),
    (("ib_send_bw", *GID, "-c", "XRC"), "Error opening XRC domain"),
    (("ib_write_bw", *GID, "--use-null-mr"), "Couldn't create null MR"),
    (("ib_write_bw", *CM, "-c", "UC"), "UC is not supported in librdmacm"),
    (("ib_send_bw", *CM, "-c", "XRC"), "XRC does not support RDMA_CM"),
    (("ib_write_bw", *GID, "-e"), "Events feature not available on WRITE verb"),
)
RAW = (  # programs for raw packets, which contact their peer only later
    ("raw_ethernet_bw",),
    ("raw_ethernet_lat",),
    ("raw_ethernet_burst_lat", "--rate_limit_type=HW", "--rate_limit=10"),
    ("raw_ethernet_fs_rate",),
)
# A command for run_perftest_loopback, which gives the server only one second: this client waits for
# it.
PATIENT = """#!/bin/sh
case "$*" in *localhost*) until ss -Htln sport = :18515 | grep -q .; do sleep 0.2; done ;; esac
exec ib_write_bw -F -d staghorn0 -x 1 -u 20 -n 50 "$@"
"""
BANDWIDTH = r"(?m)^ *65536 +50 +[0-9.]+ "
ZERO, WORD = "0x00000000,0x00000000", "0x11223344,0x55667788"
PATTERN = 0x5566778811223344


class Perftest(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = 20000
        gid = cls.gid(cls, "alpha", "fd77:.*:0001"), cls.gid(cls, "beta", "fd77:.*:0002")
        cls.gids = dict(zip(("alpha", "beta"), gid))

    def gid(self, vm, address):
        """The index of the GID of the address."""
        script = "cd /sys/class/infiniband/staghorn0/ports/1/gids; grep -l %s *" % address
        return self.lab.sh(vm, script).split()[0]

    def listens(self, server, port, by_cm=False):
        """Waits until the server listens, on TCP or by rdma_cm, or has ended."""
        if by_cm:
            ready = "rdma resource show cm_id | grep -q 'LISTEN.*:%d '" % port
        else:
            ready = "grep -q ':%04X [0:]* 0A ' /proc/net/tcp /proc/net/tcp6" % port
        # The guest asks itself for half a second, because each command of ours costs more.
        script = "for i in 1 2 3 4 5; do %s && echo ready && break; sleep 0.1; done" % ready
        deadline = time.monotonic() + LIMIT
        while not self.lab.sh("beta", script):
            if server.process.poll() is not None:
                break
            self.assertLess(time.monotonic(), deadline, server.output)

    def both(self, *run):
        """Status and output of client and server, which are not those of a client that was too
        early."""
        for _ in range(rdma.CONNECT_TRIES):
            sides = self.both_once(*run)
            if not self.too_early(*sides[0]):
                break
        return sides

    @staticmethod
    def too_early(status, output):
        """Whether the client was refused because its server did not listen for the second time."""
        return bool(status and re.search(rdma.REFUSED, output))

    def both_once(self, tool, *options):
        """Starts the client when the server listens; returns status and output of both."""
        type(self).port += 1
        words = ["timeout", str(LIMIT), tool, "-F", "-d", "staghorn0", "-p", self.port]
        address = "fd77::2" if "--ipv6-addr" in options else "10.77.0.2"
        sides = {}
        for vm in ("alpha", "beta"):
            gid = self.gids[vm]
            sides[vm] = [*words, *(gid if word == "ipv6" else word for word in options)]
        server = self.lab.start("beta", *sides["beta"])
        self.listens(server, self.port, by_cm={"-R", "-z"} & set(options))
        started = self.lab.start("alpha", *sides["alpha"], address)
        status = started.wait(LIMIT + 60)
        if self.too_early(status, started.output):
            server.stop()  # it waits for another client
        return [(status, started.output), (server.wait(LIMIT + 60), server.output)]

    def succeeds(self, *run):
        sides = self.both(*run)
        for status, output in sides:
            self.assertEqual(status, 0, sides)
        last = r"(?m)^ *8388608 +" if "-a" in run else r"(?m)^ *\d+ +"
        # unittest itself shows the beginning of the text only.
        self.assertRegex(sides[0][1], last + r"\d+ +[0-9.]+ ", sides[0][1])

    def runs(self, verb):
        for run in RUNS:
            if run[0].startswith("ib_%s_" % verb):
                with self.subTest(run=run):
                    self.succeeds(*run)

    def test_send(self):
        """ib_send_bw and ib_send_lat"""
        self.runs("send")

    def test_write(self):
        """ib_write_bw and ib_write_lat"""
        self.runs("write")

    def test_read(self):
        """ib_read_bw and ib_read_lat"""
        self.runs("read")

    def test_atomic(self):
        """ib_atomic_bw and ib_atomic_lat"""
        self.runs("atomic")

    def test_refused(self):
        for run, text in REFUSED:
            with self.subTest(run=run):
                for status, output in self.both(*run):
                    self.assertNotIn(status, (0, 124), output)
                    self.assertIn(text, output)

    def test_raw_ethernet(self):
        """Raw packets need another kind of adapter; each program says so and ends"""
        for run, side in itertools.product(RAW, ("--server", "--client")):
            with self.subTest(run=run, side=side):
                words = (*run, side, "-d", "staghorn0", "-B", MAC, "-E", MAC, "-n", "10")
                done = self.lab.run(
                    "exec", "-n", "alpha", "--", "timeout", "90", *words, status=None
                )
                self.assertIn("Unable to create QP", done.out + done.err)
                self.assertEqual(done.returncode, 1, done.out + done.err)

    def test_scripts(self):
        """run_perftest_loopback and run_perftest_multi_devices, which start the others"""
        self.lab.sh("alpha", "printf '%%s' '%s' > patient; chmod +x patient" % PATIENT)
        out = self.lab.sh("alpha", "timeout %d run_perftest_loopback 0 1 ./patient" % LIMIT)
        self.assertRegex(out, BANDWIDTH)
        words = ["timeout", LIMIT, "run_perftest_multi_devices", "-d", "staghorn0"]
        words += ["-C", "ib_write_bw -F -x 1 -u 20 -n 50"]
        server = self.lab.start("beta", *map(str, words))
        self.listens(server, 15000)
        client = self.lab.start("alpha", *map(str, words), "-r", "10.77.0.2")
        self.assertEqual(client.wait(LIMIT + 60), 0, client.output)
        self.assertEqual(server.wait(LIMIT + 60), 0, server.output)
        self.assertRegex(client.output, BANDWIDTH)

    def memory(self, run, alpha, beta):
        """Runs with these payloads; returns the 64-bit words of each side's final buffer."""
        for vm, payload in (("alpha", alpha), ("beta", beta)):
            script = "cd /dev/shm; rm -f b; truncate -s 1M b; printf '%s' > p" % payload
            self.lab.sh(vm, script)
        self.succeeds(*run, "--mmap=/dev/shm/b", "--payload_file_path=/dev/shm/p")
        found = []
        for vm in ("alpha", "beta"):
            data = base64.b64decode(self.lab.sh(vm, "head -c 65536 /dev/shm/b | base64"))
            found.append(struct.unpack("<%dQ" % (len(data) // 8), data))
        return found

    def test_fetch_and_add(self):
        """Each of 100 additions was made once"""
        alpha, beta = self.memory(("ib_atomic_lat", *GID, *N), ZERO, ZERO)
        self.assertEqual(([w for w in alpha if w], [w for w in beta if w]), ([99], [100]))
        alpha, beta = self.memory(("ib_atomic_bw", *CM, *N), ZERO, ZERO)
        self.assertEqual(sum(beta), 100)

    def test_compare_and_swap(self):
        """perftest compares with 0 and swaps in 0: other values stay, and are what is fetched"""
        run = ("ib_atomic_lat", *GID, *N, "-A", "CMP_AND_SWAP")
        alpha, beta = self.memory(run, ZERO, WORD)
        self.assertIn(PATTERN, alpha)
        self.assertEqual({w for w in beta if w}, {PATTERN})

    def test_data(self):
        """Write, Send and Read transfer the octets"""
        for run in (
            ("ib_write_bw", *GID, "-n", "20", "-s", "8192", "--write_with_imm"),
            ("ib_write_bw", *CM, "-n", "20", "-s", "64"),
            ("ib_send_bw", *GID, "-n", "20", "-s", "64"),
        ):
            with self.subTest(run=run):
                _, beta = self.memory(run, WORD, ZERO)
                self.assertGreaterEqual(beta.count(PATTERN), 160)
        run = ("ib_read_bw", *CM, "-n", "20", "-s", "64")
        with self.subTest(run=run):
            alpha, _ = self.memory(run, ZERO, WORD)
            self.assertGreaterEqual(alpha.count(PATTERN), 160)

    def test_zz_nothing_left(self):
        for vm in ("alpha", "beta"):
            wait_for(self.lab, vm, 'test -z "$(rdma resource show qp)$(rdma resource show mr)"')


if __name__ == "__main__":
    labtest.main()
