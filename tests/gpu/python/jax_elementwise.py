# SPDX-License-Identifier: Apache-2.0
"""JAX: jitted elementwise work and reductions."""
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"   # others use the GPU at the same time
from digest import need, show  # noqa: E402 (the variable comes first)

jax = need("jax")
import jax.numpy as jnp  # noqa: E402 (after the look whether it is there)

assert jax.devices()[0].platform == "gpu"


@jax.jit
def work(a, b):
    return jnp.where(a > b, jnp.sin(a) * b, jnp.tanh(b)), (a * b).sum(axis=0), jnp.cumsum(a[:, 0])


a = jnp.linspace(-2, 2, 300 * 401, dtype=jnp.float32).reshape(300, 401)
b = jnp.linspace(4, -1, 300 * 401, dtype=jnp.float32).reshape(300, 401)
show("jit", *work(a, b))
show("grad", jax.jit(jax.grad(lambda v: (jnp.tanh(v * 2) ** 2).sum()))(a))
show("vmap", jax.jit(jax.vmap(lambda row: row / (1 + jnp.abs(row).max())))(b))
