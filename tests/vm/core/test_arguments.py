# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the launcher's answers to wrong arguments; no VM is started.
# timeout: 120
"""
import os
import socket
import unittest
import unittest.mock

import labtest


class Arguments(unittest.TestCase):
    def setUp(self):
        self.lab = labtest.Lab("args")

    def refused(self, *arguments, status=2, text=""):
        done = self.lab.run(*arguments, status=status)
        self.assertIn(text, done.err)
        self.assertEqual(done.out, "")
        self.assertFalse(
            os.path.exists(self.lab.state + "/labs/args"), "a refused command left its folder"
        )
        return done

    def test_up__unknown_driver(self):
        self.refused("up", "--driver", "alpha=mlx5", text="there is no driver mlx5")

    def test_up__unknown_image(self):
        self.refused("up", "--image", "full", text="choose from base, consumers")

    def test_up__unknown_kernel(self):
        self.refused("up", "--kernel", "next", text="Choose from base, debug")

    def test_up__unknown_kernel_of_the_environment(self):
        """The environment counts only without the option."""
        with unittest.mock.patch.dict(os.environ, STAGHORN_KERNEL="next"):
            self.refused("up", text="STAGHORN_KERNEL: there is no kernel next")
            self.refused("up", "--kernel", "base", "--mem", "12", text="--mem 12")

    def test_up__driver_of_unknown_vm(self):
        self.refused("up", "--driver", "gamma=siw", text="there is no VM gamma")

    def test_up__vm_twice(self):
        self.refused("up", "--vms", "a,b,a", text="names a twice")

    def test_up__no_vm(self):
        self.refused("up", "--vms", ",", text="names no VM")

    def test_up__bad_vm_name(self):
        self.refused("up", "--vms", "alpha,../x", text="is not a VM name")

    def test_up__bad_lab_name(self):
        done = labtest.Lab("Bad/Name").run("up", status=2)
        self.assertIn("is not a lab name", done.err)

    def test_up__too_many_vms(self):
        self.refused(
            "up", "--vms", ",".join("v%d" % i for i in range(17)), text="17 VMs are more than"
        )

    def test_up__mtu_out_of_range(self):
        self.refused("up", "--mtu", "70000", text="--mtu 70000")
        self.refused("up", "--mtu", "68", text="--mtu 68")

    def test_up__mtu_no_number(self):
        self.refused("up", "--mtu", "big", text="invalid int value")

    def test_up__bad_memory(self):
        self.refused("up", "--mem", "12", text="--mem 12")
        self.refused("up", "--mem", "much", text="--mem much")

    def test_up__bad_cpus(self):
        self.refused("up", "--cpus", "0", text="--cpus 0")

    def test_up__capture_in_missing_folder(self):
        self.refused("up", "--capture", "/nonexistent/x.pcap", text="cannot be written there")

    def test_up__bad_device_property(self):
        self.refused("up", "--device-prop", "alpha:mpa-rev", text="is not [VM:]PROPERTY=VALUE")
        self.refused("up", "--device-prop", "gamma:mpa-rev=1", text="there is no VM gamma")
        self.refused(
            "up", "--device-prop", "alpha:mac=02:00:00:00:00:01", text="the launcher's to choose"
        )

    def test_up__bad_pmem(self):
        self.refused("up", "--pmem", "12", text="12 is not a size such as 256M")
        self.refused("up", "--pmem", "8M", text="8M is not a size")
        self.refused("up", "--pmem", "33M", text="33M is not a size")
        self.refused("up", "--pmem", "beta:", text="nothing is not a size")
        self.refused("up", "--pmem", "gamma:64M", text="there is no VM gamma")
        self.refused("up", "--pmem", "64M,domain", text="domain is not PROPERTY=VALUE")
        self.refused("up", "--pmem", "64M,memdevs=x", text="the launcher's to choose")
        self.refused(
            "up", "--pmem", "64M,ddio=on", "--pmem", "beta:64M,ddio=off", text="given twice"
        )

    def test_up__device_property_without_adapter(self):
        self.refused(
            "up",
            "--driver",
            "alpha=siw",
            "--device-prop",
            "alpha:crc=off",
            text="has no staghorn adapter",
        )

    def test_up__bad_adapter(self):
        self.refused("up", "--adapter", "gamma", text="there is no VM gamma")
        self.refused("up", "--adapter", "gamma:crc=off", text="there is no VM gamma")
        self.refused("up", "--adapter", "alpha:crc", text="is not [VM:]PROPERTY=VALUE")
        self.refused("up", "--adapter", "mac=02:00:00:00:00:01", text="the launcher's to choose")
        self.refused("up", "--adapter", "alpha:segment=West", text="is not a segment name")
        self.refused("up", *["--adapter", "alpha"] * 8, text="more than 8 adapters for VM alpha")
        words = ("up", "--driver", "alpha=siw", "--adapter", "alpha")
        self.refused(*words, text="has no staghorn adapter")

    def test_up__bad_impair(self):
        for item, text in (
            ("loss=1", "loss 1 is not a share such as 1%"),
            ("loss=101%", "loss 101% is not a share"),
            ("corrupt=0.00001%", "is not a share such as 1% or 0.0001%"),
            ("delay=5", "delay 5 is not a time such as 5ms"),
            ("delay=11s", "delay 11s is not a time"),
            ("delay=5ms+-9ms", "varies by more than it is"),
            ("delay=5ms±", "is not a time"),
            ("rate=9", "rate 9 is not a rate in bit/s such as 100M"),
            ("queue=65M", "queue 65M is not a number of octets"),
            ("seed=-1", "seed -1 is not a number"),
            ("seed=18446744073709551616", "is not a number"),
            ("fun=1", "fun=1 is not NAME=VALUE"),
            ("loss=1%,", "nothing is not NAME=VALUE"),
            ("beta:", "nothing is not NAME=VALUE"),
            ("beta:rx", "beta:rx is not [VM[.N]:][rx:|tx:]NAME=VALUE"),
            ("beta:sideways:loss=1%", "is not [VM[.N]:][rx:|tx:]NAME=VALUE"),
            ("gamma:loss=1%", "there is no VM 'gamma'; there are alpha, beta"),
            ("beta.1:loss=1%", "VM beta has no adapter 1"),
        ):
            with self.subTest(item=item):
                self.refused("up", "--impair", item, text=text)

    def test_up__bad_trace(self):
        self.refused("up", "--trace", "gamma:staghorn_*", text="there is no VM gamma")
        self.refused("up", "--trace", "staghorn_*,pci_*", text="is not [VM:]PATTERN")
        self.refused("up", "--trace", "alpha:", text="is not [VM:]PATTERN")
        done = self.refused("up", "--trace", "alpha:nosuch_*", text="QEMU has no such trace event")
        self.assertIn("-trace help lists them", done.err)

    def test_up__bad_gdb(self):
        self.refused("up", "--gdb", "gamma", text="there is no VM gamma; there are alpha, beta")
        self.refused("up", "--gdb", "", text="there is no VM ''")
        self.refused("up", "--gdb", "alpha=x", text="x is not a port, 1 to 65535")
        self.refused("up", "--gdb", "alpha=", text="nothing is not a port")
        self.refused("up", "--gdb", "alpha=65536", text="65536 is not a port")
        self.refused("up", "--gdb", "alpha", "--gdb", "alpha", text="names alpha twice")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.refused("up", "--gdb", "alpha=%d" % port, text="the port cannot be used")
        both = ("--gdb", "alpha=%d" % port, "--gdb", "beta=%d" % port)
        self.refused("up", *both, text="two VMs cannot have port %d" % port)

    def test_up__gdb_socket_too_deep(self):
        deep = dict(os.environ, STAGHORN_STATE=self.lab.state + "/deep" * 20)
        done = self.lab.run("up", "--gdb", "beta", status=2, env=deep)
        self.assertIn("too long for gdb", done.err)
        self.assertIn("--gdb beta=1234", done.err)

    def test_up__bad_qemu_argument(self):
        self.refused("up", "--qemu-arg=edu", text="is not [VM:]-OPTION [VALUE]")
        self.refused("up", "--qemu-arg=gamma:-S", text="there is no VM gamma")
        self.refused("up", "--qemu-arg=alpha:", text="is not [VM:]-OPTION [VALUE]")
        self.refused("up", "--qemu-arg=-", text="is not [VM:]-OPTION [VALUE]")
        self.refused("up", "--qemu-arg=-device 'edu", text="no closing quotation")
        self.refused("up", "--qemu-arg=-daemonize", text="the launcher's to choose")
        self.refused("up", "--qemu-arg=-S -D /tmp/log", text="-D is the launcher's to choose")
        self.refused("up", "--qemu-arg", "-S", text="expected one argument")

    def test_link__arguments(self):
        self.refused("link", "alpha", "sideways", text="invalid choice")

    def test_option__unknown(self):
        for words in (("up",), ("down",), ("cut", "alpha")):
            done = self.refused(*words, "--bogus", text="--bogus")
            self.assertIn("./staghorn VERB --help shows the options", done.err)

    def test_verb__unknown(self):
        self.refused("fly", text="invalid choice")

    def test_verb__missing(self):
        self.refused(text="required: VERB")

    def test_absent_lab__each_verb_says_how_to_start(self):
        for verb in (
            ["status"],
            ["copy", "x", "alpha:/x"],
            ["console", "alpha"],
            ["log", "alpha"],
            ["log", "alpha", "--device"],
            ["cut", "alpha"],
            ["on", "alpha"],
            ["link", "alpha", "down"],
            ["impair"],
        ):
            self.refused(
                *verb, status=3, text="lab args is not up\n  Start it:  ./staghorn --lab args up"
            )

    def test_exec__absent_lab(self):
        self.refused("exec", "alpha", "--", "true", status=125, text="lab args is not up")

    def test_exec__no_command(self):
        self.refused("exec", "alpha", status=2, text="exec: no command")

    def test_down__nothing_there(self):
        done = self.lab.run("down")
        self.assertIn("was not up", done.err)

    def test_missing_build__says_what_to_run(self):
        done = self.lab.run("up", status=1, env=dict(os.environ, STAGHORN_BUILD="/nonexistent"))
        self.assertIn("is not built", done.err)
        self.assertIn("make", done.err)

    def test_help__every_verb(self):
        verbs = "up status down exec copy console log cut on link impair"
        for verb in verbs.split():
            done = self.lab.run(verb, "--help")
            self.assertIn("usage:", done.out)


if __name__ == "__main__":
    labtest.main()
