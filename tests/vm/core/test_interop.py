# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter with siw: each side active in turn, two MTUs, our choice of CRC and MPA revision.
# timeout: 1800

alpha has the adapter, beta siw.  siw itself sends MPA revision 2 without CRC, and uses CRC when the
peer asks for it.  Startup frames of revision 1 carry no limits of Reads.  So siw as responder tells
its ULP that no Reads were requested, librdmacm lets a server grant none, and siw answers each Read
Request with the Terminate for too many (0/2/07).  With revision 1 the Reads of rping and perftest
must fail cleanly; everything else must work.

In a slow VM perftest's client may send before its server has posted a receive.  siw answers with a
Terminate, after which the kernel of siw's VM may stop with "kernel BUG at .../iwcm.c".  So programs
may fail twice in a test, and siw's VM may be restarted; each time is printed.
"""
import os
import shutil
import tempfile
import unittest

import labtest
import rdmatest
import wire

FAILURES = 2  # in a test, because of siw
BUG = "kernel BUG at drivers/infiniband/core/iwcm.c"

PROGRAMS = (
    ("ib_send_bw", 65536, 10),
    ("ib_write_bw", 65536, 10),
    ("ib_read_bw", 65536, 10),
    ("ib_send_lat", 64, 30),
)


class Interop(unittest.TestCase):
    """One lab for each setting of the adapter; the captures are checked at the end."""

    def setUp(self):
        rdmatest.rdma.siw_stalls.clear()
        self.folder = tempfile.mkdtemp(prefix="sg-interop-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.lab = labtest.Lab("lab")
        self.addCleanup(self.lab.down)
        self.capture = os.path.join(self.folder, "interop.pcap")
        self.failures = []

    def up(self, *properties):
        arguments = [word for prop in properties for word in ("--device-prop", "alpha:" + prop)]
        self.lab.up("--driver", "beta=siw", "--mtu", "9000", "--capture", self.capture, *arguments)

    def again(self, function, *words, **keywords):
        """Runs it; repeats it after a failure, up to FAILURES times in a test."""
        while True:
            try:
                return function(self.lab, *words, **keywords)
            except rdmatest.LabError as error:
                if len(self.failures) == FAILURES:
                    raise
                self.failures.append(str(error).splitlines()[0])
            if BUG in self.lab.run("log", "beta").out:
                self.failures[-1] += " (siw's kernel ended)"
                self.lab.run("cut", "beta")
                self.lab.run("on", "beta", timeout=labtest.UP_LIMIT)
                rdmatest.set_mtu(self.lab, self.mtu)

    def talk(self, *runs, reads=True):
        """rping and perftest; runs: MTU, server, client."""
        for mtu, server, client in runs:
            self.mtu = mtu
            rdmatest.set_mtu(self.lab, mtu)
            with self.subTest(mtu=mtu, active=client):
                if reads:
                    self.again(rdmatest.rping, server, client, count=5, size=20000)
                for tool, size, iterations in PROGRAMS:
                    if reads or tool != "ib_read_bw":
                        self.again(rdmatest.perftest, tool, server, client, size, iterations)

    def read_is_refused(self):
        """siw's Terminate ends the Read with a remote error; the adapter goes on.

        siw's server may exit before its Terminate is sent; then the run is repeated."""
        for _ in range(4):
            with self.assertRaises(rdmatest.LabError) as caught:
                rdmatest.perftest(self.lab, "ib_read_bw", "beta", "alpha", 4096, 20)
            text = str(caught.exception)
            if "Failed status 11" in text:  # IBV_WC_REM_OP_ERR
                break
        else:
            self.fail(text)
        rdmatest.perftest(self.lab, "ib_send_bw", "beta", "alpha", 4096, 20)

    def report(self, crc, reads=True):
        """Ends the lab and reads its capture."""
        self.lab.down()
        for stall in rdmatest.rdma.siw_stalls:
            print("# tried again, siw left the first FPDU unread or closed: " + stall)
        for failure in self.failures:
            print("# tried again: " + failure)
        if not wire.available():
            self.fail("tshark is needed to judge the capture; run ./configure")
        found = wire.Report(self.capture)
        self.assertEqual(found.malformed, 0, found.bad_frames)
        self.assertEqual(found.errors, [])
        self.assertEqual(found.crc_bad, 0)
        self.assertGreater(found.fpdus, 100)
        for opcode in ("send", "write") + (("read request", "read response") if reads else ()):
            self.assertGreater(found.opcodes.get(opcode, 0), 0, found.opcodes)
        if not self.failures:
            self.assertEqual("terminate" in found.opcodes, not reads, found.opcodes)
        if crc == "every":
            self.assertEqual(found.crc_good, found.fpdus)
        elif crc == "some":
            # An active siw offers no CRC, but our reply turns it on.
            self.assertGreater(found.crc_good, 0)
        else:
            self.assertEqual(found.crc_good, 0)
        return found

    # Each MTU and each direction once.  What the MTU changes does not depend on who is active; the
    # two settings of revision 2 have the pairs the other way round.
    BOTH = ((1500, "beta", "alpha"), (9000, "alpha", "beta"))
    CROSSED = ((9000, "beta", "alpha"), (1500, "alpha", "beta"))

    def test_revision_2_with_crc(self):
        self.up()
        self.talk(*self.BOTH)
        found = self.report("every")
        self.assertEqual({request[0] for request in found.requests}, {2})

    @labtest.long
    def test_revision_2_without_crc(self):
        self.up("crc=off")
        self.talk(*self.CROSSED)
        self.report("none")

    @labtest.long
    def test_revision_1_with_crc(self):
        """We are active; siw's own revision 2 is refused by an adapter that knows only 1."""
        self.up("mpa-rev=1")
        self.talk((1500, "beta", "alpha"), reads=False)
        rdmatest.rping_fails(self.lab, "alpha", "beta")
        self.read_is_refused()
        found = self.report("every", reads=False)
        self.assertIn(1, {request[0] for request in found.requests})

    @labtest.long
    def test_revision_1_without_crc(self):
        self.up("mpa-rev=1", "crc=off")
        self.talk((9000, "beta", "alpha"), reads=False)
        self.read_is_refused()
        self.report("none", reads=False)

    @labtest.long
    def test_markers_are_refused_by_siw(self):
        """A marker request is rejected, and the adapter survives it."""
        self.up("markers=on")
        for _ in range(3):
            rdmatest.rping_fails(self.lab, "beta", "alpha")
        self.assertIn("ACTIVE", self.lab.sh("alpha", "rdma link"))


if __name__ == "__main__":
    labtest.main()
