#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# suite: deb
"""The Debian packages that make deb has left in build/debs.

After `./configure --enable-deb`, make check makes and tests them; otherwise it does neither.  By
itself this program skips its cases if there are no packages, or if they are of another tree.
"""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SG_BUILD", TOP / "build"))
DEBS = BUILD / "debs"
SHARE = "usr/share/staghorn/"
PROGRAMS = ("qemu-system-x86_64", "sg-flash", "staghorn-explore", "staghorn-trace")
CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def run(*words):
    """What a command prints."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def version():
    """The version that meson.build has."""
    return re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text())[1]


def packages():
    """{name: file}"""
    return {path.name.split("_")[0]: path for path in sorted(DEBS.glob("*.deb"))}


def fields(path):
    """The fields of a package's control file."""
    text = run("dpkg-deb", "-f", path)
    return dict(re.findall(r"^([\w-]+): ((?:.*)(?:\n .*)*)", text, re.M))


def content(path):
    """{path: member} of a package."""
    with tempfile.TemporaryFile() as file:
        subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], stdout=file, check=True)
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            return {member.name[2:]: member for member in archive.getmembers()}


def unpack(path, folder):
    run("dpkg-deb", "-x", path, folder)
    return folder


def same(one, other):
    assert one.read_bytes() == other.read_bytes(), "%s differs from %s" % (one, other)


@case
def debs__versions(_folder):
    """Each package has the version of meson.build, for this release of Debian"""
    release = re.search(r'^VERSION_ID="?(\d+)', Path("/etc/os-release").read_text(), re.M)[1]
    found = packages()
    assert {"staghorn", "staghorn-dkms"} <= set(found), found
    for path in found.values():
        assert fields(path)["Version"] == "%s~deb%s" % (version(), release), path


@case
def debs__files(_folder):
    """Files belong to root, nobody else can write them, and Python's are not compiled"""
    for name, path in packages().items():
        for place, member in content(path).items():
            assert member.uid == member.gid == 0, (name, place)
            assert member.issym() or not member.mode & 0o6022, (name, place, oct(member.mode))
            assert "__pycache__" not in place and not place.endswith(".pyc"), (name, place)
            allowed = ("usr", "etc/libibverbs.d") if name.endswith("provider") else ("usr",)
            assert not place or any(
                place.startswith(one) or one.startswith(place) for one in allowed
            ), (name, place)


@case
def debs__launcher(folder):
    """staghorn has the launcher, programs, pages, completion and dissectors; it runs from there"""
    path = packages()["staghorn"]
    found = content(path)
    assert found["usr/bin/staghorn"].linkname == "../share/staghorn/staghorn"
    for script in ("staghorn", "rdma_tcp_2000"):
        link = found["usr/lib/x86_64-linux-gnu/wireshark/plugins/%s.lua" % script]
        assert link.linkname.endswith("/share/staghorn/tools/wireshark/%s.lua" % script), link
    roms = [one for one in found if one.startswith(SHARE + "firmware/")]
    assert SHARE + "firmware/bios-256k.bin" in roms and len(roms) > 8, roms
    root = unpack(path, folder)
    for name in PROGRAMS:
        assert os.access(root / "usr/lib/staghorn" / name, os.X_OK), name
    assert run(root / "usr/bin/staghorn", "--version").split() == ["Staghorn", version()]
    for number in ("1", "7"):
        page = root / ("usr/share/man/man%s/staghorn.%s.gz" % (number, number))
        text = gzip.decompress(page.read_bytes()).decode()
        made = run(TOP / "tools" / "packaging" / "manpage", number)
        assert text.split("\n", 2)[2] == made.split("\n", 2)[2], page
    script = root / "usr/share/bash-completion/completions/staghorn"
    assert script.read_text() == run(TOP / "tools" / "packaging" / "completion")


@case
def debs__guest_sources(folder):
    """The guest's sources in the package are those of the tree, so products have the same keys"""
    root = unpack(packages()["staghorn"], folder) / SHARE
    count = 0
    for part in ("tools/guest", "tools/build", "guest-driver", "include"):
        for file in (root / part).rglob("*"):
            if file.is_file():
                same(file, TOP / file.relative_to(root))
                count += 1
    assert count > 80, count
    for part in ("tools/guest", "guest-driver", "include"):
        for file in (TOP / part).rglob("*"):
            assert (
                file.suffix == ".pyc"
                or file.name[0] == "."
                or (root / file.relative_to(TOP)).exists()
            ), file


@case
def debs__driver(folder):
    """staghorn-dkms has the whole driver, and DKMS knows its version and the module's place"""
    root = unpack(packages()["staghorn-dkms"], folder) / ("usr/src/staghorn-" + version())
    for part in ("guest-driver/kernel", "include/staghorn"):
        for file in (TOP / part).iterdir():
            same(root / part / file.name, file)
    settings = (root / "dkms.conf").read_text()
    assert 'PACKAGE_VERSION="%s"' % version() in settings, settings
    assert 'BUILT_MODULE_LOCATION[0]="guest-driver/kernel"' in settings, settings


@case
def debs__provider(folder):
    """The provider belongs to one version of libibverbs, by its file's name and its dependency"""
    path = packages().get("staghorn-ibverbs-provider")
    if not path:
        raise cases.Skipped("make deb left the provider out; it printed the reason")
    needs = fields(path)["Depends"]
    wanted = run("dpkg-query", "-W", "-f", "${Version}", "libibverbs-dev").rsplit("-", 1)[0]
    assert "libibverbs1 (>= %s~)" % wanted in needs, needs
    assert re.search(r"libibverbs1 \(<< %s\.\d+~\)" % wanted.split(".")[0], needs), needs
    root = unpack(path, folder)
    plugin = next(root.glob("usr/lib/*/libibverbs/libstaghorn-rdmav*.so"))
    with open(root / "etc/libibverbs.d/staghorn.driver") as file:
        assert file.read() == "driver staghorn\n"
    assert "IBVERBS_PRIVATE_" in run("objdump", "-p", plugin), "no private symbols are used"


@case
def debs__lintian(_folder):
    """lintian has neither errors nor warnings"""
    if not shutil.which("lintian"):
        raise cases.Skipped("lintian is missing; ./configure --enable-deb installs it")
    words = ("lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0")
    print("".join("# " + line + "\n" for line in run(*words, *DEBS.glob("*.changes")).splitlines()))


def reason():
    """Why there is nothing to test, or nothing."""
    if "staghorn" not in packages():
        return "there are no packages: run make deb, or ./configure --enable-deb before make check"
    with tempfile.TemporaryDirectory() as folder:
        root = unpack(packages()["staghorn"], Path(folder))
        known = json.loads((root / SHARE / "installed.json").read_text())
    now = json.loads(run(TOP / "tools" / "packaging" / "installed", version()))
    return "" if known == now else "the tree has changed since the packages were made: run make deb"


def main():
    why = reason()
    if why:
        print("1..1\nok 1 - Debian packages # SKIP " + why)
        return 0
    return cases.run(CASES)


if __name__ == "__main__":
    sys.exit(main())
