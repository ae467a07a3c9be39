#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bind.sh vfio-pci|staghorn [DEVICE]
#
# Gives the adapter (the first one, or DEVICE, such as 0000:01:00.0) another driver, and prints its
# name.  To be run as root, in a machine with an IOMMU.
set -e
sys=/sys/bus/pci

fail() {
    echo "bind.sh: $*" >&2
    exit 1
}

driver=$1 device=$2
case $driver in
vfio-pci | staghorn) ;;
*) fail "usage: bind.sh vfio-pci|staghorn [DEVICE]" ;;
esac
if [ -z "$device" ]; then
    for place in "$sys"/devices/*; do
        if [ "$(cat "$place/vendor" "$place/device" 2>/dev/null | tr '\n' ' ')" = \
            "0x1234 0x5347 " ]; then
            device=${place##*/}
            break
        fi
    done
fi
place=$sys/devices/$device
[ -n "$device" ] && [ -e "$place" ] || fail "there is no adapter ${device:-in this machine}"
[ -e "$place/iommu_group" ] || fail "$device is behind no IOMMU (./staghorn up --iommu)"

modprobe "$driver"
[ ! -e "$place/driver" ] || echo "$device" > "$place/driver/unbind"
# The override holds against the identifiers that each driver knows.
echo "$driver" > "$place/driver_override"
echo "$device" > "$sys/drivers_probe"
[ "$(basename "$(readlink "$place/driver")")" = "$driver" ] || fail "$driver refuses $device"
echo "$device"
