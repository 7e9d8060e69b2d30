# SPDX-License-Identifier: Apache-2.0
"""Trainings on two GPUs by torchrun (workloads/ranks.py), natively and through Cricket: what tests/gpu/ddp and tests/gpu/tensor_parallel are.

A rank is a session. It runs twice natively (what native itself does not repeat is said, and not compared), over TCP and over the UNIX
socket, and checkpointed as one job: cricketctl checkpoint --job while it runs on (how long it stood still is printed), then with --stop,
all servers killed, restore --job on a second server (checkpoint: while it trains; held: while its ranks stand still). Losses have to be the
same bit for bit, and a step may take LIMIT times native's.

--one-gpu gives all ranks the first GPU, natively as well: NCCL refuses two ranks of one host on one GPU, so each rank names a host of its own
($NCCL_HOSTID), and NCCL's network carries what it exchanges.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "runner"))
import runner  # noqa: E402
from wheels import library_paths  # noqa: E402

PROGRAM = os.path.join(here, "workloads", "ranks.py")
MODES = ("native", "again", "tcp", "unix", "checkpoint", "held")
LIMIT = 1.05


def parse(name, description):
    parser = argparse.ArgumentParser(prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__)
    parser.add_argument("--bundle", default=os.environ.get("CKT_BUNDLE", "build/bundle/cricket"))
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--steps", type=int, default=200, help="of the training (default 200)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on one GPU, over NCCL's network")
    parser.add_argument("--modes", default=",".join(MODES), help=f"of {', '.join(MODES)}")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has PyTorch")
    parser.add_argument("--driver", default="", help="of the servers, as of cricket-server")
    parser.add_argument("--server-arg", action="append", default=[], metavar="ARG")
    parser.add_argument("--no-library-path", dest="library_path", action="store_false", help="let the server find the libraries by itself")
    parser.add_argument("--running", type=int, default=1, help="of mode checkpoint: saved so many times while it runs on, and timed (default 1)")
    parser.add_argument("--timeout", type=float, default=300, help="of a run, in seconds (default 300)")
    parser.add_argument("--no-limit", dest="limit", action="store_false", help="a time over the goal is no failure")
    parser.add_argument("word", nargs="*", help="for ranks.py")
    return parser.parse_args()


def one(arg, name, mode):
    """(0 or 1, text, milliseconds a step or None)"""
    with tempfile.TemporaryDirectory(prefix="ckt-") as directory:
        times, running = os.path.join(directory, "times"), os.path.join(directory, "running")
        route = {"again": "native", "checkpoint": "job", "held": "job"}.get(mode, mode)
        options = ["--mode", route, "--timeout", str(arg.timeout), "--driver", arg.driver, "--expected", os.path.join(arg.out, "expected-ranks")]
        if arg.bundle and route != "native":
            options += ["--prefix", arg.bundle]
        libraries = library_paths(arg.python)
        if libraries and arg.library_path:
            options += ["--server-arg=--library-path", "--server-arg=" + libraries]
        options += ["--server-arg=" + word for word in arg.server_arg]
        if mode == "checkpoint":
            options += ["--running", str(arg.running), "--running-out", running]
        # Not arguments: what the same arguments print is compared.
        os.environ["WORKLOAD_TIMES"] = times
        os.environ["RANKS_HOLD"] = "1" if mode == "held" else ""
        os.environ["RANKS_ONE_GPU"] = "1" if arg.one_gpu else ""
        status, text = runner.run(runner.arguments([*options, arg.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(arg.ranks),
                                                    PROGRAM, name, "--steps", str(arg.steps), *arg.word]))
        milliseconds = None
        if os.path.exists(times):
            with open(times, encoding="utf-8") as f:
                milliseconds = json.load(f)["ms"]
        if os.path.exists(running):
            with open(running, encoding="utf-8") as f:
                say_stopped(mode, [json.loads(line) for line in f])
    return status, text, milliseconds


def say_stopped(mode, checkpoints):
    """How long the job stood still while it was saved and ran on, and what the goal is: 1 s and the time of its bytes at 25 GB/s."""
    for told in checkpoints:
        goal = 1000 + told["memory_bytes"] / 25e6
        print(f"{mode}: {len(told['sessions'])} sessions with {told['memory_bytes'] / 2**30:.2f} GiB stood still for {told['stopped_ms']:.1f} ms, "
              f"{told['cut_ms']:.1f} ms of them until the cut; the goal is {goal:.0f} ms" + (": MISSED" if told["stopped_ms"] > goal else ""), flush=True)


def judge(arg, mode, status, text, milliseconds, row):
    """What became of a run, in one word."""
    word = "FAIL" if status else "ok"
    if word == "FAIL" and "output differs" in text and (mode == "again" or row.get("again", ("",))[0] == "varies"):
        word = "varies"
    native = min((m for other in ("native", "again") for m in row.get(other, (None, None))[1:] if m), default=None)
    if arg.limit and word == "ok" and mode in ("tcp", "unix") and native and milliseconds > LIMIT * native:
        word = "SLOW"
    return word


def run(name, description):
    arg = parse(name, description)
    if "cpu" not in arg.word:
        gpu, count = runner.gpu_name()
        needed = 1 if arg.one_gpu else arg.ranks
        if count < needed:
            print(f"tests/gpu/{name}: {needed} GPUs are needed, there are {count if gpu else 0}")
            return 77
    modules = subprocess.run([arg.python, "-c", "import torch.distributed, torchvision"], capture_output=True, text=True, check=False)
    if modules.returncode:
        print(f"tests/gpu/{name}: {arg.python} lacks modules: {modules.stderr.strip().splitlines()[-1]}")
        return 77
    # NVLink's multicast is a matter of the whole machine.
    os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1", OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "4"))
    os.makedirs(arg.out, exist_ok=True)
    row, failed = {}, False
    for mode in arg.modes.split(","):
        status, text, milliseconds = one(arg, name, mode)
        word = judge(arg, mode, status, text, milliseconds, row)
        row[mode] = (word, milliseconds)
        print(f"{name} {mode}: {word}{f' {milliseconds:.2f} ms a step' if milliseconds else ''}", flush=True)
        if word in ("FAIL", "SLOW", "varies"):
            with open(os.path.join(arg.out, f"{name}-{mode}.log"), "w", encoding="utf-8") as f:
                f.write(text + "\n")
        if word in ("FAIL", "SLOW"):
            failed = True
            print("\n".join(text.splitlines()[:12]), flush=True)
    table(name, row)
    return 1 if failed else 0


def table(name, row):
    native = min((m for other in ("native", "again") for m in row.get(other, (None, None))[1:] if m), default=None)
    print(f"\n{'ms a step':18}" + "".join(f"{mode:>22}" for mode in row))
    line = f"{name:18}"
    for mode, (word, milliseconds) in row.items():
        ratio = f" x{milliseconds / native:.3f}" if milliseconds and native and mode in ("tcp", "unix") else ""
        line += f"{word + (f' {milliseconds:.2f}' if milliseconds else '') + ratio:>22}"
    print(line)
