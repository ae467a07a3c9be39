# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs functions as TAP cases: each gets an empty folder; its docstring is the case's name."""
import importlib.machinery
import importlib.util
import sys
import tempfile
import traceback
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "tools" / "build" / "check"


class Skipped(Exception):
    """A case cannot run here; its text is the reason."""


def load_check():
    """tools/build/check as a module, anew each time."""
    loader = importlib.machinery.SourceFileLoader("check", str(CHECK))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
    sys.modules["check"] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def run(functions):
    """Prints one line per case; returns the exit status of the program."""
    print("1..%d" % len(functions))
    good = True
    for number, function in enumerate(functions, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(Path(folder))
                print("ok %d - %s" % (number, function.__doc__))
            except Skipped as why:
                print("ok %d - %s # SKIP %s" % (number, function.__doc__, why))
            except Exception:  # pylint: disable=broad-except
                print("\n".join("# " + x for x in traceback.format_exc().splitlines()))
                print("not ok %d - %s" % (number, function.__doc__))
                good = False
    return 0 if good else 1
