#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs in a VM, by programs with two queue pairs connected over the adapter's own address.

The programs (tests/guest-programs/verbs) print TAP: a case that fails there is a failure here.
# timeout: 600
"""
import gzip
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import debugkernel
import labtest
import programs

ADDRESS = programs.ADDRESS["alpha"]


class Verbs(labtest.LabCase):
    up_arguments = ("--vms", "alpha", "--pmem", "64M")
    driver_check = "strict"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        names = "cm_edges", "verbs_abi", "verbs_events", "verbs_memory", "verbs_queues"
        programs.install(cls.lab, "alpha", *names)

    def cases(self, program, part, count):
        """Runs the cases whose names contain the part; all must pass."""
        words = (
            "exec",
            "-n",
            "alpha",
            "--",
            "env",
            "VERBS_FILE=/mnt/dax/file",
            program,
            ADDRESS,
            part,
        )
        done = self.lab.run(*words, status=None, timeout=200)
        good = re.findall(r"^ok \d+ - (?!.*# SKIP)", done.out, re.M)
        self.assertEqual((done.returncode, len(good)), (0, count), done.out + done.err)

    def test_abi__of_one_rdma_core(self):
        """The libraries of libibverbs and provider are of the rdma-core that was asked for."""
        folder = os.environ.get("SG_RDMA_CORE") or programs.BUILD + "/products/src-rdma-core"
        version = (Path(folder) / "VERSION").read_text().split("-")[0]
        names = ("libibverbs.so.1", "librdmacm.so.1", "libstaghorn.so.1")
        script = "cd /usr/lib/x86_64-linux-gnu && readlink -f " + " ".join(names)
        found = [path.split(".so.")[1] for path in self.lab.sh("alpha", script).split()]
        self.assertEqual([x for x in found if not x.endswith("." + version)], [])
        self.assertEqual(len(found), len(names))

    @labtest.breaks("ADMIN-FIELD")
    def test_abi__wrong_fields_from_a_process(self):
        self.cases("verbs_abi", "abi:", 10)

    def test_connections__reply_then_leave(self):
        """A reply keeps its private data and depths if its sender is gone before it is read."""
        self.cases("cm_edges", "reply:", 1)

    def test_connections__ports(self):
        """Neither side takes a port that is in use."""
        self.cases("cm_edges", "port:", 2)

    @labtest.breaks("ADMIN-FIELD")
    def test_shared_receive_queues(self):
        self.cases("verbs_queues", "srq:", 6)

    @labtest.breaks("CQ-OVERRUN")
    def test_completion_queues(self):
        self.cases("verbs_queues", "cq:", 4)

    def test_domains(self):
        self.cases("verbs_queues", "domains:", 1)

    def test_queue_pair__true_state(self):
        self.cases("verbs_queues", "qp:", 1)

    def test_events__peer_at_fault(self):
        self.cases("verbs_events", "peer:", 2)

    @labtest.breaks("RING-BEYOND")
    def test_events__owner_at_fault(self):
        self.cases("verbs_events", "doorbell:", 2)

    def test_events__of_completions(self):
        self.cases("verbs_events", "completion:", 1)

    def test_read__several_elements(self):
        self.cases("verbs_queues", "read:", 1)
        self.cases("verbs_queues", "large:", 1)

    def test_atomics(self):
        self.cases("verbs_memory", "atomic:", 3)

    def test_immediate_data(self):
        self.cases("verbs_memory", "imm:", 1)

    def test_regions(self):
        # Debian 12's kernel makes no dma-bufs of processes' memory.
        made = self.lab.sh("alpha", "ls /dev/udmabuf 2>/dev/null || :")
        self.assertEqual(bool(made), self.lab.linux("alpha") >= (6, 12))
        with self.shows("SEC-15"):
            self.cases("verbs_memory", "mr:", 5 if made else 4)

    @labtest.long
    def test_regions__on_demand(self):
        self.mount_dax()
        self.cases("verbs_memory", "odp:", 5)

    def mount_dax(self):
        """A file system on the NVDIMM, made here because the image has no program for it."""
        with tempfile.TemporaryDirectory() as folder:
            image = Path(folder) / "image"
            make = ["mke2fs", "-q", "-t", "ext4", "-b", "4096", "-O", "^has_journal", image, "24M"]
            subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
            packed = Path(folder) / "image.gz"
            packed.write_bytes(gzip.compress(image.read_bytes(), 1))
            self.lab.run("copy", packed, "alpha:/tmp/image.gz")
        self.lab.sh(
            "alpha",
            "ndctl create-namespace -f -e namespace0.0 -m fsdax && "
            "zcat /tmp/image.gz > /dev/pmem0 && mount -o dax --mkdir /dev/pmem0 /mnt/dax",
        )

    @labtest.breaks("ENTRY-ACCESS")
    def test_windows(self):
        self.cases("verbs_memory", "window:", 3)

    @labtest.long
    def test_resources__details(self):
        """rdma resource and rdma statistic, for a connection at work."""
        server = self.lab.start("alpha", "rping", "-s", "-a", ADDRESS, "-C", "1000000")
        programs.wait_listening(self.lab, "alpha", server)
        client = self.lab.start("alpha", "rping", "-c", "-a", ADDRESS, "-C", "1000000")
        self.wait_for("rdma resource show qp", r"state RTS")
        for kind, words in (
            ("qp", ("drv_sq_entries", "drv_rq_stride", "drv_srqn")),
            ("cq", ("drv_entries", "drv_vector")),
            ("mr", ("drv_access", "drv_page_size", "drv_hash_alg")),
        ):
            text = self.lab.sh("alpha", "rdma resource show %s -dd" % kind)
            for word in words:
                self.assertIn(word, text)
        # Debian 13's rdma(8) sends with this question what Linux 6.1 does not know and refuses.
        if self.lab.linux("alpha") >= (6, 12):
            self.wait_for("rdma statistic show mr", r"remote_(writes|reads) [1-9]")
        client.stop()
        server.stop()

    @labtest.long
    def test_resources__shared_receive_queue(self):
        """rdma resource, for a program that waits for its peer."""
        program = self.lab.start("alpha", "ibv_srq_pingpong", "-g", "1", "-q", "2")
        program.expect("local address", 120)
        text = self.lab.sh("alpha", "rdma resource show srq -dd")
        self.assertRegex(text, r"type BASIC.* comm ibv_srq_pingpon")
        details = ("drv_number", "drv_entries", "drv_stride", "drv_max_sge")
        if self.lab.linux("alpha") < (6, 7):
            details = ()  # it does not ask drivers for them
        for word in ("lqpn", *details):
            self.assertIn(word, text)
        program.stop()

    def test_counters__of_the_adapter(self):
        """rdma statistic shows each counter of the contract, in its order, then the driver's."""
        header = (labtest.TOP / "include/staghorn/stats.h").read_text()
        listed = re.search(r"#define SG_STATS\(X\)((?:.*\\\n)*.*)", header)[1]
        text = self.lab.sh("alpha", "rdma statistic show link staghorn0/1")
        self.assertEqual(
            re.findall(r"\b([a-z_]+) \d+", text),
            [*re.findall(r"X\((\w+), \w+\)", listed), "lost_interrupts"],
        )

    @labtest.long
    def test_counters__of_queue_pairs(self):
        """Queue pairs bound to a counter are counted; after they leave, the counts stay."""
        self.lab.sh("alpha", "rdma statistic qp set link staghorn0/1 auto type on")
        try:
            server = self.lab.start("alpha", "rping", "-s", "-a", ADDRESS, "-C", "1000000")
            programs.wait_listening(self.lab, "alpha", server)
            client = self.lab.start("alpha", "rping", "-c", "-a", ADDRESS, "-C", "1000000")
            text = self.wait_for("rdma statistic qp show", r"tx_requests [1-9]")
            self.assertIn("LQPN", text)
            first = int(re.search(r"tx_requests (\d+)", text).group(1))
            self.wait_for(
                "rdma statistic qp show",
                lambda x: int(re.search(r"tx_requests (\d+)", x).group(1)) > first,
            )
            client.stop()
            server.stop()
        finally:
            self.lab.sh("alpha", "rdma statistic qp set link staghorn0/1 auto off")

    @labtest.breaks("RESET-LEFT")
    def test_zz_fatal__recovered_from(self):
        """A process loses its device; the next process finds it again."""
        self.cases("verbs_queues", "fatal:", 1)
        self.wait_for("rdma link show", r"staghorn0/1 state ACTIVE")
        self.cases("verbs_queues", "srq: receives", 1)
        self.assertIn("adapter is up again", self.lab.sh("alpha", "dmesg"))

    def wait_for(self, script, pattern, limit=60):
        """The script's output, once it matches the pattern or satisfies the function."""
        good = pattern if callable(pattern) else lambda x: re.search(pattern, x)
        deadline = time.monotonic() + limit
        while True:
            text = self.lab.sh("alpha", script)
            if good(text):
                return text
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.2)

    def test_log__is_clean(self):
        log = self.lab.sh("alpha", "dmesg")
        if not labtest.DEBUG:
            self.assertNotRegex(log, r"WARNING: |BUG: |Call Trace")
        found = debugkernel.judged(debugkernel.reports(log))
        self.assertEqual([text for _, text in found], [])


if __name__ == "__main__":
    labtest.main()
