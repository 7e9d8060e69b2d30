#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records, on a machine with an NVIDIA GPU, what its own driver answers to the programs of tests/api; to be kept in tests/truth/api.
#
#	api.sh [-p PROGRAMS] [-c CRICKET] OUT [NAME...]
#
# PROGRAMS is the folder of the compiled programs, by default ../api as `./run bundle --tests` lays it out; needs python3 and the driver.
# With CRICKET, an installed or unpacked tree, the programs then run through it and are compared with what was just recorded.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/../api cricket=
while getopts p:c: option; do
	case $option in
	p) programs=$OPTARG ;;
	c) cricket=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 2; }
out=$1
shift
python3 "$here/../api/api.py" record "$programs" "$out" "$@"
status=$?
if [ -n "$cricket" ]; then
	python3 "$here/../api/api.py" compare "$cricket" "$programs" "$out" "$@" || status=1
fi
exit $status
