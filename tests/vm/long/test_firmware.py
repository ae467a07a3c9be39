# SPDX-License-Identifier: GPL-2.0-or-later
"""Firmware: the expansion ROM's output (BIOS, UEFI), vital product data, updates, profiles.

The VM alpha changes its profile as a user would: by an update and a reload.
# timeout: 1200
"""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import labtest
import rdmatest
import ulptest
from updatetest import FIRMWARE, FLASH, flash, info, make, put, read, reload_driver

BUILD = os.environ.get("SG_BUILD", str(labtest.TOP / "build"))
PROFILES = ("full", "no-srq-no-mw", "small", "mpa1", "strict", "no-placement")
TOOLS = ("ib_write_bw", "ib_read_bw", "ib_send_bw")
SLOTS = 0x11000, 0x21000  # offset of each slot's firmware on the chip
UPDATES = 20  # at most, until QEMU is stopped in the middle of one
# ib_device_attr.device_cap_flags, as ibv_devinfo prints them
CAP_MEM_WINDOW = 1 << 17
QEMU_PATIENCE = 240  # seconds for machines that boot nothing
TEXT_SCREEN = 0xB8000, 80 * 25 * 2  # a letter, its colours, the next letter
MPA_KEY = {"request": b"MPA ID Req Frame", "reply": b"MPA ID Rep Frame"}
MPA_MARKERS, MPA_CRC = 0x80, 0x40


def console(lab, vm):
    return lab.run("log", vm).out


def console_file(path):
    return read(path).decode(errors="replace") if os.path.exists(path) else ""


def screen_text(path):
    """The lines of a text screen whose memory is in a file; nothing while it is incomplete."""
    memory = read(path) if os.path.exists(path) else b""
    if len(memory) < TEXT_SCREEN[1]:
        return ""
    letters = memory[::2].replace(b"\0", b" ").decode("cp437")
    return "\n".join(letters[at : at + 80].rstrip() for at in range(0, len(letters), 80))


def cut_power(lab):
    """Cuts alpha's power while lines are under way; returns what the ROM has to print then."""
    program = BUILD + "/guest/programs/dax_store"
    lab.run("copy", os.path.realpath(program), "alpha:/usr/bin/dax_store")
    ulptest.check_kernel(lab, "alpha")
    lab.sh("alpha", "dax_store /dev/dax0.0 fill 4194304 4096 65")
    lab.run("cut", "--policy", "random:7", "alpha", "--timeout", labtest.UP_LIMIT)
    report = json.loads(lab.run("pmem", "alpha", "--report", "--json").out)
    assert report["untracked-counted"], report
    fates = [report["untracked"]] + list(report["stages"].values())
    kept = sum(each["kept"] for each in fates)
    lost = sum(each[fate] for each in fates for fate in ("lost", "partly", "refused"))
    assert kept + lost >= 64, report
    words = "power cut 1: persistent memory kept %d lines that were under way, lost %d"
    return words % (kept, lost)


class Vms(unittest.TestCase):
    """Cases of VMs in which no kernel may complain."""

    lab = None
    vms = ("alpha",)

    def setUp(self):
        self.addCleanup(self.check_kernels)

    def check_kernels(self):
        for vm in self.vms:
            ulptest.check_kernel(self.lab, vm)

    def cut(self):
        """Cuts alpha's power, so its kernel's log is lost."""
        ulptest.check_kernel(self.lab, "alpha")
        self.lab.run("cut", "--hard", "alpha")


class Updates(Vms):
    """One VM with an NVDIMM that loses unflushed CPU stores."""

    @classmethod
    def setUpClass(cls):
        cls.lab = labtest.Lab("updates")
        memory = "64M,untracked=at-risk,cpu-tracking=off"
        # A VM that resumes behind its boot has no line of the ROM on its console.
        with labtest.booting():
            cls.lab.up("--vms", "alpha", "--pmem", memory, "--profile", "full")
        cls.folder = tempfile.mkdtemp(prefix="sg-fw-")
        make(cls.folder + "/next.fw", "small", "1.1.0")
        cls.next = read(cls.folder + "/next.fw")

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()
        subprocess.run(["rm", "-rf", cls.folder], check=True)

    def test_1_rom__says_what_there_is(self):
        text = console(self.lab, "alpha")
        mac = json.loads(self.lab.run("status", "--json").out)["vms"]["alpha"]["mac"]
        self.assertRegex(text, r"Staghorn iWARP RDMA adapter at [0-9a-f]{2}:[0-9a-f]{2}\.0, ")
        self.assertIn("firmware 1.0.0", text)
        self.assertIn("MAC %s, link up, 10000 Mbit/s" % mac, text)
        self.assertNotIn("power cut", text)

    def test_2_vpd__is_the_image_s(self):
        vpd = self.lab.sh("alpha", "cat $(dirname $(find /sys/devices -name vpd))/vpd")
        mac = json.loads(self.lab.run("status", "--json").out)["vms"]["alpha"]["mac"]
        octets = mac.replace(":", "")
        for part in ("Staghorn iWARP RDMA adapter", "SG-1", "SG" + octets.upper(), octets, "full"):
            self.assertIn(part, vpd)
        guid = self.lab.sh("alpha", "cat /sys/class/infiniband/*/node_guid").strip()
        self.assertIn(guid.replace(":", ""), vpd)
        found = info(self.lab, "alpha")
        self.assertEqual(found["serial_number"], "SG" + octets.upper())
        self.assertEqual(found["versions"]["fixed"]["board.id"], "SG-1")
        self.assertEqual(found["versions"]["running"], {"fw": "1.0.0", "fw.profile": "full"})
        self.assertEqual(found["versions"]["running"], found["versions"]["stored"])

    def test_3_bad_updates__are_refused(self):
        good = self.next
        rows = {
            "ends too early": good[:1000],
            "checksum is wrong": good[:-1] + bytes([good[-1] ^ 1]),
            "not firmware of this adapter": b"x" * 4096,
            "octets, must be": b"x" * 70000,
            "format that is not known": good[:8] + b"\x02" + good[9:],
            "length or an offset": good + b"more",
        }
        for words, data in rows.items():
            with self.subTest(words):
                self.assertIn(words, flash(self.lab, "alpha", data, status=1))
                stored = info(self.lab, "alpha")["versions"]["stored"]
                self.assertEqual(stored["fw"], "1.0.0")

    def test_4_half_an_image__leaves_the_old(self):
        """Half an image gets no slot record."""
        flash(self.lab, "alpha", self.next[: len(self.next) // 2], status=1)
        found = info(self.lab, "alpha")["versions"]
        self.assertEqual(found["stored"], found["running"])

    def test_4_killed_in_the_middle__leaves_the_old(self):
        """QEMU is killed while the guest flashes; part of the update is in the other slot."""
        folder = rdmatest.folder(self.lab)
        chip = str(folder.path / "alpha" / "flash0.img")
        pid = folder.data["vms"]["alpha"]["process"]["pid"]
        middle = False
        for version in range(2, 2 + UPDATES):
            new = self.long_update(version)
            put(self.lab, "alpha", new)
            update = self.lab.start("alpha", "sh", "-c", FLASH)
            middle = self.stop_in_the_middle(chip, pid, new, update)
            if middle:
                break
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(update.wait(labtest.UP_LIMIT), 0, update.output)
        self.assertTrue(middle, "%d updates, each of them too quick" % UPDATES)
        self.lab.run("cut", "--hard", "alpha")
        update.stop()
        self.lab.run("on", "alpha", "--timeout", labtest.UP_LIMIT)
        found = info(self.lab, "alpha")["versions"]
        self.assertEqual(found["running"], {"fw": "1.0.0", "fw.profile": "full"})
        self.assertEqual(found["stored"], found["running"])
        self.assertEqual(console(self.lab, "alpha").count("firmware 1.0.0"), 2)

    def long_update(self, version):
        """Firmware with an expansion ROM of some 30 KiB, so that writing takes a while."""
        path = self.folder + "/long"
        with open(path + ".bin", "wb") as file:
            file.write(read(FIRMWARE + "/staghorn.rom").ljust(31000, bytes([version])))
        subprocess.run([FIRMWARE + "/sg-flash", "rom", path + ".bin", path + ".rom"], check=True)
        make(path + ".fw", "small", "1.0.%d" % version, path + ".rom")
        return read(path + ".fw")

    def stop_in_the_middle(self, chip, pid, new, update):
        """Stops QEMU when the update's beginning is on the chip; returns whether its end is not."""
        deadline = time.monotonic() + labtest.UP_LIMIT
        with open(chip, "rb", buffering=0) as file:
            while new[:512] not in [os.pread(file.fileno(), 512, at) for at in SLOTS]:
                self.assertLess(time.monotonic(), deadline, update.output)
                time.sleep(0.0002)
            os.kill(pid, signal.SIGSTOP)
        now = read(chip)
        self.assertIn(new[:512], now)
        return new[-512:] not in now

    def test_5_power_cut__is_reported(self):
        line = cut_power(self.lab)
        self.assertIn(line, re.sub(r"\s+", " ", console(self.lab, "alpha")))

    def test_6_update__runs_after_a_reload_and_for_good(self):
        self.assertIn("Flashing done", flash(self.lab, "alpha", self.next))
        found = info(self.lab, "alpha")["versions"]
        self.assertEqual(found["running"]["fw"], "1.0.0")
        self.assertEqual(found["stored"], {"fw": "1.1.0", "fw.profile": "small"})
        self.lab.sh("alpha", "ibv_devinfo | grep -q 'fw_ver:.*1.0.0'")
        reload_driver(self.lab, "alpha")
        self.assertEqual(info(self.lab, "alpha")["versions"]["running"]["fw"], "1.1.0")
        self.lab.sh("alpha", "ibv_devinfo | grep -q 'fw_ver:.*1.1.0'")
        self.cut()
        self.lab.run("on", "alpha", "--timeout", labtest.UP_LIMIT)
        self.assertEqual(info(self.lab, "alpha")["versions"]["running"]["fw"], "1.1.0")
        self.assertIn("firmware 1.1.0", console(self.lab, "alpha"))


class Uefi(Vms):
    """A VM that boots with UEFI: two adapters, and the same NVDIMM as above."""

    @classmethod
    def setUpClass(cls):
        cls.lab = labtest.Lab("uefi")
        memory = "64M,untracked=at-risk,cpu-tracking=off"
        cls.lab.up("--vms", "alpha", "--uefi", "--adapter", "alpha", "--pmem", memory)

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def test_1_rom__says_what_there_is(self):
        """The line appears once for each adapter, before Linux boots."""
        vm = json.loads(self.lab.run("status", "--json").out)["vms"]["alpha"]
        ports = [vm, *vm["adapters"]]
        text = console(self.lab, "alpha")
        linux = re.search(r"EFI \w+: ", text).start()  # Linux's output before it leaves UEFI
        self.lab.sh("alpha", "test -d /sys/firmware/efi")
        self.assertEqual(len(re.findall(r"adapter at [0-9a-f:]+\.0, firmware 1\.0\.0", text)), 2)
        self.assertEqual(len(ports), 2)
        for port in ports:
            line = "MAC %s, link up, 10000 Mbit/s" % port["mac"]
            self.assertEqual(text.count(line), 1, text)
            self.assertLess(text.index(line), linux)
        self.assertNotIn("power cut", text)

    def test_2_power_cut__is_reported(self):
        line = cut_power(self.lab)
        text = console(self.lab, "alpha")
        self.assertEqual(text.count(line), 2, text)
        self.assertEqual(text.count(", link up, "), 4, text)


class PowerOn(unittest.TestCase):
    """Machines with two adapters and nothing to boot; the first adapter's cable is out."""

    def command(self, *words):
        """A QEMU with the adapters and these arguments; the machine waits for the monitor."""
        share = BUILD + "/products/firmware/share"
        command = [BUILD + "/qemu/qemu-system-x86_64", "-L", share, "-S", "-monitor", "stdio"]
        command += ["-M", "q35", "-cpu", "max", "-accel", "tcg", "-m", "256", "-nodefaults", *words]
        for n in range(2):
            command += ["-netdev", "hubport,id=up%d,hubid=%d" % (n, n)]
            command += ["-device", "pcie-root-port,id=rp%d,chassis=%d,slot=%d" % (n, n, n)]
            adapter = "staghorn,netdev=up%d,bus=rp%d,mac=52:54:00:00:00:0%d,romfile=%s/full.flash"
            command += ["-device", adapter % (n, n, n, FIRMWARE)]
        return command

    def console(self, uefi, end):
        """The output of the serial console up to the text `end`."""
        share = BUILD + "/products/firmware/share"
        with tempfile.TemporaryDirectory(prefix="sg-on-") as folder:
            text = folder + "/console"
            words = ["-nographic", "-serial", "file:" + text]
            if uefi:
                with open(folder + "/variables", "wb") as file:
                    file.write(read(share + "/OVMF_VARS_4M.fd"))
                pflash = "if=pflash,format=raw,unit=%d,file=%s"
                code = pflash % (0, share + "/OVMF_CODE_4M.fd") + ",readonly=on"
                words += ["-drive", code, "-drive", pflash % (1, folder + "/variables")]
            return self.until(self.command(*words), lambda qemu: console_file(text), end)

    def screen(self, *words):
        """The content of screen and serial port when nothing can be booted."""
        with tempfile.TemporaryDirectory(prefix="sg-on-") as folder:
            text, memory = folder + "/console", folder + "/memory"

            def look(qemu):
                qemu.stdin.write(b'pmemsave 0x%x %d "%s"\n' % (*TEXT_SCREEN, memory.encode()))
                qemu.stdin.flush()
                return screen_text(memory)

            words = (*words, "-device", "VGA", "-serial", "file:" + text)
            found = self.until(self.command(*words), look, "No bootable device")
            return found, console_file(text)

    def until(self, command, look, end):
        """The result of look() in the running QEMU, once it contains `end`."""
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as qemu:
            try:
                qemu.stdin.write(b"set_link up0 off\ncont\n")
                qemu.stdin.flush()
                text, deadline = "", time.monotonic() + QEMU_PATIENCE
                while end not in text:
                    self.assertIsNone(qemu.poll(), "QEMU ended")
                    self.assertLess(time.monotonic(), deadline, text)
                    time.sleep(0.1)
                    text = look(qemu)
                return text
            finally:
                qemu.kill()

    def check(self, text):
        lines = text.replace("\r", "").split("\n")
        found = [line for line in lines if "Staghorn" in line or "  MAC " in line]
        self.assertEqual(len(found), 4, text)
        for at, (place, state) in enumerate((("01", "down"), ("02", "up, 10000 Mbit/s"))):
            # A terminal's control sequences may come before a line.
            wanted = "Staghorn iWARP RDMA adapter at %s:00.0, firmware 1.0.0" % place
            self.assertTrue(found[2 * at].endswith(wanted), found)
            wanted = "  MAC 52:54:00:00:00:0%d, link %s" % (at, state)
            self.assertEqual(found[2 * at + 1], wanted)

    def test_bios(self):
        self.check(self.console(False, "No bootable device"))

    def test_bios__video_card(self):
        """The line is on the screen, and on the serial port, which only the ROM uses."""
        screen, serial = self.screen("-display", "none")
        self.check(screen)
        self.check(serial)
        self.assertNotIn("SeaBIOS", serial)
        self.assertEqual(len(serial.splitlines()), 4, serial)

    def test_bios__video_card_and_serial_console(self):
        """SeaBIOS copies the screen to the serial port; the ROM does not write there again."""
        screen, serial = self.screen("-nographic")
        self.check(screen)
        self.check(serial)
        self.assertIn("SeaBIOS", serial)

    def test_uefi(self):
        self.check(self.console(True, "UEFI Interactive Shell"))


class Profiles(Vms):
    """alpha has one profile after the other, beta is a full adapter; rping both ways, perftest."""

    vms = ("alpha", "beta")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sg-profiles-")
        cls.capture = cls.folder.name + "/x.pcap"
        cls.lab = labtest.Lab("profiles")
        cls.lab.up("--profile", "alpha=small", "--capture", cls.capture)

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()
        cls.folder.cleanup()

    def become(self, profile):
        path = self.folder.name + "/new.fw"
        make(path, profile, "1.0.%d" % (PROFILES.index(profile) + 1))
        flash(self.lab, "alpha", read(path))
        reload_driver(self.lab, "alpha")
        self.assertEqual(info(self.lab, "alpha")["versions"]["running"]["fw.profile"], profile)

    def attributes(self):
        """The output of ibv_devinfo -v on alpha: {name: text}."""
        lines = self.lab.sh("alpha", "ibv_devinfo -v").splitlines()
        pairs = (line.strip().split(":", 1) for line in lines if ":" in line)
        return {name: text.strip() for name, text in pairs}

    def traffic(self, tools=TOOLS):
        """Runs rping in both directions, and programs of perftest; returns what the capture
        gained."""
        before = os.path.getsize(self.capture)
        rdmatest.rping(self.lab, "alpha", "beta")
        rdmatest.rping(self.lab, "beta", "alpha")
        for tool in tools:
            rdmatest.perftest(self.lab, tool, "beta", "alpha", 4096, 200)
        return self.captured(before)

    def captured(self, before):
        """The capture from that octet on, once the other process has written it."""
        size = -1
        while size != os.path.getsize(self.capture):
            size = os.path.getsize(self.capture)
            time.sleep(0.5)
        return read(self.capture)[before:]

    def startup(self, octets, kind):
        """(flags, revision) of each MPA startup frame of that kind."""
        key = MPA_KEY[kind]
        found = [m.end() for m in re.finditer(re.escape(key), octets)]
        self.assertTrue(found, "no MPA startup frames in the capture")
        return [(octets[at], octets[at + 1]) for at in found]

    def test_1_small__at_power_on(self):
        found = self.attributes()
        wanted = {"max_sge": "2", "max_qp": "64", "max_qp_rd_atom": "1", "max_mr": "1024"}
        self.assertEqual({name: found[name] for name in wanted}, wanted)
        self.traffic()

    def test_2_no_srq_no_mw(self):
        self.become("no-srq-no-mw")
        found = self.attributes()
        self.assertEqual((found["max_srq"], found["max_mw"]), ("0", "0"))
        self.assertFalse(int(found["device_cap_flags"], 16) & CAP_MEM_WINDOW)
        self.traffic(TOOLS[2:])

    def test_3_mpa1(self):
        """MP2-26: a Request of revision 2 is not answered; the adapter can connect actively."""
        self.become("mpa1")
        before = os.path.getsize(self.capture)
        rdmatest.rping(self.lab, "beta", "alpha")
        rdmatest.perftest(self.lab, TOOLS[2], "beta", "alpha", 4096, 200)
        rdmatest.rping_fails(self.lab, "alpha", "beta")
        octets = self.captured(before)
        self.assertEqual({rev for _, rev in self.startup(octets, "request")}, {1, 2})
        self.assertEqual({rev for _, rev in self.startup(octets, "reply")}, {1})

    def test_4_strict(self):
        self.become("strict")
        octets = self.traffic()
        both = MPA_MARKERS | MPA_CRC
        frames = self.startup(octets, "request") + self.startup(octets, "reply")
        self.assertTrue(any(flags & both == both for flags, _ in frames), frames)
        self.assertFalse(any(not flags & MPA_CRC for flags, _ in frames), frames)

    def test_5_no_placement(self):
        self.become("no-placement")
        self.traffic(TOOLS[:1])
        without = self.attributes()
        self.become("full")
        self.traffic()
        full = self.attributes()
        flags = [int(found.get("device_cap_flags", "0"), 16) for found in (without, full)]
        self.assertTrue(flags[1] & CAP_MEM_WINDOW)
        changed = {name for name in full if full[name] != without.get(name)}
        self.assertIn("fw_ver", changed)
        placement = [
            name for name in changed if "cap_flags_ex" in name or name.startswith("Unknown")
        ]
        self.assertTrue(placement, "ibv_devinfo tells no difference: %s" % sorted(changed))

    def test_6_reload__under_traffic(self):
        """Connections end, nothing hangs, and the adapter accepts new ones."""
        address = "10.77.0.2"
        common = ("-a", address, "-p", "7301")  # the previous server may still have its port
        server = self.lab.start("beta", "rping", "-s", *common)
        listens = "until rdma resource show cm_id | grep LISTEN | grep -q :7301; do sleep 0.1; done"
        self.lab.sh("beta", listens, timeout=60)
        client = self.lab.start("alpha", "rping", "-c", "-v", *common, "-C", "1000000")
        client.expect("ping data: ", 60)
        reload_driver(self.lab, "alpha")
        client.wait(60)
        server.stop()
        self.traffic(TOOLS[2:])


class Launcher(unittest.TestCase):
    def test_profiles__lists_them(self):
        out = labtest.Lab("none").run("profiles").out
        self.assertEqual([line.split()[0] for line in out.splitlines()], list(PROFILES))

    def test_profile__unknown(self):
        done = labtest.Lab("none").run("up", "--profile", "huge", status=2)
        self.assertIn("there is no profile huge", done.err)
        done = labtest.Lab("none").run("up", "--profile", "gamma=small", status=2)
        self.assertIn("there is no VM gamma", done.err)

    def test_uefi__refusals(self):
        done = labtest.Lab("none").run("up", "--uefi", "gamma", status=2)
        self.assertIn("--uefi: there is no VM gamma", done.err)
        done = labtest.Lab("none").run("up", "--uefi", "--netboot", "beta", status=2)
        self.assertIn("--uefi: VM beta boots from the network, which needs a BIOS", done.err)


if __name__ == "__main__":
    labtest.main()
