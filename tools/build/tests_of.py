# SPDX-License-Identifier: GPL-2.0-or-later
"""Maps a file of the tree to its tests, for check --file.

A file of hw/ has the unit tests of the folder of the same name.  The first row that matches
decides.  Only tests that need neither QEMU nor a VM are chosen; a hint names the others.
"""
import re

# Pattern of a path: tests as SUITE/NAME, or SUITE/NAME* for all names that begin so.
ROWS = (
    (r"hw/core/proto/rdma_tcp/", ("unit/proto/rt_*", "sim/sim/rdma_tcp")),
    (r"hw/core/proto/", ("unit/proto/*", "sim/sim/engine", "sim/sim/engine_rdma_tcp")),
    (r"hw/core/persist/", ("unit/persist/*", "sim/sim/power")),
    (r"hw/core/(\w+)/", (r"unit/\1/*",)),
    (r"hw/net/", ("unit/net/*",)),
    (r"hw/explore/", ("unit/crash/program",)),
    (r"tools/rpcrdma/", ("unit/rpcrdma/*", "sim/fuzz/rpcrdma")),
    (r"tests/unit/(\w+)/test_(\w+)\.c$", (r"unit/\1/\2",)),
    (r"tests/unit/(\w+)/", (r"unit/\1/*",)),
    (r"tests/sim/", ("sim/sim/*",)),
    (r"tests/fuzz/", ("sim/fuzz/*",)),
    (r"tests/bench/", ("unit/bench/*", "unit/verbs/scale")),
    (r"tests/lib/|include/staghorn/|meson", ("style/layout", "unit/*")),
    (r"firmware/", ("unit/firmware/*", "unit/flash/*", "build/test_firmware")),
    (r"guest-driver/provider/", ("unit/provider/*",)),
    (r"examples/vfio/", ("build/test_vfio",)),
    (r"tests/build/test_debs\.py$", ("deb/test_debs",)),
    (r"debian/|tools/packaging/", ("build/test_installed", "build/test_manpages", "deb/test_debs")),
    (r"tests/build/(test_\w+)\.py$", (r"build/\1",)),
    (r"docs/manual/|hw/core/verbs/check/", ("style/layout", "style/rules")),
    (r"tools/|tests/build/|tests/vm/lib/|configure$|staghorn$", ("build/*",)),
)
HINTS = (
    (r"hw/print/|guest-driver/mark/", "tools/build/check --suite vm test_record_cpu"),
    (r"hw/(device|core|net)/|include/|tests/qtest/", "tools/build/check --suite qtest"),
    (r"guest-driver/", "make guest; tools/build/check --suite guest"),
    (r"tests/vm/arm64/(test_\w+)\.py$", r"tools/build/check --suite arm64 \1"),
    (r"tests/vm/\w+/(test_\w+)\.py$", r"tools/build/check --suite vm --suite full \1"),
    (r"examples/vfio/", "make guest; tools/build/check --suite vm test_vfio"),
    (r"tests/guest-programs/", "make guest; tools/build/check --suite vm --suite full"),
)


def _first(rows, path):
    """(the second column of the row whose pattern matches, the match), or nothing."""
    for pattern, found in rows:
        match = re.match(pattern, path)
        if match:
            return found, match
    return (), None


def fits(test, suite, name):
    """Whether a test such as "unit/verbs/*" stands for the program of that suite and name."""
    full = suite + "/" + name
    return full.startswith(test[:-1]) if test.endswith("*") else full == test


def tests_of(path):
    """The tests of a file; its path is relative to the tree's top."""
    found, match = _first(ROWS, path)
    return [match.expand(test) for test in found]


def hint(path):
    """The command that runs its other tests, or ""."""
    found, match = _first(HINTS, path)
    return match.expand(found) if match else ""
