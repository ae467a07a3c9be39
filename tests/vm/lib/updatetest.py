# SPDX-License-Identifier: GPL-2.0-or-later
"""Updates of an adapter's firmware as a user makes them: an image, devlink, a reload."""
import json
import os
import subprocess
import tempfile

import labtest

FIRMWARE = os.environ.get("SG_BUILD", str(labtest.TOP / "build")) + "/firmware"
DEVICE = "$(devlink dev | grep ^pci/)"
FLASH = "devlink dev flash %s file new.fw 2>&1" % DEVICE


def make(path, profile, version, rom=FIRMWARE + "/staghorn.rom"):
    """Makes a file with the image of that profile."""
    words = [FIRMWARE + "/sg-flash", "firmware", path, FIRMWARE + "/profiles.ini", profile, version]
    subprocess.run([*words, rom], check=True)


def info(lab, vm):
    """Serial number and versions from devlink dev info."""
    found = json.loads(lab.sh(vm, "devlink -j dev info " + DEVICE))["info"]
    (found,) = found.values()
    return found


def put(lab, vm, data):
    """Copies the file to the folder in which devlink dev flash looks for it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        lab.sh(vm, "mkdir -p /usr/lib/firmware")
        lab.run("copy", file.name, vm + ":/usr/lib/firmware/new.fw")


def flash(lab, vm, data, status=0):
    """Runs devlink dev flash; returns its output."""
    put(lab, vm, data)
    return lab.sh(vm, FLASH, status=status)


def reload_driver(lab, vm):
    """Restarts the adapter with the firmware that was stored last."""
    lab.sh(vm, "devlink dev reload %s action fw_activate" % DEVICE)
    wait_active(lab, vm)


def wait_active(lab, vm):
    """Waits until the port has link and address."""
    script = (
        "n=0; until ibv_devinfo | grep -q PORT_ACTIVE && ip -4 addr show up | grep -q 10.77; do "
    )
    lab.sh(vm, script + "n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done")


def read(path):
    """The octets of a file."""
    with open(path, "rb") as file:
        return file.read()
