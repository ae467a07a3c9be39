# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the tests of kernel ULPs: fio, resources of the adapter, waiting, failures.

alpha is the client, beta the server; both run the image "consumers".  beta has an NVDIMM, whose
content survives power cuts; the server exports from there."""
import re
import subprocess
import time

import labtest
import programs

PEER_TIMEOUT = 20  # seconds after which a silent peer is dead; the default is longer
IMAGE = ("--image", "consumers")
UP = (
    *(*IMAGE, "--pmem", "beta:160M,domain=off"),
    *("--device-prop", "peer-timeout=%d" % PEER_TIMEOUT),
)
CLIENT, SERVER = "alpha", "beta"
ADDRESS = programs.ADDRESS[SERVER]
DISK = "/dev/pmem0"
# Makes the NVDIMM a block device, unless it is one already.
MAKE_DISK = (
    "test -b /dev/pmem0 || ndctl create-namespace -f -e namespace0.0 --mode=fsdax --map=mem "
    "> /dev/null"
)
LIMIT = 240  # seconds; other work may share the machine
RATE = 2048  # KiB/s of writes of Running
# Messages that no kernel may print.  The watchdogs' reports of lock-ups are left out: a virtual CPU
# that the host does not run for some time looks like one.  A warning's line names its processor:
# in Linux 7 at its end, before at its beginning.
TROUBLE = (
    r"WARNING: CPU|WARNING: .*CPU#|kernel BUG|(?<!watchdog: )BUG: |Oops|general protection|"
    r"refcount_t: |KASAN|UBSAN|possible recursive locking|list_(?:add|del) corruption"
)
# perftest uses its connection's identifier after the server has refused the connection, and dies.
# The run is then repeated (tools/bench/rdma.py); in any other run a crash is a wrong exit status.
PERFTEST_DIES = r"traps: ib_(?:write|read|send|atomic)_(?:bw|lat)\["
BOOTS = 2  # attempts
AROUND = 40  # lines of the log to show


def wait_for(lab, vm, condition, limit=LIMIT):
    """Waits until the shell condition holds in the VM; reports the last output if it never does."""
    deadline = time.monotonic() + limit * labtest.SLOW
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
    """The objects that kernel ULPs have on the adapter: {'qp': 1, 'mr': 3, ...}."""
    text = lab.sh(vm, "rdma resource show")
    device = lab.sh(vm, "cat /run/staghorn/rdma").strip()
    line = re.search(r"^\d+: %s: (.*)$" % re.escape(device), text, re.M)
    assert line, text
    return {name: int(count) for name, count in re.findall(r"([a-z_]+) (\d+)", line[1])}


def wait_empty(lab, vm, kinds=("qp", "mr", "pd", "srq"), limit=LIMIT, beside=None):
    """Waits until the adapter has none of these objects, or no more than in `beside`.

    ULPs release them in the background.  The kernel keeps shared completion queues for the next
    user."""
    deadline = time.monotonic() + limit * labtest.SLOW
    while True:
        found = resources(lab, vm)
        if all(found.get(kind, 0) <= (beside or {}).get(kind, 0) for kind in kinds):
            return
        assert time.monotonic() < deadline, "%s still has %s" % (vm, found)
        time.sleep(0.3)


def counters(lab, vm):
    """The adapter's counters."""
    text = lab.sh(vm, "rdma statistic show link $(cat /run/staghorn/rdma)/1")
    return {name: int(value) for name, value in re.findall(r"^\s+([a-z_]+) (\d+)", text, re.M)}


def fio_words(target, *more, size="12M", name="v"):
    """fio with verification: random writes of many sizes, then everything is read and checked."""
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
    """fio on the client while something happens.

    It writes slowly, so that it still runs then, however fast the machine is.  On the debug kernel
    whatever happens takes longer, so fio takes longer by the same factor."""

    def __init__(self, lab, target, *more, **keywords):
        keywords.setdefault("size", "12M")
        rate = "--rate=,%dk" % (RATE // labtest.SLOW)
        more = (rate, "--status-interval=500ms", *more)
        words = fio_words(target, *more, **keywords)
        self.lab = lab
        self.process = lab.start(CLIENT, *words)
        self.process.expect(r"(?m)^ *WRITE: bw=", LIMIT)

    def finish(self, limit=LIMIT):
        """Waits for its end: all is written and verified; otherwise reports the kernels' logs."""
        try:
            check_fio(self.process.wait(limit), self.process.output)
        except AssertionError:
            for vm in (CLIENT, SERVER):
                done = self.lab.run("exec", "-n", vm, "--", "dmesg", status=None)
                print("# log of %s:\n# %s" % (vm, "\n# ".join(done.out.splitlines()[-AROUND:])))
            raise

    def end(self, limit=LIMIT):
        """Waits for its end, whatever the result; returns the output."""
        self.process.wait(limit)
        return self.process.output


def unplug(lab, vm=SERVER, seconds=4):
    """Pulls the cable for so long that TCP has to retransmit; returns the earlier retransmits()."""
    before = counters(lab, CLIENT)["tcp_retransmits"] + counters(lab, SERVER)["tcp_retransmits"]
    lab.run("link", vm, "down")
    time.sleep(seconds)
    lab.run("link", vm, "up")
    return before


def retransmits(lab):
    return sum(counters(lab, vm)["tcp_retransmits"] for vm in (CLIENT, SERVER))


def _begin(lines):
    """The index of the first line after Linux's own start, if that is in the log.

    Our driver is loaded only after the first process has started.  Before that, Linux sometimes
    warns on a busy host, whose virtual CPUs stand still for long."""
    ends = [n for n, line in enumerate(lines) if re.search(r"\] Run /\S+ as init process", line)]
    return ends[-1] + 1 if ends else 0


def check_kernel(lab, vm, tolerated=(), keep=False):
    """Checks that the kernel's log since the last check has no errors but those in `tolerated`.

    keep: the log is kept, and checked again the next time.  A VM that is off or does not answer is
    ignored; its test reports it.  A debug kernel's console is examined at the end of the lab."""
    tolerated = (*tolerated, PERFTEST_DIES)
    if labtest.DEBUG:
        return
    words = ("dmesg",) if keep else ("dmesg", "-c")
    try:
        done = lab.run("exec", "-n", vm, "--", *words, status=None, timeout=60)
    except subprocess.TimeoutExpired:
        return
    lines = done.out.splitlines()
    begin = _begin(lines)
    for number, line in enumerate(lines):
        if re.search(TROUBLE, line) and not any(re.search(text, line) for text in tolerated):
            text = "\n".join(lines[max(number - 5, 0) : number + AROUND])
            if number < begin:
                print(
                    "# passed over, from the boot of %s:\n# %s" % (vm, text.replace("\n", "\n# "))
                )
                continue
            raise AssertionError("the kernel of %s says:\n%s" % (vm, text))


class ProgramCase(labtest.LabCase):
    """Cases of Debian's programs on alpha and beta; no kernel may complain in any."""

    up_arguments = IMAGE
    vms = (CLIENT, SERVER)
    tolerated = ()  # patterns of kernel warnings of the ULP itself

    def setUp(self):
        self.addCleanup(self.check_kernels)

    def check_kernels(self):
        for vm in self.vms:
            check_kernel(self.lab, vm, self.tolerated)


class ConsumerCase(ProgramCase):
    """Cases of kernel ULPs: a server on beta, a client on alpha."""

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
        """Starts the server; new: with an empty disk."""
        cls.lab.sh(SERVER, "new=%s\nset -e\n%s" % ("yes" if new else "", cls.server_script))

    def sh(self, vm, script, **keywords):
        return self.lab.sh(vm, script, **keywords)

    def cut(self):
        """Cuts the server's power, so its kernel's log is lost."""
        check_kernel(self.lab, SERVER, self.tolerated)
        self.lab.run("cut", SERVER)

    def on(self):
        """The server comes back, and serves what its disk still has.

        If the host does not run the virtual CPUs in time, Linux may set up a timer that never
        fires, and hang before it loads our driver; such a boot is repeated."""
        for _ in range(BOOTS - 1):
            words = ("on", SERVER, "--timeout", labtest.UP_LIMIT // 2)
            if self.lab.run(*words, status=None).returncode == 0:
                break
            print("# the server did not boot; once more")
            self.lab.run("cut", SERVER, status=None)
        else:
            self.lab.run("on", SERVER, "--timeout", labtest.UP_LIMIT)
        self.serve()

    def cut_and_on(self):
        self.cut()
        self.on()

    def moved_by_rdma(self, before, octets):
        """Checks that the adapter has moved at least so many octets since `before`."""
        after = counters(self.lab, CLIENT)
        moved = sum(after[name] - before[name] for name in ("tx_octets", "rx_octets"))
        self.assertGreater(moved, octets)
        self.assertEqual(after["protocol_errors"], before["protocol_errors"])
        return after

    def hashes(self, target):
        """Checksums of the same data, by the client and by the server."""
        raise NotImplementedError

    def check_same(self, target):
        self.assertEqual(*self.hashes(target))

    def check_data(self, target, *more):
        """fio verifies the data; the server has fetched and delivered them by RDMA."""
        before, server = (counters(self.lab, vm) for vm in (CLIENT, SERVER))
        fio(self.lab, target, *more, size="16M")
        self.moved_by_rdma(before, 20 << 20)
        after = counters(self.lab, SERVER)
        self.assertGreater(after["tx_reads"], server["tx_reads"])
        self.assertGreater(after["tx_writes"], server["tx_writes"])
        self.check_same(target)

    def check_unplugged(self, target):
        """The cable is out for a short time under traffic; TCP retransmits, and nothing is lost."""
        running = Running(self.lab, target)
        before = unplug(self.lab)
        running.finish()
        self.assertGreater(retransmits(self.lab), before)
        self.check_same(target)

    def check_killed(self, target):
        """The server's power is cut under traffic; it comes back, and fio finishes."""
        running = Running(self.lab, target)
        self.cut_and_on()
        running.finish()
        self.check_same(target)

    def check_gone(self, target, error, given_up=lambda: None):
        """The server's power is cut under traffic and stays off: fio ends with this error, and
        given_up() returns.  The server is on again afterwards, whatever happened."""
        running = Running(self.lab, target)
        self.cut()
        try:
            self.assertRegex(running.end(), error)
            given_up()
        finally:
            self.on()


class FileCase(ConsumerCase):
    """Cases of a client that mounts a folder of the server; targets are files in it."""

    mounted, served = "", ""
    before_reading = ""  # shell script of the client that drops its caches

    def hashes(self, target):
        there = self.served + target.removeprefix(self.mounted)
        client = self.sh(CLIENT, "%ssha256sum < %s" % (self.before_reading, target), timeout=LIMIT)
        return client, self.sh(SERVER, "sha256sum < " + there)


class DiskCase(ConsumerCase):
    """Cases of a client whose block device (the target) is the server's disk."""

    disk_script = "ls /dev/sd? | head -n 1"
    queued = ("--iodepth=8", "--ioengine=io_uring")

    def wait_disk(self):
        """The disk's name, once it exists."""
        wait_for(self.lab, CLIENT, "test -b $(%s)" % self.disk_script)
        return self.sh(CLIENT, self.disk_script).strip()

    def hashes(self, target):
        """Checksums of the disk's beginning."""
        script = "dd if=%s bs=1M count=16 iflag=direct 2>/dev/null | sha256sum"
        client = self.sh(CLIENT, script % target, timeout=LIMIT)
        return client, self.sh(SERVER, script % DISK)
