# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults on demand (docs/manual/faults.md), and what Linux and our driver do about them.
# timeout: 1200
# waits: for adapters that do not answer

Each case sets rules on an adapter and says what has to happen: the work goes on, or ends with an
error.  Afterwards rping works again, no object is left, and no kernel complains.  beta has native
hotplug, because Linux resets its link after a fatal error only then (test_aer.py).
"""
import json
import time

import labtest
import lifetest
import rdmatest
import ulptest
from lifetest import BETA

HOTPLUG = "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"
FATAL_DMA = 2  # SG_FATAL_DMA
CHECKS = 30  # seconds in which the driver finds a lost interrupt, on a busy machine
UNANSWERED = 60  # seconds in which it gives up a command
# Longer than an admin command may take, while which others wait for its end.
HUNG = 45
# One rping from alpha to beta after the other, each with a time limit; what they say is ignored.
RUNS = (
    "end=$(($(date +%%s) + 8)); while [ $(date +%%s) -lt $end ]; do "
    "timeout -k 1 3 rping %s -a " + BETA + " -C 20; sleep 0.3; done; :"
)


class Faults(lifetest.LifeCase):
    up_arguments = ("--mem", "512M", "--qemu-arg=beta:-global " + HOTPLUG)
    # Recovery resets an adapter that has objects, which the driver knows only later.
    mistakes = ("RESET-LEFT", "DB-RESET", "DMA-RING", "DMA-MEMORY", "ADMIN-MEMORY")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for vm in ("alpha", "beta"):
            cls.lab.sh(vm, "echo %d > /proc/sys/kernel/hung_task_timeout_secs" % HUNG)

    def tearDown(self):
        for vm in ("alpha", "beta"):
            self.lab.run("faults", vm, "--clear")
        super().tearDown()

    def check_kernels(self):
        super().check_kernels()
        for vm in ("alpha", "beta"):
            hung = self.lab.sh(vm, "dmesg | grep -A 20 'blocked for more than' || :")
            self.assertEqual(hung, "")

    def faults(self, *rules, vm="beta"):
        self.lab.run("faults", vm, *rules)

    def applied(self, vm="beta"):
        """How often each rule was applied."""
        found = json.loads(self.lab.run("faults", "--json", vm).out)
        return [rule["applied"] for rule in found["rules"]]

    def count(self, text, vm="beta"):
        """Lines of the kernel's log with the text."""
        return int(self.lab.sh(vm, "dmesg | grep -cF '%s' || :" % text))

    def until(self, condition, limit=30, text=""):
        deadline = time.monotonic() + limit * labtest.SLOW
        while not condition():
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.2)

    def is_applied(self, *counts, vm="beta"):
        self.until(lambda: self.applied(vm) == list(counts), 60, "%r" % (counts,))

    def clean(self):
        """RDMA works, and no process has left an object on an adapter."""
        self.works()
        for vm in ("alpha", "beta"):
            ulptest.wait_empty(self.lab, vm, ("qp", "mr", "pd", "cm_id"), 30)

    def goes_on(self, server, limit=60):
        """The traffic makes progress."""
        before = server.output.count("server ping data")
        self.until(
            lambda: server.output.count("server ping data") > before + 2,
            limit,
            "no progress:\n" + server.output[-500:],
        )

    def over(self, client, server):
        """Ends traffic that goes on."""
        for each in (client, server):
            self.assertIsNone(each.process.poll(), each.output[-500:])
        self.lab.sh("alpha", "pkill rping")
        self.ends(client, server)
        self.clean()

    def lost(self, why, vm="beta"):
        """A context: the adapter is lost for this reason, once, and is brought up again."""
        return Lost(self, "adapter is lost: " + why, vm)

    # ---- commands ----

    def test_command__fails(self):
        """A program gets the error of its command; what only cleans up is done all the same."""
        self.faults("command op=REG_MR fail")
        words = ("rping", "-c", "-a", "10.77.0.1", "-C", "1")
        done = self.lab.run("exec", "-n", "beta", "--", *words, status=None)
        self.assertNotIn(done.returncode, (0, 4, 125), done.out + done.err)
        self.assertIn("reg_mr failed", done.out + done.err)
        self.is_applied(1)
        kinds = ("DESTROY_QP", "DESTROY_CQ", "DEREG_MR", "DESTROY_PD")
        self.faults(*("command op=%s fail" % kind for kind in kinds))
        self.clean()
        self.is_applied(1, 1, 1, 1)

    def test_command__is_slow(self):
        self.faults("command op=REG_MR slow=2s")
        began = time.monotonic()
        self.clean()
        self.assertGreater(time.monotonic() - began, 2)
        self.is_applied(1)

    def test_command__is_never_answered(self):
        """Not answered (alpha), or blocking all others (beta): the adapter is lost after 30 s."""
        self.faults("command op=REG_MR silent", vm="alpha")
        self.faults("command op=REG_MR stuck")
        why = "an admin command has no answer"
        with self.lost(why, "alpha"), self.lost(why, "beta"):
            for vm, peer in (("alpha", BETA), ("beta", "10.77.0.1")):
                self.lab.start(vm, "rping", "-c", "-a", peer, "-C", "1")
            for each in self.lab.started:
                self.assertNotEqual(each.wait(UNANSWERED), 0, each.output)
        self.clean()

    def test_command__of_an_address_fails(self):
        """The driver tells the adapter again, without a change of the interface."""
        server = self.lab.start("beta", "rping", "-s", "-P")
        self.faults("command op=SET_ADDR fail times=2")
        script = "ip addr %s 10.77.0.66/24 dev $(cat /run/staghorn/port)"
        self.lab.sh("beta", script % "add")
        self.is_applied(2)
        words = ("timeout", "9", "rping", "-c", "-a", "10.77.0.66", "-C", "1")
        run = ("exec", "-n", "alpha", "--", *words)
        self.until(lambda: self.lab.run(*run, status=None).returncode == 0, 30)
        self.lab.sh("beta", "pkill rping")
        server.wait()
        self.lab.sh("beta", script % "del")
        self.clean()

    # ---- interrupts ----

    def interrupts(self, vm="beta"):
        """How many lost ones the driver has found."""
        return ulptest.counters(self.lab, vm)["lost_interrupts"]

    def test_interrupt__is_lost(self):
        """The health check finds the event that nobody has announced, and the work goes on."""
        said = self.count("an interrupt was lost, vector 1")
        server, client = self.traffic()
        before = self.interrupts()
        self.faults("interrupt vector=1 lost")
        self.is_applied(1)
        self.goes_on(server, CHECKS)
        self.assertGreater(self.interrupts(), before)
        self.assertGreater(self.count("an interrupt was lost, vector 1"), said)
        self.over(client, server)

    def test_interrupt__of_async_events_is_lost(self):
        """The same with a connection request: its events come with the first vector."""
        before = self.interrupts()
        self.faults("interrupt vector=0 lost")
        self.clean()
        self.is_applied(1)
        self.assertGreater(self.interrupts(), before)

    def test_interrupt__comes_late(self):
        self.faults("interrupt late=30ms times=always")
        self.clean()
        self.assertGreater(self.applied()[0], 5)

    def test_interrupt__without_a_cause(self):
        """Spurious interrupts change nothing."""
        server, client = self.traffic()
        before = self.interrupts()
        self.faults(*("interrupt spurious=%d period=100ms times=5" % n for n in range(3)))
        self.is_applied(5, 5, 5)
        self.goes_on(server)
        self.assertEqual(self.interrupts(), before)
        self.over(client, server)

    def test_interrupt__on_the_wrong_vector(self):
        """As a lost one and one without a cause."""
        server, client = self.traffic()
        self.faults("interrupt vector=1 wrong=0")
        self.is_applied(1)
        self.goes_on(server, CHECKS)
        self.over(client, server)

    # ---- registers ----

    def test_registers__ones_for_a_while(self):
        """The driver gives the adapter up, and brings it up again once it answers."""
        self.fresh()
        server, client = self.traffic()
        with self.lost("it does not answer"):
            self.faults("registers ones for=3s")
            self.hears(server)
            self.hears(client)
        self.clean()

    def test_registers__ones_for_ever(self):
        """As removed: users are told, the device is gone, and a reload finds the adapter again."""
        self.fresh()
        before = self.count("adapter does not come up again")
        server, client = self.traffic()
        self.faults("registers ones", "dma refuse times=always", "interrupt lost times=always")
        self.hears(server)
        self.until(lambda: self.count("adapter does not come up again") > before, 60)
        self.assertEqual(self.lab.sh("beta", "ls /sys/class/infiniband"), "")
        self.lab.sh("alpha", "pkill rping || :")
        self.ends(client)
        self.faults("--clear")
        self.fresh()
        self.clean()

    # ---- errors of PCI Express ----

    def test_error__not_fatal(self):
        server, client = self.traffic()
        self.faults("error correctable", "error nonfatal after=1s")
        for severity in ("Correct", "Uncorrectable (Non-Fatal)"):
            report = "PCIe Bus Error: severity=" + severity
            self.wait("beta", "dmesg | grep -qF '%s'" % report)
        self.goes_on(server)
        self.over(client, server)

    def test_error__fatal(self):
        self.fresh()
        server, client = self.traffic()
        with self.lost("the PCI link reports a fatal error"):
            self.faults("error fatal")
            self.hears(server)
            self.hears(client)
        self.clean()

    # ---- memory ----

    def test_memory__of_a_command(self):
        """A query whose memory does not respond fails, and nothing else does."""
        self.faults("dma refuse dir=write")
        words = "rdma statistic show link staghorn0/1"
        self.assertNotIn("lost_interrupts", self.lab.sh("beta", words, status=None))
        self.is_applied(1)
        self.assertIn("lost_interrupts", self.lab.sh("beta", words))
        self.clean()

    def test_memory__of_the_admin_ring(self):
        """The answer of the query is refused: the adapter fails, and is brought up again."""
        self.fresh()
        with self.lost("it reports a fatal error"):
            self.faults("dma refuse dir=write nth=2")
            self.lab.sh("beta", "rdma statistic show link staghorn0/1", status=None)
        self.assertGreater(self.count("reason %d)" % FATAL_DMA), 0)
        self.clean()

    def test_memory__of_a_queue(self):
        """Only the queue pair fails, and its program is told."""
        server, client = self.traffic()
        losses = self.count("adapter is lost")
        self.faults("dma refuse dir=read")
        self.hears(server)
        self.hears(client)
        self.assertEqual(self.count("adapter is lost"), losses)
        self.clean()

    # ---- completions, the link ----

    def test_completion__is_late(self):
        server, client = self.traffic()
        self.faults("completion late=200ms times=5")
        self.is_applied(5)
        self.goes_on(server)
        self.over(client, server)

    def test_link__flaps(self):
        """Programs are told of the port; connections live through it."""
        watch = self.lab.start("beta", "ibv_asyncwatch", "-d", "staghorn0")
        watch.expect("async event FD", 60)
        server, client = self.traffic()
        self.faults("link down=1500ms period=4s times=2")
        watch.expect(r"(?s)(PORT_ERR.*PORT_ACTIVE.*){2}", 60)
        self.goes_on(server)
        watch.stop()
        self.over(client, server)

    # ---- messages ----

    def test_message__ends_the_connection(self):
        """Terminate, FIN and RST, at a message of either direction: both programs are told."""
        for rule in ("outbound terminate", "inbound fin", "outbound rst", "inbound terminate"):
            with self.subTest(rule=rule):
                server, client = self.traffic()
                self.faults(rule + " nth=3")
                self.hears(client)
                self.hears(server)
                self.is_applied(1)
        self.clean()

    def test_message__silence(self):
        """Nobody is told, because the peer lives; both ends can be killed."""
        server, client = self.traffic()
        self.faults("outbound mute nth=3")
        self.is_applied(1)
        time.sleep(0.5)
        before = server.output.count("server ping data")
        time.sleep(2)
        self.assertEqual(server.output.count("server ping data"), before)
        for each in (client, server):
            self.assertIsNone(each.process.poll(), each.output[-500:])
        for vm in ("beta", "alpha"):
            self.lab.sh(vm, "pkill rping || :")
        self.ends(server, client)
        self.clean()

    # ---- rules of a seed ----

    def seed(self, number):
        self.fresh()
        self.faults("draw seed=%d within=5s" % number)
        for vm, role in (("beta", "-s"), ("alpha", "-c")):
            self.lab.start(vm, "sh", "-c", RUNS % role)
        for each in self.lab.started:
            self.assertEqual(each.wait(150), 0, each.output)
        self.assertGreater(sum(self.applied()), 0)
        self.faults("--clear")
        self.lab.kill_started()
        # A command that was not answered still waits, and then the adapter is brought up again.
        deadline = time.monotonic() + 2 * UNANSWERED * labtest.SLOW
        while True:
            try:
                return self.clean()
            except (AssertionError, rdmatest.LabError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def test_seed__1(self):
        self.seed(1)

    def test_seed__2(self):
        self.seed(2)


class Lost:
    """What happens inside makes the driver give the adapter up, once; then it comes up again."""

    def __init__(self, case, line, vm):
        self.case, self.line, self.vm = case, line, vm

    def __enter__(self):
        self.losses = self.case.count(self.line, self.vm)
        self.recoveries = self.case.recoveries(self.vm)

    def __exit__(self, failed, *_):
        if not failed:
            self.case.recovered(self.vm, self.recoveries)
            self.case.assertEqual(self.case.count(self.line, self.vm), self.losses + 1)


if __name__ == "__main__":
    labtest.main()
