# SPDX-License-Identifier: GPL-2.0-or-later
"""The judge of docs/course: is a module what its step demands?

bench.py       the VM, the adapter in it, and what both say
steps.py       what each step demands
exercises.py   what each exercise demands
judge.py       builds a module, loads it, compares; the command line
"""
