# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter against siw: each side active in turn, two MTUs, CRC and MPA revision by our choice.
# timeout: 1800

alpha has the adapter, beta siw.  siw itself sends MPA revision 2 without CRC, and uses
CRC when the peer asks for it.  Under revision 1, whose start-up frames carry no limits of
reads, siw proposes to its consumer to allow none; rping takes the proposal and cannot work
over siw then, while perftest asks for what it needs.
"""
import os
import shutil
import tempfile
import unittest

import labtest
import rdmatest
import wire

PROGRAMS = (
    ("ib_send_bw", 65536, 30),
    ("ib_write_bw", 65536, 30),
    ("ib_read_bw", 65536, 30),
    ("ib_send_lat", 64, 100),
)


class Interop(unittest.TestCase):
    """One lab for each setting of the adapter; the captures are judged at the end."""

    def setUp(self):
        rdmatest.rdma.siw_stalls.clear()
        self.folder = tempfile.mkdtemp(prefix="sg-interop-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.lab = labtest.Lab("interop")
        self.addCleanup(self.lab.down)
        self.capture = os.path.join(self.folder, "interop.pcap")

    def up(self, *properties):
        arguments = [word for prop in properties for word in ("--device-prop", "alpha:" + prop)]
        self.lab.up("--driver", "beta=siw", "--mtu", "9000", "--capture", self.capture, *arguments)

    def talk(self, directions, ping=True):
        """rping and perftest in each direction at both MTUs."""
        for mtu in (1500, 9000):
            rdmatest.set_mtu(self.lab, mtu)
            for server, client in directions:
                with self.subTest(mtu=mtu, active=client):
                    if ping:
                        rdmatest.rping(self.lab, server, client, count=5, size=20000)
                    for tool, size, iterations in PROGRAMS:
                        rdmatest.perftest(self.lab, tool, server, client, size, iterations)

    def report(self, crc):
        """Ends the lab and reads its capture."""
        self.lab.down()
        for stall in rdmatest.rdma.siw_stalls:
            print("# tried again, siw left the first FPDU unread: " + stall)
        if not wire.available():
            self.fail("tshark is needed to judge the capture; run ./configure")
        found = wire.Report(self.capture)
        self.assertEqual(found.malformed, 0)
        self.assertEqual(found.errors, [])
        self.assertEqual(found.crc_bad, 0)
        self.assertGreater(found.fpdus, 100)
        for opcode in ("send", "write", "read request", "read response"):
            self.assertGreater(found.opcodes.get(opcode, 0), 0, found.opcodes)
        self.assertNotIn("terminate", found.opcodes)
        if crc == "every":
            self.assertEqual(found.crc_good, found.fpdus)
        elif crc == "some":
            # When siw is active it offers no CRC, but ours in the reply turns it on.
            self.assertGreater(found.crc_good, 0)
        else:
            self.assertEqual(found.crc_good, 0)
        return found

    BOTH = (("beta", "alpha"), ("alpha", "beta"))

    def test_revision_2_with_crc(self):
        self.up()
        self.talk(self.BOTH)
        found = self.report("every")
        self.assertEqual({request[0] for request in found.requests}, {2})

    def test_revision_2_without_crc(self):
        self.up("crc=off")
        self.talk(self.BOTH)
        self.report("none")

    def test_revision_1_with_crc(self):
        """We are active; siw's own revision 2 is refused by an adapter that knows only 1."""
        self.up("mpa-rev=1")
        self.talk([("beta", "alpha")], ping=False)
        rdmatest.rping_fails(self.lab, "alpha", "beta")
        rdmatest.perftest(self.lab, "ib_send_bw", "beta", "alpha", 4096, 20)
        found = self.report("every")
        self.assertIn(1, {request[0] for request in found.requests})

    def test_revision_1_without_crc(self):
        self.up("mpa-rev=1", "crc=off")
        self.talk([("beta", "alpha")], ping=False)
        self.report("none")

    def test_markers_are_refused_by_siw(self):
        """A marker request is rejected, and the adapter survives it."""
        self.up("markers=on")
        for _ in range(3):
            rdmatest.rping_fails(self.lab, "beta", "alpha")
        self.assertIn("ACTIVE", self.lab.sh("alpha", "rdma link"))


if __name__ == "__main__":
    labtest.main()
