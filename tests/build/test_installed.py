#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher as it is installed, without a VM: files as debian/staghorn.install puts them."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
CASES = []
SHARE = Path("usr/share/staghorn")
LIB = Path("usr/lib/staghorn")
# What build.sh makes for `up`; it fails if there is a file "fail".
BUILD_GUEST = """#!/bin/sh
[ ! -e "$(dirname "$0")/fail" ] || { echo 'Debian has no kernel'; exit 3; }
mkdir -p "$SG_BUILD/guest"
for name in root.img vmlinuz initrd; do : > "$SG_BUILD/guest/$name"; done
echo "[ 1/1] guest: built $*"
echo x >> "$SG_BUILD/builds"
"""
# Parts of the source tree that only its own tests and images need.
NOT_INSTALLED = (
    "tests/guest-programs",
    "examples",
    "tests/lib",
    "docs/upstream",
    "tools/build/check",
    "hw",
)


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def install(root):
    """The files of the package staghorn below root; programs and firmware are empty."""
    for line in (TOP / "debian" / "staghorn.install").read_text().splitlines():
        *sources, target = line.split()
        for pattern in sources:
            found = glob.glob(str(TOP / pattern))
            assert found or pattern.startswith("debian/"), "%s matches nothing" % pattern
            for path in map(Path, found):
                place = root / target / path.name
                place.parent.mkdir(parents=True, exist_ok=True)
                if path.is_dir():
                    shutil.copytree(path, place, ignore=shutil.ignore_patterns("__pycache__"))
                elif path.suffix != ".pyc":
                    shutil.copy(path, place)
    made = subprocess.run(
        [str(TOP / "tools" / "packaging" / "installed"), "9.8.7"],
        capture_output=True,
        text=True,
        check=True,
    )
    (root / SHARE / "installed.json").write_text(made.stdout)
    # What stands in for the guest's build takes no room.
    guest = root / SHARE / "tools" / "launcher" / "guest.py"
    text = guest.read_text()
    assert text.count("ROOM_MIB = 5000") == 1
    guest.write_text(text.replace("ROOM_MIB = 5000", "ROOM_MIB = 1"))
    for name in ("qemu-system-x86_64", "sg-flash", "staghorn-explore", "staghorn-trace"):
        (root / LIB).mkdir(parents=True, exist_ok=True)
        (root / LIB / name).write_text("#!/bin/sh\necho no such machine >&2; exit 1\n")
        (root / LIB / name).chmod(0o755)
    (root / SHARE / "firmware").mkdir()
    (root / SHARE / "adapter").mkdir()
    (root / SHARE / "adapter" / "profiles.ini").write_text("[full]\n")
    (root / SHARE / "adapter" / "full.flash").write_text("")
    (root / SHARE / "tools" / "guest" / "build.sh").write_text(BUILD_GUEST)
    (root / "usr" / "bin").mkdir()
    (root / "usr" / "bin" / "staghorn").symlink_to("../share/staghorn/staghorn")
    return root


def staghorn(root, *words, **environment):
    """Runs the installed launcher, with a home of its own."""
    own = {"STAGHORN_STATE": str(root / "state"), "XDG_CACHE_HOME": str(root / "cache")}
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("STAGHORN_", "SG_"))}
    return subprocess.run(
        [str(root / "usr" / "bin" / "staghorn"), *words],
        env={**clean, **own, **environment},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def builds(root):
    try:
        return (root / "cache" / "staghorn" / "installed" / "builds").read_text().count("x")
    except FileNotFoundError:
        return 0


@case
def installed__version(folder):
    """The version is the package's; help and errors name staghorn, not ./staghorn"""
    root = install(folder)
    done = staghorn(root, "--version")
    assert done.stdout == "Staghorn 9.8.7\n", done
    for words in (("--help",), ("status",), ("nonsense",), ("lint", "--help")):
        done = staghorn(root, *words)
        said = done.stdout + done.stderr
        assert "staghorn" in said and "./staghorn" not in said, said
    done = staghorn(root, "up", "--help")
    assert "/usr/share/doc/staghorn/own-kernel.md" in re.sub(r"\n\s+", "", done.stdout), done.stdout
    assert not list(root.glob("usr/**/*.pyc")), "Python has written into the package's folders"


@case
def installed__first_up(folder):
    """The first up builds the guest in the cache, the next does not, one after an upgrade does"""
    root = install(folder)
    done = staghorn(root, "up", "--accel", "tcg")
    assert "building the guest once, in %s" % (root / "cache") in done.stderr, done.stderr
    assert "guest: built --without programs --without firmware" in done.stderr, done.stderr
    # The adapter's image is copied, and the tool that writes it is the first to fail.
    assert done.returncode == 1 and "no such machine" in done.stderr, done.stderr
    assert builds(root) == 1
    done = staghorn(root, "up", "--accel", "tcg")
    assert builds(root) == 1 and "building" not in done.stderr, done.stderr
    path = root / SHARE / "installed.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "id": "another"}))
    staghorn(root, "up", "--accel", "tcg")
    assert builds(root) == 2
    (root / "cache" / "staghorn" / "installed" / "guest" / "vmlinuz").unlink()
    staghorn(root, "up", "--accel", "tcg")
    assert builds(root) == 3, "a guest that the cache has lost"


@case
def installed__failures(folder):
    """A build that fails is said with its reason; wrong options are refused before it starts"""
    root = install(folder)
    done = staghorn(root, "up", "--vms", "Alpha")
    assert done.returncode == 2 and builds(root) == 0, done
    (root / SHARE / "tools" / "guest" / "fail").write_text("")
    done = staghorn(root, "up")
    assert done.returncode == 1, done
    assert "the guest cannot be prepared" in done.stderr, done.stderr
    assert "Debian has no kernel" in done.stderr, done.stderr
    assert not (root / "state").exists(), "a lab is left"
    (root / SHARE / "tools" / "guest" / "fail").unlink()
    done = staghorn(root, "up", PATH="/nonexistent")
    assert done.returncode == 1 and "without mmdebstrap" in done.stderr, done
    (root / LIB / "qemu-system-x86_64").unlink()
    done = staghorn(root, "up", "--accel", "tcg")
    assert "qemu-system-x86_64 is missing" in done.stderr, done.stderr
    assert "Install the package staghorn again" in done.stderr, done.stderr


@case
def installed__source_only(folder):
    """Images that the package cannot build are named as such"""
    root = install(folder)
    for words, target in (
        (("--kernel", "debug"), "debug-kernel"),
        (("--image", "consumers"), "consumers"),
    ):
        done = staghorn(root, "up", "--accel", "tcg", *words)
        assert done.returncode == 1, done
        assert "in a source tree, make %s builds it" % target in done.stderr, done.stderr


@case
def installed__guest(folder):
    """The verb guest builds, builds again and removes"""
    root = install(folder)
    release = root / "cache" / "staghorn" / "installed" / "products" / "guest-tree"
    release.mkdir(parents=True)
    (release / "KERNEL").write_text("6.12\n")
    found = json.loads(staghorn(root, "guest", "--json").stdout)
    assert found["built"] is True and found["kernel"] == "6.12", found
    assert json.loads(staghorn(root, "guest", "--json").stdout)["built"] is False
    assert json.loads(staghorn(root, "guest", "--again", "--json").stdout)["built"] is True
    place = root / "state" / "labs" / "busy"
    place.mkdir(parents=True)
    (place / "lab.json").write_text("{}")
    done = staghorn(root, "guest", "--remove")
    assert done.returncode == 1 and "a lab uses the guest" in done.stderr, done
    shutil.rmtree(root / "state")
    done = staghorn(root, "guest", "--remove")
    assert done.returncode == 0 and not (root / "cache" / "staghorn").exists(), done


@case
def installed__complete(folder):
    """The scripts that build the guest find in the package all that they name"""
    root = install(folder) / SHARE
    scripts = [TOP / "tools" / "guest" / (n + ".sh") for n in ("build", "tree", "own-kernel")]
    scripts += [TOP / "tools" / "guest" / (n + ".sh") for n in ("packages", "netboot")]
    scripts += [TOP / "tools" / "build" / (n + ".sh") for n in ("apt", "sources", "lib")]
    seen = 0
    for script in scripts:
        text = script.read_text().replace('"$guest/', '"$SG_TOP/tools/guest/')
        text = text.replace('"$guest"/', '"$SG_TOP/tools/guest/')
        for path in re.findall(r'\$SG_TOP"?/([\w./-]*\w)', text):
            if path == "build" or path.startswith(NOT_INSTALLED) and "tap.h" not in path:
                continue
            seen += 1
            assert not (TOP / path).exists() or (root / path).exists(), (script.name, path)
    assert seen > 20, seen


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
