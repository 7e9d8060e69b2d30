#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/jax runs on both sides: products, convolutions, transforms, linear algebra and trainings, each a case with a name.

	jax_cases.py --list				the groups
	jax_cases.py GROUP --save DIR [--only CASE,...] [--skip CASE,...]	runs the group's cases; each leaves its arrays in DIR/CASE.npz and prints a line
	jax_cases.py --compare NATIVE AGAIN REMOTE	compares three such folders, a line for each case

With its deterministic operations and without its tuning XLA takes the same kernels in every run, so the same bits can be asked for.
"""

import json
import os
import sys
import time

FLAGS = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"
os.environ["XLA_FLAGS"] = " ".join((os.environ.get("XLA_FLAGS", ""), FLAGS))
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"   # others use the GPU at the same time

import numpy as np  # noqa: E402

STEPS = int(os.environ.get("JAX_CASES_STEPS", "100"))


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def spd(n):
    """Symmetric, and positive definite."""
    a = numbers(n, n)
    return a @ a.T / n + np.eye(n, dtype=np.float32)


# ---------------------------------------------------------------- groups: {case: function that gives arrays}

def matmul():
    import jax
    import jax.numpy as jnp
    a, b, wide = numbers(300, 200), numbers(200, 500, seed=1), numbers(8, 64, 96)

    def product(dtype, precision=None):
        return lambda: jax.jit(lambda x, y: jnp.matmul(x, y, precision=precision))(jnp.asarray(a, dtype), jnp.asarray(b, dtype))
    yield "f32", product(jnp.float32)
    yield "f32_highest", product(jnp.float32, "highest")
    yield "f64", product(jnp.float64)
    yield "f16", product(jnp.float16)
    yield "bf16", product(jnp.bfloat16)
    yield "c64", product(jnp.complex64)
    yield "c128", product(jnp.complex128)
    yield "int8", lambda: jax.jit(lambda x: jnp.matmul(x, x.T, preferred_element_type=jnp.int32))((wide[0] * 20).astype(np.int8))
    yield "batched", lambda: jax.jit(lambda x: jnp.einsum("bij,bkj->bik", x, x))(wide)
    yield "bias_relu", lambda: jax.jit(lambda x, y: jax.nn.relu(x @ y + y[0]))(a, b)
    yield "bias_gelu_bf16", lambda: jax.jit(lambda x, y: jax.nn.gelu(x @ y + y[0]))(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16))
    yield "vector", lambda: jax.jit(lambda x, y: (x @ y[:, 0], x[0] @ y))(a, b)
    yield "grad", lambda: jax.jit(jax.grad(lambda x, y: jnp.tanh(x @ y).sum(), (0, 1)))(a, b)
    yield "large", lambda: jax.jit(lambda x: x @ x.T)(numbers(2048, 2048))
    yield "attention", lambda: jax.jit(lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True))(numbers(2, 64, 4, 32).astype(jnp.bfloat16))


def conv():
    import jax
    import jax.numpy as jnp
    x, k = numbers(8, 16, 28, 28), numbers(32, 16, 3, 3, seed=1)

    def plain(strides, padding, **more):
        return jax.jit(lambda v, w: jax.lax.conv_general_dilated(v, w, strides, padding, **more))
    for name, dtype in (("f32", jnp.float32), ("f16", jnp.float16), ("bf16", jnp.bfloat16), ("f64", jnp.float64)):
        yield name, lambda d=dtype: plain((1, 1), "SAME")(jnp.asarray(x, d), jnp.asarray(k, d))
    yield "strided", lambda: plain((2, 2), "VALID")(x, k)
    yield "dilated", lambda: plain((1, 1), "SAME", rhs_dilation=(2, 2))(x, k)
    yield "grouped", lambda: plain((1, 1), "SAME", feature_group_count=4)(x, k[:, :4])
    yield "depthwise", lambda: plain((1, 1), "SAME", feature_group_count=16)(x, k[:16, :1])
    yield "nhwc", lambda: plain((1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))(x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0))
    yield "one_by_one", lambda: plain((1, 1), "SAME")(x, k[:, :, :1, :1])
    yield "conv1d", lambda: plain((1,), "SAME")(x[:, :, 0], k[:, :, 0])
    yield "conv3d", lambda: plain((1, 1, 1), "SAME")(numbers(2, 4, 8, 8, 8), numbers(6, 4, 3, 3, 3))
    yield "transposed", lambda: jax.jit(lambda v, w: jax.lax.conv_transpose(v, w, (2, 2), "SAME"))(x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0))
    yield "backward", lambda: jax.jit(jax.grad(lambda v, w: jnp.square(plain((1, 1), "SAME")(v, w)).sum(), (0, 1)))(x, k)
    yield "fused", lambda: jax.jit(lambda v, w: jax.nn.relu(plain((1, 1), "SAME")(v, w) + 0.5))(x, k)
    yield "pool", lambda: jax.jit(jax.grad(lambda v: jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").sum()))(x)


def fft():
    import jax
    import jax.numpy as jnp
    x = numbers(6, 10, 24, 30)
    z = (x + 1j * numbers(6, 10, 24, 30, seed=1)).astype(np.complex64)
    for name in ("fft", "ifft", "fft2", "ifft2", "fftn"):
        function = getattr(jnp.fft, name)
        yield name, lambda f=function: jax.jit(f)(z[0] if f is jnp.fft.fftn else z)
    for name in ("rfft", "rfft2", "hfft"):
        yield name, lambda f=getattr(jnp.fft, name): jax.jit(f)(z if f is jnp.fft.hfft else x)
    for name in ("irfft", "irfft2", "ihfft"):
        yield name, lambda f=getattr(jnp.fft, name): jax.jit(f)(x if f is jnp.fft.ihfft else z)
    yield "c128", lambda: jax.jit(jnp.fft.fft)(z.astype(np.complex128))
    yield "prime", lambda: jax.jit(jnp.fft.fft)(numbers(3, 1009))
    yield "grad", lambda: jax.jit(jax.grad(lambda v: jnp.abs(jnp.fft.rfft(v)).sum()))(x)
    yield "convolve", lambda: jax.jit(lambda v, w: jax.scipy.signal.fftconvolve(v, w, "same"))(x[0, 0], x[1, 0])


def linalg():
    import jax
    import jax.numpy as jnp
    a, s, batch = numbers(60, 60), spd(60), np.stack([spd(12) + i * np.eye(12, dtype=np.float32) for i in range(5)])
    rhs = numbers(60, 4, seed=2)
    la, sp = jnp.linalg, jax.scipy.linalg
    functions = {"cholesky": (la.cholesky, s), "qr": (la.qr, numbers(70, 40)), "svd": (la.svd, numbers(50, 30)), "svd_values": (lambda v: la.svd(v, compute_uv=False), a),
                 "eigh": (la.eigh, s), "eigvalsh": (la.eigvalsh, s), "inv": (la.inv, a), "det": (la.det, a), "slogdet": (la.slogdet, a), "pinv": (la.pinv, numbers(40, 20)),
                 "solve": (lambda v: la.solve(v, rhs), a), "lstsq": (lambda v: la.lstsq(v, numbers(70, 2, seed=3))[0], numbers(70, 40)), "matrix_power": (lambda v: la.matrix_power(v, 5), s),  # noqa: E501
                 "norm_nuclear": (lambda v: la.norm(v, "nuc"), a), "lu": (sp.lu_factor, a), "cho_solve": (lambda v: sp.cho_solve(sp.cho_factor(v), rhs), s),
                 "triangular": (lambda v: sp.solve_triangular(v, rhs, lower=True), np.tril(s) + np.eye(60, dtype=np.float32)), "expm": (sp.expm, a / 20),
                 "tridiagonal": (lambda v: jax.lax.linalg.tridiagonal_solve(v[0] / 9, jnp.diag(v) + 4, v[1] / 9, jnp.asarray(rhs)), s),
                 "householder": (lambda v: jax.lax.linalg.householder_product(la.qr(v, mode="raw")[0].T, la.qr(v, mode="raw")[1]), a)}
    for name, (function, value) in functions.items():
        yield name, lambda f=function, v=value: jax.jit(f)(v)
    for name in ("cholesky", "qr", "svd", "eigh", "inv"):
        yield name + "_batched", lambda f=getattr(la, name): jax.jit(jax.vmap(f))(batch)
        yield name + "_f64", lambda f=getattr(la, name): jax.jit(f)(s.astype(np.float64))
    yield "cholesky_c64", lambda: jax.jit(la.cholesky)(s.astype(np.complex64))
    yield "eigh_grad", lambda: jax.jit(jax.grad(lambda v: la.eigvalsh(v).max()))(s)
    yield "solve_grad", lambda: jax.jit(jax.grad(lambda v: la.solve(v, rhs).sum()))(s)
    yield "sparse_csr", lambda: sparse(jax)


def sparse(jax):
    from jax.experimental import sparse as js
    dense = numbers(64, 48) * (numbers(64, 48, seed=4) > 1)
    return jax.jit(lambda m, v: m @ v)(js.BCOO.fromdense(dense), numbers(48, 8, seed=5))


def other():
    import jax
    import jax.numpy as jnp
    x = numbers(200, 300)
    yield "random", lambda: (jax.random.normal(jax.random.key(3), (1000,)), jax.random.permutation(jax.random.key(4), 1000))
    yield "sort", lambda: jax.jit(lambda v: (jnp.sort(v), jnp.argsort(v, axis=0), jax.lax.top_k(v, 7)))(x)
    yield "scan", lambda: jax.jit(lambda v: jax.lax.scan(lambda c, r: (jnp.tanh(c + r @ v[:300]), c.sum()), v[0], v))(numbers(300, 300))
    yield "while", lambda: jax.jit(lambda v: jax.lax.while_loop(lambda c: c[0] < 20, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, v)))(x)
    yield "scatter", lambda: jax.jit(lambda v: v.at[jnp.arange(0, 200, 3)].add(1.5).at[:, 5].set(0))(x)
    yield "reduce", lambda: jax.jit(lambda v: (v.sum(), v.mean(0), v.std(1), jnp.cumsum(v, 1), jax.nn.logsumexp(v), jnp.median(v)))(x)
    yield "vmap_grad", lambda: jax.jit(jax.vmap(jax.grad(lambda r: jnp.log1p(jnp.exp(r)).sum())))(x)
    yield "custom_type", lambda: jax.jit(lambda v: v.astype(jnp.float8_e4m3fn).astype(jnp.float32))(x)


def mlp():
    yield from training(flat=True)


def cnn():
    yield from training(flat=False)


def transformer():
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + nn.MultiHeadDotProductAttention(num_heads=4, dtype=jnp.bfloat16)(nn.LayerNorm()(x), mask=nn.make_causal_mask(x[..., 0]))
            return x + nn.Dense(64)(nn.gelu(nn.Dense(256, dtype=jnp.bfloat16)(nn.LayerNorm()(x))))

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(97, 64)(tokens)
            for _ in range(2):
                x = Block()(x)
            return nn.Dense(97)(x)

    tokens = np.random.RandomState(5).randint(0, 97, (16, 33))
    yield "train", lambda: train(jax, optax, Model(), tokens[:, :-1], tokens[:, 1:])


def training(flat):
    import jax
    import optax
    from flax import linen as nn

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            if flat:
                x = x.reshape(x.shape[0], -1)
                x = nn.relu(nn.Dense(256)(x))
                x = nn.relu(nn.Dense(128)(x))
            else:
                x = nn.relu(nn.Conv(16, (3, 3))(x))
                x = nn.avg_pool(x, (2, 2), (2, 2))
                x = nn.relu(nn.GroupNorm(4)(nn.Conv(32, (3, 3))(x)))
                x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
            return nn.Dense(10)(x)

    random = np.random.RandomState(6)
    images = random.standard_normal((64, 28, 28, 1)).astype(np.float32)
    yield "train", lambda: train(jax, optax, Network(), images, random.randint(0, 10, 64))


def train(jax, optax, model, inputs, labels):
    """The losses and the last parameters."""
    parameters = model.init(jax.random.key(0), inputs)
    optimizer = optax.adamw(1e-3)
    state = optimizer.init(parameters)

    def loss_of(parameters):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(parameters, inputs), labels).mean()

    @jax.jit
    def step(parameters, state):
        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    losses, began = [], 0.0
    for number in range(STEPS):
        parameters, state, loss = step(parameters, state)
        losses.append(loss)
        if number == 0:
            jax.block_until_ready(loss)
            began = time.monotonic()
    jax.block_until_ready(parameters)
    train.milliseconds = 1000 * (time.monotonic() - began) / max(1, STEPS - 1)
    losses = np.asarray([float(loss) for loss in losses])
    if not losses[-1] < losses[0]:
        raise RuntimeError(f"the loss does not fall: {losses[0]} to {losses[-1]}")
    return losses, parameters


train.milliseconds = None
GROUPS = {f.__name__: f for f in (matmul, conv, fft, linalg, other, mlp, cnn, transformer)}


# ---------------------------------------------------------------- one process, and the comparison of three

def run(group, folder, only, skip):
    import jax
    jax.config.update("jax_enable_x64", True)
    platform = os.environ.get("JAX_CASES_PLATFORM", "gpu")
    if jax.devices()[0].platform != platform:
        sys.exit(f"JAX has no {platform}")
    for name, function in GROUPS[group]():
        case = f"{group}.{name}"
        if case in skip or only and case not in only and group not in only:
            continue
        print(json.dumps({"begin": case}), flush=True)
        train.milliseconds = None
        try:
            leaves = [np.asarray(v) for v in jax.tree.leaves(function())]
            # NumPy has no file format for these.
            leaves = [v if v.dtype.kind in "fciub" else v.view(f"u{v.dtype.itemsize}") for v in leaves]
            np.savez(os.path.join(folder, case + ".npz"), *leaves)
            line = {"case": case, "status": "ok", "ms": train.milliseconds}
        except Exception as problem:  # whatever it says is a result
            line = {"case": case, "status": "error", "text": " ".join(f"{type(problem).__name__}: {problem}".split())[:400]}
        print(json.dumps(line), flush=True)


def load(folder, case):
    try:
        with np.load(os.path.join(folder, case + ".npz")) as kept:
            return [kept[key] for key in kept.files]
    except OSError:
        return None


def farthest(a, b):
    wide = [v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b)]
    return float(np.nan_to_num(np.abs(wide[0] - wide[1]), nan=0.0).max(initial=0))


def judge(native, again, remote):
    """(how, detail): same, within (what the two native runs differ by, doubled), or differs."""
    if [(v.shape, v.dtype) for v in native] != [(v.shape, v.dtype) for v in remote]:
        return "differs", "other shapes or types"
    how, detail = "same", ""
    for mine, other, far in zip(native, again, remote):
        if far.tobytes() in (mine.tobytes(), other.tobytes()):
            continue
        off, spread = min(farthest(mine, far), farthest(other, far)), farthest(mine, other)
        what = f"by {off:.3g}, the greatest value is {np.abs(mine).max(initial=0):.3g}, native runs differ by {spread:.3g}"
        if spread == 0 or off > 2 * spread:
            return "differs", what
        how, detail = "within", what
    return how, detail


def compare(folders):
    for file in sorted(os.listdir(folders[0])):
        case = file.removesuffix(".npz")
        native, again, remote = (load(folder, case) for folder in folders)
        if again is None:
            how, detail = "varies", "natively in one of two runs only"
        elif remote is None:
            how, detail = "missing", ""
        else:
            how, detail = judge(native, again, remote)
        print(json.dumps({"case": case, "how": how, "text": detail}))


def main():
    if sys.argv[1] == "--list":
        print(*GROUPS)
    elif sys.argv[1] == "--compare":
        compare(sys.argv[2:5])
    else:
        words = dict(zip(sys.argv[4::2], sys.argv[5::2]))
        run(sys.argv[1], sys.argv[3], *(set(filter(None, words.get(name, "").split(","))) for name in ("--only", "--skip")))


if __name__ == "__main__":
    main()
