#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program's first matrix product: what benchmarks/distance counts the round trips of."""
import torch

a = torch.ones(256, 256, device="cuda")
print((a @ a).sum().item())
