#!/bin/bash
# CUDA's math libraries, natively and through Cricket, for a machine with a GPU and CUDA's toolkit.
#
#	libraries.sh [--bundle DIR] [--build-only] [LIBRARY ...]	of: cufft curand cusolver cusparse cudnn (default: all)
#
# Each program of libraries/ is compiled here, runs natively, over the UNIX socket, over TCP, and over TCP checkpointed half way, its server
# killed, and restored on a second one.  It prints a hash of each result: they must be the same in all modes.  One line a library and mode.
# DIR: what `./run bundle` made (default: build/bundle/cricket).  cuDNN is looked for in the toolkit; CUDNN names another prefix.
# Exit status: 0, 1, or 77 without a GPU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
bundle=$top/build/bundle/cricket
cuda=${CUDA_HOME:-/usr/local/cuda}
only_build=
libraries=()
while [ $# -gt 0 ]; do
	case $1 in
	--bundle) bundle=$2; shift 2 ;;
	--build-only) only_build=1; shift ;;
	-*) sed -n '2,11p' "$0"; exit 2 ;;
	*) libraries+=("$1"); shift ;;
	esac
done
[ ${#libraries[@]} -gt 0 ] || libraries=(cufft curand cusolver cusparse cudnn)
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
declare -A link=([cufft]=-lcufft [curand]=-lcurand [cusolver]="-lcusolver -lcublas" [cusparse]=-lcusparse [cudnn]=-lcudnn)
failed=0
for name in "${libraries[@]}"; do
	source=$here/libraries/$name.cu
	[ -f "$source" ] || { echo "$name: no such library; choose from: ${!link[*]}" >&2; exit 2; }
	# The shared runtime is CUDA's; the libraries bring their own.
	if ! "$cuda/bin/nvcc" -O1 -std=c++17 -gencode arch=compute_75,code=compute_75 -I"$top/tests/programs" ${CUDNN:+-I"$CUDNN/include" -L"$CUDNN/lib"} \
		-o "$out/$name" "$source" ${link[$name]} >"$out/$name.log" 2>&1; then
		echo "$name: not built: $(grep -m1 error "$out/$name.log" || tail -n1 "$out/$name.log")"; failed=1; continue
	fi
	echo "$name: built"
done
[ -z "$only_build" ] || exit $failed
nvidia-smi -L >/dev/null 2>&1 || { echo "no GPU here" >&2; exit 77; }
export CUBLAS_WORKSPACE_CONFIG=:4096:8
export LD_LIBRARY_PATH=$cuda/lib64${CUDNN:+:$CUDNN/lib}
for name in "${libraries[@]}"; do
	[ -x "$out/$name" ] || continue
	for mode in native unix tcp checkpoint; do
		if text=$(python3 "$top/tests/runner/runner.py" --mode $mode --prefix "$bundle" --driver "" --expected "$out/expected" --timeout 300 "$out/$name" 2>&1); then
			echo "$name $mode: as natively"
		else
			echo "$name $mode: FAILED: $(printf '%s' "$text" | tr '\n' ' ' | cut -c1-400)"; failed=1
		fi
	done
done
exit $failed
