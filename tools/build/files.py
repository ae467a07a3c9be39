# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of the tree by kind, for `make format` and the programs of tests/lint."""
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# Not text, even where it looks like text.
OCTETS = ("tests/fuzz/corpus/", "tests/fuzz/inputs/")


def tracked():
    """Paths, relative to the top, of all files that git tracks or would track."""
    listed = subprocess.run(
        ["git", "-C", str(TOP), "ls-files", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(set(listed.stdout.splitlines()))
    return [
        name
        for name in names
        if (TOP / name).is_file() and not (TOP / name).is_symlink() and not name.startswith(OCTETS)
    ]


def text():
    """All text files."""
    return [name for name in tracked() if b"\0" not in (TOP / name).read_bytes()[:4096]]


def c_files(folder=""):
    """C sources and headers beneath a folder."""
    return [n for n in tracked() if n.endswith((".c", ".h")) and n.startswith(folder)]


def interpreter(name):
    """The interpreter that the first line of a script names, "" if there is none."""
    with open(TOP / name, "rb") as file:
        line = file.readline(80).decode(errors="replace").split()
    words = [word for word in line if not word.startswith("-")]
    return words[-1].rsplit("/", 1)[-1] if words and words[0].startswith("#!") else ""


def python_files():
    """Python modules, and scripts without a suffix."""
    return [
        n for n in tracked() if n.endswith(".py") or ("." not in n and interpreter(n) == "python3")
    ]


def shell_files():
    """Shell scripts, and the files that they source."""
    return [n for n in tracked() if n.endswith(".sh") or interpreter(n) in ("sh", "bash")]
