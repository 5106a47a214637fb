"""Makes golden.safetensors: tiny residual networks, forward and trained for three steps by PyTorch.

python golden.py, with torch, numpy and safetensors. Computed in float64 and stored as float32.
Kernels and linear layers lie in PyTorch's order, one after the other, as `Architecture::parameters`
lists them.
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional as F


class Unit(nn.Module):
    def __init__(self, inputs, outputs, size, stride):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.bn(self.conv(x))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = Unit(inputs, outputs, 3, stride)
        self.second = Unit(outputs, outputs, 3, 1)
        changes = stride != 1 or inputs != outputs
        self.around = Unit(inputs, outputs, 1, stride) if changes else None

    def forward(self, x):
        around = x if self.around is None else self.around(x)
        return F.relu(self.second(F.relu(self.first(x))) + around)


class Network(nn.Module):
    def __init__(self, channels, large, widths, depth, halve_first, embedding, outputs):
        super().__init__()
        self.stem = Unit(channels, widths[0], 7 if large else 3, 2 if large else 1)
        self.pool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        width, stages = widths[0], []
        for stage, out in enumerate(widths):
            blocks = []
            for index in range(depth):
                halves = index == 0 and (stage > 0 or halve_first)
                blocks.append(Block(width, out, 2 if halves else 1))
                width = out
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.ModuleList(stages)
        self.embedding = nn.Linear(width, embedding) if embedding else None
        self.fc = nn.Linear(embedding or width, outputs)

    def forward(self, x):
        x = self.pool(F.relu(self.stem(x)))
        means = []
        for stage in self.stages:
            x = stage(x)
            means.append(x.mean((2, 3)))
        last = means[-1]
        if self.embedding is not None:
            last = self.embedding(last)
        else:
            means.pop()
        return self.fc(last), [last] + means[::-1]

    def flat(self, gradients=False):
        units = [m for m in self.modules() if isinstance(m, Unit)]
        learned = [p for u in units for p in (u.conv.weight, u.bn.weight, u.bn.bias)]
        for linear in (self.embedding, self.fc):
            learned += [linear.weight, linear.bias] if linear is not None else []
        if gradients:
            learned = [p.grad for p in learned]
        measured = [p for u in units for p in (u.bn.running_mean, u.bn.running_var)]
        join = lambda parts: torch.cat([p.detach().flatten() for p in parts]).numpy().astype(np.float32)
        return join(learned), join(measured)


def case(name, shape, network, rotations, smoothing, optimiser, decay):
    torch.manual_seed(len(name))
    rng = np.random.default_rng(len(name))
    net = Network(shape[2], **network)
    with torch.no_grad():
        for value in list(net.parameters()) + [b for b in net.buffers() if b.dtype.is_floating_point]:
            noise = 1 + 0.3 * torch.randn_like(value) if value.ndim == 1 else 2 * value
            value.copy_(noise.abs() if value.ndim == 1 else noise)
    net = net.double()
    images, sisters = 5, 4 if rotations else 1
    pixels = rng.integers(0, 256, (images, *shape), dtype=np.uint8)
    labels = rng.integers(0, network["outputs"] // sisters, images, dtype=np.uint32)
    mean, deviation = torch.tensor([0.5, 0.4, 0.3][: shape[2]]), torch.tensor([0.25, 0.2, 0.3][: shape[2]])
    x = (torch.from_numpy(pixels).double() / 255 - mean) / deviation
    x = x.permute(0, 3, 1, 2)
    learned, measured = net.flat()
    tensors = {"pixels": pixels, "labels": labels, "learned": learned, "measured": measured}
    net.eval()
    with torch.no_grad():
        outputs, layers = net(x)
    tensors["outputs"] = outputs.numpy().astype(np.float32)
    for index, layer in enumerate(layers):
        tensors[f"layer{index}"] = layer.numpy().astype(np.float32)
    views = torch.cat([torch.rot90(x, k, (2, 3)) for k in range(sisters)])
    targets = torch.cat([torch.from_numpy(labels.astype(np.int64)) * sisters + k for k in range(sisters)])
    if optimiser == "adam":
        rule = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=decay)
    else:
        rule = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9, weight_decay=decay)
    losses = []
    net.train()
    for step in range(3):
        loss = F.cross_entropy(net(views)[0] / 0.5, targets, label_smoothing=smoothing)
        rule.zero_grad()
        loss.backward()
        if step == 0:
            tensors["gradient"] = net.flat(gradients=True)[0]
        rule.step()
        losses.append(loss.item())
    tensors["losses"] = np.array(losses, dtype=np.float32)
    tensors["learned_after"], tensors["measured_after"] = net.flat()
    return {f"{name}.{key}": np.ascontiguousarray(value) for key, value in tensors.items()}


small = {"large": False, "widths": [4, 8], "depth": 1}
plain = small | {"halve_first": False, "embedding": None, "outputs": 12}
plane = small | {"halve_first": True, "embedding": 2, "outputs": 12}
large = {"large": True, "widths": [4, 6], "depth": 2, "halve_first": False, "embedding": None, "outputs": 3}
tensors = case("plain", (6, 6, 3), plain, True, 0.0, "adam", 2e-4)
tensors |= case("embedded", (7, 7, 1), plane, True, 0.1, "momentum", 5e-4)
tensors |= case("wide_stem", (18, 23, 3), large, False, 0.0, "adam", 0.0)
save_file(tensors, Path(__file__).with_name("golden.safetensors"))
