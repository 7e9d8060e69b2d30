# SPDX-License-Identifier: Apache-2.0
"""CuPy: elementwise work, reductions, kernels from source."""
from digest import need, show

cupy = need("cupy")
x = cupy.linspace(-3, 3, 100001, dtype=cupy.float32)
show("elementwise", x * 2 + 1, cupy.sin(x), cupy.exp(x), cupy.where(x > 0, x, -x), x.astype(cupy.float16))
show("reductions", x.sum(), x.max(), x.argmin(), cupy.arange(10000).reshape(100, 100).sum(axis=0), cupy.cumsum(cupy.arange(5000)))
show("sorting", cupy.sort(cupy.sin(cupy.arange(50000) * 12.9898)), cupy.unique(cupy.arange(5000) % 97))
raw = cupy.RawKernel(r"""
extern "C" __global__ void twice(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = in[i] * 2.0f + i;
}""", "twice")
out = cupy.empty_like(x)
raw(((x.size + 255) // 256,), (256,), (x, out, x.size))
assert cupy.allclose(out, x * 2 + cupy.arange(x.size))
show("raw", out)
square = cupy.ElementwiseKernel("float32 a, float32 b", "float32 c", "c = (a - b) * (a - b)", "squared")
show("elementwise kernel", square(x, out))
total = cupy.ReductionKernel("float32 a", "float32 c", "a * a", "a + b", "c = sqrt(a)", "0", "norm")
show("reduction kernel", total(x))
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    y = x * 3
stream.synchronize()
show("stream", y)
