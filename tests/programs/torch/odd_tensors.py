"""Uses every kind of tensor without ordinary device memory, or without any: saves them, makes them
parameters, assigns data and gradients. tests/e2e/torch/odd_tensors_check.py compares the output with
and without the profiler.
"""

import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
DEVICE = "cuda"


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = nn.Linear(8, 8, device=DEVICE)
        loss = model(torch.rand(4, 8, device=DEVICE)).relu().sum()
        loss.backward()
        model.weight.data = torch.rand(8, 8, device=DEVICE)
        return model.weight.grad.shape


def functorch():
    from torch.func import functional_call, grad, hessian, vmap

    model = nn.Linear(4, 1).to(DEVICE)
    parameters = dict(model.named_parameters())

    def loss(parameters, x):
        return functional_call(model, parameters, (x,)).sum()

    per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, torch.ones(3, 4, device=DEVICE))
    return per_sample["weight"].shape, hessian(lambda x: (x**3).sum())(torch.ones(2, device=DEVICE)).shape


def sparse():
    x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), device=DEVICE, requires_grad=True)
    embedding = nn.Embedding(10, 4, sparse=True).to(DEVICE)
    embedding(torch.tensor([1, 2], device=DEVICE)).sum().backward()
    rows = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2), device=DEVICE, requires_grad=True)
    rows.values().sum().backward()
    return x.shape, embedding.weight.grad.is_sparse, nn.Parameter(rows.detach()).layout


def quantised():
    shapes = []
    for device in ("cpu", DEVICE):
        x = torch.quantize_per_tensor(torch.ones(4, device=device), 0.1, 0, torch.qint8)
        shapes += [nn.Parameter(x, requires_grad=False).shape, x.dequantize().requires_grad_().shape]
    weights = torch.ones(8, 8, device=DEVICE).to(torch.float8_e4m3fn)
    return x.dtype, shapes, nn.Parameter(weights, requires_grad=False).dtype


def nested():
    x = torch.nested.nested_tensor([torch.rand(2, 3), torch.rand(4, 3)], device=DEVICE, requires_grad=True)
    y = torch.nested.to_padded_tensor(x * 2, 0.0)
    y.sum().backward()
    ragged = torch.nested.nested_tensor([torch.rand(2, 3), torch.rand(4, 3)], layout=torch.jagged, device=DEVICE,
                                        requires_grad=True)
    (ragged * 2).sum().backward()
    return x.grad.is_nested, y.shape, type(ragged.grad).__name__


def meta():
    model = nn.Linear(8, 8, device="meta")
    loss = model(torch.rand(4, 8, device="meta")).relu().sum()
    loss.backward()
    return model.weight.grad.shape


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


class Wrapper(torch.Tensor):
    """A tensor without its own memory, like DTensor and quantised weights."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device,
                                                   requires_grad=requires_grad)

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        plain = torch.utils._pytree.tree_map_only(Wrapper, lambda w: w.inner, (args, kwargs or {}))
        out = function(*plain[0], **plain[1])
        return torch.utils._pytree.tree_map_only(torch.Tensor, Wrapper, out)


def subclasses():
    x = torch.rand(4, device=DEVICE).as_subclass(Tagged).requires_grad_()
    (x * x).sum().backward()
    weight = nn.Parameter(Wrapper(torch.rand(4, 4, device=DEVICE)))
    (weight @ torch.rand(4, 4, device=DEVICE)).sum().backward()
    return type(x.grad).__name__, type(weight.grad).__name__


def host():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    model(torch.rand(4, 8)).sum().backward()
    model.to(torch.float64)
    return model[0].weight.grad.dtype


def undefined():
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, None)
            return x * 2, y * 2

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 if first is not None else None, None

    x, y = (torch.rand(4, device=DEVICE, requires_grad=True) for _ in range(2))
    a, b = Half.apply(x, y)
    a.sum().backward()
    return x.grad is not None, y.grad is None


def saved_elsewhere():
    """Saved tensors are packed into something else and unpacked again."""
    x = torch.rand(64, device=DEVICE, requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x.exp()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(DEVICE)):
        z = y.sin()
    z.sum().backward()
    return x.grad.shape


def twice():
    x = torch.rand(8, device=DEVICE, requires_grad=True)
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    first.sum().backward(retain_graph=True)
    first.sum().backward()
    return x.grad.shape


def distributed():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    dist.init_process_group("cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1)
    kinds = []
    for device in ("cpu", DEVICE):
        mesh = init_device_mesh(device, (1,))
        weight = nn.Parameter(distribute_tensor(torch.rand(8, 8, device=device), mesh, [Shard(0)]))
        (weight @ weight).sum().backward()
        kinds.append((type(weight.grad).__name__, weight.to_local().device.type))
    dist.destroy_process_group()
    return kinds


def complex_and_views():
    x = torch.rand(4, 4, dtype=torch.complex64, device=DEVICE, requires_grad=True)
    view = x.real[1:]
    (view * view).sum().backward()
    y = torch.rand(8, device=DEVICE, requires_grad=True)
    z = y * 2
    z[:4].mul_(3)
    z.sum().backward()
    return x.grad.dtype, y.grad.shape, torch.empty(0, device=DEVICE, requires_grad=True).shape


KINDS = (fake, functorch, sparse, quantised, nested, meta, subclasses, host, undefined, saved_elsewhere, twice, distributed,
         complex_and_views)

if __name__ == "__main__":
    torch.zeros(1, device=DEVICE)
    for kind in KINDS:
        if len(sys.argv) > 1 and kind.__name__ not in sys.argv[1:]:
            continue
        try:
            print(kind.__name__, kind(), flush=True)
        except Exception as error:
            print(kind.__name__, "raised", type(error).__name__, str(error).splitlines()[0], flush=True)
