# SPDX-License-Identifier: Apache-2.0
"""torch.compile of elementwise work: Triton kernels made by inductor."""
from digest import need, show

torch = need("torch")
need("triton")


@torch.compile
def work(a, b):
    return torch.relu(a * b + 1) - torch.tanh(b) * 0.5, (a - b).abs().sum(dim=1)


a = torch.linspace(-1, 1, 512 * 300, device="cuda").reshape(512, 300)
b = torch.linspace(3, -2, 512 * 300, device="cuda").reshape(512, 300)
show("compiled", *work(a, b))
show("again", *work(b, a))
