# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recording has of CPUs: stores, flushes, fences, loads, and marks of programs.
# timeout: 600

A guest program (record_cpu.c of tests/guest-programs/persist) does known things in known steps,
each of which begins with a mark.  The kernel runs on the same CPUs: its fences and its writes to
devices are in the trace as well, and take the place of the program's where nothing is left to do.
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import labtest
import programs

DEVICE, DISK = "/dev/dax0.0", "/dev/vda"
DAX_START = 2 << 20  # offset of the device in the NVDIMM
LINE, PAGE = 64, 4096
KERNEL = 1 << 63  # its program counters
PLAIN, NONTEMPORAL = 4, 5  # a store's argument: announced, in either case
SFENCE, MFENCE, LOCKED, _, WBINVD = range(5)
ROUNDS = 500  # of the step "turns"

_folder = None


def program():
    """Builds the guest program, statically, so that any guest can run it."""
    global _folder
    if not _folder:
        _folder = tempfile.mkdtemp(prefix="sg-record-")
        unittest.addModuleCleanup(shutil.rmtree, _folder)
        source = programs.SOURCES / "persist" / "record_cpu.c"
        subprocess.run(
            ["gcc", "-O2", "-Wall", "-Werror", "-static", "-pthread"]
            + ["-I", str(labtest.TOP / "guest-driver/mark")]
            + ["-o", os.path.join(_folder, "record_cpu"), str(source)],
            check=True,
        )
    return os.path.join(_folder, "record_cpu")


def native(*words):
    """Runs a program of the native build; returns what it wrote."""
    build = os.path.join(programs.BUILD, "native")
    command = [os.path.join(build, words[0]), *words[1:]]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read_trace(path):
    """Header, events and end of a complete trace."""
    header, *events, end = map(
        json.loads, native("hw/print/staghorn-trace", "--json", path).splitlines()
    )
    assert end["status"] == "end", end
    return header, events


class Recording(labtest.LabCase):
    up_arguments = ("--vms", "alpha", "--driver", "none", "--cpus", "2", "--mem", "512M") + (
        "--pmem",
        "alpha:16M",
    )

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program()
        with open(program(), "rb") as file:
            cls.lab.run(
                *("exec", "alpha", "--", "sh", "-c"),
                "cat > /run/record_cpu; chmod +x /run/record_cpu",
                stdin=None,
                input=file.read(),
            )
        # Marks and tracked stores that nobody records are harmless.
        cls.lab.run("exec", "alpha", "--", "/run/record_cpu", DEVICE, DISK)
        folder = tempfile.mkdtemp(prefix="sg-recorded-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.record(folder, "/run/record_cpu", DEVICE, DISK)
        cls.path = os.path.join(folder, "alpha.trace")
        cls.header, events = read_trace(cls.path)
        cls.address = cls.header["extents"][0]["base"] + DAX_START
        cls.steps, cls.marks = {}, {}
        step = None
        for event in events:
            if event["kind"] == "mark" and event["name"] == "step":
                step = event["text"]
                cls.steps[step], cls.marks[step] = [], event
            elif step:
                cls.steps[step].append(event)

    @classmethod
    def record(cls, folder, *command):
        cls.lab.run("crash", "record", "--output", folder, "--", "alpha", *command)

    def of(self, step, *kinds, kernel=False):
        """The step's events of these kinds, without those of the kernel."""
        return [
            event
            for event in self.steps[step]
            if event["kind"] in kinds and (kernel or event.get("at", 0) < KERNEL)
        ]

    def places(self, events):
        return [event["addr"] - self.address for event in events]

    def test_stores__octets_and_place(self):
        stores = self.of("stores", "store")
        self.assertEqual(
            [
                (place, s["len"], s["arg"], s["data"])
                for place, s in zip(self.places(stores), stores)
            ],
            [
                (0, 8, PLAIN, "8877665544332211"),
                (9, 1, PLAIN, "99"),
                (56, 16, PLAIN, "0102030405060708090a0b0c0d0e0f10"),
                (2 * LINE, 8, NONTEMPORAL, "2222000000000000"),
            ],
        )

    def test_stores__processor_instruction_and_page_tables(self):
        for line in subprocess.check_output(["nm", "-S", program()], text=True).splitlines():
            words = line.split()
            if words[-1] == "stores":
                start, size = int(words[0], 16), int(words[1], 16)
        root = self.marks["stores"]["root"]
        self.assertGreater(root, 0)
        self.assertEqual(root % PAGE, 0)
        places = [store["at"] for store in self.of("stores", "store")]
        self.assertEqual(places, sorted(set(places)))
        for store in self.of("stores", "store"):
            self.assertEqual((store["unit"], store["root"]), (0, root))
            self.assertTrue(start <= store["at"] < start + size, store)
        self.assertEqual(self.marks["load"]["unit"], 1)
        self.assertEqual(self.marks["load"]["root"], root)

    def test_flushes(self):
        flushes = self.of("flushes", "cpu-flush")
        self.assertEqual(
            [flush["arg"] for flush in flushes], [0, 1, 2]
        )  # CLWB, CLFLUSHOPT, CLFLUSH
        self.assertEqual(self.places(flushes), [3 * LINE, 4 * LINE, 5 * LINE])

    def test_fences__behind_their_stores(self):
        for step, kind in (("sfence", SFENCE), ("mfence", MFENCE), ("locked-fence", LOCKED)):
            with self.subTest(step):
                store, *fences = self.of(step, "store", "cpu-fence", kernel=True)
                self.assertEqual(store["kind"], "store")
                self.assertTrue(fences, "the fence is missing")
                self.assertEqual({fence["kind"] for fence in fences}, {"cpu-fence"})
                if fences[0]["at"] < KERNEL:
                    self.assertEqual(fences[0]["arg"], kind)

    def test_fences__of_nothing_are_left_out(self):
        self.assertEqual(self.of("idle-fence", "cpu-fence"), [])

    def test_wbinvd__all_caches_are_written_back(self):
        """Linux executes it on a processor that goes offline; another one has stored."""
        programs.install(self.lab, "alpha", "dax_store")
        cpu = "/sys/devices/system/cpu/cpu1/online"
        script = "taskset -c 0 dax_store %s write 8192 stored; staghorn-mark step offline; " % (
            DEVICE
        ) + "echo 0 > %s; staghorn-mark step online; echo 1 > %s" % (cpu, cpu)
        with tempfile.TemporaryDirectory() as folder:
            self.record(folder, "sh", "-c", script)
            _, events = read_trace(os.path.join(folder, "alpha.trace"))
        marks = [n for n, e in enumerate(events) if e["kind"] == "mark"]
        found = [
            event
            for event in events[marks[0] : marks[1]]
            if event["kind"] == "cpu-fence" and event["arg"] == WBINVD
        ]
        self.assertTrue(found, "no WBINVD")
        self.assertEqual(found[0]["unit"], 1)
        self.assertGreater(found[0]["at"], KERNEL)
        self.lab.run("cut", "alpha", "--policy", "lose-all")
        programs.install(self.lab, "alpha", "dax_store")
        kept = self.lab.run("exec", "alpha", "--", "dax_store", DEVICE, "read", 8192, 6)
        self.assertEqual(kept.out.strip(), "stored")

    def test_locked__fences_before_and_behind(self):
        events = self.of("locked", "store", "cpu-fence", kernel=True)
        words = [
            e["kind"]
            for e, next in zip(events, events[1:] + [None])
            if not next or e["kind"] != next["kind"]
        ]
        self.assertEqual(words, ["store", "cpu-fence"] * 2)
        *_, store, fence = events
        self.assertEqual(self.places([store]), [7 * LINE])
        self.assertEqual(store["data"], "0500000000000000")
        self.assertEqual((fence["arg"], fence["at"]), (LOCKED, store["at"]))

    def test_loads__own_stores_are_left_out(self):
        self.assertEqual(self.of("load-own", "load"), [])

    def test_loads__of_another_cpu_once(self):
        (load,) = self.of("load", "load")
        self.assertEqual((load["unit"], load["len"]), (1, 8))
        self.assertEqual(self.places([load]), [0])
        self.assertEqual(self.of("load-again", "load"), [])
        (load,) = self.of("load-across", "load")
        self.assertEqual(self.places([load]), [60])

    def test_loads__between_the_stores_that_they_saw_and_what_follows(self):
        """Two CPUs poll each other's atom: none goes on without a load of what it waited for."""
        lines = [10 * LINE, 11 * LINE]
        value, seen, rounds = [0, 0], [0, 0], 0
        for event in self.of("turns", "store", "load"):
            place = event["addr"] - self.address
            if place not in lines:
                continue
            unit, line = event["unit"], lines.index(place)
            if event["kind"] == "load":
                self.assertNotEqual(unit, line)
                seen[unit] = value[line]
                continue
            value[line] = int.from_bytes(bytes.fromhex(event["data"]), "little")
            if value[line]:
                self.assertEqual(unit, line)
                self.assertEqual(seen[unit], value[unit] - (unit == 0), event)
                rounds += 1
        self.assertEqual(rounds, 2 * ROUNDS)

    def test_loads__of_a_locked_instruction(self):
        load, store, fence = self.of("load-locked", "load", "store", "cpu-fence")
        self.assertEqual(
            (load["kind"], store["kind"], fence["kind"]), ("load", "store", "cpu-fence")
        )
        self.assertEqual(self.places([load, store]), [7 * LINE, 7 * LINE])
        self.assertEqual(store["data"], "0a00000000000000")
        self.assertEqual({event["unit"] for event in (load, store, fence)}, {1})

    def test_loads__of_a_disks_data(self):
        write, *loads = self.of("disk", "other-write", "load")
        self.assertEqual((write["kind"], write["len"]), ("other-write", PAGE))
        self.assertEqual(self.places([write, *loads]), [PAGE, PAGE + 2 * LINE])

    def test_devices__are_told_once(self):
        for step in ("device", "device-again"):
            kinds = [e["kind"] for e in self.of(step, "store", "cpu-sync", kernel=True)]
            self.assertEqual(kinds, ["store", "cpu-sync"], step)
        self.assertEqual(self.of("idle-device", "cpu-sync", kernel=True), [])

    def test_marks__texts(self):
        marks = {mark["name"]: mark for mark in self.of("marks", "mark")}
        self.assertEqual(marks["state"]["text"], 'count=1 "quoted"')
        self.assertEqual(marks["empty"]["len"], 0)
        (long,) = [mark for mark in self.of("marks", "mark") if mark["name"] == "long"]
        self.assertEqual(long["text"], "x" * 4096)

    def test_marks__ranges_are_addresses_of_the_machine(self):
        durable, ordinary = [m["text"] for m in self.of("marks", "mark") if m["name"] == "durable"]
        self.assertEqual(durable, "phys=%#x len=%d" % (self.address + 2 * PAGE - 8, 2 * PAGE))
        self.assertEqual(ordinary, "outside=100")
        self.assertEqual(
            [m["text"] for m in self.of("marks", "mark") if m["name"] == "far"],
            [
                "phys=%#x len=%d" % (self.address, 64 * PAGE),
                "phys=%#x len=%d" % (self.address + 64 * PAGE, PAGE),
            ],
        )

    def test_marks__wrong_operands(self):
        """No fault, nothing of the kernel's memory, and the trace says so."""
        marks = [mark for mark in self.of("marks", "mark") if mark["name"] == "wrong"]
        self.assertEqual([mark["len"] for mark in marks], [0] * 4)
        self.assertIn("end", self.steps)

    def test_staghorn_trace__text_kinds_and_damage(self):
        shown = native("hw/print/staghorn-trace", "--kinds", "load,cpu-sync", self.path)
        _, *lines, end = shown.splitlines()
        self.assertEqual({line.split()[2] for line in lines}, {"load", "cpu-sync"})
        self.assertTrue(end.startswith("end: "), end)
        tool = os.path.join(programs.BUILD, "native/hw/print/staghorn-trace")
        with tempfile.NamedTemporaryFile() as part:
            with open(self.path, "rb") as file:
                part.write(file.read()[:-20])
            part.flush()
            for words, status, said in (
                ([part.name], 1, "cut-short: "),
                (["--kinds", "nonsense", self.path], 2, "no kind of event 'nonsense'"),
                ([part.name + "-missing"], 2, "No such file"),
                ([], 2, "one FILE is needed"),
            ):
                done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, words)
                self.assertIn(said, done.stdout + done.stderr)

    def test_trace__replays_to_the_media(self):
        found = json.loads(native("tests/trace_replay", self.path))
        self.assertEqual((found["wrong"], found["status"]), ("", "end"))
        self.assertTrue(found["end-hash-fits"])
        self.assertGreater(found["store"], 8)

    def test_trace__of_a_second_recording(self):
        """Off and on again: nothing is missing, nothing comes twice."""
        with tempfile.TemporaryDirectory() as folder:
            self.record(folder, "/run/record_cpu", DEVICE, DISK)
            _, events = read_trace(os.path.join(folder, "alpha.trace"))
        for kind in ("store", "cpu-flush"):
            self.assertEqual(
                sum(event["kind"] == kind for event in events),
                sum(event["kind"] == kind for step in self.steps.values() for event in step),
                kind,
            )

    def test_program_for_scripts(self):
        with tempfile.TemporaryDirectory() as folder:
            script = (
                "staghorn-mark state a=1; echo -n piped | staghorn-mark other -; staghorn-mark x"
            )
            self.record(folder, "sh", "-c", script)
            _, events = read_trace(os.path.join(folder, "alpha.trace"))
        marks = [(e["name"], e["text"]) for e in events if e["kind"] == "mark"]
        self.assertEqual(marks, [("state", "a=1"), ("other", "piped"), ("x", "")])
        self.lab.sh("alpha", "staghorn-mark", status=2)


class WithoutPersistentMemory(labtest.LabCase):
    up_arguments = ("--vms", "alpha", "--driver", "none", "--mem", "512M")

    def test_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            self.lab.run(
                *("crash", "record", "--output", folder, "--", "alpha"),
                "staghorn-mark",
                "state",
                "a=1",
            )
            header, events = read_trace(os.path.join(folder, "alpha.trace"))
        self.assertEqual(header["extents"], [])
        (mark,) = [event for event in events if event["kind"] == "mark"]
        self.assertEqual((mark["name"], mark["text"]), ("state", "a=1"))
        self.assertTrue(0 < mark["at"] < KERNEL)
        self.assertGreater(mark["root"], 0)


if __name__ == "__main__":
    labtest.main()
