# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher's verbs and options, read from its argument parser; for manpage and completion."""
import argparse
import os
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PARSER_DEFAULTS = ("STAGHORN_LAB", "STAGHORN_KERNEL")


class Option:
    """An option, or an argument by position (then `names` is empty)."""

    def __init__(self, action, formatter):
        self.names = list(action.option_strings)
        self.choices = [str(one) for one in action.choices or ()]
        self.value = None
        if action.nargs != 0:
            self.value = action.metavar or ",".join(self.choices) or action.dest.upper()
        self.optional = action.nargs == "?"
        self.many = action.nargs in ("*", "+", argparse.REMAINDER)
        self.text = formatter._expand_help(action) if action.help else ""


class Verb:
    """name: its words, such as "crash record"; "" is the launcher itself."""

    def __init__(self, name, text, parser):
        formatter = parser._get_formatter()
        actions = [
            one for one in parser._actions if not isinstance(one, argparse._SubParsersAction)
        ]
        found = [Option(one, formatter) for one in actions if one.help != argparse.SUPPRESS]
        self.name = name
        self.text = text
        self.usage = " ".join(parser.format_usage().split()[1:])
        self.description = parser.description or ""
        self.options = [one for one in found if one.names]
        self.arguments = [one for one in found if not one.names]


def _walk(parser, name, text):
    yield Verb(name, text, parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {one.dest: one.help for one in action._choices_actions}
            for word, below in action.choices.items():
                yield from _walk(below, (name + " " + word).strip(), texts.get(word, ""))


def all_verbs():
    """The launcher itself, and each verb, in the order of --help."""
    for name in PARSER_DEFAULTS:
        os.environ.pop(name, None)
    os.environ["COLUMNS"] = "1000"  # usage in one line
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(TOP / "tools"))
    from launcher import cli

    return list(_walk(cli.make_parser(), "", ""))
