#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# generate.sh FILE.x FILE.h FILE.c: what rpcgen makes of an XDR description.
#
# rpcgen writes the path of its input into the C file, and does not replace files.
set -eu
folder=$(dirname "$1")
name=$(basename "$1")
case $2 in /*) header=$2 ;; *) header=$(pwd)/$2 ;; esac
case $3 in /*) code=$3 ;; *) code=$(pwd)/$3 ;; esac
rm -f "$header" "$code"
cd "$folder"
rpcgen -h -o "$header" "$name"
rpcgen -c -o "$code" "$name"
