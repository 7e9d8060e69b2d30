#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a training on several GPUs, started by torchrun, as workload.py is one of a training on one: the losses of all ranks as their bits, printed
by the first, whose time of a step goes to the file that $WORKLOAD_TIMES names.

	torchrun --nproc-per-node 2 ranks.py NAME [--steps N] [--device cuda|cpu] [--small] [--hold]

ddp              ResNet-50 by DistributedDataParallel, each rank with images of its own
tensor_parallel  a GPT-2 whose attention heads and hidden layers are split among the ranks (torch.distributed.tensor.parallel)

Half way the first rank says so where $CKT_TEST_PHASE_FILE names a file (tests/runner), and trains on while it is stopped and moved; with --hold all
ranks stand still until they may go on.  With $RANKS_ONE_GPU all ranks use the first GPU, each as if on a host of its own.  Exit status 77 where a module is missing.
"""
import argparse
import os
import sys
import time

from workload import Loop, images


def say_half_way(rank, hold):
    """As tests/programs/phase.h, but that nobody waits unless told to."""
    path = os.environ.get("CKT_TEST_PHASE_FILE")
    if not path:
        return
    if rank == 0:
        sys.stdout.flush()
        with open(path + ".ready", "w", encoding="utf-8"):
            pass
    while hold and not os.path.exists(path + ".go"):
        time.sleep(0.005)


class RankLoop(Loop):
    """Steps of which every rank makes as many."""

    def __init__(self, arg, rank):
        super().__init__(arg)
        self.rank = rank

    def __iter__(self):
        path = os.environ.pop("CKT_TEST_PHASE_FILE", None)  # the plain loop's point is for one process
        for i in super().__iter__():
            if path and i == self.steps // 2:
                os.environ["CKT_TEST_PHASE_FILE"] = path
                if self.arg.hold:
                    self.synchronize()
                say_half_way(self.rank, self.arg.hold)
                del os.environ["CKT_TEST_PHASE_FILE"]
            yield i


def train(arg, model, optimizer, loss_of):
    """Nothing is waited for: the losses stay on the GPU until the end."""
    import torch
    import torch.distributed as dist
    rank, ranks = dist.get_rank(), dist.get_world_size()
    loop, losses = RankLoop(arg, rank), []
    model.train()
    for _ in loop:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    mine = torch.stack(losses).float()
    everyone = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(everyone, mine)
    if rank == 0:
        rows = [row.tolist() for row in everyone]
        for i in range(arg.steps):
            print(f"loss {i}:", *(row[i].hex() for row in rows))
        loop.keep()


def ddp(arg):
    import torch
    import torch.distributed as dist
    import torchvision
    torch.manual_seed(1)
    make = torchvision.models.resnet18 if arg.small else torchvision.models.resnet50
    model = make(weights=None).to(arg.device)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()] if arg.device == "cuda" else None)
    batch = images(arg, 4 if arg.small else 32) + dist.get_rank() / 8
    labels = (torch.arange(len(batch), device=arg.device) + 7 * dist.get_rank()) % 1000
    train(arg, model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), lambda: torch.nn.functional.cross_entropy(model(batch), labels))


def gpt2(sizes):
    """GPT-2's layers with plain matrices, which can be split by rows and columns."""
    import torch
    from torch import nn
    layers, width, heads, vocabulary, length = sizes

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

        def forward(self, x):
            count, words, _ = x.shape
            q, k, v = (part(x).view(count, words, -1, width // heads).transpose(1, 2) for part in (self.q, self.k, self.v))
            seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(seen.transpose(1, 2).reshape(count, words, -1))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.attention, self.between = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            x = x + self.attention(self.before(x))
            return x + self.down(torch.nn.functional.gelu(self.up(self.between(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens):
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x))

    return Model()


def tensor_parallel(arg):
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    sizes = (2, 64, 4, 500, 16) if arg.small else (12, 768, 12, 50257, 512)
    torch.manual_seed(1)
    model = gpt2(sizes).to(arg.device)
    mesh = init_device_mesh(arg.device, (dist.get_world_size(),))
    for block in model.blocks:
        parallelize_module(block, mesh, {"attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(), "attention.v": ColwiseParallel(),
                                         "attention.out": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()})
    tokens = torch.randint(0, sizes[3], (4, sizes[4]), generator=torch.Generator().manual_seed(3)).to(arg.device)

    def loss():
        return torch.nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    # The split parameters and the whole ones are of two kinds, and foreach takes one.
    train(arg, model, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False), loss)


TRAININGS = {"ddp": ddp, "tensor_parallel": tensor_parallel}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=TRAININGS)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true", help="models and inputs of a size for a CPU")
    parser.add_argument("--hold", action="store_true", default=bool(os.environ.get("RANKS_HOLD")), help="stand still half way ($RANKS_HOLD)")
    arg = parser.parse_args()
    # Read by cuBLAS before its first use; NVLink's multicast is a matter of the whole machine and stays off.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
    if os.environ.get("RANKS_ONE_GPU"):
        # NCCL takes ranks with one id of the host and one GPU for a mistake.
        os.environ["NCCL_HOSTID"] = "rank" + os.environ["LOCAL_RANK"]
    try:
        import torch
        import torch.distributed as dist
        if arg.name == "ddp":
            import torchvision  # noqa: F401
    except ImportError as problem:
        print(f"not here: {problem}", file=sys.stderr)
        return 77
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    # As in workload.py: the others' backward passes add in another order each time.
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_flash_sdp(False)
    if arg.device == "cuda":
        torch.cuda.set_device(0 if os.environ.get("RANKS_ONE_GPU") else int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if arg.device == "cuda" else "gloo")
    TRAININGS[arg.name](arg)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
