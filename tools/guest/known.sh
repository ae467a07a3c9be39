# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For kernels.sh and providers.sh: which versions of other releases have to compile.

# is_known VERSION PATTERNS: whether one of the patterns, separated by blanks, fits.
is_known() {
    local pattern
    for pattern in $2; do
        # shellcheck disable=SC2254  # a pattern
        case $1 in
        $pattern) return 0 ;;
        esac
    done
    return 1
}
