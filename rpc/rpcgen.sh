#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rpcgen MODE(-h|-c) INPUT OUTPUT: runs in the directory of INPUT (rpcgen derives include names from the path it is given) and
# removes OUTPUT first (rpcgen refuses to overwrite).
set -eu
rpcgen=$1 mode=$2 input=$(realpath "$3") output=$(realpath -m "$4")
rm -f "$output"
cd "$(dirname "$input")"
exec "$rpcgen" -C -N "$mode" -o "$output" "$(basename "$input")"
