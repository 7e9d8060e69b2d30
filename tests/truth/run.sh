#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the truth on a machine with an NVIDIA GPU: every instruction form's outputs and what misused calls answer.
#
#	run.sh FOLDER		writes FOLDER/vectors.xz, vectors.txt and misuse.txt, to be kept in tests/truth
#
# Runs from the folder truth-kit that the build makes (ninja tests/truth/truth-kit.stamp); needs the driver and python3, no compiler.
set -u
kit=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$out" || exit 2
"$kit/record" "$kit" "$out/vectors.raw"
status=$?
if [ $status -gt 1 ]; then
	cat "$out/vectors.raw.txt"
	exit $status
fi
# The paths of this machine tell nobody anything.
{
	echo "command: truth-kit/run.sh FOLDER"
	grep -v '^command:' "$out/vectors.raw.txt"
	head -n 1 /proc/driver/nvidia/version 2>/dev/null | sed 's/^/driver: /'
} > "$out/vectors.txt"
python3 "$kit/pack.py" "$kit" "$out/vectors.raw" "$out/vectors.xz" || exit 2
rm -f "$out/vectors.raw" "$out/vectors.raw.txt"
if [ -x "$kit/misuse" ]; then		# left out of a kit of the forms alone
	"$kit/misuse" > "$out/misuse.txt" || status=1
	echo "$(grep -vc '^ ' "$out/misuse.txt") misuses"
fi
echo "$(grep -c '^form ' "$kit/manifest") forms, $(grep -c '^failed: ' "$out/vectors.txt") lines of failure"
grep -v '^failed: ' "$out/vectors.txt"
grep '^failed: ' "$out/vectors.txt" | head -n 20
ls -l "$out"
exit $status
