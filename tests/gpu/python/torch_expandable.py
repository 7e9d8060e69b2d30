# SPDX-License-Identifier: Apache-2.0
"""PyTorch's allocator on virtual memory management (expandable segments)."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
from digest import need, show  # noqa: E402 (the variable comes first)

torch = need("torch")
grown = []
for i in range(60):
    grown.append(torch.full((1 << 20,), float(i), device="cuda"))
    if i % 3 == 0:
        grown.pop(0)
show("grown", *[g.sum() for g in grown])
del grown
torch.cuda.empty_cache()
show("again", torch.arange(20 << 20, device="cuda").sum())
