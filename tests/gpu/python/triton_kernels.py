# SPDX-License-Identifier: Apache-2.0
"""Triton's own first examples: vector addition and a fused softmax."""
from digest import need, show

torch = need("torch")
triton = need("triton")
import triton.language as tl  # noqa: E402 (after the look whether it is there)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(source, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=at < columns)


x = torch.linspace(0, 5, 98765, device="cuda")
y = torch.linspace(7, -3, 98765, device="cuda")
out = torch.empty_like(x)
add_kernel[(triton.cdiv(98765, 1024),)](x, y, out, 98765, BLOCK=1024)
assert torch.equal(out, x + y)
show("add", out)
rows = torch.linspace(-6, 6, 257 * 781, device="cuda").reshape(257, 781)
soft = torch.empty_like(rows)
softmax_kernel[(257,)](rows, soft, 781, BLOCK=1024)
assert torch.allclose(soft, torch.softmax(rows, 1))
show("softmax", soft)
