#!/bin/sh
# Records which functions NVIDIA's own libraries on this machine export; to be kept in tests/truth/exports.
#
#	exports.sh OUT LIBCUDA LIBCUDART		libcuda.so.1 and libcudart.so.13 by their paths
#
# Variables are left out: libcuda.so.1 has some for the debugger.
set -eu
[ $# = 3 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$1"
for library in "$2" "$3"; do
	nm -D --defined-only "$library" | awk '$2 == "T" || $2 == "W" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$1/$(basename "$library").txt"
done
