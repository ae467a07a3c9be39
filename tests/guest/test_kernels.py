#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our driver and provider, compiled for other Debian releases: kernels.sh, providers.sh."""

# Only make check-full and make check-kernels build them.
# suite: full
import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SG_BUILD", TOP / "build"))
SUITES = ("bookworm", "trixie-backports")
# make check-kernels adds bookworm, whose source not all mirrors have; guest/test_provider has a
# provider without Flush in any case.
RDMA_CORES = os.environ.get("SG_RDMA_CORES", "sid").split()


def product(name, suite):
    """The folder of what was made for a suite."""
    link = BUILD / "products" / ("%s-%s" % (name, suite))
    return Path(link.read_text().strip()) if link.is_file() else link.resolve()


def is_known(script, version):
    """Whether it is a version for which driver or provider have to compile."""
    text = (TOP / "tools" / "guest" / script).read_text()
    known = re.search(r"^known='(.*)'$", text, re.M)[1].split()
    return any(fnmatch.fnmatch(version, one) for one in known)


def warnings(log):
    """Lines of a compiler's output that are about our sources."""
    ours = re.compile("(guest-driver|staghorn|tests/unit)/.*warning:")
    return [line for line in log.splitlines() if ours.search(line)]


def driver_problems(suite):
    """What is wrong with the module for a suite."""
    folder = product("kernel-driver", suite)
    if not (folder / "KERNEL").exists():
        return ["%s is missing; run: tools/guest/kernels.sh" % folder]
    release = (folder / "KERNEL").read_text().strip()
    log = (folder / "log").read_text()
    module = folder / "staghorn.ko"
    if not module.exists():
        print(
            "# %s: %s is newer than those that are known, and does not compile" % (suite, release)
        )
        return ["it is known"] if is_known("kernels.sh", release) else []
    found = warnings(log)
    words = ["/usr/sbin/modinfo", "-F", "vermagic", str(module)]
    magic = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return found + ([] if magic.startswith(release + " ") else ["vermagic is " + magic])


def provider_problems(suite):
    """What is wrong with the provider for a suite, or with the results of its tests."""
    folder = product("provider", suite)
    if not (folder / "VERSION").exists():
        return ["%s is missing; run: tools/guest/providers.sh" % folder]
    version = (folder / "VERSION").read_text().strip()
    if not (folder / "tap").exists():
        print("# %s: rdma-core %s is newer than those that are known" % (suite, version))
        return ["it is known"] if is_known("providers.sh", version) else []
    tap = (folder / "tap").read_text()
    planned = sum(int(one) for one in re.findall(r"^1\.\.(\d+)$", tap, re.M))
    passed = len(re.findall(r"^ok ", tap, re.M))
    found = warnings((folder / "log").read_text())
    found += [line for line in tap.splitlines() if line.startswith("not ok")]
    if not passed or passed != planned:
        found.append("%d of %d cases of its tests passed" % (passed, planned))
    plugins = list(folder.glob("usr/lib/*/libibverbs/libstaghorn-rdmav*.so"))
    return found + ([] if len(plugins) == 1 else ["there is no plugin"])


CASES = [
    (
        "the driver compiles for Linux of " + suite,
        product("kernel-headers", suite),
        "its headers were not fetched: run tools/guest/kernels.sh",
        lambda suite=suite: driver_problems(suite),
    )
    for suite in SUITES
] + [
    (
        "the provider compiles for rdma-core of " + suite + ", and its tests pass",
        product("src-rdma-core", suite),
        "its source was not fetched: run tools/guest/providers.sh",
        lambda suite=suite: provider_problems(suite),
    )
    for suite in RDMA_CORES
]


def main():
    """One case for each suite."""
    print("1..%d" % len(CASES))
    bad = 0
    for number, (name, needs, missing, problems) in enumerate(CASES, 1):
        what = "%d - %s" % (number, name)
        if not needs.exists():
            print("ok %s # SKIP %s" % (what, missing))
            continue
        found = problems()
        for line in found:
            print("# " + line)
        bad += bool(found)
        print("%sok %s" % ("not " * bool(found), what))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
