# SPDX-License-Identifier: Apache-2.0
"""PyTorch without a math library: what a program does first, each result compared by its bits."""
from digest import need, show

torch = need("torch")
device = "cuda"
torch.manual_seed(1)
x = torch.linspace(-4, 4, 100003, device=device)
y = torch.arange(100003, device=device, dtype=torch.float32)

show("creation", torch.zeros(7, device=device), torch.full((3, 5), 2.5, device=device), torch.eye(9, device=device), x, y)
show("elementwise", x * y + 1, torch.sin(x), torch.exp(x), torch.sqrt(y), torch.where(x > 0, x, -x), torch.pow(x, 3), torch.sigmoid(x))
show("types", x.half(), x.bfloat16(), x.double() / 3, y.to(torch.int32) % 7, (y.long() << 3) ^ 5, x > 0)
show("complex", torch.complex(x, y) * torch.complex(y, x))
show("reductions", y.sum(), x.mean(), x.max(), x.argmin(), (x > 1).any(), y[:99900].reshape(333, -1).sum(0), torch.cumsum(y[:4096], 0),
     x.std(), torch.logsumexp(x, 0))
show("sort", *torch.sort(torch.sin(y * 12.9898)), *torch.topk(torch.cos(y), 50), torch.unique((y % 97).int()), torch.argsort(torch.sin(y[:1000])))
index = (y[:5000] * 7919 % 100003).long()
show("indexing", x[index], x.index_select(0, index), torch.gather(y, 0, index), y.clone().index_fill_(0, index, 3), x[x > 3.9],
     torch.zeros(100003, device=device).scatter_(0, index, 1.0), torch.nonzero(x > 3.99))
show("random", torch.rand(10000, device=device), torch.randn(10000, device=device), torch.randint(0, 99, (1000,), device=device),
     torch.randperm(5000, device=device), torch.bernoulli(torch.full((1000,), 0.3, device=device)))
show("shapes", torch.cat([x[:9], y[:5]]), torch.stack([x, y]).t().contiguous(), x.view(100003, 1).expand(-1, 3).sum(1), torch.flip(y, [0]),
     torch.roll(y, 17), torch.tril(torch.ones(65, 65, device=device)))

w = torch.randn(4096, device=device, requires_grad=True)
b = torch.randn(4096, device=device, requires_grad=True)
for _ in range(5):
    loss = ((torch.tanh(w * 2 + b) - 0.25) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad = None
show("autograd", w, b, loss)
model = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Dropout(0.5)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(128, 64, device=device)).square().mean().backward()
    optimizer.step()
show("adam", *model.parameters())

streams = [torch.cuda.Stream() for _ in range(4)]
parts = []
for i, stream in enumerate(streams):
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        part = y * (i + 1)
        for _ in range(20):
            part = part * 0.5 + i
        parts.append(part)
event = torch.cuda.Event(enable_timing=True)
event.record()
for stream in streams:
    torch.cuda.current_stream().wait_stream(stream)
last = torch.cuda.Event(enable_timing=True)
last.record()
last.synchronize()
assert event.elapsed_time(last) >= 0 and event.query()
show("streams", *parts)

pinned = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
there = pinned.to(device, non_blocking=True)
back = torch.empty_like(pinned).pin_memory()
back.copy_(there * 2, non_blocking=True)
torch.cuda.synchronize()
assert pinned.is_pinned()
show("pinned", back)

graph = torch.cuda.CUDAGraph()
static = torch.zeros(5000, device=device)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        result = (static * 2 + 1).sin()
torch.cuda.current_stream().wait_stream(side)
with torch.cuda.graph(graph):
    result = (static * 2 + 1).sin()
for i in range(5):
    static.fill_(i)
    graph.replay()
    show(f"graph {i}", result)

blocks = [torch.ones(1 << (10 + i % 12), device=device) for i in range(200)]
del blocks[::2]
blocks += [torch.full((3 << (10 + i % 10),), 2.0, device=device) for i in range(100)]
show("allocator", *[b.sum() for b in blocks])
del blocks
torch.cuda.empty_cache()
assert torch.cuda.memory_allocated() <= torch.cuda.memory_reserved()


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((16,), float(i))


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True)
    show("workers", sum(batch.to(device, non_blocking=True).sum() for batch in loader))
