# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of tests/guest-programs, and fio, in VMs of a lab.

A VM whose power was cut has lost them; install() copies them again."""
import os
import re
import subprocess
import tempfile
from pathlib import Path

import labtest

BUILD = os.environ.get("SG_BUILD", str(labtest.TOP / "build"))
SOURCES = labtest.TOP / "tests" / "guest-programs"
COMPILER = labtest.TOP / "tools" / "guest" / "module.sh"
FOLDER = BUILD + "/guest/programs"
# Test modules for the kernel that labs run.
MODULES = BUILD + ("/guest/debug" if labtest.DEBUG else "/guest/programs")
PORT_APM, PORT_GPSPM = 7204, 7205
ADDRESS = {"alpha": "10.77.0.1", "beta": "10.77.0.2"}
DAX = "/dev/dax0.0"


def install(lab, vm, *names, folder=FOLDER):
    here = {"/usr/bin/" + name: os.path.realpath(os.path.join(folder, name)) for name in names}
    lab.install(vm, here)


def wait_listening(lab, vm, server):
    """Waits until the VM's rdma_cm listens; the server may print its message earlier."""
    script = (
        "n=0; until rdma resource show cm_id | grep -q LISTEN; do "
        "n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done; sleep 0.15"
    )
    try:
        lab.sh(vm, script, timeout=40)
    except AssertionError as error:
        raise AssertionError("%s\n%s" % (error, server.output))


def pair(lab, *arguments, device=DAX):
    """Runs rpma_client on alpha, rpma_server on beta; both must succeed; returns both outputs."""
    words = ["rpma_server", ADDRESS["beta"]] + ([device] if device else [])
    server = lab.start("beta", *words)
    server.expect("listening")
    wait_listening(lab, "beta", server)
    client = lab.start("alpha", "rpma_client", ADDRESS["beta"], *map(str, arguments))
    status = client.wait(60)
    assert status == 0, "client:\n%s\nserver:\n%s" % (client.output, server.output)
    assert server.wait(20) == 0, server.output
    assert "all right" in client.output and "all right" in server.output
    return client.output, server.output


def _fio(name, engine, *more):
    return [
        "fio",
        "--name=" + name,
        "--ioengine=" + engine,
        "--thread",
        "--create_serialize=0",
        *more,
    ]


def kernel_module(case, folder):
    """Compiles a folder of the test programs for the guest's kernel; returns the module's path."""
    place = tempfile.TemporaryDirectory(prefix="sg-module-")
    case.addCleanup(place.cleanup)
    words = [COMPILER, SOURCES / folder, place.name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    case.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    (module,) = Path(place.name).glob("*.ko")
    return module


def fio(lab, kind, *more, port=PORT_APM, direct=1):
    """Runs fio's librpma engine of that kind (apm, gpspm): server on beta, client on alpha.

    The engine registers the client's own buffers, too, with the right to flush to persistence, so
    they have to be in alpha's persistent memory.  Returns the client's output."""
    server = lab.start(
        "beta",
        *_fio("server", "librpma_%s_server" % kind, "--time_based", "--runtime=365d"),
        "--serverip=" + ADDRESS["beta"],
        "--port=%d" % port,
        "--filename=" + DAX,
        "--direct_write_to_pmem=%d" % direct,
        "--size=8M",
        "--rw=read",
        "--iodepth=16",
    )
    wait_listening(lab, "beta", server)
    client = lab.start(
        "alpha",
        *_fio("client", "librpma_%s_client" % kind),
        "--serverip=" + ADDRESS["beta"],
        "--port=%d" % port,
        "--bs=4096",
        "--size=4M",
        "--verify=crc32c",
        "--mem=mmaphuge:" + DAX,
        "--hugepage-size=2m",
        *more,
    )
    status = client.wait(120)
    server.stop()
    assert status == 0, "client:\n%s\nserver:\n%s" % (client.output, server.output)
    assert re.search(r"err= *0", client.output), client.output
    return client.output


def fio_verify(lab, vm="beta", status=0):
    """Checks what fio's client wrote, by CPU loads in the VM that has the memory."""
    return lab.sh(
        vm,
        "fio --name=v --ioengine=dev-dax --filename=%s --rw=read --bs=4096 --size=4M --iodepth=1 "
        "--verify=crc32c --verify_fatal=1 2>&1" % DAX,
        status=status,
    )
