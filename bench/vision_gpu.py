"""PyTorch's rate of training and extraction with ResNet-18 on 32x32 images, on a GPU.

    python bench/vision_gpu.py [BATCH]

bf16, channels-last, compiled, fused Adam: the peer of
`cargo run --release -p ivoro-torch --features libtorch --example throughput -- cuda BATCH`.
"""
import sys
import time

import torch
import torch.nn.functional as F
import torchvision

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
torch.backends.cudnn.benchmark = True
net = torchvision.models.resnet18(num_classes=200)
net.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
net.maxpool = torch.nn.Identity()
net = net.cuda().to(memory_format=torch.channels_last)
x = torch.randn(batch, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
y = torch.randint(0, 200, (batch,), device="cuda")
optimiser = torch.optim.Adam(net.parameters(), 1e-3, weight_decay=2e-4, fused=True)


def rate(work, warm=10, seconds=8.0):
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    start, steps = time.time(), 0
    while time.time() - start < seconds:
        for _ in range(10):
            work()
        torch.cuda.synchronize()
        steps += 10
    return steps * batch / (time.time() - start)


def step(model):
    def work():
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(x) / 0.1, y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return work


print(f"PyTorch {torch.__version__}, batch {batch}")
print(f"training, eager: {rate(step(net)):.0f} images/s", flush=True)
start = time.time()
compiled = torch.compile(net)
work = step(compiled)
work()
torch.cuda.synchronize()
print(f"first compiled step after {time.time() - start:.1f} s")
print(f"training, compiled: {rate(work):.0f} images/s", flush=True)
net.eval()
frozen = torch.compile(net)


def ask():
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        frozen(x)


print(f"extraction, compiled: {rate(ask):.0f} images/s", flush=True)
