#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's elementwise, reduction and indexing operations (its own op_db) on the soft GPU, compared with its CPU results.

	torch_ops.py --build BUILD [--path eager|compile] [--ops NAME,...] [--slice K/N] [--report FILE]

The interpreter is $CKT_TEST_PYTHON; the exit code is 77 where it has no PyTorch for CUDA.  Two ways to the GPU:

- eager: the operation as it is.  The wheels on PyPI hold machine code alone, which no soft GPU runs, but for what PyTorch compiles when it
  is called (its jiterator, by NVRTC); a PyTorch that carries PTX (`torch.cuda.get_arch_list()` names a compute_*) runs whole.
- compile: by torch.compile, whose kernels Triton makes; what it leaves to PyTorch's own kernels is machine code again.

An operation that needed machine code is told as "machine", neither passed nor failed.  What fails must stand in torch_expected.txt with its
reason: "operation dtype | reason", a trailing * stands for all that begin so; a line whose operations pass is an error.

A child runs operations one after the other and tells each as a line of JSON; one that crashes or takes too long costs that operation
only.  With --device cpu the script tries itself out, without a GPU of any kind.
"""
import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INDEXING = ("index_select index_add index_copy index_fill index_put index_reduce gather scatter scatter_add scatter_reduce take take_along_dim "
            "masked_fill masked_select masked_scatter where nonzero argwhere select narrow slice diag tril triu flip roll cat stack repeat tile "
            "sort topk unique searchsorted bucketize cumsum cumprod cummax cummin logcumsumexp histc bincount embedding put").split()
DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8", "bool", "complex64")


# ---- The child

def chosen_ops():
    from torch.testing._internal import common_methods_invocations as invocations
    from torch.testing._internal.opinfo import core
    elementwise = (core.UnaryUfuncInfo, core.BinaryUfuncInfo, core.ReductionOpInfo)
    return [op for op in invocations.op_db if isinstance(op, elementwise) or op.name in INDEXING]


def bring(torch, value):
    """A tensor with its strides on the CPU, by copies of bytes alone: gathering a view would take a kernel."""
    if not isinstance(value, torch.Tensor) or not value.is_cuda or value.layout != torch.strided:
        return value
    bare = torch._neg_view(value) if value.is_neg() else value
    bare = bare.conj() if bare.is_conj() else bare
    bytes_ = torch.empty(0, dtype=torch.uint8, device=value.device).set_(bare.untyped_storage()).cpu()
    here = torch.empty(0, dtype=value.dtype).set_(bytes_.untyped_storage(), bare.storage_offset(), bare.size(), bare.stride())
    here = here.conj() if value.is_conj() else here
    return torch._neg_view(here) if value.is_neg() else here


def prepare(torch, arg):
    """What turns an operation into what is called on the device."""
    if arg.path == "eager":
        return lambda op: op
    import torch._inductor.config as inductor
    import torch._inductor.runtime.benchmarking as benchmarking
    inductor.triton.autotune_pointwise = False
    inductor.joint_graph_constant_folding = False   # done with kernels of PyTorch's own

    def once(self, function, *args, **kwargs):
        """One run in place of a measurement, which would clear a buffer with a kernel of PyTorch's own."""
        function()
        return 1.0
    for kind in (benchmarking.Benchmarker, benchmarking.TritonBenchmarker, benchmarking.InductorBenchmarker):
        kind.benchmark_gpu = once

    def compiled(op):
        torch._dynamo.reset()
        return torch.compile(lambda *args, **kwargs: op(*args, **kwargs), dynamic=False)
    return compiled


def compare(torch, op, dtype, arg, call):
    """(samples compared, "" or what differs first)."""
    compared = 0
    torch.manual_seed(7)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        if compared == arg.samples:
            break
        moved = sample.transform(lambda v: v.to(arg.device) if isinstance(v, torch.Tensor) else v)
        try:
            wanted = op(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError):
            continue  # not for the CPU either
        got = torch.utils._pytree.tree_map(lambda v: bring(torch, v), call(moved.input, *moved.args, **moved.kwargs))
        wide = dtype in (torch.float16, torch.bfloat16)
        tolerance = {"rtol": 2e-2, "atol": 2e-2} if wide else {"rtol": 1e-4, "atol": 1e-4} if dtype in (torch.float32, torch.complex64) else {}
        try:
            torch.testing.assert_close(got, wanted, equal_nan=True, check_device=False, check_stride=False, **tolerance)
        except AssertionError as error:
            return compared, f"sample {compared}: {str(error)[:500]}"
        compared += 1
    return compared, ""


def child(arg):
    channel = os.fdopen(int(os.environ["CKT_TEST_CHANNEL"]), "w", buffering=1)
    import torch
    call = prepare(torch, arg)
    known = {f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}": op for op in chosen_ops()}
    for line in sys.stdin:
        name, dtype = line.split()
        channel.write(json.dumps(["start", name, dtype, ""]) + "\n")
        try:
            count, why = compare(torch, known[name], getattr(torch, dtype), arg, call(known[name]))
            channel.write(json.dumps(["fail" if why else "pass" if count else "none", name, dtype, why]) + "\n")
        except Exception as error:  # whatever an operation throws is its result
            if "no kernel image is available" in str(error):
                channel.write(json.dumps(["machine", name, dtype, ""]) + "\n")
                continue
            channel.write(json.dumps(["fail", name, dtype, f"{type(error).__name__}: {str(error)[:500]}"]) + "\n")
            if "CUDA error" in str(error):
                return  # the context is lost
    channel.write(json.dumps(["end", "", "", ""]) + "\n")


# ---- The parent

def interpreter(arg):
    path = os.environ.get("CKT_TEST_PYTHON", sys.executable)
    ask = "import torch, expecttest; print(torch.__version__, torch._C._cuda_getArchFlags() if torch.version.cuda else '')"
    done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
    if done.returncode or (arg.device == "cuda" and "sm_" not in done.stdout):
        print(f"skipped: {path} has no PyTorch for CUDA (and expecttest): {done.stdout.strip() or done.stderr.strip()[-200:]}")
        sys.exit(77)
    print("PyTorch", done.stdout.strip())
    return path


def work_list(arg, python):
    ask = ("import sys, json, torch; sys.path.insert(0, %r); import torch_ops\n"
           "print(json.dumps([[op.name + ('.' + op.variant_test_name if op.variant_test_name else ''), d] for op in torch_ops.chosen_ops() "
           "for d in torch_ops.DTYPES if getattr(torch, d) in op.dtypes]))" % HERE)
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    work = [tuple(pair) for pair in json.loads(done.stdout)]
    if arg.ops:
        work = [pair for pair in work if pair[0] in arg.ops.split(",")]
    if arg.dtypes:
        work = [pair for pair in work if pair[1] in arg.dtypes.split(",")]
    index, _, count = arg.slice.partition("/")
    return work[int(index)::int(count)]


def run_child(arg, python, work, results, deadline):
    """One process over the work that is left; answers what is left after its end."""
    read, write = os.pipe()
    head = [] if arg.device == "cpu" else [os.path.join(arg.build, "client", "preload", "cricket-run"), "--soft"]
    if arg.run:
        head = arg.run.split()
    with open(arg.log, "ab") as log:
        process = subprocess.Popen([*head, python, os.path.abspath(__file__), "--child", "--device", arg.device, "--samples", str(arg.samples),
                                    "--path", arg.path],
                                   stdin=subprocess.PIPE, stdout=log, stderr=log, env=dict(os.environ, CKT_TEST_CHANNEL=str(write), TORCHINDUCTOR_COMPILE_THREADS="1"),
                                   pass_fds=(write,), start_new_session=True)
    os.close(write)
    try:
        process.stdin.write("".join(f"{name} {dtype}\n" for name, dtype in work).encode())
        process.stdin.close()
    except BrokenPipeError:
        pass
    current, told, buffer, last, why = None, set(), b"", time.monotonic(), "ended without a word"
    with selectors.DefaultSelector() as selector:
        selector.register(read, selectors.EVENT_READ)
        while True:
            if not selector.select(1):
                if time.monotonic() - last > arg.timeout or time.monotonic() > deadline:
                    why = "took too long"
                    break
                continue
            data = os.read(read, 65536)
            if not data:
                break
            last = time.monotonic()
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                what, name, dtype, detail = json.loads(line)
                if what == "start":
                    current = (name, dtype)
                elif what != "end":
                    results[name, dtype] = (what, detail)
                    told.add((name, dtype))
                    current = None
    os.close(read)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if current:
        results[current] = ("fail", f"{why} ({process.returncode})")
        told.add(current)
    elif not told and work:
        results[work[0]] = ("fail", f"{why} before the first operation ({process.returncode})")
        told.add(work[0])
    return [pair for pair in work if pair not in told]


def expectations():
    listed = []
    with open(os.path.join(HERE, "torch_expected.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.partition("|")
                if not reason.strip():
                    sys.exit(f"torch_expected.txt: no reason for {name}")
                listed.append(name.strip())
    return listed


def fits(line, full):
    return full == line or (line.endswith("*") and full.startswith(line[:-1]))


def idle_lines(listed, results):
    """What of the list is about operations that ran and did not fail: it has to go."""
    states = {line: [what for (name, dtype), (what, _) in results.items() if fits(line, f"{name} {dtype}")] for line in listed}
    return [line for line, whats in states.items() if "pass" in whats and "fail" not in whats]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/main", help="the build directory, or an installation's like it")
    parser.add_argument("--run", help="a command to put before the interpreter, in place of cricket-run --soft")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--path", default="eager", choices=["eager", "compile"])
    parser.add_argument("--ops", help="only these")
    parser.add_argument("--dtypes", help="only these")
    parser.add_argument("--slice", default="0/1", help="K/N: every N-th, from the K-th on")
    parser.add_argument("--samples", type=int, default=6, help="at most so many samples of an operation and type")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one operation and type")
    parser.add_argument("--limit", type=int, default=86400, help="seconds for all; what is left then is told, not failed")
    parser.add_argument("--report", default="torch-report.txt")
    parser.add_argument("--log", default="torch-output.txt")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arg = parser.parse_args()
    if arg.child:
        child(arg)
        return 0
    python = interpreter(arg)
    work, results, deadline = work_list(arg, python), {}, time.monotonic() + arg.limit
    total = len(work)
    while work and time.monotonic() < deadline:
        work = run_child(arg, python, work, results, deadline)
        print(f"{len(results)} of {total}", flush=True)
    listed, bad, bad_lines = expectations(), 0, 0
    with open(arg.report, "w", encoding="utf-8") as report:
        for (name, dtype), (what, detail) in sorted(results.items()):
            report.write(f"{what} {name} {dtype}\n" + "".join(f"    {line}\n" for line in detail.splitlines()))
            full = f"{name} {dtype}"
            if what == "fail" and not any(fits(e, full) for e in listed):
                bad += 1
                print(f"FAILED {full}: {detail.splitlines()[0] if detail else ''}")
    for line in idle_lines(listed, results):
        bad_lines += 1
        print(f"FAILED {line}: passes, though torch_expected.txt lists it: remove it there")
    states = [what for what, _ in results.values()]
    print(f"{states.count('pass')} pass, {states.count('fail')} fail ({states.count('fail') - bad} of them listed), "
          f"{states.count('machine')} need machine code, {states.count('none')} without a sample for the CPU, {len(work)} not reached")
    return 1 if bad or bad_lines or not states.count("pass") else 0


if __name__ == "__main__":
    sys.exit(main())
