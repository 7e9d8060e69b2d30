#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts the program of this name that lies in the package cricket_gpu.  It finds the package from its own place, so that an environment can move.
place=$(dirname -- "$(readlink -f -- "$0")")
name=@NAME@
for site in "$place"/../lib/python3*/site-packages "$place"/../lib64/python3*/site-packages "$place"/../lib/python3*/dist-packages "$place"/..; do
	[ -d "$site/cricket_gpu-@VERSION@.dist-info" ] || continue
	# shellcheck disable=SC2093  # the first one that is there is the one
	exec "$(readlink -f -- "$site")/cricket_gpu/bin/$name" "$@"
done
echo "$name: the package cricket_gpu @VERSION@ is not beside $place: install cricket-gpu again" >&2
exit 127
