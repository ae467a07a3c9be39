#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's unmodified programs above verbs: qperf, libfabric, Open MPI.

alpha is the client, beta the server.  The adapters' counters tell what they moved."""
# timeout: 900
import time

import labtest
import programs
from ulptest import ProgramCase, counters, wait_for

LIMIT = 150  # seconds; other work may share the machine
ATTEMPTS = 12
QPERF_LOG = "/tmp/qperf.log"
QPERF_MOVES = {  # with rdma_cm: test, counter of alpha that grows, least growth
    "rc_bw": ("tx_octets", 1 << 16),
    "rc_bi_bw": ("rx_octets", 1 << 16),
    "rc_lat": ("tx_sends", 2),
    "rc_rdma_write_bw": ("tx_octets", 1 << 16),
    "rc_rdma_write_lat": ("tx_octets", 1),
    "rc_rdma_write_poll_lat": ("tx_writes", 2),
    "rc_rdma_read_bw": ("tx_reads", 2),
    "rc_rdma_read_lat": ("tx_reads", 2),
    "rc_compare_swap_mr": ("tx_atomics", 2),
    "rc_fetch_add_mr": ("tx_atomics", 2),
    "ver_rc_compare_swap": ("tx_atomics", 2),
    "ver_rc_fetch_add": ("tx_atomics", 2),
}
# Open MPI starts its daemon on the other host by a program like ssh, which has to exist on both.
AGENT = """cat > /root/agent.sh <<'END'
#!/bin/sh
host=$1
shift
echo "$*" | socat -t 1 - "TCP4:$host:2222"
END
cat > /root/line.sh <<'END'
read -r line
setsid sh -c "$line" < /dev/null >> /tmp/prted.log 2>&1 &
END
chmod +x /root/agent.sh"""
MPIRUN = (
    "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -np 2 "
    "--host alpha:1,beta:1 --prtemca plm_ssh_agent /root/agent.sh %s python3 /root/mpi_ring.py"
)
MPI_OFI = '--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "verbs;ofi_rxm"'
MPI_UCX = "--mca pml ucx -x UCX_NET_DEVICES=staghorn0:1"
FI_LOG = ("FI_LOG_LEVEL=info", "FI_LOG_PROV=ofi_rxm", "FI_LOG_SUBSYS=ep_ctrl")
GRACE = 20  # seconds for the other side to end
SIZES = ("64", "256", "1k", "4k", "64k", "1m")  # of fi_pingpong


class Fabric(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve_qperf()
        cls.port = 47600

    @classmethod
    def serve_qperf(cls):
        listens = 'ss -Htln "sport = :19765" | grep -q .'
        cls.lab.sh("beta", "pkill -9 qperf; while %s; do sleep 0.1; done" % listens)
        cls.lab.sh("beta", "setsid qperf >> %s 2>&1 < /dev/null &" % QPERF_LOG)
        wait_for(cls.lab, "beta", listens, LIMIT)

    def alpha(self, script, status=0):
        return self.lab.sh("alpha", "timeout 120 " + script, status=status, timeout=LIMIT)

    def growth(self, before, counter):
        return counters(self.lab, "alpha")[counter] - before[counter]

    def qperf(self, test, cm=1):
        """Runs it; returns exit status and output.

        qperf 0.4.11's server announces its port before it listens there, so that a quick client is
        refused (fixed after that version).  Only this failure is tried again.  The server's child
        then ends inside a signal handler, so the server is restarted."""
        words = ["timeout", "100", "qperf", "-t", "1", "-to", "80", "-cm", str(cm)]
        words += ["10.77.0.2", test]
        for _ in range(ATTEMPTS):
            done = self.lab.run("exec", "-n", "alpha", "--", *words, status=None, timeout=LIMIT)
            if "Event rejected" not in done.out + done.err:
                break
            self.serve_qperf()
        return done.returncode, done.out + done.err

    def test_qperf(self):
        """Messages, Writes, Reads and atomics over rdma_cm; atomics are verified"""
        for test, (counter, least) in QPERF_MOVES.items():
            with self.subTest(test=test):
                before = counters(self.lab, "alpha")
                status, said = self.qperf(test)
                self.assertEqual(status, 0, said)
                self.assertRegex(said, r"(bw|latency|msg_rate) += +[0-9.]*[1-9]")
                self.assertGreaterEqual(self.growth(before, counter), least)

    def test_qperf__refused(self):
        """No addressing by LID on Ethernet; no unconnected or unreliable service

        Both sides fail, each by itself.  The first to fail tells the other, which then ends: a
        server without a message, a client with as much of the server's message as has arrived.  So
        either the client gives the reason, or the server does once it has ended."""
        route = "failed to modify QP to RTR: Invalid argument"
        kind = "failed to create QP: Operation not supported"
        runs = (("rc_bw", route), ("uc_bw", kind), ("uc_rdma_write_bw", kind), ("ud_lat", kind))
        for test, why in runs:
            with self.subTest(test=test):
                before = counters(self.lab, "alpha")
                self.lab.sh("beta", ": > " + QPERF_LOG)
                status, said = self.qperf(test, 0)
                self.assertNotEqual(status, 0, said)
                if why not in said:
                    self.assertIn("server", said)
                    wait_for(self.lab, "beta", 'grep -q "%s" %s' % (why, QPERF_LOG), LIMIT)
                self.assertEqual(self.growth(before, "tx_octets"), 0)

    def test_fi_info(self):
        """The adapter is a domain of libfabric's verbs provider, with messages, RMA and atomics"""
        said = self.alpha("fi_info -v -p verbs -t FI_EP_MSG")
        for text in ("FI_PROTO_IWARP", "name: staghorn0", "fi_sockaddr_in://10.77.0.1"):
            self.assertIn(text, said)
        self.assertRegex(said, r"caps: \[ FI_MSG, FI_RMA, FI_ATOMIC,")
        self.assertIn("FI_PROTO_RXM", self.alpha("fi_info -p 'verbs;ofi_rxm' -t FI_EP_RDM"))

    def pingpong(self, provider, kind, *more):
        """fi_pingpong with the data checked: server and client, both running."""
        type(self).port += 1
        words = ["-p", provider, "-e", kind, "-c", *more]
        program = ("env", *FI_LOG, "timeout", "120", "fi_pingpong")
        waiting = self.lab.start("beta", *program, "-B", self.port, *words)
        ready = "ss -Htln sport = :%d | grep -q ." % self.port
        deadline = time.monotonic() + LIMIT
        while self.lab.run("exec", "beta", "--", "sh", "-c", ready, status=None).returncode:
            self.assertLess(time.monotonic(), deadline, waiting.output)
            time.sleep(0.1)
        client = self.lab.start("alpha", *program, "-P", self.port, *words, "10.77.0.2")
        return waiting, client

    def check_ends(self, sides, kind, before):
        """Both sides succeed; with datagrams one may fail if the other succeeds.

        ofi_rxm polls completions, then connection events; on a shutdown it destroys the queue pair
        (vrb_ep_close) before it polls again.  If the peer sends its last message and ends in
        between, that message is lost, and fi_pingpong waits for it for ever.  The adapters must
        deliver message and event: each side has received what the other sent, and no queue pair is
        still connected."""
        deadline = time.monotonic() + LIMIT
        while all(side.process.poll() is None for side in sides):
            self.assertLess(time.monotonic(), deadline, sides[0].output + sides[1].output)
            time.sleep(0.1)
        deadline = time.monotonic() + (GRACE if kind == "rdm" else LIMIT)
        while any(side.process.poll() is None for side in sides) and time.monotonic() < deadline:
            time.sleep(0.1)
        status = [side.process.poll() for side in sides]
        if kind == "rdm" and status != [0, 0]:
            self.assertIn(0, status, sides[0].output + sides[1].output)
            for vm in ("alpha", "beta"):
                wait_for(self.lab, vm, '! rdma resource show qp | grep "state RTS"', LIMIT)
            now = {vm: counters(self.lab, vm) for vm in before}
            for one, other in (("alpha", "beta"), ("beta", "alpha")):
                sent = now[one]["tx_sends"] - before[one]["tx_sends"]
                received = now[other]["rx_sends"] - before[other]["rx_sends"]
                self.assertEqual(sent, received)
            stuck = sides[status[0] == 0].output
            print("# the last word was lost:\n# " + stuck[-2000:].replace("\n", "\n# "))
        else:
            self.assertEqual(status, [0, 0], sides[0].output + sides[1].output)
        self.lab.kill_started()
        for vm in ("alpha", "beta"):
            self.lab.sh(vm, "pkill fi_pingpong; true")

    def test_fi_pingpong(self):
        """Connected endpoints, and reliable datagrams and tagged messages above them"""
        runs = (
            ("verbs", "msg"),
            ("verbs;ofi_rxm", "rdm"),
            ("verbs;ofi_rxm", "rdm", "-m", "tagged"),
        )
        for run in runs:
            with self.subTest(run=run):
                before = {vm: counters(self.lab, vm) for vm in ("alpha", "beta")}
                sides = self.pingpong(*run)
                for side in sides:
                    for size in SIZES:
                        side.expect(r"(?m)^%s +10 +=10 " % size, LIMIT)
                self.check_ends(sides, run[1], before)
                self.assertGreater(self.growth(before["alpha"], "tx_octets"), 10 << 20)
                self.assertGreater(self.growth(before["alpha"], "rx_octets"), 10 << 20)

    def test_fi_pingpong__refused(self):
        """The provider here has neither datagrams nor tags on connected endpoints"""
        for run in (("verbs", "dgram"), ("verbs", "msg", "-m", "tagged")):
            with self.subTest(run=run):
                server, client = self.pingpong(*run)
                for side in (server, client):
                    self.assertNotEqual(side.wait(LIMIT), 0, side.output)
                self.assertIn("No data available", server.output)

    def mpi(self, words):
        command = ["timeout", "120", "sh", "-c", "cd /root; exec " + MPIRUN % words]
        done = self.lab.run("exec", "-n", "alpha", "--", *command, status=None, timeout=LIMIT)
        return done.returncode, done.out + done.err

    def test_mpi(self):
        """libfabric's verbs provider carries MPI from VM to VM; UCX knows no iWARP and says so"""
        for vm in ("alpha", "beta"):
            self.lab.run("copy", programs.SOURCES / "ulp/mpi_ring.py", vm + ":/root/mpi_ring.py")
            self.lab.sh(vm, AGENT)
        listen = "TCP4-LISTEN:2222,fork,reuseaddr"
        self.lab.start("beta", "socat", "-d", "-d", listen, "EXEC:sh /root/line.sh").expect(
            "listening on", LIMIT
        )
        before = counters(self.lab, "alpha")
        status, said = self.mpi(MPI_OFI)
        self.assertEqual(status, 0, said)
        for rank, vm in enumerate(("alpha", "beta")):
            self.assertIn("rank %d on %s has all" % (rank, vm), said)
        self.assertGreater(self.growth(before, "tx_octets"), 1000003)
        self.assertGreater(self.growth(before, "rx_octets"), 1000003)
        before = counters(self.lab, "alpha")
        status, said = self.mpi(MPI_UCX)
        self.assertNotEqual(status, 0, said)
        self.assertIn("network device 'staghorn0:1' is not available", said)
        self.assertEqual(self.growth(before, "tx_octets"), 0)

    def test_zz_nothing_left(self):
        """Ended programs have no queue pair left, but a killed server may still be closing"""
        self.lab.sh("beta", "pkill qperf; true")
        deadline = time.monotonic() + LIMIT
        for vm in ("alpha", "beta"):
            self.lab.sh(vm, "pkill fi_pingpong; true")
            while self.lab.sh(vm, "rdma resource show qp").strip():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.3)


if __name__ == "__main__":
    labtest.main()
