#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One of the workloads that PyTorch is used for, with weights and inputs made from a seed: what it computes as text, its time in the file
that $WORKLOAD_TIMES names.

	workload.py NAME [--steps N] [--device cuda|cpu] [--small]
	workload.py --list

Everything that is random is drawn on the CPU, so that the text depends on the libraries and the GPU alone; deterministic algorithms are asked for.
A training prints the loss of each step as its bits, an inference the hash of its last output, a generation its tokens.  The time is that of a step,
the first ten left out, with what a program waits for: an inference for each result (its time is the median of the steps'), a training for
nothing (the mean).  Half way it stands still where
$CKT_TEST_PHASE_FILE names a file (tests/runner).  Exit status 77 where PyTorch, torchvision or transformers are not installed.
"""
import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time

WARM_UP = 10


def phase():
    """The mid point, as tests/programs/phase.h has it."""
    sys.stdout.flush()
    path = os.environ.get("CKT_TEST_PHASE_FILE")
    if not path:
        return
    with open(path + ".ready", "w", encoding="utf-8"):
        pass
    while not os.path.exists(path + ".go"):
        time.sleep(0.005)


def digest(tensor):
    import torch
    return hashlib.sha256(bytes(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())).hexdigest()[:16]


def waits():
    """How often each call of this session was waited for, by `cricketctl stats` where $WORKLOAD_CTL names cricketctl."""
    ctl = os.environ.get("WORKLOAD_CTL")
    if not ctl:
        return {}
    env = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}

    def ask(*words):
        return json.loads(subprocess.run([ctl, "--json", *words], env=env, capture_output=True, text=True, check=True).stdout)
    session = next(s["session"] for s in ask("ps")["sessions"] if s["pid"] == os.getpid())
    return {call["name"]: call["waited"] for call in ask("stats", session)["calls"]}


class Loop:
    """Steps with a mid point; the time of those behind the warm-up.  each: the program waits for the result of each step."""

    def __init__(self, arg, each=False):
        self.arg, self.steps, self.each = arg, arg.steps, each
        self.stamps = []
        self.seconds, self.timed = 0.0, 0
        self.waited = {}

    def synchronize(self):
        import torch
        if self.arg.device == "cuda":
            torch.cuda.synchronize()

    def __iter__(self):
        start = None
        for i in range(self.steps):
            if i == self.steps // 2 and os.environ.get("CKT_TEST_PHASE_FILE"):
                self.synchronize()
                phase()
            if i == min(WARM_UP, self.steps - 1):
                self.synchronize()
                before = waits()
                start = time.perf_counter()
            yield i
            self.stamps.append(time.perf_counter())
        self.synchronize()
        self.timed = self.steps - min(WARM_UP, self.steps - 1)
        self.seconds = time.perf_counter() - start
        self.waited = {name: count - before.get(name, 0) for name, count in waits().items() if count > before.get(name, 0)}

    def keep(self):
        if os.environ.get("WORKLOAD_TIMES"):
            mean = self.seconds / self.timed
            last = self.stamps[-self.timed:]
            median = statistics.median(b - a for a, b in zip(last, last[1:])) if len(last) > 1 else mean
            with open(os.environ["WORKLOAD_TIMES"], "w", encoding="utf-8") as f:
                json.dump({"ms": (median if self.each else mean) * 1e3, "steps": self.timed, "waited": self.waited}, f)


# ---------------------------------------------------------------- models

def resnet(arg):
    import torchvision
    import torch
    torch.manual_seed(1)
    return torchvision.models.resnet50(weights=None).to(arg.device)


def images(arg, count):
    import torch
    side = 64 if arg.small else 224
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(2)).to(arg.device)


def words(arg, count, length, vocabulary):
    import torch
    return torch.randint(0, vocabulary, (count, 16 if arg.small else length), generator=torch.Generator().manual_seed(3)).to(arg.device)


def gpt2(arg):
    import torch
    import transformers
    torch.manual_seed(1)
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 500} if arg.small else {}
    config = transformers.GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    return transformers.GPT2LMHeadModel(config).to(arg.device)


def bert(arg, kind):
    import torch
    import transformers
    torch.manual_seed(1)
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 500} if arg.small else {}
    return getattr(transformers, kind)(transformers.BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)).to(arg.device)


# ---------------------------------------------------------------- workloads

def infer(arg, forward):
    """Each result is waited for, as who serves requests does."""
    import torch
    loop, result = Loop(arg, each=True), None
    with torch.inference_mode():
        for _ in loop:
            result = forward()
            loop.synchronize()
    print(f"output {tuple(result.shape)}: {digest(result)}")
    loop.keep()


def train(arg, model, optimizer, loss_of):
    """Nothing is waited for: the losses stay on the GPU until the end."""
    import torch
    loop, losses = Loop(arg), []
    model.train()
    for _ in loop:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    for i, loss in enumerate(torch.stack(losses).float().tolist()):
        print(f"loss {i}: {loss.hex()}")
    loop.keep()


def resnet_infer(arg, count):
    model, batch = resnet(arg).eval(), images(arg, count)
    infer(arg, lambda: model(batch))


def resnet_train(arg):
    import torch
    model, batch = resnet(arg), images(arg, 4 if arg.small else 32)
    labels = torch.arange(len(batch), device=arg.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    train(arg, model, optimizer, lambda: torch.nn.functional.cross_entropy(model(batch), labels))


def bert_infer(arg):
    model = bert(arg, "BertModel").eval()
    tokens = words(arg, 8, 128, model.config.vocab_size)
    infer(arg, lambda: model(tokens).last_hidden_state)


def bert_train(arg):
    import torch
    model = bert(arg, "BertForSequenceClassification")
    tokens = words(arg, 8, 128, model.config.vocab_size)
    labels = torch.arange(8, device=arg.device) % 2
    train(arg, model, torch.optim.AdamW(model.parameters(), lr=2e-5), lambda: model(tokens, labels=labels).loss)


def gpt2_generate(arg):
    import torch
    model, loop = gpt2(arg).eval(), Loop(arg, each=True)
    prompt, made = words(arg, 1, 16, model.config.vocab_size), None
    with torch.inference_mode():
        for _ in loop:
            made = model.generate(prompt, max_new_tokens=8 if arg.small else 32, min_new_tokens=8 if arg.small else 32, do_sample=False,
                                  attention_mask=torch.ones_like(prompt), pad_token_id=0).cpu()
    print("tokens", *made[0].tolist())
    loop.keep()


def gpt2_train(arg, half):
    import torch
    model = gpt2(arg)
    tokens = words(arg, 4, 512, model.config.vocab_size)

    def loss():
        with torch.autocast(arg.device, torch.bfloat16, enabled=half):
            return model(tokens, labels=tokens).loss
    train(arg, model, torch.optim.AdamW(model.parameters(), lr=1e-4), loss)


WORKLOADS = {
    "resnet_1": lambda arg: resnet_infer(arg, 1),
    "resnet_32": lambda arg: resnet_infer(arg, 4 if arg.small else 32),
    "resnet_train": resnet_train,
    "bert": bert_infer,
    "bert_train": bert_train,
    "gpt2_generate": gpt2_generate,
    "gpt2_train": lambda arg: gpt2_train(arg, False),
    "gpt2_train_bf16": lambda arg: gpt2_train(arg, True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=WORKLOADS)
    parser.add_argument("--list", action="store_true", help="the names, and nothing else")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true", help="models and inputs of a size for a CPU")
    arg = parser.parse_args()
    if arg.list or not arg.name:
        print(*WORKLOADS)
        return 0
    # Read by cuBLAS, here and in the worker, before its first use.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch
        if arg.name.startswith("resnet"):
            import torchvision  # noqa: F401
        else:
            import transformers
            transformers.utils.logging.set_verbosity_error()
    except ImportError as problem:
        print(f"not here: {problem}", file=sys.stderr)
        return 77
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    # Their backward passes add in another order each time, also where deterministic algorithms are asked for; the others' do not.
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_flash_sdp(False)
    WORKLOADS[arg.name](arg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
