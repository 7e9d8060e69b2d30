#!/bin/sh
# run_bounded.sh TARGET RUNS [MALLOC_MIB]: writes the target's own seeds to a temporary corpus and fuzzes from there for so many inputs.
set -eu
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
CKT_FUZZ_SEEDS=$corpus "$1"
exec_status=0
# A leak is a finding; an input may cost 64 MiB (a list at its limit), or what the caller says, not more.
"$1" -runs="$2" -max_len=8192 -seed=1 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb="${3:-64}" -verbosity=0 -print_final_stats=1 \
	-artifact_prefix="${MESON_BUILD_ROOT:-$corpus}/" "$corpus" || exec_status=$?
exit $exec_status
