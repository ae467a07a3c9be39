#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs whose adapters speak RDMA/TCP of 2000 (docs/wire-2000.md) run unmodified programs.

# timeout: 900
"""
import re
import tempfile
import unittest

import labtest
import programs
import rdmatest
import wire

WIRE = ("--device-prop", "wire=rdma-tcp-2000")
BOTH_WAYS = (("beta", "alpha"), ("alpha", "beta"))
PERFTEST = (
    ("ib_write_bw", 65536, 300),
    ("ib_read_bw", 65536, 300),
    ("ib_send_bw", 65536, 300),
    ("ib_write_lat", 8, 300),
    ("ib_read_lat", 8, 300),
    ("ib_send_lat", 8, 300),
)
# Programs of tests/guest-programs/verbs: cases whose names contain the part, and how many pass.
VERBS = (
    ("verbs_refused", "", 5),
    ("verbs_events", "peer:", 2),
    ("verbs_events", "completion:", 1),
    ("verbs_queues", "srq:", 6),
    ("verbs_queues", "qp:", 1),
    ("verbs_queues", "read:", 1),
    ("verbs_queues", "large:", 1),
    ("verbs_memory", "mr:", 5),
    ("verbs_memory", "window:", 3),
)
SEND, WRITE, READ_REQUEST, READ_RESPONSE = range(4)
REQUEST, ACCEPT = 1, 2
PINGS = 5


def lossy(lab):
    lab.run("impair", "alpha:rx:loss=1%,seed=7", "beta:rx:loss=1%,seed=8")


def counter(lab, vm, name):
    text = lab.sh(vm, "rdma statistic show link $(cat /run/staghorn/rdma)/1")
    return int(re.search(r"\b%s (\d+)" % name, text)[1])


class Programs(labtest.LabCase):
    up_arguments = WIRE

    def test_1_device__announces_what_the_wire_has(self):
        for vm in ("alpha", "beta"):
            self.lab.sh(vm, "dmesg | grep 'staghorn0: on .*, wire RDMA/TCP of 2000'")
            text = self.lab.sh(vm, "ibv_devinfo -v -d staghorn0")
            self.assertRegex(text, r"atomic_cap:\s+ATOMIC_NONE")
            self.assertNotRegex(text, "MEM_MGT_EXTENSIONS|FLUSH|ATOMIC_WRITE")
            self.assertIn("MEM_WINDOW", text)

    def test_2_verbs(self):
        """Two queue pairs of one adapter; what the wire does not have is refused."""
        programs.install(self.lab, "alpha", *sorted({row[0] for row in VERBS}))
        for program, part, count in VERBS:
            with self.subTest(program=program, part=part):
                script = "VERBS_WIRE=rdma-tcp-2000 %s %s '%s'"
                script %= program, programs.ADDRESS["alpha"], part
                words = ("exec", "-n", "alpha", "--", "sh", "-c", script)
                done = self.lab.run(*words, status=None, timeout=200)
                good = re.findall(r"^ok \d+ - (?!.*# SKIP)", done.out, re.M)
                self.assertEqual((done.returncode, len(good)), (0, count), done.out + done.err)

    def test_3_rping__both_directions_and_sizes(self):
        for server, client in BOTH_WAYS:
            for size in (23, 65535):
                with self.subTest(active=client, size=size):
                    rdmatest.rping(self.lab, server, client, count=PINGS, size=size)

    def test_4_perftest(self):
        for tool, size, iterations in PERFTEST:
            with self.subTest(tool=tool):
                rdmatest.perftest(self.lab, tool, "beta", "alpha", size, iterations)

    @labtest.long
    def test_5_perftest__lossy(self):
        before = counter(self.lab, "alpha", "tcp_retransmits")
        lossy(self.lab)
        try:
            for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
                rdmatest.perftest(self.lab, tool, "beta", "alpha", 65536, 100)
        finally:
            self.lab.run("impair", "--clear")
        self.assertGreater(counter(self.lab, "alpha", "tcp_retransmits"), before)
        for vm in ("alpha", "beta"):
            self.assertEqual(counter(self.lab, vm, "crc_errors"), 0)

    def test_6_log__is_clean(self):
        for vm in ("alpha", "beta"):
            log = self.lab.sh(vm, "dmesg")
            if not labtest.DEBUG:
                self.assertNotRegex(log, r"WARNING: |BUG: |Call Trace")


@labtest.long
@unittest.skipUnless(wire.available(), "needs tshark")
class Octets(labtest.LabCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="sg-wire-2000-")
        cls.addClassCleanup(place.cleanup)
        cls.capture = place.name + "/lab.pcap"
        cls.up_arguments = (*WIRE, "--capture", cls.capture)
        super().setUpClass()

    def test_capture(self):
        """The dissector knows each connection and all four types of message, also with losses."""
        rdmatest.rping(self.lab, "beta", "alpha", count=PINGS, size=4096)
        lossy(self.lab)
        rdmatest.rping(self.lab, "beta", "alpha", count=PINGS, size=65535)
        self.lab.down()
        found = wire.Segments2000(self.capture)
        self.assertEqual(found.setups, [REQUEST, ACCEPT] * 2)
        self.assertEqual(found.streams, 2)
        self.assertEqual(set(found.types), {SEND, WRITE, READ_REQUEST, READ_RESPONSE})
        self.assertGreaterEqual(found.types[READ_REQUEST], 2 * PINGS)
        # In one TCP segment of 1460 octets fit 1420 of a Write's payload.
        self.assertGreaterEqual(found.types[WRITE], PINGS * (3 + 47))
        self.assertEqual(found.malformed, [])


@labtest.long
class TwoWires(labtest.LabCase):
    """alpha speaks iWARP, beta RDMA/TCP of 2000."""

    up_arguments = ("--device-prop", "beta:wire=rdma-tcp-2000")

    def test_rping__is_refused(self):
        """The client is told, the listener counts it, and both go on."""
        for server, client in BOTH_WAYS:
            with self.subTest(active=client):
                before = counter(self.lab, server, "protocol_errors")
                rdmatest.rping_fails(self.lab, server, client)
                self.assertEqual(counter(self.lab, server, "protocol_errors"), before + 1)
        for vm in ("alpha", "beta"):
            rdmatest.rping(self.lab, vm, vm, count=PINGS)
            self.lab.sh(vm, "! rdma resource show qp | grep -q RTS")


if __name__ == "__main__":
    labtest.main()
