# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of kernel consumers share: fio, resources of the adapter, waiting, accidents.

alpha is the client, beta the server; both run the image "consumers".  beta has an NVDIMM, whose
content outlives its power: what the server exports lies there."""
import re
import time

import labtest
import programs

UP = ("--image", "consumers", "--pmem", "beta:160M,domain=off")
CLIENT, SERVER = "alpha", "beta"
ADDRESS = programs.ADDRESS[SERVER]
DISK = "/dev/pmem0"
# Makes the NVDIMM a block device; the second time it is one already.
MAKE_DISK = (
    "test -b /dev/pmem0 || ndctl create-namespace -f -e namespace0.0 --mode=fsdax --map=mem "
    "> /dev/null"
)
LIMIT = 240  # seconds; other work may share the machine


def wait_for(lab, vm, condition, limit=LIMIT):
    """Until the shell's condition holds in the VM; says what it saw last if it never does."""
    deadline = time.monotonic() + limit
    while True:
        left = max(deadline - time.monotonic(), 5)
        done = lab.run("exec", "-n", vm, "--", "sh", "-c", condition, status=None, timeout=left)
        if done.returncode == 0:
            return
        if time.monotonic() > deadline:
            raise AssertionError(
                "%s: not within %d s: %s\n%s%s" % (vm, limit, condition, done.out, done.err)
            )
        time.sleep(0.3)


def resources(lab, vm):
    """What kernel consumers hold of the adapter: {'qp': 1, 'mr': 3, ...}."""
    text = lab.sh(vm, "rdma resource show")
    device = lab.sh(vm, "cat /run/staghorn/rdma").strip()
    line = re.search(r"^\d+: %s: (.*)$" % re.escape(device), text, re.M)
    assert line, text
    return {name: int(count) for name, count in re.findall(r"([a-z_]+) (\d+)", line[1])}


def wait_empty(lab, vm, kinds=("qp", "mr", "pd", "srq"), limit=60):
    """Until the adapter has none of these any more: consumers let go in the background.
    (Completion queues that consumers share, the kernel keeps for the next one.)"""
    deadline = time.monotonic() + limit
    while True:
        found = resources(lab, vm)
        if not any(found.get(kind) for kind in kinds):
            return
        assert time.monotonic() < deadline, "%s still has %s" % (vm, found)
        time.sleep(0.3)


def counters(lab, vm):
    """The adapter's counters."""
    text = lab.sh(vm, "rdma statistic show link $(cat /run/staghorn/rdma)/1")
    return {name: int(value) for name, value in re.findall(r"^\s+([a-z_]+) (\d+)", text, re.M)}


def fio_words(target, *more, size="12M", name="v"):
    """fio with verification: random writes of many sizes, then all is read back and checked."""
    words = ["fio", "--name=" + name, "--filename=" + target, "--ioengine=psync", "--direct=1"]
    words += ["--rw=randwrite", "--bsrange=4k-256k", "--size=" + size, "--verify=crc32c"]
    return words + ["--verify_fatal=1", "--verify_state_save=0", "--randrepeat=0", *more]


def check_fio(done, output):
    assert done == 0 and re.search(r"err= *0", output), output
    assert re.search(r"^ *READ: bw=", output, re.M), "fio verified nothing:\n" + output


def fio(lab, target, *more, limit=LIMIT, **keywords):
    """One run on the client, complete and verified."""
    words = fio_words(target, *more, **keywords)
    done = lab.run("exec", "-n", CLIENT, "--", *words, status=None, timeout=limit)
    check_fio(done.returncode, done.out + done.err)
    return done.out


class Running:
    """fio that runs on the client while something happens."""

    def __init__(self, lab, target, *more, **keywords):
        words = fio_words(target, "--status-interval=500ms", *more, **keywords)
        self.process = lab.start(CLIENT, *words)
        self.process.expect(r"(?m)^ *WRITE: bw=", LIMIT)

    def finish(self, limit=LIMIT):
        """Its end: all written and verified."""
        check_fio(self.process.wait(limit), self.process.output)

    def end(self, limit=LIMIT):
        """Its end, whatever it is; the output."""
        self.process.wait(limit)
        return self.process.output


def unplug(lab, vm=SERVER, seconds=4):
    """Pulls the cable for so long that TCP has to repeat itself."""
    before = counters(lab, CLIENT)["tcp_retransmits"] + counters(lab, SERVER)["tcp_retransmits"]
    lab.run("link", vm, "down")
    time.sleep(seconds)
    lab.run("link", vm, "up")
    return before


def retransmits(lab):
    return sum(counters(lab, vm)["tcp_retransmits"] for vm in (CLIENT, SERVER))


class ConsumerCase(labtest.LabCase):
    """Cases with a server on beta and a client on alpha."""

    up_arguments = UP
    server_script = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            programs.install(cls.lab, CLIENT, "fio")
            cls.serve(new=True)
        except BaseException:
            cls.lab.down()
            raise

    @classmethod
    def serve(cls, new=False):
        """Starts the server; new: with nothing on its disk."""
        cls.lab.sh(SERVER, "new=%s\nset -e\n%s" % ("yes" if new else "", cls.server_script))

    def sh(self, vm, script, **keywords):
        return self.lab.sh(vm, script, **keywords)

    def cut_and_on(self):
        """The server loses its power, comes back, and serves what its disk still has."""
        self.lab.run("cut", SERVER)
        self.lab.run("on", SERVER, "--timeout", labtest.UP_LIMIT)
        self.serve()

    def moved_by_rdma(self, before, octets):
        """Since `before` the adapter has moved at least so many octets."""
        after = counters(self.lab, CLIENT)
        moved = sum(after[name] - before[name] for name in ("tx_octets", "rx_octets"))
        self.assertGreater(moved, octets)
        self.assertEqual(after["protocol_errors"], before["protocol_errors"])
        return after
