#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# CUDA's math libraries, natively and through Cricket.
#
#	libraries.sh [--bundle DIR] [--out DIR] [--modes "MODE ..."] [--library-path DIR:DIR] [--limit SECONDS] [PROGRAM ...]
#	libraries.sh --build-only DIR [PROGRAM ...]
#
# PROGRAM: cufft cufft_callback curand cusolver cusparse cudnn blas_statuses blas_workspaces (libraries/NAME.cu), and fft, fft_gpus, blas_graph, blas_xt, cublaslt of the test programs (default: all that are there).
# Each runs natively twice, over the UNIX socket, over TCP, and over TCP checkpointed half way, its server killed, and restored on a second one.
# Calls of blas_statuses that kill the genuine library are left out and listed.
# It prints a hash of each result: they must be the same in all modes; what differs in the second native run is told as "varies".
# Beside `./run bundle --tests` nothing is compiled: the programs lie in ../libraries and ../programs.  In the source tree nvcc compiles them first.
# The libraries come from --library-path, by default from CUDA's toolkit, else from python3's nvidia-* wheels; the worker takes the same ones.
# Bundle: ../../cricket, else build/bundle/cricket.  Logs of what failed go to --out (./gpu-results), a table comes last.
# Exit status: 0, 1, or 77 without a GPU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bundle=$here/../../cricket
[ -x "$bundle/bin/cricket-run" ] || bundle=$here/../../build/bundle/cricket
cuda=${CUDA_HOME:-/usr/local/cuda}
built=$here/../libraries programs=$here/../programs
out=gpu-results modes="native again unix tcp checkpoint" driver='' build_only='' path='' limit=120
names=()
while [ $# -gt 0 ]; do
	case $1 in
	--bundle) bundle=$2; shift 2 ;;
	--build-only) build_only=1 built=$2; shift 2 ;;
	--out) out=$2; shift 2 ;;
	--modes) modes=$2; shift 2 ;;
	--driver) driver=$2; shift 2 ;;
	--library-path) path=$2; shift 2 ;;
	--limit) limit=$2; shift 2 ;;
	-*) sed -n '3,16p' "$0"; exit 2 ;;
	*) names+=("$1"); shift ;;
	esac
done
declare -A link=([cufft]=-lcufft [cufft_callback]="-lcufft -lnvrtc" [curand]=-lcurand [cusolver]="-lcusolver -lcublas" [cusparse]=-lcusparse [cudnn]=-lcudnn [blas_workspaces]=-lcublas [blas_statuses]="-lcublas -lcublasLt")
compiled=(cufft cufft_callback curand cusolver cusparse cudnn blas_statuses blas_workspaces)
[ ${#names[@]} -gt 0 ] || names=("${compiled[@]}" fft fft_gpus blas_graph blas_xt cublaslt)

# One program into the folder `built`, unless it is newer than its source.
build() {
	local name=$1 source=$here/libraries/$1.cu
	[ "$built/$name" -nt "$source" ] && [ "$built/$name" -nt "$here/libraries/common.h" ] && return 0
	# PTX alone: the kernels are few, and every GPU from 7.5 on compiles them for itself.
	"$cuda/bin/nvcc" -O1 -std=c++17 -gencode arch=compute_75,code=compute_75 -I"$here/../programs" ${CUDNN:+-I"$CUDNN/include" -L"$CUDNN/lib"} \
		-o "$built/$name" "$source" ${link[$name]} >"$built/$name.log" 2>&1 && { rm -f "$built/$name.log"; return 0; }
	echo "$name: not built: $(grep -m1 error "$built/$name.log" || tail -n1 "$built/$name.log")"
	return 1
}

if [ -n "$build_only" ]; then
	mkdir -p "$built"
	failed=0
	for name in "${names[@]}"; do
		[ -z "${link[$name]:-}" ] || build "$name" || failed=1
	done
	exit $failed
fi

if [ -z "$driver" ]; then
	python3 -c "import sys; sys.path.insert(0, '$here/../runner'); import runner; sys.exit(not runner.gpu_name()[1])" || { echo "no GPU here"; exit 77; }
fi
mkdir -p "$out"
rm -f "$out"/left-out-*.txt
if [ ! -d "$built" ]; then
	built=$here/../../build/main/tests/gpu/libraries programs=$here/../../build/main/tests/programs
	mkdir -p "$built"
	for name in "${names[@]}"; do
		[ -z "${link[$name]:-}" ] || build "$name"
	done
fi
if [ -z "$path" ]; then
	path=$cuda/lib64
	[ -e "$path/libcublas.so.13" ] || path=$(python3 "$here/wheels.py")
fi
export LD_LIBRARY_PATH=${path}${CUDNN:+:$CUDNN/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} CUBLAS_WORKSPACE_CONFIG=:4096:8
echo "libraries: $path"
# The soft GPU has libraries of its own.
from=(--server-arg=--library-path --server-arg="$path")
[ "$driver" != soft ] || from=()

# Runs one program in one mode; leaves a word in the table's folder.
cell() {
	local name=$1 mode=$2 program=$3 real=$2 status text
	[ "$mode" != again ] || real=native
	# On the soft GPU, with which this script is tried, nothing is native.
	[ "$real$driver" != nativesoft ] || real=soft
	# Wrong calls that kill the genuine library are found natively and left out everywhere (blas_statuses.cu).
	local found=; [ "$mode" != native ] || found=LEFT_OUT_WRITE=1
	text=$(env LEFT_OUT_CALLS="$(realpath "$out")/left-out-$name.txt" $found python3 "$here/../runner/runner.py" --mode $real --prefix "$bundle" --driver "$driver" --expected "$cells/expected" --timeout "$limit" \
		"${from[@]}" "$program" 2>&1)
	status=$?
	if [ $status = 0 ]; then
		echo ok >"$cells/$name.$mode"
	elif [ $status = 77 ]; then
		echo skip >"$cells/$name.$mode"
	elif [[ $text == *"output differs"* ]] && { [ "$mode" = again ] || grep -qs varies "$cells/$name.again"; }; then
		echo varies >"$cells/$name.$mode"
	else
		echo FAIL >"$cells/$name.$mode"
	fi
	[ $status = 0 ] || { printf '%s\n' "$text" >"$out/libraries-$name-$mode.log"; }
}

row() {
	local name=$1 program=$2 mode
	for mode in native again; do
		[[ " $modes " != *" $mode "* ]] || cell "$name" $mode "$program"
	done
	for mode in $modes; do
		case $mode in native | again) ;; *) cell "$name" "$mode" "$program" & ;; esac
	done
	wait
}

cells=$(mktemp -d); trap 'rm -rf "$cells"' EXIT
known=()
for name in "${names[@]}"; do
	program=$built/$name
	[ -x "$program" ] || program=$programs/$name-shared
	[ -x "$program" ] || { echo "$name: no such program; it was not built here"; continue; }
	known+=("$name")
	row "$name" "$program" &
done
wait
failed=0
printf '\n%-12s' ''; printf '%12s' $modes; echo
for name in "${known[@]}"; do
	printf '%-12s' "$name"
	for mode in $modes; do printf '%12s' "$(cat "$cells/$name.$mode" 2>/dev/null || echo -)"; done
	echo
done
for list in "$out"/left-out-*.txt; do
	[ ! -s "$list" ] || { echo "left out, because they kill the genuine library ($list):"; sed 's/^/  /' "$list"; }
done
for log in "$cells"/*.*; do
	grep -qs FAIL "$log" || continue
	failed=1
	cell=${log##*/}
	echo "FAILED ${cell/./ }: $(tr '\n' ' ' <"$out/libraries-${cell/./-}.log" | cut -c1-300)"
done
[ ${#known[@]} -gt 0 ] || failed=1
exit $failed
