# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/nccl runs on each rank, by torchrun: operations of torch.distributed over NCCL, a line of JSON for each.

A line has the hash of the rank's result, or milliseconds, or what the rank's session waited for.  CKT_CTL and CKT_SERVER, where they are set, are
cricketctl and the server's address.
"""

import hashlib
import json
import os
import subprocess
import time

import torch
import torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
N = 1 << int(os.environ.get("NCCL_CASES_LOG2", "18"))


def say(case, **what):
    print(json.dumps({"case": case, "rank": rank, **what}), flush=True)


def numbers(n, dtype=torch.float32, of=None):
    """The same for a rank in every run."""
    generator = torch.Generator().manual_seed(1000 + (rank if of is None else of))
    return torch.randn(n, generator=generator).to(dtype).to(device)


def hashed(case, *tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    say(case, hash=digest.hexdigest()[:16])


def collectives():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for name, op in (("sum", dist.ReduceOp.SUM), ("max", dist.ReduceOp.MAX), ("avg", dist.ReduceOp.AVG)):
            x = numbers(N, dtype)
            dist.all_reduce(x, op)
            hashed(f"all_reduce {name} {str(dtype)[6:]}", x)
    x = numbers(N)
    dist.broadcast(x, 1)
    hashed("broadcast", x)
    x = numbers(N)
    dist.reduce(x, 0)
    hashed("reduce", x if rank == 0 else torch.zeros(1, device=device))
    out = torch.empty(N * size, device=device)
    dist.all_gather_into_tensor(out, numbers(N))
    hashed("all_gather", out)
    out = torch.empty(N // size, device=device)
    dist.reduce_scatter_tensor(out, numbers(N))
    hashed("reduce_scatter", out)
    out = torch.empty(N, device=device)
    dist.all_to_all_single(out, numbers(N))
    hashed("all_to_all", out)
    several = [numbers(1000 * (i + 1)) for i in range(5)]
    dist.all_reduce_coalesced(several)
    hashed("coalesced", *several)
    x = numbers(N)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    hashed("premultiplied", x)


def messages():
    out = torch.empty(N, device=device)
    for turn in range(3):
        there, back = (rank + 1) % size, (rank - 1) % size
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, numbers(N, of=10 * turn + rank), there), dist.P2POp(dist.irecv, out, back)]):
            work.wait()
        hashed(f"ring {turn}", out)
    if rank == 0:
        dist.send(numbers(N), 1)
    elif rank == 1:
        dist.recv(out, 0)
        hashed("one way", out)
    dist.barrier()


def groups():
    pair = dist.new_group([0, 1])
    x = numbers(N)
    if rank < 2:
        dist.all_reduce(x, group=pair)
        hashed("group of two", x)
    alone = [dist.new_group([r]) for r in range(size)][rank]
    dist.all_reduce(x, group=alone)
    hashed("group of one", x)


def captured():
    x = torch.zeros(N, device=device)
    y = numbers(N)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        x.copy_(y)
        x.mul_(2)
        dist.all_reduce(x)
        y.add_(x)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    hashed("graph", y)


def waits():
    """{call: how often this session has waited for it}; empty natively."""
    if not os.environ.get("CKT_CTL"):
        return {}
    command = [os.environ["CKT_CTL"], "--server", os.environ["CKT_SERVER"], "--json"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    sessions = json.loads(subprocess.run([*command, "ps"], capture_output=True, text=True, check=True, env=environment).stdout)
    mine = next(s for s in sessions["sessions"] if s["pid"] == os.getpid())
    stats = json.loads(subprocess.run([*command, "stats", mine["session"]], capture_output=True, text=True, check=True, env=environment).stdout)
    return {call["name"]: call["waited"] for call in stats["calls"] if call["waited"]}


def training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).to(device)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index], bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, before = [], {}
    for step in range(30):
        if step == 10:
            torch.cuda.synchronize()
            dist.barrier()
            before, begun = waits(), time.monotonic()
        x, y = numbers(64 * 512, of=100 + 2 * step + rank).view(64, 512), numbers(64 * 64, of=500 + rank).view(64, 64)
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    took, after = time.monotonic() - begun, waits()
    hashed("DDP losses", *losses)
    hashed("DDP parameters", *model.parameters())
    say("time of a DDP step", ms=1000 * took / 20)
    if after:
        say("waits of 20 DDP steps", waited={k: after[k] - before.get(k, 0) for k in after if after[k] > before.get(k, 0)})


def speed():
    for name, n, times in (("256 MiB", 1 << 26, 10), ("4 KiB", 1 << 10, 200)):
        if N < 1 << 18:
            n, times = min(n, N), 3
        x = torch.zeros(n, device=device)
        for _ in range(2):
            dist.all_reduce(x)
            torch.cuda.synchronize()
            dist.barrier()
            before, begun = waits(), time.monotonic()
            for _ in range(times):
                dist.all_reduce(x)
            torch.cuda.synchronize()
            took, after = time.monotonic() - begun, waits()
        say(f"time of all_reduce of {name}", ms=1000 * took / times)
        if after:
            say(f"waits of {times} all_reduce of {name}", waited={k: after[k] - before.get(k, 0) for k in after if after[k] > before.get(k, 0)})


def main():
    torch.cuda.set_device(device)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    dist.init_process_group("nccl", device_id=device)
    for part in (collectives, messages, groups, captured, training, speed):
        if not os.environ.get("NCCL_CASES") or part.__name__ in os.environ["NCCL_CASES"].split(","):
            try:
                part()
            except Exception as error:    # A part that fails leaves the others; the ranks fail together, or the limit ends them.
                say(part.__name__, error=f"{type(error).__name__}: {str(error).splitlines()[0][:300]}")
    dist.destroy_process_group()
    say("end", hash="end")


main()
