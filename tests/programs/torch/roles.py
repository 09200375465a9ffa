"""Runs a program that reports at marked moments which memory holds its parameters, its gradients and
the tensors that autograd saved. tests/e2e/torch/roles_check.py compares recordings with that.

Usage: roles.py NAME. Needs the Python package gpumemtrace. Prints one line of JSON. With GMT_ANOMALY=1 PyTorch's anomaly
detection is on, which knows where each node was created; then the nodes that save each tensor are reported too.
"""

import json
import os
import re
import sys

import gpumemtrace
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"
ANOMALY = os.environ.get("GMT_ANOMALY") == "1"
LINE = re.compile(r'  File "(.*)", line (\d+), in (.*)')
moments = []


def addresses(tensors):
    """Returns the sorted addresses of the tensors' storages on the device."""
    found = {t.untyped_storage().data_ptr() for t in tensors if t is not None and t.is_cuda}
    return sorted(found - {0})


def blocks():
    """Returns the addresses of the allocator's allocated blocks."""
    return {block["address"] for segment in torch.cuda.memory.memory_snapshot() for block in segment["blocks"]
            if block["state"] == "active_allocated"}


def saved_tensors(root):
    """Returns (node, tensor) for the tensors that the nodes of a tensor's graph have saved for the backward pass."""
    seen, waiting, saved = set(), [root.grad_fn], []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        values = []
        try:
            for name in dir(node):
                if name.startswith("_raw_saved_") and name != "_raw_saved_tensors":
                    value = getattr(node, "_saved_" + name.removeprefix("_raw_saved_"))
                    values += value if isinstance(value, (list, tuple)) else [value]
            values += getattr(node, "saved_tensors", ())
        except RuntimeError:  # its backward pass has run
            pass
        saved += [(node, value) for value in values if isinstance(value, torch.Tensor)]
        waiting += [following for following, _ in node.next_functions]
    return saved


def saver(node, tensor):
    """Returns the tensor's address, the node's class (that of a Python function is its own), and the function, file and
    line that created the node."""
    is_python = isinstance(node, torch.autograd.function.BackwardCFunction)
    _, _, line = "".join(node.metadata["traceback_"]).rpartition("  File ")
    file, number, function = LINE.match("  File " + line).groups()
    return tensor.untyped_storage().data_ptr(), None if is_python else node.name(), (function, file, int(number))


def moment(module, loss=None, name=None):
    """Marks this moment and notes the module's memory."""
    parameters = list(module.parameters())
    noted = {
        "parameters": addresses(parameters),
        "gradients": addresses(p.grad for p in parameters),
    }
    if loss is not None:
        there = blocks()  # reading the tensors that checkpointing saves recomputes them
        saved = saved_tensors(loss)
        noted["saved"] = [address for address in addresses(tensor for _, tensor in saved) if address in there]
        if ANOMALY:
            noted["savers"] = [saver(node, tensor) for node, tensor in saved if tensor.is_cuda]
    gpumemtrace.mark(f"moment-{len(moments)}")
    moments.append(noted)


class Block(nn.Module):
    def __init__(self, width, flash):
        super().__init__()
        self.flash = flash
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 4, c // 4).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, dim=2))
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = F.softmax(q @ k.transpose(-2, -1) / c**0.5, dim=-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, width=128, layers=3, flash=False, checkpointing=None):
        super().__init__()
        self.checkpointing = checkpointing
        self.tokens, self.places = nn.Embedding(512, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Block(width, flash) for _ in range(layers))
        self.head = nn.Linear(width, 512, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            if self.checkpointing is None:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.checkpointing == "reentrant")
        return self.head(x)


def batch():
    return torch.randint(0, 512, (4, 64)).to(DEVICE)


def loss_of(model, tokens):
    return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def train(model, steps=3, closure=False, amp=None, accumulate=1, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])

    def forward_and_backward():
        optimizer.zero_grad()
        for _ in range(accumulate):
            with torch.autocast(DEVICE, dtype=amp or torch.bfloat16, enabled=amp is not None):
                loss = loss_of(model, batch())
            moment(model, loss)
            loss.backward()
            moment(model, loss)
        return loss

    for _ in range(steps):
        if closure:
            optimizer.step(forward_and_backward)
        else:
            forward_and_backward()
            optimizer.step()
        moment(model)


def gpt():
    train(Gpt().to(DEVICE))


def gpt_flash():
    train(Gpt(flash=True).to(DEVICE))


def gpt_closure():
    """A hook also looks in the middle of a backward pass, like an optimizer that runs there."""
    model = Gpt().to(DEVICE)
    model.blocks[1].down.weight.register_post_accumulate_grad_hook(lambda _: moment(model))
    train(model, closure=True)


def gpt_bf16():
    train(Gpt().to(DEVICE), amp=torch.bfloat16)


def gpt_checkpoint():
    train(Gpt(checkpointing="other").to(DEVICE))


def gpt_checkpoint_reentrant():
    train(Gpt(checkpointing="reentrant").to(DEVICE))


def gpt_accumulate():
    train(Gpt().to(DEVICE), accumulate=3)


def gpt_frozen():
    model = Gpt().to(DEVICE)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("down" in name)
    train(model)


def gpt_fused():
    model = Gpt().to(DEVICE)
    train(model, optimizer=torch.optim.AdamW(model.parameters(), fused=True))


def gpt_compiled():
    model = Gpt().to(DEVICE)
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = loss_of(compiled, batch())
        moment(model, loss)
        loss.backward()
        moment(model)
        optimizer.step()
        optimizer.zero_grad()


class ConvNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3),
                         nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def convnet():
    model = ConvNet().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        loss = F.cross_entropy(model(torch.rand(8, 3, 32, 32).to(DEVICE)), torch.randint(0, 10, (8,)).to(DEVICE))
        moment(model, loss)
        loss.backward()
        moment(model, loss)
        optimizer.step()
        optimizer.zero_grad()


def kept_graph():
    """Keeps losses with their graphs, and tensors without one."""
    model = Gpt(layers=1).to(DEVICE)
    losses, kept = [], []
    for _ in range(4):
        losses.append(loss_of(model, batch()))
        kept.append(torch.zeros(1000, device=DEVICE))
        moment(model, torch.stack(losses).sum())


def dropped_graph():
    """Memory that the program still holds is no longer saved after its graph is dropped without a
    backward pass."""
    model = Gpt(layers=1).to(DEVICE)
    kept = []
    for _ in range(3):
        logits = model(batch())
        kept.append(torch.softmax(logits, -1).detach())
        moment(model, logits)
        del logits
        moment(model, model.tokens.weight.sum())


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        x, factor = ctx.saved_tensors
        return gradient * factor, (gradient * x).sum()


def custom_function():
    """Uses a Python function that saves tensors; its node is evaluated or dropped."""
    model = nn.Linear(64, 64).to(DEVICE)
    factor = torch.rand(1, device=DEVICE)
    kept = []
    for step in range(4):
        kept.append(torch.rand(32, 64, device=DEVICE))
        loss = Scale.apply(model(Scale.apply(kept[-1], factor)), factor).sum()
        moment(model, loss)
        if step % 2 == 0:
            loss.backward()
        del loss
        moment(model, model.weight.sum())


def infer(model):
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            model(batch())
            moment(model)


def inference_to():
    infer(Gpt().to(DEVICE))


def inference_half():
    infer(Gpt().half().cuda())


def inference_frozen():
    infer(Gpt().requires_grad_(False).to(DEVICE))


def inference_made_there():
    with torch.device(DEVICE):
        model = Gpt()
    infer(model)


def inference_assigned():
    state = {name: value.to(DEVICE) for name, value in Gpt().state_dict().items()}
    with torch.device("meta"):
        model = Gpt()
    model.load_state_dict(state, assign=True)
    infer(model)


def inference_empty():
    with torch.device("meta"):
        model = Gpt()
    infer(model.to_empty(device=DEVICE))


PROGRAMS = {
    f.__name__: f
    for f in (gpt, gpt_flash, gpt_closure, gpt_bf16, gpt_checkpoint, gpt_checkpoint_reentrant, gpt_accumulate,
              gpt_frozen, gpt_fused, gpt_compiled, convnet, kept_graph, dropped_graph, custom_function, inference_to, inference_half,
              inference_frozen, inference_made_there, inference_assigned, inference_empty)
}

if __name__ == "__main__":
    torch.autograd.set_detect_anomaly(ANOMALY, check_nan=False)
    PROGRAMS[sys.argv[1]]()
    print(json.dumps(moments))
