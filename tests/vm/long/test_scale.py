# SPDX-License-Identifier: GPL-2.0-or-later
"""Many queue pairs between two VMs: all connected at once, with messages in both directions.

# timeout: 900
"""
import re
import time

import labtest
import programs
import ulptest

BETA = "10.77.0.2"
CONNECTIONS = 1024
MESSAGES = 50  # so that all connections exist long enough to be counted


class Scale(ulptest.ProgramCase):
    up_arguments = ("--mem", "1G")

    def count(self, vm):
        text = self.lab.sh(vm, "rdma resource show")
        return int(re.search(r"staghorn0: .*\bqp (\d+)", text)[1])

    def test_connections__1024_at_once(self):
        words = ("ucmatose", "-c", CONNECTIONS, "-C", MESSAGES, "-S", 64)
        limits = ("sh", "-c", 'ulimit -n 8192; ulimit -l unlimited; exec "$@"', "sh")
        before = self.count("beta")
        server = self.lab.start("beta", *limits, *words)
        programs.wait_listening(self.lab, "beta", server)
        started = time.monotonic()
        client = self.lab.start("alpha", *limits, *words, "-s", BETA)
        most = 0
        while client.process.poll() is None and time.monotonic() < started + 400:
            most = max(most, self.count("beta") - before)
            time.sleep(0.2)
        self.assertEqual(client.wait(10), 0, client.output[-2000:])
        self.assertEqual(server.wait(60), 0, server.output[-2000:])
        print("# %d connections: %.0f s" % (CONNECTIONS, time.monotonic() - started))
        self.assertEqual(most, CONNECTIONS)
        self.assertEqual((self.count("alpha"), self.count("beta")), (before, before))


if __name__ == "__main__":
    labtest.main()
