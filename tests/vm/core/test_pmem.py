# SPDX-License-Identifier: GPL-2.0-or-later
"""Unmodified programs on persistent memory: librpma, fio's librpma engines, libpmem2.

The libraries choose whether to use the native operations of draft-talpey-rdma-commit or their own
replacements; fpdu.py reads from captures what was on the wire.
# timeout: 900
"""
import tempfile
import unittest

import fpdu
import labtest
import programs

PMEM = ("--pmem", "64M")  # both VMs, see programs.fio
WC_READ, WC_FLUSH, WC_ATOMIC_WRITE = 2, 8, 9  # enum ibv_wc_opcode
RPMA_PORT, FIO_SIZE = 7471, 4 << 20


def completions(output, what):
    """Opcodes with which the client's operations of that name completed."""
    line = what + " completed as opcode "
    return [int(text[len(line) :]) for text in output.splitlines() if text.startswith(line)]


def of_port(segments, port):
    suffix = ":%d" % port
    return [s for s in segments if s.source.endswith(suffix) or s.target.endswith(suffix)]


class Wire(unittest.TestCase):
    """What the libraries put on the wire."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sg-pmem-")
        self.addCleanup(folder.cleanup)
        self.capture = folder.name + "/x.pcap"
        self.lab = labtest.Lab("lab")
        self.addCleanup(self.lab.down)

    def up(self, *arguments):
        self.lab.up(*PMEM, "--capture", self.capture, *arguments)
        for vm in ("alpha", "beta"):
            programs.install(self.lab, vm, "rpma_client", "rpma_server", "fio")

    def segments(self):
        self.lab.down()
        return fpdu.segments(self.capture)

    def test_librpma__chooses_native_operations(self):
        """FLU-04/05/20/21: librpma flushes by Flush Requests and writes atoms by Atomic Write."""
        self.up()
        output, _ = programs.pair(self.lab, 30000, 3)
        self.assertEqual(completions(output, "flush"), [WC_FLUSH] * 3)
        self.assertEqual(completions(output, "atomic write"), [WC_ATOMIC_WRITE])
        programs.fio(self.lab, "apm", "--rw=write", "--sync=1", "--size=64k", "--do_verify=0")
        found = self.segments()

        pair = of_port(found, RPMA_PORT)
        counts = fpdu.opcodes(pair)
        self.assertEqual(counts.get("flush"), 3, counts)
        self.assertEqual(counts.get("flush response"), 3, counts)
        self.assertEqual(counts.get("atomic write"), 1, counts)
        self.assertEqual(counts.get("atomic write response"), 1, counts)
        flushes = [s.place() for s in pair if s.name == "flush"]
        flags = [int.from_bytes(rest, "big") for *_, rest in flushes]
        self.assertEqual(flags, [fpdu.FLUSH_GLOBAL, fpdu.FLUSH_PERSISTENT, fpdu.FLUSH_PERSISTENT])
        self.assertEqual([length for _, length, *_ in flushes], [15000, 15000, 8])
        self.assertEqual({s.queue for s in pair if s.name in ("flush", "atomic write")}, {1})
        self.assertEqual(
            {s.queue for s in pair if s.name.endswith("response") and not s.tagged}, {3}
        )

        fio = [s for s in of_port(found, programs.PORT_APM) if s.name == "flush"]
        self.assertEqual(len(fio), (64 << 10) // 4096)

    @labtest.long
    def test_librpma__falls_back(self):
        """The same programs with an adapter without the extension: Reads in place of Flushes."""
        self.up("--device-prop", "alpha:commit=off")
        output, _ = programs.pair(self.lab, 30000, 4)
        self.assertEqual(completions(output, "flush"), [WC_READ] * 3)
        counts = fpdu.opcodes(of_port(self.segments(), RPMA_PORT))
        self.assertEqual({name for name in counts if "flush" in name or "atomic" in name}, set())
        self.assertGreaterEqual(counts["read request"], 4, counts)

    @labtest.long
    def test_librpma__memory_without_persistence(self):
        """Ordinary memory: only flush to visibility exists, and it is native."""
        self.up()
        output, _ = programs.pair(self.lab, 100000, 5, device=None)
        self.assertIn("flush types: visibility\n", output)
        flushes = [s.place() for s in self.segments() if s.name == "flush"]
        self.assertEqual({int.from_bytes(rest, "big") for *_, rest in flushes}, {1 << 1})


class Programs(labtest.LabCase):
    """Reads what the programs wrote on the machine that has the memory, also after a power cut."""

    up_arguments = PMEM

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs.install(cls.lab, "alpha", "rpma_client", "fio")

    def setUp(self):
        programs.install(self.lab, "beta", "rpma_server", "fio", "pmem_local")

    def spoil(self):
        """Writes other data everywhere, so that older data cannot pass for those of the test."""
        self.lab.sh("beta", "pmem_local write %s 0 %d 99" % (programs.DAX, FIO_SIZE))
        self.assertIn("verify", programs.fio_verify(self.lab, status=1))

    def cut(self):
        """Cuts beta's power, and loses all that may be lost; returns when beta is up again."""
        self.lab.run("cut", "beta", "--policy", "lose-all")
        programs.install(self.lab, "beta", "rpma_server", "fio", "pmem_local")

    @labtest.long
    def test_librpma__sizes(self):
        for length in (2, 9, 4096, 65537, 1 << 20):
            with self.subTest(length=length):
                programs.pair(self.lab, length, length)

    def test_fio_apm__flushed_data_survives(self):
        self.spoil()
        programs.fio(self.lab, "apm", "--rw=write", "--sync=1")
        programs.fio_verify(self.lab)
        self.cut()
        programs.fio_verify(self.lab)

    @labtest.long
    def test_fio_apm__queued(self):
        self.spoil()
        programs.fio(self.lab, "apm", "--rw=randwrite", "--iodepth=16")
        programs.fio_verify(self.lab)
        self.cut()
        programs.fio_verify(self.lab)

    @labtest.long
    def test_fio_gpspm__persisted_by_the_server(self):
        """The client asks by a message; the server's CPU flushes what the adapter placed."""
        self.spoil()
        programs.fio(
            self.lab,
            "gpspm",
            "--rw=write",
            "--sync=1",
            "--do_verify=0",
            port=programs.PORT_GPSPM,
            direct=0,
        )
        programs.fio_verify(self.lab)
        self.cut()
        programs.fio_verify(self.lab)

    def test_libpmem2__local(self):
        dax = programs.DAX
        self.assertIn("granularity: cache line", self.lab.sh("beta", "pmem_local info " + dax))
        self.lab.sh("beta", "pmem_local write %s 0x200000 300001 7" % dax)
        self.lab.sh("beta", "pmem_local check %s 0x200000 300001 7" % dax)
        self.lab.sh("beta", "pmem_local check %s 0x200000 300001 8" % dax, status=1)

    @labtest.long
    def test_libpmem2__persist_survives_and_a_plain_store_does_not(self):
        dax = programs.DAX
        self.lab.sh("beta", "pmem_local write %s 0x300000 100001 3" % dax)
        self.lab.sh("beta", "pmem_local dirty %s 0x400000 100001 4" % dax)
        self.lab.sh("beta", "pmem_local check %s 0x400000 100001 4" % dax)
        self.cut()
        self.lab.sh("beta", "pmem_local check %s 0x300000 100001 3" % dax)
        self.lab.sh("beta", "pmem_local check %s 0x400000 100001 4" % dax, status=1)


if __name__ == "__main__":
    labtest.main()
