#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records which functions NVIDIA's own libraries on this machine export; to be kept in tests/truth/exports.
#
#	exports.sh OUT LIBRARY...		libcuda.so.1, libcudart.so.13, libnvidia-ml.so.1 by their paths
#
# Variables are left out: libcuda.so.1 has some for the debugger.
set -eu
[ $# -gt 1 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0"; exit 2; }
out=$1
shift
mkdir -p "$out"
for library; do
	nm -D --defined-only "$library" | awk '$2 == "T" || $2 == "W" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$out/$(basename "$library").txt"
done
