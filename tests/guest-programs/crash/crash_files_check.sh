#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Judges an image of a file system on /dev/pmem0 in whose root crash_files made files.  What was
# promised is the text of the last mark "state" in force.
promised=$(sed -n 's/^state .*text=\([0-9]*\)$/\1/p' /run/crash/promises | tail -n 1)
if ! mount /dev/pmem0 /mnt; then
    dmesg | tail -n 5
    exit 3
fi
crash_files /mnt check "${promised:-0}"
status=$?
# The script runs once before the first image: a file system that stays mounted would hide the
# images' own.
umount /mnt
exit $status
