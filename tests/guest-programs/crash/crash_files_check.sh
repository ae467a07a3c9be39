#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Judges an image of a file system on /dev/pmem0 in which crash_files made files, in the image's
# folder $1 (default: the root).  What was promised is the text of the last mark "state" in force.
promised=$(sed -n 's/^state .*text=\([0-9]*\)$/\1/p' /run/crash/promises | tail -n 1)
mount -o dax=always /dev/pmem0 /mnt || exit 3
crash_files "/mnt/$1" check "${promised:-0}"
