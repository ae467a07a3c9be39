# SPDX-License-Identifier: GPL-2.0-or-later
"""Litmus tests of x86 persistency, with cpu-tracking=on, for each domain.
# timeout: 1500

A guest program (litmus.c of tests/guest-programs/persist) repeats a short pattern of stores,
flushes and fences, round after round.  At random instants the domain reports what a cut would
leave, for many seeds (property "preview"); a few real cuts show that the reports are true. For each
pattern, no outcome may appear that the model forbids, and those that it allows must appear.

V(x) is the round that is visible in x at the instant, P(x) the one that survives.  "x holds before
y" in a domain: a round of y that is visible implies, for every outcome, that this round of x
survives; P(x) >= V(y).  Where it does not hold, P(x) < P(y) must be seen.
"""
import gzip
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest

import labtest
import programs

DOMAINS = ("none", "adr", "eadr", "whole")
DEVICE = "/dev/dax0.0"
DAX_START = 2 << 20  # offset of the device in the NVDIMM
MAPPED = 2 << 20  # octets that the program maps
LINE = 64
LINES = 2
INSTANTS = 40
SEEDS = 32
MORE_INSTANTS = 400  # at most, while an allowed outcome has not been seen

FENCED = ("adr", "eadr", "whole")  # domains in which flushed and fenced data survive
CACHED = ("eadr", "whole")  # domains in which data in the cache survive
BUFFERED = ("whole",)  # domains in which data in a write-combining buffer survive
TORN = ("none", "adr")  # domains in which a line may survive in part


class Instant:
    """Visible content of the lines, and what survives with each seed."""

    def __init__(self, text):
        self.visible, *self.outcomes = map(bytes.fromhex, text.split())


def atom(content, name):
    """The atom of that name: 'y1' is the second atom of the second line."""
    return struct.unpack_from("<Q", content, "xyz".index(name[0]) * LINE + int(name[1]) * 8)[0]


class Order:
    """x holds before y, in some domains."""

    def __init__(self, earlier, later, domains):
        self.earlier, self.later, self.domains = earlier, later, domains

    def forbidden(self, domain, instant):
        if domain in self.domains:
            least = atom(instant.visible, self.later)
            for outcome in instant.outcomes:
                if atom(outcome, self.earlier) < least:
                    yield outcome

    def allowed(self, domain):
        """Name and predicate of each outcome that has to be seen."""
        if domain not in self.domains:
            yield "P(%s) < P(%s)" % (self.earlier, self.later), lambda v, o: atom(
                o, self.earlier
            ) < atom(o, self.later)
        yield "P(%s) > P(%s)" % (self.earlier, self.later), lambda v, o: atom(
            o, self.earlier
        ) > atom(o, self.later)


class Prefix:
    """Parts of one line, in the order in which a round stores them: a cut leaves a prefix.

    Each part holds the round modulo 2 ** bits.  So the second of two neighbours is equal to the
    first or one behind, and there is at most one such step.
    """

    def __init__(self, parts, bits=64):
        self.parts, self.modulus = parts, 1 << bits

    def steps(self, outcome):
        values = [part(outcome) for part in self.parts]
        return [(a - b) % self.modulus for a, b in zip(values, values[1:])]

    def forbidden(self, _domain, instant):
        for outcome in instant.outcomes:
            steps = self.steps(outcome)
            if set(steps) - {0, 1} or sum(steps) > 1:
                yield outcome

    def allowed(self, domain):
        yield "a whole round", lambda v, o: not any(self.steps(o))
        if domain in TORN:
            yield "part of a round", lambda v, o: any(self.steps(o))


class Whole:
    """Octets that are stored at once: all are of one round."""

    def __init__(self, start, length):
        self.octets = slice(start, start + length)

    def forbidden(self, _domain, instant):
        for outcome in instant.outcomes:
            if len(set(outcome[self.octets])) != 1:
                yield outcome

    def allowed(self, domain):
        if domain in TORN:
            yield "an old round", lambda v, o: v[self.octets] != o[self.octets]


class OctetOrder(Order):
    """Like Order, for a store octet by octet: each octet is of this round or of the last."""

    def forbidden(self, domain, instant):
        if domain in self.domains:
            rounds = [
                atom(instant.visible, name).to_bytes(8, "little")
                for name in (self.later, self.earlier)
            ]
            for outcome in instant.outcomes:
                octets = atom(outcome, self.earlier).to_bytes(8, "little")
                if any(one not in both for one, *both in zip(octets, *rounds)):
                    yield outcome


class Apart:
    """Two octets in different lines, stored at once: either may survive without the other."""

    def __init__(self, one, other):
        self.one, self.other = one, other

    def forbidden(self, domain, instant):
        if domain in CACHED:
            yield from (o for o in instant.outcomes if o[self.one] != o[self.other])

    def allowed(self, domain):
        if domain in TORN:
            yield "the first alone", lambda v, o: v[self.one] == o[self.one] != o[self.other]
            yield "the second alone", lambda v, o: v[self.other] == o[self.other] != o[self.one]


class Survives:
    """Whether the newest visible round may be lost, and may be kept."""

    def __init__(self, name, domains):
        self.name, self.domains = name, domains

    def forbidden(self, domain, instant):
        if domain in self.domains:
            newest = atom(instant.visible, self.name)
            yield from (o for o in instant.outcomes if atom(o, self.name) != newest)

    def allowed(self, domain):
        if domain not in self.domains:
            yield "lost", lambda v, o: atom(o, self.name) < atom(v, self.name)
        yield "kept", lambda v, o: atom(o, self.name) == atom(v, self.name)


def octet(at):
    return lambda content: content[at]


def whole_atom(name):
    return lambda content: atom(content, name)


def before(domains):
    return [Order("x0", "y0", domains)]


ATOMS_OF_X = [whole_atom("x%d" % i) for i in range(8)]

PATTERNS = {
    # Two lines: without a flush and a fence there is no order.
    "two-lines": before(CACHED) + [Survives("x0", CACHED), Survives("y0", CACHED)],
    "clwb-sfence": before(FENCED),
    "clwb-mfence": before(FENCED),
    "clwb-lfence": before(CACHED),
    "clwb-locked": before(FENCED),
    "clwb-exchange": before(FENCED),
    "clwb-only": before(CACHED),
    "sfence-only": before(CACHED),
    "clwb-too-early": before(CACHED),
    "clwb-elsewhere": before(CACHED),
    "clflushopt-sfence": before(FENCED),
    "clflushopt-only": before(CACHED),
    # CLFLUSH is ordered with the stores after it.
    "clflush-only": before(FENCED),
    "store-after-clwb": [Order("x0", "y0", FENCED), Order("x1", "y0", CACHED)],
    # Non-temporal stores bypass the cache: eADR does not save them.
    "movnti-only": before(BUFFERED),
    "movnti-sfence": before(FENCED),
    "movnti-locked": before(FENCED),
    "movntdq-only": before(BUFFERED),
    "movntdq-sfence": before(FENCED) + [Order("x1", "y0", FENCED)],
    "movntps-sfence": before(FENCED) + [Order("x1", "y0", FENCED)],
    "vmovntdq-sfence": before(FENCED) + [Order("x3", "y0", FENCED)],
    "maskmovdqu-sfence": [OctetOrder("x0", "y0", FENCED), OctetOrder("x1", "y0", FENCED)],
    # Within a line: stores stay in order, and atoms do not tear.
    "one-line": [Prefix(ATOMS_OF_X[:2])],
    "one-atom": [Whole(0, 8)],
    "misaligned": [Whole(4, 4), Whole(8, 4), Prefix([octet(7), octet(8)], 8)],
    "across-lines": [Whole(60, 4), Whole(64, 4), Apart(63, 64)],
    "movdqa": [Prefix(ATOMS_OF_X[:2])],
    "rep-stosb": [Prefix([octet(i) for i in range(LINE)], 8)],
    "rep-movsq": [Prefix(ATOMS_OF_X)],
    # Two CPUs: the second acts once it has seen the store of the first.
    "cpus-one-line": [Prefix(ATOMS_OF_X[:2])],
    "cpus-two-lines": before(CACHED),
    "cpus-other-flushes": before(FENCED),
    "cpus-other-fences": before(CACHED),
}

# Patterns that make check runs: no order, each kind of flush with a fence, one without, a line, two
# CPUs.
SHORT = (
    *("two-lines", "clwb-sfence", "clwb-only", "clflush-only"),
    *("movnti-sfence", "one-line", "cpus-other-flushes"),
)


class Monitor:
    """The part of QMP that is needed."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rw", encoding="utf-8")
        self.file.readline()
        self.execute("qmp_capabilities")

    def execute(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if "error" in answer:
                raise AssertionError("%s: %s" % (command, answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]

    def close(self):
        self.file.close()
        self.socket.close()


class Vm:
    """The VM of the tests: its domain, and the program in it."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = os.path.join(lab.state, "labs", lab.name, "alpha")
        self.connect()
        self.install()

    def connect(self):
        self.monitor = Monitor(os.path.join(self.folder, "qmp"))
        objects = self.monitor.execute("qom-list", path="/objects")
        (self.domain,) = [
            "/objects/" + each["name"] for each in objects if "staghorn-domain" in each["type"]
        ]
        nvdimm = self.monitor.execute("qom-get", path="/machine/peripheral/nv0", property="addr")
        self.address = nvdimm + DAX_START
        self.window = 0

    def install(self):
        with open(program(), "rb") as file:
            self.lab.run(
                "exec",
                "alpha",
                "--",
                "sh",
                "-c",
                "cat > /run/litmus; chmod +x /run/litmus",
                stdin=None,
                input=file.read(),
            )

    def set(self, name, value):
        self.monitor.execute("qom-set", path=self.domain, property=name, value=value)

    def get(self, name):
        return self.monitor.execute("qom-get", path=self.domain, property=name)

    def run(self, pattern, *more):
        """Zeroes everything and starts the program; returns when it has done a round."""
        self.set("drain", "eager")
        self.lab.run("exec", "alpha", "--", "/run/litmus", DEVICE, 0, "clear")
        self.set("drain", "never")
        self.window = MAPPED - LINES * LINE if pattern.startswith("behind") else 0
        started = self.lab.start("alpha", "/run/litmus", DEVICE, "0", pattern, *more)
        while not any(self.instant(0, 0).visible):
            if started.process.poll() is not None:
                raise AssertionError("litmus ended: " + started.output)
        return started

    def stop(self, started):
        """Ends the program, also in the VM."""
        started.stop()
        self.lab.sh("alpha", "while pgrep -x litmus > /dev/null; do sleep 0.01; done")

    def instant(self, seed, seeds=SEEDS):
        start = self.address + self.window
        text = "0x%x+%d:%d:%d" % (start, LINES * LINE, seed, seeds)
        self.set("preview", text)
        return Instant(self.get("preview"))

    def cut(self, *options):
        """Cuts the power for real; returns the lines as they then are on the media."""
        self.monitor.close()
        self.lab.run("cut", "alpha", *options)
        if "--hard" in options:
            content = self.media()
            self.lab.run("on", "alpha")
        self.connect()
        self.install()
        if "--hard" not in options:
            content = self.media()
        return content

    def show(self):
        """The lines as seen by the guest."""
        return bytes.fromhex(
            self.lab.run("exec", "alpha", "--", "/run/litmus", DEVICE, 0, "show").out
        )

    def media(self):
        """The lines as they are on the media."""
        with open(os.path.join(self.folder, "pmem0.img"), "rb") as file:
            file.seek(DAX_START)
            return file.read(LINES * LINE)


_program = None


def program():
    """Builds the guest program, statically, so that any guest can run it."""
    global _program
    if not _program:
        folder = tempfile.mkdtemp(prefix="sg-litmus-")
        _program = os.path.join(folder, "litmus")
        source = programs.SOURCES / "persist" / "litmus.c"
        subprocess.run(
            ["gcc", "-O2", "-Wall", "-Werror", "-static", "-pthread", "-o", _program, str(source)],
            check=True,
        )
        unittest.addModuleCleanup(shutil.rmtree, folder)
    return _program


def difference(visible, outcome):
    """The atoms, without those that are zero in both: 'x0 V 12 P 11'."""
    names = ["%s%d" % (line, i) for line in "xyz"[:LINES] for i in range(8)]
    values = [(name, atom(visible, name), atom(outcome, name)) for name in names]
    return ", ".join("%s V %x P %x" % value for value in values if any(value[1:]))


def judge(rules, domain, sample):
    """Takes instants until each allowed outcome was seen; returns what is wrong."""
    missing = [(rule, name, test) for rule in rules for name, test in rule.allowed(domain)]
    for number in range(MORE_INSTANTS):
        if number >= INSTANTS and not missing:
            break
        instant = sample(number * SEEDS)
        for rule in rules:
            for outcome in rule.forbidden(domain, instant):
                return "%s: forbidden: %s" % (
                    type(rule).__name__,
                    difference(instant.visible, outcome),
                )
        missing = [
            each
            for each in missing
            if not any(each[2](instant.visible, outcome) for outcome in instant.outcomes)
        ]
    return "never seen: " + ", ".join(name for _, name, _ in missing) if missing else ""


class VmCase(labtest.LabCase):
    """A VM whose CPUs are tracked."""

    up_arguments = (
        "--vms",
        "alpha",
        "--driver",
        "none",
        "--cpus",
        "2",
        "--mem",
        "512M",
        "--pmem",
        "alpha:16M,cpu-tracking=on,policy=random",
    )

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.vm = Vm(cls.lab)

    @classmethod
    def tearDownClass(cls):
        cls.vm.monitor.close()
        super().tearDownClass()


class Litmus(VmCase):
    def check(self, pattern):
        started = self.vm.run(pattern)
        for domain in DOMAINS:
            self.vm.set("domain", domain)
            with self.subTest(domain=domain):
                wrong = judge(PATTERNS[pattern], domain, self.vm.instant)
                if wrong:
                    self.fail(wrong)
        self.vm.stop(started)

    def test_guest_has_the_instructions(self):
        flags = self.lab.sh("alpha", "grep -m1 ^flags /proc/cpuinfo").split()
        for flag in ("clflush", "clflushopt", "clwb", "sse2", "avx"):
            self.assertIn(flag, flags)


def _add_patterns():
    for pattern in PATTERNS:

        def case(self, pattern=pattern):
            self.check(pattern)

        case.long = pattern not in SHORT
        setattr(Litmus, "test_pattern__" + pattern.replace("-", "_"), case)


_add_patterns()


class Fifo(Order):
    """The order of a store buffer: visible stores may be lost; P(x) >= P(y)."""

    def forbidden(self, domain, instant):
        if domain in self.domains:
            for outcome in instant.outcomes:
                if atom(outcome, self.earlier) < atom(outcome, self.later):
                    yield outcome


@labtest.long
class StoreBuffer(VmCase):
    """With store-buffer=on, visible stores wait in a FIFO before they reach the cache."""

    patterns = {
        "two-lines": [Fifo("x0", "y0", CACHED), Survives("y0", BUFFERED)],
        "clwb-sfence": before(FENCED),
        "clwb-exchange": before(FENCED),
        "clflush-only": [Fifo("x0", "y0", FENCED)],
        "movnti-only": [Fifo("x0", "y0", BUFFERED)],
        "one-line": [Prefix(ATOMS_OF_X[:2]), Survives("x0", BUFFERED)],
        "cpus-two-lines": before(CACHED),
        "cpus-other-flushes": before(FENCED),
        # A write to a device comes after all earlier stores.
        "told": before(CACHED),
    }

    def setUp(self):
        self.vm.set("store-buffer", True)

    def test_patterns(self):
        for pattern, rules in self.patterns.items():
            started = self.vm.run(pattern)
            for domain in DOMAINS:
                self.vm.set("domain", domain)
                with self.subTest(pattern=pattern, domain=domain):
                    wrong = judge(rules, domain, self.vm.instant)
                    if wrong:
                        self.fail(wrong)
            self.vm.stop(started)


class Cuts(VmCase):
    """Cuts do what previews say."""

    def setUp(self):
        self.vm.set("domain", "adr")

    def check_order(self, content):
        self.assertGreater(atom(content, "x0"), 0)
        self.assertGreaterEqual(atom(content, "x0"), atom(content, "y0"))

    def test_cut__flushed_and_fenced_is_kept(self):
        self.vm.run("clwb-sfence")
        content = self.vm.cut("--policy", "lose-all")
        self.check_order(content)
        self.assertEqual(self.vm.show(), content)

    @labtest.long
    def test_kill__flushed_and_fenced_is_kept(self):
        self.vm.run("clwb-sfence")
        content = self.vm.cut("--hard")
        self.check_order(content)
        self.assertEqual(self.vm.show(), content)

    @labtest.long
    def test_cut__keeps_all(self):
        self.vm.stop(self.vm.run("two-lines"))
        visible = self.vm.show()
        self.assertEqual(self.vm.cut("--policy", "keep-all"), visible)

    @labtest.long
    def test_cut__is_one_of_the_previews(self):
        self.vm.stop(self.vm.run("one-line"))
        previews = set()
        for first in range(0, 4000, 100):
            previews.update(self.vm.instant(first, 100).outcomes)
        self.assertGreater(len(previews), 8)
        self.assertIn(self.vm.cut("--policy", "random:1"), previews)

    @labtest.long
    def test_cut__report_names_the_instruction(self):
        start, end = place_of("two_lines")
        self.vm.stop(self.vm.run("two-lines"))
        self.assertFalse(any(self.vm.cut("--policy", "lose-all")))
        self.vm.monitor.close()
        report = json.loads(self.lab.run("pmem", "alpha", "--report", "--json").out)
        self.vm.connect()
        rows = [row for row in report["rows"] if row["addr"] - self.vm.address in (0, LINE)]
        self.assertEqual(len(rows), LINES, report)
        for row in rows:
            self.assertEqual(row["fate"], "lost")
            self.assertEqual(row["source"]["agent"], "cpu")
            self.assertTrue(start <= row["source"]["pc"] < end, (row, hex(start), hex(end)))
        self.assertNotEqual(rows[0]["source"]["pc"], rows[1]["source"]["pc"])


@labtest.long
class Kernel(VmCase):
    """Persistent memory as the guest's kernel uses it: block device, ext4 with DAX."""

    up_arguments = VmCase.up_arguments[:-1] + ("alpha:32M,cpu-tracking=on,policy=random",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.sh("alpha", "ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem")
        # The guest has no mkfs, so the host makes the file system; the guest writes and flushes it.
        with tempfile.NamedTemporaryFile() as image:
            image.truncate(16 << 20)
            subprocess.run(["mke2fs", "-q", "-t", "ext4", "-b", "4096", image.name], check=True)
            packed = gzip.compress(image.read())
        cls.lab.run(
            *("exec", "alpha", "--", "sh", "-c", "gzip -dc | dd of=/dev/pmem0 bs=1M conv=fsync"),
            stdin=None,
            input=packed,
        )

    def test_block_device__fsync(self):
        """Each outcome has everything: the driver uses non-temporal stores and a fence."""
        place = 20 << 20  # past the file system
        self.vm.set("domain", "adr")
        self.lab.sh(
            "alpha",
            "head -c 65536 /dev/urandom > /run/data; "
            "dd if=/run/data of=/dev/pmem0 bs=4096 seek=%d conv=fsync,notrunc oflag=direct"
            % (place // 4096),
        )
        start = int(self.lab.sh("alpha", "cat /sys/block/pmem0/device/resource"), 16)
        data = bytes.fromhex(self.lab.sh("alpha", "od -An -v -tx1 /run/data"))
        self.assertEqual(len(data), 65536)
        text = "0x%x+%d:1:10" % (start + place, len(data))
        self.vm.set("preview", text)
        instant = Instant(self.vm.get("preview"))
        self.assertEqual(instant.visible, data)
        for outcome in instant.outcomes:
            self.assertEqual(outcome, data)

    def test_dax_file__fsync_and_cut(self):
        """Namespace, file system and file survive; what was not synced is lost."""
        self.lab.sh("alpha", "mount -o dax=always /dev/pmem0 /mnt && mount | grep -q dax=always")
        before = self.lab.sh(
            "alpha",
            "head -c 1M /dev/urandom > /run/data; dd if=/run/data of=/mnt/synced conv=fsync; "
            "cp /run/data /mnt/not-synced; sha256sum < /mnt/synced",
        )
        self.vm.cut("--policy", "lose-all")
        after = self.lab.sh(
            "alpha",
            "mount -o dax=always /dev/pmem0 /mnt && sha256sum < /mnt/synced && ls /mnt",
        )
        self.assertEqual(after.splitlines()[0], before.strip())
        self.assertNotIn("not-synced", after)


class Refusal(unittest.TestCase):
    def test_other_accelerator(self):
        """Where stores cannot be tracked, QEMU says so and does not start."""
        build = labtest.TOP / os.environ.get("SG_BUILD", "build")
        qemu = str(build / "qemu/qemu-system-x86_64")
        with tempfile.NamedTemporaryFile() as media:
            media.truncate(2 << 20)
            done = subprocess.run(
                [qemu, "-accel", "qtest", "-display", "none", "-nodefaults"]
                + ["-L", str(build / "products/firmware/share")]
                + ["-machine", "q35,nvdimm=on", "-m", "64M,slots=1,maxmem=2G"]
                + ["-object", "staghorn-domain,id=dom0,cpu-tracking=on"]
                + ["-object", "memory-backend-file,id=m0,share=off,size=2M,mem-path=" + media.name]
                + ["-device", "nvdimm,id=nv0,memdev=m0"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("tracked with -accel tcg only, this is QTest", done.stderr)


def place_of(function):
    """First and last address of a function of the guest program."""
    for line in subprocess.check_output(["nm", "-S", program()], text=True).splitlines():
        words = line.split()
        if words[-1] == function:
            return int(words[0], 16), int(words[0], 16) + int(words[1], 16)
    raise AssertionError("no function " + function)


if __name__ == "__main__":
    labtest.main()
