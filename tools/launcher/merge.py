# SPDX-License-Identifier: GPL-2.0-or-later
"""x"""
def reduce_all(*_): return False
