# SPDX-License-Identifier: GPL-2.0-or-later
"""A bad network between two VMs, one with the adapter and one with siw: --impair and impair.
# timeout: 600
# suite: full
"""
import json

import labtest
import rdmatest


class Impaired(labtest.LabCase):
    up_arguments = (
        "--driver",
        "beta=siw",
        "--impair",
        "loss=1%,delay=1ms+-200us,reorder=3%,seed=7",
        "--impair",
        "beta:tx:duplicate=2%",
    )

    def links(self, *words):
        return json.loads(self.lab.run("impair", "--json", *words).out)

    def settings(self):
        return {
            (end, way): link["settings"]
            for end, ways in self.links().items()
            for way, link in ways.items()
        }

    def test_1_up__settings_are_shown(self):
        plain = "loss=1%,reorder=3%,delay=1ms±200us,seed=7"
        vms = json.loads(self.lab.run("status", "--json").out)["vms"]
        self.assertEqual(vms["alpha"]["impair"], {"alpha": {"rx": plain}})
        self.assertEqual(
            vms["beta"]["impair"], {"beta": {"rx": plain, "tx": "duplicate=2%,seed=1"}}
        )
        self.assertIn("\nimpaired: beta tx duplicate=2%,seed=1", self.lab.run("status").out)

    def test_2_rping__works_and_frames_are_counted(self):
        for server, client in (("alpha", "beta"), ("beta", "alpha")):
            rdmatest.rping(self.lab, server, client, count=20, size=20000)
        links = self.links()
        for vm in ("alpha", "beta"):
            counters = links[vm]["rx"]["counters"]
            self.assertGreater(counters["frames"], 500)
            self.assertGreater(counters["lost"], 0)
            self.assertGreater(counters["reordered"], 0)
            self.assertEqual(counters["corrupted"] + counters["overflowed"], 0)
        self.assertGreater(links["beta"]["tx"]["counters"]["duplicated"], 0)
        self.assertIn("lost", self.lab.run("impair", "alpha:rx").out)

    def test_3_impair__changes_while_the_vms_run(self):
        before = self.links("beta")["beta"]
        said = self.lab.run("impair", "beta:rx:loss=100%").out
        self.assertIn("beta rx: loss=100%,reorder=3%,delay=1ms±200us,seed=7", said)
        self.lab.sh("alpha", "! ping -c 2 -i 0.2 -W 1 10.77.0.2")
        after = self.links("beta")["beta"]
        self.assertGreater(after["rx"]["counters"]["lost"], before["rx"]["counters"]["lost"] + 1)
        self.lab.run("impair", "beta:rx:loss=0%", "beta:delay=0s")
        self.lab.sh("alpha", "ping -c 20 -i 0.2 -W 5 10.77.0.2 | grep -v ' 0 received'")
        self.assertEqual(self.links("beta")["beta"]["rx"]["settings"], "reorder=3%,seed=7")

    def test_4_link_that_was_not_impaired(self):
        self.assertNotIn("tx", self.links("alpha")["alpha"])
        self.lab.run("impair", "alpha:tx:delay=200ms")
        times = self.lab.sh("alpha", "ping -c 3 -i 0.2 -W 5 10.77.0.2")
        self.assertRegex(times, r"time=(2\d\d|[3-9]\d\d|\d{4,})(\.\d+)? ms")
        self.assertGreater(self.links("alpha:tx")["alpha"]["tx"]["counters"]["frames"], 2)

    def test_4_wrong_checksums_are_counted(self):
        """status shows frames that the adapter drops for a wrong checksum."""
        self.lab.run("impair", "alpha:tx:delay=0s", "alpha:rx:corrupt=10%,loss=0%")
        rdmatest.rping(self.lab, "beta", "alpha", count=10, size=20000)
        found = json.loads(self.lab.run("status", "--json").out)["vms"]
        (port,) = found["alpha"]["ports"]
        self.assertGreater(port["checksum-errors"], 0)
        self.assertGreater(port["frames-in"], 20)
        said = self.lab.run("status").out
        self.assertRegex(said, r"(?m)^dropped frames of alpha: \d+ with a wrong checksum$")
        self.assertEqual(found["beta"]["ports"], [])
        self.lab.run("impair", "alpha:rx:corrupt=0%")

    def test_5_cut__the_network_stays_as_it_is(self):
        self.lab.run("cut", "alpha")
        self.lab.run("impair", "alpha:tx:delay=0s,loss=0.5%")
        self.lab.run("on", "alpha", timeout=labtest.UP_LIMIT)
        found = self.links("alpha")["alpha"]
        self.assertEqual(found["tx"]["settings"], "loss=0.5%,seed=1")
        # A link that was just switched on may have carried no frame yet.
        rdmatest.rping(self.lab, "beta", "alpha", count=5)
        self.assertGreater(self.links("alpha")["alpha"]["rx"]["counters"]["frames"], 0)

    def test_6_clear(self):
        said = self.lab.run("impair", "--clear", "beta").out
        self.assertIn("beta rx: not impaired", said)
        self.assertIn("alpha", self.lab.run("status", "--json").out)
        self.lab.run("impair", "--clear")
        lost = self.links()["alpha"]["rx"]["counters"]["lost"]
        rdmatest.rping(self.lab, "beta", "alpha", count=20, size=20000)
        self.assertEqual(self.links()["alpha"]["rx"]["counters"]["lost"], lost)
        self.assertNotIn("\nimpaired: ", self.lab.run("status").out)

    def test_7_bad_words_change_nothing(self):
        before = self.settings()
        for words, text in (
            (("beta:rx:loss=7",), "is not a share"),
            (("gamma",), "there is no VM 'gamma'"),
            (("beta.1:rx:loss=1%",), "has no adapter 1"),
            (("--clear", "beta:loss=1%"), "--clear takes no settings"),
            (("beta:rx:loss=1%", "alpha:rate=1"), "is not a rate"),
        ):
            self.assertIn(text, self.lab.run("impair", *words, status=2).err)
        self.assertEqual(self.settings(), before)


if __name__ == "__main__":
    labtest.main()
